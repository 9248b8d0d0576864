"""The small lists: projects, prompts, todos, diffs, and unfinished sessions."""

from __future__ import annotations

import json
from operator import itemgetter
from typing import Any

from sessiondb.engine.sql import Statement
from sessiondb.model import FileDiff, Page, Project, Prompt, Session, Todo, Unfinished
from sessiondb.model.damage import Missing, diff_name
from sessiondb.model.versions import Version, decoded
from sessiondb.places import absolute
from sessiondb.repository import Read, engine_in_use, time_now
from sessiondb.repository.decode import (
    blobs_of,
    listed,
    readable,
    report_missing,
)
from sessiondb.repository.sessions import (
    Filters,
    check_limit,
    decode_cursor,
    encode_cursor,
)

_PROJECTS = Statement("repository.lists.PROJECTS")
_TODOS = Statement("repository.lists.TODOS")
_DIFFS = Statement("repository.lists.DIFFS")


def projects(base: str | None) -> Read[list[Project]]:
    """Return every project, by worktree."""
    rows = yield _PROJECTS, {}
    items = []
    for row in rows:
        values = list(row)
        values[1], values[6] = absolute(values[1], base), json.loads(values[6])
        values[9] = None if values[9] is None else json.loads(values[9])
        items.append(Project(*values))

    return items


def todos(session_id: str) -> Read[list[Todo]]:
    """Return a session's todo list; none is ``[]``."""
    rows = yield _TODOS, {"sid": session_id}
    return [Todo(*row) for row in rows]


def diffs(session_id: str) -> Read[list[FileDiff]]:
    """Return the known changes of files in a session; none is ``[]``."""
    rows = yield _DIFFS, {"sid": session_id}
    missing: list[Missing] = []
    items: list[FileDiff] = []
    blobs = yield from blobs_of(session_id, rows, slice(-2, None))
    for path, seq, patch, additions, deletions, before_name, after_name in rows:
        name = diff_name(session_id, path)
        before = readable(blobs, before_name, name, missing)
        after = readable(blobs, after_name, name, missing)
        items.append(FileDiff(path, seq, patch, additions, deletions, before, after))

    yield from report_missing(session_id, missing)
    return items


_BASE = Statement("repository.lists.BASE")


def merge_base_of(session_id: str) -> Read[dict[str, Version]]:
    """Return the versions of a session's fields when it last agreed with a log."""
    rows = yield _BASE, {"sid": session_id}
    return decoded(rows[0][0] if rows else None)


PROMPT_COLUMNS = "id, text, directory, project_id, session_id, source, time_created"
_PROMPTS = Statement("repository.lists.PROMPTS")
_OF = "EXISTS (SELECT 1 FROM session s WHERE s.id = prompt.session_id AND"
_TERMS_OF_PROMPTS = {
    "project_id": "project_id = :project_id",
    "scope": f"{_OF} s.scope = :scope)",
    "source": "source = :source",
    "agent": f"{_OF} s.agent = :agent)",
    "unarchived": f"NOT {_OF} s.time_archived IS NOT NULL)",
    "own": f"NOT {_OF} s.relation = 'subagent')",
    "title": rf"{_OF} lower(s.title) LIKE :title ESCAPE '\')",
    "since": "time_created >= :since",
    "until": "time_created < :until",
    "below": "(time_created, id) < (:below, :below_id)",
}


def prompts(
    base: str | None,
    query: str | None,
    filters: Filters,
    *,
    limit: int = 50,
    cursor: str | None = None,
) -> Read[Page[Prompt]]:
    """Return one page of the prompt history, newest first."""
    engine = yield from engine_in_use()
    params = filters.params() | filters.exclusions()
    if cursor is not None:
        params["below"], params["below_id"] = decode_cursor(cursor, int, str)
    # The time and the id of a cursor are one term.
    terms = tuple([_TERMS_OF_PROMPTS[name] for name in params if name != "below_id"])
    if query:
        params |= engine.search.query(query).params()
    rows = yield from engine.search.prompts(
        PROMPT_COLUMNS, terms, params, rows=check_limit(limit) + 1
    )

    items = tuple([_prompt_of(row, base) for row in rows[:limit]])
    if len(rows) <= limit:
        return Page(items)
    return Page(items, encode_cursor(items[-1].time_created, items[-1].id))


def prompts_of(base: str | None, session_id: str) -> Read[list[Prompt]]:
    """Return the prompts of a session in the history, oldest first; none is ``[]``."""
    rows = yield _PROMPTS, {"sid": session_id}
    return [_prompt_of(row, base) for row in rows]


def _prompt_of(row: Any, base: str | None) -> Prompt:
    return Prompt(row[0], row[1], row[2] and absolute(row[2], base), *row[3:])


_HALF_IMPORTED = Statement("repository.lists.HALF_IMPORTED")


def half_imported() -> Read[list[str]]:
    """Return the ids of sessions whose import did not end; no other read has them."""
    rows = yield _HALF_IMPORTED, {}
    return [session_id for (session_id,) in rows]


_ABANDONED = Statement("repository.lists.ABANDONED")
_OPEN_MESSAGES = Statement("repository.lists.OPEN_MESSAGES")
_OPEN_CALLS = Statement("repository.lists.OPEN_CALLS")


def unfinished(base: str | None) -> Read[list[Unfinished]]:
    """Return the sessions that were left open and that no living writer holds."""
    now = yield from time_now()
    rows = yield _ABANDONED, {"now": now}
    messages = []
    for item in listed(rows, base):
        messages.append((yield from open_in(item)))  # noqa: PERF401  it yields
    return messages


def open_in(item: Session) -> Read[Unfinished]:
    """Return the open messages and calls of a session."""
    messages = yield _OPEN_MESSAGES, {"sid": item.id}
    calls = yield _OPEN_CALLS, {"sid": item.id}
    first = itemgetter(0)
    return Unfinished(
        item,
        tuple(map(first, messages)),
        tuple(map(first, calls)),
    )
