"""Stores of other programs: where they are, and what is in them.

Each program has one module here, which knows `sessiondb.model` and nothing of
our database: ``at(path)`` yields the stores that are exactly at a path,
``SUFFIXES`` are the files worth asking about, ``default_locations(env)`` is
where the program keeps its own. To add a program is to add a line to `FORMATS`.
A format that can be written has a line in `WRITERS`, and a module of kind `Writer`.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from stat import S_ISDIR
from typing import Protocol, cast

from sessiondb.errors import InvalidInputError, SourceError, abridged
from sessiondb.formats.kit.files import entries, identity, is_file, may_read, may_search
from sessiondb.formats.kit.json import OddRecordError
from sessiondb.formats.store import Store, unreadable
from sessiondb.formats.unsupported import PLANNED
from sessiondb.model import Document, Export, Loss

__all__ = [
    "FORMATS", "WRITERS", "Format", "Store", "Writer", "default_locations", "find", "stamps",
    "writer",
]  # fmt: skip

#: The modules of the formats by name; they are imported when they are used.
FORMATS = {
    "opencode": "sessiondb.formats.opencode",
    "jsonl": "sessiondb.formats.jsonl",
}
#: The modules of the formats that can be written, by name.
WRITERS = {
    "jsonl": "sessiondb.formats.jsonl",
    "opencode": "sessiondb.formats.opencode.write",
    "opencode2": "sessiondb.formats.opencode.write2",
    "opencode-tree": "sessiondb.formats.opencode.write_tree",
    "markdown": "sessiondb.formats.markdown",
    "html": "sessiondb.formats.html",
}
#: How deep below a folder stores are searched.
MAX_DEPTH = 24
_SIDE_FILES = ("-wal", "-journal")
_NEVER = frozenset({".git", "node_modules"})
#: The entries of a bare git repository; snapshots of whole projects are kept in such.
_BARE = {"HEAD", "objects", "refs"}


class Format(Protocol):
    """The interface of a format's module."""

    SUFFIXES: frozenset[str]

    def at(self, path: Path) -> Iterator[Store]:
        """The stores that are exactly at *path*."""

    def default_locations(self, env: Mapping[str, str]) -> list[Path]:
        """Where the program keeps its stores."""


class Writer(Protocol):
    """The interface of the module of a format that can be written.

    ``READ`` are the keywords of `Store.export` that its sessions are read with;
    ``TOGETHER`` says whether several sessions can be one file, ``DETAILS`` which
    levels of detail it knows, the default first.
    """

    READ: Mapping[str, bool]
    TOGETHER: bool
    DETAILS: tuple[str, ...]

    def write(
        self, sessions: Iterable[Export], *, detail: str, together: bool = False
    ) -> Iterator[Document | Loss]:
        """Yield the files, parents first; each is read to its end before the next one."""


def writer(name: str) -> Writer:
    """Return the writer of a format; raises `InvalidInputError` for an unknown one."""
    if name not in WRITERS:
        raise InvalidInputError(
            f"cannot write {abridged(name)}; known are {', '.join(WRITERS)}"
        )
    return cast(Writer, import_module(WRITERS[name]))


def find(
    path: str | os.PathLike[str], *, formats: Iterable[str] | None = None
) -> Iterator[Store]:
    """Yield the stores at *path* or below it, each once.

    *path* is a file, a store or any folder above stores. Hidden folders are
    searched, symlinked ones are not, nor ``.git`` and ``node_modules``.
    *formats* are names in `FORMATS`; None is all. Raises `SourceError` when
    nothing is at *path*, `InvalidInputError` for an unknown format.
    """
    known = _formats(formats)
    top = Path(path)
    try:
        is_top_folder = S_ISDIR(top.stat().st_mode)
    except PermissionError as error:
        yield unreadable(top, f"cannot be read ({error.strerror})")
        return
    except OSError as error:
        raise SourceError(f"no such file or folder: {top}") from error
    if not is_top_folder:
        yield from _at(top, known)
        return
    suffixes = frozenset[str]().union(*(form.SUFFIXES for form in known))
    seen: set[tuple[int, int]] = set()
    pending = [(top, 0)]
    while pending:
        folder, depth = pending.pop()
        try:
            folders, files = _inside(folder, suffixes, seen)
        except OddRecordError as error:
            yield unreadable(folder, f"the folder {error}")
            continue
        found = list(_at(folder, known))
        yield from found
        if found or depth > MAX_DEPTH:
            continue
        for file in files:
            yield from _at(file, known)
        pending += [(inner, depth + 1) for inner in reversed(folders)]


def stamps(
    path: str | os.PathLike[str], *, formats: Iterable[str] | None = None
) -> dict[Path, tuple[int, ...]]:
    """Return stamps that change with any file at *path* or below; nothing is opened.

    The files are those that `find` would ask, and those that SQLite keeps beside
    them. Empty when nothing is at *path*.
    """
    suffixes = frozenset[str]().union(*(form.SUFFIXES for form in _formats(formats)))
    suffixes |= {suffix + side for suffix in suffixes for side in _SIDE_FILES}
    top = Path(path)
    files = [top.with_name(top.name + side) for side in ("", *_SIDE_FILES)]
    pending = [top] if os.path.isdir(top) else []
    while pending:
        with contextlib.suppress(OddRecordError):
            folders, inside = _inside(pending.pop(), suffixes, set())
            files += inside
            pending += folders
    found: dict[Path, tuple[int, ...]] = {}
    for file in files:
        with contextlib.suppress(OSError):
            stat = file.stat()
            if not S_ISDIR(stat.st_mode):
                # The time of change, too: permissions may be mended.
                found[file] = (
                    stat.st_ino,
                    stat.st_size,
                    stat.st_mtime_ns,
                    stat.st_ctime_ns,
                )
    return found


def default_locations(
    env: Mapping[str, str], *, formats: Iterable[str] | None = None
) -> list[Path]:
    """Return where the programs keep their stores in *env*; there may be nothing there."""
    return [path for form in _formats(formats) for path in form.default_locations(env)]


def _formats(names: Iterable[str] | None) -> list[Format]:
    chosen = list(FORMATS if names is None else names)
    for name in chosen:
        if name not in FORMATS:
            known = f"known are {', '.join(FORMATS)}"
            agent = PLANNED.get(name) if isinstance(name, str) else None
            if agent is not None:
                raise InvalidInputError(f"{agent} is not supported yet; {known}")
            raise InvalidInputError(f"no format {abridged(name)}; {known}")
    return [cast(Format, import_module(FORMATS[name])) for name in chosen]


def _at(path: Path, formats: list[Format]) -> Iterator[Store]:
    """Yield the stores at *path*; where one may be that cannot be read, what says so."""
    if not may_read(path):
        yield unreadable(path, "cannot be read (Permission denied)")
        return
    for form in formats:
        try:
            yield from form.at(path)
        except Exception as error:  # noqa: BLE001  no format may hide the stores of others
            yield unreadable(
                path, f"cannot be looked at: its reader failed: {error!r:.300}"
            )


def _inside(
    folder: Path, suffixes: frozenset[str], seen: set[tuple[int, int]]
) -> tuple[list[Path], list[Path]]:
    """Return the folders and the files to look at in *folder*, sorted; files only once.

    Raises `OddRecordError` for a folder that cannot be read.
    """
    found = list(entries(folder))
    if _BARE.issubset(entry.name for entry in found):
        return [], []
    folders, files = [], []
    for entry in found:
        path = folder / entry.name
        if entry.is_dir(follow_symlinks=False):
            if entry.name not in _NEVER:
                folders.append(path)
        elif path.suffix in suffixes and is_file(path):
            known = identity(path)
            if known is not None and known not in seen:
                seen.add(known)
                files.append(path)
    if found and not may_search(folder):
        raise OddRecordError("cannot be searched (Permission denied)")
    return folders, files
