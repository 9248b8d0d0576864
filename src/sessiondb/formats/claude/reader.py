"""The sessions of Claude Code, read from their transcripts one message at a time.

A session is yielded after a look at the head of its transcript. Title, leaf and the
lines of an answer that lie apart are known only after all lines, so that `complete`
reads them once, and the messages once more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

from sessiondb.errors import SourceError
from sessiondb.formats.claude import fields
from sessiondb.formats.claude.agents import (
    PLACES_KEY,
    SubagentCalls,
    SubagentChains,
    chains_in,
    read_sidecar,
)
from sessiondb.formats.claude.costs import (
    NO_COSTS,
    ClaudeCosts,
    answer_of,
    read_notes,
)
from sessiondb.formats.claude.drafts import NumberedRecord, message_draft
from sessiondb.formats.claude.files import with_files
from sessiondb.formats.claude.forks import CopiedLines, ancestors_of, find_originals
from sessiondb.formats.claude.history import history_in
from sessiondb.formats.claude.index import ClaudeIndex
from sessiondb.formats.claude.logs import (
    ClaudeLog,
    last_cost_in,
    load_line,
    logs_of_home,
    logs_of_project,
    read_head,
    titles_in,
)
from sessiondb.formats.claude.tree import FurtherLine, MessagePlace
from sessiondb.formats.kit.fields import check_storable, take_fields, without_empty
from sessiondb.formats.kit.files import ancestor_named, may_read
from sessiondb.formats.kit.json import OddRecordError
from sessiondb.formats.kit.lines import Lines, opened
from sessiondb.formats.kit.links import MADE
from sessiondb.formats.kit.logs import add_logs, keep_longer, log_digest, read_in_order
from sessiondb.formats.kit.remembered import known_fact
from sessiondb.model import (
    MessageDraft,
    Problem,
    SourceItem,
    SourceMessage,
    SourceSession,
)

Record = dict[str, Any]
Sessions = Iterator[SourceSession | Problem]
#: The sessions in a transcript by their chains, see `ClaudeLog`.
Indexes = Mapping[str | None, ClaudeIndex]


def read_log(path: Path) -> Sessions:
    """Yield the session of a transcript, and those of subagents in it."""
    yield from _read_sessions(iter([path]))


def read_project(folder: Path) -> Sessions:
    """Yield the sessions of a project, parents first."""
    yield from _read_sessions(logs_of_project(folder))


def read_home(home: Path) -> Iterator[SourceItem]:
    """Yield the sessions of a home, parents first, and its prompt history."""
    yield from _read_sessions(logs_of_home(home))
    yield from history_in(home)


def _read_sessions(paths: Iterator[Path | Problem]) -> Sessions:
    logs: dict[str, ClaudeLog] = {}
    unknown = "no line at its beginning is one of Claude Code"
    yield from add_logs(paths, read_head, logs, without_session=unknown)
    for log in list(logs.values()):
        yield from _add_subagents(log, logs)

    titled = [log.path for log in logs.values() if log.has_titles]
    # The program itself lists no session for a transcript without a conversation.
    logs = {name: log for name, log in logs.items() if not log.has_only_notes}
    for name, original in find_originals(logs.values()).items():
        logs[name] = logs[name]._replace(parent=original, relation="fork")

    store = _ClaudeStore(logs, titled)
    yield from read_in_order(logs, lambda log: [store.session_of(log)])


def _add_subagents(log: ClaudeLog, logs: dict[str, ClaudeLog]) -> Iterator[Problem]:
    """Add the subagents in a transcript, and find the one that started this one.

    A sidecar that cannot be read is a problem.
    """
    sidecar: Record = {}
    try:
        sidecar = read_sidecar(log)
    except OddRecordError as error:
        yield Problem(str(log.sidecar), f"the sidecar {error}")

    starter = f"{log.parent}/agent-{sidecar.get('parentAgentId')}"
    if starter in logs and starter != log.session:
        logs[log.session] = log._replace(parent=starter)
    # One that can no longer be read is a problem when its session is.
    with suppress(SourceError):
        for chain in chains_in(log):
            yield from keep_longer(chain, logs)


# -- sessions ------------------------------------------------------------------


class _ClaudeStore:
    """The sessions in some transcripts, by *logs*.

    *titled* are the transcripts with titles of others. One that has several sessions is
    read once for all of them.
    """

    def __init__(self, logs: Mapping[str, ClaudeLog], titled: list[Path]) -> None:
        self._logs = logs
        self._titled = titled
        self._indexes_of_chains = lru_cache(maxsize=1)(_read_indexes)
        self._calls_in = lru_cache(maxsize=1)(SubagentCalls)
        #: The session whose originals were read last, and their lines.
        self._last_copies = ("", CopiedLines())
        #: By session: those of an original and of a parent are needed again.
        self._costs: dict[str, ClaudeCosts] = {}
        self._last_costs: dict[Path, int | None] = {}

    def session_of(self, log: ClaudeLog) -> SourceSession:
        """Return a session as the head of its transcript describes it."""
        # Which one is the original follows from other transcripts as well.
        digest = f"{log_digest(log.path)} {log.relation} {log.parent}"
        if log.relation == "subagent":
            # One that may be read again has the same size and time.
            digest += f" {log_digest(log.sidecar)} {may_read(log.sidecar)}"
        # The cost of an answer may be stated later, in another transcript.
        if log.parent is not None:
            digest += f" {self._last_costs_of(log)}"

        return SourceSession(
            "claude",
            log.session,
            str(log.path),
            digest,
            parent_source_id=log.parent,
            relation=log.relation if log.parent else None,
            time_created=log.time_created,
            directory=log.directory,
            version=log.version or None,
            complete=partial(self._complete, log),
        )

    @cached_property
    def _titles(self) -> dict[str, str]:
        """The titles that any transcript has for what ends with a line."""
        titles: dict[str, str] = {}
        for path in self._titled:
            with suppress(SourceError):
                titles |= titles_in(path)
        return titles

    def _complete(self, log: ClaudeLog) -> SourceSession:
        """Return a session with everything that its transcript says of it."""
        session = self.session_of(log)
        if log.chain is None:
            indexes, problems = _read_indexes(log.path, has_chains=False)
        else:
            indexes, problems = self._indexes_of_chains(log.path, has_chains=True)
        index = indexes[log.chain]

        columns: Record = {}
        copies = self._copies_of(log)
        if log.relation == "subagent":
            columns = self._describe_subagent(log, index)
        elif log.relation == "fork":
            # The last message that its original has, too.
            names = (place.name for place in reversed(index.tree.places))
            copied = index.copied_uuid or copies.first_copied(names)
            columns = {"parent_message": copied}
        title = columns.pop("title", "")

        return replace(
            session,
            title=index.title(self._titles) or title,
            version=index.version or session.version,
            directory=session.directory or index.directory,
            leaf=index.tree.end_of(index.leaf.uuid),
            time_updated=index.time_updated,
            metadata=without_empty({"tag": index.tag}),
            messages=ClaudeMessages(
                log, index.tree.places, copies, self._costs_of(log), problems
            ),
            **columns,
        )

    def _copies_of(self, log: ClaudeLog) -> CopiedLines:
        if log.relation != "fork" or log.session not in self._logs:
            return CopiedLines()

        known, copies = self._last_copies
        if known == log.session:
            return copies
        # Parents come first: of a chain of forks only the last original is read again.
        originals: list[ClaudeLog] = []
        for original in ancestors_of(self._logs[log.session], self._logs):
            originals.append(original)
            if original.session == known:
                break
        else:
            copies = CopiedLines()
        for original in reversed(originals):
            copies = copies.with_original(original)
        self._last_copies = log.session, copies
        return copies

    # -- costs -----------------------------------------------------------------------

    def _last_costs_of(self, log: ClaudeLog) -> list[int | None]:
        """Return where the last costs are that those of a subagent or fork follow."""
        return [self._last_cost_in(other) for other in self._counting_logs(log)]

    def _last_cost_in(self, log: ClaudeLog) -> int | None:
        if log.path not in self._last_costs:
            self._last_costs[log.path] = None
            with suppress(SourceError):
                last_cost = known_fact(log.path, "claude cost", last_cost_in)
                self._last_costs[log.path] = last_cost
        return self._last_costs[log.path]

    def _counting_logs(self, log: ClaudeLog) -> list[ClaudeLog]:
        """Return the log that states what the answers of a log cost, and its originals.

        The process of a session counts its subagents, too.
        """
        counting: ClaudeLog | None = log
        if log.relation == "subagent":
            counting = self._session_of_subagent(log)
        logs: dict[str, ClaudeLog] = {}
        while counting is not None and counting.session not in logs:
            logs[counting.session] = counting
            counting = counting.parent_log(self._logs)
        return list(logs.values())

    def _session_of_subagent(self, log: ClaudeLog) -> ClaudeLog | None:
        """Return the log of the session that a subagent is of, also beside *log*."""
        name = log.session.partition("/")[0]
        if name in self._logs:
            return self._logs[name]
        folder = ancestor_named(log.path, "subagents")
        if folder is None:
            return None
        with suppress(SourceError):
            return read_head(folder.parent.with_name(f"{folder.parent.name}.jsonl"))
        return None

    def _costs_of(self, log: ClaudeLog) -> ClaudeCosts:
        """Return what the answers in a log cost, as its program states it."""
        costs = None
        for counting in reversed(self._counting_logs(log)):
            if counting.session not in self._costs:
                self._costs[counting.session] = self._read_costs(counting, costs)
            costs = self._costs[counting.session]
        return NO_COSTS if costs is None else costs

    def _read_costs(self, log: ClaudeLog, inherited: ClaudeCosts | None) -> ClaudeCosts:
        if self._last_cost_in(log) is None and (
            inherited is None or not inherited.states
        ):
            return NO_COSTS
        return ClaudeCosts(read_notes(log.path, self._copies_of(log).has), inherited)

    def _describe_subagent(self, log: ClaudeLog, index: ClaudeIndex) -> Record:
        """Return the properties of a subagent by its sidecar, else by its call."""
        sidecar: Record = {}
        with suppress(OddRecordError):
            sidecar = read_sidecar(log)

        columns = without_empty(take_fields(dict(sidecar), fields.SIDECAR))
        places = index.runs if log.chain else None
        columns["data"] = without_empty({"meta": sidecar, PLACES_KEY: places})

        parent = log.parent_log(self._logs)
        if "call_id" not in columns and parent is not None:
            calls = self._calls_in(parent.path)
            columns["call_id"] = calls.find_call(log.agent, index.prompt)
        if not sidecar and parent is None:
            # It is not where Claude Code keeps it, which says more about it.
            count = len(index.tree.places)
            columns |= {"is_excerpt": True, "message_count": count}
        return columns


def _read_indexes(path: Path, has_chains: bool) -> tuple[Indexes, list[Problem]]:
    """Return the sessions in a transcript by their chains, and its problems."""
    chains = SubagentChains()
    indexes: defaultdict[str | None, ClaudeIndex] = defaultdict(ClaudeIndex)
    with opened(path) as lines:
        for number, (line, _, record) in enumerate(lines.records(load_line)):
            chain = chains.chain_of(record) if has_chains else None
            indexes[chain].add(number, line, record)

    return indexes, lines.problems


# -- messages ------------------------------------------------------------------


class ClaudeMessages:
    """The messages of a transcript and its *problems*; their lines are read each time.

    Memory holds one message, and the *places* of all.
    """

    def __init__(
        self,
        log: ClaudeLog,
        places: list[MessagePlace],
        copies: CopiedLines,
        costs: ClaudeCosts,
        problems: list[Problem],
    ) -> None:
        self._log = log
        self._places = places
        self._copies = copies
        self._costs = costs
        self._problems = problems

    def __iter__(self) -> Iterator[SourceMessage | Problem]:
        """Read the lines that the transcript had."""
        with opened(self._log.path) as lines:
            for place in self._places:
                yield from self._read_message(place, lines)
        yield from self._problems

    def _read_message(
        self, place: MessagePlace, lines: Lines
    ) -> Iterator[SourceMessage | Problem]:
        """Yield a message of the lines that can be stored, and problems of others."""
        records: list[NumberedRecord] = []
        for distance, line in (FurtherLine(0, place.line), *place.further):
            try:
                record = load_line(lines.read_line(line))
                check_storable(record)
            # Also if the program has written its transcript again.
            except (ValueError, RecursionError) as error:
                yield lines.skipped_line(error, line)
            else:
                records.append(NumberedRecord(distance, record))

        if records:
            yield self._message_of(place, records)

    def _message_of(
        self, place: MessagePlace, lines: list[NumberedRecord]
    ) -> SourceMessage:
        times = self._copies.times_of(line.record for line in lines)
        record = lines[0].record
        usage = place.usage
        # Of a line that is repeated, only the first one has its uuid here.
        if usage is None and not place.name.startswith(MADE):
            usage = self._copies.source_of(record)

        # A result that only its call had, before sessiondb wrote it for the program.
        is_written_here = record.get("entrypoint") == fields.WRITER
        usd = None
        # Most transcripts state no cost.
        if self._costs is not NO_COSTS:
            usd = self._costs.cost_of(answer_of(line.record for line in lines))
        draft = _with_times(message_draft(lines, place), times)
        if usd is not None:
            draft = replace(draft, cost=usd)
        elif draft.kind == "usage":
            draft = self._with_total(draft, place)
        return SourceMessage(
            with_files(draft, self._log.path),
            place.parent,
            usage,
            alias=place.result_of if is_written_here else None,
            timeless=usage is not None,
        )

    def _with_total(self, draft: MessageDraft, place: MessagePlace) -> MessageDraft:
        """Return the event of a state with its time and the total of the session."""
        total = self._costs.totals.get(place.line.offset)
        if total is None:
            return draft
        data = {**draft.data, **total.facts()}
        return replace(draft, time_created=total.time, model_id=total.model, data=data)


def _with_times(draft: MessageDraft, times: list[int]) -> MessageDraft:
    """Return a copied message with the *times* at which its lines were said."""
    if not times or draft.time_created == times[0]:
        return draft

    first, last = times[0], draft.time_completed and max(times)
    parts = tuple(replace(part, time_created=first) for part in draft.parts)
    return replace(draft, time_created=first, time_completed=last, parts=parts)
