"""The schema of this release as the statements that make it in SQLite.

Those of tables and indexes ship as text: `scripts/freeze_statements.py` writes them
from the tables. `fingerprint` compares existing files with the others.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from sessiondb.engine.shipped import read_texts
from sessiondb.engine.sqlite import search_tables, usage_tables, views
from sessiondb.patterns import late_pattern
from sessiondb.schema.terms import ARCHIVED, EMPTY, INVISIBLE, SUBAGENT

#: The CREATE statements of tables and indexes, by name.
TABLES = Path(__file__).with_name("tables.sql")

_NEWEST_CHANGE = (
    "max(coalesce((SELECT max(change) FROM session), 0), "
    "coalesce((SELECT max(change) FROM deletion), 0))"
)
#: Records the sessions that a shell deletes, whether foreign keys are on or off. The
#: library marks a session before it removes the row: it takes the number of a change
#: by itself, which a trigger cannot see.
_DELETED = (
    "CREATE TRIGGER session_deleted AFTER DELETE ON session "
    "WHEN old.time_deleted IS NULL "
    "BEGIN INSERT INTO deletion (change, session_id, revision, last_seq) "
    # The row is gone already, and its own change with it.
    f"VALUES (max({_NEWEST_CHANGE}, old.change) + 1, old.id, old.revision + 1, "
    "old.last_seq); END"
)
#: `terms.HIDDEN`, as the triggers of all files spell it.
_IS_HIDDEN = (
    f"{ARCHIVED} * (new.time_archived IS NOT NULL) "
    f"+ {SUBAGENT} * (new.relation IS 'subagent') "
    f"+ {EMPTY} * (new.message_count <= 0) "
    f"+ {INVISIBLE} * (new.time_deleted IS NOT NULL OR new.time_importing IS NOT NULL)"
)
_SET_HIDDEN = f"UPDATE session SET hidden = {_IS_HIDDEN} WHERE rid = new.rid;"
_HIDDEN = (
    f"CREATE TRIGGER session_hidden_insert AFTER INSERT ON session "
    f"WHEN new.hidden <> ({_IS_HIDDEN}) BEGIN {_SET_HIDDEN} END",
    "CREATE TRIGGER session_hidden_update AFTER UPDATE OF "
    "time_deleted, time_importing, time_archived, message_count, relation ON session "
    f"WHEN new.hidden <> ({_IS_HIDDEN}) BEGIN {_SET_HIDDEN} END",
)
#: Every trigger of the file.
TRIGGERS = (*search_tables.TRIGGERS, _DELETED, *_HIDDEN, *usage_tables.TRIGGERS)

_ALEMBIC = (
    "CREATE TABLE alembic_version (\n\tversion_num VARCHAR(32) NOT NULL, \n"
    "\tCONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)\n)"
)


_CREATE = late_pattern(r"CREATE (?:VIRTUAL )?(VIEW|TABLE|TRIGGER) (\w+)")


def named(statement: str) -> tuple[str, str]:
    """Return (type, name) of what a CREATE statement makes, as in ``sqlite_schema``."""
    match = _CREATE.match(statement)
    assert match is not None, statement
    return match[1].lower(), match[2]


def tidy(sql: str) -> str:
    """Return *sql* with single spaces, and none next to punctuation."""
    return re.sub(r" ?([(),]) ?", r"\1", re.sub(r"\s+", " ", sql)).strip()


@cache
def statements() -> tuple[str, ...]:
    """Return every CREATE statement of a fresh file, in order."""
    return (
        _ALEMBIC,
        *read_texts(TABLES.read_text(encoding="utf-8")).values(),
        *views.VIEWS,
        *search_tables.VIEWS,
        *search_tables.TABLES,
        *TRIGGERS,
    )
