"""Messages of any session as records of Codex, without ordinals, as of 2025.

These are the records that Codex needs to continue a session: the items that the model
is sent, and the events that turns and prompts are found by. The reasoning of a model
is an event alone, because a provider accepts only its own reasoning.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sessiondb.formats.codex.carried import CARRIES
from sessiondb.formats.codex.drafts import COMPLETED
from sessiondb.formats.codex.fields import COUNTS, OUTCOME
from sessiondb.formats.codex.outcomes import outcome_of_text
from sessiondb.formats.content import error_text, file_of
from sessiondb.formats.kit.carrying import Losses
from sessiondb.formats.kit.conversion import (
    UNKNOWN,
    Conversion,
    as_json,
    call_of,
    shown_text,
    text_of,
)
from sessiondb.formats.kit.naming import MARK
from sessiondb.formats.kit.texts import compact_json, text_of_time
from sessiondb.model import Message, Part, Tokens
from sessiondb.patterns import late_pattern

Record = dict[str, Any]
#: The payloads of records, each with the type of its record.
Payloads = Iterator[tuple[str, Record]]
#: The names of tools that the provider accepts.
_ODD = late_pattern(r"[^A-Za-z0-9_-]")
#: Who added a text that the user did not type.
_HARNESS = {"type": "harness", "hook": False}


class CodexWriter(Conversion):
    """The records of one session in the order of its messages."""

    CARRIES = CARRIES

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        #: The sums of the counts so far.
        self._total = [0] * len(COUNTS)
        #: The place of the message that is written.
        self._index = 0
        #: The id of the turn that is open, and its last answer.
        self._turn: str | None = None
        self._answer: str | None = None

    def records(self) -> Iterator[Record]:
        """Yield the records of all messages."""
        for index, message in enumerate(self.messages):
            yield from self.write_message(message, index)
        yield from self.end()

    def add(self, message: Message) -> Iterator[Record]:
        """Yield the records of a further message."""
        self.messages.append(message)
        yield from self.write_message(message, len(self.messages) - 1)

    def write_message(self, message: Message, index: int) -> Iterator[Record]:
        """Yield the records of one message."""
        self._index = index
        self.convert(message)
        yield from _lines(message, self._payloads_of(message))

    def _payloads_of(self, message: Message) -> Payloads:
        match message.role:
            case "user":
                yield from self._write_prompt(message)
            case "assistant":
                yield from self._write_answer(message)
            case "system":
                yield "response_item", _item_of_text("developer", message.text)
            case "tool":
                self.lose_results(message)
            case _:
                yield from self._write_event(message)

    def end(self) -> Iterator[Record]:
        """Yield the end of the turn that is open."""
        if self.messages:
            yield from _lines(self.messages[-1], self._end_turn())

    # -- turns -----------------------------------------------------------------

    def _end_turn(self) -> Payloads:
        if self._turn is not None:
            turn = {"turn_id": self._turn, "last_agent_message": self._answer}
            yield "event_msg", {"type": "task_complete", **turn}
        self._turn = self._answer = None

    def _write_prompt(self, message: Message) -> Payloads:
        yield from self._end_turn()
        self._turn = message.id
        turn = {"turn_id": message.id, "model_context_window": None}
        yield "event_msg", {"type": "task_started", **turn}
        model = self.model_of(self._index)
        if model.provider == "openai" and model.id != UNKNOWN:
            yield "turn_context", self._turn_context(message, model.id)

        typed = text_of(message)
        blocks = self._prompt_blocks(message, typed)
        if blocks:
            yield "response_item", _item("user", blocks)
        if typed:
            event = {"type": "user_message", "message": typed, "kind": "plain"}
            yield "event_msg", event
        elif blocks:
            # Codex takes it for something that it said to the model itself.
            self.lose(message=message, field="role")

    def _turn_context(self, message: Message, model: str) -> Record:
        return {
            "turn_id": message.id,
            "cwd": self.session.required_directory,
            "approval_policy": "on-request",
            "sandbox_policy": {"type": "read-only"},
            "model": model,
            "summary": "auto",
        }

    def _prompt_blocks(self, message: Message, typed: str) -> list[Record]:
        """Return what was typed as one text, then what was added, and pictures."""
        added = text_of(message, synthetic=True)
        blocks = [_text_block(text) for text in (typed, added) if text]
        for part in message.parts:
            url = _picture_url(part)
            if url is not None:
                blocks.append({"type": "input_image", "image_url": url})
            elif part.type != "text":
                self.lose_part(part, message)
        return blocks

    # -- answers ---------------------------------------------------------------

    def _write_answer(self, message: Message) -> Payloads:
        thoughts: list[str] = []
        for part in message.parts:
            if part.type == "reasoning":
                thoughts.append(part.text or "")
                continue
            # The reasoning of parts that follow each other is one event.
            yield from _write_thoughts(thoughts)
            thoughts = []
            if part.type == "text":
                yield from self._write_text(part)
            elif part.type == "tool":
                yield from self._write_call(message, part)
            else:
                self.lose_part(part, message)
        yield from _write_thoughts(thoughts)

        has_item = any(
            part.type == "tool" or (part.type == "text" and part.text)
            for part in message.parts
        )
        if not has_item:
            self.lose_message(message)
        if message.tokens:
            yield "event_msg", self._token_count(message.tokens)
        if message.error:
            error = {"type": "error", "message": error_text(message.error)}
            yield "event_msg", error

    def _write_text(self, part: Part) -> Payloads:
        """Yield a text as the model said it, and as the user saw it."""
        if part.text:
            self._answer = part.text
            block = {"type": "output_text", "text": part.text}
            yield "response_item", _item("assistant", [block])
            yield "event_msg", {"type": "agent_message", "message": part.text}

    def _write_call(self, message: Message, part: Part) -> Payloads:
        call = call_of(part)
        name = _ODD.sub("_", call.tool)[:64]
        if name != call.tool:
            loss = f"the name of tool {call.tool}: it is {name}"
            self.lose(loss, message, part=part, field="tool")

        if type(part.input) is str:
            kind, arguments = "custom_tool_call", {"input": part.input}
        else:
            kind = "function_call"
            arguments = {"arguments": compact_json(as_json(call.arguments))}
        item = {"type": kind, "name": name, **arguments, "call_id": call.id}
        yield "response_item", item

        self.note_result(part.call_id, part.text)

        if part.status in ("completed", "error"):
            failed = part.status == "error"
            output = call.failure if failed else call.result
            result = {"call_id": call.id, "output": output}
            # A provider has no field for it; what its text says needs no other one.
            outcome = part.outcome if failed else None
            if outcome_of_text(output) != outcome:
                result[OUTCOME] = outcome or COMPLETED
            yield "response_item", {"type": f"{kind}_output", **result}

    def _token_count(self, tokens: Tokens) -> Record:
        # Counts that are not known are 0, because a total has no other way to say so.
        fresh, output, reasoning, cached, written = (n or 0 for n in tokens.columns())
        all_in, all_out = fresh + cached + written, output + reasoning
        last = [all_in, cached, written, all_out, reasoning]
        self._total = [a + b for a, b in zip(self._total, last, strict=True)]
        info = {
            "total_token_usage": _usage_record(self._total),
            "last_token_usage": _usage_record(last),
            "model_context_window": None,
        }
        return {"type": "token_count", "info": info, "rate_limits": None}

    # -- events ----------------------------------------------------------------

    def _write_event(self, message: Message) -> Payloads:
        """Yield the records of an event that has some; any other one is lost."""
        match message.kind:
            case "compaction":
                # Its last counts are the size of the context that it replaced.
                if message.tokens:
                    yield "event_msg", self._token_count(message.tokens)
                yield "compacted", self._compaction(message)
            case "usage":
                # The counts of one response: the last are the size of a context.
                if message.tokens:
                    yield "event_msg", self._token_count(message.tokens)
            case "title_change" if shown_text(message):
                yield "event_msg", _renaming(self.names.session, message.text)
            case "custom_message" | "branch_summary" | "context" if shown_text(message):
                # The model is shown it as if the user had said it; Codex labels such a
                # text by who added it.
                item = _item_of_text("user", self.take_shown_text(message))
                labels = {"content_item_metadata": [{"provenance": _HARNESS}]}
                item["internal_chat_message_metadata_passthrough"] = labels
                yield "response_item", item
            case _:
                self.lose_message(message)

    def _compaction(self, message: Message) -> Record:
        # Its summary may be in its data.
        summary = message.text or message.data.get("summary") or ""
        compacted: Record = {"message": summary}
        if "first_kept_id" in message.data:
            kept_items = self._items_kept_by(message)
            if kept_items:
                # A history that is stated replaces the summary, too.
                history = [_item_of_text("user", summary), *kept_items]
                compacted["replacement_history"] = history
            else:
                loss = "the messages that a compaction kept"
                self.lose(loss, message, field="data")
        return compacted

    def _items_kept_by(self, compaction: Message) -> list[Record]:
        """Return the items of the messages that a compaction kept."""
        names = [message.id for message in self.messages]
        first = compaction.data["first_kept_id"]
        if first not in names:
            return []

        messages = self.messages[names.index(first) : names.index(compaction.id)]
        writer = CodexWriter(self.export, messages, Losses(), self.names)
        return [
            record["payload"]
            for record in writer.records()
            if record["type"] == "response_item"
        ]


def title_record(thread: str, time: int, title: str) -> Record:
    """Return the record of a session's name."""
    return _line(time, "event_msg", _renaming(thread, title))


def _renaming(thread: str, title: str) -> Record:
    return {"type": "thread_name_updated", "thread_id": thread, "thread_name": title}


def _line(time: int, type_: str, payload: Record) -> Record:
    return {"timestamp": text_of_time(time), "type": type_, "payload": payload}


def _lines(message: Message, payloads: Payloads) -> Iterator[Record]:
    """Yield records with the time at which their message was complete, and with its id.

    By that an import finds the message again.
    """
    time = message.time_completed or message.time_created
    for type_, payload in payloads:
        record = {**_line(time, type_, payload), MARK: message.id}
        if OUTCOME in payload:
            record[OUTCOME] = payload.pop(OUTCOME)
        yield record


def _write_thoughts(texts: list[str]) -> Payloads:
    reasoning = "\n".join(text for text in texts if text)
    if reasoning:
        yield "event_msg", {"type": "agent_reasoning", "text": reasoning}


def _picture_url(part: Part) -> str | None:
    """Return the URL of a picture with its data; None for any other part."""
    if part.type != "file":
        return None

    file = file_of(part)
    is_picture = file.data is not None and file.mime.startswith("image/")
    return f"data:{file.mime};base64,{file.data}" if is_picture else None


def _text_block(text: str) -> Record:
    return {"type": "input_text", "text": text}


def _item(role: str, blocks: list[Record]) -> Record:
    return {"type": "message", "role": role, "content": blocks}


def _item_of_text(role: str, text: str) -> Record:
    return _item(role, [_text_block(text)])


def _usage_record(counts: list[int]) -> Record:
    usage = dict(zip(COUNTS, counts, strict=True))
    total = usage["input_tokens"] + usage["output_tokens"]
    return usage | {"total_tokens": total}
