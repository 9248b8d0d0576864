"""A transaction that began first and commits last: no consumer of the feed misses it."""

from __future__ import annotations

import operator
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from crew import crew

from sessiondb import ALL, BEGINNING, Change, Store, user

pytestmark = pytest.mark.slow
#: Writes a message, has a function called in its transaction, and commits then.
LATE = """
    (session,) = args
    def wait(_):
        print("written", flush=True)
        sys.stdin.readline()
        return {}
    with Store.open(url) as store:
        begin()
        with store.effects() as unit:
            unit.append(session, user("late"))
            unit.update_metadata(session, wait)
    report(None)
"""


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with Store.open(url) as opened:
        yield opened


class Consumer:
    """Follows the feed from its beginning, at every turn or as one that was restarted."""

    def __init__(self, store: Store, *, is_restarted: bool) -> None:
        self._store, self.is_restarted = store, is_restarted
        self.changes: list[Change] = []
        self.stop = threading.Event()

    def consume(self) -> list[Change]:
        """Read until `stop` is set."""
        while not self.stop.is_set():
            since = self.changes[-1].cursor if self.changes else BEGINNING
            changes = self._store.changes(since=since, poll=0.001, stop=self.stop)
            with closing(changes) as feed:
                for change in feed:
                    self.changes.append(change)
                    if self.is_restarted:
                        break
        return self.changes


def test_a_change_waits_in_the_feed_for_those_that_began_before_it(
    store: Store, url: str
) -> None:
    store.create_session(id="late", directory="/tmp")
    since = store.newest_change()
    with crew(LATE, url, ("late",)) as member:
        member.prepare()
        member.begin()
        member.read("written")
        for number in range(3):
            store.append(store.create_session(directory="/tmp"), user(f"{number}"))
        stop = threading.Event()
        threading.Timer(0.3, stop.set).start()
        with closing(store.changes(since=since, poll=0.001, stop=stop)) as feed:
            assert list(feed) == []
        member.begin()
        member.reports()
    stop = threading.Event()
    with closing(store.changes(since=since, stop=stop)) as feed:
        changed = [next(feed).session_id for _ in range(4)]
    assert sorted(changed) == sorted(
        item.id for item in store.sessions(project=ALL, limit=10)
    )


def test_consumers_that_read_all_the_time_miss_nothing_and_see_nothing_twice(
    store: Store, url: str
) -> None:
    work = """
        name, sessions, turns = args
        chance = random.Random(name)
        def pause(metadata):
            time.sleep(chance.uniform(0, 0.05))
            return metadata
        with Store.open(url, durability="normal") as store:
            begin()
            for turn in range(turns):
                first, second = chance.sample(sessions, 2)
                with store.effects() as unit:
                    unit.append(first, user("said"))
                    unit.update_metadata(second, pause)
                    unit.append(second, user("said"))
        report(None)
    """
    sessions = [store.create_session(directory="/tmp").id for _ in range(6)]
    consumers = [Consumer(store, is_restarted=restarted) for restarted in (False, True)]
    members = [(str(number), sessions, 12) for number in range(4)]
    with crew(work, url, *members) as processes, ThreadPoolExecutor(2) as threads:
        processes.prepare()
        consuming = [threads.submit(consumer.consume) for consumer in consumers]
        processes.begin()
        processes.reports()
        last = {session: store.session(session) for session in sessions}
        for consumer in consumers:
            wait_for_all(
                consumer, len(sessions), sum(s.revision for s in last.values())
            )
            consumer.stop.set()
        seen = [done.result() for done in consuming]
    for consumer, changes in zip(consumers, seen, strict=True):
        for session in sessions:
            of_session = [change for change in changes if change.session_id == session]
            revisions = [change.revision for change in of_session]
            assert revisions == sorted(set(revisions))
            # What to read continues where the change before it ended, or earlier for a
            # consumer that remembers nothing but its cursor.
            begins = [change.since_seq for change in of_session]
            ends = [0, *(change.last_seq for change in of_session)]
            if consumer.is_restarted:
                assert all(map(operator.le, begins, ends))
            else:
                assert begins == ends[:-1]
            assert (revisions[-1], ends[-1]) == (
                last[session].revision,
                last[session].message_count,
            )


def wait_for_all(consumer: Consumer, sessions: int, revisions: int) -> None:
    """Return once a consumer has seen the last revision of each session."""
    deadline = threading.Event()
    threading.Timer(20, deadline.set).start()
    while not deadline.is_set():
        latest = {change.session_id: change.revision for change in [*consumer.changes]}
        if len(latest) == sessions and sum(latest.values()) == revisions:
            return
        deadline.wait(0.01)
    raise AssertionError(latest)
