"""The instructions that an epoch of a session begins with, as sources.

``instruction_state`` has the hashes of their values by key, ``instruction_blob`` the
values (``session/instruction-state.ts``). They are rendered as the system text for the
messages after ``epoch_start``; a later change is a message of type ``system``.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any, NamedTuple

from sessiondb.formats.kit.fields import (
    as_list,
    clean_name,
    text,
    within,
    without_none,
)
from sessiondb.formats.kit.texts import compact
from sessiondb.model import PartDraft


class Instruction(NamedTuple):
    """An instruction: a text, the list of its files, or any JSON.

    ``error`` says why the value cannot be read, None if it can.
    """

    key: str
    hash: str
    value: Any
    error: str | None


class Epoch(NamedTuple):
    """The instructions of an epoch, which follow *before* messages of the session."""

    start: int
    before: int
    instructions: list[Instruction]


def sources_of(epoch: Epoch) -> Iterator[PartDraft]:
    """Return the instructions of an epoch as parts of its first prompt."""
    return chain.from_iterable(map(_sources, epoch.instructions))


def _sources(given: Instruction) -> Iterator[PartDraft]:
    known = without_none({"kind": given.key, "hash": given.hash, "error": given.error})
    files = as_list(given.value)
    # The list of the files, of which OpenCode renders each with its path.
    if files and all(map(_is_file, files)):
        for file in files:
            name, content = file["path"], file["content"]
            at = {**known, "path": name}
            yield PartDraft("source", content, title=name, input=at)
        return

    value = given.value
    said = value if text(value) or value is None else compact(value)
    yield PartDraft("source", said, title=given.key, input=known)


def _is_file(item: Any) -> bool:
    return clean_name(within(item, "path")) and text(within(item, "content"))
