"""The version of our schema in a database, and the releases that may use it.

The revision of alembic is that version: ``0001`` is schema 1. `meta` has a mark that
the tables are ours, and the oldest releases that may read and write them.
"""

from __future__ import annotations

from typing import NamedTuple

from sessiondb.engine.base import Connection
from sessiondb.engine.schema_version import check_newer, migrate_hint, refuse_older
from sessiondb.schema.version import VERSION

#: What ``meta`` has, and a table of that name of another program does not.
OURS = "sessiondb"
_MARKS = (
    "SELECT (SELECT max(version_num) FROM alembic_version), "
    "(SELECT value FROM meta WHERE key = 'application'), "
    "(SELECT value FROM meta WHERE key = 'min_reader'), "
    "(SELECT value FROM meta WHERE key = 'min_writer')"
)


class Marks(NamedTuple):
    """What a database says of itself."""

    revision: str | None
    application: str | None
    min_reader: str | None
    min_writer: str | None

    @property
    def version(self) -> int:
        """The version of the schema; 0 if it is none of ours."""
        revision = self.revision or ""
        return int(revision) if revision.isdecimal() else 0


def read_marks(connection: Connection) -> Marks:
    """Return the marks, from ``meta`` and ``alembic_version``."""
    return Marks(*connection.execute(_MARKS).fetchone())


def check_version(place: str, marks: Marks, *, writing: bool) -> None:
    """Raise `SchemaVersionError` unless this release may read, or also write.

    *place* is for the message.
    """
    if marks.version < VERSION:
        refuse_older(place, marks.version, migrate_hint(place))
    if marks.version > VERSION:
        oldest = marks.min_writer if writing else marks.min_reader
        check_newer(place, marks.version, oldest)
