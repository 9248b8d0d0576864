"""The sessions of Codex, read from their rollouts one record at a time.

A session is yielded after a look at the heads of its rollouts. When it changed, they
are read twice: for what events name, and for the messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from sessiondb.errors import abridged
from sessiondb.formats.codex import fields
from sessiondb.formats.codex.course import Course
from sessiondb.formats.codex.drafts import item_of, message_draft
from sessiondb.formats.codex.logs import (
    CodexLog,
    Piece,
    Rollouts,
    home_at,
    home_of,
    is_header,
    read_header,
    rollouts_of,
)
from sessiondb.formats.codex.names import CodexNames, history_in, names_in
from sessiondb.formats.codex.outcomes import call_that_spawned
from sessiondb.formats.kit.fields import (
    as_list,
    as_object,
    clean_name,
    copy_objects,
    fitting,
    integer,
    take_fields,
    text,
    value_at,
)
from sessiondb.formats.kit.files import file_stamp
from sessiondb.formats.kit.heads import objects_of
from sessiondb.formats.kit.json import OddRecordError, load_object, usable_id
from sessiondb.formats.kit.lines import Line, Lines, opened
from sessiondb.formats.kit.logs import (
    records_naming,
    unpacked_name,
)
from sessiondb.formats.kit.naming import MARK
from sessiondb.formats.kit.order import in_order
from sessiondb.formats.kit.remembered import found_once
from sessiondb.formats.kit.texts import time_of_text
from sessiondb.model import Problem, SourceItem, SourceMessage, SourceSession

Record = dict[str, Any]
#: The types of events that name a prompt or a title, as a line has them.
_PROMPT, _ITEM, _TITLE = b'"user_message"', b'"UserMessage"', b'"thread_name_updated"'


class CodexThread(NamedTuple):
    """A session and its rollouts."""

    id: str
    #: The pieces of other sessions that it continues.
    inherited: tuple[Piece, ...]
    #: Its own rollouts, in order.
    logs: tuple[CodexLog, ...]
    #: The id of a rollout that it continues and that does not exist.
    missing: str | None
    #: The name that its home keeps beside the rollouts, or "".
    title: str
    #: When it was archived, in Unix ms; None if it is not.
    time_archived: int | None
    #: All rollouts that were found with it.
    rollouts: Rollouts

    @property
    def pieces(self) -> list[Piece]:
        """All of its records, in order."""
        return [*self.inherited, *(Piece(log) for log in self.logs)]


def read_rollout(path: Path) -> Iterator[SourceSession | Problem]:
    """Yield the session that a rollout is part of."""
    home = home_of(path)
    if home is None:
        rollouts = found_once(_folder_of_rollouts(path), Rollouts.below)
    else:
        rollouts = found_once(home, Rollouts.of_home)
    log = rollouts.log_at(path)
    if isinstance(log, Problem):
        yield log
    else:
        yield from _read_threads({log.thread: log}, rollouts, names_in(home))


def _folder_of_rollouts(path: Path) -> Path:
    """Return the folder of a rollout that is in no home; those of days are inside."""
    folder = path.absolute().parent
    while folder.name.isdigit():
        folder = folder.parent
    return folder


def read_home(folder: Path) -> Iterator[SourceItem]:
    """Yield the sessions of a home, or of a folder inside, parents first.

    A home has a prompt history, too.
    """
    # A rollout may continue one in the other folder.
    home = home_at(folder)
    rollouts = Rollouts()
    threads: dict[str, CodexLog] = {}
    for item in rollouts_of(home):
        log = item if isinstance(item, Problem) else rollouts.log_at(item)
        if isinstance(log, Problem):
            yield log
        elif home == folder or folder in log.path.parents:
            threads.setdefault(log.thread, log)

    yield from _read_threads(threads, rollouts, names_in(home))
    if home == folder:
        yield from history_in(home)


def _read_threads(
    threads: Mapping[str, CodexLog], rollouts: Rollouts, names: CodexNames
) -> Iterator[SourceSession | Problem]:
    yield from names.problems
    yield from in_order(
        threads,
        lambda name: threads[name].parent,
        lambda name, is_cut: _read_thread(name, rollouts, names, is_cut=is_cut),
        lambda name: threads[name].path,
    )


# -- sessions ----------------------------------------------------------------------


def _read_thread(
    name: str, rollouts: Rollouts, names: CodexNames, *, is_cut: bool
) -> Iterator[SourceSession | Problem]:
    logs, problems = rollouts.logs_of_thread(name)
    yield from problems
    if not logs:
        return

    if is_cut:
        logs[0] = logs[0]._replace(parent=None, relation=None)

    inherited, missing = rollouts.pieces_before(logs[0])
    if logs[0].base == name:
        # The rollout that was reverted is gone; another session cannot be meant.
        missing = name

    thread = CodexThread(
        id=name,
        inherited=tuple(inherited),
        logs=tuple(logs),
        missing=missing,
        title=names.titles.get(name, ""),
        time_archived=_time_archived(logs[-1], names),
        rollouts=rollouts,
    )
    yield read_headers(thread)


def _time_archived(log: CodexLog, names: CodexNames) -> int | None:
    """Return when a session was archived: its rollout was moved, and not changed."""
    if not log.is_archived:
        return None

    _, time_changed = file_stamp(log.path) or (0, 0)
    return names.archived.get(log.thread, time_changed // 1_000_000)


def read_headers(thread: CodexThread) -> SourceSession:
    """Return a session as a search for it knows it."""
    first = thread.logs[0]
    outside = repr((thread.title, thread.time_archived, thread.missing, first.parent))
    digest = blake2b(outside.encode("utf-8", "surrogatepass"), digest_size=8)
    digest_of_files = thread.rollouts.digest_of(thread.pieces)
    return SourceSession(
        "codex",
        thread.id,
        str(thread.logs[-1].path),
        f"{digest_of_files} {digest.hexdigest()}",
        title=thread.title,
        directory=first.directory,
        parent_source_id=first.parent,
        relation=first.relation,
        time_created=first.time_created,
        time_archived=thread.time_archived,
        alias=first.alias,
        complete=partial(read_completely, thread),
    )


def read_completely(thread: CodexThread) -> SourceSession:
    """Return a session with everything that its rollouts say of it."""
    first = thread.logs[0]
    header = read_header(first.path)
    facts = copy_objects(header.facts)
    agent = facts.get("agent_role")
    if not clean_name(agent):
        agent = fitting(facts.get("agent_nickname"), clean_name)

    scans = [RolloutScan(piece.log.path) for piece in thread.pieces]
    title, time_updated = thread.title, None
    # The last of its own rollouts that says it counts.
    for scan in reversed(scans[-len(thread.logs) :]):
        title = title or scan.title
        time_updated = time_updated or scan.time

    data: Record = {"rollout": unpacked_name(first.path).name}
    if first.has_header:
        data["header"] = header.record
    provider = fitting(facts.get("model_provider"), clean_name)
    session = replace(
        read_headers(thread),
        title=title,
        agent=agent,
        time_updated=time_updated,
        call_id=_find_call(thread),
        data=data,
        messages=CodexMessages(thread, scans, provider),
        **take_fields(facts, fields.HEADER),
    )
    if home_of(first.path) is not None:
        return session
    # Elsewhere it may have another name, and not what it continues.
    count = sum(isinstance(item, SourceMessage) for item in session.messages)
    return replace(session, is_excerpt=True, message_count=count)


def _find_call(thread: CodexThread) -> str | None:
    """Return the call of its parent that a subagent was started by."""
    first = thread.logs[0]
    # Forks have a parent, too, but no call of it.
    if first.relation != "subagent":
        return None

    logs_of_parent, _ = thread.rollouts.logs_of_thread(first.parent)
    for log in logs_of_parent:
        for record in records_naming(log.path, thread.id):
            call = call_that_spawned(as_object(record.get("payload")), thread.id)
            if call:
                return call
    return None


class RolloutScan:
    """The prompts and the title that events name; most lines are not decoded."""

    def __init__(self, path: Path) -> None:
        #: Hashes, because a session may have many prompts, and long ones.
        self.prompt_hashes: set[int] = set()
        self.title = ""
        #: The number of its last line.
        self.end = 0
        last = b""
        with opened(path) as lines:
            for line, raw in lines:
                self.end, last = line.number, raw
                # Three searches cost less than decoding, which most lines need not.
                if _PROMPT in raw or _ITEM in raw or _TITLE in raw:
                    self._read_event(as_object(_object_in(raw).get("payload")))

        #: When its last record was written, in Unix ms.
        self.time = time_of_text(_object_in(last).get("timestamp"))

    def _read_event(self, event: Record) -> None:
        kind = event.get("type")
        if kind == "user_message":
            # In 2025 some of what Codex added had such an event, too.
            if event.get("kind") in (None, "plain"):
                self._add_prompt(event.get("message"))
        elif kind == "thread_name_updated":
            self.title = fitting(event.get("thread_name"), text, self.title)
        elif value_at(event, "item", "type") == "UserMessage":
            for block in as_list(value_at(event, "item", "content")):
                self._add_prompt(value_at(block, "text"))

    def _add_prompt(self, prompt: Any) -> None:
        if text(prompt):
            self.prompt_hashes.add(hash(prompt))


def _object_in(raw: bytes) -> Record:
    """Return the object on a line; an empty one if there is none."""
    for record in objects_of([raw]):
        return record
    return {}


# -- messages ----------------------------------------------------------------------


class CodexMessages:
    """The messages of a session and their problems; read again each time."""

    def __init__(
        self, thread: CodexThread, scans: list[RolloutScan], provider: str | None
    ) -> None:
        self._thread = thread
        #: The provider of its model, as its header states it.
        self._provider = provider
        self._pieces = list(zip(thread.pieces, scans, strict=True))

    def __iter__(self) -> Iterator[SourceMessage | Problem]:
        """Read the lines that were there; memory holds one record, and the ids."""
        thread = self._thread
        first = thread.logs[0]
        if thread.missing is not None:
            problem = f"its beginning is in {thread.missing}, which is missing"
            yield Problem(str(first.path), problem)

        root = thread.rollouts.root_of(first)
        course = Course(root, self._provider, len(thread.logs) > 1)
        for piece, scan in self._pieces:
            yield from self._read_piece(piece, scan, course)

    def _read_piece(
        self, piece: Piece, scan: RolloutScan, course: Course
    ) -> Iterator[SourceMessage | Problem]:
        log = piece.log
        is_own = piece.cut is None
        is_further = is_own and log is not self._thread.logs[0]
        # The session has the header, but for that of a further rollout.
        is_header_kept = log.has_header and not is_further
        marks = {} if is_own else {"copied_from": log.rollout}

        course.begin_rollout(log.rollout, scan.prompt_hashes)
        if is_further:
            course.next_parent = self._parent_of_rollout(log, course)
            marks["segment"] = unpacked_name(log.path).name

        with opened(log.path) as lines:
            for line, record, place in _records(lines, piece, scan.end):
                if is_header_kept and is_header(record):
                    is_header_kept = False
                    continue

                record.update(marks)
                message = _read_message(lines, line, record, place, course)
                # The name of a further rollout is that of all messages after it.
                if is_further and isinstance(message, SourceMessage):
                    marks.clear()
                yield message

            if is_own:
                yield from lines.problems

    def _parent_of_rollout(self, log: CodexLog, course: Course) -> Any:
        """Return the message that a further rollout continues; ``...`` is the last."""
        pieces, missing = self._thread.rollouts.pieces_before(log)
        if not (pieces or missing):
            return ...

        for piece in reversed(pieces):
            message_id = course.last_below(piece.log.rollout, piece.cut or 0)
            if message_id:
                return message_id
        return None


def _records(
    lines: Lines, piece: Piece, end: int
) -> Iterator[tuple[Line, Record, int]]:
    """Yield the records of a piece, each with its ordinal or the last one before."""
    place = -1
    cut = inf if piece.cut is None else piece.cut
    for line, _, record in lines.records(load_object):
        ordinal = record.get("ordinal")
        place = ordinal if integer(ordinal) else place
        if place >= cut or line.number > end:
            return
        yield line, record, place


def _read_message(
    lines: Lines, line: Line, record: Record, place: int, course: Course
) -> SourceMessage | Problem:
    item = item_of(record)
    item_id = None if item is None else item.get("id")
    time = time_of_text(record.get("timestamp"))
    message_id = course.name_record(item_id, time)
    alias = fitting(record[MARK], usable_id) if MARK in record else None
    usage_id = course.id_of_copies(record, item)

    try:
        id_and_time = {"id": message_id, "time_created": time}
        draft = message_draft(record, item, id_and_time, course)
    except OddRecordError as error:
        return lines.problem(f"record {abridged(message_id)} {error}", line)

    parent = course.add_message(message_id, place)
    if draft.kind == "usage":
        usage_id = course.usage_id(record)
    return SourceMessage(
        draft, parent, usage_id, alias=alias, timeless=usage_id is not None
    )
