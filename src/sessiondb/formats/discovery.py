"""Stores of other programs at a path, or anywhere below it.

A folder is searched once, whatever the number of formats, and no store hides the
others: one that cannot be read is yielded as a store that has the reason. The rules of
the search are those of `kit.walk`, and each file is a store at most once: `owners`
decides of which format.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain, product
from operator import attrgetter
from pathlib import Path
from stat import S_ISDIR, S_ISREG

from sessiondb.errors import SourceError
from sessiondb.formats import registry
from sessiondb.formats.kit.files import identity, is_file
from sessiondb.formats.kit.walk import Folder, Walk
from sessiondb.formats.owners import Owners
from sessiondb.formats.protocol import ForeignStore, Format, Reader, unreadable
from sessiondb.model import Problem, SourceItem

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
    known = _formats(names)
    wanted = registry.readable() if names is None else map(registry.family, names)
    owners = Owners(frozenset(wanted))
    top = _named(path)
    try:
        is_top_folder = S_ISDIR(top.stat().st_mode)
    except PermissionError as error:
        yield unreadable(top, f"cannot be read ({error.strerror})")
        return
    except OSError as error:
        raise SourceError(f"no such file or folder: {top}") from error

    found: Iterable[ForeignStore] = owners.of_file(top)
    if is_top_folder:
        found = _below(top, owners, _suffixes(known))
    yield from found if names is None else _limited(found, frozenset(names))


def _named(path: str | os.PathLike[str]) -> Path:
    """Return the one name that *path* has in all working directories.

    The ledger knows a session by it: the same words name another file elsewhere.
    """
    top = Path(path).absolute()
    return top.resolve() if ".." in top.parts else top


def _limited(
    stores: Iterable[ForeignStore], names: frozenset[str]
) -> Iterator[ForeignStore]:
    """Yield *stores* without those, and the sessions, of programs that are not named.

    Only programs that share a format with one of *names* are left out: a log of our
    own has sessions of any program.
    """
    others = frozenset[str]().union(*map(registry.relatives, names)) - names

    for store in stores:
        beside = others & registry.relatives(store.source)
        if not store.sources <= beside:
            yield replace(store, reader=partial(_without, beside, store.reader))


def _without(
    others: frozenset[str], reader: Reader, path: Path
) -> Iterator[SourceItem]:
    """Yield what a store has, except sessions and prompts of *others*."""
    for item in reader(path):
        if isinstance(item, Problem) or item.source not in others:
            yield item


def _below(
    top: Path, owners: Owners, suffixes: frozenset[str]
) -> Iterator[ForeignStore]:
    # One that is no longer accessible has no identity.
    seen: set[tuple[int, int] | None] = {None}
    mixed: set[Path] = set()
    for folder in Walk(top):
        if folder.odd:
            yield unreadable(folder.path, f"the folder {folder.odd}")
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

        for file in filter(is_file, _files(folder, suffixes)):
            # The same file under a second name, a hard link, is not another store.
            if (of := identity(file)) not in seen:
                seen.add(of)
                yield from owners.of_file(file, by_suffix=True)


def stamps(
    path: str | os.PathLike[str], *, formats: Iterable[str] | None = None
) -> dict[Path, tuple[int, ...]]:
    """Return stamps that change with any file at *path* or below; nothing is opened.

    The files are those that `find` would look at, and those that SQLite keeps beside
    them. Empty if nothing is at *path*.
    """
    pairs = product(_suffixes(_formats(formats)), _SIDES)
    suffixes = frozenset(map("".join, pairs))

    top = _named(path)
    files = [top.with_name(top.name + side) for side in _SIDES]
    for folder in Walk(top):
        files += _files(folder, suffixes)

    found: dict[Path, tuple[int, ...]] = {}
    for file in files:
        with contextlib.suppress(OSError):
            found |= _stamp(file)
    return found


def _stamp(file: Path) -> dict[Path, tuple[int, ...]]:
    """Return the stamp of a file; empty for anything else. Raises OSError."""
    stat = file.stat()
    if not S_ISREG(stat.st_mode):
        return {}
    # The time of change, too: permissions may have been repaired.
    return {file: (stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)}


def default_locations(
    env: Mapping[str, str], *, formats: Iterable[str] | None = None
) -> list[Path]:
    """Return where programs keep their stores in *env*, whether or not they exist."""
    places = (form.default_locations(env) for form in _formats(formats))
    return list(chain.from_iterable(places))


def in_projects(
    top: Path, *, formats: Iterable[str] | None = None
) -> tuple[list[Path], bool]:
    """Return the files below *top* that programs keep in projects, and if that is all.

    Folders near *top* come first; hidden ones are not searched, and those that cannot
    be read are passed over. The search ends after `MAX_ENTRIES` entries or
    `MAX_PROJECT_DEPTH` folders.
    """
    named = map(attrgetter("in_projects"), _formats(formats))
    names = frozenset[str]().union(*named)
    if not names:
        return [], True

    found: list[Path] = []
    walk = Walk(top, depth=MAX_PROJECT_DEPTH, most=MAX_ENTRIES)
    for folder in walk:
        found += (Path(of) for of in folder.files if of.name in names)
        folder.folders = [of for of in folder.folders if not of.startswith(".")]
    return found, walk.is_complete


def _formats(names: Iterable[str] | None) -> list[Format]:
    chosen = registry.readable() if names is None else names
    # Programs that share a format have one entry.
    return list(dict.fromkeys(map(registry.reader, chosen)))


def _suffixes(formats: list[Format]) -> frozenset[str]:
    return frozenset[str]().union(*map(attrgetter("suffixes"), formats))


def _files(folder: Folder, suffixes: frozenset[str]) -> list[Path]:
    """Return the files in a folder that may be a store, by their endings."""
    return [path for path in map(Path, folder.files) if path.suffix in suffixes]
