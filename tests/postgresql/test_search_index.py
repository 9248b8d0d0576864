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
from sessiondb.engine.postgresql.connection import PostgreSQLConnection  # noqa: E402
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
    assert entry == (0, True, "'ete':1 'd':2 'ete':3 'b':5 '\ue000old'")


def test_words_that_another_program_wrote_beside_a_text_do_no_harm(
    store: Store,
) -> None:
    talk(store, "tea", "please")
    query_rows(store, "UPDATE part SET words = 'it''s \"a\\' RETURNING 1")
    with closing(store._core.target.connect()) as connection:
        POSTGRESQL.search.rebuild(connection)
        assert list(POSTGRESQL.search.damaged(connection)) == []
    words = query_rows(store, "SELECT CAST(words AS TEXT) FROM part_search")
    assert words == [("'a' 'it' 'please':1 's'",)]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.text("abc eé7字\u0301 ", max_size=12), max_size=3),
    st.sampled_from((1, 90, 300, 9_000)),
    st.sampled_from((None, "\ue000old", "\ue000a a \ue000字")),
)
def test_a_vector_that_the_server_puts_together_is_that_of_a_large_part(
    shared: Store, texts: list[str], times: int, beside: str | None
) -> None:
    many = [f"{text} " * times for text in texts]
    entries = entries_of(many, beside)
    # Too many characters to be tried as one vector, but no more words.
    as_large = entries_of([*many, " " * 100_000], beside)
    assert [entry[:2] for entry in entries] == [entry[:2] for entry in as_large]

    ((is_equal,),) = query_rows(
        shared,
        "SELECT "
        + " = ".join(
            "CAST('{}' AS tsvector)".format(entry.words.replace("'", "''"))
            for (entry,) in (entries, as_large)
        ),
    )
    assert is_equal


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
        {"_WINDOW": 1, "_MOST_PLACES": 0, "_MOST_TIMES": 0, "_MOST_SESSIONS": 0},
        {"_WINDOW": 1, "_PLACES_AT_ONCE": 3},
        {"_WINDOW": 1, "_MOST_PLACES": 0, "_MOST_TIMES": 0, "_PLACES_AT_ONCE": 3},
        {"_WINDOW": 7, "_MOST_WINDOWS": 1_000, "_MOST_MESSAGES": 0},
        {"_WINDOW": 30, "_MOST_WINDOWS": 1, "_MOST_PLACES": 0, "_MOST_TIMES": 0},
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


def part_of(plan: str, name: str) -> str:
    """Return the plan of a query of WITH."""
    return plan.partition(f"CTE {name}\n")[2].partition("\n  CTE ")[0]


BOUNDS = {"window": 3, "reach": 100, "enough": 1, "many": 9, "is_far": 1, "last": 0,
          "before": 1 << 62}  # fmt: skip


@pytest.mark.parametrize("is_once", [False, True])
@pytest.mark.parametrize("order", ["newest", "rank"])
def test_a_walk_ends_with_its_limit_and_a_probe_reads_the_index(
    long: Store, is_once: bool, order: str
) -> None:
    match = read_match(search_query("often").match or "")
    params = {**BOUNDS, "words": match.words, "in_chunk": match.in_chunk}
    shape = MatchShape(("s.agent = 'x'",), (), order, is_once, True, 8)
    lines = plan(long, match_statement(shape), params)
    assert "Gather" not in lines
    for walk in ("newest", "walked"):
        walked = part_of(lines, walk)
        assert "Index Scan Backward using pk_part_search" in walked
        assert "Sort" not in walked
        assert "ix_part_search" not in walked
    without_key = "ALTER TABLE part_search DROP CONSTRAINT pk_part_search"
    probed = part_of(plan(long, match_statement(shape), params, without_key), "probe")
    assert "Bitmap Index Scan on ix_part_search_words" in probed
    assert "Bitmap Index Scan on ix_part_search_chunks" in probed


@pytest.fixture(scope="module")
def many(server: Server) -> Iterator[Store]:
    """Twenty thousand sessions and prompts, of which the server knows how many."""
    with opened(server) as store:
        for sql in (
            "INSERT INTO route SELECT 's' || n, n FROM generate_series(1, 20000) AS n",
            "INSERT INTO session (family, id, root_id, slug, title, source, "
            "message_count, time_created, time_updated) SELECT n, 's' || n, 's' || n, "
            "'s' || n, 'café ' || n, 'x', 1, n, n FROM generate_series(1, 20000) AS n",
            "INSERT INTO message (family, session_id, seq, id, role, time_created) "
            "SELECT family, id, 1, id, 'user', 1 FROM session",
            "INSERT INTO part (family, session_id, seq, idx, id, type, text, indexed, "
            "time_created, time_updated) "
            "SELECT family, id, 1, 0, id, 'text', 'often', 1, 1, 1 FROM session",
            "INSERT INTO prompt (id, text, source, time_created) "
            "SELECT 'p' || n, 'café ' || n, 'x', n FROM generate_series(1, 20000) AS n",
        ):
            query_rows(store, sql)
        with closing(store._core.target.connect()) as connection:
            POSTGRESQL.search.rebuild(connection)
            connection.execute("ANALYZE")
        yield store


@pytest.mark.parametrize("query", ["nowhere", "20000", "caf5048b", "字符", "often"])
@pytest.mark.parametrize("order", ["newest", "rank"])
def test_no_statement_of_a_search_reads_all_rows_of_a_table(
    many: Store, query: str, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[tuple[str, Any]] = []
    execute = PostgreSQLConnection.execute

    def noted(self: PostgreSQLConnection, sql: str, params: Any = (), /) -> Any:
        ran.append((sql, params))
        return execute(self, sql, params)

    with monkeypatch.context() as patched:
        patched.setattr(PostgreSQLConnection, "execute", noted)
        found = many.search(query, order=order)
        many.prompts(query, project=ALL)
    assert len(found.items) == {"20000": 1, "often": 20}.get(query, 0)

    selects = [(sql, params) for sql, params in ran if params]
    # The last one is that of the prompts.
    assert len(selects) <= {"20000": 6, "often": 4}.get(query, 3)
    with closing(many._core.target.connect()) as connection:
        for sql, params in selects:
            lines = [
                line
                for (line,) in connection.execute(f"EXPLAIN (ANALYZE) {sql}", params)
            ]
            for line in lines:
                read = re.search("Seq Scan on (session|message|part|prompt)", line)
                assert read is None or "never executed" in line, "\n".join(lines)


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


class InterruptedConnection:
    """A connection behind whose back sessions go: one before each statement."""

    def __init__(self, store: Store) -> None:
        self._connection: Any = store._core.target.connect()
        self._store = store

    def execute(self, sql: str, parameters: Any = ()) -> Any:
        (session, *_) = self._store.sessions(limit=1)
        self._store.delete(session.id)
        self._store.reap()
        return self._connection.execute(sql, parameters)

    def close(self) -> None:
        self._connection.close()


def test_what_goes_while_the_entries_are_compared_is_no_defect(store: Store) -> None:
    for number in range(12):
        talk(store, f"tea {number}", "red", "green")
    with closing(InterruptedConnection(store)) as connection:
        assert list(POSTGRESQL.search.damaged(connection)) == []


@pytest.mark.parametrize("name", ["session_search", "prompt_search"])
def test_entries_of_titles_and_prompts_are_made_again(store: Store, name: str) -> None:
    talk(store, "café", "red")
    store.add_prompt("café", directory="/")
    search = POSTGRESQL.search
    table, column = {
        "session_search": ("session", "title"),
        "prompt_search": ("prompt", "text"),
    }[name]
    with closing(store._core.target.connect()) as connection:
        for change in (
            f"DELETE FROM {name}",
            f"UPDATE {name} SET words = CAST('blue' AS tsvector)",
            f"UPDATE {table} SET {column} = 'blue'",
        ):
            assert list(search.damaged(connection)) == []
            connection.execute(change)
            assert list(search.damaged(connection)) == [name], change
            search.rebuild(connection, search.damaged(connection))


def test_a_title_is_found_as_it_is_now(store: Store) -> None:
    named = store.open_session("caf5048b-1c2d", source="claude", title="first")
    store.append(named, user("hello"))
    talk(store, "other", "hello")
    store.set_title(named, "second")
    for query, found in {
        "first": [], "second": ["second"], "caf5048b": ["second"], "other": ["other"],
    }.items():  # fmt: skip
        assert titles(store.search(query)) == found, query


def test_a_prompt_with_more_words_than_a_vector_holds_is_found(store: Store) -> None:
    words = " ".join(f"{number:07x}word" for number in range(60_000))
    store.add_prompt(words, directory="/")
    store.add_prompt("small", directory="/")
    assert query_rows(
        store, "SELECT count(*) FROM prompt_search WHERE words IS NULL"
    ) == [(1,)]
    for query, lengths in {"0000007word": [len(words)], "small": [5], "no": []}.items():
        found = store.prompts(query, project=ALL)
        assert [len(prompt.text) for prompt in found] == lengths


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


#: Pieces of texts and of queries, in which the engines might differ. An emoji stands
#: alone: the words of a file take one that is newer than their Unicode for a letter.
PIECES = (
    "Éa",
    "eA",
    "a",
    "fooBar",
    "bar",
    "字符",
    "符",
    " 🧵 ",
    "x_y",
    "x-y",
    "a\\b",
    "ß",
)
SPACES = (" ", " ", "-", ", ", "_", "")
spelled = st.lists(
    st.tuples(st.sampled_from(PIECES), st.sampled_from(SPACES)), min_size=1, max_size=4
).map(lambda pairs: "".join([piece + space for piece, space in pairs]))
asked = st.one_of(
    spelled,
    spelled.map(lambda text: f'"{text}"'),
    spelled.map(lambda text: f"*{text}*"),
    st.tuples(spelled, spelled).map(lambda two: f"{two[0]} -{two[1]}"),
    st.tuples(spelled, spelled).map(lambda two: f"{two[0]} OR {two[1]}"),
)


@pytest.fixture(scope="module")
def pair(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A server and a file for examples that remove their sessions."""
    path: Path = tmp_path_factory.mktemp("pair") / "sessions.db"
    with opened(server) as served, Store.open(path, durability="normal") as filed:
        yield served, filed


@settings(max_examples=20, deadline=None)
@given(
    texts=st.lists(spelled, min_size=1, max_size=4), queries=st.lists(asked, max_size=6)
)
def test_both_engines_find_the_same_texts_titles_and_prompts(
    pair: Any, texts: list[str], queries: list[str]
) -> None:
    found = []
    for store in pair:
        made = [talk(store, f"{said} title", said, "and") for said in texts]
        made += [talk(store, said, "nothing") for said in texts]
        for said in texts:
            store.add_prompt(said, directory="/")
        answers: list[Any] = []
        for query in queries:
            try:
                newest = store.search(query)
                ranked = store.search(query, order="rank", all_hits=True)
                prompts = store.prompts(query, project=ALL)
            except InvalidInputError:
                answers.append(None)
                continue
            answers.append(
                (
                    [(hit.session.title, hit.seq) for hit in newest],
                    sorted((hit.session.title, hit.seq) for hit in ranked),
                    [prompt.text for prompt in prompts],
                )
            )
        found.append(answers)
        for session in made:
            store.delete(session)
        query_rows(store, "DELETE FROM prompt")
    assert found[0] == found[1]


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
