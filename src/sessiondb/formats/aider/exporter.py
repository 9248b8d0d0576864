"""Sessions as a chat history of aider, with the input history beside it.

Runs of one folder are one file, in the order of their times. A run of aider's is
written to the byte as it was; a session of another program becomes a run that aider
restores. The input history has the exact texts of the prompts that are written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import starmap
from operator import itemgetter
from pathlib import Path
from typing import Any

from sessiondb.formats.aider.conventions import (
    CHAT,
    INPUTS,
    header,
    started,
    typed_entry,
)
from sessiondb.formats.aider.records import head_of, raw_of, stored_text
from sessiondb.formats.aider.writer import AiderWriter, Entries
from sessiondb.formats.kit.carrying import Losses
from sessiondb.formats.kit.conversion import is_from, is_native
from sessiondb.formats.kit.fields import as_list, fitting, integer
from sessiondb.formats.kit.naming import file_name
from sessiondb.formats.kit.turns import with_usage
from sessiondb.formats.protocol import Exporter
from sessiondb.model import Document, Export, Loss, Message


def write(
    sessions: Iterable[Export], *, detail: str = "full", together: bool = False
) -> Iterator[Document | Loss]:
    """Yield the histories of each folder, or the chat history of all *together*."""
    del detail  # nothing can be left out
    folders: dict[str, list[Export]] = {}
    for export in sessions:
        folder = "" if together else export.session.required_directory
        folders.setdefault(folder, []).append(export)

    names: set[str] = set()
    for directory, exports in folders.items():
        place = _place(directory, names) if len(folders) > 1 else ""
        losses = Losses()
        entries: Entries | None = None if together else []
        runs = sorted(exports, key=_order)

        yield Document(f"{place}{CHAT}", _blocks(runs, losses, entries))
        if entries:
            typed = sorted(entries, key=itemgetter(0))
            yield Document(f"{place}{INPUTS}", starmap(typed_entry, typed))
        # The losses are complete when the documents have been read.
        yield from losses


def _place(directory: str, names: set[str]) -> str:
    """Return a folder of its own for the histories of *directory*."""
    last = file_name(Path(directory).name or "root")
    name, number = last, 1
    while name in names:
        number += 1
        name = f"{last}-{number}"

    names.add(name)
    return f"{name}/"


def _order(export: Export) -> tuple[bool, str, int]:
    """Return the place of a run in its file; one without a header is the first."""
    session = export.session
    if not is_from(session, "aider"):
        return True, started(session.time_created), 0

    start, ordinal = session.data.get("started"), session.data.get("ordinal")
    return start is not None, str(start), fitting(ordinal, integer, 0)


def _blocks(
    exports: Iterable[Export], losses: Losses, entries: Entries | None
) -> Iterator[str | bytes]:
    for export in exports:
        writer = AiderWriter(export, losses, entries)
        writer.lose_rest(is_own=is_from(export.session, "aider"))
        if is_from(export.session, "aider"):
            yield from _run(export, writer, entries)
        else:
            yield header(started(export.session.time_created))
            if export.session.time_created % 1000:
                writer.lose("the milliseconds of its time", field="time_created")
            for message in with_usage(writer.count_messages(export.messages)):
                yield from writer.blocks(message)
            writer.lose_branches()


def _run(
    export: Export, writer: AiderWriter, entries: Entries | None
) -> Iterator[str | bytes]:
    """Yield a run of aider's as it was, and the messages that were added to it here."""
    data = export.session.data
    # The entries of its prompts are added as these are written.
    if entries is not None:
        left = map(as_list, as_list(data.get("inputs")))
        entries += ((str(stamp), str(text)) for stamp, text in filter(_is_pair, left))

    yield head_of(data)
    for message in writer.count_messages(export.messages):
        if is_native(message.id):
            yield from writer.blocks(message)
        else:
            yield _own(message, writer)
    yield stored_text(data, "torn")
    writer.lose_branches()


def _is_pair(items: list[Any]) -> bool:
    return len(items) == 2


def _own(message: Message, writer: AiderWriter) -> str | bytes:
    """Return the block of a message that aider wrote, and record its input."""
    stamp = message.data.get("typed")
    if isinstance(stamp, str) and message.parts:
        writer.typed(message, stamp, message.text)
    return raw_of(message)


EXPORTER = Exporter(write, together=True)
