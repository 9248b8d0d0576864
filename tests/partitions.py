"""Our tables on hash partitions, which stand in for the nodes of Citus.

Partitions refuse what Citus refuses of keys: each has the column by which a row is on its
node. And a plan names the partitions that a statement touches.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from sessiondb.engine.postgresql import ddl
from sessiondb.engine.postgresql.families import is_sharded
from sessiondb.engine.postgresql.routes import TABLE as ROUTE
from sessiondb.schema.version import HEAD

#: As many as there would be nodes.
PARTITIONS = 4
_TABLE = re.compile(r"CREATE TABLE (\w+) \(")
_IN_PLAN = re.compile(r"\b(\w+)_partition(\d+)\b")


def partitioned(statements: Iterable[str]) -> Iterator[str]:
    """Yield statements that make the same tables, in partitions by family, or by session."""
    for statement in statements:
        found = _TABLE.match(statement)
        name = found[1] if found else ""
        if not is_sharded(name, statement) and statement != ROUTE:
            yield statement
            continue
        column = "session_id" if statement == ROUTE else "family"
        yield f"{statement} PARTITION BY HASH ({column})"
        for number in range(PARTITIONS):
            yield (
                f"CREATE TABLE {name}_partition{number} PARTITION OF {name} "
                f"FOR VALUES WITH (MODULUS {PARTITIONS}, REMAINDER {number})"
            )


def partitioned_schema() -> Iterator[str]:
    """Yield the statements that make a database of this release in partitions."""
    yield from partitioned(ddl.statements())
    yield f"INSERT INTO alembic_version (version_num) VALUES ('{HEAD}')"


def make_partitioned(url: str) -> None:
    """Make the tables of this release in an empty database, in partitions."""
    import psycopg

    with psycopg.connect(url) as connection:
        for statement in partitioned_schema():
            connection.execute(statement)  # type: ignore[call-overload]


def touched(plan: Iterable[str]) -> dict[str, int]:
    """Return by the name of a table how many of its partitions a plan touches."""
    names = {found for line in plan for found in _IN_PLAN.findall(line)}
    partitions: dict[str, int] = {}
    for table, _ in names:
        partitions[table] = partitions.get(table, 0) + 1
    return partitions
