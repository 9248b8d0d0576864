"""The context that Codex gave a model: instructions, skills, tools, hashes of others.

The header of a session has its base instructions, a ``turn_context`` had those of the
user in 2025, and a ``world_state`` says since 0.150 what a model was given, in
sections. They repeat each other, and what the items say that the model sees. So a
source is a part where it is first stated, and where it changed. A text that is a value
of its record leaves it for that part; any other repetition stays in the record.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
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
_TEXT_PATHS = {
    ("base_instructions", "text"): "base_instructions",
    ("instructions",): "instructions",
    ("user_instructions",): "user_instructions",
    ("developer_instructions",): "developer_instructions",
    ("collaboration_mode", "settings", "developer_instructions"): "collaboration_mode",
}
_TOOLS = "dynamic_tools"
#: The keys of a header with context.
CONTEXT_KEYS = frozenset({_TOOLS, *(path[0] for path in _TEXT_PATHS)})
#: The keys of a section that may have its text.
_SECTION_TEXTS = ("text", "body")
_HASH = re.compile(r"[0-9a-f]{32,128}")
_TITLES = {"agents_md": "AGENTS.md"}
#: How texts of items begin that are a source.
_AGENTS = re.compile(r"# AGENTS\.md instructions(?: for ([^\n]*))?\n\n<INSTRUCTIONS>\n")
_SKILL = re.compile(r"<skill>\s*<name>([^\n]+)</name>\s*(?:<path>([^\n]*)</path>)?")


def is_hash(value: Any) -> bool:
    """Return whether a value is a hash in hexadecimal."""
    return clean_name(value) and _HASH.fullmatch(value) is not None


#: The keys of a section beside its text; long instructions are a hash of them.
_SECTION: Fields = {
    "directory": ("path", clean_name),
    "instructions": ("hash", is_hash),
}


class StatedSources:
    """The sources that a model was given in the course of a session."""

    def __init__(self) -> None:
        #: A hash of each, because instructions are long and may be stated in each turn.
        self._hashes: dict[tuple[Any, Any], int] = {}

    def take_new(
        self, sources: Iterable[PartDraft], payload: Record
    ) -> tuple[PartDraft, ...]:
        """Return the sources that are new, or changed; their texts leave *payload*."""
        new = tuple([source for source in sources if self._is_new(source)])
        for source in new:
            if "at" in source.data:
                *path, key = source.data["at"]
                del within(payload, *path)[key]
        return new

    def _is_new(self, source: PartDraft) -> bool:
        name = source.input["kind"], source.title
        content = hash((source.text, source.input.get("hash")))
        if self._hashes.get(name) == content:
            return False
        self._hashes[name] = content
        return True


def source_part(
    kind: str,
    title: str,
    content: str | None,
    path_in_record: Iterable[str] = (),
    **facts: Any,
) -> PartDraft:
    """Return a source, whose text is at a path of a payload."""
    return PartDraft(
        "source",
        content,
        title=title,
        input={"kind": kind, **without_none(facts)},
        data=filled({"at": [*path_in_record]}),
    )


def texts_of_sources(parts: Iterable[Part]) -> Record:
    """Return the texts that left a payload, in it again."""
    payload: Record = {}
    for part in parts:
        if part.type == "source" and "at" in part.data:
            *path, key = part.data["at"]
            record = payload
            for step in path:
                record = record.setdefault(step, {})
            record[key] = part.text
    return payload


def sources_of_settings(payload: Record) -> Iterator[PartDraft]:
    """Yield the sources in a header, or in the settings of a turn."""
    for path, kind in _TEXT_PATHS.items():
        content = within(payload, *path)
        if _is_written(content):
            yield source_part(kind, kind, content, path)

    for tool in objects_in(payload.get(_TOOLS)):
        if clean_name(tool.get("name")):
            description = fitting(tool.get("description"), _is_written)
            yield source_part(_TOOLS, tool["name"], description)


def sources_of_state(payload: Record) -> Iterator[PartDraft]:
    """Yield the sources in the sections of a state."""
    sections = as_object(payload.get("state"))
    # As Codex writes them: an export has those whose text is a column at the end.
    for kind in sorted(name for name in sections if clean_name(name)):
        section = as_object(sections[kind])
        title = _TITLES.get(kind, kind)
        facts = take(dict(section), _SECTION)
        for key in _SECTION_TEXTS:
            if _is_written(section.get(key)):
                path = ("state", kind, key)
                yield source_part(kind, title, section[key], path, **facts)
                break
        else:
            if "hash" in facts:
                yield source_part(kind, title, None, **facts)


def sources_of_texts(parts: Iterable[PartDraft]) -> Iterator[PartDraft]:
    """Yield the sources in the texts of an item."""
    for part in parts:
        content = (part.text or "").strip()
        agents = _AGENTS.match(content)
        if agents is not None:
            instructions = content[agents.end() :].removesuffix("</INSTRUCTIONS>")
            yield source_part(
                "agents_md",
                _TITLES["agents_md"],
                instructions.removesuffix("\n"),
                path=fitting(agents[1], clean_name),
            )
        skill = _SKILL.match(content)
        if skill is not None:
            body = content[skill.end() :].removesuffix("</skill>").strip()
            path = fitting(skill[2], clean_name)
            yield source_part("skill", skill[1], body, path=path)


def _is_written(value: Any) -> bool:
    return clean_name(value) and not value.isspace()
