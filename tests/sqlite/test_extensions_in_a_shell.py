"""Tables of a program in a file that a shell or damage changed."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Column, Integer, UniqueConstraint

from sessiondb import Store, UntrustedDatabaseError, user
from sessiondb.extensions import Extension, session_column

GRAPH = Extension("graph")
STEP = GRAPH.table(
    "step",
    session_column(),
    Column("number", Integer, nullable=False),
    UniqueConstraint("session_id", "number"),
)


def step(session: object, number: int) -> dict[str, object]:
    return {"session_id": session, "number": number}


def test_a_shell_that_deletes_a_session_deletes_its_rows(tmp_path: Path) -> None:
    with Store.open(tmp_path / "a.db") as store:
        store.insert_rows(STEP, [step(store.create_session(), 1)])
    with closing(sqlite3.connect(tmp_path / "a.db")) as shell:
        shell.execute("PRAGMA foreign_keys=ON")
        shell.execute("DELETE FROM session")
        shell.commit()
        assert shell.execute("SELECT * FROM ext_graph_step").fetchall() == []


def test_a_damaged_file_is_exported_with_the_rows_that_can_be_read(
    store: Store,
) -> None:
    session = store.create_session()
    store.append(session, user("hi"))
    store.insert_rows(STEP, [step(session, 1), step(session, 2)])
    store.close()
    with closing(sqlite3.connect(store.path)) as shell:
        shell.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        page = shell.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_ext_graph_step_1'"
        ).fetchone()[0]
    with store.path.open("r+b") as file:  # type: ignore[union-attr]
        file.seek((page - 1) * 4096)
        file.write(bytes(4096))
    with Store.open(store.path) as damaged:
        lines: list[str] = []
        damaged.read_past_damage(lines.append)
        export = damaged.export(session)
        assert [row.columns["number"] for row in export.extension_rows] == [1, 2]


def test_a_table_that_calls_a_function_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with Store.open(path) as store:
        store.extend(GRAPH)
    with closing(sqlite3.connect(path)) as shell:
        shell.execute("CREATE INDEX planted ON ext_graph_step (hex(number))")
        shell.commit()
    with pytest.raises(UntrustedDatabaseError, match="hex"):
        Store.open(path)
