"""The prompt history of Claude Code: everything that was typed, in all projects.

    {"display", "pastedContents": {"1": {…}}, "timestamp", "project", "sessionId"}

What was pasted is a placeholder in the text. Its content is in the line itself, or in a
file of the folder ``paste-cache`` that ``contentHash`` names; what was sent has it in
place of the placeholder, and so has the prompt here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from sessiondb.formats.kit.fields import (
    as_string,
    as_text,
    clean_name,
    fitting,
    text,
    within,
)
from sessiondb.formats.kit.files import is_file, read_small
from sessiondb.formats.kit.json import (
    OddRecordError,
    known_time,
    load_object,
    usable_id,
)
from sessiondb.formats.kit.lines import opened
from sessiondb.formats.kit.logs import log_digest
from sessiondb.model import Problem, SourceHistory, SourcePrompt

#: A placeholder, and the name of a file with the content of one.
_PASTED = re.compile(
    r"\[(?:Pasted text|\.\.\.Truncated text) #(\d+)(?: \+\d+ lines)?\.*\]"
)
_HASH = re.compile(r"[0-9a-f]{16}")


def history_in(home: Path) -> Iterator[SourceHistory]:
    """Yield the prompt history of a home, if it has one."""
    path = home / "history.jsonl"
    if is_file(path):
        yield SourceHistory("claude", str(path), log_digest(path), _History(path))


class _History:
    """The lines of a prompt history, read again each time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._pastes = path.parent / "paste-cache"

    def __iter__(self) -> Iterator[SourcePrompt | Problem]:
        with opened(self._path) as lines:
            for _, _, prompt in lines.records(self._typed):
                yield prompt
            yield from lines.problems

    def _typed(self, raw: bytes) -> SourcePrompt:
        """Return the prompt in a line; raises `OddRecordError`."""
        row = load_object(raw)
        when = known_time(row.get("timestamp"))
        if when is None or not text(row.get("display")):
            raise OddRecordError("has no text with a time")

        return SourcePrompt(
            _PASTED.sub(partial(self._content, row), row["display"]),
            when,
            fitting(row.get("sessionId"), usable_id),
            fitting(row.get("project"), clean_name),
        )

    def _content(self, row: dict[str, Any], found: re.Match[str]) -> str:
        """Return what was pasted; of one that is lost, its placeholder."""
        pasted = within(row, "pastedContents", found[1])
        content = as_text(within(pasted, "content"))
        if content is not None:
            return content

        name = as_string(within(pasted, "contentHash"))
        # Any other name may lead to another folder.
        if not _HASH.fullmatch(name):
            return found[0]
        kept = read_small(self._pastes / f"{name}.txt")
        return found[0] if kept is None else kept.decode("utf-8", "replace")
