"""Nothing acknowledged is lost: by a full disk, or by SIGKILL in the middle of commits."""

from __future__ import annotations

import asyncio
import contextlib
import random
import resource
import shutil
from pathlib import Path

import pytest
from facades import Contract, assert_intact, rows
from peers import Connection, other
from test_stream_failures import full

from sessiondb import (
    SessionHandle,
    StorageError,
    StorageFullError,
    Store,
    assistant,
    tool,
    user,
)

pytestmark = pytest.mark.slow


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


def test_a_file_that_cannot_grow_loses_nothing_and_works_again(
    tmp_path: Path, empty: Path
) -> None:
    path = tmp_path / "s.db"
    shutil.copy(empty, path)
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
    found = [row for (row,) in rows(path, "SELECT id FROM message ORDER BY seq")]
    assert found[1:] == acknowledged
    assert_intact(path)


def commit_for_ever(pipe: Connection, path: Path, name: str) -> None:
    """Commit units of four effects, and report each when it is acknowledged."""
    with Store.open(path) as store:
        number = 0
        while True:
            with store.effects() as fx:
                m = fx.append(name, user(f"ask {number}"))
                a = fx.append(
                    name, assistant(tool("t", {"n": number}, id=f"{m.id}-call"))
                )
                fx.settle(
                    name, a.parts[0], output="z" * random.choice((10, 2_000, 20_000))
                )
                fx.label(name, m, f"label {number}")
            pipe.send(number)
            number += 1


async def test_acknowledged_commits_survive_sigkill_completely(
    tmp_path: Path, empty: Path
) -> None:
    path = tmp_path / "s.db"
    shutil.copy(empty, path)
    with Store.open(path) as store:
        names = [
            store.create_session(id=f"s{n}", directory="/tmp").id for n in range(5)
        ]
    for name in names:
        with other(commit_for_ever, path, name) as writer:
            writer.hear()
            await asyncio.sleep(random.uniform(0.0, 0.06))
            writer.kill()
            acknowledged = 0
            with contextlib.suppress(EOFError):
                while True:
                    acknowledged = writer.hear()
        count = "SELECT count(*) FROM message WHERE session_id = ?"
        assert rows(path, count, name)[0][0] >= 2 * (acknowledged + 1)
        sql = """
        SELECT count(*), sum(m.role = 'user'), (SELECT count(*) FROM label WHERE session_id = ?),
            (SELECT count(*) FROM part WHERE session_id = ? AND status = 'completed')
        FROM message m WHERE m.session_id = ?"""
        messages, asked, labels, settled = rows(path, sql, name, name, name)[0]
        assert messages == 2 * asked == 2 * labels == 2 * settled
        assert_intact(path)
    with Store.open(path) as store:
        for name in names:
            store.append(name, user("on"))
    assert_intact(path)
