"""The code suits every Python from 3.11 on, also if only the oldest one is installed.

A placeholder with a number is a name to SQLite. Bound with a sequence it is a
DeprecationWarning from Python 3.12 on and an error from 3.14 on, as ``:name`` is. A
connection that is left to the garbage collector is a ResourceWarning from 3.13 on. Python
3.11 accepts all of them in silence.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("src", "scripts", "tests", "migrations", "examples")
#: Neither an address, nor a pattern, nor the sequence that hides the cursor of a terminal.
NUMBERED = re.compile(r"(?<![\w)\[\\])\?[0-9]")
#: Neither ``::`` nor the minutes of a time.
NAMED = re.compile(r"(?<![\w:]):[A-Za-z_]")
#: Whatever may hold either, before it is parsed: most files hold none.
SUSPECT = re.compile(r"\?[0-9{]|[ =(,\"':]:[A-Za-z_]")
#: A connection that is neither closed at the end of a block nor has a name.
UNCLOSED = re.compile(
    r"(?<!closing\()(?<!= )sqlite3\.connect\(|sqlite3\.connect\(.*\)\."
)


def texts_in(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield (line, text) of each string; 0 stands for each value of an f-string."""
    for node in ast.walk(tree):
        text = text_of(node)
        if text is not None:
            yield getattr(node, "lineno", 0), text


def text_of(node: ast.AST) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(value) or "0" for value in node.values)
    return None


def constants_in(tree: ast.Module) -> dict[str, str]:
    """Return the texts that have a name in a module."""
    texts = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            text = text_of(node.value)
            if text is not None:
                texts[node.targets[0].id] = text
    return texts


def names_with_sequences(tree: ast.Module) -> list[int]:
    """Return the lines that execute a statement with names and a sequence of values."""
    constants = constants_in(tree)
    lines = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or len(node.args) < 2:
            continue
        if not isinstance(node.func, ast.Attribute) or node.func.attr != "execute":
            continue
        statement, values = node.args[:2]
        text = text_of(statement)
        if isinstance(statement, ast.Name):
            text = constants.get(statement.id)
        is_sequence = isinstance(values, ast.Tuple | ast.List)
        if is_sequence and text is not None and NAMED.search(text):
            lines.append(node.lineno)
    return lines


def mistakes_in(source: str) -> list[int]:
    if not SUSPECT.search(source):
        return []
    tree = ast.parse(source)
    numbered = [line for line, text in texts_in(tree) if NUMBERED.search(text)]
    return numbered + names_with_sequences(tree)


def is_connect(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "connect"
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "sqlite3"
    )


def left_open_in(source: str) -> list[int]:
    """Return the lines that open a connection which nothing can close.

    A ``with`` block of a connection ends a transaction, and does not close it.
    """
    if not UNCLOSED.search(source):
        return []
    lines = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.withitem) and is_connect(node.context_expr):
            lines.append(node.context_expr.lineno)
        if isinstance(node, ast.Attribute) and is_connect(node.value):
            lines.append(node.lineno)
        if isinstance(node, ast.Expr) and is_connect(node.value):
            lines.append(node.lineno)
    return lines


@cache
def sources() -> dict[Path, str]:
    files = [file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py")]
    assert len(files) > 500
    return {file: file.read_text() for file in files}


@pytest.mark.slow
def test_no_statement_binds_a_sequence_to_numbered_or_named_placeholders() -> None:
    mistakes = {file: mistakes_in(source) for file, source in sources().items()}
    assert {file: lines for file, lines in mistakes.items() if lines} == {}


@pytest.mark.slow
def test_no_connection_is_left_to_the_garbage_collector() -> None:
    mistakes = {file: left_open_in(source) for file, source in sources().items()}
    assert {file: lines for file, lines in mistakes.items() if lines} == {}


@pytest.mark.parametrize(
    "source",
    [
        "rows('SELECT ?N', session)",
        "WHERE = 'a = ?N OR b IS NULL AND c = ?N'",
        "where = f'{table}.id = ?N'",
        "where = f'{table}.id = ?{number}'",
        "x.execute('SELECT :name', ('n',))",
        "SQL = 'SELECT :name'\ndef f(): return x.execute(SQL, ['n'])",
    ],
)
def test_a_mistake_is_found_wherever_it_is(source: str) -> None:
    assert mistakes_in(source.replace("N", "1"))


@pytest.mark.parametrize(
    "source",
    [
        "x.execute('SELECT ?', (1,))",
        "x.execute('SELECT :name', {'name': 1})",
        "address = f'{path}?{options}'",
        r"hidden = '\x1b[?25l'",
    ],
)
def test_other_statements_and_addresses_are_no_mistakes(source: str) -> None:
    assert mistakes_in(source) == []


def test_a_connection_that_nothing_closes_is_found() -> None:
    for source in (
        "with sqlite3.connect(path) as db: pass",
        "with closing(a), sqlite3.connect(path) as db: pass",
        "rows = sqlite3.connect(path).execute(query)",
        "sqlite3.connect(path)",
    ):
        assert left_open_in(source), source
    assert not left_open_in("with closing(sqlite3.connect(path)) as db, db: pass")
    assert not left_open_in("db = sqlite3.connect(path)\ndb.close()")
