"""The sessions of pi, oh-my-pi and xcsh, read from their logs one record at a time.

A session is yielded after a look at the head of its log. Title, labels and leaf are on
later lines, so that `complete` reads all of them once, and the messages once more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from sessiondb.errors import abridged
from sessiondb.formats.kit.fields import (
    as_list,
    as_object,
    as_string,
    as_text,
    clean_name,
    fitting,
    take,
    text,
    within,
)
from sessiondb.formats.kit.json import OddRecordError, load_object, usable_id
from sessiondb.formats.kit.lines import Line, Lines, opened
from sessiondb.formats.kit.logs import (
    add_logs,
    log_digest,
    read_in_order,
    records_naming,
    unpacked_name,
)
from sessiondb.formats.kit.naming import message_of
from sessiondb.formats.kit.texts import time_of_text
from sessiondb.formats.pi import experiments, fields
from sessiondb.formats.pi.breadcrumbs import Uses, key_of, uses_in, uses_near
from sessiondb.formats.pi.drafts import message_draft, settings
from sessiondb.formats.pi.files import with_files
from sessiondb.formats.pi.history import history_in
from sessiondb.formats.pi.logs import PiLog, log_above, logs_of, look_at
from sessiondb.formats.pi.tree import Tree, is_upgraded
from sessiondb.model import Problem, SourceItem, SourceMessage, SourceSession

Record = dict[str, Any]
#: The label of each record that has one, by its id, after those that it had before.
Labels = dict[str, list[str | None]]


def read_log(path: Path) -> Iterator[SourceSession | Problem]:
    """Yield the session of a log."""
    log = look_at(path)
    if log is not None:
        yield _session(log, uses_near(path))


def read_home(home: Path) -> Iterator[SourceItem]:
    """Yield the sessions of a program, parents first, and their prompt history."""
    logs: dict[str, PiLog] = {}
    uses = uses_in(home)
    yield from add_logs(logs_of(home), look_at, logs)
    yield from read_in_order(logs, lambda log: [_session(log, uses)])
    yield from history_in(home)
    yield from experiments.databases_in(home)


def _session(log: PiLog, uses: Uses) -> SourceSession | Problem:
    if log.is_newer:
        return Problem(str(log.path), experiments.LOG)
    return beginning(log._replace(uses=uses.get(key_of(log.path), ())))


def beginning(log: PiLog) -> SourceSession:
    """Return the session as the head of its log states it."""
    header = dict(log.header)
    known = take(header, fields.HEADER)
    return SourceSession(
        log.source,
        log.session,
        str(log.path),
        log_digest(log.path),
        parent_source_id=log.parent,
        relation=log.relation if log.parent else None,
        time_created=time_of_text(header.get("timestamp")),
        terminals=log.uses,
        may_move="directory" in known,
        alias=log.alias,
        complete=partial(complete, log),
        **known,
    )


def complete(log: PiLog) -> SourceSession:
    """Return a session with all that its log states of it."""
    session = beginning(log)
    found = _Found(session.title)
    with opened(log.path) as lines:
        for _, _, record in _records(lines):
            found.add(record)

    call_id = None
    if log.relation == "subagent":
        # Its log has the name of its task, not of its session.
        found.data["log"] = task = unpacked_name(log.path).stem
        call_id = next(_calls_of(task, log_above(log.path)), None)
    return replace(
        session,
        call_id=call_id,
        title=found.title,
        title_source="agent" if found.title else "derived",
        time_updated=found.last,
        data=found.data,
        messages=Messages(log, found.labels),
    )


def _calls_of(task: str, log: Path) -> Iterator[str]:
    """Yield the calls in a *log* that started a subagent, by what they returned."""
    for record in records_naming(log, task):
        said = as_object(record.get("message"))
        details = as_object(said.get("details"))
        started = as_list(details.get("progress")) + as_list(details.get("results"))
        if any(within(agent, "id") == task for agent in started):
            yield from filter(clean_name, [said.get("toolCallId")])


@dataclass(slots=True)
class _Found:
    """The properties of a session in the records of its log; later ones win."""

    title: str = ""
    labels: Labels = field(default_factory=dict)
    last: int | None = None
    data: Record = field(default_factory=dict)

    def add(self, record: Record) -> None:
        """Take the properties that a record states; most state none."""
        take_it = _TAKEN.get(as_string(record.get("type")))
        if take_it is not None:
            take_it(self, record)

    def named(self, record: Record) -> None:
        """Take a name; an empty one clears it (``getSessionName``, since pi 0.87)."""
        name = record.get("name", record.get("title"))
        self.title = as_string(name).strip()

    def head(self, record: Record) -> None:
        """Take the header, or the title before it; the first ones count."""
        if record.get("type") == "title":
            self.title = fitting(record.get("title"), text, self.title)
            self.data.setdefault("title_record", record)
        elif "header" not in self.data:
            self.data["header"] = record

    def label(self, record: Record) -> None:
        """Take a label, or clear it."""
        target, name = as_string(record.get("targetId")), record.get("label")
        given = self.labels.setdefault(target, [])
        given.append(fitting(name, usable_id))

    def said(self, record: Record) -> None:
        """Take the time of a prompt or an answer."""
        said = within(record, "message", "role")
        when = time_of_text(record.get("timestamp"))
        if said in ("user", "assistant") and when is not None:
            self.last = max(self.last or 0, when)


_TAKEN: Mapping[str, Callable[[_Found, Record], None]] = {
    **dict.fromkeys(("session", "title"), _Found.head),
    **dict.fromkeys(("session_info", "title_change"), _Found.named),
    "label": _Found.label,
    "message": _Found.said,
}


class Messages:
    """The messages of a log and their problems; read again each time."""

    def __init__(self, log: PiLog, labels: Labels) -> None:
        self._log = log
        self._labels = labels

    def __iter__(self) -> Iterator[SourceMessage | Problem]:
        """Read the log; memory holds one record, and the ids of all."""
        log = self._log
        is_first = bool(log.header) and "version" not in log.header
        tree = Tree(
            is_fork=log.parent is not None,
            is_first_version=is_first,
            was_first_version=is_upgraded(log.header),
        )
        yield from map(SourceMessage, settings(log.header))

        heads: set[str | None] = {"session", "title"}
        with opened(log.path) as lines:
            for line, _, record in _records(lines):
                if lines.problems:
                    tree.damaged()
                kind = as_text(record.get("type"))
                if kind in heads:
                    # A second header in the middle of a log is a record like others.
                    heads.discard(kind)
                    continue
                yield self._message(tree, lines, line, record)
            yield from lines.problems

    def _message(
        self, tree: Tree, lines: Lines, line: Line, record: Record
    ) -> SourceMessage | Problem:
        name = tree.name(record)
        parent = tree.parent(record, name)
        tree.kept(record, name)
        try:
            draft = message_draft(record, name, self._log.source)
        except OddRecordError as error:
            return lines.problem(f"record {abridged(name)} {error}", line)

        draft = with_files(draft, self._log.path)
        own = as_string(draft.data.get("id"))
        given = self._labels.get(name) or self._labels.get(own) or [None]
        last, before = given[-1], dict.fromkeys(given)
        return SourceMessage(
            draft,
            parent=parent,
            labels=tuple(filter(None, [last])),
            unlabelled=tuple(name for name in before if name and name != last),
            alias=message_of(name),
        )


def _records(lines: Lines) -> Iterator[tuple[Line, bytes, Record]]:
    """Yield the objects of a log."""
    return lines.records(load_object)
