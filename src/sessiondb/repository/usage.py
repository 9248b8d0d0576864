"""Cost and tokens, grouped.

Of the copies of an answer in one file, the one that is not inherited counts. An unknown
cost is never 0.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from sessiondb.dataclass import dataclass, field
from sessiondb.engine.base import Engine
from sessiondb.engine.local_days import (
    NAMES_OF_DAYS,
    QUARTER_MS,
    name_of_quarter,
    times_around,
)
from sessiondb.engine.message_sums import KEYS, messages_with_usage, request_size
from sessiondb.engine.sql import ComposedStatement, Statement, as_list
from sessiondb.engine.usage_sums import GroupedUsage, UsageQuestion
from sessiondb.errors import InvalidInputError, abridged
from sessiondb.model import Tokens, UsageRecord, UsageRow
from sessiondb.prices import Prices, Rates, known_prices
from sessiondb.repository import Read, engine_in_use
from sessiondb.repository.sessions import Filters, terms_of_messages
from sessiondb.schema.terms import USAGE_NAME, has_key

DIMENSIONS = tuple(KEYS)
_TOKENS = Tokens.__slots__
_KINDS = len(_TOKENS)
#: The limit of each sum, as in SQL: only another program's rows can reach it.
_INT64_MOST = (1 << 63) - 1


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
    names: tuple[str, ...], terms: tuple[str, ...], sizes: tuple[int, ...]
) -> Statement:
    conditions = list(terms)
    for name in names:
        if name in NAMES_OF_DAYS:
            conditions.append(f"m.time_created >= :{name}_from")
            conditions.append(f"m.time_created < :{name}_to")
        else:
            conditions.append(f"{KEYS[name]} IS NOT DISTINCT FROM :key_{name}")
    tokens = ", ".join(f"m.tokens_{name}" for name in _TOKENS)
    sql = (
        f"SELECT {request_size(sizes)}, CASE WHEN m.inherited = 1 THEN {_OWNER} END, "
        f"s.id, m.seq, m.id, m.time_created, m.model_id, m.cost, {tokens} "
        f"{messages_with_usage(names, conditions)} "
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
    engine = yield from engine_in_use()
    terms = _terms_of_usage(engine, params)
    statement = _records_statement(names, tuple(terms.values()), rates.sizes)
    days = [name for name in names if name in NAMES_OF_DAYS]
    for name in names:
        if name in days:
            around = times_around(name, key[name])
            params[f"{name}_from"], params[f"{name}_to"] = around
        else:
            params[f"key_{name}"] = key[name]
    rows = yield statement, params

    records = []
    for size, owner, session_id, seq, message_id, time, model, cost, *tokens in rows:
        quarter = time // QUARTER_MS
        if any(name_of_quarter(name, quarter) != key[name] for name in days):
            continue
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


def _terms_of_usage(engine: Engine, params: Mapping[str, Any]) -> dict[str, str]:
    """Return the terms of *params* over messages ``m`` of sessions ``s``, by name."""
    names = sorted(params)
    # An answer may name an agent other than that of its session.
    own_terms = {
        "agent": f"{KEYS['agent']} = :agent",
        "sessions": f"s.id IN {engine.dialect.list_text('sessions', str)}",
    }
    terms = terms_of_messages(names, **own_terms)
    return dict(zip(names, terms, strict=True))


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
    engine = yield from engine_in_use()
    terms = _terms_of_usage(engine, params)
    question = UsageQuestion(names, terms, params, rates)
    rows = yield from engine.usage.totals(question)

    groups: dict[tuple[Any, ...], _Group] = defaultdict(_Group)
    rates_of: dict[tuple[str | None, int], Mapping[str, float]] = {}
    for row in rows:
        group = groups[row.key]
        group.add(row)
        if row.is_unpaid:
            priced_as = row.model, row.size
            if priced_as not in rates_of:
                rates_of[priced_as] = rates.of_model(*priced_as)
            group.estimate(row.tokens, rates_of[priced_as])

    in_order = sorted(groups.items(), key=lambda item: _sorting_key(item[0]))
    return [group.row(dict(zip(names, key, strict=True))) for key, group in in_order]


def _sorting_key(key: tuple[str | None, ...]) -> list[tuple[bool, str]]:
    """Return what a key is sorted by, as SQL sorts: None comes first."""
    return [(value is not None, value or "") for value in key]


@dataclass(slots=True)
class _Group:
    """The sums of one group; it has several rows, as prices are per model."""

    #: Lists of numbers of sessions, which may have some in common.
    sessions: list[str] = field(default_factory=list)
    messages: int = 0
    cost: float | None = None
    estimated: float | None = None
    tokens: list[int | None] = field(default_factory=lambda: [None] * _KINDS)
    unpriced: int = 0

    def add(self, row: GroupedUsage) -> None:
        """Add the sums of one model."""
        self.sessions.append(row.sessions)
        self.messages += row.messages
        self.cost = _add_known(self.cost, row.cost)
        for kind, number in enumerate(row.tokens):
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
            len(set(",".join(self.sessions).split(","))),
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
