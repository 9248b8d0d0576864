"""Records of costs and tokens: the rows that are summed up, and what is behind them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sessiondb.dataclass import dataclass
from sessiondb.model.records import Tokens


@dataclass(frozen=True, slots=True)
class UsageRow:
    """Cost (USD) and tokens of one group, each answer counted once in its file.

    ``key`` maps each requested dimension to its value. ``cost`` is what sources
    stated (None: nothing stated), ``cost_estimated`` tokens times prices where
    nothing was stated, ``tokens_unpriced`` tokens that have neither.
    """

    key: Mapping[str, Any]
    sessions: int
    messages: int
    cost: float | None
    cost_estimated: float | None
    tokens: Tokens
    tokens_unpriced: int


@dataclass(frozen=True, slots=True)
class UsageRecord:
    """Cost (USD) and tokens of one message behind a `UsageRow`.

    ``cost`` is stated; ``cost_estimated`` is by ``rates`` (USD per million tokens):
    None and ``{}`` if it is not estimated. A message with ``counted_in`` is a copy: it
    counts there, as ``SESSION#SEQ``, and not in the row. Empty is a place that is not
    known any more.
    """

    session_id: str
    seq: int
    message_id: str
    time_created: int
    model_id: str | None
    cost: float | None
    cost_estimated: float | None
    tokens: Tokens
    tokens_unpriced: int
    rates: Mapping[str, float]
    counted_in: str | None
