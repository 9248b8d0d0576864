"""Messages of any session as records of a plain log, in the preferred spelling."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from sessiondb.formats.event_log import fields
from sessiondb.formats.event_log.carried import CARRIES
from sessiondb.formats.event_log.lifting import DATA, DETAILS, plain_data
from sessiondb.formats.event_log.logs import SOURCE
from sessiondb.formats.kit.carrying import Losses
from sessiondb.formats.kit.conversion import (
    UNKNOWN,
    Losing,
    as_json,
    call_of,
    is_from,
)
from sessiondb.formats.kit.fields import (
    as_object,
    without_empty,
    without_keys,
    without_none,
)
from sessiondb.formats.kit.naming import MARK
from sessiondb.formats.kit.spelled import in_ms
from sessiondb.model import Export, Message, Part, Session

Record = dict[str, Any]
SCHEMA_VERSION = 1
_ENDED = frozenset({"completed", "error"})
#: Parts of an answer that are records of their own type, if they have a text.
_PIECES = {"text": "text_finished", "reasoning": "reasoning_finished"}


def name_of(session: Session) -> str:
    """Return the name of a session in a log, by which an import finds it again."""
    own_name = session.source_id if is_from(session, SOURCE) else None
    return own_name or session.id


class EventLogWriter(Losing):
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
        names = {
            "session_id": name_of(session),
            "cwd": session.directory,
            "title": session.title,
            "agent": session.agent,
            "provider": session.provider_id,
            "model": session.model_id,
            "version": session.version,
            "parent_session_id": self._parent(),
            "relation": session.relation,
            "parent_call_id": session.call_id,
            "share_url": session.share_url,
            "revert": as_json(session.revert),
            "permission": as_json(session.permission),
            "metadata": as_json(session.metadata),
            "time_archived": session.time_archived,
            "summary_additions": session.summary_additions,
            "summary_deletions": session.summary_deletions,
            "summary_files": session.summary_files,
        }
        return {
            "time": session.time_created,
            "type": "session_meta",
            **without_empty(names),
        }

    def _parent(self) -> str | None:
        if self.export.parent is not None:
            return name_of(self.export.parent)
        return self.session.parent_source_id or self.session.parent_id

    # -- messages --------------------------------------------------------------

    def records(self, message: Message) -> Iterator[Record]:
        """Yield the records of a message."""
        self.convert(message)
        match message.role:
            case "assistant":
                yield from self._answer(message)
            case "tool":
                yield from self._results(message)
            case "event":
                yield self._event(message)
            case _:
                yield {**self._message(message), **self._content(message.parts)}

    def _message(self, message: Message) -> Record:
        """Return a record without its parts."""
        columns = {
            "model": message.model_id,
            "provider": message.provider_id,
            "agent": message.agent,
            "response_id": message.response_id,
            "finish": message.finish,
            "error": as_json(message.error),
        }
        type_ = fields.type_of(message.role, message.kind)
        if message.role != "event" or type_ == fields.EVENT:
            columns["kind"] = message.kind
        return {
            "time": message.time_created,
            "type": type_,
            "message_id": message.id,
            **without_none(columns),
            **without_empty({DATA: plain_data(message.data)}),
        }

    def _event(self, message: Message) -> Record:
        # In a log the sources are beside the text of a context.
        apart = [
            part
            for part in message.parts
            if message.kind == "context" and part.type == "source"
        ]
        parts = [part for part in message.parts if part not in apart]
        counts = _counts(message)
        return {
            **self._message(message),
            **self._content(parts),
            **without_empty({"sources": [_source(part) for part in apart]}),
            **({fields.COUNTED: True, **counts} if counts else {}),
        }

    def _answer(self, message: Message) -> Iterator[Record]:
        ids = {"message_id": message.id}
        columns = {
            "model": message.model_id,
            "provider": message.provider_id,
            "agent": message.agent,
            "kind": message.kind,
            "response_id": message.response_id,
        }
        end = {
            **_counts(message),
            "finish": message.finish,
            "error": as_json(message.error),
        }
        is_open = message.time_completed is None
        yield {
            "time": message.time_created,
            "type": fields.STARTED,
            **ids,
            **without_none({**columns, **(end if is_open else {})}),
            **without_empty({DATA: plain_data(message.data)}),
        }
        for part in message.parts:
            yield {**self._piece(part, message), **ids}
        if not is_open:
            ended = {"time": message.time_completed, "type": fields.FINISHED}
            yield {**ended, **ids, **without_none(end)}

        for part in message.parts:
            is_call = part.type == "tool" and not _is_without_id(part)
            if is_call and part.status in _ENDED:
                yield _result(message, part)

    def _piece(self, part: Part, message: Message) -> Record:
        """Return the record of a part of an answer; an unknown start is null."""
        began: Record = {"time": part.time_started}
        if part.time_started is not None and not in_ms(part.time_started):
            loss = "a time before 1973, which is none in a log"
            self.lose(loss, message, part=part, field="time_started")
            began = {"time": None}
        if part.type == "tool" and not _is_without_id(part):
            return {**began, "type": fields.CALLED, **self._call(part)}
        if part.type in _PIECES and part.text is not None:
            data = without_empty({DATA: plain_data(part.data)})
            return {**began, "type": _PIECES[part.type], "text": part.text, **data}
        return {**began, "type": fields.PART, fields.PART: self._block(part)}

    def _results(self, message: Message) -> Iterator[Record]:
        others = []
        data = without_empty({DATA: plain_data(message.data)})
        for part in message.parts:
            if part.type != "tool-result":
                others.append(part)
            # The same text may be with the call: then it was written there.
            elif part.text is not None:
                yield {**_result(message, part), **data}
                data = {}
        if others:
            record = {**self._message(message), **self._content(others)}
            yield {**record, "type": fields.RETURNED_PARTS}

    # -- parts -----------------------------------------------------------------

    def _content(self, parts: Sequence[Part]) -> Record:
        """Return the parts of a record; a single text is written as one."""
        if [(part.type, part.synthetic, dict(part.data)) for part in parts] == [
            ("text", False, {})
        ]:
            return {"text": parts[0].text or ""}
        return without_empty({"content": [self._block(part) for part in parts]})

    def _block(self, part: Part) -> Record:
        if part.type == "file":
            return self._file(part)
        text = {"text": part.text}
        data = without_empty({DATA: plain_data(part.data)})
        block = {"type": part.type, **without_none(text), **data}
        if part.synthetic:
            block["synthetic"] = True
        if part.type == "tool":
            ended = {
                "status": part.status,
                "outcome": part.outcome,
                "time_ended": part.time_ended,
            }
            block |= {**self._call(part), **without_none(ended)}
        if part.type == "source":
            block |= without_none({"title": part.title, "input": as_json(part.input)})
        return block

    def _file(self, part: Part) -> Record:
        data = part.data
        mime, content = data.get("mime"), data.get("content")
        block: Record = {"type": "image" if _is_picture(mime) else "file"}
        if isinstance(content, bytes):
            block["data"] = base64.b64encode(content).decode()
        spellings = {"url": "url", "mime": "mime_type", "filename": "name"}
        taken = {key: block_key for key, block_key in spellings.items() if key in data}
        for key, block_key in taken.items():
            block[block_key] = data[key]
        others = without_keys({*taken, "content"}, data)
        return {**block, **without_empty({DETAILS: plain_data(others)})}

    def _call(self, part: Part) -> Record:
        columns = {
            "call_id": part.call_id,
            "name": part.tool or UNKNOWN,
            "title": part.title,
            "status": "running" if part.status == "running" else None,
        }
        # Without arguments there is no key: null would be others.
        if part.input_json is not None:
            columns["arguments"] = as_json(part.input)
        data = without_empty({DATA: plain_data(part.data)})
        return {**without_none(columns), **data}


def _is_without_id(call: Part) -> bool:
    """Return whether no result could name a call that has ended."""
    return call.call_id is None and call.status in _ENDED


def _is_picture(mime: Any) -> bool:
    return isinstance(mime, str) and mime.startswith("image/")


def _counts(message: Message) -> Record:
    """Return the usage and the cost of a message, if they are known."""
    usage = message.tokens and without_none(asdict(message.tokens))
    return without_none({"usage": usage, "cost": message.cost})


def _source(part: Part) -> Record:
    source = as_object(part.input)
    # A name is known as a path, too, where no path is.
    name = None if "path" in source else part.title
    return {**source, **without_none({"name": name, "content": part.text})}


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
