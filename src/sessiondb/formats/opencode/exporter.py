"""Sessions as ``opencode import`` takes them, one file each, in their generation."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from sessiondb.formats.kit.carrying import Losses
from sessiondb.formats.kit.conversion import Losing, json_text
from sessiondb.formats.kit.naming import file_name
from sessiondb.formats.kit.writing import one_by_one
from sessiondb.formats.opencode.generation import generation_of
from sessiondb.formats.opencode.names import names_of
from sessiondb.formats.opencode.v1.writer import WriterV1
from sessiondb.formats.opencode.v2.writer import WriterV2
from sessiondb.formats.protocol import FILE, Exporter, Handover, Written
from sessiondb.model import Document, Export


def session_file(
    export: Export, losses: Losses, *, only_second: bool = False
) -> Iterator[Document]:
    """Yield the file of a session in its own generation, 1.x for one without any.

    With *only_second* it is of generation 2.
    """
    losing = Losing(export, losses)
    messages = list(losing.count_messages(export.messages))
    is_second = only_second or generation_of(export.session, messages) == 2
    writer = WriterV2 if is_second else WriterV1
    record = losing.printable_record(writer(export, messages, losses).json())
    losing.lose_branches()
    yield Document(f"{file_name(record['info']['id'])}.json", (json_text(record),))


def take_in(written: Written, env: Mapping[str, str]) -> Handover:
    """Return how OpenCode imports and continues a session, by the text of its file."""
    del env  # OpenCode finds its own store
    info = json.loads(written.text)["info"]
    command = ["opencode", "import", FILE]
    if "location" in info:  # only the second generation has it
        directory = ["--directory", written.directory]
        command = ["opencode", "session", "import", *directory, FILE]
    return Handover(command, ["opencode", "--session", info["id"]])


EXPORTER = Exporter(one_by_one(session_file), take_in=take_in, names_of=names_of)
