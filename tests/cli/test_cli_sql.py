from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Run, Story

from sessiondb import Store, part, user
from sessiondb.engine.sqlite.views import VIEW_NAMES

pytestmark = pytest.mark.slow

READING = [
    "SELECT id FROM session_list",
    "WITH x AS (SELECT 1 AS n) SELECT n FROM x",
    "SELECT count(*) FROM transcript, tool_call, usage_by_day, usage_by_model, session_tree",
    "SELECT count(*) FROM part_search WHERE part_search MATCH 'lexer'",
    "SELECT value FROM json_each('[1,2]')",
    "PRAGMA table_info(session)",
    "PRAGMA user_version",
    "EXPLAIN QUERY PLAN SELECT * FROM session",
]
WRITING = [
    "DELETE FROM session",
    "UPDATE session SET title = 'x'",
    "INSERT INTO meta (key, value) VALUES ('a', 'b')",
    "DROP TABLE session",
    "CREATE TABLE mine (a)",
    "CREATE TEMP TABLE mine (a)",
    "ATTACH 'other.db' AS other",
    "VACUUM",
    "VACUUM INTO 'other.db'",
    "PRAGMA user_version = 7",
    "PRAGMA journal_mode = DELETE",
    "PRAGMA query_only = OFF",
    "PRAGMA writable_schema = ON",
    "PRAGMA wal_checkpoint",
    "INSERT INTO part_search (part_search) VALUES ('rebuild')",
    "BEGIN",
]


def test_statements_that_read_are_allowed(sessiondb: Run, story: Story) -> None:
    for query in READING:
        ran = sessiondb("sql", query)
        assert (ran.code, ran.err) == (0, ""), query
        assert ran.out


def test_statements_that_write_are_refused(
    sessiondb: Run, story: Story, project: Path
) -> None:
    for query in WRITING:
        ran = sessiondb("sql", query)
        assert (ran.code, ran.out) == (1, ""), query
        assert ran.err.startswith("sessiondb: sql only reads")
    assert list(project.iterdir()) == []
    assert len(sessiondb("list", "-a", "--json").json["sessions"]) == 3


def test_rows_are_objects_as_json_and_lines_in_a_pipe(
    sessiondb: Run, story: Story
) -> None:
    query = "SELECT id, title, cost, NULL AS none FROM session_list ORDER BY id LIMIT 1 OFFSET 3"
    expected = {
        "id": story.parser,
        "title": "Fix the parser",
        "cost": 0.25,
        "none": None,
    }
    assert sessiondb("sql", query, "--json").json == [expected]
    assert sessiondb("sql", query).lines == [
        [story.parser, "Fix the parser", "0.25", ""]
    ]


def test_no_row_is_an_empty_list(sessiondb: Run) -> None:
    ran = sessiondb("sql", "SELECT id FROM session", "--json")
    assert (ran.code, ran.json) == (0, [])
    assert sessiondb("sql", "SELECT id FROM session").out == ""


def test_columns_of_the_same_name_are_all_written(sessiondb: Run) -> None:
    query = "SELECT 1 AS a, 2 AS a, 3 AS a_2, 4 AS a"
    assert sessiondb("sql", query, "--json").json == [
        {"a": 1, "a_2": 2, "a_2_2": 3, "a_3": 4}
    ]


def test_null_and_bytes_differ_from_text(sessiondb: Run) -> None:
    query = "SELECT x'00ff' AS raw, CAST(x'ff' AS TEXT) AS torn, 'a' || char(27) || char(9) AS t"
    (row,) = sessiondb("sql", query, "--json").json
    assert row == {"raw": {"base64": "AP8="}, "torn": "\udcff", "t": "a\x1b\t"}
    assert sessiondb("sql", query).out == "00ff\t\\udcff\ta\\x1b\\t\n"


def test_data_is_shown_as_json(sessiondb: Run, store: Store) -> None:
    session = store.create_session()
    data = {"meta": True, "raw": b"\x00", "far": float("inf"), "torn": "\ud800é"}
    store.append(session, user(part("note", **data)))
    store.append(session, user("plain"))
    query = "SELECT data_json(data) AS shown FROM part ORDER BY seq"
    stored, none = sessiondb("sql", query, "--json").json
    shown = json.loads(stored["shown"])
    assert shown == {**data, "raw": {"base64": "AA=="}, "far": None}
    assert none["shown"] is None
    query = "SELECT seq FROM part WHERE data_json(data) ->> 'meta'"
    assert sessiondb("sql", query).lines == [["1"]]


def test_large_data_is_shown_as_json(sessiondb: Run, store: Store) -> None:
    session = store.create_session()
    store.append(session, user("hello", record="line\n" * 500))
    query = "SELECT data_json(b.data) AS shown FROM message JOIN blob AS b ON hash = data_blob"
    (row,) = sessiondb("sql", query, "--json").json
    assert json.loads(row["shown"]) == {"record": "line\n" * 500}


@pytest.mark.parametrize("value", ["'text'", "7", "x'c1'", "x'01'", "x'78'"])
def test_what_is_no_data_is_exit_2(sessiondb: Run, value: str) -> None:
    ran = sessiondb("sql", f"SELECT data_json({value})")
    assert (ran.code, ran.out) == (2, "")
    assert "SQL: data_json: " in ran.err
    assert "the column data" in ran.err


@pytest.mark.parametrize("query", ["SELEC 1", "SELECT nothing", "SELECT 1; SELECT 2"])
def test_an_invalid_query_is_exit_2(sessiondb: Run, query: str) -> None:
    ran = sessiondb("sql", query)
    assert (ran.code, ran.out) == (2, "")
    assert "session_list" in ran.err, "the hint names what can be asked"


def test_help_names_every_view(sessiondb: Run) -> None:
    words = sessiondb("sql", "--help").out.replace(",", " ").split()
    named = words[words.index("views") + 1 : words.index("A")]
    assert named == [*VIEW_NAMES[:-1], "and", f"{VIEW_NAMES[-1]}."]


def test_a_terminal_gets_a_table(terminal: Run, story: Story) -> None:
    shown = terminal("sql 'SELECT title, message_count FROM session_list'", width=40)
    assert "message_count" in shown.out.splitlines()[0]
    assert all(len(line) <= 40 for line in shown.out.splitlines()[1:])


def test_sql_without_a_query_opens_the_shell(
    process: Run,
    sessiondb: Run,
    story: Story,
    sqlite3_shell: str,
) -> None:
    asked = b"SELECT count(*) FROM session;\nDELETE FROM session;\n"
    ran = process("sql", input=asked)
    assert ran.out.strip() == "4"
    assert "readonly" in ran.err
    assert sessiondb("list", "-a", "--json").json["sessions"]


def test_sql_without_an_installed_shell_reports_it(
    sessiondb: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    ran = sessiondb("sql")
    assert ran.code == 3
    assert "sqlite3" in ran.err
