"""Deletions that clones of a project exchange through the logs of its sessions.

A session that is deleted in one clone is deleted in the others, but its log keeps
everything and `import --restore` restores it. The record of a deletion has the
revision of the session and a digest of its messages. It counts only if the log has
nothing newer and no other message: if one user continues a session that another
deletes, it is kept everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sessiondb.dataclass import dataclass
from sessiondb.effects.delete import DeleteLogged
from sessiondb.location.database import database_of
from sessiondb.maintenance.connecting import connected
from sessiondb.model import StoredSession
from sessiondb.model.versions import Version
from sessiondb.store import Store

_TOMBSTONES = (
    "SELECT source, source_id, namespace, revision, time_deleted, seen FROM tombstone "
    "WHERE revision IS NOT NULL AND seen IS NOT NULL"
)


@dataclass(frozen=True, slots=True)
class Logged:
    """A session in a log: the file, its name at its source, and its state."""

    path: Path
    source: str
    source_id: str
    namespace: str
    stored: StoredSession

    @property
    def name(self) -> tuple[str, str, str]:
        """Its source, and its id there with its namespace."""
        return self.source, self.source_id, self.namespace


def tombstones(store: Store) -> dict[tuple[str, str, str], Version]:
    """Return the deletions made here, by source, id there and namespace.

    The digest is that of the messages at the time. Raises `CorruptionError`,
    `StorageError`.
    """
    with connected(database_of(store)) as connection:
        rows = connection.execute(_TOMBSTONES).fetchall()
    return {row[:3]: Version(*row[3:]) for row in rows}


def delete_logged(store: Store, logged: list[Logged]) -> list[str]:
    """Delete the sessions whose deletion is in their logs, and return their ids."""
    effects = [
        DeleteLogged(item.stored.id, item.stored.deleted)
        for item in logged
        if item.stored.deleted is not None and item.stored.is_deleted
    ]
    # No transaction without one: a sync that finds nothing must not write.
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
    """Yield each session that was deleted here, but not according to its log.

    With the version of the deletion, and True if the log was continued by others, who
    thereby keep the session.
    """
    buried = tombstones(store)
    for item in logged:
        if item.stored.is_deleted:
            continue

        by_source_id = buried.get(item.name)
        version = buried.get((item.source, item.stored.id, ""), by_source_id)
        if version is not None:
            yield item, version, _is_continued(item.stored, version)


def _is_continued(stored: StoredSession, deletion: Version) -> bool:
    """Return whether a log has more than the session had when it was deleted."""
    is_newer = stored.revision >= deletion.revision
    return is_newer or stored.seen != deletion.digest
