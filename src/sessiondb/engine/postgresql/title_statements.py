"""The queries for titles and prompts, which are found by their own entries.

A word that few of them have is looked up in the entries. With one that many have, or
with words that no entry can tell, the texts themselves are read, newest first, up to
the limit; what the server can pass over, it does.
"""

from __future__ import annotations

from functools import lru_cache

from sessiondb.engine.postgresql.dialect import DIALECT
from sessiondb.engine.postgresql.search_statements import (
    IN_TITLE,
    VISIBLE,
    contains,
    may_have,
)
from sessiondb.engine.sql import ComposedStatement, Statement

#: Titles and prompts with the words of a query that are looked up; if there are more,
#: the texts themselves are read, newest first, up to the limit.
_MOST_TEXTS = 1_000


def _probed_texts(name: str, *more: str) -> str:
    """Return the query WITH the places of what may be meant, by its words or *more*."""
    conditions = (contains("words", IN_TITLE), "words IS NULL", *more)
    places = " UNION ALL ".join(
        f"(SELECT place FROM {name} WHERE {each} LIMIT {_MOST_TEXTS + 1})"
        for each in conditions
    )
    return (
        f"WITH probe AS MATERIALIZED ({places}), "
        "probed AS MATERIALIZED (SELECT count(*) AS number FROM probe) "
    )


def _few_or_walked(few: str, walked: str, order: str, limit: str) -> str:
    """Return the query for what the probe found, if it is little, or else for a walk.

    That they depend on a row keeps the server from sorting in several processes.
    """
    return (
        f"SELECT few.* FROM probed CROSS JOIN LATERAL ({few} "
        f"AND probed.number <= {_MOST_TEXTS} OFFSET 0) AS few UNION ALL "
        f"SELECT walked.* FROM probed CROSS JOIN LATERAL ({walked} "
        f"AND probed.number > {_MOST_TEXTS} ORDER BY {order} LIMIT {limit}) AS walked "
    )


@lru_cache(maxsize=256)
def title_statement(
    terms: tuple[str, ...], bounds: tuple[str, ...], has_words: bool, limit: int
) -> Statement:
    """Return the query for the next sessions whose title or own id may be meant."""
    conditions = [VISIBLE, "s.message_count > 0", *terms]
    may_match = may_have("s.title")
    of_own_id = []
    if "own_id" in bounds:
        may_match = f"({may_match} OR starts_with(s.source_id, :own_id))"
        of_own_id = ["own_id >= :own_id AND own_id < :own_id || chr(1114111)"]
    if "cursor" in bounds:
        conditions.append("s.rid < :cursor")
    if "shown" in bounds:
        conditions.append(f"s.id NOT IN {DIALECT.list_text('shown', str)}")
    select = (
        "SELECT s.rid, s.id, s.title, s.source_id FROM session AS s "
        f"WHERE {' AND '.join(conditions)}"
    )
    walked = f"{select} AND {may_match}"
    if not has_words:
        return ComposedStatement(f"{walked} ORDER BY s.rid DESC LIMIT {limit}")

    few = f"{select} AND s.rid = ANY (ARRAY(SELECT place FROM probe))"
    return ComposedStatement(
        f"{_probed_texts('session_search', *of_own_id)}"
        f"{_few_or_walked(few, walked, 's.rid DESC', str(limit))}"
        f"ORDER BY 1 DESC LIMIT {limit}"
    )


#: The first message of each of the sessions ``:ids``.
FIRST_MESSAGES = ComposedStatement(
    f"SELECT m.* FROM {DIALECT.list_text('ids', str)} AS listed(id) "
    "CROSS JOIN LATERAL (SELECT session_id, seq, id FROM message "
    "WHERE session_id = listed.id ORDER BY seq LIMIT 1) AS m"
)


@lru_cache(maxsize=256)
def prompt_statement(
    columns: str,
    terms: tuple[str, ...],
    is_compared: bool,
    has_words: bool,
    is_later: bool,
) -> Statement:
    """Return the query for prompts that may be meant, newest first, up to ``:rows``."""
    conditions = ["true", *terms]
    if is_later:
        conditions.append("(time_created, id) < (:after, :after_id)")
    select = (
        f"SELECT time_created, id, text, {columns} FROM prompt "
        f"WHERE {' AND '.join(conditions)}"
    )
    walked = f"{select} AND {may_have('prompt.text')}" if is_compared else select
    order = "time_created DESC, id DESC"
    if not has_words:
        return ComposedStatement(f"{walked} ORDER BY {order} LIMIT :rows")

    few = f"{select} AND rid = ANY (ARRAY(SELECT place FROM probe))"
    return ComposedStatement(
        f"{_probed_texts('prompt_search')}"
        f"{_few_or_walked(few, walked, order, ':rows')}"
        "ORDER BY 1 DESC, 2 DESC LIMIT :rows"
    )
