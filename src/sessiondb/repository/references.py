"""REF: the names by which people refer to a session.

An id always takes precedence; then the source's own id, a slug, a unique prefix or tail
of an id, a title. ``@`` is the session used last here, ``@~1`` the one before it. See
REF in docs/CLI.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from sessiondb.codec import is_unicode
from sessiondb.engine.sql import Statement, as_list
from sessiondb.errors import (
    AmbiguousIdError,
    InvalidInputError,
    NotFoundError,
    abridged,
)
from sessiondb.hints import command
from sessiondb.ids import MAX_ID_BYTES
from sessiondb.ids import SESSION as PREFIX
from sessiondb.model import Session
from sessiondb.patterns import late_pattern
from sessiondb.repository import Read, Rows
from sessiondb.repository.decode import Row, listed, session_of
from sessiondb.repository.sessions import (
    MAX_LIMIT,
    Filters,
    escape_like,
    list_sessions,
)

_ALL_SESSIONS = f"{command('list', '-a')} shows every session"
#: Sessions that the error of an ambiguous REF names.
MAX_CANDIDATES = 9
#: Characters of the shortest REF that is taken for a part of an id.
_LEAST_PART = 4
#: Characters of a part of a title in a hint.
_MOST_OF_TITLE = 200
#: Native ids, in full.
_FULL_ID = late_pattern(PREFIX + "[0-7][0-9A-HJKMNP-TV-Z]{25}")
_LAST = late_pattern("@(?:~([0-9]+))?")


_BY_ID = Statement("repository.references.BY_ID")
_EXTENT = Statement("repository.references.EXTENT")
_BY_SOURCE_ID = Statement("repository.references.BY_SOURCE_ID")
_BY_SLUG = Statement("repository.references.BY_SLUG")
_BY_PREFIX = Statement("repository.references.BY_PREFIX")
_BY_TAIL = Statement("repository.references.BY_TAIL")
_BY_SOURCE_PREFIX = Statement("repository.references.BY_SOURCE_PREFIX")
_BY_TITLE = Statement("repository.references.BY_TITLE")
_ABOVE_SUBAGENTS = Statement("repository.references.ABOVE_SUBAGENTS")
_REMOVED = Statement("repository.references.REMOVED")
_IN_ANY = Statement("repository.references.IN_ANY")
_IN_TERMINAL = Statement("repository.references.IN_TERMINAL")


def _not_found(reason: str) -> NotFoundError:
    return NotFoundError(reason, hint=_ALL_SESSIONS)


def _no_session(session_id: str) -> NotFoundError:
    return _not_found(f"session {abridged(session_id)} does not exist")


def session_by_id(base: str | None, session_id: str) -> Read[Session]:
    """Return the session with exactly that id; raises `NotFoundError`."""
    rows = yield _BY_ID, {"ref": session_id}
    if not rows:
        raise _no_session(session_id)
    return session_of(rows[0], base)


class Extent(NamedTuple):
    """The facts of a session that reads of its messages need."""

    id: str
    leaf_seq: int | None
    last_seq: int
    message_count: int


def extent_by_id(session_id: str) -> Read[Extent]:
    """Return the extent of the session with exactly that id; raises `NotFoundError`."""
    rows = yield _EXTENT, {"ref": session_id}
    if not rows:
        raise _no_session(session_id)
    return Extent._make(rows[0])


def find_extent(base: str | None, ref: str) -> Read[Extent]:
    """Return the extent of the session that *ref* names; see `find_session`."""
    _check_name(ref)
    rows = yield _EXTENT, {"ref": ref}
    if rows:
        return Extent._make(rows[0])
    return extent_of((yield from find_session(base, ref)))


def extent_of(session: Session) -> Extent:
    """Return the extent of a session that was read."""
    return Extent(session.id, session.leaf_seq, session.last_seq, session.message_count)


def find_session(base: str | None, ref: str) -> Read[Session]:
    """Return the session that *ref*, as people type it, names; not ``@``.

    An id always takes precedence. A string that is a full id, or was one until its
    session was removed, is never taken for a part of another. Raises `NotFoundError`,
    and `AmbiguousIdError` with the candidates.
    """
    _check_name(ref)
    for statement in (_BY_ID, _BY_SOURCE_ID):
        rows = yield statement, {"ref": ref}
        if rows:
            return _only_session(rows, ref, base)

    if (yield _REMOVED, {"ref": ref}):
        raise _not_found(f"session {abridged(ref)} was removed here")

    for statement, params in _guess_queries(ref):
        rows = yield statement, params
        if rows:
            return _only_session(rows, ref, base)

    raise NotFoundError(f"no session is named {abridged(ref)}", hint=_hint_to_list(ref))


def _check_name(ref: str) -> None:
    """Raise `InvalidInputError` or `NotFoundError` for what cannot name a session."""
    if not isinstance(ref, str) or not ref:
        rule = f"a session is named by its id, slug, title or @, not {abridged(ref)}"
        raise InvalidInputError(rule, hint=_ALL_SESSIONS)
    # SQLite refuses to look for a pattern of 50,000 bytes.
    if len(ref) > MAX_ID_BYTES or not is_unicode(ref):
        raise _not_found(f"no session is named {abridged(ref)}")


def _hint_to_list(ref: str) -> str:
    """Return the list that has what *ref* may mean: with a blank, part of a title."""
    # A list ends a title that is too wide with "…".
    part = ref.removesuffix("…").strip()
    if " " in part and len(part) <= _MOST_OF_TITLE:
        return f"{command('list', '-a', '--title', part)} shows titles that contain it"
    return _ALL_SESSIONS


def _guess_queries(ref: str) -> list[tuple[Statement, Mapping[str, Any]]]:
    """Return the queries for what *ref* may be besides an id, the likeliest first."""
    if _FULL_ID.fullmatch(ref):
        return []

    prefix = ref if ref.startswith(PREFIX) else PREFIX + ref.upper()
    guesses: list[tuple[Statement, Mapping[str, Any]]] = [
        (_BY_SLUG, {"ref": ref}),
        (_BY_PREFIX, {"ref": prefix, "stop": prefix + "\U0010ffff"}),
    ]
    if len(ref) >= _LEAST_PART:
        part = escape_like(ref)
        guesses.append((_BY_TAIL, {"pattern": f"%{part}"}))
        begun = {"pattern": f"{part}%"}
        guesses.append((_ABOVE_SUBAGENTS, {**begun, "below": f"{part}%/%"}))
        guesses.append((_BY_SOURCE_PREFIX, begun))

    guesses.append((_BY_TITLE, {"ref": ref}))
    return guesses


def _only_session(rows: Rows, ref: str, base: str | None) -> Session:
    """Return the one session that was found; raises `AmbiguousIdError`."""
    if len(rows) == 1:
        return session_of(rows[0], base)

    sessions = listed(rows[:MAX_CANDIDATES], base)
    more = " or more" if len(rows) > MAX_CANDIDATES else ""
    raise AmbiguousIdError(
        f"{abridged(ref)} names {len(sessions)} sessions{more}",
        candidates=[item.id for item in sessions],
        sessions=sessions,
        hint=f"type more of the id: {command('show', sessions[0].id)}",
    )


def last_used(
    base: str | None,
    ref: str,
    filters: Filters,
    directory: str | None,
    names: Mapping[str, int] | None,
) -> Read[Session]:
    """Return the session that *ref*, ``@`` or ``@~N``, names; raises `NotFoundError`.

    ``@`` is the session last used in *directory*, in the terminal with these *names*
    unless they are None. If there is none, and for ``@~N``, the newest sessions that
    pass the filters *filters* are counted.
    """
    back = _steps_back(ref)
    if back == 0 and directory is not None:
        row = yield from _last_in(directory, names)
        if row is not None:
            return session_of(row, base)

    page = yield from list_sessions(base, filters, limit=min(back + 1, MAX_LIMIT))
    if len(page.items) <= back:
        raise _not_found(f"there is no session {abridged(ref)} here")
    return page.items[back]


def _last_in(directory: str, names: Mapping[str, int] | None) -> Read[Row | None]:
    """Return the row of the session last used in a directory and terminal, or None.

    *names* are those of the terminal, with the time (Unix ms) since when each is its
    name: an older use was in another terminal. None is any terminal.
    """
    if names is None:
        rows = yield _IN_ANY, {"directory": directory}
    else:
        params = {"directory": directory, "names": as_list(names)}
        rows = yield _IN_TERMINAL, params

    since = names or {}
    for *row, name, time in rows:
        if time >= since.get(name, 0):
            return tuple(row)
    return None


def _steps_back(ref: str) -> int:
    """Return the N of ``@~N``, 0 of ``@``; raises `NotFoundError` for another REF."""
    match = _LAST.fullmatch(ref)
    if match is None:
        raise _not_found(
            f"{abridged(ref)} is not a REF; @ is the last session, @~1 the one before"
        )

    # A list has at most MAX_LIMIT sessions, and int() refuses 5,000 digits.
    digits = (match[1] or "").lstrip("0") or "0"
    return MAX_LIMIT if len(digits) >= len(str(MAX_LIMIT)) else int(digits)
