"""Search: words and nothing but words, one hit per session, always consistent with the rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from backends import Backend
from hand_clock import Clock
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sessiondb import (
    ALL,
    Store,
    assistant,
    reasoning,
    system,
    text,
    tool,
    tool_result,
    user,
)
from sessiondb.errors import InvalidInputError
from sessiondb.maintenance import check
from sessiondb.model import Hit, MessageDraft, Page, PartDraft
from sessiondb.repository import search
from sessiondb.repository.hits import MARKS
from sessiondb.repository.sessions import encode_cursor


def titles(found: Page[Hit]) -> list[str]:
    return [hit.session.title for hit in found]


def talk(store: Store, title: str, *messages: MessageDraft | str, **fields: Any) -> str:
    with store.effects() as fx:
        handle = fx.create_session(title=title, **fields)
        for message in messages:
            fx.append(handle, user(message) if isinstance(message, str) else message)
    return handle.id


def all_pages(store: Store, query: str, **how: Any) -> list[Hit]:
    found: list[Hit] = []
    cursor = None
    while True:
        page = store.search(query, cursor=cursor, **how)
        found += page
        cursor = page.next_cursor
        if cursor is None:
            return found


@pytest.fixture(scope="module")
def shared(backend: Backend) -> Iterator[Store]:
    """A store for many examples, each of which removes its sessions."""
    with Store.open(backend.fresh(), durability="normal") as store:
        yield store


SAID = {
    "dashed": "a foo-bar thing", "apart": "foo, bar", "language": "written in C++ mostly",
    "plain": "written in C mostly", "logic": "this AND that", "column": "the col:x is set",
    "accents": "Ünïcödé Ünïcode.py", "script": "日本語のテキスト", "option": "try --no-such now",
    "face": "done 🎉 now", "path": "see lib/csv.mjs", "nothing": "bar foo no such",
}  # fmt: skip


@pytest.fixture(scope="module")
def various(
    backend: Backend, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Store]:
    folder = tmp_path_factory.mktemp("various")
    with Store.open(backend.fresh(), durability="normal") as store:
        for title, said in SAID.items():
            talk(store, title, said)
            store.add_prompt(said, directory=str(folder))
        yield store


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("foo-bar", ["dashed"]),
        ("FOO-B", []),
        ("foo-ba*", ["dashed"]),
        ("foo bar", ["nothing", "apart", "dashed"]),
        ("C++", ["language"]),
        ("C", ["plain", "language"]),
        ("col:x", ["column"]),
        ("text:x", []),
        ("text : this", []),
        ("^this", []),
        ("tha*", ["logic"]),
        ("t*s", []),
        ("ünïcode", ["accents"]),
        ("UNICODE.PY", ["accents"]),
        ("日本", ["script"]),
        ("語のテ", ["script"]),
        ("ト", ["script"]),
        ("本日", []),
        ("日本 テキスト", ["script"]),
        ("日本*", ["script"]),
        ("🎉", ["face"]),
        ('"🎉 now"', ["face"]),
        ('"now 🎉"', []),
        ("日本語のテキスト", ["script"]),
        ("this\0that", ["logic"]),
        ("--no-such", ["option"]),
        ("no such", ["nothing", "option"]),
        ("now 🎉", ["face"]),
        ("now", ["face", "option"]),
        ("csv.mjs", ["path"]),
        ("lib/csv.mjs", ["path"]),
    ],
)
def test_a_word_with_symbols_is_found_only_where_it_occurs_literally(
    various: Store, query: str, expected: list[str]
) -> None:
    assert titles(various.search(query)) == expected
    assert titles(various.search(query, order="time")) == expected
    said = [item.text for item in various.prompts(query, project=ALL)]
    assert said == [SAID[title] for title in expected]


def test_symbols_in_titles_and_in_the_input_of_calls_are_compared_literally(
    store: Store,
) -> None:
    call = tool("bash", {"command": "cd C:\\new && ls Größe.txt"}, output="a")
    talk(store, "foo.py or foo,py", assistant(call))
    for query in ("foo.py", "foo,py", "C:\\new", "GRÖßE.txt"):
        assert titles(store.search(query)) == ["foo.py or foo,py"], query
    for query in ("foo/py", "C:/new", "größe,txt"):
        assert titles(store.search(query)) == [], query


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ('"this that"', []),
        ('"this AND that"', ["logic"]),
        ('"AND that"', ["logic"]),
        ('"no such"', ["nothing", "option"]),
        ('"such no"', []),
        ('"foo bar"', ["apart", "dashed"]),
        ('"foo, bar"', ["apart"]),
        ('"no suc"*', ["nothing", "option"]),
        ("the AND set", ["column"]),
        ("this OR 🎉 done", ["face", "logic"]),
        ("this OR done", ["face", "logic"]),
        ("foo -now", ["nothing", "apart", "dashed"]),
        ("foo -such", ["apart", "dashed"]),
        ("foo NOT such", ["apart", "dashed"]),
        ('foo -"foo, bar"', ["nothing", "dashed"]),
        ("foo -foo-bar", ["nothing", "apart"]),
        ("mostly -C++", ["plain"]),
        ("(foo OR try) such", ["nothing", "option"]),
        ("such (foo OR try) -bar", ["option"]),
        ("foo -(such OR foo-bar)", ["apart"]),
        ("this OR foo-bar", ["dashed", "logic"]),
        ("tha* -this", []),
        ("such OR", None),
        ("OR such", None),
        ("AND such", None),
        ("such AND", None),
        ("such AND OR this", None),
        ("NOT this", None),
        ("-x", None),
        ("this -", []),
        ("this NOT", None),
        ("(this", None),
        ("this )", None),
        ("( )", None),
        ("NEAR that", None),
        ('say "hello', None),
        ('"', None),
        ('""', None),
        ("*", None),
        ("", None),
        ("   ", None),
        ("→", None),
        ("-", None),
        ("{} =>", None),
        ("→ OR this", None),
        ("🎉 OR this", ["face", "logic"]),
        ("now -🎉", ["option"]),
        ("日本 OR this", ["logic", "script"]),
        ("this -日本", ["logic"]),
        ("(" * 60 + "this" + ")" * 60, None),
    ],
)
def test_a_query_means_what_it_says_or_is_refused_in_one_line(
    various: Store, query: str, expected: list[str] | None
) -> None:
    if expected is not None:
        assert sorted(titles(various.search(query))) == sorted(expected)
        assert titles(various.search(query, order="rank")) != [] or not expected
        said = {item.text for item in various.prompts(query, project=ALL)}
        assert said == {SAID[title] for title in expected}
        return

    with pytest.raises(InvalidInputError) as refused:
        various.search(query)
    assert "\n" not in str(refused.value)
    if query:  # without a query prompts are listed
        with pytest.raises(InvalidInputError):
            various.prompts(query)


_WORDS = st.sampled_from(["red", "green", "blue", "re"])
_PIECES = st.one_of(
    _WORDS,
    st.sampled_from(["red.green", "blue()", '"green blue"', "gr*", '"red, green"']),
)


def queries() -> st.SearchStrategy[Any]:
    """Queries as trees: a piece, or (operator, branches)."""
    return st.recursive(
        _PIECES,
        lambda inner: st.tuples(
            st.sampled_from(["AND", "OR", "NOT"]),
            st.lists(inner, min_size=2, max_size=3),
        ),
        max_leaves=5,
    )


def typed(tree: Any) -> str:
    if isinstance(tree, str):
        return tree
    operator, branches = tree
    first, *others = map(typed, branches)
    if operator == "NOT":
        return f"({' '.join([first, *(f'-{other}' for other in others)])})"
    return f"({(' OR ' if operator == 'OR' else ' ').join([first, *others])})"


def holds(tree: Any, said: str) -> bool:
    """Say by hand whether *tree* is true of a text."""
    if not isinstance(tree, str):
        operator, branches = tree
        first, *others = [holds(branch, said) for branch in branches]
        if operator == "NOT":
            return first and not any(others)
        return any([first, *others]) if operator == "OR" else all([first, *others])

    words = re.findall("[a-z]+", said)
    if tree.endswith("*"):
        return any(word.startswith(tree[:-1]) for word in words)
    if tree == '"green blue"':
        return ("green", "blue") in pairwise(words)
    if not tree.isalnum():
        # Literally, and from the beginning to the end of words.
        literal = tree.strip('"')
        end = "" if literal.endswith(")") else r"\b"
        return re.search(rf"\b{re.escape(literal)}{end}", said) is not None
    return tree in words


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    tree=queries(),
    texts=st.lists(
        st.lists(st.sampled_from(["red", "green", "blue", ".", "()", ", ", " "]), max_size=6),
        min_size=1, max_size=6,
    ),
)  # fmt: skip
def test_every_query_finds_what_it_finds_by_hand(
    tree: Any, texts: list[list[str]], shared: Store
) -> None:
    said = {str(number): "".join(pieces) for number, pieces in enumerate(texts)}
    made = [talk(shared, "", assistant(said[name]), agent=name) for name in said]
    found = {hit.session.agent for hit in shared.search(typed(tree), limit=100)}
    for session in made:
        shared.delete(session)
    assert found == {name for name in said if holds(tree, said[name])}


def test_a_tool_is_found_by_its_kind_and_in_any_case(store: Store) -> None:
    for name in ("Edit", "apply_patch", "write_file", "Bash", "exec_command", "mine"):
        talk(store, name, assistant(tool(name, {"path": "a.py"}, output="done")))
    assert set(titles(store.search("done", tool="edit"))) == {
        "Edit", "apply_patch", "write_file",
    }  # fmt: skip
    assert set(titles(store.search("done", tool="SHELL"))) == {"Bash", "exec_command"}
    assert titles(store.search("done", tool="bash")) == ["Bash"]
    assert titles(store.search("done", tool="Mine")) == ["mine"]


def test_the_role_of_tools_finds_results_where_their_calls_are(store: Store) -> None:
    talk(store, "call", assistant("failure", tool("t", {}, output="exit code 1")))
    talk(store, "own", MessageDraft("tool", (tool_result("c", "exit code 2"),)))
    talk(store, "said", assistant("exit code 3"))
    found = titles(store.search('"exit code"', role="tool"))
    assert found == ["own", "call"]
    assert titles(store.search("failure", role="tool")) == []
    assert "said" in titles(store.search('"exit code"', role="assistant"))


def test_pages_of_literal_matches_leave_no_gap_and_repeat_nothing(store: Store) -> None:
    for number in range(30):
        talk(store, f"{number} a.b", "a.b" if number % 3 else "a, b")
    for order in ("newest", "rank", "time"):
        pages = all_pages(store, "a.b", order=order, limit=4)
        assert len({hit.session.id for hit in pages}) == len(pages) == 30, order
        assert (
            titles(pages[:20])
            == [  # type: ignore[arg-type]
                hit.session.title for hit in pages if hit.snippet.count("a") == 1
            ][:20]
        )


@pytest.fixture(scope="module")
def searched(backend: Backend) -> Iterator[Store]:
    with Store.open(backend.fresh(), durability="normal") as store:
        talk(store, "title", "some text", assistant(tool("t", {"a": "b"}, output="c")))
        yield store


@pytest.mark.slow
@given(
    query=st.text() | st.text(st.sampled_from('"*:^-+(){}ANDORTNE a\0'), max_size=30)
)
@example(query="a " * 5000)
@example(query='"' * 999 + "a")
@example(query="\ud800")
@settings(max_examples=60, deadline=None)
def test_no_query_raises_anything_but_that_it_has_no_words(
    searched: Store, query: str
) -> None:
    for order in ("newest", "rank"):
        with suppress(InvalidInputError):
            searched.search(query, order=order)
        with suppress(InvalidInputError):
            searched.prompts(query)


def test_everything_people_read_is_found(store: Store) -> None:
    call = tool("bash", {"cmd": "inputword"}, output="outputword", title="callword")
    session = talk(
        store, "x", "textword", assistant(reasoning("thoughtword"), call),
        assistant(text("largeword " * 500)), assistant(tool("b", {"c": "biginput " * 500})),
        MessageDraft("tool", (tool_result("none", "orphanword"),)), system("systemword"),
        assistant(tool("w", {"lines": "one\nnewlineword\ttabword"})),
    )  # fmt: skip
    store.set_title(session, "titleword")
    for word in (
        "textword thoughtword inputword outputword callword largeword biginput orphanword "
        "systemword newlineword tabword titleword"
    ).split():
        assert titles(store.search(word)) == ["titleword"], word
    assert titles(store.search("nowhere")) == []


def test_one_hit_per_session_unless_all_are_wanted(store: Store) -> None:
    talk(store, "one", *["word"] * 3)
    talk(store, "two", *["word"] * 2)
    assert titles(store.search("word")) == ["two", "one"]
    assert [hit.seq for hit in store.search("word")] == [2, 3]
    assert titles(store.search("word", all_hits=True)) == ["two"] * 2 + ["one"] * 3


@pytest.mark.slow
@pytest.mark.parametrize("order", ["newest", "time", "rank"])
@pytest.mark.parametrize("all_hits", [False, True])
@pytest.mark.parametrize("limit", [1, 4, 50])
def test_pages_of_hits_leave_no_gap_and_repeat_nothing(
    store: Store, order: str, all_hits: bool, limit: int
) -> None:
    for number in range(7):
        talk(store, f"s{number}", *[f"word {n}" for n in range(1 + number % 3)])
    for number in range(3):
        talk(store, f"word in title {number}", "else")
    found = all_pages(store, "word", order=order, all_hits=all_hits, limit=limit)
    keys = [(hit.session.id, hit.seq) for hit in found]
    assert len(set(keys)) == len(keys) == (7 + 6 if all_hits else 7) + 3
    assert len({hit.session.id for hit in found}) == 10
    everything = store.search("word", order=order, all_hits=all_hits, limit=1000)
    assert [(hit.session.id, hit.seq) for hit in everything] == keys


@pytest.mark.slow
@pytest.mark.parametrize("order", ["newest", "time"])
@pytest.mark.parametrize("all_hits", [False, True])
def test_pages_stay_what_they_were_while_others_write(
    store: Store, order: str, all_hits: bool
) -> None:
    made = [talk(store, f"s{number}", "word 1", "word 2") for number in range(6)]
    made += [talk(store, f"word in title {number}", "else") for number in range(4)]
    expected = all_pages(store, "word", order=order, all_hits=all_hits)

    found: list[Hit] = []
    cursor = None
    for number in range(60):
        page = store.search(
            "word", order=order, all_hits=all_hits, limit=1, cursor=cursor
        )
        found += page
        cursor = page.next_cursor
        if cursor is None:
            break
        # New matches in sessions that were shown, in some that were not, and in new ones.
        with store.effects() as fx:
            for session in made:
                fx.append(session, user("word again"))
        talk(store, f"new {number}", "word")
        talk(store, f"a word in a new title {number}", "else")
    keys = [(hit.session.id, hit.seq) for hit in found]
    assert len(set(keys)) == len(keys)
    # New sessions may be found by their titles; earlier hits are neither moved nor lost.
    assert [key for key in keys if key[0] in made] == [
        (h.session.id, h.seq) for h in expected
    ]


def test_a_page_does_not_skip_what_comes_after_removed_hits(store: Store) -> None:
    made = [talk(store, f"s{number}", "word") for number in range(6)]
    for order in ("newest", "time", "rank"):
        first = store.search("word", order=order, limit=2)
        gone = store.fork(first.items[0].session.id)  # a session that no page has shown
        store.delete(gone)
        rest = store.search("word", order=order, cursor=first.next_cursor)
        assert {h.session.id for h in [*first, *rest]} == set(made)


@pytest.mark.slow
def test_the_cursor_of_a_search_stays_short_however_deep_it_is(store: Store) -> None:
    for number in range(60):
        talk(store, f"s{number}", "word")
    for order in ("newest", "time", "rank"):
        cursor = None
        for _ in range(20):
            cursor = store.search(
                "word", order=order, limit=2, cursor=cursor
            ).next_cursor
            assert cursor is not None
            assert len(cursor) <= 48
            assert cursor.replace("_", "").replace("-", "").isalnum()


_COUNTLESS = 10**30


@pytest.mark.slow
@pytest.mark.parametrize(
    "cursor",
    [
        "", "x", "\ud800", "\0", "=" * 1_000, "A" * 1_000_000, 5, b"W10", [],
        *[encode_cursor(*key) for key in (
            (), ("newest",), ("newest", 5, 3, 0), ("newest", 5, 3, 0, 0, 0), ("newest", 3, 5, 0, 0),
            ("newest", 5, 0, 0, 0), ("newest", -1, -1, 0, 0), ("newest", 5, 3, -1, 0),
            ("newest", 5, 3, 0, -1), ("newest", 5.0, 3, 0, 0), ("newest", True, True, 0, 0),
            ("newest", _COUNTLESS, 3, 0, 0), ("newest", 5, "3", 0, 0), ("rank", 5, 3, 0, 0),
            ("end", 0, 0, 0, 0), ("titles", -1, 0, 0, 0), ("titles", 0, -1, 0, 0),
            (["newest"], 5, 3, 0, 0), (None, 5, 3, 0, 0), ("newest", 5, float("nan"), 0, 0),
        )],
        encode_cursor("newest", 5, 3, 0, 0) + "=", " " + encode_cursor("newest", 5, 3, 0, 0),
    ],
)  # fmt: skip
def test_a_cursor_that_was_not_given_out_is_refused(store: Store, cursor: Any) -> None:
    talk(store, "s", "word")
    with pytest.raises(InvalidInputError):
        store.search("word", cursor=cursor)


def test_many_hits_of_one_session_hide_no_other(store: Store) -> None:
    talk(store, "rare", "word")
    talk(store, "full", *["word"] * 450)
    assert titles(store.search("word", limit=2)) == ["full", "rare"]
    page = store.search("word", limit=1)
    assert titles(store.search("word", limit=1, cursor=page.next_cursor)) == ["rare"]


@pytest.mark.needs("has_our_clock", "the times are the server's")
def test_filters_narrow_what_is_found(
    store: Store, set_clock: Clock, tmp_path: Path
) -> None:
    start = set_clock.now
    old = talk(store, "old", "word", agent="plan", directory=str(tmp_path))
    set_clock.now += 100
    parent = talk(
        store, "new", assistant("word", tool("bash", {}, output="word")), agent="build"
    )
    talk(store, "helper", "word", parent=parent)
    store.archive(talk(store, "archived", "word"))
    found = {
        "all": {}, "old": {"until": start + 1}, "since": {"since": start + 1},
        "agent": {"agent": "plan"}, "title": {"title": "ne"}, "role": {"role": "user"},
        "tool": {"tool": "bash"}, "own": {"subagents": False}, "archived": {"archived": True},
        "here": {"project": str(tmp_path)}, "source": {"source": "elsewhere"},
        "nowhere": {"project": str(tmp_path / "never")},
    }  # fmt: skip
    assert {name: titles(store.search("word", **how)) for name, how in found.items()} == {
        "all": ["helper", "new", "old"], "old": ["old"], "since": ["helper", "new"],
        "agent": ["old"], "title": ["new"], "role": ["helper", "old"], "tool": ["new"],
        "own": ["new", "old"], "archived": ["archived", "helper", "new", "old"], "here": ["old"],
        "source": [], "nowhere": [],
    }  # fmt: skip
    # The title of a session counts where its words, by their time, do not.
    store.set_title(old, "word")
    set_clock.now += 100
    store.append(old, user("more"))
    assert titles(store.search("word", since=set_clock.now)) == ["word"]


def test_orders_are_newest_written_time_and_rank(
    store: Store, set_clock: Clock
) -> None:
    first = talk(store, "first", "other")
    second = talk(store, "second", "word " + "padding " * 40)
    set_clock.now += 100
    store.append(second, user("x"))
    store.append(first, user("word"), time=set_clock.now - 50_000)
    assert titles(store.search("word")) == ["first", "second"]
    assert titles(store.search("word", order="time")) == ["second", "first"]
    assert titles(store.search("word", order="rank")) == ["first", "second"]
    with pytest.raises(InvalidInputError):
        store.search("word", order="age")


@pytest.mark.parametrize("order", ["time", "rank"])
def test_the_newest_matches_that_are_ordered_are_those_that_pass_the_filters(
    store: Store, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "WINDOW", 5)
    talk(store, "planned", "word", agent="plan")
    talk(store, "word in a title", "word")
    talk(store, "long", *["word"] * 20)
    assert titles(store.search("word", order=order, agent="plan")) == ["planned"]
    # A session whose matches are all older than the window is found by its title.
    assert titles(store.search("word", order=order)) == ["long", "word in a title"]
    assert len(all_pages(store, "word", order=order, limit=1)) == 2


def test_a_part_of_a_message_with_a_time_of_its_own_has_that_time(store: Store) -> None:
    session, noon = talk(store, "old"), 1_770_000_000_000
    store.append(
        session,
        user("word", PartDraft("text", "there", time_created=noon + 3)),
        time=noon,
    )
    times = [part.time_created for part in store.messages(session)[0].parts]
    assert times == [noon, noon + 3]


def test_a_snippet_shows_the_word_in_its_context(store: Store) -> None:
    session = talk(store, "x", "before " * 30 + "needle " + "after " * 30)
    (hit,) = store.search("needle")
    assert f"{MARKS[0]}needle{MARKS[1]}" in hit.snippet
    assert len(hit.snippet) < 200
    assert store.message(session, hit.message_id).seq == hit.seq == 1  # type: ignore[arg-type]


def test_an_answer_is_found_when_it_is_complete_and_a_call_when_it_is_settled(
    store: Store,
) -> None:
    session = talk(store, "x", "ask")
    call = tool("bash", {"cmd": "inputword"}, call_id="c")
    message = store.append(session, assistant("halfword", call), open=True)
    assert titles(store.search("halfword")) == []
    store.settle(session, "c", output="outputword")
    assert titles(store.search("outputword")) == ["x"]
    assert titles(store.search("halfword")) == []
    store.finish(session, message)
    assert titles(store.search("halfword")) == ["x"]
    assert check(store) == []


def test_inherited_text_is_found_once_and_text_a_fork_took_over_stays_found(
    store: Store,
) -> None:
    original = talk(store, "original", "word", assistant(text("large " * 500)))
    fork = store.fork(original, title="copy")
    deep = store.fork(fork, title="copy of the copy")
    assert titles(store.search("word")) == titles(store.search("large")) == ["original"]
    assert len(store.search("word", all_hits=True)) == 1
    store.append(deep, user("word"))
    assert titles(store.search("word")) == ["copy of the copy", "original"]
    for session, left in ((original, "copy"), (fork.id, "copy of the copy")):
        store.delete(session, keep_forks=True)
        assert titles(store.search("large")) == [left]
        assert len(store.search("word", all_hits=True)) == 2
        store.reap()
        assert check(store) == []


def test_renaming_and_changing_is_followed(store: Store) -> None:
    session = talk(store, "firstname", "x")
    store.set_title(session, "secondname")
    assert titles(store.search("firstname")) == []
    assert titles(store.search("secondname")) == ["secondname"]
    store.truncate(session, after=None)
    assert titles(store.search("x")) == []


def test_the_index_can_be_checked_and_rebuilt_at_any_time(
    store: Store, backend: Backend
) -> None:
    one = talk(
        store, "one", "word", assistant(tool("b", {"c": "large " * 400}, output="out"))
    )
    fork = store.fork(one)
    store.append(fork, assistant("half"), open=True)
    store.add_prompt("a prompt", session=one)
    store.delete(talk(store, "two", "word"))
    backend.assert_searchable(store)
    backend.rebuild_search(store)
    backend.assert_searchable(store)
    assert titles(store.search("word")) == ["one"]
    assert titles(store.search("large")) == ["one"]
    assert check(store) == []


def test_prompts_are_found_by_their_words_and_paged(
    store: Store, tmp_path: Path
) -> None:
    for number in range(5):
        store.add_prompt(f"fix number {number}", directory=str(tmp_path))
    store.add_prompt("write C++ tests")
    assert next(iter(store.prompts())).text == "write C++ tests"
    assert [item.text for item in store.prompts("C++")] == ["write C++ tests"]
    assert len(store.prompts("fix", project=str(tmp_path))) == 5
    seen: list[str] = []
    cursor = None
    while True:
        page = store.prompts("fix", limit=2, cursor=cursor)
        seen += [item.text for item in page]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert seen == [f"fix number {number}" for number in (4, 3, 2, 1, 0)]
    assert list(store.prompts("fix", project=ALL, since=1 << 50)) == []
