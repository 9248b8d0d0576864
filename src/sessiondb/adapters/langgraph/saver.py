"""LangGraph's checkpoints in a database of sessiondb: a thread is a session.

The tables of `tables` have all that a graph needs to continue, to go back and to
resume from an interrupt. The channel ``messages`` of the main graph is also written as
messages of the session (`transcripts`), where people read, search, fork and price it.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Self, TypeAlias

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from sessiondb.adapters.langgraph import statements as sql
from sessiondb.adapters.langgraph.rows import CheckpointRow, Heads
from sessiondb.adapters.langgraph.writer import ATTEMPTS, CheckpointWrites
from sessiondb.adapters.opening import Where, is_given, open_store
from sessiondb.effects import SessionHandle
from sessiondb.engine.sql import as_list
from sessiondb.errors import ConflictError, NotFoundError

# The class below has a method named list.
Numbers: TypeAlias = list[int]


class SessionDBSaver(CheckpointWrites):
    """A checkpointer of LangGraph on a database of sessiondb, synchronous and async.

    *database* is a path, a URL, or an open store, which stays that of the caller; the
    other arguments are those of `Store.open`. It may be used from any thread and any
    number of processes, and is a context manager that closes the store it opened.
    """

    def __init__(
        self,
        database: Where = None,
        *,
        serde: SerializerProtocol | None = None,
        **options: Any,
    ) -> None:
        super().__init__(open_store(database, **options), serde=serde)
        self._owns_store = not is_given(database)

    def close(self) -> None:
        """Close the store, if this object opened it."""
        if self._owns_store:
            self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.close)

    def get_next_version(self, current: str | None, channel: None) -> str:
        """Return the version after *current*: texts in the order of their numbers."""
        del channel
        number = 0 if current is None else int(str(current).partition(".")[0])
        return f"{number + 1:032}.{random.getrandbits(53):016}"

    def delete_thread(self, thread_id: str) -> None:
        """Remove a thread: its session with all that is in it, if there is one."""
        thread = str(thread_id)
        for session_id in self._ids_of([thread]).values():
            self.store.delete(SessionHandle(session_id), keep_forks=True)
        self._threads.pop(thread, None)

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Remove the checkpoints of runs, with their writes; the transcript stays."""
        runs = set(run_ids)

        def of_runs(rows: Heads) -> set[tuple[str, str]]:
            return {
                place
                for place, row in rows.items()
                if json.loads(row.metadata).get("run_id") in runs
            }

        for (session_id,) in self.store.select(sql.RUNS, {"runs": as_list(run_ids)}):
            self._remove(session_id, of_runs)

    def prune(
        self, thread_ids: Sequence[str], *, strategy: str = "keep_latest"
    ) -> None:
        """Remove old checkpoints of threads; the transcript stays.

        ``keep_latest`` keeps the newest of each namespace, and before it those from
        which its delta channels are made up; ``delete`` keeps none. To remove the
        session as well, see `delete_thread`.
        """
        if strategy not in ("keep_latest", "delete"):
            raise ValueError(f"strategy is keep_latest or delete, not {strategy!r}")

        def unneeded(rows: Heads) -> set[tuple[str, str]]:
            needed = set() if strategy == "delete" else self._needed(rows)
            return rows.keys() - needed

        for session_id in self._ids_of([str(thread) for thread in thread_ids]).values():
            self._remove(session_id, unneeded)

    def _needed(self, rows: Heads) -> set[tuple[str, str]]:
        """Return the latest checkpoint of each namespace, and those it is made of."""
        latest: dict[str, CheckpointRow] = {}
        for row in rows.values():
            if row.ns not in latest or row.id > latest[row.ns].id:
                latest[row.ns] = row

        needed = {(row.ns, row.id) for row in latest.values()}
        for newest in latest.values():
            counters = json.loads(newest.metadata).get("counters_since_delta_snapshot")
            remaining = set(counters or ())
            ancestor: CheckpointRow | None = newest
            while ancestor is not None:
                needed.add((ancestor.ns, ancestor.id))
                versions = self._versions_of(ancestor)
                wanted = {name: versions[name] for name in remaining & versions.keys()}
                remaining -= self._values_at(ancestor, wanted).keys()
                if not remaining or ancestor.parent_id is None:
                    break
                ancestor = rows.get((ancestor.ns, ancestor.parent_id))
        return needed

    def _remove(
        self, session_id: str, chosen: Callable[[Heads], set[tuple[str, str]]]
    ) -> None:
        """Remove checkpoints, and the writes and values that no other one has.

        *chosen* is called again if another process wrote to the session meanwhile: a
        checkpoint that was added may have values that no other one had.
        """
        for attempt in range(ATTEMPTS):
            try:
                revision = self.store.session(SessionHandle(session_id)).revision
            except NotFoundError:
                return
            try:
                selected = self.store.select(sql.OF_SESSION, {"session_id": session_id})
                heads = [CheckpointRow(*columns) for columns in selected]
                rows = {(head.ns, head.id): head for head in heads}
                removed = chosen(rows)
                if removed:
                    unused = self._values_only_of(session_id, rows, removed)
                    self._remove_rows(session_id, revision, removed, unused)
            except (ConflictError, NotFoundError):
                if attempt == ATTEMPTS - 1:
                    raise
            else:
                return

    def _values_only_of(
        self, session_id: str, rows: Heads, removed: set[tuple[str, str]]
    ) -> Numbers:
        """Return the values that no checkpoint has but those to be removed."""
        used = {
            (row.ns, channel, json.dumps(version))
            for place, row in rows.items()
            if place not in removed
            for channel, version in self._versions_of(row).items()
        }
        values = self.store.select(sql.ALL_VALUES, {"session_id": session_id})
        return [rid for rid, *value in values if tuple(value) not in used]

    def _remove_rows(
        self,
        session_id: str,
        revision: int,
        removed: set[tuple[str, str]],
        unused: Numbers,
    ) -> None:
        session = SessionHandle(session_id)
        of_session = {"session_id": session}
        with self.store.effects() as fx:
            fx.expect(session, revision=revision)
            for ns in sorted({ns for ns, _ in removed}):
                ids = as_list(sorted([name for its, name in removed if its == ns]))
                for statement in (sql.DROP_CHECKPOINTS, sql.DROP_WRITES):
                    fx.execute(statement, {**of_session, "ns": ns, "ids": ids})
            fx.execute(sql.DROP_VALUES, {**of_session, "rids": as_list(unused)})
            fx.execute(sql.DROP_ITEMS, of_session)

    # -- the same for asynchronous graphs ----------------------------------------

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Do what `get_tuple` does, in a thread."""
        return await asyncio.to_thread(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Do what `list` does, each step in a thread."""
        checkpoints = self.list(config, filter=filter, before=before, limit=limit)
        while True:
            checkpoint = await asyncio.to_thread(next, checkpoints, None)
            if checkpoint is None:
                return
            yield checkpoint

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Do what `put` does, in a thread."""
        return await asyncio.to_thread(
            self.put, config, checkpoint, metadata, new_versions
        )

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Do what `put_writes` does, in a thread."""
        await asyncio.to_thread(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """Do what `delete_thread` does, in a thread."""
        await asyncio.to_thread(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Do what `delete_for_runs` does, in a thread."""
        await asyncio.to_thread(self.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Do what `copy_thread` does, in a thread."""
        await asyncio.to_thread(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(
        self, thread_ids: Sequence[str], *, strategy: str = "keep_latest"
    ) -> None:
        """Do what `prune` does, in a thread."""
        await asyncio.to_thread(self.prune, thread_ids, strategy=strategy)

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Do what `get_delta_channel_history` does, in a thread."""
        return await asyncio.to_thread(
            self.get_delta_channel_history, config=config, channels=channels
        )
