"""Cost and tokens in groups, from the cells that a file keeps.

`usage_cells` describes them, and what waits for them. A cell answers if its hour
is within one group and within the filters, and if all its requests have the same
prices; the messages of the others are read, as are those that wait. All of that is one
statement, so it is one state of the database.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from sessiondb.dataclass import dataclass
from sessiondb.engine.local_days import NAMES_OF_DAYS
from sessiondb.engine.message_sums import (
    KEYS,
    VISIBLE,
    MessageSums,
    group_of,
    keys_in,
    select_sums,
)
from sessiondb.engine.sql import ComposedStatement, Statement, as_list
from sessiondb.engine.sqlite.dialect import DIALECT
from sessiondb.engine.sqlite.local_days import FIRST_HOUR, LocalDays, local_days
from sessiondb.engine.sqlite.usage_cells import (
    HOUR_MS,
    MARK_OF_USAGE,
    SETTLED,
    hour_of,
    is_in_cell,
)
from sessiondb.engine.usage_sums import GroupedUsage, Totals, UsageQuestion
from sessiondb.schema.sums import limit_cost
from sessiondb.schema.terms import ARCHIVED, INVISIBLE, SUBAGENT, TOKENS
from sessiondb.schema.usage import has_usage

_local = "m.time_created / 1000, 'unixepoch', 'localtime'"
#: Dimension → the key of a message, where it is not that of `KEYS`: here the name.
_NAMES = {
    "day": f"strftime('%Y-%m-%d', {_local})",
    "week": f"strftime('%Y-%m-%d', {_local}, 'weekday 0', '-6 days')",
    "month": f"strftime('%Y-%m', {_local})",
}
_HOUR = f"({hour_of('m')})"
_IS_COVERED = f"m.rid <= {MARK_OF_USAGE}"
_SESSION_OF_ROW = "CROSS JOIN session AS s ON s.rid = c.session_rid"
_MESSAGES_OF_SESSION = "CROSS JOIN message AS m ON m.session_id = s.id"
#: Two queries: the first and the last entry of an index, which one would read all of.
_HOURS = ComposedStatement(
    "SELECT (SELECT min(hour) FROM usage_hour), (SELECT max(hour) FROM usage_hour)"
)
_OF_MESSAGES = MessageSums(DIALECT)


@dataclass(frozen=True, slots=True)
class _TotalShape:
    """The facts on which the text of a statement depends, without values."""

    dimensions: tuple[str, ...]
    #: The names of the parameters, and the condition of each.
    terms: tuple[tuple[str, str], ...]
    #: The lengths of prompts at which prices change.
    sizes: tuple[int, ...]
    days: LocalDays | None = None

    @property
    def parameters(self) -> set[str]:
        """The names of the parameters."""
        return {name for name, _ in self.terms}

    @property
    def split(self) -> str | None:
        """The condition on ``{0}``, an hour, that its cells do not answer."""
        conditions = []
        if self.days is not None and self.days.is_split is not None:
            conditions.append(self.days.is_split)
        if not {"since", "until"}.isdisjoint(self.parameters):
            conditions.append("{0} IN (:since_edge, :until_edge)")
        return " OR ".join(conditions) or None


def totals(question: UsageQuestion) -> Totals:
    """Return the sums of each group; see `UsageSums.totals`."""
    dimensions, rates, values = question.dimensions, question.rates, question.parameters
    if "tool" in dimensions:
        return (yield from _OF_MESSAGES.totals(question))

    shape = _TotalShape(dimensions, tuple(question.terms.items()), rates.sizes)
    if not NAMES_OF_DAYS.keys().isdisjoint(dimensions):
        ((first, last),) = yield _HOURS, {}
        days = local_days(first or FIRST_HOUR, last or FIRST_HOUR)
        shape = _TotalShape(dimensions, shape.terms, shape.sizes, days)
    params = {**values, **_hours_of(values)}
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


def _hours_of(values: Mapping[str, Any]) -> dict[str, int]:
    """Return the parameters for the hours within the filters, and those at an edge."""
    if values.keys().isdisjoint({"since", "until"}):
        return {}

    hours = {"since_edge": -1, "until_edge": -1}
    for name in ("since", "until"):
        if name not in values:
            continue
        hour, remainder = divmod(values[name], HOUR_MS)
        hours[f"{name}_hour"] = hour
        if remainder:
            hours[f"{name}_edge"] = hour
            # The first hour that is after the time as a whole.
            hours[f"{name}_hour"] += name == "since"
    return hours


def _grouped(row: Any, dimensions: tuple[str, ...]) -> GroupedUsage:
    # A cell has the number of a day, a message its name.
    keys = zip(dimensions, keys_in(row), strict=True)
    names = [
        NAMES_OF_DAYS[name](key) if isinstance(key, int) else key for name, key in keys
    ]
    return group_of(row, tuple(names))


def _select_messages(shape: _TotalShape, rows: str, *conditions: str) -> str:
    """Return the query for the sums of messages, rows with ``m`` and ``s``."""
    project = ""
    if "project" in shape.dimensions:
        project = " LEFT JOIN project AS j ON j.id = s.project_id"
    filters = [term for _, term in shape.terms]
    terms = [VISIBLE, has_usage("m"), *conditions, *filters]
    where = " AND ".join(f"({term})" for term in terms)
    keys = [(KEYS | _NAMES)[name] for name in shape.dimensions]
    return select_sums(
        DIALECT, keys, shape.sizes, f"FROM {rows}{project} WHERE {where}"
    )


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
        if name in NAMES_OF_DAYS:
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
    terms += [_TERMS_OF_CELLS.get(name, term) for name, term in shape.terms]
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
        f"{DIALECT.list_text('models', str)}"
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
