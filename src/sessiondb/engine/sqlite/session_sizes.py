"""How many bytes of the file a session takes: what removing it alone would free.

One definition for lists by size, plans of removals and the biggest sessions:

* its rows (session, messages, parts, todos, diffs, labels), with their entries in
  the indexes: columns and indexes are those of the tables, so a new one weighs; and
  the rows that programs added to it in tables of their own;
* its share of the search index: its words, at what a word takes on average in the
  index of this database, according to FTS5's own records. A fork that stays takes over
  the entries of the messages it copied, so these are not freed;
* the blobs that no other session refers to, as long as they are stored: most that are
  not texts are compressed. Several sessions that go together also
  free what only they share.

An estimate, within 20 % of what a vacuum then gives back to the disk (a test measures
it). It reads each table once, whatever the number of sessions.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Generator, Iterable, Mapping
from typing import Any, TypeVar

from sqlalchemy import Column, LargeBinary, Table, Text, UniqueConstraint

from sessiondb.engine.session_rows import OWNERS, freed_blobs, own_blobs
from sessiondb.engine.sql import ComposedStatement, quoted
from sessiondb.engine.sqlite import search
from sessiondb.engine.sqlite.dialect import DIALECT
from sessiondb.engine.sqlite.extension_tables import SQLiteExtensionTables
from sessiondb.schema import tables

T = TypeVar("T")
#: A read: it yields statements with their parameters, and receives their rows.
Read = Generator[tuple[ComposedStatement, Mapping[str, Any]], list[tuple[Any, ...]], T]

#: Bytes that SQLite adds to each cell of a page: its place, its length, its rowid.
_CELL = 9
#: Bytes of an entry of an index, besides its cell and its texts.
_ENTRY = _CELL + 3
#: A page without its header, and the most that a row keeps of itself on one.
_PAGE, _ON_PAGE, _LEAST, _OVERFLOW = 4084, 4061, 489, 4092
#: Bytes of a time in ms, of a REAL, and of any other number, which is small.
_TIME, _REAL, _SMALL = 6, 8, 2
#: Bytes of the name of a blob: a SHA-256 in hexadecimal.
_HASH = 64
#: Pages are left with room for half a row.
_FILL = 1.05
#: Bytes of a part in FTS5's table of lengths.
_DOCUMENT = 12

_EXTENSIONS = SQLiteExtensionTables()
_NAMED = f"IN {DIALECT.list_text('ids', str)}"


# -- the bytes of a row ----------------------------------------------------------


def bytes_of_row(table: Table) -> str:
    """Return SQL for what a row takes in its table and in every index of it."""
    # The record begins with the type of each column.
    fixed = _CELL + 2 + len(table.c) + sum(_fixed_bytes(column) for column in table.c)
    terms = [str(fixed), _text_bytes(table.c)]
    for index in sorted(table.indexes, key=lambda index: str(index.name)):
        condition = index.dialect_options["sqlite"]["where"]
        entry = _bytes_of_entry(list(index.columns))
        terms.append(entry if condition is None else f"iif({condition}, {entry}, 0)")
    terms += [
        _bytes_of_entry(list(constraint.columns))
        for constraint in table.constraints
        if isinstance(constraint, UniqueConstraint)
    ]
    if table is tables.part:
        terms.append(f"iif(indexed = 1, {_DOCUMENT}, 0)")
    return " + ".join(terms)


def _fixed_bytes(column: Column[Any]) -> int:
    """Return the bytes of a number; half of those of one that is often NULL."""
    if isinstance(column.type, Text | LargeBinary) or column.primary_key:
        return 0
    if column.name.startswith("time_"):
        size = _TIME
    else:
        size = _REAL if column.type.python_type is float else _SMALL
    return size // 2 if column.nullable else size


def _text_bytes(columns: Iterable[Column[Any]]) -> str:
    """Return SQL for the bytes of the values that have any length."""
    sizes = [
        f"coalesce(length(CAST({column.name} AS BLOB)), 0)"
        for column in columns
        if isinstance(column.type, Text | LargeBinary)
    ]
    return " + ".join(sizes) or "0"


def _bytes_of_entry(columns: list[Column[Any]]) -> str:
    """Return SQL for what an index takes for one row."""
    return f"({_ENTRY} + {_text_bytes(columns)})"


def blob_bytes(size: int) -> int:
    """Return what *size* stored bytes take: their row, pages, and index entry.

    A value that fits on a page shares it with as many as fit; a larger one fills pages
    of its own.
    """
    row = size + _HASH + 20
    on_page = row
    if row > _ON_PAGE:
        beyond = _LEAST + (row - _LEAST) % _OVERFLOW
        on_page = beyond if beyond <= _ON_PAGE else _LEAST

    pages = -(-(row - on_page) // _OVERFLOW) * 4096
    shared = _PAGE // max(1, _PAGE // (on_page + _CELL))
    return pages + max(shared, on_page + _CELL) + _HASH + _CELL


# -- statements --------------------------------------------------------------------


def _rows_of(table: Table, owner: str, *, named: bool) -> ComposedStatement:
    """Return the query for (session, bytes, rows) of a table."""
    condition = f" WHERE {owner} {_NAMED}" if named else ""
    return ComposedStatement(
        f"SELECT {owner}, sum({bytes_of_row(table)}), count(*) "
        f"FROM {table.name}{condition} GROUP BY 1"
    )


def _words_of(*, named: bool) -> ComposedStatement:
    """Return the query for the lengths of the indexed parts of sessions."""
    condition = f" AND p.session_id {_NAMED}" if named else ""
    return ComposedStatement(
        f"SELECT p.session_id, group_concat(hex({search.WORD_COUNT}), '') "
        f"FROM part AS p {search.WORDS_OF_PART} "
        f"WHERE p.indexed = 1{condition} GROUP BY 1"
    )


def _words_taken_over(*, named: bool) -> ComposedStatement:
    """Return the query for the words of parts that a fork which stays has a copy of."""
    condition = f" AND f.parent_id {_NAMED} AND f.id NOT {_NAMED}" if named else ""
    return ComposedStatement(
        "SELECT session_id, group_concat(hex(words), '') FROM ("
        f"SELECT DISTINCT p.session_id, p.rid, {search.WORD_COUNT} AS words "
        "FROM session AS f "
        "JOIN message AS m ON m.session_id = f.id AND m.inherited = 1 "
        "JOIN message AS o "
        "ON o.session_id = f.parent_id AND o.id = m.id AND o.seq = m.seq "
        "JOIN part AS p "
        "ON p.session_id = o.session_id AND p.seq = o.seq AND p.indexed = 1 "
        f"{search.WORDS_OF_PART} "
        f"WHERE f.relation = 'fork' AND f.time_deleted IS NULL{condition}) "
        "GROUP BY 1"
    )


_OWN_BLOBS = ComposedStatement(own_blobs("length(b.data)"))
_FREED_BLOBS = ComposedStatement(freed_blobs(DIALECT, "length(b.data)"))
_TOTALS = ComposedStatement(search.TOTALS)
#: By whether sessions are named: the statement of each table, and those of words.
_ROWS = {
    named: {
        table.name: _rows_of(table, owner, named=named)
        for table, owner in OWNERS.items()
    }
    for named in (False, True)
}
_WORDS = {
    named: (_words_of(named=named), _words_taken_over(named=named))
    for named in (False, True)
}


class SQLiteSessionSizes:
    """SQLite's half of `engine.session_sizes.SessionSizes`."""

    def each(self) -> Read[dict[str, int]]:
        """Return by id the bytes that removing each session alone would free."""
        sums, _ = yield from _bytes_of_rows({})
        for session_id, size in (yield _OWN_BLOBS, {}):
            sums[session_id] += blob_bytes(size)
        # Rounded down, as their sum: together they are never more than they would free.
        return {session_id: int(number) for session_id, number in sums.items()}

    def freed(self, session_ids: Iterable[str]) -> Read[tuple[int, int]]:
        """Return the bytes that removing these together frees, and their parts."""
        ids = {"ids": json.dumps(list(session_ids))}
        sums, counts = yield from _bytes_of_rows(ids)
        blobs = sum(blob_bytes(size) for (size,) in (yield _FREED_BLOBS, ids))
        return int(sum(sums.values()) + blobs), counts["part"]


def _bytes_of_extensions(ids: dict[str, str]) -> Read[list[tuple[str, int]]]:
    """Return (session, bytes) of the rows in each table that a program added.

    Of their keys and indexes one entry is counted, that of the session.
    """
    declarations = yield ComposedStatement(_EXTENSIONS.declarations), {}
    sums = []
    for table in _EXTENSIONS.tables_of(declarations):
        if table.is_of_sessions:
            sizes = " + ".join(
                f"coalesce(length(CAST({quoted(name)} AS BLOB)), 0)"
                for name in table.columns
            )
            condition = f" WHERE session_id {_NAMED}" if ids else ""
            sums += yield (
                ComposedStatement(
                    f"SELECT session_id, sum({_CELL + _ENTRY + 2} + "
                    f"{len(table.columns)} + length(session_id) + {sizes}) "
                    f"FROM {table.name}{condition} GROUP BY 1"
                ),
                ids,
            )
    return [(session_id, size) for session_id, size in sums if session_id is not None]


def _bytes_of_rows(
    ids: dict[str, str],
) -> Read[tuple[dict[str, float], dict[str, int]]]:
    """Return the bytes of rows and of search, by session, and the rows of each table.

    *ids* are the parameters for some sessions; empty for all.
    """
    sums: dict[str, float] = defaultdict(float)
    counts: dict[str, int] = defaultdict(int)
    is_named = bool(ids)
    for table, statement in _ROWS[is_named].items():
        for session_id, number, rows in (yield statement, ids):
            sums[session_id] += number * _FILL
            counts[table] += rows

    for session_id, number in (yield from _bytes_of_extensions(ids)):
        sums[session_id] += number * _FILL

    record, total = (yield _TOTALS, {})[0]
    per_word = search.bytes_per_word(record, total)
    own_words, words_that_stay = _WORDS[is_named]
    for session_id, lengths in (yield own_words, ids):
        sums[session_id] += search.count_words(lengths) * per_word
    for session_id, lengths in (yield words_that_stay, ids):
        sums[session_id] -= search.count_words(lengths) * per_word
    return sums, counts
