"""Write the tables of `sessiondb.schema` into the first migration of each engine, literally.

    .venv/bin/python scripts/freeze_schema.py

Only while no release has gone out. From then on 0001 is never written again, and this script goes:
a change of the schema is a migration of its own.
"""

from __future__ import annotations

import re
from pathlib import Path

from sessiondb.engine.postgresql import ddl as postgresql
from sessiondb.engine.sqlite import ddl as sqlite

MIGRATIONS = Path(__file__).resolve().parent.parent / "migrations"
FIRST = Path("versions") / "0001_initial.py"


def literal(statement: str) -> str:
    """Return *statement* as a string literal over several lines."""
    lines = statement.replace("\n STRICT", " STRICT").replace("\t", "    ").split("\n")
    sql = "\n".join(line.rstrip() for line in lines)
    return f'    {"r" if chr(92) in sql else ""}"""{sql}""",\n'


def written(name: str, statements: list[str]) -> str:
    """Return the assignment of a tuple of statements to *name*."""
    return f"{name} = (\n{''.join(map(literal, statements))})\n"


def replace(target: Path, text: str) -> None:
    """Replace everything between the marks of a migration."""
    before, _, rest = target.read_text().partition("# <schema>\n")
    _, _, after = rest.partition("# </schema>\n")
    target.write_text(f"{before}# <schema>\n{text}# </schema>\n{after}")


def main() -> None:
    """Write the schema of each engine, without the table that alembic makes itself."""
    made = [sql for sql in sqlite.statements() if "alembic_version" not in sql]
    stored = [sql for sql in made if re.match(r"CREATE (TABLE|INDEX)", sql)]
    derived = [sql for sql in made if sql not in stored]
    text = f"{written('STORED', stored)}\n{written('DERIVED', derived)}"
    replace(MIGRATIONS / FIRST, text)

    made = [sql for sql in postgresql.statements() if "alembic_version" not in sql]
    replace(MIGRATIONS / "postgresql" / FIRST, written("STATEMENTS", made))


if __name__ == "__main__":
    main()
