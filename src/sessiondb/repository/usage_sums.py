"""Cost and tokens in groups, from the sums that the database keeps.

`schema.usage` describes the cells, and what waits for them. A cell answers if its hour
is within one group and within the filters, and if all its requests have the same
prices; the messages of the others are read, as are those that wait. All of that is one
statement, so it is one state of the database.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from sessiondb.dataclass import dataclass
from sessiondb.engine.base import Engine
from sessiondb.engine.sql import ComposedStatement, Statement, as_list
from sessiondb.model import Tokens
from sessiondb.prices import Rates
from sessiondb.repository import Read, engine_in_use
from sessiondb.repository.local_days import (
    FIRST_HOUR,
    LocalDays,
    local_days,
    name_of_day,
    name_of_month,
    name_of_week,
)
from sessiondb.repository.sessions import Filters, terms_of_messages
from sessiondb.schema.sums import cost_sum, count_sum, limit_cost
from sessiondb.schema.terms import ARCHIVED, INVISIBLE, SUBAGENT, TOKENS
from sessiondb.schema.usage import (
    HOUR_MS,
    MARK_OF_USAGE,
    SETTLED,
    has_usage,
    hour_of,
    is_in_cell,
    prompt_length,
    states_usage,
)

_local = "m.time_created / 1000, 'unixepoch', 'localtime'"
#: Dimension → the key of a message ``m`` of a session ``s``.
KEYS = {
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
#: The dimensions that a cell has as the number of a day.
_NAMES_OF_DAYS: dict[str, Callable[[int], str]] = {
    "day": name_of_day, "week": name_of_week, "month": name_of_month,
}  # fmt: skip
_SUMS = ", ".join(count_sum(f"m.tokens_{name}") for name in Tokens.__slots__)
_HOUR = f"({hour_of('m')})"
_VISIBLE = "s.time_deleted IS NULL AND s.time_importing IS NULL"
_IS_COVERED = f"m.rid <= {MARK_OF_USAGE}"
_SESSION_OF_ROW = "CROSS JOIN session AS s ON s.rid = c.session_rid"
_MESSAGES_OF_SESSION = "CROSS JOIN message AS m ON m.session_id = s.id"
_HOURS = Statement("repository.usage_sums.HOURS")


class GroupedUsage(NamedTuple):
    """Sums over messages that have a key, a model, and prices in common."""

    key: tuple[str | None, ...]
    model: str | None
    #: The largest length of those at which prices change that the prompts are above.
    size: int
    #: Whether these are the messages without a cost.
    is_unpaid: bool
    #: The numbers of their sessions, with commas; one may be there twice.
    sessions: str
    messages: int
    cost: float | None
    tokens: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class _TotalShape:
    """The facts on which the text of a statement depends, without values."""

    engine: Engine
    dimensions: tuple[str, ...]
    parameters: tuple[str, ...]
    #: The lengths of prompts at which prices change.
    sizes: tuple[int, ...]
    days: LocalDays | None = None

    @property
    def split(self) -> str | None:
        """The condition on ``{0}``, an hour, that its cells do not answer."""
        conditions = []
        if self.days is not None and self.days.is_split is not None:
            conditions.append(self.days.is_split)
        if {"since", "until"}.intersection(self.parameters):
            conditions.append("{0} IN (:since_edge, :until_edge)")
        return " OR ".join(conditions) or None


def request_size(sizes: tuple[int, ...]) -> str:
    """Return SQL for the largest of *sizes* that the prompt of a message is above."""
    length = prompt_length("m")
    longest_first = [f"WHEN {length} > {size} THEN {size}" for size in sizes[::-1]]
    return f"CASE {' '.join(longest_first)} ELSE 0 END" if sizes else "0"


def messages_with_usage(
    engine: Engine, dimensions: tuple[str, ...], shape: tuple[str, ...]
) -> str:
    """Return FROM and WHERE of the messages with usage, with the parameters *shape*.

    Copies are among them.
    """
    tools = ""
    if "tool" in dimensions:
        # A message that calls two tools counts in both groups.
        tools = (
            " LEFT JOIN (SELECT DISTINCT session_id, seq, tool FROM part "
            "WHERE type = 'tool') AS t ON t.session_id = m.session_id AND t.seq = m.seq"
        )
    conditions = [_VISIBLE, f"({states_usage('m')})", *_terms(engine, shape)]
    return (
        "FROM message AS m JOIN session AS s ON s.id = m.session_id "
        f"LEFT JOIN project AS j ON j.id = s.project_id{tools} "
        f"WHERE {' AND '.join(conditions)}"
    )


def _terms(engine: Engine, parameters: Sequence[str], **more: str) -> tuple[str, ...]:
    """Return the terms of filters over messages ``m`` of sessions ``s``."""
    # An answer may name an agent other than that of its session.
    own_terms = {
        "agent": f"{KEYS['agent']} = :agent",
        "sessions": f"s.id IN {engine.dialect.list_text('sessions', str)}",
    }
    return terms_of_messages(engine, parameters, **own_terms | more)


def grouped_usage(
    filters: Filters,
    dimensions: tuple[str, ...],
    rates: Rates,
    sessions: Sequence[str] | None,
) -> Read[list[GroupedUsage]]:
    """Return the sums of each group; the same key may be in several rows."""
    params = filters.params() | filters.exclusions()
    if sessions is not None:
        params["sessions"] = as_list(sessions)
    engine = yield from engine_in_use()
    shape = _TotalShape(engine, dimensions, tuple(sorted(params)), rates.sizes)
    if "tool" in dimensions:
        rows = yield _messages_statement(shape), params
        return [_grouped(row, dimensions) for row in rows]

    if not _NAMES_OF_DAYS.keys().isdisjoint(dimensions):
        ((first, last),) = yield _HOURS, {}
        days = local_days(first or FIRST_HOUR, last or FIRST_HOUR)
        shape = _TotalShape(engine, dimensions, shape.parameters, shape.sizes, days)
    params |= _hours_of(filters)
    rows = yield _cells_statement(shape), params

    # A cell with long prompts answers if the prices of its model know no length.
    groups = [_grouped(row, dimensions) for row in rows]
    models = {group.model for group in groups if group.size == _IS_LONG}
    by_length = {model for model in models if model and rates.depends_on_size(model)}
    if not by_length:
        return groups
    rows = yield _long_statement(shape), params | {"models": as_list(sorted(by_length))}
    return [
        *(g for g in groups if g.size != _IS_LONG or g.model not in by_length),
        *(_grouped(row, dimensions) for row in rows),
    ]


#: The size of cells with prompts above the least of the lengths.
_IS_LONG = -1


def _hours_of(filters: Filters) -> dict[str, int]:
    """Return the parameters for the hours within the filters, and those at an edge."""
    if filters.since is None and filters.until is None:
        return {}

    hours = {"since_edge": -1, "until_edge": -1}
    for name, time in (("since", filters.since), ("until", filters.until)):
        if time is None:
            continue
        hour, remainder = divmod(time, HOUR_MS)
        hours[f"{name}_hour"] = hour
        if remainder:
            hours[f"{name}_edge"] = hour
            # The first hour that is after the time as a whole.
            hours[f"{name}_hour"] += name == "since"
    return hours


def _grouped(row: Sequence[Any], dimensions: tuple[str, ...]) -> GroupedUsage:
    model, size, is_unpaid, sessions, messages, cost, *more = row
    kinds = len(Tokens.__slots__)
    keys = more[kinds : kinds + len(dimensions)]
    names = [
        _NAMES_OF_DAYS[name](value) if isinstance(value, int) else value
        for name, value in zip(dimensions, keys, strict=True)
    ]
    return GroupedUsage(
        tuple(names),
        model,
        size,
        bool(is_unpaid),
        sessions,
        messages,
        cost,
        tuple(more[:kinds]),
    )


def _select_messages(shape: _TotalShape, rows: str, *conditions: str) -> str:
    """Return the query for the sums of messages, rows with ``m`` and ``s``."""
    project = ""
    if "project" in shape.dimensions:
        project = " LEFT JOIN project AS j ON j.id = s.project_id"
    terms = [_VISIBLE, has_usage("m"), *conditions]
    terms += _terms(shape.engine, shape.parameters)
    where = " AND ".join(f"({term})" for term in terms)
    return _sum_by_group(shape, f"FROM {rows}{project} WHERE {where}")


def _sum_by_group(shape: _TotalShape, rows: str) -> str:
    """Return the query for the sums of messages; *rows* is its FROM and WHERE."""
    names = "".join(f", {KEYS[name]}" for name in shape.dimensions)
    return (
        f"SELECT m.model_id, {request_size(shape.sizes)} AS size, "
        "m.cost IS NULL AS is_unpaid, group_concat(DISTINCT s.rid), count(*), "
        f"{cost_sum('m.cost')}, {_SUMS}{names} {rows} "
        f"GROUP BY m.model_id, size, is_unpaid{names}"
    )


@lru_cache(maxsize=128)
def _messages_statement(shape: _TotalShape) -> Statement:
    """Return the query for the sums of messages, without any cells."""
    rows = messages_with_usage(shape.engine, shape.dimensions, shape.parameters)
    return ComposedStatement(_sum_by_group(shape, f"{rows} AND m.inherited = 0"))


@lru_cache(maxsize=128)
def _cells_statement(shape: _TotalShape) -> Statement:
    """Return the query for the sums of cells, and of messages that are in no cell."""
    new_messages = "message AS m CROSS JOIN session AS s ON s.id = m.session_id"
    messages_of_waiting = (
        "usage_waiting AS w CROSS JOIN session AS s ON s.rid = w.rid "
        f"{_MESSAGES_OF_SESSION}"
    )
    selects = [
        _select_cells(shape),
        _select_messages(shape, new_messages, f"m.rid > {MARK_OF_USAGE}"),
        _select_messages(shape, messages_of_waiting, _IS_COVERED),
    ]
    if shape.split is not None:
        sessions = _sessions_with_cells(shape.split.format("c.hour"))
        rows = f"{sessions} {_SESSION_OF_ROW} {_MESSAGES_OF_SESSION}"
        is_split = shape.split.format(_HOUR)
        selects.append(_select_messages(shape, rows, _IS_COVERED, is_split))
    return ComposedStatement(" UNION ALL ".join(selects))


def _select_cells(shape: _TotalShape) -> str:
    """Return the query for the sums of cells.

    A group is one number, as far as it can be, and the names of its parts are looked up
    when the groups are complete: SQLite sorts the cells, of which there are many.
    """
    number = "m.model_rid * 4 + (m.cost IS NULL) * 2"
    if shape.sizes:
        number += f" + (m.cost IS NULL AND m.longest_prompt > {shape.sizes[0]})"
    if shape.days is not None:
        number += f" + ({shape.days.day.format('m.hour')}) * {_DAY}"
    keys, names = {"number": number}, []
    for name in shape.dimensions:
        if name in _NAMES_OF_DAYS:
            names.append(f"g.number / {_DAY}")
        elif name == "project":
            keys["project_rid"] = "m.project_rid"
            names.append("(SELECT worktree FROM project WHERE rid = g.project_rid)")
        elif name == "session":
            keys["session_rid"] = "m.session_rid"
            names.append("(SELECT id FROM session WHERE rid = g.session_rid)")
        else:
            names.append(_KEYS_OF_MODELS[name])

    selected = "".join(f", {sql} AS {name}" for name, sql in keys.items())
    cells = (
        f"SELECT group_concat(m.session_rid) AS sessions, {_CELL_SUMS}{selected} "
        f"{_cells_with_terms(shape)} GROUP BY {', '.join(keys)}"
    )
    tokens = ", ".join(f"CAST(g.{name} AS INTEGER)" for name in TOKENS)
    return (
        f"SELECT u.model_id, -(g.number & 1), g.number & 2, g.sessions, g.messages, "
        f"{limit_cost('g.cost')}, {', '.join([tokens, *names])} FROM ({cells}) AS g "
        f"JOIN usage_model AS u ON u.rid = (g.number % {_DAY}) / 4"
    )


#: The factor of the day in the number of a group; the rest is below it.
_DAY = 1 << 32
#: Floats do not overflow, and are exact up to 2^53: see `schema.sums`.
_CELL_SUMS = "CAST(total(m.messages) AS INTEGER) AS messages, sum(m.cost) AS cost, " + (
    ", ".join(f"sum(m.{name} * 1.0) AS {name}" for name in TOKENS)
)
#: Dimension → its column in ``usage_model``.
_KEYS_OF_MODELS = {"model": "u.model_id", "source": "u.source", "agent": "u.agent"}
_MODELS = "(SELECT rid FROM usage_model WHERE {0} = :{0})"
#: Parameter → its term over cells; those of sessions are as for messages.
_TERMS_OF_CELLS = {
    "project_id": "m.project_rid = (SELECT rid FROM project WHERE id = :project_id)",
    "source": f"m.model_rid IN {_MODELS.format('source')}",
    "agent": f"m.model_rid IN {_MODELS.format('agent')}",
    "since": "m.hour >= :since_hour",
    "until": "m.hour < :until_hour",
    "unarchived": f"m.hidden & {ARCHIVED} = 0",
    "own": f"m.hidden & {SUBAGENT} = 0",
}


def _cells_with_terms(shape: _TotalShape) -> str:
    """Return FROM and WHERE of the cells that answer."""
    terms = [f"m.hidden & {INVISIBLE} = 0", SETTLED.format("m")]
    if shape.split is not None:
        terms.append(f"NOT ({shape.split.format('m.hour')})")
    terms += _terms(shape.engine, shape.parameters, **_TERMS_OF_CELLS)
    rows = "usage_hour AS m"
    if not {"sessions", "scope"}.isdisjoint(shape.parameters):
        rows += " JOIN session AS s ON s.rid = m.session_rid"
    elif "title" in shape.parameters:
        rows += " CROSS JOIN session AS s ON s.rid = m.session_rid"
    return f"FROM {rows} WHERE {' AND '.join(f'({term})' for term in terms)}"


@lru_cache(maxsize=128)
def _long_statement(shape: _TotalShape) -> Statement:
    """Return the query for the sums of the messages in cells with long prompts."""
    is_long = (
        f"c.cost IS NULL AND c.longest_prompt > {shape.sizes[0]} "
        "AND (SELECT model_id FROM usage_model WHERE rid = c.model_rid) IN "
        f"{shape.engine.dialect.list_text('models', str)}"
    )
    in_long_cell = (
        f"EXISTS (SELECT 1 FROM usage_hour AS c WHERE {is_in_cell('m', 's', 'c')} "
        f"AND {is_long})"
    )
    conditions = [_IS_COVERED, in_long_cell]
    if shape.split is not None:
        conditions.append(f"NOT ({shape.split.format(_HOUR)})")
    rows = f"{_sessions_with_cells(is_long)} {_SESSION_OF_ROW} {_MESSAGES_OF_SESSION}"
    return ComposedStatement(_select_messages(shape, rows, *conditions))


def _sessions_with_cells(condition: str) -> str:
    """Return the sessions with a cell ``c`` of a condition, but those that wait."""
    return (
        "(SELECT DISTINCT c.session_rid FROM usage_hour AS c "
        f"WHERE ({condition}) AND {SETTLED.format('c')}) AS c"
    )
