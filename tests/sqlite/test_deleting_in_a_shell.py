"""Deleted sessions in a shell: not in the views, and removed by it with everything."""

from __future__ import annotations

import subprocess

import pytest
from backends import Backend

from sessiondb import ALL, Store, assistant, tool, user
from sessiondb.maintenance import check


@pytest.fixture
def family(store: Store) -> dict[str, str]:
    """Root with a helper and a fork; the fork has a helper and a fork of its own."""
    with store.effects() as fx:
        root = fx.create_session(title="root")
        fx.append(root, user("findable"))
        fx.append(
            root, assistant("answer", tool("bash", {}, output="y" * 2000)), cost=1.0
        )
        helper = fx.create_session(title="helper", parent=root)
        fx.append(helper, assistant("helped"), cost=2.0)
        fork = fx.fork(root)
        fx.append(fork, assistant("forked"), cost=4.0)
        inner = fx.create_session(title="inner", parent=fork)
        fx.append(inner, assistant("within"), cost=8.0)
        deep = fx.fork(fork)
        fx.append(deep, assistant("deeper"), cost=16.0)
    made = {"root": root, "helper": helper, "fork": fork, "inner": inner, "deep": deep}
    return {name: handle.id for name, handle in made.items()}


def test_a_deleted_session_is_in_no_view(
    store: Store, backend: Backend, family: dict[str, str]
) -> None:
    fork, inner = family["fork"], family["inner"]
    store.delete(fork)
    gone = {fork, inner, family["deep"]}
    for view in ("session_list", "session_tree"):
        rows = backend.rows(store, f"SELECT id FROM {view}")
        assert not gone.intersection(name for (name,) in rows)
    for view in ("transcript", "tool_call"):
        rows = backend.rows(store, f"SELECT session_id FROM {view}")
        assert rows
        assert not gone.intersection(name for (name,) in rows)
    assert backend.rows(store, "SELECT sum(cost) FROM usage_by_day") == [(3.0,)]
    assert backend.rows(store, "SELECT sum(cost) FROM usage_by_model") == [(3.0,)]


def test_plain_sql_deletes_a_session_with_everything_and_search_stays_valid(
    store: Store, backend: Backend, family: dict[str, str], sqlite3_shell: str
) -> None:
    store.label(family["fork"], 1, "l")
    sql = (
        f"PRAGMA foreign_keys = ON; DELETE FROM session WHERE id = '{family['fork']}';"
    )
    subprocess.run([sqlite3_shell, store.path], input=sql, text=True, check=True)
    left = {item.id for item in store.sessions(project=ALL, subagents=True)}
    assert left == {family["root"], family["helper"]}
    assert backend.rows(store, "SELECT count(*) FROM message") == [(3,)]
    assert not store.search("forked")
    assert len(store.search("findable")) == 1
    assert check(store) == []


def test_blobs_left_by_a_delete_in_the_shell_are_found_by_check(
    store: Store, family: dict[str, str], sqlite3_shell: str
) -> None:
    sql = "PRAGMA foreign_keys = ON; DELETE FROM session;"
    subprocess.run([sqlite3_shell, store.path], input=sql, text=True, check=True)
    assert [finding.check for finding in check(store)] == ["blobs"]
