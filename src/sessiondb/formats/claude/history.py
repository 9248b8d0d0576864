"""The prompt history of Claude Code: everything that was typed, in all projects.

    {"display", "pastedContents": {"1": {…}}, "timestamp", "project", "sessionId"}

Pasted text is a placeholder in the prompt. Its content is in the line itself, or in a
file of the folder ``paste-cache`` that ``contentHash`` names; the request has it in
place of the placeholder, and so has the prompt here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sessiondb.formats.kit.fields import (
    as_string,
    as_text,
    clean_name,
    fitting,
    text,
    value_at,
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
from sessiondb.patterns import late_pattern

#: A placeholder, and the name of a file with the content of one.
_PLACEHOLDER = late_pattern(
    r"\[(?:Pasted text|\.\.\.Truncated text) #(\d+)(?: \+\d+ lines)?\.*\]"
)
_HASH = late_pattern(r"[0-9a-f]{16}")


def history_in(home: Path) -> Iterator[SourceHistory]:
    """Yield the prompt history of a home, if it has one."""
    cache = home / "paste-cache"
    return history_at(
        "claude", home / "history.jsonl", lambda raw: _read_prompt(raw, cache)
    )


def _read_prompt(raw: bytes, cache: Path) -> SourcePrompt:
    """Return the prompt in a line; raises `OddRecordError`."""
    row = load_object(raw)
    time = known_time(row.get("timestamp"))
    if time is None or not text(row.get("display")):
        raise OddRecordError("has no text with a time")

    pasted = row.get("pastedContents")
    return SourcePrompt(
        _PLACEHOLDER.sub(lambda match: _fill_in(match, pasted, cache), row["display"]),
        time,
        fitting(row.get("sessionId"), usable_id),
        fitting(row.get("project"), clean_name),
    )


def _fill_in(placeholder: re.Match[str], pasted: Any, cache: Path) -> str:
    """Return the text that was pasted, or its placeholder if it is lost."""
    entry = value_at(pasted, placeholder[1])
    content = as_text(value_at(entry, "content"))
    if content is not None:
        return content

    name = as_string(value_at(entry, "contentHash"))
    # Any other name may lead to another folder.
    if _HASH.fullmatch(name):
        raw = read_small(cache / f"{name}.txt")
        if raw is not None:
            return raw.decode("utf-8", "replace")
    return placeholder[0]
