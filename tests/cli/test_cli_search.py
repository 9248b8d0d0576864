from __future__ import annotations

import json
import re

import pytest
from command_line import Ran, Run, Story

from sessiondb import Store, assistant, tool, user
from sessiondb.repository import scanning


def found(ran: Ran) -> list[str]:
    assert ran.code == 0, ran.err
    return [hit["session"]["id"] for hit in ran.json["hits"]]


def test_a_hit_names_its_session_and_seq(sessiondb: Run, story: Story) -> None:
    ran = sessiondb("search", "off-by-one", "--json")
    (hit,) = ran.json["hits"]
    assert set(hit) >= {"session", "seq", "message_id", "snippet"}
    assert (hit["session"]["id"], hit["seq"]) == (story.parser, 1)
    assert "‹off-by-one›" in hit["snippet"]


def test_the_search_is_in_this_project_unless_all_are_chosen(
    sessiondb: Run, story: Story
) -> None:
    assert found(sessiondb("search", "chapter", "--json")) == []
    assert found(sessiondb("search", "chapter", "-a", "--json")) == [story.other]


def test_subagents_are_searched_on_demand(sessiondb: Run, story: Story) -> None:
    assert found(sessiondb("search", "where", "--json")) == []
    assert found(sessiondb("search", "where", "--subagents", "--json")) == [
        story.helper
    ]


def test_roles_and_tools_narrow_the_search(sessiondb: Run, story: Story) -> None:
    assert found(sessiondb("search", "line", "--tool", "bash", "--json")) == [
        story.parser
    ]
    assert found(sessiondb("search", "line", "--tool", "edit", "--json")) == []
    assert found(sessiondb("search", "fixed", "--role", "assistant", "--json")) == [
        story.parser
    ]
    assert found(sessiondb("search", "fixed", "--role", "user", "--json")) == []


def test_one_hit_a_session_or_all_of_them(sessiondb: Run, store: Store) -> None:
    session = store.create_session(title="Twice")
    for _ in range(3):
        store.append(session, user("again and again"))
    assert len(found(sessiondb("search", "again", "--json"))) == 1
    assert len(found(sessiondb("search", "again", "--all-hits", "--json"))) == 3
    limited = sessiondb("search", "again", "--all-hits", "--limit", "2", "--json")
    assert len(found(limited)) == 2
    cursor = limited.json["next_cursor"]
    more = sessiondb("search", "again", "--all-hits", "--cursor", cursor, "--json")
    assert len(found(more)) == 1


def test_formats(sessiondb: Run, story: Story) -> None:
    (line,) = sessiondb("search", "off-by-one", "--jsonl").out.splitlines()
    assert json.loads(line)["seq"] == 1
    ((session, seq, message, _, source, title, snippet),) = sessiondb(
        "search", "off-by-one"
    ).lines
    assert (session, seq, source, title) == (
        story.parser,
        "1",
        "sessiondb",
        "Fix the parser",
    )
    assert message.startswith("msg_")
    assert "‹off-by-one›" in snippet


def test_a_terminal_gets_the_words_in_colour(terminal: Run, story: Story) -> None:
    shown = terminal("search off-by-one")
    assert "\x1b[33m\x1b[1moff-by-one\x1b[0m" in shown.out
    assert "#1" in shown.out
    assert "‹off-by-one›" in terminal("search off-by-one", NO_COLOR="1").out


def test_an_empty_search_names_wider_searches(sessiondb: Run, story: Story) -> None:
    ran = sessiondb("search", "xylophone", "--json")
    assert (ran.code, ran.json["hits"]) == (0, [])
    assert "-a" in ran.err
    assert "--archived" in ran.err


def test_no_query_is_a_syntax_error(sessiondb: Run, story: Story) -> None:
    for query in ("C++", "foo-bar", "title:x", "--no-such"):
        assert sessiondb("search", "--json", "--", query).code == 0, query


def test_a_query_that_means_nothing_is_refused_in_one_line(
    sessiondb: Run, story: Story
) -> None:
    for query in ('"', "AND", "NEAR a", "-parse", "(foo", "foo OR"):
        ran = sessiondb("search", "--", query)
        assert (ran.code, ran.out) == (2, ""), query
        assert len(ran.err.splitlines()) <= 2, ran.err


@pytest.mark.parametrize(
    "args", [(), ("x", "--role", "boss"), ("x", "--order", "none"), ("",)]
)
def test_bad_arguments_are_exit_2(sessiondb: Run, args: tuple[str, ...]) -> None:
    ran = sessiondb("search", *args)
    assert (ran.code, ran.out) == (2, "")


def test_a_dash_that_looks_like_an_option_is_to_be_quoted(
    sessiondb: Run, story: Story
) -> None:
    for command in ("search", "prompts"):
        ran = sessiondb(command, "loop", "-villes")
        assert (ran.code, "quote a query with a dash" in ran.err) == (2, True)


def test_a_file_is_searched_for_with_and_without_words(
    sessiondb: Run, store: Store
) -> None:
    session = store.create_session(title="Edited")
    store.append(session, assistant(tool("write", {"path": "src/a.py"}, output="ok")))
    for words in ((), ("src",)):
        ((name, seq, *_, snippet),) = sessiondb(
            "search", *words, "--file", "a.py"
        ).lines
        assert (name, seq, snippet) == (session.id, "1", "write src/a.py")
    assert "nothing found" in sessiondb("search", "--file", "b.py").err
    ran = sessiondb("search", "--file", "a.py", "--tool", "edit")
    assert (ran.code, ran.out) == (2, "")


def test_nothing_found_offers_the_next_search(sessiondb: Run, story: Story) -> None:
    for query, offered in [
        ("nowhere", "`sessiondb search '*nowhere*'` finds it inside of words"),
        ("nowhere never", "'nowhere OR never' finds either"),
    ]:
        assert offered in sessiondb("search", query).err
    for query in ('"nowhere"', "nowhere OR never", "no-where"):
        assert "finds" not in sessiondb("search", query).err


def test_words_need_no_quotes(sessiondb: Run, story: Story) -> None:
    quoted = sessiondb("search", "the off-by-one", "--json")
    assert len(quoted.json["hits"]) == 1
    assert sessiondb("search", "the", "off-by-one", "--json").out == quoted.out
    assert sessiondb("search").code == 2


def test_a_hit_is_shown_with_the_conversation_around_it(
    sessiondb: Run, store: Store
) -> None:
    session = store.create_session(title="Long")
    for number in range(6):
        store.append(session, user(f"question {number}"))
        store.append(session, assistant(f"answer {number}"))

    ran = sessiondb("search", '"answer 3"', "--context", "1")
    assert "answer 3" in ran.out
    assert "question 3" in ran.out
    assert "question 4" in ran.out
    assert "answer 4" not in ran.out
    assert "answer 2" not in ran.out
    (hit,) = sessiondb("search", '"answer 3"', "--context", "1", "--json").json["hits"]
    assert [message["seq"] for message in hit["context"]] == [7, 8, 9]
    (hit,) = sessiondb("search", '"answer 3"', "--json").json["hits"]
    assert "context" not in hit


def test_a_title_that_matches_alone_has_no_context_but_its_first_message(
    sessiondb: Run, store: Store
) -> None:
    store.append(store.create_session(title="Wombats"), user("else"))
    ran = sessiondb("search", "wombats", "--context", "0")
    assert ran.code == 0, ran.err
    assert "Wombats" in ran.out


def test_the_hits_of_each_session_are_counted_most_first(
    sessiondb: Run, store: Store
) -> None:
    once, often = (
        store.create_session(title="Once"),
        store.create_session(title="Often"),
    )
    for _ in range(3):
        store.append(often, user("wombat"))
    store.append(once, user("wombat"))

    ran = sessiondb("search", "wombat", "--count", "--json")
    counted = [(item["session"]["id"], item["hits"]) for item in ran.json["sessions"]]
    assert counted == [(often.id, 3), (once.id, 1)]
    assert (
        len(sessiondb("search", "wombat", "--count", "--limit", "1").out.split("\n"))
        == 2
    )
    nothing = sessiondb("search", "quokka", "--count")
    assert (nothing.code, nothing.out) == (0, "")
    assert "nothing found" in nothing.err
    assert sessiondb("search", "wombat", "--count", "--context", "1").code == 2


def test_a_search_inside_of_words_says_how_far_back_it_looked(
    sessiondb: Run, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scanning, "SCANNED_BYTES", 1_000)
    session = store.create_session(title="Long")
    store.append(session, user("data/villes.csv"))
    for number in range(3):
        store.append(session, user(f"{number} {'x' * 500}"))

    ran = sessiondb("search", "*ille*", "--json")
    assert (ran.json["hits"], ran.json["searched_to"] is None) == ([], False)
    ran = sessiondb("search", "*ille*")
    assert ran.out == ""
    assert ran.err.startswith("nothing found; searched back to 20")
    cursor = re.search(r"--cursor (\S+) '\*ille\*'`|--cursor (\S+)`", ran.err)
    assert cursor is not None
    (line,) = sessiondb("search", "*ille*", "--cursor", cursor[1] or cursor[2]).lines
    assert line[-1] == "data/v‹ille›s.csv"
    ((_, number, *_),) = sessiondb("search", "*ille*", "--count").lines
    assert number == "1"
