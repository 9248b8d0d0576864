"""Recognises copies: a fork has the lines of its original, with their uuids.

Nothing in it says where they come from. Only transcripts that begin with the same line
are read for it, which most stores do not have. The original is the older one with the
most lines in common; a fork is younger than its lines, so that a line without a uuid,
which is never copied, dates its beginning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from math import inf
from typing import Any, NamedTuple

from sessiondb.formats.claude.logs import (
    ClaudeLog,
    first_time_beside_chain,
    records_of,
)
from sessiondb.formats.kit.fields import as_string, fitting, text, value_at
from sessiondb.formats.kit.json import usable_id
from sessiondb.formats.kit.texts import time_of_text

Record = dict[str, Any]


class OriginalLine(NamedTuple):
    """A line that others may be copies of."""

    #: Its time in Unix ms; 0 if it has none.
    time: int
    #: The uuid of the line that it is a copy of, else its own.
    source: str


#: The lines of a transcript by their uuids, in order.
LinesByUuid = dict[str, OriginalLine]


def find_originals(logs: Iterable[ClaudeLog]) -> dict[str, str]:
    """Return the originals of the forks among *logs*, by session."""
    families: dict[str, list[ClaudeLog]] = {}
    for log in logs:
        if log.relation is None:
            families.setdefault(log.first_uuid or log.session, []).append(log)

    originals: dict[str, str] = {}
    for family in families.values():
        if len(family) > 1:
            originals |= _originals_in(family)
    return originals


class CopiedLines:
    """The lines that a fork may have from its originals.

    Forks of older releases keep the uuids; later ones name in each line the one that it
    was copied from, which may be a copy itself. A session without an original has none.
    """

    def __init__(self) -> None:
        #: The lines of the nearest original.
        self._nearest: LinesByUuid = {}
        #: When each was said, as the farthest original has it, in Unix ms.
        self._times: dict[str, int] = {}
        #: The first line of the chain of copies that each one ends.
        self._sources: dict[str, str] = {}

    def with_original(self, log: ClaudeLog) -> CopiedLines:
        """Return those of a fork of *log*, whose own originals have these."""
        lines = _lines_of(log)
        copied = CopiedLines()
        copied._nearest = lines
        copied._times = {uuid: line.time for uuid, line in lines.items()} | self._times
        copied._sources = self._sources | {
            uuid: self._sources.get(line.source, line.source)
            for uuid, line in lines.items()
        }
        return copied

    def first_copied(self, names: Iterable[str]) -> str | None:
        """Return the first of *names* that the nearest original has, too."""
        for name in names:
            if name in self._nearest:
                return name
        return None

    def has(self, record: Record) -> bool:
        """Return whether a line is a copy: it says so, or an original has it."""
        return "forkedFrom" in record or as_string(record.get("uuid")) in self._times

    def source_of(self, record: Record) -> str | None:
        """Return the first line of the chain of copies that a line is the last of."""
        source = _named_source(record)
        return self._sources.get(source, source) or None

    def times_of(self, records: Iterable[Record]) -> list[int]:
        """Return when lines were said, of those that an original has.

        Releases of 1.x copied a session to a transcript of its own whenever they
        resumed it, and gave all lines that they copied the time of the copy.
        """
        names = [as_string(record.get("uuid")) for record in records]
        return [self._times[name] for name in names if name in self._times]


def ancestors_of(log: ClaudeLog, logs: Mapping[str, ClaudeLog]) -> Iterator[ClaudeLog]:
    """Yield the originals of a fork among *logs*, the nearest one first."""
    seen: set[str] = set()
    original = log.parent_log(logs)
    while original is not None and original.session not in seen:
        yield original
        seen.add(original.session)
        original = original.parent_log(logs)


def _lines_of(log: ClaudeLog) -> LinesByUuid:
    """Return the lines of a transcript that have a uuid, as far as it can be read."""
    lines: LinesByUuid = {}
    for record in records_of(log.path):
        if text(record.get("uuid")):
            time = time_of_text(record.get("timestamp")) or 0
            lines[record["uuid"]] = OriginalLine(time, _named_source(record))
    return lines


def _named_source(record: Record) -> str:
    """Return the line that one says it is a copy of, else itself; "" without a name."""
    copied = value_at(record, "forkedFrom", "messageUuid")
    return str(
        copied if usable_id(copied) else fitting(record.get("uuid"), usable_id, "")
    )


def _originals_in(family: list[ClaudeLog]) -> dict[str, str]:
    """Return the originals of the forks in a family, by session."""
    lines = {log.session: _lines_of(log) for log in family}
    owners = Counter(uuid for by_uuid in lines.values() for uuid in by_uuid)
    times = {log.session: _begin_of(log, lines[log.session], owners) for log in family}
    order = sorted(lines, key=lambda name: (times[name], len(lines[name]), name))

    originals: dict[str, str] = {}
    for place, fork in enumerate(order[1:], start=1):
        shared = {
            older: len(lines[older].keys() & lines[fork].keys())
            for older in order[:place]
        }
        originals[fork] = max(shared, key=lambda older: shared[older])
    return originals


def _begin_of(log: ClaudeLog, lines: LinesByUuid, owners: Mapping[str, int]) -> float:
    """Return when a transcript began, as far as its own lines show it."""
    time = first_time_beside_chain(log.path)
    if time is not None:
        return time
    return min(
        (line.time for uuid, line in lines.items() if owners[uuid] == 1), default=-inf
    )
