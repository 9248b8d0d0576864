"""One suite for two façades: a sync store is awaited like an async one, and never waits twice."""

from __future__ import annotations

import asyncio
import inspect
import sqlite3
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

from sessiondb import AsyncStore, Change, Store
from sessiondb.effects import Unit


class Awaited:
    """Any object whose methods may or may not have to be awaited, always awaited."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.inner, name)
        if not callable(found):
            return found

        async def call(*args: Any, **kwargs: Any) -> Any:
            result = found(*args, **kwargs)
            return await result if inspect.isawaitable(result) else result

        return call


@asynccontextmanager
async def entered(block: Any) -> AsyncGenerator[Any]:
    """Enter a block of either kind."""
    if hasattr(block, "__aenter__"):
        async with block as value:
            yield value
    else:
        with block as value:
            yield value


class AwaitedStream(Awaited):
    """A stream: adding is in memory in both façades, flushing is waited for."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self.text, self.reasoning, self.tool = inner.text, inner.reasoning, inner.tool
        self.finish, self.message = inner.finish, inner.message


class AwaitedStore(Awaited):
    """A store of either façade."""

    def unit(self) -> Unit:
        """Return an empty unit, to be committed by hand."""
        made: Unit = self.inner._core.unit()
        return made

    def effects(self, **options: Any) -> Any:
        return entered(self.inner.effects(**options))

    def lease(self, *args: Any, **options: Any) -> Any:
        return entered(self.inner.lease(*args, **options))

    @asynccontextmanager
    async def stream(self, *args: Any, **options: Any) -> AsyncGenerator[AwaitedStream]:
        async with entered(self.inner.stream(*args, **options)) as out:
            yield AwaitedStream(out)

    def on_commit(
        self, callback: Callable[[list[Change]], object]
    ) -> Callable[[], None]:
        end: Callable[[], None] = self.inner.on_commit(callback)
        return end

    async def changes(self, *args: Any, **options: Any) -> AsyncGenerator[Change]:
        found = self.inner.changes(*args, **{"poll": 0.01, **options})
        if hasattr(found, "__anext__"):
            async for change in found:
                yield change
        else:
            while True:
                yield await asyncio.to_thread(next, found)


class Contract:
    """A database file and the façade that a test uses it through."""

    def __init__(self, kind: str, path: Path) -> None:
        self.kind, self.path = kind, path
        self._opened: list[AwaitedStore] = []
        self.store: AwaitedStore

    async def open(self, **options: Any) -> AwaitedStore:
        """Open the file (again); it is closed with the test."""
        options = {"durability": "normal", "source": "tests", **options}
        if self.kind == "sync":
            store = AwaitedStore(Store.open(self.path, **options))
        else:
            store = AwaitedStore(await AsyncStore.open(self.path, **options))
        self._opened.append(store)
        return store

    async def close(self) -> None:
        """Close every store."""
        for store in self._opened:
            await store.close()

    def rows(self, sql: str, *params: Any) -> list[tuple[Any, ...]]:
        """Return the rows that another connection sees."""
        return rows(self.path, sql, *params)

    def execute(self, sql: str) -> None:
        """Write as another program would."""
        with closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            connection.execute(sql)

    def check(self) -> None:
        """Assert that the file, its search index and its counters are intact."""
        assert_intact(self.path)


def rows(path: Path, sql: str, *params: Any) -> list[tuple[Any, ...]]:
    """Return the rows that plain sqlite3 reads."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql, params).fetchall()


_LOST = """
SELECT 'messages', id FROM session WHERE message_count <>
    (SELECT count(*) FROM message WHERE session_id = session.id)
UNION ALL SELECT 'cost', id FROM session WHERE abs(coalesce(cost, 0) -
    (SELECT coalesce(sum(cost), 0) FROM message WHERE session_id = session.id AND inherited = 0))
    > 1e-9
UNION ALL SELECT 'last_seq', id FROM session WHERE last_seq <
    (SELECT coalesce(max(seq), 0) FROM message WHERE session_id = session.id)
UNION ALL SELECT 'leaf', id FROM session WHERE leaf_seq IS NOT NULL AND leaf_seq NOT IN
    (SELECT seq FROM message WHERE session_id = session.id)
UNION ALL SELECT 'parent', session_id FROM message m WHERE parent_seq IS NOT NULL AND NOT EXISTS
    (SELECT 1 FROM message o WHERE o.session_id = m.session_id AND o.seq = m.parent_seq)
UNION ALL SELECT 'blob', hash FROM blob WHERE
    hash NOT IN (SELECT text_blob FROM part WHERE text_blob IS NOT NULL) AND
    hash NOT IN (SELECT input_blob FROM part WHERE input_blob IS NOT NULL) AND
    hash NOT IN (SELECT data_blob FROM part WHERE data_blob IS NOT NULL) AND
    hash NOT IN (SELECT data_blob FROM message WHERE data_blob IS NOT NULL) AND
    hash NOT IN (SELECT before_blob FROM file_diff WHERE before_blob IS NOT NULL) AND
    hash NOT IN (SELECT after_blob FROM file_diff WHERE after_blob IS NOT NULL)
UNION ALL SELECT 'change', id FROM session WHERE change <= 0
UNION ALL SELECT 'deletion', d.session_id FROM deletion AS d JOIN session AS s
    ON s.change = d.change WHERE s.time_deleted IS NULL
"""


def assert_intact(path: Path) -> None:
    """Assert that a file is intact, and that its counters agree with its rows."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        assert connection.execute(_LOST).fetchall() == []
        for table in ("part_search", "session_search", "prompt_search"):
            connection.execute(
                f"INSERT INTO {table}({table}, rank) VALUES ('integrity-check', 1)"
            )


async def eventually(test: Callable[[], Any], seconds: float = 5.0) -> Any:
    """Return the first true value of *test*; fails after *seconds*."""
    ends = asyncio.get_running_loop().time() + seconds
    while not (value := test()):
        assert asyncio.get_running_loop().time() < ends, "it did not happen"
        await asyncio.sleep(0.005)
    return value
