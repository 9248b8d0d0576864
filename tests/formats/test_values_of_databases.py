"""Values of another database: merged once, by the later update, and never half."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonl_tables import outcomes, read_into

from sessiondb import Store, user
from sessiondb.formats import find
from sessiondb.maintenance import backup, check
from sessiondb.model import Problem, SourceValue, SourceValues

Opened = Callable[[str], Store]
_ROWS = (
    "SELECT namespace, key, revision, ttl, value, content FROM key_value ORDER BY 1, 2"
)


def rows(store: Store) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(store.path)) as connection:
        return connection.execute(_ROWS).fetchall()


def execute(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for sql in statements:
            connection.execute(sql)


def closed(store: Store) -> Path:
    path = store.path
    store.close()
    return path


def problems(results: list[Any]) -> list[str]:
    return [result.why for result in results if isinstance(result, Problem)]


def test_values_come_with_a_database_once(opened: Opened) -> None:
    old = opened("old")
    session = old.create_session(title="a")
    old.append(session, user("Hello"))
    old.set_value(("users", "1"), "theme", {"dark": True})
    old.set_value("files", "f", b"\0\xff")
    old.set_value("cache", "kept", 1, ttl=3600)
    old.set_value("cache", "gone", 1, ttl=0.001)
    path = closed(old)
    here = opened("here")
    assert outcomes(read_into(here, path)) == ["imported"]
    first = rows(here)
    assert [row[1] for row in first] == ["kept", "f", "theme"]
    assert here.value("cache", "kept").time_expires is not None  # type: ignore[union-attr]
    assert here.value("files", "f").value == b"\0\xff"  # type: ignore[union-attr]
    assert outcomes(read_into(here, path)) == ["unchanged"]
    assert rows(here) == first
    assert check(here) == []


@pytest.mark.parametrize(
    ("there", "here", "winner"), [(2, 1, "there"), (1, 2, "here"), (1, 1, "here")]
)
def test_of_two_values_the_later_update_stays(
    opened: Opened, there: int, here: int, winner: str
) -> None:
    stores = {"there": opened("there"), "here": opened("here")}
    for name, store in stores.items():
        store.set_value("n", "k", name)
    times = {"there": there, "here": here}
    for name, store in stores.items():
        execute(
            store.path,
            f"UPDATE key_value SET time_updated = {1_780_000_000_000 + times[name]}",
        )
    read_into(stores["here"], closed(stores["there"]))
    value = stores["here"].value("n", "k")
    assert value is not None
    # A write of this database, with a revision of its own.
    assert (value.value, value.revision) == (winner, 2 if winner == "there" else 1)


def test_a_value_that_expired_here_is_replaced(opened: Opened) -> None:
    there, here = opened("there"), opened("here")
    there.set_value("n", "k", "there")
    here.set_value("n", "k", "here", ttl=3600)
    execute(here.path, "UPDATE key_value SET time_expires = 1")
    read_into(here, closed(there))
    assert here.value("n", "k").value == "there"  # type: ignore[union-attr]


def test_an_import_of_one_project_leaves_values_out(opened: Opened) -> None:
    there, here = opened("there"), opened("here")
    there.set_value("n", "k", 1)
    path = closed(there)
    for found in find(path):
        assert list(here.ingest(found.read(), project_root="/nowhere")) == []
        assert list(here.ingest(found.read(), dry_run=True)) == []
    assert rows(here) == []


GOOD = SourceValue('["n"]', "good", None, 10**12, 10**12, None, "1", None)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("namespace", '["n", "m"]'), ("namespace", "[]"), ("namespace", '[""]'),
        ("namespace", "n"), ("namespace", '["n",1]'), ("namespace", '{"n":1}'),
        ("key", ""), ("key", "a\0b"), ("key", "x" * 5_000), ("ttl", 5), ("ttl", -1),
        ("time_updated", 9 * 10**18), ("time_created", None), ("time_created", "1"),
        ("time_expires", 10**13), ("value", None), ("value", "{"), ("value", "[" * 2_000),
        ("value", "NaN"), ("content", b""), ("value", '{"a":1e999}'),
    ],
)  # fmt: skip
def test_a_value_that_cannot_be_stored_is_a_problem_and_its_neighbours_come(
    store: Store, field: str, value: Any
) -> None:
    bad = replace(GOOD, **{"key": "bad", field: value})
    other = replace(GOOD, key="other")
    source = SourceValues("there.db", [GOOD, bad, other])
    results = list(store.ingest([source]))
    assert len(problems(results)) == len(results) == 1
    assert [row[1] for row in rows(store)] == ["good", "other"]


def test_a_spelling_of_json_becomes_that_of_this_release(store: Store) -> None:
    item = SourceValue('["n"]', "k", None, 10**12, 10**12, None, '{ "a" : 1e2 }', None)
    assert list(store.ingest([SourceValues("there.db", [item])])) == []
    assert rows(store) == [('["n"]', "k", 1, None, '{"a":100.0}', None)]


def test_many_values_come_in_several_transactions(opened: Opened) -> None:
    there, here = opened("there"), opened("here")
    with there.effects() as fx:
        for number in range(1_203):
            fx.set_value("n", f"{number:04}", number)
        for number in range(3):
            fx.set_value("large", str(number), b"x" * 3_000_000)
    path = closed(there)
    before = here._core.writer.serial
    assert problems(list(read_into(here, path))) == []
    assert len(rows(here)) == 1_206
    assert 4 <= here._core.writer.serial - before <= 8


def test_a_damaged_value_does_not_lose_the_sessions(opened: Opened) -> None:
    there, here = opened("there"), opened("here")
    session = there.create_session(title="a")
    there.append(session, user("Hello"))
    there.set_value("n", "a", "1")
    there.set_value("n", "b", "2")
    path = closed(there)
    execute(
        path, "PRAGMA ignore_check_constraints = ON",
        "UPDATE key_value SET value = '{' WHERE key = 'a'",
    )  # fmt: skip
    results = list(read_into(here, path))
    assert [
        result.outcome for result in results if not isinstance(result, Problem)
    ] == ["imported"]
    assert len(problems(results)) == 1
    assert [row[1] for row in rows(here)] == ["b"]


def test_a_backup_has_the_values(store: Store, tmp_path: Path) -> None:
    store.set_value(("users", "1"), "theme", {"dark": True})
    copy = tmp_path / "copy.db"
    backup(store, copy)
    with Store.open(copy) as restored:
        assert restored.values() == store.values()


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, empty: Path) -> Iterator[list[Path]]:
    folder = tmp_path_factory.mktemp("pair")
    return [Path(shutil.copy(empty, folder / name)) for name in ("a.db", "b.db")]


WRITES = st.lists(
    st.tuples(st.sampled_from("kl"), st.integers(1, 3), st.integers(0, 2)), max_size=4
)


@pytest.mark.slow
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(left=WRITES, right=WRITES)
def test_two_databases_that_import_each_other_agree_unless_times_are_equal(
    pair: list[Path], left: list[Any], right: list[Any]
) -> None:
    for path, writes in zip(pair, (left, right), strict=True):
        execute(path, "DELETE FROM key_value")
        with Store.open(path, durability="normal") as store:
            for key, time, content in writes:
                store.set_value("n", key, [time, content])
                # Equal times have equal contents.
                now = 10**12 + 10 * time + content
                execute(
                    path,
                    f"UPDATE key_value SET time_updated = {now} WHERE key = '{key}'",
                )
    for source, target in (pair, pair[::-1]):
        with Store.open(target, durability="normal") as store:
            assert problems(list(read_into(store, source))) == []
    states = []
    for path in pair:
        with Store.open(path, durability="normal") as store:
            states.append({value.key: value.value for value in store.values()})
    assert states[0] == states[1]
