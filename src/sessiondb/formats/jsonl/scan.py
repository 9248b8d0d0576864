"""A log, looked through once: which session each line belongs to, and where it is.

Only what says what a session is stays in memory; the lines of its messages and
blobs are read again when their turn comes. Lines may come in any order (two
versions that git has merged line by line are one file) and more than once.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

from sessiondb.formats.jsonl import records
from sessiondb.formats.jsonl.records import Record
from sessiondb.formats.jsonl.values import record_of
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
_MAX_INT = 1 << 63
_ENCODINGS: dict[str, Callable[[str], bytes]] = {
    "utf-8": str.encode,
    "base64": partial(base64.b64decode, validate=True),
}


@dataclass(slots=True)
class Found:
    """One session of a file: lines of messages by id, and records with their lines."""

    id: str
    first: Line
    meta: Record | None = None
    lineage: Record = field(default_factory=dict)
    messages: dict[str, list[Line]] = field(default_factory=dict)
    state: list[tuple[Line, Record]] = field(default_factory=list)
    unknown: list[Record] = field(default_factory=list)
    prompts: dict[str, Prompt] = field(default_factory=dict)
    digest: Any = field(default_factory=hashlib.sha256)


class Scan:
    """The sessions of a file in the order of their first lines, and its problems."""

    def __init__(self, lines: Lines) -> None:
        self.lines = lines
        self.sessions: dict[str, Found] = {}
        self._blobs: dict[str, Line] = {}

        # Their texts may be blobs of lines that are still to come.
        about: list[tuple[Found, Line]] = []
        for line, raw, record in lines.records(_checked):
            name = record["session_id"]
            found = self.sessions.get(name)
            if found is None:
                found = self.sessions[name] = Found(name, line)
            found.digest.update(raw.rstrip(b"\r\n"))
            if not self._take(found, line, record):
                about.append((found, line))

        for found, line in about:
            try:
                self._take_about(found, self.read(line), line)
            except (ValueError, RecursionError) as error:
                lines.problems.append(lines.skipped(error, line))

    @property
    def problems(self) -> list[Problem]:
        """What is wrong with the lines of the file."""
        return self.lines.problems

    def problem(self, why: str, line: Line) -> Problem:
        """Return a problem of this file."""
        return self.lines.problem(why, line)

    def _take(self, found: Found, line: Line, record: Record) -> bool:
        """Note where a line of a message or a blob is; False for any other line."""
        kind = record["type"]
        if kind == "blob":
            self._blobs.setdefault(str(record.get("hash")), line)
        elif kind in _OF_MESSAGE:
            found.messages.setdefault(record["message_id"], []).append(line)
        else:
            return False
        return True

    def _take_about(self, found: Found, record: Record, line: Line) -> None:
        kind = record["type"]
        if kind == "session_meta":
            if found.meta is None or _about(record) >= _about(found.meta):
                found.meta = record
        elif kind in records.HEAD_TYPES:
            found.lineage = record
        elif kind in records.STATE_TYPES:
            found.state.append((line, record))
        elif kind == records.PROMPT:
            prompt = self._prompt(record)
            found.prompts[prompt.id] = prompt
        else:
            found.unknown.append(record)

    def _prompt(self, record: Record) -> Prompt:
        given = dict(record)
        if "text_blob" in given:
            raw = self.blob(given["text_blob"])
            given["text"] = raw.decode("utf-8", "surrogatepass")
        for name in ("prompt_id", "source", "text"):
            if not isinstance(given.get(name), str) or not given[name]:
                raise ValueError(f"a prompt without {name}")

        where = given.get("directory")
        if where is not None and "\0" in text_of(where):
            raise ValueError(f"not a directory: {where!r:.80}")
        facts = given["source"], given["time"]
        return Prompt(given["prompt_id"], given["text"], where, None, None, *facts)

    def read(self, line: Line) -> Record:
        """Return the record of a line that was good before, its blobs put in."""
        return cast(Record, record_of(self.lines.at(line), self.blob))

    def blob(self, name: Any) -> bytes:
        """Return a blob by its hash; raises ValueError where it is not in the file."""
        line = self._blobs.get(name) if isinstance(name, str) else None
        if line is None:
            raise ValueError(f"the blob {name!r:.80} is not in this file")

        record = self.read(line)
        data, encoding = record.get("data"), record.get("encoding")
        if not isinstance(data, str) or encoding not in _ENCODINGS:
            raise ValueError(f"line {line.number} is not a blob")

        # A hash that does not fit would be kept under a name that others refer to.
        raw = _ENCODINGS[encoding](data)
        if hashlib.sha256(raw).hexdigest() != name:
            raise ValueError(f"the blob of line {line.number} does not have its hash")
        return raw


def _about(meta: Record) -> tuple[int, str]:
    """Return the rank of a ``session_meta``; of equal ones the last holds."""
    revision = meta.get("revision")
    known = revision if type(revision) is int else 0
    return known, versions.digest(versions.about_of(meta))


def _checked(raw: bytes) -> Record:
    """Return a record without its blobs; raises ValueError and RecursionError."""
    return checked(record_of(raw, lambda _: b""))


def checked(record: Any) -> Record:
    """Return *record* if it is one; raises ValueError."""
    if not isinstance(record, dict):
        raise ValueError("not an object")  # noqa: TRY004  a file's fault
    for name, kind in _ENVELOPE.items():
        if type(record.get(name)) is not kind:
            raise ValueError(f"no {name}")

    # SQLite has no larger ones.
    for name in ("seq", "time"):
        if not -_MAX_INT <= record[name] < _MAX_INT:
            raise ValueError("seq and time are 64-bit integers")

    version = record["schema_version"]
    if version > records.SCHEMA_VERSION:
        raise ValueError(f"schema_version {version} is of a newer release")

    of_message = record["type"] in _OF_MESSAGE
    if of_message and not isinstance(record.get("message_id"), str):
        raise ValueError("no message_id")
    return cast(Record, record)
