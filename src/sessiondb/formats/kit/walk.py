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
from collections.abc import Iterator
from pathlib import Path

from sessiondb.dataclass import dataclass, field
from sessiondb.formats.kit.files import may_search, sorted_entries, unreadable_error
from sessiondb.formats.kit.json import OddRecordError

#: How deep below a folder a walk goes.
MAX_DEPTH = 24
#: Folders without sessions, and with more files than all others.
NEVER = frozenset({".git", "node_modules"})
#: The entries of a bare git repository.
_BARE = frozenset({"HEAD", "objects", "refs"})


@dataclass(slots=True)
class WalkedFolder:
    """A folder that a walk passes."""

    path: Path
    #: Its entries that are not folders.
    files: list[os.DirEntry[str]] = field(default_factory=list)
    #: The names of the folders in it that are walked next: a caller that removes names
    #: leaves those out.
    folders: list[str] = field(default_factory=list)
    #: The reason why it cannot be read: the end of a sentence about it.
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
        #: The entries that are left to a limited walk.
        self._left = most
        #: The folders that come next, with their depth below *top*.
        self._pending = deque([(top, 0)])
        self.is_complete = True

    def __iter__(self) -> Iterator[WalkedFolder]:
        while self._pending and self._left != 0:
            path, depth = self._pending.popleft()
            folder = self._list_folder(path)
            yield folder

            if depth == self._depth:
                continue
            inner = [(path / name, depth + 1) for name in folder.folders]
            if self._left is None:
                # In depth: the folders inside come before the next one beside it.
                self._pending.extendleft(reversed(inner))
            else:
                self._pending.extend(inner)

        if self._pending:
            self.is_complete = False

    def _list_folder(self, path: Path) -> WalkedFolder:
        """Return a folder, and count its entries; one that does not exist is empty."""
        try:
            listing = list(sorted_entries(path))
            if listing and not may_search(path):
                return WalkedFolder(path, odd="cannot be searched (Permission denied)")
            folders = {e.name for e in listing if e.is_dir(follow_symlinks=False)}
        except OddRecordError as error:
            return WalkedFolder(path, odd=str(error))
        except OSError as error:
            return WalkedFolder(path, odd=str(unreadable_error(error)))

        if {entry.name for entry in listing} >= _BARE:
            return WalkedFolder(path)
        if self._left is not None:
            if len(listing) > self._left:
                self.is_complete = False
            listing = listing[: self._left]
            self._left -= len(listing)

        folder = WalkedFolder(path)
        for entry in listing:
            if entry.name not in folders:
                folder.files.append(entry)
            elif entry.name not in NEVER:
                folder.folders.append(entry.name)
        return folder
