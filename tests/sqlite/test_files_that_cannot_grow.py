"""A file that cannot grow: each write is refused completely, and made once there is room."""

from __future__ import annotations

import asyncio
import contextlib
import resource
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from backends import Backend
from facades import AwaitedStore, Contract
from peers import Connection, other

from sessiondb import (
    SessionHandle,
    StorageError,
    StorageFullError,
    Store,
    assistant,
    user,
)


@contextmanager
def full(store: AwaitedStore) -> Generator[None]:
    """Let the file grow no more, as a full disk does."""
    writer = store.inner._core.writer
    with writer._role:
        size = writer.connection.inner.execute("PRAGMA page_count").fetchone()[0]
        writer.connection.inner.execute(f"PRAGMA max_page_count={size}")
    try:
        yield
    finally:
        with writer._role:
            writer.connection.inner.execute("PRAGMA max_page_count=1073741823")


async def test_a_full_disk_is_raised_and_written_when_there_is_space(
    contract: Contract, session: SessionHandle
) -> None:
    async with contract.store.stream(session) as out:
        said = out.text()
        said.add("before ")
        await out.flush()
        with full(contract.store):
            said.add("x" * 50_000)
            with pytest.raises(StorageFullError) as failed:
                await out.flush()
            assert failed.value.retryable
            assert (await contract.store.messages(session))[0].text == "before "
        await out.flush()
        assert (await contract.store.messages(session))[
            0
        ].text == "before " + "x" * 50_000
    contract.check()


@pytest.mark.slow
async def test_a_full_disk_is_a_typed_error_and_nothing_of_the_unit_is_written(
    contract: Contract, session: SessionHandle
) -> None:
    await contract.store.append(session, user("before"))
    with full(contract.store):
        for _ in range(2):
            with pytest.raises(StorageFullError) as raised:
                async with contract.store.effects() as fx:
                    fx.set_title(session, "never")
                    fx.append(session, assistant("x" * 500_000))
            assert (raised.value.effect, raised.value.position) == ("append", 1)
            assert isinstance(raised.value, OSError)
            assert (raised.value.retryable, raised.value.exit_code) == (True, 1)
        assert [m.text for m in await contract.store.messages(session)] == ["before"]
    await contract.store.commit(fx)
    found = await contract.store.session(session)
    assert (found.title, found.message_count) == ("never", 2)
    contract.check()


@pytest.mark.slow
async def test_units_that_fit_are_written_beside_one_that_does_not(
    contract: Contract, session: SessionHandle
) -> None:
    await contract.store.append(session, user("before"))
    with full(contract.store):
        sizes = [10, 500_000, 10, 700_000]
        work = [contract.store.append(session, user("x" * size)) for size in sizes]
        ended = await asyncio.gather(*work, return_exceptions=True)
        assert [isinstance(e, StorageFullError) for e in ended] == [
            False,
            True,
            False,
            True,
        ]
    assert [len(m.text) for m in await contract.store.messages(session)] == [6, 10, 10]
    contract.check()


def append_until_full(pipe: Connection, path: Path, session: str) -> None:
    """Append with little room for the files to grow; then with enough again."""
    with Store.open(path, durability="normal") as store:
        store.append(session, user("first"))
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        room = Path(f"{path}-wal").stat().st_size + 1_000_000
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, limits[1]))
        for _ in range(3):
            with contextlib.suppress(StorageError):
                while True:
                    pipe.send(store.append(session, user("y" * 900)).id)
            pipe.send("failed")
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        pipe.send(store.append(session, user("with room again")).id)


@pytest.mark.slow
def test_a_file_that_cannot_grow_loses_nothing_and_works_again(
    backend: Backend,
) -> None:
    path = backend.fresh()
    with Store.open(path) as store:
        session = store.create_session(directory="/tmp")
    with other(append_until_full, path, session.id) as writer:
        heard = []
        with contextlib.suppress(EOFError):
            while True:
                heard.append(writer.hear())
        writer.end()
    assert heard.count("failed") == 3
    acknowledged = [said for said in heard if said != "failed"]
    assert len(acknowledged) > 10
    found = [
        row for (row,) in backend.rows(path, "SELECT id FROM message ORDER BY seq")
    ]
    assert found[1:] == acknowledged
    backend.assert_intact(path)
