"""The queries of the search index, over the tables of `search_tables`.

FTS5 answers one MATCH by one walk over its index. A statement that looks up
single rows of the search table (``rowid IN (…)``, or a join that begins
elsewhere) repeats the MATCH for each of them, so no statement here does.

A scan has no MATCH: it walks the parts themselves, backwards, and compares their texts.
Filters are decided first, so that no text is read for nothing.

Each statement is made once for the terms and bounds of `engine.search_index`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from sessiondb.engine.base import SNIPPET_MARKS
from sessiondb.engine.sql import ComposedStatement, Statement
from sessiondb.engine.sqlite.dialect import DIALECT
from sessiondb.engine.sqlite.search_query import (
    EXCERPT,
    EXCERPT_BESIDE,
    IS_MEANT,
    PART_BORDER,
    PASSAGE,
    TEXT_BORDER,
    TOGETHER,
)
from sessiondb.engine.sqlite.search_tables import (
    BLOBS,
    INPUT,
    PARTS_WITH_BLOBS,
    TEXT,
    words_of_json,
)
from sessiondb.engine.sqlite.search_waiting import COLUMNS, SEARCH_PARTS, snippet_sql
from sessiondb.patterns import late_pattern

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
    "seen": f"p.session_id NOT IN {DIALECT.list_text('seen', str)}",
    "found": f"f.rowid NOT IN {DIALECT.list_text('found', int)}",
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


# -- the statements of questions ---------------------------------------------------


@lru_cache(maxsize=256)
def match_statement(
    terms: tuple[str, ...], bounds: tuple[str, ...], order: str, is_shown: bool
) -> Statement:
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
    return ComposedStatement(f"{_UNION.join(queries)} ORDER BY 1 DESC LIMIT :rows")


@lru_cache(maxsize=256)
def session_statement(terms: tuple[str, ...], bounds: tuple[str, ...]) -> Statement:
    """Return the query for the sessions with matches in parts.

    The session of the newest match comes first.
    """
    conditions = _conditions(terms, bounds)
    matches = _UNION.join(
        _select("p.session_id", source, conditions) for source in _SOURCES
    )
    return ComposedStatement(f"SELECT DISTINCT session_id FROM ({matches})")


#: The matches ``:rids``, from ``:low`` to ``:high``.
SNIPPETS = ComposedStatement(
    _UNION.join(
        f"SELECT f.rowid, m.id, {source.snippet} "
        f"FROM {source.rows} {_PARTS} {_MESSAGES} "
        f"WHERE {source.condition} AND f.rowid BETWEEN :low AND :high "
        # The + keeps SQLite from looking up rows, which would repeat the MATCH.
        f"AND +f.rowid IN {DIALECT.list_text('rids', int)}"
        for source in _SOURCES
    )
)


@lru_cache(maxsize=64)
def rarest_statement(number: int) -> Statement:
    """Return the query for the place of an old match of each of *number* covers."""
    places = [
        "coalesce((SELECT rowid FROM part_search "
        f"WHERE part_search MATCH :cover{index} ORDER BY rowid DESC "
        f"LIMIT 1 OFFSET {_SAMPLE}), 0)"
        for index in range(number)
    ]
    return ComposedStatement(f"SELECT {', '.join(places)}")


@lru_cache(maxsize=256)
def scan_statement(
    terms: tuple[str, ...], bounds: tuple[str, ...], order: str
) -> Statement:
    """Return the query for the next parts, each compared with the query."""
    sort_key = {"newest": "NULL", "time": "-p.time_created", "rank": _BYTES}[order]
    conditions = ["p.indexed = 1", _VISIBLE, *terms]
    conditions += [_SCAN_BOUNDS[name] for name in bounds if name in _SCAN_BOUNDS]
    further = " AND ".join(conditions)
    return ComposedStatement(
        f"SELECT p.rid, p.session_id, p.seq, NULL, NULL, {sort_key}, "
        f"{_meant_in_scan(bounds)}, {_BYTES}, p.time_created "
        f"FROM {_scanned(further, _SESSIONS)} WHERE {further} "
        "ORDER BY p.rid DESC LIMIT :rows"
    )


@lru_cache(maxsize=256)
def scanned_session_statement(
    terms: tuple[str, ...], bounds: tuple[str, ...]
) -> Statement:
    """Return the query for those of given sessions with a match in their parts."""
    return ComposedStatement(
        "SELECT s.id FROM session AS s "
        f"WHERE s.id IN {DIALECT.list_text('ids', str)} "
        f"AND {_has_scanned_match(terms, bounds)}"
    )


#: The texts around the needles in given parts.
PASSAGES = ComposedStatement(
    f"SELECT p.rid, m.id, {PASSAGE}(:needles, {TEXT}, {INPUT}, p.title) "
    f"FROM part AS p {_MESSAGES} {BLOBS} "
    f"WHERE p.rid IN {DIALECT.list_text('rids', int)}"
)
CONTENTS = ComposedStatement(
    "SELECT p.rid, p.tool, p.input, ib.data, p.text, tb.data, s.directory "
    f"FROM part AS p JOIN session AS s ON s.id = p.session_id {BLOBS} "
    f"WHERE p.rid IN {DIALECT.list_text('rids', int)} "
    # A call that failed changed nothing.
    "AND p.status IS NOT 'error'"
)


@lru_cache(maxsize=256)
def title_statement(
    terms: tuple[str, ...], bounds: tuple[str, ...], terms_of_parts: tuple[str, ...]
) -> Statement:
    """Return the query for sessions whose title alone matches."""
    if "shown" in bounds:
        is_new = f"s.id NOT IN {DIALECT.list_text('shown', str)}"
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
    return ComposedStatement(f"{united} ORDER BY 1 DESC LIMIT :rows")


@lru_cache(maxsize=256)
def prompt_statement(
    columns: str, terms: tuple[str, ...], bounds: tuple[str, ...], has_match: bool
) -> Statement:
    """Return the query for prompts, newest first, at most ``:rows``."""
    conditions = list(terms)
    if has_match and "scanned" not in bounds:
        conditions.append(
            "rid IN (SELECT rowid FROM prompt_search WHERE prompt_search MATCH :match)"
        )
    compared = "scanned" if "scanned" in bounds else "comparison"
    if compared in bounds:
        conditions.append(f"{IS_MEANT}(:{compared}, NULL, prompt.text)")
    return ComposedStatement(
        f"SELECT {columns} FROM prompt WHERE {' AND '.join(conditions) or '1'} "
        "ORDER BY time_created DESC, id DESC LIMIT :rows"
    )
