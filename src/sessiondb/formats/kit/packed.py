"""Packed logs, unpacked piece by piece: gzip always, Zstandard if it is installed.

Damage costs what follows it, never what comes before. A packed file may be made to
fill the memory, so it is read in pieces that are small enough for the worst ratio,
and to fill the disk, so `unpack` stops at a limit.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Any, Protocol

from sessiondb.errors import SourceError

#: How many times its size a packed file may unpack to, beyond the first bytes. Logs
#: shrink to a fifth or a tenth; a file that shrinks to a thousandth is made to do harm.
MAX_RATIO, FREE_BYTES = 100, 64 << 20
#: Bytes that are unpacked at once: 4 MB at gzip's worst ratio, 128 MB at Zstandard's.
_PIECE = 4 << 10
_GZIP = 31
#: Bytes that Zstandard keeps of what it has unpacked: as many as its own tool allows.
_WINDOW = 128 << 20


class DamagedError(Exception):
    """From some place on, a packed file is not what was packed."""


class _Decompressor(Protocol):
    """What zlib, Python 3.14 and the package zstandard have in common."""

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, /) -> bytes: ...


def _gzip() -> tuple[Callable[[], _Decompressor], type[Exception]]:
    return lambda: zlib.decompressobj(_GZIP), zlib.error


def _zstd() -> tuple[Callable[[], _Decompressor], type[Exception]]:
    """Return a decompressor of Zstandard; raises ImportError if none is installed."""
    try:
        own: Any = import_module("compression.zstd")  # Python 3.14
    except ImportError:
        package: Any = import_module("zstandard")
        limited = package.ZstdDecompressor(max_window_size=_WINDOW)
        return limited.decompressobj, package.ZstdError
    return own.ZstdDecompressor, own.ZstdError


_KINDS = {".gz": _gzip, ".zst": _zstd}
#: The endings of packed files.
SUFFIXES = frozenset(_KINDS)


def is_packed(path: Path) -> bool:
    """Return whether *path* has the name of a packed file."""
    return path.suffix in SUFFIXES


#: How packed files begin, for those that have no name.
_MAGIC = {b"\x1f\x8b": ".gz", b"\x28\xb5\x2f\xfd": ".zst"}


def suffix_of(beginning: bytes) -> str:
    """Return the suffix of a packed file that begins so; empty for any other."""
    found = (end for magic, end in _MAGIC.items() if beginning.startswith(magic))
    return next(found, "")


def unpack(file: IO[bytes], path: Path, copy: IO[bytes]) -> str | None:
    """Unpack *file* into *copy*; return why something is missing, or None.

    Raises `SourceError` if no decompressor for a file of that name is installed.
    """
    limit = max(FREE_BYTES, MAX_RATIO * os.fstat(file.fileno()).st_size)
    written = 0
    try:
        for piece in inflated(file, path):
            written += copy.write(piece[: limit - written])
            if written >= limit:
                why = f"more than {limit} bytes, {MAX_RATIO} times its size"
                return f"it unpacks to {why}: the rest is not read"
    except DamagedError as error:
        return f"the packed file is damaged: {error}; the rest is not read"
    return None


def inflated(file: IO[bytes], path: Path) -> Iterator[bytes]:
    """Yield what a packed file holds, in pieces; it may be several in a row.

    Raises `DamagedError` after everything that is intact, and `SourceError` if no
    decompressor for a file of that name is installed.
    """
    try:
        new, failure = _KINDS[path.suffix]()
    except ImportError as error:
        hint = "`pip install 'sessiondb[zstd]'` installs it"
        why = f"cannot read {path}: it is packed with Zstandard, which needs zstandard"
        raise SourceError(why, hint=hint) from error

    inflater, begun = new(), False
    while chunk := file.read(_PIECE):
        while chunk:
            before = _copied(inflater)
            try:
                piece = inflater.decompress(chunk)
            except failure as error:
                yield _intact(before, chunk, failure)
                raise DamagedError(str(error)) from None

            begun = True
            yield piece
            if not inflater.eof:
                break
            # Zeros are padding; anything else begins another packed file.
            chunk = inflater.unused_data.lstrip(b"\0")
            inflater, begun = new(), False

    if begun:
        raise DamagedError("it breaks off")


def _copied(inflater: Any) -> Any:
    """Return *inflater* as it is now; None for Zstandard, which cannot be copied."""
    return inflater.copy() if hasattr(inflater, "copy") else None


def _intact(inflater: Any, chunk: bytes, failure: type[Exception]) -> bytes:
    """Return what comes before the damage in *chunk*."""
    found = bytearray()
    if inflater is None:
        return b""

    with suppress(failure):
        for index in range(len(chunk)):
            found += inflater.decompress(chunk[index : index + 1])
    return bytes(found)
