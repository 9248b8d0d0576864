"""The keys of records of Codex that have a column; see `kit.fields`.

Read off ``codex-rs/protocol`` (``ResponseItem``, ``EventMsg``) of 2025 and 2026, and
the rollouts of 0.169. A record keeps its type and its envelope in ``data``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from sessiondb.formats.kit.fields import MEANINGS, Fields, clean_name, clean_text

HEADER: Fields = {
    "cwd": ("directory", clean_text),
    "cli_version": ("version", clean_text),
    "git": {"repository_url": ("remote", clean_text)},
}
RESULT: Fields = {"call_id": ("call_id", clean_text)}
_CALL: Fields = {"name": ("tool", clean_name), **RESULT}


class CallShape(NamedTuple):
    """An item that is a call: its tool if it names none, and the key of its input.

    ``is_json`` says that the input is JSON in a string, ``is_hosted`` that the
    provider ran it, so that no result follows.
    """

    tool: str | None
    input: str
    is_json: bool = False
    is_hosted: bool = False

    @property
    def fields(self) -> Fields:
        """The keys of such an item; a name beside a fixed tool is not its tool."""
        return _CALL if self.tool is None else RESULT


CALLS: Mapping[str, CallShape] = {
    "function_call": CallShape(None, "arguments", is_json=True),
    "custom_tool_call": CallShape(None, "input"),
    "local_shell_call": CallShape("local_shell", "action"),
    "tool_search_call": CallShape("tool_search", "arguments"),
    "web_search_call": CallShape("web_search", "action", is_hosted=True),
    "image_generation_call": CallShape(
        "image_generation", "revised_prompt", is_hosted=True
    ),
}
RESULTS = frozenset(
    {"function_call_output", "custom_tool_call_output", "tool_search_output"}
)
#: The items that old rollouts have without an envelope.
ITEMS = frozenset({*CALLS, *RESULTS, "message", "reasoning"})
#: The events that end a call, which they name.
ENDINGS = ("item_completed", "exec_command_end", "patch_apply_end", "mcp_tool_call_end")
#: Blocks of text.
_TEXTS = ("input_text", "output_text", "text", "summary_text", "reasoning_text")
#: Blocks with a text or a picture: the type of their part, and the key of that.
BLOCKS: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(_TEXTS, ("text", "text")),
    "input_image": ("file", "image_url"),
}

#: The counts of a response, in the order of `course.Counts`.
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
