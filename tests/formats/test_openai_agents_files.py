"""The files of the OpenAI Agents SDK: tables of any name, items, branches, tokens."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from imported import taken
from samples import read_into
from samples_openai_agents import (
    ADVANCED,
    PNG,
    WHEN,
    advanced,
    answer,
    call,
    connect,
    first,
    place,
    plain,
    prompt,
    result,
    spend,
    thought,
    write,
)

from sessiondb import ALL, Store
from sessiondb.formats import find
from sessiondb.model import Imported, Message, Problem, Tokens


def rest(message: Message) -> dict[str, Any]:
    """Return what is left of an item."""
    item: dict[str, Any] = message.parts[0].data["openai"]["item"]
    return item


T0 = 1_795_191_830_000


def read(store: Store, folder: Path, *items: Any) -> list[Message]:
    write(folder / "agents.db", {"s": items})
    return store.messages(taken(store, folder).id)


def names(folder: Path) -> list[str]:
    return [item.source for item in find(folder)]


# -- which files -------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["db", "sqlite", "sqlite3"])
def test_a_file_is_recognised_by_its_tables(tmp_path: Path, ending: str) -> None:
    write(tmp_path / f"any.{ending}", {}, ("My sessions", 'the ""items""'))
    assert names(tmp_path) == ["openai-agents"]


@pytest.mark.parametrize(
    "schema",
    [
        # Goose, OpenCode, and tables that are alike in part.
        "CREATE TABLE sessions (id TEXT, created_at, updated_at);"
        "CREATE TABLE messages (id, session_id, content_json, created_at)",
        "CREATE TABLE message (id, session_id, time_created, data)",
        "CREATE TABLE m (id, session_id, message_data, created_at)",
        "CREATE TABLE s (session_id, name);"
        "CREATE TABLE m (id, session_id REFERENCES s, message_data, created_at)",
        "CREATE TABLE message_store (id, session_id, message)",
    ],
)
def test_a_database_of_another_program_is_not_one(tmp_path: Path, schema: str) -> None:
    with connect(tmp_path / "sessions.db") as db:
        db.executescript(schema)
    assert names(tmp_path) == []


def test_our_own_database_is_not_one(tmp_path: Path) -> None:
    Store.open(tmp_path / "own.db").close()
    assert "openai-agents" not in names(tmp_path)


def test_each_pair_of_tables_has_names_of_its_own(tmp_path: Path, store: Store) -> None:
    path = write(tmp_path / "a.db", {"s": [prompt("Usual")]})
    write(path, {"s": [prompt("Other")]}, ("my chats", "my items"))
    assert len(read_into(store, tmp_path)) == 2
    found = {s.source_id: store.messages(s.id) for s in store.sessions(project=ALL)}
    texts = {name: messages[0].text for name, messages in found.items()}
    assert texts == {"s": "Usual", "my items/s": "Other"}


def test_a_session_is_named_after_its_table_only_if_its_name_is_taken(
    tmp_path: Path, store: Store
) -> None:
    path = write(tmp_path / "a.db", {"s": [prompt("A")]}, ("chats", "b items"))
    write(path, {"s": [prompt("B")], "t": [prompt("C")]}, ("other", "z items"))
    read_into(store, tmp_path)
    found = {s.source_id: store.messages(s.id) for s in store.sessions(project=ALL)}
    texts = {name: messages[0].text for name, messages in found.items()}
    assert texts == {"s": "A", "z items/s": "B", "t": "C"}


def test_messages_without_a_row_of_their_session_are_kept(
    tmp_path: Path, store: Store
) -> None:
    path = write(tmp_path / "a.db", {"s": [prompt("Hi")]})
    with connect(path) as db:
        db.execute("DELETE FROM agent_sessions")
        db.commit()
    session = taken(store, tmp_path)
    assert session.source_id == "s"
    assert [m.text for m in store.messages(session.id)] == ["Hi"]


# -- items -------------------------------------------------------------------------


def test_items_become_messages_in_their_order(tmp_path: Path, store: Store) -> None:
    found = read(store, tmp_path, *first())
    assert [m.role for m in found] == [
        "user", "assistant", "assistant", "tool", "assistant", "user", "assistant",
        "assistant", "assistant", "system", "event",
    ]  # fmt: skip
    assert [p.text for p in found[1].parts] == ["Hm", "Well"]
    assert {p.type for p in found[1].parts} == {"reasoning"}
    assert rest(found[1])["encrypted_content"] == "gAAA"
    assert found[-1].kind == "custom_message"
    assert rest(found[-1]) == {"type": "never_seen", "id": "x", "value": 1}
    assert rest(found[9])["role"] == "developer"
    assert found[8].parts[0].text == "No"


def test_a_call_has_the_result_of_its_own_item(tmp_path: Path, store: Store) -> None:
    _, asked, given = read(
        store, tmp_path, prompt("Hi"), call("c1"), result("c1", "a.py\n")
    )
    (part,) = asked.parts
    assert (part.tool, part.call_id, part.input) == ("bash", "c1", {"command": "ls"})
    assert (part.status, part.text) == ("completed", "a.py\n")
    assert given.parts[0].type == "tool-result"
    assert "arguments" not in asked.data


def test_arguments_that_are_written_otherwise_stay(
    tmp_path: Path, store: Store
) -> None:
    spaced, broken = '{"a": 1}', '{"a'
    one, two = read(
        store, tmp_path, call("c1", arguments=spaced), call("c2", arguments=broken)
    )
    assert one.parts[0].input == {"a": 1}
    assert rest(one)["arguments"] == spaced
    assert two.parts[0].input == broken


def test_a_result_may_be_blocks(tmp_path: Path, store: Store) -> None:
    url = f"data:image/png;base64,{PNG}"
    blocks = [
        {"type": "input_text", "text": "Seen"},
        {"type": "input_image", "image_url": url, "detail": "low"},
    ]
    _, given = read(store, tmp_path, call("c1"), result("c1", blocks))
    text, image = given.parts
    assert text.text == "Seen"
    assert image.data["mime"] == "image/png"
    assert image.data["content"].startswith(b"\x89PNG")
    assert image.data["openai"]["block"]["detail"] == "low"


def test_tools_of_the_provider_have_no_result_of_their_own(
    tmp_path: Path, store: Store
) -> None:
    found = read(store, tmp_path, *first())
    search, mcp = found[6].parts[0], found[7].parts[0]
    assert (search.tool, search.call_id, search.status) == (
        "web_search",
        "ws_1",
        "completed",
    )
    assert search.input == {"type": "search", "query": "tea"}
    assert (mcp.tool, mcp.text) == ("look", "green")


RESULTS: dict[str, tuple[Any, str, list[str]]] = {
    "a shell": ([{"stdout": "a", "stderr": "b", "outcome": {"type": "exit", "exit_code": 1}}], "a\nb", []),
    "a shell without output": ([{"stdout": "", "stderr": ""}], "", []),
    "a screen": ({"type": "computer_screenshot", "image_url": PNG}, "", ["file"]),
    "an image alone": ([{"type": "input_image", "image_url": PNG}], "", ["file"]),
    "an object": ({"rows": [1]}, '{"rows":[1]}', []),
    "nothing": (None, "", []),
}  # fmt: skip


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_of_any_form_ends_its_call(
    name: str, tmp_path: Path, store: Store
) -> None:
    output, text, more = RESULTS[name]
    done = {"type": "computer_call_output", "call_id": "c1", "output": output}
    asked, found = read(
        store, tmp_path, {"type": "computer_call", "call_id": "c1", "action": {"x": 1}}, done
    )  # fmt: skip
    assert (asked.parts[0].status, asked.parts[0].text) == ("completed", text)
    assert [part.type for part in found.parts] == ["tool-result", *more]


def test_a_call_of_mcp_with_its_output_is_completed(
    tmp_path: Path, store: Store
) -> None:
    items = [{"type": "mcp_call", "id": "m", "name": "find", "arguments": "{}", **more} for more in ({"output": "a", "error": None}, {})]  # fmt: skip
    found = read(store, tmp_path, *items)
    assert [m.parts[0].status for m in found] == ["completed", "running"]


def test_an_item_names_the_model_if_it_is_not_of_responses(
    tmp_path: Path, store: Store
) -> None:
    said = answer("Yes") | {"provider_data": {"model": "large", "response_id": "r1"}}
    asked, found = read(store, tmp_path, prompt("Hi"), said)
    assert (asked.model_id, found.model_id) == (None, "large")
    assert rest(found)["provider_data"] == said["provider_data"]


def test_ids_of_items_may_all_be_the_same(tmp_path: Path, store: Store) -> None:
    items = [answer("One"), answer("Two")]
    for item in items:
        item["id"] = "__fake_id__"
    assert [m.text for m in read(store, tmp_path, *items)] == ["One", "Two"]


def test_an_encrypted_item_is_kept_as_it_is(tmp_path: Path, store: Store) -> None:
    envelope = {"__enc__": 1, "v": 1, "kid": "hkdf-v1", "payload": "gAAA"}
    (found,) = read(store, tmp_path, envelope)
    assert (found.kind, rest(found)) == ("custom_message", envelope)


def test_items_that_a_compaction_keeps_are_in_the_context(
    tmp_path: Path, store: Store
) -> None:
    item = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAA"}
    write(tmp_path / "a.db", {"s": [prompt("Kept"), item, prompt("New")]})
    session = taken(store, tmp_path)
    kept = [m.text for m in store.context(session.id).messages if m.role == "user"]
    assert kept == ["Kept", "New"]


def test_imported_items_are_sent_as_they_were(tmp_path: Path, store: Store) -> None:
    write(tmp_path / "a.db", {"s": first()})
    context = store.context(taken(store, tmp_path).id)
    assert context.to_openai() == first()


def test_times_are_utc(tmp_path: Path, store: Store) -> None:
    write(tmp_path / "a.db", {"s": [prompt("Hi")]})
    session = taken(store, tmp_path)
    assert session.time_created == T0
    assert store.messages(session.id)[0].time_created == T0


def test_a_bad_item_is_reported_and_skipped(tmp_path: Path, store: Store) -> None:
    path = write(tmp_path / "a.db", {"s": [prompt("One"), prompt("Two")]})
    bad = [
        "{",
        "[1]",
        "{}",
        '{"type": []}',
        "[" * 400,
        b"\xff",
        7,
        '{"type":"x","n":1e400}',
    ]
    with connect(path) as db:
        rows = [("s", text, WHEN) for text in bad]
        db.executemany(
            "INSERT INTO agent_messages (session_id, message_data, created_at)"
            " VALUES (?, ?, ?)",
            rows,
        )
        db.execute("INSERT INTO agent_messages VALUES (99, 's', ?, 7)", ['{"role":"user","content":"Three"}'])  # fmt: skip
        db.commit()
    found = read_into(store, tmp_path)
    problems = [item for item in found if isinstance(item, Problem)]
    assert len(problems) >= len(bad) - 1
    assert all("session 's': message " in item.why for item in problems), problems
    (session,) = store.sessions(project=ALL)
    texts = [m.text for m in store.messages(session.id) if m.role == "user"]
    assert texts == ["One", "Two", "Three"]


# -- again -------------------------------------------------------------------------


def test_only_new_rows_are_new(tmp_path: Path, store: Store) -> None:
    path = write(tmp_path / "a.db", {"s": [prompt("One")], "t": [prompt("Other")]})
    read_into(store, tmp_path)
    with connect(path) as db:
        db.execute("INSERT INTO agent_messages VALUES (9, 's', ?, ?)", [json.dumps(answer("Two")), WHEN])  # fmt: skip
        db.commit()
    found = [item for item in read_into(store, tmp_path) if isinstance(item, Imported)]
    assert {item.source_id: item.outcome for item in found} == {
        "s": "updated",
        "t": "unchanged",
    }


def test_a_file_that_begins_again_replaces_nothing(
    tmp_path: Path, store: Store
) -> None:
    path = write(tmp_path / "a.db", {"main": [prompt("Old")]})
    read_into(store, tmp_path)
    path.unlink()
    write(path, {"main": [prompt("New")]})
    with connect(path) as db:
        db.execute("UPDATE agent_sessions SET created_at = '2026-11-21 00:00:00'")
        db.commit()
    read_into(store, tmp_path)
    (session,) = store.sessions(project=ALL)
    assert [m.text for m in store.messages(session.id)] == ["New"]
    every = store.messages(session.id, branches=True)
    assert [m.text for m in every] == ["Old", "New"]


# -- the advanced session ------------------------------------------------------------


def test_branches_are_a_tree_and_main_is_live(tmp_path: Path, store: Store) -> None:
    advanced(tmp_path)
    read_into(store, tmp_path)
    named = {s.source_id: s.id for s in store.sessions(project=ALL)}
    live = [m.text for m in store.messages(named["s1"])]
    assert live == ["One", "1", "Two", "2"]
    every = store.messages(named["s1"], branches=True)
    assert [m.text for m in every] == ["One", "1", "Two", "2", "Or two?", "3"]
    by_text = {m.text: m for m in every}
    assert by_text["Or two?"].parent_seq == by_text["1"].seq


def test_tokens_of_a_turn_are_disjoint_and_counted_once(
    tmp_path: Path, store: Store
) -> None:
    advanced(tmp_path)
    read_into(store, tmp_path)
    named = {s.source_id: s.id for s in store.sessions(project=ALL)}
    every = store.messages(named["s1"], branches=True)
    assert every[1].tokens == Tokens(input=40, output=15, reasoning=5, cache_read=60)
    assert every[3].tokens == Tokens(30, 10, 0, 0)
    assert every[1].data["turn_usage"]["input_tokens"] == 100
    assert [m.tokens.input for m in every if m.tokens] == [40, 30, 40]


def test_tokens_that_do_not_add_up_stay_in_the_row(
    tmp_path: Path, store: Store
) -> None:
    path = write(tmp_path / "a.db", {"s": [prompt("Hi"), answer("Yes")]})
    with connect(path) as db:
        db.executescript(ADVANCED)
        place(db, "s", "main", (1, "user", 1), (2, "assistant", 1))
        spend(db, "s", "main", 1, 10, 4, 60, 5)
        spend(db, "s", "gone", 3, 1, 1, 0, 0)
        db.commit()
    session = taken(store, tmp_path)
    found = store.messages(session.id)[1]
    assert found.tokens is None
    assert found.data["turn_usage"]["input_tokens"] == 10
    assert [row["branch_id"] for row in session.data["turn_usage"]] == ["gone"]


def test_usage_alone_makes_a_session_change(tmp_path: Path, store: Store) -> None:
    advanced(tmp_path)
    read_into(store, tmp_path)
    with connect(tmp_path / "advanced.db") as db:
        spend(db, "s2", "main", 1, 5, 5, 0, 0)
        db.commit()
    found = [item for item in read_into(store, tmp_path) if isinstance(item, Imported)]
    changed = [item.source_id for item in found if item.outcome == "updated"]
    assert changed == ["s2"]


def test_no_item_is_read_for_an_unchanged_session(tmp_path: Path) -> None:
    plain(tmp_path)
    with closing(sqlite3.connect(tmp_path / "agents.db")) as db:
        db.execute("UPDATE agent_messages SET message_data = '{'")
        db.commit()
    (found,) = find(tmp_path)
    assert not [item for item in found.read() if isinstance(item, Problem)]


def test_reasoning_without_a_summary_is_reasoning(tmp_path: Path, store: Store) -> None:
    (found,) = read(store, tmp_path, thought())
    assert [p.type for p in found.parts] == ["reasoning"]
