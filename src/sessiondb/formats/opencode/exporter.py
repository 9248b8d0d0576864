"""Sessions as ``opencode import`` takes them, one file each, in their generation."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from sessiondb.formats.kit.carrying import Losses
from sessiondb.formats.kit.conversion import Losing, json_text
from sessiondb.formats.kit.naming import file_name
from sessiondb.formats.kit.writing import one_by_one
from sessiondb.formats.opencode.generation import generation
from sessiondb.formats.opencode.ids import names_of
from sessiondb.formats.opencode.v1.writer import WriterV1
from sessiondb.formats.opencode.v2.writer import WriterV2
from sessiondb.formats.protocol import FILE, Exporter, Handover, Written
from sessiondb.model import Document, Export, Message

#: Makes the JSON of a session, and notes what is lost.
Make = Callable[[Export, list[Message], Losses], dict[str, Any]]


def as_it_was(
    export: Export, messages: list[Message], losses: Losses
) -> dict[str, Any]:
    """Return the JSON of a session in its own generation, 1.x for what has none."""
    is_second = generation(export.session, messages) == 2
    writer = WriterV2 if is_second else WriterV1
    return writer(export, messages, losses).json()


def file_of(make: Make, export: Export, losses: Losses) -> Iterator[Document]:
    """Yield the file of a session, as *make* writes it."""
    losing = Losing(export, losses)
    made = make(export, list(losing.counted(export.messages)), losses)
    found = losing.printable(made)
    losing.lose_branches()
    yield Document(f"{file_name(found['info']['id'])}.json", (json_text(found),))


def take_in(written: Written, env: Mapping[str, str]) -> Handover:
    """Return how OpenCode imports and continues a session, by the text of its file."""
    del env  # OpenCode finds its own store
    info = json.loads(written.text)["info"]
    how = ["opencode", "import", FILE]
    if "location" in info:  # only the second generation has it
        there = ["--directory", written.directory]
        how = ["opencode", "session", "import", *there, FILE]
    return Handover(how, ["opencode", "--session", info["id"]])


EXPORTER = Exporter(
    one_by_one(partial(file_of, as_it_was)), take_in=take_in, names_of=names_of
)
