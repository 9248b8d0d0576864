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
        names = (item.source, item.stored.id), (item.source, item.source_id)
        version = known.get(names[0]) or known.get(names[1])
        if version is not None and not item.stored.is_deleted:
            newer = item.stored.revision >= version.revision
            yield item, version, newer or item.stored.seen != version.digest
