"""SQLite databases of other programs, read so that nothing of them changes.

A foreign database is opened by SQLite and by nothing else: closing any other
descriptor on it would drop every POSIX lock this process holds there. Its bytes
and those of its ``-wal`` stay as they are, whichever program writes.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from sessiondb.errors import SourceError
from sessiondb.formats.kit.files import DATABASES, file_stamp, is_file, may_write

#: How long to wait for a writer, in seconds.
BUSY_SECONDS = 10.0
SUFFIXES = DATABASES
#: The number of a row, in a table without a column for it.
ROW_NUMBER = "rowid"
_SIDE_FILES = ("-wal", "-journal")
_AS_IT_LIES = "mode=ro&immutable=1"
_PRAGMAS = ("PRAGMA trusted_schema = OFF", "PRAGMA query_only = ON")
#: Statements that take the snapshot, with the schema or without. SQLite refuses a
#: file that is shorter than its header says, unless the schema might be written.
_SCHEMA = ("SELECT count(*) FROM sqlite_master",)
_HEADER = ("PRAGMA writable_schema = ON", "PRAGMA schema_version")
# Copying is left to a process of its own: see above.
_COPY = """
import shutil, sys
for source, target in zip(sys.argv[1::2], sys.argv[2::2]):
    shutil.copyfile(source, target)
"""
_COPY_ATTEMPTS = 5


#: The errors of a statement on a foreign database: damage, a lock, a missing column.
Error = sqlite3.Error
Connection = sqlite3.Connection
Cursor = sqlite3.Cursor


class _ForeignCursor(sqlite3.Cursor):
    """A cursor whose errors are errors of SQLite, even if a damaged file is quoted.

    The text of an error names what is in the file, and Python decodes it as UTF-8:
    if it is not, a UnicodeDecodeError comes instead. Values are decoded by
    `_decode_text`, which never fails. Written out for each method: this is on the way
    of every row.
    """

    def execute(self, *args: Any) -> Self:
        try:
            return super().execute(*args)
        except UnicodeDecodeError as error:
            raise _damage_error() from error

    def __next__(self) -> Any:
        try:
            return super().__next__()
        except UnicodeDecodeError as error:
            raise _damage_error() from error

    def fetchone(self) -> Any:
        try:
            return super().fetchone()
        except UnicodeDecodeError as error:
            raise _damage_error() from error

    def fetchall(self) -> list[Any]:
        try:
            return super().fetchall()
        except UnicodeDecodeError as error:
            raise _damage_error() from error


def _damage_error() -> sqlite3.DatabaseError:
    return sqlite3.DatabaseError("the file is damaged, and SQLite's message with it")


class _ForeignConnection(sqlite3.Connection):
    """A connection whose cursors are `_ForeignCursor`s."""

    def cursor(  # type: ignore[override]
        self, factory: type[sqlite3.Cursor] = _ForeignCursor
    ) -> Any:
        return super().cursor(factory)

    def execute(self, *args: Any) -> sqlite3.Cursor:
        # The inherited method does not call `cursor`.
        cursor: sqlite3.Cursor = self.cursor().execute(*args)
        return cursor


class ForeignDatabase:
    """One foreign database; a single read transaction lasts while anything reads it.

    A *glance* takes no lock and leaves nothing behind if no process has the file
    open: enough to see its tables. Without *schema* even those are not read:
    enough to copy it, whatever it holds. Not for use by two threads at once.
    """

    def __init__(
        self, path: Path, *, glance: bool = False, schema: bool = True
    ) -> None:
        self.path = path
        # Without links: SQLite keeps the side files beside the file itself.
        self._file = path
        self._glance = glance
        self._first = _SCHEMA if schema else _HEADER
        self._readers = 0
        self._connection: sqlite3.Connection | None = None
        #: Closes the connection, and removes what a read has left behind.
        self._cleanup = contextlib.ExitStack()

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Open the database, or join its readers; the last to leave closes it.

        Raises `SourceError` when it cannot be opened, is not a database or, unless this
        is only a glance, has lost a part of its last page.
        """
        if self._connection is None:
            self._connection = self._open_complete()
        self._readers += 1

        try:
            yield self._connection
        finally:
            self._readers -= 1
            if not self._readers:
                self._close_connection()

    @property
    def is_utf8(self) -> bool:
        """Return whether its texts are stored in UTF-8; only during a read."""
        (encoding,) = self.connection.execute("PRAGMA encoding").fetchone()
        return bool(encoding == "UTF-8")

    @property
    def application_id(self) -> int:
        """Return by which number a program marked it as its own; only during a read."""
        (number,) = self.connection.execute("PRAGMA application_id").fetchone()
        return int(number)

    def copy_to(self, path: Path) -> None:
        """Write the snapshot of this read to the new file *path*; raises `Error`."""
        with contextlib.closing(sqlite3.connect(path)) as copy:
            self.connection.backup(copy)

    @property
    def connection(self) -> sqlite3.Connection:
        """The open connection; only during a read."""
        assert self._connection is not None, "not inside reading()"
        return self._connection

    def _open_complete(self) -> sqlite3.Connection:
        try:
            connection = self._open_connection()
            if not self._glance:
                self._check_complete(connection)
        except SourceError:
            self._close_connection()
            raise
        except sqlite3.Error as error:
            self._close_connection()
            raise SourceError(f"cannot read {self.path}: {error}") from error
        return connection

    def _check_complete(self, connection: sqlite3.Connection) -> None:
        """Raise `SourceError` if the last page is cut off.

        SQLite reads zeros for the rest of it, so that rows may be missing while stamps
        of the rows are as before: no import would notice when the file is complete.
        """
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        if _stamp_or_zero(self._file)[0] % int(size):
            raise SourceError(f"cannot read {self.path}: its end is missing")

    def _open_connection(self) -> sqlite3.Connection:
        if not is_file(self.path):
            raise SourceError(f"cannot read {self.path}: no such file")

        self._file = Path(os.path.realpath(self.path))
        side_files = [_side_file(self._file, ending) for ending in _SIDE_FILES]
        used = [file for file in side_files if _stamp_or_zero(file)[0]]

        if self._glance and not used:
            return self._connect_to(self._file, _AS_IT_LIES)

        if not os.path.lexists(_side_file(self._file, "-wal")):
            # SQLite could make a -wal, and would not remove it.
            if may_write(self._file.parent) and not may_write(self._file):
                return self._connect_to(self._copy_files([self._file]), "mode=rw")
            self._cleanup.callback(self._remove_empty_wal)

        try:
            return self._connect_to(self._file, "mode=ro")
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise

        # WAL mode needs a -shm, which cannot be made in a read-only directory.
        if not used:
            return self._connect_to(self._file, _AS_IT_LIES)
        return self._connect_to(self._copy_files([self._file, *used]), "mode=rw")

    def _connect_to(self, path: Path, options: str) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?{options}",
            uri=True,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
            factory=_ForeignConnection,
        )
        connection.text_factory = _decode_text

        try:
            for statement in (*_PRAGMAS, "BEGIN", *self._first):
                connection.execute(statement)
        except sqlite3.Error:
            connection.close()
            raise

        self._cleanup.callback(connection.close)
        return connection

    def _copy_files(self, files: list[Path]) -> Path:
        """Copy a database and its side files to a private directory."""
        # Most databases are read where they are, and no process is started.
        import subprocess

        private = tempfile.TemporaryDirectory(prefix="sessiondb-")
        folder = Path(self._cleanup.enter_context(private))
        pairs = [str(name) for file in files for name in (file, folder / file.name)]
        for _ in range(_COPY_ATTEMPTS):
            stamps = [_stamp_or_zero(file) for file in files]

            try:
                subprocess.run(  # noqa: S603  our own interpreter and code
                    [sys.executable, "-I", "-S", "-c", _COPY, *pairs],
                    capture_output=True,
                    check=True,
                )
            except (OSError, subprocess.CalledProcessError):
                message = f"cannot read {self.path}, nor copy it to read it"
                raise SourceError(message) from None

            # A program that wrote in between may have left two halves.
            if [_stamp_or_zero(file) for file in files] == stamps:
                return folder / self._file.name
        raise SourceError(f"cannot read {self.path}: it changes too often to be copied")

    def _remove_empty_wal(self) -> None:
        """Let SQLite remove the empty ``-wal`` that a read-only connection leaves.

        Only if there was none before; SQLite alone knows whether it is still unused.
        """
        if not os.path.lexists(_side_file(self._file, "-wal")):
            return

        with contextlib.suppress(sqlite3.Error):
            uri = f"{self._file.absolute().as_uri()}?mode=rw"
            last = sqlite3.connect(uri, uri=True, timeout=0, factory=_ForeignConnection)
            with contextlib.closing(last):
                last.execute("PRAGMA schema_version")

    def _close_connection(self) -> None:
        self._connection = None
        self._cleanup.close()


def is_database(path: Path) -> bool:
    """Return whether the file at *path* is a database, as far as SQLite knows."""
    try:
        with ForeignDatabase(path, glance=True).reading():
            return True
    except SourceError as error:
        code: int | None = getattr(error.__cause__, "sqlite_errorcode", None)
        return code != sqlite3.SQLITE_NOTADB


def columns_of_table(connection: sqlite3.Connection, table: str) -> frozenset[str]:
    """Return the columns of a table; empty for anything that is not a table."""
    is_table = connection.execute(
        "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (table,)
    ).fetchone()
    if is_table is None:
        return frozenset()

    rows = connection.execute("SELECT name FROM pragma_table_info(?)", (table,))
    return frozenset(name for (name,) in rows)


def names_of_tables(connection: sqlite3.Connection) -> list[str]:
    """Return the names of the tables."""
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    return [str(name) for (name,) in rows]


def tables_referenced(connection: sqlite3.Connection, table: str) -> list[str]:
    """Return the tables that the foreign keys of a table name."""
    rows = connection.execute(
        'SELECT "table" FROM pragma_foreign_key_list(?)', (table,)
    )
    return [str(name) for (name,) in rows]


def quoted_name(name: str) -> str:
    """Return the name of a table or column as it is written in a statement."""
    return '"' + name.replace('"', '""') + '"'


def select_records(
    connection: sqlite3.Connection, statement: str, *values: Any
) -> Iterator[dict[str, Any]]:
    """Run a statement and yield its rows by column, one at a time."""
    cursor = connection.execute(statement, values)
    names = [column[0] for column in cursor.description]
    return (dict(zip(names, row, strict=True)) for row in cursor)


def _decode_text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def _side_file(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)


def _stamp_or_zero(path: Path) -> tuple[int, int]:
    return file_stamp(path) or (0, 0)
