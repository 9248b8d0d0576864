"""PostgreSQL as a backend of the contract: a cluster for the run, a database for each test."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Mapping
from contextlib import (
    AbstractContextManager,
    ExitStack,
    closing,
    contextmanager,
    nullcontext,
)
from decimal import Decimal
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any, cast

import pytest
from backends import COUNTERS, Backend, Parameter, Place
from partitions import make_partitioned
from postgresql_server import Server, binaries, running

from sessiondb import BEGINNING, Store
from sessiondb.engine.address import ServerAddress
from sessiondb.engine.default import target_of

#: A database with our tables, of which those of the tests are copies.
_TEMPLATE = "sessiondb_template"
_INSERTS = re.compile(
    r"INSERT INTO (session|message|part|label|todo|file_diff|lease|merge_base) \(([^)]*)"
)
_PARAMETER = re.compile(r"\?|(?<![:\w]):(\w+)|'[^']*'")


class PostgreSQL(Backend):
    """PostgreSQL: used behind our back by plain psycopg."""

    name = "postgresql"
    is_file = False
    has_triggers = False
    shares_blobs = False
    has_views = True
    parts_wait = False
    # libpq keeps a buffer for what is sent and one for what is received, each as large
    # as the record, which the index reads back from the server.
    copies_of_a_record = 8
    counts_changes = False
    has_our_clock = False

    def __init__(self, folder: Path) -> None:
        self._numbers = count()
        self._names: list[str] = []
        self._stack = ExitStack()

    @classmethod
    def missing(cls) -> str | None:
        if binaries() is None:
            return "PostgreSQL is not installed"
        try:
            import psycopg  # noqa: F401
        except ImportError:
            return "the extra postgresql is not installed"
        return None

    @cached_property
    def server(self) -> Server:
        programs = binaries()
        assert programs is not None
        server = self._stack.enter_context(running(programs))
        self._administer(server, f"CREATE DATABASE {_TEMPLATE}")
        self._make_tables(server.url(_TEMPLATE))
        return server

    def _make_tables(self, url: str) -> None:
        Store.open(url).close()

    def place(self) -> str:
        return self._created("template0")

    def fresh(self) -> str:
        return self._created(_TEMPLATE)

    @property
    def refusals(self) -> tuple[type[Exception], ...]:
        import psycopg

        return (psycopg.IntegrityError,)

    def copy_of(self, place: Place) -> str:
        return self._created(_name_in(str(place)))

    def place_of(self, where: Any) -> str:
        if isinstance(where, str):
            return where
        url: str = where.location.server.url
        return url

    def exists(self, place: Place) -> bool:
        sql = "SELECT count(*) FROM pg_tables WHERE tablename = 'meta'"
        return self.rows(place, sql) == [(1,)]

    def remove(self, place: Place) -> None:
        self._administer(
            self.server, f"DROP DATABASE IF EXISTS {_name_in(str(place))} WITH (FORCE)"
        )

    def remove_places(self, kept: int) -> None:
        while len(self._names) > kept:
            self.remove(self.server.url(self._names.pop()))

    @property
    def places(self) -> int:
        return len(self._names)

    def rows(self, where: Any, sql: str, *params: Any) -> list[tuple[Any, ...]]:
        with closing(self._connect(where)) as connection:
            rows = connection.execute(*_bound(sql, params)).fetchall()
        return [tuple(map(_plain, row)) for row in rows]

    def watching(self, where: Any) -> AbstractContextManager[None]:
        return nullcontext()

    def records(self, where: Any, sql: str, *params: Any) -> list[dict[str, Any]]:
        with closing(self._connect(where)) as connection:
            cursor = connection.execute(*_bound(sql, params))
            names = [column.name for column in cursor.description or ()]
            rows = [tuple(map(_plain, row)) for row in cursor.fetchall()]
        return [dict(zip(names, row, strict=True)) for row in rows]

    def has_index(self, where: Any, name: str) -> bool:
        return self.rows(
            where, "SELECT 1 FROM pg_indexes WHERE indexname = ?", name
        ) == [(1,)]

    def by_index(self, name: str) -> str:
        return ""

    def run(self, where: Any, sql: str, *params: Any) -> int:
        if _INSERTS.match(sql):
            self.run_many(where, sql, [params])
            return 1
        with closing(self._connect(where)) as connection:
            changed: int = connection.execute(*_bound(sql, params)).rowcount
        return changed

    def run_many(
        self, where: Any, sql: str, rows: Iterable[tuple[Parameter, ...]]
    ) -> None:
        if _INSERTS.match(sql):
            self._insert(where, sql, rows)
            return
        with (
            closing(self._connect(where)) as connection,
            connection.transaction(),
            connection.cursor() as cursor,
        ):
            cursor.executemany(_placeholders(sql), rows)

    def _insert(
        self, where: Any, sql: str, rows: Iterable[tuple[Parameter, ...]]
    ) -> None:
        """Insert rows of sessions with their families, those of new ones, too."""
        target = target_of(ServerAddress(self.place_of(where)))
        with closing(target.connect()) as connection:
            connection.engine.begin_write(connection)
            found = _INSERTS.match(sql)
            names = found[2].split(", ") if found else []
            for row in rows:
                if "INTO session " in sql:
                    session = dict(zip(names, row, strict=True))
                    connection.engine.lock_new_session(
                        connection, session["id"], session.get("parent_id")
                    )
                is_named = len(row) == 1 and isinstance(row[0], Mapping)
                connection.execute(sql, row[0] if is_named else row)
            connection.commit()

    def tear(self, where: Any, sql: str, *params: Any) -> int:
        with closing(self._connect(where)) as connection:
            # As on a replica, where the rows of the primary are right: no trigger checks.
            connection.execute("SET session_replication_role = replica")
            changed: int = connection.execute(*_bound(sql, params)).rowcount
        return changed

    def distort(self, where: Any, sql: str, *params: Any) -> int:
        pytest.skip("postgresql: a CHECK is always enforced")

    @contextmanager
    def locked(self, where: Any, patience: float = 5.0) -> Generator[None]:
        with closing(self._connect(where)) as connection, connection.transaction():
            connection.execute(f"SET LOCAL lock_timeout = {int(patience * 1000)}")
            # Every transaction that writes looks at it first.
            connection.execute("LOCK TABLE alembic_version IN ACCESS EXCLUSIVE MODE")
            yield

    def size(self, where: Any) -> int:
        sql = "SELECT pg_database_size(current_database())"
        ((found,),) = self.rows(where, sql)
        return cast("int", found)

    def searched_parts(self, where: Any) -> int:
        ((found,),) = self.rows(where, "SELECT count(DISTINCT place) FROM part_search")
        return cast("int", found)

    def waiting_parts(self, where: Any) -> int:
        return 0

    def rebuild_search(self, where: Any) -> None:
        with closing(
            target_of(ServerAddress(self.place_of(where))).connect()
        ) as connection:
            connection.engine.search.rebuild(connection)

    def assert_searchable(self, where: Any) -> None:
        target = target_of(ServerAddress(self.place_of(where)))
        with closing(target.connect()) as connection:
            assert list(connection.engine.search.damaged(connection)) == []

    def without_sums(self) -> AbstractContextManager[None]:
        return nullcontext()  # it keeps none

    def unreported(self, where: Any, cursor: str) -> int:
        last = 0 if cursor == BEGINNING else int(cursor[-16:], 16)
        sql = (
            "SELECT (SELECT count(*) FROM deletion WHERE change > :last) +"
            " (SELECT count(*) FROM session WHERE change > :last AND time_deleted IS NULL)"
        )
        ((found,),) = self.rows(where, sql, {"last": last})
        return cast("int", found)

    def ahead_of(self, cursor: str) -> str:
        # A cursor ends with the number of a transaction and of a change in it.
        return f"{cursor[:-16]}{int(cursor[-16:], 16) + (1 << 40):016x}"

    def driver_error(self, message: str) -> Exception:
        import psycopg

        return psycopg.OperationalError(message)

    def assert_intact(self, where: Any) -> None:
        assert self.rows(where, COUNTERS) == []
        self.assert_searchable(where)

    def close(self) -> None:
        self._stack.close()

    def _created(self, template: str) -> str:
        name = f"db{next(self._numbers)}"
        self._names.append(name)
        self._administer(self.server, f"CREATE DATABASE {name} TEMPLATE {template}")
        return self.server.url(name)

    def _connect(self, where: Any) -> Any:
        import psycopg

        return psycopg.connect(self.place_of(where), autocommit=True)

    def _administer(self, server: Server, sql: str) -> None:
        import psycopg

        with psycopg.connect(server.url(), autocommit=True) as connection:
            connection.execute(sql)  # type: ignore[call-overload]


class PartitionedPostgreSQL(PostgreSQL):
    """The same with tables in partitions by family: see `partitions`."""

    name = "partitioned"

    def _make_tables(self, url: str) -> None:
        make_partitioned(url)


def _name_in(url: str) -> str:
    return url.partition("///")[2].partition("?")[0]


def _plain(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, Decimal):
        return int(value) if value == int(value) else float(value)
    return value


def _bound(sql: str, params: tuple[Any, ...]) -> tuple[str, Any]:
    """Return a statement and its values as psycopg takes them."""
    if not params:
        # Without values psycopg leaves a % alone.
        return sql, None
    named = len(params) == 1 and isinstance(params[0], Mapping)
    return _placeholders(sql), params[0] if named else params


def _placeholders(sql: str) -> str:
    """Return a statement with the parameters of psycopg for ``?`` and ``:name``."""

    def written(found: re.Match[str]) -> str:
        if found[0].startswith("'"):
            return found[0]
        return "%s" if found[0] == "?" else f"%({found[1]})s"

    return _PARAMETER.sub(written, sql.replace("%", "%%"))
