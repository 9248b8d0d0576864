"""Effects on a message that grows: parts that are added, streamed text, its end.

A part may be added to a finished message as well: what a program records later of it
must not keep it open. Those of a stream say what a part holds afterwards, so that a
write whose outcome is unknown can be made again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sessiondb.dataclass import dataclass
from sessiondb.effects.calls import fill_call
from sessiondb.effects.encode import same_json, usage_key
from sessiondb.effects.message import (
    PartPlace,
    count_once,
    insert_part,
    parts_of,
    same_part,
    seq_of,
)
from sessiondb.effects.ownership import UsageKey
from sessiondb.effects.session_state import SessionState
from sessiondb.effects.transaction import Transaction
from sessiondb.engine.sql import Statement
from sessiondb.errors import ConflictError, NotFoundError
from sessiondb.model.purposes import is_prompt
from sessiondb.schema.rows import Blob, PartRow
from sessiondb.schema.terms import USAGE


class GrowingMessage(NamedTuple):
    """The columns of a message that `AddPart` and `Finish` read."""

    id: str
    role: str
    kind: str | None
    response_id: str | None
    model_id: str | None
    time_created: int
    time_completed: int | None
    finish: str | None
    cost: float | None
    tokens_input: int | None
    tokens_output: int | None
    tokens_reasoning: int | None
    tokens_cache_read: int | None
    tokens_cache_write: int | None
    error: str | None
    inherited: int


_NEXT_IDX = Statement("effects.open_message.NEXT_IDX")
_UNINDEXED = Statement("effects.open_message.UNINDEXED")
_OPEN = Statement("effects.open_message.OPEN")
_WAS_PROMPT = Statement("effects.open_message.WAS_PROMPT")
_FINISH = Statement("effects.open_message.FINISH")


@dataclass(frozen=True, slots=True, eq=False)
class AddPart:
    """Add a part to a message, which stays open or finished."""

    verb = "add_part"
    session_id: str
    message: str | int
    row: PartRow
    blobs: tuple[Blob, ...]
    own_id: bool

    def apply(self, tx: Transaction) -> None:
        """Apply it, or recognise it; raises `ConflictError` and `NotFoundError`."""
        state = tx.peek(self.session_id)
        seq = seq_of(tx, state.id, self.message)
        if (self.own_id or tx.retried) and self._is_there(tx, state.id, seq):
            return
        stored = _growing_message(tx, state.id, seq)
        if is_prompt(stored.role, stored.kind, (self.row,)):
            # A message counts once, however much of it was typed.
            was_prompt = tx.one(_WAS_PROMPT, sid=state.id, at=seq)[0]
            state.prompt_count += not was_prompt
        tx.insert_blobs(state.id, self.blobs)
        row = self._late_row(tx, stored.time_completed)
        if row.type == "tool-result":
            row = fill_call(tx, state, seq, row, stored.inherited)
        place = PartPlace(
            state.id,
            seq,
            tx.one(_NEXT_IDX, sid=state.id, at=seq)[0],
            complete=stored.time_completed is not None,
            inherited=stored.inherited,
        )
        insert_part(tx, row, place)
        state.changed_at(seq)
        tx.used(state, self.row.time_created)

    def _late_row(self, tx: Transaction, completed: int | None) -> PartRow:
        """Return the row; that of a finished message has a later time than its end.

        So a repeated append recognises the message by the parts that it had then.
        """
        if completed is None or self.row.time_updated is not None:
            return self.row
        return self.row._replace(time_updated=max(tx.now, completed + 1))

    def _is_there(self, tx: Transaction, session_id: str, seq: int) -> bool:
        for stored in parts_of(tx, session_id, seq):
            if stored.id != self.row.id:
                continue
            if same_part(tx, session_id, stored, self.row, is_open=True):
                return True
            raise ConflictError(f"part {self.row.id} exists with other content")
        return False


def _growing_message(tx: Transaction, session_id: str, seq: int) -> GrowingMessage:
    return GrowingMessage._make(tx.one(_OPEN, sid=session_id, at=seq))


def _or_stored(value: Any, stored: Any) -> Any:
    return stored if value is None else value


@dataclass(frozen=True, slots=True, eq=False)
class Finish:
    """Complete an open message."""

    verb = "finish"
    session_id: str
    message: str | int
    finish: str
    cost: float | None
    tokens: tuple[int | None, ...]
    error: str | None
    time: int | None = None

    def apply(self, tx: Transaction) -> None:
        """Apply it; a finished message with the same values stays.

        Usage and error that `append` stated stay if nothing is given here. Raises
        `ConflictError` and `NotFoundError`.
        """
        state = tx.peek(self.session_id)
        seq = seq_of(tx, state.id, self.message)
        stored = _growing_message(tx, state.id, seq)
        # Values that are given now replace those that `append` stated.
        old_usage = tuple([getattr(stored, name) for name in USAGE])
        usage = tuple(map(_or_stored, (self.cost, *self.tokens), old_usage))
        error = _or_stored(self.error, stored.error)
        if stored.time_completed is not None:
            if self._is_same(stored, old_usage == usage, error):
                return
            raise ConflictError(
                f"message {self.message} is finished, with other values"
            )

        created = stored.time_created
        name = stored.response_id or stored.id
        key = usage_key(state.source, name, stored.model_id, created, usage)
        tx.run(
            _FINISH,
            sid=state.id,
            at=seq,
            finish=self.finish,
            error=error,
            usage_key=key,
            time_completed=tx.at(self.time),
            **dict(zip(USAGE, usage, strict=True)),
        )
        state.changed_at(seq)
        tx.used(state, self.time)
        # The cost of a copy is counted where it was paid.
        if not stored.inherited:
            self._replace_usage(tx, state, seq, old_usage, usage)
            if key is not None:
                count_once(tx, state, seq, stored.id, UsageKey(key, name))

    def _is_same(
        self, stored: GrowingMessage, same_usage: bool, error: str | None
    ) -> bool:
        if not same_usage or stored.finish != self.finish:
            return False
        return same_json(stored.error, error)

    def _replace_usage(
        self,
        tx: Transaction,
        state: SessionState,
        seq: int,
        old_usage: tuple[Any, ...],
        usage: tuple[Any, ...],
    ) -> None:
        """Replace the usage *old_usage* by that of now, and index the parts."""
        tx.index_parts(state.id, seq, tx.column(_UNINDEXED, sid=state.id, at=seq))
        for sign, (cost, *tokens) in ((-1, old_usage), (1, usage)):
            state.count(cost, tokens, sign)


_ROW = Statement("effects.open_message.ROW")
_APPEND = Statement("effects.open_message.APPEND")
_COMPLETE = Statement("effects.open_message.COMPLETE")


@dataclass(frozen=True, slots=True, eq=False)
class OpenPart:
    """A part of an open message, by ids."""

    session_id: str
    message_id: str
    part_id: str

    def row(self, tx: Transaction) -> Any:
        """Return the stored part; raises `NotFoundError`."""
        stored = tx.one(
            _ROW, sid=self.session_id, mid=self.message_id, pid=self.part_id
        )
        if stored is None:
            raise NotFoundError(
                f"part {self.part_id} is not in session {self.session_id}"
            )

        return stored

    def check_open(self, time_completed: int | None) -> None:
        """Raise `ConflictError` for a finished message."""
        if time_completed is not None:
            raise ConflictError(
                f"message {self.message_id} was finished by another writer"
            )

    def touch(self, tx: Transaction, state: SessionState, seq: int) -> None:
        """Record that the part changed."""
        state.changed_at(seq)
        tx.used(state)


@dataclass(frozen=True, slots=True, eq=False)
class AppendText:
    """Add text to a part that holds *at* characters."""

    verb = "stream"
    part: OpenPart
    delta: str
    at: int

    def apply(self, tx: Transaction) -> None:
        """Apply it, once; raises `NotFoundError` and `ConflictError`."""
        state = tx.peek(self.part.session_id)
        seq, idx, completed, length, *_ = self.part.row(tx)
        # A write whose outcome was unknown, made again.
        if length == self.at + len(self.delta):
            return

        self.part.check_open(completed)
        if length != self.at:
            raise ConflictError(
                f"part {self.part.part_id} was changed by another writer"
            )

        place = {"sid": state.id, "at": seq, "idx": idx}
        tx.run(_APPEND, **place, delta=self.delta, now=tx.now)
        self.part.touch(tx, state, seq)


@dataclass(frozen=True, slots=True, eq=False)
class CompleteText:
    """Set all columns of a part: text that needs an exact form, or that is complete."""

    verb = "stream"
    part: OpenPart
    columns: tuple[str | None, str | None, bytes | None, str | None]
    blobs: tuple[Blob, ...]
    ended: bool

    def apply(self, tx: Transaction) -> None:
        """Apply it; raises `NotFoundError` and `ConflictError`."""
        state = tx.peek(self.part.session_id)
        seq, idx, completed, _, *stored = self.part.row(tx)
        if completed is not None and tuple(stored) == self.columns:
            # The unit was committed before: its message was finished by the same one.
            return

        self.part.check_open(completed)
        tx.insert_blobs(state.id, self.blobs)
        _, text_blob, _, old_data_blob = stored
        tx.release(text_blob, old_data_blob)
        shown, shown_blob, data, data_blob = self.columns
        tx.run(
            _COMPLETE,
            sid=state.id,
            at=seq,
            idx=idx,
            text=shown,
            text_blob=shown_blob,
            data=data,
            data_blob=data_blob,
            time_updated=tx.now,
            time_ended=tx.now if self.ended else None,
        )
        self.part.touch(tx, state, seq)
