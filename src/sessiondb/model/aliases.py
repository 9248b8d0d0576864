"""The names of values and of fields here, and those that providers and programs use.

There is one table: the readers of formats take the spellings of their programs from it,
and verbs accept all of them. A column holds the first name of a row, never another one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sessiondb.errors import InvalidInputError, abridged

Names = Mapping[str, tuple[str, ...]]
#: Roles of messages. A developer speaks for the program.
ROLES: Names = {
    "user": ("human",),
    "assistant": ("model", "ai", "bot"),
    "tool": ("function", "tool_result", "toolResult"),
    "system": ("developer",),
    "event": (),
}
#: Why an answer ended.
FINISHES: Names = {
    "stop": ("end_turn", "stop_sequence", "completed", "STOP"),
    "length": (
        "max_tokens",
        "MAX_TOKENS",
        "max_output_tokens",
        "model_context_window_exceeded",
    ),
    "tool-calls": ("tool_calls", "tool_use", "toolUse", "function_call"),
    "error": ("failed",),
    "cancelled": ("canceled", "aborted", "interrupted"),
    "other": ("content_filter", "content-filter", "refusal", "pause_turn", "unknown"),
}
#: Why a call has no result, or an error for one.
OUTCOMES: Names = {
    "failed": ("failure", "error"),
    "interrupted": ("cancelled", "canceled", "aborted", "timeout"),
    "skipped": (),
    "denied": ("rejected",),
}
#: Counts of tokens. None contains another one, whatever a provider's own count does.
TOKENS: Names = {
    "input": ("input_tokens", "prompt_tokens", "inputTokens"),
    "output": ("output_tokens", "completion_tokens", "outputTokens"),
    "reasoning": ("reasoning_tokens",),
    "cache_read": ("cache_read_tokens", "cache_read_input_tokens", "cacheRead"),
    "cache_write": ("cache_write_tokens", "cache_creation_input_tokens", "cacheWrite"),
}
#: Fields, by the keywords of verbs.
FIELDS: Names = {
    "agent": ("agent_name", "agentName"),
    "call_id": ("tool_call_id", "tool_use_id", "callId", "toolCallId"),
    "cost": ("cost_usd", "costUSD", "total_cost", "total_cost_usd", "price"),
    "finish": ("finish_reason", "finishReason", "stop_reason", "stopReason"),
    "input": ("args", "arguments"),
    "model": ("model_id", "modelId", "modelID", "model_name"),
    "provider": ("provider_id", "providerId", "providerID", "provider_name"),
    "time": ("time_created", "timestamp", "created_at", "createdAt"),
    "tokens": ("usage", "token_usage", "tokenUsage"),
    "tool": ("tool_name", "toolName"),
}


def by_spelling(names: Names) -> dict[str, str]:
    """Return the first name of each row by all spellings of that row."""
    return {
        spelling: name
        for name, aliases in names.items()
        for spelling in (name, *aliases)
    }


ROLE = by_spelling(ROLES)
FINISH = by_spelling(FINISHES)
OUTCOME = by_spelling(OUTCOMES)
TOKEN = by_spelling(TOKENS)
FIELD = by_spelling(FIELDS)


def finishes(*spellings: str) -> dict[str, str]:
    """Return the table of a format that has these *spellings* of a finish."""
    return {spelling: FINISH[spelling] for spelling in spellings}


def canonical(value: Any, spellings: Mapping[str, str], name: str) -> str | None:
    """Return the name under which *value* is stored; None stays None.

    Raises `InvalidInputError`, which lists the names of *name*.
    """
    if value is None:
        return None
    if not isinstance(value, str) or value not in spellings:
        names = ", ".join(dict.fromkeys(spellings.values()))
        raise InvalidInputError(f"{name} is one of {names}, not {abridged(value)}")
    return spellings[value]
