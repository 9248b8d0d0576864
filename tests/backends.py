"""The engines that the contract is tested on, and what a test sees behind the library's back.

A test of the contract (`tests/effects`, `tests/repository`) gets its databases from the
fixture ``backend``, opens them as a program does, and looks at their rows by plain SQL that
every engine takes: tables and columns by their names, values as parameters. Tests of one
engine are in a folder of their own: `tests/sqlite`.

``pytest --backend sqlite,postgresql`` names the engines; without it, it is SQLite alone.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from itertools import count
from pathlib import Path
from threading import get_ident
from typing import Any, ClassVar, cast

import pytest

from sessiondb import BEGINNING, Store
from sessiondb.engine.message_sums import MessageSums
from sessiondb.engine.sqlite import engine
from sessiondb.engine.sqlite.dialect import DIALECT

#: What `Store.open` is given: the path of a file, or a URL.
Place = str | Path
Parameter = None | int | float | str | bytes

#: Names what a row should not be: no row of it is in an intact database.
COUNTERS = """
SELECT 'messages', id FROM session WHERE message_count <>
    (SELECT count(*) FROM message WHERE session_id = session.id)
UNION ALL SELECT 'cost', id FROM session WHERE abs(coalesce(cost, 0) -
    (SELECT coalesce(sum(cost), 0) FROM message WHERE session_id = session.id AND inherited = 0))
    > 1e-9
UNION ALL SELECT 'last_seq', id FROM session WHERE last_seq <
    (SELECT coalesce(max(seq), 0) FROM message WHERE session_id = session.id)
UNION ALL SELECT 'leaf', id FROM session WHERE leaf_seq IS NOT NULL AND leaf_seq NOT IN
    (SELECT seq FROM message WHERE session_id = session.id)
UNION ALL SELECT 'parent', session_id FROM message m WHERE parent_seq IS NOT NULL AND NOT EXISTS
    (SELECT 1 FROM message o WHERE o.session_id = m.session_id AND o.seq = m.parent_seq)
UNION ALL SELECT 'blob', hash FROM blob WHERE
    hash NOT IN (SELECT text_blob FROM part WHERE text_blob IS NOT NULL) AND
    hash NOT IN (SELECT input_blob FROM part WHERE input_blob IS NOT NULL) AND
    hash NOT IN (SELECT data_blob FROM part WHERE data_blob IS NOT NULL) AND
    hash NOT IN (SELECT data_blob FROM message WHERE data_blob IS NOT NULL) AND
    hash NOT IN (SELECT before_blob FROM file_diff WHERE before_blob IS NOT NULL) AND
    hash NOT IN (SELECT after_blob FROM file_diff WHERE after_blob IS NOT NULL)
UNION ALL SELECT 'change', id FROM session WHERE change <= 0
UNION ALL SELECT 'deletion', d.session_id FROM deletion AS d JOIN session AS s
    ON s.change = d.change WHERE s.time_deleted IS NULL
"""


class Backend(ABC):
    """An engine and the databases of the tests on it.

    *where* is a place, or a store that is open there: a façade of either kind.
    """

    #: The name that ``--backend`` takes.
    name: ClassVar[str]
    #: Whether a database is a file, which a test can copy, fill or damage.
    is_file: ClassVar[bool]
    #: Whether search, sums and the feed follow what another program writes.
    has_triggers: ClassVar[bool]
    #: Whether sessions of several families share what is large and equal.
    shares_blobs: ClassVar[bool]
    #: Whether a shell has views.
    has_views: ClassVar[bool]
    #: Whether new parts wait to be indexed until the writer is idle.
    parts_wait: ClassVar[bool]
    #: How many times a large record is in memory at most, while it is imported.
    copies_of_a_record: ClassVar[int]
    #: Whether the changes of each database are numbered one by one.
    counts_changes: ClassVar[bool]
    #: Whether times are those of this process, whose clock a test can set.
    has_our_clock: ClassVar[bool]

    @property
    @abstractmethod
    def refusals(self) -> tuple[type[Exception], ...]:
        """The driver's errors for values that break a rule of the schema."""

    @abstractmethod
    def __init__(self, folder: Path) -> None:
        """Begin; *folder* is empty, and for whatever the engine keeps."""

    @classmethod
    def missing(cls) -> str | None:
        """Return why the engine cannot be used here; None if it can."""
        return None

    @abstractmethod
    def place(self) -> Place:
        """Return a place at which there is no database yet."""

    @abstractmethod
    def fresh(self) -> Place:
        """Return the place of a new database, without a session."""

    @abstractmethod
    def copy_of(self, place: Place) -> Place:
        """Return the place of a copy of a database that nothing has open."""

    @abstractmethod
    def place_of(self, where: Any) -> Place:
        """Return the place of an open store, to open it once more."""

    @abstractmethod
    def exists(self, place: Place) -> bool:
        """Return whether there is a database at a place."""

    @abstractmethod
    def remove(self, place: Place) -> None:
        """Remove the database at a place, if there is one."""

    @abstractmethod
    def remove_places(self, kept: int) -> None:
        """Remove the databases of all places but of the first *kept*."""

    @property
    @abstractmethod
    def places(self) -> int:
        """How many places there are."""

    @abstractmethod
    def rows(self, where: Any, sql: str, *params: Any) -> list[tuple[Any, ...]]:
        """Return the rows that another program sees.

        *params* are the values of ``?``, or one mapping with those of ``:name``.
        """

    @abstractmethod
    def watching(self, where: Any) -> AbstractContextManager[None]:
        """Keep a connection for this thread, so that a test that looks often is quick."""

    @abstractmethod
    def records(self, where: Any, sql: str, *params: Any) -> list[dict[str, Any]]:
        """Return rows as `rows` does, by the names of their columns."""

    @abstractmethod
    def has_index(self, where: Any, name: str) -> bool:
        """Return whether a database has an index of a name."""

    @abstractmethod
    def by_index(self, name: str) -> str:
        """Return what is written behind a table to read it by an index, or nothing."""

    @abstractmethod
    def run(self, where: Any, sql: str, *params: Any) -> int:
        """Write as another program does that knows nothing of ours, within the rules.

        Returns the number of rows that were changed.
        """

    @abstractmethod
    def run_many(
        self, where: Any, sql: str, rows: Iterable[tuple[Parameter, ...]]
    ) -> None:
        """Write as `run` does, once for each row, in one transaction."""

    @abstractmethod
    def tear(self, where: Any, sql: str, *params: Any) -> int:
        """Write as `run` does, but no reference is enforced, and nothing cascades.

        The test is skipped by an engine that always enforces them.
        """

    @abstractmethod
    def distort(self, where: Any, sql: str, *params: Any) -> int:
        """Write as `run` does, also values that no CHECK allows; skips as `tear` does."""

    @abstractmethod
    def locked(self, where: Any, patience: float = 5.0) -> AbstractContextManager[None]:
        """Keep every writer waiting, as another process that writes would; not readers.

        *patience* is how many seconds this waits for the others.
        """

    @abstractmethod
    def size(self, where: Any) -> int:
        """Return the bytes that a database takes."""

    @abstractmethod
    def searched_parts(self, where: Any) -> int:
        """Return how many parts are in the search index."""

    @abstractmethod
    def waiting_parts(self, where: Any) -> int:
        """Return how many parts wait for the search index."""

    @abstractmethod
    def rebuild_search(self, where: Any) -> None:
        """Make the search index again, as another program may at any time."""

    @abstractmethod
    def assert_searchable(self, where: Any) -> None:
        """Assert that the search index has what the rows say."""

    @abstractmethod
    def without_sums(self) -> AbstractContextManager[None]:
        """Let the engine answer as one that keeps no sums of usage."""

    @abstractmethod
    def unreported(self, where: Any, cursor: str) -> int:
        """Return how many changes the feed has after *cursor*."""

    @abstractmethod
    def ahead_of(self, cursor: str) -> str:
        """Return a cursor that the feed gives for a later change only."""

    @abstractmethod
    def driver_error(self, message: str) -> Exception:
        """Return an error of the engine's driver that was raised elsewhere."""

    @abstractmethod
    def assert_intact(self, where: Any) -> None:
        """Assert that a database is intact, and that its counters agree with its rows."""

    @abstractmethod
    def close(self) -> None:
        """Give everything back, once no test is left."""


_SEARCHED = ("part_search", "session_search", "prompt_search")


class SQLite(Backend):
    """SQLite: a file for each database, used behind our back by plain `sqlite3`."""

    name = "sqlite"
    is_file = True
    has_triggers = True
    shares_blobs = True
    has_views = True
    parts_wait = True
    copies_of_a_record = 4
    counts_changes = True
    has_our_clock = True

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._empty = folder / "empty.db"
        self._numbers = count()
        self._places: list[Path] = []
        self._connections: dict[tuple[Path, int], sqlite3.Connection] = {}

    def place(self) -> Path:
        folder = self._folder / str(next(self._numbers))
        folder.mkdir()
        self._places.append(folder)
        return folder / "sessions.db"

    def fresh(self) -> Path:
        if not self._empty.exists():
            Store.open(self._empty).close()
        # A copy: a new file takes twice the time, and waits for the disk if there is one.
        return Path(shutil.copy(self._empty, self.place()))

    @property
    def refusals(self) -> tuple[type[Exception], ...]:
        return (sqlite3.IntegrityError,)

    def copy_of(self, place: Place) -> Path:
        return Path(shutil.copy(place, self.place()))

    def place_of(self, where: Any) -> Path:
        return Path(where if isinstance(where, str | os.PathLike) else where.path)

    def exists(self, place: Place) -> bool:
        return Path(place).exists()

    def remove(self, place: Place) -> None:
        Path(place).unlink(missing_ok=True)

    def remove_places(self, kept: int) -> None:
        while len(self._places) > kept:
            shutil.rmtree(self._places.pop(), ignore_errors=True)

    @property
    def places(self) -> int:
        return len(self._places)

    def rows(self, where: Any, sql: str, *params: Any) -> list[tuple[Any, ...]]:
        with self._connected(where) as connection:
            return connection.execute(sql, _bound(params)).fetchall()

    def records(self, where: Any, sql: str, *params: Any) -> list[dict[str, Any]]:
        with self._connected(where) as connection:
            cursor = connection.execute(sql, _bound(params))
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor]

    @contextmanager
    def watching(self, where: Any) -> Generator[None]:
        with self._connected(where):
            yield

    def has_index(self, where: Any, name: str) -> bool:
        sql = "SELECT 1 FROM sqlite_schema WHERE type = 'index' AND name = ?"
        return self.rows(where, sql, name) == [(1,)]

    def by_index(self, name: str) -> str:
        return f" INDEXED BY {name}"

    def run(self, where: Any, sql: str, *params: Any) -> int:
        return self._run(where, "PRAGMA foreign_keys = ON", sql, params)

    def run_many(
        self, where: Any, sql: str, rows: Iterable[tuple[Parameter, ...]]
    ) -> None:
        with self._connected(where) as connection:
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("BEGIN")
            connection.executemany(sql, rows)
            connection.execute("COMMIT")

    def tear(self, where: Any, sql: str, *params: Any) -> int:
        return self._run(where, "PRAGMA foreign_keys = OFF", sql, params)

    def distort(self, where: Any, sql: str, *params: Any) -> int:
        return self._run(where, "PRAGMA ignore_check_constraints = ON", sql, params)

    def _run(self, where: Any, pragma: str, sql: str, params: tuple[Any, ...]) -> int:
        with closing(self._connect(where)) as connection:
            connection.execute(pragma)
            return connection.execute(sql, _bound(params)).rowcount

    @contextmanager
    def locked(self, where: Any, patience: float = 5.0) -> Generator[None]:
        with closing(self._connect(where, timeout=patience)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            finally:
                connection.execute("ROLLBACK")

    def size(self, where: Any) -> int:
        sql = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
        ((found,),) = self.rows(where, sql)
        return cast("int", found)

    def searched_parts(self, where: Any) -> int:
        ((found,),) = self.rows(where, "SELECT count(*) FROM part_search_docsize")
        return cast("int", found)

    def waiting_parts(self, where: Any) -> int:
        ((found,),) = self.rows(where, "SELECT count(*) FROM part_search_waiting")
        return cast("int", found)

    def rebuild_search(self, where: Any) -> None:
        for table in _SEARCHED:
            self.run(where, f"INSERT INTO {table} ({table}) VALUES ('rebuild')")

    def assert_searchable(self, where: Any) -> None:
        with self._connected(where) as connection:
            for table in _SEARCHED:
                connection.execute(
                    f"INSERT INTO {table} ({table}, rank) VALUES ('integrity-check', 1)"
                )

    @contextmanager
    def without_sums(self) -> Generator[None]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(engine.SQLite, "usage", MessageSums(DIALECT))
            yield

    def unreported(self, where: Any, cursor: str) -> int:
        # SQLite's cursors end with the number of the last change.
        last = 0 if cursor == BEGINNING else int(cursor[-16:], 16)
        sql = (
            "SELECT (SELECT count(*) FROM deletion WHERE change > :last) +"
            " (SELECT count(*) FROM session WHERE change > :last AND time_deleted IS NULL)"
        )
        ((found,),) = self.rows(where, sql, {"last": last})
        return cast("int", found)

    def ahead_of(self, cursor: str) -> str:
        return f"{cursor[:-16]}{int(cursor[-16:], 16) + 1:016x}"

    def driver_error(self, message: str) -> Exception:
        return sqlite3.OperationalError(message)

    def assert_intact(self, where: Any) -> None:
        with self._connected(where) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
            assert connection.execute(COUNTERS).fetchall() == []
            self.assert_searchable(where)

    def close(self) -> None:
        pass  # pytest removes the folder

    @contextmanager
    def _connected(self, where: Any) -> Generator[sqlite3.Connection]:
        """Give the connection of this block, or of one around it in this thread."""
        key = (self.place_of(where), get_ident())
        if key in self._connections:
            yield self._connections[key]
            return
        # A new one reads the schema first, which takes longer than most queries.
        with closing(self._connect(where)) as connection:
            self._connections[key] = connection
            try:
                yield connection
            finally:
                del self._connections[key]

    def _connect(self, where: Any, timeout: float = 5.0) -> sqlite3.Connection:
        return sqlite3.connect(
            self.place_of(where), timeout=timeout, isolation_level=None
        )


def _bound(params: tuple[Any, ...]) -> Any:
    return params[0] if len(params) == 1 and isinstance(params[0], Mapping) else params
