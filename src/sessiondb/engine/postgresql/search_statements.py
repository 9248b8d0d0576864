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

from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import NamedTuple

from sessiondb.engine.postgresql.dialect import DIALECT
from sessiondb.engine.sql import ComposedStatement, Statement
from sessiondb.patterns import late_pattern

_OF_MESSAGE, _OF_SESSION = late_pattern(r"\bm\."), late_pattern(r"\bs\.")
#: Terms of more than the session.
_OF_OTHERS = late_pattern(r"\b[mp]\.")
VISIBLE = "s.time_deleted IS NULL AND s.time_importing IS NULL"
_MESSAGES = (
    "JOIN message AS m ON m.family = p.family "
    "AND m.session_id = p.session_id AND m.seq = p.seq"
)
_SESSIONS = "JOIN session AS s ON s.family = p.family AND s.id = p.session_id"
#: Large values one by one: for a join the server may read all of them.
_LARGE = "(SELECT {0} FROM blob WHERE family = p.family AND hash = p.{1}_blob{2})"
_LARGE_TEXT = _LARGE.format("data", "text", "")
_LARGE_INPUT = _LARGE.format("data", "input", "")


def texts_of_part(of_blobs: str = "") -> str:
    """Return the columns with the words beside a part, and its texts where they are.

    *of_blobs* is a further condition of the large ones.
    """
    large_text, large_input = (
        _LARGE.format("data", name, of_blobs) for name in ("text", "input")
    )
    return f"p.words, p.text, {large_text}, p.input, {large_input}, p.title"


_TEXTS_OF_PART = texts_of_part()
#: An array of it counts as ten rows, which are looked up, and the list as 100.
_PLACES = DIALECT.list_text("places", int)
_HAS_SIBLINGS = (
    "EXISTS (SELECT 1 FROM part AS q WHERE q.family = {0}.family "
    "AND q.session_id = {0}.session_id AND q.seq = {0}.seq AND q.rid <> {0}.{1})"
)
#: Whether the message of an entry, of a part, has other parts.
_ENTRY_HAS_SIBLINGS = _HAS_SIBLINGS.format("f", "place")
_PART_HAS_SIBLINGS = _HAS_SIBLINGS.format("p", "rid")
#: The terms of bounds, over columns of places and sessions.
_BOUNDS = {
    "before": "{place} < :before",
    "cursor": "{place} < :cursor",
    "top": "{place} <= :top",
    "last": "{place} >= :last",
    "found": f"{{place}} NOT IN {DIALECT.list_text('found', int)}",
    "seen": f"{{session}} NOT IN {DIALECT.list_text('seen', str)}",
}
#: Queries as subqueries: they are read once and not for each entry, and the server
#: plans alike for all words, so that it soon keeps its plan.
_WORDS = "(SELECT CAST(:words AS tsquery))"
_IN_CHUNK = "(SELECT CAST(:in_chunk AS tsquery))"
IN_TITLE = "(SELECT CAST(:in_title AS tsquery))"
#: Whether the words of an entry may be in a row as they have to be.
_IN_ORDER = (
    "(f.chunk > 0 OR NOT f.is_in_order "
    "OR ts_match_vq(f.words, (SELECT CAST(:in_order AS tsquery))))"
)
#: A match, found without an index.
_IS_MATCH = (
    f"CASE WHEN f.chunk = 0 THEN ts_match_vq(f.words, {_WORDS}) "
    f"ELSE ts_match_vq(f.words, {_IN_CHUNK}) END"
)
#: Entries in which words are counted.
_SAMPLE = 300
#: How well a match fits, by how often it has the words, and by its length.
_SCORE = f"-ts_rank(f.words, {_WORDS}, 1)"
_BYTES = " + ".join(
    f"coalesce(octet_length(p.{name}), {_LARGE.format('size', name, '')}, 0)"
    for name in ("text", "input")
)


#: Patterns of the texts that may be meant: see `search_query.Possible`.
_PATTERNS = (
    "ARRAY(SELECT '%' || value || '%' "
    f"FROM {DIALECT.list_text('possible', str)} AS possible(value))"
)


def may_have(column: str) -> str:
    """Return whether a text has one of ``:possible`` or of ``:letters``."""
    return (
        f"coalesce(octet_length({column}) <> length({column}) AND {column} ~ :letters "
        f"OR lower({column}) LIKE ANY ({_PATTERNS}), false)"
    )


#: What is large is read anyway: the server would take longer than Python.
_MAY_BE_MEANT = (
    "(p.text_blob IS NOT NULL OR p.input_blob IS NOT NULL "
    f"OR {may_have('p.text')} OR {may_have('p.input')} OR {may_have('p.title')})"
)


#: Terms that most sessions pass.
_USUAL = ("s.time_archived IS NULL", "s.relation IS DISTINCT FROM 'subagent'")


def is_narrow(term: str) -> bool:
    """Return whether few sessions may pass a term: no other than theirs is one."""
    return term not in _USUAL and not _OF_OTHERS.search(term)


def contains(vector: str, query: str) -> str:
    """Return the condition of entries that GIN looks up."""
    # Twice: of a query that it does not know the server expects one row of 200, and
    # rather reads all of a small table. GIN looks each word up once.
    return f"{vector} @@ {query} AND {vector} @@ {query}"


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
    #: Whether message and texts of each match are read.
    has_texts: bool = False
    #: The most matches. A server that does not know it plans each query anew.
    limit: int = 0


#: Those of `search_walk.Candidate`.
_COLUMNS = "place, session_id, seq, sort_key, is_partial, has_siblings"
_NO_SESSION = 'CAST(NULL AS TEXT) COLLATE "C"'
_NO_SESSIONS = 'CAST(ARRAY[] AS TEXT[]) COLLATE "C"'
#: Where the newest places end and begin, and where a walk from there stops.
_SPAN = (
    "SELECT ends, greatest(ends - :window, :last) AS begins, "
    "greatest(ends - :window - :reach, :last) AS stops FROM (SELECT "
    "least(:before, (SELECT coalesce(max(place), 0) + 1 FROM part_search)) AS ends) "
    "AS newest_place"
)
_BEGINS = "(SELECT begins FROM span)"
_NEWEST, _PROBED, _RARE = (
    f"(SELECT count(*) FROM {name})" for name in ("newest", "probe", "rare")
)
#: Matches of the probe that are looked up at once if only one of a session is returned.
_RARE_AT_ONCE = 200


def _select_match(shape: MatchShape, of_entries: Sequence[str], entries: str) -> str:
    """Return the query for the entries that pass conditions, terms and bounds.

    Its columns are `_COLUMNS`. Part and session are looked up for each match, each if
    something depends on it: to read all of them in the same order, as a server would,
    is no faster.
    """
    of_sessions = [term for term in shape.terms if not _OF_OTHERS.search(term)]
    of_parts = [term for term in shape.terms if _OF_OTHERS.search(term)]
    if "comparison" in shape.bounds:
        of_parts.append(_MAY_BE_MEANT)
    conditions = [*of_entries, *_bounds(shape.bounds, "f.place", "f.session_id")]
    if "in_order" in shape.bounds:
        conditions.append(_IN_ORDER)
    is_partial = "f.chunk > 0"
    if "in_order" in shape.bounds:
        is_partial = "(f.chunk > 0 OR NOT f.is_in_order)"
    has_siblings = "0"
    if "spread" in shape.bounds:
        conditions.append(_ENTRY_HAS_SIBLINGS)
    elif "together" in shape.bounds:
        has_siblings = f"CAST({_ENTRY_HAS_SIBLINGS} AS INTEGER)"
    sort_key = {"newest": "NULL", "time": "-x.time_created", "rank": _SCORE}
    parts = ""
    if of_parts or shape.order == "time":
        where = " AND ".join(["p.family = f.family", "p.rid = f.place", *of_parts])
        messages = _MESSAGES if _OF_MESSAGE.search(where) else ""
        sessions = _SESSIONS if _OF_SESSION.search(where) else ""
        parts = (
            "CROSS JOIN LATERAL (SELECT p.time_created "
            f"FROM part AS p {messages} {sessions} WHERE {where} OFFSET 0) AS x"
        )
    of_sessions = ["s.family = f.family", "s.id = f.session_id", VISIBLE, *of_sessions]
    visible = " AND ".join(of_sessions)
    return (
        "SELECT f.place, f.session_id, f.seq, "
        f"CAST({sort_key[shape.order]} AS DOUBLE PRECISION) AS sort_key, "
        f"CAST({is_partial} AS INTEGER) AS is_partial, {has_siblings} AS has_siblings "
        f"FROM {entries} CROSS JOIN LATERAL "
        f"(SELECT FROM session AS s WHERE {visible} OFFSET 0) AS y {parts} "
        f"WHERE {' AND '.join(conditions)} ORDER BY f.place DESC"
    )


def _walk(shape: MatchShape, condition: str, ends: str, begins: str, seen: str) -> str:
    """Return the query that walks entries, backwards, up to the limit.

    Over ``span`` *ends* is the place that follows the last one, and *begins* the first.
    Nothing is walked unless *condition* is true. With ``is_once`` the sessions *seen*
    are passed over.
    """
    entries = "part_search AS f"
    # A pair, as the server takes two bounds of a column for a few rows, and sorts them.
    begun = f"(f.place, f.chunk) >= ((SELECT {begins} FROM span), 0)"
    if not shape.is_once:
        # That it depends on a row keeps the server from sorting in several processes.
        walk = _select_match(
            shape, [condition, _IS_MATCH, begun, f"f.place < span.{ends}"], entries
        )
        return (
            "SELECT walk.* FROM span "
            f"CROSS JOIN LATERAL ({walk} LIMIT {shape.limit}) AS walk"
        )

    # From the match of one session to that of the next. The session is compared first:
    # a long one may have thousands of other matches.
    is_next = f"CASE WHEN f.session_id <> ALL (w.seen) THEN {_IS_MATCH} ELSE false END"
    following = _select_match(shape, ["f.place < w.place", begun, is_next], entries)
    return (
        f"WITH RECURSIVE walk ({_COLUMNS}, seen) AS ("
        f"SELECT {ends}, {_NO_SESSION}, CAST(0 AS BIGINT), "
        f"CAST(NULL AS DOUBLE PRECISION), 0, 0, {seen} FROM span WHERE {condition} "
        "UNION ALL SELECT q.*, w.seen || q.session_id FROM walk AS w "
        f"CROSS JOIN LATERAL ({following} LIMIT 1) AS q) "
        f"SELECT {_COLUMNS} FROM walk WHERE session_id IS NOT NULL LIMIT {shape.limit}"
    )


def _probe(chunk: str, words: str) -> str:
    # The sums keep the server from walking all places. To depend on a row keeps it from
    # starting workers for what is perhaps not run.
    return (
        "SELECT found.place FROM span CROSS JOIN LATERAL (SELECT f.place "
        f"FROM part_search AS f WHERE {_NEWEST} < :enough AND {_BEGINS} > :last "
        f"AND f.chunk {chunk} AND {contains('f.words', words)} "
        "AND f.place + 0 < span.begins "
        "AND f.place + 0 >= :last LIMIT :many) AS found"
    )


def _rare_matches(shape: MatchShape) -> str:
    """Return the query for the matches that the probe has found, if it found all."""
    found = (
        f"(SELECT DISTINCT place FROM probe WHERE {_PROBED} < :many "
        "ORDER BY place DESC OFFSET 0) AS found CROSS JOIN part_search AS f"
    )
    bounds = ["f.place = found.place", "f.chunk <= 1"]
    if shape.is_once:
        bounds.append("f.session_id NOT IN (SELECT session_id FROM newest)")
    return f"{_select_match(shape, bounds, found)} LIMIT {_most_rare(shape)}"


def _most_rare(shape: MatchShape) -> int:
    return max(shape.limit, _RARE_AT_ONCE) if shape.is_once else shape.limit


@lru_cache(maxsize=256)
def match_statement(shape: MatchShape) -> Statement:
    """Return the query for the newest matches before ``:before`` and from ``:last`` on.

    The newest ``:window`` places are walked. If they have ``:enough``, ``:reach``
    further places are. If not, all other matches are looked up, unless they are
    ``:many``: then all places are walked if ``:is_far``.

    If there is room for more matches, the first column is the place before which
    entries were not walked, and the second that before which matches were not looked
    up, or else NULL. Then come the columns of a `search_walk.Candidate`; the only row
    has NULL there if there is no match.
    """
    is_promising, is_frequent = f"{_NEWEST} >= :enough", f"{_PROBED} >= :many"
    is_short = f"{_NEWEST} < {shape.limit} AND {_BEGINS} > :last"
    is_walked = f"{is_short} AND ({is_promising} OR :is_far = 1 AND {is_frequent})"
    walk_begins = f"CASE WHEN {is_promising} THEN stops ELSE :last END"
    seen = "ARRAY(SELECT session_id FROM newest)"
    ctes = {
        "span": _SPAN,
        "newest": _walk(shape, "true", "ends", "begins", _NO_SESSIONS),
        "probe": f"{_probe('= 0', _WORDS)} UNION ALL {_probe('> 0', _IN_CHUNK)}",
        "rare": _rare_matches(shape),
        "walked": _walk(shape, is_walked, "begins", walk_begins, seen),
    }
    sources = ("newest", "rare", "walked")
    united = " UNION ALL ".join(f"SELECT {_COLUMNS} FROM {name}" for name in sources)
    unlooked = "CAST(NULL AS BIGINT)"
    if shape.is_once:
        united = (
            f"SELECT DISTINCT ON (session_id) {_COLUMNS} FROM ({united}) AS every "
            "ORDER BY session_id, place DESC"
        )
        unlooked = (
            f"CASE WHEN {_RARE} = {_most_rare(shape)} "
            "THEN (SELECT min(place) FROM rare) END"
        )
    ctes["matches"] = (
        f"SELECT {_COLUMNS} FROM ({united}) AS every "
        f"ORDER BY place DESC LIMIT {shape.limit}"
    )
    unwalked = (
        f"CASE WHEN {is_short} THEN CASE WHEN {is_promising} THEN span.stops "
        f"WHEN :is_far = 0 AND {is_frequent} THEN span.begins END END"
    )
    queries = ", ".join(f"{name} AS MATERIALIZED ({q})" for name, q in ctes.items())
    columns, texts = _match_columns(shape, "LEFT ")
    return ComposedStatement(
        f"WITH {queries} SELECT {unwalked}, {unlooked}, {columns} "
        f"FROM span LEFT JOIN matches AS x ON true {texts} ORDER BY x.place DESC"
    )


def _match_columns(shape: MatchShape, join: str) -> tuple[str, str]:
    """Return the columns of a match ``x``, and the joins that they need."""
    columns = ", ".join(f"x.{name}" for name in _COLUMNS.split(", "))
    if not shape.has_texts:
        return columns, ""
    texts = (
        f"{join}JOIN LATERAL (SELECT m.id, {_TEXTS_OF_PART} FROM part AS p {_MESSAGES} "
        "WHERE p.rid = x.place OFFSET 0) AS t ON true"
    )
    return f"{columns}, t.*", texts


@lru_cache(maxsize=256)
def place_statement(shape: MatchShape) -> Statement:
    """Return the query for the matches among ``:places``, newest first."""
    entries = f"{_PLACES} AS listed(place) CROSS JOIN part_search AS f"
    conditions = ["f.place = listed.place", "f.chunk <= 1"]
    matches = _select_match(shape, conditions, entries)
    columns, texts = _match_columns(shape, "")
    return ComposedStatement(
        f"SELECT {columns} FROM ({matches}) AS x {texts} ORDER BY x.place DESC"
    )


@lru_cache(maxsize=256)
def session_statement(shape: MatchShape) -> Statement:
    """Return the query for sessions that pass, with their messages, up to ``:many``."""
    terms = [term for term in shape.terms if not _OF_OTHERS.search(term)]
    seen = [name for name in shape.bounds if name == "seen"]
    where = " AND ".join([VISIBLE, *terms, *_bounds(seen, "", "s.id")])
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
        # The sum keeps the server from reading a range of all parts for each session.
        *_bounds(shape.bounds, "(p.rid + 0)", "p.session_id"),
    ]
    where = " AND ".join(of_parts)
    messages = _MESSAGES if _OF_MESSAGE.search(where) else ""
    in_order, is_partial = "", "f.chunk > 0"
    if "in_order" in shape.bounds:
        in_order = f" AND {_IN_ORDER}"
        is_partial = "(f.chunk > 0 OR NOT f.is_in_order)"
    return ComposedStatement(
        "SELECT x.rid, x.session_id, x.seq, NULL, f.is_partial, 0 "
        f"FROM {DIALECT.list_text('ids', str)} AS listed(id) CROSS JOIN LATERAL ("
        f"SELECT p.rid, p.family, p.session_id, p.seq FROM part AS p {_SESSIONS} "
        f"{messages} WHERE {where} OFFSET 0) AS x CROSS JOIN LATERAL "
        f"(SELECT CAST({is_partial} AS INTEGER) AS is_partial FROM part_search AS f "
        f"WHERE f.family = x.family AND f.place = x.rid AND {_IS_MATCH}{in_order} "
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
    f"SELECT p.rid, m.id, {_TEXTS_OF_PART} FROM part AS p {_MESSAGES} "
    f"WHERE p.rid = ANY (ARRAY{_PLACES})"
)
#: The same of all parts of their messages that are found; the first column is the part
#: that is asked for.
SIBLINGS = ComposedStatement(
    f"SELECT a.rid, p.rid, {_TEXTS_OF_PART} FROM part AS a "
    "JOIN part AS p ON p.family = a.family "
    "AND p.session_id = a.session_id AND p.seq = a.seq "
    f"WHERE a.rid = ANY (ARRAY{_PLACES}) AND p.indexed = 1"
)
CONTENTS = ComposedStatement(
    f"SELECT p.rid, p.tool, p.input, {_LARGE_INPUT}, p.text, {_LARGE_TEXT}, "
    f"s.directory FROM part AS p {_SESSIONS} WHERE p.rid = ANY (ARRAY{_PLACES}) "
    # A call that failed changed nothing.
    "AND p.status IS DISTINCT FROM 'error'"
)

# -- texts that are scanned --------------------------------------------------------


@lru_cache(maxsize=256)
def scan_statement(
    terms: tuple[str, ...], bounds: tuple[str, ...], order: str, limit: int
) -> Statement:
    """Return the query for the next parts, up to *limit*, and what may be meant.

    The texts of the others are not read.
    """
    sort_key = {"newest": "NULL", "time": "-p.time_created", "rank": _BYTES}[order]
    conditions = ["p.indexed = 1", VISIBLE, *terms]
    conditions += _bounds(bounds, "p.rid", "p.session_id")
    where = " AND ".join(conditions)
    messages = _MESSAGES if _OF_MESSAGE.search(where) else ""
    has_siblings = (
        "false" if {"together", "spread"}.isdisjoint(bounds) else _PART_HAS_SIBLINGS
    )
    return ComposedStatement(
        f"SELECT p.rid, p.session_id, p.seq, {sort_key}, {_BYTES}, p.time_created, "
        f"{has_siblings}, {_MAY_BE_MEANT} "
        f"FROM part AS p {messages} {_SESSIONS} "
        f"WHERE {where} ORDER BY p.rid DESC LIMIT {limit}"
    )
