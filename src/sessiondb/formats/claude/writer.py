"""Messages of any session as lines of Claude Code.

An answer has a line for each of its blocks, and each result is a line that follows the
line of its call. The program refuses a call without a result, and a result without a
call, so every call gets one and no other result is written. Thoughts of other programs
carry no signature and are left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from itertools import filterfalse
from typing import Any

from sessiondb.formats.claude import fields
from sessiondb.formats.claude.carried import CARRIES
from sessiondb.formats.content import file_of
from sessiondb.formats.kit.carrying import Losses
from sessiondb.formats.kit.conversion import (
    SAID_FOR_USER,
    UNKNOWN,
    Losing,
    arguments,
    as_json,
    call_of,
    shown_text,
    within_64_bits,
)
from sessiondb.formats.kit.fields import without_none
from sessiondb.formats.kit.naming import further, uuid_of
from sessiondb.formats.kit.texts import text_of_time
from sessiondb.model import Export, Message, Part, Tokens

Record = dict[str, Any]
_STOP: Mapping[str | None, str | None] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool-calls": "tool_use",
    "cancelled": None,
}
#: Names and ids of calls that the provider takes.
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
_NO_RESULT = "[no result: the call was interrupted]"
_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")


class Writer(Losing):
    """The lines of one session, whose *messages* are known; ``losses`` grow.

    *place* are the keys of each line that name the session. ``last`` is the uuid of the
    line that the next one follows, ``began`` the time of the earliest one.
    """

    CARRIES = CARRIES

    def __init__(
        self,
        export: Export,
        place: Record,
        losses: Losses,
        messages: Iterable[Message] = (),
    ) -> None:
        super().__init__(export, losses)
        session = export.session
        self.last: str | None = None
        #: The time of the earliest line, in Unix ms.
        self.began: int | None = None
        self._envelope: Record = {
            "isSidechain": False,
            "userType": "external",
            "entrypoint": fields.WRITER,
            "cwd": session.directory,
            "version": fields.VERSION,
            **place,
        }
        #: When the calls ended whose results are messages, in Unix ms.
        self._answered = {
            part.call_id: message.time_created
            for message in messages
            for part in message.parts
            if message.role == "tool" and _is_result(part)
        }
        #: The answer whose calls wait for results.
        self._answering: Message
        #: The lines of the calls that have no result yet, and their times.
        self._open: dict[str, tuple[str, int]] = {}
        #: The digests of the results that were written, by the names of their calls.
        self._results: dict[str, int] = {}

    def lines(self, message: Message) -> Iterator[Record]:
        """Yield the lines of *message*."""
        self.convert(message)
        make = _KINDS.get(message.kind) or _ROLES.get(message.role, Writer._event)
        yield from make(self, message)

    def prompt(self, message: Message) -> Iterator[Record]:
        """Yield the line of a prompt."""
        blocks = [block for _, block in self._blocks(message, _TYPED)]
        yield from self._said(message, blocks)

    def _event(self, message: Message) -> Iterator[Record]:
        if message.kind in SAID_FOR_USER and shown_text(message):
            yield from self._said(message, [_words(self.shown(message))], isMeta=True)
        else:
            self.lose_message(message)

    def title(self) -> Iterator[Record]:
        """Yield the line of the title, unless it is derived from the first prompt."""
        if self.session.title and self.session.title_source != "derived":
            name = self._envelope["sessionId"]
            named = {"type": "custom-title", "customTitle": self.session.title}
            yield {**named, "sessionId": name}

    # -- lines -------------------------------------------------------------------

    def _line(self, kind: str, uuid: str, when: int, **fields_: Any) -> Record:
        if self.began is None or when < self.began:
            self.began = when
        line = {
            "parentUuid": self.last,
            **self._envelope,
            "type": kind,
            **fields_,
            "uuid": uuid,
            "timestamp": text_of_time(when),
        }
        self.last = uuid
        return line

    def _said(
        self, message: Message, blocks: list[Record], **flags: Any
    ) -> Iterator[Record]:
        """Yield a line of the user, unless nothing is in it."""
        yield from self.unanswered()
        if not blocks:
            return
        if all(part.data.get("synthetic") for part in message.parts):
            flags.setdefault("isMeta", True)
        is_text = len(blocks) == 1 and blocks[0]["type"] == "text"
        content = blocks[0]["text"] if is_text else blocks
        said = {"role": "user", "content": content}
        name = uuid_of(message.id)
        yield self._line("user", name, message.time_created, message=said, **flags)

    def compaction(self, message: Message) -> Iterator[Record]:
        """Yield the boundary that cuts the chain, and the summary."""
        if message.error is not None:
            self.lose_message(message)
            return
        yield from self.unanswered()
        before, self.last = self.last, None
        known = {
            "subtype": "compact_boundary",
            "content": "Conversation compacted",
            "isMeta": False,
            "level": "info",
            "logicalParentUuid": before,
            "compactMetadata": {"trigger": "manual", "preTokens": 0},
        }
        when = message.time_created
        boundary = uuid_of(further(message.id, 0))
        yield self._line("system", boundary, when, **known)

        summaries = message.text, message.data.get("summary"), "[no summary]"
        said = {"role": "user", "content": str(next(filter(None, summaries)))}
        flags: Record = {"isVisibleInTranscriptOnly": True, "isCompactSummary": True}
        # The program records no usage there: these keys are beside its own.
        spent = {
            "usage": message.tokens and _usage(message.tokens),
            fields.COST: message.cost,
        }
        flags |= without_none(spent)
        name = uuid_of(message.id)
        yield self._line("user", name, when, message=said, **flags)

    # -- answers -----------------------------------------------------------------

    def answer(self, message: Message) -> Iterator[Record]:
        """Yield a line for each block, and the results that only the calls have."""
        written: list[tuple[Part, str]] = []
        # The program finds the results of all calls of one answer, not of several.
        if not self._open:
            self._answering = message
        base = self._base(message) | {"id": _answer_id(self._answering)}
        blocks = list(self._blocks(message, _GENERATED))
        if not blocks:
            self.lose_message(message)
        # Each line of an answer repeats it, as its usage.
        spent = without_none({fields.COST: message.cost})

        for index, (part, block) in enumerate(blocks):
            own = _uuid(message, index)
            made = part.time_created or message.time_created
            if index == 0 and made != message.time_created:
                self.lose(message=message, field="time_created")
            said = {**base, "content": [block]}
            request = f"req_{uuid_of(self._answering.id)}"
            known = {"message": said, "requestId": request, **spent}
            yield self._line("assistant", own, made, **known)
            if part.type == "tool":
                if block["input"] != as_json(arguments(part)):
                    self.lose(message=message, part=part, field="input_json")
                written.append((part, own))

        for index, (part, own) in enumerate(written, start=len(blocks)):
            end = self._answered.get(part.call_id, message.time_created)
            if part.time_ended not in (None, end):
                self.lose(message=message, part=part, field="time_ended")
            name = call_of(part).id
            if part.call_id in self._answered:
                self._open[_id(name)] = own, message.time_created
            else:
                yield self._result_of(message, index, part, own)

    def _base(self, message: Message) -> Record:
        """Return the message of an answer without its content; each line repeats it."""
        known = message.model_id or (UNKNOWN if message.tokens else fields.SYNTHETIC)
        return {
            "id": _answer_id(message),
            "type": "message",
            "role": "assistant",
            "model": known,
            "stop_reason": _STOP.get(message.finish, "end_turn"),
            "stop_sequence": None,
            "usage": _usage(message.tokens or Tokens()),
        }

    def results(self, message: Message) -> Iterator[Record]:
        """Yield the results of calls that wait for one; a provider refuses others."""
        for index, part in enumerate(filter(_is_result, message.parts)):
            name = _id(part.call_id or "")
            above, _ = self._open.pop(name, (None, 0))
            if above is None:
                # Some programs record a result again when they continue a session.
                if self._results.get(name) != hash(part.text):
                    why = f"a result of call {part.call_id}"
                    self.lose(why, message, part=part)
                continue

            self._results[name] = hash(part.text)
            own = _uuid(message, index)
            block = _answered(name, part)
            line = self._result(message.time_created, own, above, block)
            yield line | _noted(part)

        for part in filterfalse(_is_result, message.parts):
            self.lose_part(part, message)

    def _result_of(
        self, message: Message, index: int, part: Part, above: str
    ) -> Record:
        """Return the line with the result that only its call has."""
        call = call_of(part)
        block = _answered(_id(call.id), part)
        if part.status in ("pending", "running"):
            block |= {"content": _NO_RESULT, "is_error": True}
        own = uuid_of(further(message.id, index))
        line = self._result(message.time_created, own, above, block)
        return line | _noted(part)

    def _result(self, when: int, own: str, above: str, block: Record) -> Record:
        said = {"role": "user", "content": [block]}
        known = {"message": said, "sourceToolAssistantUUID": above}
        line = self._line("user", own, when, **known)
        return line | {"parentUuid": above}

    def unanswered(self) -> Iterator[Record]:
        """Yield a result for each call that has none."""
        for name, (above, when) in self._open.items():
            block = {"type": "tool_result", "tool_use_id": name, "content": _NO_RESULT}
            own = uuid_of(f"{above} {name}")
            yield self._result(when, own, above, {**block, "is_error": True})
        self._open = {}

    # -- blocks ------------------------------------------------------------------

    def _blocks(
        self, message: Message, makers: Mapping[str, Callable[[Part], Record | None]]
    ) -> Iterator[tuple[Part, Record]]:
        """Yield the parts that are written, each with its block; others are lost."""
        for part in message.parts:
            make = makers.get(part.type, _nothing)
            block = make(part)
            if block is None:
                self.lose_part(part, message)
            elif block:
                yield part, block


def has_lines(answer: Message) -> bool:
    """Return whether an answer has a part that is a block, and so a line.

    A compaction always has.
    """
    if answer.kind in _KINDS:
        return True
    makers = [_GENERATED.get(part.type, _nothing) for part in answer.parts]
    return any(make(p) for make, p in zip(makers, answer.parts, strict=True))


_Maker = Callable[[Writer, Message], Iterator[Record]]
#: The lines of messages: by their kind, else by their role.
_KINDS: Mapping[str | None, _Maker] = {"compaction": Writer.compaction}
_ROLES: Mapping[str, _Maker] = {
    "assistant": Writer.answer,
    "tool": Writer.results,
    "user": Writer.prompt,
}


def _uuid(message: Message, index: int) -> str:
    """Return the uuid of a line of a message; the first one has that of the message."""
    return uuid_of(further(message.id, index) if index else message.id)


def _answer_id(message: Message) -> str:
    return message.response_id or f"msg_{uuid_of(message.id)}"


def _usage(tokens: Tokens) -> Record:
    """Return usage as the provider states it: what is not known is 0."""
    known = without_none(asdict(tokens))
    counts = {there: known.get(here, 0) for here, there in fields.COUNTS.items()}

    # Thoughts are counted as output, too.
    thought = known.get("reasoning", 0)
    counts["output_tokens"] += thought
    return {**counts, "output_tokens_details": {"thinking_tokens": thought}}


def _words(text: str) -> Record:
    return {"type": "text", "text": text}


def _text(part: Part) -> Record | None:
    """Return a text as a block; the provider refuses one that is empty."""
    if part.data.get("ignored"):
        return None
    text = part.text or ""
    return _words(text) if text.strip() else {}


def _nothing(_: Part) -> None:
    return None


def _is_result(part: Part) -> bool:
    return part.type == "tool-result"


def _id(name: str) -> str:
    return _UNSAFE.sub("_", name)


def _call(part: Part) -> Record:
    call = call_of(part)
    name = _UNSAFE.sub("_", call.tool)[:128]
    given = within_64_bits(as_json(call.arguments))
    return {"type": "tool_use", "id": _id(call.id), "name": name, "input": given}


def _answered(name: str, part: Part) -> Record:
    call = call_of(part)
    block: Record = {"type": "tool_result", "tool_use_id": name, "content": call.result}
    if part.status == "error" or part.outcome is not None:
        block |= {"content": call.failure, "is_error": True}
    return block


def _noted(part: Part) -> Record:
    """Return what the program notes beside a result that its call did not want."""
    if part.outcome == "denied":
        return {"toolUseResult": fields.REJECTED}
    if part.outcome == "interrupted":
        streams = {"stdout": "", "stderr": part.text or ""}
        return {"toolUseResult": {**streams, "interrupted": True, "isImage": False}}
    return {}


def _file(part: Part) -> Record | None:
    """Return a picture or a document as a block; None for anything else."""
    file = file_of(part)
    if file.data is None or file.mime not in (*_PICTURES, "application/pdf"):
        return None
    source = {"type": "base64", "media_type": file.mime, "data": file.data}
    kind = "image" if file.mime in _PICTURES else "document"
    return {"type": kind, "source": source}


#: The blocks of parts in prompts and in answers, None for one that is lost.
_TYPED: Mapping[str, Callable[[Part], Record | None]] = {"text": _text, "file": _file}
_GENERATED: Mapping[str, Callable[[Part], Record | None]] = {
    "text": _text,
    "tool": _call,
}
