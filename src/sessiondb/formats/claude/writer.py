"""Messages of any session as lines of Claude Code.

An answer has a line for each of its blocks, and each result is a line that follows the
line of its call. The program refuses a call without a result, and a result without a
call, so every call gets one and no other result is written. Thoughts of other programs
carry no signature and are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

from sessiondb.formats.claude import fields
from sessiondb.formats.claude.carried import CARRIES
from sessiondb.formats.content import file_of
from sessiondb.formats.kit.carrying import Losses
from sessiondb.formats.kit.conversion import (
    SAID_FOR_USER,
    UNKNOWN,
    Losing,
    as_json,
    call_arguments,
    call_of,
    shown_text,
    within_64_bits,
)
from sessiondb.formats.kit.fields import without_none
from sessiondb.formats.kit.naming import further_name, uuid_of
from sessiondb.formats.kit.texts import text_of_time
from sessiondb.formats.providers.anthropic.fields import COUNTS
from sessiondb.model import Export, Message, Part, Tokens
from sessiondb.patterns import late_pattern

Record = dict[str, Any]
#: Makes the block of a part: {} for one that is left out, None for one that is lost.
MakeBlock = Callable[[Part], Record | None]
_STOP: Mapping[str | None, str | None] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool-calls": "tool_use",
    "cancelled": None,
}
#: Characters that the provider refuses in the names and ids of calls.
_UNSAFE = late_pattern(r"[^A-Za-z0-9_-]")
_NO_RESULT = "[no result: the call was interrupted]"
_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")


class ClaudeWriter(Losing):
    """The lines of one session, whose *messages* are known; ``losses`` grow.

    *keys* are those of each line that name the session. ``last_uuid`` is that of the
    line that the next one follows, ``first_time`` the time of the earliest one.
    """

    CARRIES = CARRIES

    def __init__(
        self,
        export: Export,
        keys: Record,
        losses: Losses,
        messages: Iterable[Message] = (),
    ) -> None:
        super().__init__(export, losses)
        session = export.session
        self.last_uuid: str | None = None
        #: The time of the earliest line, in Unix ms.
        self.first_time: int | None = None
        self._envelope: Record = {
            "isSidechain": False,
            "userType": "external",
            "entrypoint": fields.WRITER,
            "cwd": session.required_directory,
            "version": fields.VERSION,
            **keys,
        }
        #: When the calls ended whose results are messages, in Unix ms.
        self._result_times = {
            part.call_id: message.time_created
            for message in messages
            for part in message.parts
            if message.role == "tool" and part.type == "tool-result"
        }
        #: The answer whose calls wait for results.
        self._open_answer: Message
        #: The lines of the calls that have no result yet, and their times.
        self._open_calls: dict[str, tuple[str, int]] = {}
        #: The digests of the results that were written, by the names of their calls.
        self._result_digests: dict[str, int] = {}

    def lines(self, message: Message) -> Iterator[Record]:
        """Yield the lines of *message*."""
        self.convert(message)
        if message.kind == "compaction":
            yield from self._compaction_lines(message)
        elif message.role == "assistant":
            yield from self._answer_lines(message)
        elif message.role == "tool":
            yield from self._result_lines(message)
        elif message.role == "user":
            blocks = [block for _, block in self._blocks(message, _block_of_prompt)]
            yield from self._user_line(message, blocks)
        elif message.kind in SAID_FOR_USER and shown_text(message):
            blocks = [_block_of_text(self.take_shown_text(message))]
            yield from self._user_line(message, blocks, isMeta=True)
        else:
            self.lose_message(message)

    def title(self) -> Iterator[Record]:
        """Yield the line of the title, unless it is derived from the first prompt."""
        if self.session.title and self.session.title_source != "derived":
            yield {
                "type": "custom-title",
                "customTitle": self.session.title,
                "sessionId": self._envelope["sessionId"],
            }

    # -- lines -------------------------------------------------------------------

    def _line(self, kind: str, uuid: str, time: int, **keys: Any) -> Record:
        """Return a line, which the next one follows."""
        if self.first_time is None or time < self.first_time:
            self.first_time = time
        line = {
            "parentUuid": self.last_uuid,
            **self._envelope,
            "type": kind,
            **keys,
            "uuid": uuid,
            "timestamp": text_of_time(time),
        }
        self.last_uuid = uuid
        return line

    def _user_line(
        self, message: Message, blocks: list[Record], **flags: Any
    ) -> Iterator[Record]:
        """Yield a line of the user, unless nothing is in it."""
        yield from self.unanswered()
        if not blocks:
            return
        if all(part.synthetic for part in message.parts):
            flags.setdefault("isMeta", True)
        is_text = len(blocks) == 1 and blocks[0]["type"] == "text"
        content = blocks[0]["text"] if is_text else blocks
        prompt = {"role": "user", "content": content}
        uuid = uuid_of(message.id)
        yield self._line("user", uuid, message.time_created, message=prompt, **flags)

    def _compaction_lines(self, message: Message) -> Iterator[Record]:
        """Yield the boundary that cuts the chain, and the summary."""
        if message.error is not None:
            self.lose_message(message)
            return
        yield from self.unanswered()
        logical_parent = self.last_uuid
        self.last_uuid = None
        yield self._line(
            "system",
            uuid_of(further_name(message.id, 0)),
            message.time_created,
            subtype="compact_boundary",
            content="Conversation compacted",
            isMeta=False,
            level="info",
            logicalParentUuid=logical_parent,
            compactMetadata={"trigger": "manual", "preTokens": 0},
        )

        summary = message.text or message.data.get("summary") or "[no summary]"
        # The program records no usage there: these keys are beside its own.
        usage = {
            "usage": message.tokens and _usage_record(message.tokens),
            fields.COST: message.cost,
        }
        yield self._line(
            "user",
            uuid_of(message.id),
            message.time_created,
            message={"role": "user", "content": str(summary)},
            isVisibleInTranscriptOnly=True,
            isCompactSummary=True,
            **without_none(usage),
        )

    # -- answers -----------------------------------------------------------------

    def _answer_lines(self, message: Message) -> Iterator[Record]:
        """Yield a line for each block, and the results that only the calls have."""
        # The program finds the results of all calls of one answer, not of several.
        if not self._open_calls:
            self._open_answer = message
        answer = self._answer_record(message)
        # Each line of an answer repeats the cost, as its usage.
        repeated: Record = {"requestId": f"req_{uuid_of(self._open_answer.id)}"}
        if message.cost is not None:
            repeated[fields.COST] = message.cost

        blocks = list(self._blocks(message, _block_of_answer))
        if not blocks:
            self.lose_message(message)
        calls: list[tuple[Part, str]] = []
        for index, (part, block) in enumerate(blocks):
            uuid = _uuid_of_line(message, index)
            time = part.time_created or message.time_created
            if index == 0 and time != message.time_created:
                self.lose(message=message, field="time_created")
            record = {**answer, "content": [block]}
            yield self._line("assistant", uuid, time, message=record, **repeated)
            if part.type == "tool":
                calls.append((part, uuid))
                if block["input"] != as_json(call_arguments(part)):
                    self.lose(message=message, part=part, field="input_json")

        for index, (part, call_uuid) in enumerate(calls, start=len(blocks)):
            time = self._result_times.get(part.call_id, message.time_created)
            if part.time_ended not in (None, time):
                self.lose(message=message, part=part, field="time_ended")
            if part.call_id in self._result_times:
                name = _safe_id(call_of(part).id)
                self._open_calls[name] = call_uuid, message.time_created
            else:
                yield self._result_of_call(message, index, part, call_uuid)

    def _answer_record(self, message: Message) -> Record:
        """Return the message of an answer without its content; each line repeats it."""
        first = self._open_answer
        model = message.model_id or (UNKNOWN if message.tokens else fields.SYNTHETIC)
        return {
            "id": first.response_id or f"msg_{uuid_of(first.id)}",
            "type": "message",
            "role": "assistant",
            "model": model,
            "stop_reason": _STOP.get(message.finish, "end_turn"),
            "stop_sequence": None,
            "usage": _usage_record(message.tokens or Tokens()),
        }

    def _result_of_call(
        self, message: Message, index: int, part: Part, call_uuid: str
    ) -> Record:
        """Return the line with the result that only its call has."""
        block = _result_block(_safe_id(call_of(part).id), part)
        if part.status in ("pending", "running"):
            block |= {"content": _NO_RESULT, "is_error": True}
        uuid = uuid_of(further_name(message.id, index))
        line = self._result_line(uuid, message.time_created, call_uuid, block)
        return line | _note_beside_result(part)

    # -- results -----------------------------------------------------------------

    def _result_lines(self, message: Message) -> Iterator[Record]:
        """Yield the results of calls that wait for one; a provider refuses others."""
        results = [part for part in message.parts if part.type == "tool-result"]
        for index, part in enumerate(results):
            name = _safe_id(part.call_id or "")
            digest = hash(part.text)
            if name in self._open_calls:
                self._result_digests[name] = digest
                call_uuid, _ = self._open_calls.pop(name)
                uuid = _uuid_of_line(message, index)
                block = _result_block(name, part)
                line = self._result_line(uuid, message.time_created, call_uuid, block)
                yield line | _note_beside_result(part)
            # Some programs record a result again when they continue a session.
            elif self._result_digests.get(name) != digest:
                self.lose(f"a result of call {part.call_id}", message, part=part)

        self.lose_parts(message, but={"tool-result"})

    def _result_line(
        self, uuid: str, time: int, call_uuid: str, block: Record
    ) -> Record:
        """Return the line of a result, which follows the line of its call."""
        record = {"role": "user", "content": [block]}
        keys = {"message": record, "sourceToolAssistantUUID": call_uuid}
        return self._line("user", uuid, time, **keys) | {"parentUuid": call_uuid}

    def unanswered(self) -> Iterator[Record]:
        """Yield a result for each call that has none."""
        for name, (call_uuid, time) in self._open_calls.items():
            block = {
                "type": "tool_result",
                "tool_use_id": name,
                "content": _NO_RESULT,
                "is_error": True,
            }
            uuid = uuid_of(f"{call_uuid} {name}")
            yield self._result_line(uuid, time, call_uuid, block)
        self._open_calls = {}

    # -- blocks ------------------------------------------------------------------

    def _blocks(
        self, message: Message, make_block: MakeBlock
    ) -> Iterator[tuple[Part, Record]]:
        """Yield the parts that are written, each with its block; others are lost."""
        for part in message.parts:
            block = make_block(part)
            if block is None:
                self.lose_part(part, message)
            elif block:
                yield part, block


def has_lines(answer: Message) -> bool:
    """Return whether an answer has a part that is a block, and so a line.

    A compaction always has.
    """
    if answer.kind == "compaction":
        return True
    return any(_block_of_answer(part) for part in answer.parts)


def _block_of_prompt(part: Part) -> Record | None:
    if part.type == "text":
        return _block_of_text_part(part)
    return _block_of_file(part) if part.type == "file" else None


def _block_of_answer(part: Part) -> Record | None:
    if part.type == "text":
        return _block_of_text_part(part)
    return _block_of_call(part) if part.type == "tool" else None


def _block_of_text_part(part: Part) -> Record | None:
    """Return a text as a block; the provider refuses one that is empty."""
    if part.data.get("ignored"):
        return None
    text = part.text or ""
    return _block_of_text(text) if text.strip() else {}


def _block_of_text(text: str) -> Record:
    return {"type": "text", "text": text}


def _block_of_call(part: Part) -> Record:
    call = call_of(part)
    return {
        "type": "tool_use",
        "id": _safe_id(call.id),
        "name": _UNSAFE.sub("_", call.tool)[:128],
        "input": within_64_bits(as_json(call.arguments)),
    }


def _block_of_file(part: Part) -> Record | None:
    """Return a picture or a document as a block; None for anything else."""
    file = file_of(part)
    if file.data is None or file.mime not in (*_PICTURES, "application/pdf"):
        return None
    source = {"type": "base64", "media_type": file.mime, "data": file.data}
    kind = "image" if file.mime in _PICTURES else "document"
    return {"type": kind, "source": source}


def _result_block(name: str, part: Part) -> Record:
    call = call_of(part)
    block: Record = {"type": "tool_result", "tool_use_id": name, "content": call.result}
    if part.status == "error" or part.outcome is not None:
        block |= {"content": call.failure, "is_error": True}
    return block


def _note_beside_result(part: Part) -> Record:
    """Return what the program notes beside a result that its call did not want."""
    if part.outcome == "denied":
        return {"toolUseResult": fields.REJECTED}
    if part.outcome == "interrupted":
        streams = {"stdout": "", "stderr": part.text or ""}
        return {"toolUseResult": {**streams, "interrupted": True, "isImage": False}}
    return {}


def _usage_record(tokens: Tokens) -> Record:
    """Return usage as the provider states it: a count that is not known is 0."""
    counts = without_none(asdict(tokens))
    usage: Record = {key: counts.get(name, 0) for name, key in COUNTS.items()}

    # Thoughts are counted as output, too.
    thought = counts.get("reasoning", 0)
    usage["output_tokens"] += thought
    return {**usage, "output_tokens_details": {"thinking_tokens": thought}}


def _uuid_of_line(message: Message, index: int) -> str:
    """Return the uuid of a line of a message; the first one has that of the message."""
    return uuid_of(further_name(message.id, index) if index else message.id)


def _safe_id(call_id: str) -> str:
    return _UNSAFE.sub("_", call_id)
