"""A message as an entry: which of its parts are shown, in which order, and what is folded."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from sessiondb.formats.content import error_text, file_of
from sessiondb.formats.transcript.blocks import Block, Code, Entry, Fold, Note, Prose
from sessiondb.formats.transcript.calls import call, cut_all, language_of
from sessiondb.formats.transcript.changes import ending
from sessiondb.formats.transcript.detail import Detail
from sessiondb.formats.transcript.pictures import Album
from sessiondb.formats.transcript.shapes import as_json
from sessiondb.model import Message, Part
from sessiondb.words import excerpt, money, size, tokens

#: Parts and events that only the agent's bookkeeping needs.
BOOKKEEPING = frozenset({"step-start", "step-finish", "snapshot", "patch"})
QUIET = frozenset(
    {"idle", "label", "title_change", "archive", "session_init", "rules", "usage"}
)
#: How a message ends that is worth a note.
CUT_SHORT = frozenset({"length", "cancelled", "error"})
_SUMMARIES = {
    "compaction": "Context compacted",
    "branch_summary": "Summary of another branch",
}
_CHANGES = {
    "model_change": "Model",
    "mode_change": "Mode",
    "thinking_level_change": "Thinking",
}
_ENDS = {"cancelled": "Cancelled", "failed": "Failed"}
#: Who speaks, by role; and if the message names no agent.
_SPEAKERS = {"user": "Prompt", "system": "System", "event": ""}
_UNNAMED = {"tool": "Tool"}

Children = Callable[[Part], tuple[Block, ...]]


def no_children(part: Part) -> tuple[Block, ...]:
    """Return the sessions that a call started where none are shown."""
    del part
    return ()


class Composer:
    """Composes the entries of one session; keeps which results are shown with their calls.

    *children* returns the sessions that a call started, *anchor* begins the anchors.
    """

    def __init__(
        self,
        detail: Detail,
        album: Album,
        children: Children = no_children,
        anchor: str = "",
    ) -> None:
        self._detail, self._album, self._children = detail, album, children
        self._anchor = anchor
        self._results: dict[str, int] = {}
        self._parts: dict[str, Callable[[Message, Part], Iterator[Block]]] = {
            "text": self._text,
            "reasoning": self._reasoning,
            "tool": self._call,
            "tool-result": self._result,
            "file": self._file,
            "agent": self._agent,
            "compaction": self._compaction,
        }
        if not detail.records:
            self._parts |= dict.fromkeys(BOOKKEEPING, self._nothing)
        self._events: dict[str, Callable[[Message, str], Iterator[Block]]] = {
            **dict.fromkeys(_SUMMARIES, self._summary),
            **dict.fromkeys(_CHANGES, self._change),
            **dict.fromkeys(_ENDS, self._end),
        }

    def entry(self, message: Message, labels: Iterable[str] = ()) -> Entry:
        """Return *message* as an entry; its blocks are empty if nothing is shown."""
        blocks = [*self._blocks(message), *_ending(message)]
        if self._detail.records:
            blocks += _kept(message)

        answer = message.role == "assistant"
        return Entry(
            f"{self._anchor}m{message.seq}",
            message.role,
            _speaker(message),
            message.time_created,
            excerpt(message.model_id or "") if answer else "",
            tuple(self._facts(message, labels)),
            tuple(blocks),
            message=message,
        )

    def _facts(self, message: Message, labels: Iterable[str]) -> Iterator[str]:
        yield from (f"label: {label}" for label in labels)
        if message.role != "assistant":
            return
        if self._detail.records:
            if message.cost is not None:
                yield money(message.cost)
            if known := message.tokens:
                yield f"{tokens(known.columns())} tokens"
        if not message.time_completed:
            yield "still open"

    def _blocks(self, message: Message) -> Iterator[Block]:
        kind = message.kind or "event"
        if kind in _SUMMARIES:
            return self._summary(message, kind)
        if message.role == "event":
            return self._events.get(kind, self._event)(message, kind)
        if message.role == "system":
            return self._system(message)
        return self._said(message)

    def _said(self, message: Message) -> Iterator[Block]:
        for part in message.parts:
            yield from self._parts.get(part.type, self._other)(message, part)

    def _system(self, message: Message) -> Iterator[Block]:
        if self._detail.asides:
            blocks = tuple(self._said(message))
            yield Fold("system", "System text", excerpt(message.text), blocks=blocks)

    # Parts.

    def _nothing(self, message: Message, part: Part) -> Iterator[Block]:
        del message, part
        return iter(())

    def _text(self, message: Message, part: Part) -> Iterator[Block]:
        text = part.text or ""
        if not text.strip():
            return

        added = part.data.get("synthetic") or part.data.get("ignored")
        if not added or message.role != "user":
            yield Prose(text)
        elif self._detail.asides:
            yield self._note("Added by the program", excerpt(text), [Code(text)])

    def _reasoning(self, message: Message, part: Part) -> Iterator[Block]:
        del message
        text = part.text or ""
        if self._detail.asides and text.strip():
            prose = (Prose(text),)
            yield Fold("reasoning", "Reasoning", excerpt(text), blocks=prose)

    def _call(self, message: Message, part: Part) -> Iterator[Block]:
        del message
        if part.call_id is not None:
            # The hash alone: what a long session holds of its results stays small.
            self._results[part.call_id] = hash(part.text)
        yield call(part, self._detail, self._album, self._children(part))

    def _result(self, message: Message, part: Part) -> Iterator[Block]:
        del message
        text, call_id = part.text, part.call_id or ""
        if text and self._results.get(call_id) != hash(text):
            yield self._note("Result", call_id, [Code(text, language_of(text))])

    def _file(self, message: Message, part: Part) -> Iterator[Block]:
        del message
        file = file_of(part)
        address = file.url or ""
        if address.startswith("data:"):
            address = ""
        # A file without a name is called by its address.
        name = file.name or address or "file"
        if name == address:
            address = ""
        if file.mime.startswith("image/"):
            yield self._album.picture(excerpt(name), file.mime, file.data, address)
            return

        raw = base64.b64decode(file.data) if file.data else b""
        text = _text_of(raw)
        facts = (file.mime, size(len(raw))) if raw else (file.mime,)
        if text is None:
            self._album.losses.append(f"the file {excerpt(name)} ({', '.join(facts)})")
        codes = [Code(text, ending(name))] if text else []
        yield self._note("File", excerpt(name), codes, facts, address)

    def _agent(self, message: Message, part: Part) -> Iterator[Block]:
        name = part.data.get("name")
        if isinstance(name, str):
            yield Note(f"@{name}")
        else:
            yield from self._other(message, part)

    def _compaction(self, message: Message, part: Part) -> Iterator[Block]:
        del message
        automatic = " (automatic)" if part.data.get("auto") else ""
        yield Note(f"Context compaction{automatic}")

    def _other(self, message: Message, part: Part) -> Iterator[Block]:
        del message
        if not self._detail.asides:
            return

        text = part.text or ""
        codes = [Code(text)] if text else []
        if part.data and (not text or self._detail.records):
            codes.append(Code(as_json(part.data), "json"))
        yield self._note(name_of(part.type), excerpt(part.title or text), codes)

    # Events, and messages that summarise others.

    def _summary(self, message: Message, kind: str) -> Iterator[Block]:
        text = message.text
        shown = self._detail.asides and text.strip()
        yield Fold("note", _SUMMARIES[kind], blocks=(Prose(text),) if shown else ())

    def _change(self, message: Message, kind: str) -> Iterator[Block]:
        value = excerpt(_setting(message))
        if self._detail.asides and value:
            yield Note(f"{_CHANGES[kind]}: {value}")

    def _end(self, message: Message, kind: str) -> Iterator[Block]:
        del message
        yield Note(_ENDS[kind], "error")

    def _event(self, message: Message, kind: str) -> Iterator[Block]:
        if any(part.type == "tool" for part in message.parts):
            yield from self._said(message)
        elif not self._detail.asides:
            return
        elif message.text.strip():
            yield self._context(message, kind)
        elif kind not in QUIET or self._detail.records:
            yield Note(name_of(kind))
            yield from self._said(message)

    def _context(self, message: Message, kind: str) -> Fold:
        subject = message.data.get("name") or message.data.get("path")
        if not isinstance(subject, str):
            subject = message.text
        return self._note(name_of(kind), excerpt(subject), [Code(message.text)])

    def _note(
        self,
        label: str,
        subject: str,
        codes: list[Code],
        facts: tuple[str, ...] = (),
        address: str = "",
    ) -> Fold:
        blocks = tuple(cut_all(codes, self._detail)) if self._detail.bodies else ()
        return Fold("note", label, subject, facts, blocks=blocks, address=address)


def name_of(kind: str) -> str:
    """Return the name of a kind of event or part as words."""
    return excerpt(re.sub(r"[_-]+", " ", kind)).capitalize()


def _speaker(message: Message) -> str:
    if message.role in _SPEAKERS:
        return _SPEAKERS[message.role]
    return message.agent or _UNNAMED.get(message.role, "Assistant")


def _ending(message: Message) -> Iterator[Note]:
    if message.error is not None:
        yield Note(f"Error: {error_text(message.error) or 'unknown'}", "error")
    elif message.finish in CUT_SHORT:
        yield Note(f"Ended: {message.finish}", "error")


def _kept(message: Message) -> Iterator[Fold]:
    """Yield the raw records that a message keeps besides what is shown."""
    records = {"Error": message.error, "Kept by the program": message.data}
    for label, record in records.items():
        if record and isinstance(record, Mapping):
            yield Fold("note", label, blocks=(Code(as_json(record), "json"),))


def _setting(message: Message) -> str:
    """Return the new value of what an event changed; empty if it is unknown."""
    if message.kind == "model_change":
        return "/".join(filter(None, [message.provider_id, message.model_id]))
    if message.kind == "mode_change" and message.agent:
        return message.agent

    for key in ("level", "thinkingLevel", "mode", "to"):
        value = message.data.get(key)
        if isinstance(value, str):
            return value
    texts = [message.text, *(part.text for part in message.parts)]
    return next(filter(None, texts), "")


def _text_of(raw: bytes) -> str | None:
    """Return the text of a file, or None if it is binary."""
    try:
        return None if b"\0" in raw else raw.decode()
    except UnicodeDecodeError:
        return None
