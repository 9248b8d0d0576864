"""A folder of logs that a team commits names no directory of one machine."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sessiondb import Store, user
from sessiondb.cli.app import app
from sessiondb.location import init_local, trust
from sessiondb.maintenance.sync import sync

pytestmark = pytest.mark.slow

Made = dict[str, str]


def run_git(folder: Path, *args: str) -> None:
    subprocess.run(["git", "-C", str(folder), *args], check=True, capture_output=True)


def local(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.chdir(folder)
    return Store.open(init_local().path, durability="normal")


@pytest.fixture
def ada(git: str, tmp_path: Path) -> Path:
    folder = tmp_path / "ada"
    (folder / "src").mkdir(parents=True)
    run_git(folder, "init", "-q", "-b", "main")
    (folder / "src" / "kept").write_text("")
    run_git(folder, "add", "-A")
    run_git(folder, "commit", "-qm", "first")
    run_git(folder, "worktree", "add", "-q", "-b", "side", str(tmp_path / "linked"))
    (tmp_path / "elsewhere").mkdir()
    return folder


def scattered(store: Store, tmp_path: Path) -> Made:
    """Make a family whose members were held in different places."""
    made = {
        "root": store.create_session(title="root", directory=str(tmp_path / "ada")).id
    }
    store.append(made["root"], user("start"))
    for name, where in (
        ("below", "ada/src"), ("linked", "linked/src"), ("elsewhere", "elsewhere"), ("gone", "no"),
    ):  # fmt: skip
        made[name] = store.fork(
            made["root"], title=name, directory=str(tmp_path / where)
        ).id
    helper = store.create_session(
        parent=made["root"], title="helper", directory=str(tmp_path / "elsewhere")
    )
    made["helper"] = helper.id
    store.append(helper, user("help"))
    store.add_prompt("typed by ada", session=made["root"])
    return made


def metas(folder: Path) -> dict[str, Any]:
    lines = (path.read_text().splitlines() for path in folder.glob("*.jsonl"))
    records = [json.loads(line) for found in lines for line in found]
    return {r["session_id"]: r for r in records if r["type"] == "session_meta"}


EXPECTED = {
    "root": "", "below": "src", "linked": "src", "elsewhere": "", "gone": "", "helper": "",
}  # fmt: skip


def test_every_session_that_sync_writes_is_read_by_the_other_clone(
    ada: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with local(ada, monkeypatch) as store:
        made = scattered(store, tmp_path)
        sync(store)
        run_git(ada, "add", "-A")
        run_git(ada, "commit", "-qm", "sessions")
        bob = tmp_path / "bob"
        run_git(tmp_path, "clone", "-q", str(ada), str(bob))
        with local(bob, monkeypatch) as other:
            done = sync(other)
            assert (done.problems, done.written) == ([], [])
            assert {x.id for x in done.read} == set(made.values())
            for name, below in EXPECTED.items():
                assert other.session(made[name]).directory == str(bob / below).rstrip(
                    "/"
                )
            assert len(other.projects()) == 1
            assert len(other.sessions(project=str(bob), subagents=True).items) == 6
        assert store.session(made["linked"]).directory == str(
            tmp_path / "linked" / "src"
        )
        assert sync(store).written == []


def test_no_log_in_the_folder_holds_an_absolute_path_whoever_wrote_it(
    ada: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with local(ada, monkeypatch) as store:
        made = scattered(store, tmp_path)
        sync(store)
    folder = ada / ".sessiondb" / "sessions"
    by_sync = {path.name: path.read_text() for path in folder.iterdir()}
    assert {r["directory"] for r in metas(folder).values()} == {".", "src"}
    for path in folder.glob("*.jsonl"):
        path.unlink()
    words = ["export", "-a", "--subagents", "--to", "jsonl", "-o", f"{folder}/"]
    assert CliRunner().invoke(app, words).exit_code == 0
    assert {path.name: path.read_text() for path in folder.iterdir()} == by_sync
    (folder / "x").mkdir()
    one = folder / f"{made['root']}.jsonl"
    words = ["export", made["root"], "--to", "jsonl", "--force", "-o", str(one)]
    assert CliRunner().invoke(app, words).exit_code == 0
    assert str(tmp_path) not in one.read_text()
    assert "typed by ada" not in one.read_text()


@pytest.mark.parametrize("directory", ["/somewhere/else", "../..", "src/../../../x"])
def test_a_log_from_elsewhere_in_the_folder_is_placed_at_the_root(
    ada: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, directory: str
) -> None:
    with local(ada, monkeypatch) as store:
        made = scattered(store, tmp_path)
        sync(store)
        path = ada / ".sessiondb" / "sessions" / f"{made['below']}.jsonl"
        text = path.read_text().replace(made["below"], "ses_0000000000000000000000TEST")
        meta, _, rest = text.partition("\n")
        record = json.loads(meta) | {"directory": directory}
        record["project"] = {"worktree": directory}
        new = path.with_name("other.jsonl")
        new.write_text(json.dumps(record) + "\n" + rest)
        assert sync(store).problems == []
        assert store.session("ses_0000000000000000000000TEST").directory == str(ada)


def test_a_session_that_sync_cannot_place_is_a_problem(
    ada: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with local(ada, monkeypatch) as store:
        made = scattered(store, tmp_path)
        sync(store)
    bob = tmp_path / "bob"
    run_git(ada, "add", "-A")
    run_git(ada, "commit", "-qm", "sessions")
    run_git(tmp_path, "clone", "-q", str(ada), str(bob))
    (bob / "src" / "kept").unlink()
    (bob / "src").rmdir()
    (bob / "src").symlink_to(tmp_path / "elsewhere")
    local(bob, monkeypatch).close()
    trust.accept(bob / ".sessiondb" / "sessions.db")
    ran = CliRunner().invoke(app, ["sync", "--json"])
    assert ran.exit_code == 4
    found = json.loads(ran.stdout)
    assert found["imported"] == 4
    assert len(found["problems"]) == 2
    why = found["problems"][0]["why"]
    assert "outside the project" in why
    assert made["below"] in why or made["linked"] in why
