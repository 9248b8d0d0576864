"""Where the lines of Claude Code keep what has a column; see `kit.fields`.

Read off transcripts of 2.1.329, ``claude-agent-sdk`` 0.2.186 and the JSON Schemas of
``oneryalcin/agent-schemas`` for 2.1.97 to 2.1.144. The same tables serve both
directions: `drafts` takes by them, `records` puts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sessiondb.formats.kit.fields import (
    MEANINGS,
    Fields,
    as_list,
    as_object,
    as_string,
    clean_name,
    clean_text,
    text,
    value_at,
)
from sessiondb.formats.kit.json import usable_id
from sessiondb.model.aliases import finishes
from sessiondb.patterns import late_pattern

#: The model of answers that the program itself made.
SYNTHETIC = "<synthetic>"
#: The version whose lines are written, and the program that says it wrote them.
VERSION, WRITER = "2.1.329", "sessiondb"
#: Lines with a ``uuid`` that are links of the chain.
CHAIN = frozenset({"user", "assistant", "system", "attachment", "progress"})
#: Lines beside the chain that no other program writes.
BESIDE = frozenset(
    "summary custom-title ai-title last-prompt queue-operation tag agent-name mode "
    "permission-mode file-history-snapshot content-replacement".split()
)
#: Keys of lines beside the chain: a session, or a message of one.
_REFERENCES = frozenset({"sessionId", "leafUuid", "messageId"})
#: Lines with a message.
SAID = frozenset({"user", "assistant"})
#: The types of lines that the roles of their messages imply.
TYPES: Mapping[str, str] = {"user": "user", "tool": "user", "assistant": "assistant"}


def is_model(value: Any) -> bool:
    """Return whether an answer names a model."""
    return clean_name(value) and value != SYNTHETIC


def is_subtype(value: Any) -> bool:
    """Return whether an event is known by its subtype, as kind of an event here."""
    return usable_id(value) and value not in MEANINGS


#: Properties of a session, from its first line.
HEAD: Fields = {"cwd": ("directory", clean_text), "version": ("version", clean_text)}
#: Properties of a subagent that its parent keeps in a sidecar.
SIDECAR: Fields = {
    "description": ("title", clean_text),
    "agentType": ("agent", clean_text),
    "toolUseId": ("call_id", clean_text),
}
#: Properties of an answer.
ANSWER: Fields = {
    "message": {
        "id": ("response_id", clean_name),
        "model": ("model_id", is_model),
    }
}
#: The text of an event that a person sees.
SHOWN: Fields = {"content": ("text", text)}
#: Attachments with files that a model is given, and the key of one or of their list.
SOURCES: Mapping[str, str] = {
    "instructions": "files",
    "nested_memory": "content",
    "relevant_memories": "memories",
    "invoked_skills": "skills",
}
SOURCE: Fields = {
    "path": ("path", clean_name),
    "type": ("scope", clean_name),
    "content": ("text", text),
}

#: ``stop_reason`` of an answer to ``finish`` here.
FINISH: Mapping[str, str] = finishes(
    "end_turn", "stop_sequence", "max_tokens", "tool_use",
    "model_context_window_exceeded",
)  # fmt: skip
#: Lines that are known here under another name; the others keep theirs.
KINDS: Mapping[str, str] = {
    **dict.fromkeys(MEANINGS, "custom"),
    "custom-title": "title_change",
    "ai-title": "title_change",
    "mode": "mode_change",
    "cost-state": "usage",
}
#: How a text begins that the program wrote in the name of the user.
INJECTED = (
    "<system-reminder>", "<command-name>", "<command-message>", "<local-command-",
    "<task-notification>", "<bash-input>", "<bash-stdout>", "<user-memory-input>",
    "<ide_", "<session-start-hook>", "<user-prompt-submit-hook>",
    "<post-tool-use-hook>",
    "[Request interrupted by user", "Caveat: The messages below were generated",
)  # fmt: skip
#: The origins of prompts that no person wrote; read off the program 2.1.330.
ADDING = frozenset(
    "auto-continuation coordinator observer-activity peer plugin suggestion "
    "task-notification".split()
)
#: A command that was sent to the model, as the program writes it: its name, arguments.
COMMAND = late_pattern(
    r"<command-message>[^<]*</command-message>\s*"
    r"<command-name>(/[^<]+)</command-name>"
    r"(?:\s*<command-args>([^<]*)</command-args>)?\s*"
)
#: How the result of a call begins that the user refused.
DENIED = "The user doesn't want to"
#: Facts that the program records beside such a result.
REJECTED = "User rejected tool use"
#: The cost of an answer in lines of 1.x, in USD.
COST = "costUSD"


def is_added(record: Mapping[str, Any]) -> bool:
    """Return whether the program says that the user did not type a prompt."""
    origin = as_string(value_at(record, "origin", "kind"))
    return record.get("isMeta") is True or origin in ADDING


def is_injected(prompt: str) -> bool:
    """Return whether the program wrote a text in the name of the user."""
    return prompt.lstrip().startswith(INJECTED)


def is_line(record: Mapping[str, Any]) -> bool:
    """Return whether a record is a line of Claude Code.

    Qwen Code writes similar lines, with ``parts`` in their messages.
    """
    kind = as_string(record.get("type"))
    if kind not in CHAIN:
        return kind in BESIDE and not _REFERENCES.isdisjoint(record)
    if "parentUuid" not in record or "systemPayload" in record:
        return False

    if kind in SAID:
        message = as_object(record.get("message"))
        return "content" in message and "parts" not in message
    return "sessionId" in record and "provenance" not in record


def is_queued(record: Mapping[str, Any]) -> bool:
    """Return whether a line is a prompt that waited for the end of a turn."""
    return bool(value_at(record, "attachment", "type") == "queued_command")


def blocks_of(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the blocks of a line; an empty one for each that is not an object."""
    content = as_list(value_at(record, "message", "content"))
    return [as_object(block) for block in content]


def sources_of(attachment: Mapping[str, Any]) -> list[Any]:
    """Return the files that a model is given with an attachment, as they are."""
    key = SOURCES.get(as_string(attachment.get("type")))
    if key is None:
        return []
    files = attachment.get(key)
    return as_list(files) or [files]
