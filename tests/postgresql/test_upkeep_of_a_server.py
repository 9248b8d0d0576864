"""What maintenance asks of a server, queries that people type, and tables of programs."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from copied_rows import copy_rows
from postgresql_server import Server
from sqlalchemy import (
    REAL,
    Column,
    Integer,
    LargeBinary,
    Text,
    UniqueConstraint,
)
from sqlalchemy import text as sql_text

from sessiondb import Store, assistant, tool, user
from sessiondb.engine.address import ServerAddress
from sessiondb.errors import (
    InvalidInputError,
    NotFoundError,
    ReadOnlyError,
    SessionDBError,
    UnsupportedError,
)
from sessiondb.extensions import Extension, session_column
from sessiondb.schema.rows import Blob

pytest.importorskip("psycopg")

from sessiondb.engine.postgresql.engine import POSTGRESQL
from sessiondb.engine.postgresql.opening import ensure
from sessiondb.engine.postgresql.target import PostgreSQLDatabase

pytestmark = pytest.mark.slow


@pytest.fixture
def target(address: ServerAddress) -> PostgreSQLDatabase:
    """A database with our tables."""
    ensure(address).close()
    return PostgreSQLDatabase(address)


@pytest.fixture
def connection(target: PostgreSQLDatabase) -> Iterator[Any]:
    with closing(target.connect()) as made:
        yield made


# -- queries that people type --------------------------------------------------


def rows_of(target: PostgreSQLDatabase, sql: str) -> list[Any]:
    with target.query(sql) as cursor:
        return cursor.fetchall()


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT 1, 'x', NULL", [(1, "x", None)]),
        ("  -- why\n/* how */ select 1.5;\n", [(1.5,)]),
        ("WITH a AS (SELECT 1 AS n) SELECT n FROM a", [(1,)]),
        ("VALUES (1), (2)", [(1,), (2,)]),
        ("TABLE session", []),
        ("SELECT true, '2026-01-02'::date, '{\"a\": 1}'::jsonb, '\\x00ff'::bytea",
         [(1, "2026-01-02", '{"a": 1}', b"\0\xff")]),
        ("SELECT '%s', ':x', 'a' LIKE '%'", [("%s", ":x", 1)]),
        ("SELECT count(*) FROM generate_series(1, 3000)", [(3000,)]),
    ],
)  # fmt: skip
def test_a_query_is_answered(
    target: PostgreSQLDatabase, sql: str, rows: list[Any]
) -> None:
    assert rows_of(target, sql) == rows


def test_a_query_names_its_columns_and_streams_its_rows(
    target: PostgreSQLDatabase,
) -> None:
    with target.query(
        "SELECT n AS number FROM generate_series(1, 2500) AS n"
    ) as cursor:
        assert [column[0] for column in cursor.description] == ["number"]
        assert sum(number for (number,) in cursor) == 2500 * 2501 // 2


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM meta",
        "INSERT INTO meta (key, value) VALUES ('a', 'b')",
        "DROP TABLE meta",
        "COPY meta TO PROGRAM 'cat'",
        "SET default_transaction_read_only = off",
        "COMMIT",
        "EXPLAIN ANALYZE DELETE FROM meta",
        "SELECT nextval('meta_rid_seq')",
        "SELECT setval('meta_rid_seq', 9)",
        "SELECT 1 INTO coffee",
    ],
)
def test_a_statement_that_could_write_is_refused(
    target: PostgreSQLDatabase, sql: str
) -> None:
    with pytest.raises((ReadOnlyError, InvalidInputError)):
        rows_of(target, sql)
    assert len(rows_of(target, "SELECT * FROM meta")) == 5


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1; DELETE FROM meta",
        "SELECT 1; COMMIT; DELETE FROM meta",
        "WITH gone AS (DELETE FROM meta RETURNING key) SELECT * FROM gone",
        "SELEKT",
        "SELECT * FROM coffee",
        "SELECT nothing FROM meta",
        "SELECT 1 / 0",
        "SELECT data_json(data) FROM session",
        "",
    ],
)
def test_what_is_not_one_query_is_an_error_with_the_names_of_views(
    target: PostgreSQLDatabase, sql: str
) -> None:
    with pytest.raises(SessionDBError) as caught:
        rows_of(target, sql)
    if isinstance(caught.value, InvalidInputError):
        assert "session_list" in str(caught.value.hint)
    assert len(rows_of(target, "SELECT * FROM meta")) == 5


def test_psql_is_started_with_a_password_in_its_environment_and_can_only_read(
    server: Server, target: PostgreSQLDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(server.programs))
    url = f"{target.address.url}&password=secret"
    shell = PostgreSQLDatabase(ServerAddress(url)).shell()
    assert "secret" not in " ".join(shell.command)
    assert shell.environment == {"PGPASSWORD": "secret"}
    for sql, expected in (("SELECT count(*) FROM meta", "5"), ("DELETE FROM meta", "")):
        done = subprocess.run(
            [*shell.command, "-AtX", "-c", sql],
            check=False,
            capture_output=True,
            text=True,
        )
        assert done.stdout.strip() == expected
    assert "read-only transaction" in done.stderr
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(NotFoundError, match="no psql"):
        target.shell()


# -- facts and maintenance -----------------------------------------------------


def test_a_server_keeps_its_storage_by_itself(connection: Any) -> None:
    upkeep = POSTGRESQL.upkeep
    assert upkeep.damage(connection) == []
    assert upkeep.broken_references(connection) == []
    assert not upkeep.is_of_an_index("x")
    assert not upkeep.is_of_pages("x")
    assert POSTGRESQL.checkpoint(connection)


def test_a_reference_that_the_owner_of_the_server_broke_is_found(
    connection: Any,
) -> None:
    connection.execute("SET session_replication_role = replica")
    connection.execute(
        "INSERT INTO label (family, session_id, seq, label) "
        "VALUES (1, 'ses_a', 1, 'x'), (1, 'ses_a', 2, 'y')"
    )
    connection.execute("SET session_replication_role = origin")
    broken = POSTGRESQL.upkeep.broken_references(connection)
    assert broken == [("label", "message")] * 2


def test_references_of_a_table_of_another_program_are_examined_whatever_its_name(
    connection: Any,
) -> None:
    connection.execute(
        'CREATE TABLE "My notes; 100%" (note TEXT REFERENCES project (id))'
    )
    connection.execute("SET session_replication_role = replica")
    connection.execute("INSERT INTO \"My notes; 100%\" VALUES ('ses_a')")
    connection.execute("SET session_replication_role = origin")
    broken = POSTGRESQL.upkeep.broken_references(connection)
    assert broken == [("My notes; 100%", "project")]


def test_references_to_a_table_are_named(connection: Any) -> None:
    references = POSTGRESQL.upkeep.references_to(connection, "blob")
    assert {("part", "text_blob"), ("message", "data_blob")} <= set(references)
    assert len(references) == 7


def test_a_report_has_settings_versions_and_sizes(connection: Any) -> None:
    upkeep = POSTGRESQL.upkeep
    settings = upkeep.settings(connection)["settings"]
    assert settings["fsync"] == "off"
    assert settings["oldest_transaction_seconds"] >= 0
    assert upkeep.versions().keys() == {"psycopg", "libpq"}
    sizes = upkeep.bytes_by_table(connection)
    assert sizes["session"] > 0
    assert list(sizes.values()) == sorted(sizes.values(), reverse=True)
    assert upkeep.advice({"settings": settings}) == [
        "the server runs without fsync: a power cut can damage the database"
    ]
    assert upkeep.advice({}) == []
    late = {"settings": {"oldest_transaction_seconds": 7300}}
    assert "open for 2 hours" in upkeep.advice(late)[0]


def test_a_server_has_no_files_to_save_rows_from(
    target: PostgreSQLDatabase, tmp_path: Path
) -> None:
    with pytest.raises(UnsupportedError, match="in the hands of its server"):
        target.salvage(tmp_path / "copy.db")


def test_a_connection_for_reading_cannot_write(target: PostgreSQLDatabase) -> None:
    for mode in ("ro", "reader"):
        with closing(target.connect(mode=mode)) as reader:
            with pytest.raises(POSTGRESQL.Error) as caught:
                reader.execute("DELETE FROM meta")
            assert isinstance(POSTGRESQL.translate(caught.value), ReadOnlyError)
    with pytest.raises(InvalidInputError, match="full or normal"):
        target.connect(durability="often")


def test_a_text_replaces_the_compressed_bytes_of_an_equal_content(
    connection: Any,
) -> None:
    def stored() -> list[tuple[str, bytes]]:
        rows: list[tuple[str, bytes]] = connection.execute(
            "SELECT encoding, data FROM blob ORDER BY hash"
        ).fetchall()
        return rows

    POSTGRESQL.insert_blobs(connection, "ses_a", [Blob("b", 3, "utf-8+zlib", b"x")])
    POSTGRESQL.insert_blobs(connection, "ses_a", [Blob("b", 3, "binary", b"no"),
                                                  Blob("a", 9 << 20, "utf-8", b"y" * (9 << 20))])  # fmt: skip
    assert stored() == [("utf-8", b"y" * (9 << 20)), ("utf-8+zlib", b"x")]
    POSTGRESQL.insert_blobs(connection, "ses_a", [Blob("b", 3, "utf-8", b"tea")])
    assert stored()[1] == ("utf-8", b"tea")
    POSTGRESQL.insert_blobs(connection, "ses_a", [])


def test_the_sums_of_rows_are_near_what_the_tables_take(
    target: PostgreSQLDatabase, connection: Any, tmp_path: Path
) -> None:
    pytest.importorskip("sessiondb.engine.postgresql.search_tables")
    with Store.open(tmp_path / "s.db", durability="normal") as store:
        for _ in range(3):
            session = store.create_session(title="tea")
            with store.effects() as fx:
                for number in range(300):
                    fx.append(session, user(f"please {number} " * 9))
                    call = tool("bash", {"cmd": "make"}, output=f"{number} " * 900)
                    fx.append(session, assistant("sure", call), model="m", cost=0.5)
    copy_rows(tmp_path / "s.db", connection)
    connection.execute("VACUUM ANALYZE")
    tables = POSTGRESQL.upkeep.bytes_by_table(connection)
    of_sessions = ("session", "message", "part", "blob", "part_search")
    occupied = sum(tables[name] for name in of_sessions)

    def answered(read: Any) -> Any:
        rows = None
        while True:
            try:
                statement, values = read.send(rows)
            except StopIteration as done:
                return done.value
            rows = connection.execute(statement.text_on(POSTGRESQL), values).fetchall()

    sizes = answered(POSTGRESQL.session_sizes.each())
    assert len(sizes) == 3
    freed, parts = answered(POSTGRESQL.session_sizes.freed(sizes))
    assert parts == 3 * 900
    assert abs(freed / occupied - 1) < 0.3
    assert sum(sizes.values()) <= freed


# -- SQLAlchemy ----------------------------------------------------------------


def test_a_connection_of_sqlalchemy_reads_and_cannot_write(
    target: PostgreSQLDatabase,
) -> None:
    with POSTGRESQL.sqlalchemy(target.connect) as connection:
        count = connection.execute(sql_text("SELECT count(*) FROM meta")).scalar_one()
        assert count == 5
        with pytest.raises(Exception, match="read-only transaction"):
            connection.execute(sql_text("DELETE FROM meta"))


async def test_a_connection_of_sqlalchemy_can_be_awaited(
    target: PostgreSQLDatabase,
) -> None:
    pytest.importorskip("greenlet")
    async with POSTGRESQL.sqlalchemy_async(target.connect) as connection:
        result = await connection.execute(sql_text("SELECT count(*) FROM meta"))
        assert result.scalar_one() == 5


# -- tables of programs --------------------------------------------------------


def graph(version: int = 1, *more: Any, name: str = "step") -> Extension:
    extension = Extension("graph", version=version)
    extension.table(
        name, session_column(), Column("number", Integer, nullable=False),
        Column("cost", REAL), Column("note", Text), Column("state", LargeBinary),
        *more, UniqueConstraint("session_id", "number"),
    )  # fmt: skip
    return extension


def test_a_program_adds_tables_and_later_columns(connection: Any) -> None:
    extensions = POSTGRESQL.extensions
    assert extensions.put(connection, graph(), 1)
    assert not extensions.put(connection, graph(), 2)
    (table,) = extensions.listed(connection)
    assert (table.extension, table.name) == ("graph", "ext_graph_step")
    assert table.columns == ("session_id", "number", "cost", "note", "state")
    assert table.is_of_sessions
    connection.execute(
        "INSERT INTO ext_graph_step (number, cost, note, state, session_id) "
        "SELECT ?, ?, ?, ?, id FROM (SELECT 'x' AS id) AS s WHERE false",
        (1 << 62, 0.1, "Grüße", b"\0"),
    )
    sql = (
        "SELECT data_type, collation_name FROM information_schema.columns "
        "WHERE table_name = 'ext_graph_step' ORDER BY ordinal_position"
    )
    assert connection.execute(sql).fetchall() == [
        ("bigint", None), ("bigint", None), ("text", "C"), ("bigint", None),
        ("double precision", None), ("text", "C"), ("bytea", None),
    ]  # fmt: skip

    later = graph(2, Column("pinned", Integer, server_default="0"))
    assert extensions.put(connection, later, 3)
    (table,) = extensions.listed(connection)
    assert table.columns[-1] == "pinned"
    with pytest.raises(InvalidInputError, match="server_default"):
        extensions.put(connection, graph(3, Column("must", Integer, nullable=False)), 4)


def test_a_name_that_the_server_would_cut_short_is_refused(connection: Any) -> None:
    long = Extension("g" * 40)
    long.table("t" * 40, session_column())
    with pytest.raises(InvalidInputError, match="longer than 63 characters"):
        POSTGRESQL.extensions.put(connection, long, 1)


def test_tables_that_are_not_there_are_named_and_others_left_alone(
    connection: Any,
) -> None:
    extensions = POSTGRESQL.extensions
    extensions.put(connection, graph(), 1)
    connection.execute("CREATE TABLE ext_graph_other (rid bigint PRIMARY KEY)")
    assert [table.name for table in extensions.listed(connection)] == ["ext_graph_step"]
    assert extensions.missing(connection) == []
    connection.execute("DROP TABLE ext_graph_step")
    assert extensions.missing(connection) == [("graph", "ext_graph_step")]


def test_rows_of_sessions_are_removed(connection: Any, tmp_path: Path) -> None:
    with Store.open(tmp_path / "s.db", durability="normal") as store:
        ids = [store.create_session(id=f"ses_{name}").id for name in "abc"]
    copy_rows(tmp_path / "s.db", connection)
    extensions = POSTGRESQL.extensions
    extensions.put(connection, graph(), 1)
    insert = "INSERT INTO ext_graph_step (session_id, number) VALUES (?, 1)"
    connection.executemany(insert, [(session_id,) for session_id in ids])
    extensions.remove_rows(connection, extensions.listed(connection), ids[:2])
    sql = "SELECT session_id FROM ext_graph_step"
    assert connection.execute(sql).fetchall() == [(ids[2],)]
    connection.execute("DELETE FROM session")
    assert connection.execute(sql).fetchall() == []
