"""A message as an entry: which parts are shown, in which order, what is folded."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

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
from sessiondb.formats.transcript.calls import call_fold, cut_all, language_of
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
#: Who speaks, by role; and if the message names no agent.
_SPEAKERS = {"user": "Prompt", "system": "System", "event": ""}
_UNNAMED = {"tool": "Tool"}

Blocks = Iterable[Block]
#: It gets the message, the part, and the text of the part.
PartBuilder = Callable[[Message, Part, str], Blocks]
EventBuilder = Callable[[Message], Blocks]
Children = Callable[[Part], tuple[Block, ...]]


def no_children(part: Part) -> tuple[Block, ...]:
    """Return the sessions that a call started if none are shown."""
    del part
    return ()


class Composer:
    """Composes the entries of one session; remembers which results calls have shown.

    *children* returns the sessions that a call started, *anchor* begins the anchors.
    The detail chooses the builders of parts and events once, so that few check it.
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

        self._other: PartBuilder = self._unknown_part
        self._parts: dict[str, PartBuilder] = {
            "text": self._text_block,
            "reasoning": self._reasoning_fold,
            "tool": self._call_block,
            "tool-result": self._result_note,
            "file": self._file_block,
            "agent": self._agent_note,
            "compaction": self._compaction_note,
            "source": self._source_note,
        }

        self._event: EventBuilder = self._named_event
        self._events: dict[str | None, EventBuilder] = {
            **dict.fromkeys(_CHANGES, self._change_note),
            **dict.fromkeys(_ENDS, self._end_note),
        }
        self._roles: dict[str, EventBuilder] = {
            "event": self._event_blocks,
            "system": self._system_fold,
        }

        if not detail.records:
            self._parts |= dict.fromkeys(BOOKKEEPING, _no_blocks)
        if not detail.asides:
            self._other = _no_blocks
            self._parts |= dict.fromkeys(("reasoning", "source"), _no_blocks)
            self._event = self._roles["system"] = _no_blocks
            self._events |= dict.fromkeys(_CHANGES, _no_blocks)

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
        return TranscriptEntry(
            anchor=f"{self._anchor}m{message.seq}",
            role=message.role,
            who=_speaker_of(message),
            time=message.time_created,
            model=_answer_model(message),
            facts=tuple(facts),
            blocks=tuple(self.blocks(message)),
            message=message,
        )

    def _answer_facts(self, message: Message) -> Iterator[str]:
        if message.role != "assistant":
            return
        if self._detail.records:
            yield price(message.cost)
            yield _tokens_text(message)
        if not message.time_completed:
            yield "still open"

    def _message_blocks(self, message: Message) -> Blocks:
        if message.kind in _SUMMARIES:
            return self._summary_fold(message, _SUMMARIES[message.kind])
        return self._roles.get(message.role, self._part_blocks)(message)

    def _event_blocks(self, message: Message) -> Blocks:
        if message.kind in self._events:
            return self._events[message.kind](message)
        # The calls of a program itself, which no answer contains.
        if any(part.type == "tool" for part in message.parts):
            return self._part_blocks(message)
        return self._event(message)

    def _part_blocks(self, message: Message) -> list[Block]:
        builders, other = self._parts, self._other
        blocks: list[Block] = []
        for part in message.parts:
            blocks += builders.get(part.type, other)(message, part, part.text or "")
        return blocks

    def _system_fold(self, message: Message) -> Blocks:
        yield Fold(
            kind="system",
            label="System text",
            about=message.text,
            blocks=tuple(self._part_blocks(message)),
        )

    # Parts.

    def _text_block(self, message: Message, part: Part, text: str) -> Blocks:
        if not text.strip():
            return ()

        # An answer is not hidden, whatever its program calls it.
        marks = part.data if message.role == "user" else {}
        if not (marks.get("synthetic") or marks.get("ignored")):
            return (Prose(text),)
        note = self._note_fold("Added by the program", text, [Code(text)])
        return (note,) if self._detail.asides else ()

    def _reasoning_fold(self, _: Message, __: Part, text: str) -> Blocks:
        if not text.strip():
            return ()
        return (Fold("reasoning", "Reasoning", text, blocks=(Prose(text),)),)

    def _call_block(self, _: Message, part: Part, __: str) -> Blocks:
        if part.call_id is not None:
            # The hash alone: what a long session holds of its results stays small.
            self._results[part.call_id] = hash(part.text)
        return (call_fold(part, self._detail, self._album, self._children(part)),)

    def _result_note(self, _: Message, part: Part, text: str) -> Blocks:
        call_id = part.call_id or ""
        if text and self._results.get(call_id) != hash(text):
            yield self._note_fold("Result", call_id, [Code(text, language_of(text))])

    def _file_block(self, _: Message, part: Part, __: str) -> Blocks:
        file = file_of(part)
        name, address = _name_and_address(file)

        if file.mime.startswith("image/"):
            yield self._album.add_picture(excerpt(name), file.mime, file.data, address)
            return

        raw = base64.b64decode(file.data or "")
        facts = (file.mime, size(len(raw)) if raw else "")

        codes = []
        try:
            codes.append(Code(_text_of(raw), file_ending(name)))
        except ValueError:
            self._album.losses.append(f"the file {excerpt(name)} ({', '.join(facts)})")

        yield self._note_fold("File", name, codes, facts, address)

    def _agent_note(self, message: Message, part: Part, text: str) -> Blocks:
        name = part.data.get("name")
        if isinstance(name, str):
            return (Note(f"@{name}"),)
        return self._other(message, part, text)

    def _compaction_note(self, _: Message, part: Part, __: str) -> Blocks:
        automatic = " (automatic)" if part.data.get("auto") else ""
        yield Note(f"Context compaction{automatic}")

    def _source_note(self, _: Message, part: Part, text: str) -> Blocks:
        columns = {"path": part.title, **as_object(part.input)}
        subject = " ".join(texts_at(columns, ("kind", "path", "scope")))

        facts: tuple[str, ...] = ()
        if columns.get("truncated") is True:
            facts += ("truncated",)
        if columns.get("error"):
            facts += (f"error: {excerpt(error_text(columns['error']))}",)
        yield self._note_fold("Source", subject, [Code(text)], facts)

    def _unknown_part(self, _: Message, part: Part, text: str) -> Blocks:
        codes = [Code(text)]

        # Beside a text the record is shown only if all records are.
        if part.data and (not text or self._detail.records):
            codes.append(Code(as_json(part.data), "json"))
        yield self._note_fold(name_of(part.type), part.title or text, codes)

    # Events, and messages that summarise others.

    def _summary_fold(self, message: Message, label: str) -> Blocks:
        shown = self._detail.asides and message.text.strip()
        blocks = (Prose(message.text),) if shown else ()
        yield Fold("note", label, blocks=blocks)

    def _change_note(self, message: Message) -> Blocks:
        value = excerpt(_new_setting(message))
        if value:
            yield Note(f"{_CHANGES[message.kind or '']}: {value}")

    def _end_note(self, message: Message) -> Blocks:
        yield Note(_ENDS[message.kind or ""], "error")

    def _named_event(self, message: Message) -> Blocks:
        name, text = name_of(message.kind or "event"), message.text
        if text.strip():
            about = text
            for value in (message.data.get("name"), message.data.get("path")):
                if is_text(value) and value:
                    about = value
                    break
            others = tuple(part for part in message.parts if part.type != "text")

            note = self._note_fold(name, about, [Code(text)])
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


def _no_blocks(*_: object) -> Blocks:
    return ()


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


def _speaker_of(message: Message) -> str:
    if message.role in _SPEAKERS:
        return _SPEAKERS[message.role]
    return message.agent or _UNNAMED.get(message.role, "Assistant")


def _answer_model(message: Message) -> str:
    """Return the model of an answer; other messages only record what was chosen."""
    return excerpt(message.model_id or "") if message.role == "assistant" else ""


def _tokens_text(message: Message) -> str:
    counts = message.tokens
    return f"{tokens(counts.columns())} tokens" if counts else ""


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
