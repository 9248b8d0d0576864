"""The files beside rollouts: names of sessions, and when they were archived.

``session_index.jsonl`` has a line for each renaming; the last one of a session counts.
``state_N.sqlite`` is an index, which later releases replace by one of a higher number;
its ``title`` is seeded with the first prompt, so it is a name only if it differs.
``history.jsonl`` has what was typed into the terminal, commands included.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from sessiondb.dataclass import dataclass, field
from sessiondb.errors import SourceError
from sessiondb.formats.kit.fields import (
    as_string,
    clean_name,
    fitting,
    integer,
    readable_text,
    text,
    without_empty,
)
from sessiondb.formats.kit.files import is_file, may_read, sorted_entries
from sessiondb.formats.kit.json import (
    OddRecordError,
    known_time,
    load_object,
    usable_id,
)
from sessiondb.formats.kit.lines import opened
from sessiondb.formats.kit.logs import history_at
from sessiondb.formats.kit.sqlite import (
    Error,
    ForeignDatabase,
    columns_of_table,
    select_records,
)
from sessiondb.model import Problem, SourceHistory, SourcePrompt
from sessiondb.patterns import late_pattern

Record = dict[str, Any]

_STATE = late_pattern(r"state_(0|[1-9]\d{0,5})\.sqlite")
_COLUMNS = frozenset({"id", "name", "title", "first_user_message", "archived_at"})


@dataclass(slots=True)
class CodexNames:
    """The facts about sessions that are beside their rollouts, by the session's id."""

    #: Their titles.
    titles: dict[str, str] = field(default_factory=dict)
    #: When they were archived, in Unix ms.
    archived: dict[str, int] = field(default_factory=dict)
    #: The files that cannot be read.
    problems: list[Problem] = field(default_factory=list)


def names_in(home: Path | None) -> CodexNames:
    """Return what a home knows of its sessions; the database wins over the index."""
    names = CodexNames()
    if home is None:
        return names

    renamings = dict(_read_index(home / "session_index.jsonl", names.problems))
    rows = list(_read_database(home, names.problems))
    titles = {row["id"]: _title_of(row) for row in rows}
    user_names = {row["id"]: fitting(row.get("name"), clean_name) for row in rows}
    # A name is given by the user, a title may be made of the first prompt.
    names.titles = {**without_empty(titles), **renamings, **without_empty(user_names)}
    names.archived = without_empty({row["id"]: _time_archived(row) for row in rows})
    return names


def _read_index(path: Path, problems: list[Problem]) -> Iterator[tuple[str, str]]:
    if not is_file(path):
        return

    try:
        with opened(path) as lines:
            for _, _, renaming in lines.records(_read_renaming):
                yield renaming
            problems += lines.problems
    except SourceError as error:
        problems.append(Problem(str(path), str(error)))


def _read_renaming(raw: bytes) -> tuple[str, str]:
    """Return the session and the name in a line; raises `OddRecordError`."""
    row = load_object(raw)
    if not (clean_name(row.get("id")) and text(row.get("thread_name"))):
        raise OddRecordError("names no session")

    return row["id"], readable_text(row["thread_name"])


def _read_database(home: Path, problems: list[Problem]) -> Iterator[Record]:
    """Yield the sessions in the database with the highest number."""
    numbers = []
    with suppress(OddRecordError):
        for entry in sorted_entries(home):
            match = _STATE.fullmatch(entry.name)
            if match is not None:
                numbers.append(int(match[1]))
    if not numbers:
        return

    path = home / f"state_{max(numbers)}.sqlite"
    try:
        if not may_read(path):
            raise SourceError("Permission denied")  # noqa: TRY301
        with ForeignDatabase(path).reading() as connection:
            names = _COLUMNS & columns_of_table(connection, "threads")
            # Columns of SQLite hold values of any type.
            query = f"SELECT {', '.join(names)} FROM threads WHERE typeof(id) = 'text'"
            if "id" in names:
                yield from select_records(connection, query)
    except (SourceError, Error) as error:
        problems.append(Problem(str(path), f"its sessions cannot be read: {error}"))


def _time_archived(row: Record) -> int | None:
    # A session that is not archived has none, or 0.
    return known_time(fitting(row.get("archived_at"), integer, 0) * 1000) or None


def _title_of(row: Record) -> str | None:
    title, first = row.get("title"), as_string(row.get("first_user_message"))
    # The first prompt is shown without a name, too; its title may be cut off.
    if not text(title) or first.strip().startswith(title.strip()):
        return None

    return readable_text(title)


# -- the prompt history ------------------------------------------------------------


def history_in(home: Path) -> Iterator[SourceHistory]:
    """Yield the prompt history of a home, if it has one."""
    return history_at("codex", home / "history.jsonl", _read_prompt)


def _read_prompt(raw: bytes) -> SourcePrompt:
    """Return the prompt in a line; raises `OddRecordError`."""
    row = load_object(raw)
    time = known_time(fitting(row.get("ts"), integer, -1) * 1000)
    if time is None or not text(row.get("text")):
        raise OddRecordError("has no text with a time")

    return SourcePrompt(row["text"], time, fitting(row.get("session_id"), usable_id))
