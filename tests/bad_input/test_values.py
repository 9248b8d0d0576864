"""Values that break other stores: kept exactly, or refused before anything is written.

One rule each. Text: kept exactly; people and SQLite see U+2400 for NUL and U+FFFD for a lone
surrogate. ``data``: MessagePack, so integers of 64 bits, any float, nesting of 400. JSON columns
(input, error, metadata, …): any integer, no NaN, nesting of 400. Names (titles, agents, models,
tools, call ids, paths, labels of todos): what is readable. Ids and labels: no control characters.
"""

from __future__ import annotations

import json
import math
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sessiondb import (
    ALL,
    AsyncStore,
    Store,
    assistant,
    event,
    part,
    reasoning,
    text,
    tool,
    user,
)
from sessiondb.errors import CodecError, InvalidInputError, SessionDBError
from sessiondb.maintenance import check
from sessiondb.model import (
    FileDiff,
    Imported,
    Problem,
    SourceMessage,
    SourceSession,
    message_json,
)
from sessiondb.model.handles import SessionHandle

NUL, SURROGATE = "before\0after", "before\ud800after"
INVALID_UTF8 = b"caf\xe9".decode("utf-8", "surrogateescape")
ODD = [
    NUL,
    SURROGATE,
    INVALID_UTF8,
    "\0",
    "\udfff",
    "\ufeffBOM",
    "\u2028",
    "a\r\nb",
    "\x1b[31m",
    "é",
]
LONG = [odd * 500 for odd in ODD]


def nested(depth: int) -> Any:
    value: Any = "bottom"
    for _ in range(depth):
        value = [value]
    return value


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("values") / "sessions.db"


@pytest.fixture(scope="module")
def store(path: Path) -> Iterator[Store]:
    with Store.open(path, durability="normal") as store:
        yield store
        assert check(store) == []


@pytest.fixture
def session(store: Store) -> SessionHandle:
    return store.create_session()


def _sqlite(path: Path, sql: str, *params: object) -> Any:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql, params).fetchone()[0]


def _readable(value: str) -> bool:
    return "\0" not in value and not any("\ud800" <= char <= "\udfff" for char in value)


# -- text ------------------------------------------------------------------------


@pytest.mark.parametrize("odd", ODD + LONG, ids=ascii)
def test_text_comes_back_exactly_and_is_readable_in_the_shell(
    store: Store, path: Path, session: SessionHandle, odd: str
) -> None:
    call = assistant(
        reasoning(odd), tool("sh", {"in": odd}, output=odd), part("odd", text=odd)
    )
    store.append(session, user(odd))
    store.append(session, call)
    open_call = store.append(session, assistant(tool("sh"), tool("sh"))).parts
    store.settle(session, open_call[0], output=odd)
    store.settle(session, open_call[1], error=odd)
    with store.stream(session) as out:
        out.text().add(odd)
    said, called, settled, streamed = store.messages(session)
    assert said.text == streamed.text == odd
    assert [item.text for item in called.parts] == [odd] * 3
    assert called.parts[1].input == {"in": odd}
    assert [item.text for item in settled.parts] == [odd] * 2
    printed = json.loads(json.dumps([message_json(m) for m in store.messages(session)]))
    assert printed[0]["parts"][0]["text"] == odd
    sql = "SELECT group_concat(text) || group_concat(input) FROM transcript WHERE session = ?"
    assert _readable(
        _sqlite(path, sql.replace("session =", "session_id ="), session.id)
    )


@pytest.mark.slow
def test_a_text_of_many_megabytes_is_kept_searched_forked_and_read_in_time(
    store: Store, session: SessionHandle
) -> None:
    large = "needle " + "0123456789abcdef" * (10 * 1024 * 1024 // 16) + "\0end"
    begun = time.process_time()
    handle = store.append(session, user(large))
    assert store.message(session, handle).text == large
    assert store.search("needle").items[0].session.id == session.id
    fork = store.fork(session)
    assert store.messages(fork)[0].text == large
    store.delete(session, keep_forks=True)
    store.reap()
    assert store.messages(fork)[0].text == large
    store.delete(fork)
    store.reap()
    assert time.process_time() - begun < 10


# -- data and JSON -----------------------------------------------------------------


_KEPT_AS_DATA = [
    2**64 - 1, -(2**63), 0.1, math.inf, -math.inf, 5e-324, True, None, "", NUL, SURROGATE, b"\0\xff",
    [], {}, {"": ""}, {NUL: SURROGATE}, nested(390), [1, [2.0, {"three": None}]],
]  # fmt: skip
_REFUSED_AS_DATA = [
    2**64,
    -(2**63) - 1,
    object(),
    {1: 2},
    {None: 1},
    nested(1000),
    {1, 2},
    1j,
]
_KEPT_AS_JSON = [
    10**40, -(10**40), 0.1, 5e-324, True, None, "", NUL, SURROGATE, INVALID_UTF8, [], {}, {"": ""},
    {NUL: SURROGATE}, nested(390), [1, [2.0, {"three": None}]],
]  # fmt: skip
_REFUSED_AS_JSON = [
    math.nan,
    math.inf,
    object(),
    b"x",
    {1, 2},
    nested(1000),
    "\ud83d\ude00",
]


@pytest.mark.parametrize("value", _KEPT_AS_DATA, ids=lambda value: type(value).__name__)
def test_data_comes_back_exactly(
    store: Store, session: SessionHandle, value: Any
) -> None:
    store.append(session, event("odd", part("odd", value=value), value=value))
    handle = store.append(session, assistant(tool("sh"))).parts[0]
    store.settle(session, handle, output="", value=value)
    first, second = store.messages(session)
    for data in (first.data, first.parts[0].data, second.parts[0].data):
        assert data["value"] == value
        assert type(data["value"]) is type(value)


def test_not_a_number_is_kept_in_data(store: Store, session: SessionHandle) -> None:
    store.append(session, user("x", value=math.nan))
    assert math.isnan(store.messages(session)[0].data["value"])


@pytest.mark.parametrize("value", _KEPT_AS_JSON, ids=lambda value: type(value).__name__)
def test_json_comes_back_exactly_and_is_valid_for_sqlite(
    store: Store, path: Path, session: SessionHandle, value: Any
) -> None:
    store.append(session, assistant(tool("sh", value)), error=value)
    store.set_metadata(session, {"value": value})
    store.set_permission(session, value)
    message = store.messages(session)[0]
    assert message.parts[0].input == value
    assert message.error == value
    assert store.session(session).metadata == {"value": value}
    sql = (
        "SELECT json_valid(input) FROM part WHERE session_id = ? AND input IS NOT NULL"
    )
    assert _sqlite(path, sql, session.id) == 1


def _state(path: Path) -> list[object]:
    tables = (
        "session",
        "message",
        "part",
        "blob",
        "prompt",
        "label",
        "todo",
        "file_diff",
        "meta",
    )
    with closing(sqlite3.connect(path)) as connection:
        return [
            connection.execute(f"SELECT * FROM {table}").fetchall() for table in tables
        ]


@pytest.mark.parametrize(
    "value", _REFUSED_AS_DATA, ids=lambda value: type(value).__name__
)
def test_data_that_cannot_be_kept_is_refused_before_anything_is_written(
    store: Store, path: Path, session: SessionHandle, value: Any
) -> None:
    call = store.append(session, assistant(tool("sh"))).parts[0]
    before = _state(path)
    for write in (
        lambda: store.append(session, user("x", value=value)),
        lambda: store.append(session, user(text("x", value=value))),
        lambda: store.settle(session, call, output="x", value=value),
    ):
        with pytest.raises(CodecError) as raised:
            write()
        assert isinstance(raised.value, ValueError)
    with pytest.raises(CodecError), store.effects() as unit:
        unit.append(session, user("good"))
        unit.append(session, user("bad", value=value))
    assert _state(path) == before


@pytest.mark.parametrize(
    "value", _REFUSED_AS_JSON, ids=lambda value: type(value).__name__
)
def test_json_that_cannot_be_kept_is_refused_before_anything_is_written(
    store: Store, path: Path, session: SessionHandle, value: Any
) -> None:
    call = store.append(session, assistant(tool("sh"))).parts[0]
    before = _state(path)
    for write in (
        lambda: store.append(session, assistant(tool("sh", value))),
        lambda: store.append(session, assistant("x"), error=value),
        lambda: store.start(session, call, input=value),
        lambda: store.set_metadata(session, {"value": value}),
        lambda: store.set_permission(session, {"value": value}),
        lambda: store.set_revert(session, {"value": value}),
        lambda: store.create_session(metadata={"value": value}),
    ):
        with pytest.raises(CodecError):
            write()
    assert _state(path) == before


# -- names and ids -----------------------------------------------------------------


@pytest.mark.parametrize("odd", ODD, ids=ascii)
def test_names_are_kept_as_people_can_read_them(
    store: Store, path: Path, session: SessionHandle, odd: str
) -> None:
    name = odd + "name"
    shown = "".join("\u2400" if c == "\0" else c for c in name)
    shown = "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in shown)
    store.set_title(session, name)
    store.set_todos(session, [name])
    store.set_diffs(session, [FileDiff(name)])
    store.add_prompt(name, session=session)
    store.append(
        session, assistant(tool(name, call_id=name, title=name)), model=name, agent=name
    )
    message = store.messages(session)[0]
    call = message.parts[0]
    assert (message.model_id, message.agent) == (shown, shown)
    assert (call.tool, call.call_id, call.title) == (shown, shown, shown)
    assert store.session(session).title == shown
    assert store.todos(session)[0].content == shown
    assert store.diffs(session)[0].path == shown
    assert store.prompts(limit=1).items[0].text == shown
    assert _readable(
        _sqlite(path, "SELECT title FROM session WHERE id = ?", session.id)
    )


@pytest.mark.parametrize(
    "odd", [NUL, SURROGATE, "", "line\nbreak", "x" * 257, "é" * 129, None, 7]
)
def test_an_invalid_id_is_refused_wherever_one_is_given(
    store: Store, path: Path, session: SessionHandle, odd: Any
) -> None:
    message = store.append(session, user("x"))
    before = _state(path)
    writes = [
        lambda: store.append(session, event("x"), turn_id=odd),
        lambda: store.append(odd, user("x")),
        lambda: store.archive(odd),
        lambda: store.note_used(session, odd),
    ]
    if odd is not None:
        writes += [
            lambda: store.create_session(id=odd),
            lambda: store.append(session, user("x", id=odd)),
            lambda: store.append(session, user(text("x", id=odd))),
            lambda: store.label(session, message, odd),
            lambda: store.fork(session, id=odd),
            lambda: store.add_prompt("x", session=session, id=odd),
        ]
    for write in writes[1 if odd is None else 0 :]:
        with pytest.raises(InvalidInputError):
            write()
    assert _state(path) == before


@pytest.mark.parametrize("odd", [NUL, SURROGATE, INVALID_UTF8, ""])
def test_a_directory_that_cannot_be_stored_is_refused(
    store: Store, path: Path, session: SessionHandle, odd: str
) -> None:
    before = _state(path)
    for write in (
        lambda: store.create_session(directory=odd),
        lambda: store.set_directory(session, odd),
        lambda: store.add_prompt("x", directory=odd),
        lambda: store.relink(odd, "/elsewhere"),
        lambda: store.relink("/elsewhere", odd),
        lambda: store.sessions(project=odd),
    ):
        with pytest.raises(InvalidInputError):
            write()
    assert _state(path) == before


def test_a_database_may_lie_at_any_path_that_the_system_has(tmp_path: Path) -> None:
    for name in (
        "with space",
        "per%20cent",
        "quest?ion#hash",
        "é",
        INVALID_UTF8,
        "new\nline",
    ):
        path = tmp_path / name / f"{name}.db"
        try:
            path.parent.mkdir()
        except OSError:
            continue
        with Store.open(path) as store:
            session = store.create_session(directory="/elsewhere")
            store.append(session, user("Hello"))
            assert store.messages(session)[0].text == "Hello"
            assert store.path == path
        assert path.stat().st_size > 0


# -- search and import -------------------------------------------------------------


@pytest.mark.parametrize(
    "query",
    [
        "foo-bar", "C++", "title:x", "a*b", "^x", "--x", "{a b}:c", "a\0b", "\x1b[31m",
        "x" * 10_000, "'x; --",
    ],
    ids=lambda value: ascii(value)[:20],
)  # fmt: skip
def test_a_query_is_words_and_never_a_syntax_error(
    store: Store, session: SessionHandle, query: str
) -> None:
    store.append(session, user(f"here is {query} to be found"))
    for order in ("newest", "time", "rank"):
        for hit in store.search(query, order=order, limit=5):
            assert hit.snippet
    assert store.prompts(query).items is not None
    assert store.sessions(project=ALL, title=query).items is not None


@pytest.mark.parametrize("query", ["", " ", "*", "%", "_", "'; --"])
def test_a_query_without_words_is_refused_by_that_name(
    store: Store, query: str
) -> None:
    with pytest.raises(InvalidInputError, match="no words"):
        store.search(query)


def test_words_with_signs_in_them_are_found(
    store: Store, session: SessionHandle
) -> None:
    store.append(session, user("the function zip-longest of C++ said “done”"))
    for query in (
        "zip-longest",
        "C++ said",
        "done”",
        "ZIP-LONGEST",
    ):
        assert session.id in {hit.session.id for hit in store.search(query)}, query


def _source(*messages: SourceMessage | Problem, **fields: Any) -> SourceSession:
    fields.setdefault("source_id", f"s{time.perf_counter_ns()}")
    return SourceSession(
        "elsewhere", path="/elsewhere/log", digest="1", messages=messages, **fields
    )


@pytest.mark.parametrize("odd", ODD + LONG[:3], ids=ascii)
def test_imported_text_is_exact_too(store: Store, odd: str) -> None:
    draft = assistant(odd, tool("sh", {"in": odd}, output=odd), id="m1", extra=odd)
    done = list(
        store.ingest([_source(SourceMessage(draft), title=odd, data={"extra": odd})])
    )
    assert [type(item) for item in done] == [Imported]
    message = store.messages(
        done[0].session_id if hasattr(done[0], "session_id") else done[0].id
    )[0]
    assert [item.text for item in message.parts] == [odd, odd]
    assert message.parts[1].input == {"in": odd}
    assert message.data["extra"] == odd


def test_a_message_that_cannot_be_imported_is_a_problem_and_the_rest_is_imported(
    store: Store,
) -> None:
    bad = [
        user("x", id="m2", value=2**70),
        user("x", id="m3", value=nested(1000)),
        user("x", id="bad\0id"),
        user("x", id="bad\ud800id"),
        assistant(tool("sh", math.nan), id="m4"),
    ]
    drafts = [user("first", id="m1"), *bad, user("last", id="m9")]
    results = list(
        store.ingest([_source(*map(SourceMessage, drafts), source_id="mixed")])
    )
    problems = [item for item in results if isinstance(item, Problem)]
    assert len(problems) == len(bad)
    assert all(problem.source == "/elsewhere/log" for problem in problems)
    (imported,) = (item for item in results if isinstance(item, Imported))
    assert [message.text for message in store.messages(imported.id)] == [
        "first",
        "last",
    ]


@pytest.mark.parametrize(
    "fields",
    [
        {"source_id": "nul\0id"}, {"source_id": ""}, {"time_created": 2**70}, {"data": {"k": 2**70}},
        {"metadata": {"k": math.nan}}, {"directory": "/bad\0path"}, {"directory": "/bad\ud800path"},
        {"title": 7}, {"permission": {1}},
    ],
    ids=ascii,
)  # fmt: skip
def test_a_session_that_cannot_be_imported_is_a_problem_and_its_neighbours_are_here(
    store: Store, fields: dict[str, Any]
) -> None:
    def good(name: str) -> SourceSession:
        return _source(SourceMessage(user("good", id="m1")))

    bad = _source(SourceMessage(user("bad", id="m1")), **fields)
    results = list(store.ingest([good("a"), bad, good("b")]))
    assert sum(isinstance(item, Imported) for item in results) == 2, results
    (problem,) = (item for item in results if isinstance(item, Problem))
    assert problem.why


async def test_an_async_store_keeps_and_refuses_the_same(tmp_path: Path) -> None:
    async with AsyncStore.open(tmp_path / "sessions.db", durability="normal") as store:
        session = await store.create_session()
        await store.append(session, user(NUL, value=SURROGATE))
        for value in _REFUSED_AS_DATA:
            with pytest.raises(CodecError):
                await store.append(session, user("x", value=value))
        (message,) = await store.messages(session)
        assert (message.text, message.data["value"]) == (NUL, SURROGATE)
        with pytest.raises(SessionDBError):
            await store.session(SURROGATE)
