"""Search on a server against the statement that one would write by hand.

The floor is one prepared statement of the driver over the same tables: it probes the
GIN index, and walks the entries backwards if the word has more matches than a probe
reads. It has the session's title and the text of each hit, and nothing that only we
promise: filters of deleted sessions, accents and symbols of a query, snippets, pages.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import psycopg

from benchmarks.fixtures import (
    START,
    insert,
    messages,
    part_row,
    project,
    session_row,
    words,
)
from benchmarks.measure import Bench, Row, alternate, timed
from sessiondb import ALL, Store
from sessiondb.engine.address import ServerAddress
from sessiondb.engine.postgresql.connecting import connect
from sessiondb.engine.postgresql.engine import POSTGRESQL
from sessiondb.engine.search_words import words_beside

Pair = tuple[float, float]
#: Messages of a session, and parts of each.
MESSAGES, PARTS = 5, 2
PROJECTS = 50
#: The only part with ``xneedle``.
NEEDLE = 5_000


def fill(url: str, parts: int, *, accent: str = "é") -> None:
    """Fill a new database of a server with *parts* of 20 words, ten in each session, and prompts.

    A title and a prompt of every second session has *accent* in it.
    """
    rng = random.Random(parts)  # noqa: S311  a fixture, nothing secret
    pool = [words(rng, 120) for _ in range(4096)]
    count = parts // (MESSAGES * PARTS)
    names = [f"ses_{number:026d}" for number in range(count)]
    Store.open(url).close()
    with closing(connect(ServerAddress(url))) as connection:
        connection.execute("BEGIN")
        for number in range(PROJECTS):
            project(connection, f"/haystack/{number}")
        sessions = []
        for number, name in enumerate(names):
            row = session_row(name, f"/haystack/{number % PROJECTS}", number, MESSAGES)
            if number % 2:
                row["title"] += f" caf{accent}"
            sessions.append(row)
        insert(connection, "session", sessions)
        insert(
            connection,
            "message",
            (
                row | {"id": f"{row['id']}{name}"}
                for name in names
                for row in messages(name, MESSAGES)
            ),
        )
        insert(connection, "part", (_part(rng, pool, names, n) for n in range(parts)))
        insert(
            connection,
            "prompt",
            (
                {
                    "id": f"prompt_{number}",
                    "text": rng.choice(pool) + (f" caf{accent}" if number % 2 else ""),
                    "directory": "/haystack",
                    "source": "bench",
                    "time_created": START + number,
                }
                for number in range(parts // 10)
            ),
        )
        connection.execute("COMMIT")
        connection.execute("BEGIN")
        POSTGRESQL.search.rebuild(connection)
        connection.execute("COMMIT")
        connection.execute("VACUUM ANALYZE")


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
    ("1 part, by project", "xneedle", "'xneedle'",
     {"project": f"/haystack/{NEEDLE // (MESSAGES * PARTS) % PROJECTS}"},
     f"s.project_id = '/haystack/{NEEDLE // (MESSAGES * PARTS) % PROJECTS}'"),
    ("1 of 100, by role", "xhundredth", "'xhundredth'",
     {"role": "assistant"}, "m.role = 'assistant'"),
    ("1 of 100, since", "xhundredth", "'xhundredth'",
     {"since": START + 3_000}, f"m.time_created >= {START + 3_000}"),
)  # fmt: skip

_MATCHES = """
WITH probe AS MATERIALIZED (
  SELECT place FROM part_search
  WHERE chunk = 0 AND words @@ CAST($1 AS tsquery) LIMIT 2001),
matches AS MATERIALIZED (
  (SELECT f.place, f.words FROM probe JOIN part_search AS f ON f.place = probe.place
   WHERE f.chunk = 0 AND (SELECT count(*) FROM probe) <= 2000
   ORDER BY f.place DESC LIMIT {limit})
  UNION ALL
  (SELECT place, words FROM part_search
   WHERE (SELECT count(*) FROM probe) > 2000
   AND ts_match_vq(words, CAST($1 AS tsquery)) ORDER BY place DESC LIMIT {limit}))
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
    "ts_rank(words, CAST($1 AS tsquery), 1) AS key FROM matches "
    f"ORDER BY 2 DESC LIMIT 20) {_SHOWN}"
)
_FILTERED = (
    "SELECT s.id, s.title, p.seq, p.text FROM part_search AS f "
    "JOIN part AS p ON p.rid = f.place JOIN session AS s ON s.id = p.session_id "
    "JOIN message AS m ON m.session_id = p.session_id AND m.seq = p.seq "
    "WHERE f.words @@ CAST($1 AS tsquery) AND {} ORDER BY f.place DESC LIMIT 20"
)


def rows(bench: Bench, url: str, parts: int = 100_000) -> Iterator[Row]:
    """Yield searches on the server at *url*, whose database is new.

    *parts* are those of a complete run. Ours is one hit for each session, the floor
    all hits: a statement for the former is no floor.
    """
    fill(url, bench.size(parts))
    times = bench.times(100)
    with Store.open(url) as store, psycopg.connect(url, autocommit=True) as connection:

        def compare(query: str, statement: str, match: str, **how: Any) -> Pair:
            cursor = psycopg.RawCursor(connection)
            ours = timed(lambda: store.search(query, **{"project": ALL, **how}))
            floor = timed(lambda: cursor.execute(statement, (match,)).fetchall())
            # A server keeps its plan after ten runs.
            return alternate(ours, floor, times, warm_up=12)

        for what, query, match in SEARCHES:
            pair = compare(query, NEWEST, match)
            yield Row(f"search, {what}", *pair, goal=3)
            pair = compare(query, RANKED, match, order="rank")
            yield Row(f"search by rank, {what}", *pair, goal=3)
        for what, query, match, how, condition in FILTERED:
            pair = compare(query, _FILTERED.format(condition), match, **how)
            yield Row(f"search, {what}", *pair, goal=3)


def _part(
    rng: random.Random, pool: list[str], names: list[str], number: int
) -> dict[str, Any]:
    name, place = names[number // (MESSAGES * PARTS)], number % (MESSAGES * PARTS)
    said = f"{rng.choice(pool)} xalways"
    for word, is_there in {
        "xneedle": number == NEEDLE,
        "xthousandth first": number % 1000 == 7,
        "xhundredth": number % 100 == 7,
        "xfiftieth": number % 50 == 7,
        "xred herring": number % 100 == 17,
        "xherring red": number % 100 == 27,
        "éclairage": number % 100 == 37,
        "我们的字符集测试": number % 100 == 47,
        "xfoo-bar": number % 100 == 57,
        "xoldName": number % 100 == 67,
    }.items():
        if is_there:
            said += f" {word}"
    seq, idx = divmod(place, PARTS)
    beside = words_beside([said])
    return part_row(name, seq + 1, idx, type="text", text=said, words=beside)
