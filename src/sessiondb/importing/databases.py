"""Databases of sessiondb as a source: a backup, the file of another machine.

Such a file is imported only if it is named. Below a folder there may be any number
of them (databases of projects, backups of backups), and the sessions of one must not
end up in another one unless the user names it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sessiondb.errors import SourceError
from sessiondb.formats.kit.files import is_file
from sessiondb.formats.kit.sqlite import Error, ForeignDatabase
from sessiondb.formats.protocol import ForeignStore, Format
from sessiondb.model import SourceItem

SOURCE = "sessiondb"


def at(path: Path) -> ForeignStore | None:
    """Return the database that is exactly at *path*."""
    if is_file(path) and _is_ours(path):
        return ForeignStore(SOURCE, path, read)
    return None


def _is_ours(path: Path) -> bool:
    from sessiondb.schema.version import APPLICATION_ID

    file = ForeignDatabase(path, glance=True, schema=False)
    try:
        with file.reading():
            return file.application_id == APPLICATION_ID
    except (SourceError, Error):
        return False


def read(path: Path) -> Iterator[SourceItem]:
    """Yield the sessions of a database, parents first, then its values.

    Raises `SourceError`.
    """
    # The reads of a database are loaded when there is one.
    from sessiondb.importing.snapshot import snapshot_of

    with snapshot_of(path) as snapshot:
        yield from snapshot.sessions()
        yield from snapshot.values()


FORMAT = Format(frozenset(), at)
