"""The lines of a log, packed with gzip or not, with bounds on what a hostile file costs.

A file is looked through once, and any line can be read again by its offset. Damage
or excess costs the lines that it touches: those before and after it are read.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple, cast

from sessiondb.errors import SourceError

#: Bytes of a line; a longer one is a problem. The largest value that can be stored fits.
MAX_LINE = 1 << 30
#: How many times its size a packed file may unpack to, beyond the first bytes. Logs shrink to
#: a fifth or a tenth; only a file that is made to fill a disk shrinks to a thousandth.
MAX_RATIO, FREE_BYTES = 100, 64 << 20
PACKED = ".gz"
_CHUNK = 1 << 16
_GZIP = 31
_NO_WAIT: int = sum(getattr(os, f, 0) for f in ("O_NONBLOCK", "O_BINARY"))


class Line(NamedTuple):
    """Where a line is; ``number`` counts from 1."""

    number: int
    offset: int


class Lines:
    """The lines of an open file; ``problems`` are (line or None, what is wrong) of those read."""

    def __init__(
        self,
        file: IO[bytes],
        found: os.stat_result,
        problems: list[tuple[int | None, str]] | None = None,
    ) -> None:
        self._file = file
        #: Of the file at its path, also where it is packed.
        self.stat = found
        self.problems = [] if problems is None else problems

    def __iter__(self) -> Iterator[tuple[Line, bytes]]:
        """Read from the beginning; lines that are too long are left out."""
        number = offset = 0
        while True:
            # Whoever gets a line may read another one before the next.
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
            self.problems.append(
                (number, f"line skipped: it is longer than {MAX_LINE} bytes")
            )
            while (rest := self._file.readline(_CHUNK)) and not rest.endswith(b"\n"):
                offset += len(rest)
            offset += len(rest)

    def at(self, line: Line) -> bytes:
        """Return a line again."""
        self._file.seek(line.offset)
        return self._file.readline(MAX_LINE)


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Lines]:
    """Open a log; a packed one is unpacked into a temporary file.

    Raises `SourceError` for what cannot be read or is not a regular file.
    """
    try:
        with _regular(path) as file:
            if path.suffix != PACKED:
                yield Lines(file, os.fstat(file.fileno()))
                return
            with tempfile.TemporaryFile() as copy:
                yield _unpack(file, cast("IO[bytes]", copy))
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror or error}") from error


def glance(path: Path, most: int) -> bytes:
    """Return up to *most* bytes of the beginning of a log, unpacked.

    Raises `SourceError` where there is not even one that could be read.
    """
    try:
        with _regular(path) as file:
            if path.suffix != PACKED:
                return file.read(most)
            found = bytearray()
            try:
                for piece in _inflated(file):
                    found += piece
                    if len(found) >= most:
                        break
            except _DamagedError:
                if not found:
                    raise
            return bytes(found[:most])
    except (OSError, _DamagedError) as error:
        raise SourceError(f"cannot read {path}: {error}") from error


class _DamagedError(Exception):
    """A packed file is not what was packed, from some place on."""


def _regular(path: Path) -> IO[bytes]:
    """Open a regular file without waiting for a fifo."""
    file = os.fdopen(os.open(path, os.O_RDONLY | _NO_WAIT), "rb")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(0, "not a regular file")
    return file


def _unpack(file: IO[bytes], copy: IO[bytes]) -> Lines:
    problems: list[tuple[int | None, str]] = []
    found = os.fstat(file.fileno())
    limit = max(FREE_BYTES, MAX_RATIO * found.st_size)
    written = 0
    try:
        for piece in _inflated(file):
            written += copy.write(piece[: limit - written])
            if written >= limit:
                why = (
                    f"it unpacks to more than {limit} bytes, {MAX_RATIO} times its size"
                )
                problems.append((None, f"{why}: the rest is not read"))
                break
    except _DamagedError as error:
        problems.append(
            (None, f"the packed file is damaged: {error}; the rest is not read")
        )
    copy.flush()
    return Lines(copy, found, problems)


def _inflated(file: IO[bytes]) -> Iterator[bytes]:
    """Yield what a gzip file holds, in pieces; raises `_DamagedError` behind all that is sound."""
    inflater = zlib.decompressobj(_GZIP)
    begun = False
    while chunk := file.read(_CHUNK):
        while chunk:
            before = inflater.copy()
            try:
                piece = inflater.decompress(chunk, _CHUNK)
            except zlib.error as error:
                yield _sound(before, chunk)
                raise _DamagedError(str(error)) from None
            begun = True
            yield piece
            if inflater.eof:
                chunk = inflater.unused_data.lstrip(b"\0")
                inflater, begun = zlib.decompressobj(_GZIP), False
            else:
                chunk = inflater.unconsumed_tail
    while piece := inflater.decompress(b"", _CHUNK) if begun else b"":
        yield piece
    if begun:
        raise _DamagedError("it breaks off")


def _sound(inflater: zlib._Decompress, chunk: bytes) -> bytes:
    """Return what comes before the damage in *chunk*."""
    found = bytearray()
    try:
        for index in range(len(chunk)):
            found += inflater.decompress(chunk[index : index + 1])
    except zlib.error:
        pass
    return bytes(found)
