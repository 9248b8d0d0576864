"""The context that Codex gave a model: instructions, skills, tools, hashes of others.

The header of a session has its base instructions, a ``turn_context`` had those of the
user in 2025, and a ``world_state`` says since 0.150 what a model was given, in
sections. They repeat each other, and what the items say that the model sees. So a
source is a part where it is first stated, and where it changed. A text that is a value
of its record leaves it for that part, so that the instructions of many sessions are
stored once; any other repetition stays in the record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from sessiondb.formats.kit.fields import (
    as_object,
    as_text,
    clean_name,
    fitting,
    objects_in,
    readable_text,
    value_at,
    without_none,
)
from sessiondb.model import Part, PartDraft
from sessiondb.patterns import late_pattern

Record = dict[str, Any]

#: The paths of texts in headers and settings of turns, and the kind of each source.
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
#: The keys of a section that have its text.
_SECTION_TEXTS = ("text", "body")
#: The kind and the title of instructions from files, which sections and items have.
_AGENTS_MD, _AGENTS_MD_TITLE = "agents_md", "AGENTS.md"
_HASH = late_pattern(r"[0-9a-f]{32,128}")
#: How texts of items begin that are a source.
_INSTRUCTIONS = late_pattern(
    r"# AGENTS\.md instructions(?: for ([^\n]*))?\n\n<INSTRUCTIONS>\n"
)
_SKILL = late_pattern(r"<skill>\s*<name>([^\n]+)</name>\s*(?:<path>([^\n]*)</path>)?")


class CodexSources:
    """The sources that a model was given in the course of a session."""

    def __init__(self) -> None:
        #: A hash of each source by its kind and its title.
        self._hashes: dict[tuple[Any, Any], int] = {}

    def new_parts(
        self, sources: Iterable[PartDraft], payload: Record
    ) -> tuple[PartDraft, ...]:
        """Return the sources that are new, or changed; their texts leave *payload*."""
        parts = tuple(source for source in sources if self._is_new(source))
        for part in parts:
            if "at" in part.data:
                *path, key = part.data["at"]
                del value_at(payload, *path)[key]
        return parts

    def _is_new(self, source: PartDraft) -> bool:
        name = source.input["kind"], source.title
        # A hash, because instructions are long and may be stated in each turn.
        source_hash = hash((source.text, source.input.get("hash")))
        is_new = self._hashes.get(name) != source_hash
        self._hashes[name] = source_hash
        return is_new


def moved_texts(parts: Iterable[Part]) -> Record:
    """Return the texts of sources that left a payload, at their places in one."""
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
        instructions = value_at(payload, *path)
        if _has_content(instructions):
            yield _source_part(kind, kind, instructions, path)

    for tool in objects_in(payload.get(_TOOLS)):
        if clean_name(tool.get("name")):
            description = fitting(tool.get("description"), _has_content)
            yield _source_part(_TOOLS, tool["name"], description)


def sources_of_state(payload: Record) -> Iterator[PartDraft]:
    """Yield the sources in the sections of a state."""
    sections = as_object(payload.get("state"))
    # As Codex writes them: an export has those whose text is a column at the end.
    for kind in sorted(key for key in sections if clean_name(key)):
        section = as_object(sections[kind])
        title = _AGENTS_MD_TITLE if kind == _AGENTS_MD else kind
        directory = as_text(section.get("directory"))
        facts = {
            "path": None if directory is None else readable_text(directory),
            # Long instructions are a hash of them.
            "hash": fitting(section.get("instructions"), _is_hash),
        }
        texts = [key for key in _SECTION_TEXTS if _has_content(section.get(key))]
        if texts:
            place = ("state", kind, texts[0])
            yield _source_part(kind, title, section[texts[0]], place, **facts)
        elif facts["hash"] is not None:
            yield _source_part(kind, title, None, **facts)


def sources_of_texts(parts: Iterable[PartDraft]) -> Iterator[PartDraft]:
    """Yield the sources in the texts of an item."""
    for part in parts:
        if not part.text:
            continue

        text = part.text.strip()
        head = _INSTRUCTIONS.match(text)
        if head is not None:
            instructions = text[head.end() :].removesuffix("</INSTRUCTIONS>")
            yield _source_part(
                _AGENTS_MD,
                _AGENTS_MD_TITLE,
                instructions.removesuffix("\n"),
                path=fitting(head[1], clean_name),
            )

        head = _SKILL.match(text)
        if head is not None:
            skill = text[head.end() :].removesuffix("</skill>").strip()
            path = fitting(head[2], clean_name)
            yield _source_part("skill", head[1], skill, path=path)


def _source_part(
    kind: str, title: str, text: str | None, place: Iterable[str] = (), **facts: Any
) -> PartDraft:
    """Return a source; *place* is that of its text in the payload, if it is moved."""
    path = [*place]
    return PartDraft(
        "source",
        text,
        title=title,
        input={"kind": kind, **without_none(facts)},
        data={"at": path} if path else {},
    )


def _is_hash(value: Any) -> bool:
    return clean_name(value) and _HASH.fullmatch(value) is not None


def _has_content(value: Any) -> bool:
    return clean_name(value) and not value.isspace()
