"""Lists of sessions: filters, orders, cursors.

Paging is by keyset: a cursor is the sort key of the last item, so a page costs
the same at any depth. Filters are part of the statement, before its LIMIT.
"""

from __future__ import annotations

import base64
import json
import math
import os
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final

from sessiondb import codec
from sessiondb.arguments import one_of
from sessiondb.dataclass import dataclass
from sessiondb.engine.base import Engine
from sessiondb.engine.sql import ComposedStatement, Statement, as_list
from sessiondb.errors import InvalidInputError, abridged
from sessiondb.model import Page, Project, Session
from sessiondb.repository import Read, engine_in_use
from sessiondb.repository.decode import SESSION_COLUMNS, listed
from sessiondb.schema.terms import ARCHIVED, EMPTY, SUBAGENT


class ProjectChoice:
    """A value of ``project=``: `HERE`, that of the current directory, or `ALL`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


HERE: Final = ProjectChoice("HERE")
ALL: Final = ProjectChoice("ALL")
#: The project of a list or search: one of these, a directory, or a record.
ProjectFilter = ProjectChoice | Project | str | os.PathLike[str]

ORDERS = ("used", "created", "cost", "size")
MAX_LIMIT = 10_000
#: Characters of a cursor: a namespace and a key of `MOST_NAME_BYTES`, escaped.
MAX_CURSOR = 40_000
#: Bytes of a title filter; SQLite refuses a LIKE pattern of 50,000, and each may be
#: escaped.
MAX_TITLE_FILTER = 10_000


@dataclass(frozen=True, slots=True)
class Filters:
    """The filters of a list. Times are in Unix ms, ``until`` is exclusive.

    None does not filter.
    """

    project_id: str | None = None
    scope: str | None = None
    source: str | None = None
    agent: str | None = None
    since: int | None = None
    until: int | None = None
    title: str | None = None
    archived: bool = False
    subagents: bool = False
    empty: bool = False

    def __post_init__(self) -> None:
        for name, check in _CHECKS.items():
            value = getattr(self, name)
            if value is not None:
                check(value, name)

    @property
    def shown(self) -> tuple[int, ...]:
        """The values of ``hidden`` of the sessions that are listed."""
        reasons = {ARCHIVED: self.archived, SUBAGENT: self.subagents, EMPTY: self.empty}
        shown = [0]
        for reason, is_shown in reasons.items():
            if is_shown:
                shown += [reason + others for others in shown]
        return tuple(shown)

    def params(self) -> dict[str, Any]:
        """Return the parameters of the filters that are set."""
        values = zip(_NARROWING, _values_of(self), strict=True)
        out = {name: value for name, value in values if value is not None}
        if "title" in out:
            out["title"] = f"%{escape_like(out['title'])}%"
        return out

    def exclusions(self) -> dict[str, int]:
        """Return parameters named after the sessions that are left out."""
        left_out = {"unarchived": not self.archived, "own": not self.subagents}
        return {name: 1 for name, out in left_out.items() if out}

    def conditions(self) -> list[str]:
        """Return the WHERE terms over ``session``, without values."""
        shown = ", ".join(map(str, self.shown))
        return [f"session.hidden IN ({shown})", *self.narrowing()]

    def narrowing(self) -> list[str]:
        """Return the WHERE terms of the filters that are set."""
        return [_NARROWING[name] for name in self.params()]


#: Filter → its term.
_NARROWING = {
    "project_id": "session.project_id = :project_id",
    "scope": "session.scope = :scope",
    # Not the column alone: SQLite would take the index of sources, which has the
    # sessions that lists leave out, too.
    "source": "session.source || '' = :source",
    "agent": "session.agent = :agent",
    "since": "session.time_updated >= :since",
    "until": "session.time_updated < :until",
    "title": "lower(session.title) LIKE :title ESCAPE '\\'",
}
_values_of = attrgetter(*_NARROWING)


#: Filter → its term in SQL text, over messages ``m`` of sessions ``s``.
_TERMS_OF_MESSAGES = {
    "project_id": "s.project_id = :project_id",
    "scope": "s.scope = :scope",
    "source": "s.source = :source",
    "agent": "s.agent = :agent",
    "since": "m.time_created >= :since",
    "until": "m.time_created < :until",
    "title": "lower(s.title) LIKE :title ESCAPE '\\'",
    "unarchived": "s.time_archived IS NULL",
    "own": "s.relation IS DISTINCT FROM 'subagent'",
}


def terms_of_messages(names: Iterable[str], **more: str) -> tuple[str, ...]:
    """Return the terms of the parameters *names*, over rows ``m`` and ``s``.

    *more* are the terms of further parameters, or other ones of the same filters.
    """
    terms = _TERMS_OF_MESSAGES | more
    return tuple([terms[name] for name in names])


def _is_int64(value: object) -> bool:
    return type(value) is int and -(1 << 63) <= value < 1 << 63


def check_text(value: str, name: str) -> str:
    """Return *value* if SQLite can compare with it; raises `InvalidInputError`."""
    if not codec.is_unicode(value):
        raise InvalidInputError(f"{name} is not valid Unicode: {abridged(value)}")
    return value


def _check_title(value: str, name: str) -> None:
    if len(check_text(value, name).encode()) > MAX_TITLE_FILTER:
        raise InvalidInputError(f"{name} is longer than {MAX_TITLE_FILTER:,} bytes")


#: Filter → the check of its value.
_CHECKS: dict[str, Callable[[Any, str], object]] = {
    "scope": check_text,
    "source": check_text,
    "agent": check_text,
    "title": _check_title,
}


def escape_like(value: str) -> str:
    """Return *value* as LIKE compares it with ``lower(…)``: in small letters of ASCII.

    The wildcards of LIKE are plain characters. Of the letters that LIKE takes for each
    other, engines have different ideas.
    """
    return re.sub(r"([\\%_])", r"\\\1", value).encode().lower().decode()


def encode_cursor(*key: Any) -> str:
    """Return an opaque cursor: a few dozen characters that a shell leaves alone."""
    text = json.dumps(key, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode_cursor(cursor: str, *kinds: Any) -> list[Any]:
    """Return the key inside one of our cursors, of these types.

    Raises `InvalidInputError`.
    """
    key = _key_in(cursor)
    fits = len(key) == len(kinds) and all(map(_is_key, key, kinds))

    # A cursor that we did not write is refused: another spelling, a number that SQLite
    # cannot hold.
    if not fits or encode_cursor(*key) != cursor:
        raise InvalidInputError(f"not a cursor of this list: {abridged(cursor)}")

    return key


def _key_in(cursor: str) -> list[Any]:
    """Return the list that a cursor spells; for anything else it is empty."""
    key: Any = None
    if len(cursor) <= MAX_CURSOR:
        padding = "=" * (-len(cursor) % 4)
        with suppress(ValueError, RecursionError):
            key = json.loads(base64.urlsafe_b64decode(cursor + padding))

    return key if isinstance(key, list) else []


#: Type of a key in a cursor → whether SQLite can hold a value of it.
_HOLDS: dict[type, Callable[[Any], bool]] = {
    int: _is_int64,
    float: math.isfinite,
    str: codec.is_unicode,
}


def _is_key(value: object, kind: Any) -> bool:
    holds = _HOLDS.get(type(value))
    return holds is not None and isinstance(value, kind) and holds(value)


def check_limit(limit: int) -> int:
    """Return *limit* if it is between 1 and `MAX_LIMIT`; raises `InvalidInputError`."""
    if not 1 <= limit <= MAX_LIMIT:
        raise InvalidInputError(
            f"limit is between 1 and {MAX_LIMIT}, not {abridged(limit)}"
        )
    return limit


#: Order → the column that it sorts by, downwards; then, or alone, by ids, upwards.
_SORTED_BY = {
    "used": "session.time_updated",
    "created": None,
    "cost": "coalesce(session.cost, -1)",
}
_PLACES = {name: place for place, name in enumerate(SESSION_COLUMNS, 1)}


def _in_order(column: str | None, name: str, reverse: bool) -> str:
    """Return the ORDER BY of a column, downwards, and of ids, upwards; or *reverse*."""
    down, up = ("", " DESC") if reverse else (" DESC", "")
    return f"{name}{up}" if column is None else f"{column}{down}, {name}{up}"


def _behind_cursor(order: str, reverse: bool) -> str:
    """Return the term of what comes after a cursor."""
    column = _SORTED_BY[order]
    less, greater = (">", "<") if reverse else ("<", ">")
    further = f"session.id {greater} :after_id"
    if column is None:
        return further
    behind = f"({column} {less} :after OR {column} = :after AND {further})"
    # A bound that the index can seek to; the OR is only a filter.
    return f"{column} {less}= :after AND {behind}" if order == "used" else behind


_ALL = Statement("repository.sessions.ALL")
#: Order → the query for all sessions by the index that has it; then within a project,
#: and within a scope, which has fewer sessions than a project.
_BY_INDEX = {
    "used": Statement("repository.sessions.USED"),
    "created": Statement("repository.sessions.CREATED"),
}
_BY_INDEX_OF_PROJECT = {
    "used": Statement("repository.sessions.PROJECT_USED"),
    "created": Statement("repository.sessions.PROJECT_CREATED"),
}


_BY_INDEX_OF_SCOPE = {
    "used": Statement("repository.sessions.SCOPE_USED"),
    "created": Statement("repository.sessions.SCOPE_CREATED"),
}


@lru_cache(maxsize=256)
def _page_statement(
    engine: Engine,
    shape: Filters,
    order: str,
    *,
    reverse: bool,
    has_cursor: bool,
    most: int,
) -> Statement:
    """Return the query for a page of sessions: the first, or the one after a cursor."""
    # A literal: a server does not know how few rows a parameter means, and plans the
    # statement again each time.
    limit = f"LIMIT {most}"
    after = [_behind_cursor(order, reverse)] if has_cursor else []
    sorted_by = _in_order(_SORTED_BY[order], "session.id", reverse)
    if order == "cost":
        condition = " AND ".join([*shape.conditions(), *after])
        every = f"{_ALL.text_on(engine)} WHERE {condition}"
        return ComposedStatement(f"{every} ORDER BY {sorted_by} {limit}")

    narrowing = shape.narrowing()
    if shape.scope is not None:
        every = f"{_BY_INDEX_OF_SCOPE[order].text_on(engine)} AND"
        narrowing.remove(_NARROWING["scope"])
    elif shape.project_id is not None:
        every = f"{_BY_INDEX_OF_PROJECT[order].text_on(engine)} WHERE"
    else:
        every = f"{_BY_INDEX[order].text_on(engine)} WHERE"
    selects = []
    for hidden in shape.shown:
        terms = [f"session.hidden = {hidden}", *narrowing, *after]
        selects.append(f"{every} {' AND '.join(terms)}")
    # Each is in order, and SQLite merges them up to the limit. A union is sorted by the
    # places of its columns.
    if len(selects) > 1:
        place = None if order == "created" else str(_PLACES["time_updated"])
        sorted_by = _in_order(place, str(_PLACES["id"]), reverse)
    return ComposedStatement(
        f"{' UNION ALL '.join(selects)} ORDER BY {sorted_by} {limit}"
    )


#: Filter → some value of its type: a statement depends only on which ones are set.
_ANY_VALUE: dict[str, Any] = {
    "project_id": "", "scope": "", "source": "", "agent": "", "title": "",
    "since": 0, "until": 0,
}  # fmt: skip


def _shape_of(filters: Filters) -> Filters:
    """Return the filters without their values: what the statement depends on."""
    return Filters(
        **{name: _ANY_VALUE[name] for name in filters.params()},
        archived=filters.archived,
        subagents=filters.subagents,
        empty=filters.empty,
    )


def list_sessions(
    base: str | None,
    filters: Filters,
    *,
    order: str = "used",
    reverse: bool = False,
    limit: int = 50,
    cursor: str | None = None,
) -> Read[Page[Session]]:
    """Return one page of sessions, newest first (or most costly, or largest).

    With *reverse* that order is the other way round.
    """
    one_of(order, ORDERS, "order")
    check_limit(limit)
    cursor_key = None if cursor is None else decode_cursor(cursor, int | float, str)
    if order == "size":
        return (yield from _by_size(base, filters, reverse, limit, cursor_key))

    params = filters.params()
    if cursor_key is not None:
        params["after"], params["after_id"] = cursor_key
    has_cursor = cursor_key is not None
    engine = yield from engine_in_use()
    statement = _page_statement(
        engine,
        _shape_of(filters),
        order,
        reverse=reverse,
        has_cursor=has_cursor,
        most=limit + 1,
    )
    rows = yield statement, params

    items = tuple(listed(rows[:limit], base))
    if len(rows) <= limit:
        return Page(items)

    last = items[-1]
    return Page(items, encode_cursor(_KEY_OF[order](last), last.id))


def _cost_of(item: Session) -> float:
    """Return the cost that a session is sorted by; unknown costs are last."""
    return -1 if item.cost is None else item.cost


#: Order → the key of a session, besides its id, in a cursor.
_KEY_OF: dict[str, Callable[[Session], float]] = {
    "used": attrgetter("time_updated"),
    "created": attrgetter("time_created"),
    "cost": _cost_of,
}


def _by_size(
    base: str | None,
    filters: Filters,
    reverse: bool,
    limit: int,
    cursor: list[Any] | None,
) -> Read[Page[Session]]:
    """Return one page, largest or with *reverse* smallest first.

    It takes one pass over the tables.
    """
    rows = yield _ids_of(_shape_of(filters)), filters.params()
    engine = yield from engine_in_use()
    sizes = yield from engine.session_sizes.each()

    order = sorted((-sizes.get(name, 0), name) for (name,) in rows)
    if cursor is not None:
        number, name = cursor
        last = (-number, name)
        if reverse:
            order = order[: bisect_left(order, last)]
        else:
            order = order[bisect_right(order, last) :]
    if reverse:
        order.reverse()
    shown = order[:limit]

    rows = yield _BY_IDS, {"ids": as_list(name for _, name in shown)}
    sessions = {item.id: item for item in listed(rows, base)}
    # A damaged page can hold a row whose id an index still has.
    intact = [(-size, name) for size, name in shown if name in sessions]
    items = tuple([sessions[name] for _, name in intact])
    numbers = tuple([size for size, _ in intact])
    if len(order) <= limit:
        return Page(items, sizes=numbers)

    last_size, last_name = shown[-1]
    return Page(items, encode_cursor(-last_size, last_name), numbers)


@lru_cache(maxsize=256)
def _ids_of(shape: Filters) -> Statement:
    condition = " AND ".join(shape.conditions())
    return ComposedStatement(f"SELECT session.id FROM session WHERE {condition}")


_BY_IDS = Statement("repository.sessions.BY_IDS")
_PROJECT = Statement("repository.sessions.PROJECT")


def project_at(directories: tuple[str, ...]) -> Read[str | None]:
    """Return the id of the project of the first known one of *directories*, or None."""
    for directory in directories:
        rows = yield _PROJECT, {"directory": directory}
        if rows:
            return str(rows[0][0])

    return None
