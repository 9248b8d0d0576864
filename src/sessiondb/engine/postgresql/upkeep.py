"""PostgreSQL as an `engine.upkeep.Upkeep`: what its server does not do by itself."""

from __future__ import annotations

import psycopg
from psycopg import pq

from sessiondb.engine.base import Connection
from sessiondb.engine.postgresql import facts
from sessiondb.engine.postgresql.admission import SCHEMA
from sessiondb.engine.sql import quoted

_REFERENCES = f"""
SELECT c.relname, a.attname
  FROM pg_constraint AS k
  JOIN pg_class AS c ON c.oid = k.conrelid
  JOIN pg_attribute AS a ON a.attrelid = k.conrelid AND a.attnum = ANY (k.conkey)
  JOIN pg_class AS t ON t.oid = k.confrelid
 WHERE k.contype = 'f' AND k.conparentid = 0 AND t.relname = ?
   AND t.relnamespace = {SCHEMA} AND a.attname <> 'family'
 ORDER BY 1, 2
"""
#: Each foreign key as SQL: its tables ``c`` and ``p``, and that its columns are the
#: same, and not NULL.
_KEYS = f"""
SELECT c.relname, p.relname,
       string_agg(format('c.%I = p.%I', a.attname, b.attname), ' AND '),
       string_agg(format('c.%I IS NOT NULL', a.attname), ' AND ')
  FROM pg_constraint AS k
  JOIN pg_class AS c ON c.oid = k.conrelid
  JOIN pg_class AS p ON p.oid = k.confrelid
 CROSS JOIN unnest(k.conkey, k.confkey) AS u (own, other)
  JOIN pg_attribute AS a ON a.attrelid = k.conrelid AND a.attnum = u.own
  JOIN pg_attribute AS b ON b.attrelid = k.confrelid AND b.attnum = u.other
 WHERE k.contype = 'f' AND k.conparentid = 0 AND k.connamespace = {SCHEMA}
 GROUP BY k.oid, c.relname, p.relname
 ORDER BY 1, 2
"""
_BYTES = f"""
SELECT relname, pg_total_relation_size(oid) FROM pg_class
 WHERE relkind IN ('r', 'p') AND relnamespace = {SCHEMA}
 ORDER BY 2 DESC, 1
"""


class PostgreSQLUpkeep:
    """The upkeep of a server's databases."""

    settings = staticmethod(facts.settings)
    advice = staticmethod(facts.advice)

    def damage(self, connection: Connection) -> list[str]:  # noqa: ARG002
        """Return no lines: what pages are like is the concern of the server."""
        return []

    def is_of_an_index(self, line: str) -> bool:  # noqa: ARG002
        """Return False: `damage` returns no lines."""
        return False

    def is_of_pages(self, line: str) -> bool:  # noqa: ARG002
        """Return False: `damage` returns no lines."""
        return False

    def broken_references(self, connection: Connection) -> list[tuple[str, str]]:
        """Return (table, table it refers to) of each row with a broken reference.

        The server lets none break, unless its owner disables the checks.
        """
        broken = []
        for table, parent, compared, stated in connection.execute(_KEYS).fetchall():
            sql = (
                f"SELECT count(*) FROM {quoted(table)} AS c WHERE {stated} "
                f"AND NOT EXISTS "
                f"(SELECT 1 FROM {quoted(parent)} AS p WHERE {compared})"
            )
            (rows,) = connection.execute(sql).fetchone()
            broken += [(table, parent)] * rows
        return broken

    def references_to(
        self, connection: Connection, table: str
    ) -> list[tuple[str, str]]:
        """Return the (table, column) with a foreign key to *table*."""
        rows = connection.execute(_REFERENCES, (table,)).fetchall()
        return [(name, column) for name, column in rows]

    def bytes_by_table(self, connection: Connection) -> dict[str, int]:
        """Return table → bytes with its indexes, of our schema, largest first."""
        return dict(connection.execute(_BYTES).fetchall())

    def versions(self) -> dict[str, str | None]:
        """Return the versions of the driver and of its libpq."""
        release, patch = divmod(pq.version(), 10_000)
        return {"psycopg": psycopg.__version__, "libpq": f"{release}.{patch}"}
