"""Messages of any session as records of Codex, without ordinals, as of 2025.

These are the records that Codex needs to continue a session: the items that the model
is sent, and the events that turns and prompts are found by. What a model said to itself
is an event alone, because a provider takes its own reasoning only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from sessiondb.formats.codex.fields import COUNTS
from sessiondb.formats.content import error_text, file_of
from sessiondb.formats.kit.conversion import (
    SILENT,
    UNKNOWN,
    Conversion,
    as_json,
    call_of,
    text_of,
)
from sessiondb.formats.kit.naming import MARK
from sessiondb.formats.kit.texts import compact, text_of_time
from sessiondb.model import Message, Part, Tokens

Record = dict[str, Any]
#: What the names of tools must be for the provider.
_ODD = re.compile(r"[^A-Za-z0-9_-]")
#: Events whose text the model is shown as if the user had said it.
_SHOWN = frozenset({"custom_message", "branch_summary", "context"})


class Writer(Conversion):
    """The records of one session in the order of its messages."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._total = [0] * len(COUNTS)
        self._turn: str | None = None
        self._answer: str | None = None

    def records(self) -> Iterator[Record]:
        """Yield the records of all messages; ``losses`` grow meanwhile."""
        for index, message in enumerate(self.messages):
            yield from _marked(self.of(message, index), message)
        if self.messages:
            yield from _marked(self.end(), self.messages[-1])
        self._lose_rest()

    def add(self, message: Message) -> Iterator[Record]:
        """Yield the records of a further message."""
        self.messages.append(message)
        yield from self.of(message, len(self.messages) - 1)

    def of(self, message: Message, index: int) -> Iterator[Record]:
        """Yield the records of one message."""
        make = _ROLES[message.role]
        when = message.time_completed or message.time_created
        for type_, payload in make(self, message, index):
            yield _line(when, type_, payload)

    def end(self) -> Iterator[Record]:
        """Yield the end of the turn that is open."""
        if self._turn is not None and self.messages:
            last = self.messages[-1]
            when = last.time_completed or last.time_created
            for type_, payload in self._ended():
                yield _line(when, type_, payload)

    def _lose_rest(self) -> None:
        self.lose_labels()
        lists = {
            "its todo list": self.export.todos,
            "the diffs of its files": self.export.diffs,
            "its cost": self.session.cost,
        }
        for why, found in lists.items():
            if found:
                self.lose(why)

    # -- turns -----------------------------------------------------------------

    def _ended(self) -> Iterator[tuple[str, Record]]:
        if self._turn is not None:
            done = {"turn_id": self._turn, "last_agent_message": self._answer}
            yield "event_msg", {"type": "task_complete", **done}

        self._turn = self._answer = None

    def _asked(self, message: Message, index: int) -> Iterator[tuple[str, Record]]:
        yield from self._ended()
        self._turn = message.id
        started = {"turn_id": message.id, "model_context_window": None}
        yield "event_msg", {"type": "task_started", **started}
        model = self.model_of(index)
        if model.provider == "openai" and model.id != UNKNOWN:
            yield "turn_context", self._context(message, model.id)

        typed = text_of(message)
        blocks = self._blocks(message, typed)
        if blocks:
            yield "response_item", _said("user", blocks)
        if typed:
            said = {"type": "user_message", "message": typed, "kind": "plain"}
            yield "event_msg", said

    def _context(self, message: Message, model: str) -> Record:
        return {
            "turn_id": message.id,
            "cwd": self.session.directory,
            "approval_policy": "on-request",
            "sandbox_policy": {"type": "read-only"},
            "model": model,
            "summary": "auto",
        }

    def _blocks(self, message: Message, typed: str) -> list[Record]:
        """Return what was typed as one text, then what was added, and pictures."""
        added = text_of(message, synthetic=True)
        texts = [text for text in (typed, added) if text]
        blocks = [{"type": "input_text", "text": text} for text in texts]

        for part in message.parts:
            if part.type != "text":
                blocks += self._picture(message, part)

        return blocks

    def _picture(self, message: Message, part: Part) -> list[Record]:
        file = file_of(part) if part.type == "file" else None
        if file is None or file.data is None or not file.mime.startswith("image/"):
            self.lose(f"part {part.type}", message)
            return []

        url = f"data:{file.mime};base64,{file.data}"
        return [{"type": "input_image", "image_url": url}]

    # -- answers ---------------------------------------------------------------

    def _answered(self, message: Message, index: int) -> Iterator[tuple[str, Record]]:
        del index
        for part in message.parts:
            if part.type == "text" and part.text:
                self._answer = part.text
                block = {"type": "output_text", "text": part.text}
                yield "response_item", _said("assistant", [block])
                yield "event_msg", {"type": "agent_message", "message": part.text}
            elif part.type == "reasoning":
                said = {"type": "agent_reasoning", "text": part.text or ""}
                yield "event_msg", said
            elif part.type == "tool":
                yield from self._called(message, part)
            elif part.type != "text":
                self.lose(f"part {part.type}", message)

        if message.tokens:
            yield "event_msg", self._counted(message.tokens)
        if message.error:
            said = {"type": "error", "message": error_text(message.error)}
            yield "event_msg", said

    def _called(self, message: Message, part: Part) -> Iterator[tuple[str, Record]]:
        call = call_of(part)
        name = _ODD.sub("_", call.tool)[:64]
        if name != call.tool:
            self.lose(f"the name of tool {call.tool}: it is {name}", message)

        given = compact(as_json(call.arguments))
        known = {"name": name, "arguments": given, "call_id": call.id}
        yield "response_item", {"type": "function_call", **known}

        self.called(part.call_id, part.text)

        if part.status in ("completed", "error"):
            failed = part.status == "error"
            output = call.failure if failed else call.result
            result = {"call_id": call.id, "output": output}
            yield "response_item", {"type": "function_call_output", **result}

    def _counted(self, tokens: Tokens) -> Record:
        cached, written = tokens.cache_read or 0, tokens.cache_write or 0
        reasoning = tokens.reasoning or 0
        all_in = (tokens.input or 0) + cached + written
        all_out = (tokens.output or 0) + reasoning
        last = [all_in, cached, written, all_out, reasoning]
        self._total = [a + b for a, b in zip(self._total, last, strict=True)]
        info = {
            "total_token_usage": _usage(self._total),
            "last_token_usage": _usage(last),
            "model_context_window": None,
        }
        return {"type": "token_count", "info": info, "rate_limits": None}

    # -- what nobody said ------------------------------------------------------

    def _instructed(self, message: Message, index: int) -> Iterator[tuple[str, Record]]:
        del index
        block = {"type": "input_text", "text": message.text}
        yield "response_item", _said("developer", [block])

    def _resulted(self, message: Message, index: int) -> Iterator[tuple[str, Record]]:
        del index
        self.lose_results(message)
        return iter(())

    def _noted(self, message: Message, index: int) -> Iterator[tuple[str, Record]]:
        del index
        kind = message.kind
        if kind == "compaction":
            if "first_kept_id" in message.data:
                self.lose("what a compaction kept", message)

            said = message.text or message.data.get("summary") or ""
            yield "compacted", {"message": said}
        elif kind in _SHOWN and message.text:
            block = {"type": "input_text", "text": message.text}
            yield "response_item", _said("user", [block])
        elif kind == "title_change" and message.text:
            yield "event_msg", _named(self.names.session, message.text)
        elif kind not in SILENT:
            self.lose(f"event {kind}", message)


_ROLES: Mapping[str, Callable[[Writer, Message, int], Iterator[tuple[str, Record]]]] = {
    "user": Writer._asked,  # noqa: SLF001
    "assistant": Writer._answered,  # noqa: SLF001
    "system": Writer._instructed,  # noqa: SLF001
    "tool": Writer._resulted,  # noqa: SLF001
    "event": Writer._noted,  # noqa: SLF001
}


def _marked(records: Iterable[Record], message: Message) -> Iterator[Record]:
    """Yield records with the id of their message, known if the rollout comes back."""
    for record in records:
        yield {**record, MARK: message.id}


def title_of(thread: str, when: int, title: str) -> Record:
    """Return the record of a session's name."""
    return _line(when, "event_msg", _named(thread, title))


def _named(thread: str, title: str) -> Record:
    return {"type": "thread_name_updated", "thread_id": thread, "thread_name": title}


def _line(when: int, type_: str, payload: Record) -> Record:
    return {"timestamp": text_of_time(when), "type": type_, "payload": payload}


def _said(role: str, blocks: list[Record]) -> Record:
    return {"type": "message", "role": role, "content": blocks}


def _usage(counts: list[int]) -> Record:
    known = dict(zip(COUNTS, counts, strict=True))
    total = known["input_tokens"] + known["output_tokens"]
    return known | {"total_tokens": total}
