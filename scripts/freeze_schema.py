"""Write the tables of `sessiondb.schema` into migrations/versions/0001_initial.py, literally.

    .venv/bin/python scripts/freeze_schema.py

Only while no release has gone out. From then on 0001 is never written again, and this script goes:
a change of the schema is a migration of its own.
"""

from __future__ import annotations

import re
from pathlib import Path

from sessiondb.engine.sqlite.ddl import statements

TARGET = (
    Path(__file__).resolve().parent.parent
    / "migrations"
    / "versions"
    / "0001_initial.py"
)


def literal(statement: str) -> str:
    """Return *statement* as a string literal over several lines."""
    lines = statement.replace("\n STRICT", " STRICT").replace("\t", "    ").split("\n")
    sql = "\n".join(line.rstrip() for line in lines)
    return f'    {"r" if chr(92) in sql else ""}"""{sql}""",\n'


def written(name: str, statements: list[str]) -> str:
    """Return the assignment of a tuple of statements to *name*."""
    return f"{name} = (\n{''.join(map(literal, statements))})\n"


def main() -> None:
    """Replace everything between the marks of the migration."""
    made = [sql for sql in statements() if "alembic_version" not in sql]
    stored = [sql for sql in made if re.match(r"CREATE (TABLE|INDEX)", sql)]
    derived = [sql for sql in made if sql not in stored]
    text = f"{written('STORED', stored)}\n{written('DERIVED', derived)}"
    before, _, rest = TARGET.read_text().partition("# <schema>\n")
    _, _, after = rest.partition("# </schema>\n")
    TARGET.write_text(f"{before}# <schema>\n{text}# </schema>\n{after}")


if __name__ == "__main__":
    main()
