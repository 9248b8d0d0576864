"""OpenOxide files: content in all its forms, forks, and strict MessagePack."""

from __future__ import annotations

import gc
import sqlite3
import tracemalloc
from contextlib import closing
from pathlib import Path
from typing import Any

import msgpack
import pytest
from imported import all_taken
from samples import read_into
from samples_openoxide import (
    SCHEMA,
    T0,
    add,
    conversation,
    packed,
    put,
    three,
)
from samples_openoxide import (
    store as file_of,
)

from sessiondb import ALL, Store, Tokens
from sessiondb.formats import find
from sessiondb.formats.kit.json import OddRecordError
from sessiondb.formats.openoxide.content import decode
from sessiondb.model import Imported, Message, Problem


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return file_of(tmp_path / "openoxide.db")


def said(store: Store, path: Path, role: str, content: Any) -> Message:
    add(path, "s1", ("m1", role, content))
    (message,) = store.messages(all_taken(store, path)["s1"])
    return message


def shape(message: Message) -> list[tuple[Any, ...]]:
    return [(p.type, p.tool, p.call_id, p.status, p.text) for p in message.parts]


def formats_of(path: Path) -> list[str]:
    return [found.source for found in find(path)]


# -- whose a file is -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "found"),
    [
        (SCHEMA, ["openoxide"]),
        (SCHEMA.replace("content", "data"), []),
        (SCHEMA.replace("revert_oid", "other"), []),
        (SCHEMA.replace("message", "messages"), []),
        ("CREATE TABLE session (id, revert_oid);"
         "CREATE TABLE message (session_id, role, content);", ["openoxide"]),
    ],
)  # fmt: skip
def test_a_file_is_recognised_by_its_columns(
    schema: str, found: list[str], tmp_path: Path
) -> None:
    assert formats_of(file_of(tmp_path / "any.db", schema)) == found


def test_messagepack_tells_a_file_without_a_revert(tmp_path: Path) -> None:
    path = file_of(tmp_path / "any.db", SCHEMA.replace("revert_oid", "other"))
    put(path, "message", [{"id": "1", "session_id": "s", "role": "user", "content": "a"}])  # fmt: skip
    assert formats_of(path) == []
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE message SET content = ?", (packed("a"),))
    assert formats_of(path) == ["openoxide"]


# -- sessions --------------------------------------------------------------------------


def test_the_row_of_a_session_becomes_columns(store: Store, path: Path) -> None:
    add(path, "s1", ("m1", "user", "Hi"), title="Tea", revert_oid="ab12")
    found = all_taken(store, path)["s1"]
    assert (found.title, found.directory) == ("Tea", "/home/ada/tea")
    assert (found.model_id, found.source) == ("large", "openoxide")
    assert (found.time_created, found.time_updated) == (T0, T0 + 9000)
    assert found.revert == {"snapshot": "ab12"}
    assert found.data == {"project_id": "p1"}


def test_a_fork_is_linked_and_counts_its_copies_once(store: Store, path: Path) -> None:
    # Children before their parents, and a fork of a fork.
    copies = conversation("c")
    add(path, "third", *copies, ("c5", "user", "Third"), parent="second")
    add(path, "second", *conversation("b"), ("b5", "user", "Second"), parent="first")
    add(path, "first", *conversation("a"))
    found = all_taken(store, path)
    assert found["second"].parent_id == found["first"].id
    assert (found["third"].relation, found["third"].root_id) == ("fork", found["first"].id)  # fmt: skip
    assert [s.cost for s in map(found.get, ("first", "second", "third")) if s] == [0.25, None, None]  # fmt: skip
    inherited = [m.inherited for m in store.messages(found["third"])]
    assert inherited == [True] * 4 + [False]
    assert [found[name].parent_seq for name in ("first", "second", "third")] == [
        None,
        4,
        4,
    ]


def test_messages_of_a_session_without_a_row_are_kept(store: Store, path: Path) -> None:
    add(path, "s1", ("m1", "user", "Hi"))
    put(path, "message", [{"id": "m2", "session_id": "gone", "role": "user", "time_created": T0, "content": packed("Ho")}])  # fmt: skip
    found = all_taken(store, path)
    assert [m.text for m in store.messages(found["gone"])] == ["Ho"]
    assert (found["gone"].title, found["gone"].time_created) == ("Ho", T0)


def test_a_cycle_and_a_missing_parent_cost_nothing(store: Store, path: Path) -> None:
    add(path, "a", ("m1", "user", "A"), parent="b")
    add(path, "b", ("m2", "user", "B"), parent="a")
    add(path, "c", ("m3", "user", "C"), parent="gone")
    found = read_into(store, path)
    (problem,) = [item for item in found if isinstance(item, Problem)]
    assert "is its own ancestor" in problem.why
    assert len([item for item in found if isinstance(item, Imported)]) == 3


def test_columns_may_be_missing_or_new(store: Store, tmp_path: Path) -> None:
    path = file_of(
        tmp_path / "old.db",
        "CREATE TABLE session (id INTEGER PRIMARY KEY, revert_oid, mood TEXT);"
        "CREATE TABLE message (session_id, role, content, weather TEXT);"
        "INSERT INTO session VALUES (7, NULL, 'good');",
    )
    rows = [{"session_id": 7, "role": "user", "content": packed(t), "weather": "warm"} for t in ("1", "2")]  # fmt: skip
    put(path, "message", rows)
    found = all_taken(store, path)["7"]
    assert found.data == {"mood": "good"}
    messages = store.messages(found)
    assert [(m.id, m.text) for m in messages] == [("7:1", "1"), ("7:2", "2")]
    assert messages[0].data == {"weather": "warm"}


def test_a_table_without_row_numbers_is_read_in_order(
    store: Store, tmp_path: Path
) -> None:
    schema = SCHEMA.replace("content BLOB);", "content BLOB) WITHOUT ROWID;")
    path = file_of(tmp_path / "some.db", schema)
    add(path, "s1", ("b", "user", "1"), ("a", "user", "2"))
    assert [m.text for m in store.messages(all_taken(store, path)["s1"])] == ["1", "2"]


def test_messages_of_one_time_are_in_the_order_of_their_rows(
    store: Store, path: Path
) -> None:
    add(path, "s1", *((name, "user", name) for name in ("z", "k", "a")))
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE message SET time_created = ?", (T0,))
    assert [m.id for m in store.messages(all_taken(store, path)["s1"])] == [
        "z",
        "k",
        "a",
    ]


def test_only_changed_sessions_are_imported_again(store: Store, tmp_path: Path) -> None:
    three(tmp_path)
    path = tmp_path / "openoxide.db"
    all_taken(store, tmp_path)
    put(path, "message", [{"id": "new", "session_id": "other", "role": "user", "time_created": T0 + 9999, "content": packed("And?")}])  # fmt: skip
    again = {i.source_id: i.outcome for i in read_into(store, tmp_path) if isinstance(i, Imported)}  # fmt: skip
    assert again == {"root": "unchanged", "fork": "unchanged", "other": "updated"}


# -- content ---------------------------------------------------------------------------

CALL = ("tool", "ls", "c1", "pending", None)
FORMS: dict[str, tuple[str, Any, list[tuple[Any, ...]]]] = {
    "a text": ("user", "Hi", [("text", None, None, None, "Hi")]),
    "texts": ("user", ["Hi", "Ho"], [("text", None, None, None, "Hi"), ("text", None, None, None, "Ho")]),
    "a block": ("user", {"type": "text", "text": "Hi"}, [("text", None, None, None, "Hi")]),
    "a variant": ("assistant", [{"ToolCall": {"id": "c1", "name": "ls"}}], [CALL]),
    "a variant of a text": ("assistant", [{"Reasoning": "Hm"}], [("reasoning", None, None, None, "Hm")]),
    "a call of OpenAI": ("assistant", {"content": None, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}]}, [CALL]),
    "a call with its result": ("assistant", [{"type": "tool", "callID": "c1", "tool": "ls", "output": "a"}], [("tool", "ls", "c1", "completed", "a")]),
    "a result of Anthropic": ("user", [{"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "a"}], "is_error": True}], [("tool-result", None, "c1", "error", "a")]),
    "a result as a map": ("tool", {"tool_call_id": "c1", "content": "a"}, [("tool-result", None, "c1", "completed", "a")]),
    "a result with a picture": ("tool", {"tool_call_id": "c1", "content": ["a", {"type": "image", "data": b"x"}]}, [("tool-result", None, "c1", "completed", "a"), ("file", None, None, None, None)]),
    "a message with a type": ("user", {"type": "message", "content": "Hi"}, [("text", None, None, None, "Hi")]),
    "a result as a text": ("tool", "a", [("tool-result", None, None, "completed", "a")]),
    "a call without a name": ("assistant", [{"type": "tool_call", "id": "c1"}], [("custom", None, None, None, None)]),
    "an unknown part": ("assistant", [{"type": "snapshot", "id": "x"}], [("snapshot", None, None, None, None)]),
    "a number": ("user", 7, []),
    "nothing": ("user", None, []),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_content_becomes_parts(name: str, store: Store, path: Path) -> None:
    role, content, expected = FORMS[name]
    message = said(store, path, role, content)
    assert shape(message) == expected
    is_result = expected != [] and expected[0][0] == "tool-result"
    assert message.role == ("tool" if is_result else role)


def test_the_fields_of_an_answer_in_a_map_become_columns(
    store: Store, path: Path
) -> None:
    content = {"text": "Yes", "model": "small", "provider": "fake", "finish": "tool_use", "cost": 0.5,
               "usage": {"input_tokens": 9, "output_tokens": 5, "input_tokens_details": {"cached_tokens": 4}}, "mood": "good"}  # fmt: skip
    answer = said(store, path, "assistant", content)
    assert (answer.model_id, answer.provider_id, answer.cost) == ("small", "fake", 0.5)
    assert (answer.finish, answer.tokens) == ("tool-calls", Tokens(5, 5, None, 4))
    assert answer.data["content"]["mood"] == "good"


def test_a_role_that_is_not_known_is_an_event(store: Store, path: Path) -> None:
    event = said(store, path, "compaction", {"text": "Tea", "kept": "m0"})
    assert (event.role, event.kind, event.text) == ("event", "compaction", "Tea")


def test_a_picture_is_a_file(store: Store, path: Path) -> None:
    block = {"type": "image", "mime_type": "image/png", "data": b"\x89PNG"}
    (part,) = said(store, path, "user", [block]).parts
    assert (part.type, part.data) == ("file", {"mime": "image/png", "content": b"\x89PNG"})  # fmt: skip


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw=="}},
        {"type": "image", "mime": "image/png", "data": "iVBORw=="},
    ],
)  # fmt: skip
def test_a_picture_may_be_base64(store: Store, path: Path, block: Any) -> None:
    (part,) = said(store, path, "user", [block]).parts
    assert (part.type, part.data["mime"]) == ("file", "image/png")
    assert part.data["content"] == b"\x89PNG"


def test_extensions_and_odd_keys_are_kept(store: Store, path: Path) -> None:
    odd = {"type": "x", "when": msgpack.ExtType(5, b"ab"), "at": msgpack.Timestamp(1), "keys": {1: "a", "b": 2}, "raw": b"\x00"}  # fmt: skip
    call = {"type": "tool_call", "id": "c1", "name": "ls", "input": {"raw": b"\x00"}}
    found, tool = said(store, path, "assistant", [odd, call]).parts
    assert found.data == {
        "when": {"$ext": 5, "data": b"ab"},
        "at": {"$ext": -1, "data": b"\x00\x00\x00\x01"},
        "keys": {"$map": [[1, "a"], ["b", 2]]},
        "raw": b"\x00",
    }
    # JSON has no bytes: the arguments of this call stay in its data.
    assert (tool.input, tool.data["input"]) == (None, {"raw": b"\x00"})


# -- strict MessagePack ----------------------------------------------------------------

DEEP = b"\x91" * 400 + b"\xc0"
BAD: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "ends early"),
    "a text that ends early": (b"\xa5Hi", "ends early"),
    "a length that ends early": (b"\xdb\x00", "ends early"),
    "two values": (packed("a") + packed("b"), "something follows it"),
    "a list that ends early": (b"\xdd\xff\xff\xff\xff\xc0", "ends early"),
    "a map that ends early": (b"\xdf\xff\xff\xff\xff\xc0\xc0", "ends early"),
    "an extension that ends early": (b"\xc7\x02\x05a", "ends early"),
    "a byte that is never used": (b"\xc1", "never used"),
    "a text that is not UTF-8": (b"\xa2\xff\xff", "utf-8"),
    "a time of no length": (b"\xc7\x03\xffabc", "is not MessagePack"),
    "too deep": (DEEP, "nested deeper than 300"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_content_that_is_not_one_value_is_a_problem(
    name: str, store: Store, path: Path
) -> None:
    raw, why = BAD[name]
    add(path, "s1", ("m1", "user", "Before"), ("m2", "user", raw), ("m3", "user", "After"))  # fmt: skip
    found = read_into(store, path)
    (problem,) = [item for item in found if isinstance(item, Problem)]
    assert "message 'm2' is" in problem.why
    assert why in problem.why
    (session,) = store.sessions(project=ALL)
    assert [m.text for m in store.messages(session)] == ["Before", "After"]


VALUES: list[Any] = [
    None, True, 0, 127, 128, -1, -32, -33, 1 << 15, 1 << 31, (1 << 64) - 1, -(1 << 63), 1.5,
    "", "a" * 31, "a" * 32, "a" * 256, "a" * 70000, b"", b"a" * 256, b"a" * 70000, [], [[]],
    list(range(15)), list(range(16)), [0] * 70000, {}, {str(n): n for n in range(15)},
    {str(n): n for n in range(66000)} | {str(n): [n, {"a": None}] for n in range(99)},
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
def test_every_form_of_a_value_is_decoded(value: Any) -> None:
    assert decode(msgpack.packb(value)) == value


def test_every_form_of_an_extension_is_decoded() -> None:
    for size in (1, 2, 3, 4, 5, 8, 16, 17, 255, 256, 65536):
        extension = msgpack.packb(msgpack.ExtType(9, b"x" * size))
        assert decode(extension) == {"$ext": 9, "data": b"x" * size}


@pytest.mark.parametrize(
    ("raw", "pairs"),
    [
        (b"\x81\x91\x01\xa1a", [[[1], "a"]]),
        (b"\x82\xa1a\x01\xa1a\x02", [["a", 1], ["a", 2]]),
        (b"\x82\xa1a\x01\x80\x02", [["a", 1], [{}, 2]]),
    ],
)
def test_keys_that_json_does_not_have_are_pairs(raw: bytes, pairs: list[Any]) -> None:
    assert decode(raw) == {"$map": pairs}


def test_lengths_that_lie_take_no_memory() -> None:
    size = 1 << 20
    head = b"\xdd" + (size - 100).to_bytes(4)
    raw = (head * 200).ljust(size, b"\xc0")
    gc.collect()
    tracemalloc.start()
    try:
        with pytest.raises(OddRecordError, match="ends early"):
            decode(raw)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 1 << 20


def test_a_text_column_is_read_as_it_is(store: Store, path: Path) -> None:
    add(path, "s1", ("m1", "user", "x"), ("m2", "user", "x"), ("m3", "user", "x"))
    texts = {"m1": "Hi {", "m2": '[{"type":"text","text":"Ho"}]', "m3": "{oh"}
    with closing(sqlite3.connect(path)) as db, db:
        for name, content in texts.items():
            db.execute("UPDATE message SET content = ? WHERE id = ?", (content, name))
    messages = store.messages(all_taken(store, path)["s1"])
    assert [message.text for message in messages] == ["Hi {", "Ho", "{oh"]
