"""Pages that a turn adds to the write-ahead log, counted in the shared index of the log.

The count is exact and the same on every machine. The header of the index has the number
of the last valid frame, and salts that change when the log begins again; the size of the
log itself says nothing once it is overwritten in place.
https://www.sqlite.org/walformat.html#the_wal_index_header

Only a process that has no connection to the database may read these files: closing one
drops the locks that its own SQLite holds.
"""

from __future__ import annotations

import struct
from pathlib import Path

HEADER = struct.Struct("=16xI12x8s")  # last valid frame, salts


class PagesWritten:
    """A count over turns; those in which the log began again are left out."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.turns = self.frames = 0
        self.before = self._read()

    def end_turn(self) -> None:
        """Read the log after a turn; what it has had since the last turn counts."""
        before, self.before = self.before, self._read()
        if before is None or self.before is None:
            return
        (first, salts), (last, salts_after) = before, self.before
        if salts == salts_after and last >= first:
            self.turns += 1
            self.frames += last - first

    @property
    def per_turn(self) -> float | None:
        """Pages per turn; None if the store has no write-ahead log."""
        return self.frames / self.turns if self.turns else None

    def _read(self) -> tuple[int, bytes] | None:
        """Return the number of frames, and the salts."""
        index = next(self.folder.glob("*-shm"), None)
        if index is None:
            return None
        with index.open("rb") as file:
            header = file.read(HEADER.size)
        if len(header) < HEADER.size:
            return None
        last, salts = HEADER.unpack(header)
        return last, salts
