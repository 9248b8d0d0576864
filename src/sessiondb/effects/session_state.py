"""The row of a session while a transaction changes it."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from sessiondb.dataclass import dataclass
from sessiondb.schema.rows import SESSION_ROW, UNKNOWN_TOKENS
from sessiondb.schema.terms import TOKENS

#: The columns of a session row that a transaction moves, and how they are read.
MOVED = (
    "leaf_seq", "last_seq", "message_count", "prompt_count", "cost", "cost_inherited",
    *TOKENS, "time_updated", "time_detached", "provider_id", "model_id",
)  # fmt: skip
moved_values = attrgetter(*MOVED)
#: The limit of counters, which only another program can have reached.
_INT64 = (1 << 63) - 1


@dataclass(slots=True)
class SessionState:
    """The moving part of a session row while a unit is applied."""

    id: str
    project_id: str | None
    parent_id: str | None
    relation: str | None
    root_id: str
    source: str
    title: str
    title_source: str
    leaf_seq: int | None
    last_seq: int
    revision: int
    message_count: int
    prompt_count: int
    cost: float | None
    cost_inherited: float | None
    tokens_input: int | None
    tokens_output: int | None
    tokens_reasoning: int | None
    tokens_cache_read: int | None
    tokens_cache_write: int | None
    time_created: int
    time_updated: int
    time_detached: int | None
    time_importing: int | None
    directory: str | None
    provider_id: str | None
    model_id: str | None
    model_source: str
    time_imported: int | None
    #: Who has a living lease, and until when.
    holder: str | None
    time_expires: int | None
    first_new_seq: int = 0
    #: (seq, turn_id) of the leaf that was loaded, or of the last message that this unit
    #: wrote; no message has seq 0.
    leaf_turn: tuple[int, str | None] = (0, None)
    #: Where the leaf was before this unit's `SetLeaf`; None: it did not move it.
    leaf_before: tuple[int | None] | None = None
    touched: bool = False
    #: The columns `MOVED`, as the row has them.
    stored: tuple[Any, ...] = ()

    def end_unit(self, was_kept: bool) -> None:
        """Prepare for the next unit; the row has one revision more if it *was_kept*."""
        if was_kept:
            self.revision += 1
        self.first_new_seq, self.leaf_before, self.touched = 0, None, False

    def count(
        self, cost: float | None, tokens: Sequence[int | None], sign: int = 1
    ) -> None:
        """Add (or, with *sign* -1, take away) the usage of one own message."""
        if cost is not None:
            self.cost = (self.cost or 0.0) + sign * cost
        if tokens == UNKNOWN_TOKENS:
            return
        for name, value in zip(TOKENS, tokens, strict=True):
            if value is not None:
                total = (getattr(self, name) or 0) + sign * value
                setattr(self, name, max(-_INT64, min(total, _INT64)))

    def changed_at(self, seq: int) -> None:
        """Record that the message at *seq* changed: a feed names the first that did."""
        if not self.first_new_seq or seq < self.first_new_seq:
            self.first_new_seq = seq

    def answered(self, provider_id: str | None, model_id: str | None) -> None:
        """Let the model of an answer be that of the session, unless it was stated."""
        if model_id is not None and self.model_source == "derived":
            self.provider_id, self.model_id = provider_id, model_id


#: The columns of `SessionState`, which ends in those of the lease; after them comes the
#: turn of the leaf, which nearly every append continues.
STATE = [name for name in SessionState.__slots__ if name in SESSION_ROW]
