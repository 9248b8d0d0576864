"""One read for everything that is known of a session that a reader yields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sessiondb.dataclass import dataclass
from sessiondb.engine.sql import Statement
from sessiondb.formats.kit.naming import original_id
from sessiondb.ids import SESSION, session_id_at
from sessiondb.model import SourceSession, StoredSession
from sessiondb.model.namespaces import Kinship, Namespace
from sessiondb.repository import Read

#: The most that the times of a session and of its copy differ, in ms.
_NEAR = 24 * 3_600_000
_HERE = Statement("importing.lookup.HERE")
_NOTED = Statement("importing.lookup.NOTED")
_NAMESPACES = Statement("importing.lookup.NAMESPACES")


@dataclass(frozen=True, slots=True)
class LookupResult:
    """The state of a session in this database, and what it means for an import."""

    #: None for a session that does not exist.
    session_id: str | None = None
    #: The number of its messages.
    messages: int = 0
    #: Whether it was removed here, and whether its rows still exist.
    deleted: bool = False
    leaving: bool = False
    #: Whether nothing of it is shown, also because an import of it is not complete.
    new: bool = True
    #: Whether its source is as it was.
    unchanged: bool = False
    #: Whether it was continued here.
    detached: bool = False
    #: Whether ``session_id`` is the session here that this one was exported from.
    returned: bool = False
    #: Whether a newer state of it was imported from another place.
    overtaken: bool = False

    @property
    def is_continued(self) -> bool:
        """Whether it was continued here, and is not being removed."""
        return self.detached and not self.leaving


class _SessionRow(NamedTuple):
    id: str
    has_name: bool
    time_detached: int | None
    time_imported: int | None
    time_deleted: int | None
    time_importing: int | None
    time_updated: int
    messages: int

    @property
    def leaving(self) -> bool:
        return self.time_deleted is not None

    @property
    def detached(self) -> bool:
        # A session that a program opened here under that name was never the source's.
        return self.time_detached is not None or self.time_imported is None


class _Noted(NamedTuple):
    buried: bool
    was_here: bool
    digest: str | None
    offset: int | None
    problems: str | None

    def is_same(self, digest: str, *, closed: bool = False) -> bool:
        """Return whether a session with *digest* has been read as it is.

        One that is not *closed* to its source is read again if a parent came later, or
        if something could not be read, which may have been mended.
        """
        if self.digest != digest:
            return False
        return closed or (self.offset is not None and self.problems is None)


def namespace_here(item: SourceSession, ledger: str) -> Read[str]:
    """Return the namespace under which the session *item* is known here.

    Its own one if it is not known yet. Both sessions and deletions are compared, and
    the entry *ledger* of the session that was read from its path before.
    """
    namespace_of_item = Namespace.of(item.namespace)
    names = {"source": item.source, "source_id": item.source_id, "path": ledger}
    nearest, nearest_namespace = Kinship.UNLIKE, item.namespace
    for namespace, in_place in (yield _NAMESPACES, names):
        stored = Namespace.of(namespace)
        kinship = namespace_of_item.kinship(stored, in_place=bool(in_place))
        if kinship > nearest:
            nearest, nearest_namespace = kinship, namespace
    return nearest_namespace


def is_copy(item: SourceSession) -> bool:
    """Return whether a session has the name that one from here is written under.

    That is the UUID of an id, and an id has the time of its session, which another
    UUID has by chance alone. Only one in a file of its own, which can be read later.
    """
    name, time = original_id(SESSION, item.source_id), item.time_created
    if item.complete is None or time is None or name == item.source_id:
        return False
    return session_id_at(time + _NEAR) < name < session_id_at(max(time - _NEAR, 0))


def look_up(item: SourceSession, ledger: str) -> Read[LookupResult]:
    """Return what is known of *item*, whose entry in the ledger is *ledger*."""
    logged, name = item.stored, item.source_id
    names: dict[str, str | None]
    if logged is not None:
        buried_as, buried_in = logged.buried_as(name, item.namespace)
        names = {"sid": logged.id, "buried_as": buried_as, "buried_in": buried_in}
        rows, noted = yield from _read_facts(item, ledger, names)
        return _session_of_log(rows, noted, item.digest, logged)

    # Another program names a session that it got from here by its id, or keeps that.
    exported_id = item.alias or original_id(SESSION, name)
    names = {
        "sid": exported_id,
        "buried_as": name,
        "buried_in": item.namespace,
        "own": exported_id,
    }
    rows, noted = yield from _read_facts(item, ledger, names)
    return _foreign_session(rows, noted, item)


def _read_facts(
    item: SourceSession, ledger: str, names: Mapping[str, str | None]
) -> Read[tuple[list[_SessionRow], _Noted]]:
    """Return the rows that a session may be, its own id first, and what was noted."""
    keys = {"source": item.source, "path": ledger, **names}
    name = {"source_id": item.source_id, "namespace": item.namespace}
    rows = yield _HERE, {**keys, **name}
    exported_id = None if rows else names.get("own")
    (entry,) = yield _NOTED, {**keys, "own": exported_id}
    return [_SessionRow(*row) for row in rows], _Noted(*entry)


def _foreign_session(
    rows: Sequence[_SessionRow], noted: _Noted, item: SourceSession
) -> LookupResult:
    """Return what is known of another program's session: by source and source id."""
    for row in rows:
        if not row.has_name:
            continue
        new = row.leaving or row.time_importing is not None
        if item.alias == row.id and not (new or noted.buried):
            # It was written from the session of its own name: what both have is here
            # in the form of the program, of which the file may have only a part.
            same = noted.is_same(item.digest)
            return LookupResult(
                row.id, row.messages, new=False, unchanged=same, returned=True
            )
        return LookupResult(
            row.id,
            row.messages,
            deleted=noted.buried or row.leaving,
            leaving=row.leaving,
            new=new,
            unchanged=noted.is_same(item.digest, closed=row.detached),
            detached=row.detached,
            overtaken=not (new or row.detached) and _is_overtaken(item, row, noted),
        )

    # An export names a session by its id here, also after that was removed.
    if not rows:
        return LookupResult(deleted=noted.buried or noted.was_here)
    row = rows[0]
    if row.leaving:
        return LookupResult(deleted=True)
    same = noted.is_same(item.digest)
    return LookupResult(row.id, row.messages, new=False, unchanged=same, returned=True)


def _is_overtaken(item: SourceSession, row: _SessionRow, noted: _Noted) -> bool:
    """Return whether the state of a session here is newer than that of *item*."""
    time, count = item.time_updated, item.message_count
    if time is None or count is None:
        return False
    if time != row.time_updated:
        return time < row.time_updated
    if item.is_excerpt and count == row.messages:
        # A message that it leaves out is not gone; its own place may correct it.
        return noted.digest is None
    # It may have become shorter since it was read from this place.
    was_cut = noted.offset is not None and count < noted.offset
    return count < row.messages and not was_cut


def _session_of_log(
    rows: Sequence[_SessionRow], noted: _Noted, digest: str, logged: StoredSession
) -> LookupResult:
    """Return what is known of a session of a log: by its id, then by its source."""
    row = rows[0] if rows else None
    # A new session may have the name that a removed one had.
    if row is None or (noted.buried and row.id != logged.id):
        return LookupResult(deleted=noted.buried or logged.is_deleted)
    if row.leaving:
        return LookupResult(deleted=True, leaving=True)

    return LookupResult(
        row.id,
        row.messages,
        new=row.time_importing is not None,
        unchanged=noted.is_same(digest),
    )
