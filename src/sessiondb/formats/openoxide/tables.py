"""The tables of a file, by their columns: several programs use the same names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sessiondb.formats.kit.sqlite import ROW_NUMBER, Connection, Error, columns, records

SESSION, MESSAGE = "session", "message"
#: A file without one of these columns is of another program.
_REQUIRED = {
    SESSION: frozenset({"id"}),
    MESSAGE: frozenset({"session_id", "role", "content"}),
}
#: What tells a file apart whose contents are not MessagePack.
_SIGN = "revert_oid"

Row = dict[str, Any]


def is_openoxide(connection: Connection) -> bool:
    """Return whether a file has the tables; raises `Error`."""
    have = {table: columns(connection, table) for table in _REQUIRED}
    if not all(have[table] >= needed for table, needed in _REQUIRED.items()):
        return False
    if _SIGN in have[SESSION]:
        return True

    first = connection.execute(f"SELECT content FROM {MESSAGE} LIMIT 1").fetchone()
    return first is not None and isinstance(first[0], bytes)


def sessions(connection: Connection) -> Iterator[Row]:
    """Yield the rows of the sessions; raises `Error`."""
    return records(connection, f"SELECT * FROM {SESSION}")


def stamps(connection: Connection) -> dict[Any, tuple[Any, ...]]:
    """Return what changes with the messages of a session, by its id.

    The length of a content is known without reading it.
    """
    have = columns(connection, MESSAGE)
    last = "max(time_created)" if "time_created" in have else "0"
    rows = connection.execute(
        f"SELECT session_id, count(*), sum(length(content)), {last}"
        f" FROM {MESSAGE} GROUP BY session_id"
    )
    return {name: tuple(facts) for name, *facts in rows}


def messages(connection: Connection, session: Any) -> Iterator[Row]:
    """Yield the rows of the messages of a session in order; raises `Error`."""
    have = columns(connection, MESSAGE)
    times = have & {"time_created"}
    try:
        rows = _ordered(connection, session, [*times, ROW_NUMBER])
    except Error:
        # A table may be without numbers of its rows; it has a first column always.
        rows = _ordered(connection, session, [*times, *have & {"id"}, "1"])
    yield from rows


def _ordered(connection: Connection, session: Any, by: list[str]) -> Iterator[Row]:
    statement = f"SELECT * FROM {MESSAGE} WHERE session_id = ? ORDER BY {', '.join(by)}"
    return records(connection, statement, session)
