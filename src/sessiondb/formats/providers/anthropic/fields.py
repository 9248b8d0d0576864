"""The keys of blocks and of usage whose values have a column; see `kit.fields`.

Read off anthropic 2.14 and transcripts of Claude Code. The same tables serve both
directions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from sessiondb.formats.kit.fields import (
    Fields,
    clean_name,
    clean_text,
    count,
    fitting,
    objects_in,
    take_fields,
    text,
    value_at,
)
from sessiondb.model import Tokens

CALL: Fields = {
    "id": ("call_id", clean_text),
    "name": ("tool", clean_name),
    "input": ("input", lambda _: True),
}
#: Properties of a file; its content may be embedded instead.
FILE: Fields = {"title": ("filename", clean_name)}
FILE_SOURCE: Fields = {"url": ("url", text)}
RESULT: Fields = {"tool_use_id": ("call_id", clean_text)}
#: Blocks that are calls; the results of the last two are blocks of the same answer.
CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})

#: Counts are disjoint, except that thoughts are counted as output.
COUNTS: Mapping[str, str] = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cache_read": "cache_read_input_tokens",
    "cache_write": "cache_creation_input_tokens",
}
COLUMNS: Fields = {key: (name, count) for name, key in COUNTS.items()}
THOUGHT = ("output_tokens_details", "thinking_tokens")


def tokens_of(usage: Mapping[str, Any]) -> Tokens | None:
    """Return the counts of an answer; None if none is known.

    The provider counts a compaction of its own beside the answer (see
    https://platform.claude.com/docs/en/build-with-claude/compaction).
    """
    counts = Counter(take_fields(dict(usage), COLUMNS))
    for iteration in objects_in(usage.get("iterations")):
        if iteration.get("type") == "compaction":
            counts.update(take_fields(dict(iteration), COLUMNS))

    thought = fitting(value_at(usage, *THOUGHT), count, 0)
    if thought and "output" in counts:
        counts["output"] -= thought
        counts["reasoning"] = thought
        # Counts that contradict each other stay in the record alone.
        if counts["output"] < 0:
            del counts["output"], counts["reasoning"]

    return Tokens(**counts) if counts else None
