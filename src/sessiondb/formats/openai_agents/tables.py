"""The tables of sessions and their messages, whatever a program calls them.

``SQLiteSession(sessions_table=, messages_table=)`` takes any names, so that one file
may have several pairs; the messages name their table of sessions by a foreign key.
Read off ``memory/sqlite_session.py`` of openai-agents 0.24; the tables of
`AsyncSQLiteSession` and `SQLAlchemySession` are the same.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from sessiondb.errors import SourceError
from sessiondb.formats.kit.files import is_file
from sessiondb.formats.kit.sqlite import (
    SUFFIXES,
    Connection,
    Error,
    ForeignDatabase,
    columns_of_table,
    names_of_tables,
    quoted_name,
    tables_referenced,
)

_SESSIONS = {"session_id", "created_at", "updated_at"}
_MESSAGES = {"id", "session_id", "message_data", "created_at"}
#: The name that the SDK gives to the table of messages unless a program has another.
_USUAL = "agent_messages"


class TablePair(NamedTuple):
    """A table of sessions and one of their messages."""

    #: Their names, quoted for statements.
    sessions: str
    messages: str
    #: The name of the table of messages as it is.
    messages_name: str


def is_store(path: Path) -> bool:
    """Return whether the file at *path* has such tables.

    A file that cannot be read is not one: its name does not identify it.
    """
    if path.suffix not in SUFFIXES or not is_file(path):
        return False

    file = ForeignDatabase(path, glance=True)
    try:
        with file.reading():
            return bool(table_pairs(file.connection))
    except (SourceError, Error):
        return False


def table_pairs(connection: Connection) -> list[TablePair]:
    """Return the pairs of tables, the usual one first."""
    names = [
        name
        for name in names_of_tables(connection)
        if columns_of_table(connection, name) >= _MESSAGES
    ]
    pairs: list[TablePair] = []
    for name in sorted(names, key=lambda name: (name != _USUAL, name)):
        sessions = _sessions_table_of(connection, name)
        if sessions is not None:
            pairs.append(TablePair(quoted_name(sessions), quoted_name(name), name))
    return pairs


def _sessions_table_of(connection: Connection, messages: str) -> str | None:
    """Return the table of sessions that a table of messages refers to."""
    for name in tables_referenced(connection, messages):
        if columns_of_table(connection, name) >= _SESSIONS:
            return name

    return None
