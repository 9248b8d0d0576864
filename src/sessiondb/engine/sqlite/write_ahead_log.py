"""The ``-wal`` beside a database: how long it is, and its checkpoints.

A commit that makes the log longer also writes the journal of the file system: its sync
takes 280 µs on ext4, and 170 µs if it overwrites blocks that were written before. But
before SQLite 3.51.3 a process that begins the log again while another one checkpoints
can damage the database. There the log is emptied by TRUNCATE, and a busy writer then
writes room for the next commits. It holds the write lock for that, under which an empty
file is an empty log; SQLite does not take zeros for one.
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
#: The bytes that are written at a time.
_ZEROS = bytes(1 << 20)


def log_reaches(path: Path, size: int) -> bool:
    """Return whether the log has *size* bytes that a checkpoint has not moved.

    The file may be longer than its log: behind that are zeros, or the frames of an
    earlier log, which have other salts than the header
    (https://www.sqlite.org/fileformat2.html#the_write_ahead_log).
    """
    # As large as the room that was written for it: the log is still within that.
    if files.wal_bytes(path) <= size:
        return False

    try:
        log = os.open(f"{path}-wal", os.O_RDONLY)
    except OSError:
        # No file descriptor is left, for example. The commit is on disk all the same,
        # and the next one looks again.
        return False
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

    It waits for them up to *busy_timeout* seconds. The log is empty then; with *room*,
    in bytes, its file is not, if that succeeds, and the next commits overwrite it.
    """
    overwrites = room > 0 and sqlite3.sqlite_version_info >= WAL_RESET_FIXED
    mode = "RESTART" if overwrites else "TRUNCATE"
    for _ in attempts(busy_timeout):
        is_busy, *_ = connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
        if not is_busy:
            if room > 0 and not overwrites:
                write_room(connection, room)
            return True
    return False


def write_room(connection: Any, size: int) -> None:
    """Write *size* bytes for a log that is still empty.

    Blocks that are only allocated would cost each commit as much as new ones, because
    the first write to them updates the journal of the file system, too. If this fails,
    the log grows with each commit.
    """
    with suppress(OSError, sqlite3.OperationalError):
        begin_write(connection)
        try:
            log = os.open(f"{connection.path}-wal", os.O_RDWR)
            try:
                # No other process writes now, but one may have written before.
                if os.fstat(log).st_size == 0:
                    for _ in range(size // len(_ZEROS)):
                        os.write(log, _ZEROS)
                    os.fsync(log)
            finally:
                os.close(log)
        finally:
            connection.execute("ROLLBACK")
