"""Folders, walked by the same rules for every search.

- Entries are sorted by name, and a folder comes before those inside it.
- A link to a folder is not followed, so a walk ends. A link to a file is an entry like
  any other: the caller decides.
- `NEVER` and bare git repositories, the snapshots of projects, are not walked.
- A folder that cannot be read is yielded with the reason, and the walk continues.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path

from sessiondb.formats.kit.files import entries, may_search, unreadable
from sessiondb.formats.kit.json import OddRecordError

#: How deep below a folder a walk goes.
MAX_DEPTH = 24
#: Folders without sessions, and with more files than all others.
NEVER = frozenset({".git", "node_modules"})
#: The entries of a bare git repository.
_BARE = frozenset({"HEAD", "objects", "refs"})
_name: Callable[[os.DirEntry[str]], str] = attrgetter("name")


@dataclass(slots=True)
class Folder:
    """A folder with the ``files`` in it, and the ``folders`` that are walked next.

    A caller that removes names of ``folders`` leaves those out. ``odd`` says why the
    folder cannot be read: the end of a sentence about it.
    """

    path: Path
    files: list[os.DirEntry[str]] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    odd: str = ""


class Walk:
    """A walk over *top* and the folders in it, down to *depth*; one time only.

    With *most*, it ends after so many entries, and folders near *top* come first.
    ``is_complete`` says, afterwards, whether it reached everything down to *depth*.
    """

    def __init__(
        self, top: Path, *, depth: int = MAX_DEPTH, most: int | None = None
    ) -> None:
        self._depth = depth
        self._left = most
        self._pending = deque([(top, 0)])
        # The last one added comes next, or the first one.
        self._next = self._pending.pop if most is None else self._pending.popleft
        self.is_complete = True

    def __iter__(self) -> Iterator[Folder]:
        while self._pending and self._left != 0:
            path, depth = self._next()
            folder = self._look(path)
            yield folder

            names = folder.folders if depth < self._depth else []
            inner = [(path / name, depth + 1) for name in names]
            self._pending.extend(reversed(inner) if self._left is None else inner)

        self.is_complete &= not self._pending

    def _look(self, path: Path) -> Folder:
        """Return a folder, and count its entries; one that does not exist is empty."""
        try:
            found = list(entries(path))
            if found and not may_search(path):
                return Folder(path, odd="cannot be searched (Permission denied)")
            folders = {e.name for e in found if e.is_dir(follow_symlinks=False)}
        except OddRecordError as error:
            return Folder(path, odd=str(error))
        except OSError as error:
            return Folder(path, odd=str(unreadable(error)))

        if _BARE.issubset(map(_name, found)):
            return Folder(path)

        found = self._counted(found)
        files = [entry for entry in found if entry.name not in folders]
        inner = folders.difference(NEVER)
        return Folder(path, files, list(filter(inner.__contains__, map(_name, found))))

    def _counted(self, found: list[os.DirEntry[str]]) -> list[os.DirEntry[str]]:
        """Return as many entries as are left to a limited walk."""
        if self._left is None:
            return found
        self.is_complete &= len(found) <= self._left
        found = found[: self._left]
        self._left -= len(found)
        return found
