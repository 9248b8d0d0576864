"""The search index: FTS5 with its content in a view: text is stored once.

A row of ``part`` is in the index exactly when ``indexed = 1`` and its number is not
above the *mark*, ``indexed_to`` in ``meta``; the view shows just those rows, so
``rebuild`` and ``integrity-check`` are valid at any time. Rows above the mark wait, at
most a few turns: the writer puts them in together and raises the mark, since the index
writes a quarter of the pages of a turn, each time. Every query searches those that wait
as well, in the same snapshot (`search_waiting`).

The triggers take out what goes or changes, while the old value can still be read. One
that deletes a waiting row first puts in all that wait: so the mark is never below a
number that was given out, and no number is given twice.

FTS5 answers one MATCH by one walk over its index. A statement that looks up
single rows of the search table (``rowid IN (…)``, or a join that begins
elsewhere) repeats the MATCH for each of them, so no statement here does.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from sessiondb.engine.base import SNIPPET_MARKS, Connection
from sessiondb.engine.query import SearchQuery
from sessiondb.engine.sqlite.dialect import DIALECT
from sessiondb.engine.sqlite.failures import translate
from sessiondb.engine.sqlite.search_query import (
    EXCERPT,
    IS_MEANT,
    search_query,
)
from sessiondb.engine.sqlite.search_waiting import (
    COLUMNS,
    SEARCH_PARTS,
    TOKENS,
    snippet_sql,
)
from sessiondb.engine.sqlite.search_words import words_beside, words_of_part
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
_TEXT = "coalesce(p.text, CAST(tb.data AS TEXT), '')"
_INPUT = f"coalesce({_STORED}, {_LARGE}, '')"
_PARTS_WITH_BLOBS = """part AS p
  LEFT JOIN blob AS tb ON tb.hash = p.text_blob
  LEFT JOIN blob AS ib ON ib.hash = p.input_blob"""
#: The largest ``rid`` that the index covers.
_MARK = (
    "coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'indexed_to'), 0)"
)


def _view(name: str, condition: str) -> str:
    return f"""
CREATE VIEW {name} AS
SELECT p.rid AS rid,
       {_TEXT} AS text,
       {_INPUT} AS input,
       coalesce(p.title, '') AS title,
       p.words AS words
  FROM {_PARTS_WITH_BLOBS}
 WHERE p.indexed = 1 AND {condition}
""".strip()


VIEWS = (
    _view("part_search_content", f"p.rid <= {_MARK}"),
    _view("part_search_waiting", f"p.rid > {_MARK}"),
)

TABLES = (
    f"CREATE VIRTUAL TABLE part_search USING fts5({COLUMNS}, "
    f"content='part_search_content', content_rowid='rid', {TOKENS})",
    "CREATE VIRTUAL TABLE session_search USING fts5(title, "
    f"content='session', content_rowid='rid', {TOKENS})",
    "CREATE VIRTUAL TABLE prompt_search USING fts5(text, "
    f"content='prompt', content_rowid='rid', {TOKENS})",
)

_TAKE_OUT = (
    f"INSERT INTO part_search (part_search, rowid, {COLUMNS}) "
    f"SELECT 'delete', rid, {COLUMNS} "
    "FROM part_search_content WHERE rid = old.rid;"
)
_FOLLOWED = "rid, text, text_blob, input, input_blob, title, indexed, words"
_PUT_WAITING = (
    f"INSERT INTO part_search (rowid, {COLUMNS}) "
    f"SELECT rid, {COLUMNS} FROM part_search_waiting"
)
_PART_TRIGGERS = (
    "CREATE TRIGGER part_search_delete BEFORE DELETE ON part "
    f"WHEN old.indexed = 1 OR old.rid > {_MARK} "
    f"BEGIN {_PUT_WAITING} WHERE old.rid > {_MARK}; "
    "UPDATE meta SET value = (SELECT max(rid) FROM part) "
    f"WHERE key = 'indexed_to' AND old.rid > {_MARK}; {_TAKE_OUT} END",
    f"CREATE TRIGGER part_search_before_update BEFORE UPDATE OF {_FOLLOWED} ON part "
    "WHEN old.indexed = 1 "
    f"BEGIN {_TAKE_OUT} END",
    f"CREATE TRIGGER part_search_after_update AFTER UPDATE OF {_FOLLOWED} ON part "
    "WHEN old.indexed = 1 AND new.indexed = 1 "
    f"BEGIN INSERT INTO part_search (rowid, {COLUMNS}) "
    f"SELECT rid, {COLUMNS} FROM part_search_content WHERE rid = new.rid; END",
)


def _plain_triggers(table: str, column: str) -> tuple[str, str, str]:
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


TRIGGERS = (
    *_PART_TRIGGERS,
    *_plain_triggers("session", "title"),
    *_plain_triggers("prompt", "text"),
)


#: The search tables, that of parts first.
NAMES = ("part_search", "session_search", "prompt_search")
_TEXTS = (
    f"SELECT p.rid, p.words, {_TEXT}, {_INPUT}, p.title FROM {_PARTS_WITH_BLOBS} "
    f"WHERE p.rid IN {DIALECT.list_text('rids')} AND p.inherited = 0"
)
_PUT = (
    f"INSERT INTO part_search (rowid, {COLUMNS}) "
    f"SELECT rid, {COLUMNS} "
    f"FROM part_search_content WHERE rid IN {DIALECT.list_text('rids')}"
)
_LAST_PLACE = "coalesce((SELECT max(rid) FROM part), 0)"
_PLACES = f"SELECT max({_LAST_PLACE}, {_MARK}), {_MARK}"
_RAISE_MARK = (
    "INSERT INTO meta (key, value) VALUES ('indexed_to', {}) "
    "ON CONFLICT (key) DO UPDATE SET value = excluded.value"
)
_VISIBLE = "s.time_deleted IS NULL AND s.time_importing IS NULL"
_PARTS = "CROSS JOIN part AS p ON p.rid = f.rowid"
_MESSAGES = "CROSS JOIN message AS m ON m.session_id = p.session_id AND m.seq = p.seq"
_SESSIONS = "CROSS JOIN session AS s ON s.id = p.session_id"
#: The terms of the bounds of `engine.base.SearchIndex`, for matches in parts.
_BOUNDS = {
    "cursor": "f.rowid < :cursor",
    "top": "f.rowid <= :top",
    "last": "f.rowid >= :last",
    "seen": f"p.session_id NOT IN {DIALECT.list_text('seen')}",
    "comparison": f"{IS_MEANT}(:comparison, f.words, f.text, f.input, f.title)",
}
_OF_MESSAGE = re.compile(r"\bm\.")
_MARK_BEGIN, _MARK_END = SNIPPET_MARKS
_UNION = " UNION ALL "


class _MatchSource(NamedTuple):
    """Where matches in parts are: rows ``f`` with ``rowid`` and the texts of a part.

    The snippet is never of the words beside a text.
    """

    rows: str
    condition: str
    snippet: str
    score: str


_SNIPPET = f"{EXCERPT}(:match, {{}}, f.text, f.input, f.title)"
_INDEXED = _MatchSource(
    "part_search AS f",
    "f.part_search MATCH :match",
    _SNIPPET.format(snippet_sql("part_search", -1)),
    "bm25(part_search)",
)
_WAITING = _MatchSource(
    "(SELECT w.value ->> 0 AS rowid, w.value ->> 1 AS snippet, w.value ->> 2 AS score, "
    f"{COLUMNS} FROM json_each((SELECT {SEARCH_PARTS}(:match, CAST(json_group_array("
    f"json_array(rid, {COLUMNS})) AS BLOB)) FROM part_search_waiting)) AS w "
    "CROSS JOIN part_search_waiting ON rid = w.value ->> 0) AS f",
    "true",
    _SNIPPET.format("f.snippet"),
    "f.score",
)
#: Those that wait are newer than all others.
_SOURCES = (_WAITING, _INDEXED)
#: The columns of a match of a title between its place and its snippet.
_OF_TITLE = (
    "s.id, (SELECT min(seq) FROM message WHERE session_id = s.id), "
    "(SELECT id FROM message WHERE session_id = s.id ORDER BY seq LIMIT 1)"
)


def _and_terms(terms: Iterable[str]) -> str:
    return "".join(f" AND {term}" for term in terms)


def _conditions(terms: Sequence[str], bounds: Iterable[str]) -> str:
    """Return the conditions of matches in parts, besides the match itself."""
    compared = [_BOUNDS[name] for name in bounds if name in _BOUNDS]
    return f"{_VISIBLE}{_and_terms([*terms, *compared])}"


def _select(columns: str, source: _MatchSource, conditions: str) -> str:
    # Only some need the message, whose row is elsewhere in the file.
    has_message = _OF_MESSAGE.search(f"{columns} {conditions}")
    return (
        f"SELECT {columns} "
        f"FROM {source.rows} {_PARTS} {_MESSAGES if has_message else ''} {_SESSIONS} "
        f"WHERE {source.condition} AND {conditions}"
    )


class SQLiteSearchIndex:
    """SQLite's half of `engine.base.SearchIndex`."""

    # -- writing -------------------------------------------------------------

    words_of_part = staticmethod(words_of_part)

    def prepare(self, connection: Connection, rids: str) -> None:
        """Keep the words beside rows of ``part``, a list parameter: `search_words`."""
        changed = []
        rows = connection.execute(_TEXTS, {"rids": rids})
        for rid, stored, *texts in iter(rows.fetchone, None):
            words = words_beside(texts)
            if words != stored:
                changed.append((words, rid))
        if changed:
            connection.executemany("UPDATE part SET words = ? WHERE rid = ?", changed)

    def put(self, connection: Connection, rids: str) -> None:
        """Index rows of ``part``, a list parameter, that do not wait for others."""
        connection.execute(_PUT, {"rids": rids})

    def read_places(self, connection: Connection) -> tuple[int, int]:
        """Return the last place that was given out, and the last that is indexed."""
        last, indexed = connection.execute(_PLACES).fetchone()
        return last, indexed

    def put_waiting(self, connection: Connection) -> None:
        """Index all that waits."""
        connection.execute(_PUT_WAITING)
        connection.execute(_RAISE_MARK.format(f"max({_LAST_PLACE}, {_MARK})"))

    # -- reading -------------------------------------------------------------

    def query(self, query: str) -> SearchQuery:
        """Return what a user's *query* searches for: see `search_query`."""
        return search_query(query)

    def matches(
        self, terms: Sequence[str], bounds: Iterable[str], *, order: str, is_shown: bool
    ) -> str:
        """Return the query for matches in parts, newest first, at most ``:rows``."""
        conditions = _conditions(terms, bounds)
        queries = []
        for source in _SOURCES:
            message = f"m.id, {source.snippet}" if is_shown else "NULL, NULL"
            sort_key = {
                "newest": "NULL",
                # That of the part: the row of its message is elsewhere in the file,
                # and would double the cost.
                "time": "-p.time_created",
                "rank": source.score,
            }[order]
            columns = f"f.rowid, p.session_id, p.seq, {message}, {sort_key}"
            queries.append(_select(columns, source, conditions))
        return f"{_UNION.join(queries)} ORDER BY 1 DESC LIMIT :rows"

    def sessions(self, terms: Sequence[str], bounds: Iterable[str]) -> str:
        """Return the query for the sessions with matches in parts.

        The session of the newest match comes first.
        """
        conditions = _conditions(terms, bounds)
        matches = _UNION.join(
            _select("p.session_id", source, conditions) for source in _SOURCES
        )
        return f"SELECT DISTINCT session_id FROM ({matches})"

    def snippets(self) -> str:
        """Return the query for the matches ``:rids``, from ``:low`` to ``:high``."""
        return _UNION.join(
            f"SELECT f.rowid, m.id, {source.snippet} "
            f"FROM {source.rows} {_PARTS} {_MESSAGES} "
            f"WHERE {source.condition} AND f.rowid BETWEEN :low AND :high "
            # The + keeps SQLite from looking up rows, which would repeat the MATCH.
            f"AND +f.rowid IN {DIALECT.list_text('rids')}"
            for source in _SOURCES
        )

    def titles(
        self,
        terms: Sequence[str],
        bounds: Collection[str],
        terms_of_parts: Sequence[str],
    ) -> str:
        """Return the query for sessions whose title alone matches."""
        if "shown" in bounds:
            is_new = f"s.id NOT IN {DIALECT.list_text('shown')}"
        else:
            meant = f" AND {_BOUNDS['comparison']}" if "comparison" in bounds else ""
            places = _UNION.join(
                f"SELECT f.rowid FROM {source.rows} WHERE {source.condition}{meant}"
                for source in _SOURCES
            )
            is_new = (
                "NOT EXISTS (SELECT 1 FROM part AS p JOIN message AS m "
                "ON m.session_id = p.session_id AND m.seq = p.seq "
                f"WHERE p.session_id = s.id AND p.rid IN ({places}) "
                f"AND p.rid <= :top{_and_terms(terms_of_parts)})"
            )
        conditions = [_VISIBLE, "s.message_count > 0", is_new, *terms]
        further = " AND ".join(conditions)
        is_later = " AND {0} < :cursor" if "cursor" in bounds else ""

        meant = f"{IS_MEANT}(:comparison, NULL, s.title)"
        indexed = "session_search AS f CROSS JOIN session AS s ON s.rid = f.rowid"
        matches = "f.session_search MATCH :match"
        if "scanned" in bounds:
            united = (
                f"SELECT s.rid, {_OF_TITLE}, {EXCERPT}(:match, NULL, s.title) "
                f"FROM session AS s WHERE {further} AND "
                f"{IS_MEANT}(:scanned, NULL, s.title)"
                f"{is_later.format('s.rid')}"
            )
        else:
            if "comparison" in bounds:
                matches = f"{matches} AND {meant}"
            united = (
                f"SELECT f.rowid, {_OF_TITLE}, {snippet_sql('session_search', 0)} "
                f"FROM {indexed} WHERE {matches} AND {further}"
                f"{is_later.format('f.rowid')}"
            )
        if "own_id" in bounds:
            united += (
                f" UNION ALL SELECT s.rid, {_OF_TITLE}, "
                f"'{_MARK_BEGIN}' || s.source_id || '{_MARK_END}' "
                "FROM session AS s WHERE s.source_id >= :own_id "
                f"AND s.source_id < :own_id || char(1114111) AND {further}"
                f"{is_later.format('s.rid')} "
                f"AND s.rid NOT IN (SELECT f.rowid FROM {indexed} WHERE {matches})"
            )
        return f"{united} ORDER BY 1 DESC LIMIT :rows"

    def prompts(
        self, columns: str, terms: Sequence[str], bounds: Collection[str]
    ) -> str:
        """Return the query for prompts, newest first, at most ``:rows``."""
        conditions = list(terms)
        if "match" in bounds and "scanned" not in bounds:
            conditions.append(
                "rid IN (SELECT rowid FROM prompt_search "
                "WHERE prompt_search MATCH :match)"
            )
        compared = "scanned" if "scanned" in bounds else "comparison"
        if compared in bounds:
            conditions.append(f"{IS_MEANT}(:{compared}, NULL, prompt.text)")
        return (
            f"SELECT {columns} FROM prompt WHERE {' AND '.join(conditions) or '1'} "
            "ORDER BY time_created DESC, id DESC LIMIT :rows"
        )

    # -- upkeep --------------------------------------------------------------

    #: The number of parts that are marked as indexed and are not, and of entries of the
    #: index without such a part.
    count_missing = (
        f"SELECT count(*) FROM part WHERE indexed = 1 AND rid <= {_MARK} "
        "AND rid NOT IN (SELECT id FROM part_search_docsize)"
    )
    count_orphans = (
        "SELECT count(*) FROM part_search_docsize AS i WHERE i.id NOT IN "
        f"(SELECT rid FROM part WHERE indexed = 1 AND rid <= {_MARK})"
    )

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
            if name == "part_search":
                connection.execute(_RAISE_MARK.format(_LAST_PLACE))
            connection.execute(f"INSERT INTO {name} ({name}) VALUES ('rebuild')")

    def optimize(self, connection: Connection) -> None:
        """Merge the segments of all transactions, and drop removed entries."""
        self.put_waiting(connection)
        for name in NAMES:
            connection.execute(f"INSERT INTO {name} ({name}) VALUES ('optimize')")


# -- the words of parts ------------------------------------------------------------

#: FTS5's record of a part: the number of words of each column, as varints.
WORDS_OF_PART = "JOIN part_search_docsize AS d ON d.id = p.rid"
WORD_COUNT = "d.sz"
#: FTS5's averages record, and the bytes of the index: see `bytes_per_word`.
TOTALS = (
    "SELECT (SELECT hex(block) FROM part_search_data WHERE id = 1), "
    "(SELECT sum(length(block) + 12) FROM part_search_data)"
)


def count_words(counts: str) -> int:
    """Return the sum of what ``group_concat(hex(WORD_COUNT), '')`` holds."""
    return sum(_read_varints(bytes.fromhex(counts)))


def bytes_per_word(record: str | None, total: int | None) -> float:
    """Return the bytes of the index for each word in it; 0.0 for an empty one."""
    # FTS5 keeps the number of rows and then that of the words of each column.
    _, *words = _read_varints(bytes.fromhex(record)) if record else (0,)
    return (total or 0) / sum(words) if sum(words) else 0.0


def _read_varints(packed: bytes) -> Iterable[int]:
    """Yield SQLite's integers of variable length: 7 bits per byte, highest first."""
    value = 0
    for byte in packed:
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            yield value
            value = 0
