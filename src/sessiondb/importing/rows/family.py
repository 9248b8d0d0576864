"""Families of imported sessions: parents, roots and cuts.

A child whose parent exists is linked when its row is made. One that comes before its
parent keeps the parent's name, and the transaction that makes the parent links the two,
in one pass at its end. A link never makes a cycle, nor a chain that is too long for
SQLite to delete in a cascade.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from sessiondb.dataclass import dataclass
from sessiondb.effects import ownership
from sessiondb.effects.session import MAX_CHAIN
from sessiondb.effects.transaction import Transaction
from sessiondb.engine.sql import Statement, as_list
from sessiondb.importing.rows.run import Run
from sessiondb.importing.rows.same_store import is_beside

_FAMILY = Statement("importing.rows.family.FAMILY")
_CHILDREN = Statement("importing.rows.family.CHILDREN")
_BY_SOURCE = Statement("importing.rows.family.BY_SOURCE")
_BY_ID = Statement("importing.rows.family.BY_ID")
_ORPHAN = Statement("importing.rows.family.ORPHAN")
_LINK = Statement("importing.rows.family.LINK")
_ROOT = Statement("importing.rows.family.ROOT")
_ROWS = Statement("importing.rows.family.ROWS")
_FAMILY_FACTS = Statement("importing.rows.family.FAMILY_FACTS")
_NAME_PARENT = Statement("importing.rows.family.NAME_PARENT")
_LEAVE = Statement("importing.rows.family.LEAVE")
_BRANCHED = Statement("importing.rows.family.BRANCHED")


#: The last message that a session and the one above have in common, by each fact of it.
_LAST_BY_PLACE = Statement("importing.rows.family.LAST_OF_EQUAL_PLACE")
_LAST_OF_FORK = (
    Statement("importing.rows.family.LAST_OF_SHARED_KEY"),
    _LAST_BY_PLACE,
)
_LAST_OF_SUBAGENT = (
    Statement("importing.rows.family.LAST_OF_EQUAL_KEY"),
    Statement("importing.rows.family.LAST_OF_EQUAL_NAME"),
    _LAST_BY_PLACE,
)
_STARTER = Statement("importing.rows.family.STARTER")
_CALL = Statement("importing.rows.family.CALL")
_SET_CUT = Statement("importing.rows.family.SET_CUT")
_CUTS = Statement("importing.rows.family.CUTS")
_MOVE_CUT = Statement("importing.rows.family.MOVE_CUT")
_COPIED = Statement("importing.rows.family.COPIED")
_NOTED = Statement("importing.rows.family.NOTED")
_READ_AGAIN = Statement("importing.rows.family.READ_AGAIN")


class Waiting(NamedTuple):
    """A child without a parent, and the session that it names as one.

    ``follows``: it was imported, and nothing was added to it here.
    """

    child: str
    parent: str
    parent_name: str | None
    relation: str | None
    source: str
    source_id: str | None
    follows: bool
    namespace: str


def above(tx: Transaction, session_id: str) -> list[str]:
    """Return the ancestors of a session, nearest first."""
    ancestors: list[str] = []
    parent = tx.value(_FAMILY, sid=session_id)
    while parent and parent not in ancestors:
        ancestors.append(parent)
        parent = tx.value(_FAMILY, sid=parent)
    return ancestors


def below(tx: Transaction, session_id: str) -> list[list[str]]:
    """Return a session and its descendants, by level."""
    levels, seen = [[session_id]], {session_id}
    # Seen ones are left out: a damaged file may have a cycle.
    while levels[-1]:
        children: list[str] = []
        for sid in levels[-1]:
            children += tx.column(_CHILDREN, sid=sid)

        levels.append([sid for sid in children if sid not in seen])
        seen.update(children)
    return levels[:-1]


def root_of(tx: Transaction, session_id: str) -> str:
    """Return the root of an existing session."""
    return str(tx.one(_FAMILY, sid=session_id)[1])


def may_have_child(tx: Transaction, parent: str) -> bool:
    """Return whether a new session below *parent* keeps the chain short enough."""
    return len(above(tx, parent)) + 1 < MAX_CHAIN


def match_cut(tx: Transaction, session_id: str) -> None:
    """Make a fork begin at the same message of its parent, whose seq may differ."""
    tx.run(_BRANCHED, sid=session_id)


def find_cut(
    tx: Transaction, parent_id: str, session_id: str, call_id: str | None
) -> int | None:
    """Return the seq of the parent's message that a session begins after, or None.

    That is the message with the call that started it, else the last one it copied.
    """
    starter: int | None = tx.value(_STARTER, above=parent_id, call_id=call_id)
    if starter is not None:
        return starter

    is_fork = tx.peek(session_id).relation == "fork"
    queries = _LAST_OF_FORK if is_fork else _LAST_OF_SUBAGENT
    copied = [tx.value(query, sid=session_id, above=parent_id) for query in queries]
    return max((seq for seq in copied if seq is not None), default=None)


def move_cuts(tx: Transaction, parent_id: str) -> set[str]:
    """Let children of a session that has further messages begin after the right one.

    A child was cut at the last message that both had. If the parent was read only in
    part then, a later one is right. Children that were continued here stay. Returns
    those that moved: more of their messages may be copies.
    """
    moved: set[str] = set()
    children = tx.run(_CUTS, sid=parent_id).fetchall()
    for child, cut, call_id, source, source_id in children:
        later = find_cut(tx, parent_id, child, call_id)
        if later is not None and later > cut:
            tx.run(_MOVE_CUT, sid=child, parent_seq=later)
            moved.add(child)
            # The messages that it copied may be known only now.
            _read_again(tx, [(source, str(source_id))])
    return moved


@dataclass(frozen=True, slots=True, eq=False)
class LinkFamilies:
    """Link the sessions that a transaction opened to their parents and children."""

    verb = "import"
    runs: tuple[Run, ...]

    def apply(self, tx: Transaction) -> None:
        """Write it; a link that is left out is a problem.

        One that makes a chain too long is tried again by the next import.
        """
        opened = {run.session_id: run for run in self.runs if not run.is_gone(tx)}
        for run in opened.values():
            run.problems.clear()

        moved: set[str] = set()
        for run in opened.values():
            if run.policy.states_family and not run.created:
                moved |= _leave_parent(tx, run, opened)

        first_parents = self._first_parents(tx, opened)
        parents = {waiting.parent for waiting in first_parents.values()}
        if tx.lock(*first_parents, *parents):
            first_parents = self._first_parents(tx, opened)

        followed: list[tuple[str, str]] = []
        for waiting in first_parents.values():
            about = opened.get(waiting.child) or opened[waiting.parent]
            child, parent = waiting.child, waiting.parent
            ancestors = above(tx, parent)
            if child in (parent, *ancestors):
                # To read it again would not help: both sessions say the same again.
                reason = f"session {child} is above its parent {parent}: not linked"
                about.problems.append(reason)
                continue
            if len(ancestors) + len(below(tx, child)) >= MAX_CHAIN:
                reason = f"session {child} would be part of a chain of more than"
                about.problems.append(f"{reason} {MAX_CHAIN} parents: not linked")
                checked = about.checked
                tx.run(_READ_AGAIN, source=checked.item.source, path=checked.ledger)
                continue
            moved |= _link_child(tx, waiting, about)
            if waiting.follows and not about.policy.states_cuts:
                followed.append((waiting.source, str(waiting.source_id)))

        _read_again(tx, followed)
        _settle_owners(tx, moved)

    def _first_parents(
        self, tx: Transaction, opened: dict[str, Run]
    ) -> dict[str, Waiting]:
        """Return one parent for each child that waits, the first that is found."""
        first_parents: dict[str, Waiting] = {}
        for waiting in self._waiting_sessions(tx, opened):
            first_parents.setdefault(waiting.child, waiting)
        return first_parents

    def _waiting_sessions(
        self, tx: Transaction, opened: dict[str, Run]
    ) -> Iterator[Waiting]:
        for sid, run in opened.items():
            if run.unlinked or not run.created:
                yield from self._waiting_orphan(tx, run)
            for row in tx.run(_BY_SOURCE, sid=sid).fetchall():
                child = Waiting(*row)
                if is_beside(tx, run, str(child.source_id), child.namespace):
                    yield child

        parents = [sid for sid, run in opened.items() if run.policy.children_know_id]
        if parents:
            for row in tx.run(_BY_ID, ids=as_list(parents)).fetchall():
                yield Waiting(*row)

    def _waiting_orphan(self, tx: Transaction, run: Run) -> Iterator[Waiting]:
        """Yield the session of a run if it has no parent, but could have one by now."""
        parent = run.policy.find_parent(tx, run)
        if parent is None:
            return
        # The source may name a parent and relation that it did not know before.
        relation = run.checked.item.relation
        for row in tx.run(_ORPHAN, sid=run.session_id, parent=parent).fetchall():
            yield Waiting(*row)._replace(relation=relation)


def _link_child(tx: Transaction, waiting: Waiting, about: Run) -> set[str]:
    """Put a child below its parent; return the sessions that have another root now."""
    child, parent = waiting.child, waiting.parent
    # The name of a source stays; an id here was only kept until the parent comes.
    parent_name = None if waiting.parent_name == parent else waiting.parent_name
    names = {"relation": waiting.relation, "parent_source_id": parent_name}
    tx.join_family([sid for level in below(tx, child) for sid in level], parent)
    tx.run(_LINK, sid=child, parent_id=parent, **names)
    about.changed = True

    moved = _set_root(tx, child, root_of(tx, parent))

    if waiting.relation == "fork":
        match_cut(tx, child)
        # A message that a fork took over without a usage key is a copy of its parent's.
        for seq in tx.column(_COPIED, sid=child, parent=parent):
            ownership.mark(tx, child, seq, 1)

    cut = find_cut(tx, parent, child, tx.value(_CALL, sid=child))
    tx.run(_SET_CUT, sid=child, parent_seq=cut)
    return moved


def _leave_parent(tx: Transaction, run: Run, opened: Mapping[str, Run]) -> set[str]:
    """Take a session from its parent if its source names another one by now.

    Which session is the original of a fork may be known only when both are complete, so
    what was the parent may turn out to be the child. A source that names no parent, as
    an export may, says nothing of it. A parent that is no session of the source was
    given to it here, and stays. So do the parents of two sessions that name each other
    in this transaction: that is a circle. Returns the sessions that have another root
    now.
    """
    item = run.checked.item
    if item.parent_source_id is None:
        return set()
    row = tx.one(_FAMILY_FACTS, sid=run.session_id)
    parent_id, relation, parent_name, is_of_source = row
    if parent_id is not None and not is_of_source:
        return set()
    if parent_name != item.parent_source_id:
        tx.run(_NAME_PARENT, sid=run.session_id, parent_source_id=item.parent_source_id)
        run.changed = True

    named_parent = run.policy.find_parent(tx, run)
    if named_parent is None:
        return set()
    moved: set[str] = set()
    tx.lock(named_parent)
    other = opened.get(named_parent)
    names_each_other = (
        other is not None and other.checked.item.parent_source_id == item.source_id
    )
    is_child = tx.one(_FAMILY, sid=named_parent)[0] == run.session_id
    if is_child and not names_each_other:
        moved |= _make_root(tx, named_parent, None, None)
    if parent_id is not None and (
        named_parent != parent_id or relation != item.relation
    ):
        moved |= _make_root(tx, run.session_id, item.relation, item.parent_source_id)
    run.changed = run.changed or bool(moved)
    return moved


def _make_root(
    tx: Transaction, session_id: str, relation: str | None, parent_name: str | None
) -> set[str]:
    """Take a session from its parent; return those that have another root now.

    *parent_name* is the parent that it waits for from now on, as its source names it.
    """
    columns = {"relation": relation, "parent_source_id": parent_name}
    tx.run(_LEAVE, sid=session_id, parent_id=None, parent_seq=None, **columns)
    return _set_root(tx, session_id, session_id)


def _set_root(tx: Transaction, session_id: str, root_id: str) -> set[str]:
    """Give a session and its descendants a root; return their ids."""
    moved = {sid for level in below(tx, session_id) for sid in level}
    for sid in moved:
        tx.run(_ROOT, sid=sid, root_id=root_id)
        if sid in tx.states:
            tx.states[sid].root_id = root_id
    return moved


def _settle_owners(tx: Transaction, moved: set[str]) -> None:
    """Decide which copies are counted in sessions that have other ancestors now.

    Once for all of them: to do it for each link would read every copy again for each of
    the forks that wait for one parent.
    """
    classes: set[ownership.UsageClass] = set()
    for sid in moved:
        root_id = root_of(tx, sid)
        for row in tx.run(_ROWS, sid=sid).fetchall():
            classes.add(ownership.UsageClass(root_id, *row))

    touched = ownership.assign_owner(tx, classes)
    ownership.recount(tx, touched | moved)


def _read_again(tx: Transaction, children: Iterable[tuple[str, str]]) -> None:
    """Have children read again, by source and source id: they state where they begin.

    An entry ends with the name of its session. All entries of a source are compared
    once: to look for each child by itself takes a minute for 10,000 of them.
    """
    names: dict[str, set[str]] = {}
    for source, source_id in children:
        names.setdefault(source, set()).add(source_id)

    for source, wanted in names.items():
        noted = tx.column(_NOTED, source=source)
        for path in noted:
            # The name of its session comes last; both it and the path may have a "#".
            _, *tails = path.split("#")
            ends = ["#".join(tails[place:]) for place in range(len(tails))]
            if wanted.intersection(ends):
                tx.run(_READ_AGAIN, source=source, path=path)
