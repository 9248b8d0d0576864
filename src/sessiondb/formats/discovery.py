"""Stores of other programs at a path, or anywhere below it.

A folder is searched once, whatever the number of formats, and no store hides the
others: one that cannot be looked at is yielded as a store that says why. Symbolic
links are not followed, so a search ends, and each file is a store at most once.
"""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter
from pathlib import Path
from stat import S_ISDIR

from sessiondb.errors import SourceError
from sessiondb.formats import registry
from sessiondb.formats.kit.files import (
    NEVER,
    entries,
    identity,
    is_file,
    may_read,
    may_search,
)
from sessiondb.formats.kit.json import OddRecordError
from sessiondb.formats.protocol import ForeignStore, Format, unreadable

#: How deep below a folder stores are searched.
MAX_DEPTH = 24
#: Limits on a search for the files of projects.
MAX_ENTRIES, MAX_PROJECT_DEPTH = 20_000, 6
_SIDE_FILES = ("-wal", "-journal")
#: The entries of a bare git repository, in which snapshots of projects are kept.
_BARE = {"HEAD", "objects", "refs"}


def find(
    path: str | os.PathLike[str], *, formats: Iterable[str] | None = None
) -> Iterator[ForeignStore]:
    """Yield the stores at *path* or below it, each once.

    *path* is a file, a store or any folder above stores. Hidden folders are
    searched, symlinked ones are not, nor ``.git`` and ``node_modules``.
    *formats* are names that `registry.readable` has; None is all. Raises
    `SourceError` if nothing is at *path*, `InvalidInputError` for an unknown format.
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

    search = _below if is_top_folder else _at
    yield from search(top, known)


def _below(top: Path, known: list[Format]) -> Iterator[ForeignStore]:
    suffixes = _suffixes(known)
    seen: set[tuple[int, int]] = set()
    pending = [(top, 0)]
    while pending:
        folder, depth = pending.pop()
        try:
            folders, files = _inside(folder, suffixes, seen)
        except OddRecordError as error:
            yield unreadable(folder, f"the folder {error}")
            continue

        # A folder that is a store belongs to it, with everything below.
        found = list(_at(folder, known))
        yield from found
        if found or depth > MAX_DEPTH:
            continue

        for file in files:
            named = [form for form in known if file.suffix in form.suffixes]
            yield from _at(file, named)
        pending += [(inner, depth + 1) for inner in reversed(folders)]


def stamps(
    path: str | os.PathLike[str], *, formats: Iterable[str] | None = None
) -> dict[Path, tuple[int, ...]]:
    """Return stamps that change with any file at *path* or below; nothing is opened.

    The files are those that `find` would look at, and those that SQLite keeps beside
    them. Empty if nothing is at *path*.
    """
    suffixes = _suffixes(_formats(formats))
    suffixes |= {suffix + side for suffix in suffixes for side in _SIDE_FILES}

    top = Path(path)
    files = [top.with_name(top.name + side) for side in ("", *_SIDE_FILES)]
    pending = [top] if os.path.isdir(top) else []
    while pending:
        with contextlib.suppress(OddRecordError):
            # A file under two names is stamped twice: only changes matter.
            folders, inside = _inside(pending.pop(), suffixes, set())
            files += inside
            pending += folders

    found: dict[Path, tuple[int, ...]] = {}
    for file in files:
        with contextlib.suppress(OSError):
            found |= _stamp(file)
    return found


def _stamp(file: Path) -> dict[Path, tuple[int, ...]]:
    """Return the stamp of a file; empty for a folder. Raises OSError."""
    stat = file.stat()
    if S_ISDIR(stat.st_mode):
        return {}
    # The time of change, too: permissions may have been repaired.
    return {file: (stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)}


def default_locations(
    env: Mapping[str, str], *, formats: Iterable[str] | None = None
) -> list[Path]:
    """Return where programs keep their stores in *env*, whether or not they exist."""
    return [path for form in _formats(formats) for path in form.default_locations(env)]


def in_projects(
    top: Path, *, formats: Iterable[str] | None = None
) -> tuple[list[Path], bool]:
    """Return the files below *top* that programs keep in projects, and if that is all.

    Folders near *top* come first, and hidden ones are not searched. The search ends
    after `MAX_ENTRIES` entries or `MAX_PROJECT_DEPTH` folders.
    """
    names = frozenset[str]().union(*(of.in_projects for of in _formats(formats)))
    found: list[Path] = []
    pending = deque([(top, 0)] if names else [])
    left = MAX_ENTRIES
    while pending and left > 0:
        folder, depth = pending.popleft()
        inside = _entries(folder)[:left]
        left -= len(inside)

        found += (folder / of.name for of in inside if of.name in names)
        if depth < MAX_PROJECT_DEPTH:
            pending += ((folder / of.name, depth + 1) for of in inside if _is_open(of))
    return found, left > 0


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """Return what is in a folder, by name; nothing of one that cannot be read."""
    with contextlib.suppress(OddRecordError):
        return sorted(entries(folder), key=attrgetter("name"))
    return []


def _is_open(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry is a folder that may be, or hold, a project."""
    is_hidden = entry.name.startswith(".") or entry.name in NEVER
    return not is_hidden and entry.is_dir(follow_symlinks=False)


def _formats(names: Iterable[str] | None) -> list[Format]:
    chosen = registry.readable() if names is None else names
    return [registry.reader(name) for name in chosen]


def _suffixes(formats: list[Format]) -> frozenset[str]:
    return frozenset[str]().union(*(form.suffixes for form in formats))


def _at(path: Path, formats: list[Format]) -> Iterator[ForeignStore]:
    """Yield the stores at *path*; one that cannot be looked at says why."""
    if not may_read(path):
        yield unreadable(path, "cannot be read (Permission denied)")
        return
    for form in formats:
        try:
            yield from form.at(path)
        # No format may hide the stores of others.
        except Exception as error:  # noqa: BLE001
            why = f"cannot be looked at: its reader failed: {error!r:.300}"
            yield unreadable(path, why)


def _inside(
    folder: Path, suffixes: frozenset[str], seen: set[tuple[int, int]]
) -> tuple[list[Path], list[Path]]:
    """Return the folders and the files to look at in *folder*, sorted; files only once.

    Raises `OddRecordError` for a folder that cannot be read.
    """
    found = {folder / entry.name: entry for entry in entries(folder)}
    if found and not may_search(folder):
        raise OddRecordError("cannot be searched (Permission denied)")

    names = {path.name for path in found}
    if names >= _BARE:
        return [], []

    # A folder may be named like a file: `_is_new_file` refuses it.
    files = [path for path in found if path.suffix in suffixes]
    folders = [path for path in found if path.name not in NEVER]
    return (
        [path for path in folders if found[path].is_dir(follow_symlinks=False)],
        [path for path in files if _is_new_file(path, seen)],
    )


def _is_new_file(path: Path, seen: set[tuple[int, int]]) -> bool:
    """Return whether a regular file is at *path* that was not *seen*, and add it.

    The same file under a second name, a hard link, is not another store.
    """
    known = identity(path) if is_file(path) else None
    if known is None or known in seen:
        return False
    seen.add(known)
    return True
