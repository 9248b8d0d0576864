"""The words for a loss: ``the cost of 81 answers``."""

from __future__ import annotations

from collections.abc import Iterable

from sessiondb.model import Loss
from sessiondb.words import count

_MESSAGES = {
    "user": "prompt",
    "assistant": "answer",
    "system": "system message",
    "tool": "tool message",
}
_PARTS = {
    "reasoning": "thought",
    "tool": "call",
    "tool-result": "result",
    "file": "file",
}
#: The names of fields for people; any other is called by its name, with spaces.
_FIELDS = {
    "provider_id": "provider",
    "model_id": "model",
    "finish": "reason for the end",
    "input_json": "input",
    "order": "place",
    "relation": "relation to another session",
    "time_created": "time",
    "time_completed": "time of the end",
    "time_started": "time of the start",
    "time_ended": "time of the end",
    "data": "further data",
    "call_id": "id of the call",
    "response_id": "id of the response",
}
#: Fields of a session that a person has seen there.
_SEEN_OF_SESSION = frozenset({"title", "relation"})
_LISTS = {"todos": "its todo list", "diffs": "the diffs of its files"}


def words_of(sort: str, field: str, times: int, keys: Iterable[str] = ()) -> str:
    """Return the words for a *field* of records of a *sort* that was lost *times*.

    Without a field the records themselves are lost. *keys* of data are named.
    """
    if sort in _LISTS:
        return _LISTS[sort]
    name = name_of_field(field)
    of_keys = f" ({', '.join(sorted(keys))})" if keys else ""
    if sort == "session":
        return f"its {name}{of_keys}"
    if not field:
        return count_records(sort, times)
    return f"the {name} of {count_records(sort, times)}{of_keys}"


def is_plain(loss: Loss) -> bool:
    """Return whether the words of a loss follow from its record and its field."""
    return loss.why.startswith(words_of(loss.of, loss.field, loss.times))


def is_of_conversation(loss: Loss) -> bool:
    """Return whether a reader of the session would miss what was lost.

    That is a prompt, an answer, a thought, a call, a result, a file or a summary, what
    the session has beside them, and a loss with words of its own; not the events,
    settings and further fields of its program.
    """
    if not is_plain(loss) or loss.of in _LISTS:
        return True
    if loss.of == "session":
        return loss.field in _SEEN_OF_SESSION
    message, _, part = loss.of.partition("/")
    if loss.field:
        return False
    is_summary = message.endswith(":compaction")
    is_said = message in _MESSAGES and message != "system"
    return is_summary or (is_said and (not part or part in _PARTS))


def name_of_field(field: str) -> str:
    """Return what people call a field."""
    return _FIELDS.get(field, field.replace("_", " "))


def count_records(sort: str, times: int) -> str:
    """Return a number of records of a sort: ``3 events of kind rules``."""
    message, _, part = sort.partition("/")
    role, _, kind = message.partition(":")
    noun = _MESSAGES.get(role, role)
    of_kind = f" of kind {kind}" if kind else ""
    if message.endswith(":compaction"):
        noun, of_kind = "compaction", ""
    if not part:
        return count(times, noun) + of_kind

    within = f"{noun}s{of_kind}"
    if part in _PARTS:
        return f"{count(times, _PARTS[part])} in {within}"
    return f"{count(times, 'part')} of type {part} in {within}"
