"""Group commit: units queued during one commit form the next; no unit affects another."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from backends import Backend
from facades import Contract, eventually

from sessiondb import (
    AsyncStore,
    BusyError,
    Change,
    ConflictError,
    NotFoundError,
    SessionHandle,
    Store,
    StoreClosedError,
    assistant,
    user,
)
from sessiondb.effects import Unit


async def together(
    contract: Contract, units: list[Unit], look: Callable[[Unit], object] = id
) -> list[BaseException | None]:
    """Commit units so that all but the first meet in one batch; return how each ended.

    *look* is called by each caller, with its unit, as soon as the result arrives.
    """
    store = contract.store.inner
    writer = store._core.writer
    with ThreadPoolExecutor(len(units)) as threads:

        def in_a_thread(unit: Unit) -> None:
            try:
                store.commit(unit)
            finally:
                look(unit)

        async def in_the_loop(unit: Unit) -> None:
            try:
                if contract.kind == "sync":
                    await asyncio.get_running_loop().run_in_executor(
                        threads, in_a_thread, unit
                    )
                else:
                    await store.commit(unit)
            finally:
                if contract.kind == "async":
                    look(unit)

        await eventually(lambda: writer._serving is None)
        with contract.locked():
            first = asyncio.ensure_future(in_the_loop(units[0]))
            await eventually(lambda: writer._serving is not None and not writer._queue)
            rest = [asyncio.ensure_future(in_the_loop(unit)) for unit in units[1:]]
            await eventually(lambda: len(writer._queue) == len(rest))
        ended = await asyncio.gather(first, *rest, return_exceptions=True)
    return [error if isinstance(error, BaseException) else None for error in ended]


@dataclass
class Failing:
    """An effect that fails as a defect of this package would."""

    error: BaseException
    verb = "defect"

    def apply(self, _: Any) -> None:
        raise self.error


@pytest_asyncio.fixture
async def notified(contract: Contract) -> list[list[Change]]:
    """The changes of each commit from here on."""
    writer = contract.store.inner._core.writer
    await eventually(lambda: writer._serving is None)
    commits: list[list[Change]] = []
    contract.store.on_commit(commits.append)
    return commits


async def test_bad_units_in_a_batch_do_not_affect_the_good_ones(
    contract: Contract, session: SessionHandle
) -> None:
    sessions = [
        await contract.store.create_session(directory="/tmp") for _ in range(65)
    ]

    units = []
    for number, s in enumerate(sessions):
        unit = contract.store.unit()
        unit.append(s, user(f"good {number}"))
        unit.append(s, assistant("long " * 300 + str(number)), cost=0.1)
        units.append(unit)
    bad = [contract.store.unit() for _ in range(4)]
    bad[0].append(session, user("never"))
    bad[0].append("ses_nowhere", user("never"))
    bad[1].append(session, user("never"), expect_leaf=5)
    bad[2].append(session, user("never"))
    bad[2].add(Failing(ZeroDivisionError("a defect")))
    bad[3].fork(session)
    bad[3].delete(session)
    bad[3].add(Failing(contract.backend.driver_error("a defect")))
    order = [*units[:10], bad[0], *units[10:20], bad[1], bad[2], *units[20:], bad[3]]
    ended = dict(zip(map(id, order), await together(contract, order), strict=True))
    assert [ended[id(unit)] for unit in units] == [None] * 65
    kinds = [type(ended[id(unit)]) for unit in bad[:3]]
    assert kinds == [NotFoundError, ConflictError, ZeroDivisionError]
    assert "defect (effect 2)" in str(ended[id(bad[3])])
    assert contract.rows(
        "SELECT count(*), sum(last_seq), count(DISTINCT change) FROM session"
    ) == [(66, 130, 66)]
    assert contract.rows("SELECT count(*) FROM part WHERE text LIKE '%never%'") == [
        (0,)
    ]
    contract.check()


async def test_units_queued_during_a_commit_are_committed_as_one(
    contract: Contract, notified: list[list[Change]]
) -> None:
    units = [contract.store.unit() for _ in range(64)]
    for unit in units:
        unit.create_session(directory="/tmp")
    assert await together(contract, units) == [None] * 64
    await eventually(lambda: sum(map(len, notified)) == 64)
    assert [len(changes) for changes in notified] == [1, 63]


async def test_the_changes_of_one_commit_are_ordered_by_their_number(
    contract: Contract, session: SessionHandle
) -> None:
    other = await contract.store.create_session(directory="/tmp")
    commits: list[list[Change]] = []
    contract.store.on_commit(commits.append)
    units = [contract.store.unit() for _ in range(4)]
    units[0].set_title(session, "first")
    for unit, touched in zip(units[1:], (session, other, session), strict=True):
        unit.append(touched, user("x"))
    assert await together(contract, units) == [None] * 4
    await eventually(lambda: any(len(changes) > 1 for changes in commits))
    for changes in commits:
        numbers = [change.cursor for change in changes]
        assert numbers == sorted(numbers)


async def test_a_batch_is_bounded_in_size(
    contract: Contract, notified: list[list[Change]]
) -> None:
    units = [contract.store.unit() for _ in range(300)]
    for unit in units:
        unit.create_session(directory="/tmp")
    if contract.kind == "sync":
        units = units[:40]
    assert await together(contract, units) == [None] * len(units)
    await eventually(lambda: sum(map(len, notified)) == len(units))
    assert max(len(changes) for changes in notified) <= 256


async def test_a_result_arrives_after_the_commit_that_holds_it(
    contract: Contract, session: SessionHandle
) -> None:
    seen: list[tuple[int, int]] = []

    async def append(number: int) -> None:
        message = await contract.store.append(session, user(str(number)))
        count = contract.rows("SELECT count(*) FROM message WHERE id = ?", message.id)[
            0
        ][0]
        seen.append((message.seq, count))

    await asyncio.gather(*(append(n) for n in range(30)))
    assert sorted(seen) == [(n + 1, 1) for n in range(30)]


async def test_a_callback_can_read_the_changes_it_is_notified_of(
    contract: Contract, session: SessionHandle
) -> None:
    seen: list[bool] = []

    def look(changes: list[Change]) -> None:
        for change in changes:
            sql = "SELECT revision >= ? AND last_seq >= ? FROM session WHERE id = ?"
            facts = (change.revision, change.last_seq, change.session_id)
            seen.append(contract.rows(sql, *facts) == [(1,)])

    contract.store.on_commit(look)
    await asyncio.gather(
        *(contract.store.append(session, user("x")) for _ in range(20))
    )
    await eventually(lambda: sum(seen) > 0 and len(seen) >= 1)
    await contract.close()
    assert all(seen)


def test_threads_share_one_history(backend: Backend) -> None:
    with Store.open(backend.fresh(), durability="normal") as store:
        session = store.create_session()

        def work(name: int) -> list[int | None]:
            return [store.append(session, user(f"{name}.{n}")).seq for n in range(20)]

        with ThreadPoolExecutor(8) as threads:
            seqs = list(threads.map(work, range(8)))
        texts = [message.text for message in store.messages(session)]
    assert all(mine == sorted(mine) for mine in seqs)  # type: ignore[type-var]
    assert sorted(s for mine in seqs for s in mine if s) == list(range(1, 161))
    for name in range(8):
        assert [t for t in texts if t.startswith(f"{name}.")] == [
            f"{name}.{n}" for n in range(20)
        ]


@pytest.mark.needs("is_file", "a file has several names")
async def test_two_stores_of_one_file_share_one_writer(
    contract: Contract, tmp_path: Path
) -> None:
    path, other_name = Path(contract.place), tmp_path / "here"
    other_name.symlink_to(path.parent, target_is_directory=True)
    second = await contract.open()
    with Store.open(other_name / path.name) as third:
        writers = {
            id(s._core.writer) for s in (contract.store.inner, second.inner, third)
        }
        assert len(writers) == 1
        s = third.create_session(directory="/tmp")
        await contract.store.append(s, user("one"))
        await second.append(s, user("two"))
    await second.close()
    await contract.store.append(s, user("three"))
    assert [m.text for m in await contract.store.messages(s)] == ["one", "two", "three"]


async def test_a_sync_and_an_async_store_write_one_file_in_one_process(
    backend: Backend,
) -> None:
    place = backend.fresh()
    with Store.open(place, durability="normal") as sync:
        s = sync.create_session(directory="/tmp")
        async with AsyncStore.open(place, durability="normal") as store:

            def from_a_thread(number: int) -> None:
                sync.append(s, user(f"sync {number}"))

            both = [asyncio.to_thread(from_a_thread, n) for n in range(30)]
            await asyncio.gather(
                *both, *(store.append(s, user(f"async {n}")) for n in range(30))
            )
            assert len(await store.messages(s)) == len(sync.messages(s)) == 60
            assert [m.seq for m in sync.messages(s)] == list(range(1, 61))


async def test_the_strictest_durability_of_a_batch_wins(contract: Contract) -> None:
    writer = contract.store.inner._core.writer
    await contract.store.create_session(directory="/tmp")
    assert writer.connection.durability == "normal"
    async with contract.store.effects(durability="full") as fx:
        fx.create_session(directory="/tmp")
    assert writer.connection.durability == "full"
    with pytest.raises(ValueError, match="durability"):
        async with contract.store.effects(durability="fast") as fx:
            fx.create_session(directory="/tmp")


async def test_a_failure_arrives_after_the_commit_that_caused_it(
    contract: Contract, session: SessionHandle
) -> None:
    """Otherwise a caller informed that a session is gone would still find it."""
    first, delete, append = (contract.store.unit() for _ in range(3))
    first.set_title(session, "first")
    delete.delete(session)
    append.append(session, user("too late"))
    is_there: dict[int, object] = {}

    def look(unit: Unit) -> None:
        rows = contract.rows("SELECT time_deleted IS NULL FROM session")
        is_there[id(unit)] = rows[0][0]

    ended = await together(contract, [first, delete, append], look)
    assert [type(error) for error in ended] == [type(None), type(None), NotFoundError]
    assert (is_there[id(delete)], is_there[id(append)]) == (0, 0)


async def test_the_same_unit_committed_twice_at_once_is_written_once(
    contract: Contract, session: SessionHandle
) -> None:
    unit = contract.store.unit()
    unit.append(session, user("once"))
    first = contract.store.unit()
    first.set_title(session, "first")
    assert await together(contract, [first, unit, unit, unit]) == [None] * 4
    assert len(await contract.store.messages(session)) == 1


async def test_a_number_that_was_rolled_back_is_not_given_out_again(
    contract: Contract, session: SessionHandle
) -> None:
    """Otherwise a follower of the changes would miss the next one."""
    first, bad, good = (contract.store.unit() for _ in range(3))
    first.set_title(session, "first")
    bad.fork(session)
    bad.append("ses_nowhere", user("x"))
    good.append(session, user("good"))
    ended = await together(contract, [first, bad, good])
    assert [type(error) for error in ended] == [type(None), NotFoundError, type(None)]
    ((known,),) = contract.rows("SELECT change FROM session")
    other = await contract.store.create_session(directory="/tmp")
    assert contract.rows(
        "SELECT change > ? FROM session WHERE id = ?", known, other.id
    ) == [(1,)]


async def test_a_caller_whose_loop_is_closed_does_not_affect_others(
    backend: Backend,
) -> None:
    async with AsyncStore.open(backend.fresh(), durability="normal") as store:
        s = await store.create_session(directory="/tmp")
        writer = store._core.writer

        async def leave() -> None:
            task = asyncio.ensure_future(
                store.append(s, user("whose caller left", id="left"))
            )
            await eventually(lambda: writer._serving is not None)
            task.cancel()

        await eventually(lambda: writer._serving is None)
        with backend.locked(store):
            await asyncio.to_thread(asyncio.run, leave())
            others = [
                asyncio.ensure_future(store.append(s, user(str(n)))) for n in range(8)
            ]
            await eventually(lambda: len(writer._queue) == 8)
        await asyncio.gather(*others)
        assert len(await store.messages(s)) == 9


def test_an_interrupt_in_the_writing_thread_leaves_no_caller_waiting(
    backend: Backend,
) -> None:
    with Store.open(backend.fresh(), durability="normal") as store:
        s = store.create_session(directory="/tmp")
        interrupted, neighbour = store._core.unit(), store._core.unit()
        interrupted.append(s, user("interrupted"))
        interrupted.add(Failing(KeyboardInterrupt()))
        neighbour.append(s, user("neighbour"))
        errors: list[BaseException] = []

        def commit(unit: Unit) -> Callable[[], None]:
            def run() -> None:
                try:
                    store.commit(unit)
                except BaseException as error:  # noqa: BLE001
                    errors.append(error)

            return run

        threads = [
            threading.Thread(target=commit(unit)) for unit in (interrupted, neighbour)
        ]
        with backend.locked(store):
            for thread in threads:
                thread.start()
        for thread in threads:
            thread.join(10)
        assert [t.is_alive() for t in threads] == [False, False]
        assert {type(error) for error in errors} <= {
            KeyboardInterrupt,
            StoreClosedError,
        }
        assert any(isinstance(error, KeyboardInterrupt) for error in errors)
        store.commit(neighbour)
        assert [message.text for message in store.messages(s)] == ["neighbour"]


async def test_no_loop_waits_for_the_database(backend: Backend) -> None:
    async with AsyncStore.open(backend.fresh(), durability="normal") as store:
        s = await store.create_session(directory="/tmp")
        loop = asyncio.get_running_loop()
        with backend.locked(store):
            waiting = asyncio.ensure_future(store.append(s, user("later")))
            slowest = 0.0
            for _ in range(50):
                begun = loop.time()
                await asyncio.sleep(0)
                slowest = max(slowest, loop.time() - begun)
                assert await store.messages(s) == []
            assert not waiting.done()
        await waiting
    assert slowest < 0.5


async def test_a_writer_that_cannot_get_the_lock_in_time_raises_busy(
    contract: Contract, session: SessionHandle
) -> None:
    hasty = await contract.open(busy_timeout=0.05)
    with contract.locked(), pytest.raises(BusyError) as busy:
        await hasty.append(session, user("later"))
    assert (busy.value.exit_code, busy.value.retryable) == (5, True)
    await hasty.append(session, user("later"))
    assert len(await hasty.messages(session)) == 1
