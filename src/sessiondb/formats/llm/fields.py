"""The keys of llm's rows whose values have a column here; see `kit.fields`.

Read off llm 0.27.1 and 0.36 (``migrations.py``, ``models.py``, ``logs.py``).
"""

from __future__ import annotations

from collections.abc import Mapping

from sessiondb.formats.kit.fields import Fields, clean_name, clean_text, text
from sessiondb.formats.kit.usage import usage_table
from sessiondb.model.aliases import finishes

#: A row of ``conversations`` or ``threads``.
SESSION: Fields = {"name": ("title", clean_text), "model": ("model_id", clean_name)}
#: A row of ``responses`` or ``turns``: an answer of a model.
ANSWER: Fields = {"model": ("model_id", clean_name)}
#: A row of ``tool_calls``, or the payload of a part of type ``tool_call``.
CALL: Fields = {"name": ("tool", clean_name), "tool_call_id": ("call_id", clean_text)}
RESULT: Fields = {
    "output": ("text", text),
    "tool_call_id": ("call_id", clean_text),
}
#: A row of ``attachments``.
ATTACHMENT: Fields = {"type": ("mime", text), "url": ("url", text)}
#: Roles of messages; anything else is an event of that kind.
ROLES = frozenset({"system", "user", "assistant", "tool"})
#: A row of ``parts``.
PART: Fields = {"text": ("text", text)}
#: Types of parts of sessiondb that a row must not have by chance.
OWN_PART_TYPES = frozenset({"tool", "tool-result", "file", "custom"})

TOKENS: Fields = usage_table(input="input_tokens", output="output_tokens")
#: Details of tokens, as providers name them, and what they are part of: ``input`` and
#: ``output`` contain the count, None does not contain it.
DETAILS: Mapping[tuple[str, ...], tuple[str, str | None]] = {
    # OpenAI, chat completions and responses.
    ("prompt_tokens_details", "cached_tokens"): ("cache_read", "input"),
    ("completion_tokens_details", "reasoning_tokens"): ("reasoning", "output"),
    ("input_tokens_details", "cached_tokens"): ("cache_read", "input"),
    ("output_tokens_details", "reasoning_tokens"): ("reasoning", "output"),
    # llm-gemini, which adds thoughts to the output itself.
    ("cachedContentTokenCount",): ("cache_read", "input"),
    ("thoughtsTokenCount",): ("reasoning", "output"),
    # llm-anthropic.
    ("cache_read_input_tokens",): ("cache_read", None),
    ("cache_creation_input_tokens",): ("cache_write", None),
}
#: The ends of an answer, as providers name them; another word is ``other``.
FINISH: Mapping[str, str] = finishes(
    "stop", "length", "tool_calls", "function_call",
    "end_turn", "stop_sequence", "max_tokens", "tool_use", "STOP", "MAX_TOKENS",
)  # fmt: skip
#: The keys of ``response_json`` under which providers have it.
FINISH_KEYS = ("finish_reason", "stop_reason", "finishReason")
