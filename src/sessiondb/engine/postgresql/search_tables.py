"""The tables of the search index: the words of each part, title and prompt.

A row of ``part`` with ``indexed = 1`` has an entry, whose ``place`` is its row number:
a vector of words with their positions. One with more words than a vector holds has
several entries, *chunks* 1, 2, …, each with some of the words; the only entry of any
other is chunk 0. So an index has chunk 0 alone, where a query is true of one entry, and
another one the few chunks. Session and seq are there so that a match needs no part.

A vector keeps 255 positions of a word, and none above 16,383. So it can say that words
are in a row, as ``is_in_order`` states, unless it lost some.

Every session and every prompt has an entry of a table of its own, as a row of
``session`` changes at each append, and with it would all of its indexes. It has the
words of the title or text without their places: what it yields is compared anyway.
It has NULL if they are more than a vector holds, and then is always compared. The id
that a session has in its program is beside the words of its title.
"""

from __future__ import annotations

#: What a database needs besides the tables of the schema, in this order.
TABLES = (
    "CREATE TABLE part_search ("
    "family BIGINT NOT NULL, "
    "place BIGINT NOT NULL, "
    "chunk INTEGER NOT NULL, "
    'session_id TEXT COLLATE "C" NOT NULL, '
    "seq BIGINT NOT NULL, "
    "is_in_order BOOLEAN NOT NULL, "
    "words TSVECTOR NOT NULL, "
    "CONSTRAINT pk_part_search PRIMARY KEY (place, chunk, family), "
    "CONSTRAINT fk_part_search_place FOREIGN KEY (place, family) "
    "REFERENCES part (rid, family) "
    "ON DELETE CASCADE)",
    "CREATE INDEX ix_part_search_words ON part_search USING gin (words) "
    "WHERE chunk = 0",
    "CREATE INDEX ix_part_search_chunks ON part_search USING gin (words) "
    "WHERE chunk > 0",
    "CREATE TABLE session_search ("
    "family BIGINT NOT NULL, "
    "place BIGINT NOT NULL, "
    'own_id TEXT COLLATE "C", '
    "words TSVECTOR, "
    "CONSTRAINT pk_session_search PRIMARY KEY (place, family), "
    "CONSTRAINT fk_session_search_place FOREIGN KEY (place, family) "
    "REFERENCES session (rid, family) "
    "ON DELETE CASCADE)",
    "CREATE INDEX ix_session_search_words ON session_search USING gin (words)",
    "CREATE INDEX ix_session_search_large ON session_search (place) "
    "WHERE words IS NULL",
    "CREATE INDEX ix_session_search_own_id ON session_search (own_id) "
    "WHERE own_id IS NOT NULL",
    "CREATE TABLE prompt_search ("
    "place BIGINT NOT NULL, "
    "words TSVECTOR, "
    "CONSTRAINT pk_prompt_search PRIMARY KEY (place), "
    "CONSTRAINT fk_prompt_search_place FOREIGN KEY (place) REFERENCES prompt (rid) "
    "ON DELETE CASCADE)",
    "CREATE INDEX ix_prompt_search_words ON prompt_search USING gin (words)",
    "CREATE INDEX ix_prompt_search_large ON prompt_search (place) WHERE words IS NULL",
)
GIN_INDEXES = (
    "ix_part_search_words",
    "ix_part_search_chunks",
    "ix_session_search_words",
    "ix_prompt_search_words",
)
