"""docs/FORMAT.md is the file: its columns, its recipes, and what it allows others to do."""

from __future__ import annotations

import re
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from docs_blocks import blocks, page

from sessiondb import Store
from sessiondb.maintenance import check
from sessiondb.model.purposes import PURPOSES

FORMAT = page("docs/FORMAT.md")


def _tables(db: sqlite3.Connection) -> set[str]:
    rows = db.execute(
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' "
        "AND substr(name, 1, 7) != 'sqlite_'"
    )
    return {name for (name,) in rows}


def _copy(source: Path, to: Path) -> None:
    with closing(sqlite3.connect(source)) as db:
        db.execute("VACUUM INTO ?", (str(to),))


def _columns_on_the_page(section: str) -> list[tuple[str, str]]:
    return re.findall(
        r"(?m)^\| `(\w+)` \| ((?:TEXT|INTEGER|REAL|BLOB|VARCHAR\(32\))!?) \|", section
    )


def test_every_column_is_described_in_order_with_its_type(sample: Path) -> None:
    sections = dict(re.findall(r"(?ms)^### (\w+)\n(.*?)(?=^##|\Z)", FORMAT))
    with closing(sqlite3.connect(sample)) as db:
        described = {name for name in sections if _columns_on_the_page(sections[name])}
        assert described == _tables(db)
        for table in described:
            rows = db.execute(f"PRAGMA table_info({table})").fetchall()
            real = [
                (name, kind + "!" * required) for _, name, kind, required, *_ in rows
            ]
            assert _columns_on_the_page(sections[table]) == real, table


def test_every_index_is_named_and_the_query_beside_them_takes_the_one_that_it_should(
    sample: Path,
) -> None:
    section = FORMAT.partition("## Indexes\n")[2].partition("\n## ")[0]
    with closing(sqlite3.connect(sample)) as db:
        rows = db.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'index' AND sql NOT NULL"
        )
        assert set(re.findall(r"`(ix_\w+)`", section)) == {name for (name,) in rows}
        (query,) = blocks(section, "sql")
        plan = " ".join(
            row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {query.text}")
        )
    assert "ix_session_used" in plan
    assert "TEMP B-TREE" not in plan


def test_every_view_is_described_with_its_columns(sample: Path) -> None:
    described = {
        name: re.findall(r"`(\w+)`", columns)
        for name, columns in re.findall(
            r"(?m)^\| `(\w+)` \| a [^|]*\| (.*) \|$", FORMAT
        )
    }
    with closing(sqlite3.connect(sample)) as db:
        views = {
            name
            for (name,) in db.execute(
                "SELECT name FROM sqlite_schema WHERE type='view'"
            )
        }
        assert described.keys() == views - {
            "part_search_content",
            "part_search_waiting",
        }
        for view, columns in described.items():
            rows = db.execute(f"PRAGMA table_info({view})").fetchall()
            assert columns == [name for _, name, *_ in rows], view


def test_the_recipes_hold_on_a_real_file(
    sample: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(sample.parent)
    names: dict[str, Any] = {"__name__": "reader"}
    try:
        for block in blocks(FORMAT, "python"):
            exec(compile(block.text, f"docs/FORMAT.md:{block.line}", "exec"), names)
        _recompute_keys(names)
    finally:
        names["db"].close()


def _recompute_keys(names: dict[str, Any]) -> None:
    """Every key of a message made here follows from its row, by the page's own function."""
    rows = names["db"].execute(
        "SELECT m.usage_key, s.source, coalesce(m.response_id, m.id), m.model_id, m.time_created, "
        "m.tokens_input, m.tokens_output, m.tokens_reasoning, m.tokens_cache_read, "
        "m.tokens_cache_write, m.cost FROM message AS m JOIN session AS s ON s.id = m.session_id "
        "WHERE s.source_id IS NULL AND m.inherited = 0"
    )
    keys = 0
    for key, source, name, model, time, *usage in rows.fetchall():
        if any(value is not None for value in usage):
            assert key == names["usage_key"](source, name, model, time, usage[:5])
            keys += 1
        else:
            assert key is None
    assert keys == 2


def test_an_imported_message_always_has_a_key(sample: Path) -> None:
    with closing(sqlite3.connect(sample)) as db:
        sql = (
            "SELECT count(*), count(usage_key) FROM message AS m "
            "JOIN session AS s ON s.id = m.session_id WHERE s.source_id IS NOT NULL"
        )
        messages, keys = db.execute(sql).fetchone()
    assert messages == keys > 10


def test_the_shell_may_do_what_the_page_allows(
    sqlite3_shell: str, sample: Path, tmp_path: Path
) -> None:
    path = tmp_path / "sessions.db"
    _copy(sample, path)
    for block in blocks(FORMAT, "sql"):
        done = subprocess.run(
            [sqlite3_shell, str(path), block.text],
            check=False,
            capture_output=True,
            text=True,
        )
        assert (done.returncode, done.stderr) == (0, ""), block.text
    with Store.open(path) as store:
        assert check(store) == []
        hits = store.search("suomi", project=None)
    assert not hits.items


def test_the_page_names_what_a_delete_in_the_shell_leaves_behind(
    sqlite3_shell: str, sample: Path, tmp_path: Path
) -> None:
    path = tmp_path / "sessions.db"
    _copy(sample, path)
    delete = "PRAGMA foreign_keys = ON; DELETE FROM session WHERE source = 'my-agent'"
    subprocess.run([sqlite3_shell, str(path), delete], check=True)
    with Store.open(path) as store:
        assert {finding.what for finding in check(store)} == {
            "blobs that nothing refers to"
        }


def test_a_foreign_trigger_is_refused_and_a_foreign_index_is_not(
    sample: Path, tmp_path: Path
) -> None:
    path = tmp_path / "sessions.db"
    _copy(sample, path)
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE INDEX mine ON session (title)")
        db.execute("CREATE TABLE notes (text TEXT)")
        db.execute("CREATE VIEW short AS SELECT id, title FROM session")
        Store.open(path).close()
        db.execute(
            "CREATE TRIGGER planted AFTER INSERT ON part BEGIN DELETE FROM notes; END"
        )
    with pytest.raises(ValueError, match="planted"):
        Store.open(path)


def test_every_purpose_of_a_message_is_described_as_the_code_does() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", FORMAT, re.MULTILINE))
    assert {name: rows.get(name) for name in PURPOSES} == PURPOSES
