"""``sessiondb`` alone says what is here, and ``status`` fits a prompt."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from command_line import SAMPLE, Run, Story

from sessiondb import Store, assistant, user


def commands_in(out: str) -> list[list[str]]:
    """Return the commands that an overview names, as they are typed."""
    return [
        shlex.split(line)
        for line in re.findall(r"^  sessiondb (.*?)(?:   *\S.*)?$", out, re.MULTILINE)
    ]


def test_without_a_database_it_says_how_to_import_and_creates_none(
    sessiondb: Run, database: Path
) -> None:
    ran = sessiondb()
    assert (ran.code, ran.err) == (0, "")
    assert ["import"] in commands_in(ran.out)
    assert sessiondb("status").out == "no sessions · sessiondb import\n"
    assert sessiondb("status", "--json").json["sessions"] == 0
    assert not database.exists()


def test_an_empty_database_says_how_to_import(sessiondb: Run, store: Store) -> None:
    ran = sessiondb()
    assert (ran.code, ran.err) == (0, "")
    assert ["import"] in commands_in(ran.out)


def test_it_shows_the_last_sessions_and_the_cost_of_today(
    sessiondb: Run, story: Story
) -> None:
    ran = sessiondb()
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("3 sessions of 1 program · 3 used today · $0.25 today\n")
    assert "Fix the parser" in ran.out
    assert "Another idea" in ran.out
    assert "Write the manual" not in ran.out, "it is in another project"


def test_in_a_project_without_sessions_it_shows_those_of_all(
    sessiondb: Run, story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "fresh"
    folder.mkdir()
    monkeypatch.chdir(folder)
    out = sessiondb().out
    assert "in all projects" in out
    assert "Write the manual" in out


def test_each_command_that_it_names_can_be_typed(
    sessiondb: Run, story: Story, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SESSIONDB_PATH")
    named = commands_in(sessiondb("--db", str(database)).out)
    assert len(named) >= 6
    for words in named:
        if "resume" not in words and "import" not in words:
            assert sessiondb(*words).code == 0, words


def test_the_status_is_one_line_with_the_cost_of_all_projects(
    sessiondb: Run, story: Story, store: Store
) -> None:
    store.append(story.other, assistant("yes"), model="large", cost=1.5)
    ran = sessiondb("status")
    assert ran.out.count("\n") == 1
    assert ran.out.startswith("3 sessions today · $1.75 today · last now: ")
    found = sessiondb("status", "--json").json
    assert (found["sessions"], found["cost_today"]) == (3, 1.75)
    assert found["last"]["id"] == story.other


def test_a_session_that_a_process_holds_is_running(
    sessiondb: Run, story: Story, store: Store
) -> None:
    with store.stream(story.parser):
        assert "· 1 running ·" in sessiondb("status").out
    assert "running" not in sessiondb("status").out


def test_a_cost_that_is_not_complete_is_a_lower_bound(
    sessiondb: Run, story: Story, store: Store
) -> None:
    store.append(
        story.other, assistant("yes"), model="no-such-model-1", tokens={"input": 9}
    )
    assert "≥ $0.25 today · 9 tokens without a price" in sessiondb("status").out


def test_an_estimate_of_today_is_apart_from_what_was_stated(
    sessiondb: Run, story: Story, store: Store
) -> None:
    tokens = {"input": 100_000}
    store.append(story.other, assistant("y"), model="claude-sonnet-4-5", tokens=tokens)
    assert "$0.55 ($0.30 estimated) today" in sessiondb("status").out
    assert "$0.55 ($0.30 estimated) today" in sessiondb().out


def test_sessions_of_earlier_days_do_not_count_for_today(sessiondb: Run) -> None:
    assert sessiondb("import", str(SAMPLE)).code == 0
    ran = sessiondb("status")
    assert ran.out.startswith("0 sessions today · last 2026-02-11: opencode ")
    assert "$" not in ran.out


def test_a_title_stays_on_the_line_of_the_status(sessiondb: Run, store: Store) -> None:
    session = store.create_session(title="one\ntwo\x1b[31m " + "long " * 50)
    store.append(session, user("x"))
    out = sessiondb("status").out
    assert out.count("\n") == 1
    assert "\x1b" not in out
    assert len(out) < 120
