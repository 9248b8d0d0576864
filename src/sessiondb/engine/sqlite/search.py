"""The queries of the search index, over the tables of `search_tables`.

FTS5 answers one MATCH by one walk over its index. A statement that looks up
single rows of the search table (``rowid IN (…)``, or a join that begins
elsewhere) repeats the MATCH for each of them, so no statement here does.

A scan has no MATCH: it walks the parts themselves, backwards, and compares their texts.
Filters are decided first, so that no text is read for nothing.
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
    EXCERPT_BESIDE,
    IS_MEANT,
    PART_BORDER,
    PASSAGE,
    TEXT_BORDER,
    TOGETHER,
    search_query,
)
from sessiondb.engine.sqlite.search_tables import (
    BLOBS,
    INPUT,
    MARK_OF_INDEX,
    PARTS_WITH_BLOBS,
    PUT_WAITING,
    TEXT,
    words_of_json,
)
from sessiondb.engine.sqlite.search_waiting import COLUMNS, SEARCH_PARTS, snippet_sql
from sessiondb.engine.sqlite.search_words import words_beside, words_of_part
from sessiondb.errors import BusyError
from sessiondb.patterns import late_pattern

#: The search tables, that of parts first.
NAMES = ("part_search", "session_search", "prompt_search")
_TEXTS = (
    f"SELECT p.rid, p.words, {TEXT}, {INPUT}, p.title FROM {PARTS_WITH_BLOBS} "
    f"WHERE p.rid IN {DIALECT.list_text('rids')} AND p.inherited = 0"
)
_PUT = (
    f"INSERT INTO part_search (rowid, {COLUMNS}) "
    f"SELECT rid, {COLUMNS} "
    f"FROM part_search_content WHERE rid IN {DIALECT.list_text('rids')}"
)
_LAST_PLACE = "coalesce((SELECT max(rid) FROM part), 0)"
_PLACES = f"SELECT max({_LAST_PLACE}, {MARK_OF_INDEX}), {MARK_OF_INDEX}"
_RAISE_MARK = (
    "INSERT INTO meta (key, value) VALUES ('indexed_to', {}) "
    "ON CONFLICT (key) DO UPDATE SET value = excluded.value"
)
_VISIBLE = "s.time_deleted IS NULL AND s.time_importing IS NULL"
_PARTS = "CROSS JOIN part AS p ON p.rid = f.rowid"
_MESSAGES = "CROSS JOIN message AS m ON m.session_id = p.session_id AND m.seq = p.seq"
_SESSIONS = "CROSS JOIN session AS s ON s.id = p.session_id"
_HAS_SIBLINGS = (
    "EXISTS (SELECT 1 FROM part AS q "
    "WHERE q.session_id = p.session_id AND q.seq = p.seq AND q.rid <> p.rid)"
)


def _together(name: str) -> str:
    """Return whether the parts of a message have together what is meant."""
    columns = ("coalesce(q.words, '')", TEXT, INPUT, "coalesce(q.title, '')")
    texts = f" || char({ord(TEXT_BORDER)}) || ".join(columns)
    return (
        f"(SELECT {TOGETHER}(:{name}, p.rid, group_concat(q.rid), "
        f"group_concat({_of_alias(texts, 'q')}, char({ord(PART_BORDER)}))) "
        f"FROM {_of_alias(PARTS_WITH_BLOBS, 'q')} WHERE q.session_id = p.session_id "
        "AND q.seq = p.seq AND q.indexed = 1)"
    )


def _of_alias(sql: str, alias: str) -> str:
    return re.sub(r"\bp\b", alias, sql)


#: Texts that are not blobs are in the row at hand; FTS5 would look them up again.
_IS_AT_HAND = "p.text_blob IS NULL AND p.input_blob IS NULL"
_AT_HAND = f"p.text, {words_of_json('p.input')}, p.title"
_COMPARED = f"{IS_MEANT}(:comparison, f.words, f.text, f.input, f.title)"
#: The terms of the bounds of `SearchIndex`, for matches in parts. Of a message with one
#: part no text is read twice.
_BOUNDS = {
    "cursor": "f.rowid < :cursor",
    "top": "f.rowid <= :top",
    "last": "f.rowid >= :last",
    "seen": f"p.session_id NOT IN {DIALECT.list_text('seen')}",
    "found": f"f.rowid NOT IN {DIALECT.list_text('found')}",
    "comparison": (
        f"iif({_IS_AT_HAND}, {IS_MEANT}(:comparison, p.words, {_AT_HAND}), {_COMPARED})"
    ),
    "together": f"iif({_HAS_SIBLINGS}, {_together('together')}, 1)",
    "spread": f"iif({_HAS_SIBLINGS}, {_together('spread')}, 0)",
}
#: The matches after which two covers are compared: the one that is further back then
#: has fewer.
_SAMPLE = 20
#: The terms of the bounds of a scan.
_SCAN_BOUNDS = {
    "cursor": "p.rid < :cursor",
    "top": "p.rid <= :top",
    "last": "p.rid >= :last",
    "seen": _BOUNDS["seen"],
}
_BYTES = "coalesce(length(p.text), tb.size, 0) + coalesce(length(p.input), ib.size, 0)"
_OF_MESSAGE = late_pattern(r"\bm\.")
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
#: FTS5 makes its snippet only if that is of the text: it costs as much as all the rest.
_BESIDE = (
    f"iif({_IS_AT_HAND}, {EXCERPT_BESIDE}(:match, p.words, {_AT_HAND}), "
    f"{EXCERPT_BESIDE}(:match, p.words, f.text, f.input, f.title))"
)
_INDEXED = _MatchSource(
    "part_search AS f",
    "f.part_search MATCH :match",
    f"coalesce(iif(p.words IS NULL, NULL, {_BESIDE}), "
    f"{_SNIPPET.format(snippet_sql('part_search', -1))})",
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


def _conditions(terms: Sequence[str], bounds: Collection[str]) -> str:
    """Return the conditions of matches in parts, besides the match itself."""
    compared = {name: _BOUNDS[name] for name in bounds if name in _BOUNDS}
    if "inside" in bounds:
        # Most candidates have it as it was typed, which SQLite finds out by itself.
        meant = compared["comparison"]
        compared["comparison"] = f"iif(instr(p.text, :inside), 1, {meant})"
    return f"{_VISIBLE}{_and_terms([*terms, *compared.values()])}"


def _select(columns: str, source: _MatchSource, conditions: str) -> str:
    # Only some need the message, whose row is elsewhere in the file.
    has_message = _OF_MESSAGE.search(f"{columns} {conditions}")
    return (
        f"SELECT {columns} "
        f"FROM {source.rows} {_PARTS} {_MESSAGES if has_message else ''} {_SESSIONS} "
        f"WHERE {source.condition} AND {conditions}"
    )


def _scanned(conditions: str, sessions: str = "") -> str:
    """Return the FROM of a scan: filters are decided before a text is read."""
    messages = _MESSAGES if _OF_MESSAGE.search(conditions) else ""
    return f"part AS p {messages} {sessions} {BLOBS}"


def _meant_in_scan(bounds: Collection[str]) -> str:
    """Return whether a part that is scanned, or its message, is what is meant."""
    texts = f"p.words, {TEXT}, {INPUT}, p.title"
    # As iif: of AND and OR in a result SQLite computes both sides.
    meant = f"{IS_MEANT}(:scanned, {texts})"
    if "together" in bounds:
        meant = f"iif({meant}, {_BOUNDS['together']}, 0)"
    if "spread" in bounds:
        # Nearly every part is decided by its own text.
        meant = f"iif({meant}, 1, {_BOUNDS['spread']})"
        meant = f"iif({IS_MEANT}(:cover, {texts}), {meant}, 0)"
    return meant


def _has_scanned_match(terms: Sequence[str], bounds: Collection[str]) -> str:
    """Return whether a part of the session ``s`` passes the filters and is meant."""
    conditions = ["p.session_id = s.id", "p.indexed = 1", *terms]
    conditions += [_SCAN_BOUNDS[name] for name in ("top", "last") if name in bounds]
    further = " AND ".join(conditions)
    return (
        f"EXISTS (SELECT 1 FROM {_scanned(further)} "
        f"WHERE {further} AND {_meant_in_scan(bounds)})"
    )


class SQLiteSearchIndex:
    """SQLite's half of `engine.search_index.SearchIndex`."""

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

    def put_waiting(self, connection: Connection | sqlite3.Connection) -> None:
        """Index all that waits."""
        connection.execute(PUT_WAITING)
        connection.execute(_RAISE_MARK.format(f"max({_LAST_PLACE}, {MARK_OF_INDEX})"))

    # -- reading -------------------------------------------------------------

    def query(self, query: str) -> SearchQuery:
        """Return what a user's *query* searches for: see `search_query`."""
        return search_query(query)

    def matches(
        self,
        terms: Sequence[str],
        bounds: Collection[str],
        *,
        order: str,
        is_shown: bool,
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

    def sessions(self, terms: Sequence[str], bounds: Collection[str]) -> str:
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

    def rarest(self, number: int) -> str:
        """Return the query for the place of an old match of each of *number* covers."""
        places = [
            "coalesce((SELECT rowid FROM part_search "
            f"WHERE part_search MATCH :cover{index} ORDER BY rowid DESC "
            f"LIMIT 1 OFFSET {_SAMPLE}), 0)"
            for index in range(number)
        ]
        return f"SELECT {', '.join(places)}"

    def scan(self, terms: Sequence[str], bounds: Collection[str], *, order: str) -> str:
        """Return the query for the next parts, each compared with the query."""
        sort_key = {"newest": "NULL", "time": "-p.time_created", "rank": _BYTES}[order]
        conditions = ["p.indexed = 1", _VISIBLE, *terms]
        conditions += [_SCAN_BOUNDS[name] for name in bounds if name in _SCAN_BOUNDS]
        further = " AND ".join(conditions)
        return (
            f"SELECT p.rid, p.session_id, p.seq, NULL, NULL, {sort_key}, "
            f"{_meant_in_scan(bounds)}, {_BYTES}, p.time_created "
            f"FROM {_scanned(further, _SESSIONS)} WHERE {further} "
            "ORDER BY p.rid DESC LIMIT :rows"
        )

    def scanned_sessions(self, terms: Sequence[str], bounds: Collection[str]) -> str:
        """Return the query for those of given sessions with a match in their parts."""
        return (
            "SELECT s.id FROM session AS s "
            f"WHERE s.id IN {DIALECT.list_text('ids')} "
            f"AND {_has_scanned_match(terms, bounds)}"
        )

    def passages(self) -> str:
        """Return the query for the texts around the needles in given parts."""
        return (
            f"SELECT p.rid, m.id, {PASSAGE}(:needles, {TEXT}, {INPUT}, p.title) "
            f"FROM part AS p {_MESSAGES} {BLOBS} "
            f"WHERE p.rid IN {DIALECT.list_text('rids')}"
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
        elif "needles" in bounds:
            is_new = f"NOT {_has_scanned_match(terms_of_parts, bounds)}"
        else:
            meant = f" AND {_COMPARED}" if "comparison" in bounds else ""
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

        shown = f"{EXCERPT}(:match, NULL, s.title)"
        if "needles" in bounds:
            shown = f"{PASSAGE}(:needles, s.title)"
        meant = f"{IS_MEANT}(:comparison, NULL, s.title)"
        indexed = "session_search AS f CROSS JOIN session AS s ON s.rid = f.rowid"
        matches = "f.session_search MATCH :match"
        if "scanned" in bounds:
            united = (
                f"SELECT s.rid, {_OF_TITLE}, {shown} "
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
        f"SELECT count(*) FROM part WHERE indexed = 1 AND rid <= {MARK_OF_INDEX} "
        "AND rid NOT IN (SELECT id FROM part_search_docsize)"
    )
    count_orphans = (
        "SELECT count(*) FROM part_search_docsize AS i WHERE i.id NOT IN "
        f"(SELECT rid FROM part WHERE indexed = 1 AND rid <= {MARK_OF_INDEX})"
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

    def rebuild(
        self,
        connection: Connection | sqlite3.Connection,
        names: Iterable[str] = NAMES,
    ) -> None:
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
