"""The rollouts of a home: which session one is of, and which others it continues.

A rollout is named ``rollout-TIME-THREAD.jsonl``, after a revert
``rollout-TIME-THREAD_SEGMENT.jsonl``; its first line says what it continues. A fork
names the rollout that holds its beginning, and the first ordinal that is not of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from sessiondb.errors import SourceError
from sessiondb.formats.codex.fields import HEADER, ITEMS
from sessiondb.formats.codex.sources import CONTEXT_KEYS, sources_of_settings
from sessiondb.formats.kit.fields import (
    as_object,
    as_string,
    fitting,
    integer,
    is_object,
    take_fields,
    value_at,
    without_keys,
)
from sessiondb.formats.kit.files import file_stamp, is_folder
from sessiondb.formats.kit.heads import first_records
from sessiondb.formats.kit.json import usable_id
from sessiondb.formats.kit.lines import ends_inside_of_a_line
from sessiondb.formats.kit.logs import (
    keep_longer,
    logs_below,
    text_of_stamp,
    unpacked_name,
)
from sessiondb.formats.kit.naming import MARK
from sessiondb.formats.kit.remembered import remembered
from sessiondb.formats.kit.texts import time_of_text
from sessiondb.model import Problem
from sessiondb.patterns import late_pattern

#: Lines of a rollout that are looked at for its header.
HEAD_LINES = 4
#: The folders of a home with rollouts; the second has those of archived sessions.
FOLDERS = ("sessions", "archived_sessions")
_NAME = late_pattern(r"rollout-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-([^_]+)(?:_(.+))?\.jsonl")

Record = dict[str, Any]


class CodexLog(NamedTuple):
    """A rollout."""

    path: Path
    #: The id of its session.
    thread: str
    #: Its own id among the rollouts of that session.
    rollout: str
    #: The id of the rollout that holds the records before the ordinal ``cut``.
    base: str | None
    cut: int | None
    #: The session that it was forked from, or that started it as a subagent.
    parent: str | None
    relation: str | None
    #: When it was begun, as the header states it.
    written: str
    #: When its session was begun, in Unix ms.
    time_created: int | None
    #: The directory of its session; "" if it states none.
    directory: str
    #: Whether its first record is the header of its session, and not a message.
    has_header: bool
    #: The id of the session here that it was written from; None for one by Codex alone.
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
    # Names alone: a search for stores looks at many folders, and opens none of them.
    for name in FOLDERS:
        if is_folder(folder / name):
            for log in logs_below(folder / name, has_name_of_rollout):
                if isinstance(log, Path):
                    return True
    return False


def has_name_of_rollout(path: Path) -> bool:
    """Return whether a file has the complete name of a rollout."""
    return _NAME.fullmatch(path.name) is not None


def home_of(path: Path) -> Path | None:
    """Return the home that a rollout lies in; None for one that lies elsewhere."""
    for folder in path.absolute().parents:
        if folder.name in FOLDERS:
            return folder.parent
    return None


def home_at(folder: Path) -> Path:
    """Return the home that a folder is, or is one of `FOLDERS` of."""
    return folder.parent if folder.name in FOLDERS else folder


def rollouts_of(home: Path) -> Iterator[Path | Problem]:
    """Yield the rollouts of a home, those of archived sessions last.

    An empty file is passed over: a rollout is created before its first record.
    """
    for name in FOLDERS:
        for log in logs_below(home / name, is_rollout):
            if isinstance(log, Problem) or not is_empty_file(log):
                yield log


def is_empty_file(path: Path) -> bool:
    """Return whether a file can be looked at, and has no bytes."""
    size_and_time = file_stamp(path)
    return size_and_time is not None and size_and_time[0] == 0


def ids_in_name(path: Path) -> tuple[str, str] | None:
    """Return the session and the rollout that the name of a file says, if it does."""
    match = _NAME.fullmatch(unpacked_name(path).name)
    if match is None:
        return None

    thread, rollout = match[1], match[2] or match[1]
    return (thread, rollout) if usable_id(thread) and usable_id(rollout) else None


@remembered("codex", CodexLog)
def look_at(path: Path) -> CodexLog | None:
    """Return the rollout at *path*, or None. Raises `SourceError`."""
    records = first_records(path, HEAD_LINES)
    headers = [record for record in records if is_header(record)]
    header = headers[0] if headers else {}
    facts = _facts_in(header)

    # A rollout that lost its header is known by its name, unless it is another log.
    if not header and not any(is_record_of_codex(record) for record in records):
        return None
    named_thread, named_rollout = ids_in_name(path) or ("", "")
    thread = fitting(facts.get("id"), usable_id, named_thread)
    if not thread:
        return None

    base = as_object(facts.get("history_base"))
    parent, relation = _read_parent(thread, facts, headers)
    written = as_string(header.get("timestamp"))
    time_created = time_of_text(facts.get("timestamp"))
    return CodexLog(
        path=path,
        thread=thread,
        # Only further rollouts have an id of their own.
        rollout=named_rollout if named_thread != named_rollout else thread,
        base=fitting(base.get("thread_id"), usable_id),
        cut=fitting(base.get("end_ordinal_exclusive"), integer),
        parent=parent,
        relation=relation,
        written=written,
        time_created=time_of_text(written) if time_created is None else time_created,
        directory=take_fields(dict(facts), HEADER).get("directory", ""),
        has_header=records[:1] == [header] and not any(sources_of_settings(facts)),
        alias=fitting(header.get(MARK), usable_id),
    )


class CodexHeader(NamedTuple):
    """The header of a rollout."""

    #: Its content, without the context that a model was given.
    facts: Record
    #: Its record.
    record: Record


def read_header(path: Path) -> CodexHeader:
    """Return the header of a rollout, an empty one if it has none.

    Raises `SourceError`.
    """
    for record in first_records(path, HEAD_LINES):
        if is_header(record):
            return CodexHeader(without_keys(CONTEXT_KEYS, _facts_in(record)), record)
    return CodexHeader({}, {})


def _facts_in(header: Record) -> Record:
    # The oldest ones have no envelope.
    facts: Record = fitting(header.get("payload"), is_object, header)
    return facts


def is_header(record: Record) -> bool:
    """Return whether a record describes a session; in 2025 it had no type."""
    if record.get("type") == "session_meta":
        return is_object(record.get("payload"))
    if "type" in record or "record_type" in record:
        return False
    return "timestamp" in record and usable_id(record.get("id"))


def is_record_of_codex(record: Record) -> bool:
    """Return whether Codex wrote a record: in its envelope, or as the oldest ones."""
    if "payload" in record:
        return "timestamp" in record and usable_id(record.get("type"))
    return "record_type" in record or as_string(record.get("type")) in ITEMS


def _read_parent(
    thread: str, facts: Record, headers: list[Record]
) -> tuple[str | None, str | None]:
    """Return the parent of a session and its relation to it; (None, None) without one.

    Forks of 2025 named none, but began with the header of the session they copied.
    """
    spawned_by = value_at(
        facts, "source", "subagent", "thread_spawn", "parent_thread_id"
    )
    # A subagent may continue a copy of its parent, and is a subagent still.
    candidates = [
        (facts.get("parent_thread_id"), "subagent"),
        (spawned_by, "subagent"),
        (facts.get("forked_from_id"), "fork"),
        (value_at(facts, "history_base", "thread_id"), "fork"),
    ]
    candidates += [(value_at(header, "payload", "id"), "fork") for header in headers]
    for parent, relation in candidates:
        if usable_id(parent) and parent != thread:
            return parent, relation
    return None, None


class Piece(NamedTuple):
    """A part of a session: the records of a rollout below ``cut``, or all of them.

    A session has all records of its own rollouts; others have its beginning.
    """

    log: CodexLog
    cut: int | None = None


class Rollouts:
    """The rollouts of a home, or of any folder, by their ids and by their sessions."""

    def __init__(self, paths: Iterable[Path] = ()) -> None:
        self._logs: dict[Path, CodexLog | Problem] = {}
        self._rollouts: dict[str, Path] = {}
        #: The rollouts of each session, in order; the values mean nothing.
        self._threads: dict[str, dict[Path, None]] = {}
        #: A chain of forks has each rollout as often as it has forks after it.
        self._stamps: dict[Path, str] = {}
        for path in paths:
            ids = ids_in_name(path)
            if ids is not None:
                self._add(path, *ids)

    @classmethod
    def of_home(cls, home: Path) -> Rollouts:
        """Return those of a home."""
        return cls(log for log in rollouts_of(home) if isinstance(log, Path))

    @classmethod
    def below(cls, folder: Path) -> Rollouts:
        """Return those below any other folder."""
        logs = logs_below(folder, is_rollout)
        return cls(log for log in logs if isinstance(log, Path))

    def _add(self, path: Path, thread: str, rollout: str) -> None:
        """Add a rollout under the ids that its name or its header says."""
        self._threads.setdefault(thread, {})[path] = None
        self._rollouts.setdefault(rollout, path)

    def log_at(self, path: Path) -> CodexLog | Problem:
        """Return the rollout at *path*, or why there is none."""
        if path not in self._logs:
            log = self._logs[path] = _read_log(path)
            if isinstance(log, CodexLog):
                self._add(path, log.thread, log.rollout)
        return self._logs[path]

    def logs_of_thread(
        self, thread: str | None
    ) -> tuple[list[CodexLog], list[Problem]]:
        """Return the rollouts of a session in order, and those that are copies."""
        logs: dict[str, CodexLog] = {}
        problems: list[Problem] = []
        for path in list(self._threads.get(thread or "", ())):
            log = self.log_at(path)
            # The name of a file may say another session than its header, which wins.
            if isinstance(log, CodexLog) and log.thread == thread:
                problems += keep_longer(log, logs)

        # The first rollout of a session has no segment; each revert begins another.
        by_age = sorted(
            logs.values(), key=lambda log: (log.rollout != thread, log.written)
        )
        return by_age, problems

    def pieces_before(self, log: CodexLog) -> tuple[list[Piece], str | None]:
        """Return what a rollout continues, oldest first, and an id that is missing."""
        pieces: list[Piece] = []
        seen = {log.rollout}
        cut = log.cut
        while log.base is not None and cut is not None:
            path = self._rollouts.get(log.base)
            base = None if path is None else self.log_at(path)
            if not isinstance(base, CodexLog) or base.rollout in seen:
                return pieces[::-1], log.base

            seen.add(base.rollout)
            pieces.append(Piece(base, cut))
            # A fork of what was reverted before has less than it names.
            if base.cut is not None:
                cut = min(cut, base.cut)
            log = base
        return pieces[::-1], None

    def digest_of(self, pieces: Iterable[Piece]) -> str:
        """Return a digest that changes with any of the rollouts."""
        paths = [piece.log.path for piece in pieces]
        for path in paths:
            if path not in self._stamps:
                self._stamps[path] = text_of_stamp(path)
        return " ".join([self._stamps[path] for path in paths])

    def root_of(self, log: CodexLog) -> str:
        """Return the session that a chain of forks began with."""
        root = log.thread
        seen = {root}
        while True:
            logs, _ = self.logs_of_thread(root)
            # A subagent may continue its parent, too.
            if not logs or not logs[0].is_continued:
                return root
            parent = logs[0].parent
            if parent is None or parent in seen:
                return root
            seen.add(parent)
            root = parent


def _read_log(path: Path) -> CodexLog | Problem:
    try:
        log = look_at(path)
        if log is not None:
            return log
        is_torn = ends_inside_of_a_line(path)
        return Problem(str(path), "the rollout has no header", is_torn=is_torn)
    except SourceError as error:
        return Problem(str(path), str(error))
