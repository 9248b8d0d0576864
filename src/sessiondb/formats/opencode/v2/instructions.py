"""The instructions that an epoch of a session begins with, as sources.

``instruction_state`` has the hashes of their values by key, ``instruction_blob`` the
values (``session/instruction-state.ts``). They are rendered as the system text for the
messages after ``epoch_start``; a later change is a message of type ``system``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sessiondb.formats.kit.fields import (
    as_list,
    clean_name,
    text,
    value_at,
    without_none,
)
from sessiondb.formats.kit.texts import compact_json
from sessiondb.model import PartDraft


class Instruction(NamedTuple):
    """An instruction of a session."""

    key: str
    hash: str
    #: A text, the list of its files, or any JSON.
    value: Any
    #: Why the value cannot be read; None if it can.
    error: str | None


class Epoch(NamedTuple):
    """The instructions of an epoch."""

    #: The number of messages of the session before it.
    message_count: int
    instructions: list[Instruction]


def sources_of(epoch: Epoch) -> list[PartDraft]:
    """Return the instructions of an epoch as parts of its first prompt."""
    sources: list[PartDraft] = []
    for instruction in epoch.instructions:
        sources += _sources_of_instruction(instruction)
    return sources


def _sources_of_instruction(instruction: Instruction) -> list[PartDraft]:
    key, digest, value, error = instruction
    facts = without_none({"kind": key, "hash": digest, "error": error})
    files = as_list(value)
    # The list of the files, of which OpenCode renders each with its path.
    if files and all(_is_instruction_file(file) for file in files):
        return [
            PartDraft(
                "source",
                file["content"],
                title=file["path"],
                input={**facts, "path": file["path"]},
            )
            for file in files
        ]

    content = value if text(value) or value is None else compact_json(value)
    return [PartDraft("source", content, title=key, input=facts)]


def _is_instruction_file(item: Any) -> bool:
    return clean_name(value_at(item, "path")) and text(value_at(item, "content"))
