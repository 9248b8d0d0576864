"""Files that ``opencode export`` printed, of both generations.

A document is {"info", "messages"}.

One session in one document, which is cut into its messages once; each is then
decoded when its turn comes, so that memory holds the text and one of them. A
document that breaks off gives the messages before the break.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

from sessiondb.errors import SourceError
from sessiondb.formats.kit.fields import (
    amount,
    as_list,
    as_object,
    clean_name,
    fitting,
    integer,
    is_object,
    value_at,
)
from sessiondb.formats.kit.json import (
    OddRecordError,
    Raw,
    known_time,
    load_object,
    load_value,
    piece,
    usable_id,
)
from sessiondb.formats.kit.sqlite import is_database
from sessiondb.formats.opencode.answers import COUNTS
from sessiondb.formats.opencode.forks import Fork
from sessiondb.formats.opencode.raw import (
    Head,
    Opened,
    RawPart,
    SessionRecord,
    stamp_of,
)
from sessiondb.formats.opencode.v2.sqlite import SPENT_COLUMNS, MessageRow, Unexplained
from sessiondb.model import Problem, Tokens
from sessiondb.patterns import late_pattern

#: The bytes at the beginning of a file by which an export is recognised.
_HEAD = 256
_BEGINNING = late_pattern(rb'(\xef\xbb\xbf)?\s*\{\s*"info"\s*:\s*\{')
_SPACE = late_pattern(r"\s*")
#: The id of a copy in a fork of version 2: it ends with the seq of its original.
_COPY = late_pattern(r".+_.+_\d+")


def is_export(path: Path) -> bool:
    """Return whether the file at *path* begins like an export.

    A database is not opened.
    """
    if path.name.endswith(("-wal", "-shm", "-journal")) or is_database(path):
        return False
    try:
        with path.open("rb") as file:
            return _BEGINNING.match(file.read(_HEAD)) is not None
    except OSError:
        return False


class _MessageSlice(NamedTuple):
    """A message of the document, with the fields needed before it is read."""

    #: The index of its first character, and of the one after its last.
    start: int
    end: int
    id: str
    #: In Unix ms; None is unknown.
    time: int | None
    #: Its cost and counts; 0 for one that is unknown.
    usage: tuple[Any, ...]


class _ExportDocument:
    """The text of a file, its info, and the slices of its messages."""

    def __init__(self, path: Path) -> None:
        try:
            raw = path.read_bytes()
        except OSError as error:
            raise SourceError(f"cannot read {path}: {error}") from error

        # A byte that is not UTF-8 is reported for the message that it is in.
        self.text = raw.decode("utf-8-sig", "surrogateescape")
        self.digest = hashlib.sha256(raw).hexdigest()
        self.info: dict[str, Any] = {}
        self.messages: dict[str, _MessageSlice] = {}
        #: That it breaks off, and after which message; None if it is complete.
        self.damage: str | None = None

        try:
            self._scan_document()
        except (ValueError, RecursionError, IndexError):
            self.damage = f"breaks off after {len(self.messages)} messages"

    def _scan_document(self) -> None:
        """Go through the keys of the document; raises what its first error raises."""
        index = self._skip_mark(0, "{")
        while self.text[index] != "}":
            key, index = piece(self.text, index)
            index = self._skip_mark(index, ":")

            if key == "messages" and self.text[index] == "[":
                index = self._scan_messages(self._skip_mark(index, "["))
            else:
                value, index = piece(self.text, index)
                if key == "info" and is_object(value):
                    self.info = value

            index = self._skip_mark(index, ",")

    def _scan_messages(self, index: int) -> int:
        while self.text[index] != "]":
            value, end = piece(self.text, index)
            # In 1.x the fields of a message are under "info", in 2 they are not.
            record = as_object(value_at(value, "info")) or as_object(value)
            name = str(record.get("id"))
            time = fitting(value_at(record, "time", "created"), integer)
            message = _MessageSlice(index, end, name, time, _usage_of(record))

            # A second message of the same id is kept, too, beside the first.
            if name in self.messages:
                name = f"{name}/{len(self.messages)}"
            self.messages[name] = message
            index = self._skip_mark(end, ",")

        return index + 1

    def _skip_mark(self, index: int, mark: str) -> int:
        """Return the index after *mark*, which may be missing, and space around it."""
        index = self._skip_space(index)
        return self._skip_space(index + 1) if self.text[index] == mark else index

    def _skip_space(self, index: int) -> int:
        match = _SPACE.match(self.text, index)
        assert match is not None, "no space matches, too"
        return match.end()

    def bytes_of(self, name: str) -> bytes | None:
        """Return the bytes of a message, None if there is no such message."""
        message = self.messages.get(name)
        if message is None:
            return None
        text = self.text[message.start : message.end]
        return text.encode("utf-8", "surrogateescape")


def _usage_of(record: dict[str, Any]) -> tuple[Any, ...]:
    """Return the cost and the counts of a record; 0 for one that is unknown."""
    columns: list[Any] = [fitting(record.get("cost"), amount, 0.0)]
    for path in COUNTS:
        count = value_at(record, "tokens", *path)
        is_exact = type(count) is int and amount(count)
        columns.append(count if is_exact else 0)
    return tuple(columns)


class ExportFileV1:
    """A file of generation 1; see `raw.Records`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.home = path.parent
        self._readers = 0
        self._loaded: _ExportDocument | None = None
        #: The message that was read last, and its parts.
        self._parts: tuple[str, list[Any]] = ("", [])

    def path_of(self, *_: str) -> Path:
        """Everything is in one file."""
        return self.path

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """Keep the text; raises `SourceError`."""
        self._loaded = self._loaded or _ExportDocument(self.path)
        self._readers += 1

        try:
            yield
        finally:
            self._readers -= 1
            if not self._readers:
                self._loaded = None

    @property
    def document(self) -> _ExportDocument:
        """The document; only while it is read."""
        assert self._loaded is not None, "not inside reading()"
        return self._loaded

    @property
    def is_second(self) -> bool:
        """Return whether OpenCode 2 wrote it."""
        return "location" in self.document.info

    def read_heads(self) -> Iterator[Head | Problem]:
        """The one session."""
        info = self.document.info
        name = info.get("id")
        if not usable_id(name):
            yield Problem(str(self.path), "the session has no usable id")
            return

        created = value_at(info, "time", "created")
        yield Head.of(str(name), info.get("parentID"), created, info.get("title"))

    def read_session(self, head: Head) -> SessionRecord:  # noqa: ARG002
        """Read the session."""
        document = self.document
        info = deepcopy(document.info)  # its reader takes it apart
        facts: list[Any] = [document.digest]
        record = SessionRecord(info, facts, self.path, *stamp_of(self.path))
        record.worktree = _worktree_of(info)
        record.columns = {"message_count": len(document.messages), "is_excerpt": True}
        return record

    def first_times(self) -> dict[str, int]:
        """The original of a fork is in another file, so no fork is recognised."""
        return {}

    def list_messages(self, session: str) -> list[Opened]:  # noqa: ARG002
        """Name the messages in order."""
        return [
            Opened(message.time or 0, name)
            for name, message in self.document.messages.items()
        ]

    def read_message(self, session: str, message: str) -> Raw:  # noqa: ARG002
        """Read one message; raises `OddRecordError`."""
        element = load_value(self.document.bytes_of(message))
        info = value_at(element, "info")
        if type(info) is not dict:
            raise OddRecordError("is not a message")

        self._parts = (message, as_list(element.get("parts")))
        return info

    def read_parts(self, session: str, message: str) -> Iterator[RawPart]:
        """Read the parts of a message, in order."""
        if self._parts[0] != message:
            self.read_message(session, message)
        for part in self._parts[1]:
            yield RawPart(str(value_at(part, "id")), [part])
        self._parts = ("", [])

    def starting_calls(self, session: str) -> Iterator[tuple[str, Any]]:  # noqa: ARG002
        """A session's children are in files of their own."""
        return iter(())

    def find_orphans(self) -> Iterator[Problem]:
        """That the document breaks off, if it does."""
        if self.document.damage is not None:
            yield Problem(str(self.path), self.document.damage, is_torn=True)


class ExportFileV2(ExportFileV1):
    """A file of generation 2."""

    def message_rows(self, session: str) -> Iterator[MessageRow]:  # noqa: ARG002
        """Read the messages in order."""
        for name, message in self.document.messages.items():
            time = known_time(message.time)
            raw = self.document.bytes_of(name)
            try:
                element = load_object(raw)
            except OddRecordError:  # reported when the row is read
                yield MessageRow(name, "unknown", time, raw)
                continue

            element.pop("id", None)
            kind = str(element.pop("type", "unknown"))
            yield MessageRow(name, kind, time, element)

    def read_epoch(self, session: str) -> None:
        """Return None: an export has no instructions."""

    def unexplained_usage(
        self,
        session: str,  # noqa: ARG002
        fork: Fork | None,
    ) -> Unexplained:
        """Return the session's cost besides its messages; copies are known by ids."""
        total = _usage_of(self.document.info)
        last_copy = None
        usages = []
        for message in self.document.messages.values():
            if fork is not None and _COPY.fullmatch(message.id):
                last_copy = message.id
            else:
                usages.append(message.usage)

        cost, *counts = [
            column - sum(usage[index] for usage in usages)
            for index, column in enumerate(total)
        ]
        columns = dict(zip(SPENT_COLUMNS, total, strict=True))
        return Unexplained(cost, Tokens(*counts), columns, last_copy)

    def fork_marks(self) -> Iterator[tuple[str, str, Any]]:
        """Session, original and boundary, if it is a fork."""
        info = self.document.info
        fork = as_object(info.get("fork"))
        if usable_id(info.get("id")) and usable_id(fork.get("sessionID")):
            yield info["id"], fork["sessionID"], fork.get("boundary")

    def copied_messages(self, *_: Any) -> list[tuple[str, str]]:
        """The original is in another file, so the copied messages are unknown."""
        return []

    def project_of(self, session: str) -> str:  # noqa: ARG002
        """Return the id of the project."""
        return str(self.document.info.get("projectID"))


def _worktree_of(info: dict[str, Any]) -> str | None:
    """Return the project's root; None if it is not known.

    It is the directory without the path that leads there from the root. Only version
    2 leaves the path out if it is empty.
    """
    location = info.get("location")
    is_second = is_object(location)
    if is_second:
        directory, subpath = value_at(location, "directory"), info.get("subpath")
    else:
        directory, subpath = info.get("directory"), info.get("path")
    if type(directory) is not str:
        return None

    tail = f"/{subpath}"
    if clean_name(subpath) and directory.endswith(tail):
        return directory.removesuffix(tail)
    return directory if is_second or subpath == "" else None
