"""Sessions as ``opencode import`` takes them, one file each, in their generation."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from sessiondb.formats.kit.conversion import Losing, as_json, is_json, json_text
from sessiondb.formats.kit.naming import file_name
from sessiondb.formats.opencode.generation import generation
from sessiondb.formats.opencode.ids import names_of
from sessiondb.formats.opencode.v1.writer import WriterV1
from sessiondb.formats.opencode.v2.writer import WriterV2
from sessiondb.formats.protocol import FILE, Exporter, Handover, Written
from sessiondb.model import Document, Export, Loss, Message

#: Makes the JSON of a session, and notes what is lost.
Make = Callable[[Export, list[Message], list[Loss]], dict[str, Any]]


def write(
    sessions: Iterable[Export], *, detail: str = "full", together: bool = False
) -> Iterator[Document | Loss]:
    """Yield a file for each session, of generation 2 if OpenCode 2 wrote it."""
    del detail, together  # a session is a file, and nothing can be left out of it
    return documents(sessions, as_it_was)


def as_it_was(
    export: Export, messages: list[Message], losses: list[Loss]
) -> dict[str, Any]:
    """Return the JSON of a session in its own generation, 1.x for what has none."""
    is_second = generation(export.session, messages) == 2
    writer = WriterV2 if is_second else WriterV1
    return writer(export, messages, losses).json()


def documents(sessions: Iterable[Export], make: Make) -> Iterator[Document | Loss]:
    """Yield a file for each session, and after it what it does not hold."""
    for export in sessions:
        losses: list[Loss] = []
        losing = Losing(export, losses)
        made = make(export, list(losing.counted(export.messages)), losses)
        found = printable(made, losing)
        losing.lose_lists()
        losing.lose_branches()
        yield Document(f"{file_name(found['info']['id'])}.json", (json_text(found),))
        yield from losses


def printable(document: dict[str, Any], losing: Losing) -> dict[str, Any]:
    """Return *document* with null for what JSON cannot express: that is a loss."""
    if is_json(document):
        return document
    losing.lose("values that JSON cannot express: they are written as null")
    found: dict[str, Any] = as_json(document)
    return found


def take_in(written: Written, env: Mapping[str, str]) -> Handover:
    """Return how OpenCode imports and continues a session, by the text of its file."""
    del env  # OpenCode finds its own store
    info = json.loads(written.text)["info"]
    how = ["opencode", "import", FILE]
    if "location" in info:  # only the second generation has it
        there = ["--directory", written.directory]
        how = ["opencode", "session", "import", *there, FILE]
    return Handover(how, ["opencode", "--session", info["id"]])


EXPORTER = Exporter(write, take_in=take_in, names_of=names_of)
