"""LangGraph's long-term memory in a database of sessiondb: items by namespace and key.

An item is a value of the key/value table, in a namespace below `items.ROOT`. So it is
in the file of the conversations, in its backups and imports, and belongs to none of
them. A call is one transaction, whatever number of operations it has.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from typing import Any, Self

from langgraph.store.base import BaseStore, GetOp, Op, PutOp, Result, TTLConfig

from sessiondb.adapters.langgraph.batches import OpBatch, address_of, write_item
from sessiondb.adapters.langgraph.items import ROOT, item_of
from sessiondb.adapters.langgraph.sweeper import TTLSweeper
from sessiondb.adapters.opening import Where, is_given, open_store
from sessiondb.aio import AsyncStore
from sessiondb.errors import UnsupportedError

#: Minutes between two sweeps, if the configuration states none.
_SWEEP_INTERVAL = 5


class SessionDBStore(BaseStore):
    """A store of LangGraph on a database of sessiondb, synchronous and async.

    *database* is a path, a URL, or an open store, which stays that of the caller; the
    other arguments are those of `Store.open`. *ttl* is LangGraph's: an item is gone
    when its time is over, swept or not. It may be used from any thread, event loop and
    number of processes, and is a context manager that closes the store it opened.
    Raises `UnsupportedError` for *index*: there is no vector search.
    """

    supports_ttl = True

    def __init__(
        self,
        database: Where = None,
        *,
        ttl: TTLConfig | None = None,
        index: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        if index is not None:
            raise UnsupportedError(
                "index: SessionDBStore has no vector search",
                hint="leave it out, and search by namespace and filter",
            )
        self.store = open_store(database, **options)
        self._awaited = AsyncStore.sharing(self.store)
        self._owns_store = not is_given(database)
        # As SqliteStore: to read an item is no use of it unless that is configured.
        self.ttl_config = None if ttl is None else {"refresh_on_read": False, **ttl}
        self._sweeper: TTLSweeper | None = None

    def close(self) -> None:
        """Stop the sweeper, and close the store if this object opened it."""
        if self._sweeper is not None:
            self._sweeper.stop(None)
        if self._owns_store:
            self.store.close()

    async def aclose(self) -> None:
        """Do what `close` does, in a thread."""
        await asyncio.to_thread(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    # -- operations ----------------------------------------------------------------

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations in one transaction: first all reads, then all writes.

        Of several writes of one key the last one counts. Raises `InvalidNamespaceError`
        before anything is done, `CodecError` for what is not JSON.
        """
        operations = list(ops)
        if len(operations) == 1:
            # Nearly every call is one operation, for which a verb of the store is all.
            (op,) = operations
            if isinstance(op, PutOp):
                write_item(self.store, address_of(op), op)
                return [None]
            if isinstance(op, GetOp) and self.ttl_config is None:
                value = self.store.value(*address_of(op))
                return [None if value is None else item_of(value)]

        batch = OpBatch(operations, self.ttl_config)
        if not batch.puts:
            answers = self.store.snapshot(batch.answers)
        else:
            with self.store.effects() as fx:
                reads = fx.snapshot(batch.answers) if batch.reads else None
                batch.queue_writes(fx)
            answers = [] if reads is None else reads.value
        refreshed = batch.to_refresh(answers)
        if refreshed:
            # Not synced: a power cut may take it back, and items expire sooner.
            with self.store.effects(durability="normal") as fx:
                for address in refreshed:
                    fx.refresh_value(*address)
        return batch.results(answers)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do what `batch` does; the loop does not wait for the disk.

        A caller who is cancelled does not wait for a write, which is completed.
        """
        batch = OpBatch(ops, self.ttl_config)
        if not batch.puts:
            answers = await self._awaited.snapshot(batch.answers)
        else:
            async with self._awaited.effects() as fx:
                reads = fx.snapshot(batch.answers) if batch.reads else None
                batch.queue_writes(fx)
            answers = [] if reads is None else reads.value
        refreshed = batch.to_refresh(answers)
        if refreshed:
            async with self._awaited.effects(durability="normal") as fx:
                for address in refreshed:
                    fx.refresh_value(*address)
        return batch.results(answers)

    # -- expiry --------------------------------------------------------------------

    def sweep_ttl(self) -> int:
        """Remove the items that expired; return how many that were.

        No read returns them, and a process that has the file open removes them within
        about a second: those are not counted here.
        """
        return self.store.delete_expired(ROOT).deleted

    async def asweep_ttl(self) -> int:
        """Do what `sweep_ttl` does; the loop does not wait for the disk."""
        return (await self._awaited.delete_expired(ROOT)).deleted

    def start_ttl_sweeper(
        self, sweep_interval_minutes: float | None = None
    ) -> Future[None]:
        """Start a thread that sweeps in intervals, unless it runs.

        The interval is by default the configured one, else 5 minutes. The future is
        done when the thread ends, and ends it if it is cancelled; without a
        configuration of times to live there is no thread, and the future is done.
        """
        if self.ttl_config is None:
            none_started: Future[None] = Future()
            none_started.set_result(None)
            return none_started
        if self._sweeper is None or not self._sweeper.running:
            minutes = (
                sweep_interval_minutes
                or self.ttl_config.get("sweep_interval_minutes")
                or _SWEEP_INTERVAL
            )
            self._sweeper = TTLSweeper(self, self.store, 60 * float(minutes))
        return self._sweeper.future

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """Stop the sweeper; False if it still runs after *timeout* seconds."""
        return self._sweeper is None or self._sweeper.stop(timeout)
