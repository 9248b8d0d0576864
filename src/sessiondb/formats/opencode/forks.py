"""Recognises forks that have no pointer to their original.

A fork is a new root session that begins with copies: what its messages have in common
with the original's is equal, under new ids. Its original is the older session that
shares the longest beginning with it. An export that was imported under new ids is such
a copy, too: it keeps the creation time of its original, and was stored after it.

Only sessions whose first messages were created in the same millisecond are read for it,
and only as far as their times agree: most stores have no such sessions, and of those
almost no message is read twice.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from itertools import islice, takewhile
from operator import attrgetter
from typing import Any, TypeAlias

from sessiondb.formats.kit.json import OddRecordError
from sessiondb.formats.opencode.raw import Head, Opened, Records

_TITLE = re.compile(r"(?P<base>.*?)(?: \(fork #(?P<number>\d{1,9})\))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Fork:
    """Where a session was forked from.

    ``cut`` is the last message of the original that was copied, None is unknown.
    ``copies`` maps the id of each copied message to the id it has in the
    original, ``roots`` to the one it has where it was written first; both in order.
    """

    original: str
    cut: str | None
    copies: dict[str, str]
    roots: dict[str, str]


def first_id(fork: Fork | None, message: str) -> str:
    """Return the first id of a message, in a session that may be a fork."""
    return message if fork is None else fork.roots.get(message, message)


#: Returns the common content of a message and its copies: (records, session id, id).
#: Raises `OddRecordError`.
Shared: TypeAlias = "Callable[[Records, str, str], list[Any]]"


class _Contents:
    """The messages of one session, read only as far as they are compared."""

    def __init__(self, records: Records, head: Head, shared: Shared) -> None:
        self._records = records
        self._shared = shared
        self.head = head
        self._digests: list[object] = []

    @cached_property
    def messages(self) -> list[Opened]:
        return self._records.messages(self.head.id)

    def times(self) -> Iterator[int]:
        """Return the times of the messages."""
        return map(attrgetter("time"), self.messages)

    def digests(self) -> Iterator[object]:
        """Yield what a copy has in common with each message, read when it is needed."""
        for index, message in enumerate(self.messages):
            if index == len(self._digests):
                self._digests.append(self._digest(message.id))
            yield self._digests[index]

    def _digest(self, message: str) -> object:
        try:
            common = self._shared(self._records, self.head.id, message)
        except OddRecordError:
            return object()  # unknown: equal to no other

        text = json.dumps(common, sort_keys=True)
        return blake2b(text.encode(), digest_size=16).digest()


def recognise(
    records: Records,
    heads: Iterable[Head],
    known: Mapping[str, Fork],
    shared: Shared,
) -> dict[str, Fork]:
    """Return the forks among *heads* by session id, with their originals.

    Those *known* are among them, and their originals are not searched again.
    """
    forks = dict(known)
    for alike in _alike(records, heads):
        beginnings: dict[object, list[_Contents]] = {}
        for head in alike:
            session = _Contents(records, head, shared)
            first = next(session.digests(), None)
            beginnings.setdefault(first, []).append(session)

        for sessions in beginnings.values():
            _recognise_among(sessions, forks)

    return forks


def _alike(records: Records, heads: Iterable[Head]) -> Iterator[list[Head]]:
    """Yield the sessions that begin at the same time, the oldest first.

    Sessions that were created at the same time stay in the order of *heads*.
    """
    first = records.first_times()
    together: dict[int, list[Head]] = {}
    begun = (head for head in heads if head.id in first)
    for head in sorted(begun, key=attrgetter("time_created")):
        together.setdefault(first[head.id], []).append(head)
    yield from (alike for alike in together.values() if len(alike) > 1)


def _recognise_among(sessions: list[_Contents], forks: dict[str, Fork]) -> None:
    for index, session in enumerate(sessions):
        is_child = session.head.parent is not None
        if is_child or session.head.id in forks:
            continue

        original, length = _original(session, sessions[:index])
        if original is not None:
            forks[session.head.id] = _fork(session, original, length, forks)


def _original(
    session: _Contents, older: Iterable[_Contents]
) -> tuple[_Contents | None, int]:
    """Return the session that *session* begins like, and the number of its copies."""
    best: tuple[int, int] = (0, 0)
    original = None

    for other in older:
        limit = _agreeing(session.times(), other.times())
        # Its contents cannot agree further than its times.
        if limit < best[0]:
            continue

        length = _agreeing(islice(session.digests(), limit), other.digests())
        rank = (length, _kinship(session.head.title, other.head.title))
        if length and rank > best:
            best, original = rank, other

    return original, best[0]


def _agreeing(a: Iterable[object], b: Iterable[object]) -> int:
    """Return how many items are equal before the first difference."""
    pairs = zip(a, b, strict=False)
    return len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))


def _kinship(title: str, other: str) -> int:
    """Rank how well *other* explains *title*: OpenCode counts forks up in the title."""
    base, number = _counted(title)
    base_of_other, number_of_other = _counted(other)
    if not number or base_of_other != base:
        return 0
    return 1 + (number_of_other == number - 1)


def _counted(title: str) -> tuple[str, int]:
    """Split a title into that of the first original and the number of a fork, or 0."""
    match = _TITLE.fullmatch(title)
    assert match is not None, "any title matches"
    return match["base"], int(match["number"] or 0)


def _fork(
    session: _Contents, original: _Contents, length: int, forks: dict[str, Fork]
) -> Fork:
    pairs = zip(session.messages[:length], original.messages, strict=False)
    copies = {copy.id: source.id for copy, source in pairs}

    # The original may be a fork itself, recognised before: it is older.
    older = forks.get(original.head.id)
    roots = {copy: first_id(older, source) for copy, source in copies.items()}
    return Fork(original.head.id, next(reversed(copies.values())), copies, roots)
