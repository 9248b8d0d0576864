"""The schema of this release as the statements that make it in PostgreSQL.

Those of tables and indexes ship as text: `scripts/freeze_statements.py` writes them
from the tables. There are no triggers and no functions: they run as whoever writes, may
be refused to who owns the database, and are missing on servers of many nodes.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from sessiondb.engine.postgresql import routes, search_tables, views
from sessiondb.engine.shipped import read_texts
from sessiondb.schema.version import MIN_READER, MIN_WRITER

#: The CREATE statements of tables and indexes, by name.
TABLES = Path(__file__).with_name("tables.sql")

#: As alembic makes it.
_ALEMBIC = (
    "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL, "
    "CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))"
)
_MARKS = (
    "INSERT INTO meta (key, value) VALUES ('application', 'sessiondb'), "
    "('database_uuid', CAST(gen_random_uuid() AS TEXT)), "
    f"('min_reader', '{MIN_READER}'), ('min_writer', '{MIN_WRITER}'), "
    f"('{routes.CHANGES}', '0')"
)


@cache
def statements() -> tuple[str, ...]:
    """Return every statement that makes a fresh database, in order."""
    return (
        _ALEMBIC,
        *read_texts(TABLES.read_text(encoding="utf-8")).values(),
        routes.TABLE,
        *search_tables.TABLES,
        *views.VIEWS,
        _MARKS,
    )


@cache
def names_of(kind: str) -> frozenset[str]:
    """Return the names of what the statements make; *kind* is ``TABLE`` or ``VIEW``."""
    words = [statement.split(maxsplit=3) for statement in statements()]
    return frozenset(
        name
        for verb, what_kind, name, _ in words
        if (verb, what_kind) == ("CREATE", kind)
    )
