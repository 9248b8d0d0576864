"""The context that Codex gave a model: instructions, skills, and hashes of others.

A ``world_state`` says what a model was given since 0.150, in sections; a
``turn_context`` had the instructions in 2025. Both repeat what the items say that the
model sees. So a source is a part where it is first stated, and where it changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from sessiondb.formats.kit.fields import (
    as_object,
    clean_name,
    filled,
    fitting,
    text,
    within,
)
from sessiondb.model import PartDraft

Record = dict[str, Any]
#: Where a record has the text of a source, as the keys that lead to it.
Place = tuple[str, ...]

#: The keys of a section for its text; long instructions are a hash of it.
_TEXTS = ("text", "body", "instructions")
_HASH = re.compile(r"[0-9a-f]{32,128}")
_OF_TURN = ("user_instructions", "developer_instructions")
_TITLES = {"agents_md": "AGENTS.md"}
_AGENTS = "# AGENTS.md instructions"
_SKILL = re.compile(r"\s*<name>([^\n]*)</name>\s*(?:<path>([^\n]*)</path>\n?)?")


class Source(NamedTuple):
    """A source of the context; ``place`` is where its record has the text."""

    kind: str
    title: str
    path: str | None = None
    hash: str | None = None
    text: str | None = None
    place: Place = ()


class Given:
    """The sources that a model was given in the course of a session."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], int] = {}

    def parts(self, sources: Iterator[Source], record: Record) -> list[PartDraft]:
        """Return a part for each new source; its text leaves the *record*."""
        return [_part(of, record) for of in sources if self._is_new(of)]

    def _is_new(self, source: Source) -> bool:
        # A hash, because instructions are long and may be stated in each turn.
        name, known = (source.kind, source.title), hash((source.text, source.hash))
        is_new = self._last.get(name) != known
        self._last[name] = known
        return is_new


def _part(source: Source, record: Record) -> PartDraft:
    if source.place:
        *above, key = source.place
        del within(record, *above)[key]

    stated = {"kind": source.kind, "path": source.path, "hash": source.hash}
    data = {"at": list(source.place)}
    return PartDraft(
        "source", source.text, title=source.title, input=filled(stated), data=data
    )


def of_state(payload: Record) -> Iterator[Source]:
    """Yield the sources in the sections of a state."""
    for kind, section in list(as_object(payload.get("state")).items()):
        stated = filled({key: within(section, key) for key in _TEXTS})
        key = next((key for key in stated if text(stated[key])), None)
        if key is None or not clean_name(kind):
            continue

        path = fitting(within(section, "directory"), clean_name)
        title = _TITLES.get(kind, kind)
        if _HASH.fullmatch(stated[key]):
            yield Source(kind, title, path, hash=stated[key])
        else:
            place = ("state", kind, key)
            yield Source(kind, title, path, text=stated[key], place=place)


def of_turn(payload: Record) -> Iterator[Source]:
    """Yield the instructions of a turn."""
    for kind in _OF_TURN:
        said = fitting(payload.get(kind), text, "")
        if said.strip():
            yield Source(kind, kind, text=said, place=(kind,))


def of_texts(parts: tuple[PartDraft, ...]) -> Iterator[Source]:
    """Yield the sources in the texts of an item, which stay there."""
    for part in parts:
        said = (part.text or "").strip()
        if said.startswith(_AGENTS):
            yield from _instructions(said)
        elif said.startswith("<skill>"):
            yield from _skill(said)


def _instructions(said: str) -> Iterator[Source]:
    head, _, rest = said.partition("\n\n<INSTRUCTIONS>\n")
    body, end, _ = rest.rpartition("\n</INSTRUCTIONS>")
    if end:
        path = head.removeprefix(_AGENTS).removeprefix(" for ")
        named = fitting(path, clean_name)
        yield Source("agents_md", _TITLES["agents_md"], named, text=body)


def _skill(said: str) -> Iterator[Source]:
    inside = said.removeprefix("<skill>").removesuffix("</skill>")
    named = _SKILL.match(inside)
    if named is not None and clean_name(named[1]):
        body = inside[named.end() :].strip()
        path = fitting(named[2], clean_name)
        yield Source("skill", named[1], path, text=body)
