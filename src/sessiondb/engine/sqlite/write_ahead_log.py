"""The ``-wal`` beside a database: how long it is, and its checkpoints.

A log that commits overwrite costs a quarter less than one that grows: then each commit
also has to write the file system's own journal. But who begins a log again while
another process checkpoints may damage the file, before SQLite 3.51.3. So a log is
emptied under the write lock, and before that is given back a busy writer has room
allocated for the next commits: SQLite reads zeros there, and takes them for no log.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Any

from sessiondb.engine.sqlite import files
from sessiondb.engine.sqlite.connection import attempts, begin_write

#: The first release in which a log may begin again at any time.
WAL_RESET_FIXED = (3, 51, 3)
_HEADER_BYTES = 32
_FRAME_HEADER_BYTES = 24


def log_reaches(path: Path, size: int) -> bool:
    """Return whether the log has *size* bytes that a checkpoint has not moved.

    The file may be longer than its log: behind that are zeros, or the frames of an
    earlier log, which have other salts than the header
    (https://www.sqlite.org/fileformat2.html#the_write_ahead_log).
    """
    if files.wal_bytes(path) < size:
        return False

    # After a filling each commit comes here: `Path.open` would cost five times as much.
    log = os.open(f"{path}-wal", os.O_RDONLY)
    try:
        header = os.read(log, _HEADER_BYTES)
        frame_bytes = _FRAME_HEADER_BYTES + int.from_bytes(header[8:12])
        os.lseek(log, size - (size - _HEADER_BYTES) % frame_bytes, os.SEEK_SET)
        frame = os.read(log, _FRAME_HEADER_BYTES)
    finally:
        os.close(log)
    return any(header) and frame[8:16] == header[16:24]


def checkpoint(connection: Any, busy_timeout: float = 0.0, room: int = 0) -> bool:
    """Move the log into the file; False if a reader or writer kept it.

    It waits for them up to *busy_timeout* seconds. The log is emptied, but for *room*
    bytes of the file, which the next commits overwrite.
    """
    overwrites = room > 0 and sqlite3.sqlite_version_info >= WAL_RESET_FIXED
    mode = "RESTART" if overwrites else "TRUNCATE"
    for _ in attempts(busy_timeout):
        is_busy, *_ = connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
        if not is_busy:
            if room > 0 and not overwrites:
                _allocate(connection, room)
            return True
    return False


def _allocate(connection: Any, size: int) -> None:
    """Give a log that is still empty *size* bytes of the disk, if it has them."""
    begin_write(connection)
    try:
        log = os.open(f"{connection.path}-wal", os.O_RDWR)
        try:
            # Nobody else writes now; what was written since it was emptied stays.
            if os.fstat(log).st_size == 0:
                # Without it, or without room, the log grows with each commit.
                with suppress(OSError, AttributeError):
                    os.posix_fallocate(log, 0, size)
        finally:
            os.close(log)
    finally:
        connection.execute("ROLLBACK")
