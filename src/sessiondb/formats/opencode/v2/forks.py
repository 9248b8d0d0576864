"""The forks in a store of OpenCode 2: marked, or made by 1.x and only alike."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from sessiondb.formats.kit.fields import as_object, fitting
from sessiondb.formats.kit.json import load_object, usable_id
from sessiondb.formats.opencode.forks import Fork, recognise
from sessiondb.formats.opencode.raw import Head, Records
from sessiondb.formats.opencode.v2.sqlite import SQLiteV2

#: The number of forks of forks that are followed to the origin of a message.
_DEPTH = 500


def forks_in(records: SQLiteV2, heads: Collection[Head]) -> dict[str, Fork]:
    """Return the forks among *heads* by session id, with their originals."""
    marked = {}
    for name, original, boundary in records.fork_marks():
        copies = dict(records.copied_messages(name, original, boundary))
        cut = list(copies.values())[-1] if copies else _boundary_message(boundary)
        marked[name] = Fork(original, cut, copies, {})

    forks = recognise(records, heads, marked, _common_content)
    return {
        name: replace(fork, roots=_first_ids(name, forks))
        for name, fork in forks.items()
    }


def _boundary_message(boundary: Any) -> str | None:
    """Return the last message that a fork copied, by its *boundary*."""
    limit = as_object(boundary)
    if limit.get("type") == "before":
        return None
    cut: str | None = fitting(limit.get("messageID"), usable_id)
    return cut


def _common_content(records: Records, session: str, message: str) -> list[Any]:
    """Return what a copy of a message has in common with it.

    Raises `OddRecordError`.
    """
    record = load_object(records.read_message(session, message))
    # The upgrade from 1.x takes it from the row, which a copy of 1.x wrote again.
    as_object(record.get("time")).pop("completed", None)
    return [record]


def _first_ids(session: str, forks: dict[str, Fork]) -> dict[str, str]:
    """Return the first id of each copied message, followed from fork to fork."""
    roots = {}
    for copy in forks[session].copies:
        place, name = session, copy
        for _ in range(_DEPTH):
            fork = forks.get(place)
            if fork is None or name not in fork.copies:
                break
            place, name = fork.original, fork.copies[name]
        roots[copy] = name

    return roots
