"""Cost and tokens, grouped.

Of the copies of an answer in one file, the one that is not inherited counts. An unknown
cost is never 0.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from sessiondb.dataclass import dataclass, field
from sessiondb.engine.sql import ComposedStatement, Statement, as_list, list_text
from sessiondb.errors import InvalidInputError, abridged
from sessiondb.model import Tokens, UsageRecord, UsageRow
from sessiondb.prices import Prices, Rates, known_prices
from sessiondb.repository import Read
from sessiondb.repository.sessions import Filters, terms_of_messages
from sessiondb.schema.sums import cost_sum, count_sum
from sessiondb.schema.terms import USAGE_NAME, has_key

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
_TOKENS = Tokens.__slots__
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
    keys = ", ".join(_KEYS[name] for name in keys_by) or "NULL"
    # Always grouped by model and size as well: prices are per model, and per size.
    sql = (
        f"SELECT m.model_id, {_request_size(sizes)} AS request_size, "
        "json_group_array(DISTINCT s.id), count(*), "
        f"{cost_sum('m.cost')}, {_SUMS}, {_UNPAID}, {keys} "
        f"{_messages_sql(keys_by, shape)} AND m.inherited = 0 "
        f"GROUP BY m.model_id, request_size, {keys} ORDER BY {keys}"
    )
    return ComposedStatement(sql)


def _request_size(sizes: tuple[int, ...]) -> str:
    """Return SQL for the largest of *sizes* that the prompt of a message is above."""
    longest_first = [f"WHEN {_PROMPT} > {size} THEN {size}" for size in sizes[::-1]]
    return f"CASE {' '.join(longest_first)} ELSE 0 END" if sizes else "0"


def _messages_sql(keys_by: tuple[str, ...], shape: tuple[str, ...]) -> str:
    """Return FROM and WHERE of the messages with usage, with the parameters *shape*."""
    # An answer may name an agent other than that of its session.
    terms = terms_of_messages(
        shape,
        agent=f"{_KEYS['agent']} = :agent",
        sessions=f"s.id IN {list_text('sessions')}",
    )
    tools = ""
    if "tool" in keys_by:
        # A message that calls two tools counts in both groups.
        tools = (
            " LEFT JOIN (SELECT DISTINCT session_id, seq, tool FROM part "
            "WHERE type = 'tool') AS t ON t.session_id = m.session_id AND t.seq = m.seq"
        )

    return (
        "FROM message AS m JOIN session AS s ON s.id = m.session_id "
        f"JOIN project AS j ON j.id = s.project_id{tools} "
        "WHERE s.time_deleted IS NULL AND s.time_importing IS NULL "
        f"AND {' AND '.join([f'(m.cost IS NOT NULL OR {_COUNTED})', *terms])}"
    )


#: The place of the message that counts for a copy: it has the same usage key, or the
#: same place in the family.
_OWNER = f"""
coalesce(
    (SELECT o.session_id || '#' || o.seq
       FROM message AS o JOIN session AS os ON os.id = o.session_id
      WHERE {has_key("o", "m.usage_key", USAGE_NAME.format("m."))}
        AND o.inherited = 0 AND os.time_deleted IS NULL
      LIMIT 1),
    (SELECT o.session_id || '#' || o.seq
       FROM session AS os
       JOIN message AS o ON o.session_id = os.id AND o.seq = m.seq
      WHERE os.root_id = s.root_id AND o.id = m.id AND o.inherited = 0
        AND o.time_created = m.time_created AND os.time_deleted IS NULL
      LIMIT 1),
    '')
"""


@lru_cache(maxsize=128)
def _records_statement(
    keys_by: tuple[str, ...], shape: tuple[str, ...], sizes: tuple[int, ...]
) -> Statement:
    keys = "".join(f" AND {_KEYS[name]} IS :key_{name}" for name in keys_by)
    tokens = ", ".join(f"m.tokens_{name}" for name in _TOKENS)
    sql = (
        f"SELECT {_request_size(sizes)}, CASE WHEN m.inherited THEN {_OWNER} END, "
        f"s.id, m.seq, m.id, m.time_created, m.model_id, m.cost, {tokens} "
        f"{_messages_sql(keys_by, shape)}{keys} "
        "ORDER BY m.time_created, s.id, m.seq"
    )
    return ComposedStatement(sql)


def usage_records(
    filters: Filters, key: Mapping[str, str | None], *, prices: Prices | None = None
) -> Read[list[UsageRecord]]:
    """Return the messages behind the row of `usage` with *key*, and their copies."""
    names = _dimension_names(tuple(key))
    rates = Rates(known_prices().prices if prices is None else prices)
    params = filters.params() | filters.exclusions()
    statement = _records_statement(names, tuple(sorted(params)), rates.sizes)
    rows = yield statement, params | {f"key_{name}": key[name] for name in names}

    records = []
    for size, owner, session_id, seq, message_id, time, model, cost, *tokens in rows:
        estimate = _Group()
        used: Mapping[str, float] = {}
        if cost is None:
            used = rates.of_model(model, size)
            estimate.estimate(tokens, used)
        records.append(
            UsageRecord(
                session_id,
                seq,
                message_id,
                time,
                model,
                cost,
                estimate.estimated,
                Tokens(*tokens),
                estimate.unpriced,
                {name: used[name] for name in _TOKENS if name in used},
                owner,
            )
        )
    return records


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
