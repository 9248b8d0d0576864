"""Where the bytes are: by table, and the biggest sessions."""

from __future__ import annotations

import sqlite3
from typing import Any

#: Rows looked at for an estimate.
SAMPLE = 1_000
BIGGEST = 10

_DBSTAT = """
SELECT coalesce(m.tbl_name, d.name), sum(d.pgsize)
  FROM dbstat AS d LEFT JOIN sqlite_schema AS m ON m.name = d.name
 WHERE d.aggregate = TRUE GROUP BY 1 ORDER BY 2 DESC
"""
_SESSIONS = """
SELECT p.session_id, sum(coalesce(length(CAST(p.text AS BLOB)), 0)
                         + coalesce(length(CAST(p.input AS BLOB)), 0)
                         + coalesce(length(p.data), 0) + coalesce(t.size, 0)
                         + coalesce(i.size, 0) + coalesce(d.size, 0)) AS bytes
  FROM part AS p
  LEFT JOIN blob AS t ON t.hash = p.text_blob
  LEFT JOIN blob AS i ON i.hash = p.input_blob
  LEFT JOIN blob AS d ON d.hash = p.data_blob
 GROUP BY p.session_id
"""
_BIGGEST = f"""
SELECT s.id, s.title, s.source, b.bytes FROM ({_SESSIONS}) AS b
  JOIN session AS s ON s.id = b.session_id
 WHERE s.time_deleted IS NULL ORDER BY b.bytes DESC LIMIT {BIGGEST}
"""


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
        columns = connection.execute("SELECT name FROM pragma_table_info(?)", (table,)).fetchall()
        length = " + ".join(f'coalesce(length(CAST("{c}" AS BLOB)), 0) + 1' for (c,) in columns)
        sql = (
            f'SELECT (SELECT count(*) FROM "{table}"), avg(n) '
            f'FROM (SELECT {length} AS n FROM "{table}" LIMIT {SAMPLE})'
        )
        rows, mean = connection.execute(sql).fetchone()
        found[table] = int(rows * (mean or 0))
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def biggest_sessions(connection: sqlite3.Connection) -> list[dict[str, Any]]:
    """Return the sessions with the most bytes of text and data; shared blobs count in each."""
    names = ("id", "title", "source", "bytes")
    return [dict(zip(names, row, strict=True)) for row in connection.execute(_BIGGEST)]
