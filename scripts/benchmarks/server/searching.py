"""Search on a server against the statement that one would write by hand.

The floor is one prepared statement over the same tables: it probes the GIN index, and
walks the entries backwards if the word has more matches than a probe reads. It has the
title of the session and the text of each hit, and nothing that only we promise: filters
of deleted sessions, accents and symbols of a query, snippets, pages. Ours is one hit of
each session, the floor all hits: a statement for the former is no floor.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from benchmarks.fixtures import (
    START,
    Fill,
    Insert,
    messages,
    part_row,
    project,
    session_row,
    words,
)
from benchmarks.measure import Row
from benchmarks.server import raw
from benchmarks.server.place import Schema, ServerBench
from benchmarks.server.reading import compare
from sessiondb import ALL, Store, ids
from sessiondb.engine.search_words import words_beside

#: Messages of a session, and parts of each.
MESSAGES, PARTS = 5, 2
PROJECTS = 50
#: Words of a part in so many; the first of them is at the second number.
EVERY_SO_MANY = {
    "xthousandth first": (1000, 7),
    "xhundredth": (100, 7),
    "xfiftieth": (50, 7),
    "xred herring": (100, 17),
    "xherring red": (100, 27),
    "éclairage": (100, 37),
    "我们的字符集测试": (100, 47),
    "xfoo-bar": (100, 57),
}
#: What is searched for, our query, and that of the index.
SEARCHES = (
    ("word in 1 part", "xneedle", "'xneedle'"),
    ("word in 1 of 1,000", "xthousandth", "'xthousandth'"),
    ("word in 1 of 100", "xhundredth", "'xhundredth'"),
    ("word in every part", "xalways", "'xalways'"),
    ("word that is nowhere", "xabsent", "'xabsent'"),
    ("two words", "xhundredth xfiftieth", "'xhundredth' & 'xfiftieth'"),
    ("two words, one nowhere", "xalways xabsent", "'xalways' & 'xabsent'"),
    ("words in a row", '"xred herring"', "'xred' <-> 'herring'"),
    ("beginning of a word", "xthous*", "'xthous':*"),
    ("word with accents", "eclairage", "'eclairage'"),
    ("piece of a run", "字符集", "'\ue000字符' & '\ue000符集'"),
    ("word with symbols", "xfoo-bar", "'xfoo' <-> 'bar'"),
)
#: The same, with our filter and its condition.
FILTERED = (
    ("every part, by project", "xalways", "'xalways'",
     {"project": "/haystack/7"}, "s.project_id = '/haystack/7'"),
    ("1 of 100, by role", "xhundredth", "'xhundredth'",
     {"role": "assistant"}, "m.role = 'assistant'"),
    ("1 of 100, since", "xhundredth", "'xhundredth'",
     {"since": START + 3_000}, f"m.time_created >= {START + 3_000}"),
)  # fmt: skip

_MATCHES = """
WITH probe AS MATERIALIZED (
  SELECT place FROM part_search
  WHERE chunk = 0 AND words @@ CAST(%s AS tsquery) LIMIT 2001),
matches AS MATERIALIZED (
  (SELECT f.place, f.words FROM probe JOIN part_search AS f ON f.place = probe.place
   WHERE f.chunk = 0 AND (SELECT count(*) FROM probe) <= 2000
   ORDER BY f.place DESC LIMIT {limit})
  UNION ALL
  (SELECT place, words FROM part_search
   WHERE (SELECT count(*) FROM probe) > 2000
   AND ts_match_vq(words, CAST(%s AS tsquery)) ORDER BY place DESC LIMIT {limit}))
"""
_SHOWN = (
    "SELECT s.id, s.title, p.seq, p.text FROM best AS b "
    "JOIN part AS p ON p.rid = b.place JOIN session AS s ON s.id = p.session_id "
    "ORDER BY b.key DESC"
)
#: The newest 20, and the best 20 of the newest 2,000.
NEWEST = (
    f"{_MATCHES.format(limit=20)}, best AS (SELECT place, place AS key FROM matches) "
    f"{_SHOWN}"
)
RANKED = (
    f"{_MATCHES.format(limit=2000)}, best AS MATERIALIZED (SELECT place, "
    "ts_rank(words, CAST(%s AS tsquery), 1) AS key FROM matches "
    f"ORDER BY 2 DESC LIMIT 20) {_SHOWN}"
)
_FILTERED = (
    "SELECT s.id, s.title, p.seq, p.text FROM part_search AS f "
    "JOIN part AS p ON p.rid = f.place JOIN session AS s ON s.id = p.session_id "
    "JOIN message AS m ON m.session_id = p.session_id AND m.seq = p.seq "
    "WHERE f.words @@ CAST(%s AS tsquery) AND {} ORDER BY f.place DESC LIMIT 20"
)


def rows(bench: ServerBench) -> Iterator[Row]:
    """Yield searches among 10⁵ parts, newest first and by rank."""
    count = bench.size(100_000)
    schema, times = bench.schema(haystack(count)), bench.times(60)
    for what, query, match in SEARCHES:
        pair = _compare(schema, times, query, NEWEST, match)
        yield Row(f"search of {count:,} parts, {what}", *pair, goal=3)
        pair = _compare(schema, times, query, RANKED, match, order="rank")
        yield Row(f"by rank of {count:,} parts, {what}", *pair, goal=3)
    for what, query, match, filters, condition in FILTERED:
        sql = _FILTERED.format(condition)
        pair = _compare(schema, times, query, sql, match, **filters)
        yield Row(f"search of {count:,} parts, {what}", *pair, goal=3)


def _compare(
    schema: Schema, times: int, query: str, sql: str, match: str, **filters: Any
) -> tuple[float, float]:
    def read(store: Store) -> object:
        return store.search(query, **{"project": ALL, **filters})

    def floor(connection: raw.Raw) -> object:
        return raw.read(connection, sql, *[match] * sql.count("%s"))

    return compare(schema, read, floor, times)


def haystack(count: int) -> Fill:
    """Fill in *count* parts of 20 words, ten in each session, and a tenth as many prompts.

    A title and a prompt of every second one has an accent.
    """

    def fill(insert: Insert) -> None:
        rng = random.Random(count)  # noqa: S311  a fixture, nothing secret
        pool = [words(rng, 120) for _ in range(4096)]
        projects = [project(insert, f"/haystack/{n}") for n in range(PROJECTS)]
        names = [ids.new_session_id() for _ in range(-(-count // (MESSAGES * PARTS)))]
        insert("session", (_session(name, projects, n) for n, name in enumerate(names)))
        insert("message", (row for name in names for row in messages(name, MESSAGES)))
        insert("part", (_part(rng, pool, names, n) for n in range(count)))
        insert("prompt", (_prompt(rng, pool, n) for n in range(count // 10)))

    def _part(
        rng: random.Random, pool: list[str], names: list[str], number: int
    ) -> dict[str, Any]:
        name, place = names[number // (MESSAGES * PARTS)], number % (MESSAGES * PARTS)
        said = f"{rng.choice(pool)} xalways"
        for more, (every, first) in EVERY_SO_MANY.items():
            said += f" {more}" if number % every == first else ""
        said += " xneedle" if number == count // 2 else ""
        seq, idx = divmod(place, PARTS)
        beside = words_beside([said])
        return part_row(name, seq + 1, idx, type="text", text=said, words=beside)

    return fill


def _session(name: str, projects: list[str], number: int) -> dict[str, Any]:
    row = session_row(name, projects[number % PROJECTS], number, MESSAGES)
    if number % 2:
        row["title"] += " café"
    return row


def _prompt(rng: random.Random, pool: list[str], number: int) -> dict[str, Any]:
    return {
        "id": f"prompt_{number}",
        "text": rng.choice(pool) + (" café" if number % 2 else ""),
        "directory": "/haystack",
        "source": "bench",
        "time_created": START + number,
    }
