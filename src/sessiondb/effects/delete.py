"""Delete: mark first, remove later.

One short transaction marks a session and everything below it, writes
tombstones, and hands what was counted there to the copies that stay: from then
on it is gone for every list, search and view. The reaper then removes rows from
the bottom up, in transactions of at most `REAP_ROWS` rows and `REAP_BYTES`, so
that no writer waits long for the write lock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import delete, exists, func, or_, select, text, update

from sessiondb.effects import ownership
from sessiondb.effects.transaction import Transaction
from sessiondb.engine.sql import (
    Statement,
    as_list,
    numbers,
    p,
    texts,
    update_of,
    upsert_text,
)
from sessiondb.errors import ConflictError
from sessiondb.model.versions import Version, digest
from sessiondb.schema import (
    blob,
    deletion,
    file_diff,
    message,
    part,
    session,
    tombstone,
)
from sessiondb.schema.rows import DELETION, TOMBSTONE

REAP_ROWS = 2_000
REAP_BYTES = 4 * 1024 * 1024

_CHILDREN = Statement(
    lambda: select(session.c.id, session.c.relation).where(
        session.c.parent_id == p("sid"), session.c.time_deleted.is_(None)
    )
)
_MARK = Statement(
    lambda: (
        update(session)
        .where(session.c.id.in_(texts("ids")))
        .values(time_deleted=p("now"), revision=session.c.revision + text("1"))
    )
)


def _detach_statement() -> Any:
    parent = session.alias("parent")
    same_source = (
        select(session.c.parent_source_id)
        .where(parent.c.id == session.c.parent_id)
        .where(parent.c.source == session.c.source)
        .where(parent.c.source_id == session.c.parent_source_id)
        .scalar_subquery()
    )
    return (
        update(session)
        .where(session.c.id.in_(texts("ids")))
        .values(
            parent_source_id=func.coalesce(same_source, session.c.parent_id),
            parent_id=None,
        )
    )


#: A detached fork still names its parent, and where it began there. If that is
#: restored, from whatever file, the fork is linked again, and costs count once.
_DETACH = Statement(_detach_statement)
_STAMP = update_of(session, "change", session.c.id == p("sid"))
_IDS = Statement(lambda: select(message.c.id).where(message.c.session_id == p("sid")))

_REVISION = Statement(
    lambda: select(session.c.revision).where(session.c.id == p("sid"))
)
_FACTS = Statement(
    lambda: select(
        session.c.source,
        session.c.source_id,
        session.c.revision,
        session.c.last_seq,
        session.c.time_imported,
        session.c.namespace,
    ).where(session.c.id == p("sid"))
)  # fmt: skip


# Only forks hold copies without a usage key: a thousand subagents stay cheap.
_FORKS = Statement(
    lambda: select(session.c.id).where(
        session.c.root_id == p("root"),
        session.c.relation == text("'fork'"),
        session.c.time_deleted.is_(None),
    )
)


def _shared_statement() -> Any:
    other = message.alias("other")
    by_key = exists().where(
        other.c.usage_key == message.c.usage_key, other.c.inherited == text("1")
    )
    by_family = exists().where(
        other.c.session_id.in_(texts("forks")),
        other.c.id == message.c.id,
        other.c.inherited == text("1"),
    )
    return select(
        message.c.seq, message.c.id, message.c.time_created, message.c.usage_key
    ).where(
        message.c.session_id == p("sid"),
        message.c.inherited == text("0"),
        or_(by_key, by_family),
    )


_SHARED = Statement(_shared_statement)
_INHERITED = Statement(
    lambda: select(
        message.c.seq, message.c.id, message.c.time_created, message.c.usage_key
    ).where(message.c.session_id == p("sid"), message.c.inherited == text("1"))
)


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
        if tx.retried and not tx.exists(self.session_id):
            return
        if self.revisions is not None:
            self._check_revisions(tx, self.revisions)
        self.remove(tx, *below(tx, self.session_id, self.keep_forks))

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
        for sid in detached:
            self._note_detached(tx, sid)

        for sid in going:
            self._bury_session(tx, sid)

    def _check_revisions(self, tx: Transaction, revisions: Mapping[str, int]) -> None:
        for sid in below(tx, self.session_id, self.keep_forks)[0]:
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
        change = tx.take_change()
        tx.run(_STAMP, sid=session_id, change=change)
        tx.note_change(change, session_id, revision, last_seq, 0)

    def _bury_session(self, tx: Transaction, session_id: str) -> None:
        _, _, revision, last_seq, *_ = tx.one(_FACTS, sid=session_id)
        seen = None if tx.root is None else seen_in(tx, session_id)
        _put_tombstone(tx, session_id, tx.now, revision, seen)
        change = tx.take_change()
        tx.run(_STAMP, sid=session_id, change=change)
        tx.insert(deletion, DELETION, (change, session_id, revision, last_seq))
        tx.note_change(change, session_id, revision, last_seq, 0, deleted=True)
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
    tx.connection.execute(upsert_text(tombstone, TOMBSTONE), row)


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
        Delete(self.session_id).remove(tx, [self.session_id], below_it)
        # The same deletion on every side, or each would report its own to the others.
        time, revision = self.version.time, self.version.revision
        _put_tombstone(tx, self.session_id, time, revision, seen)
        self.done = True


def _leaves_statement() -> Any:
    child = session.alias("child")
    return (
        select(session.c.id)
        .where(
            session.c.time_deleted.is_not(None),
            ~exists().where(child.c.parent_id == session.c.id),
        )
        .order_by(session.c.time_deleted)
        .limit(1)
    )


_LEAF = Statement(_leaves_statement)
_text_blob, _input_blob, _data_blob = (
    blob.alias("tb"),
    blob.alias("ib"),
    blob.alias("db"),
)
_before, _after = blob.alias("before"), blob.alias("after")
_PARTS = Statement(
    lambda: (
        select(
            part.c.rid,
            func.length(func.coalesce(part.c.text, text("''")))
            + func.length(func.coalesce(part.c.input, text("''")))
            + func.length(func.coalesce(part.c.data, text("''")))
            + func.coalesce(_text_blob.c.size, text("0"))
            + func.coalesce(_input_blob.c.size, text("0"))
            + func.coalesce(_data_blob.c.size, text("0")),
            part.c.text_blob,
            part.c.input_blob,
            part.c.data_blob,
        )
        .outerjoin(_text_blob, _text_blob.c.hash == part.c.text_blob)
        .outerjoin(_input_blob, _input_blob.c.hash == part.c.input_blob)
        .outerjoin(_data_blob, _data_blob.c.hash == part.c.data_blob)
        .where(part.c.session_id == p("sid"))
        .order_by(part.c.seq.desc(), part.c.idx.desc())
        .limit(p("rows"))
    )
)
_MESSAGES = Statement(
    lambda: (
        select(
            message.c.rid,
            func.length(func.coalesce(message.c.data, text("''")))
            + func.coalesce(_data_blob.c.size, text("0")),
            message.c.data_blob,
        )
        .outerjoin(_data_blob, _data_blob.c.hash == message.c.data_blob)
        .where(message.c.session_id == p("sid"))
        .order_by(message.c.seq.desc())
        .limit(p("rows"))
    )
)
_DIFFS = Statement(
    lambda: (
        select(
            file_diff.c.rid,
            func.length(func.coalesce(file_diff.c.patch, text("''")))
            + func.coalesce(_before.c.size, text("0"))
            + func.coalesce(_after.c.size, text("0")),
            file_diff.c.before_blob,
            file_diff.c.after_blob,
        )
        .outerjoin(_before, _before.c.hash == file_diff.c.before_blob)
        .outerjoin(_after, _after.c.hash == file_diff.c.after_blob)
        .where(file_diff.c.session_id == p("sid"))
        .limit(p("rows"))
    )
)
_DATA = Statement(lambda: select(session.c.data_blob).where(session.c.id == p("sid")))
_DROP_PARTS = Statement(lambda: delete(part).where(part.c.rid.in_(numbers("rids"))))
_DROP_MESSAGES = Statement(
    lambda: delete(message).where(message.c.rid.in_(numbers("rids")))
)
_DROP_DIFFS = Statement(
    lambda: delete(file_diff).where(file_diff.c.rid.in_(numbers("rids")))
)
_DROP_SESSION = Statement(lambda: delete(session).where(session.c.id == p("sid")))
_STEPS = ((_PARTS, _DROP_PARTS), (_MESSAGES, _DROP_MESSAGES), (_DIFFS, _DROP_DIFFS))


@dataclass(slots=True)
class Reap:
    """Remove some rows of one deleted session; ``more`` is True if some are left."""

    verb = "reap"
    more: bool = field(default=False)

    def apply(self, tx: Transaction) -> None:
        """Apply it."""
        row = tx.one(_LEAF)
        self.more = row is not None
        if row is None:
            return

        (session_id,) = row
        # One kind of rows at a time: the caller comes again, and other writers get in.
        for find, drop in _STEPS:
            if rows := tx.run(find, sid=session_id, rows=REAP_ROWS).fetchall():
                tx.run(drop, rids=as_list(_bounded_rids(tx, rows)))
                tx.forget_rids()
                return

        tx.release(*tx.column(_DATA, sid=session_id))
        tx.run(_DROP_SESSION, sid=session_id)


def _bounded_rids(tx: Transaction, rows: Iterable[tuple[Any, ...]]) -> list[int]:
    rids: list[int] = []
    size = 0
    for rid, length, *hashes in rows:
        # At least one row, however large.
        if rids and size + length > REAP_BYTES:
            break
        size += length
        rids.append(rid)
        tx.release(*hashes)

    return rids
