"""Effects of a stream on the parts of its open message: text that grows, then ends.

Both say what the part holds afterwards, so that a write whose outcome is
unknown can be made again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import and_, func, select, text

from sessiondb.effects.transaction import SessionState, Transaction
from sessiondb.engine.sql import Statement, p, update_of
from sessiondb.errors import ConflictError, NotFoundError
from sessiondb.schema import message, part
from sessiondb.schema.rows import Blob

_ROW = Statement(
    lambda: (
        select(
            part.c.rid,
            part.c.seq,
            message.c.time_completed,
            func.length(func.coalesce(part.c.text, text("''"))),
            part.c.text,
            part.c.text_blob,
            part.c.data,
            part.c.data_blob,
        )
        .join(
            message,
            and_(
                message.c.session_id == part.c.session_id, message.c.seq == part.c.seq
            ),
        )
        .where(
            part.c.session_id == p("sid"),
            part.c.id == p("pid"),
            message.c.id == p("mid"),
        )
    )
)
_APPEND = Statement(
    lambda: (
        part.update()
        .where(part.c.rid == p("row"))
        .values(
            text=text("coalesce(part.text, '') || :delta"), time_updated=text(":now")
        )
    )
)
_COMPLETE = update_of(
    part,
    "text text_blob data data_blob time_updated time_ended",
    part.c.rid == p("row"),
)


@dataclass(frozen=True, slots=True, eq=False)
class OpenPart:
    """A part of an open message, by ids."""

    session_id: str
    message_id: str
    part_id: str

    def row(self, tx: Transaction) -> Any:
        """Return the stored part; raises `NotFoundError`."""
        found = tx.one(_ROW, sid=self.session_id, mid=self.message_id, pid=self.part_id)
        if found is None:
            raise NotFoundError(
                f"part {self.part_id} is not in session {self.session_id}"
            )

        return found

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
        rid, seq, completed, length, *_ = self.part.row(tx)
        # A write whose outcome was unknown, made again.
        if length == self.at + len(self.delta):
            return

        self.part.check_open(completed)
        if length != self.at:
            raise ConflictError(
                f"part {self.part.part_id} was changed by another writer"
            )

        tx.run(_APPEND, row=rid, delta=self.delta, now=tx.now)
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
        rid, seq, completed, _, *stored = self.part.row(tx)
        if completed is not None and tuple(stored) == self.columns:
            # The unit was committed before: its message was finished by the same one.
            return

        self.part.check_open(completed)
        tx.insert_blobs(self.blobs)
        _, text_blob, _, old_data_blob = stored
        tx.release(text_blob, old_data_blob)
        shown, shown_blob, data, data_blob = self.columns
        tx.run(
            _COMPLETE,
            row=rid,
            text=shown,
            text_blob=shown_blob,
            data=data,
            data_blob=data_blob,
            time_updated=tx.now,
            time_ended=tx.now if self.ended else None,
        )
        self.part.touch(tx, state, seq)
