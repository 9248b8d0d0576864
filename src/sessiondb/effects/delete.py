"""Delete: mark first, remove later.

One short transaction marks a session and everything below it, writes
tombstones, and hands what was counted there to the copies that stay: from then
on it is gone for every list, search and view. The reaper then removes rows from
the bottom up, in transactions of at most `REAP_ROWS` rows and `REAP_BYTES`, so
that no writer waits long for the write lock. Only a new session with the same id cannot
wait: its own transaction removes what is left (`make_room`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sessiondb.dataclass import dataclass, field
from sessiondb.effects import ownership
from sessiondb.effects.extension import remove_extension_rows
from sessiondb.effects.transaction import Transaction
from sessiondb.effects.values import next_expiry, remove_expired
from sessiondb.engine.sql import (
    Statement,
    as_list,
    upsert_text,
)
from sessiondb.errors import ConflictError
from sessiondb.model.versions import Version, digest
from sessiondb.schema.rows import DELETION, TOMBSTONE

REAP_ROWS = 2_000
REAP_BYTES = 4 * 1024 * 1024

_CHILDREN = Statement("effects.delete.CHILDREN")
_MARK = Statement("effects.delete.MARK")
_DETACH = Statement("effects.delete.DETACH")
_STAMP = Statement("effects.delete.STAMP")
_IDS = Statement("effects.delete.IDS")
_REVISION = Statement("effects.delete.REVISION")
_FACTS = Statement("effects.delete.FACTS")


_FORKS = Statement("effects.delete.FORKS")
_SHARED = Statement("effects.delete.SHARED")
_INHERITED = Statement("effects.delete.INHERITED")


def below(
    tx: Transaction, session_id: str, keep_forks: bool
) -> tuple[list[str], list[str]]:
    """Return the ids that go, the session first, and the forks to be detached."""
    going, detached = [session_id], []
    # Of a damaged family that is a circle, each session once.
    seen = {session_id}
    for parent in going:
        for child, relation in tx.run(_CHILDREN, sid=parent).fetchall():
            if keep_forks and relation == "fork":
                detached.append(child)
            elif child not in seen:
                seen.add(child)
                going.append(child)

    return going, detached


@dataclass(frozen=True, slots=True, eq=False)
class Delete:
    """Mark a session and its descendants as deleted.

    With *revisions*, by session id, only if exactly these sessions would go, each in
    the state of that revision.
    """

    verb = "delete"
    session_id: str
    keep_forks: bool = False
    revisions: Mapping[str, int] | None = None

    def apply(self, tx: Transaction) -> None:
        """Apply it; a retried unit may find it done.

        Raises `NotFoundError` and `ConflictError`.
        """
        tx.lock(self.session_id)
        if tx.retried and not tx.exists(self.session_id):
            return
        if self.revisions is not None:
            self._check_revisions(tx, self.revisions)
        going, detached = below(tx, self.session_id, self.keep_forks)
        # An import may have put sessions of other families below it, and any writer
        # new ones below those that are not locked yet.
        while tx.lock(*going, *detached):
            going, detached = below(tx, self.session_id, self.keep_forks)
        self.remove(tx, going, detached)

    def remove(self, tx: Transaction, going: list[str], detached: list[str]) -> None:
        """Mark the sessions that are *going*, and detach others from them."""
        root_id = tx.session(self.session_id).root_id
        # Rows are changed by SQL from here on, not through their states.
        tx.flush()
        tx.run(_DETACH, ids=as_list(detached))
        tx.run(_MARK, ids=as_list(going), now=tx.now)
        # Costs that were counted in a deleted session count in a copy that stays.
        lost = self._lost_usage(tx, root_id, going, detached)
        ownership.recount(tx, ownership.assign_owner(tx, lost).difference(going))
        # At once, and not by the reaper: a program reads its tables without a look at
        # the session, and may open one of the same name next.
        remove_extension_rows(tx, going)
        for sid in detached:
            self._note_detached(tx, sid)

        for sid in going:
            self._bury_session(tx, sid)

    def _check_revisions(self, tx: Transaction, revisions: Mapping[str, int]) -> None:
        for sid in below(tx, self.session_id, self.keep_forks)[0]:
            tx.lock(sid)
            row = tx.one(_REVISION, sid=sid)
            if row is not None and row != (revisions.get(sid),):
                raise ConflictError(
                    f"session {sid} changed after it was written to the bundle",
                    hint="run the command again with a new bundle; nothing was removed",
                )

    def _lost_usage(
        self, tx: Transaction, root_id: str, going: list[str], detached: list[str]
    ) -> list[ownership.UsageClass]:
        """Return what was counted in what goes, and what detached forks inherited."""
        forks = as_list(tx.column(_FORKS, root=root_id))
        rows: list[Any] = []
        for sid in going:
            rows += tx.run(_SHARED, sid=sid, forks=forks).fetchall()

        for top in detached:
            for sid in below(tx, top, keep_forks=False)[0]:
                rows += tx.run(_INHERITED, sid=sid).fetchall()

        return [ownership.UsageClass(root_id, *row) for row in dict.fromkeys(rows)]

    def _note_detached(self, tx: Transaction, session_id: str) -> None:
        _, _, revision, last_seq, *_ = tx.one(_FACTS, sid=session_id)
        change, cursor = tx.take_change(session_id)
        tx.run(_STAMP, sid=session_id, change=change)
        tx.note_change(cursor, session_id, revision, last_seq, 0)

    def _bury_session(self, tx: Transaction, session_id: str) -> None:
        _, _, revision, last_seq, *_ = tx.one(_FACTS, sid=session_id)
        seen = None if tx.root is None else seen_in(tx, session_id)
        _put_tombstone(tx, session_id, tx.now, revision, seen)
        change, cursor = tx.take_change(session_id)
        tx.run(_STAMP, sid=session_id, change=change)
        tx.insert("deletion", DELETION, (change, session_id, revision, last_seq))
        tx.note_change(cursor, session_id, revision, last_seq, 0, deleted=True)
        tx.states.pop(session_id, None)


def _put_tombstone(
    tx: Transaction, session_id: str, time: int, revision: int, seen: str | None
) -> None:
    source, source_id, _, _, imported, namespace = tx.one(_FACTS, sid=session_id)
    # A session made here can come back too, from its log: there its id is its
    # name, and the name that its program gave it is free for another one.
    name = (session_id, "") if imported is None else (source_id, namespace)
    values: dict[str, Any] = {
        "source": source,
        "source_id": name[0],
        "time_deleted": time,
        "revision": revision,
        "seen": seen,
        "namespace": name[1],
    }
    row = tuple(map(values.__getitem__, TOMBSTONE))
    tx.connection.execute(upsert_text("tombstone", TOMBSTONE), row)


def last_revision(tx: Transaction, source: str, session_id: str) -> int:
    """Return the revision at which a session made here was deleted; 0 if none was.

    A new session with its id continues from it: an expected revision never matches a
    state of the other one, and a merge never takes an old state for a newer one.
    """
    return tx.value(_BURIED, source=source, sid=session_id) or 0


def seen_in(tx: Transaction, session_id: str) -> str:
    """Return the digest of the ids of all messages of a session, as its log has it."""
    return digest(sorted(tx.column(_IDS, sid=session_id)))


@dataclass(slots=True)
class DeleteLogged:
    """Mark a session as deleted if its log does, unless something here is newer.

    Sessions below it have logs of their own, and are detached. ``done`` is True if it
    was deleted.
    """

    verb = "sync"
    session_id: str
    version: Version
    done: bool = field(default=False)

    def apply(self, tx: Transaction) -> None:
        """Apply it."""
        self.done = False
        if not tx.exists(self.session_id):
            return

        state = tx.peek(self.session_id)
        seen = seen_in(tx, self.session_id)
        if state.revision >= self.version.revision or seen != self.version.digest:
            return

        below_it = tx.column(_CHILDREN, sid=self.session_id)
        tx.lock(*below_it)
        Delete(self.session_id).remove(tx, [self.session_id], below_it)
        # The same deletion on every side, or each would report its own to the others.
        time, revision = self.version.time, self.version.revision
        _put_tombstone(tx, self.session_id, time, revision, seen)
        self.done = True


_LEAF = Statement("effects.delete.LEAF")
_PARTS = Statement("effects.delete.PARTS")
_MESSAGES = Statement("effects.delete.MESSAGES")
_DIFFS = Statement("effects.delete.DIFFS")
_DATA = Statement("effects.delete.DATA")
_DROP_PARTS = Statement("effects.delete.DROP_PARTS")
_DROP_MESSAGES = Statement("effects.delete.DROP_MESSAGES")
_DROP_DIFFS = Statement("effects.delete.DROP_DIFFS")
_DROP_SESSION = Statement("effects.delete.DROP_SESSION")
_DETACH_ALL = Statement("effects.delete.DETACH_ALL")
_BURIED = Statement("effects.delete.BURIED")
#: The query for the last rows of each kind, the statement that removes the end from one
#: of them on, and the columns that name it, with which the rows of the query begin.
_STEPS = (
    (_PARTS, _DROP_PARTS, ("seq", "idx")),
    (_MESSAGES, _DROP_MESSAGES, ("seq",)),
    (_DIFFS, _DROP_DIFFS, ("seq", "path")),
)


@dataclass(slots=True)
class Reap:
    """Remove some rows of one deleted session, or else some values that expired.

    ``more`` is True if some may be left, ``expires_in`` is after how many ms the next
    value expires, by the clock of the database; None if none does.
    """

    verb = "reap"
    more: bool = field(default=False)
    expires_in: int | None = field(default=None)

    def apply(self, tx: Transaction) -> None:
        """Apply it."""
        session_id = tx.value(_LEAF)
        # A new session may have taken its id by the time that it is locked.
        while session_id is not None and tx.lock(session_id):
            session_id = tx.value(_LEAF)
        self.more = session_id is not None or remove_expired(tx, REAP_ROWS, REAP_BYTES)
        expiry = next_expiry(tx)
        self.expires_in = None if expiry is None else expiry - tx.now
        # One kind of rows at a time: the caller comes again, and other writers get in.
        if session_id is not None and not _remove_some_rows(tx, session_id):
            _remove_session_row(tx, session_id)


def make_room(tx: Transaction, session_id: str) -> None:
    """Remove what is left of a deleted session, whose id a new one takes.

    All at once, while the write lock is held: rows name their session by its id, so
    giving them another one would write as much as removing them.
    """
    # By a cascade, the blobs of deleted sessions below it would stay.
    tx.run(_DETACH_ALL, sid=session_id)
    while _remove_some_rows(tx, session_id):
        pass
    _remove_session_row(tx, session_id)


def _remove_some_rows(tx: Transaction, session_id: str) -> bool:
    """Remove rows of one kind of a deleted session; False if there are none."""
    for find, drop, names in _STEPS:
        if rows := tx.run(find, sid=session_id, rows=REAP_ROWS).fetchall():
            first = _release_last_rows(tx, rows, len(names))
            tx.run(drop, sid=session_id, **dict(zip(names, first, strict=True)))
            tx.waiting.forget()
            return True
    return False


def _remove_session_row(tx: Transaction, session_id: str) -> None:
    tx.release(*tx.column(_DATA, sid=session_id))
    tx.engine.forget_session(tx.connection, session_id)
    tx.run(_DROP_SESSION, sid=session_id)


def _release_last_rows(
    tx: Transaction, rows: Sequence[tuple[Any, ...]], width: int
) -> tuple[Any, ...]:
    """Release the blobs of the last rows, at most `REAP_BYTES`; return the first place.

    *rows* begin at the end, each with its place of *width* columns.
    """
    size = 0
    place: tuple[Any, ...] = ()
    for row in rows:
        length, *hashes = row[width:]
        # At least one row, however large.
        if place and size + length > REAP_BYTES:
            break
        size += length
        place = row[:width]
        tx.release(*hashes)
    return place
