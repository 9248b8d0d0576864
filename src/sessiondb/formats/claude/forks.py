"""Recognises copies: a fork has the lines of its original, with their uuids.

Nothing in it says where they come from. Only transcripts that begin with the same line
are read for it, which most stores do not have. The original is the older one with the
most lines in common; a fork is younger than its lines, so that a line without a uuid,
which is never copied, tells when it began.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from sessiondb.errors import SourceError
from sessiondb.formats.claude.logs import Log
from sessiondb.formats.kit.fields import as_text
from sessiondb.formats.kit.json import load_object
from sessiondb.formats.kit.lines import opened
from sessiondb.formats.kit.texts import time_of_text

#: The uuids of a transcript with their times, in order.
Uuids = dict[str, int]


def recognise(logs: Iterable[Log]) -> dict[str, str]:
    """Return the originals of the forks among *logs*, by session."""
    alike: dict[str, list[Log]] = {}

    for log in logs:
        first = as_text(log.first.get("uuid"))
        if first and log.relation is None:
            alike.setdefault(first, []).append(log)

    found: dict[str, str] = {}
    for family in alike.values():
        if len(family) > 1:
            found |= _originals(family)

    return found


def uuids_of(log: Log) -> Uuids:
    """Return the uuids of a transcript; none if it cannot be read."""
    found: Uuids = {}
    try:
        with opened(log.path) as lines:
            for _, _, record in lines.records(load_object):
                own = as_text(record.get("uuid"))
                if own is not None:
                    found[own] = time_of_text(record.get("timestamp")) or 0
    except SourceError:
        return {}

    return found


def _originals(family: list[Log]) -> dict[str, str]:
    lines = {log.session: uuids_of(log) for log in family}
    began = {log.session: _began(log, lines) for log in family}
    order = sorted(lines, key=lambda name: (began[name], len(lines[name]), name))

    found: dict[str, str] = {}

    for place, name in enumerate(order):
        older = order[:place]
        if older:
            shared = {n: len(lines[n].keys() & lines[name].keys()) for n in older}
            found[name] = max(older, key=shared.__getitem__)

    return found


def _began(log: Log, lines: dict[str, Uuids]) -> float:
    """Return when a transcript began, as far as its own lines tell."""
    if log.stray is not None:
        return log.stray
    others = [found for name, found in lines.items() if name != log.session]
    own = [
        time
        for uuid, time in lines[log.session].items()
        if not any(uuid in found for found in others)
    ]
    return min(own, default=-inf)
