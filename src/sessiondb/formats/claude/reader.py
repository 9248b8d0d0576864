"""The sessions of Claude Code, read from their transcripts one message at a time.

A session is yielded after a look at the head of its transcript. Title, leaf and the
lines of an answer that lie apart are known only after all lines, so that `complete`
reads them once, and the messages once more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from sessiondb.errors import SourceError, abridged
from sessiondb.formats.claude import fields
from sessiondb.formats.claude.agents import call_of
from sessiondb.formats.claude.drafts import Further, message_draft
from sessiondb.formats.claude.files import with_files
from sessiondb.formats.claude.forks import recognise, uuids_of
from sessiondb.formats.claude.logs import (
    Chains,
    Log,
    chains_in,
    logs_of_home,
    logs_of_project,
    look_at,
    sidecar_of,
)
from sessiondb.formats.claude.tree import Leaf, Place, Tree
from sessiondb.formats.kit.fields import as_text, filled, take, time, within
from sessiondb.formats.kit.files import may_read
from sessiondb.formats.kit.json import OddRecordError, load_object, usable_id
from sessiondb.formats.kit.lines import Line, Lines, opened
from sessiondb.formats.kit.logs import keep_longer, log_digest, read_in_order
from sessiondb.formats.kit.texts import time_of_text
from sessiondb.model import Problem, SourceMessage, SourceSession

Record = dict[str, Any]
Found = Iterator[SourceSession | Problem]


def read_log(path: Path) -> Found:
    """Yield the session of a transcript, and those of sub-agents in it."""
    yield from _read(iter([path]))


def read_project(folder: Path) -> Found:
    """Yield the sessions of a project, parents first."""
    yield from _read(logs_of_project(folder))


def read_home(home: Path) -> Found:
    """Yield the sessions of a home, parents first."""
    yield from _read(logs_of_home(home))


def _read(paths: Iterator[Path | Problem]) -> Found:
    logs: dict[str, Log] = {}

    for item in paths:
        if isinstance(item, Problem):
            yield item
        else:
            yield from _look(item, logs)

    about = dict(chain.from_iterable(log.about for log in logs.values()))
    for name, original in recognise(logs.values()).items():
        logs[name] = logs[name]._replace(parent=original, relation="fork")

    yield from read_in_order(
        logs, lambda log: [_beginning(log, logs.get(log.parent or ""), about)]
    )


def _look(path: Path, logs: dict[str, Log]) -> Iterator[Problem]:
    """Add the sessions in a file to *logs*; of two of one name the longer counts."""
    try:
        log = look_at(path)
    except SourceError as error:
        yield Problem(str(path), str(error))
        return

    if log is None:
        yield Problem(str(path), "no line at its beginning is one of Claude Code")
        return

    try:
        sidecar_of(log)
    except OddRecordError as error:
        yield Problem(str(log.sidecar), f"the sidecar {error}")

    for found in (log, *chains_in(log)):
        yield from keep_longer(found, logs)


# -- sessions ------------------------------------------------------------------


def _beginning(log: Log, parent: Log | None, about: Mapping[str, str]) -> SourceSession:
    """Return a session as the head of its transcript describes it.

    *about* are the titles that any transcript has for what ends with a line.
    """
    first = dict(log.first)
    digest = log_digest(log.path)
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
        time_created=time_of_text(first.get("timestamp")) or log.stray,
        **take(first, fields.HEAD),
    )
    return replace(session, complete=partial(_complete, session, log, parent, about))


def _complete(
    session: SourceSession, log: Log, parent: Log | None, about: Mapping[str, str]
) -> SourceSession:
    """Return a session with everything that its transcript says of it."""
    index = Index()
    with opened(log.path) as lines:
        for line, record in _lines(lines, log):
            index.add(line, record)

    known: dict[str, Any] = {}
    if log.relation == "subagent":
        known = _as_agent(log, parent, index)
    elif log.relation == "fork":
        known["parent_message"] = index.copied or _last_common(index, parent)

    return replace(
        session,
        title=index.title or index.titled(about) or known.pop("title", ""),
        version=index.version or session.version,
        directory=session.directory or index.directory,
        leaf=index.tree.end_of(index.leaf.uuid),
        time_updated=index.last,
        metadata={"tag": index.tag} if index.tag else {},
        messages=Messages(log, index),
        **known,
    )


def _as_agent(log: Log, parent: Log | None, index: Index) -> dict[str, Any]:
    """Return what is known of a sub-agent: by its sidecar, else by its parent's log."""
    sidecar: Record = {}
    with suppress(OddRecordError):
        sidecar = sidecar_of(log)
    known = filled(take(dict(sidecar), fields.SIDECAR))
    known["data"] = filled({"meta": sidecar})
    if "call_id" not in known and parent is not None:
        known["call_id"] = call_of(parent.path, log.agent, index.prompt)

    return known


def _last_common(index: Index, parent: Log | None) -> str | None:
    """Return the last message of a fork that its original has, too."""
    if parent is None:
        return None
    theirs = uuids_of(parent)
    return next((name for name in reversed(index.names) if name in theirs), None)


@dataclass(slots=True)
class Index:
    """The properties of a session in the lines of its transcript; later ones win.

    ``further`` are the places of the other lines of each answer, by its first one,
    with the number of records in between; ``end`` is the last line that was looked at.
    ``summarised`` are the boundaries of compactions that a summary follows.
    """

    tree: Tree = field(default_factory=Tree)
    leaf: Leaf = field(default_factory=Leaf)
    further: dict[int, list[tuple[int, Line]]] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    titles: dict[str, str] = field(default_factory=dict)
    summarised: set[str] = field(default_factory=set)
    end: int = 0
    version: str | None = None
    directory: str = ""
    tag: str = ""
    last: int | None = None
    copied: str | None = None
    prompt: str | None = None
    _count: int = 0
    _places: dict[int, int] = field(default_factory=dict)
    _about: str | None = None

    def add(self, line: Line, record: Record) -> None:
        """Look at the next line."""
        self.end = line.number
        self._count += 1
        place = self.tree.place(record, line.number)
        if place.joins is None:
            self.names.append(place.name)
            if record.get("type") == "assistant":
                self._places[line.number] = self._count
        else:
            between = self._count - self._places[place.joins]
            self.further.setdefault(place.joins, []).append((between, line))

        self.leaf.add(record)
        self._note(record)

    def _note(self, record: Record) -> None:
        note = _NOTES.get(as_text(record.get("type")))
        if note is not None:
            note(self, record)
        if usable_id(within(record, "forkedFrom", "messageUuid")):
            self.copied = record["forkedFrom"]["messageUuid"]

    def asked(self, record: Record) -> None:
        """Record the first prompt, and the boundary above a summary."""
        self.said(record)
        above = as_text(record.get("parentUuid"))
        if above and record.get("isCompactSummary") is True:
            self.summarised.add(above)
        if self.prompt is None:
            self.prompt = as_text(within(record, "message", "content"))

    def said(self, record: Record) -> None:
        """Record version, directory and time."""
        self.version = as_text(record.get("version")) or self.version
        self.directory = self.directory or as_text(record.get("cwd")) or ""
        times = self.last, time_of_text(record.get("timestamp"))
        self.last = max(filter(time, times), default=None)

    def tagged(self, record: Record) -> None:
        """Record the tag; an empty one clears it."""
        self.tag = as_text(record.get("tag")) or ""

    def summed_up(self, record: Record) -> None:
        """Record a summary, and the line that it is about."""
        self._about = as_text(record.get("leafUuid"))
        self.named(record)

    def named(self, record: Record) -> None:
        """Record the title of a line."""
        kind = record["type"]
        title = as_text(record.get(_TITLES[kind]))
        if title:
            self.titles[kind] = title

    @property
    def title(self) -> str:
        """The title: as the user named it, else as the model did."""
        titles = dict(self.titles)
        # Summaries of other sessions are in the transcript that was open then.
        if self._about and self.tree.end_of(self._about) is None:
            titles.pop("summary", None)
        return next((titles[kind] for kind in _TITLES if kind in titles), "")

    def titled(self, about: Mapping[str, str]) -> str:
        """Return the title that another transcript has for this session."""
        ends = (leaf for leaf in about if self.tree.end_of(leaf) is not None)
        return next((about[leaf] for leaf in ends), "")


#: Lines with a title, the strongest first, and where it is.
_TITLES = {"custom-title": "customTitle", "ai-title": "aiTitle", "summary": "summary"}
#: How the lines of each type change the index.
_NOTES: Mapping[str | None, Callable[[Index, Record], None]] = {
    **dict.fromkeys(_TITLES, Index.named),
    "summary": Index.summed_up,
    "tag": Index.tagged,
    "user": Index.asked,
    "assistant": Index.said,
}


# -- messages ------------------------------------------------------------------


class Messages:
    """The messages of a transcript and their problems; read again each time."""

    def __init__(self, log: Log, index: Index) -> None:
        self._log = log
        self._further = index.further
        self._end = index.end
        self._summarised = index.summarised

    def __iter__(self) -> Iterator[SourceMessage | Problem]:
        """Read the lines that were there; memory holds one message, and the ids."""
        tree = Tree(self._summarised)

        with opened(self._log.path) as lines:
            for line, record in _lines(lines, self._log):
                if line.number > self._end:
                    break
                place = tree.place(record, line.number)
                if place.joins is None:
                    yield self._message(place, lines, line, record)
            yield from lines.problems

    def _message(
        self, place: Place, lines: Lines, line: Line, record: Record
    ) -> SourceMessage | Problem:
        further = [
            Further(between, load_object(lines.at(other)))
            for between, other in self._further.get(line.number, ())
        ]
        said = within(record, "message", "id")
        usage = said if record.get("type") == "assistant" else None
        copied = within(record, "forkedFrom", "messageUuid")
        usage = next(filter(usable_id, (usage, copied)), None)
        try:
            draft = message_draft(record, place.name, further)
        except OddRecordError as error:
            return lines.problem(f"record {abridged(place.name)} {error}", line)

        if place.kept is not None and draft.kind == "compaction":
            draft = replace(draft, data={**draft.data, "first_kept_id": place.kept})
        draft = with_files(draft, self._log.path)
        # A result that only its call had, before it was written for the program.
        is_ours = record.get("entrypoint") == fields.WRITER
        alias = place.answer if is_ours else None
        return SourceMessage(draft, place.parent, usage, alias=alias)


def _lines(lines: Lines, log: Log) -> Iterator[tuple[Line, Record]]:
    """Yield the records of a session in a transcript."""
    chains = Chains()
    for line, _, record in lines.records(_decoded):
        if log.chain is None or chains.of(record) == log.chain:
            yield line, record


def _decoded(raw: bytes) -> Record:
    record = load_object(raw.removeprefix(b"\xef\xbb\xbf"))
    if not usable_id(record.get("type")):
        raise OddRecordError("has no type")
    return record
