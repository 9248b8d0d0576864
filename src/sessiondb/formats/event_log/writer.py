"""Messages of any session as records of a plain log, in the preferred spelling."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from functools import partial
from itertools import filterfalse
from typing import Any

from sessiondb.formats.content import file_of
from sessiondb.formats.event_log import fields
from sessiondb.formats.event_log.carried import CARRIES
from sessiondb.formats.event_log.logs import SOURCE
from sessiondb.formats.kit.carrying import Losses
from sessiondb.formats.kit.conversion import (
    Losing,
    as_json,
    call_of,
    is_from,
    shown_part,
)
from sessiondb.formats.kit.fields import as_object, filled, without_none
from sessiondb.formats.kit.naming import MARK
from sessiondb.model import Export, Message, Part, Session

Record = dict[str, Any]
SCHEMA_VERSION = 1
_ENDED = frozenset({"completed", "error"})


def name_of(session: Session) -> str:
    """Return the name of a session in a log, by which an import finds it again."""
    own = session.source_id if is_from(session, SOURCE) else None
    return own or session.id


class Writer(Losing):
    """The records of one session; ``losses`` grow while they are made."""

    CARRIES = CARRIES

    def __init__(self, export: Export, losses: Losses) -> None:
        super().__init__(export, losses)
        self._last = -1

    def follow(self, record: Record) -> Record:
        """Note the number of a *record* that has one, and return it."""
        seq = record.get("seq")
        self._last = max(self._last, seq) if type(seq) is int else self._last
        return record

    def numbered(self, record: Record) -> Record:
        """Return a record with its version and number."""
        self._last += 1
        return {"schema_version": SCHEMA_VERSION, "seq": self._last, **record}

    def meta(self) -> Record:
        """Return the first record."""
        session = self.session
        named = {
            "session_id": name_of(session),
            "cwd": session.directory,
            "title": session.title,
            "agent": session.agent,
            "provider": session.provider_id,
            "model": session.model_id,
            "version": session.version,
            "parent_session_id": self._parent(),
            "relation": session.relation,
        }
        return {"time": session.time_created, "type": "session_meta", **filled(named)}

    def _parent(self) -> str | None:
        if self.export.parent is not None:
            return name_of(self.export.parent)
        return self.session.parent_source_id or self.session.parent_id

    # -- messages --------------------------------------------------------------

    def records(self, message: Message) -> Iterator[Record]:
        """Yield the records of a message."""
        self.convert(message)
        makers = {
            "assistant": self._answer,
            "tool": self._results,
            "event": self._event,
        }
        yield from makers.get(message.role, self._single)(message)

    def _single(self, message: Message) -> Iterator[Record]:
        named = {"type": fields.type_of(message), "message_id": message.id}
        yield {"time": message.time_created, **named, **self._said(message)}

    def _event(self, message: Message) -> Iterator[Record]:
        if message.kind == "usage":
            self.lose_message(message)
            return

        # In a log the sources are beside the text of a context.
        apart = _APART.get(message.kind, _no_source)
        sources = list(map(_source, filter(apart, message.parts)))
        beside = map(_as_text, filterfalse(apart, message.parts))
        said = replace(message, parts=tuple(beside))
        for record in self._single(said):
            yield {**as_json(message.data), **record, **filled({"sources": sources})}

    def _answer(self, message: Message) -> Iterator[Record]:
        named = {"message_id": message.id}
        model = {"model": message.model_id, "provider": message.provider_id}
        begun = {"time": message.time_created, "type": fields.STARTED}
        yield {**begun, **named, **without_none({**model, "agent": message.agent})}

        if message.time_completed is not None:
            ended = {"time": message.time_completed, "type": fields.FINISHED}
            end = {
                "usage": message.tokens and without_none(asdict(message.tokens)),
                "cost": message.cost,
                "finish": message.finish,
                "error": as_json(message.error),
            }
            yield {**ended, **named, **self._said(message), **without_none(end)}

        calls = [part for part in message.parts if part.type == "tool"]
        yield from ({**_call(part), **named} for part in calls)
        yield from map(partial(_result, message), filter(_has_ended, calls))

    def _results(self, message: Message) -> Iterator[Record]:
        for part in message.parts:
            if part.type == "tool-result":
                # The same text may be with the call: then it was written there.
                if part.text is not None:
                    yield _result(message, part)
            else:
                self.lose_part(part, message)

    # -- parts -----------------------------------------------------------------

    def _said(self, message: Message) -> Record:
        reasons = (part.text for part in message.parts if part.type == "reasoning")
        reasoning = "\n".join(filter(None, reasons))
        blocks = [*self._blocks(message)]

        # A single text is written as one, also if it is empty.
        if [block["type"] for block in blocks] == ["text"]:
            return {**filled({"reasoning": reasoning}), "text": blocks[0]["text"]}
        return filled({"reasoning": reasoning, "content": blocks})

    def _blocks(self, message: Message) -> Iterator[Record]:
        for part in message.parts:
            make = _BLOCKS.get(part.type)
            if make is not None:
                yield make(part)
            elif part.type not in _ELSEWHERE:
                self.lose_part(part, message)


def _as_text(part: Part) -> Part:
    """Return a command that the user ran as a text; any other part as it is."""
    if part.type != "tool":
        return part
    return replace(part, type="text", text=shown_part(part))


#: Parts that are not in the content of a record.
_ELSEWHERE = frozenset({"reasoning", "tool"})


def _text(part: Part) -> Record:
    return {"type": "text", "text": part.text or ""}


def _file(part: Part) -> Record:
    file = file_of(part)
    known = {"mime_type": file.mime, "name": file.name}
    if file.data is not None:
        return {"type": "image", "data": file.data, **without_none(known)}
    return {"type": "file", "url": file.url, **without_none(known)}


_BLOCKS: Mapping[str, Callable[[Part], Record]] = {"text": _text, "file": _file}


def _is_source(part: Part) -> bool:
    return part.type == "source"


def _no_source(_: Part) -> bool:
    return False


#: The parts of an event that its record has as sources, by the kind of the event.
_APART: Mapping[str | None, Callable[[Part], bool]] = {"context": _is_source}


def _source(part: Part) -> Record:
    said = as_object(part.input)
    # A name is known as a path, too, where no path is.
    name = None if "path" in said else part.title
    return {**said, **without_none({"name": name, "content": part.text})}


def _call(part: Part) -> Record:
    call = call_of(part)
    return {
        "time": call.start,
        "type": fields.CALLED,
        "call_id": call.id,
        "name": call.tool,
        "arguments": as_json(call.arguments),
    }


def _has_ended(call: Part) -> bool:
    return call.status in _ENDED


def _result(message: Message, part: Part) -> Record:
    call = call_of(part)
    record: Record = {
        "time": call.end or part.time_updated or call.start,
        "type": fields.RETURNED,
        "call_id": call.id,
        MARK: message.id,
    }
    if part.status == "error" or part.outcome:
        return record | {"error": call.failure, "outcome": part.outcome or "failed"}
    return record | {"output": call.result}
