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
from functools import partial
from itertools import filterfalse
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from sessiondb.errors import SourceError
from sessiondb.formats.claude import fields
from sessiondb.formats.kit.fields import (
    as_string,
    clean_name,
    time,
    within,
)
from sessiondb.formats.kit.files import ancestor, entries, is_file
from sessiondb.formats.kit.heads import first_records, objects_of
from sessiondb.formats.kit.json import OddRecordError, load_object, usable_id
from sessiondb.formats.kit.lines import opened
from sessiondb.formats.kit.logs import is_readable, logs_below
from sessiondb.formats.kit.texts import time_of_text
from sessiondb.model import Problem

Record = dict[str, Any]
#: Lines and bytes of a transcript that are looked at to know its session.
HEAD_LINES, HEAD_BYTES = 40, 1 << 20
_UUID = re.compile(r"(?i:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")
_AGENT = re.compile(r"agent-.+")
_NAMED = re.compile(rf"(?:{_UUID.pattern}|{_AGENT.pattern})\.jsonl")
#: Any line that is not empty.
ANY = re.compile(rb"\S")
#: A line of a subagent; in its own transcript, or in that of its parent.
BESIDE = re.compile(rb'"isSidechain"\s*:\s*true')
#: The keys of a link of the chain.
_LINK = frozenset({"parentUuid", "uuid"})
_CHUNK, _OVERLAP = 1 << 20, 64


class Log(NamedTuple):
    """A transcript, or one chain of a subagent in it, with what its head says.

    ``chain`` names that chain, ``""`` is the conversation itself and None all lines of
    the file. ``first`` is the first line of the chain that has a uuid. ``began`` is the
    first time in the file, ``stray`` that of a line without a uuid: lines that a fork
    copied have a uuid, and are older than it.
    ``about`` are the titles of sessions by their last lines: older releases wrote them
    into the transcript that was begun next. One that has ``notes_alone``, without a
    line of a conversation, is not a session.
    """

    path: Path
    session: str
    chain: str | None = None
    parent: str | None = None
    relation: str | None = None
    first: Mapping[str, Any] = MappingProxyType({})
    began: int | None = None
    stray: int | None = None
    about: tuple[tuple[str, str], ...] = ()
    notes_alone: bool = False

    @property
    def agent(self) -> str:
        """The id of the subagent; "" for any other session."""
        is_agent = self.relation == "subagent"
        return as_string(self.first.get("agentId")) if is_agent else ""

    def above(self, logs: Mapping[str, Log]) -> Log | None:
        """Return the log of its parent among *logs*."""
        return logs.get(self.parent or "")

    @property
    def sidecar(self) -> Path:
        """The path of the file with the parent's description of a subagent."""
        return self.path.with_name(f"{self.path.stem}.meta.json")


# -- files ---------------------------------------------------------------------


def is_home(folder: Path) -> bool:
    """Return whether Claude Code keeps its sessions in a folder: ``~/.claude``."""
    return any(map(_is_found, logs_of_home(folder)))


def is_project(folder: Path) -> bool:
    """Return whether a folder has transcripts of Claude Code, and no other logs."""
    logs: list[Path] = []
    # Nothing below it is looked at, and one that cannot be read has none.
    with suppress(OddRecordError):
        logs += filter(is_log, map(Path, entries(folder)))
    return all(map(is_named, logs)) and any(map(is_transcript, logs))


def _is_found(item: Path | Problem) -> bool:
    return isinstance(item, Path) and is_transcript(item)


def is_log(path: Path) -> bool:
    """Return whether a file with this name may be a transcript."""
    return path.suffix == ".jsonl"


def is_named(path: Path) -> bool:
    """Return whether a file is named like a transcript."""
    return _NAMED.fullmatch(path.name) is not None


def is_transcript(path: Path) -> bool:
    """Return whether a file is a transcript of Claude Code."""
    return is_log(path) and is_file(path) and is_readable(look_at, path)


def logs_of_home(home: Path) -> Iterator[Path | Problem]:
    """Yield the transcripts below a home."""
    return _logs(home / "projects", 2)


def logs_of_project(folder: Path) -> Iterator[Path | Problem]:
    """Yield the transcripts in a folder, and those of the subagents below it."""
    return _logs(folder, 1)


def _logs(folder: Path, depth: int) -> Iterator[Path | Problem]:
    """Yield the transcripts that are *depth* levels below *folder*, and subagents'."""
    return filter(partial(_is_placed, folder, depth), logs_below(folder, is_log))


def _is_placed(folder: Path, depth: int, item: Path | Problem) -> bool:
    """Return whether a log is that of a session or a subagent."""
    if isinstance(item, Problem):
        return True
    place = item.relative_to(folder).parts
    return len(place) == depth or ("subagents" in place and is_named(item))


def records_of(path: Path, wanted: re.Pattern[bytes] = ANY) -> Iterator[Record]:
    """Yield the records of a transcript, as far as it can be read.

    Lines without what is *wanted* are not decoded.
    """
    with suppress(SourceError), opened(path) as lines:
        yield from objects_of(raw for _, raw in lines if wanted.search(raw))


# -- one file --------------------------------------------------------------------


def look_at(path: Path) -> Log | None:
    """Return the transcript at *path*; None for another file; raises `SourceError`."""
    records = first_records(path, HEAD_LINES, longest=HEAD_BYTES)
    if not any(map(fields.is_line, records)):
        return None

    first = next(filter(_is_linked, records), {})
    name = _name_of(path, first, records)
    if name is None:
        return None

    began, stray = _first_time(records), _first_time(filterfalse(_has_uuid, records))
    log = Log(path, name, None, None, None, first, began, stray, _about(records))
    if first.get("isSidechain") is True or _AGENT.fullmatch(path.stem):
        return _of_agent(log)

    # Most have a line of their own in the head, and are not read for this.
    alone = not first and not _has_conversation(path)
    return _of_fork(log)._replace(chain=_chain_of(path), notes_alone=alone)


def _name_of(path: Path, first: Record, records: list[Record]) -> str | None:
    """Return the session of a transcript: by its name, else as its lines state."""
    if is_named(path):
        return path.stem

    agent = first.get("agentId") if first.get("isSidechain") is True else None
    named = [f"agent-{agent}"] if usable_id(agent) else []
    stated = (record.get("sessionId") for record in records)
    return next(filter(usable_id, (*named, *stated, path.stem)), None)


def _is_linked(record: Record) -> bool:
    return record.keys() >= _LINK


def is_summary(record: Record) -> bool:
    """Return whether a line is the title of the session that ends with another line."""
    return all(map(clean_name, (record.get("leafUuid"), record.get("summary"))))


def _about(records: list[Record]) -> tuple[tuple[str, str], ...]:
    found = filter(is_summary, records)
    return tuple((record["leafUuid"], record["summary"]) for record in found)


def _has_conversation(path: Path) -> bool:
    """Return whether a line of a transcript is, or may have been, of a conversation."""
    with suppress(SourceError), opened(path) as lines:
        said = (_is_said(record) for _, _, record in lines.records(load_object))
        return any(said) or bool(lines.problems)
    return True


def _is_said(record: Record) -> bool:
    # Not everything but the types beside the chain: each release adds some of those.
    return record.get("type") in fields.CHAIN or _is_linked(record)


def _of_fork(log: Log) -> Log:
    """Return a log with its original, if it names one."""
    copied = within(log.first, "forkedFrom", "sessionId")
    if not usable_id(copied) or copied == log.session:
        return log
    return log._replace(parent=copied, relation="fork")


def _first_time(records: Iterable[Record]) -> int | None:
    times = (time_of_text(record.get("timestamp")) for record in records)
    return next(filter(time, times), None)


def _has_uuid(record: Record) -> bool:
    return "uuid" in record


def _of_agent(log: Log) -> Log:
    """Return the log of a subagent, which is named after its parent, too.

    The parent is known by the folder, else by the first line.
    """
    folder = ancestor(log.path, "subagents") or Path()
    beside, stated = folder.parent.name, as_string(log.first.get("sessionId"))
    above = beside if _UUID.fullmatch(beside) else stated

    agent = log._replace(relation="subagent")
    name = f"{above}/{log.session}"
    if above in ("", log.session) or not usable_id(name):
        return agent
    return agent._replace(session=name, parent=above)


def _chain_of(path: Path) -> str | None:
    """Return the chain of the conversation: None without lines of subagents.

    Nothing is decoded for it.
    """
    tail = b""

    with suppress(OSError), path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            if BESIDE.search(tail + chunk):
                return ""
            tail = chunk[-_OVERLAP:]

    return None
