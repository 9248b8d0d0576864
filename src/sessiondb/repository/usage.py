"""Cost and tokens, grouped.

Of the copies of an answer in one file, the one that is not inherited counts. An unknown
cost is never 0.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any

from sqlalchemy import text

from sessiondb.engine.sql import Statement
from sessiondb.errors import InvalidInputError, abridged
from sessiondb.model import Tokens, UsageRow
from sessiondb.repository import Read
from sessiondb.repository.sessions import Filters, terms_of_messages
from sessiondb.schema.sums import cost_sum, count_sum

#: USD per million tokens, by model: keys of `Tokens`.
Prices = Mapping[str, Mapping[str, float]]

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
_SUMS = ", ".join(count_sum(f"m.tokens_{name}") for name in _TOKENS)
#: The same sums, of messages without a cost.
_UNPAID = ", ".join(count_sum(f"m.tokens_{name}", "m.cost IS NULL") for name in _TOKENS)
_COUNTED = " OR ".join(f"m.tokens_{name} IS NOT NULL" for name in _TOKENS)


@lru_cache(maxsize=128)
def _usage_statement(keys_by: tuple[str, ...], shape: tuple[str, ...]) -> Statement:
    keys = ", ".join(_KEYS[name] for name in keys_by) or "NULL"
    # An answer may name an agent other than that of its session.
    terms = terms_of_messages(shape, agent=f"{_KEYS['agent']} = :agent")
    # Always grouped by model as well: prices are per model.
    tools = ""
    if "tool" in keys_by:
        # A message that calls two tools counts in both groups.
        tools = (
            " LEFT JOIN (SELECT DISTINCT session_id, seq, tool FROM part "
            "WHERE type = 'tool') AS t ON t.session_id = m.session_id AND t.seq = m.seq"
        )

    sql = (
        "SELECT m.model_id, json_group_array(DISTINCT s.id), count(*), "
        f"{cost_sum('m.cost')}, {_SUMS}, {_UNPAID}, {keys} "
        "FROM message AS m JOIN session AS s ON s.id = m.session_id "
        f"JOIN project AS j ON j.id = s.project_id{tools} "
        "WHERE m.inherited = 0 AND s.time_deleted IS NULL AND s.time_importing IS NULL "
        f"AND {' AND '.join([f'(m.cost IS NOT NULL OR {_COUNTED})', *terms])} "
        f"GROUP BY m.model_id, {keys} ORDER BY {keys}"
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
    prices: Prices | None = None,
) -> Read[list[UsageRow]]:
    """Return one row per group, in order of its key; nothing to count is ``[]``.

    Days are those of the local time zone. Raises `InvalidInputError`.
    """
    names = _dimension_names(by)
    rates = _checked_rates({} if prices is None else prices)
    params = filters.params() | filters.exclusions()
    rows = yield _usage_statement(names, tuple(sorted(params))), params

    groups: dict[tuple[Any, ...], _Group] = {}
    for model, sessions, messages, cost, *more in rows:
        key = more[2 * _KINDS :][: len(names)]  # the total has a column, but no key
        group = groups.setdefault(tuple(key), _Group())
        group.add(sessions, messages, cost, more[:_KINDS])
        group.estimate(more[_KINDS : 2 * _KINDS], rates.get(model or "", {}))

    return [
        group.row(dict(zip(names, key, strict=True))) for key, group in groups.items()
    ]


def _checked_rates(prices: Prices) -> dict[str, dict[str, float]]:
    """Return the rates of each model in USD per million tokens, by kind of token.

    Reasoning has the rate of the output unless it has one of its own: that is what
    providers bill. Raises `InvalidInputError`.
    """
    if not isinstance(prices, Mapping):
        raise InvalidInputError(f"prices are by model, not {abridged(prices)}")

    checked = {}
    for model, rates in prices.items():
        if not isinstance(rates, Mapping):
            raise InvalidInputError(
                f"the prices of {abridged(model)} are by kind of token, "
                f"not {abridged(rates)}"
            )
        for name, rate in rates.items():
            if name not in _TOKENS:
                raise InvalidInputError(
                    f"no kind of token {abridged(name)} in the prices of "
                    f"{abridged(model)}; the kinds are {', '.join(_TOKENS)}"
                )
            if type(rate) not in (int, float) or not 0 <= rate < math.inf:
                raise InvalidInputError(
                    f"the price of {name} of {abridged(model)} is a number of USD per "
                    f"million tokens, 0 or more, not {abridged(rate)}"
                )
        checked[model] = dict(rates)
        if "output" in rates:
            checked[model].setdefault("reasoning", rates["output"])

    return checked


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
        self.tokens = list(map(_add_known, self.tokens, tokens))

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
