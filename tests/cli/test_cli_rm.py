from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from command_line import SAMPLE, Run, Story


def left(sessiondb: Run) -> set[str]:
    listed = sessiondb("list", "-a", "--subagents", "--archived", "--json")
    return {session["id"] for session in listed.json["sessions"]}


def test_a_removal_is_permanent_and_includes_the_family(
    sessiondb: Run, story: Story, database: Path
) -> None:
    ran = sessiondb("rm", story.parser, "--yes", "--json")
    assert ran.code == 0
    assert {s["id"] for s in ran.json["sessions"]} == {
        story.parser,
        story.fork,
        story.helper,
    }
    assert ran.json["dry_run"] is False
    assert left(sessiondb) == {story.other}
    with closing(sqlite3.connect(database)) as connection, connection:
        assert connection.execute("SELECT count(*) FROM session").fetchone() == (1,)
        assert connection.execute("SELECT count(*) FROM message").fetchone() == (1,)
    assert sessiondb("check").code == 0


def test_the_plan_comes_first_with_sizes(sessiondb: Run, story: Story) -> None:
    ran = sessiondb("rm", story.parser, "--yes")
    assert ran.out == ""
    assert "to remove: 3 sessions with 7 messages" in ran.err
    assert " kB" in ran.err.splitlines()[0]
    assert "(fork) Another idea" in ran.err


def test_a_dry_run_removes_nothing(sessiondb: Run, story: Story) -> None:
    ran = sessiondb("rm", story.parser, "--dry-run")
    assert ran.code == 0
    assert "to remove: 3 sessions" in ran.out
    planned = sessiondb("rm", story.parser, "--dry-run", "--json").json
    assert (len(planned["sessions"]), planned["messages"], planned["dry_run"]) == (
        3,
        7,
        True,
    )
    assert len(left(sessiondb)) == 4


def test_forks_can_be_kept(sessiondb: Run, story: Story) -> None:
    ran = sessiondb("rm", story.parser, "--keep-forks", "--yes", "--json")
    assert [s["id"] for s in ran.json["detached"]] == [story.fork]
    assert left(sessiondb) == {story.fork, story.other}
    assert sessiondb("show", story.fork, "--json").json["session"]["message_count"] == 3
    assert sessiondb("check").code == 0


def test_a_session_named_twice_is_counted_once(sessiondb: Run, story: Story) -> None:
    refs = (story.fork, story.helper, story.parser, story.fork)
    planned = sessiondb("rm", *refs, "--yes", "--json").json
    assert (len(planned["sessions"]), planned["messages"]) == (3, 7)
    assert left(sessiondb) == {story.other}


def test_filters_choose_the_sessions_to_remove(sessiondb: Run, story: Story) -> None:
    assert sessiondb("rm", "--title", "idea", "--yes").code == 0
    assert left(sessiondb) == {story.parser, story.helper, story.other}
    assert sessiondb("rm", "-a", "--since", "1h", "--yes").code == 0
    assert left(sessiondb) == set()


def test_filters_that_choose_nothing_remove_nothing(
    sessiondb: Run, story: Story
) -> None:
    ran = sessiondb("rm", "--title", "xylophone", "--yes", "--json")
    assert (ran.code, ran.json["sessions"]) == (0, [])


def test_nothing_is_removed_by_mistake(sessiondb: Run, story: Story) -> None:
    for args in (
        "",
        "--yes",
        "--archived --yes",
        "--subagents --archived --keep-forks --yes",
        "@ -a --yes",
        "@ --title x --yes",
        "@",
        "--title parser",
    ):
        ran = sessiondb("rm", *args.split(), stdin="yes\n")
        assert (ran.code, ran.out) == (2, ""), args
    assert len(left(sessiondb)) == 4


def test_a_wrong_name_removes_no_session(sessiondb: Run, story: Story) -> None:
    assert sessiondb("rm", story.parser, "nobody", "--yes").code == 3
    assert len(left(sessiondb)) == 4


@pytest.mark.parametrize(
    ("typed", "code", "kept"), [("yes", 0, 1), ("y", 1, 4), ("", 1, 4)]
)
def test_a_terminal_prompts_for_a_typed_yes(
    terminal: Run, sessiondb: Run, story: Story, *, typed: str, code: int, kept: int
) -> None:
    ran = terminal(f"rm {story.parser}", typed=f"{typed}\n")
    assert "Type yes to remove 3 sessions" in ran.out
    assert ran.code == code
    assert len(left(sessiondb)) == kept


def test_the_plan_counts_imported_sessions(sessiondb: Run) -> None:
    assert sessiondb("import", str(SAMPLE)).code == 0
    ran = sessiondb("rm", "-a", "--yes")
    assert "--restore" in ran.err
    again = sessiondb("import", str(SAMPLE), "--json").json
    assert (again["imported"], again["deleted"]) == (0, len(again["sessions"]))
    back = sessiondb("import", str(SAMPLE), "--restore", "--json").json
    assert back["imported"] == len(back["sessions"])
    assert [path.name for path in SAMPLE.iterdir()] == ["storage"]
