"""Deleting: a plan, a mark that hides at once, and rows that go in small transactions."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from typing import Any

import pytest
from backends import Backend
from foreign_sessions import SOURCE, said, session_of, take_in
from processes import run

from sessiondb import ALL, Store, assistant, part, tool, user
from sessiondb.database.core import Core
from sessiondb.effects import delete as deleting
from sessiondb.errors import NotFoundError
from sessiondb.maintenance import check
from sessiondb.model import FileDiff


def counts(backend: Backend, store: Store, *tables: str) -> tuple[int, ...]:
    """Return how many rows each table has."""
    columns = ", ".join(f"(SELECT count(*) FROM {table})" for table in tables)
    (found,) = backend.rows(store, f"SELECT {columns}")
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
    store: Store, backend: Backend, family: dict[str, str]
) -> None:
    other = store.create_session(title="other")
    store.append(other, user("findable"))
    fork, inner = family["fork"], family["inner"]
    of_blobs = "SELECT count(*) FROM part WHERE text_blob IS NOT NULL"
    blob = backend.rows(store, of_blobs)
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
    assert backend.rows(store, of_blobs) == blob, "not yet"
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
    store: Store, backend: Backend, family: dict[str, str]
) -> None:
    store.set_diffs(family["root"], [FileDiff("a", before=b"b" * 9, after=b"a" * 9)])
    store.set_todos(family["root"], ["x"])
    store.label(family["root"], 1, "l")
    store.append(
        family["root"], assistant(part("file", content=b"c" * 5000), blob="d" * 3000)
    )
    store.append(family["root"], assistant(tool("write", {"content": "e" * 4000})))
    assert counts(backend, store, "blob") == (6,)
    store.delete(family["root"])
    store.reap()
    tables = "session message part blob todo file_diff label".split()
    assert counts(backend, store, *tables) == (0,) * len(tables)
    assert backend.searched_parts(store) == 0
    assert check(store) == []


def test_a_blob_lives_exactly_as_long_as_a_session_refers_to_it(
    store: Store, backend: Backend
) -> None:
    large = "z" * 4000
    first, second = store.create_session(), store.create_session()
    store.append(first, user(large))
    store.append(second, assistant(tool("cat", {}, output=large)))
    fork = store.fork(first)
    # A server keeps one for each family.
    stored = (1, 1, 1) if backend.shares_blobs else (2, 2, 1)
    assert counts(backend, store, "blob") == (stored[0],)
    for session, number in zip((first, second), stored[1:], strict=True):
        store.delete(session, keep_forks=True)
        store.reap()
        assert counts(backend, store, "blob") == (number,)
    store.truncate(fork, after=None)
    assert counts(backend, store, "blob") == (0,)


def test_removing_happens_in_small_transactions(
    store: Store, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nothing is removed in the background.
    monkeypatch.setattr(Core, "reap_soon", lambda *_: None)
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

    def stored() -> tuple[int, int]:
        rows = counts(backend, store, "part", "message", "file_diff")
        ((size,),) = backend.rows(store, "SELECT coalesce(sum(size), 0) FROM blob")
        return sum(rows), size

    steps = 0
    while counts(backend, store, "session") != (0,):
        rows, size = stored()
        unit, step = store._core.unit(), deleting.Reap()
        unit.add(step)
        store._core.commit(unit)
        left, size_left = stored()
        assert rows - left <= 50
        assert size - size_left <= 100_000
        steps += 1
    assert steps > 25
    assert counts(backend, store, "blob") == (0,)


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
def test_a_removal_that_was_killed_halfway_is_resumed(backend: Backend) -> None:
    place = backend.fresh()
    with Store.open(place) as store:
        kept = store.create_session(title="kept")
        store.append(kept, user("word"))
        session = store.create_session()
        with store.effects() as fx:
            for number in range(200):
                fx.append(session, user(f"word {number} " + "b" * 1500))
    done = run(KILLED_WHILE_REAPING, place, session.id)
    assert done.returncode == -signal.SIGKILL, done.stderr
    with Store.open(place) as store:
        assert 0 < counts(backend, store, "part")[0] < 201
        assert [item.title for item in store.sessions(project=ALL)] == ["kept"]
        assert [hit.session.id for hit in store.search("word")] == [kept.id]
        assert check(store) == []
        store.reap()
        assert counts(backend, store, "session", "part", "blob") == (1, 1, 0)
        assert check(store) == []


def test_an_open_store_removes_by_itself(store: Store, backend: Backend) -> None:
    session = store.create_session()
    store.append(session, user("x"))
    store.delete(session)
    store._core.reap_soon(0.0)
    for _ in range(200):
        if counts(backend, store, "session") == (0,):
            return
        time.sleep(0.02)
    pytest.fail("nothing was removed")


def test_a_deleted_import_leaves_a_tombstone_of_each_session_that_went(
    store: Store,
    backend: Backend,
) -> None:
    parent = session_of("p", said("a"))
    child = session_of("c", said("b"), parent_source_id="p", relation="subagent")
    take_in(store, parent, child)
    store.delete(store.session("p").id)
    sql = "SELECT source, source_id FROM tombstone ORDER BY source_id"
    assert backend.rows(store, sql) == [(SOURCE, "c"), (SOURCE, "p")]


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
