"""The keys of records of Codex that have a column; see `kit.fields`.

Read off ``codex-rs/protocol`` (``ResponseItem``, ``EventMsg``) of 2025 and 2026, and
the rollouts of 0.169. A record keeps its type and its envelope in ``data``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from sessiondb.formats.kit.fields import (
    MEANINGS,
    Fields,
    Rule,
    clean_name,
    clean_text,
    structure,
    text,
)

HEADER: Fields = {
    "cwd": ("directory", clean_text),
    "cli_version": ("version", clean_text),
    "git": {"repository_url": ("remote", clean_text)},
}
RESULT: Fields = {"call_id": ("call_id", clean_text)}
_CALL: Fields = {"name": ("tool", clean_name), **RESULT}


def _is_input(value: Any) -> bool:
    return text(value) or structure(value)


_INPUT: Rule = ("input", _is_input)


#: sessiondb's key beside a result: how its call ended, if its text does not say it.
OUTCOME = "sessiondb_outcome"


class CallShape(NamedTuple):
    """An item that is a call."""

    #: Its keys that have a column.
    fields: Fields
    #: Its tool, if it names none.
    tool: str | None = None
    #: The key of an input that is JSON in a string.
    json: str | None = None
    #: Whether the provider ran it, so that no result follows.
    is_hosted: bool = False


CALLS: Mapping[str, CallShape] = {
    "function_call": CallShape(_CALL, json="arguments"),
    "custom_tool_call": CallShape({**_CALL, "input": _INPUT}),
    "local_shell_call": CallShape({**RESULT, "action": _INPUT}, "local_shell"),
    "tool_search_call": CallShape({**RESULT, "arguments": _INPUT}, "tool_search"),
    "web_search_call": CallShape(
        {**RESULT, "action": _INPUT}, "web_search", is_hosted=True
    ),
    "image_generation_call": CallShape(
        {**RESULT, "revised_prompt": _INPUT}, "image_generation", is_hosted=True
    ),
}
RESULTS = frozenset(
    {"function_call_output", "custom_tool_call_output", "tool_search_output"}
)
#: The items that old rollouts have without an envelope.
ITEMS = frozenset({*CALLS, *RESULTS, "message", "reasoning"})
#: Blocks of text.
_TEXTS = ("input_text", "output_text", "text", "summary_text", "reasoning_text")
#: Blocks with a text or a picture: the type of their part, and the key of that.
BLOCKS: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(_TEXTS, ("text", "text")),
    "input_image": ("file", "image_url"),
}

#: The counts of a response, in the order of `usage.Counts`.
COUNTS = (
    "input_tokens",
    "cached_input_tokens",
    "cache_write_input_tokens",
    "output_tokens",
    "reasoning_output_tokens",
)

#: Records and events with another name here; any other one is a kind of its own.
KINDS: Mapping[str, str] = {
    **{name: f"codex_{name}" for name in (*MEANINGS, "custom")},
    "compacted": "compaction",
    "turn_aborted": "cancelled",
    "error": "failed",
    "thread_name_updated": "title_change",
}
#: How texts begin that Codex adds to a prompt, if no label and no event says it.
INJECTED = (
    "<environment_context>",
    "<user_instructions>",
    "<permissions instructions>",
    "<skills_instructions>",
    "<collaboration_mode>",
    "<turn_aborted>",
    "<subagent_notification>",
    "<user_shell_command>",
    "<skill>",
    "<INSTRUCTIONS>",
    "# AGENTS.md instructions for ",
)
