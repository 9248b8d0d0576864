"""Matches in parts that wait for the search index: FTS5 answers, in memory.

A reading connection cannot write, not even a temporary table, so the few parts that
wait (see `search`) are given to an index of their own for each query, with the same
tokenizer: the answer, its snippet too, is the one that the index itself will give. Only
the score is that among the parts that wait.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from functools import lru_cache

from sessiondb.engine.base import SNIPPET_MARKS

#: The columns of the index of parts.
COLUMNS = "text, input, title, words"
#: 2: also of letters with several accents, as in Vietnamese.
TOKENS = "tokenize='unicode61 remove_diacritics 2'"
#: The SQL function `search_parts`.
SEARCH_PARTS = "sessiondb_search_parts"
_MARK_BEGIN, _MARK_END = SNIPPET_MARKS


def snippet_sql(table: str, column: int) -> str:
    """Return the text around a match in a column; -1 is the column that fits best."""
    return f"snippet({table}, {column}, '{_MARK_BEGIN}', '{_MARK_END}', '…', 16)"


_SEARCH = (
    f"SELECT rowid, {snippet_sql('waiting', -1)}, bm25(waiting) FROM waiting "
    "WHERE waiting MATCH ? ORDER BY rowid DESC"
)


def register(connection: sqlite3.Connection) -> None:
    """Give *connection* the SQL function `SEARCH_PARTS`."""
    connection.create_function(SEARCH_PARTS, 2, search_parts, deterministic=True)


# The statements of one search ask for the same matches.
@lru_cache(maxsize=1)
def search_parts(match: str, parts: bytes) -> str | None:
    """Return the matches among *parts* as JSON: [rid, snippet, score], newest first.

    *parts* is JSON as well: [rid, text, input, title, words] of each. Of no part it is
    None.
    """
    # A shell may have stored text that is not UTF-8.
    rows = json.loads(parts.decode(errors="replace"))
    if not rows:
        return None

    with closing(sqlite3.connect(":memory:", isolation_level=None)) as memory:
        memory.execute(f"CREATE VIRTUAL TABLE waiting USING fts5({COLUMNS}, {TOKENS})")
        # FTS5 writes a segment in every transaction, which takes most of the time.
        memory.execute("BEGIN")
        memory.executemany(
            f"INSERT INTO waiting (rowid, {COLUMNS}) VALUES (?, ?, ?, ?, ?)", rows
        )
        return json.dumps(memory.execute(_SEARCH, (match,)).fetchall())
