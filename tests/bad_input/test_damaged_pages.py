"""Overwritten pages: every command goes as far as the intact pages allow."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sessiondb import Store, assistant, text, tool, user
from sessiondb.cli.app import app
from sessiondb.engine.sqlite.table_tree import last_readable_row
from sessiondb.errors import CorruptionError

pytestmark = pytest.mark.slow

SESSIONS = 30
PAGE = 4096


@dataclass(frozen=True)
class Made:
    """A sound database: its sessions by id, and its pages by table or index."""

    path: Path
    ids: tuple[str, ...]
    pages: dict[str, list[int]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    path = tmp_path_factory.mktemp("pages") / "sound.db"
    ids = []
    with Store.open(path, durability="normal") as store:
        for number in range(SESSIONS):
            with store.effects() as fx:
                session = fx.create_session(title=f"needle {number}", directory="/here")
                for turn in range(4):
                    fx.append(session, user(f"needle {number} {turn} {'lorem ' * 60}"))
                    call = tool(
                        "bash", {"n": turn}, output=f"{number} {turn} {'out ' * 400}"
                    )
                    fx.append(
                        session, assistant(text("a" * 300), call), model="m", cost=0.5
                    )
            ids.append(session.id)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        pages: dict[str, list[int]] = {}
        sql = "SELECT name, pageno FROM dbstat WHERE pagetype = 'leaf' ORDER BY pageno"
        for name, page in connection.execute(sql):
            pages.setdefault(name, []).append(page)
    return Made(path, tuple(ids), pages)


@pytest.fixture
def damaged(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Path]:
    """Return a function that copies the database and overwrites some leaf pages of it."""

    def harm(name: str, *leaves: int) -> Path:
        path = tmp_path / "damaged.db"
        shutil.copy(made.path, path)
        with path.open("r+b") as file:
            for leaf in leaves:
                file.seek((made.pages[name][leaf] - 1) * PAGE)
                file.write(b"\xff" * PAGE)
        monkeypatch.setenv("SESSIONDB_PATH", str(path))
        monkeypatch.chdir(tmp_path)
        return path

    return harm


def run(*args: str) -> Result:
    return CliRunner().invoke(app, list(args))


def listed(*args: str) -> set[str]:
    ran = run(*args, "--jsonl", "--limit", "100")
    assert ran.exit_code in (0, 4), ran.stderr
    lines = [json.loads(line) for line in ran.stdout.splitlines()]
    return {
        line["session"]["id"] if "session" in line else line["id"] for line in lines
    }


def exported() -> set[str]:
    ran = run("export", "-a", "--to", "jsonl", "-o", "out.jsonl", "--force")
    assert ran.exit_code in (0, 4), ran.stderr
    lines = Path("out.jsonl").read_text().splitlines()
    return {json.loads(line)["session_id"] for line in lines}


@pytest.mark.parametrize(
    "leaves", [(2,), (-1,), (0, 5, 9)], ids=["one", "last", "three"]
)
def test_with_damaged_parts_all_is_listed_and_the_intact_sessions_are_exported(
    damaged: Callable[..., Path], made: Made, leaves: tuple[int, ...]
) -> None:
    path = damaged("part", *leaves)
    all_ids = set(made.ids)
    for command in (["list", "-a"], ["list", "-a", "--sort", "size"]):
        assert listed(*command) == all_ids
    assert listed("search", "needle", "-a") == all_ids
    assert run("stats", "-a").exit_code == 0
    left = exported()
    assert len(all_ids) - 2 * len(leaves) <= len(left) < len(all_ids)
    ran = run("export", "-a", "--to", "jsonl")
    assert ran.exit_code == 4
    assert all(name[-6:].lower() in ran.stderr for name in all_ids - left)
    with Store.open(path) as store, pytest.raises(CorruptionError):
        for name in sorted(all_ids - left):
            store.messages(name)


def test_with_damaged_sessions_the_others_are_listed_and_exported(
    damaged: Callable[..., Path], made: Made
) -> None:
    damaged("session", 0)
    left = listed("list", "-a")
    assert 0 < len(left) < SESSIONS
    for command in (
        ["list", "-a", "--sort", "created"],
        ["list", "-a", "--sort", "size"],
    ):
        assert listed(*command) == left
    assert exported() == left
    ran = run("list", "-a")
    assert ran.exit_code == 4
    assert f"{SESSIONS - len(left)} of session" in ran.stderr


@pytest.mark.parametrize(
    "index",
    ["ix_session_used", "ix_session_native", "sqlite_autoindex_session_1",
     "sqlite_autoindex_message_1", "sqlite_autoindex_part_1", "part_search_data"],
)  # fmt: skip
def test_with_a_damaged_index_nothing_is_missing(
    damaged: Callable[..., Path], made: Made, index: str
) -> None:
    damaged(index, 0)
    assert listed("list", "-a") == set(made.ids)
    assert exported() == set(made.ids)
    assert listed("search", "needle", "-a") == set(made.ids)
    assert run("show", made.ids[3]).exit_code in (0, 4)
    assert run("tree", made.ids[3]).exit_code in (0, 4)
    assert run("check").exit_code == 4


def test_findings_and_errors_about_damage_name_commands_that_help(
    damaged: Callable[..., Path], made: Made
) -> None:
    damaged("part", 2)
    ran = run("check", "--json")
    commands = {finding["command"] for finding in json.loads(ran.stdout)["findings"]}
    assert commands == {"sessiondb export -a --to jsonl -o saved.jsonl"}
    for command in (["check"], ["check", "--repair", "--yes"]):
        assert "sessiondb check" not in run(*command).stderr
    assert run("check", "--repair", "--yes").exit_code == 4
    assert "sessiondb export" not in run("export", "-a", "--to", "jsonl").stderr


def test_of_a_file_that_was_cut_off_what_is_left_is_listed_and_exported(
    damaged: Callable[..., Path], made: Made
) -> None:
    path = damaged("part")
    parts = made.pages["part"]
    size = max(parts[3 * len(parts) // 4], *made.pages["session"]) * PAGE
    assert size < path.stat().st_size
    with path.open("r+b") as file:
        file.truncate(size)
    before = path.read_bytes()
    assert listed("list", "-a") == set(made.ids)
    left = exported()
    assert left
    assert left < set(made.ids)
    assert run("title", made.ids[0], "other").exit_code == 4
    assert path.read_bytes() == before


@pytest.mark.parametrize("step", [1, 1_000_000])
def test_the_rows_before_a_lost_page_are_told_by_the_pages_that_lead_there(
    step: int, tmp_path: Path
) -> None:
    path = tmp_path / "table.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (rid INTEGER PRIMARY KEY, x TEXT)")
        connection.executemany(
            "INSERT INTO t VALUES (?, ?)",
            [(number * step, "x" * 300) for number in range(1, 4_001)],
        )
        connection.commit()
        root, leaves = connection.execute(
            "SELECT rootpage, (SELECT count(*) FROM dbstat WHERE pagetype = 'leaf') "
            "FROM sqlite_schema"
        ).fetchone()
    assert last_readable_row(path, root, PAGE) == 4_000 * step

    # The leaf that was written last is the last one of the file.
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - PAGE)
    last = last_readable_row(path, root, PAGE)
    rows_of_a_leaf = 4_000 // leaves
    assert (4_000 - 2 * rows_of_a_leaf) * step < last < 4_000 * step

    with path.open("r+b") as file:
        file.truncate((root - 1) * PAGE)
    assert last_readable_row(path, root, PAGE) == 0


def test_a_file_without_its_header_is_refused_and_not_touched(
    damaged: Callable[..., Path],
) -> None:
    path = damaged("part")
    with path.open("r+b") as file:
        file.write(b"\xff" * 100)
    before = path.read_bytes()
    for command in (["list"], ["check"], ["export", "-a", "--to", "jsonl"]):
        ran = run(*command)
        assert (ran.exit_code, ran.stdout) == (1, ""), command
    doctor = run("doctor")
    assert (doctor.exit_code, "not a sessiondb database" in doctor.stdout) == (1, True)
    assert path.read_bytes() == before


@pytest.mark.parametrize("table", ["usage_hour", "ix_usage_hour_session"])
def test_damaged_sums_lose_nothing_as_the_messages_have_it_all(
    damaged: Callable[..., Path], made: Made, table: str
) -> None:
    path = damaged(table, 0)
    with Store.open(path, read_only=True) as store:
        losses: list[str] = []
        store.read_past_damage(losses.append)
        (row,) = store.usage(by=("model",))
        (same,) = store.usage(by=("model",), sessions=list(made.ids))
    assert (row.sessions, row.messages, row.cost) == (
        SESSIONS,
        SESSIONS * 4,
        SESSIONS * 2,
    )
    assert (same.messages, same.cost) == (row.messages, row.cost)
    assert not any("rows of" in line for line in losses), losses
