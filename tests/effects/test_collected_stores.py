"""A store that was never closed is collected on any line of another one's work."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Generator

import pytest
from backends import Backend, Place
from lines import COMMIT_PATH, Interrupter

from sessiondb import Store, user
from sessiondb.database.lifetime import close_collected

pytestmark = pytest.mark.slow

PATIENCE = 60.0


@pytest.fixture
def place(backend: Backend) -> Generator[Place]:
    place = backend.fresh()
    gc.collect()
    # Objects made before this test are not examined on each line.
    gc.freeze()
    yield place
    gc.unfreeze()
    gc.collect()
    # Nor are those of the whole run examined again after it.
    gc.freeze()
    close_collected()
    backend.assert_intact(place)


def reading(place: Place) -> Store:
    """A store without a thread of its own."""
    return Store.open(place, durability="normal")


def writing(place: Place) -> Store:
    """A store with a daemon thread, a notifier, a lease and a stream."""
    store = Store.open(place, durability="normal")
    store.on_commit(lambda _: None)
    s = store.create_session(directory="/tmp")
    store.lease(s).__enter__()
    # Its block would be ended by the collector at once if nothing held it.
    block = store.stream(store.create_session(directory="/tmp"))
    block.__enter__().text().add("x")
    return store


def can_write(backend: Backend, place: Place) -> bool:
    """Return whether another program gets the write lock."""
    with backend.locked(place, PATIENCE):
        return True


def ran(work: Callable[[], None]) -> None:
    """Run *work* in a thread, which must end."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert not thread.is_alive(), "it waits forever"
    assert errors == []


def append_while_collecting(
    store: Store, session: str, lines: range, opened: Callable[[], Store]
) -> int:
    """Append, and collect an unclosed store on each of some lines; return their number."""
    cycles: list[list[object]] = []
    for _ in lines:
        cycle: list[object] = [opened()]
        cycle.append(cycle)
        cycles.append(cycle)
    del cycle

    def collect() -> None:
        cycles.pop()
        gc.collect()

    with Interrupter(lines, collect, only=COMMIT_PATH) as seen:
        store.append(session, user("Hello"))
    cycles.clear()
    gc.collect()
    return seen.lines


@pytest.mark.parametrize(("opened", "step"), [(reading, 1), (writing, 5)])
def test_a_store_collected_on_any_line_of_a_commit_does_no_harm(
    backend: Backend, place: Place, opened: Callable[[Place], Store], step: int
) -> None:
    appended = 0

    def work() -> None:
        nonlocal appended
        with Store.open(place, durability="normal") as store:
            session = store.create_session(directory="/tmp").id
            first, count = 1, 200
            while first < count:
                lines = range(first, first + 8 * step, step)
                count = append_while_collecting(
                    store, session, lines, lambda: opened(place)
                )
                assert can_write(backend, place)
                first, appended = lines.stop, appended + 1
            assert len(store.messages(session)) == appended

    ran(work)
    assert appended > 1
    assert can_write(backend, place)


def test_a_collected_store_is_closed_soon_by_its_own_thread(place: Place) -> None:
    store = writing(place)
    core = store._core
    del store
    gc.collect()
    deadline = time.monotonic() + PATIENCE
    while not core._released:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    assert core.writer.connection.inner is None


def test_a_collected_store_without_a_thread_is_closed_by_the_next_use_of_any(
    place: Place,
) -> None:
    with Store.open(place) as other:
        store = reading(place)
        core = store._core
        del store
        other.sessions()
        deadline = time.monotonic() + PATIENCE
        while not core._released:
            assert time.monotonic() < deadline
            time.sleep(0.001)


def left(backend: Backend, place: Place, leases: int) -> None:
    """Wait until only so many leases are held."""
    deadline = time.monotonic() + PATIENCE
    while backend.rows(place, "SELECT count(*) FROM lease") != [(leases,)]:
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_a_block_that_is_collected_gives_its_lease_back(
    backend: Backend, place: Place
) -> None:
    with Store.open(place) as store:
        s = store.create_session(directory="/tmp")
        store.lease(s).__enter__()
        block = store.stream(s2 := store.create_session(directory="/tmp"))
        block.__enter__().text().add("kept")
        # The first lease is released in the background.
        left(backend, place, 1)
        del block
        left(backend, place, 0)
        assert [m.text for m in store.messages(s2)] == ["kept"]


def test_many_unclosed_stores_on_one_file_never_stop_each_other(
    backend: Backend, place: Place
) -> None:
    def work() -> None:
        for number in range(60):
            store = Store.open(place, durability="normal")
            store.itself = store  # type: ignore[attr-defined]
            s = store.create_session(directory="/tmp")
            for _ in range(3):
                store.append(s, user(f"Hello {number}"))

    threshold = gc.get_threshold()
    gc.set_threshold(40, 2, 2)
    try:
        ran(work)
    finally:
        gc.set_threshold(*threshold)
    assert backend.rows(place, "SELECT count(*) FROM message") == [(180,)]
    assert can_write(backend, place)
