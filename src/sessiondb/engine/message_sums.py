"""Sums over the messages themselves, in SQL that every engine runs.

An engine that keeps no sums needs nothing else; one that does asks the messages for
those by tool.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from sessiondb.engine.base import Connection, Dialect
from sessiondb.engine.local_days import NAMES_OF_DAYS, QUARTER_MS, name_of_quarter
from sessiondb.engine.sql import ComposedStatement, Statement
from sessiondb.engine.usage_sums import GroupedUsage, Totals, UsageQuestion
from sessiondb.schema.sums import cost_sum, count_sum
from sessiondb.schema.terms import TOKENS
from sessiondb.schema.usage import prompt_length, states_usage

#: The clocks of all time zones are whole quarters of an hour apart.
_QUARTER = f"m.time_created / {QUARTER_MS}"
#: Dimension → the key of a message ``m`` of a session ``s``; of days the quarter of an
#: hour, which `name_of_quarter` names.
KEYS = {
    "day": _QUARTER,
    "week": _QUARTER,
    "month": _QUARTER,
    "model": "m.model_id",
    "source": "s.source",
    "agent": "coalesce(m.agent, s.agent)",
    "project": "j.worktree",
    "session": "s.id",
    "tool": "t.tool",
}
VISIBLE = "s.time_deleted IS NULL AND s.time_importing IS NULL"
_SUMS = ", ".join(count_sum(f"m.{name}") for name in TOKENS)


class MessageSums:
    """The sums of an engine that keeps none: see `usage_sums.UsageSums`."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect

    def totals(self, question: UsageQuestion) -> Totals:
        """Return the sums of each group; the same key may be in several rows."""
        dimensions = question.dimensions
        statement = _statement(
            self._dialect,
            dimensions,
            tuple(question.terms.values()),
            question.rates.sizes,
        )
        rows = yield statement, question.parameters
        groups = []
        for row in rows:
            keys = zip(dimensions, keys_in(row), strict=True)
            names = [
                name_of_quarter(name, key) if name in NAMES_OF_DAYS else key
                for name, key in keys
            ]
            groups.append(group_of(row, tuple(names)))
        return groups

    def is_behind(self, connection: Connection) -> bool:  # noqa: ARG002  none wait
        """Return False."""
        return False

    def put_waiting(self, connection: Connection) -> None:
        """Do nothing."""

    def count_wrong(self, connection: Connection) -> int:  # noqa: ARG002  none is kept
        """Return 0."""
        return 0

    def repair(self, connection: Connection) -> None:
        """Do nothing."""


@lru_cache(maxsize=128)
def _statement(
    dialect: Dialect,
    dimensions: tuple[str, ...],
    terms: tuple[str, ...],
    sizes: tuple[int, ...],
) -> Statement:
    rows = f"{messages_with_usage(dimensions, terms)} AND m.inherited = 0"
    keys = [KEYS[name] for name in dimensions]
    return ComposedStatement(select_sums(dialect, keys, sizes, rows))


def messages_with_usage(dimensions: Sequence[str], terms: Sequence[str]) -> str:
    """Return FROM and WHERE of the messages with usage that meet *terms*.

    Copies are among them.
    """
    tools = ""
    if "tool" in dimensions:
        # A message that calls two tools counts in both groups.
        tools = (
            " LEFT JOIN (SELECT DISTINCT session_id, seq, tool FROM part "
            "WHERE type = 'tool') AS t ON t.session_id = m.session_id AND t.seq = m.seq"
        )
    conditions = [VISIBLE, f"({states_usage('m')})", *terms]
    return (
        "FROM message AS m JOIN session AS s ON s.id = m.session_id "
        f"LEFT JOIN project AS j ON j.id = s.project_id{tools} "
        f"WHERE {' AND '.join(conditions)}"
    )


def select_sums(
    dialect: Dialect, keys: Sequence[str], sizes: tuple[int, ...], rows: str
) -> str:
    """Return the query for the sums of messages, as `grouped` takes its rows.

    *rows* is its FROM and WHERE, and *sizes* are those of `Rates.sizes`.
    """
    names = "".join(f", {key}" for key in keys)
    return (
        f"SELECT m.model_id, {request_size(sizes)} AS size, "
        f"m.cost IS NULL AS is_unpaid, {dialect.distinct_numbers('s.rid')}, count(*), "
        f"{cost_sum('m.cost')}, {_SUMS}{names} {rows} "
        f"GROUP BY m.model_id, size, is_unpaid{names}"
    )


def request_size(sizes: tuple[int, ...]) -> str:
    """Return SQL for the largest of *sizes* that the prompt of a message is above."""
    length = prompt_length("m")
    longest_first = [f"WHEN {length} > {size} THEN {size}" for size in sizes[::-1]]
    return f"CASE {' '.join(longest_first)} ELSE 0 END" if sizes else "0"


def group_of(row: Sequence[Any], names: tuple[str | None, ...]) -> GroupedUsage:
    """Return a row of `select_sums`; *names* are those of its keys."""
    model, size, is_unpaid, sessions, messages, cost, *more = row
    return GroupedUsage(
        names,
        model,
        size,
        bool(is_unpaid),
        sessions,
        messages,
        cost,
        tuple(more[: len(TOKENS)]),
    )


def keys_in(row: Sequence[Any]) -> Sequence[Any]:
    """Return the keys in a row of `select_sums`, in their order."""
    return row[6 + len(TOKENS) :]
