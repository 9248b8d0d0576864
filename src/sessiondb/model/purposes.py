"""The purpose of a message in a conversation: one rule for all programs.

Programs record much more than what was said: texts that they add for the model,
settings, counts, results. `purpose_of` tells these apart by role, kind and parts alone,
so that `schema.purposes` states the same rule in SQL.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from sessiondb.model.records import Message

PROMPT = "prompt"
ANSWER = "answer"
RESULT = "result"
COMMAND = "command"
SUMMARY = "summary"
INJECTED = "injected"
BOOKKEEPING = "bookkeeping"
#: Each purpose with what has it.
PURPOSES = {
    PROMPT: "what the user typed or attached",
    ANSWER: "what the model said, with its calls",
    RESULT: "results of calls that are a record of their own",
    COMMAND: "a command that the user ran beside the model",
    SUMMARY: "a summary of what came before, or of another branch",
    INJECTED: "what a program told the model: instructions, reminders, context",
    BOOKKEEPING: "settings, counts and whatever else a program records",
}
#: The types of the parts that a user can type or attach.
TYPED_TYPES = ("text", "file", "agent")
#: Kinds of messages, of any role, that sum up others.
SUMMARY_KINDS = ("compaction", "branch_summary")
#: Kinds of events that the model is shown.
INJECTED_KINDS = ("custom_message", "context")
_OF_ROLES = {"assistant": ANSWER, "tool": RESULT, "system": INJECTED}


class _TypedPart(Protocol):
    @property
    def type(self) -> str: ...
    @property
    def synthetic(self) -> int: ...


def is_prompt(role: str, kind: str | None, parts: Iterable[_TypedPart]) -> bool:
    """Return whether a message is a prompt: the user typed or attached some of it."""
    if role != "user" or kind in SUMMARY_KINDS:
        return False
    return any(part.type in TYPED_TYPES and not part.synthetic for part in parts)


def purpose_of(message: Message) -> str:
    """Return the purpose of a message, one of `PURPOSES`."""
    if message.kind in SUMMARY_KINDS:
        return SUMMARY
    if message.role in _OF_ROLES:
        return _OF_ROLES[message.role]
    if message.role == "user":
        is_typed = is_prompt(message.role, message.kind, message.parts)
        return PROMPT if is_typed else INJECTED

    if any(part.type == "tool" for part in message.parts):
        return COMMAND
    return INJECTED if message.kind in INJECTED_KINDS else BOOKKEEPING
