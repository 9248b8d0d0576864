"""Verify the database. Read-only: `sessiondb.maintenance.repair` repairs.

All checks read one snapshot, so a concurrent writer cannot look like damage. Only
the comparison of the search index with its content has to take the write lock
(FTS5 offers it as a write), so it comes last.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from sessiondb import codec
from sessiondb.arguments import HasPath, checked, file_of
from sessiondb.engine.sqlite.connection import connect
from sessiondb.engine.sqlite.failures import translate
from sessiondb.errors import BusyError, CodecError
from sessiondb.maintenance.questions import QUESTIONS

SEARCHES = ("part_search", "session_search", "prompt_search")


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong: which check found it, what it is, how often.

    ``repair`` is what `repair` does about it, None if it is beyond repair.
    """

    check: str
    what: str
    count: int
    repair: str | None = None


#: Lines of integrity_check about an index alone, which its table can make again.
_OF_AN_INDEX = re.compile(
    r"missing from index|wrong # of entries in index|non-unique entry in"
)
#: Lines of integrity_check about pages, and not about what is in them.
PAGES = re.compile(r"\*\*\*|[Tt]ree \d+|[Pp]age \d+|[Ff]reelist|malformed|disk image")
_ORPHANS = {
    ("session", "session"): "detach them",
    ("session", "project"): "make the project again",
    ("prompt", "session"): "keep the prompt alone",
    ("prompt", "project"): "keep the prompt alone",
}
_BLOBS = {"blobs whose size is wrong": "measure them again"}

Check = Callable[[sqlite3.Connection], Iterator[Finding]]


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
    with closing(connect(file_of(store), mode="reader")) as connection:
        connection.execute("BEGIN")
        findings = [
            f for name, ask in checks.items() for f in _made(name, ask, connection)
        ]
    with closing(connect(file_of(store))) as connection:
        findings += _made("search index", _search_index, connection)
    if any(
        finding.check == "integrity" and PAGES.search(finding.what)
        for finding in findings
    ):
        # A repair writes, and what it would write next to is not known any more.
        findings = [replace(finding, repair=None) for finding in findings]
    return findings


def _made(name: str, ask: Check, connection: sqlite3.Connection) -> list[Finding]:
    found: list[Finding] = []
    try:
        found.extend(ask(connection))
    except sqlite3.Error as error:
        why = translate(error)
        if isinstance(why, BusyError):
            raise why from error
        found.append(Finding(name, str(error), 1))
    return found


def _integrity(connection: sqlite3.Connection) -> Iterator[Finding]:
    """The pages, the indexes and the constraints of the file, by SQLite itself."""
    for line, number in Counter(integrity_lines(connection)).items():
        action = "build the index again" if _OF_AN_INDEX.search(line) else None
        yield Finding("integrity", line, number, action)


def integrity_lines(connection: sqlite3.Connection) -> list[str]:
    """Return what SQLite finds wrong with the file; ``[]`` for nothing.

    Some damage ends its check, and is the last line then. Raises `BusyError`.
    """
    lines: list[str] = []
    try:
        # It hands out what it found before it stumbles.
        lines.extend(line for (line,) in connection.execute("PRAGMA integrity_check"))
    except sqlite3.DatabaseError as error:
        if isinstance(why := translate(error), BusyError):
            raise why from error
        lines.append(str(error))
    return [line for line in lines if line != "ok"]


def _references(connection: sqlite3.Connection) -> Iterator[Finding]:
    """Rows that refer to what is not there, as a delete without foreign keys leaves them."""
    broken: Counter[tuple[str, str]] = Counter()
    for table, _, parent, _ in connection.execute("PRAGMA foreign_key_check"):
        broken[table, parent] += 1
    for (table, parent), number in broken.items():
        action = (
            None if parent == "blob" else _ORPHANS.get((table, parent), "remove them")
        )
        yield Finding(
            "references", f"rows of {table} without their {parent}", number, action
        )
    yield from _lost_blobs(connection)


def _lost_blobs(connection: sqlite3.Connection) -> Iterator[Finding]:
    """Name each session of which bytes are lost: nothing but a backup has them."""
    for table, column in blob_columns(connection):
        owner = "id" if table == "session" else "session_id"
        sql = (
            f"SELECT {owner}, count(*) FROM {table} WHERE {column} IS NOT NULL "
            f"AND NOT EXISTS (SELECT 1 FROM blob WHERE hash = {column}) GROUP BY 1"
        )
        for session_id, number in connection.execute(sql):
            what = f"values of {table}.{column} of session {session_id} are lost"
            yield Finding("lost", what, number)


def _cycles(connection: sqlite3.Connection) -> Iterator[Finding]:
    """Parents that lead back to where they began: what walks up would never end."""
    if looped := session_cycles(connection):
        yield Finding(
            "cycles", "sessions that are their own ancestors", len(looped), "detach one"
        )
    if looped_messages := message_cycles(connection):
        what = "messages that are their own ancestors"
        action = "put them behind the message before them"
        yield Finding("cycles", what, len(looped_messages), action)


def session_cycles(connection: sqlite3.Connection) -> list[str]:
    """Return one session of each circle of parents, the oldest."""
    rows = connection.execute(
        "SELECT id, parent_id, time_created FROM session WHERE parent_id IS NOT NULL"
    ).fetchall()
    above = {name: parent for name, parent, _ in rows}
    age = {name: (time, name) for name, _, time in rows}
    return [min(circle, key=age.__getitem__) for circle in circles(above)]


def message_cycles(connection: sqlite3.Connection) -> list[tuple[str, int]]:
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


def _payload(connection: sqlite3.Connection) -> Iterator[Finding]:
    """Name each session with ``data`` that cannot be decoded; what is in a blob has a hash."""
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


def _blobs(connection: sqlite3.Connection) -> Iterator[Finding]:
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
        for table, column in blob_columns(connection)
    )
    sql = f"SELECT count(*) FROM blob WHERE hash NOT IN ({used})"
    if number := connection.execute(sql).fetchone()[0]:
        yield Finding("blobs", "blobs that nothing refers to", number, "remove them")


def blob_columns(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    """Return the (table, column) that refer to blobs, as the file itself says."""
    return connection.execute(
        'SELECT m.name, f."from" FROM sqlite_schema AS m '
        "JOIN pragma_foreign_key_list(m.name) AS f WHERE m.type = 'table' AND f.\"table\" = 'blob'"
    ).fetchall()


def _asker(name: str) -> Check:
    def ask(connection: sqlite3.Connection) -> Iterator[Finding]:
        for what, sql, action in QUESTIONS[name]:
            if number := connection.execute(sql).fetchone()[0]:
                yield Finding(name, what, number, action)

    return ask


def _search_index(connection: sqlite3.Connection) -> Iterator[Finding]:
    for table in SEARCHES:
        try:
            # Rank 1: against the content, not only against itself.
            connection.execute(
                f"INSERT INTO {table} ({table}, rank) VALUES ('integrity-check', 1)"
            )
        except sqlite3.DatabaseError as error:
            if isinstance(translate(error), BusyError):
                raise
            what = f"{table} is not what its content says"
            yield Finding("search index", what, 1, "rebuild it")
