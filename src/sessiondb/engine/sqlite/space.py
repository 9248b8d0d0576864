"""Bytes of a file: by table, unused, and given back to the disk.

SQLite rewrites a file by way of a compact copy in the folder for temporary files,
which it then writes through the ``-wal``: both need room at once, and only the
checkpoint after that makes the file smaller. Writes of others wait as for any other
write.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sessiondb.engine.disk import free_bytes
from sessiondb.engine.sqlite.connection import begin_write
from sessiondb.engine.sqlite.search import SQLiteSearchIndex
from sessiondb.engine.sqlite.write_ahead_log import checkpoint
from sessiondb.engine.upkeep import Room, Space
from sessiondb.errors import StorageFullError

#: Bytes that the -wal adds to each page.
_FRAME = 24
#: Rows looked at for an estimate.
_SAMPLE = 1_000
_BY_TABLE = """
SELECT coalesce(m.tbl_name, d.name), sum(d.pgsize)
  FROM dbstat AS d LEFT JOIN sqlite_schema AS m ON m.name = d.name
 WHERE d.aggregate = TRUE GROUP BY 1 ORDER BY 2 DESC
"""
_TABLES = (
    "SELECT name FROM pragma_table_list "
    "WHERE type IN ('table', 'shadow') AND schema = 'main'"
)


def space(connection: Any, path: Path) -> Space:
    """Return the bytes of the file, and what rewriting it needs."""
    names = ("page_count", "freelist_count", "page_size")
    pages, free, size = (connection.execute(f"PRAGMA {n}").fetchone()[0] for n in names)
    used = pages - free
    needs = [
        (path.parent, used * (size + _FRAME)),
        (_temporary_folder(path), used * size),
    ]

    return Space(pages * size, free * size, tuple(_rooms_by_disk(needs)))


def rewrite(connection: Any, path: Path) -> bool:
    """Give unused pages back to the disk; False where a reader kept the -wal."""
    # The one checkpoint here waits for the write lock, as those of the writer do.
    connection.execute("PRAGMA wal_autocheckpoint=0")
    begin_write(connection)
    SQLiteSearchIndex().optimize(connection)
    connection.execute("COMMIT")
    checkpoint(connection)
    _check_room(space(connection, path).rooms)
    connection.execute("VACUUM")
    return checkpoint(connection)


def _rooms_by_disk(needs: list[tuple[Path, int]]) -> Iterator[Room]:
    """Yield one room for each disk: what is on the same one is needed together."""
    disks: dict[int, tuple[Path, int]] = {}
    for folder, needed in needs:
        disk = folder.stat().st_dev
        first, sum_before = disks.get(disk, (folder, 0))
        disks[disk] = first, sum_before + needed

    for folder, needed in disks.values():
        yield Room(folder, needed, free_bytes(folder))


def _temporary_folder(path: Path) -> Path:
    """Return where SQLite puts its temporary files."""
    configured = (os.environ.get(name) for name in ("SQLITE_TMPDIR", "TMPDIR"))
    defaults = ("/var/tmp", "/usr/tmp", "/tmp")  # noqa: S108  SQLite's own list
    for name in (*configured, *defaults):
        if name and os.path.isdir(name) and os.access(name, os.W_OK | os.X_OK):
            return Path(name)
    return path.parent


def _check_room(rooms: tuple[Room, ...]) -> None:
    for room in rooms:
        if room.bytes_available < room.bytes_needed:
            needed = f"{room.bytes_needed / 1e6:,.1f} MB"
            available = f"{room.bytes_available / 1e6:,.1f} MB"
            raise StorageFullError(
                f"a vacuum needs {needed} in {room.folder}, where {available} are free",
                hint="free some disk space, or name another folder in SQLITE_TMPDIR",
            )


def bytes_by_table(connection: Any) -> dict[str, int]:
    """Return table → bytes with its indexes, largest first.

    An estimate without dbstat.
    """
    try:
        return dict(connection.execute(_BY_TABLE).fetchall())
    except sqlite3.OperationalError:
        return estimated_by_table(connection)


def estimated_by_table(connection: Any) -> dict[str, int]:
    """Return table → rows times their mean length, by the first; without indexes."""
    sizes: dict[str, int] = {}
    for (table,) in connection.execute(_TABLES).fetchall():
        columns = connection.execute(
            "SELECT name FROM pragma_table_info(?)", (table,)
        ).fetchall()
        length = " + ".join(
            f'coalesce(length(CAST("{column}" AS BLOB)), 0) + 1'
            for (column,) in columns
        )
        sql = (
            f'SELECT (SELECT count(*) FROM "{table}"), avg(n) '
            f'FROM (SELECT {length} AS n FROM "{table}" LIMIT {_SAMPLE})'
        )
        rows, mean = connection.execute(sql).fetchone()
        sizes[table] = int(rows * (mean or 0))

    return dict(sorted(sizes.items(), key=lambda item: -item[1]))
