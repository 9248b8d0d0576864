"""Checkpoints as they are read: a few statements each, and no transaction."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

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
from sessiondb.adapters.langgraph.lists import Serialized
from sessiondb.adapters.langgraph.rows import (
    EMPTY,
    LIST,
    CheckpointPlace,
    CheckpointRow,
)
from sessiondb.engine.sql import as_list
from sessiondb.errors import NotFoundError
from sessiondb.store import Store

#: Checkpoints that `list` reads at a time.
_PAGE = 50

# The class below has a method named list.
SerializedList: TypeAlias = list[Serialized]
PendingWrites: TypeAlias = list[PendingWrite]


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
        while (row := self._row_at(place)) is not None:
            try:
                return self._tuple_of(row)
            except NotFoundError:
                # Removed while it was read: the latest is another one now.
                continue
        return None

    def _row_at(self, place: CheckpointPlace) -> CheckpointRow | None:
        parameters = {"thread": place.thread, "ns": place.ns}
        if place.checkpoint_id is None:
            rows = self.store.select(sql.LATEST, parameters)
        else:
            parameters["id"] = place.checkpoint_id
            rows = self.store.select(sql.ONE, parameters)
        return CheckpointRow(*rows[0]) if rows else None

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
                    checkpoint = self._tuple_of(row)
                except NotFoundError:  # removed since the page was read
                    continue
                number += 1
                yield checkpoint

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

    def _tuple_of(self, row: CheckpointRow) -> CheckpointTuple:
        place = CheckpointPlace(row.thread, row.ns, row.id)
        head = self.serde.loads_typed((row.type, row.body))
        values = self._values_at(row, head["channel_versions"])
        return CheckpointTuple(
            config=place.config(row.id),
            checkpoint=cast(Checkpoint, {**head, "channel_values": values}),
            metadata=json.loads(row.metadata),
            parent_config=None
            if row.parent_id is None
            else place.config(row.parent_id),
            pending_writes=self._writes_at(row),
        )

    def _values_at(
        self, row: CheckpointRow, versions: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the values of channels in these versions; a channel may have none.

        Raises `NotFoundError` if the checkpoint was removed, and values with it, after
        its row was read.
        """
        wanted = {name: json.dumps(version) for name, version in versions.items()}
        rows = self.store.select(
            sql.VALUES,
            {
                "session_id": row.session_id,
                "ns": row.ns,
                "versions": as_list(sorted(set(wanted.values()))),
            },
        )
        stored = {
            channel: columns
            for channel, version, *columns in rows
            if wanted.get(channel) == version
        }
        numbers = [number for number, *_ in stored.values() if number is not None]
        longest = max([length or 0 for _, length, *_ in stored.values()], default=0)
        items = self._items(row.session_id, numbers, longest)
        is_complete = len(stored) == len(wanted) and all(
            len(items[number]) >= length
            for number, length, *_ in stored.values()
            if number is not None
        )
        if not is_complete:
            place = CheckpointPlace(row.thread, row.ns, row.id)
            if self._row_at(place) is None:
                raise NotFoundError(f"checkpoint {row.id} was removed meanwhile")
        values: dict[str, Any] = {}
        for channel, (number, length, kind, body) in stored.items():
            if kind == LIST:
                some = items[number][:length]
                values[channel] = [self.serde.loads_typed(item) for item in some]
            elif kind != EMPTY:
                values[channel] = self.serde.loads_typed((kind, body))
        return values

    def _items(
        self, session_id: str, numbers: Sequence[int], longest: int
    ) -> dict[int, SerializedList]:
        """Return the items of lists by their numbers, up to the *longest* length."""
        items: dict[int, SerializedList] = {number: [] for number in numbers}
        if longest:
            rows = self.store.select(
                sql.ITEMS,
                {
                    "session_id": session_id,
                    "lists": as_list(numbers),
                    "length": longest,
                },
            )
            for number, kind, body in rows:
                items[number].append((kind, body))
        return items

    def _writes_at(self, row: CheckpointRow) -> PendingWrites:
        """Return the writes after a checkpoint, in the order in which they apply."""
        rows = self.store.select(
            sql.WRITES,
            {"session_id": row.session_id, "ns": row.ns, "checkpoint_id": row.id},
        )
        rows.sort(key=lambda write: writes_sort_key(*write[:3]))
        return [
            (task_id, channel, self.serde.loads_typed((kind, body)))
            for _, task_id, _, channel, kind, body in rows
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
