"""Search below the words: parts of identifiers, scripts without spaces, emoji, ids."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing

import pytest
from backends import Backend
from hypothesis import given, settings
from hypothesis import strategies as st

from sessiondb import ALL, Store, assistant, text, tool, user
from sessiondb.maintenance import check
from sessiondb.model import Hit, MessageDraft, Page

SAID = {
    "camel": "call oldString with parseHTMLDoc", "snake": "rename old_string", "plain": "an old thing",
    "accents": "Orléans, Việt Nam, ÉCOLE", "decomposed": "Orle\u0301ans", "han": "我们的字符集测试完成",
    "mixed": "用Python測試一下", "kana": "これはテストです", "voiced": "がんばる", "thai": "ฉันไม่มีเงิน",
    "apart": "字・符 字，集",
    "other tone": "ฉันไม้มีเงิน", "hangul": "이것은조합입니다", "emoji": "done 🧵🎉 now",
}  # fmt: skip


def titles(found: Page[Hit]) -> list[str]:
    return [hit.session.title for hit in found]


def talk(store: Store, title: str, *messages: MessageDraft) -> str:
    with store.effects() as fx:
        handle = fx.create_session(title=title)
        for message in messages:
            fx.append(handle, message)
    return handle.id


@pytest.fixture(scope="module")
def various(backend: Backend) -> Iterator[Store]:
    with Store.open(backend.fresh(), durability="normal") as store:
        for title, said in SAID.items():
            talk(store, title, user(said))
            store.add_prompt(said)
        yield store


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("old", ["plain", "snake", "camel"]),
        ("string", ["snake", "camel"]),
        ("oldString", ["camel"]),
        ("html", ["camel"]),
        ("pars*", ["camel"]),
        ("tring", []),
        ('"old string"', ["snake"]),
        ("old -string", ["plain"]),
        ("old -html", ["plain", "snake"]),
        ("oldString (html OR plain)", ["camel"]),
        ("html lib/csv.mjs", []),
        ("old_string OR html", ["snake", "camel"]),
        ("orleans", ["decomposed", "accents"]),
        ("ecole viet", ["accents"]),
        ("字符集", ["han"]),
        ("测试", ["han"]),
        ("測試", ["mixed"]),
        ("試", ["mixed"]),
        ("下", ["mixed"]),
        ("试测", []),
        ("字符", ["han"]),
        ("字集", []),
        ("字符 测试", ["han"]),
        ("字 -符集", ["apart"]),
        ("字符测试", []),
        ("Python", ["mixed"]),
        ("Python測試", ["mixed"]),
        ("テスト", ["kana"]),
        ("か", []),
        ("が", ["voiced"]),
        ("ไม่มี", ["thai"]),
        ("조합", ["hangul"]),
        ("🧵", ["emoji"]),
        ("🧵🎉", ["emoji"]),
        ("🎉🧵", []),
        ("🚀", []),
        ("u1f9f5", []),
        ("1f9f5", []),
        ("字 OR 🧵", ["emoji", "apart", "han"]),
        ("done -🧵", []),
    ],
)
def test_what_is_below_the_words_of_a_text_is_found(
    various: Store, query: str, expected: list[str]
) -> None:
    assert titles(various.search(query)) == expected
    assert sorted(titles(various.search(query, order="rank"))) == sorted(expected)


@pytest.mark.parametrize(
    ("query", "expected"),
    [("字符集", ["han"]), ("🧵", ["emoji"]), ("试测", []), ("ไม่มี", ["thai"])],
)
def test_titles_and_prompts_in_every_script_are_found(
    various: Store, store: Store, query: str, expected: list[str]
) -> None:
    prompts = [item.text for item in various.prompts(query, project=ALL)]
    assert prompts == [SAID[title] for title in expected]
    for said in SAID.values():
        talk(store, said, user("else"))
    assert titles(store.search(query)) == [SAID[title] for title in expected]


def test_an_identifier_is_found_in_calls_results_and_large_texts(store: Store) -> None:
    call = tool("edit", {"new": "x\nnewName()"}, output="was lateValue")
    large = text("padding " * 1000 + "deepField")
    session = talk(store, "x", assistant(call, large))
    for query in ("name", "new", "value", "late", "field"):
        assert titles(store.search(query)) == ["x"], query
    assert titles(store.search("nnew")) == []
    (hit,) = store.search("field")
    assert "deep‹Field›" in hit.snippet

    fork = store.fork(session, title="fork")
    store.delete(session, keep_forks=True)
    store.reap()
    assert titles(store.search("field")) == ["fork"]
    assert check(store) == []
    store.truncate(fork, after=None)
    assert titles(store.search("field")) == []


def test_hashes_and_encoded_bytes_are_no_identifiers(
    store: Store, backend: Backend
) -> None:
    noise = "aGVsbG8gd29ybGQ1hIHRoaXMgaXMgYmFzZTY0Cg2fooBar " + "xY" * 40
    talk(store, "x", user(noise))
    assert backend.rows(store, "SELECT words FROM part") == [(None,)]


def test_a_session_is_found_by_the_id_of_its_program(store: Store) -> None:
    own = "caf5048b-1c2d-4e3f-8a9b-0123456789ab"
    session = store.open_session(own, source="claude", title="imported").id
    store.append(session, user("hello"))
    for query in (own, own[:8], "caf5048"):
        (hit,) = store.search(query)
        assert hit.session.id == session, query
        assert hit.snippet == f"‹{own}›"
    for query in ("caf5048c", own[9:], "af5048b"):
        assert titles(store.search(query)) == [], query
    assert titles(store.search("caf5048b", role="user")) == []


@pytest.fixture(scope="module")
def shared(backend: Backend) -> Iterator[Store]:
    with Store.open(backend.fresh(), durability="normal") as store:
        yield store


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    said=st.text("字符集测ab 。", max_size=10),
    query=st.text("字符集测", min_size=1, max_size=4),
    name=st.lists(st.sampled_from(["old", "String", "Html"]), min_size=1, max_size=3),
)
def test_a_piece_of_a_run_is_found_exactly_where_it_occurs(
    shared: Store, said: str, query: str, name: list[str]
) -> None:
    identifier = "".join(name)
    session = talk(shared, "", assistant(f"{said} {identifier}"))
    is_found = bool(shared.search(query).items)
    # A part is one that a capital begins.
    parts = {part.lower() for part in re.findall("[A-Z]?[a-z]+", identifier)}
    in_order = [bool(shared.search(part).items) for part in parts]
    shared.delete(session)
    assert is_found == (query in said)
    assert all(in_order)


def test_words_beside_a_text_are_kept_when_a_message_grows(store: Store) -> None:
    session = talk(store, "x", user("ask"))
    message = store.append(session, assistant("halfWay"), open=True)
    assert titles(store.search("way")) == []
    store.finish(session, message)
    assert titles(store.search("way")) == ["x"]


@settings(max_examples=60)
@given(
    said=st.text(alphabet='aBc9_ \\"\n\t漢字é🎉', max_size=30),
    command=st.text(alphabet='aBnrt \\"\n\t漢é', max_size=30),
    title=st.text(alphabet="fooBar 字", max_size=12),
)
def test_the_words_that_a_write_states_are_those_of_the_stored_texts(
    various: Store, said: str, command: str, title: str
) -> None:
    call = tool("bash", {"a key": command}, output=said, title=title or None)
    session = talk(various, "x", assistant(text(said), call))
    sql = "SELECT seq, idx, words, text, input, title FROM part WHERE session_id = ?"
    with closing(various._core.target.connect()) as connection:
        stored = connection.execute(sql, (session,)).fetchall()
        connection.engine.begin_write(connection)
        connection.execute(
            "UPDATE part SET words = NULL WHERE session_id = ?", (session,)
        )
        parts = json.dumps([(session, seq, idx) for seq, idx, *_ in stored])
        connection.engine.search.prepare(connection, parts)
        assert connection.execute(sql, (session,)).fetchall() == stored
        connection.execute("ROLLBACK")
    various.delete(session)
