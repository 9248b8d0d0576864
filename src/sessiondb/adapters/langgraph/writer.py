"""Checkpoints as they are written: each put is one unit.

A process remembers the lists and the transcript of a thread that it wrote, which saves
it reads. If another process wrote in between, the unit fails, and is made again.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    get_serializable_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from sessiondb.adapters.langgraph import statements as sql
from sessiondb.adapters.langgraph.lists import (
    USUAL_TYPE,
    DigestedList,
    Digests,
    Serialized,
    StoredList,
    digest_of,
    growth_of,
)
from sessiondb.adapters.langgraph.reader import CheckpointReads, stored_items
from sessiondb.adapters.langgraph.rows import EMPTY, LIST, CheckpointPlace
from sessiondb.adapters.langgraph.tables import CHECKPOINT, ITEM, VALUE, WRITE
from sessiondb.adapters.langgraph.transcripts import (
    NEW,
    ThreadTranscript,
    continue_transcript,
    messages_in_channel,
    read_transcript,
)
from sessiondb.effects import SessionHandle, Unit
from sessiondb.errors import ConflictError, NotFoundError
from sessiondb.store import Store

#: How often a unit is made that other processes come in between of. Each time one of
#: them has written, so no thread stands still.
ATTEMPTS = 100
#: Threads of which something is remembered: 16 bytes for each item of their lists.
_MOST_THREADS = 256
_EVERY_ITEM = (1 << 63) - 1

# The base of the class below has a method named list.
Messages: TypeAlias = list[BaseMessage]
Rows: TypeAlias = list[dict[str, Any]]


class _Thread:
    """A thread as this process wrote it last: its session, lists and transcript.

    It saves reads, and is never trusted: a unit that relies on it fails if it is wrong.
    """

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        #: The last list of each channel, by namespace and name.
        self.lists: dict[tuple[str, str], StoredList] = {}
        self.transcript: ThreadTranscript | None = None


class _ThreadUnit:
    """A unit for a thread, and what will be known of it after the commit."""

    def __init__(
        self, fx: Unit, session: SessionHandle, thread: _Thread | None
    ) -> None:
        self.fx, self.session, self.thread = fx, session, thread
        self.lists = {} if thread is None else dict(thread.lists)
        self.transcript = NEW if thread is None else thread.transcript

    def learned(self) -> _Thread:
        """Return what is known after the commit, which makes the id final."""
        thread = _Thread(self.session.id)
        thread.lists, thread.transcript = self.lists, self.transcript
        return thread


class CheckpointWrites(CheckpointReads):
    """The writes of a checkpointer."""

    def __init__(self, store: Store, *, serde: SerializerProtocol | None) -> None:
        super().__init__(store, serde=serde)
        self._threads: OrderedDict[str, _Thread] = OrderedDict()
        self._digests = Digests()

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint, with the channel values that are new in it."""
        place = CheckpointPlace.named_by(config)
        facts = get_serializable_checkpoint_metadata(config, metadata)
        head: dict[str, Any] = {**checkpoint}
        values: dict[str, Any] = head.pop("channel_values")
        kind, body = self.serde.dumps_typed(head)
        row = {
            "ns": place.ns,
            "id": checkpoint["id"],
            "parent_id": place.checkpoint_id,
            "run_id": facts.get("run_id"),
            "metadata": json.dumps(facts, ensure_ascii=False),
            "type": kind,
            "body": body,
        }
        stored = {
            channel: self._serialized(values[channel]) if channel in values else None
            for channel in new_versions
        }

        is_main = place.ns == "" and "messages" in new_versions
        messages = messages_in_channel(values.get("messages")) if is_main else None

        def put(unit: _ThreadUnit) -> None:
            if messages is not None:
                self._expect_transcript(unit)
            value_rows = []
            for channel, value in stored.items():
                version = json.dumps(new_versions[channel])
                key = {"ns": place.ns, "channel": channel, "version": version}
                value_rows.append(self._value_row(unit, key, value))
            if value_rows:
                unit.fx.insert_rows(VALUE, value_rows, on_conflict="replace")
            unit.fx.insert_rows(
                CHECKPOINT, [{"session_id": unit.session, **row}], on_conflict="replace"
            )
            if messages is not None:
                self._put_messages(unit, messages)

        self._write(place.thread, put)
        return place.config(checkpoint["id"])

    def _serialized(self, value: Any) -> Serialized | DigestedList:
        """Return a value as it is stored: of a list, each item."""
        if type(value) is list:
            return self._digests.digested(value, self.serde)
        return self.serde.dumps_typed(value)

    def _value_row(
        self,
        unit: _ThreadUnit,
        key: dict[str, str],
        value: Serialized | DigestedList | None,
    ) -> dict[str, Any]:
        """Return the row of a value, and queue the items that are new in a list."""
        number = length = None
        if value is None:
            kind, body = EMPTY, b""
        elif isinstance(value, tuple):
            kind, body = value
        else:
            number = self._put_list(unit, (key["ns"], key["channel"]), value)
            length, kind, body = len(value), LIST, b""
        columns = {"list": number, "length": length, "type": kind, "body": body}
        return {"session_id": unit.session, **key, **columns}

    def _put_list(
        self, unit: _ThreadUnit, channel: tuple[str, str], items: DigestedList
    ) -> int:
        """Queue the items that are new in a list, and return its number."""
        last_list = unit.lists.get(channel)
        if last_list is None and unit.thread is not None:
            last_list = self._last_list(unit.session.id, channel)
        growth = growth_of(items, last_list)
        list_columns = {"session_id": unit.session, "list": growth.number}
        shared = len(items) - len(growth.new)
        if shared:
            # Nothing but a complete list is ever removed: with one item all are there.
            last_item = {**list_columns, "position": shared - 1}
            unit.fx.execute(sql.TOUCH_ITEM, last_item, expect_rows=1)
        new_items = [
            {**list_columns, "position": position, "type": kind, "body": body}
            for position, kind, body in growth.new
        ]
        if new_items:
            unit.fx.insert_rows(ITEM, new_items)
        unit.lists[channel] = growth.grown
        return growth.number

    def _last_list(
        self, session_id: str, channel: tuple[str, str]
    ) -> StoredList | None:
        """Return the list that a channel had last, whichever process wrote it."""
        ns, name = channel
        rows = self.store.select(
            sql.LAST_LIST, {"session_id": session_id, "ns": ns, "channel": name}
        )
        if not rows:
            return None
        ((number,),) = rows
        items = self.store.snapshot(
            lambda reads: stored_items(reads, session_id, number, _EVERY_ITEM)
        )
        digests = [digest_of((kind or USUAL_TYPE, body)) for kind, body in items]
        return StoredList(number, digests)

    def _expect_transcript(self, unit: _ThreadUnit) -> None:
        """Make a unit fail if the session does not end as its transcript does."""
        if unit.transcript is None:
            unit.transcript = read_transcript(self.store, unit.session)
        if unit.thread is None:
            unit.fx.expect(unit.session, absent=True)
        else:
            places = unit.transcript.places
            unit.fx.expect(unit.session, leaf=places[-1] if places else None)

    def _put_messages(self, unit: _ThreadUnit, messages: Messages) -> None:
        assert unit.transcript is not None, "it was expected"
        digests = unit.lists["", "messages"].digests[: len(messages)]
        unit.transcript = continue_transcript(
            unit.fx, unit.session, unit.transcript, messages, digests
        )

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Store what a task wrote after a checkpoint, which itself may come later.

        A write that is there stays; an error, an interrupt and the like is replaced.
        """
        place = CheckpointPlace.named_by(config)
        added: Rows = []
        replaced: Rows = []
        for number, (channel, value) in enumerate(writes):
            kind, body = self.serde.dumps_typed(value)
            idx = WRITES_IDX_MAP.get(channel, number)
            row = {
                "ns": place.ns,
                "checkpoint_id": place.checkpoint_id,
                "task_id": task_id,
                "idx": idx,
                "task_path": task_path,
                "channel": channel,
                "type": kind,
                "body": body,
            }
            (added if idx >= 0 else replaced).append(row)

        def put(unit: _ThreadUnit) -> None:
            for rows, on_conflict in ((added, "keep"), (replaced, "replace")):
                rows_of_session = [{"session_id": unit.session, **row} for row in rows]
                if rows:
                    unit.fx.insert_rows(WRITE, rows_of_session, on_conflict=on_conflict)

        self._write(place.thread, put)

    def _write(self, thread: str, put: Callable[[_ThreadUnit], None]) -> None:
        """Commit what *put* queues for the session of a thread, which may be new.

        Again if another process wrote meanwhile: what was known is forgotten then.
        """
        for attempt in range(ATTEMPTS):
            try:
                with self.store.effects() as fx:
                    unit = self._begin(fx, thread)
                    put(unit)
            except (ConflictError, NotFoundError):
                self._threads.pop(thread, None)
                if attempt == ATTEMPTS - 1:
                    raise
            else:
                # A unit of another thread of this process may have learned more.
                if self._threads.get(thread) is unit.thread:
                    self._threads[thread] = unit.learned()
                while len(self._threads) > _MOST_THREADS:
                    self._threads.popitem(last=False)
                return

    def _begin(self, fx: Unit, thread: str) -> _ThreadUnit:
        remembered = self._threads.get(thread)
        if remembered is None:
            session_id = self._ids_of([thread]).get(thread)
            if session_id is None:
                # A graph has no directory; that of a server says nothing of it.
                session = fx.open_session(thread, source=sql.SOURCE, directory=None)
                return _ThreadUnit(fx, session, None)
            remembered = self._threads.setdefault(thread, _Thread(session_id))
        return _ThreadUnit(fx, SessionHandle(remembered.session_id), remembered)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy all checkpoints of a thread, and its conversation, to another one."""
        original = self._ids_of([str(source_thread_id)]).get(str(source_thread_id))
        if original is None:
            return

        place = CheckpointPlace(str(source_thread_id), "", None)
        latest = self.get_tuple(place.config(""))
        values = {} if latest is None else latest.checkpoint["channel_values"]
        messages = messages_in_channel(values.get("messages"))

        def put(unit: _ThreadUnit) -> None:
            if messages is not None:
                self._expect_transcript(unit)
            for statement in sql.COPIES:
                parameters = {"session_id": unit.session, "original": original}
                unit.fx.execute(statement, parameters)
            if messages is not None:
                digests = self._digests.digested(messages, self.serde).digests
                unit.lists["", "messages"] = StoredList(0, digests)
                self._put_messages(unit, messages)
                # The lists that were copied have numbers of their own.
                del unit.lists["", "messages"]

        self._write(str(target_thread_id), put)
