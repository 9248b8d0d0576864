"""Packed logs, unpacked piece by piece: gzip always, Zstandard if it is installed.

Damage costs what follows it, never what comes before. A packed file may be made to
fill the memory, so it is read in pieces that are small enough for the worst ratio,
and to fill the disk, so `unpack_file` stops at a limit.
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
#: How packed files begin, for those that have no name.
_MAGIC = {".gz": b"\x1f\x8b", ".zst": b"\x28\xb5\x2f\xfd"}
#: The endings of packed files.
SUFFIXES = frozenset(_MAGIC)
#: Bytes that Zstandard keeps of what it has unpacked: as many as its own tool allows.
_WINDOW = 128 << 20


class DamagedError(Exception):
    """From some place on, a packed file is not what was packed."""


class _Decompressor(Protocol):
    """The interface that zlib, Python 3.14 and the package zstandard have in common."""

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, /) -> bytes: ...


def is_packed(path: Path) -> bool:
    """Return whether *path* has the name of a packed file."""
    return path.suffix in SUFFIXES


def suffix_of(beginning: bytes) -> str:
    """Return the suffix of a packed file that begins so; empty for any other."""
    for suffix, magic in _MAGIC.items():
        if beginning.startswith(magic):
            return suffix
    return ""


def unpack_file(file: IO[bytes], path: Path, copy: IO[bytes]) -> str | None:
    """Unpack *file* into *copy*; return why something is missing, or None.

    Raises `SourceError` if no decompressor for a file of that name is installed.
    """
    limit = max(FREE_BYTES, MAX_RATIO * os.fstat(file.fileno()).st_size)
    written = 0
    try:
        for piece in inflate_file(file, path):
            written += copy.write(piece[: limit - written])
            if written >= limit:
                size = f"more than {limit} bytes, {MAX_RATIO} times its size"
                return f"it unpacks to {size}: the rest is not read"
    except DamagedError as error:
        return f"the packed file is damaged: {error}; the rest is not read"
    return None


def inflate_file(file: IO[bytes], path: Path) -> Iterator[bytes]:
    """Yield what a packed file holds, in pieces; it may be several in a row.

    Raises `DamagedError` after everything that is intact, and `SourceError` if no
    decompressor for a file of that name is installed.
    """
    try:
        new, failure = _decompressor_of(path)
    except ImportError as error:
        hint = "`pip install 'sessiondb[zstd]'` installs it"
        reason = "it is packed with Zstandard, which needs zstandard"
        raise SourceError(f"cannot read {path}: {reason}", hint=hint) from error

    inflater, begun = new(), False
    while chunk := file.read(_PIECE):
        while chunk:
            # Zstandard cannot be copied.
            copy = inflater.copy() if hasattr(inflater, "copy") else None
            try:
                piece = inflater.decompress(chunk)
            except failure as error:
                if copy is not None:
                    yield _intact_beginning(copy, chunk, failure)
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


def _decompressor_of(
    path: Path,
) -> tuple[Callable[[], _Decompressor], type[Exception]]:
    """Return what makes a decompressor for a packed file, and what that raises.

    Raises ImportError if none is installed.
    """
    if path.suffix == ".gz":
        return lambda: zlib.decompressobj(_GZIP), zlib.error
    try:
        standard: Any = import_module("compression.zstd")  # Python 3.14
    except ImportError:
        package: Any = import_module("zstandard")
        limited = package.ZstdDecompressor(max_window_size=_WINDOW)
        return limited.decompressobj, package.ZstdError
    return standard.ZstdDecompressor, standard.ZstdError


def _intact_beginning(
    inflater: _Decompressor, chunk: bytes, failure: type[Exception]
) -> bytes:
    """Return what comes before the damage in *chunk*."""
    intact = bytearray()
    with suppress(failure):
        for index in range(len(chunk)):
            intact += inflater.decompress(chunk[index : index + 1])
    return bytes(intact)
