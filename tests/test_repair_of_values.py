"""Values that a shell wrote or a page lost: found by `check`, repaired, or read around."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from sessiondb import Store
from sessiondb.errors import CorruptionError
from sessiondb.maintenance import check, diagnose
from sessiondb.maintenance.repair import repair

PAGE = 4096
_INSERT = (
    "INSERT INTO key_value (namespace, key, revision, time_created, time_updated, value) "
    "VALUES (?, ?, 1, 1, ?, ?)"
)


def insert(store: Store, *rows: tuple[str, str, int, str]) -> None:
    with closing(sqlite3.connect(store.path)) as connection, connection:
        connection.executemany(_INSERT, rows)


def execute(store: Store, *statements: str) -> None:
    with closing(sqlite3.connect(store.path, isolation_level=None)) as connection:
        for sql in statements:
            connection.execute(sql)


def test_a_store_of_values_is_sound(store: Store) -> None:
    store.set_value(("a", 'ä "b"', "\n"), "k", {"a": [1, None]})
    store.set_value("a", "bytes", b"\0", ttl=60)
    store.delete_value("a", "bytes")
    assert check(store) == []


def test_a_namespace_in_another_spelling_is_found_and_put_right(store: Store) -> None:
    store.set_value(("a", "ü"), "kept", "here")
    store.set_value(("a", "ü"), "earlier", "here")
    insert(
        store,
        ('["a", "ü"]', "alone", 1, '"there"'),
        ('["a", "ü"]', "kept", 1, '"there"'),
        ('["a", "ü"]', "earlier", 4_000_000_000_000, '"there"'),
        (r'["a","\u00fc"]', "escaped", 1, '"there"'),
    )
    (finding,) = check(store)
    assert (finding.check, finding.count) == ("values", 2)
    assert finding.what == "namespaces of values in another spelling than their own"
    repaired = repair(store)
    assert repaired.left == []
    assert {value.key: value.value for value in store.values(("a", "ü"))} == {
        "alone": "there", "earlier": "there", "escaped": "there", "kept": "here",
    }  # fmt: skip


@pytest.mark.parametrize(
    "text", ["[]", '[""]', "3", '["a",1]', '{"a":1}', '"a"', "null"]
)
def test_a_namespace_without_names_is_beyond_repair(store: Store, text: str) -> None:
    insert(store, (text, "k", 1, "1"))
    store.set_value("a", "k", 2)
    (finding,) = check(store)
    assert (finding.what, finding.repair) == (
        "namespaces of values that are not lists of names",
        None,
    )
    assert repair(store).left == [finding]
    # One that is meant is read all the same.
    assert store.value("a", "k").value == 2  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "change",
    [
        "value = '{'", "namespace = '['", "content = x'00'", "value = NULL", "revision = 0",
        "ttl = 5", "time_expires = 5",
    ],
)  # fmt: skip
def test_a_shell_cannot_write_what_no_row_may_have(store: Store, change: str) -> None:
    store.set_value("a", "k", 1)
    with pytest.raises(sqlite3.IntegrityError):
        execute(store, f"UPDATE key_value SET {change}")
    execute(store, "PRAGMA ignore_check_constraints = ON")
    with closing(sqlite3.connect(store.path, isolation_level=None)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute(f"UPDATE key_value SET {change}")
    assert "integrity" in {finding.check for finding in check(store)}


def test_doctor_counts_values_and_their_bytes(store: Store) -> None:
    store.set_value("a", "k", "x" * 100_000)
    report = diagnose(store.location)
    assert report["rows"]["values"] == 1
    assert report["bytes_by_table"]["key_value"] >= 100_000


@pytest.fixture
def damaged(tmp_path: Path, empty: Path) -> Path:
    """A database of 2,000 values, one leaf page of which is overwritten."""
    path = tmp_path / "damaged.db"
    path.write_bytes(empty.read_bytes())
    with Store.open(path, durability="normal") as store, store.effects() as fx:
        for number in range(2_000):
            fx.set_value("n", f"{number:04}", {"text": "x" * 100})
    sql = (
        "SELECT pageno FROM dbstat WHERE name = 'key_value' AND pagetype = 'leaf' "
        "ORDER BY pageno LIMIT 1 OFFSET 20"
    )
    with closing(sqlite3.connect(path)) as connection:
        ((page,),) = connection.execute(sql).fetchall()
    with path.open("r+b") as file:
        file.seek((page - 1) * PAGE)
        file.write(b"\xff" * PAGE)
    return path


@pytest.mark.slow
def test_values_around_a_damaged_page_are_read(damaged: Path) -> None:
    losses: list[str] = []
    with Store.open(damaged) as store:
        with pytest.raises(CorruptionError):
            store.values("n", limit=10_000)
        store.read_past_damage(losses.append)
        page = store.values("n", limit=10_000)
    assert len(losses) == 1
    assert "of key_value" in losses[0]
    assert 1_900 < len(page.items) < 2_000
    assert page.next_cursor is None
