"""The places of lines in a transcript with several sessions.

Before 2.0 the lines of subagents were in the transcript itself. Each subagent is a
session here, which keeps the numbers of its records among all of the transcript, so
that all of them can be written in their order again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from heapq import merge
from itertools import chain, islice, repeat
from operator import itemgetter
from sys import maxsize
from typing import Any

from sessiondb.formats.kit.fields import as_list

Record = dict[str, Any]
#: The key of a session's data with its places.
KEY = "places"


def add_number(runs: list[list[int]], number: int) -> None:
    """Add the next of ascending numbers to *runs*: first ones and lengths."""
    if runs and number == sum(runs[-1]):
        runs[-1][1] += 1
    else:
        runs.append([number, 1])


def is_inside(data: Mapping[str, Any]) -> bool:
    """Return whether a session with this *data* was in the transcript of its parent."""
    return KEY in data


def placed(
    data: Mapping[str, Any], records: Iterable[Record]
) -> Iterator[tuple[int, Record]]:
    """Yield the records of a subagent with their places; new ones come last."""
    known = (range(first, first + length) for first, length in as_list(data[KEY]))
    places = chain(chain.from_iterable(known), repeat(maxsize))
    return zip(places, records, strict=False)


def merged(
    records: Iterable[Record], inside: Iterable[Iterator[tuple[int, Record]]]
) -> Iterator[Record]:
    """Yield the records of a transcript with those *inside* of it in their places."""
    own = iter(records)
    count = 0
    for place, record in merge(*inside, key=itemgetter(0)):
        yield from islice(own, max(place - count, 0))
        yield record
        count = place + 1

    yield from own
