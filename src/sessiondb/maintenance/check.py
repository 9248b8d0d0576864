"""Verify the database. Read-only: `sessiondb.maintenance.repair` repairs.

All checks read one snapshot, so a concurrent writer cannot look like damage. Only
the comparison of the search index with its content takes the write lock, so it
comes last.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from sessiondb import codec
from sessiondb.arguments import HasPath, checked, file_of
from sessiondb.engine.base import Connection
from sessiondb.engine.default import ENGINE
from sessiondb.errors import BusyError, CodecError
from sessiondb.maintenance.questions import QUESTIONS


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong: which check found it, what it is, how often.

    ``repair`` is what `repair` does about it, None if it is beyond repair.
    """

    check: str
    what: str
    count: int
    repair: str | None = None


_ORPHANS = {
    ("session", "session"): "detach them",
    ("session", "project"): "make the project again",
    ("prompt", "session"): "keep the prompt alone",
    ("prompt", "project"): "keep the prompt alone",
}
_BLOBS = {"blobs whose size is wrong": "measure them again"}

Check = Callable[[Connection], Iterator[Finding]]


@checked
def check(store: HasPath) -> list[Finding]:
    """Return all that is wrong with the database of *store*; ``[]`` when all is well.

    Damage that keeps one check from being made is a finding of that check.
    Raises `BusyError` and `StorageError`.
    """
    checks: dict[str, Check] = {
        "integrity": _integrity,
        "references": _references,
        "blobs": _blobs,
        "payload": _payload,
        "cycles": _cycles,
        **{name: _asker(name) for name in QUESTIONS},
    }
    with closing(ENGINE.connect(file_of(store), mode="reader")) as connection:
        connection.execute(ENGINE.begin_read)
        findings = [
            f for name, ask in checks.items() for f in _made(name, ask, connection)
        ]

    with closing(ENGINE.connect(file_of(store))) as connection:
        findings += _made("search index", _search_index, connection)

    # A repair writes, and what it would write next to is not known any more.
    if any(map(_is_of_pages, findings)):
        findings = [replace(finding, repair=None) for finding in findings]

    return findings


def _is_of_pages(finding: Finding) -> bool:
    return finding.check == "integrity" and ENGINE.upkeep.is_of_pages(finding.what)


def _made(name: str, ask: Check, connection: Connection) -> list[Finding]:
    found: list[Finding] = []
    try:
        found.extend(ask(connection))
    except ENGINE.Error as error:
        why = ENGINE.translate(error)
        # A lock says nothing about the database; anything else is damage.
        if isinstance(why, BusyError):
            raise why from error
        found.append(Finding(name, str(error), 1))

    return found


def _integrity(connection: Connection) -> Iterator[Finding]:
    """The storage, the indexes and the constraints, by the engine itself."""
    engine = ENGINE.upkeep
    for line, number in Counter(engine.damage(connection)).items():
        action = "build the index again" if engine.is_of_an_index(line) else None
        yield Finding("integrity", line, number, action)


def _references(connection: Connection) -> Iterator[Finding]:
    """Rows whose reference is broken, as deletes without foreign keys leave them."""
    broken = Counter(ENGINE.upkeep.broken_references(connection))
    for (table, parent), number in broken.items():
        # Bytes that are lost cannot be made again; `_lost_blobs` names whose they are.
        is_lost = parent == "blob"
        action = None if is_lost else _ORPHANS.get((table, parent), "remove them")
        yield Finding(
            "references", f"rows of {table} without their {parent}", number, action
        )

    yield from _lost_blobs(connection)


def _lost_blobs(connection: Connection) -> Iterator[Finding]:
    """Name each session of which bytes are lost: nothing but a backup has them."""
    for table, column in ENGINE.upkeep.references_to(connection, "blob"):
        owner = "id" if table == "session" else "session_id"
        sql = (
            f"SELECT {owner}, count(*) FROM {table} WHERE {column} IS NOT NULL "
            f"AND NOT EXISTS (SELECT 1 FROM blob WHERE hash = {column}) GROUP BY 1"
        )
        for session_id, number in connection.execute(sql):
            what = f"values of {table}.{column} of session {session_id} are lost"
            yield Finding("lost", what, number)


def _cycles(connection: Connection) -> Iterator[Finding]:
    """Parents that lead back to where they began: what walks up would never end."""
    if looped := session_cycles(connection):
        yield Finding(
            "cycles", "sessions that are their own ancestors", len(looped), "detach one"
        )
    if looped_messages := message_cycles(connection):
        what = "messages that are their own ancestors"
        action = "put them behind the message before them"
        yield Finding("cycles", what, len(looped_messages), action)


def session_cycles(connection: Connection) -> list[str]:
    """Return one session of each circle of parents, the oldest."""
    rows = connection.execute(
        "SELECT id, parent_id, time_created FROM session WHERE parent_id IS NOT NULL"
    ).fetchall()
    above = {name: parent for name, parent, _ in rows}
    age = {name: (time, name) for name, _, time in rows}
    return [min(circle, key=age.__getitem__) for circle in circles(above)]


def message_cycles(connection: Connection) -> list[tuple[str, int]]:
    """Return (session, seq) of one message of each circle of parents, the first."""
    found: list[tuple[str, int]] = []
    # A parent with a smaller seq cannot lead back.
    sessions = connection.execute(
        "SELECT DISTINCT session_id FROM message WHERE parent_seq > seq"
    ).fetchall()

    for (session_id,) in sessions:
        rows = connection.execute(
            "SELECT seq, parent_seq FROM message WHERE session_id = ?", (session_id,)
        )
        found += [
            (session_id, min(circle)) for circle in circles(dict(rows.fetchall()))
        ]

    return found


def circles(above: dict[Any, Any]) -> list[list[Any]]:
    """Return the circles of a map from each item to the one above it, None for none."""
    found: list[list[Any]] = []
    done: set[Any] = set()

    for start in above:
        path: dict[Any, int] = {}
        item = start
        while item in above and item not in done and item not in path:
            path[item] = len(path)
            item = above[item]
        if item in path:
            found.append(list(path)[path[item] :])
        done |= path.keys()

    return found


def _payload(connection: Connection) -> Iterator[Finding]:
    """Name each session with ``data`` that cannot be decoded.

    What is in a blob has a hash.
    """
    for table, owner in (
        ("session", "id"),
        ("message", "session_id"),
        ("part", "session_id"),
    ):
        broken: Counter[str] = Counter()
        rows = connection.execute(
            f"SELECT {owner}, data FROM {table} WHERE data IS NOT NULL"
        )
        for session_id, data in rows:
            try:
                codec.unpack(data)
            except (CodecError, TypeError):
                broken[session_id] += 1
        for session_id, number in broken.items():
            what = f"values of {table}.data of session {session_id} cannot be decoded"
            yield Finding("payload", what, number)


def _blobs(connection: Connection) -> Iterator[Finding]:
    wrong = Counter[str]()
    for name, size, data in connection.execute("SELECT hash, size, data FROM blob"):
        if hashlib.sha256(data).hexdigest() != name:
            wrong["blobs whose content is not what their hash says"] += 1
        elif len(data) != size:
            wrong["blobs whose size is wrong"] += 1

    for what, number in wrong.items():
        yield Finding("blobs", what, number, _BLOBS.get(what))

    used = " UNION ALL ".join(
        f"SELECT {column} FROM {table} WHERE {column} IS NOT NULL"
        for table, column in ENGINE.upkeep.references_to(connection, "blob")
    )
    sql = f"SELECT count(*) FROM blob WHERE hash NOT IN ({used})"
    if number := connection.execute(sql).fetchone()[0]:
        yield Finding("blobs", "blobs that nothing refers to", number, "remove them")


def _asker(name: str) -> Check:
    def ask(connection: Connection) -> Iterator[Finding]:
        for what, sql, action in QUESTIONS[name]:
            if number := connection.execute(sql).fetchone()[0]:
                yield Finding(name, what, number, action)

    return ask


def _search_index(connection: Connection) -> Iterator[Finding]:
    for name in ENGINE.search.damaged(connection):
        what = f"{name} is not what its content says"
        yield Finding("search index", what, 1, "rebuild it")
