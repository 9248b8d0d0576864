"""Pruning: sessions that a rule chooses, and never one that it did not choose."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import SAMPLE, Run, Story

from sessiondb import Store, user
from sessiondb.errors import InvalidInputError
from sessiondb.maintenance import plan_prune

pytestmark = pytest.mark.slow

#: Between the two days of the sample.
BETWEEN = "2026-02-11T00:00:00+00:00"


@pytest.fixture
def sample(sessiondb: Run) -> dict[str, str]:
    """Sessions of February: title → id."""
    assert sessiondb("import", str(SAMPLE)).code == 0
    listed = sessiondb("list", "-a", "--subagents", "--json").json["sessions"]
    return {session["title"]: session["id"] for session in listed}


def left(sessiondb: Run) -> set[str]:
    listed = sessiondb("list", "-a", "--subagents", "--archived", "--json")
    return {session["title"] for session in listed.json["sessions"]}


@pytest.mark.parametrize(
    "args",
    ["", "-a --yes", "--source opencode --yes", "--empty --keep 2 --yes", "--keep 1"],
)
def test_without_a_rule_or_a_terminal_nothing_is_removed(
    sessiondb: Run, story: Story, args: str
) -> None:
    ran = sessiondb("prune", *args.split(), stdin="yes\n")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.endswith("`sessiondb prune --help` describes its arguments\n")
    assert len(left(sessiondb)) == 4


def test_sessions_unused_for_long_are_removed_with_their_family(
    sessiondb: Run, sample: dict[str, str], story: Story
) -> None:
    ran = sessiondb("prune", "--older-than", BETWEEN, "-a", "--yes", "--json")
    assert ran.code == 0
    gone = {session["title"] for session in ran.json["sessions"]}
    assert gone == sample.keys() - {"Release notes for 0.3"}
    assert "Release notes for 0.3" in left(sessiondb)
    assert not gone & left(sessiondb)
    assert len(left(sessiondb)) == 5
    assert sessiondb("check").code == 0


def test_the_plan_has_sizes_and_the_end_names_vacuum(
    sessiondb: Run, sample: dict[str, str], story: Story
) -> None:
    planned = sessiondb("prune", "--older-than", "30d", "-a", "--dry-run")
    assert planned.out.startswith(f"to remove: {len(sample)} sessions with ")
    assert " kB\n" in planned.out
    assert "except with --restore" in planned.out
    assert len(left(sessiondb)) == len(sample) + 4
    ran = sessiondb("prune", "--older-than", "30d", "-a", "--yes")
    assert (ran.code, ran.out) == (0, "")
    assert (
        ran.err.splitlines()[-1]
        == "`sessiondb vacuum` gives their space back to the disk"
    )
    assert len(left(sessiondb)) == 4


def test_a_session_stays_for_a_fork_that_is_still_used(
    sessiondb: Run, sample: dict[str, str], store: Store
) -> None:
    original, fork = "Countdown ends one second early", sample[_fork(sample)]
    store.append(fork, user("And one more thing"))
    ran = sessiondb("prune", "--older-than", BETWEEN, "-a", "--dry-run")
    assert "nothing to remove" in ran.out
    assert (
        f"to keep, for a session below them: 1 session\n  {sample[original][-6:].lower()}"
        in (ran.out)
    )
    kept = sessiondb("prune", "--older-than", BETWEEN, "-a", "--yes", "--json").json
    assert ([s["title"] for s in kept["staying"]], kept["sessions"]) == ([original], [])
    freed = sessiondb(
        "prune", "--older-than", BETWEEN, "-a", "--keep-forks", "--yes", "--json"
    ).json
    assert [s["id"] for s in freed["detached"]] == [fork]
    assert left(sessiondb) == {_fork(sample), "Release notes for 0.3"}
    assert sessiondb("check").code == 0


def _fork(sample: dict[str, str]) -> str:
    (title,) = (
        title for title in sample if title.startswith("(fork)") or "fork #1" in title
    )
    return title


def test_the_newest_are_kept_within_the_filters(
    sessiondb: Run, sample: dict[str, str], story: Story
) -> None:
    store_has = left(sessiondb)
    ran = sessiondb("prune", "--keep", "1", "-a", "--source", "opencode", "--yes")
    assert ran.code == 0
    assert left(sessiondb) == store_has - sample.keys() | {"Release notes for 0.3"}
    assert sessiondb("prune", "--keep", "3", "-a", "--yes", "--json").json["sessions"]
    assert len(left(sessiondb)) == 4, "three, and the subagent of one of them"


def test_only_sessions_of_this_project_are_removed_unless_all_are_chosen(
    sessiondb: Run, story: Story
) -> None:
    assert sessiondb("prune", "--older-than", "0h", "--yes").code == 0
    assert left(sessiondb) == {"Write the manual"}


def test_empty_sessions_are_removed_unless_they_carry_something(
    sessiondb: Run, store: Store
) -> None:
    empty = store.create_session(title="Nothing said")
    carrier = store.create_session(title="Only a subagent")
    helper = store.create_session(title="Helper", parent=carrier, relation="subagent")
    store.append(helper, user("Look around"))
    ran = sessiondb("prune", "--empty", "--yes", "--json").json
    assert [s["id"] for s in ran["sessions"]] == [empty.id]
    assert [s["id"] for s in ran["staying"]] == [carrier.id]


def test_a_session_without_a_message_takes_no_place_among_the_newest(
    sessiondb: Run, store: Store
) -> None:
    old, new, empty = (
        store.create_session(title=name) for name in ("old", "new", "empty")
    )
    for session in (old, new):
        store.append(session, user("Hello"))
    assert sessiondb("prune", "--keep", "1", "--yes").code == 0
    assert left(sessiondb) == {"new"}
    assert store.session(empty.id).title == "empty"


def test_a_bundle_has_the_removed_sessions(
    sessiondb: Run, story: Story, project: Path
) -> None:
    assert (
        sessiondb("prune", "--keep", "1", "-a", "--bundle", "old.jsonl", "--yes").code
        == 0
    )
    assert sessiondb("import", "old.jsonl", "--restore").code == 0
    assert len(left(sessiondb)) == 4


def test_nothing_to_prune_is_not_a_failure(sessiondb: Run, story: Story) -> None:
    ran = sessiondb("prune", "--older-than", "30d", "--yes", "--json")
    assert (ran.code, ran.json["sessions"]) == (0, [])


def test_a_terminal_prompts_first(terminal: Run, sessiondb: Run, story: Story) -> None:
    ran = terminal("prune --keep 1 -a", typed="no\n")
    assert "Type yes to remove" in ran.out
    assert (ran.code, len(left(sessiondb))) == (1, 4)


def test_the_library_refuses_to_prune_without_a_rule(store: Store) -> None:
    for rules in ({}, {"empty": True, "keep": 1}):
        with pytest.raises(InvalidInputError, match="older_than"):
            plan_prune(store, **rules)
