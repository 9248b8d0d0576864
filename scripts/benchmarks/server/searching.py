"""Search on a server, newest first and by rank, by the frequency of the word.

The bare query is one for the places of matches, their sessions and texts. The server
plans it with the word in it, so it knows how frequent that is.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.fixtures import RARE, haystack
from benchmarks.measure import Row
from benchmarks.server import raw
from benchmarks.server.place import ServerBench
from benchmarks.server.reading import compare
from sessiondb import Store

#: A word of one part, of every part, and of none.
NEEDLE, EVERY, ABSENT = "axolotl", "capybara", "okapi"
_MATCHES = (
    "SELECT place, words FROM part_search "
    "WHERE chunk = 0 AND words @@ CAST('{word}' AS tsquery) ORDER BY place DESC"
)
_NEWEST = (
    "SELECT f.place, p.session_id, p.text "
    f"FROM ({_MATCHES} LIMIT 20) AS f JOIN part AS p ON p.rid = f.place "
    "ORDER BY f.place DESC"
)
#: Of the newest 2,000 matches.
_BEST = (
    "SELECT f.place, p.session_id, p.text FROM (SELECT place FROM ("
    f"{_MATCHES} LIMIT 2000) AS newest "
    "ORDER BY ts_rank(words, CAST('{word}' AS tsquery), 1) DESC LIMIT 20) AS f "
    "JOIN part AS p ON p.rid = f.place"
)
_ORDERS = {"newest": _NEWEST, "rank": _BEST}


def rows(bench: ServerBench) -> Iterator[Row]:
    """Yield all hits, newest first and by rank, among 10⁵ parts."""
    count = bench.size(100_000)

    def more(number: int) -> str:
        return f" {EVERY} {NEEDLE}" if number == count // 2 else f" {EVERY}"

    schema = bench.schema(haystack(count, more))
    for order, query in _ORDERS.items():
        for word, where in (
            (NEEDLE, "in one part"),
            (RARE, "in 1 %"),
            (EVERY, "in every part"),
            (ABSENT, "in none"),
        ):

            def read(store: Store, word: str = word, order: str = order) -> object:
                return store.search(word, order=order, all_hits=True)

            def floor(
                connection: raw.Raw, sql: str = query.format(word=word)
            ) -> object:
                return raw.read(connection, sql)

            pair = compare(schema, read, floor, bench.times(24))
            yield Row(
                f"search by {order}, word {where}: {count:,} parts", *pair, goal=3
            )
