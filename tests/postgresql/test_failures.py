"""Each error of the server is one of ours, whatever the text of its message."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

import pytest
from postgresql_server import Server

from sessiondb import Store, assistant
from sessiondb.engine.address import ServerAddress
from sessiondb.errors import (
    AccessError,
    BusyError,
    ConflictError,
    CorruptionError,
    InvalidInputError,
    NotADatabaseError,
    NotFoundError,
    ReadOnlyError,
    SessionDBError,
    StorageError,
    StorageFullError,
    StoreClosedError,
    UnavailableError,
)

psycopg = pytest.importorskip("psycopg")

from sessiondb.engine.postgresql import failures  # noqa: E402
from sessiondb.engine.postgresql.connecting import connect  # noqa: E402
from sessiondb.engine.postgresql.connection import BEGIN_READ  # noqa: E402

pytestmark = pytest.mark.slow
SCHEMA = """
CREATE TABLE alembic_version AS SELECT '0001' AS version_num;
CREATE TABLE meta AS SELECT 'changed_families' AS key, '0' AS value;
CREATE TABLE tea (rid bigint PRIMARY KEY, name text NOT NULL CHECK (name <> 'coffee'));
CREATE TABLE cup (rid bigint PRIMARY KEY, tea bigint REFERENCES tea (rid));
INSERT INTO tea VALUES (1, 'assam');
"""


@pytest.fixture
def connection(server: Server, database: str) -> Any:
    assert server.run(f"\\c {database}\n{SCHEMA}") == ""
    made = connect(ServerAddress(server.url(database)))
    yield made
    made.close()


def error_of(run: Callable[[], Any]) -> Any:
    with pytest.raises(psycopg.Error) as caught:
        run()
    return caught.value


@pytest.mark.parametrize(
    ("sql", "state", "ours"),
    [
        ("INSERT INTO tea VALUES (1, 'x')", "23505", ConflictError),
        ("INSERT INTO cup VALUES (1, 9)", "23503", NotFoundError),
        ("INSERT INTO tea VALUES (2, 'coffee')", "23514", InvalidInputError),
        ("INSERT INTO tea VALUES (2, NULL)", "23502", InvalidInputError),
        ("SELECT 1 / 0", "22012", InvalidInputError),
        ("SELECT '{'::json", "22P02", InvalidInputError),
        ("SELECT convert_from('\\xff', 'UTF8')", "22021", InvalidInputError),
        ("SELECT repeat(repeat('x', 1 << 20), 1 << 12)", "54000", InvalidInputError),
        ("SELECT * FROM coffee", "42P01", NotADatabaseError),
        ("SELECT * FROM no_schema.coffee", "42P01", NotADatabaseError),
        ("CREATE TABLE no_schema.coffee ()", "3F000", NotADatabaseError),
        ("SELECT no_such_function()", "42883", SessionDBError),
        ("SELEKT", "42601", SessionDBError),
        ("SET ROLE nobody", "22023", InvalidInputError),
    ],
)
def test_the_error_of_a_statement_is_one_of_ours(
    connection: Any, sql: str, state: str, ours: type[SessionDBError]
) -> None:
    error = error_of(lambda: connection.execute(sql))
    assert error.sqlstate == state
    translated = failures.translate(error)
    assert type(translated) is ours
    assert not failures.is_gone(error)
    assert failures.must_repeat(error) == (state == "23505")
    assert "\n" not in str(translated)


def test_a_key_that_another_session_took_has_the_unit_look_again_but_not_a_program(
    connection: Any,
) -> None:
    connection.execute("CREATE TABLE blob (hash TEXT CONSTRAINT uq_blob_hash UNIQUE)")
    connection.execute(
        "CREATE TABLE ext_x_y (k INT UNIQUE, "
        "b TEXT CONSTRAINT fk_ext_x_y_text_blob REFERENCES blob (hash))"
    )
    connection.execute("INSERT INTO ext_x_y VALUES (1)")
    taken = error_of(lambda: connection.execute("INSERT INTO ext_x_y VALUES (1)"))
    assert (taken.sqlstate, failures.must_repeat(taken)) == ("23505", False)
    gone = error_of(lambda: connection.execute("INSERT INTO ext_x_y VALUES (2, 'h')"))
    assert (gone.sqlstate, failures.must_repeat(gone)) == ("23503", True)


def test_a_lock_that_another_session_keeps_is_busy(
    connection: Any, server: Server, database: str
) -> None:
    other = connect(ServerAddress(server.url(database)))
    other.begin_write(1.0)
    other.execute("UPDATE tea SET name = 'x'")
    other.settle()
    connection.begin_write(0.05)
    error = error_of(lambda: connection.execute("UPDATE tea SET name = 'y'").rowcount)
    assert error.sqlstate == "55P03"
    assert type(failures.translate(error)) is BusyError
    other.close()


def test_a_statement_that_the_server_cancels_is_busy(connection: Any) -> None:
    connection.execute("SET statement_timeout = 20")
    error = error_of(lambda: connection.execute("SELECT pg_sleep(9)"))
    assert error.sqlstate == "57014"
    assert type(failures.translate(error)) is BusyError
    assert not failures.is_gone(error)


def test_a_read_that_would_write_is_read_only(connection: Any) -> None:
    connection.execute(BEGIN_READ)
    error = error_of(lambda: connection.execute("DELETE FROM cup").rowcount)
    assert error.sqlstate == "25006"
    assert type(failures.translate(error)) is ReadOnlyError


def test_a_role_without_the_right_is_refused(connection: Any) -> None:
    connection.execute("CREATE ROLE guest")
    try:
        connection.execute("SET ROLE guest")
        error = error_of(lambda: connection.execute("SELECT * FROM tea"))
        assert error.sqlstate == "42501"
        assert type(failures.translate(error)) is AccessError
    finally:
        connection.execute("RESET ROLE")
        connection.execute("DROP ROLE guest")


def test_a_transaction_that_is_given_up_for_another_one_is_repeated(
    connection: Any, server: Server, database: str
) -> None:
    connection.execute("INSERT INTO tea VALUES (2, 'darjeeling')")
    other = connect(ServerAddress(server.url(database)))
    update = "UPDATE tea SET name = name WHERE rid = ?"
    for one, rid in ((connection, 1), (other, 2)):
        one.begin_write(9.0)
        one.execute(update, (rid,))
        one.settle()

    outcomes = []

    def cross(one: Any, rid: int) -> None:
        try:
            one.execute(update, (rid,))
            one.settle()
        except psycopg.Error as error:
            outcomes.append(error)
        one.execute("ROLLBACK")

    thread = threading.Thread(target=cross, args=(other, 1))
    thread.start()
    cross(connection, 2)
    thread.join()
    (error,) = outcomes
    assert error.sqlstate == "40P01"
    assert failures.must_repeat(error)
    assert type(failures.translate(error)) is BusyError
    other.close()


def test_a_row_that_changed_since_the_snapshot_is_repeated(
    connection: Any, server: Server, database: str
) -> None:
    other = connect(ServerAddress(server.url(database)))
    connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    connection.execute("SELECT * FROM tea").fetchall()
    other.execute("UPDATE tea SET name = 'x'")
    error = error_of(lambda: connection.execute("UPDATE tea SET name = 'y'").rowcount)
    assert error.sqlstate == "40001"
    assert failures.must_repeat(error)
    other.close()


@pytest.mark.parametrize(
    ("timeout", "state"),
    [
        ("idle_in_transaction_session_timeout", "25P03"),
        ("idle_session_timeout", "57P05"),
    ],
)
def test_a_session_that_the_server_ended_for_being_idle_is_gone(
    connection: Any, timeout: str, state: str
) -> None:
    if state == "25P03":
        connection.execute("BEGIN")
    connection.execute(f"SET {timeout} = 1").fetchall()
    threading.Event().wait(0.2)
    error = error_of(lambda: connection.execute("SELECT 1").fetchall())
    # The last message of the server may be lost with the connection.
    assert error.sqlstate in (state, None)
    assert failures.is_gone(error)
    assert type(failures.translate(error)) is UnavailableError


@pytest.mark.parametrize(
    ("state", "ours"),
    [
        ("08006", UnavailableError),
        ("28P01", AccessError),
        ("3D000", NotADatabaseError),
        ("40001", BusyError),
        ("53100", StorageFullError),
        ("53200", BusyError),
        ("53300", BusyError),
        ("57P03", UnavailableError),
        ("58030", StorageError),
        ("XX000", SessionDBError),
        ("XX001", CorruptionError),
        ("XX002", CorruptionError),
    ],
)
def test_an_error_that_no_test_can_provoke_has_its_state(
    state: str, ours: type[SessionDBError]
) -> None:
    error = psycopg.errors.lookup(state)("message")
    assert type(failures.translate(error)) is ours
    assert failures.is_gone(error) is (ours is UnavailableError)


def test_an_error_of_the_driver_is_told_by_its_class() -> None:
    for error, ours in (
        (failures.ConnectionClosedError("closed"), StoreClosedError),
        (psycopg.OperationalError("the connection is closed"), UnavailableError),
        (psycopg.DataError("bad"), InvalidInputError),
        (psycopg.ProgrammingError("cannot adapt type"), SessionDBError),
    ):
        assert type(failures.translate(error)) is ours


# -- connections that are refused ----------------------------------------------


def refused(address: ServerAddress) -> Any:
    with pytest.raises(SessionDBError) as caught:
        connect(address)
    shown = f"{caught.value} {caught.value.hint}"
    assert "secret" not in shown
    assert "\n" not in shown
    return caught.value


def test_a_server_that_does_not_answer_is_unavailable(tmp_path: Any) -> None:
    for url in (
        "postgresql://ada:secret@127.0.0.1:1/tea",
        f"postgresql:///tea?host={tmp_path}&password=secret",
    ):
        assert type(refused(ServerAddress(url))) is UnavailableError


def test_a_database_that_does_not_exist_is_named(server: Server) -> None:
    error = refused(ServerAddress(server.url("coffee")))
    assert type(error) is NotFoundError
    assert "no database coffee" in str(error)
    assert error.hint == "create it: `createdb coffee`"


def test_a_database_that_the_role_may_not_use_is_refused(
    server: Server, database: str
) -> None:
    role = f"guest_of_{database}"
    server.run(
        f"CREATE ROLE {role} LOGIN; REVOKE CONNECT ON DATABASE {database} FROM PUBLIC"
    )
    address = ServerAddress(
        server.url(database).replace("user=sessiondb", f"user={role}")
    )
    try:
        assert type(refused(address)) is AccessError
    finally:
        server.run(f"DROP ROLE {role}")


def test_a_database_with_too_many_connections_is_busy(
    server: Server, database: str
) -> None:
    role = f"guest_of_{database}"
    server.run(
        f"CREATE ROLE {role} LOGIN; ALTER DATABASE {database} CONNECTION LIMIT 0"
    )
    address = ServerAddress(
        server.url(database).replace("user=sessiondb", f"user={role}")
    )
    try:
        assert type(refused(address)) is BusyError
    finally:
        server.run(f"DROP ROLE {role}")


def test_a_wrong_or_missing_password_is_refused(server: Server, database: str) -> None:
    server.run("CREATE ROLE sworn LOGIN PASSWORD 'right'")
    url = server.url(database).replace("user=sessiondb", "user=sworn")
    try:
        connect(ServerAddress(f"{url}&password=right")).close()
        for refused_url in (url, f"{url}&password=secret"):
            error = refused(ServerAddress(refused_url))
            assert type(error) is AccessError
            assert error.hint == "check the role and its password"
    finally:
        server.run("DROP ROLE sworn")


def test_a_role_that_the_server_does_not_take_says_so(
    server: Server, database: str
) -> None:
    address = ServerAddress(
        server.url(database).replace("user=sessiondb", "user=nobody")
    )
    error = refused(address)
    assert type(error) is UnavailableError
    assert "nobody" in str(error)
    assert error.hint is not None
    assert "this role" in error.hint


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("cost", (1.7e308, -1e300, math.inf, math.nan)),
        ("tokens_input", (1 << 53, -(1 << 62))),
        ("tokens_cache_write", ((1 << 63) - 1,)),
    ],
)
def test_numbers_whose_sums_overflow_are_refused(
    server: Server, database: str, column: str, values: tuple[float, ...]
) -> None:
    with Store.open(server.url(database)) as store:
        store.append(store.create_session(directory="/tmp"), assistant("x"), cost=1.0)
    with psycopg.connect(server.url(database)) as other:
        for value in values:
            with pytest.raises(psycopg.errors.CheckViolation), other.transaction():
                other.execute(f"UPDATE message SET {column} = %s", [value])
