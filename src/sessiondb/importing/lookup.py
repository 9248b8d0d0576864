"""What is known here of a session that a reader yields, in one question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import and_, exists, literal_column, or_, select

from sessiondb.engine.sql import Statement, p
from sessiondb.model import SourceSession, StoredSession
from sessiondb.repository import Read
from sessiondb.schema import import_ledger, session, tombstone

_is_named = and_(session.c.source == p("source"), session.c.source_id == p("source_id"))
_is_source = session.c.id == p("sid")
_HERE = Statement(
    lambda: (
        select(
            session.c.id,
            _is_named,
            session.c.time_detached,
            session.c.time_imported,
            session.c.time_deleted,
            session.c.time_importing,
            session.c.message_count,
        )
        .where(or_(_is_source, _is_named))
        .order_by(session.c.id != p("sid"))
    )
)


def _noted() -> Any:
    always = select(literal_column("1").label("one")).subquery()
    buried = exists().where(
        tombstone.c.source == p("source"), tombstone.c.source_id == p("buried_as")
    )
    entry = and_(
        import_ledger.c.source == p("source"), import_ledger.c.path == p("path")
    )
    return select(
        buried,
        import_ledger.c.digest,
        import_ledger.c.offset,
        import_ledger.c.problems,
    ).select_from(always.outerjoin(import_ledger, entry))


_NOTED = Statement(_noted)


@dataclass(frozen=True, slots=True)
class Known:
    """What is here of a session, and what that means for its import.

    ``session_id`` is None for a session that is not here, ``messages`` its number of
    messages. ``deleted``: it was removed here; ``leaving``: its rows are not gone yet.
    ``new``: nothing of it is shown, also because an import of it is not over.
    ``unchanged``: its source is as it was. ``detached``: it was continued here.
    ``original`` is our session that this one was exported from.
    """

    session_id: str | None = None
    messages: int = 0
    deleted: bool = False
    leaving: bool = False
    new: bool = True
    unchanged: bool = False
    detached: bool = False
    original: str | None = None


class _Row(NamedTuple):
    id: str
    named: bool
    time_detached: int | None
    time_imported: int | None
    time_deleted: int | None
    time_importing: int | None
    messages: int


class _Noted(NamedTuple):
    buried: bool
    digest: str | None
    offset: int | None
    problems: str | None

    @property
    def again(self) -> bool:
        """Whether to read a session again whose digest is the same.

        A parent came later, or something could not be read, which may have been mended.
        """
        return self.offset is None or self.problems is not None


def look_up(item: SourceSession, ledger: str) -> Read[Known]:
    """Return what is known of *item*, whose entry in the ledger is *ledger*."""
    of = item.stored
    name = {"source": item.source, "source_id": item.source_id}
    sid = item.source_id if of is None else of.id
    buried_as = item.source_id if of is None else of.buried_as(item.source_id)
    found = yield _HERE, {**name, "sid": sid}
    names = {"source": item.source, "path": ledger, "buried_as": buried_as}
    (noted,) = yield _NOTED, names

    rows, entry = [_Row(*row) for row in found], _Noted(*noted)
    if of is None:
        return _foreign(rows, entry, item.digest)
    return _own(rows, entry, item.digest, of)


def _foreign(rows: Sequence[_Row], noted: _Noted, digest: str) -> Known:
    row = next((row for row in rows if row.named), None)
    same = noted.digest == digest
    if row is None:
        # An export names a session by its id here.
        living = (row.id for row in rows if row.time_deleted is None)
        return Known(
            deleted=noted.buried,
            unchanged=same and not noted.again,
            original=next(living, None),
        )

    leaving = row.time_deleted is not None
    # A session that a program opened here under that name was never the source's.
    detached = row.time_detached is not None or row.time_imported is None
    return Known(
        row.id,
        row.messages,
        deleted=noted.buried or leaving,
        leaving=leaving,
        new=leaving or row.time_importing is not None,
        unchanged=same and (detached or not noted.again),
        detached=detached,
    )


def _own(rows: Sequence[_Row], noted: _Noted, digest: str, of: StoredSession) -> Known:
    row = rows[0] if rows else None
    # A new session may have the name that a removed one had.
    if row is None or (noted.buried and row.id != of.id):
        return Known(deleted=noted.buried or of.is_deleted)
    if row.time_deleted is not None:
        return Known(deleted=True, leaving=True)
    return Known(
        row.id,
        row.messages,
        new=row.time_importing is not None,
        unchanged=noted.digest == digest and not noted.again,
    )
