"""The queries of the search index, over the tables of `search_tables`.

Newest first has two plans, of which neither is right for every word. The entries are
*walked*, backwards, up to the limit: that is quick for a frequent word. Or the GIN
index yields the places of all matches, in no order: that is quick for a rare one. The
server does not know which word is which when it plans a statement for any of them. So a
walk calls the function behind ``@@``, which no index answers.

Each statement is made once for the terms and bounds of `engine.search_index`. Texts are
not compared here: `search` does that.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from typing import NamedTuple

from sessiondb.engine.postgresql.dialect import DIALECT
from sessiondb.engine.sql import ComposedStatement, Statement
from sessiondb.patterns import late_pattern

_OF_MESSAGE = late_pattern(r"\bm\.")
#: Terms of more than the session.
_OF_OTHERS = late_pattern(r"\b[mp]\.")
_VISIBLE = "s.time_deleted IS NULL AND s.time_importing IS NULL"
_MESSAGES = "JOIN message AS m ON m.session_id = p.session_id AND m.seq = p.seq"
_SESSIONS = "JOIN session AS s ON s.id = p.session_id"
#: Large values one by one: for a join the server may read all of them.
_LARGE = "(SELECT {0} FROM blob WHERE hash = p.{1}_blob)"
_LARGE_TEXT = _LARGE.format("data", "text")
_LARGE_INPUT = _LARGE.format("data", "input")
#: Words beside a part, and its texts: each where it is stored.
TEXTS_OF_PART = f"p.words, p.text, {_LARGE_TEXT}, p.input, {_LARGE_INPUT}, p.title"
_PLACES = DIALECT.list_text("places", int)
_HAS_SIBLINGS = (
    "EXISTS (SELECT 1 FROM part AS q "
    "WHERE q.session_id = p.session_id AND q.seq = p.seq AND q.rid <> p.rid)"
)
#: The terms of bounds, over columns of places and sessions.
_BOUNDS = {
    "cursor": "{place} < :cursor",
    "top": "{place} <= :top",
    "last": "{place} >= :last",
    "found": f"{{place}} NOT IN {DIALECT.list_text('found', int)}",
    "seen": f"{{session}} NOT IN {DIALECT.list_text('seen', str)}",
}
#: Bounds by the place alone.
_ENDS = ("cursor", "top", "last")
_WORDS = "CAST(:words AS tsquery)"
_IN_CHUNK = "CAST(:in_chunk AS tsquery)"
#: Whether the words of an entry may be in a row as they have to be.
_IN_ORDER = (
    "(f.chunk > 0 OR NOT f.is_in_order "
    "OR ts_match_vq(f.words, CAST(:in_order AS tsquery)))"
)
#: A match, found without an index.
_IS_MATCH = (
    f"(f.chunk = 0 AND ts_match_vq(f.words, {_WORDS}) "
    f"OR f.chunk > 0 AND ts_match_vq(f.words, {_IN_CHUNK}))"
)
#: Entries in which words are counted.
_SAMPLE = 1_000
#: How well a match fits, by how often it has the words, and by its length.
_SCORE = f"-ts_rank(f.words, {_WORDS}, 1)"
_BYTES = " + ".join(
    f"coalesce(octet_length(p.{name}), {_LARGE.format('size', name)}, 0)"
    for name in ("text", "input")
)


#: Patterns of the texts that may be meant: see `search_query.Possible`.
_PATTERNS = (
    "ARRAY(SELECT '%' || value || '%' "
    f"FROM {DIALECT.list_text('possible', str)} AS possible(value))"
)


def _may_have(column: str) -> str:
    """Return whether a text has one of ``:possible`` or of ``:letters``."""
    return (
        f"coalesce(octet_length({column}) <> length({column}) AND {column} ~ :letters "
        f"OR lower({column}) LIKE ANY ({_PATTERNS}), false)"
    )


#: What is large is read anyway: the server would take longer than Python.
_MAY_BE_MEANT = (
    "(p.text_blob IS NOT NULL OR p.input_blob IS NOT NULL "
    f"OR {_may_have('p.text')} OR {_may_have('p.input')} OR {_may_have('p.title')})"
)


def _bounds(bounds: Collection[str], place: str, session: str) -> list[str]:
    return [
        _BOUNDS[name].format(place=place, session=session)
        for name in bounds
        if name in _BOUNDS
    ]


class MatchShape(NamedTuple):
    """The facts on which the texts of a search depend, without values."""

    terms: tuple[str, ...]
    #: The names of bounds, and ``in_order`` if words have to be in a row.
    bounds: tuple[str, ...]
    order: str
    #: Whether one match of a session is enough.
    is_once: bool = False
    #: The most matches. A server that does not know it plans each query anew.
    limit: int = 0


def _select_matches(shape: MatchShape, *of_entries: str) -> str:
    """Return the query for the entries that pass conditions, terms and bounds.

    Its columns are `_COLUMNS`. Parts are looked up for each match: to read all of them
    in the same order, as a server would, is no faster.
    """
    terms, bounds, order, *_ = shape
    sort_key = {"newest": "NULL", "time": "-x.time_created", "rank": _SCORE}[order]
    has_siblings = "false"
    of_parts = ["p.rid = f.place", "p.indexed = 1", _VISIBLE, *terms]
    if "spread" in bounds:
        of_parts.append(_HAS_SIBLINGS)
    elif "together" in bounds:
        has_siblings = _HAS_SIBLINGS
    if "comparison" in bounds:
        of_parts.append(_MAY_BE_MEANT)
    conditions = [*of_entries, *_bounds(bounds, "f.place", "f.session_id")]
    if "in_order" in bounds:
        conditions.append(_IN_ORDER)
    where = " AND ".join(of_parts)
    messages = _MESSAGES if _OF_MESSAGE.search(where) else ""
    return (
        f"SELECT f.place, f.session_id, x.seq, {sort_key} AS sort_key, "
        "f.chunk > 0 AS is_split, x.has_siblings FROM part_search AS f CROSS JOIN "
        f"LATERAL (SELECT p.seq, p.time_created, {has_siblings} AS has_siblings "
        f"FROM part AS p {messages} {_SESSIONS} WHERE {where} OFFSET 0) AS x "
        f"WHERE {' AND '.join(conditions)} ORDER BY f.place DESC"
    )


#: Those of `search_walk.Candidate`.
_COLUMNS = "place, session_id, seq, sort_key, is_split, has_siblings"


def _walk(shape: MatchShape, *of_entries: str) -> Statement:
    """Return the query that walks the entries, backwards, up to the limit."""
    newest = _select_matches(shape, _IS_MATCH, *of_entries)
    if not shape.is_once:
        return ComposedStatement(f"{newest} LIMIT {shape.limit}")

    # From the match of one session to that of the next. The session is compared first:
    # a long one may have thousands of other matches.
    is_next = f"CASE WHEN f.session_id <> ALL (w.seen) THEN {_IS_MATCH} ELSE false END"
    following = _select_matches(shape, "f.place < w.place", is_next, *of_entries)
    return ComposedStatement(
        f"WITH RECURSIVE walk ({_COLUMNS}, seen) AS ("
        f"(SELECT q.*, ARRAY[q.session_id] FROM ({newest} LIMIT 1) AS q) "
        "UNION ALL SELECT q.*, w.seen || q.session_id FROM walk AS w "
        f"CROSS JOIN LATERAL ({following} LIMIT 1) AS q) "
        f"SELECT {_COLUMNS} FROM walk LIMIT {shape.limit}"
    )


@lru_cache(maxsize=256)
def walk_statement(shape: MatchShape) -> Statement:
    """Return the query for the newest matches."""
    return _walk(shape)


@lru_cache(maxsize=256)
def newest_statement(shape: MatchShape) -> Statement:
    """Return that query for the newest ``:window`` places alone."""
    end = "(SELECT coalesce(max(place), 0) FROM part_search)"
    for name in ("cursor", "top"):
        if name in shape.bounds:
            end = f":{name}"
            break
    return _walk(shape, f"f.place >= {end} - :window")


@lru_cache(maxsize=256)
def match_statement(shape: MatchShape) -> Statement:
    """Return the query for the matches among ``:places``, newest first."""
    return ComposedStatement(
        _select_matches(shape, "f.chunk <= 1", f"f.place IN {_PLACES}")
    )


@lru_cache(maxsize=16)
def probe_statement(bounds: tuple[str, ...]) -> Statement:
    """Return the query for the places of all matches, unless they are ``:many``."""
    ends = _bounds([name for name in bounds if name in _ENDS], "f.place", "")
    further = "".join(f" AND {term}" for term in ends)
    return ComposedStatement(
        "(SELECT f.place FROM part_search AS f "
        f"WHERE f.chunk = 0 AND f.words @@ {_WORDS}{further} LIMIT :many) UNION "
        "(SELECT f.place FROM part_search AS f "
        f"WHERE f.chunk > 0 AND f.words @@ {_IN_CHUNK}{further} LIMIT :many)"
    )


@lru_cache(maxsize=256)
def session_statement(shape: MatchShape) -> Statement:
    """Return the query for sessions that pass, with their messages, up to ``:many``."""
    terms = [term for term in shape.terms if not _OF_OTHERS.search(term)]
    seen = [name for name in shape.bounds if name == "seen"]
    where = " AND ".join([_VISIBLE, *terms, *_bounds(seen, "", "s.id")])
    return ComposedStatement(
        f"SELECT s.id, s.message_count FROM session AS s WHERE {where} LIMIT :many"
    )


@lru_cache(maxsize=256)
def session_match_statement(shape: MatchShape) -> Statement:
    """Return the query for all matches in the sessions ``:ids``."""
    of_parts = [
        "p.session_id = listed.id",
        "p.indexed = 1",
        *shape.terms,
        *_bounds(shape.bounds, "p.rid", "p.session_id"),
    ]
    where = " AND ".join(of_parts)
    messages = _MESSAGES if _OF_MESSAGE.search(where) else ""
    in_order = f" AND {_IN_ORDER}" if "in_order" in shape.bounds else ""
    return ComposedStatement(
        "SELECT x.rid, x.session_id, x.seq, NULL, f.chunk > 0, false "
        f"FROM {DIALECT.list_text('ids', str)} AS listed(id) CROSS JOIN LATERAL ("
        f"SELECT p.rid, p.session_id, p.seq FROM part AS p {_SESSIONS} {messages} "
        f"WHERE {where} OFFSET 0) AS x CROSS JOIN LATERAL (SELECT f.chunk "
        f"FROM part_search AS f WHERE f.place = x.rid AND {_IS_MATCH}{in_order} "
        "OFFSET 0) AS f"
    )


@lru_cache(maxsize=16)
def rarest_statement(number: int) -> Statement:
    """Return the query for how many of the newest entries have each words."""
    counts = [
        f"count(*) FILTER (WHERE ts_match_vq(f.words, CAST(:words{index} AS tsquery)))"
        for index in range(number)
    ]
    return ComposedStatement(
        f"SELECT {', '.join(counts)} FROM (SELECT words FROM part_search "
        f"WHERE chunk = 0 ORDER BY place DESC LIMIT {_SAMPLE}) AS f"
    )


NEWEST_PLACE = ComposedStatement("SELECT coalesce(max(rid), 0) FROM part")
#: Place, message and texts of the parts ``:places``.
TEXTS = ComposedStatement(
    f"SELECT p.rid, m.id, {TEXTS_OF_PART} FROM part AS p {_MESSAGES} "
    f"WHERE p.rid IN {_PLACES}"
)
#: The same of all parts of their messages that are found; the first column is the part
#: that is asked for.
SIBLINGS = ComposedStatement(
    f"SELECT a.rid, p.rid, {TEXTS_OF_PART} FROM part AS a "
    "JOIN part AS p ON p.session_id = a.session_id AND p.seq = a.seq "
    f"WHERE a.rid IN {_PLACES} AND p.indexed = 1"
)
CONTENTS = ComposedStatement(
    f"SELECT p.rid, p.tool, p.input, {_LARGE_INPUT}, p.text, {_LARGE_TEXT}, "
    f"s.directory FROM part AS p {_SESSIONS} WHERE p.rid IN {_PLACES} "
    # A call that failed changed nothing.
    "AND p.status IS DISTINCT FROM 'error'"
)

# -- texts that no index knows -----------------------------------------------------


@lru_cache(maxsize=256)
def scan_statement(
    terms: tuple[str, ...], bounds: tuple[str, ...], order: str, limit: int
) -> Statement:
    """Return the query for the next parts, up to *limit*, and what may be meant.

    The texts of the others are not read.
    """
    sort_key = {"newest": "NULL", "time": "-p.time_created", "rank": _BYTES}[order]
    conditions = ["p.indexed = 1", _VISIBLE, *terms]
    conditions += _bounds(bounds, "p.rid", "p.session_id")
    where = " AND ".join(conditions)
    messages = _MESSAGES if _OF_MESSAGE.search(where) else ""
    has_siblings = (
        "false" if {"together", "spread"}.isdisjoint(bounds) else _HAS_SIBLINGS
    )
    return ComposedStatement(
        f"SELECT p.rid, p.session_id, p.seq, {sort_key}, {_BYTES}, p.time_created, "
        f"{has_siblings}, {_MAY_BE_MEANT} "
        f"FROM part AS p {messages} {_SESSIONS} "
        f"WHERE {where} ORDER BY p.rid DESC LIMIT {limit}"
    )


#: Titles that are read at once.
TITLES_AT_ONCE = 1_000


@lru_cache(maxsize=256)
def title_statement(terms: tuple[str, ...], bounds: tuple[str, ...]) -> Statement:
    """Return the query for the next sessions whose title or own id may be meant."""
    conditions = [_VISIBLE, "s.message_count > 0", *terms]
    may_match = _may_have("s.title")
    if "own_id" in bounds:
        may_match = f"({may_match} OR starts_with(s.source_id, :own_id))"
    conditions.append(may_match)
    if "cursor" in bounds:
        conditions.append("s.rid < :cursor")
    if "shown" in bounds:
        conditions.append(f"s.id NOT IN {DIALECT.list_text('shown', str)}")
    return ComposedStatement(
        "SELECT s.rid, s.id, s.title, s.source_id FROM session AS s "
        f"WHERE {' AND '.join(conditions)} ORDER BY s.rid DESC LIMIT {TITLES_AT_ONCE}"
    )


#: The first message of each of the sessions ``:ids``.
FIRST_MESSAGES = ComposedStatement(
    f"SELECT m.* FROM {DIALECT.list_text('ids', str)} AS listed(id) "
    "CROSS JOIN LATERAL (SELECT session_id, seq, id FROM message "
    "WHERE session_id = listed.id ORDER BY seq LIMIT 1) AS m"
)


@lru_cache(maxsize=256)
def prompt_statement(
    columns: str, terms: tuple[str, ...], is_compared: bool, is_later: bool
) -> Statement:
    """Return the query for prompts that may be meant, newest first, up to ``:rows``."""
    conditions = ["true", *terms]
    if is_compared:
        conditions.append(_may_have("prompt.text"))
    if is_later:
        conditions.append("(time_created, id) < (:after, :after_id)")
    return ComposedStatement(
        f"SELECT time_created, id, text, {columns} FROM prompt "
        f"WHERE {' AND '.join(conditions)} "
        "ORDER BY time_created DESC, id DESC LIMIT :rows"
    )
