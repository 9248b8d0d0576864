"""The expected contents of the database in plain Python: no SQL, no keys, no cleverness.

Rows are kept per session; which of them count is derived again from all of them
at each question. Slow, and easy to verify.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass
class Row:
    """One message. ``key`` identifies its copies, independently of their place."""

    id: str
    seq: int
    parent: int | None
    text: str
    cost: float | None = None
    key: Any = None
    is_open: bool = False


@dataclass
class Kept:
    """One session that is not deleted."""

    id: str
    time: int
    parent: str | None = None
    relation: str | None = None
    root: str = ""
    source_id: str | None = None
    parent_source: str | None = None
    detached: bool = False
    rows: dict[int, Row] = field(default_factory=dict)
    leaf: int | None = None
    last: int = 0

    def path(self, leaf: int | None) -> list[int]:
        """Return the seqs from the root to *leaf*."""
        seqs: list[int] = []
        while leaf is not None:
            seqs.append(leaf)
            leaf = self.rows[leaf].parent
        return seqs[::-1]

    def under(self, after: int | None) -> set[int]:
        """Return every seq below *after*, on any branch."""
        if after is None:
            return set(self.rows)
        return {seq for seq in self.rows if seq != after and after in self.path(seq)}


@dataclass
class Foreign:
    """A session in the store of another program, and how often it changed."""

    id: str
    time: int
    parent: str | None = None
    relation: str | None = None
    messages: list[Row] = field(default_factory=list)
    version: int = 0


class Model:
    """All sessions, deleted imports, and the records of the ledger."""

    def __init__(self) -> None:
        self.sessions: dict[str, Kept] = {}
        self.buried: set[str] = set()
        self.noted: dict[str, int] = {}
        self.relinked: set[str] = set()

    # -- counting ------------------------------------------------------------

    def _ancestors(self, session: Kept) -> Iterator[str]:
        while session.parent is not None:
            yield session.parent
            session = self.sessions[session.parent]

    def classes(self) -> list[list[tuple[Kept, Row]]]:
        """Return the messages in groups: each group is one answer and its copies."""
        group: dict[Any, list[tuple[Kept, Row]]] = {}
        for session in self.sessions.values():
            for row in session.rows.values():
                names = [(session.root, row.seq, row.id)]
                names += [row.key] if row.key is not None else []
                together = [(session, row)]
                for members in {
                    id(group[n]): group[n] for n in names if n in group
                }.values():
                    together += members
                for member_session, member in together:
                    group[member_session.root, member.seq, member.id] = together
                    if member.key is not None:
                        group[member.key] = together
        return list({id(members): members for members in group.values()}.values())

    def counted(self) -> set[tuple[str, int]]:
        """Return (session, seq) of every message that is counted."""
        found = set()
        for members in self.classes():
            ids = {session.id for session, _ in members}
            first = [m for m in members if ids.isdisjoint(self._ancestors(m[0]))]
            session, row = min(first, key=lambda m: (m[0].time, m[0].id, m[1].seq))
            found.add((session.id, row.seq))
        return found

    # -- native writes -------------------------------------------------------

    def append(self, session: Kept, row: Row) -> None:
        """Add a message after the leaf."""
        session.last = row.seq
        session.rows[row.seq] = row
        session.leaf = row.seq
        self.use(session)

    def use(self, session: Kept) -> None:
        """Record that a session was continued here."""
        session.detached = session.detached or session.source_id is not None

    def fork(
        self, session: Kept, new: str, time: int, leaf: int | None, branches: bool
    ) -> Kept:
        """Copy a session."""
        seqs = list(session.rows) if branches else session.path(leaf)
        rows = {seq: replace(session.rows[seq], is_open=False) for seq in seqs}
        fork = Kept(new, time, session.id, "fork", session.root, rows=rows, leaf=leaf)
        fork.last = session.last
        self.sessions[new] = fork
        return fork

    def truncate(self, session: Kept, after: int | None) -> None:
        """Remove the messages after a message."""
        going = session.under(after)
        session.rows = {
            seq: row for seq, row in session.rows.items() if seq not in going
        }
        if session.leaf in going:
            session.leaf = after
        if going:
            self.use(session)

    def remove(self, session: Kept, going: Collection[int]) -> None:
        """Remove messages; what followed them follows what came before them."""

        def left(seq: int | None) -> int | None:
            while seq in going:
                seq = session.rows[seq].parent
            return seq

        for row in session.rows.values():
            row.parent = left(row.parent)
        session.leaf = left(session.leaf)
        for seq in going:
            del session.rows[seq]
        self.use(session)

    def delete(self, session: Kept, keep_forks: bool) -> set[str]:
        """Remove a session and its descendants; return the ids."""
        going = {session.id}
        queue = [session.id]
        for above in queue:
            for child in [c for c in self.sessions.values() if c.parent == above]:
                if keep_forks and child.relation == "fork":
                    self._detach(child)
                else:
                    going.add(child.id)
                    queue.append(child.id)
        for name in going:
            gone = self.sessions.pop(name)
            if gone.source_id is not None:
                self.buried.add(gone.source_id)
        return going

    def _detach(self, fork: Kept) -> None:
        """Leave a fork without its parent; it names the parent, in case it is restored."""
        parent = self.sessions[fork.parent or ""]
        if fork.parent_source is None or fork.parent_source != parent.source_id:
            fork.parent_source = parent.id
        fork.parent = None

    # -- imports -------------------------------------------------------------

    def by_source(self, source_id: str | None) -> Kept | None:
        """Return the session that a foreign one became."""
        if source_id is None:
            return None
        return next(
            (s for s in self.sessions.values() if s.source_id == source_id), None
        )

    def _waits_for(self, child: Kept, parent: Kept) -> bool:
        """Return whether a session without a parent names this one, and may have it."""
        named = child.parent is None and child.parent_source is not None
        is_it = child.parent_source in (parent.source_id, parent.id)
        is_above = child is parent or child.id in self._ancestors(parent)
        return named and is_it and not is_above

    def outcome(self, item: Foreign, restore: bool, as_fork: bool) -> str:
        """Return the expected outcome of importing a session."""
        here = self.by_source(item.id)
        if item.id in self.buried and not restore:
            return "deleted"
        if here is None:
            return "imported"
        if self.noted[item.id] == item.version and item.id not in self.relinked:
            return "unchanged"
        if here.detached:
            return "imported as fork" if as_fork else "diverged"
        return "updated"

    def take_in(
        self, item: Foreign, new: str, as_fork: bool, read: Collection[str]
    ) -> None:
        """Import a session whose `outcome` is to be written; *new* is its id if it gets one.

        *read* are the sessions that are written in the same import.
        """
        self.buried.discard(item.id)
        session = self.by_source(item.id)
        if as_fork and session is not None:
            root, session.source_id = session.root, None
            fork = Kept(new, item.time, session.id, "fork", root, item.id, item.parent)
            session = self.sessions[new] = fork
        elif session is None:
            session = Kept(
                new, item.time, None, item.relation, new, item.id, item.parent
            )
            self.sessions[new] = session
            self._find_parent(session)
            self._adopt(session)
        else:
            self._leave_child(session, item, read)
            self._find_parent(session)
            self._adopt(session)
        self._write(session, item)
        self.noted[item.id] = item.version
        self.relinked.discard(item.id)

    def _leave_child(self, session: Kept, item: Foreign, read: Collection[str]) -> None:
        """What was the child of a session may turn out to be its parent."""
        parent = self.by_source(item.parent)
        above = self.sessions.get(session.parent or "")
        is_given_here = above is not None and above.source_id is None
        if parent is None or parent.parent != session.id or is_given_here:
            return
        # Two that name each other in one import are a circle.
        if parent.source_id in read and parent.parent_source == item.id:
            return
        parent.parent = parent.parent_source = parent.relation = None
        self._set_root(parent, parent.id)

    def _find_parent(self, session: Kept) -> None:
        for parent in self.sessions.values():
            if self._waits_for(session, parent):
                self._link(session, parent)

    def _adopt(self, session: Kept) -> None:
        for child in self.sessions.values():
            if self._waits_for(child, session):
                self._link(child, session)
                if child.source_id is not None and not child.detached:
                    self.relinked.add(child.source_id)

    def _link(self, child: Kept, parent: Kept) -> None:
        child.parent = parent.id
        if child.parent_source == parent.id:
            child.parent_source = None
        self._set_root(child, parent.root)

    def _set_root(self, top: Kept, root: str) -> None:
        for session in self.sessions.values():
            if session is top or top.id in self._ancestors(session):
                session.root = root

    def _write(self, session: Kept, item: Foreign) -> None:
        here = {row.id: row for row in session.rows.values()}
        before = None
        for given in item.messages:
            row = here.get(given.id)
            if row is None:
                session.last += 1
                row = session.rows[session.last] = replace(given, seq=session.last)
            elif row.key != given.key:
                self._rename(row, given.key)
            row.parent, row.text, row.cost, row.key = (
                before,
                given.text,
                given.cost,
                given.key,
            )
            before = row.seq
        session.leaf = before

    def _rename(self, changed: Row, key: Any) -> None:
        """The copies that forks made of a message stay its copies when its usage changes."""
        old = (changed.id, changed.key)
        for session in self.sessions.values():
            row = session.rows.get(changed.seq)
            if row is not None and (row.id, row.key) == old:
                row.key = key
