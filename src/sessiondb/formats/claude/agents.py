"""The calls that started subagents without a sidecar."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from sessiondb.errors import SourceError
from sessiondb.formats.claude.fields import blocks_of
from sessiondb.formats.kit.fields import as_text, within
from sessiondb.formats.kit.json import load_object
from sessiondb.formats.kit.lines import opened

Record = dict[str, Any]
#: Tools that start subagents; the second name is the newer one.
_STARTS = ("Task", "Agent")


def call_of(parent: Path, agent: str | None, prompt: str | None) -> str | None:
    """Return the id of the call that started a subagent; None if it is not known.

    The result of the call names the agent; in older transcripts only the prompt of the
    two is the same, of which the first call counts.
    """
    same: str | None = None
    named = agent or "\0"

    with suppress(SourceError), opened(parent) as lines:
        for _, _, record in lines.records(partial(_candidate, named.encode())):
            if within(record, "toolUseResult", "agentId") == named:
                return _first(blocks_of(record), "tool_use_id")
            same = same or _started(record, prompt)

    return same


def _candidate(named: bytes, raw: bytes) -> Record:
    """Return a line with calls, or with results that name an agent.

    Others are not decoded: a parent may be large, and is read for each subagent.
    """
    is_result = named in raw and b"tool_result" in raw
    return load_object(raw) if is_result or b'"tool_use"' in raw else {}


def _started(record: Record, prompt: str | None) -> str | None:
    """Return the id of the call with that prompt; the conversation itself has it."""
    if prompt is None or record.get("isSidechain") is True:
        return None

    starts = filter(_is_start, blocks_of(record))
    same = (call for call in starts if within(call, "input", "prompt") == prompt)
    return _first(same, "id")


def _is_start(block: Record) -> bool:
    return block.get("name") in _STARTS


def _first(blocks: Iterable[Record], key: str) -> str | None:
    named = (as_text(block.get(key)) for block in blocks)
    return next(filter(None, named), None)
