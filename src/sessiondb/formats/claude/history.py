"""The prompt history of Claude Code: everything that was typed, in all projects.

    {"display", "pastedContents": {"1": {…}}, "timestamp", "project", "sessionId"}

Pasted text is a placeholder in the prompt. Its content is in the line itself, or in a
file of the folder ``paste-cache`` that ``contentHash`` names; the request has it in
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
from sessiondb.formats.kit.files import read_small
from sessiondb.formats.kit.json import (
    OddRecordError,
    known_time,
    load_object,
    usable_id,
)
from sessiondb.formats.kit.logs import history_at
from sessiondb.model import SourceHistory, SourcePrompt

#: A placeholder, and the name of a file with the content of one.
_PASTED = re.compile(
    r"\[(?:Pasted text|\.\.\.Truncated text) #(\d+)(?: \+\d+ lines)?\.*\]"
)
_HASH = re.compile(r"[0-9a-f]{16}")


def history_in(home: Path) -> Iterator[SourceHistory]:
    """Yield the prompt history of a home, if it has one."""
    typed = partial(_typed, home / "paste-cache")
    return history_at("claude", home / "history.jsonl", typed)


def _typed(pastes: Path, raw: bytes) -> SourcePrompt:
    """Return the prompt in a line; raises `OddRecordError`."""
    row = load_object(raw)
    when = known_time(row.get("timestamp"))
    if when is None or not text(row.get("display")):
        raise OddRecordError("has no text with a time")

    return SourcePrompt(
        _PASTED.sub(partial(_content, row, pastes), row["display"]),
        when,
        fitting(row.get("sessionId"), usable_id),
        fitting(row.get("project"), clean_name),
    )


def _content(row: dict[str, Any], pastes: Path, found: re.Match[str]) -> str:
    """Return the pasted text, or its placeholder if it is lost."""
    pasted = within(row, "pastedContents", found[1])
    content = as_text(within(pasted, "content"))
    if content is not None:
        return content

    name = as_string(within(pasted, "contentHash"))
    # Any other name may lead to another folder.
    if not _HASH.fullmatch(name):
        return found[0]
    kept = read_small(pastes / f"{name}.txt")
    return found[0] if kept is None else kept.decode("utf-8", "replace")
