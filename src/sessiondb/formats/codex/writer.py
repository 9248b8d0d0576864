"""Messages of any session as records of Codex, without ordinals, as of 2025.

These are the records that Codex needs to continue a session: the items that the model
is sent, and the events that turns and prompts are found by. The reasoning of a model
is an event alone, because a provider accepts only its own reasoning.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from typing import Any, ClassVar

from sessiondb.formats.codex.carried import CARRIES
from sessiondb.formats.codex.course import outcome_of
from sessiondb.formats.codex.drafts import COMPLETED
from sessiondb.formats.codex.fields import COUNTS, OUTCOME
from sessiondb.formats.content import error_text, file_of
from sessiondb.formats.kit.carrying import Losses
from sessiondb.formats.kit.conversion import (
    UNKNOWN,
    Call,
    Conversion,
    as_json,
    call_of,
    shown_text,
    text_of,
)
from sessiondb.formats.kit.naming import MARK
from sessiondb.formats.kit.texts import compact, text_of_time
from sessiondb.model import Message, Part, Tokens

Record = dict[str, Any]
#: The payloads of records, each with the type of its record.
Payloads = Iterator[tuple[str, Record]]
#: The names of tools that the provider accepts.
_ODD = re.compile(r"[^A-Za-z0-9_-]")
#: Events that are not made of a text.
_TEXTLESS = frozenset({"compaction", "usage"})


class Writer(Conversion):
    """The records of one session in the order of its messages."""

    CARRIES = CARRIES

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._total = [0] * len(COUNTS)
        #: The place of the message that is written.
        self._index = 0
        self._turn: str | None = None
        self._answer: str | None = None

    def records(self) -> Iterator[Record]:
        """Yield the records of all messages."""
        for index, message in enumerate(self.messages):
            yield from self.of(message, index)
        yield from self.end()

    def add(self, message: Message) -> Iterator[Record]:
        """Yield the records of a further message."""
        self.messages.append(message)
        yield from self.of(message, len(self.messages) - 1)

    def of(self, message: Message, index: int) -> Iterator[Record]:
        """Yield the records of one message."""
        self._index = index
        self.convert(message)
        make = self._ROLES[message.role]
        yield from _lines(message, make(self, message))

    def end(self) -> Iterator[Record]:
        """Yield the end of the turn that is open."""
        if self.messages:
            yield from _lines(self.messages[-1], self._ended())

    # -- turns -----------------------------------------------------------------

    def _ended(self) -> Payloads:
        if self._turn is not None:
            done = {"turn_id": self._turn, "last_agent_message": self._answer}
            yield "event_msg", {"type": "task_complete", **done}

        self._turn = self._answer = None

    def _asked(self, message: Message) -> Payloads:
        yield from self._ended()
        self._turn = message.id
        started = {"turn_id": message.id, "model_context_window": None}
        yield "event_msg", {"type": "task_started", **started}
        model = self.model_of(self._index)
        if model.provider == "openai" and model.id != UNKNOWN:
            yield "turn_context", self._context(message, model.id)

        typed = text_of(message)
        blocks = self._blocks(message, typed)
        if blocks:
            yield "response_item", _said("user", blocks)
        if not typed and blocks:
            # Codex takes it for something that it said to the model itself.
            self.lose(message=message, field="role")
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
        blocks = [_input(text) for text in filter(None, (typed, added))]

        for part in message.parts:
            url = _picture(part)
            if url is not None:
                blocks.append({"type": "input_image", "image_url": url})
            elif part.type != "text":
                self.lose_part(part, message)

        return blocks

    # -- answers ---------------------------------------------------------------

    def _answered(self, message: Message) -> Payloads:
        thoughts: list[str] = []
        for part in message.parts:
            if part.type == "reasoning":
                thoughts.append(part.text or "")
                continue
            yield from _thought(thoughts)
            thoughts = []
            make = self._PARTS.get(part.type)
            if make is None:
                self.lose_part(part, message)
            else:
                yield from make(self, message, part)
        yield from _thought(thoughts)

        if not any(part.type in self._PARTS for part in message.parts):
            self.lose_message(message)
        if message.tokens:
            yield "event_msg", self._counted(message.tokens)
        if message.error:
            said = {"type": "error", "message": error_text(message.error)}
            yield "event_msg", said

    def _spoken(self, _: Message, part: Part) -> Payloads:
        """Yield a text as the model said it, and as the user saw it."""
        if part.text:
            self._answer = part.text
            block = {"type": "output_text", "text": part.text}
            yield "response_item", _said("assistant", [block])
            yield "event_msg", {"type": "agent_message", "message": part.text}

    def _called(self, message: Message, part: Part) -> Payloads:
        call = call_of(part)
        name = _ODD.sub("_", call.tool)[:64]
        if name != call.tool:
            why = f"the name of tool {call.tool}: it is {name}"
            self.lose(why, message, part=part, field="tool")

        kind, given = _given(part, call)
        known = {"name": name, **given, "call_id": call.id}
        yield "response_item", {"type": kind, **known}

        self.called(part.call_id, part.text)

        if part.status in ("completed", "error"):
            failed = part.status == "error"
            output = call.failure if failed else call.result
            result = {"call_id": call.id, "output": output}
            # A provider has no field for it; what its text says needs no other one.
            outcome = part.outcome if failed else None
            if outcome_of(output) != outcome:
                result[OUTCOME] = outcome or COMPLETED
            yield "response_item", {"type": f"{kind}_output", **result}

    def _counted(self, tokens: Tokens) -> Record:
        # Counts that are not known are 0, because a total has no other way to say so.
        fresh, spoken, reasoning, cached, written = (n or 0 for n in tokens.columns())
        all_in, all_out = fresh + cached + written, spoken + reasoning
        last = [all_in, cached, written, all_out, reasoning]
        self._total = [a + b for a, b in zip(self._total, last, strict=True)]
        info = {
            "total_token_usage": _usage(self._total),
            "last_token_usage": _usage(last),
            "model_context_window": None,
        }
        return {"type": "token_count", "info": info, "rate_limits": None}

    # -- neither prompts nor answers -------------------------------------------

    def _instructed(self, message: Message) -> Payloads:
        yield "response_item", _said("developer", [_input(message.text)])

    def _resulted(self, message: Message) -> Payloads:
        self.lose_results(message)
        return iter(())

    def _noted(self, message: Message) -> Payloads:
        make = self._KINDS.get(message.kind)
        # The summary of a compaction may be in its data; most others are their text.
        has_content = shown_text(message) or message.kind in _TEXTLESS
        if make is not None and has_content:
            yield from make(self, message)
        else:
            self.lose_message(message)

    def _compacted(self, message: Message) -> Payloads:
        said = message.text or message.data.get("summary") or ""
        compacted: Record = {"message": said}
        if "first_kept_id" in message.data:
            kept = self._kept(message)
            if kept:
                # A history that is stated replaces the summary, too.
                summary = _said("user", [_input(said)])
                compacted["replacement_history"] = [summary, *kept]
            else:
                why = "the messages that a compaction kept"
                self.lose(why, message, field="data")

        # Its last counts are the size of the context that it replaced.
        if message.tokens:
            yield "event_msg", self._counted(message.tokens)
        yield "compacted", compacted

    def _kept(self, compaction: Message) -> list[Record]:
        """Return the items of the messages that a compaction kept."""
        names = list(map(attrgetter("id"), self.messages))
        first = compaction.data["first_kept_id"]
        if first not in names:
            return []

        kept = self.messages[names.index(first) : names.index(compaction.id)]
        records = Writer(self.export, kept, Losses(), self.names).records()
        return [of["payload"] for of in records if of["type"] == "response_item"]

    def _used(self, message: Message) -> Payloads:
        """Yield the counts of one response: the last ones are the size of a context."""
        if message.tokens:
            yield "event_msg", self._counted(message.tokens)

    def _shown(self, message: Message) -> Payloads:
        """Yield an event that the model is shown as if the user had said it."""
        yield "response_item", _said("user", [_input(self.shown(message))])

    def _renamed(self, message: Message) -> Payloads:
        yield "event_msg", _named(self.names.session, message.text)

    # -- tables ----------------------------------------------------------------

    _ROLES: ClassVar[Mapping[str, Callable[[Writer, Message], Payloads]]] = {
        "user": _asked,
        "assistant": _answered,
        "system": _instructed,
        "tool": _resulted,
        "event": _noted,
    }
    #: The parts of an answer that have records of their own.
    _PARTS: ClassVar[Mapping[str, Callable[[Writer, Message, Part], Payloads]]] = {
        "text": _spoken,
        "tool": _called,
    }
    #: The events that have one; any other is lost.
    _KINDS: ClassVar[Mapping[str | None, Callable[[Writer, Message], Payloads]]] = {
        "compaction": _compacted,
        "usage": _used,
        "title_change": _renamed,
        "custom_message": _shown,
        "branch_summary": _shown,
        "context": _shown,
    }


def title_of(thread: str, when: int, title: str) -> Record:
    """Return the record of a session's name."""
    return _line(when, "event_msg", _named(thread, title))


def _named(thread: str, title: str) -> Record:
    return {"type": "thread_name_updated", "thread_id": thread, "thread_name": title}


def _line(when: int, type_: str, payload: Record) -> Record:
    return {"timestamp": text_of_time(when), "type": type_, "payload": payload}


def _lines(message: Message, payloads: Payloads) -> Iterator[Record]:
    """Yield records with the time at which their message was complete, and with its id.

    By that an import finds the message again.
    """
    when = message.time_completed or message.time_created
    for type_, payload in payloads:
        record = {**_line(when, type_, payload), MARK: message.id}
        if OUTCOME in payload:
            record[OUTCOME] = payload.pop(OUTCOME)
        yield record


def _given(part: Part, call: Call) -> tuple[str, Record]:
    """Return the type of a call, and its input: a text alone, or an object as JSON."""
    if type(part.input) is str:
        return "custom_tool_call", {"input": part.input}
    return "function_call", {"arguments": compact(as_json(call.arguments))}


def _thought(texts: list[str]) -> Payloads:
    """Yield the reasoning of parts that follow each other, which is one event."""
    said = "\n".join(filter(None, texts))
    if said:
        yield "event_msg", {"type": "agent_reasoning", "text": said}


def _picture(part: Part) -> str | None:
    """Return the URL of a picture with its data; None for any other part."""
    if part.type != "file":
        return None

    file = file_of(part)
    is_picture = file.data is not None and file.mime.startswith("image/")
    return f"data:{file.mime};base64,{file.data}" if is_picture else None


def _input(text: str) -> Record:
    return {"type": "input_text", "text": text}


def _said(role: str, blocks: list[Record]) -> Record:
    return {"type": "message", "role": role, "content": blocks}


def _usage(counts: list[int]) -> Record:
    known = dict(zip(COUNTS, counts, strict=True))
    total = known["input_tokens"] + known["output_tokens"]
    return known | {"total_tokens": total}
