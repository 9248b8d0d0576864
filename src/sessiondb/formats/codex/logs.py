"""The rollouts of a home: which session one is of, and which others it continues.

A rollout is named ``rollout-TIME-THREAD.jsonl``, after a revert
``rollout-TIME-THREAD_SEGMENT.jsonl``; its first line says what it continues. A fork
names the rollout that holds its beginning, and the first ordinal that is not of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain, filterfalse
from pathlib import Path
from typing import Any, NamedTuple

from sessiondb.errors import SourceError
from sessiondb.formats.codex.fields import ITEMS
from sessiondb.formats.codex.given import CONTEXT, of_settings
from sessiondb.formats.kit.fields import (
    as_object,
    as_string,
    fitting,
    integer,
    is_object,
    within,
    without,
)
from sessiondb.formats.kit.files import is_folder, stamp
from sessiondb.formats.kit.heads import first_records
from sessiondb.formats.kit.json import usable_id
from sessiondb.formats.kit.lines import ends_inside_of_a_line
from sessiondb.formats.kit.logs import keep_longer, logs_below, unpacked_name
from sessiondb.formats.kit.naming import MARK
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
    ``facts`` are the content of its header without the context that a model was given.
    ``header`` is the first record, if that is a header without context; any other is a
    message. ``written`` is when the rollout was begun. ``alias`` is the id of the
    session here that a rollout was written from, None for one by Codex alone.
    """

    path: Path
    thread: str
    rollout: str
    base: str | None
    cut: int | None
    parent: str | None
    relation: str | None
    facts: Record
    header: Record
    written: str
    alias: str | None = None

    @property
    def session(self) -> str:
        """The id by which copies of a rollout are recognised."""
        return self.rollout

    @property
    def is_continued(self) -> bool:
        """Whether it has the beginning of its parent."""
        return self.relation == "fork" or self.base is not None

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
    """Yield the rollouts of a home, those of archived sessions last.

    An empty file is passed over: a rollout is created before its first record.
    """
    found = chain.from_iterable(logs_below(home / of, is_rollout) for of in FOLDERS)
    return filterfalse(_is_empty, found)


def _is_empty(item: Path | Problem) -> bool:
    size, _ = (stamp(item) if isinstance(item, Path) else None) or (1, 0)
    return size == 0


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

    # The oldest ones have no envelope.
    facts: Record = fitting(header.get("payload"), is_object, header)
    thread = fitting(facts.get("id"), usable_id, named[0])
    # A rollout that lost its header is known by its name, unless it is another log.
    is_log = bool(header) or any(map(_is_record, records))
    if not (thread and is_log):
        return None

    base = as_object(facts.get("history_base"))
    is_kept = records[:1] == [header] and not any(of_settings(facts))
    return Log(
        path,
        thread,
        # Only further rollouts have an id of their own.
        named[1] if named[0] != named[1] else thread,
        fitting(base.get("thread_id"), usable_id),
        fitting(base.get("end_ordinal_exclusive"), integer),
        *_parent(thread, facts, records),
        # The context may be long, and all logs of a home are known at once.
        without(CONTEXT, facts),
        header if is_kept else {},
        as_string(header.get("timestamp")),
        fitting(header.get(MARK), usable_id),
    )


def is_header(record: Record) -> bool:
    """Return whether a record describes a session; in 2025 it had no type."""
    if record.get("type") == "session_meta":
        return is_object(record.get("payload"))

    is_bare = record.keys().isdisjoint(("type", "record_type"))
    return is_bare and "timestamp" in record and usable_id(record.get("id"))


def _is_record(record: Record) -> bool:
    """Return whether Codex wrote a record: in its envelope, or as the oldest ones."""
    if "payload" in record:
        return "timestamp" in record and usable_id(record.get("type"))
    return "record_type" in record or as_string(record.get("type")) in ITEMS


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
    """A part of a session: the records of a rollout below ``cut``, or all of them.

    A session has all records of its own rollouts; others have its beginning.
    """

    log: Log
    cut: int | None = None


class Rollouts:
    """The rollouts of a home, or of any folder, by their ids and by their sessions."""

    def __init__(self, paths: Iterable[Path] = ()) -> None:
        self._found: dict[Path, Log | Problem] = {}
        self._rollouts: dict[str, Path] = {}
        #: The rollouts of each session, in order; the values mean nothing.
        self._threads: dict[str, dict[Path, None]] = {}
        for path in paths:
            self._add(path, ids_in(path))

    def _add(self, path: Path, ids: tuple[str, str] | None) -> None:
        """Add a rollout under the ids that its name or its header says."""
        if ids is not None:
            self._threads.setdefault(ids[0], {})[path] = None
            self._rollouts.setdefault(ids[1], path)

    def at(self, path: Path) -> Log | Problem:
        """Return the rollout at *path*, or why there is none."""
        if path not in self._found:
            found = self._found[path] = _rollout_at(path)
            if isinstance(found, Log):
                self._add(path, (found.thread, found.rollout))

        return self._found[path]

    def of_thread(self, thread: str | None) -> tuple[list[Log], list[Problem]]:
        """Return the rollouts of a session in order, and those that are copies."""
        found: dict[str, Log] = {}
        problems: list[Problem] = []
        logs = map(self.at, list(self._threads.get(thread or "", ())))

        # The name of a file may say another session than its header, which wins.
        for log in logs:
            if isinstance(log, Log) and log.thread == thread:
                problems += keep_longer(log, found)

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
            path = self._rollouts.get(log.base)
            above = None if path is None else self.at(path)
            if not isinstance(above, Log) or above.rollout in seen:
                return pieces[::-1], log.base

            seen.add(above.rollout)
            pieces.append(Piece(above, least))
            log = above
            # A fork of what was reverted before has less than it names.
            least = min(least, fitting(log.cut, integer, least))

        return pieces[::-1], None

    def root(self, log: Log) -> str:
        """Return the session that a chain of forks began with."""
        seen: set[str] = set()
        name: str | None = log.thread
        while name is not None and name not in seen:
            seen.add(name)
            last = name
            logs, _ = self.of_thread(name)
            # A subagent may continue its parent, too.
            name = next((log.parent for log in logs[:1] if log.is_continued), None)

        return last


def _rollout_at(path: Path) -> Log | Problem:
    try:
        found = look_at(path)
        if found is not None:
            return found
        torn = ends_inside_of_a_line(path)
        return Problem(str(path), "the rollout has no header", is_torn=torn)
    except SourceError as error:
        return Problem(str(path), str(error))
