"""The search index: FTS5 with its content in a view: text is stored once.

A row of ``part`` is in the index exactly when ``indexed = 1``; the view shows
just those rows, so ``rebuild`` and ``integrity-check`` are valid at any time.
The writer puts rows in, once per transaction (a trigger on INSERT would make every
row a segment of its own: 5 times the cost); the triggers here only take out
what goes or changes, while the old value can still be read.

FTS5 answers one MATCH by one walk over its index. A statement that looks up
single rows of the search table (``rowid IN (…)``, or a join that begins
elsewhere) repeats the MATCH for each of them, so no statement here does.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator

from sessiondb.engine.base import Connection, SearchQuery
from sessiondb.engine.sqlite.dialect import DIALECT
from sessiondb.engine.sqlite.failures import translate
from sessiondb.engine.sqlite.search_query import CONTAINS, parse_query
from sessiondb.errors import BusyError


def _words_of_json(column: str) -> str:
    # JSON writes a line break as \n, so the next word would be indexed as "nword". A
    # backslash is written twice, and not such an escape: C:\\new has the word "new".
    text = f"replace({column}, '\\\\', '\\ ')"
    for escape in ("n", "t", "r", "b", "f"):
        text = f"replace({text}, '\\{escape}', ' ')"
    return text


_STORED = _words_of_json("p.input")
_LARGE = _words_of_json("CAST(ib.data AS TEXT)")

CONTENT = f"""
CREATE VIEW part_search_content AS
SELECT p.rid AS rid,
       coalesce(p.text, CAST(tb.data AS TEXT), '') AS text,
       coalesce({_STORED}, {_LARGE}, '') AS input,
       coalesce(p.title, '') AS title
  FROM part AS p
  LEFT JOIN blob AS tb ON tb.hash = p.text_blob
  LEFT JOIN blob AS ib ON ib.hash = p.input_blob
 WHERE p.indexed = 1
""".strip()

TABLES = (
    "CREATE VIRTUAL TABLE part_search USING fts5(text, input, title, "
    "content='part_search_content', content_rowid='rid', tokenize='unicode61')",
    "CREATE VIRTUAL TABLE session_search USING fts5(title, "
    "content='session', content_rowid='rid', tokenize='unicode61')",
    "CREATE VIRTUAL TABLE prompt_search USING fts5(text, "
    "content='prompt', content_rowid='rid', tokenize='unicode61')",
)

_TAKE_OUT = (
    "INSERT INTO part_search (part_search, rowid, text, input, title) "
    "SELECT 'delete', rid, text, input, title "
    "FROM part_search_content WHERE rid = old.rid;"
)
_PART_TRIGGERS = (
    f"CREATE TRIGGER part_search_delete BEFORE DELETE ON part WHEN old.indexed = 1 "
    f"BEGIN {_TAKE_OUT} END",
    f"CREATE TRIGGER part_search_before_update BEFORE UPDATE OF "
    "rid, text, text_blob, input, input_blob, title, indexed ON part "
    "WHEN old.indexed = 1 "
    f"BEGIN {_TAKE_OUT} END",
    "CREATE TRIGGER part_search_after_update AFTER UPDATE OF "
    "rid, text, text_blob, input, input_blob, title, indexed ON part "
    "WHEN old.indexed = 1 AND new.indexed = 1 "
    "BEGIN INSERT INTO part_search (rowid, text, input, title) "
    "SELECT rid, text, input, title FROM part_search_content WHERE rid = new.rid; END",
)


def _plain(table: str, column: str) -> tuple[str, str, str]:
    search = f"{table}_search"
    insert = f"INSERT INTO {search} (rowid, {column}) VALUES (new.rid, new.{column});"
    delete = (
        f"INSERT INTO {search} ({search}, rowid, {column}) "
        f"VALUES ('delete', old.rid, old.{column});"
    )

    return (
        f"CREATE TRIGGER {search}_insert AFTER INSERT ON {table} BEGIN {insert} END",
        f"CREATE TRIGGER {search}_delete AFTER DELETE ON {table} BEGIN {delete} END",
        f"CREATE TRIGGER {search}_update AFTER UPDATE OF rid, {column} ON {table} "
        f"BEGIN {delete} {insert} END",
    )


TRIGGERS = (*_PART_TRIGGERS, *_plain("session", "title"), *_plain("prompt", "text"))


#: The search tables, that of parts first.
NAMES = ("part_search", "session_search", "prompt_search")
_PUT = (
    "INSERT INTO part_search (rowid, text, input, title) "
    "SELECT rid, text, input, title "
    f"FROM part_search_content WHERE rid IN {DIALECT.list_text('rids')}"
)
_OF_PART = "CROSS JOIN part AS p ON p.rid = f.rowid"
_VISIBLE = "s.time_deleted IS NULL AND s.time_importing IS NULL"


class SearchIndex:
    """SQLite's half of `engine.base.SearchIndex`."""

    # -- writing -------------------------------------------------------------

    def put(self, connection: Connection, rids: str) -> None:
        """Index rows of ``part``, a list parameter, which are marked as indexed."""
        connection.execute(_PUT, {"rids": rids})

    # -- reading -------------------------------------------------------------

    #: Where a match is in the index: a newer one is farther behind.
    place = "f.rowid"
    #: How well a match fits, the smallest best.
    rank = "bm25(part_search)"

    #: Terms for texts that must occur literally, of which FTS5 has only the words.
    literal = f"{CONTAINS}(:literals, f.text, f.input, f.title)"
    literal_title = f"{CONTAINS}(:literals, f.title)"

    def query(self, query: str) -> SearchQuery:
        """Return what a user's *query* searches for: see `search_query`."""
        return parse_query(query)

    def newest(self, columns: str, joins: str, terms: str) -> str:
        """Return the query for matches in parts, newest first, at most ``:rows``."""
        return (
            f"SELECT f.rowid, {columns} {self._matches(joins, terms)} "
            "ORDER BY f.rowid DESC LIMIT :rows"
        )

    def sessions(self, joins: str, terms: str) -> str:
        """Return the query for the sessions with matches in parts.

        The session of the newest match comes first.
        """
        return f"SELECT DISTINCT p.session_id {self._matches(joins, terms)}"

    def _matches(self, joins: str, terms: str) -> str:
        return (
            f"FROM part_search AS f {_OF_PART} {joins} "
            "CROSS JOIN session AS s ON s.id = p.session_id "
            f"WHERE f.part_search MATCH :match AND {_VISIBLE}{terms}"
        )

    def snippets(self, columns: str, joins: str) -> str:
        """Return the query for the matches ``:rids``, from ``:low`` to ``:high``."""
        return (
            f"SELECT f.rowid, {columns} FROM part_search AS f {_OF_PART} {joins} "
            "WHERE f.part_search MATCH :match AND f.rowid BETWEEN :low AND :high "
            # The + keeps SQLite from looking up rows, which would repeat the MATCH.
            f"AND +f.rowid IN {DIALECT.list_text('rids')}"
        )

    def snippet(self, marks: tuple[str, str], table: str = "part") -> str:
        """Return the column that shows a match in its words, between *marks*."""
        column = {"part": -1, "session": 0}[table]
        mark_begin, mark_end = marks
        return (
            f"snippet({table}_search, {column}, '{mark_begin}', '{mark_end}', '…', 16)"
        )

    def titles(self, columns: str, terms: str) -> str:
        """Return the query for sessions whose title matches, at most ``:rows``."""
        return (
            f"SELECT f.rowid, {columns} FROM session_search AS f "
            "CROSS JOIN session AS s ON s.rid = f.rowid "
            f"WHERE f.session_search MATCH :match AND {_VISIBLE}{terms} "
            "ORDER BY f.rowid DESC LIMIT :rows"
        )

    def part_matches(self, *, literal: bool) -> str:
        """Return the term for a row of ``part`` named p that matches."""
        further = f" AND {self.literal}" if literal else ""
        return (
            "p.rid IN (SELECT f.rowid FROM part_search AS f "
            f"WHERE f.part_search MATCH :match{further})"
        )

    #: Terms for rows of ``prompt`` that match, and that have the literals.
    prompt_matches = (
        "rid IN (SELECT rowid FROM prompt_search WHERE prompt_search MATCH :match)"
    )
    prompt_literal = f"{CONTAINS}(:literals, prompt.text)"

    #: The rows of ``part`` that are in the index, as a table of ``rid``.
    indexed = "(SELECT id AS rid FROM part_search_docsize)"

    # -- sizes ---------------------------------------------------------------

    #: FTS5's record of a part: the number of words of each column, as varints.
    words_of_part = "JOIN part_search_docsize AS d ON d.id = p.rid"
    word_count = "d.sz"
    #: FTS5's averages record, and the bytes of the index: see `bytes_per_word`.
    totals = (
        "SELECT (SELECT hex(block) FROM part_search_data WHERE id = 1), "
        "(SELECT sum(length(block) + 12) FROM part_search_data)"
    )

    def words(self, counts: str) -> int:
        """Return the sum of what ``group_concat(hex(word_count), '')`` holds."""
        return sum(_varints(bytes.fromhex(counts)))

    def bytes_per_word(self, record: str | None, total: int | None) -> float:
        """Return the bytes of the index for each word in it; 0.0 for an empty one."""
        # FTS5 keeps the number of rows and then that of the words of each column.
        words = sum(list(_varints(bytes.fromhex(record or "")))[1:])
        return (total or 0) / words if words else 0.0

    # -- upkeep --------------------------------------------------------------

    def damaged(self, connection: Connection) -> Iterator[str]:
        """Yield the names of search tables that differ from their content.

        It takes the write lock: FTS5 offers the comparison as a write. Raises
        `sqlite3.Error` if that is busy.
        """
        for name in NAMES:
            try:
                # Rank 1: against the content, not only against itself.
                connection.execute(
                    f"INSERT INTO {name} ({name}, rank) VALUES ('integrity-check', 1)"
                )
            except sqlite3.DatabaseError as error:
                if isinstance(translate(error), BusyError):
                    raise
                yield name

    def rebuild(self, connection: Connection, names: Iterable[str] = NAMES) -> None:
        """Rebuild search tables from their content."""
        for name in names:
            connection.execute(f"INSERT INTO {name} ({name}) VALUES ('rebuild')")

    def optimize(self, connection: Connection) -> None:
        """Merge the segments of all transactions, and drop removed entries."""
        for name in NAMES:
            connection.execute(f"INSERT INTO {name} ({name}) VALUES ('optimize')")


def _varints(packed: bytes) -> Iterable[int]:
    """Yield SQLite's integers of variable length: 7 bits per byte, highest first."""
    value = 0
    for byte in packed:
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            yield value
            value = 0
