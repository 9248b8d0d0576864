"""How many bytes of the file a session takes: what removing it alone would free.

One definition for lists by size, plans of removals and the biggest sessions:

* its rows (session, messages, parts, todos, diffs, labels), with their entries in
  the indexes;
* its share of the search index: its words, at what a word takes on average in the
  index of this database, according to SQLite's own records of the index. A fork that
  stays takes over the entries of the messages it copied, so these are not freed;
* the blobs that no other session refers to. Several sessions that go together also
  free what only they share.

An estimate, within 20 % of what a vacuum then gives back to the disk (a test measures
it). It reads each table once, whatever the number of sessions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from sqlalchemy import text

from sessiondb.engine.default import ENGINE
from sessiondb.engine.sql import Statement, as_list, list_text
from sessiondb.repository import Read

#: Bytes that SQLite adds to each cell of a page: its place, its length, its rowid.
_CELL = 9
#: A page without its header, and the most that a row keeps of itself on one.
_PAGE, _ON_PAGE, _LEAST, _OVERFLOW = 4084, 4061, 489, 4092
#: Columns of fixed size (times, counts, cost) and the header of a row.
_MESSAGE, _PART, _SESSION, _SMALL = 55, 42, 1_100, 40
#: Pages are left with room for half a row.
_FILL = 1.05
#: Of a part: its record of lengths in the search index.
_DOCUMENT = 12


def _length(*columns: str) -> str:
    return " + ".join(f"coalesce(length(CAST({c} AS BLOB)), 0)" for c in columns)


def _entry(*columns: str) -> str:
    """Return what an index takes for one row."""
    return f"({_length(*columns)} + {_CELL + 3})"


#: The columns that name a blob: table, column, and the column of their session.
_HOLDERS = (
    ("part", "text_blob", "session_id"),
    ("part", "input_blob", "session_id"),
    ("part", "data_blob", "session_id"),
    ("message", "data_blob", "session_id"),
    ("file_diff", "before_blob", "session_id"),
    ("file_diff", "after_blob", "session_id"),
    ("session", "data_blob", "id"),
)


def _hash_entries(table: str) -> str:
    return " + ".join(
        f"iif({column} IS NULL, 0, {64 + 64 + _CELL})"
        for of, column, _ in _HOLDERS
        if of == table
    )


_PARTS = (
    f"{_PART + _CELL} + "
    + _length(
        "session_id", "id", "type", "tool", "call_id", "status", "outcome", "title",
        "input", "text", "data",
    )
    + f" + {_entry('session_id')} + {_hash_entries('part')}"
    + f" + iif(call_id IS NULL, 0, {_entry('session_id', 'call_id')})"
    + f" + iif(type = 'tool', {_entry('session_id', 'id')}, 0)"
    + f" + iif(indexed = 1, {_DOCUMENT}, 0)"
)  # fmt: skip
_MESSAGES = (
    f"{_MESSAGE + _CELL} + "
    + _length(
        "session_id", "id", "turn_id", "role", "kind", "agent", "provider_id",
        "model_id", "response_id", "usage_key", "finish", "error", "data",
    )
    + f" + {_entry('session_id')} + {_entry('session_id', 'id')}"
    + f" + {_entry('session_id', 'turn_id')} + {_hash_entries('message')}"
    + f" + iif(usage_key IS NULL, 0, {_entry('usage_key')})"
)  # fmt: skip
_TODOS = (
    f"{_SMALL + _CELL} + {_length('session_id', 'content', 'id')}"
    f" + {_entry('session_id')}"
)
_LABELS = (
    f"{_SMALL} + {_length('session_id', 'label')} + {_entry('session_id', 'label')}"
    f" + {_entry('session_id')}"
)
_DIFFS = (
    f"{_SMALL + _CELL} + {_length('session_id', 'path', 'patch')}"
    f" + {_entry('session_id', 'path')} + {_hash_entries('file_diff')}"
)
_ROWS = {
    "part": _PARTS,
    "message": _MESSAGES,
    "todo": _TODOS,
    "label": _LABELS,
    "file_diff": _DIFFS,
}

_INDEX = ENGINE.search
_NAMED = f"IN {list_text('ids')}"


def _only(named: bool, term: str) -> str:
    """Return *term*, which narrows a statement to named sessions, or nothing."""
    return f" {term}" if named else ""


def _sum_of(table: str, bytes_of_row: str, named: bool) -> Statement:
    where = _only(named, f"WHERE session_id {_NAMED}")
    return Statement(
        lambda: text(
            f"SELECT session_id, sum({bytes_of_row}), count(*) "
            f"FROM {table}{where} GROUP BY 1"
        )
    )


def _sessions(named: bool) -> Statement:
    of = (
        "id source_id slug title directory data summary_diffs metadata share_url revert"
    ).split()
    where = _only(named, f"WHERE id {_NAMED}")
    return Statement(
        lambda: text(f"SELECT id, {_SESSION} + {_length(*of)}, 1 FROM session{where}")
    )


def _words(named: bool) -> Statement:
    where = _only(named, f"AND p.session_id {_NAMED}")
    return Statement(
        lambda: text(
            f"SELECT p.session_id, group_concat(hex({_INDEX.word_count}), '') "
            f"FROM part AS p {_INDEX.words_of_part} "
            f"WHERE p.indexed = 1{where} GROUP BY 1"
        )
    )


def _taken_over(named: bool) -> Statement:
    """Return the query for the words of parts that a fork which stays has a copy of."""
    where = _only(named, f"AND f.parent_id {_NAMED} AND f.id NOT {_NAMED}")
    return Statement(
        lambda: text(
            "SELECT session_id, group_concat(hex(words), '') FROM ("
            f"SELECT DISTINCT p.session_id, p.rid, {_INDEX.word_count} AS words "
            "FROM session AS f "
            "JOIN message AS m ON m.session_id = f.id AND m.inherited = 1 "
            "JOIN message AS o "
            "ON o.session_id = f.parent_id AND o.id = m.id AND o.seq = m.seq "
            "JOIN part AS p "
            "ON p.session_id = o.session_id AND p.seq = o.seq AND p.indexed = 1 "
            f"{_INDEX.words_of_part} "
            f"WHERE f.relation = 'fork' AND f.time_deleted IS NULL{where}) GROUP BY 1"
        )
    )


_REFERENCES = " UNION ALL ".join(
    f"SELECT {column} AS hash, {owner} AS session_id FROM {table} "
    f"WHERE {column} IS NOT NULL"
    for table, column, owner in _HOLDERS
)
#: Blobs with one holder.
_OWN_BLOBS = Statement(
    lambda: text(
        "SELECT r.session_id, b.size FROM "
        f"(SELECT hash, min(session_id) AS session_id FROM ({_REFERENCES}) "
        "GROUP BY hash HAVING min(session_id) = max(session_id)) AS r "
        "JOIN blob AS b ON b.hash = r.hash"
    )
)


def _freed() -> Any:
    """Return the blobs that the named sessions hold and no other does."""
    held = " UNION ".join(
        f"SELECT {column} AS hash FROM {table} "
        f"WHERE {owner} {_NAMED} AND {column} IS NOT NULL"
        for table, column, owner in _HOLDERS
    )
    elsewhere = " AND ".join(
        f"NOT EXISTS (SELECT 1 FROM {table} WHERE {column} = h.hash "
        f"AND {owner} NOT {_NAMED})"
        for table, column, owner in _HOLDERS
    )
    return text(
        f"SELECT b.size FROM ({held}) AS h JOIN blob AS b ON b.hash = h.hash "
        f"WHERE {elsewhere}"
    )


_FREED_BLOBS = Statement(_freed)
_TOTALS = Statement(lambda: text(_INDEX.totals))
_EACH = {
    named: [
        _sessions(named),
        *(_sum_of(table, of, named) for table, of in _ROWS.items()),
    ]
    for named in (False, True)
}
_WORDS = {named: (_words(named), _taken_over(named)) for named in (False, True)}


def each() -> Read[dict[str, int]]:
    """Return by id the bytes that removing each session alone would free."""
    sums, _ = yield from _own_rows({})
    for session_id, size in (yield _OWN_BLOBS, {}):
        sums[session_id] += blob_bytes(size)
    return {session_id: round(number) for session_id, number in sums.items()}


def freed(session_ids: Iterable[str]) -> Read[tuple[int, int]]:
    """Return the bytes that removing these sessions together frees, and their parts."""
    named = {"ids": as_list(session_ids)}
    sums, counts = yield from _own_rows(named)
    blobs = sum(blob_bytes(size) for (size,) in (yield _FREED_BLOBS, named))
    return round(sum(sums.values()) + blobs), counts["part"]


def _own_rows(
    named: dict[str, str],
) -> Read[tuple[dict[str, float], dict[str, int]]]:
    """Return the bytes of rows and of search, by session, and the rows of each table.

    *named* are the parameters for some sessions; empty for all.
    """
    sums: dict[str, float] = defaultdict(float)
    counts: dict[str, int] = defaultdict(int)
    some = bool(named)
    for table, statement in zip(("session", *_ROWS), _EACH[some], strict=True):
        for session_id, number, rows in (yield statement, named):
            sums[session_id] += number * _FILL
            counts[table] += rows

    record, total = (yield _TOTALS, {})[0]
    per_word = _INDEX.bytes_per_word(record, total)
    for sign, statement in zip((1, -1), _WORDS[some], strict=True):
        for session_id, lengths in (yield statement, named):
            sums[session_id] += sign * _INDEX.words(lengths) * per_word

    return sums, counts


def blob_bytes(size: int) -> int:
    """Return what a blob of *size* bytes takes: its row, its pages, its index entry.

    A value that fits on a page shares it with as many as fit; a larger one fills pages
    of its own.
    """
    row = size + 64 + 20
    here = row
    if row > _ON_PAGE:
        rest = _LEAST + (row - _LEAST) % _OVERFLOW
        here = rest if rest <= _ON_PAGE else _LEAST

    pages = -(-(row - here) // _OVERFLOW) * 4096
    shared = _PAGE // max(1, _PAGE // (here + _CELL))
    return pages + max(shared, here + _CELL) + 64 + _CELL
