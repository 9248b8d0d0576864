"""Facts of the files of sources: one that did not change is not opened.

Nearly all of a second import are files that are as they were. A reader asks whose log
each is, and the answer of the last import holds as long as the file has the inode,
size and times that it had. That is stricter than the digest of its session, which a
file that is copied keeps. The table is a memory: without its rows files are looked at.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from sessiondb import __version__
from sessiondb.clock import now_ms
from sessiondb.database.core import Core
from sessiondb.dataclass import dataclass, field
from sessiondb.effects.transaction import Transaction
from sessiondb.engine.sql import Statement, upsert_text
from sessiondb.formats.kit.remembered import Look
from sessiondb.importing.gate.values import escaped_path
from sessiondb.repository import Read
from sessiondb.schema.rows import IMPORT_FILE

T = TypeVar("T")
_IN_FOLDER = Statement("importing.known_files.IN_FOLDER")
_FORGET = Statement("importing.known_files.FORGET")
#: Milliseconds after which a file that changes has another time: some file systems
#: count two seconds.
_SETTLED = 2000


class _StoredFile(NamedTuple):
    """The row of a file."""

    stamp: str
    #: JSON.
    facts: str


@dataclass(slots=True)
class _AskedFile:
    """A file that this import asked for, with the facts that hold for it."""

    stamp: str
    facts: dict[str, Any]
    #: Whether any later state of it has another stamp.
    is_settled: bool
    #: Whether it has facts that are not stored.
    is_new: bool = False


@dataclass(slots=True)
class KnownFiles:
    """The facts of files in this database, and those that an import adds."""

    core: Core
    #: The stored files of each folder that was asked for, by their names.
    _stored: dict[str, dict[str, _StoredFile]] = field(default_factory=dict)
    _asked: dict[str, dict[str, _AskedFile]] = field(default_factory=dict)
    #: The file that was asked for last: all formats look at one after the other.
    _last: tuple[Path | None, _AskedFile | None] = None, None
    #: The folder that something was found in last, by which function, and what.
    _last_found: tuple[Any, Any, Any] = None, None, None

    def fact_of(self, path: Path, question: str, look: Look) -> Any:
        """Return what *look* returns for a file, or returned for *question* before."""
        last_path, file = self._last
        if path != last_path:
            # Before it is read: what changes in between is looked at again.
            file = self._file_at(path)
            self._last = path, file
        if file is None:
            return look(path)
        if question in file.facts:
            return file.facts[question]

        fact = look(path)
        if file.is_settled:
            file.facts[question] = fact
            file.is_new = True
        return fact

    def found_once(self, folder: Path, find: Callable[[Path], T]) -> T:
        """Return what *find* returns for a folder, or returned in this import."""
        if self._last_found[:2] != (folder, find):
            self._last_found = folder, find, find(folder)
        found: T = self._last_found[2]
        return found

    def _file_at(self, path: Path) -> _AskedFile | None:
        """Return a file with the facts that hold for it; None if there is none."""
        try:
            status = os.stat(path)
        except OSError:
            return None
        size, times = status.st_size, (status.st_mtime_ns, status.st_ctime_ns)
        # Of another release the facts may be others.
        stamp = f"{__version__} {status.st_ino} {size} {times[0]} {times[1]}"
        is_settled = now_ms() - max(times) // 1_000_000 > _SETTLED

        folder, name = os.path.split(escaped_path(str(path)))
        if folder not in self._stored:
            self._stored[folder] = self.core.read(_read_folder(folder))
        file = self._asked.setdefault(folder, {}).get(name)
        if file is None or file.stamp != stamp:
            stored = self._stored[folder].get(name)
            facts = {}
            if stored is not None and stored.stamp == stamp:
                facts = json.loads(stored.facts)
                if not isinstance(facts, dict):  # written by a shell
                    facts = {}
            file = self._asked[folder][name] = _AskedFile(stamp, facts, is_settled)
        return file

    def changes(self) -> KeepFacts | None:
        """Return the effect that stores what this import added; None without any."""
        rows: list[tuple[str, ...]] = []
        gone: list[dict[str, str]] = []
        for folder, asked in self._asked.items():
            for name, file in asked.items():
                if file.is_new:
                    facts = json.dumps(file.facts, separators=(",", ":"))
                    rows.append((folder, name, file.stamp, facts))
            others = self._stored[folder].keys() - asked.keys()
            # One that was searched, and not one of which a few files were named.
            if len(others) < len(asked):
                gone += (
                    {"folder": folder, "name": name}
                    for name in others
                    if not os.path.lexists(f"{folder}/{name}")
                )
        return KeepFacts(tuple(rows), tuple(gone)) if rows or gone else None


@dataclass(frozen=True, slots=True, eq=False)
class KeepFacts:
    """Store facts of files, and forget files that are gone."""

    verb = "import"
    #: Rows of the table.
    rows: tuple[tuple[str, ...], ...]
    #: The folder and the name of each.
    gone: tuple[dict[str, str], ...]

    def apply(self, tx: Transaction) -> None:
        """Write them."""
        tx.connection.executemany(upsert_text("import_file", IMPORT_FILE), self.rows)
        tx.connection.executemany(_FORGET.text_on(tx.engine), self.gone)


def _read_folder(folder: str) -> Read[dict[str, _StoredFile]]:
    """Return the files of a folder that are known, by their names."""
    rows = yield _IN_FOLDER, {"folder": folder}
    return {name: _StoredFile(stamp, facts) for name, stamp, facts in rows}
