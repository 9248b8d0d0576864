"""The biggest sessions."""

from __future__ import annotations

from typing import Any

from sessiondb.database.reading import answered
from sessiondb.engine.base import Connection

BIGGEST = 10

_NAMED = "SELECT id, title, source FROM session WHERE time_deleted IS NULL"


def biggest_sessions(connection: Connection) -> list[dict[str, Any]]:
    """Return the largest sessions, each with the bytes that removing it would free."""
    # All together, with one scan of each table.
    weights = answered(connection, connection.engine.session_sizes.each())
    rows = [(*row, weights.get(row[0], 0)) for row in connection.execute(_NAMED)]
    names = ("id", "title", "source", "bytes")
    largest = sorted(rows, key=lambda row: -row[3])[:BIGGEST]
    return [dict(zip(names, row, strict=True)) for row in largest]
