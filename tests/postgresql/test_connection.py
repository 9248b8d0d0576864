"""What `engine.base.Connection` promises, on a server."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from postgresql_server import Server

from sessiondb.engine.address import ServerAddress
from sessiondb.errors import InvalidInputError

psycopg = pytest.importorskip("psycopg")

from sessiondb.engine.postgresql import failures  # noqa: E402
from sessiondb.engine.postgresql.connecting import connect  # noqa: E402
from sessiondb.engine.postgresql.connection import BEGIN_READ  # noqa: E402
from sessiondb.engine.postgresql.numbered import numbered  # noqa: E402
from sessiondb.engine.postgresql.parameters import parameters_of  # noqa: E402

Connected = Callable[..., Any]
pytestmark = pytest.mark.slow


#: What each transaction reads of our tables, besides the revision of the schema.
META = "CREATE TABLE meta AS SELECT 'changed_families' AS key, '0' AS value"


@pytest.fixture
def connection(connected: Connected) -> Any:
    """A connection to a database that looks like ours, with a table ``tea``."""
    made = connected()
    made.execute("CREATE TABLE alembic_version AS SELECT '0001' AS version_num")
    made.execute(META)
    made.execute("CREATE TABLE tea (rid bigint PRIMARY KEY, name text)")
    return made


# -- statements and values -----------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "parameters", "sent", "values"),
    [
        ("SELECT 1", (), "SELECT 1", []),
        ("SELECT ':a' -- ? :b", {}, "SELECT ':a' -- ? :b", []),
        ("SELECT ?, '?', ?", (1, 2), "SELECT $1, '?', $2", [1, 2]),
        ("SELECT :a, :b, :a", {"b": 2, "a": 1}, "SELECT $1, $2, $1", [1, 2]),
        ("SELECT :a::int, x[1:n]", {"a": 1}, "SELECT $1::int, x[1:n]", [1]),
        ("SELECT ':a', \"a:b\", 'it''s :a', :a", {"a": 1},
         "SELECT ':a', \"a:b\", 'it''s :a', $1", [1]),
        (r"SELECT E'\':a', $$ :a $$, $x$ :a $x$, :a", {"a": 1},
         r"SELECT E'\':a', $$ :a $$, $x$ :a $x$, $1", [1]),
        ("SELECT :a /* :b */ -- :c\n, :d", {"a": 1, "d": 4},
         "SELECT $1 /* :b */ -- :c\n, $2", [1, 4]),
        ("SELECT a % 2 LIKE '%s', ?", (1,), "SELECT a % 2 LIKE '%s', $1", [1]),
    ],
)  # fmt: skip
def test_parameters_are_numbered_and_texts_comments_and_casts_left_alone(
    sql: str, parameters: Any, sent: str, values: list[Any]
) -> None:
    statement = numbered(sql, parameters)
    assert statement.sql.decode() == sent
    if parameters:
        assert list(statement.values(parameters)) == values


@pytest.mark.parametrize("value", [None, 0, -(1 << 63), (1 << 63) - 1, 0.1, -1e308,
                                   "", "Grüße 🫖", "a'b\\c%s", b"", b"\0\xff"])  # fmt: skip
def test_a_value_comes_back_as_it_was(connection: Any, value: Any) -> None:
    ((stored,),) = connection.execute("SELECT ?", (value,)).fetchall()
    assert (type(stored), stored) == (type(value), value)


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("true", 1),
        ("false", 0),
        ("sum(1::bigint)", 1),
        ("1.50::numeric", 1.5),
        ("2.00::numeric", 2),
        ("12345678901234567890::numeric", 12345678901234567890),
        ("7::smallint", 7),
        ("0.5::real", 0.5),
        ('\'{"b": 1,  "a": 2}\'::json', '{"b": 1,  "a": 2}'),
        ("'{\"b\": 1}'::jsonb", '{"b": 1}'),
        ("'x'", "x"),
        ("'x'::name", "x"),
        ("'x'::\"char\"", "x"),
        ("NULL", None),
    ],
)
def test_other_types_are_read_as_one_of_five(
    connection: Any, sql: str, value: Any
) -> None:
    ((read,),) = connection.execute(f"SELECT {sql}").fetchall()
    assert (type(read), read) == (type(value), value)


def test_the_type_of_a_parameter_does_not_depend_on_its_value(connection: Any) -> None:
    sql = f"SELECT {', '.join(['pg_typeof(?)::text'] * 5)}"
    for values in ((0, True, 0.0, "", b""), (1 << 62, False, 1e9, "7", b"x")):
        (row,) = connection.execute(sql, values)
        assert row == ("bigint", "bigint", "double precision", "text", "bytea")


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (1 << 63, OverflowError),
        (-(1 << 63) - 1, OverflowError),
        ("a\0b", UnicodeEncodeError),
        ("\ud800", UnicodeEncodeError),
    ],
)
def test_a_value_that_cannot_be_stored_is_refused_before_it_is_sent(
    connection: Any, value: Any, error: type[Exception]
) -> None:
    connection.begin_write(1.0)
    with pytest.raises(error):
        connection.execute("INSERT INTO tea VALUES (1, :x)", {"x": value})
    connection.execute("INSERT INTO tea VALUES (1, 'x')")
    connection.commit()


def test_rows_are_read_one_by_one_or_together(connection: Any) -> None:
    sql = "SELECT n, 'x' AS name FROM generate_series(1, 3) AS n"
    cursor = connection.execute(sql)
    assert [column[0] for column in cursor.description] == ["n", "name"]
    assert cursor.fetchone() == (1, "x")
    assert cursor.fetchall() == [(2, "x"), (3, "x")]
    assert cursor.fetchone() is None
    assert list(connection.execute(sql)) == [(1, "x"), (2, "x"), (3, "x")]


def test_the_rows_of_a_cursor_outlive_the_next_statement(connection: Any) -> None:
    first = connection.execute("SELECT 1")
    connection.execute("SELECT 2")
    assert first.fetchall() == [(1,)]


def test_a_statement_without_rows_has_none(connection: Any) -> None:
    cursor = connection.execute("INSERT INTO tea VALUES (1, 'x'), (2, 'y')")
    assert (cursor.description, cursor.rowcount) == (None, 2)
    assert (cursor.fetchone(), cursor.fetchall()) == (None, [])
    cursor = connection.execute("BEGIN")
    assert (cursor.description, cursor.fetchone(), list(cursor)) == (None, None, [])


def test_a_statement_runs_for_many_rows_and_counts_all_it_changed(
    connection: Any,
) -> None:
    rows = [(1, "a"), (2, None), (3, "c")]
    insert = "INSERT INTO tea VALUES (?, ?)"
    assert connection.executemany(insert, rows).rowcount == 3
    named = [{"rid": rid} for rid in (1, 2, 9)]
    deleted = connection.executemany("DELETE FROM tea WHERE rid = :rid", iter(named))
    assert deleted.rowcount == 2
    assert connection.executemany(insert, []).fetchall() == []
    assert connection.execute("SELECT * FROM tea").fetchall() == [(3, "c")]


def test_a_statement_that_fails_for_one_of_many_rows_names_the_reason(
    connection: Any,
) -> None:
    connection.begin_write(1.0)
    rows = [(1, "a"), (1, "b"), (2, "c")]
    with pytest.raises(psycopg.errors.UniqueViolation):
        assert connection.executemany("INSERT INTO tea VALUES (?, ?)", rows).rowcount
    assert connection.in_transaction
    connection.execute("ROLLBACK")
    assert connection.execute("SELECT * FROM tea").fetchall() == []


def test_a_prepared_statement_outlives_the_end_of_a_transaction(
    connection: Any,
) -> None:
    for _ in range(10):
        connection.execute(BEGIN_READ)
        connection.execute("SELECT name FROM tea WHERE rid = ?", (1,))
        connection.execute("ROLLBACK")
    ((prepared,),) = connection.execute(
        "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%tea%'"
    )
    assert prepared == 1


# -- transactions --------------------------------------------------------------


def test_each_statement_outside_a_transaction_is_committed(
    connection: Any, connected: Connected
) -> None:
    connection.execute("INSERT INTO tea VALUES (1, 'x')")
    assert not connection.in_transaction
    assert connected().execute("SELECT * FROM tea").fetchall() == [(1, "x")]


def test_a_transaction_that_writes_begins_with_the_time_and_the_schema(
    connection: Any,
) -> None:
    connection.begin_write(1.0)
    assert connection.in_transaction
    now = connection.time()
    assert abs(now - time.time() * 1000) < 60_000
    assert (connection.revision, connection.writes) == ("0001", 1)
    connection.execute("INSERT INTO tea VALUES (1, 'x')")
    connection.execute("ROLLBACK")
    assert not connection.in_transaction
    assert connection.execute("SELECT * FROM tea").fetchall() == []


def test_savepoints_nest_and_mend_a_failed_statement(connection: Any) -> None:
    connection.begin_write(1.0)
    connection.execute("INSERT INTO tea VALUES (1, 'x')")
    connection.execute("SAVEPOINT unit")
    with pytest.raises(psycopg.errors.UniqueViolation):
        assert connection.execute("INSERT INTO tea VALUES (1, 'y')").rowcount
    assert connection.in_transaction
    with pytest.raises(psycopg.errors.InFailedSqlTransaction):
        connection.execute("SELECT 1").fetchall()
    connection.execute("ROLLBACK TO unit")
    connection.execute("RELEASE unit")
    connection.execute("INSERT INTO tea VALUES (2, 'y')")
    connection.commit()
    assert connection.execute("SELECT rid FROM tea").fetchall() == [(1,), (2,)]


@pytest.mark.parametrize("how", ["commit", "COMMIT"])
def test_the_commit_of_a_failed_transaction_is_an_error(
    connection: Any, how: str
) -> None:
    connection.begin_write(1.0)
    with pytest.raises(psycopg.errors.DivisionByZero):
        connection.execute("SELECT 1 / 0").fetchall()
    with pytest.raises(psycopg.errors.InFailedSqlTransaction):
        connection.commit() if how == "commit" else connection.execute("COMMIT")
    assert not connection.in_transaction


def test_a_read_sees_one_snapshot_and_cannot_write(
    connection: Any, connected: Connected
) -> None:
    reader = connected()
    reader.execute(BEGIN_READ)
    assert reader.execute("SELECT count(*) FROM tea").fetchall() == [(0,)]
    connection.execute("INSERT INTO tea VALUES (1, 'x')")
    assert reader.execute("SELECT count(*) FROM tea").fetchall() == [(0,)]
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        assert reader.execute("DELETE FROM tea").rowcount
    reader.execute("ROLLBACK")
    assert reader.execute("SELECT count(*) FROM tea").fetchall() == [(1,)]


def setting(connection: Any, name: str) -> str:
    ((value,),) = connection.execute("SELECT current_setting(?)", (name,))
    return str(value)


def test_settings_begin_and_end_with_a_transaction(connected: Connected) -> None:
    connection = connected(busy_timeout=2.5, durability="normal")
    connection.execute("CREATE TABLE alembic_version AS SELECT '0001' AS version_num")
    connection.execute(META)
    names = (
        "lock_timeout", "synchronous_commit", "transaction_isolation",
        "idle_in_transaction_session_timeout",
    )  # fmt: skip
    outside = [setting(connection, name) for name in names]
    connection.begin_write(0.0)
    inside = [setting(connection, name) for name in names]
    assert inside == ["1ms", "off", "read committed", "5min"]
    connection.execute("ROLLBACK")
    connection.execute(BEGIN_READ)
    assert setting(connection, "lock_timeout") == "2500ms"
    assert setting(connection, "transaction_isolation") == "repeatable read"
    connection.execute("ROLLBACK")
    assert [setting(connection, name) for name in names] == outside
    assert setting(connection, "application_name") == "sessiondb"

    connection.durability = "full"
    connection.begin_write(1e9)
    assert setting(connection, "lock_timeout") == "2147483647ms"
    assert setting(connection, "synchronous_commit") == outside[1]
    connection.execute("ROLLBACK")


# -- the end -------------------------------------------------------------------


def test_a_closed_connection_is_not_usable_and_says_so(connection: Any) -> None:
    assert connection.is_usable
    connection.close()
    connection.close()
    assert not connection.is_usable
    assert not connection.in_transaction
    for use in (
        lambda: connection.execute("SELECT 1"),
        lambda: connection.executemany("SELECT ?", [(1,)]),
        connection.commit,
        lambda: connection.begin_write(1.0),
    ):
        with pytest.raises(failures.ConnectionClosedError):
            use()


def end_all(server: Server) -> None:
    """End all connections, and wait until they have ended."""
    server.run(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
        "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
    )


def test_a_connection_that_the_server_ended_is_known_not_to_be_usable(
    connection: Any, server: Server
) -> None:
    end_all(server)
    assert not connection.is_usable


def test_a_connection_that_is_lost_in_a_transaction_is_gone(
    connection: Any, server: Server
) -> None:
    connection.begin_write(1.0)
    end_all(server)
    with pytest.raises(psycopg.OperationalError) as caught:
        assert connection.execute("INSERT INTO tea VALUES (1, 'x')").rowcount
    assert failures.is_gone(caught.value)
    assert (connection.in_transaction, connection.is_usable) == (False, False)
    with pytest.raises(psycopg.OperationalError) as caught:
        connection.commit()
    assert failures.is_gone(caught.value)
    connection.close()


def test_a_forked_child_leaves_the_connection_to_its_parent(connection: Any) -> None:
    child = os.fork()
    if child == 0:  # pragma: no cover  it is another process
        connection.close()
        os._exit(0)
    os.waitpid(child, 0)
    assert connection.execute("SELECT 1").fetchall() == [(1,)]


def test_an_interrupt_ends_the_statement_and_the_connection(
    connection: Any, connected: Connected
) -> None:
    interrupt = threading.Timer(0.3, os.kill, (os.getpid(), 2))
    interrupt.start()
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        connection.execute("SELECT pg_sleep(30)")
    assert time.monotonic() - begun < 10
    assert (connection.in_transaction, connection.is_usable) == (False, False)
    running = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(%'"
    while connected().execute(f"{running} AND state = 'active'").fetchone() != (1,):
        assert time.monotonic() - begun < 10


# -- the URL -------------------------------------------------------------------


def test_behind_a_pooler_nothing_is_prepared(server: Server, database: str) -> None:
    address = ServerAddress(server.url(database, "&pgbouncer=true"))
    with closing(connect(address)) as connection:
        for _ in range(10):
            connection.execute("SELECT ?", (1,))
        connection.executemany("SELECT ?", [(1,), (2,)])
        sql = "SELECT count(*) FROM pg_prepared_statements"
        assert connection.execute(sql).fetchall() == [(0,)]


def test_a_url_overrides_what_a_connection_has_by_default(
    server: Server, database: str
) -> None:
    address = ServerAddress(server.url(database, "&application_name=tea"))
    with closing(connect(address)) as connection:
        assert setting(connection, "application_name") == "tea"


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ada:secret@host/db?no_such_option=1",
        "postgresql://ada:sec%ret@host/db",
        "postgresql://ada:secret@host/db?pgbouncer=perhaps",
        "postgresql://ada:secret@[::1/db",
    ],
)
def test_a_url_that_libpq_does_not_read_is_refused_without_its_password(
    url: str,
) -> None:
    with pytest.raises(InvalidInputError) as caught:
        parameters_of(ServerAddress(url))
    shown = f"{caught.value} {caught.value.hint} {caught.value.__cause__}"
    assert "sec" not in shown


def test_parameters_are_not_shown() -> None:
    parameters = parameters_of(ServerAddress("postgresql://ada:secret@host/db"))
    assert "secret" not in repr(parameters)


def test_transactions_begin_after_the_schema_changed(connection: Any) -> None:
    for _ in range(2):
        connection.begin_write(1.0)
        for _ in range(9):  # so often that the driver prepares it
            connection.execute("SELECT name FROM tea WHERE rid = ?", (1,))
        connection.execute("ALTER TABLE tea ADD COLUMN IF NOT EXISTS kind text")
        connection.commit()
        connection.execute(BEGIN_READ)
        connection.execute("ROLLBACK")
    connection.begin_write(1.0, is_alone=True)
    connection.execute("ROLLBACK")
