"""The first check of every use: whether the tables are ours, and which schema they are.

They are in the first schema of the role's ``search_path``. `look_at` recognises them,
`admit` refuses those that this release cannot read as they are. Nothing is made or
written, so an older schema is refused as well: the error names the command that updates
it.
"""

from __future__ import annotations

import json
from typing import NamedTuple, NoReturn

from sessiondb.engine.base import Connection
from sessiondb.engine.postgresql import ddl
from sessiondb.engine.postgresql.connection import PostgreSQLConnection
from sessiondb.engine.postgresql.version import (
    OURS,
    Marks,
    check_version,
    read_marks,
)
from sessiondb.errors import NotADatabaseError, NotFoundError, UnsupportedError
from sessiondb.hints import command
from sessiondb.schema.version import VERSION

#: The oldest release that PostgreSQL itself maintains, as of November 2026.
_OLDEST_SERVER = 15
#: The lock that whoever makes or changes tables holds: "SDB1", as in our files.
LOCK = 0x53444231
#: The schema of our tables, in the catalog of the server.
SCHEMA = "(SELECT oid FROM pg_namespace WHERE nspname = current_schema())"
_RELATIONS = (
    "SELECT current_schema(), coalesce((SELECT json_agg(relname) FROM pg_class "
    f"WHERE relnamespace = {SCHEMA} "
    "AND relkind IN ('r', 'p', 'v', 'm', 'f') AND relname IN "
    "(SELECT value FROM json_array_elements_text(CAST(:names AS JSON)) AS value)), "
    "'[]')"
)
#: How many of the columns there are that `read_marks` reads, and how many it needs.
_COLUMNS_OF_MARKS = (
    "SELECT count(*) FROM pg_attribute WHERE (attrelid, attname) IN ("
    "(CAST('meta' AS regclass), 'key'), (CAST('meta' AS regclass), 'value'), "
    "(CAST('alembic_version' AS regclass), 'version_num')) "
    "AND atttypid IN (CAST('text' AS regtype), CAST('varchar' AS regtype))"
)
_MARKED = 3
_OWN_PLACE = (
    "give sessiondb a database of its own, or a schema: CREATE SCHEMA sessiondb; "
    "ALTER ROLE … SET search_path = sessiondb"
)


class Existing(NamedTuple):
    """What the first schema of the search path has."""

    schema: str
    #: The names of our tables and views that it has.
    relations: frozenset[str]
    #: None if there are none of ours.
    marks: Marks | None


def check_server(connection: PostgreSQLConnection) -> None:
    """Raise `UnsupportedError` for a server or database that cannot have them."""
    pgconn = connection.driver.pgconn
    release = pgconn.server_version // 10_000
    if release < _OLDEST_SERVER:
        raise UnsupportedError(
            f"the server is PostgreSQL {release}; sessiondb needs {_OLDEST_SERVER} or "
            "later"
        )
    encoding = pgconn.parameter_status(b"server_encoding") or b"UTF8"
    if encoding != b"UTF8":
        raise UnsupportedError(
            f"the database has the encoding {encoding.decode()}; sessiondb needs UTF8",
            hint="create another one: `createdb -E UTF8 -T template0 NAME`",
        )


def look_at(connection: Connection, place: str) -> Existing:
    """Return what there is; *place* is for messages.

    Raises `NotADatabaseError` if tables with names of ours are not ours.
    """
    names = json.dumps(sorted(ddl.names_of("TABLE") | ddl.names_of("VIEW")))
    schema, listed = connection.execute(_RELATIONS, {"names": names}).fetchone()
    if schema is None:
        raise NotFoundError(
            f"{place}: no schema of the search_path exists, or the role may not use it",
            hint="create one: CREATE SCHEMA sessiondb",
        )

    relations = frozenset(json.loads(listed))
    if not relations:
        return Existing(schema, relations, None)
    if {"meta", "alembic_version"} <= relations:
        ((columns,),) = connection.execute(_COLUMNS_OF_MARKS).fetchall()
        marks = read_marks(connection) if columns == _MARKED else None
        if marks is not None and marks.application == OURS:
            return Existing(schema, relations, marks)
    shown = ", ".join(sorted(relations)[:3])
    raise NotADatabaseError(
        f"the schema {schema} of {place} has tables of another program: {shown}",
        hint=_OWN_PLACE,
    )


def refuse_missing(place: str, schema: str) -> NoReturn:
    """Raise `NotFoundError` for a database without our tables."""
    raise NotFoundError(
        f"no tables of sessiondb in the schema {schema} of {place}",
        hint=f"check the URL, or create them: {command('--db', place, 'init')}",
    )


def admit(connection: Connection, place: str, *, writing: bool) -> None:
    """Refuse a database that this release cannot read, or also write, as it is.

    Raises `NotADatabaseError`, `SchemaVersionError`.
    """
    existing = look_at(connection, place)
    if existing.marks is None:
        raise NotADatabaseError(
            f"{place} has no tables of sessiondb", hint="name another database"
        )
    check_version(place, existing.marks, writing=writing)
    lost = ddl.names_of("TABLE") - existing.relations
    if existing.marks.version == VERSION and lost:
        raise NotADatabaseError(
            f"tables of sessiondb are missing in {place}: {', '.join(sorted(lost))}",
            hint="restore a backup of it",
        )
