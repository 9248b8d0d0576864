"""The records of a log by their places, also those of a log that is one document."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from sessiondb.errors import SourceError
from sessiondb.formats.gemini.journal import MessageVersion
from sessiondb.formats.gemini.logs import is_document
from sessiondb.formats.kit.fields import as_list, as_object
from sessiondb.formats.kit.files import read_file
from sessiondb.formats.kit.json import load_object
from sessiondb.formats.kit.lines import Line, Lines, open_pieces, opened
from sessiondb.model import Problem

Record = dict[str, Any]


class GeminiRecords:
    """The records of an open log, one after the other or again by their places."""

    def __init__(self, lines: Lines, *, are_lines: bool) -> None:
        self._lines = lines
        self._are_lines = are_lines
        #: Those of the last line with several: most are read one after the other.
        self._messages: dict[Line, dict[int, Any]] = {}

    def __iter__(self) -> Iterator[tuple[Line, Record]]:
        for line, _, record in self._lines.records(load_object):
            yield line, record

    def problem_of_record(self, message: str, line: Line) -> Problem:
        """Return the problem of a record; only those of a log have a line."""
        return self._with_line(self._lines.problem(message, line))

    @property
    def problems_of_lines(self) -> Iterator[Problem]:
        """The lines that could not be read so far."""
        for problem in self._lines.problems:
            yield self._with_line(problem)

    def _with_line(self, problem: Problem) -> Problem:
        return problem if self._are_lines else replace(problem, line=None)

    def record_of_version(self, version: MessageVersion) -> Record:
        """Return a version of a message; raises ValueError if it is not there."""
        line, position = version.line, version.position
        if position is None:
            return load_object(self._lines.read_line(line))

        if line not in self._messages:
            self._messages.clear()
            record = load_object(self._lines.read_line(line))
            holder = as_object(record.get("$set")) or record
            self._messages[line] = dict(enumerate(as_list(holder.get("messages"))))
        return as_object(self._messages[line].get(position))


@contextmanager
def records_of(path: Path) -> Iterator[GeminiRecords]:
    """Open a log. Raises `SourceError`, and ValueError for anything but a document."""
    if not is_document(path):
        with opened(path) as lines:
            yield GeminiRecords(lines, are_lines=True)
        return

    with open_pieces(path, _lines_of_document(path)) as lines:
        yield GeminiRecords(lines, are_lines=False)


def _lines_of_document(path: Path) -> Iterator[bytes]:
    """Yield a document as the lines of a log: its properties, then each message."""
    raw = read_file(path)
    if raw is None:
        raise SourceError(f"cannot read {path}: it is gone")

    document = {"projectHash": "", **load_object(raw)}
    del raw
    messages = as_list(document.pop("messages", None))
    for record in [document, *messages]:
        yield json.dumps(record).encode() + b"\n"
