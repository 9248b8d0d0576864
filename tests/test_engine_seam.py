"""The seam for engines: SQLite stays in its folder, and statements suit another engine."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import freeze_statements
import pytest
from postgresql_server import Server, binaries, running
from sqlalchemy import Index, Table
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateIndex, CreateTable
from sqlalchemy.sql import ClauseElement
from sqlalchemy.sql.elements import TextClause

import sessiondb
from sessiondb.schema.tables import metadata

PACKAGE = Path(sessiondb.__file__).parent
#: The engine itself, and the one module that reads SQLite files of other programs.
KNOW_SQLITE = ("engine/sqlite/", "formats/kit/sqlite.py")
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
        if (node.module or "").startswith("sessiondb.engine.sqlite")
    ]


def outside() -> Iterator[tuple[Path, ast.AST]]:
    """Yield every file outside of the engine; one tree at a time, for all are large."""
    for file in sorted(PACKAGE.rglob("*.py")):
        place = file.relative_to(PACKAGE)
        if not place.as_posix().startswith(KNOW_SQLITE):
            yield place, ast.parse(file.read_text())


@pytest.mark.slow
def test_sqlite_is_used_in_its_own_folder_and_imported_by_the_seam_alone() -> None:
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
_PARAMETER = re.compile(r"(?<![:\w]):(\w+)")


class PostgreSQL:
    """The half of a `Dialect` that compiles, as a second engine would have it."""

    name = "postgresql"
    _dialect = postgresql.dialect(paramstyle="named")

    def compile(self, expression: ClauseElement) -> str:
        return str(expression.compile(dialect=self._dialect))


def test_statements_compile_for_postgresql_too() -> None:
    statements = dict(freeze_statements.expressions())
    texts = [name for name, it in statements.items() if isinstance(it, TextClause)]
    for name, statement in statements.items():
        assert "INDEXED BY" not in PostgreSQL().compile(statement), name
    assert len(statements) > 200
    assert len(texts) <= MOST_TEXTS, texts


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    programs = binaries()
    if programs is None:
        pytest.skip("PostgreSQL is not installed")
    with running(programs) as started:
        yield started


def schema() -> str:
    compiled = [
        PostgreSQL().compile(definition)
        for table in metadata.sorted_tables
        for definition in (CreateTable(table), *map(CreateIndex, sorted_indexes(table)))
    ]
    return "".join(f"{text};\n" for text in compiled)


def sorted_indexes(table: Table) -> list[Index]:
    return sorted(table.indexes, key=lambda index: str(index.name))


def prepared(name: str, statement: str) -> str:
    """Return the script that prepares a statement and says its name if it fails."""
    names = list(dict.fromkeys(_PARAMETER.findall(statement)))
    numbered = _PARAMETER.sub(lambda it: f"${names.index(it[1]) + 1}", statement)
    return f"PREPARE p AS {numbered};\n\\if :ERROR\n\\warn {name}\n\\else\nDEALLOCATE p;\n\\endif\n"


@pytest.mark.slow
def test_postgresql_accepts_the_schema_and_prepares_every_statement(
    server: Server,
) -> None:
    assert server.run(schema()) == ""
    statements = dict(freeze_statements.expressions())
    scripts = [
        prepared(name, PostgreSQL().compile(it)) for name, it in statements.items()
    ]
    assert server.run("".join(scripts)) == ""


@pytest.mark.slow
def test_a_statement_that_postgresql_refuses_is_reported_by_its_name(
    server: Server,
) -> None:
    errors = server.run(prepared("wrong.ONE", "SELECT count(*) FROM no_such_table"))
    assert errors.splitlines()[-1] == "wrong.ONE"
