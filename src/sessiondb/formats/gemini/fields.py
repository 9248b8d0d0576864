"""The keys of Gemini CLI's records whose values have a column; see `kit.fields`.

Read off Gemini CLI 0.61 (``chatRecordingTypes.ts``, ``chatRecordingService.ts``).
"""

from __future__ import annotations

from collections.abc import Mapping

from sessiondb.formats.kit.fields import Fields, clean_name, clean_text, text
from sessiondb.formats.kit.usage import usage_table

SESSION: Fields = {"summary": ("title", clean_text)}
MESSAGE: Fields = {"model": ("model_id", clean_name)}
#: ``input`` includes the tokens from the cache; thoughts are apart from the output.
TOKENS: Fields = usage_table(
    input="input", output="output", cache_read="cached", reasoning="thoughts"
)
#: A thought; its subject precedes it.
THOUGHT: Fields = {"description": ("text", text)}
#: The state of a call (``CoreToolCallStatus``), as status and outcome.
STATUS: Mapping[str, tuple[str, str | None]] = {
    "success": ("completed", None),
    "error": ("error", "failed"),
    "cancelled": ("error", "interrupted"),
    "executing": ("running", None),
}
#: Beginnings of texts that the program adds to the conversation, and their kinds: the
#: summary replaces a compressed history.
ADDED: Mapping[str, str] = {
    "<state_snapshot>": "compaction",
    "<session_context>": "custom_message",
    "<hook_context>": "custom_message",
}
#: Types of answers of a model; descendants use their own name.
ANSWERS = frozenset({"gemini", "qwen", "model", "assistant"})
