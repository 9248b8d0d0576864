"""The records of a log by their places, also those of a log that is one document."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from sessiondb.errors import SourceError
from sessiondb.formats.gemini.journal import Version
from sessiondb.formats.gemini.logs import is_document
from sessiondb.formats.kit.fields import as_list, as_object
from sessiondb.formats.kit.files import read_file
from sessiondb.formats.kit.json import load_object
from sessiondb.formats.kit.lines import Line, Lines, opened, spooled
from sessiondb.model import Problem

Record = dict[str, Any]


class Records:
    """The records of an open log, one after the other or again by their places."""

    def __init__(self, lines: Lines, *, are_lines: bool) -> None:
        self._lines = lines
        self._are_lines = are_lines
        #: The last line with several messages: most are read one after the other.
        self._several: dict[Line, dict[int, Any]] = {}

    def __iter__(self) -> Iterator[tuple[Line, Record]]:
        for line, _, record in self._lines.records(load_object):
            yield line, record

    def problem(self, why: str, line: Line) -> Problem:
        """Return the problem of a record; only those of a log have a line."""
        return self._placed(self._lines.problem(why, line))

    @property
    def problems(self) -> Iterator[Problem]:
        """The lines that could not be read so far."""
        return map(self._placed, self._lines.problems)

    def _placed(self, problem: Problem) -> Problem:
        return problem if self._are_lines else replace(problem, line=None)

    def version(self, version: Version) -> Record:
        """Return a version of a message; raises ValueError if it is not there."""
        line, place = version.line, version.place
        if place is None:
            return load_object(self._lines.at(line))

        if line not in self._several:
            self._several.clear()
            record = load_object(self._lines.at(line))
            inside = as_object(record.get("$set")) or record
            self._several[line] = dict(enumerate(as_list(inside.get("messages"))))
        return as_object(self._several[line].get(place))


@contextmanager
def records_of(path: Path) -> Iterator[Records]:
    """Open a log. Raises `SourceError`, and ValueError for anything but a document."""
    if not is_document(path):
        with opened(path) as lines:
            yield Records(lines, are_lines=True)
        return

    with spooled(path, _lines_of(path)) as lines:
        yield Records(lines, are_lines=False)


def _lines_of(path: Path) -> Iterator[bytes]:
    """Yield a document as the lines of a log: its properties, then each message."""
    raw = read_file(path)
    if raw is None:
        raise SourceError(f"cannot read {path}: it is gone")

    document = {"projectHash": "", **load_object(raw)}
    del raw
    messages = as_list(document.pop("messages", None))
    for record in [document, *messages]:
        yield json.dumps(record).encode() + b"\n"
