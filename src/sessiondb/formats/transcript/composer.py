"""A message as an entry: which parts are shown, in which order, what is folded."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from sessiondb.dataclass import replace
from sessiondb.formats.content import File, error_text, file_of
from sessiondb.formats.kit.fields import as_object
from sessiondb.formats.transcript.blocks import (
    Block,
    Code,
    Fold,
    Note,
    Prose,
    TranscriptEntry,
)
from sessiondb.formats.transcript.calls import call_fold, cut_all, output_code
from sessiondb.formats.transcript.changes import file_ending
from sessiondb.formats.transcript.detail import Detail
from sessiondb.formats.transcript.facts import model_name
from sessiondb.formats.transcript.pictures import Album
from sessiondb.formats.transcript.shapes import as_json, is_text, texts_at
from sessiondb.model import Message, Part
from sessiondb.words import excerpt, price, size, tokens

#: Parts that only the agent's bookkeeping needs.
BOOKKEEPING = frozenset({"step-start", "step-finish", "snapshot", "patch"})
#: Events without a text that are shown: the context of what follows depends on them.
_NAMED = frozenset({"reset", "context"})
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
#: Messages that no person and no model wrote.
_ADDED = "Added by the program"

#: The type of a file of which none is known.
_UNKNOWN_MIME = "application/octet-stream"

Children = Callable[[Part], tuple[Block, ...]]


def no_children(part: Part) -> tuple[Block, ...]:
    """Return the sessions that a call started if none are shown."""
    del part
    return ()


class Composer:
    """Composes the entries of one session; remembers which results calls have shown.

    *children* returns the sessions that a call started, *anchor* begins the anchors.
    Files below *directory* are named by their place in it.
    """

    def __init__(
        self,
        detail: Detail,
        album: Album,
        children: Children = no_children,
        anchor: str = "",
        directory: str = "",
    ) -> None:
        self._detail, self._album, self._children = detail, album, children
        self._anchor, self._directory = anchor, directory
        self._results: dict[str, int] = {}

    def blocks(self, message: Message) -> list[Block]:
        """Return what is shown of *message*; may be empty."""
        blocks: list[Block] = [*self._message_blocks(message), *_ending_notes(message)]
        if self._detail.records:
            blocks += _kept_records(message)
        return blocks

    def entry(self, message: Message, labels: Iterable[str] = ()) -> TranscriptEntry:
        """Return *message* as an entry; its blocks are empty if nothing is shown."""
        facts = [f"label: {label}" for label in labels]
        facts += [fact for fact in self._answer_facts(message) if fact]
        who = "Prompt" if message.role == "user" else message.agent or "Assistant"
        # Messages that are not answers only record which model was chosen.
        model_id = message.model_id if message.role == "assistant" else None
        return TranscriptEntry(
            anchor=f"{self._anchor}m{message.seq}",
            role=message.role,
            who=who,
            time=message.time_created,
            model=excerpt(model_id or ""),
            facts=tuple(facts),
            blocks=tuple(self.blocks(message)),
            message=message,
        )

    def _answer_facts(self, message: Message) -> Iterator[str]:
        if message.role != "assistant":
            return
        if self._detail.records:
            yield price(message.cost)
            if message.tokens:
                yield f"{tokens(message.tokens.columns())} tokens"
        if not message.time_completed:
            yield "still open"

    def _message_blocks(self, message: Message) -> list[Block]:
        if message.kind in _SUMMARIES:
            shown = self._detail.asides and message.text.strip()
            prose = (Prose(message.text),) if shown else ()
            return [Fold("note", _SUMMARIES[message.kind], blocks=prose)]
        if message.role == "event":
            return self._event_blocks(message)
        if message.role != "system":
            return self._part_blocks(message)
        if not self._detail.asides:
            return []
        parts = tuple(self._part_blocks(message))
        return [Fold("system", "System text", message.text, blocks=parts)]

    # Parts.

    def _part_blocks(self, message: Message) -> list[Block]:
        blocks: list[Block] = []
        for part in message.parts:
            blocks += self._blocks_of_part(message, part, part.text or "")
        return blocks

    def _blocks_of_part(
        self, message: Message, part: Part, text: str
    ) -> Iterator[Block]:
        asides = self._detail.asides
        match part.type:
            case "text":
                yield from self._text_block(message, part, text)
            case "reasoning":
                if asides and text.strip():
                    yield Fold("reasoning", "Reasoning", text, blocks=(Prose(text),))
            case "tool":
                if part.call_id is not None:
                    # The hash alone: a long session has many results.
                    self._results[part.call_id] = hash(part.text)
                children = self._children(part)
                yield call_fold(
                    part, self._detail, self._album, children, self._directory
                )
            case "tool-result":
                call_id = part.call_id or ""
                if text and self._results.get(call_id) != hash(text):
                    code = output_code(text, self._detail)
                    yield self._note_fold("Result", call_id, [code])
            case "file":
                yield self._file_block(part)
            case "agent" if isinstance(part.data.get("name"), str):
                yield Note(f"@{part.data['name']}")
            case "compaction":
                automatic = " (automatic)" if part.data.get("auto") else ""
                yield Note(f"Context compaction{automatic}")
            case "source":
                if asides:
                    yield self._source_note(part, text)
            case kind:
                is_bookkeeping = kind in BOOKKEEPING and not self._detail.records
                if asides and not is_bookkeeping:
                    yield self._unknown_part(part, text)

    def _text_block(self, message: Message, part: Part, text: str) -> Iterator[Block]:
        if not text.strip():
            return

        # An answer is not hidden, whatever its program calls it.
        if message.role != "user" or not part.synthetic:
            yield Prose(text)
        elif self._detail.asides:
            code = output_code(text, self._detail)
            yield self._note_fold(_ADDED, code.text, [code])

    def _file_block(self, part: Part) -> Block:
        file = file_of(part)
        name, address = _name_and_address(file)

        if file.mime.startswith("image/"):
            return self._album.add_picture(excerpt(name), file.mime, file.data, address)

        raw = base64.b64decode(file.data or "")
        mime = "" if file.mime == _UNKNOWN_MIME else file.mime
        facts = (mime, size(len(raw)) if raw else "")

        codes = []
        try:
            codes.append(Code(_text_of(raw), file_ending(name)))
        except ValueError:
            self._album.losses.append(f"the file {excerpt(name)} ({', '.join(facts)})")
        if not self._detail.asides:
            codes = []

        return self._note_fold("File", name, codes, facts, address)

    def _source_note(self, part: Part, text: str) -> Fold:
        columns = {"path": part.title, **as_object(part.input)}
        subject = " ".join(texts_at(columns, ("kind", "path", "scope")))

        facts: tuple[str, ...] = ()
        if columns.get("truncated") is True:
            facts += ("truncated",)
        if columns.get("error"):
            facts += (f"error: {excerpt(error_text(columns['error']))}",)
        return self._note_fold("Source", subject, [Code(text)], facts)

    def _unknown_part(self, part: Part, text: str) -> Fold:
        codes = [Code(text)]

        # Beside a text the record is shown only if all records are.
        if part.data and (not text or self._detail.records):
            codes.append(Code(as_json(part.data), "json"))
        return self._note_fold(name_of(part.type), part.title or text, codes)

    # Events.

    def _event_blocks(self, message: Message) -> list[Block]:
        kind = message.kind
        if kind in _ENDS:
            return [Note(_ENDS[kind], "error")]
        if kind in _CHANGES:
            value = excerpt(_new_setting(message)) if self._detail.asides else ""
            return [Note(f"{_CHANGES[kind]}: {value}")] if value else []
        # The calls of a program itself, which no answer contains.
        if any(part.type == "tool" for part in message.parts):
            return self._part_blocks(message)
        return self._named_event(message) if self._detail.asides else []

    def _named_event(self, message: Message) -> list[Block]:
        name, text = name_of(message.kind or "event"), message.text
        if message.kind == "custom_message":
            name = _ADDED
        if text.strip():
            code = output_code(text, self._detail)
            about = code.text
            for value in (message.data.get("name"), message.data.get("path")):
                if is_text(value) and value:
                    about = value
                    break
            others = tuple(part for part in message.parts if part.type != "text")

            note = self._note_fold(name, about, [code])
            return [note, *self._part_blocks(replace(message, parts=others))]

        blocks = self._part_blocks(message)
        is_named = message.kind in _NAMED or message.error or self._detail.records
        return [Note(name), *blocks] if blocks or is_named else []

    def _note_fold(
        self,
        label: str,
        about: str,
        codes: list[Code],
        facts: tuple[str, ...] = (),
        address: str = "",
    ) -> Fold:
        shown = []
        if self._detail.bodies:
            shown = [code for code in codes if code.text]
        return Fold(
            kind="note",
            label=label,
            about=about,
            details=facts,
            blocks=tuple(cut_all(shown, self._detail)),
            address=address,
        )


def _name_and_address(file: File) -> tuple[str, str]:
    """Return the name of a file, and its address if that is another."""
    url = file.url or ""
    address = "" if url.startswith("data:") else url
    if file.name:
        return file.name, address
    return address or "file", ""


def name_of(kind: str) -> str:
    """Return the name of a kind of event or part as words."""
    return excerpt(re.sub(r"[_-]+", " ", kind)).capitalize()


def _ending_notes(message: Message) -> tuple[Note, ...]:
    if message.error is not None:
        error = error_text(message.error) or "unknown"
        return (Note(f"Error: {error}", "error"),)
    if message.finish in CUT_SHORT:
        return (Note(f"Ended: {message.finish}", "error"),)
    return ()


def _kept_records(message: Message) -> Iterator[Fold]:
    """Yield the raw records that a message keeps besides what is shown."""
    records = {"Error": message.error, "Kept by the program": message.data}
    for label, record in records.items():
        # An error may be a text, which its note shows already.
        if record and isinstance(record, Mapping):
            yield Fold("note", label, blocks=(Code(as_json(record), "json"),))


def _new_setting(message: Message) -> str:
    """Return the new value of what an event changed; empty if it is unknown."""
    values: list[str | None] = []
    if message.kind == "model_change":
        values.append(model_name(message))
    elif message.kind == "mode_change":
        values.append(message.agent)
    values += texts_at(message.data, ("level", "thinkingLevel", "mode", "to"))
    values.append(message.text)
    values += [part.text for part in message.parts]
    for value in values:
        if value:
            return value
    return ""


def _text_of(raw: bytes) -> str:
    """Return the text of a file; raises ValueError if it is binary."""
    if b"\0" in raw:
        raise ValueError("a text has no NUL")
    return raw.decode()
