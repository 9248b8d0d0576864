"""Which sessions changed a file: calls of tools that edit, patches, aider's blocks.

No table has these facts. The index of words yields the parts that mention the name of
the file, newest first, and the arguments of each say whether it is what they change.
"""

from __future__ import annotations

import json
import posixpath
from typing import Any

from sessiondb.engine.search_index import SearchIndex
from sessiondb.engine.sql import as_list
from sessiondb.errors import InvalidInputError, abridged
from sessiondb.model import Hit, Page
from sessiondb.model.tools import files_changed
from sessiondb.places import absolute
from sessiondb.repository import Read, engine_in_use
from sessiondb.repository.decode import listed
from sessiondb.repository.hits import SESSIONS_BY_ID, search_filters
from sessiondb.repository.sessions import (
    Filters,
    check_limit,
    check_text,
    decode_cursor,
    encode_cursor,
)

#: Mentions that are looked at in one statement.
_AT_ONCE = 200


def changed_file(
    base: str | None,
    file: str,
    query: str | None,
    filters: Filters,
    *,
    all_hits: bool = False,
    limit: int = 20,
    cursor: str | None = None,
) -> Read[Page[Hit]]:
    """Return one page of the calls that changed *file*, newest first.

    One per session unless *all_hits*. With a *query* only calls in which that is found.
    A relative path is the end of the path that was changed. Raises `InvalidInputError`.
    """
    check_limit(limit)
    wanted = _normalized(check_text(file, "file"))
    name = posixpath.basename(wanted).replace('"', " ")
    if not any(character.isalnum() for character in name):
        raise InvalidInputError(f"no file has the name {abridged(file)}")

    words = f'"{name}"' if query is None else f'({query}) "{name}"'
    engine = yield from engine_in_use()
    index = engine.search
    narrowing = search_filters(engine, filters, None, None)
    params = narrowing.params | index.query(words).params()
    # A later page begins after the hits of the earlier ones, which are found again:
    # most files have few.
    passed, top = (0, 0) if cursor is None else decode_cursor(cursor, int, int)
    if passed < 0 or top < 0:
        raise InvalidInputError(f"not a cursor of this search: {abridged(cursor)}")

    changes: list[tuple[Any, ...]] = []
    seen: set[str] = set()
    bounds = {"top": top} if top else {}
    while len(changes) <= passed + limit:
        rows = yield from index.matches(
            narrowing.of_parts,
            params | bounds,
            order="newest",
            is_shown=True,
            rows=_AT_ONCE,
        )
        top = top or (rows[0][0] if rows else 0)
        found = yield from _changes_in(base, index, wanted, rows)
        for place, session_id, seq, message_id, *_ in rows:
            if place in found and (all_hits or session_id not in seen):
                seen.add(session_id)
                changes.append((session_id, seq, message_id, found[place]))

        if len(rows) < _AT_ONCE:
            break
        bounds = {"cursor": rows[-1][0]}

    shown = changes[passed : passed + limit]
    rows = yield SESSIONS_BY_ID, {"ids": as_list(sorted({row[0] for row in shown}))}
    sessions = {item.id: item for item in listed(rows, base)}
    hits = tuple([Hit(sessions[name], *rest) for name, *rest in shown])
    has_more = len(changes) > passed + limit
    return Page(hits, encode_cursor(passed + limit, top) if has_more else None)


def _changes_in(
    base: str | None, index: SearchIndex, wanted: str, rows: list[tuple[Any, ...]]
) -> Read[dict[int, str]]:
    """Return what changed the file, by the places of *rows*: the tool and the path."""
    calls = yield from index.contents([row[0] for row in rows])
    found = {}
    for place, tool, arguments, long_arguments, text, long_text, directory in calls:
        folder = "" if directory is None else absolute(directory, base)
        values = _loaded(arguments if long_arguments is None else long_arguments)
        output = text if long_text is None else long_text.decode(errors="replace")
        for path in files_changed(tool, values, output):
            if _is_same_file(_normalized(path, folder), wanted):
                found[place] = f"{tool or 'edit'} {path}"
                break
    return found


def _loaded(arguments: str | bytes | None) -> Any:
    try:
        return None if arguments is None else json.loads(arguments)
    except ValueError:
        # A damaged value, which `check` reports.
        return None


def _normalized(path: str, folder: str = "") -> str:
    """Return a path with slashes, below *folder* if it is relative."""
    return posixpath.normpath(posixpath.join(folder, path.replace("\\", "/")))


def _is_same_file(path: str, wanted: str) -> bool:
    if wanted.startswith("/"):
        return path == wanted
    return path == wanted or path.endswith(f"/{wanted}")
