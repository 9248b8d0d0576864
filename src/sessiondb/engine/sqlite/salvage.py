"""A temporary copy of the readable rows of a damaged database.

Rows are copied by ranges of row numbers, which are halved if a page cannot be read, so
that the rows around a damaged page are found. No index is used, and those of the copy
are rebuilt. The damaged file is only read. Lost rows are counted, and the sessions
that lost some are identified as far as the indexes of the file still permit.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from sessiondb.dataclass import dataclass
from sessiondb.engine.base import Connection, ReadableCopy
from sessiondb.engine.sqlite import files, search_query, search_waiting
from sessiondb.engine.sqlite.connection import (
    SQLiteConnection,
    connect,
    set_pragmas,
    uri_of,
)
from sessiondb.engine.sqlite.failures import translate
from sessiondb.engine.sqlite.opening import make
from sessiondb.engine.sqlite.search import SQLiteSearchIndex
from sessiondb.engine.sqlite.table_tree import last_readable_row
from sessiondb.errors import CorruptionError, SessionDBError

#: Row numbers that are read at once.
_AT_ONCE = 2_000
#: All tables but those that `make` fills and the sums of usage: without a mark they are
#: made of the messages. Those of the search index, which is rebuilt, have other types.
_TABLES = (
    "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' "
    "AND name NOT LIKE 'sqlite_%' "
    "AND name NOT IN ('alembic_version', 'usage_hour', 'usage_waiting')"
)

#: The statements of the tables of extensions, whose programs may not be here.
_EXTENSIONS = (
    "SELECT sql FROM sqlite_schema WHERE type = 'table' AND name GLOB 'ext_*' "
    "AND sql GLOB 'CREATE TABLE ext_*'"
)
_TREE = (
    "SELECT rootpage, page_size FROM sqlite_schema, pragma_page_size "
    "WHERE type = 'table' AND name = ?"
)


def readable_copy(path: Path, target: Path, *, read_only: bool = False) -> ReadableCopy:
    """Copy the readable rows of the database at *path* to the new file *target*.

    Raises `CorruptionError` if not even the list of tables can be read, and
    `StorageError` without room for the copy.
    """
    files.prepare(target)
    connection = sqlite3.connect(
        uri_of(target, "rw"),
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        factory=SQLiteConnection,
    )

    try:
        set_pragmas(connection, "rw", 10.0, "normal")
        search_query.register(connection)
        search_waiting.register(connection)
        connection.execute("PRAGMA foreign_keys=OFF")
        make(connection)
        copy = ReadableCopy(connection)
        # A separate connection: an error there must not affect the copy.
        with closing(connect(path, mode="ro" if read_only else "reader")) as theirs:
            theirs.text_factory = bytes_or_text
            theirs.execute("BEGIN")
            connection.execute("BEGIN")
            _make_extension_tables(copy.connection, theirs)
            pages = target.with_name(f"{target.name}.pages")
            _copy_tables(copy, _DamagedFile(theirs, pages))
            pages.unlink(missing_ok=True)
            SQLiteSearchIndex().rebuild(connection, ["part_search"])
            connection.execute("COMMIT")
        connection.execute("PRAGMA query_only=ON")
    except sqlite3.Error as error:
        connection.close()
        raise _without_an_export(translate(error)) from error
    except BaseException:
        connection.close()
        raise

    return copy


def _without_an_export(error: SessionDBError) -> SessionDBError:
    """Return the error without advice to export, which needs the copy."""
    if isinstance(error, CorruptionError):
        error.hint = "nothing of the file can be read; restore a backup"
    return error


@dataclass(slots=True)
class _DamagedFile:
    """The file that is read, and where its pages are copied if they are looked at."""

    connection: sqlite3.Connection
    pages: Path

    def last_row(self, table: str) -> tuple[int, bool]:
        """Return an upper bound of the row numbers, and whether later ones are lost."""
        for access in ("NOT INDEXED", f"INDEXED BY sqlite_autoindex_{table}_1"):
            with suppress(sqlite3.DatabaseError):
                sql = f"SELECT max(rid) FROM {table} {access}"
                return self.connection.execute(sql).fetchone()[0] or 0, False

        # Not the file itself: whoever closes a file of this process takes SQLite's
        # locks on it away.
        if not self.pages.exists():
            with closing(sqlite3.connect(self.pages)) as target:
                self.connection.backup(target)
        root, page_size = self.connection.execute(_TREE, (table,)).fetchone()
        return last_readable_row(self.pages, root, page_size), True


def bytes_or_text(raw: bytes) -> str | bytes:
    """Return the text, or the bytes themselves if they are not text any more."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def _make_extension_tables(connection: Connection, damaged: sqlite3.Connection) -> None:
    """Make the tables of extensions as the damaged file has them; without indexes."""
    for (statement,) in damaged.execute(_EXTENSIONS).fetchall():
        connection.execute(statement)


def _copy_tables(copy: ReadableCopy, damaged: _DamagedFile) -> None:
    copy.connection.execute("DELETE FROM meta")
    for (table,) in copy.connection.execute(_TABLES).fetchall():
        _copy_table(copy, damaged, table)
    copy.connection.execute("DELETE FROM meta WHERE key = 'usage_to'")
    _name_damaged(copy, damaged.connection)


def _copy_table(copy: ReadableCopy, damaged: _DamagedFile, table: str) -> None:
    columns_of = "SELECT name FROM pragma_table_info(?)"
    our_columns, their_columns = (
        {name for (name,) in connection.execute(columns_of, (table,))}
        for connection in (copy.connection, damaged.connection)
    )
    names = sorted(our_columns & their_columns)
    if not names:
        return
    columns = ", ".join(f'"{name}"' for name in names)
    marks = ", ".join("?" * len(names))
    insert = f"INSERT OR IGNORE INTO {table} ({columns}) VALUES ({marks})"
    select = f"SELECT {columns} FROM {table} NOT INDEXED WHERE rid BETWEEN ? AND ?"

    last, more_are_lost = damaged.last_row(table)
    if more_are_lost:
        copy.lost[table] = 1
    for first in range(1, last + 1, _AT_ONCE):
        waiting = [(first, min(first + _AT_ONCE - 1, last))]
        while waiting:
            low, high = waiting.pop()
            try:
                rows = damaged.connection.execute(select, (low, high)).fetchall()
            except sqlite3.DatabaseError as error:
                if not isinstance(translate(error), CorruptionError):
                    raise
                if low == high:
                    copy.lost[table] = copy.lost.get(table, 0) + 1
                    continue
                middle = (low + high) // 2
                waiting += [(middle + 1, high), (low, middle)]
            else:
                copy.connection.executemany(insert, rows)


def _name_damaged(copy: ReadableCopy, damaged: sqlite3.Connection) -> None:
    """Find the sessions whose rows are lost, by the counters and intact indexes."""
    rows = copy.connection.execute(
        "SELECT s.id FROM session AS s WHERE s.message_count <> "
        "(SELECT count(*) FROM message WHERE session_id = s.id)"
    )
    copy.damaged |= {name for (name,) in rows}
    for table in ("part", "message", "todo", "file_diff", "label"):
        if table in copy.lost:
            _name_by_index(copy, damaged, table)

    if "blob" in copy.lost:
        copy.damaged |= _without_blobs(copy.connection)


def _name_by_index(copy: ReadableCopy, damaged: sqlite3.Connection, table: str) -> None:
    copied_rids = {
        rid for (rid,) in copy.connection.execute(f"SELECT rid FROM {table}")
    }
    # Both columns are in the index, so the table is not read.
    sql = f"SELECT session_id, rid FROM {table} INDEXED BY sqlite_autoindex_{table}_1"
    try:
        copy.damaged |= {
            name for name, rid in damaged.execute(sql) if rid not in copied_rids
        }
    except sqlite3.DatabaseError:
        copy.known = False


def _without_blobs(connection: Connection) -> set[str]:
    holders = [("part", name) for name in ("text_blob", "input_blob", "data_blob")]
    holders += [
        ("message", "data_blob"),
        ("file_diff", "before_blob"),
        ("file_diff", "after_blob"),
    ]
    lost: set[str] = set()

    for table, column in holders:
        rows = connection.execute(
            f"SELECT DISTINCT session_id FROM {table} WHERE {column} IS NOT NULL "
            f"AND NOT EXISTS (SELECT 1 FROM blob WHERE hash = {column})"
        )
        lost |= {name for (name,) in rows}

    return lost
