"""Damage by a shell with foreign keys off, its findings by `check`, and its repair."""

from __future__ import annotations

import importlib
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sessiondb import Store, assistant, event, text, tool, tool_result, user
from sessiondb.errors import CorruptionError, SessionDBError
from sessiondb.formats import jsonl
from sessiondb.maintenance import check, every
from sessiondb.maintenance.deletions import tombstones
from sessiondb.maintenance.repair import repair, repairable
from sessiondb.model import MessageDraft
from sessiondb.repository.sessions import ALL

pytestmark = pytest.mark.slow

#: Losses that only a backup can undo: check names them, no repair fixes them.
LOST = {"lost", "blobs", "references"}


@pytest.fixture(scope="module")
def family(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, frozenset[str]]:
    """A database of two families, and the ids of the second one."""
    path = tmp_path_factory.mktemp("repair") / "family.db"
    with Store.open(path, durability="normal", cwd=path.parent) as store:
        first = set(_family(store, "one"))
        list(_family(store, "two"))
        others = {session.id for session in _all(store)} - first
    return path, frozenset(others)


def _family(store: Store, name: str) -> Iterator[str]:
    top = store.create_session(title=f"{name} top", directory=f"/{name}")
    yield top.id
    store.append(top, user(f"{name} asks"))
    call = tool("bash", {"command": "x" * 1500}, call_id="c")
    store.append(top, assistant(text(f"{name} " * 600), call), model="m", cost=0.5)
    store.append(top, event("label", text("noted")))
    store.append(top, MessageDraft("tool", (tool_result("c", f"{name} result"),)))
    store.set_todos(top, ["todo"])
    store.label(top, 1, "start")
    store.add_prompt(f"{name} asks", session=top, directory=f"/{name}")
    fork = store.fork(top)
    yield fork.id
    store.append(fork, assistant(f"{name} {'y' * 2000}"), model="m", cost=0.25)
    yield (deeper := store.fork(fork)).id
    store.append(deeper, user("deeper"))
    helper = store.create_session(
        title="helper", parent=top, relation="subagent", directory=f"/{name}"
    )
    yield helper.id
    store.append(helper, user("look around"))
    yield store.fork(top, at=2).id


def _all(store: Store) -> list:
    return list(every(store, project=ALL, archived=True, subagents=True, empty=True))


def exports(path: Path, ids: frozenset[str]) -> dict[str, str]:
    with Store.open(path) as store:
        return {
            name: "".join(jsonl.session_lines(store.export(name, **jsonl.READ)))
            for name in sorted(ids)
        }


#: Where a statement may change something of the first family only.
ROWS = {
    "session": "{cond} AND directory = '/one'",
    "message": "{cond} AND session_id IN (SELECT id FROM session WHERE directory = '/one')",
    "part": "{cond} AND session_id IN (SELECT id FROM session WHERE directory = '/one')",
    "label": "{cond} AND session_id IN (SELECT id FROM session WHERE directory = '/one')",
    "todo": "{cond} AND session_id IN (SELECT id FROM session WHERE directory = '/one')",
    "prompt": "{cond} AND directory = '/one'",
    "project": "{cond} AND worktree = '/one'",
    "project_directory": "{cond} AND directory = '/one'",
    "meta": "{cond} AND key = 'min_reader'",
}
COLUMNS = {
    "session": "id parent_id parent_seq root_id leaf_seq last_seq message_count cost tokens_input "
    "change time_deleted project_id title source_id",
    "message": "session_id seq parent_seq inherited usage_key cost tokens_output id",
    "part": "session_id seq inherited indexed text rid title call_id text_blob",
    "label": "seq session_id",
    "todo": "session_id",
    "prompt": "session_id project_id text",
    "project": "id",
    "project_directory": "project_id",
    "meta": "value",
}
VALUES = [
    "NULL", "0", "1", "2", "3", "99", "-1", "'gone'", "rid", "(SELECT min(id) FROM session WHERE directory = '/one')",
    "(SELECT max(id) FROM session WHERE directory = '/one')", "(SELECT max(seq) FROM message)", "abs(random() % 5)",
]  # fmt: skip


@st.composite
def statements(draw: st.DrawFn) -> str:
    table = draw(st.sampled_from(sorted(ROWS)))
    divisor = draw(st.integers(1, 4))
    cond = f"rid % {divisor} = {draw(st.integers(0, divisor - 1))}"
    where = ROWS[table].format(cond=cond)
    if draw(st.booleans()):
        return f"DELETE FROM {table} WHERE {where}"
    column, value = (
        draw(st.sampled_from(COLUMNS[table].split())),
        draw(st.sampled_from(VALUES)),
    )
    return f"UPDATE OR IGNORE {table} SET {column} = {value} WHERE {where}"


def run(path: Path, *sql: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as shell:
        for statement in sql:
            with suppress(sqlite3.IntegrityError):
                shell.execute(statement)


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(typed=[f"UPDATE part SET text_blob = 0 WHERE {ROWS['part']}".format(cond="1")])
@example(
    typed=[
        f"UPDATE message SET parent_seq = 5 WHERE {ROWS['message']}".format(cond="1")
    ]
)
@given(typed=st.lists(statements(), min_size=1, max_size=4))
def test_after_any_statements_of_a_shell_a_repair_leaves_a_sound_file(
    family: tuple[Path, frozenset[str]],
    tmp_path_factory: pytest.TempPathFactory,
    typed: list[str],
) -> None:
    path = tmp_path_factory.mktemp("one") / "sessions.db"
    shutil.copy(family[0], path)
    before = exports(path, family[1])
    run(path, *typed)
    with Store.open(path) as store:
        done = repair(store)
        assert repairable(done.left) == []
        assert {finding.check for finding in done.left} <= LOST
        again = repair(store)
        assert (again.backup, again.left) == (None, done.left)
        lost = "\n".join(f.what for f in done.left if f.check == "lost")
        for session in _all(store):
            store.tree(session)
            if session.id in lost:
                with pytest.raises(CorruptionError, match=session.id):
                    store.messages(session, branches=True)
                continue
            store.messages(session, branches=True)
            store.export(session)
        store.usage()
        store.search("asks")
    assert exports(path, family[1]) == before


def test_a_value_whose_bytes_are_gone_is_named_and_stays_named(
    family: tuple[Path, frozenset[str]], tmp_path: Path
) -> None:
    path = tmp_path / "sessions.db"
    shutil.copy(family[0], path)
    run(path, "DELETE FROM blob WHERE rid = 1", "DELETE FROM todo")
    with Store.open(path) as store:
        done = repair(store)
        (session, *_) = [f.what for f in done.left if f.check == "lost"]
        assert store.session(session.split()[-3]).title
        assert [f.repair for f in done.left] == [None] * len(done.left)
        assert all(store.export(session.id) for session in _all(store))


def test_a_blob_under_a_wrong_name_gets_its_own_back(
    family: tuple[Path, frozenset[str]], tmp_path: Path
) -> None:
    path = tmp_path / "sessions.db"
    shutil.copy(family[0], path)
    with Store.open(path) as store:
        every_id = frozenset(session.id for session in _all(store))
    before = exports(path, every_id)
    run(path, "UPDATE blob SET hash = 'x' || rid, size = 1")
    with Store.open(path) as store:
        assert repair(store).left == []
    assert exports(path, every_id) == before


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM meta",
        "DELETE FROM project",
        "DELETE FROM project_directory",
        "UPDATE session SET parent_id = id",
        "UPDATE session SET parent_id = (SELECT max(id) FROM session)",
        "UPDATE message SET parent_seq = 3 WHERE seq = 1",
        "UPDATE message SET inherited = 7",
        "UPDATE part SET indexed = 0",
        "DELETE FROM session WHERE relation IS NULL",
        "DELETE FROM session WHERE relation = 'fork'",
        "UPDATE session SET time_deleted = 1 WHERE parent_id IS NULL",
        "DELETE FROM message",
    ],
)
def test_the_damage_of_each_kind_of_statement_is_repaired(
    family: tuple[Path, frozenset[str]], tmp_path: Path, statement: str
) -> None:
    path = tmp_path / "sessions.db"
    shutil.copy(family[0], path)
    run(path, statement)
    with Store.open(path) as store:
        assert repair(store).left == []
        store.append(store.create_session(directory="/one"), user("and on"))
        assert check(store) == []


def test_an_interrupted_repair_leaves_the_rows_as_they_were(
    family: tuple[Path, frozenset[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "sessions.db"
    shutil.copy(family[0], path)
    run(path, "DELETE FROM session WHERE title = 'one top'")
    module = importlib.import_module("sessiondb.maintenance.repair")
    actions = module.ACTIONS

    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    for place in range(1, len(actions) + 1):
        with Store.open(path) as store, monkeypatch.context() as patch:
            found = check(store)
            patch.setattr(module, "ACTIONS", [*actions[:place], interrupted])
            with pytest.raises(KeyboardInterrupt):
                repair(store)
            assert check(store) == found
    with Store.open(path) as store:
        assert repair(store).left == []


def test_the_copy_made_before_a_repair_is_the_file_as_it_was(
    family: tuple[Path, frozenset[str]], tmp_path: Path
) -> None:
    path = tmp_path / "sessions.db"
    shutil.copy(family[0], path)
    run(path, "DELETE FROM session WHERE title = 'one top'")
    with Store.open(path) as store:
        found = check(store)
        done = repair(store)
        assert done.backup is not None
        assert done.backup.stat().st_mode & 0o777 == 0o600
    with Store.open(done.backup) as copy:
        assert check(copy) == found


def test_a_file_with_a_damaged_table_is_not_repaired(
    family: tuple[Path, frozenset[str]], tmp_path: Path
) -> None:
    path = tmp_path / "sessions.db"
    shutil.copy(family[0], path)
    run(path, "DELETE FROM session WHERE title = 'one top'")
    with closing(sqlite3.connect(path)) as connection:
        (page,) = connection.execute(
            "SELECT max(pageno) FROM dbstat WHERE name = 'part' AND pagetype = 'leaf'"
        ).fetchone()
    with path.open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xff" * 4096)
    with Store.open(path) as store:
        found = check(store)
        assert repairable(found) == []
        hopeful = [replace(finding, repair="try") for finding in found]
        with pytest.raises(CorruptionError, match="beyond repair"):
            repair(store, hopeful)


def test_tombstones_that_cannot_be_read_are_an_error_of_the_library(
    tmp_path: Path,
) -> None:
    with Store.open(tmp_path / "sessions.db") as store:
        with closing(sqlite3.connect(tmp_path / "sessions.db")) as connection:
            connection.execute("DROP TABLE tombstone")
        with pytest.raises(SessionDBError, match="tombstone"):
            tombstones(store)
