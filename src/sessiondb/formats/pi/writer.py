"""Messages of any session as records of pi.

A call is a block of its answer, and its result a record that follows: a result that
only its call has becomes a record here. Every record is complete, since pi reads usage
and model of an answer without a check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import filterfalse
from typing import Any

from sessiondb.formats.content import error_text
from sessiondb.formats.kit.carrying import Losses
from sessiondb.formats.kit.conversion import (
    UNKNOWN,
    Losing,
    as_json,
    call_of,
    is_native,
    shown_text,
)
from sessiondb.formats.kit.fields import (
    as_object,
    as_text,
    filled,
    integer,
    text,
    without_none,
)
from sessiondb.formats.kit.naming import further
from sessiondb.formats.kit.texts import text_of_time
from sessiondb.formats.pi.carried import CARRIES
from sessiondb.formats.pi.records import block
from sessiondb.model import Export, Message, Part, Tokens

Record = dict[str, Any]
_FINISH = {
    "stop": "stop",
    "length": "length",
    "tool-calls": "toolUse",
    "error": "error",
    "cancelled": "aborted",
}
#: Parts that are blocks of a message; the others have no place in a log of pi.
_BLOCKS = frozenset({"text", "reasoning", "file"})
#: The exit code of a command that states none, by its status and outcome.
_CODES: Mapping[tuple[str | None, str | None], int] = {
    ("completed", None): 0,
    ("error", "failed"): 1,
}
_RESULT, _OF_FILES = "tool-result", ("mime", "content", "url")
_PRICES = ("input", "output", "cacheRead", "cacheWrite")

#: The places of the title, and of labels, among the parts of a message.
_TITLE, _LABEL = 1_000_000, 1_000_001


class Writer(Losing):
    """The records of one session, whose *messages* are known; ``losses`` grow."""

    CARRIES = CARRIES

    def __init__(
        self, export: Export, losses: Losses, messages: Iterable[Message] = ()
    ) -> None:
        super().__init__(export, losses)
        #: The calls that have a result of their own: its time in Unix ms.
        self._answered: dict[str | None, int] = {}
        for message in messages:
            self._note_results(message)
        #: The tools of the calls so far, which results do not name.
        self._tools: dict[str | None, str | None] = {}
        #: The record that a message is continued from, by its seq.
        self._last: dict[int | None, str] = {}
        self._newest: str | None = None
        self._own: dict[int | None, str] = {}
        #: The label that a record has in the log so far, by its id.
        self._labelled: dict[str, Any] = {}

    def above(self, message: Message) -> str | None:
        """Return the id of the record that *message* continues; None for a root."""
        return self._last.get(message.parent_seq)

    def with_results(self, messages: Iterable[Message]) -> Iterator[Message]:
        """Yield *messages*; the results right after an answer are known before it."""
        held: list[Message] = []
        for message in messages:
            if message.role not in ("tool", "event"):
                yield from held
                held = []

            self._note_results(message)
            if held or (message.role == "assistant" and is_native(message.id)):
                held.append(message)
            else:
                yield message
        yield from held

    def _note_results(self, message: Message) -> None:
        when = message.time_completed or message.time_created
        self._answered.update(dict.fromkeys(_answered_in(message), when))

    def wrote(self, message: Message, name: str) -> None:
        """Record that *message* ends with the record *name*, which others continue."""
        self._last[message.seq] = name
        self._own[message.seq] = message.id
        calls = (part for part in message.parts if part.type == "tool")
        self._tools.update((part.call_id, part.tool) for part in calls)
        self._newest = name

    def copied(self, message: Message, record: Record) -> None:
        """Record that the *record* of *message* was written unchanged."""
        # In an upgraded log its id is another one.
        name = str(record.get("id", message.id))
        self.wrote(message, name)
        self._own[message.seq] = name
        if record["type"] == "label":
            self._labelled[str(record.get("targetId"))] = record.get("label")

    def end(self, *, is_named: bool) -> Iterator[Record]:
        """Yield records with the labels and the name of the session, after its leaf.

        The last record of a log is its leaf. If the log *is_named*, or there is no
        name, one is needed only for a session that continues from another record.
        """
        leaf = self._last.get(self.session.leaf_seq)
        for record in self._labels():
            yield {**record, "parentId": leaf}
            leaf = self._newest = record["id"]
        if leaf != self._newest or (self.session.title and not is_named):
            yield self._named(leaf)

    def _labels(self) -> Iterator[Record]:
        """Yield records of labels that the log does not have, one for a message."""
        last = {label.seq: label for label in self.export.labels}
        for number, label in enumerate(self.export.labels):
            target = self._own.get(label.seq)
            if target is None or last[label.seq] is not label:
                self.lose_label(label.label)
            elif self._labelled.get(target) != label.label:
                yield {
                    "type": "label",
                    "id": further(target, _LABEL + number),
                    "timestamp": text_of_time(self.session.time_updated),
                    "targetId": target,
                    "label": label.label,
                }

    def _named(self, leaf: str | None) -> Record:
        session = self.session
        return {
            "type": "session_info",
            # Its message is known if the log comes back, so that it is not a new one.
            "id": further(self._own.get(session.leaf_seq, session.id), _TITLE),
            "parentId": leaf,
            "timestamp": text_of_time(session.time_updated),
            "name": session.title,
        }

    # -- one message -----------------------------------------------------------

    def records(self, message: Message, above: str | None) -> Iterator[Record]:
        """Yield the records of *message*: itself, and results that only calls have."""
        self.convert(message)
        self._lose_values(message)
        when = message.time_created
        first = {**self._record(message), "id": message.id, "parentId": above}
        yield {**first, "timestamp": text_of_time(message.time_completed or when)}

        last = message.id
        for index, part in self._further_results(message):
            name = further(message.id, index)
            yield {**self._result_of(part), "id": name, "parentId": last} | {
                "timestamp": text_of_time(part.time_ended or when)
            }
            last = name
        self.wrote(message, last)

    def _lose_values(self, message: Message) -> None:
        """Record the values of an answer that its record cannot have."""
        if message.error is not None and message.error != _error(message):
            self.lose("how its error is worded", message, field="error")
        for part in message.parts:
            end = self._answered.get(part.call_id, part.time_ended)
            if part.type == "tool" and part.time_ended and part.time_ended != end:
                self.lose(message=message, part=part, field="time_ended")

    def _further_results(self, message: Message) -> list[tuple[int, Part]]:
        """Return the results that need records of their own, with their places."""
        tests = {"assistant": self._has_result, "tool": _is_result}
        if message.role not in tests:
            return []

        is_wanted = tests[message.role]
        found = [of for of in enumerate(message.parts) if is_wanted(of[1])]
        # The record of a tool's message has the first one.
        return found[1:] if message.role == "tool" else found

    def _has_result(self, part: Part) -> bool:
        if part.type != "tool" or part.call_id in self._answered:
            return False
        return part.status in ("completed", "error")

    def _record(self, message: Message) -> Record:
        if message.role != "event":
            return {"type": "message", "message": self._said(message)}

        make = _EVENTS.get(message.kind, _custom)
        if _is_command(message):
            make = _ran
        elif make is _shown:
            self.shown(message)
        elif make is _custom:
            self.lose_parts(message, but=())
        return make(message)

    def _said(self, message: Message) -> Record:
        when = message.time_created
        if message.role == "tool":
            return self._result(message)

        content: Any = [*self._blocks(message, message.parts)]
        if message.role != "assistant":
            return {"role": message.role, "content": content, "timestamp": when}
        return {
            "role": "assistant",
            "content": content,
            "api": UNKNOWN,
            **_named(message, "provider", "model"),
            "usage": _usage(message),
            "stopReason": _FINISH.get(message.finish or "", "stop"),
            "timestamp": when,
            **({"errorMessage": error_text(message.error)} if message.error else {}),
        }

    def _blocks(self, message: Message, parts: Iterable[Part]) -> Iterator[Record]:
        for part in parts:
            if part.type in _BLOCKS:
                yield block(_plain(part))
            elif part.type == "tool" and message.role == "assistant":
                yield _call(part)
            else:
                self.lose_part(part, message)

    def _result(self, message: Message) -> Record:
        blocks = [*self._blocks(message, filterfalse(_is_result, message.parts))]
        result = next(filter(_is_result, message.parts), None)
        if result is None:
            return {"role": "user", "content": blocks}

        said: Record = self._result_of(result)["message"]
        return {**said, "content": said["content"] + blocks}

    def _result_of(self, part: Part) -> Record:
        """Return the record of a result, which names the tool of its call."""
        tool = part.tool or self._tools.get(part.call_id)
        return _result(replace(part, tool=tool))


def _error(message: Message) -> Record:
    """Return the error of an answer as it is read again."""
    return {"message": error_text(message.error)}


# -- parts ---------------------------------------------------------------------


def _is_result(part: Part) -> bool:
    return part.type == _RESULT


def _answered_in(message: Message) -> Iterator[str | None]:
    return (part.call_id for part in message.parts if _is_result(part))


def _plain(part: Part) -> Part:
    """Return a part without what its own program keeps in its data."""
    known = {key: part.data[key] for key in _OF_FILES if key in part.data}
    return replace(part, data=known)


def _call(part: Part) -> Record:
    call = call_of(part)
    given = as_json(call.arguments)
    return {"type": "toolCall", "id": call.id, "name": call.tool, "arguments": given}


def _result(part: Part) -> Record:
    """Return the record of the result that a call, or a part of its own, has."""
    of = call_of(part)
    failed = part.status == "error" or part.outcome is not None
    text = of.failure if failed else of.result
    said = {
        "role": "toolResult",
        "toolCallId": of.id,
        "toolName": of.tool,
        "content": [{"type": "text", "text": text}],
        "isError": failed,
        "timestamp": part.time_ended or part.time_created,
    }
    return {"type": "message", "message": said}


def _named(message: Message, *keys: str) -> Record:
    """Return the provider and the model of *message* under these *keys*."""
    names = message.provider_id or UNKNOWN, message.model_id or UNKNOWN
    return dict(zip(keys, names, strict=True))


def _usage(message: Message) -> Record:
    """Return the usage of a message; what is not known is 0, as in answers of pi."""
    tokens = message.tokens or Tokens()
    fresh, output, reasoning, read, written = (count or 0 for count in tokens.columns())
    counts = {
        "input": fresh,
        "output": output + reasoning,
        "cacheRead": read,
        "cacheWrite": written,
    }
    within = filled({"reasoning": tokens.reasoning})
    cost = {**dict.fromkeys(_PRICES, 0), "total": message.cost or 0}
    return {**counts, **within, "totalTokens": sum(counts.values()), "cost": cost}


# -- events --------------------------------------------------------------------


def _custom(message: Message) -> Record:
    data = as_json({**message.data, "text": message.text})
    return {"type": "custom", "customType": message.kind or "event", "data": data}


def _shown(message: Message) -> Record:
    return {
        "type": "custom_message",
        "customType": "custom_message",
        "content": shown_text(message),
        "display": True,
    }


def _is_command(message: Message) -> bool:
    """Return whether an event is a command that the user ran in a shell."""
    given = [as_object(part.input) for part in message.parts if part.type == "tool"]
    return len(given) == len(message.parts) == 1 and text(given[0].get("command"))


def _ran(message: Message) -> Record:
    (part,) = message.parts
    data = {**message.data, **part.data}
    stated = (data.get(key) for key in ("exitCode", "exit", "exit_code"))
    said = {
        "role": "bashExecution",
        "command": as_object(part.input)["command"],
        "output": part.text or "",
        "exitCode": next(
            filter(integer, stated), _CODES.get((part.status, part.outcome))
        ),
        "cancelled": part.outcome == "interrupted",
        "truncated": data.get("truncated") is True,
        "timestamp": part.time_started or message.time_created,
    }
    # A command that the model was not shown is not shown to it in pi either.
    hidden = {"excludeFromContext": True} if message.kind == "custom" else {}
    return {"type": "message", "message": without_none(said) | hidden}


def _compaction(message: Message) -> Record:
    # One that keeps nothing names itself, in pi.
    kept = as_text(message.data.get("first_kept_id")) or message.id
    summary = message.text or message.data.get("summary") or ""
    return {
        "type": "compaction",
        "summary": summary,
        "firstKeptEntryId": kept,
        "tokensBefore": 0,
        **_spent(message),
    }


def _branch_summary(message: Message) -> Record:
    summary = {"fromId": "root", "summary": message.text, **_spent(message)}
    return {"type": "branch_summary", **summary}


def _spent(message: Message) -> Record:
    """Return the usage of a summary, if it is known: pi adds it to its sums."""
    if message.tokens is None and message.cost is None:
        return {}
    return {"usage": _usage(message)}


def _edit(message: Message) -> Record:
    content = [block(_plain(part)) for part in message.parts]
    return {
        "type": "context_edit",
        "targetId": as_text(message.data.get("target_id")),
        "replacement": {"content": content} if content else None,
    }


def _model(message: Message) -> Record:
    return {"type": "model_change", **_named(message, "provider", "modelId")}


def _thinking(message: Message) -> Record:
    level = message.data.get("level") or message.text
    return {"type": "thinking_level_change", "thinkingLevel": level}


_EVENTS: Mapping[str | None, Callable[[Message], Record]] = {
    "custom_message": _shown,
    "compaction": _compaction,
    "branch_summary": _branch_summary,
    "context_edit": _edit,
    "model_change": _model,
    "thinking_level_change": _thinking,
}
