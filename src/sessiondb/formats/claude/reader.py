"""The sessions of Claude Code, read from their transcripts one message at a time.

A session is yielded after a look at the head of its transcript. Title, leaf and the
lines of an answer that lie apart are known only after all lines, so that `complete`
reads them once, and the messages once more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache, partial
from itertools import chain
from pathlib import Path
from typing import Any

from sessiondb.formats.claude import fields
from sessiondb.formats.claude.agents import KEY, Calls, Chains, chains_in, sidecar_of
from sessiondb.formats.claude.drafts import NumberedRecord, message_draft
from sessiondb.formats.claude.files import with_files
from sessiondb.formats.claude.forks import Copies, recognise
from sessiondb.formats.claude.history import history_in
from sessiondb.formats.claude.index import ClaudeIndex
from sessiondb.formats.claude.logs import (
    Log,
    logs_of_home,
    logs_of_project,
    look_at,
)
from sessiondb.formats.claude.tree import FurtherLine, MessagePlace
from sessiondb.formats.kit.fields import check_storable, filled, take
from sessiondb.formats.kit.files import may_read
from sessiondb.formats.kit.json import OddRecordError, load_object, usable_id
from sessiondb.formats.kit.lines import Lines, opened
from sessiondb.formats.kit.links import MADE
from sessiondb.formats.kit.logs import add_logs, keep_longer, log_digest, read_in_order
from sessiondb.formats.kit.texts import time_of_text
from sessiondb.model import (
    MessageDraft,
    Problem,
    SourceItem,
    SourceMessage,
    SourceSession,
)

Record = dict[str, Any]
Found = Iterator[SourceSession | Problem]
#: The sessions in a transcript by their chains, see `Log`.
Indexes = Mapping[str | None, ClaudeIndex]


def read_log(path: Path) -> Found:
    """Yield the session of a transcript, and those of subagents in it."""
    yield from _read(iter([path]))


def read_project(folder: Path) -> Found:
    """Yield the sessions of a project, parents first."""
    yield from _read(logs_of_project(folder))


def read_home(home: Path) -> Iterator[SourceItem]:
    """Yield the sessions of a home, parents first, and its prompt history."""
    yield from _read(logs_of_home(home))
    yield from history_in(home)


def _read(paths: Iterator[Path | Problem]) -> Found:
    logs: dict[str, Log] = {}
    unknown = "no line at its beginning is one of Claude Code"
    yield from add_logs(paths, look_at, logs, without_session=unknown)
    for log in list(logs.values()):
        yield from _add_agents(log, logs)

    about = dict(chain.from_iterable(log.about for log in logs.values()))
    # The program itself lists no session for a transcript without a conversation.
    logs = {name: log for name, log in logs.items() if not log.notes_alone}
    for name, original in recognise(logs.values()).items():
        logs[name] = logs[name]._replace(parent=original, relation="fork")

    store = _Store(logs, about)
    yield from read_in_order(logs, lambda log: [store.beginning(log)])


def _add_agents(log: Log, logs: dict[str, Log]) -> Iterator[Problem]:
    """Add the subagents in a transcript, and find the one that started this one.

    A sidecar that cannot be read is a problem.
    """
    sidecar: Record = {}
    try:
        sidecar = sidecar_of(log)
    except OddRecordError as error:
        yield Problem(str(log.sidecar), f"the sidecar {error}")

    above = f"{log.parent}/agent-{sidecar.get('parentAgentId')}"
    if above in logs.keys() - {log.session}:
        logs[log.session] = log._replace(parent=above)
    for found in chains_in(log):
        yield from keep_longer(found, logs)


# -- sessions ------------------------------------------------------------------


class _Store:
    """The sessions in some transcripts, by *logs*.

    *about* are the titles that any of them has for what ends with a line. A transcript
    that has several sessions is read once for all of them.
    """

    def __init__(self, logs: Mapping[str, Log], about: Mapping[str, str]) -> None:
        self._logs = logs
        self._about = about
        self._indexes = lru_cache(maxsize=1)(_indexes_of)
        self._calls = lru_cache(maxsize=1)(Calls)

    def beginning(self, log: Log) -> SourceSession:
        """Return a session as the head of its transcript describes it."""
        first = dict(log.first)
        # Which one is the original follows from other transcripts as well.
        digest = f"{log_digest(log.path)} {log.relation} {log.parent}"
        if log.relation == "subagent":
            # One that may be read again has the same size and time.
            digest += f" {log_digest(log.sidecar)} {may_read(log.sidecar)}"

        session = SourceSession(
            "claude",
            log.session,
            str(log.path),
            digest,
            parent_source_id=log.parent,
            relation=log.relation if log.parent else None,
            time_created=log.began or time_of_text(first.get("timestamp")),
            **take(first, fields.HEAD),
        )
        return replace(session, complete=partial(self._complete, session, log))

    def _complete(self, session: SourceSession, log: Log) -> SourceSession:
        """Return a session with everything that its transcript says of it."""
        is_shared = log.chain is not None
        read = self._indexes if is_shared else _indexes_of
        indexes, problems = read(log.path, is_shared)
        index = indexes[log.chain]

        copies = Copies(log, self._logs if log.relation == "fork" else {})
        describe = _RELATED.get(log.relation)
        known = describe(self, log, index, copies) if describe else {}
        described = known.pop("title", "")

        return replace(
            session,
            title=index.title(self._about) or described,
            version=index.version or session.version,
            directory=session.directory or index.directory,
            leaf=index.tree.end_of(index.leaf.uuid),
            time_updated=index.time_updated,
            metadata=filled({"tag": index.tag}),
            messages=Messages(log, index.tree.places, copies, problems),
            **known,
        )

    def as_agent(self, log: Log, index: ClaudeIndex, _: Copies) -> Record:
        """Return the properties of a subagent by its sidecar, else by its call."""
        sidecar: Record = {}
        with suppress(OddRecordError):
            sidecar = sidecar_of(log)

        known = filled(take(dict(sidecar), fields.SIDECAR))
        places = index.runs if log.chain else None
        known["data"] = filled({"meta": sidecar, KEY: places})

        parent = log.above(self._logs)
        if "call_id" not in known and parent is not None:
            calls = self._calls(parent.path)
            known["call_id"] = calls.of(log.agent, index.prompt)
        if not sidecar and parent is None:
            # It is not where Claude Code keeps it, which says more about it.
            count = len(index.tree.places)
            known |= {"is_excerpt": True, "message_count": count}
        return known

    def as_fork(self, _: Log, index: ClaudeIndex, copies: Copies) -> Record:
        """Return the last message of a fork that its original has, too."""
        names = (place.name for place in reversed(index.tree.places))
        return {"parent_message": index.copied_uuid or copies.cut(names)}


_Describe = Callable[[_Store, Log, ClaudeIndex, Copies], Record]
_RELATED: Mapping[str | None, _Describe] = {
    "subagent": _Store.as_agent,
    "fork": _Store.as_fork,
}


def _indexes_of(path: Path, is_shared: bool) -> tuple[Indexes, list[Problem]]:
    """Return the sessions in a transcript by their chains, and its problems."""
    chains = Chains()
    indexes: defaultdict[str | None, ClaudeIndex] = defaultdict(ClaudeIndex)
    with opened(path) as lines:
        for number, (line, _, record) in enumerate(lines.records(_decoded)):
            chain = chains.of(record) if is_shared else None
            indexes[chain].add(number, line, record)

    return indexes, lines.problems


# -- messages ------------------------------------------------------------------


class Messages:
    """The messages of a transcript and its *problems*; their lines are read each time.

    Memory holds one message, and the *places* of all.
    """

    def __init__(
        self,
        log: Log,
        places: list[MessagePlace],
        copies: Copies,
        problems: list[Problem],
    ) -> None:
        self._log = log
        self._places = places
        self._copies = copies
        self._problems = problems

    def __iter__(self) -> Iterator[SourceMessage | Problem]:
        """Read the lines that the transcript had."""
        with opened(self._log.path) as lines:
            for place in self._places:
                yield from self._read(place, lines)
        yield from self._problems

    def _read(
        self, place: MessagePlace, lines: Lines
    ) -> Iterator[SourceMessage | Problem]:
        """Yield a message of the lines that can be stored, and problems of others."""
        found: list[NumberedRecord] = []
        for after, line in (FurtherLine(0, place.line), *place.further):
            try:
                record = _decoded(lines.at(line))
                check_storable(record)
            # Also if the program has written its transcript again.
            except (ValueError, RecursionError) as error:
                yield lines.skipped(error, line)
            else:
                found.append(NumberedRecord(after, record))

        if found:
            yield self._message(place, found)

    def _message(
        self, place: MessagePlace, lines: list[NumberedRecord]
    ) -> SourceMessage:
        times = self._copies.times(line.record for line in lines)
        record = lines[0].record
        usage = place.usage
        # Of a line that is repeated, only the first one has its uuid here.
        if usage is None and not place.name.startswith(MADE):
            usage = self._copies.source(record)

        # A result that only its call had, before it was written for the program.
        is_ours = record.get("entrypoint") == fields.WRITER
        draft = _as_said(message_draft(lines, place), times)
        return SourceMessage(
            with_files(draft, self._log.path),
            place.parent,
            usage,
            alias=place.result_of if is_ours else None,
            timeless=usage is not None,
        )


def _as_said(draft: MessageDraft, times: list[int]) -> MessageDraft:
    """Return a copied message with the *times* at which its lines were said."""
    if not times or draft.time_created == times[0]:
        return draft

    first, last = times[0], draft.time_completed and max(times)
    parts = tuple(replace(part, time_created=first) for part in draft.parts)
    return replace(draft, time_created=first, time_completed=last, parts=parts)


def _decoded(raw: bytes) -> Record:
    record = load_object(raw)
    if not usable_id(record.get("type")):
        raise OddRecordError("has no type")
    return record
