"""What both kinds of store hold, before anything of it is understood.

A store is a list of session heads, small enough to keep, and for each session
its record and its messages, read one by one. Ids come from rows and file names,
never from inside a record: OpenCode moved records without rewriting them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from json.scanner import make_scanner
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias, cast

from sessiondb.model import Problem

#: Deepest nesting of a record that is read; one that nests deeper is a problem.
MAX_DEPTH = 300
_LEAST, _LARGEST = -(1 << 63), (1 << 64) - 1
_ID = re.compile(r"[^\x00-\x1f\x7f-\x9f]{1,256}")
_CLOCK = re.compile(r"[a-z]+_([0-9a-f]{12})")
_HALF = 1 << 47


#: A record as stored; decoded already where the store is one large document.
Raw: TypeAlias = "bytes | dict[str, Any] | None"


class OddRecordError(ValueError):
    """A record that cannot be read; the message ends a sentence about it."""


class Head(NamedTuple):
    """What is known of a session without its messages; times in Unix ms, 0 is unknown."""

    id: str
    parent: str | None
    time_created: int
    title: str


class Opened(NamedTuple):
    """A message's place in its session: by time, then id, as OpenCode orders them."""

    time: int
    id: str


class RawPart(NamedTuple):
    """A part as stored; the times of its row are None where there are no rows."""

    id: str
    raw: Raw
    time_created: int | None = None
    time_updated: int | None = None


@dataclass(slots=True)
class SessionRecord:
    """A session's own record (``info``, as OpenCode exports it) and what lies beside it.

    ``facts`` change whenever anything of the session changed. ``project`` is the
    record of its project, ``approved`` the permissions given there. ``todo``, ``diff``
    and ``share`` are None where there are none, ``columns`` are fields of a
    `SourceSession` that the record does not have.
    """

    info: dict[str, Any]
    facts: list[Any]
    path: Path
    size: int | None = None
    mtime_ns: int | None = None
    worktree: str | None = None
    vcs: str | None = None
    root_commit: str | None = None
    project: dict[str, Any] = field(default_factory=dict)
    approved: Any = None
    todo: list[Any] | None = None
    diff: list[Any] | None = None
    share: dict[str, Any] | None = None
    share_folder: str | None = None
    columns: dict[str, Any] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


class Records(Protocol):
    """A store of one generation, whichever way it is written."""

    path: Path
    #: The directory a store's side files are in.
    home: Path

    def where(self, session: str, message: str = "", part: str = "") -> Path:
        """The file that holds a record."""

    def reading(self) -> AbstractContextManager[object]:
        """Keep the store open, and its content as it is where that is possible."""

    def heads(self) -> Iterator[Head | Problem]:
        """All sessions, in any order."""

    def session(self, head: Head) -> SessionRecord:
        """Read one session; raises `OddRecordError`."""

    def first_times(self) -> dict[str, int]:
        """When the first message of each session was created, without reading the others."""

    def messages(self, session: str) -> list[Opened]:
        """Name the messages of a session in order."""

    def message(self, session: str, message: str) -> Raw:
        """Read one message as stored."""

    def parts(self, session: str, message: str) -> Iterable[RawPart]:
        """Read the parts of a message as stored, in order."""

    def calls(self, session: str) -> Iterator[tuple[Any, ...]]:
        """Message id and stored form of the parts that may name a child session, first first."""

    def orphans(self) -> Iterator[Problem]:
        """Records that belong to nothing."""


def load(raw: Raw) -> Any:
    """Decode JSON as OpenCode writes it; raises `OddRecordError`."""
    if raw is None:
        raise OddRecordError("has no content that can be read")
    if not isinstance(raw, bytes):
        return raw
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise OddRecordError("is not UTF-8") from None
    return load_text(text)


def load_text(text: str) -> Any:
    """Decode JSON; raises `OddRecordError`."""
    try:
        value = _decode(text)
    except RecursionError:
        raise OddRecordError("is nested too deeply") from None
    except ValueError as error:
        raise OddRecordError(f"is not JSON ({error})") from None
    # Counting brackets is cheap; only a record that has enough of them is walked.
    if text.count("[") + text.count("{") > MAX_DEPTH and not _shallow(value):
        raise OddRecordError(f"is nested deeper than {MAX_DEPTH}")
    return value


def load_object(raw: Raw) -> dict[str, Any]:
    """Decode a JSON object; raises `OddRecordError`."""
    value = load(raw)
    if type(value) is not dict:
        raise OddRecordError("is not a JSON object")
    return value


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON number")


_decoder = json.JSONDecoder(parse_constant=_refuse)
_scan = make_scanner(cast(Any, _decoder))


#: Decodes the value at a place of a text, returns it and where it ends; raises ValueError.
piece = _decoder.raw_decode


def _decode(text: str) -> Any:
    try:
        value, end = _scan(text, 0)
    except StopIteration:
        end = -1
    # What OpenCode writes has no space around it; the slow way knows all about what has.
    return value if end == len(text) else _decoder.decode(text)


def _shallow(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for item in level
            for inner in (item.values() if isinstance(item, dict) else item)
            if type(inner) in (dict, list)
        ]
        if not level:
            return True
    return False


def storable(value: dict[str, Any]) -> bool:
    """Return whether every integer in *value* fits 64 bits: no other can be kept in ``data``."""
    stack: list[Any] = [value]
    while stack:
        item = stack.pop()
        for inner in item.values() if type(item) is dict else item:
            if type(inner) is int:
                if not _LEAST <= inner <= _LARGEST:
                    return False
            elif inner and type(inner) in (dict, list):
                stack.append(inner)
    return True


def check_id(value: object) -> None:
    """Raise `OddRecordError` for what cannot name a session, message or part here."""
    if not usable_id(value):
        raise OddRecordError("has no usable id")


def usable_id(value: object) -> bool:
    """Return whether *value* is an id: a short string that is not empty, no control characters."""
    if type(value) is not str or _ID.fullmatch(value) is None:
        return False
    if value.isascii():
        return True
    try:
        return len(value.encode()) <= 256
    except UnicodeEncodeError:
        return False


def unwrapped(ids: list[str]) -> list[str]:
    """Put sorted ids into the order in which they were made.

    An id begins with 48 bits of ``ms * 4096``, which start again at zero every
    795 days (last on 2026-08-14): the ids before that moment come first.
    """
    if len(ids) < 2:
        return ids
    first, last = _clock(ids[0]), _clock(ids[-1])
    if first is None or last is None or last - first < _HALF:
        return ids
    late = next(i for i, name in enumerate(ids) if (_clock(name) or 0) >= _HALF)
    return ids[late:] + ids[:late]


def _clock(name: str) -> int | None:
    match = _CLOCK.match(name)
    return None if match is None else int(match[1], 16)
