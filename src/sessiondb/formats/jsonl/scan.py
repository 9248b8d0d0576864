"""A log, scanned once: the session that each line belongs to, and its place.

Only the records about sessions stay in memory; the lines of messages and blobs are
read again when they are needed. Lines may come in any order (two versions that git
has merged line by line are one file) and more than once.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from functools import partial
from typing import Any, cast

from sessiondb.dataclass import dataclass, field
from sessiondb.formats.jsonl import records
from sessiondb.formats.jsonl.records import Record
from sessiondb.formats.jsonl.values import record_of
from sessiondb.formats.kit.fields import as_text, fitting, integer
from sessiondb.formats.kit.json import text_of
from sessiondb.formats.kit.lines import Line, Lines
from sessiondb.model import Problem, Prompt, versions

_OF_MESSAGE = frozenset(
    {*records.MESSAGE_TYPES, *records.PART_TYPES, *records.ENDING_TYPES}
)
_ENVELOPE = {
    "schema_version": int,
    "seq": int,
    "time": int,
    "type": str,
    "session_id": str,
}
_INT64 = 1 << 63
#: How the bytes of a blob are written.
_ENCODINGS: dict[str | None, Callable[[str], bytes]] = {
    "utf-8": str.encode,
    "base64": partial(base64.b64decode, validate=True),
}


@dataclass(slots=True)
class LoggedSession:
    """One session of a file: lines of messages by id, and records with their lines."""

    id: str
    first: Line
    meta: Record | None = None
    lineage: Record = field(default_factory=dict)
    messages: dict[str, list[Line]] = field(default_factory=dict)
    state: list[tuple[Line, Record]] = field(default_factory=list)
    unknown: list[Record] = field(default_factory=list)
    prompts: dict[str, Prompt] = field(default_factory=dict)
    extension_rows: list[Line] = field(default_factory=list)
    digest: Any = field(default_factory=hashlib.sha256)


class Scan:
    """The sessions of a file in the order of their first lines, and its problems."""

    def __init__(self, lines: Lines) -> None:
        self.lines = lines
        self.sessions: dict[str, LoggedSession] = {}
        self._blobs: dict[str, Line] = {}

        # Their texts may be blobs of lines that are still to come.
        about: list[tuple[LoggedSession, Line]] = []
        for line, raw, record in lines.records(record_at):
            name = record["session_id"]
            logged = self.sessions.get(name)
            if logged is None:
                logged = self.sessions[name] = LoggedSession(name, line)
            logged.digest.update(raw.rstrip(b"\r\n"))
            if not self._take_place(logged, line, record):
                about.append((logged, line))

        for logged, line in about:
            try:
                self._take_about(logged, self.read_record(line), line)
            except (ValueError, RecursionError) as error:
                lines.problems.append(lines.skipped_line(error, line))

    @property
    def problems(self) -> list[Problem]:
        """The problems of the lines of the file."""
        return self.lines.problems

    def problem(self, reason: str, line: Line) -> Problem:
        """Return a problem of this file."""
        return self.lines.problem(reason, line)

    def _take_place(self, logged: LoggedSession, line: Line, record: Record) -> bool:
        """Record where a line that is read later is; False for any other line."""
        kind = record["type"]
        if kind == "blob":
            self._blobs.setdefault(str(record.get("hash")), line)
        elif kind in _OF_MESSAGE:
            logged.messages.setdefault(record["message_id"], []).append(line)
        elif kind == records.EXTENSION_ROW:
            logged.extension_rows.append(line)
        else:
            return False
        return True

    def _take_about(self, logged: LoggedSession, record: Record, line: Line) -> None:
        kind = record["type"]
        if kind == "session_meta":
            # Of equal ones the last holds.
            if logged.meta is None or _rank_of_meta(record) >= _rank_of_meta(
                logged.meta
            ):
                logged.meta = record
        elif kind in records.HEAD_TYPES:
            logged.lineage = record
        elif kind in records.STATE_TYPES:
            logged.state.append((line, record))
        elif kind == records.PROMPT:
            prompt = self._prompt_of(record)
            logged.prompts[prompt.id] = prompt
        else:
            logged.unknown.append(record)

    def _prompt_of(self, record: Record) -> Prompt:
        columns = dict(record)
        if "text_blob" in columns:
            columns["text"] = self.blob_text(columns["text_blob"])
        for name in ("prompt_id", "source", "text"):
            if as_text(columns.get(name)) in (None, ""):
                raise ValueError(f"a prompt without {name}")

        directory = directory_of(columns.get("directory"))
        facts = columns["source"], columns["time"]
        return Prompt(
            columns["prompt_id"], columns["text"], directory, None, None, *facts
        )

    def read_record(self, line: Line) -> Record:
        """Return the record of a line that was scanned, its blobs put in."""
        return cast(Record, record_of(self.lines.read_line(line), self.blob_bytes))

    def blob_bytes(self, name: Any) -> bytes:
        """Return a blob by its hash; raises ValueError where it is not in the file."""
        line = self._blobs.get(text_of(name))
        if line is None:
            raise ValueError(f"the blob {name!r:.80} is not in this file")

        # Read without blobs: one that refers to itself would never end.
        record = record_at(self.lines.read_line(line))
        read = _ENCODINGS.get(as_text(record.get("encoding")))
        data = as_text(record.get("data"))
        if read is None or data is None:
            raise ValueError(f"line {line.number} is not a blob")

        # A hash that does not fit would be kept under a name that others refer to.
        raw = read(data)
        if hashlib.sha256(raw).hexdigest() != name:
            raise ValueError(f"the blob of line {line.number} does not have its hash")
        return raw

    def blob_text(self, name: Any) -> str:
        """Return a blob that is a text; raises ValueError."""
        return self.blob_bytes(name).decode("utf-8", "surrogatepass")


def _rank_of_meta(meta: Record) -> tuple[int, str]:
    """Return the rank of a ``session_meta``."""
    revision = fitting(meta.get("revision"), integer, 0)
    return revision, versions.digest(versions.about_of(meta))


def _no_blob(name: str) -> bytes:
    del name
    return b""


def record_at(raw: bytes) -> Record:
    """Return the record of a line, its blobs empty.

    Raises ValueError if it is not one, and RecursionError.
    """
    record = record_of(raw, _no_blob)
    if not isinstance(record, dict):
        raise ValueError("not an object")  # noqa: TRY004  a file's fault
    for name, kind in _ENVELOPE.items():
        if type(record.get(name)) is not kind:
            raise ValueError(f"no {name}")

    # SQLite has no larger ones.
    numbers = record["seq"], record["time"]
    if not -_INT64 <= min(numbers) <= max(numbers) < _INT64:
        raise ValueError("seq and time are 64-bit integers")

    version = record["schema_version"]
    if version > records.SCHEMA_VERSION:
        raise ValueError(f"schema_version {version} is of a newer release")

    of_message = record["type"] in _OF_MESSAGE
    if of_message and not isinstance(record.get("message_id"), str):
        raise ValueError("no message_id")
    return cast(Record, record)


def directory_of(value: Any) -> str | None:
    """Return *value* if it can be a directory, or None; raises ValueError."""
    if value is not None and "\0" in text_of(value):
        raise ValueError(f"not a directory: {value!r:.80}")
    return cast("str | None", value)
