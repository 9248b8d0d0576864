"""Deletions that clones of a project exchange through the logs of its sessions.

A session that is deleted in one clone is deleted in the others, but its log keeps
everything and `import --restore` restores it. The record of a deletion names
the session's revision and the messages that were there. It counts only if the log
holds nothing newer and no other message: whoever continues a session that another
user deletes keeps it, for all.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from sessiondb.arguments import file_of
from sessiondb.effects.delete import DeleteLogged
from sessiondb.engine.default import ENGINE
from sessiondb.model import StoredSession
from sessiondb.model.versions import Version
from sessiondb.store import Store

_TOMBSTONES = (
    "SELECT source, source_id, revision, time_deleted, seen FROM tombstone "
    "WHERE revision IS NOT NULL AND seen IS NOT NULL"
)


@dataclass(frozen=True, slots=True)
class Logged:
    """A session of a log."""

    path: Path
    source: str
    source_id: str
    stored: StoredSession


def tombstones(store: Store) -> dict[tuple[str, str], Version]:
    """Return the deletions made here, by source and id there.

    The digest is what was seen.
    """
    with closing(ENGINE.connect(file_of(store), mode="reader")) as connection:
        rows = connection.execute(_TOMBSTONES).fetchall()
    return {(row[0], row[1]): Version(*row[2:]) for row in rows}


def delete_logged(store: Store, logged: list[Logged]) -> list[str]:
    """Delete the sessions whose logs say so, and return their ids."""
    effects = [
        DeleteLogged(item.stored.id, item.stored.deleted)
        for item in logged
        if item.stored.deleted is not None and item.stored.is_deleted
    ]
    # Without any, no transaction: a sync that finds nothing leaves no trace.
    if effects:
        with store.effects() as fx:
            fx.add(*effects)

    removed = [effect.session_id for effect in effects if effect.done]
    if removed:
        store.reap()
    return removed


def deleted_here(
    store: Store, logged: list[Logged]
) -> Iterator[tuple[Logged, Version, bool]]:
    """Yield each session that was deleted here and is in a log that does not say so.

    With the version of the deletion, and whether the log was continued without it: then
    the session lives.
    """
    known = tombstones(store)
    for item in logged:
        if item.stored.is_deleted:
            continue

        by_source_id = known.get((item.source, item.source_id))
        version = known.get((item.source, item.stored.id), by_source_id)
        if version is not None:
            yield item, version, _is_continued(item.stored, version)


def _is_continued(stored: StoredSession, deletion: Version) -> bool:
    """Return whether a log holds more than what was deleted."""
    is_newer = stored.revision >= deletion.revision
    return is_newer or stored.seen != deletion.digest
