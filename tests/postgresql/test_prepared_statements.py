"""The server takes our tables, and every statement that ships for it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from postgresql_server import Server

from sessiondb.engine.postgresql.dialect import DIALECT, STATEMENTS
from sessiondb.engine.shipped import read_texts

pytestmark = pytest.mark.slow
_PARAMETER = re.compile(r"(?<![:\w]):(\w+)")


@pytest.fixture(scope="module")
def tables(server: Server) -> Iterator[str]:
    """The name of a database with our tables."""
    statements = read_texts(STATEMENTS.with_name("tables.sql").read_text())
    assert server.run("CREATE DATABASE statements") == ""
    script = "".join(f"{sql};\n" for sql in statements.values())
    assert server.run(f"\\c statements\n{script}") == ""
    yield "statements"
    server.run("DROP DATABASE statements")


def prepared(name: str, statement: str) -> str:
    """Return the script that prepares a statement and says its name if it fails."""
    names = list(dict.fromkeys(_PARAMETER.findall(statement)))
    numbered = _PARAMETER.sub(lambda it: f"${names.index(it[1]) + 1}", statement)
    return f"PREPARE p AS {numbered};\n\\if :ERROR\n\\warn {name}\n\\else\nDEALLOCATE p;\n\\endif\n"


def test_the_server_prepares_every_statement_that_ships(
    server: Server, tables: str
) -> None:
    scripts = [prepared(name, sql) for name, sql in DIALECT.shipped.items()]
    assert len(scripts) > 200
    assert server.run(f"\\c {tables}\n{''.join(scripts)}") == ""


def test_a_statement_that_the_server_refuses_is_reported_by_its_name(
    server: Server,
) -> None:
    errors = server.run(prepared("wrong.ONE", "SELECT count(*) FROM no_such_table"))
    assert errors.splitlines()[-1] == "wrong.ONE"
