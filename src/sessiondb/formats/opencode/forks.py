"""Recognises forks that have no pointer to their original.

A fork is a new root session that begins with copies: messages with the content of the
original's, under new ids. Its original is the older session that shares the longest
beginning with it. An export that was imported under new ids is such a copy, too: it
keeps the creation time of its original, and was stored after it.

Only sessions whose first messages were created in the same millisecond are read for it,
and only as far as their times agree: most stores have no such sessions, and of those
almost no message is read twice.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from hashlib import blake2b
from typing import Any, TypeAlias

from sessiondb.dataclass import dataclass
from sessiondb.formats.kit.json import OddRecordError
from sessiondb.formats.opencode.raw import Head, Opened, Records
from sessiondb.patterns import late_pattern

_TITLE = late_pattern(r"(?P<base>.*?)(?: \(fork #(?P<number>\d{1,9})\))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Fork:
    """The origin of a session that is a fork."""

    #: The id of the session that it copied.
    original: str
    #: The last message of the original that was copied; None is unknown.
    cut: str | None
    #: The ids that the copied messages have in the original, in order.
    copies: dict[str, str]
    #: The ids that they have in the session that they were written in, in order.
    roots: dict[str, str]


def first_id(fork: Fork | None, message: str) -> str:
    """Return the first id of a message, in a session that may be a fork."""
    return message if fork is None else fork.roots.get(message, message)


#: Returns the common content of a message and its copies: (records, session id, id).
#: Raises `OddRecordError`.
CommonContent: TypeAlias = "Callable[[Records, str, str], list[Any]]"


class _ComparedSession:
    """The messages of one session, read only as far as they are compared."""

    def __init__(self, records: Records, head: Head, common: CommonContent) -> None:
        self._records = records
        self._common = common
        self.head = head
        self._digests: dict[int, object] = {}

    @cached_property
    def messages(self) -> list[Opened]:
        return self._records.list_messages(self.head.id)

    def digest_at(self, index: int) -> object:
        """Return a digest of what copies have in common with the message at *index*."""
        if index not in self._digests:
            message = self.messages[index].id
            try:
                common = self._common(self._records, self.head.id, message)
            except OddRecordError:
                self._digests[index] = object()  # unknown: equal to no other
            else:
                text = json.dumps(common, sort_keys=True)
                digest = blake2b(text.encode(), digest_size=16).digest()
                self._digests[index] = digest
        return self._digests[index]


def recognise(
    records: Records,
    heads: Iterable[Head],
    marked: Mapping[str, Fork],
    common: CommonContent,
) -> dict[str, Fork]:
    """Return the forks among *heads* by session id, with their originals.

    Those that are *marked* are among them, and their originals are not searched again.
    """
    forks = dict(marked)
    for group in _heads_by_first_time(records, heads):
        beginnings: dict[object, list[_ComparedSession]] = {}
        for head in group:
            session = _ComparedSession(records, head, common)
            first = session.digest_at(0) if session.messages else None
            beginnings.setdefault(first, []).append(session)

        for sessions in beginnings.values():
            _recognise_among(sessions, forks)

    return forks


def _heads_by_first_time(records: Records, heads: Iterable[Head]) -> list[list[Head]]:
    """Return the sessions that begin at the same time, the oldest first.

    Sessions that were created at the same time stay in the order of *heads*.
    """
    first_times = records.first_times()
    groups: dict[int, list[Head]] = {}
    for head in sorted(heads, key=lambda head: head.time_created):
        if head.id in first_times:
            groups.setdefault(first_times[head.id], []).append(head)
    return [group for group in groups.values() if len(group) > 1]


def _recognise_among(sessions: list[_ComparedSession], forks: dict[str, Fork]) -> None:
    for index, session in enumerate(sessions):
        is_child = session.head.parent is not None
        if is_child or session.head.id in forks:
            continue

        original, length = _find_original(session, sessions[:index])
        if original is not None:
            forks[session.head.id] = _make_fork(session, original, length, forks)


def _find_original(
    session: _ComparedSession, older: Iterable[_ComparedSession]
) -> tuple[_ComparedSession | None, int]:
    """Return the session that *session* begins like, and the number of its copies."""
    best: tuple[int, int] = (0, 0)
    original = None

    for other in older:
        limit = _count_equal_times(session, other)
        # Its contents cannot agree further than its times.
        if limit < best[0]:
            continue

        length = 0
        while length < limit and session.digest_at(length) == other.digest_at(length):
            length += 1
        rank = (length, _title_rank(session.head.title, other.head.title))
        if length and rank > best:
            best, original = rank, other

    return original, best[0]


def _count_equal_times(session: _ComparedSession, other: _ComparedSession) -> int:
    """Return the number of messages before the first that differs in its time."""
    count = 0
    for message, counterpart in zip(session.messages, other.messages, strict=False):
        if message.time != counterpart.time:
            break
        count += 1
    return count


def _title_rank(title: str, other: str) -> int:
    """Rank how well *other* explains *title*: OpenCode counts forks up in the title."""
    base, number = _split_title(title)
    base_of_other, number_of_other = _split_title(other)
    if not number or base_of_other != base:
        return 0
    return 2 if number_of_other == number - 1 else 1


def _split_title(title: str) -> tuple[str, int]:
    """Split a title into that of the first original and the number of a fork, or 0."""
    match = _TITLE.fullmatch(title)
    assert match is not None, "any title matches"
    return match["base"], int(match["number"] or 0)


def _make_fork(
    session: _ComparedSession,
    original: _ComparedSession,
    length: int,
    forks: dict[str, Fork],
) -> Fork:
    # The original may be a fork itself, recognised before: it is older.
    older = forks.get(original.head.id)
    copies = {}
    roots = {}
    for copy, source in zip(session.messages[:length], original.messages, strict=False):
        copies[copy.id] = source.id
        roots[copy.id] = first_id(older, source.id)

    cut = original.messages[length - 1].id
    return Fork(original.head.id, cut, copies, roots)
