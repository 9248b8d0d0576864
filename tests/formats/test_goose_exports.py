"""Sessions written as Goose exports them: its own as they were, and those of others."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from imported import besides_times
from samples import new_store, read_into
from samples_goose import (
    PNG,
    T0,
    Record,
    answered,
    asked,
    bare,
    call,
    database,
    everything,
    exported,
    failure,
    log,
    metadata,
    result,
    said,
    sessions,
    words,
)

from sessiondb import (
    ALL,
    Store,
    assistant,
    event,
    reasoning,
    text,
    tool,
    tool_result,
    user,
)
from sessiondb.formats import exporter, find
from sessiondb.formats.protocol import Written
from sessiondb.model import Document, Imported, Loss, MessageDraft, Session


def written(store: Store, session: Session) -> tuple[Record, list[str]]:
    """Return the document of a session, and what it does not hold."""
    goose = exporter("goose")
    items = [*goose.write([store.export(session, **goose.read)], detail="full")]
    (document,) = (item for item in items if isinstance(item, Document))
    losses = [item.why for item in items if isinstance(item, Loss)]
    return json.loads("".join(document.chunks)), losses


def back(store: Store, folder: Path, *records: Record) -> list[Record]:
    """Import exports, and return what is written of them."""
    folder.mkdir(exist_ok=True)
    for record in records:
        path = folder / f"{record['id']}.json"
        path.write_text(json.dumps(record), encoding="utf-8")
    for imported in read_into(store, folder):
        assert isinstance(imported, Imported), imported
    ids = {s.source_id: s for s in everyone(store)}
    return [written(store, ids[record["id"]])[0] for record in records]


def everyone(store: Store) -> list[Session]:
    return store.sessions(
        project=ALL, archived=True, subagents=True, empty=True, limit=1000
    )


# -- sessions of Goose ------------------------------------------------------------------


def test_exports_are_written_unchanged(store: Store, tmp_path: Path) -> None:
    records = [exported(row) for row in sessions()]
    assert back(store, tmp_path / "in", *records) == records


def test_records_that_do_not_fit_are_written_unchanged(
    store: Store, tmp_path: Path
) -> None:
    items = [
        words("for you", annotations={"audience": ["user"]}), words("first"),
        {"type": "image", "data": "not base64!", "mimeType": "image/png"}, words("second"),
        {"type": "resource", "resource": {"uri": "file:///a", "text": "x"}}, {"type": "text"},
    ]  # fmt: skip
    old = {"type": "toolResponse", "id": "c5", "metadata": {"p": 1}}
    old["toolResult"] = {"status": "success", "value": [words("old")]}
    odd = [
        said("1", "user", {"type": "image", "data": PNG, "mimeType": "image/png"}, {"type": "image"}),
        said("2", "user", result("c1", *items), result("c2"), result("c3", words("x"), structuredContent={"a": [1]})),
        said("3", "user", failure("c4", "-32603: -32603: no"), old, words("and this")),
        answered("4", {"type": "toolRequest", "id": "c6", "toolCall": {"status": "error", "error": "-32603: bad"}}),
        answered("5", {"type": "toolRequest", "id": "c7", "toolCall": {"status": "success", "value": {"name": "x"}}, "_meta": {"goose.toolSummary.title": "X"}}),
        answered("6", {"type": "frontendToolRequest", "id": "c8", "toolCall": {"status": "success", "value": {"name": "y", "arguments": {"at": 1}}}}),
        answered("7", {"type": "reasoning", "text": "old"}, {"type": "redactedThinking", "data": "x"}, {"type": "thinking", "thinking": 7}),
        answered("8", {"type": "conversationCompacted", "msg": "gone"}, {"type": "tool", "a": 1}, {"type": "later", "text": "x"}),
        answered("9", {"type": "toolConfirmationRequest", "id": "c", "toolName": "rm", "arguments": {}, "prompt": None}),
        said("10", "narrator", words("x", _meta={"a": None})),
        {"id": None, "role": "user", "created": (T0 + 9) * 1000 + 5, "content": [words("ms")]},
        {"role": "assistant", "created": T0, "content": []},
        {"id": "10", "role": "user", "created": -1, "content": [7, {"no": "type"}], "metadata": None},
        {"id": "11", "role": "user", "created": "soon", "content": "a text", "metadata": {}, "later": {"x": 1}},
    ]  # fmt: skip
    record = exported({"id": "20260202_9", "messages": odd})
    record |= {"later": 1, "message_count": 99, "model_config": {"model_name": 7}}
    (written_record,) = back(store, tmp_path / "in", record)
    assert written_record.pop("conversation") == record.pop("conversation")
    assert written_record == record


@pytest.mark.parametrize(
    "block",
    [
        None, 7, "text", {"no": "type", "content": 1}, {"type": 5, "text": "x"}, {"type": ""}, {"block": {}},
        {"type": "later", "url": "u", "content": [1], "mime": "m", "at": 0, "untyped": True},
        {"type": "text", "text": "x", "url": "u", "mime": "m", "content": "c"}, words("x", at=0), words("x", untyped=True),
        {"type": "image", "data": PNG, "mimeType": "image/png", "mime": "m", "url": "u"},
        {"type": "thinking", "thinking": "x", "signature": "s", "at": 1, "content": "c"},
        {**result("c1", words("x")), "url": "u"}, {**result("c1", words("x")), "at": 7},
        {**call("c1", "x"), "content": "c", "at": 1}, {**call("c1", "x"), "untyped": True},
        {"tool_name": "", "content": "c"}, {"text": "x", "at": 1}, {"type": "custom", "block": 1, "at": 1},
    ],
)  # fmt: skip
def test_a_block_of_any_shape_is_written_unchanged_and_hides_no_other(
    store: Store, tmp_path: Path, block: Any
) -> None:
    record = exported(
        {"id": "1", "messages": [said("1", "user", words("Tea?"), block)]}
    )
    (written_record,) = back(store, tmp_path / "in", record)
    assert written_record == record
    (session,) = everyone(store)
    (message,) = store.messages(session)
    assert message.parts[0].text == "Tea?"


def test_keys_that_an_export_did_not_have_are_not_added(
    store: Store, tmp_path: Path
) -> None:
    record = {
        "id": "20250101_1", "working_dir": "/tea", "name": "Tea", "message_count": 1,
        "created_at": "2025-01-01T00:00:00Z", "updated_at": "2025-01-01T00:00:00Z",
        "extension_data": {}, "conversation": [asked("m1", "Hi")],
        "accumulated_usage": {"input_tokens": 5, "output_tokens": 1},
    }  # fmt: skip
    assert back(store, tmp_path / "in", record) == [record]


@pytest.mark.parametrize("conversation", ["Hi", 7, {"m1": "Hi"}])
def test_a_conversation_that_is_not_a_list_is_kept(
    store: Store, tmp_path: Path, conversation: Any
) -> None:
    created = "2025-01-01T00:00:00Z"
    record = {"working_dir": "/tea", "id": "1", "created_at": created}
    record["conversation"] = conversation
    (tmp_path / "tea.json").write_text(json.dumps(record))
    read_into(store, tmp_path)
    (session,) = everyone(store)
    assert session.data["session"]["conversation"] == conversation


def test_a_database_is_written_as_the_release_of_its_schema_exports_it(
    store: Store, tmp_path: Path
) -> None:
    rows = sessions()
    database(tmp_path / "all.db", *rows, version=13).close()
    read_into(store, tmp_path)
    records = {s.source_id: written(store, s)[0] for s in everyone(store)}
    tea = exported(rows[0])
    assert records["20260202_1"] == tea
    # The one that is counted by what a user sees.
    database(tmp_path / "new.db", *rows, version=17).close()
    with new_store() as other:
        (newer,) = find(tmp_path / "new.db")
        assert len(list(other.ingest(newer.read()))) == 3
        records = {s.source_id: written(other, s)[0] for s in everyone(other)}
    newest = records["20260202_1"]
    assert newest["conversation"] == tea["conversation"]
    assert newest["accumulated_usage"] == {
        "total_tokens": 300, "input_tokens": 200, "output_tokens": 100,
        "cache_read_input_tokens": 50, "cache_write_input_tokens": 10,
    }  # fmt: skip
    assert (newest["message_count"], newest["last_message_at"]) == (
        9,
        "2026-02-02T02:40:05Z",
    )
    assert records["20260202_2"]["parent_session_id"] == "20260202_1"


def test_a_log_is_written_with_what_an_import_requires(
    store: Store, tmp_path: Path
) -> None:
    log(tmp_path / "20250402_101112.jsonl", metadata(), *map(bare, everything()[:3]))
    read_into(store, tmp_path)
    (session,) = everyone(store)
    record, losses = written(store, session)
    assert (record["id"], record["name"]) == ("20250402_101112", "Tea")
    assert record["accumulated_input_tokens"] == 200
    assert record["message_count"] == len(record["conversation"]) == 3
    flags = {"userVisible": True, "agentVisible": True}
    assert [m["metadata"] for m in record["conversation"]] == [flags] * 3
    assert losses == []


def test_sums_are_not_written_as_a_message_and_counted_once(
    store: Store, tmp_path: Path
) -> None:
    (record,) = back(store, tmp_path / "in", exported(sessions()[0]))
    assert len(record["conversation"]) == len(everything())
    (again,) = back(store, tmp_path / "again", record)
    assert again == record
    (session,) = everyone(store)
    assert (session.tokens_input, session.cost) == (200, 0.25)


def test_messages_added_here_follow_as_messages_of_goose(
    store: Store, tmp_path: Path
) -> None:
    back(store, tmp_path / "in", exported(sessions()[0]))
    (session,) = everyone(store)
    store.append(session, user("More"))
    store.append(session, assistant(tool("ls", {"a": 1}, call_id="n1", output="a.py")))
    record, _ = written(store, session)
    *_, prompt, answer, results = record["conversation"]
    assert prompt["content"] == [words("More")]
    assert [block["type"] for block in answer["content"]] == ["toolRequest"]
    assert (results["role"], results["content"]) == (
        "user",
        [result("n1", words("a.py"))],
    )
    assert record["message_count"] == len(everything()) + 3


# -- sessions of other programs -----------------------------------------------------------


def made(store: Store, *drafts: MessageDraft) -> Session:
    session = store.create_session(directory="/home/ada/tea", title="Tea")
    for draft in drafts:
        store.append(session, draft)
    return store.session(session.id)


def test_the_name_of_an_export_may_be_its_description(
    store: Store, tmp_path: Path
) -> None:
    record = exported(sessions()[0])
    record["description"] = record.pop("name")
    (again,) = back(store, tmp_path / "in", record)
    assert again == record
    (session,) = everyone(store)
    assert (session.title, session.title_source) == ("Tea", "agent")


def test_another_session_becomes_calls_and_results(store: Store) -> None:
    session = made(
        store, user("Go"),
        assistant(reasoning("Hm"), tool("ls", {"a": 1}, call_id="c1", error="no")),
        assistant(tool("date", call_id="c2")),
        MessageDraft("tool", (tool_result("c2", "Monday"),)),
        assistant(text("Done")),
    )  # fmt: skip
    record, losses = written(store, session)
    said_there = [
        (m["role"], [block["type"] for block in m["content"]])
        for m in record["conversation"]
    ]
    assert said_there == [
        ("user", ["text"]), ("assistant", ["thinking", "toolRequest"]),
        ("user", ["toolResponse"]), ("assistant", ["toolRequest"]),
        ("user", ["toolResponse"]), ("assistant", ["text"]),
    ]  # fmt: skip
    failed = record["conversation"][2]["content"][0]
    assert failed == result("c1", words("no"), isError=True)
    assert besides_times(losses) == []
    # All that `goose session import` requires.
    assert record["extension_data"] == {"sessiondb.v0": {"session": session.id}}
    assert {"working_dir", "name", "created_at", "updated_at", "message_count"} <= set(
        record
    )


def test_results_of_a_session_made_here_come_back_unchanged(
    store: Store, tmp_path: Path
) -> None:
    calls = (tool("ls", call_id="c1", output="a"), tool("ls", call_id="c2", output=""))
    session = made(store, user("Go"), assistant("Look:", *calls), assistant("Done"))
    messages = list(store.messages(session))
    record, _ = written(store, session)
    results = record["conversation"][2]
    assert [block["id"] for block in results["content"]] == ["c1", "c2"]
    path = tmp_path / "session.json"
    path.write_text(json.dumps(record), encoding="utf-8")
    (imported,) = read_into(store, path)
    assert isinstance(imported, Imported)
    assert (imported.outcome, imported.id) == ("unchanged", session.id)

    record["conversation"].append(asked("m9", "More", 10**9))
    record["conversation"].append(answered(None, call("c3"), at=10**9))
    path.write_text(json.dumps(record), encoding="utf-8")
    read_into(store, path)
    *same, prompt, last = store.messages(session)
    assert same == messages
    assert (prompt.text, last.parts[0].call_id) == ("More", "c3")


def test_an_import_of_goose_requires_more_of_a_model_than_its_name(
    store: Store,
) -> None:
    session = made(store, user("Go"))
    store.append(session, assistant("Yes"), provider="acme", model="large")
    record, _ = written(store, store.session(session.id))
    assert record["model_config"]["model_name"] == "large"
    assert record["model_config"]["toolshim"] is False


def test_messages_before_a_compaction_are_out_of_the_agents_sight(
    store: Store, tmp_path: Path
) -> None:
    session = made(
        store, user("1"), assistant("2"), event("compaction", text("Summary")),
        event("custom_message", text("A reminder")), user("3"), event("rules", a=1),
    )  # fmt: skip
    record, losses = written(store, session)
    assert besides_times(losses) == ["1 event of kind rules"]
    flags = [tuple(m["metadata"].values()) for m in record["conversation"]]
    assert flags == [
        (True, False),
        (True, False),
        (False, True),
        (False, True),
        (True, True),
    ]

    (tmp_path / "a.json").write_text(json.dumps(record))
    with new_store() as other:
        (imported,) = read_into(other, tmp_path)
        assert isinstance(imported, Imported)
        context = other.context(imported.id)
        assert context.summary == "Summary"
        assert [m.text for m in context.messages] == ["A reminder", "3"]


def test_a_summary_comes_before_the_messages_that_it_keeps(
    store: Store, tmp_path: Path
) -> None:
    """Goose sends nothing that precedes the first prompt."""
    session = made(store, user("1"))
    first_kept = store.append(session, assistant("2"))
    store.append(session, event("compaction", "Summary", first_kept_id=first_kept.id))
    store.append(session, user("3"))
    record, _ = written(store, store.session(session.id))
    said_there = [m["content"][0]["text"] for m in record["conversation"]]
    assert said_there == ["1", "Summary", "2", "3"]

    with new_store() as other:
        (tmp_path / "a.json").write_text(json.dumps(record))
        (imported,) = read_into(other, tmp_path)
        assert isinstance(imported, Imported)
        context = other.context(imported.id)
        assert context.summary == "Summary"
        assert [m.text for m in context.messages] == ["2", "3"]


def test_times_never_go_back_because_goose_orders_by_them(store: Store) -> None:
    session = made(
        store, MessageDraft("user", (text("late"),), time_created=T0 * 1000 + 9000),
        MessageDraft("assistant", (text("early"),), time_created=T0 * 1000),
    )  # fmt: skip
    record, _ = written(store, session)
    assert [m["created"] for m in record["conversation"]] == [T0 + 9] * 2


def test_branches_lists_and_parts_without_a_place_are_losses(store: Store) -> None:
    session = made(store, user("1"), assistant("2"))
    first, _ = store.messages(session)
    store.append(session, assistant("3"), after=first)
    store.append(session, user("4"))
    record, losses = written(store, store.session(session.id))
    assert [m["content"][0]["text"] for m in record["conversation"]] == ["1", "3", "4"]
    # An answer was left out, and no prompt: many programs have records beside the path.
    lost = "1 message of branches that are not continued (no prompt)"
    assert besides_times(losses) == [lost]


def test_goose_imports_a_file_and_continues_it_by_its_name() -> None:
    take_in = exporter("goose").take_in
    assert take_in is not None
    document = Written("a.json", json.dumps({"name": "--Tea"}), "/home/ada/tea")
    taken = take_in(document, {})
    assert taken.take_in == ["goose", "session", "import", "{file}"]
    assert taken.resume == ["goose", "session", "--resume", "--name=--Tea"]


def test_a_session_that_goose_imported_before_is_continued_by_its_id(
    store: Store, tmp_path: Path
) -> None:
    session = made(store, user("1"), assistant("2"))
    record, _ = written(store, session)
    sessions = tmp_path / "data" / "sessions"
    sessions.mkdir(parents=True)
    copies = [
        {
            **record,
            "id": f"20260202_{number}",
            "updated_at": f"2026-02-02 02:4{number}:00",
            "messages": record["conversation"],
        }
        for number in (1, 2)
    ]
    other = {**copies[1], "id": "20260202_3", "extension_data": {}}
    odd = {**copies[1], "id": "20260202_4", "extension_data": "{"}
    database(sessions / "sessions.db", *copies, other, odd).close()

    take_in = exporter("goose").take_in
    assert take_in is not None
    env = {"GOOSE_PATH_ROOT": str(tmp_path)}

    def resume(record: Record) -> list[str]:
        taken = take_in(Written("a.json", json.dumps(record), "/home/ada/tea"), env)
        return [*taken.take_in[2:3], *taken.resume[3:]]

    assert resume(record) == ["--session-id", "20260202_2"]
    # One that does not have all of it is an earlier state: it is imported again.
    store.append(session, user("3"))
    longer, _ = written(store, store.session(session.id))
    assert resume(longer) == ["import", f"--name={longer['name']}"]

    (sessions / "sessions.db").write_bytes(b"not a database")
    assert resume(record) == ["import", f"--name={record['name']}"]


# -- the real program -----------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("of", ["data", "reports"])
def test_real_sessions_are_written_as_goose_exported_them(
    of: str, real_store: Callable[[str], Path], store: Store
) -> None:
    folder = real_store("goose-1.34.0")
    for foreign_store in find(folder / of, formats=["goose"]):
        assert all(
            isinstance(item, Imported) for item in store.ingest(foreign_store.read())
        )
    count = 0
    for session in everyone(store):
        report = folder / "reports" / f"export-{session.title}.json"
        expected: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
        record, losses = written(store, session)
        assert list(record) == list(expected)
        assert record == expected
        assert losses == []
        count += len(record["conversation"])
    assert count == 58
