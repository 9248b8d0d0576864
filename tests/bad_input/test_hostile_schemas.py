"""A database from a clone or a download may carry code: triggers, views, functions in its schema.

Anything that would run, or change what is read, is refused before first use. Additions of the
user (an index, a view, a table) are welcome.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from sessiondb import ALL, Store, assistant, user
from sessiondb.engine.sqlite.connection import json_is_innocuous
from sessiondb.errors import (
    NotADatabaseError,
    SchemaVersionError,
    UntrustedDatabaseError,
)
from sessiondb.maintenance import check
from sessiondb.maintenance.repair import repair


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "sessions.db"
    with Store.open(path) as store:
        store.append(store.create_session(title="mine"), user("Hello"))
    return path


def _plant(path: Path, *statements: str) -> bytes:
    """Run statements as another program would; return the resulting file."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA writable_schema=ON")
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    return path.read_bytes()


def _rewrite(old: str, new: str, name: str) -> str:
    """Return the statement that changes an object's SQL behind SQLite's back."""
    return (
        f"UPDATE sqlite_schema SET sql = replace(sql, '{old}', '{new}') "
        f"WHERE name = '{name}' AND sql LIKE '%{old}%'"
    )


_HOSTILE = {
    "a trigger on a table": (
        "CREATE TRIGGER spy AFTER INSERT ON part BEGIN "
        "INSERT INTO meta VALUES ('stolen', new.text); END",
    ),
    "a trigger on a view": (
        "CREATE TRIGGER spy INSTEAD OF INSERT ON session_list BEGIN DELETE FROM session; END",
    ),
    "a trigger on a table of its own": (
        "CREATE TABLE own (a)",
        "CREATE TRIGGER spy AFTER INSERT ON own BEGIN DELETE FROM session; END",
    ),
    "a trigger of ours that does more": (
        "DROP TRIGGER session_search_delete",
        "CREATE TRIGGER session_search_delete AFTER DELETE ON session BEGIN "
        "DELETE FROM message; END",
    ),
    "a view of ours that lies": (
        "DROP VIEW session_list",
        "CREATE VIEW session_list AS SELECT 'nothing' AS id",
    ),
    "a search view that shows more": (
        "DROP VIEW part_search_content",
        "CREATE VIEW part_search_content AS SELECT rid, text, input, title, words FROM part",
    ),
    "a search table of other options": (
        "DROP TABLE prompt_search",
        "CREATE VIRTUAL TABLE prompt_search USING fts5(text, tokenize='trigram')",
    ),
    "an index that calls a function": ("CREATE INDEX spy ON part (hex(text))",),
    "an index with a condition that calls one": (
        "CREATE INDEX spy ON part (text) WHERE abs(rid) > 0",
    ),
    "a generated column": (
        "ALTER TABLE message ADD COLUMN planted TEXT GENERATED ALWAYS AS (hex(kind)) VIRTUAL",
    ),
    "a generated column in its short form": (
        "ALTER TABLE message ADD COLUMN planted TEXT AS (hex(kind))",
    ),
    "a default that calls a function": (
        _rewrite("cost REAL", "cost REAL DEFAULT (abs(random()))", "message"),
    ),
    "a check that calls a function": (
        _rewrite("kind TEXT, ", "kind TEXT CHECK (hex(kind) > 0), ", "message"),
    ),
    "a function behind a comment": (
        _rewrite("kind TEXT, ", "kind TEXT CHECK (hex/**/(kind) > 0), ", "message"),
    ),
    "a function in quotes on another line": (
        _rewrite(
            "kind TEXT, ",
            'kind TEXT CHECK ("hex"' + "\n\n" + "(kind) > 0), ",
            "message",
        ),
    ),
}
#: Other tables, or less than we make: nothing in them runs or lies.
_OF_ANOTHER_RELEASE = {
    "a trigger of ours that is gone": ("DROP TRIGGER part_search_delete",),
    "a view of ours that is gone": ("DROP VIEW transcript",),
    "a view in the place of a table": (
        "ALTER TABLE label RENAME TO hidden",
        "CREATE VIEW label AS SELECT * FROM hidden",
    ),
    "a table that lost a column": ("ALTER TABLE session DROP COLUMN share_url",),
    "a table that gained one": ("ALTER TABLE session ADD COLUMN planted TEXT",),
    "a column of another type": (_rewrite("cost REAL", "cost TEXT", "message"),),
    "a table that is gone": ("DROP TABLE lease",),
}


@pytest.mark.slow
@pytest.mark.parametrize("read_only", [False, True], ids=["write", "read"])
@pytest.mark.parametrize("what", _OF_ANOTHER_RELEASE)
def test_a_schema_that_is_not_ours_is_refused_as_that_of_another_release(
    path: Path, what: str, read_only: bool
) -> None:
    changed = _plant(path, *_OF_ANOTHER_RELEASE[what])
    with pytest.raises(SchemaVersionError, match="another schema") as raised:
        Store.open(path, read_only=read_only)
    assert str(path) in str(raised.value)
    assert path.read_bytes() == changed


@pytest.mark.slow
@pytest.mark.parametrize("read_only", [False, True], ids=["write", "read"])
@pytest.mark.parametrize("what", _HOSTILE)
def test_a_schema_with_something_planted_is_refused_before_first_use(
    path: Path, what: str, read_only: bool
) -> None:
    planted = _plant(path, *_HOSTILE[what])
    with pytest.raises(UntrustedDatabaseError) as raised:
        Store.open(path, read_only=read_only)
    assert isinstance(raised.value, NotADatabaseError)
    assert path.read_bytes() == planted


def test_a_persons_own_index_view_and_table_are_welcome(path: Path) -> None:
    _plant(
        path,
        "CREATE INDEX mine ON message (model_id, cost) WHERE cost IS NOT NULL",
        'CREATE INDEX "my parts" ON part (tool, status)',
        "CREATE VIEW expensive AS SELECT title, cost FROM session WHERE cost > 1",
        "CREATE VIEW shouting AS SELECT upper(title) AS title FROM session",
        "CREATE TABLE notes (session_id TEXT, note TEXT DEFAULT (upper('x')))",
        "CREATE INDEX notes_by ON notes (lower(note))",
        "CREATE VIRTUAL TABLE my_search USING fts5(note)",
        "INSERT INTO notes VALUES ('ses_1', 'remember')",
        "ANALYZE",
    )
    with Store.open(path) as store:
        session = store.sessions(project=ALL).items[0]
        store.append(session, assistant("Answer"), model="large", cost=2.0)
        fork = store.fork(session)
        store.delete(fork)
        store.reap()
        assert store.search("Answer").items
        assert check(store) == []
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT * FROM expensive").fetchall() == [
            ("mine", 2.0)
        ]
        assert connection.execute("SELECT note FROM notes").fetchall() == [
            ("remember",)
        ]


def test_a_schema_is_not_trusted_where_this_sqlite_can_do_without(path: Path) -> None:
    with Store.open(path) as store:
        store.create_session()
        for connection in (
            store._core.writer.connection.inner,
            store._core.connect_reader(),
        ):
            assert connection is not None
            trusted = connection.execute("PRAGMA trusted_schema").fetchone()[0]
            assert trusted == (0 if json_is_innocuous() else 1)
        connection.close()


@pytest.mark.parametrize("has_written", [False, True])
def test_a_trigger_planted_while_a_store_is_open_never_runs(
    path: Path, has_written: bool
) -> None:
    with Store.open(path) as store:
        (session,) = store.sessions(project=ALL)
        if has_written:
            store.append(session, user("before"))
        _plant_only(
            path, "CREATE TRIGGER spy AFTER INSERT ON part BEGIN DELETE FROM meta; END"
        )
        for write in (
            lambda: store.append(session, user("after")),
            lambda: store.create_session(title="after"),
        ):
            with pytest.raises(UntrustedDatabaseError, match="spy"):
                write()
        assert len(store.messages(session)) == 1 + has_written
        _plant_only(path, "DROP TRIGGER spy")
        store.append(session, user("after"))
        assert check(store) == []


def test_a_repair_does_not_run_a_trigger_that_was_planted_before_it(path: Path) -> None:
    with Store.open(path) as store:
        _plant_only(path, "UPDATE session SET message_count = 9")
        findings = check(store)
        _plant_only(
            path,
            "CREATE TRIGGER spy AFTER UPDATE ON session BEGIN DELETE FROM meta; END",
        )
        with pytest.raises(UntrustedDatabaseError, match="spy"):
            repair(store, findings)
    assert _counts(path) == [(9,)]


def _counts(path: Path) -> list[tuple[int]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT message_count FROM session").fetchall()


def test_an_index_that_a_person_adds_while_a_store_is_open_is_welcome(
    path: Path,
) -> None:
    with Store.open(path) as store:
        (session,) = store.sessions(project=ALL)
        store.append(session, user("before"))
        _plant_only(path, "CREATE INDEX mine ON message (model_id)")
        store.append(session, user("after"))
        assert len(store.messages(session)) == 3


def _plant_only(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
        connection.commit()


def test_a_read_connection_cannot_be_made_to_write(path: Path) -> None:
    with Store.open(path) as store, store.connection() as connection:
        for statement in (
            "DELETE FROM session",
            "CREATE TABLE t (a)",
            "PRAGMA user_version=9",
        ):
            with pytest.raises(
                Exception, match=r"readonly|query_only|attempt to write"
            ):
                connection.exec_driver_sql(statement)
    assert Store.open(path).sessions(project=ALL).items


@pytest.mark.parametrize("encoding", ["UTF-16le", "UTF-16be"])
def test_an_empty_file_in_another_encoding_is_not_taken(
    tmp_path: Path, encoding: str
) -> None:
    path = tmp_path / "sessions.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA encoding='{encoding}'")
        connection.execute("CREATE TABLE t (a)")
        connection.execute("DROP TABLE t")
        connection.commit()
    before = path.read_bytes()
    with pytest.raises(NotADatabaseError):
        Store.open(path)
    assert path.read_bytes() == before
