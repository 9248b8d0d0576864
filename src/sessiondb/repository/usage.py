"""Cost and tokens, grouped.

Of the copies of an answer in one file, the one that is not inherited counts. An unknown
cost is never 0.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any

from sqlalchemy import text

from sessiondb.engine.sql import Statement, as_list, list_text
from sessiondb.errors import InvalidInputError, abridged
from sessiondb.model import Tokens, UsageRow
from sessiondb.prices import Prices, Rates, known_prices
from sessiondb.repository import Read
from sessiondb.repository.sessions import Filters, terms_of_messages
from sessiondb.schema.sums import cost_sum, count_sum

_local = "m.time_created / 1000, 'unixepoch', 'localtime'"
_KEYS = {
    "day": f"strftime('%Y-%m-%d', {_local})",
    "week": f"strftime('%Y-%m-%d', {_local}, 'weekday 0', '-6 days')",
    "month": f"strftime('%Y-%m', {_local})",
    "model": "m.model_id",
    "source": "s.source",
    "agent": "coalesce(m.agent, s.agent)",
    "project": "j.worktree",
    "session": "s.id",
    "tool": "t.tool",
}
DIMENSIONS = tuple(_KEYS)
_TOKENS = tuple(column.name for column in fields(Tokens))
_KINDS = len(_TOKENS)
#: The limit of each sum, as in SQL: only another program's rows can reach it.
_INT64_MOST = (1 << 63) - 1
_SUMS = ", ".join(count_sum(f"m.tokens_{name}") for name in _TOKENS)
#: The same sums, of messages without a cost.
_UNPAID = ", ".join(count_sum(f"m.tokens_{name}", "m.cost IS NULL") for name in _TOKENS)
#: The tokens of a request: providers have other rates for long ones.
_PROMPT = (
    "coalesce(m.tokens_input, 0) + coalesce(m.tokens_cache_read, 0) "
    "+ coalesce(m.tokens_cache_write, 0)"
)
_COUNTED = " OR ".join(f"m.tokens_{name} IS NOT NULL" for name in _TOKENS)


@lru_cache(maxsize=128)
def _usage_statement(
    keys_by: tuple[str, ...], shape: tuple[str, ...], sizes: tuple[int, ...]
) -> Statement:
    longest_first = [f"WHEN {_PROMPT} > {size} THEN {size}" for size in sizes[::-1]]
    size = f"CASE {' '.join(longest_first)} ELSE 0 END" if sizes else "0"
    keys = ", ".join(_KEYS[name] for name in keys_by) or "NULL"
    # An answer may name an agent other than that of its session.
    terms = terms_of_messages(
        shape,
        agent=f"{_KEYS['agent']} = :agent",
        sessions=f"s.id IN {list_text('sessions')}",
    )
    # Always grouped by model and size as well: prices are per model, and per size.
    tools = ""
    if "tool" in keys_by:
        # A message that calls two tools counts in both groups.
        tools = (
            " LEFT JOIN (SELECT DISTINCT session_id, seq, tool FROM part "
            "WHERE type = 'tool') AS t ON t.session_id = m.session_id AND t.seq = m.seq"
        )

    sql = (
        f"SELECT m.model_id, {size} AS request_size, "
        "json_group_array(DISTINCT s.id), count(*), "
        f"{cost_sum('m.cost')}, {_SUMS}, {_UNPAID}, {keys} "
        "FROM message AS m JOIN session AS s ON s.id = m.session_id "
        f"JOIN project AS j ON j.id = s.project_id{tools} "
        "WHERE m.inherited = 0 AND s.time_deleted IS NULL AND s.time_importing IS NULL "
        f"AND {' AND '.join([f'(m.cost IS NOT NULL OR {_COUNTED})', *terms])} "
        f"GROUP BY m.model_id, request_size, {keys} ORDER BY {keys}"
    )
    return Statement(lambda: text(sql))


def _dimension_names(dimensions: object) -> tuple[str, ...]:
    """Return the dimensions that *dimensions* names, one or several.

    Raises `InvalidInputError`.
    """
    names = (dimensions,) if isinstance(dimensions, str) else dimensions
    if not isinstance(names, list | tuple):
        raise InvalidInputError(
            f"usage is grouped by names, not by {abridged(dimensions)}"
        )

    known_keys = f"the keys are {', '.join(DIMENSIONS)}"
    for name in names:
        if name not in DIMENSIONS:
            raise InvalidInputError(
                f"usage cannot be grouped by {abridged(name)}; {known_keys}"
            )
        if names.count(name) > 1:
            raise InvalidInputError(f"usage is grouped by {name} twice")

    return tuple(names)


def usage(
    filters: Filters,
    *,
    by: str | Sequence[str] = ("day", "model"),
    sessions: Sequence[str] | None = None,
    prices: Prices | None = None,
) -> Read[list[UsageRow]]:
    """Return one row per group, in order of its key; nothing to count is ``[]``.

    *sessions* are the ids of those that count, None for all. Without *prices* those
    that ship count. Days are those of the local time zone. Raises `InvalidInputError`.
    """
    names = _dimension_names(by)
    rates = Rates(known_prices().prices if prices is None else prices)
    params = filters.params() | filters.exclusions()
    if sessions is not None:
        params["sessions"] = as_list(sessions)
    rows = yield _usage_statement(names, tuple(sorted(params)), rates.sizes), params

    groups: dict[tuple[Any, ...], _Group] = {}
    for model, size, ids, messages, cost, *more in rows:
        key = more[2 * _KINDS :][: len(names)]  # the total has a column, but no key
        group = groups.setdefault(tuple(key), _Group())
        group.add(ids, messages, cost, more[:_KINDS])
        group.estimate(more[_KINDS : 2 * _KINDS], rates.of_model(model, size))

    return [
        group.row(dict(zip(names, key, strict=True))) for key, group in groups.items()
    ]


@dataclass(slots=True)
class _Group:
    """The sums of one group; it has several rows, as prices are per model."""

    sessions: set[str] = field(default_factory=set)
    messages: int = 0
    cost: float | None = None
    estimated: float | None = None
    tokens: list[int | None] = field(default_factory=lambda: [None] * _KINDS)
    unpriced: int = 0

    def add(
        self,
        sessions: str,
        messages: int,
        cost: float | None,
        tokens: Sequence[int | None],
    ) -> None:
        """Add the sums of one model; *sessions* are ids, as a JSON list."""
        self.sessions.update(json.loads(sessions))
        self.messages += messages
        self.cost = _add_known(self.cost, cost)
        for kind, number in enumerate(tokens):
            total = _add_known(self.tokens[kind], number)
            self.tokens[kind] = None if total is None else min(total, _INT64_MOST)

    def estimate(
        self, tokens: Sequence[int | None], rates: Mapping[str, float]
    ) -> None:
        """Add the price of tokens without a cost, if *rates* has one for them."""
        for name, count in zip(_TOKENS, tokens, strict=True):
            rate = rates.get(name)
            if count and rate is not None:
                self.estimated = _add_known(self.estimated, count * rate / 1e6)
            else:
                self.unpriced += count or 0

    def row(self, key: dict[str, Any]) -> UsageRow:
        """Return the sums as a row."""
        return UsageRow(
            key,
            len(self.sessions),
            self.messages,
            self.cost,
            self.estimated,
            Tokens(*self.tokens),
            self.unpriced,
        )


def _add_known(one: Any, other: Any) -> Any:
    """Return the sum of the known values, None if there is none."""
    if one is None:
        return other
    return one if other is None else one + other
