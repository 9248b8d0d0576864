from __future__ import annotations

import json
import subprocess

import pytest
from command_line import Run, Story

from sessiondb import (
    MessageDraft,
    Store,
    Todo,
    assistant,
    event,
    part,
    text,
    tool,
    tool_result,
    user,
)

MESSAGE = (
    "seq id parent_seq turn_id role kind agent provider_id model_id cost tokens finish error "
    "inherited time_created time_completed parts"
).split()
PART = "idx id type tool call_id status outcome title text data time_started time_ended".split()
HOSTILE = "a\0b \ud83d \x1b[2J\x1b]0;pwned\x07 \x9b31m \u202egnp.exe\u2066 tab\there"


def test_show_gives_the_session_and_its_messages_exactly(
    sessiondb: Run, story: Story
) -> None:
    shown = sessiondb("show", story.parser, "--json").json
    assert shown["session"]["id"] == story.parser
    assert [m["role"] for m in shown["messages"]] == ["user", "assistant", "user"]
    answer = shown["messages"][1]
    assert set(MESSAGE) <= set(answer)
    assert set(PART) <= set(answer["parts"][0])
    call = answer["parts"][2]
    assert (call["tool"], call["status"]) == ("bash", "completed")
    assert call["data"]["input"] == {"command": "pytest"}
    assert call["text"].splitlines()[39] == "line 39", "JSON is never folded"


def test_jsonl_is_the_session_and_then_a_message_a_line(
    sessiondb: Run, story: Story
) -> None:
    first, *rest = map(
        json.loads, sessiondb("show", story.parser, "--jsonl").out.splitlines()
    )
    complete = sessiondb("show", story.parser, "--json").json
    assert first == complete["session"]
    assert rest == complete["messages"]


def test_a_session_can_be_named_in_many_ways(sessiondb: Run, story: Story) -> None:
    slug = sessiondb("show", story.parser, "--json").json["session"]["slug"]
    for ref in (story.parser, story.parser[-6:].lower(), slug, "Fix the parser", "@~1"):
        assert sessiondb("show", ref, "--json").json["session"]["id"] == story.parser


def test_a_title_is_the_name_of_a_session_only_if_no_other_has_it(
    sessiondb: Run, store: Store, story: Story
) -> None:
    store.set_title(story.fork, "Fix the parser")
    ran = sessiondb("show", "Fix the parser")
    assert ran.code == 3
    assert story.parser in ran.err
    assert story.fork in ran.err
    assert sessiondb("show", "Fix the").code == 3


def test_without_a_name_the_newest_session_here_is_shown(
    sessiondb: Run, story: Story
) -> None:
    assert sessiondb("show", "--json").json["session"]["id"] == story.fork


def test_without_a_session_here_a_hint_names_a_command(sessiondb: Run) -> None:
    ran = sessiondb("show")
    assert (ran.code, ran.out) == (3, "")
    assert "sessiondb import" in ran.err


def test_the_last_messages(sessiondb: Run, story: Story) -> None:
    assert [m["seq"] for m in sessiondb("show", story.parser, "--last", "1", "--json").json[
        "messages"
    ]] == [3]  # fmt: skip


def test_branches_show_messages_off_the_live_path(
    sessiondb: Run, store: Store, story: Story
) -> None:
    store.set_leaf(story.parser, 1)
    store.append(story.parser, user("Another way"))
    path = sessiondb("show", story.parser, "--json").json["messages"]
    all_of_it = sessiondb("show", story.parser, "--branches", "--json").json["messages"]
    assert [m["seq"] for m in path] == [1, 4]
    assert [m["seq"] for m in all_of_it] == [1, 2, 3, 4]


def test_text_names_the_speakers_and_folds_tool_calls(
    sessiondb: Run, story: Story
) -> None:
    shown = sessiondb("show", story.parser).out
    assert shown.startswith("Fix the parser\n")
    assert story.parser in shown
    assert "#2 answer" in shown
    assert "$0.25" in shown
    assert "▸ bash ✓ pytest" in shown
    assert "line 0" not in shown
    for full in (["--full"], ["--detail", "full"]):
        assert "line 39\n" in sessiondb("show", story.parser, *full).out


def test_hostile_text_is_exact_as_json_and_harmless_as_text(
    sessiondb: Run, store: Store
) -> None:
    session = store.create_session(title="Hostile")
    call = tool("bash", {"command": HOSTILE}, output=HOSTILE)
    store.append(session, user(HOSTILE))
    store.append(session, assistant(text(HOSTILE), call))
    for args in (["--json"], ["--jsonl"], [], ["--full"]):
        out = sessiondb("show", session.id, *args).out
        assert not set(out) & set("\0\ud83d\x1b\x07\x9b\u202e\u2066")
    first, second = sessiondb("show", session.id, "--json").json["messages"]
    assert first["parts"][0]["text"] == HOSTILE
    assert second["parts"][1]["text"] == HOSTILE
    assert second["parts"][1]["data"]["input"]["command"] == HOSTILE
    assert r"a\x00b \ud83d \x1b[2J" in sessiondb("show", session.id).out


def test_json_is_utf8_whatever_the_locale(sessiondb: Run, store: Store) -> None:
    session = store.create_session(title="Grüße, 日本")
    store.append(session, user("日本"))
    ran = sessiondb("show", session.id, "--json", encoding="ascii")
    assert ran.json["session"]["title"] == "Grüße, 日本"
    plain = sessiondb("show", session.id, encoding="ascii")
    assert plain.code == 0
    assert r"Gr\xfc\xdfe" in plain.out


def test_values_that_json_cannot_represent_stay_readable(
    sessiondb: Run, store: Store
) -> None:
    session = store.create_session(title="Odd")
    odd = part("odd", nan=float("nan"), far=[-float("inf")], raw=b"\x00\xff")
    store.append(session, assistant(odd))
    (message,) = sessiondb("show", session.id, "--json").json["messages"]
    data = message["parts"][0]["data"]
    assert data == {"nan": "NaN", "far": ["-Infinity"], "raw": {"base64": "AP8="}}


def test_a_result_is_not_shown_twice(sessiondb: Run, store: Store) -> None:
    session = store.create_session(title="Results")
    call = tool("bash", {"command": "ls"}, call_id="c1")
    store.append(session, assistant(call))
    store.append(session, MessageDraft("tool", (tool_result("c1", "the only output"),)))
    shown = sessiondb("show", session.id, "--detail", "full").out
    assert shown.count("the only output") == 1


def test_a_long_session_goes_through_the_pager(terminal: Run, store: Store) -> None:
    session = store.create_session(title="Long")
    for number in range(30):
        store.append(session, user(f"prompt {number}"))
    pager = {"PAGER": "sed s/prompt/PAGED/", "height": 20}
    paged = terminal(f"show {session.id}", **pager)
    assert "PAGED 0" in paged.out
    assert "PAGED 29" in paged.out
    short = terminal(f"show {session.id} --last 1", **pager)
    assert "PAGED" not in short.out


def test_at_is_the_last_one_used_in_this_terminal(terminal: Run, story: Story) -> None:
    shown = terminal(f"show {story.other}", "show @", "show @~1").out
    assert shown.count("Write the manual") == 2
    assert shown.count("Fix the parser") == 1


@pytest.mark.slow
def test_a_program_does_not_change_the_last_session_of_a_person(
    process: Run, store: Store, story: Story
) -> None:
    assert process("show", story.other, stdin=subprocess.DEVNULL).code == 0
    assert store.session("@").id == story.fork


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (("--json", "--jsonl"), 2),
        (("--last", "0"), 2),
        (("--last", "many"), 2),
        (("a", "b"), 2),
        (("nobody",), 3),
        (("@x",), 3),
        (("@~99",), 3),
    ],
)
def test_bad_arguments(
    sessiondb: Run, story: Story, args: tuple[str, ...], code: int
) -> None:
    ran = sessiondb("show", *args)
    assert (ran.code, ran.out) == (code, "")
    assert ran.err.startswith(("sessiondb: ", '{"error": '))


def test_an_ambiguous_name_lists_the_candidates(sessiondb: Run, story: Story) -> None:
    ran = sessiondb("show", "ses_7")
    assert ran.code == 3
    assert story.parser in ran.err
    assert story.other in ran.err


def test_a_folded_event_leaves_no_empty_line(sessiondb: Run, store: Store) -> None:
    session = store.create_session().id
    store.append(session, user("go"))
    store.append(session, event("task_started"))
    store.append(session, user("on"))
    _, _, shown = sessiondb("show", session).out.partition("\n\n")
    assert "\n\n\n" not in shown
    assert [line[:5] for line in shown.splitlines()] == [
        "── #1", "go", "", "── #3", "on", "", "… 1 b"
    ]  # fmt: skip


def test_show_names_a_share_and_a_revert(sessiondb: Run, store: Store) -> None:
    session = store.create_session()
    message = store.append(session, user("Hello"))
    store.set_share(session, "https://example.org/s/1", secret="hush")
    store.set_revert(session, {"messageID": message.id})
    shown = sessiondb("show", session.id).out
    assert "shared at https://example.org/s/1" in shown
    assert "reverted in its program" in shown
    assert "hush" not in shown


def test_show_names_todos_labels_and_subagents(sessiondb: Run, store: Store) -> None:
    session = store.create_session(title="Parent")
    store.append(session, user("Hello"))
    assert " done" not in sessiondb("show", session.id).out
    states = ("completed", "completed", "in_progress", "pending", "cancelled")
    store.set_todos(session, [Todo(state, status=state) for state in states])
    for number in range(10):
        store.label(session, 1, f"label {number}")
    first = store.create_session(parent=session, relation="subagent", title="Survey")
    short = first.id[-6:].lower()
    facts = f"todos 2 done, 2 open, 1 cancelled · labels label 0 (#1), {{}} · 1 subagent: sessiondb show {short}\n"  # fmt: skip
    head = sessiondb("show", session.id).out.split("\n\n")[0] + "\n"
    assert head.endswith(facts.format(", ".join([f"label {n} (#1)" for n in range(1, 8)] + ["2 more"])))  # fmt: skip

    second = store.create_session(parent=session, relation="subagent", title="Check")
    assert f"2 subagents: sessiondb tree {session.id[-6:].lower()}\n" in sessiondb("show", session.id).out  # fmt: skip
    shown = sessiondb("show", session.id, "--json").json["session"]
    assert [todo["status"] for todo in shown["todos"]] == [*states]
    assert shown["labels"][0] == {
        "session_id": session.id,
        "seq": 1,
        "label": "label 0",
    }
    assert shown["subagents"] == [first.id, second.id]

    page = sessiondb("export", session.id, "--to", "markdown").out
    assert "- **Todo list:** 2 done, 2 open, 1 cancelled\n" in page
    assert "- **Labels:** label 0 (\\#1), " in page
    assert "- **Subagents:** 2 (not in this file; --with-children" in page
    family = sessiondb("export", session.id, "--to", "markdown", "--with-children").out
    assert "- **Subagents:** 2\n" in family
