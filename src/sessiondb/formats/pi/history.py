"""The prompts of oh-my-pi and xcsh: ``history.db``, by their ``history-storage.ts``.

Newer releases have one row for each text, with its last session; older ones have a row
for each time, and no session. Both strip the spaces at the end of its lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sessiondb.errors import SourceError
from sessiondb.formats.kit.fields import as_text, clean_name, fitting, integer
from sessiondb.formats.kit.files import is_file
from sessiondb.formats.kit.json import known_time, usable_id
from sessiondb.formats.kit.logs import log_digest
from sessiondb.formats.kit.sqlite import (
    ROW_NUMBER,
    Error,
    ForeignDatabase,
    columns_of_table,
    select_records,
)
from sessiondb.formats.pi.logs import program_of
from sessiondb.model import Problem, SourceHistory, SourcePrompt

_NEEDED = frozenset({"prompt", "created_at"})
_COLUMNS = _NEEDED | {"cwd", "session_id"}


def history_in(home: Path) -> Iterator[SourceHistory]:
    """Yield the prompt history of a program, if it has one."""
    path = home / "history.db"
    if is_file(path):
        digest = log_digest(path, home / "history.db-wal")
        source = program_of(path) or "oh-my-pi"
        yield SourceHistory(source, str(path), digest, PiPrompts(path))


class PiPrompts:
    """The rows of a history in the order of their times, read again each time."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __iter__(self) -> Iterator[SourcePrompt | Problem]:
        try:
            with ForeignDatabase(self._path).reading() as connection:
                present = _COLUMNS & columns_of_table(connection, "history")
                # Titles are in this file, too, and each table is made when needed.
                if not present >= _NEEDED:
                    return

                names = ", ".join(sorted(present))
                rows = f"SELECT {ROW_NUMBER} AS number, {names} FROM history"
                ordered = f"{rows} ORDER BY created_at, {ROW_NUMBER}"
                for row in select_records(connection, ordered):
                    yield self._prompt_of_row(row)
        except SourceError as error:
            yield Problem(str(self._path), str(error))
        except Error as error:
            reason = f"its other prompts cannot be read: {error}"
            yield Problem(str(self._path), reason)

    def _prompt_of_row(self, row: dict[str, object]) -> SourcePrompt | Problem:
        prompt = as_text(row["prompt"])
        created = known_time(fitting(row["created_at"], integer, -1) * 1000)
        if prompt is None or created is None:
            reason = f"prompt {row['number']} has no text with a time"
            return Problem(str(self._path), reason)

        session = fitting(row.get("session_id"), usable_id)
        directory = fitting(row.get("cwd"), clean_name)
        return SourcePrompt(prompt, created, session, directory)
