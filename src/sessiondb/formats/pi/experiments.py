"""Stores of pi's experiments: an import names them, and reads nothing of them.

A library of pi wrote logs of version 4 (``JsonlSessionRepo`` in pi-agent-core 0.84 to
0.87), whose records have a ``kind``, and a draft of another one, never released, keeps
sessions in SQLite. No release of pi itself has written either.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sessiondb.errors import SourceError
from sessiondb.formats.kit.fields import integer
from sessiondb.formats.kit.files import is_file
from sessiondb.formats.kit.sqlite import Error, ForeignDatabase, columns_of_table
from sessiondb.model import Problem

SUFFIX = ".sqlite"
#: Where a program may have the database, in its home.
_PLACES = ("sessions.sqlite", "sessions/sessions.sqlite")
_TABLES = {
    "sessions": {"id", "cwd", "parent_session_id"},
    "entries": {"session_id", "seq", "parent_id", "type", "payload"},
}
#: Why a log, or the database, is not read.
LOG = "pi's experimental log of version 4: not supported yet"
_DATABASE = "pi's experimental sessions in SQLite: not supported yet"


def is_newer(record: Mapping[str, Any]) -> bool:
    """Return whether a record is the header of a log of version 4."""
    return record.get("kind") == "header" and integer(record.get("v"))


def is_database(path: Path) -> bool:
    """Return whether a database of sessions is at *path*, by its tables."""
    if not is_file(path):
        return False
    try:
        with ForeignDatabase(path, glance=True).reading() as connection:
            return all(
                columns_of_table(connection, table) >= needed
                for table, needed in _TABLES.items()
            )
    except (SourceError, Error):
        return False


def databases_in(home: Path) -> Iterator[Problem]:
    """Yield that the databases of a home are not read."""
    for place in _PLACES:
        if is_database(home / place):
            yield from read_database(home / place)


def read_database(path: Path) -> Iterator[Problem]:
    """Yield that a database is not read."""
    yield Problem(str(path), _DATABASE)
