"""The search index: what enters it, its questions (`search_statements`), its upkeep."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sessiondb.engine.base import Connection
from sessiondb.engine.query import SearchQuery
from sessiondb.engine.search_index import BOUNDS
from sessiondb.engine.search_words import words_beside, words_of_part
from sessiondb.engine.sql import ComposedStatement, Read, Rows, as_list
from sessiondb.engine.sqlite.addresses import addresses_text
from sessiondb.engine.sqlite.failures import translate
from sessiondb.engine.sqlite.search_query import search_query
from sessiondb.engine.sqlite.search_statements import (
    CONTENTS,
    PASSAGES,
    SNIPPETS,
    match_statement,
    prompt_statement,
    rarest_statement,
    scan_statement,
    scanned_session_statement,
    session_statement,
    title_statement,
)
from sessiondb.engine.sqlite.search_tables import (
    INPUT,
    MARK_OF_INDEX,
    PARTS_WITH_BLOBS,
    TEXT,
)
from sessiondb.engine.sqlite.search_waiting import COLUMNS
from sessiondb.engine.sqlite.waiting_parts import (
    RAISE_MARK,
    SQLiteWaitingParts,
    put_waiting,
    read_numbers,
)
from sessiondb.errors import BusyError
from sessiondb.schema.rows import PartAddress

#: The search tables, that of parts first.
NAMES = ("part_search", "session_search", "prompt_search")
_ADDRESSES = f"({addresses_text(':parts')})"
_TEXTS = (
    f"SELECT p.rid, p.words, {TEXT}, {INPUT}, p.title FROM {PARTS_WITH_BLOBS} "
    f"WHERE (p.session_id, p.seq, p.idx) IN {_ADDRESSES} AND p.inherited = 0"
)
_PUT = (
    f"INSERT INTO part_search (rowid, {COLUMNS}) "
    f"SELECT rid, {COLUMNS} FROM part_search_content WHERE rid IN "
    f"(SELECT rid FROM part WHERE (session_id, seq, idx) IN {_ADDRESSES}) "
    # FTS5 writes what it has collected whenever a number is not above the one before.
    "ORDER BY rid"
)
_HAS_PASSED = (
    f"SELECT rid <= {MARK_OF_INDEX} FROM part "
    "WHERE session_id = ? AND seq = ? AND idx = ?"
)
_NEWEST = "coalesce((SELECT max(rid) FROM part), 0)"
_NEWEST_PLACE = ComposedStatement(f"SELECT {_NEWEST}")


class SQLiteSearchIndex:
    """SQLite's half of `engine.search_index.SearchIndex`."""

    # -- writing -------------------------------------------------------------

    words_of_part = staticmethod(words_of_part)

    def prepare(self, connection: Connection, parts: str) -> None:
        """Keep the words beside rows of ``part``, a list parameter: `search_words`."""
        changed = []
        rows = connection.execute(_TEXTS, {"parts": parts})
        for rid, stored, *texts in iter(rows.fetchone, None):
            words = words_beside(texts)
            if words != stored:
                changed.append((words, rid))
        if changed:
            connection.executemany("UPDATE part SET words = ? WHERE rid = ?", changed)

    def has_passed(self, connection: Connection, part: PartAddress) -> bool:
        """Return whether a stored part does not wait."""
        return bool(connection.execute(_HAS_PASSED, part).fetchone()[0])

    def put(
        self,
        connection: Connection,
        parts: str,
        changed: str,  # noqa: ARG002  a trigger follows
    ) -> None:
        """Index rows of ``part``, a list parameter, that do not wait for others."""
        connection.execute(_PUT, {"parts": parts})

    def put_titles(self, connection: Connection, titles: Mapping[str, str]) -> None:
        """Do nothing: triggers follow the rows of sessions."""

    def put_prompts(self, connection: Connection, prompts: Mapping[str, str]) -> None:
        """Do nothing: triggers follow the rows of prompts."""

    def take_out(self, connection: Connection, session_id: str, seq: int) -> None:
        """Do nothing: a trigger removes what is not indexed any more."""

    waiting_parts = SQLiteWaitingParts

    def is_behind(self, connection: Connection) -> bool:
        """Return whether parts wait."""
        last, indexed = read_numbers(connection)
        return last > indexed

    put_waiting = staticmethod(put_waiting)

    # -- reading -------------------------------------------------------------

    def query(self, query: str) -> SearchQuery:
        """Return what a user's *query* searches for: see `search_query`."""
        return search_query(query)

    def newest_place(self) -> Read[int]:
        """Return the place of the newest part; 0 without any."""
        ((place,),) = yield _NEWEST_PLACE, {}
        return int(place)

    def matches(
        self,
        terms: Sequence[str],
        params: Mapping[str, Any],
        *,
        order: str,
        is_shown: bool,
        rows: int,
        sessions: int | None = None,  # noqa: ARG002  to leave some out saves nothing
    ) -> Read[Rows]:
        """Return matches in parts, newest first."""
        statement = match_statement(tuple(terms), _bounds_in(params), order, is_shown)
        return (yield statement, {**params, "rows": rows})

    def sessions(
        self, terms: Sequence[str], params: Mapping[str, Any]
    ) -> Read[list[str]]:
        """Return the sessions with matches in parts, that of the newest match first."""
        rows = yield session_statement(tuple(terms), _bounds_in(params)), params
        return [session_id for (session_id,) in rows]

    def snippets(
        self, match: str, places: Sequence[int]
    ) -> Read[dict[int, tuple[str, str]]]:
        """Return message id and snippet of matches by their places."""
        ends = {"low": min(places), "high": max(places)}
        rows = yield SNIPPETS, {"match": match, "rids": as_list(places), **ends}
        return {place: (message_id, snippet) for place, message_id, snippet in rows}

    def rarest(self, matches: Sequence[str]) -> Read[int]:
        """Return which of *matches* goes furthest back for its newest parts."""
        params = {f"cover{index}": match for index, match in enumerate(matches)}
        ((*places,),) = yield rarest_statement(len(matches)), params
        return places.index(min(places))

    def scan(
        self,
        terms: Sequence[str],
        params: Mapping[str, Any],
        *,
        order: str,
        rows: int,
    ) -> Read[Rows]:
        """Return the next parts, each compared with the query."""
        statement = scan_statement(tuple(terms), _bounds_in(params), order)
        return (yield statement, {**params, "rows": rows})

    def scanned_sessions(
        self,
        terms: Sequence[str],
        params: Mapping[str, Any],
        session_ids: Iterable[str],
    ) -> Read[list[str]]:
        """Return those of given sessions with a match in their parts."""
        statement = scanned_session_statement(tuple(terms), _bounds_in(params))
        rows = yield statement, {**params, "ids": as_list(session_ids)}
        return [session_id for (session_id,) in rows]

    def passages(
        self, needles: str, places: Sequence[int]
    ) -> Read[dict[int, tuple[str, str]]]:
        """Return message id and the text at the needles of parts by their places."""
        rows = yield PASSAGES, {"needles": needles, "rids": as_list(places)}
        return {place: (message_id, text) for place, message_id, text in rows}

    def contents(self, places: Sequence[int]) -> Read[Rows]:
        """Return what parts contain, without those of calls that failed."""
        return (yield CONTENTS, {"rids": as_list(places)})

    def titles(
        self,
        terms: Sequence[str],
        params: Mapping[str, Any],
        terms_of_parts: Sequence[str],
        *,
        rows: int,
    ) -> Read[Rows]:
        """Return the sessions whose title alone matches."""
        statement = title_statement(
            tuple(terms), _bounds_in(params), tuple(terms_of_parts)
        )
        return (yield statement, {**params, "rows": rows})

    def prompts(
        self,
        columns: str,
        terms: Sequence[str],
        params: Mapping[str, Any],
        *,
        rows: int,
    ) -> Read[Rows]:
        """Return prompts, newest first."""
        has_match = "match" in params
        statement = prompt_statement(
            columns, tuple(terms), _bounds_in(params), has_match
        )
        return (yield statement, {**params, "rows": rows})

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
                connection.execute(RAISE_MARK.format(_NEWEST))
            connection.execute(f"INSERT INTO {name} ({name}) VALUES ('rebuild')")

    def optimize(self, connection: Connection) -> None:
        """Merge the segments of all transactions, and drop removed entries."""
        self.put_waiting(connection)
        for name in NAMES:
            connection.execute(f"INSERT INTO {name} ({name}) VALUES ('optimize')")


def _bounds_in(params: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(sorted(BOUNDS.intersection(params)))


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
