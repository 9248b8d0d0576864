"""Files that ``opencode export`` printed, of both generations: ``{"info", "messages"}``.

One session in one document, which is cut into its messages once; each is then
decoded when its turn comes, so that memory holds the text and one of them. A
document that breaks off gives the messages before the break.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

from sessiondb.errors import SourceError
from sessiondb.formats.kit.fields import amount, integer
from sessiondb.formats.kit.files import stamp
from sessiondb.formats.kit.json import (
    OddRecordError,
    Raw,
    known_time,
    load,
    load_object,
    piece,
    usable_id,
)
from sessiondb.formats.kit.sqlite import is_database
from sessiondb.formats.opencode.raw import Head, Opened, RawPart, SessionRecord
from sessiondb.formats.opencode.v1.forks import Fork
from sessiondb.formats.opencode.v2.sqlite import Row
from sessiondb.model import Problem, Tokens

#: How much of a file says whether it is an export, in bytes.
_HEAD = 256
_BEGINNING = re.compile(rb'(\xef\xbb\xbf)?\s*\{\s*"info"\s*:\s*\{')
_SPACE = re.compile(r"\s*")
_COPY = re.compile(r".+_.+_\d+")


def is_export(path: Path) -> bool:
    """Return whether the file at *path* begins like an export; no database is opened for it."""
    if path.name.endswith(("-wal", "-shm", "-journal")) or is_database(path):
        return False
    try:
        with path.open("rb") as file:
            return _BEGINNING.match(file.read(_HEAD)) is not None
    except OSError:
        return False


class _Slice(NamedTuple):
    """A message of the document: its place, and the fields needed before it is read."""

    start: int
    end: int
    id: str
    time: int | None
    cost: float
    tokens: tuple[int, ...]


class _Document:
    """The text of a file, its info, and where its messages are."""

    def __init__(self, path: Path) -> None:
        try:
            raw = path.read_bytes()
        except OSError as error:
            raise SourceError(f"cannot read {path}: {error}") from error
        # A byte that is not UTF-8 is reported for the message that it is in.
        self.text = raw.decode("utf-8-sig", "surrogateescape")
        self.digest = hashlib.sha256(raw).hexdigest()
        self.info: dict[str, Any] = {}
        self.messages: dict[str, _Slice] = {}
        self.why: str | None = None
        try:
            self._scan()
        except (ValueError, RecursionError, IndexError):
            self.why = f"breaks off after {len(self.messages)} messages"

    def _scan(self) -> None:
        at = self._skip(0, "{")
        while self.text[at] != "}":
            key, at = piece(self.text, at)
            at = self._skip(at, ":")
            if key == "messages" and self.text[at] == "[":
                at = self._scan_messages(self._skip(at, "["))
            else:
                value, at = piece(self.text, at)
                if key == "info" and type(value) is dict:
                    self.info = value
            at = self._skip(at, ",")

    def _scan_messages(self, at: int) -> int:
        while self.text[at] != "]":
            value, end = piece(self.text, at)
            found = _slice(at, end, value)
            again = found.id in self.messages  # kept all the same, beside the first
            self.messages[f"{found.id}/{len(self.messages)}" if again else found.id] = (
                found
            )
            at = self._skip(end, ",")
        return at + 1

    def _skip(self, at: int, mark: str) -> int:
        """Step over space around *mark*, which may be missing."""
        at = self._space(at)
        return self._space(at + 1) if self.text[at] == mark else at

    def _space(self, at: int) -> int:
        match = _SPACE.match(self.text, at)
        return match.end() if match else at


def _slice(start: int, end: int, value: Any) -> _Slice:
    record = _object(value)
    record = _object(record.get("info")) or record
    time = _object(record.get("time")).get("created")
    counts = _object(record.get("tokens"))
    cache = _object(counts.get("cache"))
    tokens = [counts.get(name) for name in ("input", "output", "reasoning")]
    tokens += [cache.get(name) for name in ("read", "write")]
    cost = record.get("cost", 0.0)
    return _Slice(
        start,
        end,
        str(record.get("id")),
        time if integer(time) else None,
        cost if amount(cost) else 0.0,
        tuple(count if amount(count) and type(count) is int else 0 for count in tokens),
    )


def _object(value: Any) -> dict[str, Any]:
    return value if type(value) is dict else {}


class ExportFileV1:
    """A file of generation 1; see `records.Records`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.home = path.parent
        self._readers = 0
        self._loaded: _Document | None = None
        self._parts: tuple[str, list[Any]] = ("", [])

    def where(self, *_: str) -> Path:
        """Everything is in one file."""
        return self.path

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """Keep the text; raises `SourceError`."""
        self._loaded = self._loaded or _Document(self.path)
        self._readers += 1
        try:
            yield
        finally:
            self._readers -= 1
            if not self._readers:
                self._loaded = None

    @property
    def document(self) -> _Document:
        """The document; only while it is read."""
        assert self._loaded is not None, "not inside reading()"
        return self._loaded

    @property
    def second(self) -> bool:
        """Return whether OpenCode 2 wrote it."""
        return "location" in self.document.info

    def heads(self) -> Iterator[Head | Problem]:
        """The one session."""
        info = self.document.info
        if not usable_id(info.get("id")):
            yield Problem(str(self.path), "the session has no usable id")
            return
        times, parent, title = info.get("time"), info.get("parentID"), info.get("title")
        created = times.get("created") if type(times) is dict else None
        yield Head(
            info["id"],
            parent if usable_id(parent) else None,
            created if type(created) is int else 0,
            title if type(title) is str else "",
        )

    def session(self, head: Head) -> SessionRecord:  # noqa: ARG002 - there is only one
        """Read the session."""
        document = self.document
        size, modified = stamp(self.path) or (None, None)
        info = deepcopy(document.info)  # who reads it takes it apart
        return SessionRecord(
            info, [document.digest], self.path, size, modified, worktree=_worktree(info)
        )

    def first_times(self) -> dict[str, int]:
        """A single session is a fork of none here."""
        return {}

    def messages(self, session: str) -> list[Opened]:  # noqa: ARG002 - there is only one
        """Name the messages in order."""
        return [
            Opened(item.time or 0, name)
            for name, item in self.document.messages.items()
        ]

    def _element(self, message: str) -> Any:
        """Read one message; raises `OddRecordError`."""
        return load(self._raw(message))

    def _raw(self, message: str) -> bytes | None:
        found = self.document.messages.get(message)
        if found is None:
            return None
        return self.document.text[found.start : found.end].encode(
            "utf-8", "surrogateescape"
        )

    def message(self, session: str, message: str) -> Raw:  # noqa: ARG002 - there is only one
        """Read one message; raises `OddRecordError`."""
        element = self._element(message)
        if type(element) is not dict or type(element.get("info")) is not dict:
            raise OddRecordError("is not a message")
        parts = element.get("parts")
        self._parts = (message, parts if type(parts) is list else [])
        info: dict[str, Any] = element["info"]
        return info

    def parts(self, session: str, message: str) -> Iterator[RawPart]:
        """Read the parts of a message, in order."""
        if self._parts[0] != message:
            self.message(session, message)
        for part in self._parts[1]:
            name = part.get("id") if type(part) is dict else None
            yield RawPart(str(name), part if type(part) is dict else None)
        self._parts = ("", [])

    def calls(self, session: str) -> Iterator[tuple[str, Any]]:  # noqa: ARG002 - as elsewhere
        """A session's children are in files of their own."""
        return iter(())

    def orphans(self) -> Iterator[Problem]:
        """Where the document breaks off."""
        if self.document.why is not None:
            yield Problem(str(self.path), self.document.why)


class ExportFileV2(ExportFileV1):
    """A file of generation 2."""

    def each(self, session: str) -> Iterator[Row]:  # noqa: ARG002 - there is only one
        """Read the messages in order."""
        for name, found in self.document.messages.items():
            try:
                element = load_object(self._raw(name))
            except OddRecordError:
                yield Row(name, "unknown", known_time(found.time), self._raw(name))
                continue
            element.pop("id", None)
            yield Row(
                name,
                str(element.pop("type", "unknown")),
                known_time(found.time),
                element,
            )

    def unexplained(self, session: str, fork: Fork | None) -> tuple[float, Tokens]:  # noqa: ARG002
        """The session's cost besides its messages; copies are known by their ids."""
        info = self.document.info
        found = self.document.messages.values()
        own = [item for item in found if fork is None or not _COPY.fullmatch(item.id)]
        stated = _slice(0, 0, info)
        cost = stated.cost - sum(item.cost for item in own)
        counts = zip(stated.tokens, *(item.tokens for item in own), strict=True)
        return cost, Tokens(*(total - sum(spent) for total, *spent in counts))

    def marks(self) -> Iterator[tuple[str, str, Any]]:
        """Session, original and boundary, where it is a fork."""
        info = self.document.info
        fork = info.get("fork")
        if (
            type(fork) is dict
            and usable_id(fork.get("sessionID"))
            and usable_id(info.get("id"))
        ):
            yield info["id"], fork["sessionID"], fork.get("boundary")

    def copies(self, *_: Any) -> list[tuple[str, str]]:
        """The original is not here, so what was copied is not known."""
        return []

    def project(self, session: str) -> str:  # noqa: ARG002 - there is only one
        """Return the id of the project."""
        return str(self.document.info.get("projectID"))


def _worktree(info: dict[str, Any]) -> str | None:
    """Return the project's root: the directory without the path that leads there from it."""
    place = info.get("location")
    directory = place.get("directory") if type(place) is dict else info.get("directory")
    below = info.get("subpath") if type(place) is dict else info.get("path")
    if type(directory) is not str:
        return None
    if type(below) is str and below and directory.endswith(f"/{below}"):
        return directory[: -len(below) - 1] or None
    return directory if type(place) is dict or below == "" else None
