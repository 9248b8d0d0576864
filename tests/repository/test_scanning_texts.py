"""What is inside of words: candidates of the index, or a bounded scan, newest first."""

from __future__ import annotations

from typing import Any

import pytest
from backends import Backend
from hand_clock import Clock

from sessiondb import ALL, Store, assistant, text, tool, user
from sessiondb.errors import InvalidInputError
from sessiondb.model import Hit, Page
from sessiondb.repository import scanning


def titles(found: Page[Hit]) -> list[str]:
    return [hit.session.title for hit in found]


def talk(store: Store, title: str, *said: Any, **fields: Any) -> str:
    session = store.create_session(title=title, **fields).id
    for item in said:
        store.append(session, user(item) if isinstance(item, str) else item)
    return session


@pytest.fixture
def towns(store: Store) -> Store:
    """Seven sessions, of which every second has the town; the first is the oldest."""
    for number in range(7):
        said = "nothing" if number % 2 else "les VILLES, Orléans"
        talk(store, f"t{number}", "x" * 100 + " " + said)
    return store


@pytest.mark.parametrize("order", ["newest", "time", "rank"])
def test_what_is_inside_of_a_word_is_found_in_every_order(
    towns: Store, order: str
) -> None:
    assert titles(towns.search("illes")) == []
    for query in ("*illes*", "*ILLES", "*rlean*", '*"lles, o"*', "*les* *lles*"):
        page = towns.search(query, order=order)
        assert titles(page) == ["t6", "t4", "t2", "t0"], query
        assert page.next_cursor is None
        assert page.searched_to is None
    for query in ("*illet*", "vill*es", '*"lles o"*'):
        assert titles(towns.search(query, order=order)) == [], query
    (first, *_) = towns.search("*rlean* OR *illes*")
    assert "V‹ILLES›, O‹rléan›s" in first.snippet


@pytest.mark.parametrize("all_hits", [False, True])
def test_a_page_ends_after_so_many_bytes_and_the_next_one_continues(
    towns: Store, all_hits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scanning, "SCANNED_BYTES", 100)
    session = towns.create_session(title="later")
    pages = []
    cursor = None
    while True:
        page = towns.search("*illes*", cursor=cursor, all_hits=all_hits)
        pages.append(titles(page))
        cursor = page.next_cursor
        if cursor is None:
            break
        # Later messages neither move nor repeat anything.
        towns.append(session, user("villes again"))
        assert len(cursor) <= 48
        assert page.searched_to is not None
    assert pages == [["t6"], [], ["t4"], [], ["t2"], [], ["t0"], []]


def test_a_word_beside_it_makes_the_index_name_the_candidates(
    towns: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scanning, "SCANNED_BYTES", 1)
    for query in ("orleans *illes*", "*VILLES, orl*", "les *illes* -nowhere"):
        page = towns.search(query, order="rank", all_hits=True)
        assert sorted(titles(page)) == ["t0", "t2", "t4", "t6"], query
        assert page.next_cursor is None


@pytest.mark.needs("has_our_clock", "the times are the server's")
def test_a_scan_has_the_filters_of_every_search(store: Store, set_clock: Clock) -> None:
    talk(store, "old", "a thousand villes", agent="plan")
    set_clock.now += 100
    since = set_clock.now
    call = tool("edit", {"path": "villes.csv"}, output="done")
    talk(store, "call", "else", assistant(text("here"), call))
    talk(store, "les villes", "else")
    store.delete(talk(store, "gone", "villes"))
    fork = store.fork(talk(store, "forked", "devilles"), title="fork")
    found = {
        "all": {}, "agent": {"agent": "plan"}, "since": {"since": since},
        "role": {"role": "user"}, "tool": {"tool": "edit"}, "calls": {"role": "tool"},
        "file": {"file": "villes.csv"},
    }  # fmt: skip
    assert {name: titles(store.search("*ille*", **how)) for name, how in found.items()} == {
        "all": ["forked", "call", "old", "les villes"], "agent": ["old"],
        "since": ["forked", "call", "les villes"], "role": ["forked", "old"], "tool": ["call"],
        "calls": ["call"], "file": ["call"],
    }  # fmt: skip
    assert len(store.search("*ille*", all_hits=True)) == 4
    store.append(fork, user("en ville"))
    assert titles(store.search("*ville*", limit=1)) == ["fork"]


def test_words_in_several_parts_of_a_message_are_together(store: Store) -> None:
    call = tool("bash", {"command": "make bread"}, output="kneaded")
    talk(store, "answer", assistant(text("here is dough"), call))
    talk(store, "prompt", user(text("some dough"), text("and bread")))
    talk(store, "apart", "dough", "bread")
    for query in (
        "dough bread",
        "*oug* *rea*",
        "dough *read*",
        "bread (dough OR never)",
    ):
        assert titles(store.search(query)) == ["prompt", "answer"], query
        assert sorted(titles(store.search(query, order="rank"))) == ["answer", "prompt"]
        assert len(store.search(query, all_hits=True)) == 2
    assert titles(store.search("dough -bread")) == ["apart"]
    assert titles(store.search("dough -*read*")) == ["apart"]
    assert titles(store.search("dough bread -kneaded")) == ["prompt"]
    # Of a call the words are in the call.
    assert titles(store.search("bread kneaded", tool="bash")) == ["answer"]
    assert titles(store.search("bread dough", tool="bash")) == []
    assert titles(store.search("bread -dough", role="tool")) == ["answer"]


def test_what_one_part_has_comes_first_by_rank(store: Store) -> None:
    talk(store, "one part", "dough " + "padding " * 50 + "bread")
    talk(store, "two parts", user(text("dough"), text("bread")))
    assert titles(store.search("dough bread", order="rank")) == [
        "one part",
        "two parts",
    ]
    first = store.search("dough bread", order="rank", limit=1)
    later = store.search("dough bread", order="rank", cursor=first.next_cursor)
    assert titles(first) + titles(later) == ["one part", "two parts"]


def test_titles_and_prompts_are_found_by_what_is_inside_of_their_words(
    store: Store,
) -> None:
    for number in range(3):
        talk(store, f"Surveillance {number}", "else")
    first = store.search("*veill*", limit=2)
    assert titles(first) == ["Surveillance 2", "Surveillance 1"]
    assert "Sur‹veill›ance" in first.items[0].snippet
    later = store.search("*veill*", cursor=first.next_cursor)
    assert titles(later) == ["Surveillance 0"]
    assert later.next_cursor is None
    store.add_prompt("under surveillance")
    assert len(store.prompts("*veill*", project=ALL)) == 1


@pytest.mark.parametrize("query", ["*", "**", "-*x*", '*""*', "*x* OR", "* *"])
def test_a_star_without_a_text_is_refused(store: Store, query: str) -> None:
    with pytest.raises(InvalidInputError):
        store.search(query)


def test_a_read_only_database_is_scanned(backend: Backend, towns: Store) -> None:
    place = backend.place_of(towns)
    towns.close()
    with Store.open(place, read_only=True) as store:
        assert titles(store.search("*illes*")) == ["t6", "t4", "t2", "t0"]
