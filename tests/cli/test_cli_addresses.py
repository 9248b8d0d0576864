"""Every place has an address: a session, ``#``, and a message by seq, id or label."""

from __future__ import annotations

import re
import threading

import pytest
from command_line import Run, Story

from sessiondb import Store, assistant, event, user
from sessiondb.cli.following import follow
from sessiondb.cli.opening import find_place


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
    ],
)
def test_a_place_that_is_none_is_refused_in_a_line(
    sessiondb: Run, talk: str, args: list[str], error: str
) -> None:
    ran = sessiondb(*(arg.format(talk) for arg in args))
    assert ran.code != 0
    assert error in ran.err


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
