"""The keys of Qwen Code's records whose values have a column; see `kit.fields`.

Read off Qwen Code 0.24 (``chatRecordingService.ts``, ``transcript-records.ts``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sessiondb.formats.kit.fields import Fields, clean_name, clean_text
from sessiondb.formats.kit.usage import usage_table

RECORD: Fields = {"model": ("model_id", clean_name), "agentName": ("agent", clean_name)}
#: Properties of a session, from its first record.
HEAD: Fields = {
    "cwd": ("directory", clean_text),
    "version": ("version", clean_name),
    "agentName": ("agent", clean_name),
}
#: Properties of a subagent, from the file beside its log.
META: Fields = {
    "agentType": ("agent", clean_name),
    "description": ("title", clean_text),
    "model": ("model_id", clean_name),
    "toolUseId": ("call_id", clean_text),
}
#: ``promptTokenCount`` includes the tokens from the cache.
TOKENS: Fields = usage_table(
    input="promptTokenCount",
    output="candidatesTokenCount",
    cache_read="cachedContentTokenCount",
    reasoning="thoughtsTokenCount",
)
#: The event of a request to a model; its counts are those of ``usageMetadata``.
REQUEST = "qwen-code.api_response"
EVENT: Fields = {"model": ("model_id", clean_name)}
EVENT_TOKENS: Fields = usage_table(
    input="input_token_count",
    output="output_token_count",
    cache_read="cached_content_token_count",
    reasoning="thoughts_token_count",
)
#: Records of the system whose events have another name; others keep theirs.
KINDS: Mapping[str, str] = {
    "chat_compression": "compaction",
    "custom_title": "title_change",
    "session_model": "model_change",
    "session_approval_mode": "mode_change",
}
#: Beginnings of texts that a hook or the program adds to a prompt.
ADDED = ("<qwen:user-prompt-submit-context>", "<system-reminder>")
#: Subtypes of the records of a user that the user typed.
TYPED = frozenset({None, "mid_turn_user_message", "agent_launch_prompt"})
#: Subtypes of records beside the conversation, which are never its end.
ASIDE = frozenset(
    {
        "session_artifact_event",
        "session_artifact_snapshot",
        "session_sources_snapshot",
        "managed_session_header_v1",
        "managed_session_event_v1",
        "managed_session_commit_v1",
    }
)
#: The state of a call in ``toolCallResult``, if its result does not have it.
FAILED: Mapping[str, Mapping[str, Any]] = {
    "error": {"status": "error", "outcome": "failed"},
    "cancelled": {"status": "error", "outcome": "interrupted"},
}
