from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime

import pytest
from command_line import Run, Story

from sessiondb import (
    MessageDraft,
    Store,
    assistant,
    event,
    file,
    part,
    reasoning,
    tool,
    tool_result,
    user,
)
from sessiondb.cli.family import tree_json


def test_a_fork_is_a_session_of_its_own(sessiondb: Run, story: Story) -> None:
    made = sessiondb("fork", story.parser, "--json").json["session"]
    assert (made["parent_id"], made["relation"]) == (story.parser, "fork")
    assert made["message_count"] == 3
    assert sessiondb("fork", story.parser).out.startswith("ses_")


@pytest.mark.parametrize(("option", "kept"), [("--at", 2), ("--before", 1)])
def test_a_fork_begins_at_a_seq_an_id_or_a_label(
    sessiondb: Run, store: Store, story: Story, option: str, kept: int
) -> None:
    store.label(story.parser, 2, "good")
    for message in ("2", store.message(story.parser, 2).id, "good"):
        made = sessiondb("fork", story.parser, option, message, "--json").json[
            "session"
        ]
        assert made["message_count"] == kept


def test_a_fork_at_an_answer_keeps_the_results_of_its_calls(
    sessiondb: Run, store: Store
) -> None:
    session = store.create_session()
    first, second = tool("a", {}, call_id="1"), tool("b", {}, call_id="2")
    store.append(session, user("Run both"))
    store.append(session, assistant("Both.", first, second))
    for message in (
        MessageDraft("tool", (tool_result("1", "one"),)),
        event("usage"),
        MessageDraft("tool", (tool_result("2", "two"),)),
        event("usage"),
        assistant("Done."),
    ):
        store.append(session, message)
    for typed in (("--at", "2"), ()):
        ref = session.id if typed else f"{session.id}#2"
        made = sessiondb("fork", ref, *typed, "--json").json["session"]
        messages = store.messages(made["id"])
        assert messages[-1].seq == 5
        calls = [part for part in messages[1].parts if part.type == "tool"]
        assert [(call.status, call.text) for call in calls] == [
            ("completed", "one"), ("completed", "two"),
        ]  # fmt: skip
    # What has no call ends as asked.
    for place, last in ((1, 1), (3, 3), (7, 7)):
        made = sessiondb("fork", f"{session.id}#{place}", "--json").json["session"]
        assert store.messages(made["id"])[-1].seq == last


def test_a_branch_at_an_answer_hides_no_result_of_its_calls(
    sessiondb: Run, store: Store
) -> None:
    session = store.create_session()
    store.append(session, user("Run it"))
    store.append(session, assistant(tool("a", {}, call_id="1")))
    store.append(session, event("usage"), after=2)
    store.append(session, MessageDraft("tool", (tool_result("1", "done"),)), after=2)
    made = sessiondb("fork", f"{session.id}#2", "--json").json["session"]
    (call,) = store.messages(made["id"])[1].parts
    assert (call.status, call.text) == ("completed", "done")


def test_a_result_is_found_whichever_branch_of_its_answer_it_is_on(
    sessiondb: Run, store: Store
) -> None:
    session = store.create_session()
    store.append(session, user("Run it"))
    store.append(session, assistant(tool("a", {}, call_id="1")))
    store.append(session, event("usage"), after=2)
    store.append(session, event("usage"), after=3)
    store.append(session, MessageDraft("tool", (tool_result("1", "done"),)), after=2)
    # The answer was taken back: no branch of it is live.
    store.append(session, user("Run another"), after=1)
    made = sessiondb("fork", f"{session.id}#2", "--json").json["session"]
    assert [message.seq for message in store.messages(made["id"])] == [1, 2, 5]
    (call,) = store.messages(made["id"])[1].parts
    assert (call.status, call.text) == ("completed", "done")


def test_calls_that_were_made_at_once_stay_together_in_a_fork(
    sessiondb: Run, store: Store
) -> None:
    session = store.create_session()
    for number in "12":
        store.append(session, assistant(tool("a", {}, call_id=number)))
    for number in "12":
        store.append(session, MessageDraft("tool", (tool_result(number, "done"),)))
    made = sessiondb("fork", f"{session.id}#1", "--json").json["session"]
    assert [
        part.status for item in store.messages(made["id"])[:2] for part in item.parts
    ] == ["completed"] * 2


@pytest.mark.slow
def test_a_number_that_is_typed_is_an_id_or_a_label_before_it_is_a_seq(
    sessiondb: Run, store: Store
) -> None:
    session = store.create_session(id="numbers")
    for name in ("a", "3", "b"):
        store.append(session, user(name, id=name))
    store.label(session, 3, "2")
    for typed, kept in (("1", 1), ("2", 3), ("3", 2)):
        made = sessiondb("fork", session.id, "--at", typed, "--json").json["session"]
        assert made["message_count"] == kept
    for nothing in ("4", "0", "²", "-1", "9" * 200):
        assert sessiondb("fork", session.id, "--at", nothing).code == 3


def test_a_fork_takes_a_title_and_a_directory(
    sessiondb: Run, story: Story, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = str(tmp_path_factory.mktemp("work"))
    made = sessiondb(
        "fork", story.parser, "--title", "T", "--directory", folder, "--json"
    ).json
    assert (made["session"]["title"], made["session"]["directory"]) == ("T", folder)


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (("fork",), 2),
        (("fork", "nobody"), 3),
        (("fork", "PARSER", "--at", "99"), 3),
        (("fork", "PARSER", "--at", "1", "--before", "2"), 2),
        (("tree",), 2),
        (("tree", "nobody"), 3),
        (("diff", "PARSER"), 2),
        (("diff", "PARSER", "nobody"), 3),
    ],
)
def test_bad_arguments(
    sessiondb: Run, story: Story, args: tuple[str, ...], code: int
) -> None:
    ran = sessiondb(*(story.parser if arg == "PARSER" else arg for arg in args))
    assert (ran.code, ran.out) == (code, "")
    assert ran.err.startswith("sessiondb: ")


@pytest.mark.slow
def test_a_tree_is_the_complete_family_of_any_member(
    sessiondb: Run, story: Story
) -> None:
    for ref in (story.parser, story.fork, story.helper):
        tree = sessiondb("tree", ref, "--json").json
        assert tree["session"]["id"] == story.parser
        children = {child["session"]["id"]: child for child in tree["children"]}
        assert children.keys() == {story.fork, story.helper}
        assert all(child["children"] == [] for child in children.values())
    asked = sessiondb("tree", story.parser, "--json").json
    assert [node["seq"] for node in asked["messages"]] == [1, 2, 3]


def test_a_tree_is_drawn(sessiondb: Run, store: Store, story: Story) -> None:
    deeper = store.fork(story.fork, title="Deeper")
    store.append(deeper, user("On"))
    lines = sessiondb("tree", story.fork).out.splitlines()
    assert lines[0].startswith(story.parser[-6:].lower() + "  Fix the parser")
    assert [line[:6] for line in lines[1:]] == ["├─ " + story.fork[-6:-3].lower(), *[
        "│  └─ ", "└─ " + story.helper[-6:-3].lower()
    ]]  # fmt: skip
    assert "fork at #2" in lines[1]
    assert lines[1].endswith("← this one")
    assert "subagent" in lines[3]


def test_a_family_may_be_500_deep(store: Store, story: Story) -> None:
    tree = store.tree(story.other)
    for depth in range(1, 500):
        tree = replace(
            tree, session=replace(tree.session, id=str(depth)), children=(tree,)
        )
    assert tree_json(tree).count('"children": [') == 500


def test_a_comparison_shows_the_shared_messages(sessiondb: Run, story: Story) -> None:
    found = sessiondb("diff", story.parser, story.fork, "--json").json
    assert [m["seq"] for m in found["common"]] == [1, 2]
    assert [m["parts"][0]["text"] for m in found["only_a"]] == ["Thanks"]
    assert [m["parts"][0]["text"] for m in found["only_b"]] == [
        "Try a generator instead"
    ]
    shown = sessiondb("diff", story.parser, story.fork).out
    assert "2 messages in common, the last #2" in shown
    assert "prompt: Thanks" in shown


def test_titles_labels_and_archive_are_recorded(sessiondb: Run, story: Story) -> None:
    titled = sessiondb("title", story.parser, "New name", "--json").json
    assert titled["session"]["title"] == "New name"
    labels = sessiondb("label", story.parser, "2", "good", "--json").json["labels"]
    assert [(item["seq"], item["label"]) for item in labels] == [(2, "good")]
    assert sessiondb("label", story.parser, "good", "--json").json == {"labels": []}

    gone = sessiondb("archive", story.parser, story.fork, "--json").json["sessions"]
    assert all(session["time_archived"] for session in gone)
    assert sessiondb("list", "--json").json["sessions"] == []
    assert len(sessiondb("list", "--archived", "--json").json["sessions"]) == 2
    twice = sessiondb("archive", story.parser, story.parser)
    assert twice.err == "archived 1 session\n"
    assert sessiondb("unarchive", story.parser).code == 0
    assert len(sessiondb("list", "--json").json["sessions"]) == 1


def test_one_wrong_name_archives_nothing(sessiondb: Run, story: Story) -> None:
    assert sessiondb("archive", story.parser, "nobody").code == 3
    assert len(sessiondb("list", "--json").json["sessions"]) == 2


@pytest.mark.parametrize(
    "command", [["title", "@"], ["title"], ["label", "@"], ["archive"]]
)
def test_a_missing_argument_is_named(sessiondb: Run, command: list[str]) -> None:
    ran = sessiondb(*command)
    assert (ran.code, ran.out) == (2, "")


def test_stats_group_cost_and_tokens(sessiondb: Run, story: Story) -> None:
    found = sessiondb("stats", "--json").json
    (row,) = found["rows"]
    assert (row["model"], row["cost"], row["tokens"]["input"]) == ("large", 0.25, 100)
    assert found["total"]["cost"] == 0.25, "what the fork took over is counted once"
    by = sessiondb("stats", "--by", "source,agent", "--json").json["rows"]
    assert {"source", "agent", "sessions", "messages"} <= set(by[0])
    (line,) = sessiondb("stats", "--by", "model").lines
    assert line[:4] == ["large", "1", "1", "0.25"]


def test_an_unknown_cost_is_estimated_or_stays_unknown(
    sessiondb: Run, store: Store, tmp_path_factory: pytest.TempPathFactory
) -> None:
    session = store.create_session(title="Free?")
    store.append(
        session, assistant("Hi"), model="m", tokens={"input": 1000, "output": 10}
    )
    (row,) = sessiondb("stats", "--json").json["rows"]
    assert (row["cost"], row["cost_estimated"], row["tokens_unpriced"]) == (
        None,
        None,
        1010,
    )
    prices = tmp_path_factory.mktemp("prices") / "prices.toml"
    prices.write_text("[m]\ninput = 2\noutput = 100\n")
    ran = sessiondb("stats", "--prices", str(prices))
    what, next_step = ran.err.splitlines()
    assert (ran.code, f"{prices}: m is unknown here" in what) == (2, True)
    assert next_step.startswith(
        '  correct it there: [prices."MODEL"] has any of input,'
    )
    prices.write_text("[prices.m]\ninput = 2\noutput = 100\n")
    (row,) = sessiondb("stats", "--prices", str(prices), "--json").json["rows"]
    assert (row["cost"], row["cost_estimated"], row["tokens_unpriced"]) == (
        None,
        0.003,
        0,
    )


def test_nothing_to_count_is_an_empty_list(sessiondb: Run) -> None:
    ran = sessiondb("stats", "-a", "--json")
    assert ran.code == 0
    assert ran.json["rows"] == []
    assert (ran.json["total"]["cost"], ran.json["total"]["sessions"]) == (None, 0)


def test_a_terminal_gets_totals(terminal: Run, story: Story) -> None:
    shown = terminal("stats --by day,model").out.splitlines()
    assert shown[-1].startswith("total")
    assert "$0.25" in shown[-1]


def test_a_terminal_says_what_the_cost_consists_of(
    terminal: Run, store: Store, story: Story
) -> None:
    session = store.create_session(title="Free?")
    for model in ("claude-sonnet-4-5", "unheard-of"):
        store.append(session, assistant("Hi"), model=model, tokens={"input": 100_000})
    *_, total, consists = terminal("stats").out.splitlines()
    assert total == "≥ $0.55 · 100k tokens without a price"
    assert consists.startswith("$0.25 stated + $0.30 estimated (list prices of ")


def test_rows_are_sorted_and_limited_and_the_total_counts_all(
    sessiondb: Run, terminal: Run, store: Store, story: Story
) -> None:
    session = store.create_session(title="A long answer")
    store.append(session, assistant("Hi"), model="m", tokens={"output": 10_000})
    rows = sessiondb("stats", "--by", "session", "--json").json["rows"]
    assert [row["cost"] for row in rows] == [0.25, None], "the dearest first"
    assert {row["session"]: row["title"] for row in rows}[session.id] == "A long answer"

    ran = sessiondb("stats", "--by", "session", "--sort", "tokens", "--limit", "1")
    ((name, *_),) = ran.lines
    assert name == session.id
    assert "1 of 2 rows" in ran.err
    cut = sessiondb("stats", "--limit", "1", "--json").json
    assert (len(cut["rows"]), cut["total"]["messages"]) == (1, 2)
    assert (
        f"{session.id[-6:].lower()} A long answer" in terminal("stats --by session").out
    )


def test_a_row_is_explained_by_its_messages_and_their_rates(
    sessiondb: Run, store: Store, story: Story
) -> None:
    session = store.create_session(title="Estimated")
    tokens = {"input": 100_000, "output": 1_000}
    store.append(session, assistant("a"), model="claude-sonnet-4-5", tokens=tokens)
    store.append(session, assistant("b"), model="unheard-of", tokens={"input": 7})
    store.fork(session)

    end = session.id[-6:].lower()
    found = sessiondb("stats", "--by", "session", "--explain", end, "--json").json
    first, second = found["messages"]
    assert (first["cost"], first["rates"]["output"]) == (None, 15.0)
    assert first["cost_estimated"] == pytest.approx(0.3 + 0.015)
    assert (second["tokens_unpriced"], second["rates"]) == (7, {})

    ran = sessiondb("stats", "--by", "model", "--explain", "claude-sonnet-4-5")
    places = [(line[0], line[-1]) for line in ran.lines]
    assert (f"{session.id}#1", "") in places
    assert f"{session.id}#1" in [owner for _, owner in places], "the copy names it"
    assert "USD per million tokens of claude-sonnet-4-5: 3 input, 15 output" in ran.err
    assert "1 message that a fork copied, counted in the original" in ran.err


def test_a_cost_without_tokens_is_counted_apart_in_an_explanation(
    sessiondb: Run, store: Store
) -> None:
    session = store.create_session()
    store.append(session, assistant("a"), cost=0.5, tokens={"input": 9})
    store.append(session, MessageDraft("event", kind="usage"), cost=0.25)
    ran = sessiondb("stats", "--explain", "total")
    assert "2 messages: $0.75" in ran.err
    assert "$0.25 of it is stated without tokens" in ran.err


@pytest.mark.parametrize("by", ["model", "session", "day,source", "tool"])
def test_the_messages_behind_each_row_add_up_to_it(
    store: Store, story: Story, by: str
) -> None:
    session = store.create_session()
    for tokens in ({"input": 9, "output": 4}, {"cache_read": 5}):
        store.append(session, assistant("a"), model="claude-sonnet-4-5", tokens=tokens)
    store.append(session, assistant("b", tool("c1", "bash")), tokens={"input": 3})
    store.fork(session)
    rows = store.usage(by=by.split(","))
    assert rows
    for row in rows:
        records = store.usage_records(row.key)
        counted = [record for record in records if record.counted_in is None]
        assert len(counted) == row.messages
        assert sum(r.cost or 0 for r in counted) == pytest.approx(row.cost or 0)
        estimated = sum(record.cost_estimated or 0 for record in counted)
        assert estimated == pytest.approx(row.cost_estimated or 0)
        unpriced = sum(record.tokens_unpriced for record in counted)
        assert unpriced == row.tokens_unpriced


def test_a_row_that_does_not_exist_has_no_messages(
    sessiondb: Run, story: Story
) -> None:
    ran = sessiondb("stats", "--explain", "no-such-model")
    assert (ran.code, ran.out) == (0, "")
    assert "no messages of no-such-model" in ran.err
    ran = sessiondb("stats", "--by", "day,model", "--explain", "large")
    assert ran.code == 2
    assert "a row by day,model has 2 keys" in ran.err


def test_days_have_bars_on_a_terminal_and_every_column_fits(
    terminal: Run, store: Store
) -> None:
    session = store.create_session()
    for day, cost in (("01", 1.0), ("02", 0.25)):
        when = datetime.fromisoformat(f"2026-03-{day}T12:00:00+00:00")
        tokens = {"input": 123_456_789, "output": 1_234_567, "cache_read": 12_345_678}
        store.append(session, assistant("a"), time=when, cost=cost, tokens=tokens)
    head, first, second, *_ = terminal("stats --by day", NO_COLOR="1").out.splitlines()
    assert head.split() == "DAY SESS ANSW COST EST IN OUT CACHED".split()
    assert (first.count("█"), second.count("█")) == (12, 3)
    assert "123M" in first
    wide = terminal("stats --by day,model", NO_COLOR="1").out.splitlines()
    assert wide[0].split()[-7:] == head.split()[1:]
    assert "█" not in terminal("stats --by model").out


def test_a_pipe_has_costs_without_the_noise_of_binary_sums(
    sessiondb: Run, store: Store
) -> None:
    session = store.create_session()
    for _ in range(3):
        store.append(session, assistant("a"), model="m", cost=0.1)
    ((*_, cost, estimated, _, _, _, _, _, _),) = sessiondb("stats").lines
    assert (cost, estimated) == ("0.3", "")


@pytest.mark.parametrize(
    "args",
    [
        ("--by", "mood"), ("--by", ""), ("--prices", "none.toml"), ("--sort", "mood"),
        ("--limit", "0"),
    ],
)  # fmt: skip
def test_stats_refuse_unknown_keys(sessiondb: Run, args: tuple[str, ...]) -> None:
    ran = sessiondb("stats", "-a", *args)
    assert (ran.code, ran.out) == (2, "")


def test_trees_are_valid_json_with_hostile_titles(sessiondb: Run, store: Store) -> None:
    session = store.create_session(title='"}]\x1b\ud83d')
    store.append(session, user('"\\\x1b'))
    assert (
        json.loads(sessiondb("tree", session.id, "--json").out)["session"]["title"][:3]
        == '"}]'
    )


def test_a_message_without_text_is_summarised_by_its_calls(
    sessiondb: Run, store: Store
) -> None:
    one = store.create_session(title="One")
    store.append(one, user("Go"))
    other = store.fork(one, title="Other")
    step, shot = (
        part("step-start", snapshot="abc"),
        file("file:///a.png", filename="a.png"),
    )
    store.append(
        one, assistant(step, tool("bash", {"command": "ls -l"}, output="a.png"))
    )
    store.append(
        one, assistant(step, reasoning("Look closer"), tool("read", error="gone"))
    )
    store.append(other, assistant(step), error="no credit")
    store.append(other, user(shot))
    store.append(other, assistant(step))
    lines = sessiondb("diff", one.id, other.id).out.splitlines()
    summaries = [line.split(": ", 1)[-1] for line in lines]
    for line in (
        "▸ bash ls -l", "(Look closer) · ▸ read [failed]", "Error: no credit",
        "[File a.png file:///a.png]", "(nothing said)",
    ):  # fmt: skip
        assert line in summaries


def test_diff_lists_the_conversation_and_counts_the_rest(
    sessiondb: Run, store: Store
) -> None:
    session = store.create_session()
    store.append(session, user("Go"))
    fork = store.fork(session)
    for message in (
        event("custom_message", "a reminder"),
        assistant(tool("a", {}, call_id="1")),
        MessageDraft("tool", (tool_result("1", "one"),)),
        event("usage"),
        event("usage"),
    ):
        store.append(fork, message)
    lines = sessiondb("diff", session.id, fork.id).out.splitlines()
    added = [line for line in lines if line.startswith("+ ")]
    assert [line[:4] for line in added] == ["+ #3", "+ … "]
    assert added[1] == "+ … 1 result, 1 injected text, 2 bookkeeping records"
