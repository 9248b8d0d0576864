"""OpenOxide: tables ``session`` and ``message`` in SQLite, with MessagePack inside.

Our own tables descend from these. `tables` recognises a file by its columns, `reader`
reads its sessions, `content` decodes MessagePack, and `drafts` makes messages. No
public program writes the layout, so a file is read with columns missing, too, and
content may be a text, a list of parts, or a map.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from sessiondb.errors import SourceError
from sessiondb.formats.kit.sqlite import SUFFIXES, Error, ForeignDatabase
from sessiondb.formats.openoxide.tables import is_openoxide
from sessiondb.formats.protocol import ForeignStore, Format, late_reader

__all__ = ["FORMAT"]

_read_database = late_reader("sessiondb.formats.openoxide.reader", "read")


def _at(path: Path) -> ForeignStore | None:
    if path.suffix in SUFFIXES and _is_store(path):
        return ForeignStore("openoxide", path, _read_database)
    return None


def _is_store(path: Path) -> bool:
    file = ForeignDatabase(path, glance=True)
    with suppress(SourceError, Error), file.reading() as connection:
        return is_openoxide(connection)
    return False


FORMAT = Format(SUFFIXES, _at)
