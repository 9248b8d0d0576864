"""The schema of this release as a list of statements.

Written out by SQLAlchemy from the tables once per process that makes a fresh
file, and compared with existing files through `engine.fingerprint`.
"""

from __future__ import annotations

import re
from functools import cache

from sqlalchemy.dialects import sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from sessiondb.schema import feed, search, views
from sessiondb.schema.tables import metadata

#: ``PRAGMA application_id``: "SDB1" in ASCII.
APPLICATION_ID = 0x53444231
#: ``PRAGMA user_version`` that this release writes.
VERSION = 1
#: The alembic revision of `VERSION`.
HEAD = "0001"
#: The oldest releases that may read and write a file of `VERSION`.
MIN_READER = "0.1.0"
MIN_WRITER = "0.1.0"

#: Every trigger of the file.
TRIGGERS = (*search.TRIGGERS, *feed.TRIGGERS)

_ALEMBIC = (
    "CREATE TABLE alembic_version (\n\tversion_num VARCHAR(32) NOT NULL, \n"
    "\tCONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)\n)"
)


def tidy(sql: str) -> str:
    """Return *sql* with runs of white space made one space and none next to punctuation."""
    return re.sub(r" ?([(),]) ?", r"\1", re.sub(r"\s+", " ", sql)).strip()


@cache
def statements() -> tuple[str, ...]:
    """Return every CREATE statement of a fresh file: tables, indexes, views, search, triggers."""
    dialect = sqlite.dialect()
    tables = metadata.sorted_tables
    made = [str(CreateTable(t).compile(dialect=dialect)).strip() for t in tables]
    for table in tables:
        indexes = sorted(table.indexes, key=lambda index: str(index.name))
        made += [str(CreateIndex(i).compile(dialect=dialect)).strip() for i in indexes]
    return (_ALEMBIC, *made, *views.VIEWS, search.CONTENT, *search.TABLES, *TRIGGERS)
