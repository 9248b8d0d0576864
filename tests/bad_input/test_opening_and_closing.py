"""A store that is opened, used or left in an unintended way: one clear error, or it works."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from sessiondb import (
    ALL,
    AsyncStore,
    Change,
    InvalidInputError,
    MissingExtraError,
    NotFoundError,
    SessionDBError,
    Store,
    StoreClosedError,
    user,
)
from sessiondb.maintenance import backup

pytestmark = pytest.mark.slow


def test_a_store_that_is_made_with_a_path_is_open(tmp_path: Path) -> None:
    with Store(tmp_path / "x.db", source="tests", durability="normal") as store:
        session = store.create_session(title="made")
    with Store.open(str(tmp_path / "x.db"), create=False) as again:
        assert again.session(session).title == "made"


@pytest.mark.parametrize("where", [5, b"x.db", object(), ["x.db"]])
def test_a_store_refused_for_its_path_raises_nothing_more_when_collected(
    where: Any,
) -> None:
    for make in (Store, Store.open):
        with pytest.raises(InvalidInputError):
            make(where)
    with pytest.raises(NotFoundError):
        Store("nowhere.db", create=False)
    gc.collect()


async def test_an_async_store_whose_path_cannot_be_opened_says_so_when_it_is_used(
    tmp_path: Path,
) -> None:
    with pytest.raises(InvalidInputError, match="named by a path"):
        AsyncStore(5)  # type: ignore[arg-type]
    store = AsyncStore(tmp_path / "missing" / "x.db")
    for _ in range(2):
        with pytest.raises(NotFoundError, match="there is no folder"):
            await store.create_session()
    (tmp_path / "missing").mkdir()
    await store.create_session()
    await store.close()
    gc.collect()


async def test_an_async_store_that_was_not_awaited_says_so_wherever_it_is_used(
    tmp_path: Path,
) -> None:
    store: Any = AsyncStore.open(tmp_path / "x.db")
    for name in ("append", "sessions", "close", "path", "changes"):
        with pytest.raises(StoreClosedError, match="not awaited") as refused:
            getattr(store, name)
        assert "await AsyncStore.open" in (refused.value.hint or "")
    with pytest.raises(StoreClosedError, match="not awaited"), store:
        pass
    assert not hasattr(store, "append")
    with pytest.raises(AttributeError, match="no attribute 'appendix'"):
        _ = store.appendix
    assert not (tmp_path / "x.db").exists()


async def test_an_async_store_is_opened_by_await_and_by_async_with_and_by_each_once(
    tmp_path: Path,
) -> None:
    opening = AsyncStore.open(tmp_path / "x.db")
    store = await opening
    async with store:
        await store.create_session()
    with pytest.raises(InvalidInputError, match="opened before"):
        await opening
    with pytest.raises(InvalidInputError, match="opened before"):
        async with opening:
            pass
    async with AsyncStore.open(tmp_path / "x.db") as store:
        assert len(await store.sessions(project=ALL, empty=True)) == 1
    async with asyncio.timeout(5), await AsyncStore.open(tmp_path / "x.db") as store:
        assert store.path == tmp_path / "x.db"


async def test_a_connection_without_its_extra_names_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with AsyncStore.open(tmp_path / "x.db") as store:
        monkeypatch.setitem(sys.modules, "greenlet", None)
        with pytest.raises(MissingExtraError, match="greenlet") as refused:
            store.connection()
        assert refused.value.hint == "pip install 'sessiondb[asyncio]'"


async def test_callbacks_are_ended_again_and_after_the_store_was_closed(
    tmp_path: Path,
) -> None:
    notified: list[Change] = []
    with Store.open(tmp_path / "x.db") as neighbour:
        with Store.open(tmp_path / "x.db") as store:
            ends = [store.on_commit(notified.extend)]
        async with AsyncStore.open(tmp_path / "x.db") as other:
            ends.append(other.on_commit(notified.extend))
        for end in ends * 2:
            end()
        neighbour.append(neighbour.create_session(), user("told to nobody"))
    await asyncio.sleep(0.02)
    assert notified == []


def test_a_backup_is_written_to_a_path_of_any_kind(tmp_path: Path) -> None:
    class Somewhere(os.PathLike[str]):
        def __fspath__(self) -> str:
            return str(tmp_path / "3.db")

    with Store.open(tmp_path / "x.db") as store:
        for to in (tmp_path / "1.db", str(tmp_path / "2.db"), Somewhere()):
            made = backup(store, to)
            assert made.path == Path(to)
            assert made.path.stat().st_size == made.bytes
        before = sorted(tmp_path.iterdir())
        for to in (5, None, b"4.db", "4\0.db", object(), "~nobody-of-that-name/4.db"):
            with pytest.raises(InvalidInputError, match="to must be a path"):
                backup(store, to)  # type: ignore[arg-type]
        assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    "poll", [-1, float("nan"), float("inf"), "1", None, True, 86_401]
)
def test_a_feed_that_looks_at_impossible_intervals_is_refused(
    poll: Any, tmp_path: Path
) -> None:
    async def follow() -> None:
        async with AsyncStore.open(tmp_path / "x.db") as store:
            await anext(store.changes(poll=poll))

    with (
        Store.open(tmp_path / "x.db") as store,
        pytest.raises(SessionDBError, match="poll must be"),
    ):
        next(store.changes(poll=poll))
    with pytest.raises(InvalidInputError, match="poll must be"):
        asyncio.run(follow())
