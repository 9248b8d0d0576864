"""One watcher of a database on a machine: a second one waits, or reports the first.

A watcher holds a lock on a file in the user's state directory, which the system frees
when its process ends. The file says who holds it, and which places are watched.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sessiondb.cli.opening import say
from sessiondb.dataclass import dataclass, field
from sessiondb.errors import NotFoundError
from sessiondb.location.directories import state_directory

if TYPE_CHECKING:
    from sessiondb.engine.base import Target

#: Seconds between two attempts of a watcher that waits.
PAUSE = 0.5


@dataclass(slots=True)
class Watchers:
    """The watchers of one database; this one imports what is at *places*."""

    database: Target
    places: Iterable[Path]
    _file: int | None = field(default=None, init=False)

    def join(self) -> None:
        """Become the watcher of the database; wait if another one does the same work.

        Where no file can be locked, every watcher works.
        """
        mine = sorted(str(place.absolute()) for place in self.places)
        if self._try_lock(mine):
            return

        other = self._other_watcher()
        who = f"process {other.get('pid', '?')} is already watching for this database"
        if other.get("places", mine) != mine:
            say(f"{who}, at other places; both are watching now")
            return
        say(f"{who}; this one is waiting for it to end")
        while not self._try_lock(mine):
            time.sleep(PAUSE)

    def _try_lock(self, places: list[str]) -> bool:
        """Return False if another process holds the lock."""
        # A server that does not answer is an `OSError`, too: the import reports it.
        with suppress(OSError, NotFoundError):
            self._file = self._open_lock_file()
            if not _lock_descriptor(self._file):
                return False
            note = json.dumps({"pid": os.getpid(), "places": places}).encode()
            os.ftruncate(self._file, 0)
            os.lseek(self._file, 0, os.SEEK_SET)
            os.write(self._file, note)
        return True

    def _open_lock_file(self) -> int:
        """Return the descriptor of the file, which stays open until the end."""
        if self._file is not None:
            return self._file
        # By its identity: a database has many names.
        identity = self.database.identity()
        if identity is None:
            raise NotFoundError(f"no database at {self.database}")
        name = hashlib.sha256(repr(identity).encode()).hexdigest()[:16]
        folder = state_directory()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        return os.open(folder / f"watch-{name}.lock", flags, 0o600)

    def _other_watcher(self) -> dict[str, Any]:
        """Return what the other watcher says of itself; it may just have begun."""
        with suppress(OSError, ValueError):
            os.lseek(self._open_lock_file(), 0, os.SEEK_SET)
            holder = json.loads(os.read(self._open_lock_file(), 1 << 20))
            if isinstance(holder, dict):
                return holder
        return {}


if sys.platform == "win32":

    def _lock_descriptor(descriptor: int) -> bool:
        del descriptor  # there the locked bytes could not be read by others
        return True

else:
    import fcntl

    def _lock_descriptor(descriptor: int) -> bool:
        """Return whether this process has the lock, without waiting."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
