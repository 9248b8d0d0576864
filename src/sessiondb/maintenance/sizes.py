"""Where the bytes are: by table, and the biggest sessions."""

from __future__ import annotations

import sqlite3
from typing import Any

from sessiondb.database.core import answered
from sessiondb.repository.sizes import each

#: Rows looked at for an estimate.
SAMPLE = 1_000
BIGGEST = 10

_DBSTAT = """
SELECT coalesce(m.tbl_name, d.name), sum(d.pgsize)
  FROM dbstat AS d LEFT JOIN sqlite_schema AS m ON m.name = d.name
 WHERE d.aggregate = TRUE GROUP BY 1 ORDER BY 2 DESC
"""
_NAMED = "SELECT id, title, source FROM session WHERE time_deleted IS NULL"


def bytes_by_table(connection: sqlite3.Connection) -> dict[str, int]:
    """Return table → bytes with its indexes, largest first; an estimate without dbstat."""
    try:
        return dict(connection.execute(_DBSTAT).fetchall())
    except sqlite3.OperationalError:
        return _estimated(connection)


def _estimated(connection: sqlite3.Connection) -> dict[str, int]:
    """Return table → rows times the mean length of the first ones, without indexes."""
    tables = connection.execute(
        "SELECT name FROM pragma_table_list WHERE type IN ('table', 'shadow') AND schema = 'main'"
    ).fetchall()
    found: dict[str, int] = {}
    for (table,) in tables:
        columns = connection.execute(
            "SELECT name FROM pragma_table_info(?)", (table,)
        ).fetchall()
        length = " + ".join(
            f'coalesce(length(CAST("{c}" AS BLOB)), 0) + 1' for (c,) in columns
        )
        sql = (
            f'SELECT (SELECT count(*) FROM "{table}"), avg(n) '
            f'FROM (SELECT {length} AS n FROM "{table}" LIMIT {SAMPLE})'
        )
        rows, mean = connection.execute(sql).fetchone()
        found[table] = int(rows * (mean or 0))
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def biggest_sessions(connection: sqlite3.Connection) -> list[dict[str, Any]]:
    """Return the largest sessions, each with the bytes that removing it would free."""
    weights = answered(connection, each())
    rows = [(*row, weights.get(row[0], 0)) for row in connection.execute(_NAMED)]
    names = ("id", "title", "source", "bytes")
    largest = sorted(rows, key=lambda row: -row[3])[:BIGGEST]
    return [dict(zip(names, row, strict=True)) for row in largest]
