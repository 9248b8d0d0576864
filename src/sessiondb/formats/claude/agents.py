"""The calls that started sub-agents without a sidecar."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from sessiondb.errors import SourceError
from sessiondb.formats.claude.fields import blocks_of
from sessiondb.formats.kit.fields import as_text, within
from sessiondb.formats.kit.json import load_object
from sessiondb.formats.kit.lines import Lines, opened

Record = dict[str, Any]
#: Tools that start sub-agents; the second name is the newer one.
_STARTS = ("Task", "Agent")


def call_of(parent: Path, agent: str | None, prompt: str | None) -> str | None:
    """Return the id of the call that started a sub-agent; None if it is not known.

    The result of the call names the agent; in older transcripts only the prompt of the
    two is the same, of which the first call counts.
    """
    same = None

    with suppress(SourceError), opened(parent) as lines:
        for record in _candidates(lines, agent):
            if agent and within(record, "toolUseResult", "agentId") == agent:
                return _answered(record)
            same = same or _started(record, prompt)

    return same


def _candidates(lines: Lines, agent: str | None) -> Iterator[Record]:
    """Yield the calls, and the results that name an agent.

    Other lines are not decoded: a parent may be large, and is read for each sub-agent.
    """
    named = (agent or "\0").encode()

    for _, raw in lines:
        names = named in raw and b"tool_result" in raw
        if names or b'"tool_use"' in raw:
            # The import of the parent reports its damaged lines.
            with suppress(ValueError, RecursionError):
                yield load_object(raw)


def _answered(record: Record) -> str | None:
    named = (as_text(block.get("tool_use_id")) for block in blocks_of(record))
    return next(filter(None, named), None)


def _started(record: Record, prompt: str | None) -> str | None:
    if prompt is None or record.get("isSidechain") is True:
        return None

    for block in blocks_of(record):
        is_start = block.get("name") in _STARTS
        if is_start and within(block, "input", "prompt") == prompt:
            return as_text(block.get("id"))

    return None
