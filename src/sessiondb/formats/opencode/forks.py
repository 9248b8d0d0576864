"""Recognises forks that have no pointer to their original.

A fork is a new root session that begins with copies: what its messages have in common
with the original's is equal, under new ids. Its original is the older session that
shares the longest beginning with it. Only sessions whose first messages were created in
the same millisecond are read for it, and only as far as their times agree: most stores
have no such sessions, and of those almost no message is read twice.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from itertools import takewhile
from typing import Any, TypeAlias

from sessiondb.formats.kit.json import OddRecordError
from sessiondb.formats.opencode.raw import Head, Opened, Records

_FORKED = re.compile(r"(?P<title>.+) \(fork #(?P<number>\d{1,9})\)", re.DOTALL)


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
        self._digests: list[bytes | None] = []

    @cached_property
    def messages(self) -> list[Opened]:
        return self._records.messages(self.head.id)

    def digest(self, index: int) -> bytes | None:
        """Return what a copy has in common with message *index*.

        None if that is unknown.
        """
        if index >= len(self.messages):
            return None
        while len(self._digests) <= index:
            self._digests.append(self._digest(self.messages[len(self._digests)].id))
        return self._digests[index]

    def _digest(self, message: str) -> bytes | None:
        try:
            common = self._shared(self._records, self.head.id, message)
        except OddRecordError:
            return None
        text = json.dumps(common, sort_keys=True)
        return blake2b(text.encode(), digest_size=16).digest()

    def is_older(self, other: _Contents) -> bool:
        return self.head.time_created < other.head.time_created


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
        beginnings: dict[bytes | None, list[_Contents]] = {}
        for session in (_Contents(records, head, shared) for head in alike):
            beginnings.setdefault(session.digest(0), []).append(session)
        for sessions in beginnings.values():
            _recognise_among(sessions, forks)

    return forks


def _alike(records: Records, heads: Iterable[Head]) -> Iterator[list[Head]]:
    """Yield the sessions that begin at the same time, the oldest first."""
    first = records.first_times()
    together: dict[int, list[Head]] = {}
    begun = (head for head in heads if head.id in first)
    for head in sorted(begun, key=lambda head: (head.time_created, head.id)):
        together.setdefault(first[head.id], []).append(head)
    yield from (alike for alike in together.values() if len(alike) > 1)


def _recognise_among(sessions: list[_Contents], forks: dict[str, Fork]) -> None:
    for index, session in enumerate(sessions):
        is_child = session.head.parent is not None
        if is_child or session.head.id in forks:
            continue
        older = [other for other in sessions[:index] if other.is_older(session)]
        original, length = _original(session, older)
        if original is not None:
            forks[session.head.id] = _fork(session, original, length, forks)


def _original(
    session: _Contents, older: list[_Contents]
) -> tuple[_Contents | None, int]:
    """Return the session that *session* begins like, and the number of its copies."""
    best: tuple[int, int] = (0, 0)
    original = None

    for other in older:
        limit = _same_times(session, other)
        # Its contents cannot agree further than its times.
        if limit < best[0]:
            continue
        length = _same_contents(session, other, limit)
        rank = (length, _kinship(session.head.title, other.head.title))
        if length and rank > best:
            best, original = rank, other

    return original, best[0]


def _same_times(a: _Contents, b: _Contents) -> int:
    pairs = zip(a.messages, b.messages, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0].time == pair[1].time, pairs))


def _same_contents(a: _Contents, b: _Contents, limit: int) -> int:
    for index in range(limit):
        digest = a.digest(index)
        if digest is None or digest != b.digest(index):
            return index
    return limit


def _kinship(title: str, other: str) -> int:
    """Rank how well *other* explains *title*: OpenCode counts forks up in the title."""
    match = _FORKED.fullmatch(title)
    if match is None:
        return 0

    base, number = match["title"], int(match["number"])
    if other == _forked(base, number - 1):
        return 2
    return int(_base_of(other) == base)


def _forked(base: str, number: int) -> str:
    return f"{base} (fork #{number})" if number else base


def _base_of(title: str) -> str:
    match = _FORKED.fullmatch(title)
    return match["title"] if match else title


def _fork(
    session: _Contents, original: _Contents, length: int, forks: dict[str, Fork]
) -> Fork:
    pairs = zip(session.messages[:length], original.messages, strict=False)
    copies = {copy.id: source.id for copy, source in pairs}

    # The original may be a fork itself, recognised before: it is older.
    older = forks.get(original.head.id)
    roots = {copy: first_id(older, source) for copy, source in copies.items()}
    return Fork(original.head.id, next(reversed(copies.values())), copies, roots)
