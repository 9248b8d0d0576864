"""Which databases this release may use, by the version of their schema.

Several agents pin different releases and share one database. So an additive migration
leaves ``min_reader`` and ``min_writer`` in `meta` as they are, and an older release
goes on using the database.
"""

from __future__ import annotations

from typing import NoReturn

from sessiondb import __version__
from sessiondb.errors import SchemaVersionError
from sessiondb.hints import command
from sessiondb.schema.version import VERSION


def migrate_hint(place: str) -> str:
    """Return the hint for a database whose schema is older than this release's."""
    return f"{command('--db', place, 'migrate')} updates it"


def refuse_older(place: str, version: int, hint: str) -> NoReturn:
    """Raise `SchemaVersionError` for the database at *place*, of schema *version*."""
    raise SchemaVersionError(_described(place, version, "older"), hint=hint)


def check_newer(place: str, version: int, oldest: str | None) -> None:
    """Raise `SchemaVersionError` unless this release is not older than *oldest*.

    That is ``min_reader`` or ``min_writer`` of the database, None if it has none.
    """
    if oldest is None or _numbers(oldest) > _numbers(__version__):
        raise SchemaVersionError(
            _described(place, version, "newer"), hint="install a newer sessiondb"
        )


def _described(place: str, version: int, age: str) -> str:
    return f"{place} has schema {version}, which is {age} than this release's {VERSION}"


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(int(piece) for piece in release.split(".") if piece.isdigit())
