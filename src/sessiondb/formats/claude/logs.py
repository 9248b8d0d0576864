"""The transcripts of Claude Code: their files, and the sessions in them.

    <home>/projects/<directory>/<session>.jsonl
    <home>/projects/<directory>/<session>/subagents/**/agent-<id>.jsonl, .meta.json
    <home>/projects/<directory>/agent-<id>.jsonl           (2.0)

Before that the lines of subagents were in the transcript itself: each such chain is a
session here. The name of a directory is encoded with loss and never decoded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from sessiondb.errors import SourceError
from sessiondb.formats.claude import fields
from sessiondb.formats.kit.fields import (
    as_string,
    clean_name,
    fitting,
    take_fields,
    value_at,
)
from sessiondb.formats.kit.files import ancestor_named, is_file, sorted_entries
from sessiondb.formats.kit.heads import (
    FirstRecords,
    bytes_of_small_file,
    objects_of,
)
from sessiondb.formats.kit.json import OddRecordError, load_object, usable_id
from sessiondb.formats.kit.lines import opened
from sessiondb.formats.kit.logs import is_readable, logs_below
from sessiondb.formats.kit.remembered import remembered
from sessiondb.formats.kit.texts import time_of_text
from sessiondb.model import Problem
from sessiondb.patterns import late_pattern

Record = dict[str, Any]
#: Lines and bytes of a transcript that are looked at to know its session.
HEAD_LINES, HEAD_BYTES = 40, 1 << 20
_UUID_TEXT = r"(?i:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"
_AGENT_TEXT = r"agent-.+"
_UUID, _AGENT_NAME = late_pattern(_UUID_TEXT), late_pattern(_AGENT_TEXT)
_FILE_NAME = late_pattern(rf"(?:{_UUID_TEXT}|{_AGENT_TEXT})\.jsonl")
#: Any line that is not empty.
ANY_LINE = late_pattern(rb"\S")
#: A line of a subagent; in its own transcript, or in that of its parent.
SIDECHAIN_LINE = late_pattern(rb'"isSidechain"\s*:\s*true')
#: A line with what a process cost; the name in a text has other quotes.
_COST_STATE = b'"cost-state"'
_CHUNK, _OVERLAP = 1 << 20, 64


class ClaudeLog(NamedTuple):
    """A transcript, or one chain of a subagent in it, with what its head says."""

    path: Path
    #: The id of its session.
    session: str
    #: The chain of a subagent, "" the conversation itself, None all lines of the file.
    chain: str | None = None
    #: The session that started this one, or that it was forked from.
    parent: str | None = None
    #: ``subagent`` or ``fork``.
    relation: str | None = None
    #: The id of the subagent; "" for any other session.
    agent: str = ""
    #: The uuid of its first line that has one; "" without any.
    first_uuid: str = ""
    #: Its first time, in Unix ms.
    time_created: int | None = None
    #: As its first line states them; "" if it does not.
    directory: str = ""
    version: str = ""
    #: Whether it has titles of sessions: older releases wrote them into the transcript
    #: that was begun next.
    has_titles: bool = False
    #: Whether it has no line of a conversation, and so is not a session.
    has_only_notes: bool = False

    def parent_log(self, logs: Mapping[str, ClaudeLog]) -> ClaudeLog | None:
        """Return the log of its parent among *logs*."""
        return logs.get(self.parent or "")

    @property
    def sidecar(self) -> Path:
        """The path of the file with the parent's description of a subagent."""
        return self.path.with_name(f"{self.path.stem}.meta.json")


# -- files ---------------------------------------------------------------------


def is_home(folder: Path) -> bool:
    """Return whether Claude Code keeps its sessions in a folder: ``~/.claude``."""
    return any(
        isinstance(item, Path) and is_transcript(item) for item in logs_of_home(folder)
    )


def is_project(folder: Path) -> bool:
    """Return whether a folder has transcripts of Claude Code, and no other logs.

    The folders below it are not looked at.
    """
    try:
        paths = [Path(entry) for entry in sorted_entries(folder)]
    except OddRecordError:
        return False
    logs = [path for path in paths if is_log(path)]
    return all(is_named(log) for log in logs) and any(
        is_transcript(log) for log in logs
    )


def is_log(path: Path) -> bool:
    """Return whether a file with this name may be a transcript."""
    return path.suffix == ".jsonl"


def is_named(path: Path) -> bool:
    """Return whether a file is named like a transcript."""
    return _FILE_NAME.fullmatch(path.name) is not None


def is_transcript(path: Path) -> bool:
    """Return whether a file is a transcript of Claude Code."""
    return is_log(path) and is_file(path) and is_readable(read_head, path)


def logs_of_home(home: Path) -> Iterator[Path | Problem]:
    """Yield the transcripts below a home."""
    return _logs_at_depth(home / "projects", 2)


def logs_of_project(folder: Path) -> Iterator[Path | Problem]:
    """Yield the transcripts in a folder, and those of the subagents below it."""
    return _logs_at_depth(folder, 1)


def _logs_at_depth(folder: Path, depth: int) -> Iterator[Path | Problem]:
    """Yield the transcripts that are *depth* levels below *folder*, and subagents'."""
    above = len(folder.parts)
    for item in logs_below(folder, is_log):
        if isinstance(item, Problem):
            yield item
            continue
        levels = item.parts[above:]
        if len(levels) == depth or ("subagents" in levels and is_named(item)):
            yield item


def load_line(raw: bytes) -> Record:
    """Return the record of a line; raises `OddRecordError` for one without a type."""
    record = load_object(raw)
    if not usable_id(record.get("type")):
        raise OddRecordError("has no type")
    return record


def records_of(path: Path, wanted: re.Pattern[bytes] = ANY_LINE) -> Iterator[Record]:
    """Yield the records of a transcript, as far as it can be read.

    Lines without what is *wanted* are not decoded.
    """
    with suppress(SourceError), opened(path) as lines:
        yield from objects_of(raw for _, raw in lines if wanted.search(raw))


# -- one file --------------------------------------------------------------------


@remembered("claude", ClaudeLog)
def read_head(path: Path) -> ClaudeLog | None:
    """Return the transcript at *path*; None for another file; raises `SourceError`."""
    records = FirstRecords(path, HEAD_LINES, longest=HEAD_BYTES)
    if not any(fields.is_line(record) for record in records):
        return None

    first = _first_link(records)
    session = _session_of(path, first, records)
    if session is None:
        return None

    log = with_first_line(ClaudeLog(path, session), first)._replace(
        time_created=_first_time(records),
        first_uuid=fitting(first.get("uuid"), clean_name, ""),
        has_titles=any(True for _ in _titles_among(records)),
    )
    if first.get("isSidechain") is True or _AGENT_NAME.fullmatch(path.stem):
        return _as_subagent(log, first)

    # Most have a line of their own in the head, and are not read for this.
    has_only_notes = not first and not _has_conversation(path)
    log = log._replace(chain=_chain_in(path), has_only_notes=has_only_notes)
    original = value_at(first, "forkedFrom", "sessionId")
    if usable_id(original) and original != session:
        return log._replace(parent=original, relation="fork")
    return log


def with_first_line(log: ClaudeLog, first: Record) -> ClaudeLog:
    """Return a log with what its first line states of the session."""
    columns = take_fields(dict(first), fields.HEAD)
    time = time_of_text(first.get("timestamp"))
    return log._replace(time_created=time, **columns)


def titles_in(path: Path) -> dict[str, str]:
    """Return the titles of sessions in the head of a transcript, by their last lines.

    Raises `SourceError`.
    """
    records = FirstRecords(path, HEAD_LINES, longest=HEAD_BYTES)
    return {record["leafUuid"]: record["summary"] for record in _titles_among(records)}


def _titles_among(records: FirstRecords) -> Iterator[Record]:
    return (record for record in records.containing(b"leafUuid") if is_summary(record))


def _first_link(records: Iterable[Record]) -> Record:
    """Return the first line that is a link of the chain; an empty one without any."""
    for record in records:
        if _is_link(record):
            return record
    return {}


def first_time_beside_chain(path: Path) -> int | None:
    """Return the first time in the head of a transcript of a line without a uuid.

    Lines with one may be copied, and older. In Unix ms; None without such a line.
    """
    with suppress(SourceError):
        records = FirstRecords(path, HEAD_LINES, longest=HEAD_BYTES)
        return _first_time(record for record in records if "uuid" not in record)
    return None


def _session_of(path: Path, first: Record, records: Iterable[Record]) -> str | None:
    """Return the session of a transcript: by its name, else as its lines state."""
    if is_named(path):
        return path.stem

    names: list[Any] = [record.get("sessionId") for record in records]
    names.append(path.stem)
    if first.get("isSidechain") is True and usable_id(first.get("agentId")):
        names.insert(0, f"agent-{first['agentId']}")
    for name in names:
        if usable_id(name):
            return str(name)
    return None


def _is_link(record: Record) -> bool:
    """Return whether a line is a link of the chain."""
    return "parentUuid" in record and "uuid" in record


def is_summary(record: Record) -> bool:
    """Return whether a line is the title of the session that ends with another line."""
    return clean_name(record.get("leafUuid")) and clean_name(record.get("summary"))


def _has_conversation(path: Path) -> bool:
    """Return whether a line of a transcript is, or may have been, of a conversation.

    Raises `SourceError`.
    """
    with opened(path) as lines:
        for _, _, record in lines.records(load_line):
            # Not everything but the types beside the chain: each release adds some.
            if record["type"] in fields.CHAIN or _is_link(record):
                return True
        return bool(lines.problems)


def _first_time(records: Iterable[Record]) -> int | None:
    for record in records:
        time = time_of_text(record.get("timestamp"))
        if time is not None:
            return time
    return None


def _as_subagent(log: ClaudeLog, first: Record) -> ClaudeLog:
    """Return the log of a subagent, which is named after its parent, too.

    The parent is known by the folder, else by the first line.
    """
    folder = ancestor_named(log.path, "subagents")
    parent = "" if folder is None else folder.parent.name
    if not _UUID.fullmatch(parent):
        parent = as_string(first.get("sessionId"))

    log = log._replace(relation="subagent", agent=as_string(first.get("agentId")))
    session = f"{parent}/{log.session}"
    if parent in ("", log.session) or not usable_id(session):
        return log
    return log._replace(session=session, parent=parent)


def _chain_in(path: Path) -> str | None:
    """Return the chain of the conversation in a transcript; nothing is decoded for it.

    None without lines of subagents. Raises `SourceError`.
    """
    for _, piece in _pieces_of(path):
        if SIDECHAIN_LINE.search(piece):
            return ""
    return None


def last_cost_in(path: Path) -> int | None:
    """Return the byte at which the last line with a cost names its type, or None.

    Nothing is decoded for it. Raises `SourceError`.
    """
    last_cost: int | None = None
    for start, piece in _pieces_of(path):
        place = piece.rfind(_COST_STATE)
        if place >= 0:
            last_cost = start + place
    return last_cost


def _pieces_of(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the pieces of a file, which overlap, and where they begin.

    Raises `SourceError`.
    """
    content = bytes_of_small_file(path)
    if content is not None:
        yield 0, content
        return

    tail, read = b"", 0
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                yield read - len(tail), tail + chunk
                tail, read = chunk[-_OVERLAP:], read + len(chunk)
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror or error}") from error
