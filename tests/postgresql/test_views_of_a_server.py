"""The views for psql say what those of a file say."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from copied_rows import copy_rows
from postgresql_server import Server

from sessiondb import (
    PartDraft,
    Store,
    assistant,
    context_source,
    event,
    text,
    tool,
    tool_result,
    user,
)
from sessiondb.engine.address import ServerAddress
from sessiondb.model import MessageDraft

pytest.importorskip("psycopg")

from sessiondb.engine.postgresql.opening import ensure
from sessiondb.engine.postgresql.views import VIEW_NAMES

pytestmark = pytest.mark.slow
T0 = 1_700_000_000_000
PATCH = "*** Begin Patch\n*** Update File: src/a.py\n@@\n*** Add File: /abs/b.py\n*** End Patch"
BLOCKS = (
    "Here:\n\nsrc/tea.py\n```\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n```\n"
)


def fill(store: Store) -> None:
    """Write what the views tell apart."""
    with store.effects() as fx:
        talk = fx.create_session(title="Build", directory="/tmp", agent="build")
        fx.append(talk, user("please"), time=T0)
        call = tool(
            "bash", {"cmd": "make"}, call_id="c", output="x" * 5000, title="Make"
        )
        fx.append(talk, assistant("sure", call), model="m", provider="p", cost=0.5,
                  tokens={"input": 3, "cache_read": 4}, time=T0 + 90_000_000)  # fmt: skip
        keys = ("filePath", "file_path", "path", "notebook_path", "absolute_path")
        calls = [tool("edit", {key: f"a/{key}"}) for key in keys]
        large = tool("write", {"path": "large", "content": "x" * 5000})
        inputs = ({}, [], "path", 7, None, {"path": None})
        odd = [tool("Edit", given) for given in inputs]
        fx.append(talk, assistant(*calls, large, *odd, tool("bash")))
        fx.append(talk, assistant(tool("apply_patch", {"input": PATCH}), text(BLOCKS)))
        sources = context_source("file", "AGENTS.md", scope="project", hash="ab",
                                 error="too large", text="y" * 5000)  # fmt: skip
        odd_sources = [PartDraft("source", input=given) for given in ([], "path", 7)]
        fx.append(talk, event("context", sources, *odd_sources, PartDraft("source")))
    session = store.create_session(directory="/tmp/a")
    for output in ("one", "two"):
        store.append(session, assistant(tool("bash", {}, call_id="call_0")))
        store.append(session, MessageDraft("tool", (tool_result("call_0", output),)))
    store.set_leaf(session, 4)
    store.append(session, assistant(tool("edit", {}, call_id="d")), open=True)
    store.start(session, "d")
    store.settle(session, "d", error="no such file")
    fork = store.fork(talk)
    store.create_session(parent=fork, title="helper")
    store.archive(store.create_session(title="old"))
    store.delete(store.create_session(title="gone"))


@pytest.fixture(scope="module")
def engines(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A connection to a file, and one to a server, with the same rows."""
    path = tmp_path_factory.mktemp("views") / "s.db"
    with Store.open(path, durability="normal") as store:
        fill(store)
    # In another order of texts than ours: what we compare names its own.
    server.run("CREATE DATABASE views LOCALE_PROVIDER icu ICU_LOCALE 'en-US' "
               "TEMPLATE template0 LOCALE 'C.UTF-8'")  # fmt: skip
    with closing(ensure(ServerAddress(server.url("views")))) as connection:
        copy_rows(path, connection)
        with closing(sqlite3.connect(path)) as file:
            yield file, connection
    server.run("DROP DATABASE views")


@pytest.mark.parametrize("view", [name for name in VIEW_NAMES if name != "usage"])
def test_a_view_says_what_that_of_a_file_says(
    engines: tuple[Any, Any], view: str
) -> None:
    file, connection = engines
    expected = file.execute(f"SELECT * FROM {view}")
    rows = connection.execute(f"SELECT * FROM {view}")
    assert [it[0] for it in rows.description] == [it[0] for it in expected.description]
    wanted = sorted(expected.fetchall(), key=repr)
    assert wanted
    assert sorted(rows.fetchall(), key=repr) == wanted


def test_the_view_of_usage_adds_up_to_that_of_a_file(engines: tuple[Any, Any]) -> None:
    file, connection = engines
    sql = (
        "SELECT session_id, hour, source, agent, provider_id, model_id, sum(messages), "
        "sum(cost), sum(tokens_input), sum(tokens_cache_read) FROM usage "
        "GROUP BY 1, 2, 3, 4, 5, 6"
    )
    assert connection.execute(sql).fetchall() == file.execute(sql).fetchall()


def test_the_reasons_why_a_session_is_hidden_are_kept_by_the_server(
    engines: tuple[Any, Any],
) -> None:
    file, connection = engines
    sql = "SELECT hidden, id FROM session ORDER BY id"
    rows = connection.execute(sql).fetchall()
    assert rows == file.execute(sql).fetchall()
    assert {hidden for hidden, _ in rows} >= {0, 2 | 4, 1 | 4, 4 | 8}


def test_json_that_the_server_does_not_read_hides_its_members_and_no_row(
    engines: tuple[Any, Any],
) -> None:
    _, connection = engines
    connection.execute("BEGIN")
    connection.execute("UPDATE part SET input = ? WHERE tool = 'Edit' AND idx = 6",
                       ('{"path":"a\\u0000b \\ud800"}',))  # fmt: skip
    for view in VIEW_NAMES:
        connection.execute(f"SELECT * FROM {view}").fetchall()
    sql = "SELECT input, path FROM tool_call WHERE input LIKE '%ud800%' LIMIT 1"
    assert connection.execute(sql).fetchall() == [
        ('{"path":"a\\u0000b \\ud800"}', None)
    ]
    connection.execute("ROLLBACK")
