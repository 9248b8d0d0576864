"""The beginning of a file, read once for all formats that look whether it is theirs.

Each of ten formats decides by the first records of a ``.jsonl`` whether it is its log,
and its reader looks at them again. So what is read and decoded of a file is kept until
another one is looked at. A search begins with `forget_heads` for each file, so that
nothing is kept from one search to the next.

A record may be in a log of another program: the plain log has any record as it was, in
an envelope with a version and a number, and so may another log that numbers records.
The records inside are not evidence of who wrote the file, so a program's reader gets
none of such a log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from sessiondb.formats.kit.files import file_stamp
from sessiondb.formats.kit.json import OddRecordError, load_object
from sessiondb.formats.kit.lines import read_beginning
from sessiondb.formats.kit.packed import is_packed

#: Bytes that the first lines of a log have, usually and at most.
_USUAL, _LONGEST = 64 << 10, 16 << 20
#: How much of a file is kept, at most.
_MOST_CACHED = 4 * _USUAL
#: Lines of a file that are looked at, at most.
MOST_LINES = 64
#: The name of the version in an envelope.
_VERSION = b"schema_version"

Record = dict[str, Any]


class _FileHead:
    """The first bytes of a file, at most *size* of them."""

    def __init__(self, path: Path, size: int) -> None:
        self.bytes = read_beginning(path, size)
        self.is_all = len(self.bytes) < size
        #: The object on a line, or none, by the index of the line.
        self._objects: dict[int, list[Record]] = {}

    @cached_property
    def lines(self) -> list[bytes]:
        """The first `MOST_LINES` lines, and one that has what follows or is cut."""
        return self.bytes.split(b"\n", MOST_LINES)

    def head_records(self, most: int, name: bytes = b"") -> Iterator[Record]:
        """Yield the objects among the first *most* lines, each decoded once.

        They are those on the lines that contain *name*.
        """
        for index, line in enumerate(self.lines[:most]):
            if name not in line:
                continue
            if index not in self._objects:
                self._objects[index] = list(objects_of([line]))
            yield from self._objects[index]


def forget_heads() -> None:
    """Read the next file, whatever it is."""
    _cached_head.cache_clear()


# A file may need two sizes.
@lru_cache(maxsize=2)
def _cached_head(path: Path, _stamp: tuple[int, int] | None, size: int) -> _FileHead:
    """Return the head of a file, which is read again if its stamp has changed."""
    return _FileHead(path, size)


def _read_head(path: Path, size: int) -> _FileHead:
    if size > _MOST_CACHED:
        return _FileHead(path, size)
    return _cached_head(path, file_stamp(path), size)


def beginning_of(path: Path, most: int = _USUAL) -> bytes:
    """Return up to *most* bytes of the beginning of a file, unpacked.

    *most* is at most 64 KB. Raises `SourceError` if not a single one can be read.
    """
    return _read_head(path, _USUAL).bytes[:most]


def bytes_of_small_file(path: Path) -> bytes | None:
    """Return a file that is looked at completely; None for a larger or packed one."""
    if is_packed(path):
        return None
    head = _read_head(path, _USUAL)
    return head.bytes if head.is_all else None


def first_lines(path: Path, most: int, *, longest: int = _LONGEST) -> list[bytes]:
    """Return the first *most* lines of a file, as `first_objects` finds them.

    *most* is at most `MOST_LINES`, here and below.
    """
    return _head_with_lines(path, most, longest).lines[:most]


def first_objects(
    path: Path, most: int = 1, *, longest: int = _LONGEST
) -> list[Record]:
    """Return the objects among the first *most* lines of a log, fewer if it ends.

    They are in its first *longest* bytes. Lines that are not objects are left out. A
    caller does not change a record: others get the same one. Raises `SourceError` if
    nothing of the file can be read.
    """
    return list(_head_with_lines(path, most, longest).head_records(most))


def first_records(
    path: Path, most: int = 1, *, longest: int = _LONGEST
) -> list[Record]:
    """Return the first records of a program's log, as `first_objects` does.

    Empty for a log that numbers the records of any program in an envelope.
    """
    return list(FirstRecords(path, most, longest=longest))


class FirstRecords:
    """The first records of a program's log, each decoded when it is needed.

    Empty for a log that numbers the records of any program in an envelope. Raises
    `SourceError` if nothing of the file can be read.
    """

    def __init__(self, path: Path, most: int, *, longest: int = _LONGEST) -> None:
        self._head = _head_with_lines(path, most, longest)
        self._most = most
        if any(has_envelope(record) for record in self.containing(_VERSION)):
            self._most = 0

    def __iter__(self) -> Iterator[Record]:
        return self._head.head_records(self._most)

    def containing(self, name: bytes) -> Iterator[Record]:
        """Yield those on the lines that contain *name*; others are not decoded."""
        return self._head.head_records(self._most, name)


def has_envelope(record: Record) -> bool:
    """Return whether a record is one of a log that numbers the records of others."""
    is_versioned = type(record.get("schema_version")) in (int, str)
    return is_versioned and type(record.get("seq")) is int and "type" in record


def _head_with_lines(path: Path, most: int, longest: int) -> _FileHead:
    size = _USUAL
    head = _read_head(path, size)
    # A first line may hold all instructions to a model.
    while len(head.lines) <= most and not head.is_all and size < longest:
        size *= 4
        head = _read_head(path, size)
    return head


def objects_of(lines: Iterable[bytes]) -> Iterator[Record]:
    """Yield the objects among *lines*."""
    for line in lines:
        try:
            yield load_object(line)
        except OddRecordError:
            continue
