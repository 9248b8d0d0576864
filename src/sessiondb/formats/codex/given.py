"""The context that Codex gave a model: instructions, skills, and hashes of others.

A ``world_state`` says what a model was given since 0.150, in sections; a
``turn_context`` had the instructions in 2025. Both repeat what the items say that the
model sees. So a source is a part where it is first stated, and where it changed; the
record keeps it, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product
from typing import Any, NamedTuple

from sessiondb.formats.kit.fields import (
    Fields,
    as_object,
    clean_name,
    fitting,
    take,
    without_none,
)
from sessiondb.model import PartDraft

Record = dict[str, Any]

_HASH = re.compile(r"[0-9a-f]{32,128}")
_TITLES = {"agents_md": "AGENTS.md"}
_AGENTS = re.compile(r"# AGENTS\.md instructions(?: for ([^\n]*))?\n\n<INSTRUCTIONS>\n")
_SKILL = re.compile(r"<skill>\s*<name>([^\n]+)</name>\s*(?:<path>([^\n]*)</path>)?")


class Source(NamedTuple):
    """A source of the context; None is not stated."""

    kind: str
    title: str
    path: str | None = None
    hash: str | None = None
    text: str | None = None


class Given:
    """The sources that a model was given in the course of a session."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], int] = {}

    def parts(self, sources: Iterable[Source]) -> tuple[PartDraft, ...]:
        """Return a part for each source that is new, or that changed."""
        return tuple(map(_part, filter(self._is_new, sources)))

    def _is_new(self, source: Source) -> bool:
        # A hash, because instructions are long and may be stated in each turn.
        name, known = (source.kind, source.title), hash((source.text, source.hash))
        is_new = self._last.get(name) != known
        self._last[name] = known
        return is_new


def _part(of: Source) -> PartDraft:
    stated = without_none({"kind": of.kind, "path": of.path, "hash": of.hash})
    return PartDraft("source", of.text, title=of.title, input=stated)


def of_state(payload: Record) -> Iterator[Source]:
    """Yield the sources in the sections of a state."""
    for kind, section in as_object(payload.get("state")).items():
        known = take(dict(as_object(section)), _SECTION)
        if known.keys() & {"text", "hash"} and clean_name(kind):
            yield Source(kind, _TITLES.get(kind, kind), **known)


def of_turn(payload: Record) -> Iterator[Source]:
    """Yield the instructions of a turn."""
    stated = take(dict(payload), _TURN)
    return (Source(kind, kind, text=said) for kind, said in stated.items())


def of_texts(parts: Iterable[PartDraft]) -> Iterator[Source]:
    """Yield the sources in the texts of an item."""
    texts = [part.text.strip() for part in parts if part.text]
    for said, (begins, make) in product(texts, _ITEMS.items()):
        head = begins.match(said)
        if head is not None:
            yield make(head, said[head.end() :])


def _instructions(head: re.Match[str], rest: str) -> Source:
    said = rest.removesuffix("</INSTRUCTIONS>").removesuffix("\n")
    path = fitting(head[1], clean_name)
    return Source("agents_md", _TITLES["agents_md"], path, text=said)


def _skill(head: re.Match[str], rest: str) -> Source:
    said = rest.removesuffix("</skill>").strip()
    return Source("skill", head[1], fitting(head[2], clean_name), text=said)


def _is_hash(value: Any) -> bool:
    return clean_name(value) and _HASH.fullmatch(value) is not None


def _is_said(value: Any) -> bool:
    return clean_name(value) and not value.isspace()


#: The keys of a section; long instructions are a hash of them.
_SECTION: Fields = {
    "directory": ("path", clean_name),
    "instructions": ("hash", _is_hash),
    "text": ("text", _is_said),
    "body": ("text", _is_said),
}
_TURN: Fields = {
    "user_instructions": ("user_instructions", _is_said),
    "developer_instructions": ("developer_instructions", _is_said),
}
#: How texts of items begin that are a source, and the function that reads the rest.
_ITEMS: Mapping[re.Pattern[str], Callable[[re.Match[str], str], Source]] = {
    _AGENTS: _instructions,
    _SKILL: _skill,
}
