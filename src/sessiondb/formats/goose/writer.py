"""Messages of any session as records of Goose.

A result is a message of the user that follows its call. Messages that only the agent
sees are hidden from the user, and those that a compaction replaced are out of the
agent's sight, as Goose leaves them itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sessiondb.formats.content import file_of
from sessiondb.formats.goose.carried import CARRIES
from sessiondb.formats.goose.usage import usage_of_answer
from sessiondb.formats.kit.carrying import Losses
from sessiondb.formats.kit.conversion import (
    SAID_FOR_USER,
    UNKNOWN,
    Losing,
    as_json,
    call_of,
    shown_text,
)
from sessiondb.formats.kit.fields import as_text
from sessiondb.model import Export, Message, Part

Record = dict[str, Any]
#: Ends the id of the record with the results that only the calls of a message have.
RESULTS = "-results"
#: Events that drop what was said before them.
_CUTS = frozenset({"compaction", "reset"})
#: Events whose text a model is shown.
_SHOWN = frozenset({*SAID_FOR_USER, "compaction"})


class GooseWriter(Losing):
    """The records of one session, whose *messages* are known; ``losses`` grow."""

    CARRIES = CARRIES

    def __init__(
        self, export: Export, losses: Losses, messages: Sequence[Message]
    ) -> None:
        super().__init__(export, losses)
        self._time = 0
        _, first = _last_cut(messages)
        self._unsent = {m.seq for m in messages if m.seq < first}
        #: When the calls ended whose results are messages, in seconds.
        self._answered = {
            part.call_id: message.time_created // 1000
            for message in messages
            for part in message.parts
            if part.type == "tool-result"
        }

    # -- one message -----------------------------------------------------------

    def records_of_message(self, message: Message) -> Iterator[Record]:
        """Yield the records of *message*: its own, and results that only calls have."""
        self.convert(message)
        content = list(self._content_of(message))
        if content:
            role = "assistant" if message.role == "assistant" else "user"
            yield self._message_record(message, message.id, role, content)
            self._lose_of_record(message)
        elif message.role != "event":
            self.lose_message(message)

        if message.role != "assistant":
            return

        settled = [part for part in message.parts if self._is_settled(part)]
        if settled:
            results = [_response_block(part) for part in settled]
            yield self._message_record(message, message.id + RESULTS, "user", results)
        for part in message.parts:
            # A call ends when its result is recorded, in seconds.
            end = self._answered.get(part.call_id, self._time)
            if part.type == "tool" and part.time_ended not in (None, end * 1000):
                self.lose(message=message, part=part, field="time_ended")

    def _lose_of_record(self, message: Message) -> None:
        """Record what a record cannot say of its message, because of its values."""
        if message.time_created != self._time * 1000:
            self.lose(message=message, field="time_created")
        if message.role == "assistant":
            self.lose_bare_provider(message)
            if message.tokens_reasoning:
                # It is counted as output, as Goose does.
                self.lose(message=message, field="tokens_output")
        is_hidden = message.role in ("event", "system")
        if is_hidden and message.seq in self._unsent:
            self.lose(message=message, field="order")
        if message.role == "event" and message.seq in self._unsent:
            # Hidden from both, it does not show any more whom it was for.
            self.lose(message=message, field="role")
            self.lose(message=message, field="kind")

    def _message_record(
        self, message: Message, name: str, role: str, content: list[Record]
    ) -> Record:
        is_hidden = message.role in ("event", "system")

        # Goose orders messages by their times.
        self._time = max(self._time, message.time_created // 1000)
        metadata: Record = {
            "userVisible": not is_hidden,
            "agentVisible": message.seq not in self._unsent,
        }

        if role == "assistant" and message.model_id:
            metadata["inference"] = {
                "provider": message.provider_id or UNKNOWN,
                "requestedModel": message.model_id,
            }
        used = usage_of_answer(message) if role == "assistant" else None
        if used is not None:
            metadata["usage"] = used

        return {
            "id": name,
            "role": role,
            "created": self._time,
            "content": content,
            "metadata": metadata,
        }

    def _content_of(self, message: Message) -> Iterator[Record]:
        if message.role == "event":
            yield from self._content_of_event(message)
            return

        for part in message.parts:
            block = self._block_of_part(message, part)
            if block:
                yield block

    def _content_of_event(self, message: Message) -> Iterator[Record]:
        """Yield the text of an event that a model is shown."""
        text = as_text(shown_text(message) or message.data.get("summary"))
        if message.kind in _SHOWN and text:
            self.take_shown_text(message)
            yield _text_block(text)
        else:
            self.lose_message(message)

    def _block_of_part(self, message: Message, part: Part) -> Record | None:
        """Return the block of a part; None for one that is empty, or lost."""
        if part.type in ("text", "reasoning") and not part.text:
            return None

        # A result is one only in a message of results, a call only in an answer.
        block: Record | None = None
        match part.type:
            case "text":
                block = _text_block(part.text or "")
            case "reasoning":
                block = {"type": "thinking", "thinking": part.text, "signature": ""}
            case "file":
                block = _image_block(part)
            case "tool" if message.role == "assistant":
                block = _request_block(part)
            case "tool-result" if message.role == "tool":
                block = _response_block(part)
        if block is None:
            self.lose_part(part, message)

        return block

    def _is_settled(self, part: Part) -> bool:
        """Return whether a part is a call whose result has no message of its own."""
        if part.type != "tool" or part.call_id in self._answered:
            return False

        return part.status in ("completed", "error")


def as_sent(messages: Sequence[Message]) -> list[Message]:
    """Return messages with the last summary before those that it keeps.

    Goose sends them in this order, and drops answers before the first prompt.
    """
    cut, first = _last_cut(messages)
    if cut is None:
        return list(messages)

    others = [message for message in messages if message is not cut]
    place = sum(message.seq < first for message in others)
    return [*others[:place], cut, *others[place:]]


def _last_cut(messages: Sequence[Message]) -> tuple[Message | None, int]:
    """Return the last event that drops messages, and the seq of the first one kept."""
    for cut in reversed(messages):
        if cut.role == "event" and cut.kind in _CUTS and cut.error is None:
            first_kept = cut.data.get("first_kept_id")
            for message in messages:
                if message.id == first_kept:
                    return cut, message.seq
            return cut, cut.seq
    return None, 0


# -- blocks --------------------------------------------------------------------


def _text_block(text: str) -> Record:
    return {"type": "text", "text": text}


def _request_block(part: Part) -> Record:
    call = call_of(part)
    value = {"name": call.tool, "arguments": as_json(call.arguments)}
    success = {"status": "success", "value": value}
    return {"type": "toolRequest", "id": call.id, "toolCall": success}


def _response_block(part: Part) -> Record:
    call = call_of(part)
    failed = part.status == "error" or part.outcome is not None
    text = part.text or (call.failure if failed else "")
    value = {"content": [_text_block(text)], "isError": failed}
    success = {"status": "success", "value": value}

    return {"type": "toolResponse", "id": call.id, "toolResult": success}


def _image_block(part: Part) -> Record | None:
    file = file_of(part)
    if not file.data or not file.mime.startswith("image/"):
        return None

    return {"type": "image", "data": file.data, "mimeType": file.mime}
