"""Stores of other programs at a path, or anywhere below it.

A folder is searched once, whatever the number of formats, and no store hides the
others: one that cannot be read is yielded as a store that has the reason. The rules of
the search are those of `kit.walk`, and each file is a store at most once: `owners`
decides of which format.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from stat import S_ISDIR, S_ISREG

from sessiondb.errors import SourceError
from sessiondb.formats import registry
from sessiondb.formats.kit.files import device_and_inode, is_file
from sessiondb.formats.kit.walk import Walk, WalkedFolder
from sessiondb.formats.owners import Owners
from sessiondb.formats.protocol import ForeignStore, Format, Reader, unreadable_store
from sessiondb.model import Problem, SourceItem, SourceValues

#: Limits on a search for the files of projects.
MAX_ENTRIES, MAX_PROJECT_DEPTH = 20_000, 6
#: How the names of a file and of those that SQLite keeps beside it end.
_SIDES = ("", "-wal", "-journal")


def find(
    path: str | os.PathLike[str], *, formats: Iterable[str] | None = None
) -> Iterator[ForeignStore]:
    """Yield the stores at *path* or below it, each once.

    *path* is a file, a store or any folder above stores, whose paths are absolute.
    Hidden folders are searched, symlinked ones are not, nor ``.git`` and
    ``node_modules``. *formats* are names that `registry.importable` has; None is all.
    Of programs that share a format, only the sessions of those named are read. Raises
    `SourceError` if nothing is at *path*, `InvalidInputError` for an unknown format.
    """
    names = None if formats is None else list(formats)
    chosen = _chosen_formats(names)
    if names is None:
        wanted = frozenset(registry.readable())
    else:
        wanted = frozenset(registry.format_of_program(name) for name in names)
    owners = Owners(wanted)
    top = _absolute_path(path)
    try:
        is_top_folder = S_ISDIR(top.stat().st_mode)
    except PermissionError as error:
        yield unreadable_store(top, f"cannot be read ({error.strerror})")
        return
    except OSError as error:
        raise SourceError(f"no such file or folder: {top}") from error

    stores: Iterable[ForeignStore]
    if is_top_folder:
        stores = _stores_below(top, owners, _suffixes_of(chosen))
    else:
        stores = owners.of_file(top)
    if names is not None:
        stores = _stores_of_programs(stores, frozenset(names))
    yield from stores


def _absolute_path(path: str | os.PathLike[str]) -> Path:
    """Return the one name that *path* has in all working directories.

    The ledger knows a session by it: the same words name another file elsewhere.
    """
    top = Path(path).absolute()
    return top.resolve() if ".." in top.parts else top


def _stores_of_programs(
    stores: Iterable[ForeignStore], names: frozenset[str]
) -> Iterator[ForeignStore]:
    """Yield *stores* without those, and the sessions, of programs that are not named.

    Only programs that share a format with one of *names* are left out: a log of our
    own has sessions of any program.
    """
    relatives = [registry.related_programs(name) for name in names]
    unwanted = frozenset[str]().union(*relatives) - names

    for store in stores:
        others = unwanted & registry.related_programs(store.source)
        if not store.sources <= others:
            yield replace(store, reader=partial(_read_without, others, store.reader))


def _read_without(
    others: frozenset[str], reader: Reader, path: Path
) -> Iterator[SourceItem]:
    """Yield what a store has, except sessions and prompts of *others*."""
    for item in reader(path):
        if isinstance(item, Problem | SourceValues) or item.source not in others:
            yield item


def _stores_below(
    top: Path, owners: Owners, suffixes: frozenset[str]
) -> Iterator[ForeignStore]:
    seen: set[tuple[int, int]] = set()
    mixed: set[Path] = set()
    for folder in Walk(top):
        if folder.odd:
            yield unreadable_store(folder.path, f"the folder {folder.odd}")
            continue

        if mixed.isdisjoint(folder.path.parents):
            owner = owners.of_folder(folder.path)
            yield from owner.stores
            # A folder that is a store belongs to it, with everything below.
            if owner.is_store:
                folder.folders.clear()
                continue
            if owner.is_mixed:
                mixed.add(folder.path)

        for file in _files_with_suffix(folder, suffixes):
            file_id = device_and_inode(file)
            # A file that is no longer accessible has none; the same file under a second
            # name, a hard link, is not another store.
            if not is_file(file) or file_id is None or file_id in seen:
                continue
            seen.add(file_id)
            yield from owners.of_file(file, by_suffix=True)


def stamps(
    path: str | os.PathLike[str], *, formats: Iterable[str] | None = None
) -> dict[Path, tuple[int, ...]]:
    """Return stamps that change with any file at *path* or below; nothing is opened.

    The files are those that `find` would look at, and those that SQLite keeps beside
    them. Empty if nothing is at *path*.
    """
    endings = _suffixes_of(_chosen_formats(formats))
    suffixes = frozenset(ending + side for ending in endings for side in _SIDES)

    top = _absolute_path(path)
    files = [top.with_name(top.name + side) for side in _SIDES]
    for folder in Walk(top):
        files += _files_with_suffix(folder, suffixes)

    by_file: dict[Path, tuple[int, ...]] = {}
    for file in files:
        try:
            status = file.stat()
        except OSError:
            continue
        if S_ISREG(status.st_mode):
            # The time of change, too: permissions may have been repaired.
            times = status.st_mtime_ns, status.st_ctime_ns
            by_file[file] = (status.st_ino, status.st_size, *times)
    return by_file


def default_locations(
    env: Mapping[str, str], *, formats: Iterable[str] | None = None
) -> list[Path]:
    """Return where programs keep their stores in *env*, whether or not they exist."""
    chosen = _chosen_formats(formats)
    return [path for form in chosen for path in form.default_locations(env)]


def in_projects(
    top: Path, *, formats: Iterable[str] | None = None
) -> tuple[list[Path], bool]:
    """Return the files below *top* that programs keep in projects, and if that is all.

    Folders near *top* come first; hidden ones are not searched, and those that cannot
    be read are passed over. The search ends after `MAX_ENTRIES` entries or
    `MAX_PROJECT_DEPTH` folders.
    """
    names = {name for form in _chosen_formats(formats) for name in form.in_projects}
    if not names:
        return [], True

    files: list[Path] = []
    walk = Walk(top, depth=MAX_PROJECT_DEPTH, most=MAX_ENTRIES)
    for folder in walk:
        files += [Path(entry) for entry in folder.files if entry.name in names]
        folder.folders = [n for n in folder.folders if not n.startswith(".")]
    return files, walk.is_complete


def _chosen_formats(names: Iterable[str] | None) -> list[Format]:
    chosen = registry.readable() if names is None else names
    # Programs that share a format have one entry.
    return list(dict.fromkeys(registry.format_named(name) for name in chosen))


def _suffixes_of(formats: list[Format]) -> frozenset[str]:
    return frozenset(suffix for form in formats for suffix in form.suffixes)


def _files_with_suffix(folder: WalkedFolder, suffixes: frozenset[str]) -> list[Path]:
    """Return the files in a folder that may be a store, by their endings."""
    paths = [Path(entry) for entry in folder.files]
    return [path for path in paths if path.suffix in suffixes]
