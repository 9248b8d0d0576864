"""The search index of a server: what a vector cannot say, and the plans of a search."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from postgresql_server import Server

from sessiondb import ALL, Store, assistant, text, tool, user
from sessiondb.errors import InvalidInputError
from sessiondb.model import Hit, MessageDraft, Page

psycopg = pytest.importorskip("psycopg")

from sessiondb.engine.postgresql import search_walk  # noqa: E402
from sessiondb.engine.postgresql.engine import POSTGRESQL  # noqa: E402
from sessiondb.engine.postgresql.search_entries import entries_of  # noqa: E402
from sessiondb.engine.postgresql.search_query import (  # noqa: E402
    FOLDED_TO_ASCII,
    read_match,
    read_possible,
    search_query,
)
from sessiondb.engine.postgresql.search_statements import (  # noqa: E402
    MatchShape,
    match_statement,
    newest_statement,
    probe_statement,
    walk_statement,
)
from sessiondb.engine.search_comparison import fold, is_meant  # noqa: E402

pytestmark = pytest.mark.slow
_names = (f"search{number}" for number in count())


def opened(server: Server) -> Store:
    name = next(_names)
    assert server.run(f"CREATE DATABASE {name}") == ""
    return Store.open(server.url(name), durability="normal")


@pytest.fixture(scope="module")
def shared(server: Server) -> Iterator[Store]:
    """A store for examples that remove their sessions."""
    with opened(server) as store:
        yield store


@pytest.fixture
def store(server: Server) -> Iterator[Store]:
    with opened(server) as store:
        yield store


def talk(store: Store, title: str, *messages: MessageDraft | str) -> str:
    with store.effects() as fx:
        handle = fx.create_session(title=title)
        for message in messages:
            fx.append(handle, user(message) if isinstance(message, str) else message)
    return handle.id


def titles(found: Page[Hit]) -> list[str]:
    return [hit.session.title for hit in found]


def query_rows(store: Store, sql: str) -> list[tuple[Any, ...]]:
    with closing(store._core.target.connect()) as connection:
        rows: list[tuple[Any, ...]] = connection.execute(sql).fetchall()
        return rows


# -- vectors ---------------------------------------------------------------------


def test_words_have_places_and_texts_of_a_part_are_apart() -> None:
    (entry,) = entries_of(("Été d'été", "b", None), "\ue000old")
    assert entry == (0, True, "'ete':1,3 'd':2 'b':5 '\ue000old'")


def test_a_part_with_more_words_than_a_vector_holds_has_chunks(store: Store) -> None:
    words = [f"{number:07x}word" for number in range(120_000)]
    talk(store, "large", " ".join(words))
    talk(store, "small", f"{words[0]} {words[1]}")
    ((chunks,),) = query_rows(store, "SELECT max(chunk) FROM part_search")
    assert chunks > 1

    first, second, last = words[0], words[1], words[-1]
    for query, expected in {
        last: ["large"],
        f"{first} {last}": ["large"],
        f"{first} {second}": ["small", "large"],
        f'"{first} {second}"': ["small", "large"],
        f'"{second} {first}"': [],
        f"{first} -{last}": ["small"],
        f"{last} OR nowhere": ["large"],
        f"{last[:-1]}*": ["large"],
        f"{last} nowhere": [],
        f"*{last[1:]}*": ["large"],
    }.items():
        for order in ("newest", "rank"):
            page = store.search(query, order=order)
            assert sorted(titles(page)) == sorted(expected), query
        assert len(store.search(query, all_hits=True)) == len(expected), query
    with closing(store._core.target.connect()) as connection:
        assert list(POSTGRESQL.search.damaged(connection)) == []
    store.delete(store.search(last).items[0].session.id)
    store.reap()
    assert query_rows(store, "SELECT max(chunk) FROM part_search") == [(0,)]


@pytest.mark.parametrize("words", ["far " * 300, " ".join(map(str, range(17_000)))])
def test_words_in_a_row_are_found_behind_the_positions_of_a_vector(
    shared: Store, words: str
) -> None:
    made = talk(shared, "x", f"{words} red herring {words} green")
    for query, is_found in {
        '"red herring"': True,
        '"herring red"': False,
        "red-herring": False,
        "red -herring": False,
    }.items():
        assert bool(shared.search(query).items) == is_found, query
    shared.delete(made)


def test_words_of_any_length_are_told_apart(shared: Store) -> None:
    long = "x" * 5_000
    made = [talk(shared, "long", f"{long}a"), talk(shared, "other", f"{long}b")]
    assert titles(shared.search(f"{long}a")) == ["long"]
    assert titles(shared.search(f"{long}*")) == ["other", "long"]
    assert titles(shared.search("x" * 4_999)) == []
    for session in made:
        shared.delete(session)


@pytest.mark.parametrize("query", ["a " * 5000, " ".join(map(str, range(5000)))])
def test_a_query_of_many_words_is_answered(shared: Store, query: str) -> None:
    made = talk(shared, "x", query)
    assert titles(shared.search(query)) == ["x"]
    shared.delete(made)


# -- the plans of a search -------------------------------------------------------


@pytest.fixture(scope="module")
def long(server: Server) -> Iterator[Store]:
    """Ten sessions of twenty prompts with words of all frequencies."""
    with opened(server) as store:
        for number in range(10):
            said = []
            for place in range(20):
                words = ["often"]
                words += ["seldom"] * (place == 10)
                words += ["foo-bar" if place % 4 else "foo, bar"] * (place % 2)
                words += ["once"] * (number == 4 and place == 3)
                words += ["burst"] * (number == 7)
                said.append(" ".join(words))
            talk(store, f"s{number}", *said)
        talk(store, "several", assistant(text("alpha often"), text("omega often")))
        # A server does so by itself, some time after many rows were written.
        query_rows(store, "ANALYZE")
        yield store


QUERIES = ("often", "seldom", "once", "burst", "often seldom", "often -seldom", "foo-bar",
           '"foo bar"', "once OR seldom", "alpha omega", "nowhere", "often nowhere", "*urst*",
           "sel* often", "often -(alpha omega)")  # fmt: skip


def everything(store: Store, **how: Any) -> dict[str, Any]:
    answers: dict[str, Any] = {}
    for query in QUERIES:
        for all_hits in (False, True):
            hits: list[Any] = []
            cursor = None
            while True:
                page = store.search(
                    query, all_hits=all_hits, limit=7, cursor=cursor, **how
                )
                hits += [(hit.session.title, hit.seq) for hit in page]
                cursor = page.next_cursor
                if cursor is None:
                    break
            answers[f"{query} {all_hits}"] = hits
    return answers


@pytest.mark.parametrize(
    "limits",
    [
        {"_WINDOW": 1, "_MOST_PLACES": 0, "_MOST_SESSIONS": 0},
        {"_WINDOW": 1, "_PLACES_AT_ONCE": 3},
        {"_WINDOW": 7, "_MOST_WINDOWS": 1_000, "_MOST_MESSAGES": 0},
        {"_WINDOW": 30, "_MOST_WINDOWS": 0, "_MOST_PLACES": 0},
        {"_WINDOW": 10_000},
    ],
)
@pytest.mark.parametrize("how", [{}, {"title": "s7"}, {"order": "time"}])
def test_every_plan_finds_the_same(
    long: Store,
    limits: dict[str, int],
    how: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expected = everything(long, **how)
    assert expected["often True"]
    for name, limit in limits.items():
        monkeypatch.setattr(search_walk, name, limit)
    assert everything(long, **how) == expected


def plan(store: Store, statement: Any, params: dict[str, Any], *before: str) -> str:
    """Return the plan of a statement, as in a database that is not tiny."""
    with closing(store._core.target.connect()) as connection:
        connection.execute("BEGIN")
        for sql in ("SET LOCAL enable_seqscan = off", *before):
            connection.execute(sql)
        sql = f"EXPLAIN {statement.text_on(POSTGRESQL)}"
        return "\n".join(line for (line,) in connection.execute(sql, params))


@pytest.mark.parametrize("is_once", [False, True])
def test_a_walk_ends_with_its_limit_and_a_probe_reads_the_index(
    long: Store, is_once: bool
) -> None:
    match = read_match(search_query("often").match or "")
    params = {"words": match.words, "in_chunk": match.in_chunk, "many": 9,
              "window": 3, "places": "[1, 2]"}  # fmt: skip
    shape = MatchShape(("s.agent = 'x'",), (), "newest", is_once, 8)
    for walk in (walk_statement, newest_statement):
        lines = plan(long, walk(shape), params)
        assert "Index Scan Backward using pk_part_search" in lines
        assert "Sort" not in lines
        assert "ix_part_search" not in lines
    nowhere = {**params, "words": "'nowhere'", "in_chunk": "'nowhere'"}
    without_key = "ALTER TABLE part_search DROP CONSTRAINT pk_part_search"
    probe = plan(long, probe_statement(()), nowhere, without_key)
    assert "Bitmap Index Scan on ix_part_search_words" in probe
    looked_up = plan(long, match_statement(shape), params)
    assert "Index Scan using pk_part on part p" in looked_up


# -- texts that may be meant -----------------------------------------------------


@settings(max_examples=300, deadline=None)
@given(
    query=st.text('aB.-"* \\é字=', min_size=1, max_size=8),
    said=st.text('aB.-" \\\né\u0301≠字', max_size=12),
)
def test_a_text_that_is_meant_is_one_that_the_server_passes_on(
    query: str, said: str
) -> None:
    try:
        meant = search_query(query)
    except InvalidInputError:
        return
    comparison = (
        meant.scanned or meant.comparison or read_match(meant.match or "").comparison
    )
    if is_meant(comparison, None, said):
        possible = read_possible(comparison)
        # As the server folds it, where only ASCII has two cases.
        small = said.encode().lower().decode()
        assert any(each in small for each in possible.texts) or (
            not said.isascii() and re.search(possible.letters, said, re.DOTALL)
        )


def test_every_letter_that_is_folded_to_ascii_is_known() -> None:
    folded = re.compile(FOLDED_TO_ASCII)
    for number in range(0x80, sys.maxunicode + 1):
        letter = chr(number)
        if any(each.isascii() for each in fold(letter)) or not fold(letter):
            assert folded.fullmatch(letter), hex(number)


# -- upkeep ----------------------------------------------------------------------


def test_entries_that_differ_from_their_texts_are_found_and_made_again(
    store: Store,
) -> None:
    talk(store, "x", "red", "green")
    search = POSTGRESQL.search
    with closing(store._core.target.connect()) as connection:
        for change in (
            "DELETE FROM part_search",
            "UPDATE part_search SET words = CAST('blue' AS tsvector)",
            "UPDATE part SET text = 'blue'",
            "UPDATE part SET indexed = 0",
        ):
            assert list(search.damaged(connection)) == []
            connection.execute(change)
            assert list(search.damaged(connection)) == ["part_search"], change
            search.rebuild(connection, search.damaged(connection))
            counts = [
                connection.execute(sql).fetchone()[0]
                for sql in (search.count_missing, search.count_orphans)
            ]
            assert counts == [0, 0]
        search.optimize(connection)


def test_what_is_removed_takes_its_entries_along(store: Store) -> None:
    made = talk(store, "x", "red", assistant("blue", tool("t", {"a": 1}, output="c")))
    store.truncate(made, after=1)
    assert query_rows(store, "SELECT count(*) FROM part_search") == [(1,)]
    store.delete(made)
    assert titles(store.search("red")) == []
    store.reap()
    assert query_rows(store, "SELECT count(*) FROM part_search") == [(0,)]


# -- both engines ----------------------------------------------------------------

SAID = ("Orléans, old VILLES", "call oldString with parseHTMLDoc", "我们的字符集测试完成", "done 🧵🎉 now",
        "see lib/csv.mjs and foo-bar", "foo, bar; no such thing", "red green blue", "blue green red",
        "C:\\new and a_b", "x" * 2_000 + " villes", "padding " * 400 + "late needle")  # fmt: skip
ASKED = ("old", "villes", "*ille*", "html", "字符", "🧵", "lib/csv.mjs", "foo-bar", '"foo bar"',
         "green red", '"green red"', "red -blue", "green OR needle", "C:\\new", "a_b", "orleans",
         "pad*", "late needle", "title", "*itl*", "old -html", "no AND such", "caf5048b")  # fmt: skip


@pytest.fixture(scope="module")
def alike(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The same sessions in a file and on a server."""
    path: Path = tmp_path_factory.mktemp("alike") / "sessions.db"
    with opened(server) as served, Store.open(path, durability="normal") as filed:
        for store in (served, filed):
            for number, said in enumerate(SAID * 2):
                call = tool("edit", {"path": said}, output=said[::-1])
                messages = [user(said), assistant(text(f"number {number}"), call)]
                talk(store, f"{number} title {said[:9]}", *messages[number % 2 :])
                store.add_prompt(said, directory="/")
            named = store.open_session("caf5048b-1c2d", source="claude", title="own")
            store.append(named, user("hello"))
        yield served, filed


@pytest.mark.parametrize("query", ASKED)
@pytest.mark.parametrize(
    "how", [{}, {"role": "user"}, {"tool": "edit"}, {"title": "1"}, {"all_hits": True}]
)
def test_both_engines_find_the_same(
    alike: Any, query: str, how: dict[str, Any]
) -> None:
    answers = []
    for store in alike:
        newest: list[Any] = []
        cursor = None
        while True:
            page = store.search(query, limit=3, cursor=cursor, **how)
            newest += [(hit.session.title, hit.seq) for hit in page]
            cursor = page.next_cursor
            if cursor is None:
                break
        ranked = store.search(query, order="rank", limit=100, **how)
        prompts = [prompt.text for prompt in store.prompts(query, project=ALL)]
        answers.append((newest, sorted(titles(ranked)), prompts))
    assert answers[0] == answers[1]


def test_the_snippet_of_a_hit_shows_where_it_is(alike: Any) -> None:
    served, _ = alike
    for query, shown in {
        "villes": "‹VILLES›", "html": "parse‹HTML›Doc", "字符": "‹字符›", "foo-bar": "‹foo-bar›",
        '"foo bar"': "‹foo, bar›", "ORLEANS": "‹Orléans›", "need*": "‹need›le",
    }.items():  # fmt: skip
        assert any(shown in hit.snippet for hit in served.search(query)), query
