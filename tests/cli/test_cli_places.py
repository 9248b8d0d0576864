from __future__ import annotations

import shutil
import stat
from pathlib import Path

import pytest
from command_line import Run, Story

from sessiondb import Store
from sessiondb.cli.opening import Options, open_store


def test_path_prints_the_path_and_creates_nothing(
    sessiondb: Run, database: Path
) -> None:
    assert sessiondb("path").out == f"{database}\n"
    found = sessiondb("path", "--json").json
    assert found == {"path": str(database), "kind": "environment", "exists": False}
    assert not database.exists()


def test_options_choose_the_database(
    sessiondb: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sessiondb("--db", "mine.db", "path").out == f"{project / 'mine.db'}\n"
    assert sessiondb("--global", "path", "--json").json["kind"] == "global"
    monkeypatch.delenv("SESSIONDB_PATH")
    assert sessiondb("path", "--json").json["kind"] == "global"
    assert sessiondb("--local", "path").code == 3


def test_init_makes_the_database_once(sessiondb: Run, database: Path) -> None:
    assert sessiondb("init").out == f"{database}\n"
    assert stat.S_IMODE(database.stat().st_mode) == 0o600
    before = sessiondb("sql", "SELECT value FROM meta WHERE key = 'database_uuid'").out
    assert sessiondb("init").code == 0
    assert (
        sessiondb("sql", "SELECT value FROM meta WHERE key = 'database_uuid'").out
        == before
    )


def test_init_local_is_used_in_this_project_from_then_on(
    sessiondb: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SESSIONDB_PATH")
    made = project / ".sessiondb" / "sessions.db"
    assert sessiondb("init", "--local").out == f"{made}\n"
    below = project / "src"
    below.mkdir()
    monkeypatch.chdir(below)
    assert sessiondb("path", "--json").json == {
        "path": str(made), "kind": "local", "exists": True
    }  # fmt: skip
    assert sessiondb("--global", "path", "--json").json["kind"] == "global"


def test_init_local_takes_no_other_database(sessiondb: Run) -> None:
    assert sessiondb("--db", "x.db", "init", "--local").code == 2
    assert sessiondb("--global", "init", "--local").code == 2


def test_a_database_that_came_along_is_used_once_it_is_trusted(
    sessiondb: Run, store: Store, story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SESSIONDB_PATH")
    store.close()
    project = Path.cwd()
    came = project / ".sessiondb"
    came.mkdir()
    shutil.copy(store.path, came / "sessions.db")
    ran = sessiondb("list", "--json")
    assert (ran.code, ran.json["sessions"]) == (0, [])
    assert ran.err.count("sessiondb trust") == 1
    assert str(came / "sessions.db") in ran.err
    assert sessiondb("trust").code == 0
    listed = sessiondb("list", "-a", "--json").json["sessions"]
    assert story.parser in {session["id"] for session in listed}


def test_trust_can_be_taken_back_and_the_file_stays(
    sessiondb: Run, project: Path
) -> None:
    assert sessiondb("init", "--local").code == 0
    database = project / ".sessiondb" / "sessions.db"
    assert "no longer trusted" in sessiondb("trust", "--revoke").err
    assert Path(sessiondb("path").out.strip()) != database
    assert database.exists()
    assert "was not trusted" in sessiondb("trust", "--revoke").err


def test_trust_without_a_local_database_is_an_error(sessiondb: Run) -> None:
    ran = sessiondb("trust")
    assert ran.code == 3
    assert "init --local" in ran.err


def test_sessions_follow_a_moved_directory(
    sessiondb: Run, story: Story, project: Path, store: Store
) -> None:
    moved = project.parent / "moved"
    project.rename(moved)
    ran = sessiondb("relink", str(project), str(moved), "--json")
    assert ran.json == {"sessions": 3}
    assert store.session(story.parser).directory == str(moved)
    ran = sessiondb("relink", "/no/such/place", str(moved))
    assert (ran.code, ran.out) == (3, "")


def test_sessions_are_not_moved_to_a_directory_that_does_not_exist(
    sessiondb: Run, story: Story, project: Path, store: Store
) -> None:
    ran = sessiondb("relink", str(project), str(project.parent / "mvoed"))
    assert (ran.code, ran.out) == (3, "")
    assert "no directory" in ran.err
    assert store.session(story.parser).directory == str(project)


@pytest.mark.parametrize(
    "args", [("relink", "a"), ("relink",), ("path", "x"), ("init", "x")]
)
def test_bad_arguments_are_exit_2(sessiondb: Run, args: tuple[str, ...]) -> None:
    assert sessiondb(*args).code == 2


def test_a_setting_chooses_how_durable_writes_are(
    sessiondb: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = project / "config.toml"
    monkeypatch.setenv("SESSIONDB_CONFIG", str(settings))
    with open_store(Options()) as store:
        assert store._core.durability == "full"
    settings.write_text('durability = "normal"')
    with open_store(Options()) as store:
        assert store._core.durability == "normal"
    settings.write_text('durability = "never"')
    ran = sessiondb("list")
    assert (ran.code, ran.out) == (2, "")
    what, next_step = ran.err.splitlines()
    assert f"{settings}: durability must be" in what
    assert "SESSIONDB_CONFIG" in next_step
