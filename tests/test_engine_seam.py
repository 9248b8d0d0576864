"""The seam for engines: SQLite stays in its folder, and statements suit another engine."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import freeze_statements
import pytest
from sqlalchemy.sql.elements import TextClause

import sessiondb

PACKAGE = Path(sessiondb.__file__).parent
#: The folders of the engines.
ENGINES = ("sessiondb.engine.sqlite", "sessiondb.engine.postgresql")
#: The engines themselves, and the one module that reads SQLite files of other programs.
KNOW_AN_ENGINE = ("engine/sqlite/", "engine/postgresql/", "formats/kit/sqlite.py")
#: An ending like ``.sqlite3`` is a name of a file, and says nothing of its engine's use.
WORDS = re.compile(
    r"pragma|json_each|\bfts|insert or |replace into|\browid\b|last_insert_rowid|(?<!\.)sqlite3|"
    r"sqlite_(master|schema)|(part|session|prompt)_search|zeroblob|blobopen|lastrowid",
    re.IGNORECASE,
)
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def said(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield (line, text) of each identifier, import and string other than a docstring."""
    docstrings = set()
    for node in ast.walk(tree):  # what has a docstring comes before it
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False):
            docstrings.add(id(node.body[0].value))  # type: ignore[attr-defined]
        if id(node) not in docstrings:
            line = getattr(node, "lineno", 0)
            for _, value in ast.iter_fields(node):
                if isinstance(value, str):
                    yield line, value


@cache
def has_engine_word(text: str) -> bool:
    return WORDS.search(text) is not None


def engine_words(tree: ast.AST) -> list[str]:
    return [
        f"line {line}: {text}" for line, text in said(tree) if has_engine_word(text)
    ]


def imports_of_an_engine(tree: ast.AST) -> list[str]:
    froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return [
        f"line {node.lineno}: from {node.module}"
        for node in froms
        if (node.module or "").startswith(ENGINES)
    ]


def outside() -> Iterator[tuple[Path, ast.AST]]:
    """Yield every file outside of the engine; one tree at a time, for all are large."""
    for file in sorted(PACKAGE.rglob("*.py")):
        place = file.relative_to(PACKAGE)
        if not place.as_posix().startswith(KNOW_AN_ENGINE):
            yield place, ast.parse(file.read_text())


@pytest.mark.slow
def test_sqlite_is_used_in_its_own_folder_and_engines_imported_by_the_seam_alone() -> (
    None
):
    words, importing = {}, []
    for place, tree in outside():
        if found := engine_words(tree):
            words[place] = found
        if imports_of_an_engine(tree):
            importing.append(place)

    assert not words
    assert importing == [Path("engine/default.py")]


@pytest.mark.parametrize(
    "source",
    [
        "import sqlite3",
        "from sqlite3 import Error",
        "def f(sqlite3): ...",
        "x.execute('PRAGMA user_version')",
        "x = f'SELECT {a} FROM json_each(:b)'",
        "x = 'INSERT OR IGNORE INTO meta VALUES (1)'",
        "cursor.lastrowid",
    ],
)
def test_a_word_of_sqlite_is_found_wherever_it_is(source: str) -> None:
    assert engine_words(ast.parse(source))


def test_a_docstring_may_say_what_it_likes() -> None:
    source = '"""Not by sqlite3."""\ndef f():\n    """PRAGMA"""\n'
    assert engine_words(ast.parse(source)) == []


# -- another engine ------------------------------------------------------------

#: How many statements may be SQL text, which Core passes on unread. These are
#: recursions and row values.
MOST_TEXTS = 5


def test_statements_are_expressions_and_their_hints_are_for_sqlite_alone() -> None:
    statements = dict(freeze_statements.expressions())
    texts = [name for name, it in statements.items() if isinstance(it, TextClause)]
    assert len(statements) > 200
    assert len(texts) <= MOST_TEXTS, texts
    other = freeze_statements.shipped("postgresql").dialect.shipped
    assert not [name for name, sql in other.items() if "INDEXED BY" in sql]
