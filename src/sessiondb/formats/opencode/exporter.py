"""Sessions as ``opencode import`` takes them, one file each, in the generation they come from."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from sessiondb.formats.opencode.neutral import generation, is_json
from sessiondb.formats.opencode.v1.writer import WriterV1
from sessiondb.formats.opencode.v2.writer import WriterV2
from sessiondb.formats.protocol import FILE, Exporter, Handover
from sessiondb.model import Document, Export, Loss, Message


def write(
    sessions: Iterable[Export], *, detail: str = "full", together: bool = False
) -> Iterator[Document | Loss]:
    """Yield a file for each session: of generation 2 if OpenCode 2 wrote it, else 1.x."""
    del detail, together  # a session is a file, and nothing can be left out of it
    return documents(sessions, as_it_was)


def as_it_was(
    export: Export, messages: list[Message], losses: list[Loss]
) -> dict[str, Any]:
    """Return the JSON of a session in its own generation, 1.x for what has none."""
    second = generation(export.session, messages) == 2
    return (WriterV2 if second else WriterV1)(export, messages, losses).json()


def documents(
    sessions: Iterable[Export],
    make: Callable[[Export, list[Message], list[Loss]], dict[str, Any]],
) -> Iterator[Document | Loss]:
    """Yield a file for each session, and after it what it does not hold."""
    for export in sessions:
        losses: list[Loss] = []
        found = said(make(export, list(export.messages), losses), losses)
        lists_lost(export, losses)
        yield Document(f"{file_name(found['info']['id'])}.json", (text_of(found),))
        yield from losses


def said(document: dict[str, Any], losses: list[Loss]) -> dict[str, Any]:
    """Return *document*; with null for what JSON cannot say, which is a loss then."""
    if is_json(document):
        return document
    losses.append(
        Loss(document["info"]["id"], "what JSON cannot say: it is written as null")
    )
    return _said(document)  # type: ignore[no-any-return]


def _said(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _said(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_said(item) for item in value]
    return value if is_json(value) else None


def file_name(name: Any) -> str:
    """Return a name for a file or folder that leads nowhere else."""
    quoted = quote(str(name).encode("utf-8", "surrogatepass"), safe="")
    return quoted if quoted.strip(".") else quoted.replace(".", "%2E")


def text_of(value: Any) -> str:
    """Return JSON as OpenCode prints it; lone surrogates are escaped."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        text = json.dumps(value, indent=2, allow_nan=False)
    return f"{text}\n"


def lists_lost(export: Export, losses: list[Loss]) -> None:
    """Note what lies beside a session, and that its JSON has no place for."""
    for found, what in (
        (export.todos, "its todo list"),
        (export.diffs, "the diffs of its files"),
    ):
        if found:
            losses.append(Loss(export.session.id, what))


def take_in(text: str, directory: str) -> Handover:
    """Return how OpenCode imports and continues a session, by the text of its file."""
    info = json.loads(text)["info"]
    how = ["opencode", "import", FILE]
    if "location" in info:  # only the second generation has it
        how = ["opencode", "session", "import", "--directory", directory, FILE]
    return Handover(how, ["opencode", "--session", info["id"]])


EXPORTER = Exporter(write, take_in=take_in)
