"""One of our files, looked through once: which session each line belongs to, and where it is.

Only what says what a session is stays in memory; the lines of its messages and
blobs are read again when their turn comes. Lines may come in any order (two
versions that git has merged line by line are one file) and more than once.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from sessiondb.formats.jsonl import records
from sessiondb.formats.jsonl.records import Record
from sessiondb.formats.jsonl.values import record_of
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


@dataclass(slots=True)
class Found:
    """One session of a file. ``messages`` maps an id to its lines, ``state`` are (line, record)."""

    id: str
    first: int
    meta: Record | None = None
    lineage: Record = field(default_factory=dict)
    messages: dict[str, list[Line]] = field(default_factory=dict)
    state: list[tuple[int, Record]] = field(default_factory=list)
    unknown: list[Record] = field(default_factory=list)
    prompts: dict[str, Prompt] = field(default_factory=dict)
    digest: Any = field(default_factory=hashlib.sha256)


class Scan:
    """The sessions of a file, in the order in which they begin, and what is wrong with it."""

    def __init__(self, path: Path, lines: Lines) -> None:
        self.path = path
        self._lines = lines
        self.sessions: dict[str, Found] = {}
        self.problems: list[Problem] = []
        self._blobs: dict[str, Line] = {}
        self._pending: list[tuple[Found, Line]] = []
        for line, raw in lines:
            if raw.strip():
                self._line(raw, line)
        self.problems += [self.problem(why, number) for number, why in lines.problems]
        for found, line in self._pending:
            try:
                self._about(found, self.read(line)[1], line.number)
            except (ValueError, RecursionError) as error:
                self.problems.append(
                    self.problem(f"line skipped: {error}", line.number)
                )

    def problem(self, why: str, number: int | None = None) -> Problem:
        """Return a problem of this file."""
        return Problem(str(self.path), why, number)

    def _line(self, raw: bytes, line: Line) -> None:
        try:
            record = checked(record_of(raw, lambda _: b""))
        except (ValueError, RecursionError) as error:
            torn = "" if raw.endswith(b"\n") else "; the file ends inside of it"
            self.problems.append(
                self.problem(f"line skipped: {error}{torn}", line.number)
            )
            return
        kind, name = record["type"], record["session_id"]
        found = self.sessions.get(name)
        if found is None:
            found = self.sessions[name] = Found(name, line.number)
        found.digest.update(raw.rstrip(b"\r\n"))
        if kind == "blob":
            self._blobs.setdefault(str(record.get("hash")), line)
        elif kind in _OF_MESSAGE:
            found.messages.setdefault(record["message_id"], []).append(line)
        else:
            self._pending.append((found, line))

    def _about(self, found: Found, record: Record, number: int) -> None:
        kind = record["type"]
        if kind == "session_meta":
            if found.meta is None or _about(record) >= _about(found.meta):
                found.meta = record
        elif kind in records.HEAD_TYPES:
            found.lineage = record
        elif kind in records.STATE_TYPES:
            found.state.append((number, record))
        elif kind == records.PROMPT:
            prompt = self._prompt(record)
            found.prompts[prompt.id] = prompt
        else:
            found.unknown.append(record)

    def _prompt(self, record: Record) -> Prompt:
        given = dict(record)
        if "text_blob" in given:
            given["text"] = self.blob(given["text_blob"]).decode(
                "utf-8", "surrogatepass"
            )
        for name in ("prompt_id", "source", "text"):
            if not isinstance(given.get(name), str) or not given[name]:
                raise ValueError(f"a prompt without {name}")
        where = given.get("directory")
        if where is not None and (not isinstance(where, str) or "\0" in where):
            raise ValueError(f"not a directory: {where!r:.80}")
        facts = given["source"], given["time"]
        return Prompt(given["prompt_id"], given["text"], where, None, None, *facts)

    def read(self, line: Line) -> tuple[int, Record]:
        """Return the number and the record of a line that was good before."""
        return line.number, record_of(self._lines.at(line), self.blob)

    def blob(self, name: Any) -> bytes:
        """Return a blob by its hash; raises ValueError where it is not in the file."""
        line = self._blobs.get(name) if isinstance(name, str) else None
        if line is None:
            raise ValueError(f"the blob {name!r:.80} is not in this file")
        record = self.read(line)[1]
        data, encoding = record.get("data"), record.get("encoding")
        if not isinstance(data, str) or encoding not in ("utf-8", "base64"):
            raise ValueError(f"line {line.number} is not a blob")
        raw = (
            data.encode()
            if encoding == "utf-8"
            else base64.b64decode(data, validate=True)
        )
        if hashlib.sha256(raw).hexdigest() != name:
            raise ValueError(f"the blob of line {line.number} does not have its hash")
        return raw


def _about(meta: Record) -> tuple[int, str]:
    """Return by what one ``session_meta`` goes before another; of equal ones the last holds."""
    revision = meta.get("revision")
    known = revision if type(revision) is int else 0
    return known, versions.digest(versions.about_of(meta))


def checked(record: Any) -> Record:
    """Return *record* if it is one; raises ValueError."""
    if not isinstance(record, dict):
        raise ValueError("not an object")  # noqa: TRY004  a file's fault, not the caller's
    for name, kind in _ENVELOPE.items():
        if type(record.get(name)) is not kind:
            raise ValueError(f"no {name}")
    if not all(-_MAX_INT <= record[name] < _MAX_INT for name in ("seq", "time")):
        raise ValueError("seq and time are 64-bit integers")
    if record["schema_version"] > records.SCHEMA_VERSION:
        raise ValueError(
            f"schema_version {record['schema_version']} is of a newer release"
        )
    if record["type"] in _OF_MESSAGE and not isinstance(record.get("message_id"), str):
        raise ValueError("no message_id")
    return cast(Record, record)
