"""Fork by copy.

Rows go by INSERT … SELECT, blobs are shared. A copy keeps ids and seqs, so every
reference inside a payload stays true; it is inherited, so nothing is counted or
found twice. Nothing on the path is dropped: what is open is closed in the copy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sessiondb.dataclass import dataclass
from sessiondb.effects.creation import living_session
from sessiondb.effects.delete import last_revision, make_room
from sessiondb.effects.message import seq_of
from sessiondb.effects.ownership import derive_model, recount
from sessiondb.effects.project import ProjectPlace, home_of
from sessiondb.effects.session import check_chain, free_slug
from sessiondb.effects.transaction import Transaction
from sessiondb.effects.tree import links
from sessiondb.engine.sql import Statement, as_list
from sessiondb.errors import ConflictError, NotFoundError, abridged
from sessiondb.model.damage import (
    CIRCLE,
    GONE,
    REMOVED,
    damaged,
    diff_name,
    message_name,
    part_name,
)
from sessiondb.model.handles import LEAF, SessionHandle
from sessiondb.model.paths import break_of, path_to
from sessiondb.patterns import late_pattern

_SUFFIX = late_pattern(r"(?:^| )\(fork #(\d{1,9})\)$")


_COPY_MESSAGES = Statement("effects.fork.COPY_MESSAGES")
_SEQ_OF_NAME = Statement("effects.fork.SEQ_OF_NAME")
_COPY_PARTS = Statement("effects.fork.COPY_PARTS")
_COPY_TODOS = Statement("effects.fork.COPY_TODOS")
_COPY_LABELS = Statement("effects.fork.COPY_LABELS")
_COPY_DIFFS = Statement("effects.fork.COPY_DIFFS")
COPIED_OF_SESSION = tuple(
    "id project_id parent_id relation parent_seq root_id slug title title_source "
    "directory version source source_id agent provider_id model_id model_source "
    "leaf_seq last_seq permission metadata "
    "time_created time_updated data data_blob scope".split()
)
_COPY_SESSION = Statement("effects.fork.COPY_SESSION")
_TITLES = Statement("effects.fork.TITLES")
_FORK = Statement("effects.fork.FORK")
#: How an error names the place that a query finds.
_LOST: tuple[tuple[Callable[..., str], Statement], ...] = (
    (part_name, Statement("effects.fork.LOST_IN_PART")),
    (message_name, Statement("effects.fork.LOST_IN_MESSAGE")),
    (diff_name, Statement("effects.fork.LOST_IN_DIFF")),
)


def fork_title(tx: Transaction, root_id: str, title: str) -> str:
    """Return ``… (fork #n)`` with the next n that no fork of the family has."""
    base = _SUFFIX.sub("", title)
    numbers = [0]
    # Compared here: as a pattern, a title may be longer than SQLite takes.
    for (used_title,) in tx.run(_TITLES, root=root_id).fetchall():
        match = _SUFFIX.search(used_title)
        if match and _SUFFIX.sub("", used_title) == base:
            numbers.append(int(match[1]))

    return f"{base} (fork #{max(numbers) + 1})".strip()


def _check_values(tx: Transaction, session_id: str) -> None:
    """Raise `CorruptionError` if a large value of a session is missing."""
    for name_of, query in _LOST:
        if place := tx.one(query, sid=session_id):
            raise damaged(name_of(session_id, *place), GONE)


def _copy_rows(tx: Transaction, params: Mapping[str, Any]) -> None:
    """Copy what belongs to the path of a session."""
    tx.run(_COPY_MESSAGES, **params, now=tx.now)
    tx.run(_COPY_PARTS, **params, now=tx.now)
    tx.waiting.forget()
    tx.run(_COPY_TODOS, sid=params["sid"], new=params["new"])
    tx.run(_COPY_LABELS, **params)
    tx.run(_COPY_DIFFS, **params)


@dataclass(frozen=True, slots=True, eq=False)
class Fork:
    """Copy a session up to a message into a new one."""

    verb = "fork"
    session_id: str
    handle: SessionHandle
    own_id: bool
    source: str
    at: Any = LEAF
    before: str | int | None = None
    #: True if the place is a string, which may be a label, and no handle.
    by_name: bool = False
    title: str | None = None
    place: ProjectPlace | None = None
    branches: bool = False
    #: None is that of the session.
    scope: str | None = None
    #: The name of the fork in the program *source*; None is none.
    source_id: str | None = None

    def apply(self, tx: Transaction) -> None:
        """Apply it, or recognise it by its id.

        Raises `ConflictError`, `NotFoundError`, and `CorruptionError` for a path that
        is not complete.
        """
        tx.lock(self.session_id, self.handle.id)
        if (self.own_id or tx.retried) and self._is_there(tx):
            return

        tx.lock_new_session(self.handle.id, self.session_id)
        self._check_name(tx)
        # The copy is made by SQL: what this unit wrote has to be in the rows.
        tx.flush()
        parent = tx.session(self.session_id)
        check_chain(tx, parent.id)
        parents = links(tx, parent.id)
        leaf = self._cut_seq(tx, parents)
        path = path_to(parents, leaf)
        end = break_of(parents, path, leaf)
        if end is not None:
            reason = CIRCLE if end in parents else REMOVED
            raise damaged(message_name(parent.id, end), reason)
        seqs = list(parents) if self.branches else path
        cut = max(seqs, default=0)
        off = sorted({seq for seq in parents if seq <= cut}.difference(seqs))
        params = {
            "sid": parent.id,
            "new": self.handle.id,
            "cut": cut,
            "off": as_list(off),
        }
        self._session_row(tx, leaf)
        try:
            with tx.guarded():
                _copy_rows(tx, params)
        except tx.engine.Error:
            # Only now: before, it would cost as much as the copies.
            _check_values(tx, parent.id)
            raise

        # Forking is not a change of the parent.
        del tx.states[parent.id]
        recount(tx, [self.handle.id])
        derive_model(tx, self.handle.id)
        state = tx.session(self.handle.id)
        state.first_new_seq = 1
        if self.own_id:
            state.revision = last_revision(tx, self.source, state.id)

    def _check_name(self, tx: Transaction) -> None:
        if self.source_id is None:
            return
        holder = living_session(tx, self.source, self.source_id)
        if holder is not None:
            raise ConflictError(
                f"session {holder} of {abridged(self.source)} has the name "
                f"{abridged(self.source_id)} already"
            )

    def _cut_seq(self, tx: Transaction, parents: dict[int, int | None]) -> int | None:
        if self.before is not None:
            return parents[self._seq_of_place(tx, self.before)]
        if self.at is LEAF:
            return tx.session(self.session_id).leaf_seq
        return self._seq_of_place(tx, self.at)

    def _seq_of_place(self, tx: Transaction, place: str | int) -> int:
        """Return the seq of a message; a string is its id, else a label."""
        if not self.by_name:
            return seq_of(tx, self.session_id, place)
        row = tx.one(_SEQ_OF_NAME, sid=self.session_id, name=place)
        if row is None:
            raise NotFoundError(
                f"session {self.session_id} has no message or label {abridged(place)}"
            )
        return int(row[0])

    def _session_row(self, tx: Transaction, leaf: int | None) -> None:
        parent = tx.session(self.session_id)
        project_id, directory = parent.project_id, parent.directory
        if self.place is not None:
            project_id, directory = home_of(tx, self.place)

        title = self.title or fork_title(tx, parent.root_id, parent.title)
        tx.run(
            _COPY_SESSION,
            sid=parent.id,
            new=self.handle.id,
            project_id=project_id,
            parent_seq=leaf,
            slug=free_slug(tx, project_id, self.handle.id),
            title=title,
            title_source="user" if self.title else parent.title_source,
            directory=directory,
            source=self.source,
            source_id=self.source_id,
            leaf=leaf,
            now=tx.now,
            scope=self.scope,
        )
        tx.engine.search.put_titles(tx.connection, {self.handle.id: title})

    def _is_there(self, tx: Transaction) -> bool:
        row = tx.one(_FORK, sid=self.handle.id)
        if row is None:
            return False

        parent, relation, cut, deleted = row
        if deleted is not None:
            make_room(tx, self.handle.id)
            return False
        asked = cut
        if self.at is not LEAF or self.before is not None:
            asked = self._cut_seq(tx, links(tx, self.session_id))
        if (parent, relation, cut) != (self.session_id, "fork", asked):
            raise ConflictError(f"session {self.handle.id} exists and is another fork")

        return True
