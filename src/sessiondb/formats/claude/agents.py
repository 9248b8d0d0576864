"""The calls that started sub-agents, where no sidecar says it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from sessiondb.errors import SourceError
from sessiondb.formats.kit.fields import as_list, as_object, as_text, within
from sessiondb.formats.kit.json import load_object
from sessiondb.formats.kit.lines import opened

Record = dict[str, Any]
#: Tools that start sub-agents; the second name is the newer one.
_STARTS = ("Task", "Agent")


def call_of(parent: Path, agent: str | None, prompt: str | None) -> str | None:
    """Return the id of the call that started a sub-agent; None if it is not known.

    The result of the call names the agent; in older transcripts only the prompt of the
    two is the same. Only lines that may tell are decoded.
    """
    named = (agent or "\0").encode()
    same = None

    with suppress(SourceError), opened(parent) as lines:
        for _, raw in lines:
            tells = named in raw and b"tool_result" in raw
            if not tells and b'"tool_use"' not in raw:
                continue
            with suppress(ValueError, RecursionError):
                record = load_object(raw)
                if agent and within(record, "toolUseResult", "agentId") == agent:
                    return _answered(record)
                same = same or _asked(record, prompt)

    return same


def _blocks(record: Record) -> list[Record]:
    return list(map(as_object, as_list(within(record, "message", "content"))))


def _answered(record: Record) -> str | None:
    named = (as_text(block.get("tool_use_id")) for block in _blocks(record))
    return next(filter(None, named), None)


def _asked(record: Record, prompt: str | None) -> str | None:
    if prompt is None or record.get("isSidechain") is True:
        return None

    for block in _blocks(record):
        is_start = block.get("name") in _STARTS
        if is_start and within(block, "input", "prompt") == prompt:
            return as_text(block.get("id"))

    return None
