"""The views, as a user with a plain ``sqlite3`` shell sees them."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from foreign_sessions import T0, said, session_of, take_in

from sessiondb import (
    PartDraft,
    Store,
    assistant,
    context_source,
    event,
    tool,
    tool_result,
    user,
)
from sessiondb.engine.sqlite.views import VIEW_NAMES
from sessiondb.model import MessageDraft

Ask = Callable[[str], list[dict[str, Any]]]


@pytest.fixture
def ask(store: Store, sqlite3_shell: str) -> Ask:
    """Ask the shell a question and return its rows."""

    def run(sql: str) -> list[dict[str, Any]]:
        command = [sqlite3_shell, "-readonly", "-json", str(store.path), sql]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found: list[dict[str, Any]] = json.loads(done.stdout or "[]")
        return found

    return run


def talk(store: Store) -> str:
    with store.effects() as fx:
        session = fx.create_session(title="Build", directory="/", agent="build")
        fx.append(session, user("please"), time=T0)
        call = tool(
            "bash", {"cmd": "make"}, call_id="c", output="x" * 5000, title="Make"
        )
        fx.append(session, assistant("sure", call), model="m", provider="p", cost=0.5,
                  tokens={"input": 3, "cache_read": 4}, time=T0)  # fmt: skip
    return session.id


def test_session_list_shows_what_a_list_shows_and_times_a_person_can_read(
    store: Store, ask: Ask
) -> None:
    session = talk(store)
    (row,) = ask("SELECT * FROM session_list")
    assert (row["id"], row["title"], row["project"]) == (session, "Build", "/")
    assert (row["message_count"], row["cost"], row["tokens"]) == (2, 0.5, 7)
    assert row["created"][:2] == "20"
    assert row["archived"] is None
    assert row["time_updated"] == store.session(session).time_updated


def test_transcript_is_a_readable_row_per_part_with_large_values_resolved(
    store: Store, ask: Ask
) -> None:
    session = talk(store)
    rows = ask(
        f"SELECT * FROM transcript WHERE session_id = '{session}' ORDER BY seq, idx"
    )
    shown = [
        (row["seq"], row["role"], row["type"], row["tool"], row["text"]) for row in rows
    ]
    assert shown == [
        (1, "user", "text", None, "please"),
        (2, "assistant", "text", None, "sure"),
        (2, "assistant", "tool", "bash", "x" * 5000),
    ]
    assert rows[2]["input"] == '{"cmd":"make"}'
    assert rows[0]["time"] == "2023-11-14 22:13:20"


def test_a_large_text_is_readable_beside_a_record_that_is_compressed(
    store: Store, ask: Ask
) -> None:
    lines = "a line of a file\n" * 200
    session = store.create_session()
    store.append(session, user(lines, record=lines))
    assert ask("SELECT text FROM transcript") == [{"text": lines}]


def test_transcript_and_tool_call_show_results_that_are_records_of_their_own(
    store: Store, ask: Ask
) -> None:
    session = store.create_session()
    store.append(
        session, assistant(tool("bash", {}, call_id="1"), tool("bash", {}, call_id="2"))
    )
    store.append(
        session,
        MessageDraft("tool", (tool_result("1", "one"), tool_result("2", "two"))),
    )
    rows = ask("SELECT type, text FROM transcript ORDER BY seq, idx")
    assert [row["text"] for row in rows] == ["one", "two", "one", "two"]
    store.append(session, MessageDraft("tool", (tool_result("1", "again"),)))
    rows = ask("SELECT call_id, status, output FROM tool_call ORDER BY idx")
    assert [tuple(row.values()) for row in rows] == [
        ("1", "completed", "again"),
        ("2", "completed", "two"),
    ]


def test_results_of_other_branches_and_of_other_calls_are_not_mixed_in(
    store: Store, ask: Ask
) -> None:
    session = store.create_session()
    for output in ("one", "two"):
        store.append(session, assistant(tool("bash", {}, call_id="call_0")))
        store.append(session, MessageDraft("tool", (tool_result("call_0", output),)))
    store.append(
        session, MessageDraft("tool", (tool_result("call_0", "elsewhere"),)), after=3
    )
    store.set_leaf(session, 4)
    rows = ask("SELECT text FROM transcript WHERE seq < 5 ORDER BY seq")
    assert [row["text"] for row in rows] == ["one", "one", "two", "two"]
    assert [row["output"] for row in ask("SELECT * FROM tool_call")] == ["one", "two"]


def test_a_transcript_costs_what_is_shown_and_not_its_square(store: Store) -> None:
    session = talk(store)
    for view in ("transcript", "tool_call"):
        sql = f"EXPLAIN QUERY PLAN SELECT * FROM {view} WHERE session_id = '{session}'"
        with closing(sqlite3.connect(store.path)) as connection:
            plan = [row[3] for row in connection.execute(sql)]
        assert (
            "SEARCH r USING INDEX ix_part_result (session_id=? AND call_id=?)" in plan
        )
        scans = {step for step in plan if step.startswith("SCAN")}
        assert scans <= {"SCAN path", "SCAN CONSTANT ROW"}


def test_tool_call_says_how_long_and_how_it_ended(store: Store, ask: Ask) -> None:
    session = talk(store)
    store.append(session, assistant(tool("edit", {}, call_id="d")), open=True)
    store.start(session, "d")
    store.settle(session, "d", error="no such file")
    rows = ask("SELECT * FROM tool_call ORDER BY seq")
    assert [(row["tool"], row["status"], row["outcome"]) for row in rows] == [
        ("bash", "completed", None),
        ("edit", "error", "failed"),
    ]
    assert (rows[0]["title"], rows[0]["input"]) == ("Make", '{"cmd":"make"}')
    assert rows[1]["output"] == "no such file"
    assert rows[1]["seconds"] >= 0


def test_tool_call_names_the_file_under_whichever_key_the_agent_has_it(
    store: Store, ask: Ask
) -> None:
    session = store.create_session(directory="/tmp")
    keys = ("filePath", "file_path", "path", "notebook_path", "absolute_path")
    named = [tool("edit", {key: f"a/{key}", "new": "x"}) for key in keys]
    large = tool("write", {"path": "large", "content": "x" * 5000})
    odd = [tool("odd", given) for given in ({}, [], "path", 7, None, {"path": None})]
    store.append(session, assistant(*named, large, *odd, tool("bash")))
    rows = ask("SELECT path, directory FROM tool_call ORDER BY idx")
    expected = [*(f"a/{key}" for key in keys), "large", *[None] * (len(odd) + 1)]
    assert [row["path"] for row in rows] == expected
    assert {row["directory"] for row in rows} == {store.session(session).directory}
    with closing(sqlite3.connect(store.path)) as connection, connection:
        connection.execute("UPDATE blob SET data = CAST('{' AS BLOB)")
    assert len(ask("SELECT path FROM tool_call")) == len(rows)


def test_context_source_lists_the_context_given_to_a_model(
    store: Store, ask: Ask
) -> None:
    session = store.create_session(directory="/tmp")
    stated = context_source("file", "AGENTS.md", scope="project", hash="ab",
                            truncated=True, error="too large", text="x" * 5000)  # fmt: skip
    store.append(
        session, event("context", stated, context_source(title="notes")), time=T0
    )
    odd = [
        PartDraft("source", input=given)
        for given in ([], "path", 7, None, {"path": ["a"]})
    ]
    store.append(session, event("context", *odd, PartDraft("source")))
    first, second, *others = ask("SELECT * FROM context_source ORDER BY seq, idx")
    names = (
        "session_id seq idx kind path scope hash truncated error text time source title"
    )
    assert [first[name] for name in names.split()] == [
        session.id, 1, 0, "file", "AGENTS.md", "project", "ab", 1, "too large", "x" * 5000,
        "2023-11-14 22:13:20", "sessiondb", "AGENTS.md",
    ]  # fmt: skip
    assert (second["title"], second["path"], second["text"]) == ("notes", None, None)
    assert [row["path"] for row in others] == [None, None, None, None, '["a"]', None]
    with closing(sqlite3.connect(store.path)) as connection, connection:
        large = context_source("file", "x" * 5000)
        store.append(session, event("context", large))
        connection.execute("UPDATE blob SET data = CAST('{' AS BLOB)")
    assert len(ask("SELECT kind FROM context_source")) == len(others) + 3


def test_usage_views_count_once_and_leave_unknown_unknown(
    store: Store, ask: Ask
) -> None:
    session = talk(store)
    store.fork(session)
    take_in(store, session_of("s", said("m", tokens=9, at=86_400_000)))
    days = ask(
        "SELECT day, source, model_id, messages, cost, tokens_input FROM usage_by_day"
    )
    assert [tuple(row.values()) for row in days] == [
        ("2023-11-14", "sessiondb", "m", 1, 0.5, 3),
        ("2023-11-15", "elsewhere", None, 1, None, 9),
    ]
    models = ask(
        "SELECT model_id, sessions, messages, cost FROM usage_by_model ORDER BY 1"
    )
    assert [tuple(row.values()) for row in models] == [
        (None, 1, 1, None),
        ("m", 1, 1, 0.5),
    ]


def test_session_tree_shows_families_from_the_top(store: Store, ask: Ask) -> None:
    session = talk(store)
    fork = store.fork(session)
    helper = store.create_session(parent=fork, title="helper")
    rows = ask(
        "SELECT depth, id, title, relation, root_id FROM session_tree ORDER BY path"
    )
    assert [tuple(row.values()) for row in rows] == [
        (0, session, "Build", None, session),
        (1, fork.id, "  Build (fork #1)", "fork", session),
        (2, helper.id, "    helper", "subagent", session),
    ]


def test_no_view_shows_what_was_deleted(store: Store, ask: Ask) -> None:
    store.delete(talk(store))
    for view in VIEW_NAMES:
        assert ask(f"SELECT * FROM {view}") == [], view


@pytest.mark.slow
def test_the_search_index_can_be_queried_in_the_shell_once_the_writer_rests(
    store: Store, ask: Ask
) -> None:
    session = talk(store)
    waiting = ask("SELECT text FROM part_search_waiting WHERE text LIKE '%please%'")
    assert waiting == [{"text": "please"}]

    rows: list[dict[str, Any]] = []
    deadline = time.monotonic() + 10
    while not rows and time.monotonic() < deadline:
        time.sleep(0.1)
        rows = ask(
            "SELECT p.session_id, p.seq FROM part_search AS f "
            "JOIN part AS p ON p.rid = f.rowid WHERE part_search MATCH 'please'"
        )
    assert rows == [{"session_id": session, "seq": 1}]
    assert ask("SELECT * FROM part_search_waiting") == []


def test_a_session_without_a_directory_is_shown_with_none(store: Store) -> None:
    with store.effects() as fx:
        session = fx.create_session(directory=None, title="Of a server")
        call = tool("edit", {"path": "a.py"}, call_id="c", output="done")
        fx.append(session, assistant("word", call), cost=1.0)
    with closing(sqlite3.connect(store.path)) as shell:
        assert shell.execute(
            "SELECT id, directory, project FROM session_list"
        ).fetchall() == [(session.id, None, None)]
        assert shell.execute("SELECT file, directory FROM tool_call JOIN changed_file "
                             "USING (part_id)").fetchall() == [("a.py", None)]  # fmt: skip
        # Its hours follow a project that is set by a shell.
        shell.execute("INSERT INTO project (id, worktree, time_created, time_updated) "
                      "VALUES ('p', '/p', 1, 1)")  # fmt: skip
        shell.execute("UPDATE session SET project_id = 'p', directory = '/p'")
        shell.commit()
    assert [row.key for row in store.usage(by="project")] == [{"project": "/p"}]
