"""Lists of sessions, and the names under which a person may ask for one.

Paging is by keyset: a cursor is the sort key of the last item, so a page costs
the same at any depth. Filters are part of the statement, before its LIMIT.
"""

from __future__ import annotations

import base64
import json
import math
import re
from bisect import bisect_right
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlalchemy import and_, func, literal_column, or_, select, text

from sessiondb.engine.sql import Statement, as_list, by_index, p, texts
from sessiondb.errors import (
    AmbiguousIdError,
    InvalidInputError,
    NotFoundError,
    abridged,
)
from sessiondb.hints import command
from sessiondb.ids import MAX_ID_BYTES
from sessiondb.ids import SESSION as PREFIX
from sessiondb.model import Page, Session
from sessiondb.repository import Read, sizes
from sessiondb.repository.decode import SELECT_SESSION, listed, session_of
from sessiondb.schema import project_directory, session, terminal, tombstone
from sessiondb.schema.tables import LISTED


class _Scope:
    """A value of ``project=``: `HERE`, that of the current directory, or `ALL`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


HERE: Any = _Scope("HERE")
ALL: Any = _Scope("ALL")

VISIBLE = and_(session.c.time_deleted.is_(None), session.c.time_importing.is_(None))
ORDERS = ("used", "created", "cost", "size")
_ALL_SESSIONS = f"{command('list', '-a')} shows every session"
MAX_LIMIT = 10_000
#: Characters of a cursor: an id of `MAX_ID_BYTES`, escaped, and a number.
MAX_CURSOR = 3_000
#: Sessions that the error of an ambiguous REF names.
MAX_CANDIDATES = 9
#: Bytes of a title filter; SQLite refuses a LIKE pattern of 50,000, and each may be
#: escaped.
MAX_TITLE_FILTER = 10_000


@dataclass(frozen=True, slots=True)
class Filters:
    """The filters of a list. Times in Unix ms, ``until`` exclusive.

    None does not narrow.
    """

    project_id: str | None = None
    source: str | None = None
    agent: str | None = None
    since: int | None = None
    until: int | None = None
    title: str | None = None
    archived: bool = False
    subagents: bool = False
    empty: bool = False

    def __post_init__(self) -> None:
        for name in ("source", "agent", "title"):
            if (value := getattr(self, name)) is not None:
                check_text(value, name)

        if self.title is not None and len(self.title.encode()) > MAX_TITLE_FILTER:
            raise InvalidInputError(f"title is longer than {MAX_TITLE_FILTER:,} bytes")
        for name in ("since", "until"):
            value = getattr(self, name)
            if value is not None and not _is_int64(value):
                raise InvalidInputError(
                    f"{name} is a number of Unix milliseconds, not {abridged(value)}"
                )

    def params(self) -> dict[str, Any]:
        """Return the parameters of the filters that are set."""
        out = {name: getattr(self, name) for name in _EQUAL_OR_BOUND}
        if self.title is not None:
            out["title"] = f"%{escape_like(self.title)}%"
        return {name: value for name, value in out.items() if value is not None}

    def exclusions(self) -> dict[str, int]:
        """Return parameters named after the sessions that are left out."""
        left_out = {"unarchived": not self.archived, "own": not self.subagents}
        return {name: 1 for name, out in left_out.items() if out}

    def conditions(self) -> list[Any]:
        """Return the WHERE terms, without values."""
        terms = [_NARROWING[name] for name in self.params()]
        if not (self.archived or self.subagents or self.empty):
            # The text of the partial indexes, to the letter.
            return [*_LISTED, *terms]

        included = (
            (self.archived, _UNARCHIVED),
            (self.empty, _NOT_EMPTY),
            (self.subagents, _OWN),
        )
        return [VISIBLE, *(term for kept, term in included if not kept), *terms]


_EQUAL_OR_BOUND = ("project_id", "source", "agent", "since", "until")
_LISTED = [text(term) for term in LISTED.split(" AND ")]
_UNARCHIVED: Any = session.c.time_archived.is_(None)
_NOT_EMPTY: Any = session.c.message_count > text("0")
_OWN: Any = session.c.relation.is_distinct_from(text("'subagent'"))
#: Filter → its term.
_NARROWING: dict[str, Any] = {
    "project_id": session.c.project_id == p("project_id"),
    # With + the planner stays with the index that has the order.
    "source": literal_column("+session.source") == p("source"),
    "agent": session.c.agent == p("agent"),
    "since": session.c.time_updated >= p("since"),
    "until": session.c.time_updated < p("until"),
    "title": session.c.title.like(p("title"), escape="\\"),
}


def _is_int64(value: object) -> bool:
    return type(value) is int and -(1 << 63) <= value < 1 << 63


def check_text(value: object, name: str) -> str:
    """Return *value* if SQLite can compare with it; raises `InvalidInputError`."""
    if not isinstance(value, str):
        raise InvalidInputError(f"{name} is a string, not {abridged(value)}")
    if value.encode("utf-8", "replace").decode() != value:
        raise InvalidInputError(f"{name} is not valid Unicode: {abridged(value)}")
    return value


def escape_like(value: str) -> str:
    """Return *value* with the wildcards of LIKE made plain characters."""
    return re.sub(r"([\\%_])", r"\\\1", value)


def encode_cursor(*key: Any) -> str:
    """Return an opaque cursor: a few dozen characters that a shell leaves alone."""
    text = json.dumps(key, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode_cursor(cursor: str, *kinds: Any) -> list[Any]:
    """Return the key inside one of our cursors, of these types.

    Raises `InvalidInputError`.
    """
    key: Any = None
    if isinstance(cursor, str) and len(cursor) <= MAX_CURSOR:
        with suppress(ValueError, RecursionError):
            key = json.loads(
                base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
            )

    known = isinstance(key, list) and len(key) == len(kinds)
    # A cursor that we did not write is refused: another spelling, a number that SQLite
    # cannot hold.
    if not known or not all(map(_is_key, key, kinds)) or encode_cursor(*key) != cursor:
        raise InvalidInputError(f"not a cursor of this list: {abridged(cursor)}")
    return list(key)


def _is_key(value: object, kind: Any) -> bool:
    if not isinstance(value, kind) or isinstance(value, bool):
        return False
    if isinstance(value, int):
        return -(1 << 63) <= value < 1 << 63
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, str) and value.encode("utf-8", "replace").decode() == value


def check_limit(limit: int) -> int:
    """Return *limit* if it is between 1 and `MAX_LIMIT`; raises `InvalidInputError`."""
    if type(limit) is not int or not 1 <= limit <= MAX_LIMIT:
        raise InvalidInputError(
            f"limit is between 1 and {MAX_LIMIT}, not {abridged(limit)}"
        )
    return limit


_COST = func.coalesce(session.c.cost, text("-1"))
#: Order → the columns that it sorts by.
_ORDER_BY: dict[str, tuple[Any, ...]] = {
    "used": (session.c.time_updated.desc(), session.c.id),
    "created": (session.c.id,),
    "cost": (_COST.desc(), session.c.id),
}
_LATER_ID = session.c.id > p("after_id")


def _behind(column: Any) -> Any:
    """Return the term of a descending column, and then the id, behind a cursor."""
    return or_(column < p("after"), and_(column == p("after"), _LATER_ID))


#: Order → the terms of what comes after a cursor.
_AFTER: dict[str, tuple[Any, ...]] = {
    # A bound that the index can seek to; the OR is only a filter.
    "used": (session.c.time_updated <= p("after"), _behind(session.c.time_updated)),
    "created": (_LATER_ID,),
    "cost": (_behind(_COST),),
}


def _index(shape: Filters, order: str) -> str | None:
    """Return the index that a list walks; None is the one of the unique id."""
    listed = not (shape.archived or shape.subagents or shape.empty)
    place = "" if shape.project_id is None else "project_"
    by = "created" if order == "created" else "used"
    name = f"ix_session_{'listed_' if listed else ''}{place}{by}"
    return None if name == "ix_session_created" else name


@lru_cache(maxsize=256)
def _list(shape: Filters, order: str, after: bool) -> Statement:
    def build() -> Any:
        statement = SELECT_SESSION.where(*shape.conditions())
        index = _index(shape, order)
        if index is not None:
            statement = statement.with_hint(*by_index(session, index))
        if after:
            statement = statement.where(*_AFTER[order])
        return statement.order_by(*_ORDER_BY[order]).limit(p("limit"))

    return Statement(build)


#: The filters that have a value → any value: a statement depends on no more of them.
_ANY_VALUE: dict[str, Any] = {
    "project_id": "", "source": "", "agent": "", "title": "", "since": 0, "until": 0,
}  # fmt: skip


def _shape(filters: Filters) -> Filters:
    """Return the filters without their values: what the statement depends on."""
    given = {n: v for n, v in _ANY_VALUE.items() if getattr(filters, n) is not None}
    return Filters(
        **given,
        archived=filters.archived,
        subagents=filters.subagents,
        empty=filters.empty,
    )


def list_sessions(
    base: str | None,
    filters: Filters,
    *,
    order: str = "used",
    limit: int = 50,
    cursor: str | None = None,
) -> Read[Page[Session]]:
    """Return one page of sessions, newest first (or most costly, or largest)."""
    if order not in ORDERS:
        raise InvalidInputError(
            f"order is one of {', '.join(ORDERS)}, not {abridged(order)}"
        )

    check_limit(limit)
    after = None if cursor is None else decode_cursor(cursor, int | float, str)
    if order == "size":
        return (yield from _by_size(base, filters, limit, after))

    params: dict[str, Any] = {**filters.params(), "limit": limit + 1}
    if after is not None:
        params["after"], params["after_id"] = after
    rows = yield _list(_shape(filters), order, cursor is not None), params
    items = tuple(listed(rows[:limit], base))
    if len(rows) <= limit:
        return Page(items)
    last = items[-1]
    cost = -1 if last.cost is None else last.cost
    key = {"used": last.time_updated, "created": 0, "cost": cost}
    return Page(items, encode_cursor(key[order], last.id))


def _by_size(
    base: str | None, filters: Filters, limit: int, after: list[Any] | None
) -> Read[Page[Session]]:
    """Return one page, largest first, after one pass over the tables."""
    named = yield _ids_of(_shape(filters)), filters.params()
    weights = yield from sizes.each()
    order = sorted((-weights.get(name, 0), name) for (name,) in named)
    if after is not None:
        order = order[bisect_right(order, (-after[0], after[1])) :]
    shown = order[:limit]

    rows = yield _BY_IDS, {"ids": as_list(name for _, name in shown)}
    found = {item.id: item for item in listed(rows, base)}
    # A damaged page can hold a row whose id an index still has.
    items = tuple(found[name] for _, name in shown if name in found)
    numbers = tuple(-size for size, name in shown if name in found)
    if len(order) <= limit:
        return Page(items, sizes=numbers)
    last_size, last_name = shown[-1]
    return Page(items, encode_cursor(-last_size, last_name), numbers)


@lru_cache(maxsize=256)
def _ids_of(shape: Filters) -> Statement:
    return Statement(lambda: select(session.c.id).where(*shape.conditions()))


_BY_IDS = Statement(lambda: SELECT_SESSION.where(session.c.id.in_(texts("ids"))))
_BY_ID = Statement(
    lambda: SELECT_SESSION.where(
        session.c.id == p("ref"), session.c.time_deleted.is_(None)
    )
)
_BY_SOURCE_ID = Statement(
    lambda: SELECT_SESSION.where(
        session.c.source_id == p("ref"), session.c.time_deleted.is_(None)
    )
)
_BY_SLUG = Statement(
    lambda: SELECT_SESSION.where(
        session.c.slug == p("ref"), session.c.time_deleted.is_(None)
    )
)
_BY_PREFIX = Statement(
    lambda: SELECT_SESSION.where(
        session.c.id >= p("ref"), session.c.id < p("stop"), VISIBLE
    ).limit(literal_column(str(MAX_CANDIDATES + 1)))
)
_BY_TAIL = Statement(
    lambda: SELECT_SESSION.where(
        session.c.id.like(p("tail"), escape="\\"), VISIBLE
    ).limit(literal_column(str(MAX_CANDIDATES + 1)))
)
_BY_SOURCE_PREFIX = Statement(
    lambda: SELECT_SESSION.where(
        session.c.source_id.like(p("head"), escape="\\"), VISIBLE
    ).limit(literal_column(str(MAX_CANDIDATES + 1)))
)
_REMOVED = Statement(
    lambda: (
        select(tombstone.c.source_id)
        .where(tombstone.c.source_id == p("ref"))
        .limit(literal_column("1"))
    )
)
#: Native ids, in full.
_FULL_ID = re.compile(PREFIX + "[0-7][0-9A-HJKMNP-TV-Z]{25}")
_LAST_HERE = Statement(
    lambda: (
        SELECT_SESSION.join(terminal, terminal.c.session_id == session.c.id)
        .where(terminal.c.directory == p("directory"), VISIBLE)
        .where(or_(terminal.c.id == p("terminal"), p("terminal").is_(None)))
        .order_by(terminal.c.time_updated.desc())
        .limit(1)
    )
)


def find_session(
    base: str | None, ref: str, *, here: Filters | None = None, terminal_id: str | None = None,
    directory: str | None = None,
) -> Read[Session]:  # fmt: skip
    """Return the session that *ref*, typed by a person, names: see REF in the README.

    An id always goes first. A string that is a full id, or that was one until its
    session was removed, is never taken for a part of another. Raises `NotFoundError`,
    and `AmbiguousIdError` with the candidates.
    """
    if not isinstance(ref, str) or not ref:
        what = f"a session is named by its id, its slug or @, not {abridged(ref)}"
        raise InvalidInputError(what, hint=_ALL_SESSIONS)
    if ref.startswith("@"):
        return (
            yield from _last_used(base, ref, here or Filters(), terminal_id, directory)
        )

    if not _may_be_a_name(ref):
        raise NotFoundError(f"no session is named {abridged(ref)}", hint=_ALL_SESSIONS)
    for statement in (_BY_ID, _BY_SOURCE_ID):
        rows = yield statement, {"ref": ref}
        if rows:
            return _only(rows, ref, base)

    if (yield _REMOVED, {"ref": ref}):
        raise NotFoundError(
            f"session {abridged(ref)} was removed here", hint=_ALL_SESSIONS
        )

    for statement, params in _guesses(ref):
        rows = yield statement, params
        if rows:
            return _only(rows, ref, base)

    raise NotFoundError(f"no session is named {abridged(ref)}", hint=_ALL_SESSIONS)


def session_by_id(base: str | None, session_id: str) -> Read[Session]:
    """Return the session with exactly that id; raises `NotFoundError`."""
    rows = yield _BY_ID, {"ref": session_id}
    if not rows:
        raise NotFoundError(
            f"session {abridged(session_id)} does not exist", hint=_ALL_SESSIONS
        )
    return session_of(rows[0], base)


def _may_be_a_name(ref: str) -> bool:
    """Return whether a session can have this name: valid Unicode of an id's length.

    SQLite refuses to look for a pattern of 50,000 bytes.
    """
    return len(ref) <= MAX_ID_BYTES and ref.encode("utf-8", "replace").decode() == ref


def _guesses(ref: str) -> list[tuple[Statement, Mapping[str, Any]]]:
    if _FULL_ID.fullmatch(ref):
        return []
    prefix = ref if ref.startswith(PREFIX) else PREFIX + ref.upper()
    guesses: list[tuple[Statement, Mapping[str, Any]]] = [
        (_BY_SLUG, {"ref": ref}),
        (_BY_PREFIX, {"ref": prefix, "stop": prefix + "\U0010ffff"}),
    ]
    if len(ref) >= 4:
        guesses.append((_BY_TAIL, {"tail": "%" + escape_like(ref)}))
        guesses.append((_BY_SOURCE_PREFIX, {"head": escape_like(ref) + "%"}))

    return guesses


def _only(rows: list[tuple[Any, ...]], ref: str, base: str | None) -> Session:
    if len(rows) > 1:
        found = listed(rows[:MAX_CANDIDATES], base)
        more = " or more" if len(rows) > MAX_CANDIDATES else ""
        raise AmbiguousIdError(
            f"{abridged(ref)} names {len(found)} sessions{more}",
            candidates=[item.id for item in found],
            sessions=found,
            hint=f"type more of the id: {command('show', found[0].id)}",
        )

    return session_of(rows[0], base)


def _last_used(
    base: str | None,
    ref: str,
    here: Filters,
    terminal_id: str | None,
    directory: str | None,
) -> Read[Session]:
    match = re.fullmatch(r"@(?:~([0-9]+))?", ref)
    if match is None:
        what = (
            f"{abridged(ref)} is not a REF; @ is the last session, @~1 the one before"
        )
        raise NotFoundError(what, hint=_ALL_SESSIONS)

    digits = (match[1] or "0").lstrip("0")
    # Beyond what a list holds at once there is nothing, and int() refuses 5,000 digits.
    back = int(digits or "0") if len(digits) < len(str(MAX_LIMIT)) else MAX_LIMIT
    if back == 0 and directory is not None:
        rows = yield _LAST_HERE, {"directory": directory, "terminal": terminal_id}
        if rows:
            return session_of(rows[0], base)

    page = yield from list_sessions(base, here, limit=min(back + 1, MAX_LIMIT))
    if len(page.items) <= back:
        raise NotFoundError(
            f"there is no session {abridged(ref)} here", hint=_ALL_SESSIONS
        )

    return page.items[back]


_PROJECT = Statement(
    lambda: (
        select(project_directory.c.project_id)
        .where(project_directory.c.directory == p("directory"))
        .order_by(
            project_directory.c.kind == text("'former'"),
            project_directory.c.time_created.desc(),
            project_directory.c.project_id,
        )
        .limit(1)
    )
)


def project_at(directories: tuple[str, ...]) -> Read[str | None]:
    """Return the id of the project that one of *directories* belongs to.

    None is unknown here.
    """
    for directory in directories:
        rows = yield _PROJECT, {"directory": directory}
        if rows:
            return str(rows[0][0])
    return None
