"""Checkpoints as they are read: a few statements each, in one snapshot."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    Checkpoint,
    CheckpointTuple,
    DeltaChannelHistory,
    PendingWrite,
    get_checkpoint_id,
    writes_sort_key,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from sessiondb.adapters.langgraph import statements as sql
from sessiondb.adapters.langgraph.lists import Serialized, StoredItems, loaded_list
from sessiondb.adapters.langgraph.rows import (
    EMPTY,
    LIST,
    CheckpointPlace,
    CheckpointRow,
)
from sessiondb.database.queries import Queries
from sessiondb.engine.sql import as_list
from sessiondb.errors import NotFoundError
from sessiondb.repository import Read, Rows
from sessiondb.store import Store

#: Checkpoints that `list` reads at a time.
_PAGE = 50

# The class below has a method named list.
PendingWrites: TypeAlias = list[PendingWrite]


class StoredCheckpoint(NamedTuple):
    """All of a checkpoint, as it was at one moment."""

    row: CheckpointRow
    #: The checkpoint without its values.
    head: dict[str, Any]
    #: By channel; a tuple is not a list.
    values: dict[str, Serialized | StoredItems]
    writes: Rows


class CheckpointReads(BaseCheckpointSaver[str]):
    """The reads of a checkpointer."""

    def __init__(self, store: Store, *, serde: SerializerProtocol | None) -> None:
        super().__init__(serde=serde)
        self.store = store

    def _ids_of(self, threads: Sequence[str]) -> dict[str, str]:
        """Return the ids of the sessions of threads; those of others are left out."""
        return dict(self.store.select(sql.THREADS, {"threads": as_list(threads)}))

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the checkpoint that *config* names, else the latest; None for none."""
        place = CheckpointPlace.named_by(config)

        def read(reads: Queries) -> Read[StoredCheckpoint | None]:
            row = yield from _row_at(reads, place)
            return None if row is None else (yield from self._stored_at(reads, row))

        stored = self.store.snapshot(read)
        return None if stored is None else self._tuple_of(stored)

    def _row_at(self, place: CheckpointPlace) -> CheckpointRow | None:
        return self.store.snapshot(lambda reads: _row_at(reads, place))

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yield checkpoints, newest first; *filter* has values of their metadata.

        No transaction is open in between.
        """
        number = 0
        for row in self._rows_of(config, before):
            if limit is not None and number >= limit:
                return
            metadata = json.loads(row.metadata)
            if all(metadata.get(key) == value for key, value in (filter or {}).items()):
                try:
                    stored = self.store.snapshot(partial(self._stored_at, row=row))
                except NotFoundError:  # removed since the page was read
                    continue
                number += 1
                yield self._tuple_of(stored)

    def _rows_of(
        self, config: RunnableConfig | None, before: RunnableConfig | None
    ) -> Iterator[CheckpointRow]:
        filters: dict[str, Any] = {}
        if config is not None:
            filters["thread"] = str(config["configurable"]["thread_id"])
            filters["ns"] = config["configurable"].get("checkpoint_ns")
            filters["id"] = get_checkpoint_id(config)
        if before is not None:
            filters["before"] = get_checkpoint_id(before)
        parameters: dict[str, Any] = {
            name: value for name, value in filters.items() if value is not None
        }

        while True:
            statement = sql.page_of_checkpoints(frozenset(parameters))
            rows = self.store.select(statement, {**parameters, "most": _PAGE})
            for *columns, _ in rows:
                yield CheckpointRow(*columns)
            if len(rows) < _PAGE:
                return
            parameters |= {"last_id": rows[-1][3], "last_rid": rows[-1][-1]}

    def _stored_at(self, reads: Queries, row: CheckpointRow) -> Read[StoredCheckpoint]:
        """Read all of a checkpoint; raises `NotFoundError` if it was removed."""
        head = self.serde.loads_typed((row.type, row.body))
        values = yield from _stored_values(reads, row, head["channel_versions"])
        writes = yield from _stored_writes(reads, row)
        return StoredCheckpoint(row, head, values, writes)

    def _tuple_of(self, stored: StoredCheckpoint) -> CheckpointTuple:
        row = stored.row
        place = CheckpointPlace(row.thread, row.ns, row.id)
        values = self._loaded_values(stored.values)
        return CheckpointTuple(
            config=place.config(row.id),
            checkpoint=cast(Checkpoint, {**stored.head, "channel_values": values}),
            metadata=json.loads(row.metadata),
            parent_config=None
            if row.parent_id is None
            else place.config(row.parent_id),
            pending_writes=self._loaded_writes(stored.writes),
        )

    def _values_at(
        self, row: CheckpointRow, versions: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the values of channels in these versions; a channel may have none.

        Raises `NotFoundError` if the checkpoint was removed after its row was read.
        """
        stored = self.store.snapshot(lambda reads: _stored_values(reads, row, versions))
        return self._loaded_values(stored)

    def _loaded_values(
        self, stored: Mapping[str, Serialized | StoredItems]
    ) -> dict[str, Any]:
        return {
            channel: self.serde.loads_typed(value)
            if isinstance(value, tuple)
            else loaded_list(self.serde, value)
            for channel, value in stored.items()
        }

    def _writes_at(self, row: CheckpointRow) -> PendingWrites:
        """Return the writes after a checkpoint, in the order in which they apply."""
        stored = self.store.snapshot(lambda reads: _stored_writes(reads, row))
        return self._loaded_writes(stored)

    def _loaded_writes(self, stored: Rows) -> PendingWrites:
        ordered = sorted(stored, key=lambda write: writes_sort_key(*write[:3]))
        return [
            (task_id, channel, self.serde.loads_typed((kind, body)))
            for _, task_id, _, channel, kind, body in ordered
        ]

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Return the writes of *channels* since each was stored last, oldest first.

        ``seed`` is the value that was stored, missing if none was. Only ancestors of
        the checkpoint count, each of which is read without its other channels.
        """
        place = CheckpointPlace.named_by(config)
        histories: dict[str, DeltaChannelHistory] = {
            channel: {"writes": []} for channel in channels
        }
        row = self._row_at(place) if channels else None
        remaining = set(channels)
        while row is not None and row.parent_id is not None and remaining:
            row = self._row_at(place._replace(checkpoint_id=row.parent_id))
            if row is None:
                break
            for write in reversed(self._writes_at(row)):
                if write[1] in remaining:
                    histories[write[1]]["writes"].append(write)
            versions = self._versions_of(row)
            wanted = {name: versions[name] for name in remaining & versions.keys()}
            for channel, value in self._values_at(row, wanted).items():
                histories[channel]["seed"] = value
                remaining.discard(channel)
        for history in histories.values():
            history["writes"].reverse()
        return histories

    def _versions_of(self, row: CheckpointRow) -> Mapping[str, Any]:
        versions: Mapping[str, Any] = self.serde.loads_typed((row.type, row.body))[
            "channel_versions"
        ]
        return versions


def _row_at(reads: Queries, place: CheckpointPlace) -> Read[CheckpointRow | None]:
    parameters = {"thread": place.thread, "ns": place.ns}
    statement = sql.LATEST
    if place.checkpoint_id is not None:
        statement = sql.ONE
        parameters["id"] = place.checkpoint_id
    rows = yield from reads.select(statement, parameters)
    return CheckpointRow(*rows[0]) if rows else None


def _stored_values(
    reads: Queries, row: CheckpointRow, versions: Mapping[str, Any]
) -> Read[dict[str, Serialized | StoredItems]]:
    """Read the values of channels in these versions; a channel may have none."""
    wanted = [(name, json.dumps(version)) for name, version in versions.items()]
    rows = yield from reads.select(
        sql.VALUES,
        {"session_id": row.session_id, "ns": row.ns, "versions": json.dumps(wanted)},
    )
    is_complete = len(rows) == len(wanted)
    stored: dict[str, Serialized | StoredItems] = {}
    for channel, number, length, kind, body in rows:
        if kind == LIST:
            items = yield from stored_items(reads, row.session_id, number, length)
            is_complete &= len(items) == length
            stored[channel] = items
        elif kind != EMPTY:
            stored[channel] = (kind, body)
    if not is_complete:
        place = CheckpointPlace(row.thread, row.ns, row.id)
        if (yield from _row_at(reads, place)) is None:
            raise NotFoundError(f"checkpoint {row.id} was removed meanwhile")
    return stored


def stored_items(
    reads: Queries, session_id: str, number: int, length: int
) -> Read[StoredItems]:
    """Read the first *length* items of a list."""
    parameters = {"session_id": session_id, "list": number, "length": length}
    return (yield from reads.select(sql.ITEMS, parameters))


def _stored_writes(reads: Queries, row: CheckpointRow) -> Read[Rows]:
    parameters = {"session_id": row.session_id, "ns": row.ns, "checkpoint_id": row.id}
    return (yield from reads.select(sql.WRITES, parameters))
