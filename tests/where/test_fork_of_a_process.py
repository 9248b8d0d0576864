"""fork(2): the child inherits SQLite's memory and none of its locks.

It must not use inherited stores, and a store it opens itself must be as safe as in any other
process: its commits survive the parent's end, and the parent's survive the child's.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from processes import run, said

from sessiondb import ALL, BEGINNING, AsyncStore, Store, ids, user
from sessiondb.errors import StoreClosedError
from sessiondb.model import Message
from sessiondb.model.handles import SessionHandle

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork(2) on this system"),
    pytest.mark.slow,
]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "sessions.db") as store:
        yield store


@pytest.fixture
def session(store: Store) -> SessionHandle:
    session = store.create_session()
    store.append(session, user("before"))
    return session


def _child(work: Callable[[], object]) -> int:
    """Run *work* in a forked child, which ends without closing anything; return its pid."""
    with warnings.catch_warnings():
        # Python 3.12 warns about threads; that programs fork all the same is the point here.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid:
        return pid
    try:
        work()
    except BaseException:  # noqa: BLE001  it must not continue as a second pytest
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def _wait(pid: int) -> None:
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, (
        "see the output of the child"
    )


def _texts(path: Path) -> list[str | None]:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    with Store.open(path) as store:
        return [
            message.text
            for message in store.messages(store.sessions(project=ALL).items[0])
        ]


def test_a_child_cannot_use_an_inherited_store_and_the_parent_keeps_working(
    store: Store, session: SessionHandle
) -> None:
    unit, pages = store.effects(), store.walk(session)

    def work() -> None:
        uses: list[Callable[[], object]] = [
            lambda: store.append(session, user("no")),
            lambda: store.messages(session),
            store.connection,
            lambda: next(pages),
            lambda: store.on_commit(print),
            lambda: next(store.changes()),
            lambda: store.stream(session).__enter__(),
            lambda: store.lease(session).__enter__(),
            lambda: (
                unit.__enter__().append(session, user("no"))
                and unit.__exit__(None, None, None)
            ),
        ]
        for use in uses:
            with pytest.raises(StoreClosedError, match="fork"):
                use()
        store.close()

    _wait(_child(work))
    store.append(session, user("after"))
    assert [message.text for message in store.messages(session)] == ["before", "after"]


def test_a_child_may_open_its_own_store_and_outlive_the_parents(
    store: Store, session: SessionHandle
) -> None:
    opened, closed = os.pipe(), os.pipe()

    def work() -> None:
        own = Store.open(store.path)
        own.append(session, user("child 1"))
        os.write(opened[1], b"x")
        os.read(closed[0], 1)
        own.append(session, user("child 2"))

    pid = _child(work)
    os.read(opened[0], 1)
    store.append(session, user("parent 1"))
    store.close()  # of the last connection would remove the -wal under the child
    os.write(closed[1], b"x")
    _wait(pid)
    assert _texts(store.path) == ["before", "child 1", "parent 1", "child 2"]


def test_forked_workers_write_beside_their_parent(
    store: Store, session: SessionHandle
) -> None:
    def work(name: str) -> None:
        with Store.open(store.path, durability="normal") as own:
            for number in range(10):
                own.append(session, user(f"{name} {number}"))

    pids = [_child(lambda name=name: work(name)) for name in "abc"]
    for number in range(10):
        store.append(session, user(f"parent {number}"))
    for pid in pids:
        _wait(pid)
    store.close()
    texts = _texts(store.path)
    assert len(texts) == len(set(texts)) == 41


def test_forked_children_mint_other_ids_than_their_parent(tmp_path: Path) -> None:
    ids.new_session_id()  # the child inherits a generator that is in use already

    def mint(name: str) -> None:
        made = [
            make() for make in (ids.new_session_id, ids.new_part_id) for _ in range(50)
        ]
        (tmp_path / name).write_text("\n".join(made))

    pids = [_child(lambda name=name: mint(name)) for name in "ab"]
    mint("parent")
    for pid in pids:
        _wait(pid)
    made = [line for file in tmp_path.iterdir() for line in file.read_text().split()]
    assert len(made) == len(set(made)) == 300


def test_a_fork_waits_for_the_commits_of_other_threads(
    store: Store, session: SessionHandle
) -> None:
    stop, acknowledged = threading.Event(), ["before"]

    def write() -> None:
        # SQLite waits for a lock by trying again each tenth of a second. Commits without a
        # pause hold it nearly all the time, and a child missed every gap for ten seconds.
        while not stop.wait(0.001):
            words = f"thread {len(acknowledged)}"
            store.append(session, user(words))
            acknowledged.append(words)

    def work() -> None:
        with Store.open(store.path) as own:
            own.append(session, user("child"))

    thread = threading.Thread(target=write)
    thread.start()
    for _ in range(5):
        _wait(_child(work))
    stop.set()
    thread.join()
    store.close()
    texts = _texts(store.path)
    assert texts.count("child") == 5
    assert [text for text in texts if text != "child"] == acknowledged


def test_a_child_may_not_open_what_its_parent_was_reading(
    store: Store, session: SessionHandle
) -> None:
    def refused() -> None:
        with pytest.raises(StoreClosedError, match="forked") as raised:
            Store.open(store.path)
        assert "spawn" in (raised.value.hint or "")

    with store.connection():
        _wait(_child(refused))
    _wait(_child(lambda: Store.open(store.path).append(session, user("child"))))
    store.close()
    assert _texts(store.path) == ["before", "child"]


def test_a_child_may_open_what_its_parent_follows(
    store: Store, session: SessionHandle
) -> None:
    feed = store.changes(since=BEGINNING)
    assert next(feed).session_id == session.id
    _wait(_child(lambda: Store.open(store.path).append(session, user("child"))))
    assert next(feed).session_id == session.id
    feed.close()
    store.close()


async def _first(store: AsyncStore, session: SessionHandle) -> Message:
    return (await store.messages(session))[0]


async def test_an_async_program_may_fork_too(tmp_path: Path) -> None:
    def work() -> None:
        with pytest.raises(StoreClosedError, match="fork"):
            asyncio.run(_first(store, session))
        with Store.open(store.path) as own:
            own.append(session, user("child"))

    async with AsyncStore.open(tmp_path / "sessions.db") as store:
        session = await store.create_session()
        await store.append(session, user("before"))
        assert (await _first(store, session)).text == "before"
        pid = _child(work)
        await store.append(session, user("parent"))
        _wait(pid)
        texts = [message.text for message in await store.messages(session)]
    assert sorted(map(str, texts)) == ["before", "child", "parent"]


def test_a_database_in_memory_belongs_to_the_parent() -> None:
    with Store.open(":memory:") as store:
        session = store.create_session()
        _wait(_child(store.close))
        store.append(session, user("still here"))
        assert [message.text for message in store.messages(session)] == ["still here"]


def test_a_child_that_exits_as_programs_do_harms_nothing(tmp_path: Path) -> None:
    code = """
        import os, sys
        from sessiondb import Store, user
        store = Store.open(sys.argv[1])
        private = Store.open(":memory:")
        session = store.create_session()
        store.append(session, user("before"))
        for number in range(2):
            pid = os.fork()
            if not pid:
                if number:
                    Store.open(sys.argv[1]).append(session.id, user("child"))
                sys.exit()
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
            store.append(session, user(f"after {number}"))
            private.create_session()
    """
    path = tmp_path / "sessions.db"
    done = run(code, path, flags=("-X", "dev"))
    warned = [line for line in done.stderr.splitlines() if "use of fork()" not in line]
    assert said(done) == ""
    assert not [
        line for line in warned if line.startswith(("Exception", "Traceback"))
    ], done.stderr
    assert "ResourceWarning" not in done.stderr
    assert _texts(path) == ["before", "after 0", "child", "after 1"]
