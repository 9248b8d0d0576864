"""The transcripts of Claude Code: their files, and the sessions in them.

    <home>/projects/<directory>/<session>.jsonl
    <home>/projects/<directory>/<session>/subagents/**/agent-<id>.jsonl, .meta.json
    <home>/projects/<directory>/agent-<id>.jsonl           (2.0)

Before that the lines of sub-agents were in the transcript itself: each such chain is a
session here. The name of a directory is encoded with loss and never decoded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from sessiondb.errors import SourceError
from sessiondb.formats.claude import fields
from sessiondb.formats.kit.fields import as_text, time, within
from sessiondb.formats.kit.files import entries, is_file, read_file
from sessiondb.formats.kit.json import OddRecordError, load_object, usable_id
from sessiondb.formats.kit.lines import opened
from sessiondb.formats.kit.logs import first_records, is_readable, logs_below
from sessiondb.formats.kit.texts import time_of_text
from sessiondb.model import Problem

Record = dict[str, Any]
#: Lines and bytes of a transcript that are looked at to know its session.
HEAD_LINES, HEAD_BYTES = 40, 1 << 20
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_AGENT = re.compile(r"agent-.+")
_BESIDE = re.compile(rb'"isSidechain"\s*:\s*true')
_CHUNK, _OVERLAP = 1 << 20, 64


class Log(NamedTuple):
    """A transcript, or one chain of a sub-agent in it, with what its head says.

    ``chain`` names that chain, ``""`` is the conversation itself and None all lines of
    the file. ``first`` is the first line of the chain that has a uuid, ``stray`` the
    first time of a line without one: of a copy it is later than that of its lines.
    ``about`` are the titles of sessions by their last lines: older releases wrote them
    into the transcript that was begun next.
    """

    path: Path
    session: str
    chain: str | None = None
    parent: str | None = None
    relation: str | None = None
    first: Mapping[str, Any] = MappingProxyType({})
    stray: int | None = None
    about: tuple[tuple[str, str], ...] = ()

    @property
    def agent(self) -> str | None:
        """The id of the sub-agent; None for any other session."""
        named = as_text(self.first.get("agentId"))
        return named if self.relation == "subagent" else None

    @property
    def sidecar(self) -> Path:
        """The path of the file with the parent's description of a sub-agent."""
        return self.path.with_name(f"{self.path.stem}.meta.json")


class Chains:
    """Separates the chains of sub-agents in a transcript from its conversation."""

    def __init__(self) -> None:
        self._of: dict[str, str] = {}

    def of(self, record: Record) -> str:
        """Return the name of the chain that the next line is in; "" for none."""
        if record.get("isSidechain") is not True:
            return ""
        own, above = as_text(record.get("uuid")), as_text(record.get("parentUuid"))
        named = record.get("agentId")
        chain = str(named) if usable_id(named) else self._of.get(above or "", own or "")
        if own:
            self._of[own] = chain
        return chain if usable_id(f"agent-{chain}") else ""


# -- files ---------------------------------------------------------------------


def is_home(folder: Path) -> bool:
    """Return whether Claude Code keeps its sessions in a folder: ``~/.claude``."""
    with suppress(OddRecordError):
        projects = [e for e in entries(folder / "projects") if is_real_folder(e)]
        logs = (log for e in projects for log in _direct(folder / "projects" / e.name))
        return any(map(is_transcript, logs))
    return False


def is_project(folder: Path) -> bool:
    """Return whether a folder has transcripts of Claude Code, and no other logs."""
    with suppress(OddRecordError):
        logs = _direct(folder)
        return all(map(is_named, logs)) and any(map(is_transcript, logs))
    return False


def _direct(folder: Path) -> list[Path]:
    """Return the logs in a folder; none of one that cannot be read."""
    with suppress(OddRecordError):
        names = [entry.name for entry in entries(folder)]
        return [folder / name for name in names if is_log(folder / name)]
    return []


def is_log(path: Path) -> bool:
    """Return whether a file with this name may be a transcript."""
    return path.suffix == ".jsonl"


def is_real_folder(entry: Any) -> bool:
    """Return whether an entry is a folder and no link to one."""
    return bool(entry.is_dir(follow_symlinks=False))


def is_named(path: Path) -> bool:
    """Return whether a file is named like a transcript."""
    known = _UUID.fullmatch(path.stem) or _AGENT.fullmatch(path.stem)
    return path.suffix == ".jsonl" and known is not None


def is_transcript(path: Path) -> bool:
    """Return whether a file is a transcript of Claude Code."""
    return is_log(path) and is_file(path) and is_readable(look_at, path)


def logs_of_home(home: Path) -> Iterator[Path | Problem]:
    """Yield the transcripts below a home."""
    try:
        found = [e.name for e in entries(home / "projects") if is_real_folder(e)]
    except OddRecordError as error:
        yield Problem(str(home / "projects"), f"the folder {error}")
        return

    for name in found:
        yield from logs_of_project(home / "projects" / name)


def logs_of_project(folder: Path) -> Iterator[Path | Problem]:
    """Yield the transcripts in a folder, and those of the sub-agents below it."""
    for item in logs_below(folder, is_log):
        if isinstance(item, Problem) or _is_placed(item, folder):
            yield item


def _is_placed(path: Path, project: Path) -> bool:
    """Return whether a log in a project is that of a session or a sub-agent."""
    if path.parent == project:
        return True
    return "subagents" in path.relative_to(project).parts and is_named(path)


# -- one file --------------------------------------------------------------------


def look_at(path: Path) -> Log | None:
    """Return the transcript at *path*; None for another file; raises `SourceError`."""
    records = first_records(path, HEAD_LINES, longest=HEAD_BYTES)

    if not any(map(fields.is_line, records)):
        return None

    linked = (r for r in records if "parentUuid" in r and as_text(r.get("uuid")))
    first = next(linked, {})
    is_agent = first.get("isSidechain") is True
    name = path.stem
    if not is_named(path):
        name = _stated(records, first if is_agent else {}) or name
    if not usable_id(name):
        return None

    log = Log(path, name, None, None, None, first, _stray(records), _about(records))
    if is_agent or _AGENT.fullmatch(path.stem):
        return _of_agent(log)

    return _of_fork(log)._replace(chain="" if _has_chains(path) else None)


def _about(records: list[Record]) -> tuple[tuple[str, str], ...]:
    titles = ((as_text(r.get("leafUuid")), as_text(r.get("summary"))) for r in records)
    return tuple((leaf, title) for leaf, title in titles if leaf and title)


def _of_fork(log: Log) -> Log:
    """Return a log with its original, if it names one."""
    copied = within(log.first, "forkedFrom", "sessionId")
    if not usable_id(copied) or copied == log.session:
        return log
    return log._replace(parent=copied, relation="fork")


def _stated(records: list[Record], agent: Record) -> str | None:
    """Return the session that the lines of a renamed transcript name."""
    if usable_id(agent.get("agentId")):
        return f"agent-{agent['agentId']}"
    named = (record.get("sessionId") for record in records)
    return next((str(name) for name in named if usable_id(name)), None)


def _stray(records: list[Record]) -> int | None:
    times = (time_of_text(r.get("timestamp")) for r in records if "uuid" not in r)
    return next(filter(time, times), None)


def _of_agent(log: Log) -> Log:
    """Return the log of a sub-agent, which is named after its parent, too.

    The parent is known by the folder, else by the first line.
    """
    parts = log.path.parts
    above = log.first.get("sessionId")
    if "subagents" in parts:
        folder = parts[len(parts) - 2 - parts[::-1].index("subagents")]
        above = folder if _UUID.fullmatch(folder) else above

    name = f"{above}/{log.session}"
    if not usable_id(above) or above == log.session or not usable_id(name):
        return log._replace(relation="subagent")

    return log._replace(session=name, parent=above, relation="subagent")


def _has_chains(path: Path) -> bool:
    """Return whether a transcript has lines of sub-agents; nothing is decoded."""
    tail = b""

    with suppress(OSError), path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            if _BESIDE.search(tail + chunk):
                return True
            tail = chunk[-_OVERLAP:]

    return False


def chains_in(log: Log) -> Iterator[Log]:
    """Yield the chains of sub-agents in a transcript, in the order they begin."""
    if log.chain is None:
        return

    chains, seen = Chains(), {""}

    with suppress(SourceError), opened(log.path) as lines:
        for _, raw in lines:
            record = _beside(raw)
            chain = chains.of(record)
            if chain not in seen:
                seen.add(chain)
                name = f"{log.session}/agent-{chain}"
                yield Log(log.path, name, chain, log.session, "subagent", record)


def _beside(raw: bytes) -> Record:
    with suppress(ValueError, RecursionError):
        return load_object(raw) if _BESIDE.search(raw) else {}
    return {}


def sidecar_of(log: Log) -> Record:
    """Return the sidecar of a sub-agent; {} if there is no such file.

    Raises `OddRecordError` for one that cannot be read.
    """
    if log.relation != "subagent" or log.chain is not None:
        return {}
    raw = read_file(log.sidecar)
    return {} if raw is None else load_object(raw)
