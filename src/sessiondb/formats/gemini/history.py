"""``logs.json`` of a project: all input of its terminal, commands included.

The program writes the file again for each prompt. Qwen Code keeps the same one in the
folder of a project below ``tmp``, apart from its sessions.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from sessiondb.dataclass import dataclass
from sessiondb.errors import SourceError
from sessiondb.formats.gemini.logs import CHATS, directory_in, is_chats, source_of
from sessiondb.formats.kit.fields import as_object, clean_name, fitting, text
from sessiondb.formats.kit.files import is_file, read_file
from sessiondb.formats.kit.heads import beginning_of
from sessiondb.formats.kit.json import OddRecordError, load_value, usable_id
from sessiondb.formats.kit.logs import log_digest
from sessiondb.formats.kit.texts import time_of_text
from sessiondb.model import Problem, SourceHistory, SourcePrompt
from sessiondb.patterns import late_pattern

NAME = "logs.json"
#: The beginning of a file with at least one entry; other programs use the name, too.
_BEGINNING = late_pattern(rb"\s*\[\s*\{[^{}]*\"messageId\"\s*:")


def is_history(path: Path) -> bool:
    """Return whether a file is a history whose project has no sessions.

    That of a project with sessions is read after them, so that each prompt is known.
    """
    if path.name != NAME or is_chats(path.with_name(CHATS)):
        return False
    with suppress(SourceError):
        return _BEGINNING.match(beginning_of(path)) is not None
    return False


def read_history(path: Path) -> Iterator[SourceHistory]:
    """Yield the history in a file, if there is one."""
    if is_file(path):
        prompts = _GeminiPrompts(path, directory_in(path.parent))
        yield SourceHistory(source_of(path), str(path), log_digest(path), prompts)


@dataclass(frozen=True, slots=True)
class _GeminiPrompts:
    """The prompts of a file, read again each time."""

    path: Path
    #: The directory of the project; empty if it is not known.
    directory: str

    def __iter__(self) -> Iterator[SourcePrompt | Problem]:
        try:
            entries = _load_entries(self.path)
        except OddRecordError as error:
            yield self._problem_of_file(f"the prompt history {error}")
            return

        for number, item in enumerate(entries, 1):
            entry = as_object(item)
            # Qwen Code notes there, too, that the model was changed.
            if entry.get("type") in ("user", None):
                yield self._read_prompt(entry, number)

    def _problem_of_file(self, message: str) -> Problem:
        return Problem(str(self.path), message)

    def _read_prompt(
        self, entry: dict[str, Any], number: int
    ) -> SourcePrompt | Problem:
        message, time = entry.get("message"), time_of_text(entry.get("timestamp"))
        if time is None or not text(message):
            return self._problem_of_file(f"entry {number} has no text with a time")

        session = fitting(entry.get("sessionId"), usable_id)
        directory = fitting(self.directory, clean_name)
        return SourcePrompt(message, time, session, directory)


def _load_entries(path: Path) -> list[Any]:
    entries = load_value(read_file(path))
    if type(entries) is not list:
        raise OddRecordError("is not a list")
    return entries
