"""The sessions of Qwen Code, read from their logs one record at a time.

A session is yielded after a look at the head of its log. Title and leaf are on later
lines, so that `complete` reads all of them once, and the messages once more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, repeat, starmap
from pathlib import Path
from typing import Any

from sessiondb.errors import abridged
from sessiondb.formats.kit.fields import (
    as_list,
    as_text,
    clean_name,
    fitting,
    take,
    within,
    without_none,
)
from sessiondb.formats.kit.files import stamp
from sessiondb.formats.kit.json import OddRecordError, load_object, load_text, piece
from sessiondb.formats.kit.lines import Line, Lines, opened
from sessiondb.formats.kit.logs import (
    add_logs,
    log_digest,
    logs_below,
    read_in_order,
)
from sessiondb.formats.kit.texts import time_of_text
from sessiondb.formats.qwen import fields
from sessiondb.formats.qwen.agents import Answered
from sessiondb.formats.qwen.drafts import as_usage, message_draft
from sessiondb.formats.qwen.logs import (
    Log,
    is_archived,
    is_log,
    look_at,
    meta_of,
    outputs_of,
)
from sessiondb.formats.qwen.tree import Tree, request_of
from sessiondb.model import Problem, SourceMessage, SourceSession

Record = dict[str, Any]
#: Where a result names files that have all of its output.
_FILES = (
    ("toolCallResult", "resultDisplay", "outputFiles"),
    ("toolCallResult", "persistedOutputFiles"),
)
_NO_SESSION = "the log has no record of a session at its beginning"


def read_log(path: Path) -> Iterator[SourceSession | Problem]:
    """Yield the session of a log."""
    log = look_at(path)
    if log is not None:
        yield from _session(log)


def _session(log: Log) -> Iterator[SourceSession | Problem]:
    yield from filter(None, [log.odd])
    yield beginning(log)


def read_folder(folder: Path) -> Iterator[SourceSession | Problem]:
    """Yield the sessions of a project, or its subagents, parents first."""
    logs: dict[str, Log] = {}
    found = logs_below(folder, is_log)
    yield from add_logs(found, look_at, logs, without_session=_NO_SESSION)
    yield from read_in_order(logs, _session)


def beginning(log: Log) -> SourceSession:
    """Return the session of a log by its head."""
    rest = dict(log.meta)
    # The description of a subagent is more exact than its first record.
    known = take(dict(log.head), fields.HEAD) | take(rest, fields.META)
    return SourceSession(
        "qwen",
        log.session,
        str(log.path),
        # A description that cannot be read now is read again.
        log_digest(log.path, meta_of(log.path)) + ("" if log.odd is None else " odd"),
        parent_source_id=log.parent,
        relation=log.relation,
        time_created=time_of_text(log.head.get("timestamp")),
        time_archived=_archived(log.path),
        complete=partial(complete, log),
        data=rest,
        **known,
    )


def _archived(path: Path) -> int | None:
    """Return when an archived log was written last: when it was archived is lost."""
    found = stamp(path) if is_archived(path) else None
    return None if found is None else found[1] // 1_000_000


def complete(log: Log) -> SourceSession:
    """Return a session with everything that its log has of it."""
    tree = Tree()
    known: Record = {}
    with opened(log.path) as lines:
        for _, record in _records(lines):
            # The last title and time count.
            when = time_of_text(record.get("timestamp"))
            known |= without_none({"title": _title(record), "time_updated": when})

            # The ids are those that the messages get when they are read.
            tree.response(record)
            tree.place(record)

    return replace(
        beginning(log),
        leaf=tree.leaf,
        messages=Messages(log, frozenset(tree.answered)),
        **known,
    )


def _title(record: Record) -> str | None:
    is_title = record.get("subtype") == "custom_title"
    title = within(record, "systemPayload", "customTitle")
    return fitting(title, clean_name) if is_title else None


@dataclass(frozen=True, slots=True)
class Messages:
    """The messages of a log and their problems; read again each time."""

    log: Log
    answered: frozenset[str]

    def __iter__(self) -> Iterator[SourceMessage | Problem]:
        """Read the log; memory holds one record, and the ids of all."""
        with opened(self.log.path) as lines:
            reading = _Reading(self.log, lines, self.answered)
            yield from starmap(reading.message, _records(lines))
            yield from lines.problems


class _Reading:
    """One pass over a log."""

    def __init__(self, log: Log, lines: Lines, answered: frozenset[str]) -> None:
        self._lines = lines
        self._tree = Tree()
        self._outputs = outputs_of(log)
        self._answered = answered
        self._elsewhere = Answered(log)

    def message(self, line: Line, record: Record) -> SourceMessage | Problem:
        tree = self._tree
        if self._lines.problems:
            tree.damaged()

        uuid = as_text(record.get("uuid"))
        response = tree.response(record)
        is_usage = self._is_usage(record)
        name, parent = tree.place(record)
        tree.kept(record)
        tree.said(record, name)

        try:
            draft = message_draft(record, name)
        except ValueError as error:
            return self._lines.problem(f"record {abridged(name)} {error}", line)

        if is_usage:
            draft = as_usage(draft)
        elif draft.role != "assistant":
            # Other records that follow a request are not its response.
            response = None

        files = chain.from_iterable(as_list(within(draft.data, *at)) for at in _FILES)
        draft = replace(self._outputs.added(draft, *files), response_id=response)
        # A fork copies records with their uuid.
        usage = (response or uuid) if draft.tokens else None
        return SourceMessage(draft, parent=parent, usage_id=usage)

    def _is_usage(self, record: Record) -> bool:
        """Return whether only this record has the usage of a request.

        Titles, memories and empty answers are not recorded. A subagent has its
        answers in its own log.
        """
        event = request_of(record)
        is_answered = as_text(record.get("uuid")) in self._answered
        return not (event == {} or is_answered or self._elsewhere.take(event))


# -- records -------------------------------------------------------------------


def _records(lines: Lines) -> Iterator[tuple[Line, Record]]:
    """Yield the objects of a log; two writers may have put several on one line."""
    for line, _, (records, why) in lines.records(_decoded):
        yield from zip(repeat(line), records)
        if why is not None:
            lines.problems.append(
                lines.problem(f"rest of the line skipped: {why}", line)
            )


def _decoded(raw: bytes) -> tuple[list[Record], str | None]:
    """Return the objects of a line, and why the rest of it cannot be read."""
    try:
        # Nearly all lines: the rest of this function is slower.
        return [load_object(raw)], None
    except OddRecordError as error:
        found, rest = _glued(raw.decode("utf-8", "replace").strip())
        if not found:
            raise

        return found, f"it {error}" if rest else None


def _glued(line: str) -> tuple[list[Record], str]:
    """Return the objects that follow each other at the beginning of a line."""
    found: list[Record] = []
    while line.startswith("{"):
        try:
            _, end = piece(line, 0)
            found.append(load_text(line[:end]))
        except (ValueError, RecursionError):
            break

        line = line[end:].lstrip()
    return found, line
