"""The tables of a file, by their columns: several programs use the same names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sessiondb.formats.kit.sqlite import (
    ROW_NUMBER,
    Connection,
    Error,
    columns_of_table,
    select_records,
)

SESSION, MESSAGE = "session", "message"
#: Columns of messages; a file without one of them is of another program.
_REQUIRED = frozenset({"session_id", "role", "content"})
#: The column that identifies a file whose contents are not MessagePack.
_SIGN = "revert_oid"

Row = dict[str, Any]


def is_openoxide(connection: Connection) -> bool:
    """Return whether a file has the tables; raises `Error`."""
    have = columns_of_table(connection, SESSION)
    if "id" not in have or not columns_of_table(connection, MESSAGE) >= _REQUIRED:
        return False
    if _SIGN in have:
        return True

    # Its type, not its content, which may be large.
    first = f"SELECT typeof(content) AS type FROM {MESSAGE} LIMIT 1"
    return [*select_records(connection, first)] == [{"type": "blob"}]


def sessions(connection: Connection) -> Iterator[Row]:
    """Yield the rows of the sessions; raises `Error`."""
    return select_records(connection, f"SELECT * FROM {SESSION}")


def stamps(connection: Connection) -> dict[Any, tuple[Any, ...]]:
    """Return a stamp of the messages of each session, by its id.

    Its last two values are the first and the last time, None where there is none. The
    length of a content is known without reading it.
    """
    have = columns_of_table(connection, MESSAGE)
    time = "time_created" if "time_created" in have else "NULL"
    rows = connection.execute(
        f"SELECT session_id, count(*), sum(length(content)), min({time}), max({time})"
        f" FROM {MESSAGE} GROUP BY session_id"
    )
    return {name: tuple(facts) for name, *facts in rows}


def messages(connection: Connection, session: Any) -> Iterator[Row]:
    """Yield the rows of the messages of a session in order; raises `Error`."""
    have = columns_of_table(connection, MESSAGE)
    times = have & {"time_created"}
    try:
        rows = _ordered(connection, session, [*times, ROW_NUMBER])
    except Error:
        # A table may be without numbers of its rows; it has a first column always.
        rows = _ordered(connection, session, [*times, *have & {"id"}, "1"])
    yield from rows


def _ordered(connection: Connection, session: Any, columns: list[str]) -> Iterator[Row]:
    statement = (
        f"SELECT * FROM {MESSAGE} WHERE session_id = ? ORDER BY {', '.join(columns)}"
    )
    return select_records(connection, statement, session)
