"""Messages of any session as records of pi.

A call is a block of its answer, and its result a record that follows: a result that
only its call has becomes a record here. Every record is complete, since pi reads usage
and model of an answer without a check.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from sessiondb.formats.content import error_text
from sessiondb.formats.kit.carrying import Losses
from sessiondb.formats.kit.conversion import (
    UNKNOWN,
    Losing,
    as_json,
    call_of,
    is_native,
)
from sessiondb.formats.kit.fields import (
    as_object,
    as_text,
    integer,
    text,
    without_none,
)
from sessiondb.formats.kit.naming import further_name
from sessiondb.formats.kit.texts import text_of_time
from sessiondb.formats.pi.carried import CARRIES
from sessiondb.formats.pi.records import block_of_part
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
_FILE_KEYS = ("mime", "content", "url")
_PRICES = ("input", "output", "cacheRead", "cacheWrite")
#: The places of the title, and of labels, among the parts of a message.
_TITLE, _LABEL = 1_000_000, 1_000_001


class PiWriter(Losing):
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
        #: The last record of each message, by its seq: another one continues it.
        self._last_records: dict[int | None, str] = {}
        #: The first record of each message, by its seq.
        self._first_records: dict[int | None, str] = {}
        #: The record that was written last.
        self._newest: str | None = None
        #: The label that a record has in the log so far, by its id.
        self._labelled: dict[str, Any] = {}

    def parent_id(self, message: Message) -> str | None:
        """Return the id of the record that *message* continues; None for a root."""
        return self._last_records.get(message.parent_seq)

    def with_results(self, messages: Iterable[Message]) -> Iterator[Message]:
        """Yield *messages*; the results right after an answer are known before it."""
        waiting: list[Message] = []
        for message in messages:
            if message.role not in ("tool", "event"):
                yield from waiting
                waiting = []

            self._note_results(message)
            if waiting or (message.role == "assistant" and is_native(message.id)):
                waiting.append(message)
            else:
                yield message
        yield from waiting

    def _note_results(self, message: Message) -> None:
        ended = message.time_completed or message.time_created
        for part in message.parts:
            if part.type == "tool-result":
                self._answered[part.call_id] = ended

    def note_written(self, message: Message, last_record: str) -> None:
        """Record that *message* ends with *last_record*, which others continue."""
        self._last_records[message.seq] = last_record
        self._first_records[message.seq] = message.id
        for part in message.parts:
            if part.type == "tool":
                self._tools[part.call_id] = part.tool
        self._newest = last_record

    def note_copied(self, message: Message, record: Record) -> None:
        """Record that the *record* of *message* was written unchanged."""
        # In an upgraded log its id is another one.
        record_id = str(record.get("id", message.id))
        self.note_written(message, record_id)
        self._first_records[message.seq] = record_id
        if record["type"] == "label":
            self._labelled[str(record.get("targetId"))] = record.get("label")

    def closing_records(self, *, is_named: bool) -> Iterator[Record]:
        """Yield records with the labels and the name of the session, after its leaf.

        The last record of a log is its leaf. If the log *is_named*, or there is no
        name, one is needed only for a session that continues from another record.
        """
        leaf = self._last_records.get(self.session.leaf_seq)
        for record in self._label_records():
            yield {**record, "parentId": leaf}
            leaf = self._newest = record["id"]
        if leaf != self._newest or (self.session.title and not is_named):
            yield self._name_record(leaf)

    def _label_records(self) -> Iterator[Record]:
        """Yield records of labels that the log does not have, one for a message."""
        last = {label.seq: label for label in self.export.labels}
        for number, label in enumerate(self.export.labels):
            target = self._first_records.get(label.seq)
            if target is None or last[label.seq] is not label:
                self.lose_label(label.label)
            elif self._labelled.get(target) != label.label:
                yield {
                    "type": "label",
                    "id": further_name(target, _LABEL + number),
                    "timestamp": text_of_time(self.session.time_updated),
                    "targetId": target,
                    "label": label.label,
                }

    def _name_record(self, leaf: str | None) -> Record:
        session = self.session
        return {
            "type": "session_info",
            # Its message is known if the log comes back, so that it is not a new one.
            "id": further_name(
                self._first_records.get(session.leaf_seq, session.id), _TITLE
            ),
            "parentId": leaf,
            "timestamp": text_of_time(session.time_updated),
            "name": session.title,
        }

    # -- one message -----------------------------------------------------------

    def records_of_message(
        self, message: Message, parent_id: str | None
    ) -> Iterator[Record]:
        """Yield the records of *message*: itself, and results that only calls have."""
        self.convert(message)
        self._lose_values(message)
        created = message.time_created
        written = message.time_completed or created
        links = {"id": message.id, "parentId": parent_id}
        yield {
            **self._message_record(message),
            **links,
            "timestamp": text_of_time(written),
        }

        last = message.id
        for index, part in self._further_results(message):
            name = further_name(message.id, index)
            written = part.time_ended or created
            links = {"id": name, "parentId": last}
            yield {
                **self._result_record(part),
                **links,
                "timestamp": text_of_time(written),
            }
            last = name
        self.note_written(message, last)

    def _lose_values(self, message: Message) -> None:
        """Record the values of an answer that its record cannot have."""
        if message.error is not None:
            read_again = {"message": error_text(message.error)}
            if message.error != read_again:
                self.lose("how its error is worded", message, field="error")
        for part in message.parts:
            end = self._answered.get(part.call_id, part.time_ended)
            if part.type == "tool" and part.time_ended and part.time_ended != end:
                self.lose(message=message, part=part, field="time_ended")

    def _further_results(self, message: Message) -> list[tuple[int, Part]]:
        """Return the results that need records of their own, with their places."""
        results = []
        for index, part in enumerate(message.parts):
            is_own = message.role == "tool" and part.type == "tool-result"
            if is_own or (message.role == "assistant" and self._has_result(part)):
                results.append((index, part))
        # The record of a tool's message has the first one.
        return results[1:] if message.role == "tool" else results

    def _has_result(self, part: Part) -> bool:
        """Return whether a part is a call that alone has its result."""
        if part.type != "tool" or part.call_id in self._answered:
            return False
        return part.status in ("completed", "error")

    def _message_record(self, message: Message) -> Record:
        match message.role:
            case "event":
                return self._event_record(message)
            case "tool":
                return {"type": "message", "message": self._tool_message(message)}
            case "assistant":
                return {"type": "message", "message": self._answer_record(message)}
            case role:
                content = self._content_blocks(message, message.parts)
                created = message.time_created
                prompt = {"role": role, "content": content, "timestamp": created}
                return {"type": "message", "message": prompt}

    def _answer_record(self, message: Message) -> Record:
        answer = {
            "role": "assistant",
            "content": self._content_blocks(message, message.parts),
            "api": UNKNOWN,
            "provider": message.provider_id or UNKNOWN,
            "model": message.model_id or UNKNOWN,
            "usage": _usage_record(message),
            "stopReason": _FINISH.get(message.finish or "", "stop"),
            "timestamp": message.time_created,
        }
        if message.error:
            answer["errorMessage"] = error_text(message.error)
        return answer

    def _tool_message(self, message: Message) -> Record:
        """Return the first result in a message, followed by its other parts."""
        others = [part for part in message.parts if part.type != "tool-result"]
        results = [part for part in message.parts if part.type == "tool-result"]
        blocks = self._content_blocks(message, others)
        if not results:
            return {"role": "user", "content": blocks}

        result: Record = self._result_record(results[0])["message"]
        return {**result, "content": result["content"] + blocks}

    def _content_blocks(self, message: Message, parts: Iterable[Part]) -> list[Record]:
        blocks = []
        for part in parts:
            if part.type in _BLOCKS:
                blocks.append(block_of_part(_without_foreign_data(part)))
            elif part.type == "tool" and message.role == "assistant":
                blocks.append(_call_block(part))
            else:
                self.lose_part(part, message)
        return blocks

    def _result_record(self, part: Part) -> Record:
        """Return the record of the result that a call, or a part of its own, has."""
        call = call_of(part)
        has_failed = part.status == "error" or part.outcome is not None
        result = call.failure if has_failed else call.result
        message = {
            "role": "toolResult",
            "toolCallId": call.id,
            # A result does not name the tool of its call.
            "toolName": part.tool or self._tools.get(part.call_id) or UNKNOWN,
            "content": [{"type": "text", "text": result}],
            "isError": has_failed,
            "timestamp": part.time_ended or part.time_created,
        }
        return {"type": "message", "message": message}

    # -- events ----------------------------------------------------------------

    def _event_record(self, message: Message) -> Record:
        if _is_command(message):
            return _command_record(message)

        match message.kind:
            case "custom_message":
                return {
                    "type": "custom_message",
                    "customType": "custom_message",
                    "content": self.take_shown_text(message),
                    "display": True,
                }
            case "compaction":
                return _compaction_record(message)
            case "branch_summary":
                summary = {"fromId": "root", "summary": message.text}
                return {"type": "branch_summary", **summary, **_usage_if_known(message)}
            case "context_edit":
                return _edit_record(message)
            case "model_change":
                return {
                    "type": "model_change",
                    "provider": message.provider_id or UNKNOWN,
                    "modelId": message.model_id or UNKNOWN,
                }
            case "thinking_level_change":
                level = message.data.get("level") or message.text
                return {"type": "thinking_level_change", "thinkingLevel": level}
            case kind:
                self.lose_parts(message, but=())
                data = as_json({**message.data, "text": message.text})
                return {"type": "custom", "customType": kind or "event", "data": data}


# -- parts ---------------------------------------------------------------------


def _without_foreign_data(part: Part) -> Part:
    """Return a part without the values that its own program keeps in its data."""
    data = {key: part.data[key] for key in _FILE_KEYS if key in part.data}
    return replace(part, data=data)


def _call_block(part: Part) -> Record:
    call = call_of(part)
    return {
        "type": "toolCall",
        "id": call.id,
        "name": call.tool,
        "arguments": as_json(call.arguments),
    }


def _usage_record(message: Message) -> Record:
    """Return the usage of a message; an unknown count is 0, as in answers of pi."""
    tokens = message.tokens or Tokens()
    counts = {
        "input": tokens.input or 0,
        "output": (tokens.output or 0) + (tokens.reasoning or 0),
        "cacheRead": tokens.cache_read or 0,
        "cacheWrite": tokens.cache_write or 0,
    }
    usage: Record = dict(counts)
    if tokens.reasoning is not None:
        usage["reasoning"] = tokens.reasoning
    usage["totalTokens"] = sum(counts.values())
    usage["cost"] = {**dict.fromkeys(_PRICES, 0), "total": message.cost or 0}
    return usage


def _usage_if_known(message: Message) -> Record:
    """Return the usage of a summary, if it is known: pi adds it to its sums."""
    if message.tokens is None and message.cost is None:
        return {}
    return {"usage": _usage_record(message)}


# -- events --------------------------------------------------------------------


def _is_command(message: Message) -> bool:
    """Return whether an event is a command that the user ran in a shell."""
    if len(message.parts) != 1 or message.parts[0].type != "tool":
        return False
    return text(as_object(message.parts[0].input).get("command"))


def _command_record(message: Message) -> Record:
    (part,) = message.parts
    data = {**message.data, **part.data}
    command = {
        "role": "bashExecution",
        "command": as_object(part.input)["command"],
        "output": part.text or "",
        "exitCode": _exit_code(part, data),
        "cancelled": part.outcome == "interrupted",
        "truncated": data.get("truncated") is True,
        "timestamp": message.time_created,
    }
    # A command that the model was not shown is not shown to it in pi either.
    if message.kind == "custom":
        command["excludeFromContext"] = True
    return {"type": "message", "message": without_none(command)}


def _exit_code(part: Part, data: Record) -> int | None:
    """Return the exit code of a command; by its end if it states none."""
    for key in ("exitCode", "exit", "exit_code"):
        code = data.get(key)
        if integer(code):
            return code
    if part.status == "completed" and part.outcome is None:
        return 0
    return 1 if part.status == "error" and part.outcome == "failed" else None


def _compaction_record(message: Message) -> Record:
    # One that keeps nothing names itself, in pi.
    first_kept = as_text(message.data.get("first_kept_id")) or message.id
    return {
        "type": "compaction",
        "summary": message.text or message.data.get("summary") or "",
        "firstKeptEntryId": first_kept,
        "tokensBefore": 0,
        **_usage_if_known(message),
    }


def _edit_record(message: Message) -> Record:
    content = [block_of_part(_without_foreign_data(part)) for part in message.parts]
    return {
        "type": "context_edit",
        "targetId": as_text(message.data.get("target_id")),
        "replacement": {"content": content} if content else None,
    }
