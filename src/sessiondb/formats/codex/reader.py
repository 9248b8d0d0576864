"""The sessions of Codex, read from their rollouts one record at a time.

A session is yielded after a look at the heads of its rollouts. When it changed, they
are read twice: for the prompts that events name, and for the messages.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from math import inf
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from sessiondb.errors import SourceError, abridged
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
    look_at,
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
from sessiondb.formats.kit.json import OddRecordError, decode, load_object, usable_id
from sessiondb.formats.kit.lines import Line, Lines, opened
from sessiondb.formats.kit.logs import log_digest, logs_below, unpacked_name
from sessiondb.formats.kit.naming import MARK
from sessiondb.formats.kit.order import in_order
from sessiondb.formats.kit.texts import time_of_text
from sessiondb.model import Problem, SourceItem, SourceMessage, SourceSession

Record = dict[str, Any]
#: The types of events that name a prompt or a title, as a line has them.
_NAMING = (b'"user_message"', b'"UserMessage"', b'"thread_name_updated"')


class Thread(NamedTuple):
    """A session: what it continues, its own rollouts, and where its forks began.

    ``above`` has the rollouts of the session that it is a subagent of.
    """

    id: str
    before: tuple[Piece, ...]
    logs: tuple[Log, ...]
    above: tuple[Log, ...]
    root: str
    missing: str | None
    title: str
    archived: int | None

    @property
    def head(self) -> Log:
        """The rollout that is continued."""
        return self.logs[-1]


def read_rollout(path: Path) -> Iterator[SourceSession | Problem]:
    """Yield the session that a rollout is part of."""
    home = home_of(path)
    beside = _near(path) if home is None else rollouts_of(home)
    rollouts = Rollouts(item for item in beside if isinstance(item, Path))
    log = look_at(path)
    if log is None:
        return

    rollouts.add(path, (log.thread, log.rollout))
    names = names_in(home)
    yield from names.problems
    yield from _session(log.thread, rollouts, names)


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
    rollouts = Rollouts(())
    threads: dict[str, Log] = {}

    for item in rollouts_of(home):
        log = item if isinstance(item, Problem) else rollouts.find(item)
        if isinstance(log, Problem):
            yield log
        elif home == folder or folder in log.path.parents:
            threads.setdefault(log.thread, log)

    names = names_in(home)
    yield from names.problems

    yield from in_order(
        threads,
        lambda name: threads[name].parent,
        lambda name, cut: _session(name, rollouts, names, is_cut=cut),
        lambda name: threads[name].path,
    )

    if home == folder:
        yield from history_in(home)


def _session(
    name: str, rollouts: Rollouts, names: Names, *, is_cut: bool = False
) -> Iterator[SourceSession | Problem]:
    logs, problems = rollouts.of_thread(name)
    yield from problems
    if not logs:
        return

    first = logs[0]
    if is_cut:
        logs[0] = first = first._replace(parent=None, relation=None)

    before, missing = rollouts.before(first)
    if first.base == name:
        # The rollout that was reverted is gone; another session cannot be meant.
        missing = name

    # Forks have a parent, too, but no call of it.
    agent_of = first.parent if first.relation == "subagent" else None
    above, _ = rollouts.of_thread(agent_of)
    thread = Thread(
        name,
        tuple(before),
        tuple(logs),
        tuple(above),
        _root_of(first, rollouts),
        missing,
        names.titles.get(name, ""),
        _archived(logs[-1], names),
    )
    yield beginning(thread)


def _archived(head: Log, names: Names) -> int | None:
    """Return when a session was archived: its rollout was moved, and not changed."""
    if not head.is_archived:
        return None

    _, changed = stamp(head.path) or (0, 0)
    return names.archived.get(head.thread, changed // 1_000_000)


def _root_of(log: Log, rollouts: Rollouts) -> str:
    """Return the session that a chain of forks began with."""
    seen = {log.thread}
    name, origin = log.thread, log.origin

    while origin is not None and origin not in seen:
        name = origin
        seen.add(name)
        logs, _ = rollouts.of_thread(name)
        origin = next(map(attrgetter("origin"), logs), None)

    return name


def beginning(thread: Thread) -> SourceSession:
    """Return what the heads of its rollouts say of a session."""
    first = thread.logs[0]
    logs = (*(piece.log for piece in thread.before), *thread.logs)
    said = repr((thread.title, thread.archived, thread.missing, first.parent))
    digest = blake2b(said.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()

    facts = json.loads(json.dumps(first.facts))
    times = map(time_of_text, (facts.get("timestamp"), first.written))
    roles = map(facts.get, ("agent_role", "agent_nickname"))
    return SourceSession(
        "codex",
        thread.id,
        str(thread.head.path),
        f"{log_digest(*(log.path for log in logs))} {digest}",
        title=thread.title,
        agent=next(filter(clean_name, roles), None),
        parent_source_id=first.parent,
        relation=first.relation,
        time_created=next(filter(integer, times), None),
        time_archived=thread.archived,
        complete=partial(complete, thread),
        **take(facts, fields.HEADER),
    )


def complete(thread: Thread) -> SourceSession:
    """Return a session with everything that its rollouts say of it."""
    found = Scanned()
    for log in thread.logs:
        with opened(log.path) as lines:
            found.add(lines)

    session = beginning(thread)
    first = thread.logs[0]
    data = filled({"rollout": unpacked_name(first.path).name, "header": first.header})
    return replace(
        session,
        title=session.title or found.title,
        time_updated=found.last,
        call_id=_call_of(thread),
        data=data,
        messages=Messages(thread),
    )


def _call_of(thread: Thread) -> str | None:
    """Return the call of its parent that a subagent was started by."""
    name = thread.id.encode()
    for log in thread.above:
        with suppress(SourceError), opened(log.path) as lines:
            for _, raw in lines:
                if name not in raw:
                    continue

                payload = as_object(within(_decoded(raw), "payload"))
                call = started_by(payload, thread.id)
                if call is not None:
                    return call

    return None


class Scanned:
    """The prompts and the title that events of a rollout name, and its last time."""

    def __init__(self) -> None:
        self.prompts: set[int] = set()
        self.title = ""
        self.last: int | None = None

    def add(self, lines: Lines) -> None:
        """Look at each line, and decode those of events alone."""
        last = b""
        for _, raw in lines:
            last = raw
            # Three searches cost less than decoding, which most lines need not.
            if any(name in raw for name in _NAMING):
                self._record(_decoded(raw))

        self.last = time_of_text(within(_decoded(last), "timestamp")) or self.last

    def _record(self, record: Any) -> None:
        event = as_object(within(record, "payload"))
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


def _decoded(raw: bytes) -> Any:
    try:
        return decode(raw.decode())
    except (ValueError, RecursionError):
        return None


class Messages:
    """The messages of a session and their problems; read again each time."""

    def __init__(self, thread: Thread) -> None:
        self._thread = thread

    def __iter__(self) -> Iterator[SourceMessage | Problem]:
        """Read the rollouts; memory holds one record, and the ids of all."""
        thread = self._thread
        if thread.missing is not None:
            path = str(thread.logs[0].path)
            yield Problem(
                path, f"its beginning is in {thread.missing}, which is missing"
            )

        yield from _Reading(thread).messages()


def _prompts_in(lines: Lines) -> set[int] | None:
    """Return the prompts that the events of a rollout name; None if none does."""
    found = Scanned()
    found.add(lines)
    lines.problems.clear()

    return found.prompts or None


def _records(lines: Lines, piece: Piece) -> Iterator[tuple[Line, Record, int]]:
    """Yield the records of a piece, each with its ordinal or the last one before."""
    place = -1
    cut = inf if piece.cut is None else piece.cut
    for line, _, record in lines.records(load_object):
        place = fitting(record.get("ordinal"), integer, place)
        if place >= cut:
            return
        yield line, record, place


class _Reading:
    """One pass over the rollouts of a session."""

    def __init__(self, thread: Thread) -> None:
        self._thread = thread
        provider = thread.logs[0].facts.get("model_provider")
        self._course = Course(thread.root, fitting(provider, clean_name))
        self._ids: set[str] = set()
        self._last: str | None = None
        self._number = 1
        #: The last message below each ordinal at which a rollout is continued.
        self._cuts: dict[tuple[Any, Any], str | None] = {
            (log.base, log.cut): None for log in thread.logs[1:] if log.is_continuing
        }

    def messages(self) -> Iterator[SourceMessage | Problem]:
        for piece in self._thread.before:
            yield from self._piece(piece, {"copied_from": piece.log.rollout})

        first, *further = self._thread.logs
        yield from self._piece(Piece(first), {})

        for log in further:
            # The header of a further rollout is a record like others.
            above = self._cuts.get((log.base, log.cut), ...)
            yield from self._piece(Piece(log), {}, log.header, above)

    def _piece(
        self,
        piece: Piece,
        marks: Record,
        header: Record | None = None,
        above: Any = ...,
    ) -> Iterator[SourceMessage | Problem]:
        """Yield the messages of a piece, with *marks* in the data of each.

        With *header* that of its rollout is one; the first continues *above*.
        """
        log = piece.log
        self._number = 1

        with opened(log.path) as lines:
            self._course.prompts = _prompts_in(lines)
            skipped = bool(log.header) and header is None

            for line, record, place in _records(lines, piece):
                if skipped and is_header(record):
                    skipped = False
                    continue
                if record == header:
                    record["segment"] = unpacked_name(log.path).name

                found = self._message(lines, line, record | marks, log.rollout)
                if isinstance(found, SourceMessage):
                    parent = found.parent if above is ... else above
                    found, above = replace(found, parent=parent), ...
                    self._note(log.rollout, place)

                yield found

            if not marks:
                yield from lines.problems

    def _note(self, rollout: str, place: int) -> None:
        for base, cut in self._cuts:
            if base == rollout and place < cut:
                self._cuts[base, cut] = self._last

    def _message(
        self, lines: Lines, line: Line, record: Record, rollout: str
    ) -> SourceMessage | Problem:
        course = self._course
        name = self._name(record, rollout)
        ours = fitting(record.get(MARK), usable_id)
        parent = self._parent(record)
        course.pass_by(record)

        try:
            draft = message_draft(record, name, course)
        except OddRecordError as error:
            return lines.problem(f"record {abridged(name)} {error}", line)

        if draft.role == "user":
            course.turns.prompted(self._last)

        self._ids.add(name)
        self._number += 1
        self._last = name
        counted = course.usage_id(record) if draft.kind == "usage" else None
        return SourceMessage(draft, parent=parent, usage_id=counted, alias=ours)

    def _name(self, record: Record, rollout: str) -> str:
        """Return the id of a record: its own, else that of its place.

        Its place is its ordinal, or its number among the messages of its rollout: a
        line that cannot be read now may be mended later.
        """
        own = within(item_of(record), "id")
        names = [own] if usable_id(own) else []
        if integer(record.get("ordinal")):
            names.append(f"{rollout[:200]}.{record['ordinal']}")

        last = f"{rollout[:200]}-{self._number}"
        return next((name for name in names if name not in self._ids), last)

    def _parent(self, record: Record) -> Any:
        if record.get("type") != "event_msg":
            return ...

        kind = within(record, "payload", "type")
        turns = self._course.turns
        if kind in ("task_started", "turn_started"):
            turns.started(self._last)
        if kind != "thread_rolled_back":
            return ...

        return turns.rolled_back(within(record, "payload", "num_turns"))
