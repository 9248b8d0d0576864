"""Recognises copies: a fork has the lines of its original, with their uuids.

Nothing in it says where they come from. Only transcripts that begin with the same line
are read for it, which most stores do not have. The original is the older one with the
most lines in common; a fork is younger than its lines, so that a line without a uuid,
which is never copied, dates its beginning.
"""

from __future__ import annotations

from collections import ChainMap, Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from math import inf
from typing import Any, NamedTuple

from sessiondb.formats.claude.logs import Log, records_of
from sessiondb.formats.kit.fields import as_string, clean_name, fitting, text, within
from sessiondb.formats.kit.json import usable_id
from sessiondb.formats.kit.texts import time_of_text

Record = dict[str, Any]
#: The key of a line that is a copy.
_COPY = "forkedFrom"


class Original(NamedTuple):
    """A line that others may be copies of: its time, and the line it is a copy of."""

    time: int
    source: str


#: The lines of a transcript by their uuids, in order.
Originals = dict[str, Original]


def recognise(logs: Iterable[Log]) -> dict[str, str]:
    """Return the originals of the forks among *logs*, by session."""
    alike: dict[str, list[Log]] = {}
    for log in filter(_is_alone, logs):
        first = fitting(log.first.get("uuid"), clean_name, log.session)
        alike.setdefault(first, []).append(log)

    families = (family for family in alike.values() if len(family) > 1)
    return dict(ChainMap(*map(_originals, families)))


def _is_alone(log: Log) -> bool:
    return log.relation is None


class Copies:
    """The lines of a fork that its originals have, too.

    Forks of older releases keep the uuids; later ones name in each line the one that it
    was copied from, which may be a copy itself.
    """

    def __init__(self, log: Log, logs: Mapping[str, Log]) -> None:
        self._above = list(map(_lines_of, _ancestors(log, logs)))

    def cut(self, names: Iterable[str]) -> str | None:
        """Return the first of *names* that the nearest original has, too."""
        known: Originals = next(iter(self._above), {})
        return next(filter(known.__contains__, names), None)

    def source(self, record: Record) -> str | None:
        """Return the first line of the chain of copies that a line is the last of."""
        found = _source(record)
        for lines in self._above:
            if found in lines:
                found = lines[found].source

        return found or None

    def times(self, records: Iterable[Record]) -> list[int]:
        """Return when lines were said, of those that an original has.

        Releases of 1.x copied a session to a transcript of its own whenever they
        resumed it, and gave all lines that they copied the time of the copy.
        """
        names = [as_string(record.get("uuid")) for record in records]
        first = ChainMap(*reversed(self._above))
        return [first[name].time for name in names if name in first]


def _ancestors(log: Log, logs: Mapping[str, Log]) -> Iterator[Log]:
    """Yield the originals of a fork among *logs*, the nearest one first."""
    seen: set[str] = set()
    above = log.above(logs)
    while above is not None and above.session not in seen:
        yield above
        seen.add(above.session)
        above = above.above(logs)


def _lines_of(log: Log) -> Originals:
    """Return the lines of a transcript that have a uuid, as far as it can be read."""
    return {
        record["uuid"]: Original(
            time_of_text(record.get("timestamp")) or 0, _source(record)
        )
        for record in filter(_is_named, records_of(log.path))
    }


def _is_named(record: Record) -> bool:
    return text(record.get("uuid"))


def _source(record: Record) -> str:
    """Return the line that one says it is a copy of, else itself; "" without a name."""
    own = fitting(record.get("uuid"), usable_id, "")
    return str(fitting(within(record, _COPY, "messageUuid"), usable_id, own))


def _originals(family: list[Log]) -> dict[str, str]:
    lines = {log.session: _lines_of(log) for log in family}
    owners = Counter(chain.from_iterable(lines.values()))
    began = {log.session: _began(log, lines[log.session], owners) for log in family}
    order = sorted(lines, key=lambda name: (began[name], len(lines[name]), name))

    found: dict[str, str] = {}
    for place, name in enumerate(order[1:], start=1):
        shared = {n: len(lines[n].keys() & lines[name].keys()) for n in order[:place]}
        found[name] = max(shared, key=shared.__getitem__)

    return found


def _began(log: Log, lines: Originals, owners: Mapping[str, int]) -> float:
    """Return when a transcript began, as far as its own lines show it."""
    alone = (line.time for name, line in lines.items() if owners[name] == 1)
    return min(alone, default=-inf) if log.stray is None else log.stray
