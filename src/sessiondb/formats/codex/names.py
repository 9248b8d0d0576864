"""What lies beside rollouts: names of sessions, and when they were archived.

``session_index.jsonl`` has a line for each renaming; the last one of a session counts.
``state_N.sqlite`` is an index that is made anew under a higher number; its ``title`` is
seeded with the first prompt, so it is one only where it differs from that.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sessiondb.errors import SourceError
from sessiondb.formats.kit.fields import clean_name, integer, readable, text
from sessiondb.formats.kit.files import entries, is_file, may_read
from sessiondb.formats.kit.json import OddRecordError, known_time, load_object
from sessiondb.formats.kit.lines import opened
from sessiondb.formats.kit.sqlite import Error, ForeignDatabase, columns
from sessiondb.model import Problem

_STATE = re.compile(r"state_(\d{1,6})\.sqlite")
_COLUMNS = ("id", "name", "title", "first_user_message", "archived_at")


@dataclass(slots=True)
class Names:
    """The titles of sessions and when they were archived, in Unix ms, by their id."""

    titles: dict[str, str] = field(default_factory=dict)
    archived: dict[str, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


def names_in(home: Path | None) -> Names:
    """Return what a home knows of its sessions; the database wins over the index."""
    names = Names()
    if home is not None:
        indexed = _indexed(home / "session_index.jsonl", names.problems)
        state = _state_of(home)
        rows = [] if state is None else _rows(state, names.problems)
        _add(names, indexed, rows)

    return names


def _indexed(path: Path, problems: list[Problem]) -> dict[str, str]:
    found: dict[str, str] = {}
    if not is_file(path):
        return found

    try:
        with opened(path) as lines:
            for line, _, row in lines.records(load_object):
                if clean_name(row.get("id")) and text(row.get("thread_name")):
                    found[row["id"]] = readable(row["thread_name"])
                else:
                    problems.append(lines.problem("the line names no session", line))
            problems += lines.problems
    except SourceError as error:
        problems.append(Problem(str(path), str(error)))

    return found


def _state_of(home: Path) -> Path | None:
    """Return the database with the highest number."""
    try:
        named = {entry.name: _STATE.fullmatch(entry.name) for entry in entries(home)}
    except OddRecordError:
        return None

    numbers = {int(match[1]): name for name, match in named.items() if match}
    return home / numbers[max(numbers)] if numbers else None


def _rows(path: Path, problems: list[Problem]) -> list[dict[str, Any]]:
    if not may_read(path):
        problems.append(Problem(str(path), "it cannot be read (Permission denied)"))
        return []

    database = ForeignDatabase(path)
    try:
        with database.reading() as connection:
            known = [n for n in _COLUMNS if n in columns(connection, "threads")]
            if "id" not in known:
                return []
            rows = connection.execute(f"SELECT {', '.join(known)} FROM threads")
            return [dict(zip(known, row, strict=True)) for row in rows]
    except SourceError as error:
        problems.append(Problem(str(path), str(error)))
    except Error as error:
        problems.append(Problem(str(path), f"its sessions cannot be read: {error}"))

    return []


def _add(names: Names, indexed: dict[str, str], rows: list[dict[str, Any]]) -> None:
    titles = {row["id"]: title for row in rows if (title := _title_of(row))}
    given = {row["id"]: row["name"] for row in rows if clean_name(row.get("name"))}
    names.titles = {**titles, **indexed, **given}

    for row in rows:
        seconds = row.get("archived_at")
        when = known_time(seconds * 1000) if integer(seconds) else None
        if text(row["id"]) and when:
            names.archived[row["id"]] = when


def _title_of(row: dict[str, Any]) -> str | None:
    title, first = row.get("title"), row.get("first_user_message")
    if not (text(row["id"]) and text(title)):
        return None

    is_seed = text(first) and first.strip().startswith(title.strip())
    return None if is_seed else readable(title)
