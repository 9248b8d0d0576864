"""The search index: what enters it, its questions, its upkeep.

The database yields candidates by their words (`search_walk`), and their texts are
compared here (`search_comparing`), with the functions that every engine uses: a server
cannot have functions of ours. Nothing waits: what a transaction writes enters the index
in it.

Titles and prompts have entries as well: what writes a title or a prompt writes that.
What is inside of words no index knows: the server passes over the ASCII titles that
cannot match, and the others are compared here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sessiondb.engine.base import Connection
from sessiondb.engine.postgresql.search_comparing import (
    comparison_of,
    meant_candidates,
    meant_together,
    shown_title,
    texts_at,
    words_in_title,
)
from sessiondb.engine.postgresql.search_query import (
    read_match,
    read_possible,
    search_query,
)
from sessiondb.engine.postgresql.search_statements import (
    CONTENTS,
    NEWEST_PLACE,
    MatchShape,
    rarest_statement,
    scan_statement,
    session_match_statement,
)
from sessiondb.engine.postgresql.search_tables import GIN_INDEXES
from sessiondb.engine.postgresql.search_walk import (
    Candidate,
    MatchWalk,
    bounds_in,
    words_of,
)
from sessiondb.engine.postgresql.search_writing import (
    NewParts,
    damaged,
    prepare,
    put,
    put_prompts,
    put_titles,
    read_texts,
    rebuild,
    take_out,
)
from sessiondb.engine.postgresql.title_statements import (
    FIRST_MESSAGES,
    prompt_statement,
    title_statement,
)
from sessiondb.engine.query import SearchQuery
from sessiondb.engine.search_comparison import (
    is_meant,
)
from sessiondb.engine.search_excerpts import excerpt, passage
from sessiondb.engine.search_words import words_of_part
from sessiondb.engine.sql import Read, Rows, as_list
from sessiondb.schema.rows import PartAddress

#: Parts of which the texts are compared at once.
_AT_ONCE = 200
#: Titles or prompts that are compared at once: those that have the words, or any.
_TITLES_AT_ONCE, _SCANNED_AT_ONCE = 100, 1_000


class PostgreSQLSearchIndex:
    """PostgreSQL's half of `engine.search_index.SearchIndex`."""

    # -- writing -------------------------------------------------------------

    words_of_part = staticmethod(words_of_part)

    prepare, put = staticmethod(prepare), staticmethod(put)
    put_titles, put_prompts = staticmethod(put_titles), staticmethod(put_prompts)
    take_out = staticmethod(take_out)
    waiting_parts = NewParts

    def has_passed(
        self,
        connection: Connection,  # noqa: ARG002
        part: PartAddress,  # noqa: ARG002
    ) -> bool:
        """Return True: no part waits."""
        return True

    def is_behind(self, connection: Connection) -> bool:  # noqa: ARG002
        """Return False: no part waits."""
        return False

    def put_waiting(self, connection: Connection) -> None:
        """Do nothing: no part waits."""

    # -- matches in parts ----------------------------------------------------

    def query(self, query: str) -> SearchQuery:
        """Return what a user's *query* searches for: see `search_query`."""
        return search_query(query)

    def newest_place(self) -> Read[int]:
        """Return the place of the newest part; 0 without any."""
        ((place,),) = yield NEWEST_PLACE, {}
        return int(place)

    def matches(
        self,
        terms: Sequence[str],
        params: Mapping[str, Any],
        *,
        order: str,
        is_shown: bool,
        rows: int,
        sessions: int | None = None,
    ) -> Read[Rows]:
        """Return matches in parts, newest first."""
        # If texts are compared, an older match of the session may be the one.
        if params.keys().isdisjoint(("comparison", "together", "spread")):
            rows = rows if sessions is None else sessions
        else:
            sessions = None
        is_once = sessions is not None
        # A page of the newest is read at once; of others most are not shown.
        has_texts = "spread" not in params and (is_shown or order == "newest")
        matches = yield from _read_matches(
            terms, params, order, rows, is_once=is_once, has_texts=has_texts
        )
        comparison = read_match(params["match"]).comparison
        return [
            (
                match.place,
                match.session_id,
                match.seq,
                *_message_and_snippet(match, comparison, is_shown=has_texts),
                match.sort_key,
            )
            for match in matches
        ]

    def sessions(
        self, terms: Sequence[str], params: Mapping[str, Any]
    ) -> Read[list[str]]:
        """Return the sessions with matches in parts, that of the newest match first."""
        walk = MatchWalk(terms, params, "newest", has_texts="comparison" in params)
        sessions: dict[str, None] = {}
        while not walk.is_done:
            candidates = yield from walk.read(_AT_ONCE)
            new = [each for each in candidates if each.session_id not in sessions]
            matches = yield from meant_candidates(new, params)
            sessions |= dict.fromkeys([match.session_id for match in matches])
        return list(sessions)

    def snippets(
        self, match: str, places: Sequence[int]
    ) -> Read[dict[int, tuple[str, str]]]:
        """Return message id and snippet of matches by their places."""
        comparison = read_match(match).comparison
        return {
            place: (message_id, excerpt(comparison, *texts.columns))
            for place, (message_id, texts) in (yield from texts_at(places)).items()
        }

    def rarest(self, matches: Sequence[str]) -> Read[int]:
        """Return which of *matches* the fewest of the newest parts have."""
        params: dict[str, Any] = {
            f"words{index}": read_match(match).words
            for index, match in enumerate(matches)
        }
        statement = rarest_statement(len(matches))
        ((*counts,),) = yield statement, params
        return counts.index(min(counts))

    # -- texts that are scanned -------------------------------------------------

    def scan(
        self,
        terms: Sequence[str],
        params: Mapping[str, Any],
        *,
        order: str,
        rows: int,
    ) -> Read[Rows]:
        """Return the next parts, each compared with the query."""
        spread, scanned = params.get("spread"), params["scanned"]
        # Nearly every part is decided by its own text.
        own = params["cover"] if spread is not None else scanned
        statement = scan_statement(tuple(terms), bounds_in(params), order, rows)
        scan = yield statement, {**params, **read_possible(own).params()}

        texts = yield from texts_at([row[0] for row in scan if row[7]])
        hits: set[int] = set()
        in_siblings: dict[str, list[int]] = {}
        for place, *_, has_siblings, _ in scan:
            if place not in texts:
                continue
            words, *columns = texts[place][1]
            if is_meant(scanned, words, *columns):
                if "together" in params and has_siblings:
                    in_siblings.setdefault(params["together"], []).append(place)
                else:
                    hits.add(place)
            elif spread is not None and has_siblings and is_meant(own, words, *columns):
                in_siblings.setdefault(spread, []).append(place)
        for wanted, places in in_siblings.items():
            hits |= yield from meant_together(wanted, places)
        return [
            (place, session_id, seq, None, None, sort_key, place in hits, size, time)
            for place, session_id, seq, sort_key, size, time, *_ in scan
        ]

    def scanned_sessions(
        self,
        terms: Sequence[str],
        params: Mapping[str, Any],
        session_ids: Iterable[str],
    ) -> Read[list[str]]:
        """Return those of given sessions with a match in their parts."""
        names = params.keys() - {"cursor", "seen"}
        scanned = {name: params[name] for name in names}
        sessions = []
        for session_id in session_ids:
            scanned["scanned_session"] = session_id
            bounded: dict[str, Any] = scanned
            while True:
                rows = yield from self.scan(
                    [*terms, "s.id = :scanned_session"],
                    bounded,
                    order="newest",
                    rows=_AT_ONCE,
                )
                if any(row[6] for row in rows):
                    sessions.append(session_id)
                    break
                if len(rows) < _AT_ONCE:
                    break
                bounded = {**scanned, "cursor": rows[-1][0]}
        return sessions

    def passages(
        self, needles: str, places: Sequence[int]
    ) -> Read[dict[int, tuple[str, str]]]:
        """Return message id and the text at the needles of parts by their places."""
        return {
            place: (message_id, passage(needles, *texts.columns))
            for place, (message_id, texts) in (yield from texts_at(places)).items()
        }

    def contents(self, places: Sequence[int]) -> Read[Rows]:
        """Return what parts contain, without those of calls that failed."""
        return (yield CONTENTS, {"places": as_list(places)})

    # -- titles and prompts --------------------------------------------------

    def titles(
        self,
        terms: Sequence[str],
        params: Mapping[str, Any],
        terms_of_parts: Sequence[str],
        *,
        rows: int,
    ) -> Read[Rows]:
        """Return the sessions whose title alone matches."""
        comparison = comparison_of(params)
        bounded = {**params, **words_in_title(params, comparison)}
        has_words = "in_title" in bounded
        at_once = _TITLES_AT_ONCE if has_words else _SCANNED_AT_ONCE
        titles: Rows = []
        while len(titles) < rows:
            statement = title_statement(
                tuple(terms), bounds_in(bounded), has_words, at_once
            )
            sessions = yield statement, bounded
            shown = {
                (place, session_id): snippet
                for place, session_id, title, own_id in sessions
                if (snippet := shown_title(comparison, params, title, own_id))
            }
            others: set[str] = set()
            if "shown" not in params:
                ids = [session_id for _, session_id in shown]
                others = yield from self._found_in_parts(terms_of_parts, params, ids)
            ids = [session_id for _, session_id in shown if session_id not in others]
            first_messages = yield from _first_messages(ids[: rows - len(titles)])
            titles += [
                (place, session_id, *first_messages[session_id], snippet)
                for (place, session_id), snippet in shown.items()
                if session_id in first_messages
            ]
            if len(sessions) < at_once:
                break
            bounded["cursor"] = sessions[-1][0]
        return titles

    def _found_in_parts(
        self, terms: Sequence[str], params: Mapping[str, Any], session_ids: list[str]
    ) -> Read[set[str]]:
        """Return those of sessions with a match in a part up to ``top``."""
        if not session_ids:
            return set()
        if "needles" in params:
            scanned = yield from self.scanned_sessions(terms, params, session_ids)
            return set(scanned)

        names = params.keys() - {"cursor", "together"}
        bounded = {name: params[name] for name in names} | words_of(params)
        shape = MatchShape(tuple(terms), bounds_in(bounded), "newest")
        ids = {"ids": as_list(session_ids)}
        rows = yield session_match_statement(shape), {**bounded, **ids}
        matches = yield from meant_candidates(
            [Candidate(*row) for row in rows], bounded
        )
        return {match.session_id for match in matches}

    def prompts(
        self,
        columns: str,
        terms: Sequence[str],
        params: Mapping[str, Any],
        *,
        rows: int,
    ) -> Read[Rows]:
        """Return prompts, newest first."""
        comparison = comparison_of(params) if "match" in params else None
        bounded = {**params, "rows": rows}
        has_words = False
        if comparison is not None:
            bounded |= words_in_title(params, comparison)
            has_words = "in_title" in bounded
            at_once = _TITLES_AT_ONCE if has_words else _SCANNED_AT_ONCE
            bounded["rows"] = max(rows, at_once)
        prompts: Rows = []
        while len(prompts) < rows:
            statement = prompt_statement(
                columns,
                tuple(terms),
                comparison is not None,
                has_words,
                "after" in bounded,
            )
            stored = yield statement, bounded
            prompts += [
                tuple(row)
                for _, _, text, *row in stored
                if comparison is None or is_meant(comparison, None, text)
            ]
            if len(stored) < bounded["rows"]:
                break
            bounded["after"], bounded["after_id"], *_ = stored[-1]
        return prompts[:rows]

    # -- upkeep --------------------------------------------------------------

    #: The number of parts that are to be found and have no entry, and of entries of
    #: parts that are not.
    count_missing = (
        "SELECT count(*) FROM part AS p WHERE p.indexed = 1 "
        "AND NOT EXISTS (SELECT 1 FROM part_search AS f WHERE f.place = p.rid)"
    )
    count_orphans = (
        "SELECT count(*) FROM part_search AS f "
        "WHERE NOT EXISTS (SELECT 1 FROM part AS p WHERE p.rid = f.place "
        "AND p.indexed = 1)"
    )

    damaged, rebuild = staticmethod(damaged), staticmethod(rebuild)

    def optimize(self, connection: Connection) -> None:
        """Have the indexes take in their pending entries."""
        for name in GIN_INDEXES:
            connection.execute(
                "SELECT gin_clean_pending_list(CAST(? AS regclass))", (name,)
            )


def _read_matches(
    terms: Sequence[str],
    params: Mapping[str, Any],
    order: str,
    rows: int,
    *,
    is_once: bool,
    has_texts: bool,
) -> Read[list[Candidate]]:
    """Return matches, newest first, at most *rows*."""
    reads_texts = has_texts or "comparison" in params
    walk = MatchWalk(terms, params, order, is_once=is_once, has_texts=reads_texts)
    matches: list[Candidate] = []
    most = rows
    while len(matches) < rows and not walk.is_done:
        candidates = yield from walk.read(most)
        meant = yield from meant_candidates(candidates, params)
        if is_once and len(meant) < len(candidates):
            # Parts with several chunks did not match; older ones of a session may.
            return (
                yield from _read_matches(
                    terms, params, order, rows, is_once=False, has_texts=has_texts
                )
            )
        matches += meant
        # If few of them are meant, more are read at once.
        is_rare = 2 * len(meant) < len(candidates)
        most = min(2 * most, _AT_ONCE) if is_rare else rows - len(matches)
    return matches[:rows]


def _message_and_snippet(
    match: Candidate, comparison: str, *, is_shown: bool
) -> tuple[str | None, str | None]:
    """Return the id of the message of a match, and its snippet, if they were read."""
    if not is_shown or match.message_id is None:
        return None, None
    return match.message_id, excerpt(comparison, *read_texts(match.texts).columns)


def _first_messages(session_ids: list[str]) -> Read[dict[str, tuple[int, str]]]:
    """Return by its session the seq and id of the first message."""
    if not session_ids:
        return {}
    rows = yield FIRST_MESSAGES, {"ids": as_list(session_ids)}
    return {session_id: (seq, message_id) for session_id, seq, message_id in rows}
