"""Deleting: a plan, a mark that hides at once, and rows that go in small transactions."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from foreign_sessions import SOURCE, said, session_of, take_in
from processes import run

from sessiondb import ALL, Store, assistant, part, tool, user
from sessiondb.effects import delete as deleting
from sessiondb.errors import NotFoundError
from sessiondb.maintenance import check
from sessiondb.model import FileDiff


def rows(store: Store, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(store.path)) as connection:
        return connection.execute(sql).fetchall()


def count(store: Store, table: str) -> int:
    found: int = rows(store, f"SELECT count(*) FROM {table}")[0][0]
    return found


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


def test_the_plan_names_what_goes_and_what_is_detached(
    store: Store, family: dict[str, str]
) -> None:
    plan = store.plan_delete(family["root"])
    assert {item.id for item in plan.sessions} == set(family.values())
    assert (plan.detached, plan.messages, plan.parts) == ((), 11, 14)
    assert plan.bytes > 3 * 2000
    kept = store.plan_delete(family["root"], keep_forks=True)
    assert {item.id for item in kept.sessions} == {family["root"], family["helper"]}
    assert [item.id for item in kept.detached] == [family["fork"]]
    assert (kept.messages, kept.parts) == (3, 4)
    assert len(store.sessions(project=ALL, subagents=True)) == 5, (
        "a plan changes nothing"
    )


def test_a_deleted_session_is_gone_everywhere_at_once(
    store: Store, family: dict[str, str]
) -> None:
    other = store.create_session(title="other")
    store.append(other, user("findable"))
    fork, inner = family["fork"], family["inner"]
    blob = rows(store, "SELECT count(*) FROM part WHERE text_blob IS NOT NULL")
    store.delete(fork)
    gone = {fork, inner, family["deep"]}
    listed = store.sessions(project=ALL, archived=True, subagents=True, empty=True)
    assert {item.id for item in listed} == {other.id, family["root"], family["helper"]}
    reads: list[Callable[[str], Any]] = [
        store.session, store.messages, store.tree, store.context, store.todos, store.diffs,
        store.labels, store.plan_delete, store.fork, store.delete, store.archive,
        lambda name: store.message(name, 1), lambda name: list(store.walk(name)),
        lambda name: store.compare(other, name), lambda name: store.append(name, user("x")),
    ]  # fmt: skip
    for read in reads:
        with pytest.raises(NotFoundError):
            read(inner)
    assert len(store.tree(family["root"]).children) == 1
    assert not gone.intersection(
        hit.session.id for hit in store.search("findable within deeper")
    )
    assert not store.search("forked")
    (usage,) = store.usage(by=())
    assert usage.cost == 3.0
    for view in ("session_list", "session_tree"):
        assert not gone.intersection(
            name for (name,) in rows(store, f"SELECT id FROM {view}")
        )
    for view in ("transcript", "tool_call"):
        found = rows(store, f"SELECT session_id FROM {view}")
        assert found
        assert not gone.intersection(name for (name,) in found)
    assert rows(store, "SELECT sum(cost) FROM usage_by_day") == [(3.0,)]
    assert rows(store, "SELECT sum(cost) FROM usage_by_model") == [(3.0,)]
    assert (
        rows(store, "SELECT count(*) FROM part WHERE text_blob IS NOT NULL") == blob
    ), "not yet"
    assert check(store) == []


def test_forks_can_be_kept_with_their_subagents(
    store: Store, family: dict[str, str]
) -> None:
    store.delete(family["root"], keep_forks=True)
    fork = store.session(family["fork"])
    assert (fork.parent_id, fork.relation, fork.root_id) == (
        None,
        "fork",
        family["root"],
    )
    assert store.session(family["inner"]).parent_id == fork.id
    assert store.session(family["deep"]).parent_id == fork.id
    tree = store.tree(family["deep"])
    assert {child.session.id for child in tree.children} == {
        family["inner"],
        family["deep"],
    }
    assert tree.session.id == fork.id
    # Messages counted in the root are now counted and found in the fork.
    assert fork.cost == 5.0
    assert store.session(family["deep"]).cost == 16.0
    (usage,) = store.usage(by=())
    assert usage.cost == 1.0 + 4.0 + 8.0 + 16.0
    assert [hit.session.id for hit in store.search("findable")] == [fork.id]
    store.reap()
    assert check(store) == []


def test_the_reaper_leaves_no_row_and_no_blob_of_what_was_deleted(
    store: Store, family: dict[str, str]
) -> None:
    store.set_diffs(family["root"], [FileDiff("a", before=b"b" * 9, after=b"a" * 9)])
    store.set_todos(family["root"], ["x"])
    store.label(family["root"], 1, "l")
    store.append(
        family["root"], assistant(part("file", content=b"c" * 5000), blob="d" * 3000)
    )
    store.append(family["root"], assistant(tool("write", {"content": "e" * 4000})))
    assert count(store, "blob") == 6
    store.delete(family["root"])
    store.reap()
    tables = (
        "session message part blob todo file_diff label part_search_docsize".split()
    )
    assert {table: count(store, table) for table in tables} == dict.fromkeys(tables, 0)
    assert check(store) == []


def test_a_blob_lives_exactly_as_long_as_a_session_refers_to_it(store: Store) -> None:
    large = "z" * 4000
    first, second = store.create_session(), store.create_session()
    store.append(first, user(large))
    store.append(second, assistant(tool("cat", {}, output=large)))
    fork = store.fork(first)
    assert count(store, "blob") == 1
    for session in (first, second):
        store.delete(session, keep_forks=True)
        store.reap()
        assert count(store, "blob") == 1
    store.truncate(fork, after=None)
    assert count(store, "blob") == 0


def test_removing_happens_in_small_transactions(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deleting, "REAP_ROWS", 50)
    monkeypatch.setattr(deleting, "REAP_BYTES", 100_000)
    session = store.create_session()
    with store.effects() as fx:
        for number in range(130):
            fx.append(session, user(f"{number}"))
        for number in range(10):
            write = tool("write", {"content": f"{number}" * 60_000})
            fx.append(session, assistant(write, data_of_its_own=f"{number}" * 70_000))
        diffs = [FileDiff(f"{n}", after=b"%d" % n * 60_000) for n in range(5)]
        fx.set_diffs(session, diffs)
    store.delete(session)
    with closing(sqlite3.connect(store.path)) as watch:
        sizes = []
        tables = ("part", "message", "file_diff", "blob", "session")
        while watch.execute("SELECT count(*) FROM session").fetchone()[0]:
            before = [
                watch.execute(f"SELECT count(*) FROM {t}").fetchone()[0] for t in tables
            ]
            freed = watch.execute("SELECT coalesce(sum(size), 0) FROM blob").fetchone()[
                0
            ]
            unit, step = store._core.unit(), deleting.Reap()
            unit.add(step)
            store._core.commit(unit)
            after = [
                watch.execute(f"SELECT count(*) FROM {t}").fetchone()[0] for t in tables
            ]
            freed -= watch.execute(
                "SELECT coalesce(sum(size), 0) FROM blob"
            ).fetchone()[0]
            assert sum(before[:3]) - sum(after[:3]) <= 50
            assert freed <= 100_000
            sizes.append(freed)
        assert len(sizes) > 25
        assert watch.execute("SELECT count(*) FROM blob").fetchone() == (0,)


KILLED_WHILE_REAPING = """
import os, signal, sys
from sessiondb import Store
from sessiondb.effects import delete
delete.REAP_ROWS = 20
store = Store.open(sys.argv[1])
store.delete(sys.argv[2])
for step in range(7):
    unit = store._core.unit()
    unit.add(delete.Reap())
    store._core.commit(unit)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
def test_a_removal_that_was_killed_halfway_is_resumed(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with Store.open(path) as store:
        kept = store.create_session(title="kept")
        store.append(kept, user("word"))
        session = store.create_session()
        with store.effects() as fx:
            for number in range(200):
                fx.append(session, user(f"word {number} " + "b" * 1500))
    done = run(KILLED_WHILE_REAPING, path, session.id)
    assert done.returncode == -signal.SIGKILL, done.stderr
    with Store.open(path) as store:
        assert 0 < rows(store, "SELECT count(*) FROM part")[0][0] < 201
        assert [item.title for item in store.sessions(project=ALL)] == ["kept"]
        assert [hit.session.id for hit in store.search("word")] == [kept.id]
        assert check(store) == []
        store.reap()
        assert [count(store, table) for table in ("session", "part", "blob")] == [
            1,
            1,
            0,
        ]
        assert check(store) == []


def test_an_open_store_removes_by_itself(store: Store) -> None:
    session = store.create_session()
    store.append(session, user("x"))
    store.delete(session)
    store._core.reap_soon(0.0)
    for _ in range(200):
        if count(store, "session") == 0:
            return
        time.sleep(0.02)
    pytest.fail("nothing was removed")


def test_plain_sql_deletes_a_session_with_everything_and_search_stays_valid(
    store: Store, family: dict[str, str], sqlite3_shell: str
) -> None:
    store.label(family["fork"], 1, "l")
    sql = (
        f"PRAGMA foreign_keys = ON; DELETE FROM session WHERE id = '{family['fork']}';"
    )
    subprocess.run([sqlite3_shell, store.path], input=sql, text=True, check=True)
    left = {item.id for item in store.sessions(project=ALL, subagents=True)}
    assert left == {family["root"], family["helper"]}
    assert count(store, "message") == 3
    assert not store.search("forked")
    assert len(store.search("findable")) == 1
    assert check(store) == []


def test_blobs_left_by_a_delete_in_the_shell_are_found_by_check(
    store: Store, family: dict[str, str], sqlite3_shell: str
) -> None:
    sql = "PRAGMA foreign_keys = ON; DELETE FROM session;"
    subprocess.run([sqlite3_shell, store.path], input=sql, text=True, check=True)
    assert [finding.check for finding in check(store)] == ["blobs"]


def test_a_deleted_import_leaves_a_tombstone_of_each_session_that_went(
    store: Store,
) -> None:
    parent = session_of("p", said("a"))
    child = session_of("c", said("b"), parent_source_id="p", relation="subagent")
    take_in(store, parent, child)
    store.delete(store.session("p").id)
    found = rows(store, "SELECT source, source_id FROM tombstone ORDER BY source_id")
    assert found == [(SOURCE, "c"), (SOURCE, "p")]


def test_deleting_again_is_not_found_and_a_half_written_unit_deletes_nothing(
    store: Store, family: dict[str, str]
) -> None:
    unit = store._core.unit()
    unit.delete(family["helper"])
    unit.append("ses_nowhere", user("x"))
    with pytest.raises(NotFoundError):
        store.commit(unit)
    assert store.session(family["helper"]).title == "helper"
    store.delete(family["helper"])
    with pytest.raises(NotFoundError):
        store.delete(family["helper"])
