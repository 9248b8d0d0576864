"""Sessions in relation to each other: families, comparison, plans of a delete."""

from __future__ import annotations

from sessiondb.engine.sql import Statement
from sessiondb.model import (
    Comparison,
    DeletePlan,
    Label,
    MessageNode,
    Session,
    Tree,
)
from sessiondb.model.paths import path_to
from sessiondb.repository import Read, engine_in_use
from sessiondb.repository.decode import (
    listed,
    report_missing,
)
from sessiondb.repository.makers import Maker
from sessiondb.repository.transcript import (
    Identity,
    identities,
    leaf_of,
    live_path,
    load,
    missing_messages,
)

_FAMILY = Statement("repository.family.FAMILY")
_LABELS = Statement("repository.family.LABELS")
_CHILDREN_SHOWN = Statement("repository.family.CHILDREN_SHOWN")
_NODES = Statement("repository.family.NODES")
_NODE = Maker(MessageNode, MessageNode.__slots__)


def labels(session_id: str) -> Read[list[Label]]:
    """Return the labels of a session, in order of seq."""
    rows = yield _LABELS, {"sid": session_id}
    return [Label(*row) for row in rows]


def children(base: str | None, session_id: str) -> Read[list[Session]]:
    """Return the subagents that a session started and its forks, oldest first."""
    rows = yield _CHILDREN_SHOWN, {"sid": session_id}
    return listed(rows, base)


def nodes(session_id: str, count: int) -> Read[tuple[MessageNode, ...]]:
    """Return every message of a session as a node, in order of seq.

    *count* is the number of messages that there should be.
    """
    rows = yield _NODES, {"sid": session_id}
    leaf = yield from leaf_of(session_id)
    parents = {row[0]: row[1] for row in rows}
    missing = missing_messages(session_id, parents, count)
    yield from report_missing(session_id, missing)
    path = set(path_to(parents, leaf))

    names: dict[int, list[str]] = {}
    for item in (yield from labels(session_id)):
        names.setdefault(item.seq, []).append(item.label)

    return tuple(
        _NODE.make((seq, *plain, seq in path, shown or "", tuple(names.get(seq, ()))))
        for seq, *plain, shown in rows
    )


def tree(base: str | None, asked: Session, *, messages: bool = False) -> Read[Tree]:
    """Return the family of a session from its topmost living ancestor down.

    With *messages* the session itself has its messages as nodes.
    """
    rows = yield _FAMILY, {"root": asked.root_id}
    members = listed(rows, base)
    by_id: dict[str | None, Session] = {item.id: item for item in members}
    children: dict[str | None, list[Session]] = {}
    for item in members:
        if item.parent_id in by_id:
            children.setdefault(item.parent_id, []).append(item)

    top = asked
    while top.parent_id in by_id:
        top = by_id[top.parent_id]

    shown: dict[str, tuple[MessageNode, ...]] = {}
    if messages:
        shown[asked.id] = yield from nodes(asked.id, asked.message_count)
    return _grow_tree(top, children, shown)


def _grow_tree(
    top: Session,
    children: dict[str | None, list[Session]],
    shown: dict[str, tuple[MessageNode, ...]],
) -> Tree:
    # Chains may be 500 deep: built from the leaves up, so that nothing recurses.
    order = [top]
    for item in order:
        order += children.get(item.id, ())

    built: dict[str, Tree] = {}
    for item in reversed(order):
        children_of = tuple(built.pop(child.id) for child in children.get(item.id, ()))
        built[item.id] = Tree(item, children_of, shown.get(item.id, ()))

    return built[top.id]


def compare(
    a: Session, b: Session, end_a: int | None = None, end_b: int | None = None
) -> Read[Comparison]:
    """Return the common beginning of two paths, and the rest of each.

    A path leads to the leaf, or to the message at the seq *end_a*, *end_b*.

    A message is common if one session took it over from the other, or both from a
    third: equal id and time within one family, or one usage key (a source may give its
    copies new ids). An event of kind usage is a cost that belongs to no message of the
    conversation, so one that only one side has does not end the common beginning.
    """
    path_a = yield from live_path(a.id, leaf=... if end_a is None else end_a)
    path_b = yield from live_path(b.id, leaf=... if end_b is None else end_b)
    known_a, known_b = (yield from identities(a.id)), (yield from identities(b.id))
    common, only_a, only_b = _split_seqs(
        [(seq, known_a[seq]) for seq in path_a],
        [(seq, known_b[seq]) for seq in path_b],
        kin=a.root_id == b.root_id,
    )
    return Comparison(
        tuple((yield from load(a.id, common, live=path_a))),
        tuple((yield from load(a.id, only_a, live=path_a))),
        tuple((yield from load(b.id, only_b, live=path_b))),
    )


def _split_seqs(
    a: list[tuple[int, Identity]], b: list[tuple[int, Identity]], *, kin: bool
) -> tuple[list[int], list[int], list[int]]:
    """Return the seqs of *a* in the common beginning, and the other seqs of each."""
    common: list[int] = []
    only_a: list[int] = []
    only_b: list[int] = []
    x = y = 0
    while x < len(a) and y < len(b):
        (seq_a, first), (seq_b, second) = a[x], b[y]
        if first.is_copy(second, kin=kin):
            common.append(seq_a)
            x, y = x + 1, y + 1
        elif first.kind == "usage":
            only_a.append(seq_a)
            x += 1
        elif second.kind == "usage":
            only_b.append(seq_b)
            y += 1
        else:
            break

    only_a += (seq for seq, _ in a[x:])
    only_b += (seq for seq, _ in b[y:])
    return common, only_a, only_b


_CHILDREN = Statement("repository.family.CHILDREN")


def plan_delete(
    base: str | None, asked: Session, *, keep_forks: bool = False
) -> Read[DeletePlan]:
    """Return the sessions that a delete would remove, and those it would detach."""
    going = [asked]
    detached: list[Session] = []
    for item in going:
        rows = yield _CHILDREN, {"sid": item.id}
        for child in listed(rows, base):
            is_kept = keep_forks and child.relation == "fork"
            target = detached if is_kept else going
            target.append(child)

    engine = yield from engine_in_use()
    size, parts = yield from engine.session_sizes.freed(item.id for item in going)
    messages = sum(item.message_count for item in going)
    return DeletePlan(tuple(going), tuple(detached), messages, parts, size)
