"""The version of our schema in a database, and the releases that may use it.

The revision of alembic is that version: ``0001`` is schema 1. `meta` has a mark that
the tables are ours, and the oldest releases that may read and write them.
"""

from __future__ import annotations

from typing import NamedTuple

from sessiondb import __version__
from sessiondb.engine.base import Connection
from sessiondb.errors import SchemaVersionError
from sessiondb.hints import command
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

    Several agents pin different releases and share one database, so an additive
    migration leaves the oldest releases as they are. *place* is for the message.
    """
    if marks.version < VERSION:
        refuse(place, marks.version, "older")
    oldest = marks.min_writer if writing else marks.min_reader
    is_newer = marks.version > VERSION
    if is_newer and (oldest is None or _numbers(oldest) > _numbers(__version__)):
        refuse(place, marks.version, "newer")


def refuse(place: str, version: int, age: str) -> None:
    """Raise `SchemaVersionError` for a "newer" or "older" database (*age*)."""
    update = f"{command('--db', place, 'migrate')} updates it"
    raise SchemaVersionError(
        f"{place} has schema {version}, which is {age} than this release's {VERSION}",
        hint="install a newer sessiondb" if age == "newer" else update,
    )


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(int(piece) for piece in release.split(".") if piece.isdigit())
