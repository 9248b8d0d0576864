"""The sessions of pi, oh-my-pi and xcsh, read from their logs one record at a time.

A session is yielded after a look at the head of its log. Title, labels and leaf are on
later lines, so that `complete_session` reads all of them once, and the messages once
more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from sessiondb.dataclass import dataclass, field
from sessiondb.errors import abridged
from sessiondb.formats.kit.fields import (
    as_list,
    as_object,
    as_string,
    as_text,
    clean_name,
    fitting,
    take_fields,
    text,
    value_at,
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
from sessiondb.formats.pi.drafts import message_draft, settings_of_header
from sessiondb.formats.pi.files import with_files
from sessiondb.formats.pi.history import history_in
from sessiondb.formats.pi.logs import PiLog, log_above, logs_of, look_at, read_header
from sessiondb.formats.pi.tree import PiTree, is_upgraded
from sessiondb.model import Problem, SourceItem, SourceMessage, SourceSession

Record = dict[str, Any]
#: The label of each record that has one, by its id, after those that it had before.
Labels = dict[str, list[str | None]]


def read_log(path: Path) -> Iterator[SourceSession | Problem]:
    """Yield the session of a log."""
    log = look_at(path)
    if log is not None:
        yield _session_of(log, uses_near(path))


def read_home(home: Path) -> Iterator[SourceItem]:
    """Yield the sessions of a program, parents first, and their prompt history."""
    logs: dict[str, PiLog] = {}
    uses = uses_in(home)
    yield from add_logs(logs_of(home), look_at, logs)
    yield from read_in_order(logs, lambda log: [_session_of(log, uses)])
    yield from history_in(home)
    yield from experiments.databases_in(home)


def _session_of(log: PiLog, uses: Uses) -> SourceSession | Problem:
    if log.head.is_newer:
        return Problem(str(log.path), experiments.LOG)
    return session_of_head(log._replace(uses=uses.get(key_of(log.path), ())))


def session_of_head(log: PiLog) -> SourceSession:
    """Return the session as a search for it knows it."""
    head = log.head
    return SourceSession(
        log.source,
        log.session,
        str(log.path),
        log_digest(log.path),
        directory=head.directory,
        parent_source_id=log.parent,
        relation=log.relation if log.parent else None,
        time_created=head.time_created,
        terminals=log.uses,
        may_move=bool(head.directory),
        alias=head.alias,
        complete=partial(complete_session, log),
    )


def complete_session(log: PiLog) -> SourceSession:
    """Return a session with all that its log states of it."""
    header = read_header(log.path)
    columns = take_fields(dict(header), fields.HEADER)
    session = replace(session_of_head(log), **columns)
    properties = LoggedProperties(session.title)
    with opened(log.path) as lines:
        for _, _, record in _records_of_lines(lines):
            properties.add_record(record)

    call_id = None
    if log.relation == "subagent":
        # Its log has the name of its task, not of its session.
        task = unpacked_name(log.path).stem
        properties.data["log"] = task
        call_id = _call_of_task(task, log_above(log.path))
    return replace(
        session,
        call_id=call_id,
        title=properties.title,
        title_source="agent" if properties.title else "derived",
        time_updated=properties.time_updated,
        data=properties.data,
        messages=PiMessages(log, header, properties.labels),
    )


def _call_of_task(task: str, log: Path) -> str | None:
    """Return the call in a *log* that started a subagent, by its result."""
    for record in records_naming(log, task):
        message = as_object(record.get("message"))
        details = as_object(message.get("details"))
        agents = as_list(details.get("progress")) + as_list(details.get("results"))
        call_id = message.get("toolCallId")
        if clean_name(call_id) and any(
            value_at(agent, "id") == task for agent in agents
        ):
            return call_id
    return None


@dataclass(slots=True)
class LoggedProperties:
    """The properties of a session in the records of its log; later ones win."""

    title: str = ""
    labels: Labels = field(default_factory=dict)
    #: The time of the last prompt or answer.
    time_updated: int | None = None
    data: Record = field(default_factory=dict)

    def add_record(self, record: Record) -> None:
        """Take the properties that a record states; most state none."""
        match record.get("type"):
            # The first header and the first title before it count.
            case "title":
                self.title = fitting(record.get("title"), text, self.title)
                self.data.setdefault("title_record", record)
            case "session":
                self.data.setdefault("header", record)
            case "session_info" | "title_change":
                # An empty name clears it (``getSessionName``, since pi 0.87).
                name = record.get("name", record.get("title"))
                self.title = as_string(name).strip()
            case "label":
                labels = self.labels.setdefault(as_string(record.get("targetId")), [])
                labels.append(fitting(record.get("label"), usable_id))
            case "message":
                role = value_at(record, "message", "role")
                written = time_of_text(record.get("timestamp"))
                if role in ("user", "assistant") and written is not None:
                    self.time_updated = max(self.time_updated or 0, written)


class PiMessages:
    """The messages of a log and their problems; read again each time."""

    def __init__(self, log: PiLog, header: Record, labels: Labels) -> None:
        self._log = log
        self._header = header
        self._labels = labels

    def __iter__(self) -> Iterator[SourceMessage | Problem]:
        """Read the log; memory holds one record, and the ids of all."""
        log, header = self._log, self._header
        is_first = bool(header) and "version" not in header
        tree = PiTree(
            is_fork=log.parent is not None,
            is_first_version=is_first,
            was_first_version=is_upgraded(header),
        )
        for setting in settings_of_header(header):
            yield SourceMessage(setting)

        heads: set[str | None] = {"session", "title"}
        with opened(log.path) as lines:
            for line, _, record in _records_of_lines(lines):
                if lines.problems:
                    tree.note_damage()
                kind = as_text(record.get("type"))
                if kind in heads:
                    # A second header in the middle of a log is a record like others.
                    heads.discard(kind)
                    continue
                yield self._read_message(tree, lines, line, record)
            yield from lines.problems

    def _read_message(
        self, tree: PiTree, lines: Lines, line: Line, record: Record
    ) -> SourceMessage | Problem:
        name = tree.take_name(record)
        parent = tree.parent_of_record(record, name)
        tree.add_first_kept(record, name)
        try:
            draft = message_draft(record, name, self._log.source)
        except OddRecordError as error:
            return lines.problem(f"record {abridged(name)} {error}", line)

        draft = with_files(draft, self._log.path)
        record_id = as_string(draft.data.get("id"))
        labels = self._labels.get(name) or self._labels.get(record_id) or [None]
        label = labels[-1]
        return SourceMessage(
            draft,
            parent=parent,
            labels=(label,) if label else (),
            unlabelled=tuple(
                earlier
                for earlier in dict.fromkeys(labels)
                if earlier and earlier != label
            ),
            alias=message_of(name),
        )


def _records_of_lines(lines: Lines) -> Iterator[tuple[Line, bytes, Record]]:
    """Yield the objects of a log."""
    return lines.records(load_object)
