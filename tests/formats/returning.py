"""An export that is imported where it was written adds, moves and counts nothing.

The sessions of a store are written in every format that names them, at each level of
detail: together as the program has them, and each alone under a name that a user gave.
They are imported into the database that they are in. All columns of all tables stay
as they are, but those of `OF_WRITES`.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from itertools import product
from pathlib import Path
from typing import Any

from ownership_of_files import EVERYTHING, is_read
from samples import Sample, new_store, read_into

from sessiondb import Store
from sessiondb.formats import exporter, writable
from sessiondb.formats.registry import REGISTRY, format_of_program
from sessiondb.maintenance import check
from sessiondb.model import Document
from sessiondb.schema.tables import metadata

#: Histories of aider have no ids, so that no import recognises them.
NAMELESS = {"aider"}
#: Tables of the import itself, and counters of the database.
OF_IMPORTS = {
    "import_ledger": "what was read, and from where",
    "import_file": "files, as a search found them",
    "merge_base": "the state that a log and the database last agreed on",
    "meta": "counters of the database",
    "lease": "processes that write",
    "usage_hour": "sums of the messages up to a mark",
    "usage_model": "what the sums are of",
    "usage_waiting": "sessions whose sums are made again",
}
#: Columns that are no content of a session.
OF_WRITES = {
    "rid": "a row number",
    "revision": "counts the writes",
    "change": "counts the writes",
    "time_imported": "when its source was last read",
}


def rows_of(store: Store) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of every table, sorted, without `OF_IMPORTS` and `OF_WRITES`."""
    rows = {}
    with contextlib.closing(sqlite3.connect(store.path)) as db:
        db.row_factory = sqlite3.Row
        for table in metadata.tables:
            if table not in OF_IMPORTS:
                contents = [
                    _content_of(row) for row in db.execute(f"SELECT * FROM {table}")
                ]
                rows[table] = sorted(contents, key=repr)
    return rows


def _content_of(row: sqlite3.Row) -> dict[str, Any]:
    return {name: value for name, value in dict(row).items() if name not in OF_WRITES}


def write_together(store: Store, name: str, detail: str, folder: Path) -> None:
    """Write all sessions of a database in a format at a level of detail."""
    to = exporter(name)
    sessions = store.sessions(**EVERYTHING, limit=1000)
    exports = (store.export(session, **to.read) for session in sessions)
    for item in to.write(exports, detail=detail):
        if isinstance(item, Document):
            _write(item, folder / item.name)


def write_alone(store: Store, name: str, detail: str, folder: Path) -> None:
    """Write each session by itself, under another name than its program gives it."""
    to = exporter(name)
    for number, session in enumerate(store.sessions(**EVERYTHING, limit=1000)):
        items = to.write([store.export(session, **to.read)], detail=detail)
        documents = [item for item in items if isinstance(item, Document)]
        for further, document in enumerate(documents):
            suffix = Path(document.name).suffix
            _write(document, folder / f"session-{number}-{further}{suffix}")


def _write(document: Document, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(document.encoded()))


_WAYS = (write_together, write_alone)


def formats_of(store: Store) -> list[str]:
    """Return the formats that name a session: all in a long run.

    Else those whose files are read as the sessions' own files are.
    """
    named = [name for name in writable() if is_read(name) and name not in NAMELESS]
    if os.environ.get("SESSIONDB_LONG"):
        return named
    sources = {session.source for session in store.sessions(**EVERYTHING, limit=1000)}
    readers = [REGISTRY[format_of_program(source)].reads for source in sources]
    return [
        name for name in named if REGISTRY[format_of_program(name)].reads in readers
    ]


def stays_as_it_is_when_its_exports_are_imported(store: Store, folder: Path) -> None:
    """Check the sessions of a database, with two imports of each of their exports."""
    rows = rows_of(store)
    for name in formats_of(store):
        for detail, write in product(exporter(name).details, _WAYS):
            files = folder / name / detail / write.__name__
            write(store, name, detail, files)
            for _ in range(2):
                read_into(store, files)
                for table, contents in rows_of(store).items():
                    assert contents == rows[table], (name, detail, write, table)
    assert check(store) == []


def leaves_a_sample_as_it_is(sample: Sample, folder: Path) -> None:
    """Check the sessions of a sample."""
    sample.write(folder / "theirs")
    with new_store() as store:
        read_into(store, folder / "theirs")
        stays_as_it_is_when_its_exports_are_imported(store, folder / "exports")
