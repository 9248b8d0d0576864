"""The recipes of the cookbook that write files, typed exactly as they are on the page."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from command_line import SAMPLE, Run

from sessiondb import Store, user

pytestmark = pytest.mark.slow


def recipe(question: str) -> list[list[str]]:
    """Return the command lines of one recipe, those of sessiondb without their program's name."""
    page = (SAMPLE.parents[1] / "docs/COOKBOOK.md").read_text(encoding="utf-8")
    block = re.search(r"(?s)```sh\n(.*?)```", page.partition(f"**{question}")[2])
    assert block is not None
    lines = (shlex.split(line, comments=True) for line in block[1].splitlines())
    return [line[1:] if line[0] == "sessiondb" else line for line in lines]


def test_a_handed_over_file_contains_its_session(sessiondb: Run, project: Path) -> None:
    sessiondb("import", str(SAMPLE))
    for command in recipe("Hand over one transcript."):
        assert sessiondb(*command).code == 0
        written = project / command[-1]
        assert "The countdown no longer rings one second early" in written.read_text()


def test_a_new_laptop_has_everything(
    sessiondb: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessiondb("import", str(SAMPLE))
    export, importing, *_ = recipe("Take everything to a new laptop.")
    assert sessiondb(*export).code == 0
    every = ("list", "-a", "--archived", "--subagents", "--json")
    before = sessiondb(*every).json
    monkeypatch.setenv("SESSIONDB_PATH", str(project / "laptop.db"))
    assert sessiondb(*importing).code == 0
    assert sessiondb(*every).json == before
    assert len(before["sessions"]) == 4
    assert sessiondb("check").code == 0


def test_a_team_shares_what_git_has(
    sessiondb: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SESSIONDB_PATH")
    making, syncing, adding = recipe("Share a project's sessions with a team.")
    assert sessiondb(*making).code == 0
    with Store.open() as own:
        own.append(own.create_session(), user("shared"))
    assert sessiondb(*syncing).code == 0
    assert adding == ["git", "add", ".sessiondb"]
    (shared,) = (project / ".sessiondb").rglob("*.jsonl")
    assert "shared" in shared.read_text()
