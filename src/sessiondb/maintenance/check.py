"""Is everything as it must be? Nothing is mended here.

All is asked in one snapshot, so a writer that goes on meanwhile looks like
nothing. Only the comparison of the search index with its content has to take
the write lock (FTS5 offers it as a write), so it comes last.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from sessiondb.engine.connection import connect
from sessiondb.engine.failures import translate
from sessiondb.errors import BusyError
from sessiondb.maintenance.questions import QUESTIONS

SEARCHES = ("part_search", "session_search", "prompt_search")


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong: which check found it, what it is, how often."""

    check: str
    what: str
    count: int


class HasPath(Protocol):
    """An opened store, of either façade."""

    @property
    def path(self) -> Path:
        """The database file."""


Check = Callable[[sqlite3.Connection], Iterator[Finding]]


def check(store: HasPath) -> list[Finding]:
    """Return all that is wrong with the database of *store*; ``[]`` when all is well.

    Damage that keeps one check from being made is a finding of that check.
    Raises `BusyError` and `StorageError`.
    """
    checks: dict[str, Check] = {
        "integrity": _integrity,
        "references": _references,
        "blobs": _blobs,
        **{name: _asker(name) for name in QUESTIONS},
    }
    with closing(connect(store.path, mode="reader")) as connection:
        connection.execute("BEGIN")
        findings = [f for name, ask in checks.items() for f in _made(name, ask, connection)]
    with closing(connect(store.path)) as connection:
        return findings + _made("search index", _search_index, connection)


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
    lines = Counter(line for (line,) in connection.execute("PRAGMA integrity_check"))
    del lines["ok"]
    yield from (Finding("integrity", line, number) for line, number in lines.items())


def _references(connection: sqlite3.Connection) -> Iterator[Finding]:
    """Rows that refer to what is not there, as a delete without foreign keys leaves them."""
    broken: Counter[tuple[str, str]] = Counter()
    for table, _, parent, _ in connection.execute("PRAGMA foreign_key_check"):
        broken[table, parent] += 1
    for (table, parent), number in broken.items():
        yield Finding("references", f"rows of {table} without their {parent}", number)


def _blobs(connection: sqlite3.Connection) -> Iterator[Finding]:
    wrong = Counter[str]()
    for name, size, data in connection.execute("SELECT hash, size, data FROM blob"):
        if hashlib.sha256(data).hexdigest() != name:
            wrong["blobs whose content is not what their hash says"] += 1
        elif len(data) != size:
            wrong["blobs whose size is wrong"] += 1
    yield from (Finding("blobs", what, number) for what, number in wrong.items())
    used = " UNION ALL ".join(
        f"SELECT {column} FROM {table} WHERE {column} IS NOT NULL"
        for table, column in _blob_columns(connection)
    )
    sql = f"SELECT count(*) FROM blob WHERE hash NOT IN ({used})"
    if number := connection.execute(sql).fetchone()[0]:
        yield Finding("blobs", "blobs that nothing refers to", number)


def _blob_columns(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    """Return the (table, column) that refer to blobs, as the file itself says."""
    return connection.execute(
        'SELECT m.name, f."from" FROM sqlite_schema AS m '
        "JOIN pragma_foreign_key_list(m.name) AS f WHERE m.type = 'table' AND f.\"table\" = 'blob'"
    ).fetchall()


def _asker(name: str) -> Check:
    def ask(connection: sqlite3.Connection) -> Iterator[Finding]:
        for what, sql in QUESTIONS[name]:
            if number := connection.execute(sql).fetchone()[0]:
                yield Finding(name, what, number)

    return ask


def _search_index(connection: sqlite3.Connection) -> Iterator[Finding]:
    for table in SEARCHES:
        try:
            # Rank 1: against the content, not only against itself.
            connection.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('integrity-check', 1)")
        except sqlite3.DatabaseError as error:
            if isinstance(translate(error), BusyError):
                raise
            yield Finding("search index", f"{table} is not what its content says", 1)
