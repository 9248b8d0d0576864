"""An export that is imported where it was written adds, moves and counts nothing.

The sessions of a store are written in every format that names them, at each level of
detail, and imported into the database that they are in. A format may state a value in
another form, such as a time in seconds: what a session is, and what was said and spent
in it, stays.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ownership_of_files import EVERYTHING, is_read
from samples import Sample, new_store, read_into

from sessiondb import Store
from sessiondb.formats import exporter, writable
from sessiondb.formats.registry import family
from sessiondb.maintenance import check
from sessiondb.model import Document

#: Histories of aider have no ids, so that no import recognises them.
NAMELESS = {"aider"}


def state_of(store: Store) -> dict[str, Any]:
    """Return each session with its place, totals and path, and all of its messages."""
    state = {}
    for session in store.sessions(**EVERYTHING, limit=1000):
        said = [
            (
                m.id,
                m.role,
                m.kind,
                m.cost,
                m.tokens,
                sorted(p.text or "" for p in m.parts),
            )
            for m in store.messages(session, branches=True)
        ]
        state[session.id] = (
            (session.parent_id, session.relation, session.title, session.directory),
            (session.time_created, session.time_updated, session.time_archived),
            (session.message_count, session.cost, session.tokens),
            [message.id for message in store.messages(session)],
            said,
        )
    return state


def write_sessions(store: Store, name: str, detail: str, folder: Path) -> None:
    """Write all sessions of a database in a format at a level of detail."""
    to = exporter(name)
    sessions = store.sessions(**EVERYTHING, limit=1000)
    exports = (store.export(session, **to.read) for session in sessions)
    for item in to.write(exports, detail=detail):
        if isinstance(item, Document):
            path = folder / item.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"".join(item.encoded()))


def formats_of(store: Store) -> list[str]:
    """Return the formats that name a session: all in a long run, else its program's."""
    named = [name for name in writable() if is_read(name) and name not in NAMELESS]
    if os.environ.get("SESSIONDB_LONG"):
        return named
    sources = {session.source for session in store.sessions(**EVERYTHING, limit=1000)}
    return [name for name in named if family(name) in sources]


def stays_as_it_is_when_its_exports_are_imported(store: Store, folder: Path) -> None:
    """Check the sessions of a database, with two imports of each of their exports."""
    before = state_of(store)
    for name in formats_of(store):
        for detail in exporter(name).details:
            files = folder / name / detail
            write_sessions(store, name, detail, files)
            for _ in range(2):
                read_into(store, files)
                assert state_of(store) == before, (name, detail)
    assert check(store) == []


def leaves_a_sample_as_it_is(sample: Sample, folder: Path) -> None:
    """Check the sessions of a sample."""
    sample.write(folder / "theirs")
    with new_store() as store:
        read_into(store, folder / "theirs")
        stays_as_it_is_when_its_exports_are_imported(store, folder / "exports")
