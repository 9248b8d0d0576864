"""The message of a command that finds nothing: unknown names, and those that exist."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from command_line import SAMPLE, Run, Story

from sessiondb import Store, assistant, user
from sessiondb.formats.registry import REGISTRY


@pytest.mark.parametrize(
    "command",
    ["list", "search lexer", "stats", "export --to jsonl", "rm --dry-run", "prune --keep 1 --dry-run"],
)  # fmt: skip
def test_an_unknown_source_lists_the_known_ones(
    sessiondb: Run, story: Story, command: str
) -> None:
    ran = sessiondb(*command.split(), "-a", "--source", "foo")
    assert ran.code == 0
    assert "no session has the source 'foo'; there are: sessiondb" in ran.err
    assert "import" not in ran.err
    ran = sessiondb(*command.split(), "-a", "--agent", "bar")
    assert "no session has the agent 'bar'; there are: build, explore" in ran.err


def test_a_known_source_without_a_match_is_not_called_unknown(
    sessiondb: Run, story: Story
) -> None:
    assert (
        "there are"
        not in sessiondb("list", "--source", "sessiondb", "--title", "zzz").err
    )
    assert "there are" not in sessiondb("list", "--until", "1999-01-01").err


def test_filters_that_no_session_passes_are_not_an_empty_database(
    sessiondb: Run, story: Story
) -> None:
    for filters in ("--since 2030-01-01", "--title zzz", "--until 1999-01-01"):
        ran = sessiondb("list", "-a", *filters.split())
        assert ran.err == "no session in any project matches these filters\n"


def test_an_empty_database_names_the_import(sessiondb: Run, project: Path) -> None:
    assert "`sessiondb import` imports them" in sessiondb("list", "--source", "foo").err


@pytest.mark.parametrize(
    "path", ["/nowhere/at/all", "missing", "loop", "dangling", "x/y"]
)
@pytest.mark.parametrize("more", [[], ["--dry-run"], ["--watch"]])
def test_an_import_of_nothing_names_it_once_and_is_exit_3(
    sessiondb: Run, database: Path, project: Path, path: str, more: list[str]
) -> None:
    (project / "loop").symlink_to("loop")
    (project / "dangling").symlink_to("not here")
    (project / "x").touch()
    ran = sessiondb("import", path, *more)
    assert (ran.code, ran.out) == (3, "")
    first, hint = ran.err.splitlines()
    assert first == f"sessiondb: there is nothing at '{path}'"
    assert "`sessiondb import`" in hint
    assert not database.exists()


def test_a_wrong_path_beside_a_right_one_is_a_problem_that_names_it_once(
    sessiondb: Run, project: Path
) -> None:
    ran = sessiondb("import", str(SAMPLE), "missing")
    assert ran.code == 4
    assert ran.err.splitlines()[-1] == "  missing: there is nothing here"
    assert " imported" in ran.out


#: Files of programs, and their names; those that are read by now are left out.
FILES: list[tuple[str, dict[str, object], str]] = [
    (".claude/projects/-x/a.jsonl", {}, "Claude Code"),
    ("copied/a.jsonl", {"sessionId": "a", "parentUuid": None, "message": {"content": "x"}},
     "Claude Code"),
    (".codex/sessions/2026/01/01/rollout-2026.jsonl", {}, "Codex"),
    ("copied/b.jsonl", {"type": "session_meta", "payload": {}}, "Codex"),
    (".local/share/goose/sessions/sessions.db", {}, "Goose"),
    (".gemini/tmp/x/chats/session-1.json", {}, "Gemini CLI"),
    ("copied/d.jsonl", {"sessionId": "a", "projectHash": "b"}, "Gemini CLI"),
    (".qwen/projects/-x/chats/a.jsonl", {}, "Qwen Code"),
    (".aider.chat.history.md", {}, "aider"),
    (".config/io.datasette.llm/logs.db", {}, "llm"),
    (".cursor/chats/x/store.db", {}, "Cursor"),
    (".config/Cursor/User/globalStorage/state.vscdb", {}, "Cursor"),
]  # fmt: skip
PLANNED = {entry.agent for entry in REGISTRY.values() if entry.is_planned}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "record", "agent"), [case for case in FILES if case[2] in PLANNED]
)
def test_an_agent_that_is_not_supported_yet_is_named(
    sessiondb: Run, tmp_path: Path, file: str, record: dict[str, object], agent: str
) -> None:
    store = tmp_path / "home" / file
    store.parent.mkdir(parents=True)
    store.write_text(json.dumps(record) + "\n")
    for place in (store, store.parent, tmp_path / "home"):
        ran = sessiondb("import", str(place))
        assert ran.code == 4
        assert ran.err.splitlines()[-1] == f"  {place}: {agent}: not supported yet"


def test_a_session_without_an_agent_does_not_count_as_one(
    sessiondb: Run, tmp_path: Path
) -> None:
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "notes.jsonl").write_text('{"a": 1}\n[1]\nnot json\n' + "[" * 100_000)
    os.mkfifo(folder / "pipe.jsonl")
    ran = sessiondb("import", str(folder))
    assert (ran.code, ran.err.splitlines()[-1]) == (
        4, f"  {folder}: no sessions of a known agent"
    )  # fmt: skip


def test_a_planned_format_is_not_supported_yet(sessiondb: Run, database: Path) -> None:
    ran = sessiondb("import", "--from", "cursor")
    assert (ran.code, ran.out) == (2, "")
    assert "Cursor is not supported yet; known are opencode, sessiondb" in ran.err
    assert not database.exists()


def test_an_unknown_key_of_stats_lists_the_keys_in_words(
    sessiondb: Run, story: Story
) -> None:
    for wrong in ("colour", "", "model,model", "day,colour", "['model']"):
        ran = sessiondb("stats", "--by", wrong)
        assert (ran.code, ran.out) == (2, "")
        assert "--by: " in ran.err
        assert "the keys are day, week, month, model, source, agent" in ran.err
        assert "tool" in ran.err


def test_stats_count_archived_sessions_and_subagents_on_request(
    sessiondb: Run, store: Store, story: Story
) -> None:
    for session, cost in ((story.helper, 1.0), (story.other, 2.0)):
        store.append(session, user("go"))
        store.append(session, assistant("done"), model="large", cost=cost)
    store.archive(story.other)

    def total(*more: str) -> float:
        ran = sessiondb("stats", "-a", "--json", *more)
        cost: float = ran.json["total"]["cost"]
        return cost

    assert total() == 0.25
    assert total("--subagents") == 1.25
    assert total("--archived") == 2.25
    assert total("--archived", "--subagents") == 3.25
    ran = sessiondb("stats", "-a")
    assert "left out: 1 session, $1.00 (--subagents)" in ran.err
    assert "left out: 1 session, $2.00 (--archived)" in ran.err
    assert "left out" not in sessiondb("stats", "-a", "--archived", "--subagents").err
