"""Agents whose sessions are recognised and cannot be read yet, to name them.

A store is recognised by the names that its program gives to folders and files, or by
the first records of its text files. No database is opened for it. The tables have the
names of the registry; a test holds that none of them can be read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from sessiondb.errors import SourceError
from sessiondb.formats.kit.fields import as_object
from sessiondb.formats.kit.files import NEVER, entries, is_folder
from sessiondb.formats.kit.json import OddRecordError
from sessiondb.formats.kit.logs import first_records
from sessiondb.formats.registry import REGISTRY

#: Name → how the path of one of its files looks, seen from the root.
PATHS = {
    "qwen": r"/\.qwen(/|$)",
    "cursor": r"/\.cursor(/|$)|/Cursor/User/globalStorage(/|$)",
}


#: Name → the folders in which it keeps its sessions, below the home directory.
HOMES = {
    "cursor": (
        ".cursor",
        ".config/Cursor/User/globalStorage",
        "Library/Application Support/Cursor/User/globalStorage",
    ),
}


class Sign(NamedTuple):
    """A record that a program alone writes: keys of it and of its ``message``."""

    name: str
    keys: frozenset[str]
    message: frozenset[str] = frozenset()
    type: str | None = None


_LIKE_CLAUDE = frozenset({"sessionId", "parentUuid"})
#: The first that fits a record says whose it is.
SIGNS = (
    # Claude Code writes the same records; its messages differ.
    Sign("qwen", _LIKE_CLAUDE, frozenset({"parts"})),
)
#: Limits on the entries below a folder, and on the lines of a file.
MAX_ENTRIES, MAX_DEPTH, MAX_LINES, MAX_BYTES = 2_000, 8, 16, 1 << 20


def agents_of(env: Mapping[str, str]) -> list[tuple[str, Path]]:
    """Return the agents of the user that cannot be read, each with a folder of it."""
    found: dict[str, Path] = {}
    for name, folders in HOMES.items():
        for folder in folders if env.get("HOME") else ():
            path = Path(env["HOME"], folder)
            if is_folder(path):
                found.setdefault(REGISTRY[name].agent, path)
    return list(found.items())


def agents_at(path: str | os.PathLike[str]) -> list[str]:
    """Return the agents with sessions at or below *path*, by name; none is ``[]``."""
    found: dict[str, None] = {}
    for file in _files(Path(path)):
        where = file.absolute().as_posix()
        named = [name for name, shape in PATHS.items() if re.search(shape, where)]
        found |= dict.fromkeys(named or _by_content(file))
    return [REGISTRY[name].agent for name in found]


def _files(top: Path) -> Iterator[Path]:
    """Yield a file, or the files below a folder; links are not followed."""
    if not is_folder(top):
        yield top
        return

    pending, left = [(top, 0)], MAX_ENTRIES
    while pending and left > 0:
        folder, depth = pending.pop()
        found = _entries(folder)[:left]
        left -= len(found)

        for entry in found:
            path = folder / entry.name
            if not entry.is_dir(follow_symlinks=False):
                yield path
            elif depth < MAX_DEPTH and entry.name not in NEVER:
                pending.append((path, depth + 1))


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """Return what is in a folder but links; nothing of one that cannot be read."""
    with suppress(OddRecordError):
        return [entry for entry in entries(folder) if not entry.is_symlink()]
    return []


def _by_content(file: Path) -> list[str]:
    """Return the name of the program that writes such records, if any."""
    if file.suffix not in (".jsonl", ".json"):
        return []

    named = filter(None, map(_owner_of, _records(file)))
    return list(islice(named, 1))


def _owner_of(record: dict[str, Any]) -> str | None:
    """Return whose log a record is from; None if that is not certain."""
    kind = record.get("type")
    keys, inner = record.keys(), as_object(record.get("message")).keys()
    fits = (of for of in SIGNS if of.keys <= keys and of.message <= inner)
    return next((of.name for of in fits if of.type in (None, kind)), None)


def _records(file: Path) -> list[dict[str, Any]]:
    """Return the objects of the first lines of a file; none if it cannot be read."""
    with suppress(SourceError):
        return first_records(file, MAX_LINES, longest=MAX_BYTES)
    return []
