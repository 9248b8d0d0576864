"""Sessions of a project exchanged through files that a team commits.

Each session is one log in ``.sessiondb/sessions``, the same bytes for the same
session, directories relative to the project. Reading comes first, so that what
is written holds both sides; a file is written only where it differs. Nothing is
deleted on either side: what was removed is told.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from sessiondb.errors import InvalidInputError
from sessiondb.formats import find, jsonl
from sessiondb.maintenance.removal import every
from sessiondb.model import Imported, Problem, SourceSession
from sessiondb.repository.sessions import ALL
from sessiondb.store import Store

FOLDER = ".sessiondb/sessions"
#: Both sides' lines are kept; the reader joins them.
ATTRIBUTES = "*.jsonl -text merge=union\n"


@dataclass(slots=True)
class Synced:
    """What a sync did.

    ``read`` is what became of each session in the files, ``written`` and
    ``missing`` are ids: a missing one had a file here, which somebody removed.
    """

    folder: Path
    read: list[Imported] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def sync(store: Store) -> Synced:
    """Read the files of other people's sessions, write those of ours that changed.

    Raises `InvalidInputError` for a database that is no project's own, or where
    the folder is a symbolic link.
    """
    root = store.location.root
    if root is None:
        raise InvalidInputError(
            "sync needs a database of the project's own", hint="`sessiondb init --local` makes one"
        )
    folder = Path(root) / FOLDER
    if any(path.is_symlink() for path in (folder, folder.parent)):
        raise InvalidInputError(f"{folder} is a symbolic link", hint="make it a folder")
    folder.mkdir(parents=True, exist_ok=True)
    attributes = folder / ".gitattributes"
    if not os.path.lexists(attributes):
        attributes.write_text(ATTRIBUTES)
    done = Synced(folder)
    _read(store, done, sorted(folder.glob("*.jsonl"), reverse=True))
    _write(store, done, str(root))
    return done


def _read(store: Store, done: Synced, paths: list[Path], *, note: bool = False) -> None:
    """Read files, the oldest session's first; *note* only that they say what is here."""

    def sources() -> Iterator[SourceSession | Problem]:
        for path in paths:
            if path.is_symlink():
                yield Problem(str(path), "a symbolic link is not read")
                continue
            found = list(find(path, formats=["jsonl"]))
            if not found and path.stat().st_size:
                yield Problem(str(path), "not a log of sessiondb")
            for item in found:
                yield from item.read()

    for result in store.ingest(sources()):
        if isinstance(result, Problem):
            done.problems.append(result)
        elif not note:
            done.read.append(result)


def _write(store: Store, done: Synced, root: str) -> None:
    with store.connection() as connection:
        query = "SELECT path FROM import_ledger WHERE substr(path, 1, length(?1)) = ?1"
        rows = connection.exec_driver_sql(query, (f"{done.folder}{os.sep}",))
        known = {path for (path,) in rows}
    changed: list[Path] = []
    everything = {"project": ALL, "archived": True, "subagents": True, "empty": True}
    for session in every(store, **everything, order="created"):
        path = done.folder / jsonl.file_name(session.id)
        named = f"{path}#{session.source_id or session.id}"
        if not path.exists() and named in known:
            done.missing.append(session.id)
            continue
        lines = jsonl.lines(store.export(session.id, **jsonl.READ), base=root)
        if _replace(path, "".join(lines).encode()):
            done.written.append(session.id)
            changed.append(path)
    _read(store, done, changed, note=True)


def _replace(path: Path, content: bytes) -> bool:
    """Write a file unless it says the same already; it appears whole or not at all."""
    if path.is_file() and not path.is_symlink() and path.read_bytes() == content:
        return False
    descriptor, name = tempfile.mkstemp(prefix=".", dir=path.parent)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    Path(name).replace(path)
    return True
