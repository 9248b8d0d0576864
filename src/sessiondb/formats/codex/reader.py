"""The sessions of Codex, read from their rollouts one record at a time.

A session is yielded after a look at the heads of its rollouts. When it changed, they
are read twice: for what events name, and for the messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from sessiondb.errors import abridged
from sessiondb.formats.codex import fields
from sessiondb.formats.codex.course import Course, started_by
from sessiondb.formats.codex.drafts import item_of, message_draft
from sessiondb.formats.codex.logs import (
    Log,
    Piece,
    Rollouts,
    home_at,
    home_of,
    is_header,
    is_rollout,
    rollouts_of,
)
from sessiondb.formats.codex.names import Names, history_in, names_in
from sessiondb.formats.kit.fields import (
    as_list,
    as_object,
    clean_name,
    filled,
    fitting,
    integer,
    take,
    text,
    within,
)
from sessiondb.formats.kit.files import stamp
from sessiondb.formats.kit.heads import objects_of
from sessiondb.formats.kit.json import OddRecordError, load_object, usable_id
from sessiondb.formats.kit.lines import Line, Lines, opened
from sessiondb.formats.kit.logs import (
    log_digest,
    logs_below,
    records_naming,
    unpacked_name,
)
from sessiondb.formats.kit.naming import MARK
from sessiondb.formats.kit.order import in_order
from sessiondb.formats.kit.texts import time_of_text
from sessiondb.model import Problem, SourceItem, SourceMessage, SourceSession

Record = dict[str, Any]
#: The types of events that name a prompt or a title, as a line has them.
_PROMPT, _ITEM, _TITLE = b'"user_message"', b'"UserMessage"', b'"thread_name_updated"'


class Thread(NamedTuple):
    """A session: what it continues, and its own rollouts, among all *rollouts*.

    ``missing`` is the id of a rollout that it continues and that is not there.
    """

    id: str
    before: tuple[Piece, ...]
    logs: tuple[Log, ...]
    missing: str | None
    title: str
    archived: int | None
    rollouts: Rollouts

    @property
    def pieces(self) -> list[Piece]:
        """All of its records, in order."""
        return [*self.before, *map(Piece, self.logs)]


def read_rollout(path: Path) -> Iterator[SourceSession | Problem]:
    """Yield the session that a rollout is part of."""
    home = home_of(path)
    beside = _near(path) if home is None else rollouts_of(home)
    rollouts = Rollouts(item for item in beside if isinstance(item, Path))
    log = rollouts.at(path)
    if isinstance(log, Problem):
        yield log
    else:
        yield from _sessions({log.thread: log}, rollouts, names_in(home))


def _near(path: Path) -> Iterator[Path | Problem]:
    """Yield the rollouts near one that is in no home, by day if they still are."""
    folder = path.absolute().parent
    while folder.name.isdigit():
        folder = folder.parent
    return logs_below(folder, is_rollout)


def read_home(folder: Path) -> Iterator[SourceItem]:
    """Yield the sessions of a home, or of a folder inside, parents first.

    A home has a prompt history, too.
    """
    # A rollout may continue one in the other folder.
    home = home_at(folder)
    rollouts = Rollouts()
    threads: dict[str, Log] = {}

    for item in rollouts_of(home):
        log = item if isinstance(item, Problem) else rollouts.at(item)
        if isinstance(log, Problem):
            yield log
        elif home == folder or folder in log.path.parents:
            threads.setdefault(log.thread, log)

    yield from _sessions(threads, rollouts, names_in(home))
    if home == folder:
        yield from history_in(home)


def _sessions(
    threads: Mapping[str, Log], rollouts: Rollouts, names: Names
) -> Iterator[SourceSession | Problem]:
    yield from names.problems
    yield from in_order(
        threads,
        lambda name: threads[name].parent,
        lambda name, cut: _session(name, rollouts, names, is_cut=cut),
        lambda name: threads[name].path,
    )


# -- sessions ----------------------------------------------------------------------


def _session(
    name: str, rollouts: Rollouts, names: Names, *, is_cut: bool
) -> Iterator[SourceSession | Problem]:
    logs, problems = rollouts.of_thread(name)
    yield from problems
    if not logs:
        return

    if is_cut:
        logs[0] = logs[0]._replace(parent=None, relation=None)

    before, missing = rollouts.before(logs[0])
    if logs[0].base == name:
        # The rollout that was reverted is gone; another session cannot be meant.
        missing = name

    title, archived = names.titles.get(name, ""), _archived(logs[-1], names)
    yield beginning(
        Thread(name, tuple(before), tuple(logs), missing, title, archived, rollouts)
    )


def _archived(head: Log, names: Names) -> int | None:
    """Return when a session was archived: its rollout was moved, and not changed."""
    if not head.is_archived:
        return None

    _, changed = stamp(head.path) or (0, 0)
    return names.archived.get(head.thread, changed // 1_000_000)


def beginning(thread: Thread) -> SourceSession:
    """Return a session as the heads of its rollouts describe it."""
    first = thread.logs[0]
    named = repr((thread.title, thread.archived, thread.missing, first.parent))
    digest = blake2b(named.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()

    facts = deepcopy(first.facts)
    times = map(time_of_text, (facts.get("timestamp"), first.written))
    roles = map(facts.get, ("agent_role", "agent_nickname"))
    return SourceSession(
        "codex",
        thread.id,
        str(thread.logs[-1].path),
        f"{log_digest(*(piece.log.path for piece in thread.pieces))} {digest}",
        title=thread.title,
        agent=next(filter(clean_name, roles), None),
        parent_source_id=first.parent,
        relation=first.relation,
        time_created=next(filter(integer, times), None),
        time_archived=thread.archived,
        alias=first.alias,
        complete=partial(complete, thread),
        **take(facts, fields.HEADER),
    )


def complete(thread: Thread) -> SourceSession:
    """Return a session with everything that its rollouts say of it."""
    first = thread.logs[0]
    scans = [Scan(piece.log.path) for piece in thread.pieces]
    # The last rollout that says it counts.
    own = scans[: -len(thread.logs) - 1 : -1]
    titles = [thread.title, *(scan.title for scan in own)]
    rollout = unpacked_name(first.path).name

    session = replace(
        beginning(thread),
        title=next(filter(None, titles), ""),
        time_updated=next((scan.last for scan in own if scan.last), None),
        call_id=_call_of(thread),
        data=filled({"rollout": rollout, "header": first.header}),
        messages=Messages(thread, scans),
    )
    if home_of(first.path) is not None:
        return session
    # Elsewhere it may have another name, and not what it continues.
    count = sum(isinstance(item, SourceMessage) for item in session.messages)
    return replace(session, is_excerpt=True, message_count=count)


def _call_of(thread: Thread) -> str | None:
    """Return the call of its parent that a subagent was started by."""
    first = thread.logs[0]
    # Forks have a parent, too, but no call of it.
    agent_of = first.parent if first.relation == "subagent" else None
    above, _ = thread.rollouts.of_thread(agent_of)

    named = (records_naming(log.path, thread.id) for log in above)
    payloads = (as_object(record.get("payload")) for found in named for record in found)
    calls = (started_by(payload, thread.id) for payload in payloads)
    return next(filter(None, calls), None)


class Scan:
    """The prompts and the title that events of a rollout name, its end and last time.

    ``end`` is the number of its last line.
    """

    def __init__(self, path: Path) -> None:
        self.prompts: set[int] = set()
        self.title = ""
        self.end = 0
        last = b""
        with opened(path) as lines:
            for line, raw in lines:
                self.end, last = line.number, raw
                # Three searches cost less than decoding, which most lines need not.
                if _PROMPT in raw or _ITEM in raw or _TITLE in raw:
                    self._note(as_object(_object_in(raw).get("payload")))

        self.last = time_of_text(_object_in(last).get("timestamp"))

    def _note(self, event: Record) -> None:
        kind = event.get("type")
        if kind == "user_message":
            # In 2025 some of what Codex added had such an event, too.
            is_typed = event.get("kind") in (None, "plain")
            self._typed(event.get("message") if is_typed else None)
        elif kind == "thread_name_updated":
            self.title = fitting(event.get("thread_name"), text, self.title)
        elif within(event, "item", "type") == "UserMessage":
            blocks = as_list(within(event, "item", "content"))
            self._typed(*(within(block, "text") for block in blocks))

    def _typed(self, *texts: Any) -> None:
        # Hashes, because a session may have many prompts, and long ones.
        self.prompts.update(map(hash, filter(text, texts)))


def _object_in(raw: bytes) -> Record:
    """Return the object on a line; an empty one if there is none."""
    return next(objects_of([raw]), {})


# -- messages ----------------------------------------------------------------------


class Messages:
    """The messages of a session and their problems; read again each time."""

    def __init__(self, thread: Thread, scans: list[Scan]) -> None:
        self._thread = thread
        self._pieces = list(zip(thread.pieces, scans, strict=True))

    def __iter__(self) -> Iterator[SourceMessage | Problem]:
        """Read the lines that were there; memory holds one record, and the ids."""
        thread = self._thread
        first = thread.logs[0]
        if thread.missing is not None:
            why = f"its beginning is in {thread.missing}, which is missing"
            yield Problem(str(first.path), why)

        provider = fitting(first.facts.get("model_provider"), clean_name)
        course = Course(thread.rollouts.root(first), provider, len(thread.logs) > 1)
        for piece, scan in self._pieces:
            yield from self._piece(piece, scan, course)

    def _piece(
        self, piece: Piece, scan: Scan, course: Course
    ) -> Iterator[SourceMessage | Problem]:
        log = piece.log
        is_own = piece.cut is None
        is_further = is_own and log is not self._thread.logs[0]
        # The session has the header, but for that of a further rollout.
        is_header_kept = bool(log.header) and not is_further
        marks = {} if is_own else {"copied_from": log.rollout}

        course.begin(log.rollout, scan.prompts)
        if is_further:
            course.above = self._above(log, course)
            marks["segment"] = unpacked_name(log.path).name

        with opened(log.path) as lines:
            for line, record, place in _records(lines, piece, scan.end):
                if is_header_kept and is_header(record):
                    is_header_kept = False
                    continue

                record.update(marks)
                found = _message(lines, line, record, place, course)
                # The name of a further rollout is that of all messages after it.
                if is_further and isinstance(found, SourceMessage):
                    marks.clear()
                yield found

            if is_own:
                yield from lines.problems

    def _above(self, log: Log, course: Course) -> Any:
        """Return the message that a further rollout continues; ``...`` is the last."""
        before, missing = self._thread.rollouts.before(log)
        if not (before or missing):
            return ...

        ends = (course.last_of(of.log.rollout, of.cut or 0) for of in reversed(before))
        return next(filter(None, ends), None)


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


def _message(
    lines: Lines, line: Line, record: Record, place: int, course: Course
) -> SourceMessage | Problem:
    item = item_of(record)
    own = None if item is None else item.get("id")
    when = time_of_text(record.get("timestamp"))
    name = course.name_of(own, when)
    ours = fitting(record[MARK], usable_id) if MARK in record else None
    copied = course.copied(record, item, own)

    try:
        known = {"id": name, "time_created": when}
        draft = message_draft(record, item, known, course)
    except OddRecordError as error:
        return lines.problem(f"record {abridged(name)} {error}", line)

    above = course.follow(name, place)
    if draft.kind == "usage":
        copied = course.usage_id(record)
    return SourceMessage(draft, above, copied, alias=ours, timeless=copied is not None)
