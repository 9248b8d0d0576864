"""Each file belongs to one format: an export is never read by the reader of another.

An export may repeat the records of its session word for word, so that the reader of
another program could take the file for its own, and change the session that the file
was written from. The checks hold for the files of a store and for everything that any
exporter writes of its sessions.
"""

from __future__ import annotations

import os
from pathlib import Path

from samples import SAMPLES, Sample, files_in, new_store, read_into

from sessiondb import Store
from sessiondb.formats import exporter, readable, writable
from sessiondb.formats.kit.heads import forget_heads
from sessiondb.formats.registry import REGISTRY, format_named, format_of_program
from sessiondb.maintenance import check
from sessiondb.model import Document, Imported, Message
from sessiondb.repository.sessions import ALL

EVERYTHING = {"project": ALL, "archived": True, "subagents": True, "empty": True}
#: One sample of each format, or all of them in a long run.
OF_EACH_FORMAT = {sample.format: name for name, sample in reversed(SAMPLES.items())}
CHECKED = (
    list(SAMPLES) if os.environ.get("SESSIONDB_LONG") else [*OF_EACH_FORMAT.values()]
)


def recognised_by(path: Path) -> list[str]:
    """Return the formats that recognise a path by themselves, without a search."""
    forget_heads()
    return [name for name in readable() if format_named(name).at(path) is not None]


def written_in(name: str, store: Store, folder: Path) -> list[Path]:
    """Write all sessions of a database in a format, and return the files."""
    target = exporter(name)
    sessions = store.sessions(**EVERYTHING, limit=1000)
    exports = (store.export(session, **target.read) for session in sessions)
    for item in target.write(exports, detail=target.details[0]):
        if isinstance(item, Document):
            path = folder / item.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"".join(item.encoded()))
    return files_in(folder)


def is_read(name: str) -> bool:
    """Return whether what is written in a format is read under the same name."""
    return REGISTRY[format_of_program(name)].reads is not None


def of_other_programs(source: str) -> list[str]:
    """Return the formats in which a session of a program is written for others.

    What a program gets back of its own sessions is not another program's file.
    """
    return [
        name
        for name in writable()
        if is_read(name) and format_of_program(name) != format_of_program(source)
    ]


def messages_of(store: Store, names: list[str]) -> dict[str, list[Message]]:
    return {name: list(store.messages(name, branches=True)) for name in names}


def has_one_reader_for_each_file(sample: Sample, folder: Path) -> None:
    """Check all files of a sample, and all exports of its sessions."""
    sample.write(folder / "theirs")
    for path in files_in(folder / "theirs"):
        assert len(recognised_by(path)) <= 1, path
    with new_store() as store:
        names = imported(store, folder / "theirs")
        messages = messages_of(store, names)
        sources = {item.source for item in store.sessions(**EVERYTHING, limit=1000)}
        for name in writable():
            files = written_in(name, store, folder / name)
            owners = {path: recognised_by(path) for path in files}
            several = {path: owner for path, owner in owners.items() if len(owner) > 1}
            assert not several
            if is_read(name):
                assert [format_of_program(name)] in owners.values()
                assert {*map(tuple, owners.values())} <= {
                    (),
                    (format_of_program(name),),
                }
            for source in sources:
                if name in of_other_programs(source):
                    read_into(store, folder / name)
                    assert messages_of(store, names) == messages, (source, name)
        assert check(store) == []


def imported(store: Store, folder: Path) -> list[str]:
    """Import a store and return the ids of its sessions."""
    results = read_into(store, folder)
    names = [result.id for result in results if isinstance(result, Imported)]
    assert names
    return names


def leaves_its_sessions_alone_when_plain_logs_of_them_are_imported(
    store_path: Path, folder: Path
) -> None:
    """Check a store of a real program, whose records are in the plain logs."""
    with new_store() as store:
        names = imported(store, store_path)
        messages = messages_of(store, names)
        for path in written_in("event-log", store, folder):
            assert recognised_by(path) == ["event-log"]
        read_into(store, folder)
        assert messages_of(store, names) == messages
        assert check(store) == []
