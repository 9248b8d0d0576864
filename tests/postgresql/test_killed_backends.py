"""Connections and servers that end while processes write: nothing is lost or doubled."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress

import pytest
from crew import crew
from postgresql_server import Server

from sessiondb import (
    ALL,
    BEGINNING,
    AsyncStore,
    Change,
    Store,
    UnavailableError,
    user,
)
from sessiondb.maintenance import check

psycopg = pytest.importorskip("psycopg")

from waiting import commits_held  # noqa: E402

pytestmark = pytest.mark.slow
THREADS = 3
#: A thread for each session appends to it until the process is told to end.
WRITE = """
    import threading
    from concurrent.futures import ThreadPoolExecutor
    name, sessions = args
    stopped = threading.Event()
    with Store.open(url) as store:
        begin()
        threading.Thread(target=lambda: (sys.stdin.readline(), stopped.set())).start()
        def write(session):
            written = []
            while not stopped.is_set():
                written.append(f"{name} {len(written)}")
                store.append(session, user(written[-1]))
            store.append(session, user(f"{name} last"))
            return [*written, f"{name} last"]
        with ThreadPoolExecutor(len(sessions)) as threads:
            report(list(threads.map(write, sessions)))
"""
_BACKENDS = (
    "SELECT pid FROM pg_stat_activity WHERE datname = current_database() "
    "AND application_name = 'sessiondb'"
)


def backends(url: str, *, more: str = "") -> list[int]:
    """Return the processes of the server that serve sessiondb, none if it restarts."""
    with (
        suppress(psycopg.OperationalError),
        psycopg.connect(url, autocommit=True) as connection,
    ):
        return [pid for (pid,) in connection.execute(_BACKENDS + more).fetchall()]
    return []


def end_in_order(url: str, pid: int) -> None:
    """End a backend as an administrator does."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(%s)", [pid])


def kill(_: str, pid: int) -> None:
    """Kill a backend, whereupon the server ends all others, too, and recovers."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


End = Callable[[str, int], None]
WAYS = [
    pytest.param(end_in_order, 0.1, id="terminated"),
    pytest.param(kill, 0.8, id="killed"),
]


@pytest.mark.parametrize(("end", "pause"), WAYS)
def test_none_of_many_writes_is_lost_or_doubled_when_backends_end(
    url: str, end: End, pause: float
) -> None:
    chance = random.Random(22)
    with Store.open(url) as store:
        sessions = [store.create_session(directory="/tmp").id for _ in range(6)]
    ended = 0
    members = [("a", sessions[:THREADS]), ("b", sessions[THREADS:])]
    with crew(WRITE, url, *members) as processes:
        processes.prepare()
        processes.begin()
        until = time.monotonic() + 4
        while time.monotonic() < until:
            time.sleep(chance.uniform(0, pause))
            if found := backends(url):
                end(url, chance.choice(found))
                ended += 1
        processes.begin()  # to end
        reports = processes.reports()
    assert ended > 2
    with Store.open(url) as store:
        for (_, own), texts in zip(members, reports, strict=True):
            for session, written in zip(own, texts, strict=True):
                assert stored(store, session) == written
        assert check(store) == []


def stored(store: Store, session: str) -> list[str]:
    return [message.parts[0].text or "" for message in store.messages(session)]


@pytest.mark.parametrize(("end", "pause"), WAYS)
def test_a_unit_whose_backend_ends_in_its_commit_is_stored_once(
    url: str, end: End, pause: float
) -> None:
    with Store.open(url) as store, ThreadPoolExecutor(1) as thread:
        session = store.create_session(directory="/tmp").id
        with suppress(psycopg.OperationalError), commits_held(url) as gate:
            writing = thread.submit(store.append, session, user("once"))
            gate.wait_for(1)
            (pid,) = backends(url, more=" AND wait_event_type = 'Lock'")
            end(url, pid)
            time.sleep(pause)
        writing.result()
        store.append(session, user("next"))
        assert stored(store, session) == ["once", "next"]
        assert store.session(session).message_count == 2


class Follower:
    """Follows the feed, and continues from its last cursor if the server was away."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.revisions: dict[str, int] = {}
        self.stop = threading.Event()

    def follow(self) -> int:
        """Read until `stop` is set; return how often it had to begin again."""
        last: Change | None = None
        interrupted = 0
        with Store.open(self._url) as store:
            while not self.stop.is_set():
                since = BEGINNING if last is None else last.cursor
                try:
                    with closing(store.changes(since=since, stop=self.stop)) as feed:
                        for last in feed:
                            before = self.revisions.get(last.session_id, 0)
                            assert last.revision > before
                            self.revisions[last.session_id] = last.revision
                except UnavailableError:
                    interrupted += 1
                    time.sleep(0.05)
        return interrupted


@pytest.fixture
def follower(url: str) -> Iterator[Follower]:
    following = Follower(url)
    yield following
    following.stop.set()


def stop_and_start(server: Server, *modes: str) -> None:
    for mode in modes:
        time.sleep(0.5)
        server.stop(mode)
        time.sleep(0.3)
        server.start_again()
    time.sleep(0.3)


def test_open_stores_write_and_follow_through_restarts_of_the_server(
    url: str, server: Server, follower: Follower
) -> None:
    ended = threading.Event()
    with Store.open(url) as store, ThreadPoolExecutor(4) as threads:
        sessions = [store.create_session(directory="/tmp").id for _ in range(3)]

        def write(session: str) -> int:
            count = 0
            while not ended.is_set():
                store.append(session, user(f"{count}"))
                count += 1
            return count

        async def write_asynchronously(session: str) -> int:
            async with AsyncStore.open(url) as opened:
                count = 0
                while not ended.is_set():
                    await opened.append(session, user(f"{count}"))
                    count += 1
                return count

        following = threads.submit(follower.follow)
        writing = [threads.submit(write, session) for session in sessions[:2]]
        writing.append(
            threads.submit(lambda: asyncio.run(write_asynchronously(sessions[2])))
        )
        stop_and_start(server, "fast", "immediate")
        ended.set()
        written = [writer.result() for writer in writing]
        for session, count in zip(sessions, written, strict=True):
            assert stored(store, session) == [str(number) for number in range(count)]
        current = {item.id: item.revision for item in store.sessions(project=ALL)}
        patience = time.monotonic() + 20
        while follower.revisions != current and time.monotonic() < patience:
            time.sleep(0.05)
        follower.stop.set()
        assert follower.revisions == current
        following.result()
        assert check(store) == []
