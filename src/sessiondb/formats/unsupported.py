"""Agents whose sessions are recognised and cannot be read yet, to name them.

A store is recognised by the names that its program gives to folders and files; nothing
is opened for it. The table has the names of the registry; a test holds that none of
them can be read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from itertools import filterfalse
from pathlib import Path

from sessiondb.formats.kit.files import is_folder, locations
from sessiondb.formats.kit.walk import Walk
from sessiondb.formats.registry import REGISTRY

#: Name → how the path of one of its files looks, seen from the root.
PATHS = {
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
#: Limits on the entries below a folder.
MAX_ENTRIES, MAX_DEPTH = 2_000, 8


def agents_of(env: Mapping[str, str]) -> list[tuple[str, Path]]:
    """Return the agents of the user that cannot be read, each with a folder of it."""
    found: dict[str, Path] = {}
    for name, folders in HOMES.items():
        for path in filter(is_folder, locations((), folders)(env)):
            found.setdefault(REGISTRY[name].agent, path)
    return list(found.items())


def agents_at(path: str | os.PathLike[str]) -> list[str]:
    """Return the agents with sessions at or below *path*, by name; none is ``[]``."""
    found: dict[str, None] = {}
    for file in _files(Path(path)):
        where = file.absolute().as_posix()
        named = [name for name, shape in PATHS.items() if re.search(shape, where)]
        found |= dict.fromkeys(named)
    return [REGISTRY[name].agent for name in found]


def _files(top: Path) -> Iterator[Path]:
    """Yield a file, or the files below a folder; no links."""
    if not is_folder(top):
        yield top
        return

    for folder in Walk(top, depth=MAX_DEPTH, most=MAX_ENTRIES):
        yield from map(Path, filterfalse(os.DirEntry.is_symlink, folder.files))
