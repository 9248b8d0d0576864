"""Sessions written to one log file before they are removed.

A removal begins only after the file has been read back, by the reader that an import
uses, and contains everything that will be removed. `write_bundle` returns the revisions
that it compared, and the removal applies to exactly those.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import zip_longest
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sessiondb.effects import SessionHandle
from sessiondb.engine import outputs
from sessiondb.errors import ConflictError, SessionDBError
from sessiondb.formats import jsonl
from sessiondb.formats.kit import order
from sessiondb.hints import command
from sessiondb.model import (
    Message,
    MessageDraft,
    Part,
    PartDraft,
    Problem,
    Session,
    SourceMessage,
    SourceSession,
    Tree,
)
from sessiondb.model.draft import NO_INPUT

if TYPE_CHECKING:
    from sessiondb.store import Store

_values_of = attrgetter(*(name for name in MessageDraft.__slots__ if name != "parts"))
_values_of_part = attrgetter(
    *"id type text tool call_id status outcome title data".split(),
    *"time_created time_started time_ended synthetic".split(),
)


def parents_first(
    store: Store, sessions: Iterable[Session], with_children: bool = False
) -> list[Session]:
    """Return sessions, each once, families together and parents first.

    *with_children* adds all their descendants.
    """
    wanted: dict[str, Session] = {}
    for session in sessions:
        if session.id in wanted:
            continue
        family = [session]
        if with_children:
            family = _sessions_below(store.tree(session), session.id)
        wanted |= {item.id: item for item in family}

    # An import links a session to its parent only if that came before.
    families: dict[str, list[Session]] = {}
    for placed in order.parents_first(wanted, lambda name: wanted[name].parent_id):
        session = wanted[placed.name]
        families.setdefault(session.root_id, []).append(session)
    return [session for family in families.values() for session in family]


def _sessions_below(tree: Tree, session_id: str) -> list[Session]:
    """Return a session of a tree, and all below it."""
    by_id = {node.session.id: node for node in _nodes_by_level(tree)}
    return [node.session for node in _nodes_by_level(by_id[session_id])]


def _nodes_by_level(top: Tree) -> list[Tree]:
    """Return a node and all below it, level by level."""
    nodes = [top]
    # The list grows while it is walked.
    for node in nodes:
        nodes += node.children

    return nodes


def write_bundle(
    store: Store, sessions: Iterable[Session], path: Path
) -> dict[str, int]:
    """Write sessions to the new file *path* and read it back; return their revisions.

    A path that ends with ``.gz`` is compressed. Raises `ConflictError` if *path*
    exists, or if a session has changed since, `SessionDBError` if the file would not
    restore the sessions, and the errors of `outputs.writing`.
    """
    ordered = parents_first(store, sessions)
    exports = (store.export(session, **jsonl.READ) for session in ordered)
    with outputs.writing(path) as file, outputs.packed(file, path) as out:
        for item in jsonl.write_logs(exports, together=True):
            out.writelines(item.encoded())  # type: ignore[union-attr]

    return _read_back(store, {session.id: session for session in ordered}, path)


def _read_back(store: Store, missing: dict[str, Session], path: Path) -> dict[str, int]:
    revisions: dict[str, int] = {}
    for item in jsonl.read_log_file(path):
        if isinstance(item, Problem):
            raise _not_restorable(path, f"line {item.line}: {item.why}")
        assert item.stored is not None, "our own log has its state"
        name = item.stored.id
        if missing.pop(name, None) is None:
            raise _not_restorable(
                path, f"session {name} is in it twice, or was not to be written"
            )
        _compare_session(store, item, path)
        revisions[name] = item.stored.revision

    if missing:
        name = min(missing)
        raise _not_restorable(path, f"session {name} is not in it")
    return revisions


def _compare_session(store: Store, item: SourceSession, path: Path) -> None:
    """Raise unless a session that was read back equals the one in the database."""
    assert item.stored is not None, "our own log has its state"
    export = store.export(SessionHandle(item.stored.id), **jsonl.READ)
    if export.session.revision != item.stored.revision:
        raise ConflictError(
            f"session {export.session.id} changed while it was written to {path}",
            hint=f"remove {path} and run the command again; nothing was removed",
        )

    counts = len(item.todos or ()), len(item.diffs or ()), len(item.stored.labels)
    if counts != (len(export.todos), len(export.diffs), len(export.labels)):
        raise _not_restorable(
            path, f"todos, diffs or labels of {export.session.id} are missing"
        )

    for row, logged in zip_longest(export.extension_rows, item.extension_rows):
        if row != logged:
            raise _not_restorable(
                path, f"rows of extensions of {export.session.id} read back differently"
            )

    pairs = zip_longest(
        map(_values_read_back, _intact_messages(item, path)),
        map(_values_stored, export.messages),
    )
    for read, stored in pairs:
        # None is the shorter side, equal to no message.
        if read != stored:
            place = f"message {stored[0]}" if stored else "a message"
            raise _not_restorable(
                path, f"{place} of {export.session.id} reads back differently"
            )


def _intact_messages(item: SourceSession, path: Path) -> Iterator[SourceMessage]:
    """Yield the messages that were read back; raises for a damaged line."""
    for read in item.messages:
        if isinstance(read, Problem):
            raise _not_restorable(path, f"line {read.line}: {read.why}")

        yield read


def _values_read_back(message: SourceMessage) -> list[Any]:
    draft, seq = message.draft, message.stored.seq if message.stored else None
    inputs = [part.input for part in draft.parts]
    return [seq, *_values_of_message(draft, draft.parts), inputs]


def _values_stored(message: Message) -> list[Any]:
    inputs = list(map(_input_of, message.parts))
    return [message.seq, *_values_of_message(message, message.parts), inputs]


def _input_of(part: Part) -> Any:
    """Return the arguments of a stored call, as a draft of it has them."""
    return NO_INPUT if part.input_json is None else part.input


def _values_of_message(
    message: MessageDraft | Message, parts: Iterable[PartDraft | Part]
) -> list[Any]:
    # The log leaves out an update time that equals the creation time.
    part_values = [
        [part.time_updated or part.time_created, _values_of_part(part)]
        for part in parts
    ]
    return [_values_of(message), *part_values]


def _not_restorable(path: Path, reason: str) -> SessionDBError:
    return SessionDBError(
        f"{path} would not restore the sessions: {reason}",
        hint=f"nothing was removed; {command('check')} verifies the database",
    )
