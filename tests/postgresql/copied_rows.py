"""The rows of a file in a database of a server: what is made by one engine, read by both."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from sessiondb.engine.postgresql.ddl import names_of
from sessiondb.schema.columns import TABLES

#: What the server makes by itself.
DERIVED = {("session", "hidden")}


def copy_rows(path: Path, connection: Any) -> None:
    """Copy the rows of the file at *path* into an empty database with our tables."""
    connection.execute("DELETE FROM meta")
    # The order of the tables is that of their references, but for forks of sessions.
    connection.execute("SET session_replication_role = replica")
    with closing(sqlite3.connect(path)) as file:
        for table, columns in TABLES.items():
            if table not in names_of("TABLE"):
                continue
            names = [f'"{name}"' for name in columns if (table, name) not in DERIVED]
            rows = file.execute(f"SELECT {', '.join(names)} FROM {table}").fetchall()
            marks = ", ".join("?" * len(names))
            insert = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})"
            connection.executemany(insert, rows)
    connection.execute("SET session_replication_role = origin")
