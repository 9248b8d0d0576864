"""Statements ship as text: what runs is what SQLAlchemy Core says, name by name."""

from __future__ import annotations

import importlib
import pkgutil
import re
import sqlite3
from collections.abc import Iterator
from typing import Any

import freeze_statements
import pytest

import sessiondb
from sessiondb import Store
from sessiondb.engine.default import ENGINE
from sessiondb.engine.shipped import lay_out, read_texts, write_texts
from sessiondb.engine.sql import ComposedStatement, Statement
from sessiondb.engine.sqlite.dialect import DIALECT

HOW = "run scripts/freeze_statements.py"


def named_by_rooms() -> set[str]:
    """Return the names of the shipped statements that some module holds."""
    names = set()

    def visit(value: Any) -> Iterator[Statement]:
        if isinstance(value, Statement) and not isinstance(value, ComposedStatement):
            yield value
        elif isinstance(value, dict):
            for item in value.values():
                yield from visit(item)
        elif isinstance(value, tuple | list):
            for item in value:
                yield from visit(item)

    for module in pkgutil.walk_packages(sessiondb.__path__, "sessiondb."):
        if not module.name.endswith("__main__"):
            for value in vars(importlib.import_module(module.name)).values():
                names.update(statement.name for statement in visit(value))
    return names


@pytest.fixture(params=freeze_statements.ENGINES)
def shipped(request: pytest.FixtureRequest) -> freeze_statements.Shipped:
    """What ships with each engine."""
    return freeze_statements.shipped(request.param)


def test_the_text_that_ships_is_what_core_compiles(
    shipped: freeze_statements.Shipped,
) -> None:
    compiled = freeze_statements.texts(shipped.dialect)
    assert compiled == shipped.dialect.shipped, HOW
    written = write_texts(freeze_statements.ABOUT, compiled)
    assert shipped.statements.read_text() == written, HOW


def test_the_tables_that_ship_are_those_of_the_schema(
    shipped: freeze_statements.Shipped,
) -> None:
    tables = shipped.table_statements()
    written = write_texts(freeze_statements.ABOUT_TABLES, tables)
    assert shipped.tables.read_text() == written, HOW


def test_the_columns_that_ship_are_those_of_the_tables() -> None:
    assert freeze_statements.COLUMNS.read_text() == freeze_statements.written_columns()


def test_every_statement_in_use_ships_and_every_one_that_ships_is_in_use(
    shipped: freeze_statements.Shipped,
) -> None:
    assert named_by_rooms() == set(shipped.dialect.shipped)


def test_a_constant_is_written_in_its_place_and_is_no_parameter(
    shipped: freeze_statements.Shipped,
) -> None:
    numbered = re.compile(r":\w+_\d+\b")
    texts = shipped.dialect.shipped
    assert not [name for name, sql in texts.items() if numbered.search(sql)]


def test_sqlite_takes_every_text_that_ships(tmp_path: Any) -> None:
    Store.open(tmp_path / "s.db").close()
    connection = sqlite3.connect(tmp_path / "s.db")
    for name, sql in DIALECT.shipped.items():
        parameters = dict.fromkeys(re.findall(r":(\w+)", sql))
        try:
            connection.execute(f"EXPLAIN {sql}", parameters).fetchall()
        except sqlite3.Error as error:
            pytest.fail(f"{name}: {error}")
    connection.close()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 'it''s  a\nFROM' AS x FROM part WHERE a = ' -- '",
        f"SELECT {', '.join(f'column_{number}' for number in range(50))} FROM part",
        "UPDATE part SET title=:title, text = 'WHERE' WHERE rid = :row",
        "SELECT 1 FROM part WHERE title IS NOT DISTINCT FROM :title",
    ],
)
def test_lines_break_between_words_and_never_in_a_text(sql: str) -> None:
    laid_out = lay_out(sql)
    assert max(map(len, laid_out.split("\n"))) <= 96
    assert read_texts(write_texts("about", {"a.b": laid_out, "c": "SELECT 1"})) == {
        "a.b": laid_out,
        "c": "SELECT 1",
    }
    texts = re.compile(r"'(?:[^']|'')*'")
    assert texts.findall(laid_out) == texts.findall(sql)
    assert texts.sub("", laid_out).split() == texts.sub("", sql).split()


def test_a_statement_without_a_text_names_itself() -> None:
    with pytest.raises(KeyError, match=r"effects\.lease\.MISSING"):
        Statement("effects.lease.MISSING").text_on(ENGINE)
