"""Cost and tokens, grouped.

Of the copies of an answer in one file, the one that is not inherited counts. An unknown
cost is never 0.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import text

from sessiondb.engine.sql import Statement
from sessiondb.errors import InvalidInputError, abridged
from sessiondb.model import Tokens, UsageRow
from sessiondb.repository import Read
from sessiondb.repository.sessions import Filters
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
_TOKENS = ("input", "output", "reasoning", "cache_read", "cache_write")


def _terms(shape: tuple[str, ...]) -> str:
    clauses = {
        "project_id": "s.project_id = :project_id",
        "source": "s.source = :source",
        "agent": "coalesce(m.agent, s.agent) = :agent",
        "since": "m.time_created >= :since",
        "until": "m.time_created < :until",
        "title": "s.title LIKE :title ESCAPE '\\'",
        "unarchived": "s.time_archived IS NULL",
        "own": "s.relation IS NOT 'subagent'",
    }
    return "".join(f" AND {clauses[name]}" for name in shape)


@lru_cache(maxsize=128)
def _statement(by: tuple[str, ...], shape: tuple[str, ...]) -> Statement:
    keys = ", ".join(_KEYS[name] for name in by) or "NULL"
    # Groups by model even where it is not asked for: prices are per model.
    sums = ", ".join(count_sum(f"m.tokens_{name}") for name in _TOKENS)
    known = " OR ".join(f"m.tokens_{name} IS NOT NULL" for name in _TOKENS)
    bare = ", ".join(
        count_sum(f"m.tokens_{name}", "m.cost IS NULL") for name in _TOKENS
    )
    tools = ""
    if "tool" in by:
        # A message with calls of two tools counts in both groups: what a tool took part in.
        tools = (
            " LEFT JOIN (SELECT DISTINCT session_id, seq, tool FROM part WHERE type = 'tool') AS t "
            "ON t.session_id = m.session_id AND t.seq = m.seq"
        )
    sql = (
        "SELECT m.model_id, json_group_array(DISTINCT s.id), count(*), "
        f"{cost_sum('m.cost')}, {sums}, {bare}, {keys} "
        "FROM message AS m JOIN session AS s ON s.id = m.session_id "
        f"JOIN project AS j ON j.id = s.project_id{tools} "
        "WHERE m.inherited = 0 AND s.time_deleted IS NULL AND s.time_importing IS NULL "
        f"AND (m.cost IS NOT NULL OR {known}) "
        f"{_terms(shape)} GROUP BY m.model_id, {keys} ORDER BY {keys}"
    )
    return Statement(lambda: text(sql))


def _dimensions(by: object) -> tuple[str, ...]:
    """Return what to group by, of a name or several; raises `InvalidInputError`."""
    names = (by,) if isinstance(by, str) else by
    if not isinstance(names, list | tuple):
        raise InvalidInputError(f"usage is grouped by names, not by {abridged(by)}")
    known = f"the keys are {', '.join(DIMENSIONS)}"
    for name in names:
        if not isinstance(name, str) or name not in DIMENSIONS:
            raise InvalidInputError(
                f"usage cannot be grouped by {abridged(name)}; {known}"
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
    by = _dimensions(by)
    if not isinstance(prices, Mapping | None):
        raise InvalidInputError(f"prices are by model, not {abridged(prices)}")
    params = filters.params()
    if not filters.archived:
        params["unarchived"] = 1
    if not filters.subagents:
        params["own"] = 1
    rows = yield _statement(tuple(by), tuple(sorted(params))), params
    groups: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    for row in rows:
        groups.setdefault(tuple(row[14 : 14 + len(by)]), []).append(row)
    return [
        _row(dict(zip(by, key, strict=True)), rows, prices)
        for key, rows in groups.items()
    ]


def _plus(values: Sequence[Any]) -> Any:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _row(
    key: dict[str, Any], rows: list[tuple[Any, ...]], prices: Prices | None
) -> UsageRow:
    estimated: list[float] = []
    unpriced = 0
    for row in rows:
        rates = (prices or {}).get(row[0] or "")
        for name, count in zip(_TOKENS, row[9:14], strict=True):
            if count and rates is not None and name in rates:
                estimated.append(count * rates[name] / 1e6)
            elif count:
                unpriced += count
    sessions = {sid for row in rows for sid in json.loads(row[1])}
    tokens = Tokens(*(_plus([row[index] for row in rows]) for index in range(4, 9)))
    cost = _plus([row[3] for row in rows])
    messages = sum(row[2] for row in rows)
    total = sum(estimated) if estimated else None
    return UsageRow(key, len(sessions), messages, cost, total, tokens, unpriced)
