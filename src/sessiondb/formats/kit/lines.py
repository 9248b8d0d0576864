"""The lines of a log, packed or not, with bounds on what a hostile file costs.

A file is scanned once, and any line can be read again by its offset, so a
reader keeps offsets and not records: memory is bounded by the longest line. Damage
costs the lines that it touches; those before and after it are read. A program may
add lines all the while: the last one may be torn, and is complete the next time.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, NamedTuple, TypeVar, cast

from sessiondb.errors import SourceError
from sessiondb.formats.kit.json import OddRecordError
from sessiondb.formats.kit.packed import (
    DamagedError,
    inflate_file,
    is_packed,
    suffix_of,
    unpack_file,
)
from sessiondb.model import Problem, Problems

T = TypeVar("T")

#: Bytes of a line; a longer one is a problem. The largest storable value fits.
MAX_LINE = 1 << 30
_CHUNK = 1 << 16
#: Bytes of lines that are read at once.
_BATCH = 1 << 14
_NO_WAIT: int = sum(getattr(os, f, 0) for f in ("O_NONBLOCK", "O_BINARY"))


class Line(NamedTuple):
    """The place of a line in its log."""

    #: Counted from 1.
    number: int
    #: The number of bytes before it.
    offset: int


MakeLines = Callable[[IO[bytes], os.stat_result], "Lines"]


class Lines:
    """The lines of an open log; ``problems`` are those of the lines read so far.

    ``stat`` is of the file at *path*, also if that is packed.
    """

    def __init__(self, path: Path, file: IO[bytes], status: os.stat_result) -> None:
        self.path = path
        self.stat = status
        self.problems = Problems()
        self._file = file

    def problem(self, reason: str, line: Line | None = None) -> Problem:
        """Return a problem of this log, or of one of its lines."""
        return Problem(str(self.path), reason, None if line is None else line.number)

    def refused_subject(self, subject: str, error: Exception, line: Line) -> Problem:
        """Return the problem of a *subject* that begins at a line and is refused."""
        return self.problem(f"{subject}: {error}", line)

    def __iter__(self) -> Iterator[tuple[Line, bytes]]:
        """Read from the beginning; a line that is too long is a problem."""
        number = offset = 0
        while True:
            # The reader of a line may read another one before the next.
            self._file.seek(offset)
            raw = self._file.readline(MAX_LINE + 1)
            if not raw:
                return

            number += 1
            line, offset = Line(number, offset), offset + len(raw)
            if len(raw) <= MAX_LINE:
                yield line, raw
                continue

            del raw
            reason = f"line skipped: it is longer than {MAX_LINE} bytes"
            self.problems.append(self.problem(reason, line))
            offset += self._skip_line()

    def _skip_line(self) -> int:
        """Read to the end of a line; return how many bytes that was."""
        size = 0
        while chunk := self._file.readline(_CHUNK):
            size += len(chunk)
            if chunk.endswith(b"\n"):
                break

        return size

    def records(self, decode: Callable[[bytes], T]) -> Iterator[tuple[Line, bytes, T]]:
        """Yield each line that is not empty, raw and decoded.

        A line that *decode* (`load_object`, usually) refuses with ValueError or
        RecursionError is a problem.
        """
        for line, raw in self:
            if not raw.strip():
                continue

            try:
                value = decode(raw)
            except (ValueError, RecursionError) as error:
                self.problems.append(self.skipped_line(error, line, raw))
            else:
                yield line, raw, value

    def skipped_line(self, error: Exception, line: Line, raw: bytes = b"\n") -> Problem:
        """Return the problem of a line that cannot be read."""
        reason = f"it {error}" if isinstance(error, OddRecordError) else str(error)
        if raw.endswith(b"\n"):
            return self.problem(f"line skipped: {reason}", line)
        torn = f"line skipped: {reason}; the file ends inside of it"
        return Problem(str(self.path), torn, line.number, is_torn=True)

    def read_line(self, line: Line) -> bytes:
        """Return a line again."""
        self._file.seek(line.offset)
        return self._file.readline(MAX_LINE)

    def lines_from(self, offset: int) -> Iterator[bytes]:
        """Yield the lines from *offset* on; others may be read between two of them.

        For text of many short lines: a batch of them is read at once.
        """
        while True:
            self._file.seek(offset)
            batch = self._file.readlines(_BATCH)
            if not batch:
                return

            offset = self._file.tell()
            yield from batch

    def line_batches(self, offset: int, end: int = sys.maxsize) -> Iterator[bytes]:
        """Yield the lines between two offsets, many of them at once.

        For text that is searched, not read line by line; other lines may be read
        between two batches.
        """
        while offset < end:
            self._file.seek(offset)
            batch = self._file.read(min(_BATCH, end - offset))
            if not batch:
                return

            if not batch.endswith(b"\n"):
                batch += self._file.readline(end - offset - len(batch))
            offset += len(batch)
            yield batch


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Lines]:
    """Open a log; a packed one is unpacked into a temporary file.

    Raises `SourceError` for what cannot be read, or is not a regular file.
    """
    try:
        with _open_regular(path) as file:
            status = os.fstat(file.fileno())
            if not is_packed(path):
                yield Lines(path, file, status)
                return

            # Lines are read again by their offsets, which a packed file has none of.
            with _temporary_file() as copy:
                yield _unpacked_lines(path, file, path, copy, status)
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror or error}") from error


@contextlib.contextmanager
def open_pieces(path: Path, pieces: Iterable[bytes]) -> Iterator[Lines]:
    """Open a log that comes in *pieces*, packed or not, as if it was at *path*.

    For a pipe.
    """
    with _temporary_file() as file:
        for piece in pieces:
            file.write(piece)
        file.flush()
        file.seek(0)
        status = os.fstat(file.fileno())

        # A pipe has no name: its first bytes say whether it is packed.
        suffix = suffix_of(file.read(4))
        file.seek(0)
        if not suffix:
            yield Lines(path, file, status)
            return

        with _temporary_file() as copy:
            packed_name = Path(f"{path}{suffix}")
            yield _unpacked_lines(path, file, packed_name, copy, status)


@contextlib.contextmanager
def made_to_be_read(pieces: Iterable[bytes], make: MakeLines) -> Iterator[Lines]:
    """Open a log that is made in *pieces*, to be read as the `Lines` of *make*."""
    with _temporary_file() as file:
        for piece in pieces:
            file.write(piece)
        file.flush()
        yield make(file, os.fstat(file.fileno()))


def _temporary_file() -> IO[bytes]:
    return cast("IO[bytes]", tempfile.TemporaryFile())


def _unpacked_lines(
    path: Path, file: IO[bytes], name: Path, copy: IO[bytes], status: os.stat_result
) -> Lines:
    """Unpack a *file* of that *name* into *copy*, and return the lines of that."""
    reason = unpack_file(file, name, copy)
    copy.flush()
    lines = Lines(path, copy, status)
    if reason is not None:
        lines.problems.append(lines.problem(reason))
    return lines


def read_beginning(path: Path, most: int) -> bytes:
    """Return up to *most* bytes of the beginning of a log, unpacked.

    Raises `SourceError` if not a single one can be read.
    """
    beginning = bytearray()
    try:
        with _open_regular(path) as file:
            if not is_packed(path):
                return file.read(most)

            for piece in inflate_file(file, path):
                beginning += piece
                if len(beginning) >= most:
                    break
    except (OSError, DamagedError) as error:
        if not beginning:
            reason = getattr(error, "strerror", None) or error
            raise SourceError(f"cannot read {path}: {reason}") from error
    return bytes(beginning[:most])


def ends_inside_of_a_line(path: Path) -> bool:
    """Return whether a log ends without a newline, as far as it can be read.

    False for a packed log, which no program continues.
    """
    if is_packed(path):
        return False
    with contextlib.suppress(OSError), _open_regular(path) as file:
        file.seek(-1, os.SEEK_END)
        return file.read() != b"\n"
    return False


def _open_regular(path: Path) -> IO[bytes]:
    """Open a regular file, without waiting for a program to write into a fifo."""
    file = os.fdopen(os.open(path, os.O_RDONLY | _NO_WAIT), "rb")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(0, "not a regular file")
    return file
