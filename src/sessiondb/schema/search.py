"""Search: FTS5 with external content over a view, so that text is stored once.

A row of ``part`` is in the index exactly when ``indexed = 1``; the view shows
just those rows, so ``rebuild`` and ``integrity-check`` are valid at any time.
The writer inserts, once per transaction (a trigger on INSERT would make every
row a segment of its own: 5 times the cost); the triggers here only take out
what goes or changes, while the old value can still be read.
"""

from __future__ import annotations


def _escaped(column: str) -> str:
    # JSON writes a line break as \n; unreplaced, the next word would be indexed as "nword".
    out = column
    for escape in ("n", "t", "r"):
        out = f"replace({out}, '\\{escape}', ' ')"
    return out


CONTENT = f"""
CREATE VIEW part_search_content AS
SELECT p.rid AS rid,
       coalesce(p.text, CAST(tb.data AS TEXT), '') AS text,
       coalesce({_escaped("p.input")}, {_escaped("CAST(ib.data AS TEXT)")}, '') AS input,
       coalesce(p.title, '') AS title
  FROM part AS p
  LEFT JOIN blob AS tb ON tb.hash = p.text_blob
  LEFT JOIN blob AS ib ON ib.hash = p.input_blob
 WHERE p.indexed = 1
""".strip()

TABLES = (
    "CREATE VIRTUAL TABLE part_search USING fts5(text, input, title, "
    "content='part_search_content', content_rowid='rid', tokenize='unicode61')",
    "CREATE VIRTUAL TABLE session_search USING fts5(title, "
    "content='session', content_rowid='rid', tokenize='unicode61')",
    "CREATE VIRTUAL TABLE prompt_search USING fts5(text, "
    "content='prompt', content_rowid='rid', tokenize='unicode61')",
)

_TAKE_OUT = (
    "INSERT INTO part_search (part_search, rowid, text, input, title) "
    "SELECT 'delete', rid, text, input, title FROM part_search_content WHERE rid = old.rid;"
)
_PART_TRIGGERS = (
    f"CREATE TRIGGER part_search_delete BEFORE DELETE ON part WHEN old.indexed = 1 "
    f"BEGIN {_TAKE_OUT} END",
    f"CREATE TRIGGER part_search_before_update BEFORE UPDATE OF "
    f"rid, text, text_blob, input, input_blob, title, indexed ON part WHEN old.indexed = 1 "
    f"BEGIN {_TAKE_OUT} END",
    "CREATE TRIGGER part_search_after_update AFTER UPDATE OF "
    "rid, text, text_blob, input, input_blob, title, indexed ON part "
    "WHEN old.indexed = 1 AND new.indexed = 1 "
    "BEGIN INSERT INTO part_search (rowid, text, input, title) "
    "SELECT rid, text, input, title FROM part_search_content WHERE rid = new.rid; END",
)


def _plain(table: str, column: str) -> tuple[str, str, str]:
    search = f"{table}_search"
    insert = f"INSERT INTO {search} (rowid, {column}) VALUES (new.rid, new.{column});"
    delete = (
        f"INSERT INTO {search} ({search}, rowid, {column}) "
        f"VALUES ('delete', old.rid, old.{column});"
    )
    return (
        f"CREATE TRIGGER {search}_insert AFTER INSERT ON {table} BEGIN {insert} END",
        f"CREATE TRIGGER {search}_delete AFTER DELETE ON {table} BEGIN {delete} END",
        f"CREATE TRIGGER {search}_update AFTER UPDATE OF rid, {column} ON {table} "
        f"BEGIN {delete} {insert} END",
    )


TRIGGERS = (*_PART_TRIGGERS, *_plain("session", "title"), *_plain("prompt", "text"))
