"""The rollouts of a home: which session one is of, and which others it continues.

A rollout is named ``rollout-TIME-THREAD.jsonl``, after a revert
``rollout-TIME-THREAD_SEGMENT.jsonl``; its first line says what it continues. A fork
names the rollout that holds its beginning, and the first ordinal that is not of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from sessiondb.errors import SourceError
from sessiondb.formats.kit.fields import (
    as_object,
    fitting,
    integer,
    is_object,
    text,
    within,
)
from sessiondb.formats.kit.files import is_folder, stamp
from sessiondb.formats.kit.json import usable_id
from sessiondb.formats.kit.logs import first_records, logs_below, unpacked_name
from sessiondb.model import Problem

#: Lines of a rollout that are looked at for its header.
HEAD_LINES = 4
#: Where a home keeps its rollouts; the second has those of archived sessions.
FOLDERS = ("sessions", "archived_sessions")
_NAME = re.compile(r"rollout-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-([^_]+)(?:_(.+))?\.jsonl")

#: The session and the rollout of a file whose name says neither.
_UNNAMED = ("", "")

Record = dict[str, Any]


class Log(NamedTuple):
    """A rollout: its session (``thread``), and its own id among those of that session.

    ``base`` is the id of the rollout that holds what comes before ``cut``, an ordinal.
    ``header`` is empty if the rollout has lost it, ``written`` when it was begun.
    """

    path: Path
    thread: str
    rollout: str
    base: str | None
    cut: int | None
    parent: str | None
    relation: str | None
    header: Record
    written: str

    @property
    def facts(self) -> Record:
        """The content of the header; the oldest ones have no envelope."""
        return _facts_in(self.header)

    @property
    def origin(self) -> str | None:
        """The session that it is a fork of."""
        return self.parent if self.relation == "fork" else None

    @property
    def is_continuing(self) -> bool:
        """Whether it says which rollout it continues, and from where."""
        return None not in (self.base, self.cut)

    @property
    def is_archived(self) -> bool:
        """Whether it lies where Codex moves archived sessions to."""
        return FOLDERS[1] in self.path.parts[:-1]


def is_rollout(path: Path) -> bool:
    """Return whether a file with this unpacked name may be a rollout."""
    return path.name.startswith("rollout-") and path.suffix == ".jsonl"


def is_home(folder: Path) -> bool:
    """Return whether a folder is a home of Codex: rollouts are in one of `FOLDERS`."""
    return any(map(_has_rollouts, filter(is_folder, map(folder.joinpath, FOLDERS))))


def _has_rollouts(folder: Path) -> bool:
    # Names alone: a search for stores looks at many folders, and opens none of them.
    found = logs_below(folder, lambda path: _NAME.fullmatch(path.name) is not None)
    return any(isinstance(item, Path) for item in found)


def home_of(path: Path) -> Path | None:
    """Return the home that a rollout lies in; None for one that lies elsewhere."""
    above = path.absolute().parents
    return next((folder.parent for folder in above if folder.name in FOLDERS), None)


def home_at(folder: Path) -> Path:
    """Return the home that a folder is, or is one of `FOLDERS` of."""
    return folder.parent if folder.name in FOLDERS else folder


def rollouts_of(home: Path) -> Iterator[Path | Problem]:
    """Yield the rollouts of a home, those of archived sessions last."""
    for name in FOLDERS:
        yield from logs_below(home / name, is_rollout)


def ids_in(path: Path) -> tuple[str, str] | None:
    """Return the session and the rollout that the name of a file says, if it does."""
    named = _NAME.fullmatch(unpacked_name(path).name)
    if named is None or not all(map(usable_id, named.groups(default=named[1]))):
        return None

    return named[1], named[2] or named[1]


def look_at(path: Path) -> Log | None:
    """Return the rollout at *path*, or None. Raises `SourceError`."""
    records = first_records(path, HEAD_LINES)
    named = ids_in(path) or _UNNAMED
    header = next(filter(is_header, records), {})

    facts = _facts_in(header)
    thread = fitting(facts.get("id"), usable_id, named[0])
    # A rollout that lost its header is known by its name, unless it is another log.
    is_log = bool(header) or any(map(_is_record, records))
    if not (thread and is_log):
        return None

    base = as_object(facts.get("history_base"))
    return Log(
        path,
        thread,
        # Only further rollouts have an id of their own.
        named[1] if named[0] != named[1] else thread,
        fitting(base.get("thread_id"), usable_id),
        fitting(base.get("end_ordinal_exclusive"), integer),
        *_parent(thread, facts, records),
        header,
        fitting(header.get("timestamp"), text, ""),
    )


def _facts_in(header: Record) -> Record:
    facts: Record = fitting(header.get("payload"), is_object, header)
    return facts


def is_header(record: Record) -> bool:
    """Return whether a record describes a session; in 2025 it had no type."""
    if record.get("type") == "session_meta":
        return is_object(record.get("payload"))

    is_bare = record.keys().isdisjoint(("type", "record_type"))
    return is_bare and "timestamp" in record and usable_id(record.get("id"))


def _is_record(record: Record) -> bool:
    return usable_id(record.get("type")) or "record_type" in record


def _parent(
    thread: str, facts: Record, records: list[Record]
) -> tuple[str | None, str | None]:
    """Return the parent and the relation to it.

    Forks of 2025 named none, but began with the header of what they copied.
    """
    spawned = within(facts, "source", "subagent", "thread_spawn", "parent_thread_id")
    copied = (within(record, "payload", "id") for record in filter(is_header, records))
    # A subagent may continue a copy of its parent, and is a subagent still.
    known = [
        (facts.get("parent_thread_id"), "subagent"),
        (spawned, "subagent"),
        (facts.get("forked_from_id"), "fork"),
        (within(facts, "history_base", "thread_id"), "fork"),
        *((name, "fork") for name in copied),
    ]
    others = (pair for pair in known if usable_id(pair[0]) and pair[0] != thread)
    return next(others, (None, None))


class Piece(NamedTuple):
    """A part of a session: the records of a rollout below ``cut``, or all of them."""

    log: Log
    cut: int | None = None


class Rollouts:
    """The rollouts of a home, or of any folder, by their ids and by their sessions."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._logs: dict[Path, Log | None] = {}
        self._errors: dict[Path, str] = {}
        self._rollouts: dict[str, Path] = {}
        #: The rollouts of each session, in order; the values mean nothing.
        self._threads: dict[str, dict[Path, None]] = {}
        for path in paths:
            self.add(path, ids_in(path))

    def add(self, path: Path, ids: tuple[str, str] | None) -> None:
        """Add a rollout under the ids that its name or its header says."""
        if ids is not None:
            self._rollouts.setdefault(ids[1], path)
            self._threads.setdefault(ids[0], {})[path] = None

    def log(self, path: Path) -> Log | None:
        """Return the rollout at *path*; None if it cannot be read."""
        if path not in self._logs:
            try:
                self._logs[path] = look_at(path)
            except SourceError as error:
                self._logs[path] = None
                self._errors[path] = str(error)

        return self._logs[path]

    def find(self, path: Path) -> Log | Problem:
        """Return the rollout at *path*, and add it under what its header says."""
        log = self.log(path)
        if log is None:
            why = self._errors.get(path, "the rollout has no header")
            return Problem(str(path), why)

        self.add(path, (log.thread, log.rollout))
        return log

    def of_thread(self, thread: str | None) -> tuple[list[Log], list[Problem]]:
        """Return the rollouts of a session in order, and those that are copies."""
        logs = filter(None, map(self.log, self._threads.get(thread or "", ())))
        found: dict[str, Log] = {}
        problems = []

        # The name of a file may say another session than its header, which wins.
        for log in (log for log in logs if log.thread == thread):
            other = found.get(log.rollout, log)
            copy, kept = sorted((other, log), key=_length)
            found[log.rollout] = kept
            if copy != kept:
                why = f"session {thread} is also in {kept.path}, which is longer"
                problems.append(Problem(str(copy.path), why))

        # The first rollout of a session has no segment; each revert begins another.
        by_age = sorted(
            found.values(), key=lambda log: (log.rollout != thread, log.written)
        )
        return by_age, problems

    def before(self, log: Log) -> tuple[list[Piece], str | None]:
        """Return what a rollout continues, oldest first, and an id that is missing."""
        pieces: list[Piece] = []
        seen = {log.rollout}
        least = log.cut

        while log.base is not None and least is not None:
            above = self._by_rollout(log.base)
            if above is None or above.rollout in seen:
                return pieces[::-1], log.base

            seen.add(above.rollout)
            pieces.append(Piece(above, least))
            log = above
            # A fork of what was reverted before has less than it names.
            least = min(least, fitting(log.cut, integer, least))

        return pieces[::-1], None

    def _by_rollout(self, name: str) -> Log | None:
        path = self._rollouts.get(name)
        return None if path is None else self.log(path)


def _length(log: Log) -> int:
    return (stamp(log.path) or (0, 0))[0]
