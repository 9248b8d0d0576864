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
    for rules in ({}, {"empty": True, "keep": 1}, {"free": 0}):
        with pytest.raises(InvalidInputError, match=r"older_than|exclude|above 0"):
            plan_prune(store, **rules)


# -- until enough is free ------------------------------------------------------------


@pytest.fixture
def heaps(store: Store) -> list[str]:
    """Thirty sessions of 20 kB, the first one used first."""
    sessions = []
    for number in range(30):
        session = store.create_session(title=f"Heap {number}").id
        words = " ".join(f"w{number}x{word}" for word in range(2_500))
        store.append(session, user(words), time=1_700_000_000_000 + number * 60_000)
        sessions.append(session)
    return sessions


def test_the_oldest_go_until_enough_is_free_and_no_more(
    sessiondb: Run, heaps: list[str]
) -> None:
    for free in (1, 50_000, 300_000):
        plan = sessiondb("prune", "--free", str(free), "--dry-run", "--json").json
        removed = [session["id"] for session in plan["sessions"]]
        assert removed == heaps[: len(removed)]
        assert plan["bytes"] >= free
        without_last = plan["bytes"] * (len(removed) - 1) / len(removed)
        assert without_last < free


def test_it_says_if_there_is_not_enough_to_remove(
    sessiondb: Run, heaps: list[str]
) -> None:
    ran = sessiondb("prune", "--free", "1 GB", "--dry-run")
    assert ran.code == 0
    assert "not 1.0 GB: nothing else is left" in ran.err
    assert ran.out.startswith("to remove: 30 sessions")


def test_rules_limit_what_is_removed_to_free_space(
    sessiondb: Run, heaps: list[str]
) -> None:
    rules = ("--keep", "28", "--free", "1GB", "--dry-run", "--json")
    plan = sessiondb("prune", *rules).json
    assert [session["id"] for session in plan["sessions"]] == heaps[:2]


def test_an_original_goes_only_after_its_last_fork(
    sessiondb: Run, heaps: list[str], store: Store
) -> None:
    fork = store.fork(heaps[0], title="Fork").id
    plan = sessiondb("prune", "--free", "1kB", "--dry-run", "--json").json
    assert [session["id"] for session in plan["sessions"]] == [heaps[1]]
    assert [session["id"] for session in plan["staying"]] == [heaps[0]]
    every = sessiondb("prune", "--free", "1GB", "--dry-run", "--json").json
    assert {heaps[0], fork} <= {session["id"] for session in every["sessions"]}
    assert every["staying"] == []


def test_a_long_plan_is_summed_up_and_complete_with_verbose_or_json(
    sessiondb: Run, heaps: list[str]
) -> None:
    rules = ("prune", "--free", "1GB", "--dry-run")
    brief = sessiondb(*rules).out
    assert "  sessiondb: 30 sessions, 30 messages, used " in brief
    assert len(brief.splitlines()) == 3
    for verbose in (sessiondb(*rules, "-v"), sessiondb("-v", *rules)):
        assert all(f"Heap {number} " in verbose.out for number in range(30))
    assert len(sessiondb(*rules, "--json").json["sessions"]) == 30


def test_a_removal_is_undone_from_its_bundle(
    sessiondb: Run, heaps: list[str], project: Path
) -> None:
    before = sessiondb("export", "-a", "--to", "jsonl").out
    removal = ("--bundle", "old heaps.jsonl.gz", "--yes")
    ran = sessiondb("prune", "--free", "100kB", *removal)
    assert "`sessiondb prune --undo 'old heaps.jsonl.gz'` restores them" in ran.err
    assert sessiondb("rm", heaps[-1], "--bundle", "last.jsonl", "--yes").code == 0
    assert len(left(sessiondb)) <= 26

    assert sessiondb("prune", "--undo", "old heaps.jsonl.gz").code == 0
    assert sessiondb("rm", "--undo", "last.jsonl").code == 0
    after = sessiondb("export", "-a", "--to", "jsonl").out
    assert len(after) == len(before)
    assert left(sessiondb) == {f"Heap {number}" for number in range(30)}


def test_the_plan_says_whether_it_can_be_undone(
    sessiondb: Run, heaps: list[str]
) -> None:
    assert "--undo FILE" in sessiondb("prune", "--keep", "29", "--dry-run").err
    kept = sessiondb("prune", "--keep", "29", "--dry-run", "--bundle", "b.jsonl")
    assert kept.err == ""


@pytest.mark.parametrize("size", ["0", "-1", "much", "1XB", "GB", "1e9", "1,5GB"])
def test_a_wrong_size_names_the_forms(sessiondb: Run, size: str) -> None:
    ran = sessiondb("prune", f"--free={size}", "--yes")
    assert ran.code == 2
    assert "500MB" in ran.err


def test_undo_is_typed_alone(sessiondb: Run, story: Story) -> None:
    assert sessiondb("rm", story.other, "--undo", "b.jsonl").code == 2
    assert sessiondb("prune", "--keep", "1", "--undo", "b.jsonl").code == 2
    assert sessiondb("rm", "--undo", "nowhere.jsonl").code == 3
