"""The context that Codex gave a model: instructions, skills, tools, hashes of others.

The header of a session has its base instructions, a ``turn_context`` had those of the
user in 2025, and a ``world_state`` says since 0.150 what a model was given, in
sections. They repeat each other, and what the items say that the model sees. So a
source is a part where it is first stated, and where it changed. A text that is a value
of its record leaves it for that part; any other repetition stays in the record.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import reduce
from itertools import product
from typing import Any

from sessiondb.formats.kit.fields import (
    Fields,
    as_object,
    clean_name,
    filled,
    fitting,
    objects_in,
    take,
    within,
    without_none,
)
from sessiondb.model import Part, PartDraft

Record = dict[str, Any]

#: Where headers and settings of turns have a text, and the kind of the source.
_TEXTS = {
    ("base_instructions", "text"): "base_instructions",
    ("instructions",): "instructions",
    ("user_instructions",): "user_instructions",
    ("developer_instructions",): "developer_instructions",
    ("collaboration_mode", "settings", "developer_instructions"): "collaboration_mode",
}
_TOOLS = "dynamic_tools"
#: The keys of a header with context.
CONTEXT = frozenset({_TOOLS, *(path[0] for path in _TEXTS)})
#: The keys of a section that have its text, and those with other facts of it.
_SAID = ("text", "body")
_HASH = re.compile(r"[0-9a-f]{32,128}")
_TITLES = {"agents_md": "AGENTS.md"}
_AGENTS = re.compile(r"# AGENTS\.md instructions(?: for ([^\n]*))?\n\n<INSTRUCTIONS>\n")
_SKILL = re.compile(r"<skill>\s*<name>([^\n]+)</name>\s*(?:<path>([^\n]*)</path>)?")


class Given:
    """The sources that a model was given in the course of a session."""

    def __init__(self) -> None:
        self._last: dict[tuple[Any, Any], int] = {}

    def parts(
        self, sources: Iterable[PartDraft], payload: Record
    ) -> tuple[PartDraft, ...]:
        """Return the sources that are new, or changed; their texts leave *payload*."""
        new = tuple(filter(self._is_new, sources))
        for *path, key in (part.data["at"] for part in new if "at" in part.data):
            del within(payload, *path)[key]

        return new

    def _is_new(self, source: PartDraft) -> bool:
        # A hash, because instructions are long and may be stated in each turn.
        name = source.input["kind"], source.title
        known = hash((source.text, source.input.get("hash")))
        is_new = self._last.get(name) != known
        self._last[name] = known
        return is_new


def _source(
    kind: str, title: str, said: str | None, at: Iterable[str] = (), **known: Any
) -> PartDraft:
    """Return a source, whose text is *at* a place of a payload."""
    given = {"kind": kind, **without_none(known)}
    return PartDraft(
        "source", said, title=title, input=given, data=filled({"at": [*at]})
    )


def texts_in(parts: Iterable[Part]) -> Record:
    """Return the texts that left a payload, in it again."""
    payload: Record = {}
    for part in parts:
        if part.type == "source" and "at" in part.data:
            *path, key = part.data["at"]
            reduce(_inner, path, payload)[key] = part.text

    return payload


def _inner(record: Record, key: str) -> Record:
    inner: Record = record.setdefault(key, {})
    return inner


def of_settings(payload: Record) -> Iterator[PartDraft]:
    """Yield the sources in a header, or in the settings of a turn."""
    for path, kind in _TEXTS.items():
        said = within(payload, *path)
        if _is_said(said):
            yield _source(kind, kind, said, path)

    for tool in objects_in(payload.get(_TOOLS)):
        if clean_name(tool.get("name")):
            about = fitting(tool.get("description"), _is_said)
            yield _source(_TOOLS, tool["name"], about)


def of_state(payload: Record) -> Iterator[PartDraft]:
    """Yield the sources in the sections of a state."""
    sections = as_object(payload.get("state"))
    # As Codex writes them: an export has those whose text is a column at the end.
    for kind in sorted(filter(clean_name, sections)):
        section = as_object(sections[kind])
        known = take(dict(section), _SECTION)
        title = _TITLES.get(kind, kind)
        said = [key for key in _SAID if _is_said(section.get(key))]
        if said:
            at = ("state", kind, said[0])
            yield _source(kind, title, section[said[0]], at, **known)
        elif "hash" in known:
            yield _source(kind, title, None, **known)


def of_texts(parts: Iterable[PartDraft]) -> Iterator[PartDraft]:
    """Yield the sources in the texts of an item."""
    texts = [part.text.strip() for part in parts if part.text]
    for said, (begins, make) in product(texts, _ITEMS.items()):
        head = begins.match(said)
        if head is not None:
            yield make(head, said[head.end() :])


def _instructions(head: re.Match[str], rest: str) -> PartDraft:
    said = rest.removesuffix("</INSTRUCTIONS>").removesuffix("\n")
    path = fitting(head[1], clean_name)
    return _source("agents_md", _TITLES["agents_md"], said, path=path)


def _skill(head: re.Match[str], rest: str) -> PartDraft:
    said = rest.removesuffix("</skill>").strip()
    return _source("skill", head[1], said, path=fitting(head[2], clean_name))


def _is_hash(value: Any) -> bool:
    return clean_name(value) and _HASH.fullmatch(value) is not None


def _is_said(value: Any) -> bool:
    return clean_name(value) and not value.isspace()


#: The keys of a section beside its text; long instructions are a hash of them.
_SECTION: Fields = {
    "directory": ("path", clean_name),
    "instructions": ("hash", _is_hash),
}
#: How texts of items begin that are a source, and the function that reads the rest.
_ITEMS: Mapping[re.Pattern[str], Callable[[re.Match[str], str], PartDraft]] = {
    _AGENTS: _instructions,
    _SKILL: _skill,
}
