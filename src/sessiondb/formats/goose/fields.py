"""The places in records of Goose of what has a column here; see `kit.fields`.

Read off Goose 1.34 (``session_manager.rs``, ``message.rs``) and its schema 17. The same
tables serve both directions: `drafts` takes by them, `records` puts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sessiondb.formats.kit.fields import Fields, clean_name, clean_text, text
from sessiondb.formats.kit.json import known_time
from sessiondb.formats.kit.usage import usage_table

#: A session as ``goose session export`` writes it.
SESSION: Fields = {
    "working_dir": ("directory", clean_text),
    "name": ("title", clean_text),
    "provider_name": ("provider_id", clean_text),
    "model_config": {"model_name": ("model_id", clean_text)},
}
#: Keys that an import requires of a model besides its name (``ModelConfig``).
MODEL_CONFIG: Mapping[str, Any] = {
    **dict.fromkeys(("context_limit", "temperature", "max_tokens")),
    "toolshim": False,
    "toolshim_model": None,
}
#: The first line of a log.
METADATA: Fields = {
    "working_dir": ("directory", clean_text),
    "description": ("title", clean_text),
}
#: Columns of the database that hold JSON, and their keys in an export.
JSON_COLUMNS: Mapping[str, str] = {
    "extension_data": "extension_data",
    "recipe_json": "recipe",
    "user_recipe_values_json": "user_recipe_values",
    "model_config_json": "model_config",
}
TIME_COLUMNS = ("created_at", "updated_at", "archived_at")
#: Columns that an export has under the same key, in its order.
PLAIN_COLUMNS = (
    "id", "working_dir", "session_type", "accumulated_cost", "schedule_id",
    "provider_name", "goose_mode", "project_id", "parent_session_id",
)  # fmt: skip
#: Numbers of tokens: of the last request, and of all of them.
TOKEN_COLUMNS = (
    "total_tokens", "input_tokens", "output_tokens",
    "cache_read_tokens", "cache_write_tokens",
)  # fmt: skip
ACCUMULATED = "accumulated_"
#: The keys of a count in an export since schema 14, where counts are objects.
NESTED: Mapping[str, str] = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "total_tokens": "total_tokens",
    "cache_read_tokens": "cache_read_input_tokens",
    "cache_write_tokens": "cache_write_input_tokens",
}
#: The counts of an answer, in its metadata.
ANSWER = usage_table(
    input="inputTokens",
    output="outputTokens",
    cache_read="cacheReadTokens",
    cache_write="cacheWriteTokens",
)

#: The id here of a session that was written for Goose, in the data of an
#: extension, which an import keeps, unlike the id.
_EXTENSION = ("extension_data", "sessiondb.v0")
OURS = (*_EXTENSION, "session")
#: The sums of the session then, which the sums of Goose begin with.
CARRIED = (*_EXTENSION, "accumulated")
#: The part of these sums that its answers state, and the counts of the others:
#: disjoint, and with reasoning, which Goose does not know.
STATED = (*_EXTENSION, "stated")
REST = (*_EXTENSION, "rest")

#: Roles that Goose gives to messages; any other is an event of that kind.
ROLES = frozenset({"user", "assistant", "system"})
#: The keys of a message; logs had neither ids nor flags.
KEYS = ("id", "role", "created", "content", "metadata")
#: The keys of an export, in its order.
EXPORT_KEYS = (
    "id", "working_dir", "name", "user_set_name", "session_type", "created_at",
    "updated_at", "extension_data", *TOKEN_COLUMNS[:3], "usage",
    *(ACCUMULATED + name for name in TOKEN_COLUMNS[:3]), "accumulated_usage",
    "accumulated_cost", "schedule_id", "recipe", "user_recipe_values", "conversation",
    "message_count", "last_message_at", "provider_name", "model_config", "goose_mode",
    "archived_at", "project_id", "parent_session_id", "last_message_snippet",
)  # fmt: skip

CALL: Fields = {"id": ("call_id", clean_text)}
RESULT: Fields = {"id": ("call_id", clean_text)}
#: The session of the subagent that a call started, in the result of the call.
SUBAGENT = ("toolResult", "value", "_meta", "subagent_session_id")
#: The call inside a request that could be understood.
CALLED: Fields = {"name": ("tool", clean_name)}
#: Calls of the first releases, whose blocks have no type.
UNTYPED_CALL: Fields = {
    "id": ("call_id", clean_text),
    "tool_name": ("tool", clean_name),
}
#: The type of a block without one, by a key that it has.
UNTYPED: Mapping[str, str] = {
    "tool_result": "toolResponse",
    "tool_name": "toolRequest",
    "text": "text",
}
#: Blocks whose text is under one key: type here and there, and the key.
TEXTS: Mapping[str, tuple[str, Fields]] = {
    "text": ("text", {"text": ("text", text)}),
    "thinking": ("reasoning", {"thinking": ("text", text)}),
    "systemNotification": ("systemNotification", {"msg": ("text", text)}),
    "conversationCompacted": ("conversationCompacted", {"msg": ("text", text)}),
    "contextLengthExceeded": ("contextLengthExceeded", {"msg": ("text", text)}),
    "summarizationRequested": ("summarizationRequested", {"msg": ("text", text)}),
}
#: The keys of ``data`` that are a part's own, by the types of the block and the part.
_ITEM, _FILE = frozenset({"at", "untyped"}), frozenset({"at", "mime", "content", "url"})
OWN: Mapping[str | None, frozenset[str]] = {
    **dict.fromkeys(("text", "toolResponse", "tool-result"), _ITEM),
    **dict.fromkeys(("toolRequest", "tool"), frozenset({"untyped"})),
    **dict.fromkeys(("image", "file"), _FILE),
}
#: Blocks that the program shows and that no model is sent.
SHOWN_ONLY = frozenset(
    {
        "systemNotification", "toolConfirmationRequest", "actionRequired",
        "conversationCompacted", "contextLengthExceeded", "summarizationRequested",
    }
)  # fmt: skip
#: The flags of a message without any; also of one whose flags cannot be read.
VISIBLE = {"userVisible": True, "agentVisible": True}
#: Times from here on are in milliseconds (``MILLISECOND_TIMESTAMP_THRESHOLD``).
MILLISECONDS = 10_000_000_000


def time_of(created: Any) -> int | None:
    """Return the Unix ms of ``created``, which is in seconds or in milliseconds."""
    if type(created) is not int:
        return None

    # Releases differ in the unit, and the size of a number decides, as in Goose itself.
    return known_time(created if created > MILLISECONDS else created * 1000)
