"""A message as an entry: what of it is shown, in which order, and how much is folded."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sessiondb.formats.content import error_text, file_of
from sessiondb.formats.transcript.blocks import Block, Code, Entry, Fold, Note, Prose
from sessiondb.formats.transcript.calls import as_json, call, cut, cut_all, language_of
from sessiondb.formats.transcript.changes import ending
from sessiondb.formats.transcript.pictures import Album
from sessiondb.formats.transcript.words import money, one_line, size, tokens
from sessiondb.model import Message, Part

#: What only the agent's bookkeeping needs; shown when all is asked for.
BOOKKEEPING = frozenset({"step-start", "step-finish", "snapshot", "patch"})
QUIET = frozenset(
    {"idle", "label", "title_change", "archive", "session_init", "rules", "usage"}
)
_SUMMARIES = {
    "compaction": "Context compacted",
    "branch_summary": "Summary of another branch",
}
_CHANGES = {
    "model_change": "Model", "mode_change": "Mode", "thinking_level_change": "Thinking",
}  # fmt: skip
_ENDED = {"cancelled": "Cancelled", "failed": "Failed"}
Children = Callable[[Part], tuple[Block, ...]]


class Reader:
    """Makes the blocks of messages; it remembers which results stood with their calls."""

    def __init__(self, detail: str, album: Album, children: Children) -> None:
        self._detail, self._album, self._children = detail, album, children
        self._results: dict[str, int] = {}

    def blocks(self, message: Message) -> tuple[Block, ...]:
        """Return what is shown of a message; nothing of most bookkeeping."""
        if message.role == "event" or message.kind in _SUMMARIES:
            found = [*self._event(message)]
        elif message.role != "system":
            found = [
                block for part in message.parts for block in self._part(message, part)
            ]
        else:
            found = [] if self._detail == "brief" else [self._system(message)]
        if message.error is not None:
            found.append(
                Note(f"Error: {error_text(message.error) or 'unknown'}", "error")
            )
        elif message.finish in ("length", "cancelled", "error"):
            found.append(Note(f"Ended: {message.finish}", "error"))
        if self._detail == "full" and message.data:
            found.append(self._kept(message.data))
        return tuple(found)

    def _system(self, message: Message) -> Fold:
        blocks: list[Block] = []
        for part in message.parts:
            blocks += self._part(message, part)
        return Fold("note", "System text", one_line(message.text), blocks=tuple(blocks))

    def _part(self, message: Message, part: Part) -> Iterator[Block]:
        text = part.text or ""
        if part.type == "text":
            yield from self._text(message, part, text)
        elif part.type == "reasoning":
            if text.strip() and self._detail != "brief":
                yield Fold(
                    "reasoning", "Reasoning", one_line(text), blocks=(Prose(text),)
                )
        elif part.type == "tool":
            if part.call_id is not None:
                self._results[part.call_id] = hash(part.text)
            yield call(part, self._detail, self._album, self._children(part))
        elif part.type == "tool-result":
            if text and self._results.get(part.call_id or "") != hash(part.text):
                yield self._fold(
                    "Result", part.call_id or "", [Code(text, language_of(text))]
                )
        elif part.type == "file":
            yield from self._file(part)
        elif part.type not in BOOKKEEPING or self._detail == "full":
            yield from self._other(part, text)

    def _text(self, message: Message, part: Part, text: str) -> Iterator[Block]:
        if not text.strip():
            return
        if message.role == "user" and (
            part.data.get("synthetic") or part.data.get("ignored")
        ):
            if self._detail != "brief":
                yield self._fold("Added by the program", one_line(text), [Code(text)])
        else:
            yield Prose(text)

    def _file(self, part: Part) -> Iterator[Block]:
        file = file_of(part)
        name = file.name or (
            file.url if file.url and not file.url.startswith("data:") else "file"
        )
        if file.mime.startswith("image/"):
            yield self._album.picture(one_line(name), file.mime, file.data)
            return
        raw = base64.b64decode(file.data) if file.data else b""
        text = _text_of(raw)
        facts = (file.mime, *([size(len(raw))] if raw else []))
        blocks: list[Block] = [Code(text, ending(name))] if text else []
        if raw and text is None:
            self._album.losses.append(f"the file {one_line(name)} ({', '.join(facts)})")
        yield self._fold("File", one_line(name), blocks, facts)

    def _other(self, part: Part, text: str) -> Iterator[Block]:
        if part.type == "agent" and isinstance(part.data.get("name"), str):
            yield Note(f"@{part.data['name']}")
        elif part.type == "compaction":
            yield Note(
                "Context compaction" + (" (automatic)" if part.data.get("auto") else "")
            )
        elif self._detail != "brief":
            blocks: list[Block] = [Code(text)] if text else []
            if part.data and (not text or self._detail == "full"):
                blocks.append(Code(as_json(part.data), "json"))
            yield self._fold(words_of(part.type), one_line(part.title or text), blocks)

    def _event(self, message: Message) -> Iterator[Block]:
        kind, text = message.kind or "event", message.text
        if kind in _SUMMARIES:
            blocks = (Prose(text),) if text.strip() and self._detail != "brief" else ()
            yield Fold("note", _SUMMARIES[kind], blocks=blocks)
        elif kind in _CHANGES:
            value = _changed(message)
            if self._detail != "brief" and value:
                yield Note(f"{_CHANGES[kind]}: {value}")
        elif kind in _ENDED:
            yield Note(_ENDED[kind], "error")
        elif any(part.type == "tool" for part in message.parts):
            for part in message.parts:
                yield from self._part(message, part)
        elif text.strip() and self._detail != "brief":
            name = message.data.get("name") or message.data.get("path")
            label = "Context" if kind == "context" else words_of(kind)
            subject = name if isinstance(name, str) else one_line(text)
            yield Fold(
                "note",
                label,
                one_line(subject),
                blocks=(cut(Code(text), self._detail),),
            )
        elif (kind not in QUIET and self._detail != "brief") or self._detail == "full":
            yield Note(words_of(kind))

    def _kept(self, data: Mapping[str, Any]) -> Fold:
        return Fold(
            "note", "Kept by the program", blocks=(Code(as_json(data), "json"),)
        )

    def _fold(
        self, label: str, subject: str, blocks: list[Block], facts: tuple[str, ...] = ()
    ) -> Fold:
        shown = () if self._detail == "brief" else tuple(cut_all(blocks, self._detail))
        return Fold("note", label, subject, facts, blocks=shown)


def entry(
    message: Message,
    blocks: tuple[Block, ...],
    anchor: str,
    labels: tuple[str, ...],
    detail: str,
) -> Entry:
    """Return a message with what is known about it."""
    who = {"user": "Prompt", "system": "System", "event": ""}.get(message.role)
    if who is None:
        who = message.agent or {"tool": "Tool"}.get(message.role, "Assistant")
    facts: list[str] = [*(f"label: {label}" for label in labels)]
    if message.role == "assistant" and detail == "full":
        facts += [money(message.cost)] if message.cost is not None else []
        known = message.tokens
        facts += [f"{tokens(known.columns())} tokens"] if known else []
    facts += (
        ["still open"]
        if message.role == "assistant" and not message.time_completed
        else []
    )
    model = one_line(message.model_id or "") if message.role == "assistant" else ""
    return Entry(
        anchor, message.role, who, message.time_created, model, tuple(facts), blocks
    )


def words_of(kind: str) -> str:
    """Return the name of an event as words."""
    return one_line(re.sub(r"[_-]+", " ", kind)).capitalize()


def _changed(message: Message) -> str:
    if message.kind == "model_change":
        return "/".join(filter(None, [message.provider_id, message.model_id]))
    if message.kind == "mode_change" and message.agent:
        return message.agent
    values = (message.data.get(key) for key in ("level", "thinkingLevel", "mode", "to"))
    return next(
        (value for value in values if isinstance(value, str)), one_line(message.text)
    )


def _text_of(raw: bytes) -> str | None:
    """Return what a file says; None of one that is no text."""
    try:
        return None if b"\0" in raw else raw.decode()
    except UnicodeDecodeError:
        return None
