"""Effects on an open message: add a part, and complete it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select, text

from sessiondb.effects.encode import Blob, MessageRow, PartRow, same_json, usage_key
from sessiondb.effects.message import (
    PARTS,
    in_session,
    insert_part,
    of_message,
    same_part,
    seq_of,
    settle_usage,
)
from sessiondb.effects.transaction import TOKENS, Transaction
from sessiondb.engine.sql import Statement, p, update_of
from sessiondb.errors import ConflictError
from sessiondb.schema import message, part

_NEXT_IDX = Statement(
    lambda: select(func.coalesce(func.max(part.c.idx), text("-1")) + text("1")).where(
        *of_message
    )
)
_RIDS = Statement(
    lambda: select(part.c.rid).where(*of_message, part.c.indexed == text("0"))
)
_OPEN = Statement(
    lambda: select(
        message.c.id,
        message.c.turn_id,
        message.c.role,
        message.c.kind,
        message.c.agent,
        message.c.provider_id,
        message.c.model_id,
        message.c.response_id,
        message.c.time_created,
        message.c.time_completed,
        message.c.finish,
        message.c.cost,
        *(message.c[f"tokens_{name}"] for name in TOKENS),
        message.c.error,
        message.c.inherited,
    ).where(in_session, message.c.seq == p("at"))
)
_FINISH = update_of(
    message,
    "finish error usage_key cost time_completed "
    + " ".join(f"tokens_{name}" for name in TOKENS),
    message.c.session_id == p("sid"),
    message.c.seq == p("at"),
)


@dataclass(frozen=True, slots=True, eq=False)
class AddPart:
    """Add a part to an open message."""

    verb = "add_part"
    session_id: str
    message: str | int
    row: PartRow
    blobs: tuple[Blob, ...]
    own_id: bool

    def apply(self, tx: Transaction) -> None:
        """Write it, or recognise it; raises `ConflictError` and `NotFoundError`."""
        state = tx.peek(self.session_id)
        seq = seq_of(tx, state.id, self.message)
        if self.own_id or tx.retried:
            stored = [
                r for r in tx.run(PARTS, sid=state.id, at=seq) if r[1] == self.row.id
            ]
            if stored and same_part(tx, state.id, stored[0], self.row, is_open=True):
                return
            if stored:
                raise ConflictError(f"part {self.row.id} is there with other content")
        if tx.one(_OPEN, sid=state.id, at=seq)[9] is not None:
            raise ConflictError(
                f"message {self.message} is finished; parts go to open messages"
            )
        tx.insert_blobs(self.blobs)
        idx = tx.one(_NEXT_IDX, sid=state.id, at=seq)[0]
        insert_part(tx, state.id, seq, idx, self.row, complete=False)
        state.first_new_seq = min(state.first_new_seq or seq, seq)
        tx.used(state, self.row.time_created)


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
        """Write it; a finished message with the same values stays. Raises `ConflictError`.

        Usage and error that `append` stated stay if nothing is given here.
        """
        state = tx.peek(self.session_id)
        seq = seq_of(tx, state.id, self.message)
        stored = tx.one(_OPEN, sid=state.id, at=seq)
        before = stored[11:17]
        usage = tuple(map(_or_stored, (self.cost, *self.tokens), before))
        error = stored[17] if self.error is None else self.error
        if stored[9] is not None:
            if (stored[10], before) == (self.finish, usage) and same_json(
                stored[17], error
            ):
                return
            raise ConflictError(
                f"message {self.message} is finished, with other values"
            )
        cost, *tokens = usage
        rest = (cost, tuple(tokens), None, None, stored[8], None, None, None)
        row = MessageRow._make((*stored[:8], *rest))
        key = usage_key(state.source, row.response_id or row.id, row, stored[8])
        sums = {
            f"tokens_{name}": value for name, value in zip(TOKENS, tokens, strict=True)
        }
        tx.run(
            _FINISH,
            sid=state.id,
            at=seq,
            finish=self.finish,
            error=error,
            usage_key=key,
            cost=cost,
            time_completed=tx.now if self.time is None else self.time,
            **sums,
        )
        if not stored[18]:
            tx.to_index += [rid for (rid,) in tx.run(_RIDS, sid=state.id, at=seq)]
            state.count(before[0], before[1:], -1)
            state.count(cost, tokens)
        state.first_new_seq = min(state.first_new_seq or seq, seq)
        tx.used(state, self.time)
        if key is not None and not stored[18]:
            settle_usage(tx, state, seq, row.id, key)
