"""Every place has an address: a session, ``#``, and a message by seq, id or label."""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path

import pytest
from command_line import Run, Story

from sessiondb import (
    MessageDraft,
    Store,
    assistant,
    event,
    tool,
    tool_result,
    user,
)
from sessiondb.cli.following import follow
from sessiondb.cli.opening import find_place
from sessiondb.formats.registry import writable
from sessiondb.model import FileDiff


@pytest.fixture
def talk(store: Store) -> str:
    session = store.create_session(title="Tea").id
    for number in range(1, 10):
        store.append(session, user(f"Question {number}"))
        store.append(session, event("usage"))
        store.append(session, assistant(f"Answer {number}"))
    store.label(session, 13, "here")
    return session


def said(shown: str) -> list[str]:
    return re.findall(r"^(?:Question|Answer) \d$", shown, re.MULTILINE)


def test_search_prints_the_address_that_show_takes(terminal: Run, talk: str) -> None:
    found = terminal('search "Question 5"').out
    address = re.search(r"\b\w{6}#13\b", re.sub("\x1b\\[[0-9;]*m", "", found))
    assert address is not None
    shown = terminal(f"show {address[0]} --around 1").out
    assert said(shown.replace("\r", "")) == ["Answer 4", "Question 5", "Answer 5"]


@pytest.mark.parametrize("place", ["13", "here"])
def test_a_place_is_shown_with_what_is_around_it(
    sessiondb: Run, talk: str, place: str
) -> None:
    shown = sessiondb("show", f"{talk}#{place}").out
    assert said(shown) == [
        "Answer 3", "Question 4", "Answer 4", "Question 5",
        "Answer 5", "Question 6", "Answer 6",
    ]  # fmt: skip
    alone = sessiondb("show", f"{talk}#{place}", "--around", "0", "--json").json
    assert [message["seq"] for message in alone["messages"]] == [13]


def test_a_place_off_the_live_path_is_shown_too(
    sessiondb: Run, store: Store, talk: str
) -> None:
    store.set_leaf(talk, 3)
    assert said(sessiondb("show", f"{talk}#13", "--around", "0").out) == ["Question 5"]


def test_a_fork_begins_at_the_place_that_is_named(
    sessiondb: Run, store: Store, talk: str
) -> None:
    (fork,) = sessiondb("fork", f"{talk}#here").out.split()
    assert store.messages(fork)[-1].text == "Question 5"


def test_a_title_with_a_number_sign_is_still_a_name(
    sessiondb: Run, store: Store
) -> None:
    session = store.create_session(title="Issue #12").id
    store.append(session, user("Mend it"))
    assert "Mend it" in sessiondb("show", "Issue #12").out
    assert "Mend it" in sessiondb("export", "Issue #12", "--to", "markdown").out
    assert "in common, the last #1" in sessiondb("diff", "Issue #12", session).out


@pytest.mark.parametrize(
    ("args", "error"),
    [
        (["show", "{}#99"], "no message 99"),
        (
            ["show", "{}", "--around", "2"],
            "--around needs the place of a message: REF#M",
        ),
        (["show", "{}#3", "--last", "2"], "REF#M and --last exclude each other"),
        (["fork", "{}#3", "--at", "6"], "REF#M and --at exclude each other"),
        (["show", "nothing#3"], "nothing"),
        (["tail", "{}#3", "--last", "2"], "REF#M and --last exclude each other"),
        (["resume", "{}#3", "--in", "pi", "--print"], "sessiondb fork"),
        (["export", "{}#99", "--to", "html"], "no message 99"),
        (["export", "{}#3", "{}#6", "--to", "jsonl"], "name it with one end"),
        (["export", "{}#3", "{}", "--to", "jsonl"], "name it with one end"),
        (
            ["export", "{}#3", "--with-children", "--to", "html"],
            "REF#M and --with-children exclude each other",
        ),
        (["diff", "{}#3", "{}#nowhere"], "no message 'nowhere'"),
        (["title", "{}#3", "Tea"], "is the place of a message, and not a session"),
        (["rm", "{}#3", "--yes"], "is the place of a message, and not a session"),
    ],
)
def test_a_place_that_is_none_is_refused_in_a_line(
    sessiondb: Run, talk: str, args: list[str], error: str
) -> None:
    ran = sessiondb(*(arg.format(talk) for arg in args))
    assert ran.code != 0
    assert error in ran.err
    assert len(ran.err.splitlines()) == 2


def test_label_takes_the_address_of_a_message(
    sessiondb: Run, store: Store, story: Story
) -> None:
    assert sessiondb("label", f"{story.parser}#2", "good").code == 0
    assert [(item.seq, item.label) for item in store.labels(story.parser)] == [
        (2, "good")
    ]
    assert sessiondb("label", f"{story.parser}#good").code == 0
    assert store.labels(story.parser) == []
    for wrong in ((story.parser,), (f"{story.parser}#2", "2", "good")):
        ran = sessiondb("label", *wrong)
        assert (ran.code, "REF#M NAME" in ran.err) == (2, True)


def test_tail_begins_with_the_message_of_an_address(store: Store, talk: str) -> None:
    stop = threading.Event()
    stop.set()
    session, place = find_place(store, f"{talk}#here")
    assert place is not None
    lines = "".join(follow(store, session, first=place, as_jsonl=True, stop=stop))
    assert re.findall(r"(?:Question|Answer) \d", lines) == [
        "Question 5", "Answer 5", "Question 6", "Answer 6", "Question 7", "Answer 7",
        "Question 8", "Answer 8", "Question 9", "Answer 9",
    ]  # fmt: skip
    store.set_leaf(talk, 3)
    beside = "".join(follow(store, session, first=place, as_jsonl=True, stop=stop))
    assert re.findall(r"(?:Question|Answer) \d", beside) == ["Question 5"]


@pytest.mark.parametrize("form", writable())
def test_an_export_at_a_place_has_what_leads_to_it_and_nothing_later(
    sessiondb: Run, talk: str, form: str
) -> None:
    shown = sessiondb("export", f"{talk}#here", "--to", form).out
    found = set(re.findall(r"(?:Question|Answer) \d", shown))
    expected = {f"Question {n}" for n in range(1, 6)}
    assert found == expected | {f"Answer {n}" for n in range(1, 5)}


def test_an_export_at_a_place_is_the_session_as_it_was_then(
    sessiondb: Run, store: Store
) -> None:
    session = store.create_session(title="Tea").id
    store.append(session, user("Boil it"))
    call = assistant(tool("kettle", {}, call_id="1"))
    store.append(session, call, cost=0.5, model="m", tokens={"output": 5})
    store.append(session, MessageDraft("tool", (tool_result("1", "It boils"),)))
    store.append(session, assistant("Done"), cost=2.5, model="m", tokens={"output": 9})
    store.label(session, 4, "later")
    store.set_diffs(session, [FileDiff("cup", 4), FileDiff("pot", 2)])
    # An answer keeps the result of its call, as in a fork.
    page = sessiondb("export", f"{session}#2", "--to", "markdown").out
    assert "3 messages, 1 prompt, 1 tool call" in page
    assert "$0.5" in page
    assert "It boils" in page
    (head, *records) = map(
        json.loads,
        sessiondb("export", f"{session}#2", "--to", "jsonl").out.splitlines(),
    )
    assert head["session_id"] == session
    assert not [record for record in records if "later" in str(record)]
    assert "pot" in str(records)
    assert "cup" not in str(records)


def test_a_log_up_to_a_place_takes_nothing_away_where_it_is_imported(
    sessiondb: Run, store: Store, talk: str, tmp_path: Path
) -> None:
    whole, part = tmp_path / "whole.jsonl", tmp_path / "part.jsonl"
    for ref, log in ((talk, whole), (f"{talk}#here", part)):
        assert sessiondb("export", ref, "--to", "jsonl", "-o", str(log)).code == 0
    before = store.messages(talk, branches=True)
    assert sessiondb("import", str(part)).code == 0
    assert store.messages(talk, branches=True) == before
    with Store.open(tmp_path / "other.db") as other:
        for log, number in ((part, 13), (whole, 27), (part, 27)):
            sessiondb("--db", str(other.path), "import", str(log))
            assert len(other.messages(talk)) == number


def test_several_places_are_exported_together(
    sessiondb: Run, store: Store, talk: str, tmp_path: Path
) -> None:
    other = store.create_session(title="Coffee").id
    store.append(other, user("Grind it"))
    ran = sessiondb(
        "export", f"{talk}#here", other, "--to", "markdown", "-o", f"{tmp_path}/notes/"
    )
    assert ran.code == 0
    notes = "".join(p.read_text() for p in (tmp_path / "notes").glob("*.md"))
    assert ("Question 5" in notes, "Answer 5" in notes, "Grind" in notes) == (
        True, False, True,
    )  # fmt: skip


def test_two_places_of_a_session_are_compared(
    sessiondb: Run, store: Store, talk: str
) -> None:
    shown = sessiondb("diff", f"{talk}#here", f"{talk}#18").out
    assert "13 messages in common, the last #13" in shown
    assert re.findall(r"^[+-] .*(?:Question|Answer) \d", shown, re.MULTILINE) == [
        line
        for line in shown.splitlines()
        if re.search(r"Answer 5|Question 6|Answer 6", line)
    ]
    assert f"{talk[-6:].lower()}#18" in shown
    compared = sessiondb("diff", f"{talk}#18", f"{talk}#13", "--json").json
    assert (compared["at_a"], compared["at_b"], compared["only_b"]) == (18, 13, [])
    assert [message["seq"] for message in compared["only_a"]] == [14, 15, 16, 17, 18]
    # Two branches part at the message that both begin with.
    store.append(talk, user("Question 0"), after=12)
    branches = sessiondb("diff", f"{talk}#13", f"{talk}#28", "--json").json
    assert [len(branches[key]) for key in ("common", "only_a", "only_b")] == [12, 1, 1]
