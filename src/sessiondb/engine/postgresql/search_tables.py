"""The tables of the search index: the words of each part that is found.

A row of ``part`` with ``indexed = 1`` has an entry, whose ``place`` is its row number:
a vector of words with their positions. One with more words than a vector holds has
several entries, *chunks* 1, 2, …, each with some of the words; the only entry of any
other is chunk 0. So an index has chunk 0 alone, where a query is true of one entry, and
another one the few chunks. The session is there to be passed over without its parts.

A vector keeps 255 positions of a word, and none above 16,383. So it can say that words
are in a row, as ``is_in_order`` states, unless it lost some.
"""

from __future__ import annotations

#: What a database needs besides the tables of the schema, in this order.
TABLES = (
    "CREATE TABLE part_search ("
    "place BIGINT NOT NULL, "
    "chunk INTEGER NOT NULL, "
    'session_id TEXT COLLATE "C" NOT NULL, '
    "is_in_order BOOLEAN NOT NULL, "
    "words TSVECTOR NOT NULL, "
    "CONSTRAINT pk_part_search PRIMARY KEY (place, chunk), "
    "CONSTRAINT fk_part_search_place FOREIGN KEY (place) REFERENCES part (rid) "
    "ON DELETE CASCADE)",
    "CREATE INDEX ix_part_search_words ON part_search USING gin (words) "
    "WHERE chunk = 0",
    "CREATE INDEX ix_part_search_chunks ON part_search USING gin (words) "
    "WHERE chunk > 0",
)
GIN_INDEXES = ("ix_part_search_words", "ix_part_search_chunks")
