"""Recognises copies: a fork has the lines of its original, with their uuids.

Nothing in it says where they come from. Only transcripts that begin with the same line
are read for it, which most stores do not have. The original is the older one with the
most lines in common; a fork is younger than its lines, so that a line without a uuid,
which is never copied, dates its beginning.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import takewhile
from math import inf
from typing import Any

from sessiondb.errors import SourceError
from sessiondb.formats.claude.logs import Log
from sessiondb.formats.kit.fields import as_text, clean_name, fitting, within
from sessiondb.formats.kit.json import load_object
from sessiondb.formats.kit.lines import opened
from sessiondb.formats.kit.texts import time_of_text

Record = dict[str, Any]
#: The key of a line that is a copy.
_COPY = "forkedFrom"
#: The uuids of a transcript with their times, in order.
Uuids = dict[str, int]


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


def uuids_of(log: Log) -> Uuids:
    """Return the uuids of a transcript; none if it cannot be read."""
    return {
        record["uuid"]: time_of_text(record.get("timestamp")) or 0
        for record in _named(log)
    }


def originals(log: Log, logs: Mapping[str, Log]) -> list[dict[str, Any]]:
    """Return the lines of the forks that *log* is a fork of, and what each copies.

    They are by their uuids, for one fork after the other: a line names the one that it
    was copied from, which may be a copy itself. Forks that name nothing keep the uuids.
    """
    forks = takewhile(lambda above: _COPY in above.first, _ancestors(log, logs))
    return [
        {r["uuid"]: within(r, _COPY, "messageUuid") for r in _named(above)}
        for above in forks
    ]


def times_before(log: Log, logs: Mapping[str, Log]) -> Uuids:
    """Return when the lines of *log* that are copies were said, by their uuids.

    Releases of 1.x copied a session to a transcript of its own whenever they resumed
    it, and gave all lines that they copied the time of the copy.
    """
    found: Uuids = {}
    for above in _ancestors(log, logs):
        found |= uuids_of(above)
    return found


def _ancestors(log: Log, logs: Mapping[str, Log]) -> Iterator[Log]:
    """Yield the originals of a fork among *logs*, the nearest one first."""
    seen: set[str] = set()
    above = log.above(logs)
    while above is not None and above.session not in seen:
        yield above
        seen.add(above.session)
        above = above.above(logs)


def _named(log: Log) -> Iterator[Record]:
    """Yield the lines of a transcript that have a uuid, as far as it can be read."""
    with suppress(SourceError), opened(log.path) as lines:
        for _, _, record in lines.records(load_object):
            if as_text(record.get("uuid")) is not None:
                yield record


def _originals(family: list[Log]) -> dict[str, str]:
    lines = {log.session: uuids_of(log) for log in family}
    began = {log.session: _began(log, lines) for log in family}
    order = sorted(lines, key=lambda name: (began[name], len(lines[name]), name))

    found: dict[str, str] = {}
    for place, name in enumerate(order[1:], start=1):
        shared = {n: len(lines[n].keys() & lines[name].keys()) for n in order[:place]}
        found[name] = max(shared, key=shared.__getitem__)

    return found


def _began(log: Log, lines: dict[str, Uuids]) -> float:
    """Return when a transcript began, as far as its own lines show it."""
    if log.stray is not None:
        return log.stray

    own = lines[log.session]
    others = [found for found in lines.values() if found is not own]
    alone = own.keys() - set().union(*others)
    return min(map(own.__getitem__, alone), default=-inf)
