"""The search index: FTS5 with its content in a view: text is stored once.

A row of ``part`` is in the index exactly when ``indexed = 1`` and its number is not
above the *mark*, ``indexed_to`` in ``meta``; the view shows just those rows, so
``rebuild`` and ``integrity-check`` are valid at any time. Rows above the mark wait
until they are many or the writer rests: it puts them in together and raises the mark,
since the index writes a quarter of the pages of a turn, each time. Every query searches
those that wait as well, in the same snapshot (`search_waiting`).

The triggers take out what goes or changes, while the old value can still be read. One
that deletes a waiting row first puts in all that wait: so the mark is never below a
number that was given out, and no number is given twice.
"""

from __future__ import annotations

from sessiondb.engine.sqlite.search_waiting import COLUMNS, TOKENS


def words_of_json(column: str) -> str:
    """Return the SQL of a JSON text as it is indexed."""
    # JSON writes a line break as \n, so the next word would be indexed as "nword". A
    # backslash is written twice, and not such an escape: C:\\new has the word "new".
    text = f"replace({column}, '\\\\', '\\ ')"
    for escape in ("n", "t", "r", "b", "f"):
        text = f"replace({text}, '\\{escape}', ' ')"
    return text


_STORED = words_of_json("p.input")
_LARGE = words_of_json("CAST(ib.data AS TEXT)")
TEXT = "coalesce(p.text, CAST(tb.data AS TEXT), '')"
INPUT = f"coalesce({_STORED}, {_LARGE}, '')"
BLOBS = """LEFT JOIN blob AS tb ON tb.hash = p.text_blob
  LEFT JOIN blob AS ib ON ib.hash = p.input_blob"""
PARTS_WITH_BLOBS = f"""part AS p
  {BLOBS}"""
#: The largest ``rid`` that the index covers.
MARK_OF_INDEX = (
    "coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'indexed_to'), 0)"
)


def _view(name: str, condition: str) -> str:
    return f"""
CREATE VIEW {name} AS
SELECT p.rid AS rid,
       {TEXT} AS text,
       {INPUT} AS input,
       coalesce(p.title, '') AS title,
       p.words AS words
  FROM {PARTS_WITH_BLOBS}
 WHERE p.indexed = 1 AND {condition}
""".strip()


VIEWS = (
    _view("part_search_content", f"p.rid <= {MARK_OF_INDEX}"),
    _view("part_search_waiting", f"p.rid > {MARK_OF_INDEX}"),
)

TABLES = (
    f"CREATE VIRTUAL TABLE part_search USING fts5({COLUMNS}, "
    f"content='part_search_content', content_rowid='rid', {TOKENS})",
    "CREATE VIRTUAL TABLE session_search USING fts5(title, "
    f"content='session', content_rowid='rid', {TOKENS})",
    "CREATE VIRTUAL TABLE prompt_search USING fts5(text, "
    f"content='prompt', content_rowid='rid', {TOKENS})",
)

_TAKE_OUT = (
    f"INSERT INTO part_search (part_search, rowid, {COLUMNS}) "
    f"SELECT 'delete', rid, {COLUMNS} "
    "FROM part_search_content WHERE rid = old.rid;"
)
#: Whether the index has a part: a trigger that follows a change of ``words`` by another
#: trigger neither removes an entry twice nor adds it twice.
_HAS_ENTRY = "(SELECT 1 FROM part_search_docsize WHERE id = {0}.rid)"
_TEXT_CHANGES = " OR ".join(
    f"new.{column} IS NOT old.{column}"
    for column in ("text", "text_blob", "input", "input_blob", "title")
)
_FOLLOWED = "rid, text, text_blob, input, input_blob, title, indexed, words"
PUT_WAITING = (
    f"INSERT INTO part_search (rowid, {COLUMNS}) "
    f"SELECT rid, {COLUMNS} FROM part_search_waiting"
)
_PART_TRIGGERS = (
    "CREATE TRIGGER part_search_delete BEFORE DELETE ON part "
    f"WHEN old.indexed = 1 OR old.rid > {MARK_OF_INDEX} "
    f"BEGIN {PUT_WAITING} WHERE old.rid > {MARK_OF_INDEX}; "
    "UPDATE meta SET value = (SELECT max(rid) FROM part) "
    f"WHERE key = 'indexed_to' AND old.rid > {MARK_OF_INDEX}; {_TAKE_OUT} END",
    f"CREATE TRIGGER part_search_before_update BEFORE UPDATE OF {_FOLLOWED} ON part "
    f"WHEN old.indexed = 1 AND {_HAS_ENTRY.format('old')} "
    f"BEGIN {_TAKE_OUT} END",
    # A shell that changes a text leaves the words beside it: they are of the old one.
    f"CREATE TRIGGER part_search_after_update AFTER UPDATE OF {_FOLLOWED} ON part "
    "WHEN old.indexed = 1 AND new.indexed = 1 "
    "BEGIN UPDATE part SET words = NULL WHERE rid = new.rid "
    f"AND words IS NOT NULL AND new.words IS old.words AND ({_TEXT_CHANGES}); "
    f"INSERT INTO part_search (rowid, {COLUMNS}) "
    f"SELECT rid, {COLUMNS} FROM part_search_content WHERE rid = new.rid "
    f"AND NOT EXISTS {_HAS_ENTRY.format('new')}; END",
)


def _plain_triggers(table: str, column: str) -> tuple[str, str, str]:
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


TRIGGERS = (
    *_PART_TRIGGERS,
    *_plain_triggers("session", "title"),
    *_plain_triggers("prompt", "text"),
)
