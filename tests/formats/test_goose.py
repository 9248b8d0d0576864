"""The sessions of Goose: databases of all schemas, logs, exports, and what they mean."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from imported import by_id, taken, texts
from samples import read_into
from samples_goose import (
    GONE,
    PNG,
    T0,
    TOLD,
    UNSEEN,
    Record,
    answered,
    asked,
    bare,
    call,
    database,
    everything,
    exported,
    failure,
    insert,
    log,
    metadata,
    result,
    row_of,
    said,
    sessions,
    words,
)

from sessiondb import ALL, Store
from sessiondb.errors import SourceError
from sessiondb.formats import default_locations, find
from sessiondb.model import Imported, Message, Problem, SourceSession, Tokens

DB = Path("goose/sessions/all.db")


def wrote(folder: Path, *sessions: Record, version: int = 17, more: str = "") -> None:
    (folder / DB).unlink(missing_ok=True)
    database(folder / DB, *sessions, version=version, more=more).close()


def held(*messages: Record, **row: Any) -> Record:
    return {"id": "20260202_1", "messages": [*messages], **row}


def read(store: Store, folder: Path, *messages: Record, **row: Any) -> list[Message]:
    wrote(folder, held(*messages, **row))
    return list(store.messages(taken(store, folder), branches=True))


# -- what the agent sees ----------------------------------------------------------------


def test_a_compaction_cuts_the_context_and_keeps_the_conversation(
    store: Store, tmp_path: Path
) -> None:
    wrote(tmp_path, held(*everything()))
    session = taken(store, tmp_path)
    context = store.context(session)
    assert context.summary == "Summary: tea"
    assert texts(context.messages)[:2] == [
        "Go on as if nothing happened",
        "And coffee?",
    ]
    assert texts(context.messages)[-1] == "Four minutes."
    path = [message.id for message in store.messages(session)]
    assert path == ["m1", "m2", "m3", "m4", "m5", "m6", "m8", "m9", "m11"]


def test_messages_that_neither_side_sees_are_beside_the_path(
    store: Store, tmp_path: Path
) -> None:
    wrote(tmp_path, held(
        asked("m1", "First", **UNSEEN), asked("m2", "Old summary", **GONE),
        answered("m3", "Old note", **GONE), asked("m4", "Summary", **TOLD), asked("m5", "Next"),
    ))  # fmt: skip
    session = taken(store, tmp_path)
    assert texts(store.messages(session)) == ["First", "Summary", "Next"]
    everywhere = store.messages(session, branches=True)
    assert [(m.id, m.role, m.parent_seq) for m in everywhere] == [
        ("m1", "user", None), ("m2", "user", 1), ("m3", "assistant", 2),
        ("m4", "event", 1), ("m5", "user", 4),
    ]  # fmt: skip


def test_a_hidden_answer_in_the_middle_is_not_sent(
    store: Store, tmp_path: Path
) -> None:
    """Pairs of calls and results are summarised one by one."""
    wrote(tmp_path, held(
        asked("m1", "Go"), answered("m2", call("c1"), **UNSEEN),
        said("m3", "user", result("c1", words("long")), **UNSEEN),
        asked("m4", "It listed files", **TOLD), answered("m5", "Done"),
    ))  # fmt: skip
    session = taken(store, tmp_path)
    context = store.context(session)
    assert texts(context.messages) == ["Go", "It listed files", "Done"]
    assert context.problems == ()
    roles = [m.role for m in store.messages(session, branches=True)]
    assert roles == ["user", "assistant", "tool", "event", "assistant"]


def test_the_last_note_to_the_user_is_not_the_end_of_the_path(
    store: Store, tmp_path: Path
) -> None:
    wrote(tmp_path, held(asked("m1", "Go"), answered("m2", "Out of credits", **UNSEEN)))
    assert texts(store.context(taken(store, tmp_path)).messages) == ["Go"]


def test_flags_that_are_missing_or_odd_hide_nothing(
    store: Store, tmp_path: Path
) -> None:
    wrote(tmp_path, held(asked("m1", "1"), asked("m2", "2"), asked("m3", "3")))
    with closing(sqlite3.connect(tmp_path / DB)) as db, db:
        for number, flags in enumerate((None, "{}", "not json"), 1):
            db.execute(
                "UPDATE messages SET metadata_json = ? WHERE id = ?", (flags, number)
            )
    assert texts(store.context(taken(store, tmp_path)).messages) == ["1", "2", "3"]


def test_a_compaction_after_the_first_import_moves_what_it_hides(
    store: Store, tmp_path: Path
) -> None:
    first, answer = asked("m1", "First"), answered("m2", "Answer")
    wrote(tmp_path, held(first, answer))
    session = taken(store, tmp_path)

    for message in (first, answer):
        message["metadata"]["agentVisible"] = False
    wrote(tmp_path, held(first, answer, asked("m3", "Summary", **TOLD), asked("m4", "Next"),
                         updated_at="2026-02-02 03:00:00"))  # fmt: skip
    (again,) = read_into(store, tmp_path)
    assert isinstance(again, Imported)
    assert again.outcome == "updated"
    context = store.context(session.id)
    assert (context.summary, texts(context.messages)) == ("Summary", ["Next"])


def test_messages_before_an_edited_prompt_are_a_branch_here(
    store: Store, tmp_path: Path
) -> None:
    beginning = asked("m1", "First"), answered("m2", "Answer")
    wrote(tmp_path, held(*beginning, asked("m3", "Next"), answered("m4", "Wrong")))
    session = taken(store, tmp_path)
    wrote(
        tmp_path,
        held(*beginning, asked("m5", "Edited"), updated_at="2026-02-02 03:00:00"),
    )
    read_into(store, tmp_path)
    assert texts(store.messages(session)) == ["First", "Answer", "Edited"]
    assert len(list(store.messages(session, branches=True))) == 5


# -- what records become ----------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_an_error_does_not_grow_with_each_load(
    count: int, store: Store, tmp_path: Path
) -> None:
    error = "-32603: " * count + "no such file: -32603: "
    _, answer, back = read(
        store, tmp_path, asked("m1", "Go"), answered("m2", call("c1")),
        said("m3", "user", failure("c1", error)),
    )  # fmt: skip
    (tool,) = answer.parts
    assert (tool.text, tool.outcome, tool.status) == (
        "no such file: -32603: ", "failed", "error"
    )  # fmt: skip
    assert (back.role, back.parts[0].type) == ("tool", "tool-result")
    assert back.parts[0].data["toolResult"]["error"] == error


def test_results_have_the_text_that_the_agent_gets(
    store: Store, tmp_path: Path
) -> None:
    content = [
        words("for you", annotations={"audience": ["user"]}),
        words("for it", annotations={"audience": ["assistant"]}),
        {"type": "image", "data": PNG, "mimeType": "image/png"}, words("more"),
    ]  # fmt: skip
    _, answer, back = read(
        store, tmp_path, asked("m1", "Go"), answered("m2", call("c1"), call("c2")),
        said("m3", "user", result("c1", *content), result("c2", words("no"), isError=True)),
    )  # fmt: skip
    assert [(part.text, part.outcome) for part in answer.parts] == [
        ("for it", None), ("no", "failed"),
    ]  # fmt: skip
    kinds = [part.type for part in back.parts]
    assert kinds == ["tool-result", "file", "text", "tool-result"]
    assert back.parts[1].data["content"].startswith(b"\x89PNG")


def test_a_result_of_older_releases_is_the_content_alone(
    store: Store, tmp_path: Path
) -> None:
    old = {"type": "toolResponse", "id": "c1"}
    old["toolResult"] = {"status": "success", "value": [words("a.py")]}  # type: ignore[assignment]
    _, answer, _ = read(
        store, tmp_path, asked("m1", "Go"), answered("m2", call("c1")), said("m3", "user", old)
    )  # fmt: skip
    assert (answer.parts[0].text, answer.parts[0].status) == ("a.py", "completed")


def test_a_call_that_could_not_be_understood_has_no_name(
    store: Store, tmp_path: Path
) -> None:
    failed = {"status": "error", "error": "-32602: no arguments"}
    block = {"type": "toolRequest", "id": "c1", "toolCall": failed}
    (message,) = read(store, tmp_path, answered("m1", block))
    (part,) = message.parts
    assert (part.type, part.text) == ("custom", "-32602: no arguments")
    assert part.data == block


def test_thinking_is_reasoning_and_a_note_to_the_user_an_event(
    store: Store, tmp_path: Path
) -> None:
    messages = read(
        store, tmp_path,
        answered("m1", {"type": "thinking", "thinking": "Hm", "signature": "s"},
                 {"type": "redactedThinking", "data": "x"}, {"type": "later", "a": 1}),
        answered("m2", {"type": "toolConfirmationRequest", "id": "c1", "toolName": "rm",
                        "arguments": {}, "prompt": None}),
        said("m3", "user", {"type": "actionRequired", "data": {"actionType": "elicitation"}}),
        said("m4", "narrator", words("Meanwhile")),
    )  # fmt: skip
    assert [(m.role, m.kind) for m in messages] == [
        ("assistant", None), ("event", "toolConfirmationRequest"),
        ("event", "actionRequired"), ("event", "narrator"),
    ]  # fmt: skip
    first, second, third = messages[0].parts
    assert (first.type, first.text, first.data) == (
        "reasoning",
        "Hm",
        {"signature": "s"},
    )
    assert (second.type, second.data) == ("reasoning", {"redacted": {"data": "x"}})
    assert (third.type, third.data) == ("later", {"a": 1})


def test_the_model_that_answered_is_that_of_the_message(
    store: Store, tmp_path: Path
) -> None:
    inference = {"provider": "fake", "requestedModel": "large"}
    first, second = read(
        store, tmp_path, answered("m1", "1", inference=inference),
        answered("m2", "2", inference={**inference, "resolvedModel": "larger"}),
    )  # fmt: skip
    assert (first.provider_id, first.model_id) == ("fake", "large")
    assert (second.provider_id, second.model_id) == ("fake", "larger")


def test_seconds_and_milliseconds_are_distinguished(
    store: Store, tmp_path: Path
) -> None:
    late, early = asked("m1", "late", 9), asked("m2", "early")
    early["created"] = (T0 + 3) * 1000 + 250
    messages = read(store, tmp_path, late, early)
    times = [(m.text, m.time_created) for m in store.messages(messages[0].session_id)]
    # A stored message is complete.
    assert all(m.time_completed == m.time_created for m in messages)
    assert times == [("early", T0 * 1000 + 3250), ("late", T0 * 1000 + 9000)]


def test_messages_of_one_second_keep_the_order_of_their_rows(
    store: Store, tmp_path: Path
) -> None:
    messages = read(store, tmp_path, *(asked(f"m{n}", str(n)) for n in (3, 1, 2)))
    assert texts(messages) == ["3", "1", "2"]


def test_ids_that_are_missing_or_repeated_are_made(
    store: Store, tmp_path: Path
) -> None:
    messages = read(store, tmp_path, asked(None, "1"), asked("m", "2"), asked("m", "3"))
    assert [m.id for m in messages] == ["msg_20260202_1_1", "m", "msg_20260202_1_3"]


# -- sessions -----------------------------------------------------------------------------


def test_the_columns_of_a_row_are_those_of_the_session(
    store: Store, tmp_path: Path
) -> None:
    wrote(tmp_path, *sessions())
    assert all(isinstance(item, Imported) for item in read_into(store, tmp_path))
    sessions_by_id = by_id(store)
    tea, child, other = (sessions_by_id[f"20260202_{n}"] for n in (1, 2, 3))
    assert (tea.title, tea.directory, tea.source) == ("Tea", "/home/ada/tea", "goose")
    assert (tea.provider_id, tea.model_id) == ("fake", "large")
    assert tea.time_created == 1_770_000_000_000
    assert tea.time_archived == 1_770_000_120_000
    assert tea.data["session"]["user_set_name"] is True
    assert tea.data["session"]["recipe"] == {"title": "Tea"}
    assert tea.data["session"]["extension_data"]["todo.v0"]["content"] == "- [ ] tea"
    assert (child.parent_id, child.relation) == (tea.id, "subagent")
    # The name was the description before schema 4.
    assert (other.title, other.parent_id) == ("Another one", None)


@pytest.mark.parametrize("version", range(1, 18))
def test_every_schema_is_read_by_its_columns(
    version: int, store: Store, tmp_path: Path
) -> None:
    wrote(tmp_path, *sessions(), version=version)
    results = read_into(store, tmp_path)
    assert [type(item) for item in results] == [Imported] * 3
    assert [item.messages for item in results if isinstance(item, Imported)] == [
        12,
        2,
        2,
    ]


def test_a_fork_of_the_program_has_other_columns(store: Store, tmp_path: Path) -> None:
    wrote(tmp_path, version=17, more="""
        ALTER TABLE sessions ADD COLUMN tenant_id TEXT;
        ALTER TABLE messages ADD COLUMN user_id TEXT;
        ALTER TABLE sessions DROP COLUMN goose_mode; DELETE FROM schema_version;""")  # fmt: skip
    with closing(sqlite3.connect(tmp_path / DB)) as db, db:
        row = {"id": "20260202_1", "working_dir": "/tea", "tenant_id": "t"}
        insert(db, "sessions", row)
        message = {**row_of(asked("m1", "Hi")), "session_id": "20260202_1"}
        insert(db, "messages", {**message, "user_id": "u"})
    session = taken(store, tmp_path)
    (message,) = store.messages(session)
    assert session.data["row"]["tenant_id"] == "t"
    assert message.data["row"]["user_id"] == "u"  # type: ignore[attr-defined]


def test_a_thread_holds_the_messages_of_a_session_that_has_none(
    store: Store, tmp_path: Path
) -> None:
    wrote(tmp_path, held(thread_id="t1"), version=10)
    with closing(sqlite3.connect(tmp_path / DB)) as db, db:
        insert(db, "threads", {"id": "t1", "name": "Tea"})
        for name, session in (("a", "20260202_1"), ("b", None)):
            row = {
                **row_of(asked(name, name)),
                "thread_id": "t1",
                "session_id": session,
            }
            insert(db, "thread_messages", row)
    session = taken(store, tmp_path)
    assert texts(store.messages(session)) == ["a", "b"]
    assert session.data["thread"]["name"] == "Tea"


def test_a_thread_repeats_nothing_and_its_own_messages_are_beside_the_path(
    store: Store, tmp_path: Path
) -> None:
    wrote(tmp_path, held(asked("m1", "1"), thread_id="t1"), version=10)
    with closing(sqlite3.connect(tmp_path / DB)) as db, db:
        for name in ("m1", "m2"):
            row = {**row_of(asked(name, name)), "thread_id": "t1"}
            insert(db, "thread_messages", {**row, "session_id": "20260202_1"})
    session = taken(store, tmp_path)
    assert texts(store.messages(session)) == ["1"]
    assert texts(store.messages(session, branches=True)) == ["1", "m2"]


def test_a_session_that_is_its_own_ancestor_is_a_problem_and_read(
    store: Store, tmp_path: Path
) -> None:
    rows = [
        {"id": "a", "parent_session_id": "b", "messages": [asked("m1", "1")]},
        {"id": "b", "parent_session_id": "a", "messages": [asked("m2", "2")]},
    ]
    wrote(tmp_path, *rows)
    results = read_into(store, tmp_path)
    assert [
        "ancestor" in item.why for item in results if isinstance(item, Problem)
    ] == [True]
    assert sum(isinstance(item, Imported) for item in results) == 2


def test_a_subagent_has_the_call_whose_result_names_it(
    store: Store, tmp_path: Path
) -> None:
    asking = [asked("m1", "Tea?"), answered("m2", call("c1", "delegate"))]
    naming_session = {"_meta": {"subagent_session_id": "b"}}
    odd = [{"_meta": {"subagent_session_id": name}} for name in ([], "", "b")]
    ending = [
        said("m3", "user", *(result(f"c{number}", words("Yes"), **more) for number, more in enumerate([naming_session, *odd], 1))),
        asked("m4", "And subagent_session_id?"),
    ]  # fmt: skip
    subagent = {
        "id": "b",
        "parent_session_id": "a",
        "messages": [asked("s1", "Make it")],
    }

    calls = []
    for messages in (asking, [*asking, *ending]):
        wrote(tmp_path, {"id": "a", "messages": messages}, subagent)
        read_into(store, tmp_path)
        child = by_id(store)["b"]
        calls.append((child.call_id, child.parent_seq))
    parent = by_id(store)["a"]
    assert calls == [(None, None), ("c1", store.messages(parent)[1].seq)]


def test_a_session_of_that_type_is_a_subagent_without_a_parent(
    store: Store, tmp_path: Path
) -> None:
    row = {"id": "a", "session_type": "sub_agent", "messages": [asked("m1", "1")]}
    wrote(tmp_path, row, version=14)
    for outcome in ("imported", "unchanged"):
        (imported,) = read_into(store, tmp_path)
        assert isinstance(imported, Imported)
        assert imported.outcome == outcome
    (session,) = store.sessions(project=ALL, subagents=True)
    assert (session.relation, session.parent_id) == ("subagent", None)
    assert not list(store.sessions(project=ALL))


def test_a_damaged_row_is_reported_and_skipped(store: Store, tmp_path: Path) -> None:
    wrote(tmp_path, held(asked("m1", "1"), asked("m2", "2"), asked("m3", "3")))
    with closing(sqlite3.connect(tmp_path / DB)) as db, db:
        db.execute("UPDATE messages SET content_json = '[{' WHERE id = 2")
        db.execute("INSERT INTO messages (session_id, role, content_json, created_timestamp)"
                   " VALUES ('gone', 'user', '[]', 1)")  # fmt: skip
    results = read_into(store, tmp_path)
    first, second = (item.why for item in results if isinstance(item, Problem))
    assert "message 'm2' is not JSON" in first
    assert "session 'gone', which does not exist" in second
    assert texts(store.messages(by_id(store)["20260202_1"])) == ["1", "3"]


def test_a_second_import_opens_no_message(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrote(tmp_path, *sessions())
    read_into(store, tmp_path)
    looks = "sessiondb.formats.goose.database.GooseDatabase.message_entries"
    monkeypatch.setattr(looks, lambda *_: pytest.fail("a message was looked at"))
    outcomes = {
        r.outcome for r in read_into(store, tmp_path) if isinstance(r, Imported)
    }
    assert outcomes == {"unchanged"}


@pytest.mark.parametrize("change", [
    "UPDATE sessions SET updated_at = '2026-02-03 00:00:00'",
    "UPDATE sessions SET name = 'Other'",
    "DELETE FROM messages WHERE message_id = 's2'",
    "INSERT INTO usage_ledger (session_id, created_timestamp) VALUES ('20260202_2', 1)",
])  # fmt: skip
def test_the_digest_changes_with_anything_of_the_session(
    change: str, tmp_path: Path
) -> None:
    def digest() -> str:
        (foreign_store,) = find(tmp_path)
        items = [
            item for item in foreign_store.read() if isinstance(item, SourceSession)
        ]
        return next(item.digest for item in items if item.source_id == "20260202_2")

    wrote(tmp_path, *sessions())
    first_digest = digest()
    with closing(sqlite3.connect(tmp_path / DB)) as db, db:
        db.execute(change)
    assert digest() != first_digest


# -- usage -----------------------------------------------------------------------------


def used(store: Store, folder: Path, **row: Any) -> Message:
    wrote(folder, held(asked("m1", "Go"), **row))
    session = taken(store, folder)
    (event,) = (m for m in store.messages(session, branches=True) if m.kind == "usage")
    assert texts(store.messages(session)) == ["Go"]
    assert (session.cost, session.tokens) == (event.cost, event.tokens or Tokens())
    return event


def test_sums_of_a_session_are_counted_once_and_disjoint(
    store: Store, tmp_path: Path
) -> None:
    event = used(
        store, tmp_path, input_tokens=20, output_tokens=10, accumulated_input_tokens=200,
        accumulated_output_tokens=100, accumulated_cache_read_tokens=50,
        accumulated_cache_write_tokens=10, accumulated_cost=0.25, provider_name="fake",
        model_config_json={"model_name": "large"},
    )  # fmt: skip
    assert event.tokens == Tokens(140, 100, None, 50, 10)
    assert (event.cost, event.provider_id, event.model_id) == (0.25, "fake", "large")


def test_of_the_sums_and_the_ledger_the_larger_one_counts(
    store: Store, tmp_path: Path
) -> None:
    ledger = [
        {"input_tokens": 100, "output_tokens": 5, "cost": 0.5, "model": "large"},
        {"input_tokens": 50, "output_tokens": 5, "cost": 0.25, "model": "large"},
    ]
    event = used(
        store, tmp_path, accumulated_input_tokens=200, accumulated_output_tokens=1,
        accumulated_cost=0.1, ledger=ledger,
    )  # fmt: skip
    assert event.tokens == Tokens(200, 10)
    assert (event.cost, event.model_id) == (0.75, "large")
    assert len(event.data["ledger"]) == 2


def test_sums_that_contradict_each_other_are_kept_and_not_counted(
    store: Store, tmp_path: Path
) -> None:
    event = used(
        store, tmp_path, accumulated_input_tokens=10, accumulated_cache_read_tokens=50
    )
    assert event.tokens is None
    assert event.data["accumulated"]["cache_read_tokens"] == 50


def test_counts_of_the_last_request_are_not_sums(store: Store, tmp_path: Path) -> None:
    messages = read(
        store, tmp_path, asked("m1", "Go"), input_tokens=20, total_tokens=30
    )
    assert [message.kind for message in messages] == [None]


def test_usage_of_a_later_import_replaces_the_one_before(
    store: Store, tmp_path: Path
) -> None:
    for sum_ in (None, 100, 300):
        wrote(tmp_path, held(asked("m1", "Go"), accumulated_input_tokens=sum_))
        (imported,) = read_into(store, tmp_path)
        assert isinstance(imported, Imported)
    session = store.session(imported.id)
    assert session.tokens_input == 300
    assert texts(store.messages(session)) == ["Go"]


def test_counts_of_answers_are_theirs_and_the_rest_of_the_sums_an_event(
    store: Store, tmp_path: Path
) -> None:
    """Since 1.50: the counts of each answer, as 1.52 writes them."""
    usage = {"inputTokens": 1000, "outputTokens": 50, "totalTokens": 1050, "cacheReadTokens": 800, "cost": 0.125, "elapsedMs": 7}  # fmt: skip
    messages = read(
        store, tmp_path, asked("m1", "Go"), answered("1", "Yes", usage=usage),
        answered("2", "No", at=1, usage={"inputTokens": 1, "cacheReadTokens": 2, "cost": "7"}),
        accumulated_input_tokens=2500, accumulated_output_tokens=60,
        accumulated_cache_read_tokens=1600, accumulated_cost=0.5,
    )  # fmt: skip
    event, _, answer, odd = messages
    assert answer.tokens == Tokens(input=200, output=50, cache_read=800)
    assert (odd.tokens, odd.cost) == (None, None)
    assert (answer.cost, event.cost) == (0.125, 0.375)
    assert event.tokens == Tokens(input=700, output=10, cache_read=800)
    (session,) = by_id(store).values()
    assert session.tokens == Tokens(input=900, output=60, cache_read=1600)
    assert session.cost == 0.5


def test_a_copy_counts_no_more_than_its_own_requests(
    store: Store, tmp_path: Path
) -> None:
    """Goose copies answers with their ids and counts, but not the sums."""
    one = answered("1", "Yes", usage={"inputTokens": 100, "outputTokens": 50})
    two = answered("2", "No", at=5, usage={"inputTokens": 10, "outputTokens": 5})
    original = held(asked("m1", "Go"), one, accumulated_input_tokens=100, accumulated_output_tokens=50)  # fmt: skip
    copy = held(asked("m1", "Go"), one, two, accumulated_input_tokens=10, accumulated_output_tokens=5)  # fmt: skip
    later = {"id": "20260202_2", "created_at": "2026-02-02 02:41:00"}
    wrote(tmp_path, original, {**copy, **later})
    read_into(store, tmp_path)
    counted = {name: item.tokens_input for name, item in by_id(store).items()}
    assert counted == {"20260202_1": 100, "20260202_2": 10}


# -- logs and exports ---------------------------------------------------------------------


def test_a_log_has_its_metadata_and_its_name(store: Store, tmp_path: Path) -> None:
    log(tmp_path / "20250402_101112.jsonl", metadata(), *map(bare, (asked(None, "Hi"), answered(None, "Yes", at=5))))  # fmt: skip
    session = taken(store, tmp_path)
    assert (session.source_id, session.title) == ("20250402_101112", "Tea")
    assert (session.directory, session.tokens_input) == ("/home/ada/tea", 200)
    assert (session.time_created, session.time_updated) == (T0 * 1000, T0 * 1000 + 5000)
    assert texts(store.messages(session)) == ["Hi", "Yes"]


def test_a_log_without_metadata_begins_with_a_message(
    store: Store, tmp_path: Path
) -> None:
    log(tmp_path / "tea.jsonl", bare(asked(None, "Hi")))
    assert texts(store.messages(taken(store, tmp_path))) == ["Hi"]


def test_blocks_of_the_first_releases_have_no_type(
    store: Store, tmp_path: Path
) -> None:
    blocks = [{"text": "Hm"}, {"id": "c1", "tool_name": "shell", "arguments": {"a": 1}}]
    back = {"id": "c1", "tool_result": [words("a.py")]}
    log(tmp_path / "tea.jsonl", metadata(),
        {"role": "assistant", "created": T0, "content": blocks},
        {"role": "user", "created": T0, "content": [back]})  # fmt: skip
    answer, results = store.messages(taken(store, tmp_path))
    hm, tool = answer.parts
    assert (hm.type, hm.text) == ("text", "Hm")
    assert (tool.tool, tool.input, tool.text) == ("shell", {"a": 1}, "a.py")
    assert results.role == "tool"


def test_a_damaged_line_is_reported_and_skipped(store: Store, tmp_path: Path) -> None:
    path = log(tmp_path / "tea.jsonl", metadata(), *(bare(asked(None, str(n))) for n in range(3)))  # fmt: skip
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines[:2], '{"role"\n', "{}\n", *lines[2:]]) + '{"ro')
    results = read_into(store, tmp_path)
    problems = [item.line for item in results if isinstance(item, Problem)]
    assert sorted(filter(None, problems)) == [3, 4, 7]
    (session,) = by_id(store).values()
    assert texts(store.messages(session)) == ["0", "1", "2"]


def test_a_log_that_the_database_took_over_is_read_from_there(
    store: Store, tmp_path: Path
) -> None:
    folder = tmp_path / "goose" / "sessions"
    for name in ("20250402_101112", "20250402_101113"):
        log(folder / f"{name}.jsonl", metadata(), bare(asked(None, f"log {name}")))
    row = {"id": "20250402_101112", "messages": [asked("m1", "database")]}
    database(folder / "sessions.db", row).close()
    items = [s for item in find(tmp_path) for s in item.read()]
    paths = {
        s.source_id: Path(s.path).name for s in items if isinstance(s, SourceSession)
    }
    assert paths == {
        "20250402_101112": "sessions.db", "20250402_101113": "20250402_101113.jsonl"
    }  # fmt: skip


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse the name")
def test_a_log_beside_a_database_may_have_a_name_that_is_not_utf8(
    store: Store, tmp_path: Path
) -> None:
    database(tmp_path / "sessions.db", {"id": "1", "messages": [asked("m1", "Hi")]}).close()  # fmt: skip
    log(tmp_path / os.fsdecode(b"\xff.jsonl"), metadata(), bare(asked(None, "Hi")))
    items = [item for foreign_store in find(tmp_path) for item in foreign_store.read()]
    sessions = [item for item in items if isinstance(item, SourceSession)]
    (problem,) = (item for item in items if isinstance(item, Problem))
    assert [item.source_id for item in sessions] == ["1"]
    assert "no usable id" in problem.why


def test_an_export_is_the_session_of_the_database(store: Store, tmp_path: Path) -> None:
    rows = sessions()
    wrote(tmp_path, *rows)
    assert all(isinstance(item, Imported) for item in read_into(store, tmp_path))
    shutil.rmtree(tmp_path / "goose")
    for row in rows:
        record = exported(row)
        nested = {"input_tokens": 200, "output_tokens": 100}
        if row["id"] == "20260202_1":
            record["accumulated_usage"] = nested | {
                "cache_read_input_tokens": 50, "cache_write_input_tokens": 10
            }  # fmt: skip
        (tmp_path / f"{row['id']}.json").write_text(json.dumps(record))

    first_tokens = {name: s.tokens for name, s in by_id(store).items()}
    results = read_into(store, tmp_path)
    assert all(isinstance(item, Imported) for item in results)
    assert {name: s.tokens for name, s in by_id(store).items()} == first_tokens


@pytest.mark.parametrize("order", [("database", "export"), ("export", "database")])
@pytest.mark.parametrize("longer", ["database", "export"])
@pytest.mark.parametrize("later", ["2026-02-02T02:41:00Z", "2026-02-02T02:42:00Z"])
def test_of_a_session_in_two_places_the_newer_or_longer_state_counts(
    order: tuple[str, str], longer: str, later: str, store: Store, tmp_path: Path
) -> None:
    """Equal times are those of one second: then the longer state counts."""
    said_ = [asked(f"m{number}", text) for number, text in enumerate("abc")]
    for number, place in enumerate(order * 2):
        is_longer = place == longer
        when = later if is_longer else "2026-02-02T02:41:00Z"
        sums = {"accumulated_input_tokens": 100 if is_longer else 50}
        row = held(*said_[: 3 if is_longer else 2], name=place, updated_at=when, **sums)
        if place == "export":
            path = tmp_path / "export.json"
            path.write_text(json.dumps({**exported(row), "updated_at": when}))
            # It is read again: a copy of a file has another time.
            os.utime(path, (number, number))
        else:
            path = tmp_path / DB
            wrote(tmp_path, {**row, "total_tokens": number})
        (foreign_store,) = find(path)
        (done,) = store.ingest(foreign_store.read())
        assert isinstance(done, Imported)
    (session,) = by_id(store).values()
    assert texts(store.messages(session)) == ["a", "b", "c"]
    assert (session.title, session.tokens_input) == (longer, 100)


def test_a_session_may_become_shorter_where_it_is(store: Store, tmp_path: Path) -> None:
    for count in (2, 1):
        read(store, tmp_path, *[asked("m1", "Go"), asked("m2", "On")][:count])
    (session,) = by_id(store).values()
    assert texts(store.messages(session)) == ["Go"]


def test_an_export_without_a_name_for_the_session_is_a_problem(
    store: Store, tmp_path: Path
) -> None:
    record = exported(sessions()[0])
    for number, name in enumerate((None, 7, "")):
        path = tmp_path / f"{number}.json"
        path.write_text(json.dumps({**record, "id": name}))
    problems = read_into(store, tmp_path)
    whys = {item.why for item in problems if isinstance(item, Problem)}
    assert (whys, len(problems)) == ({"the file has no usable id"}, 3)


def test_other_files_are_not_of_goose(tmp_path: Path) -> None:
    log(tmp_path / "a.jsonl", {"type": "message", "role": "user", "content": []})
    log(tmp_path / "b.jsonl", {"role": "user", "content": "x", "created": 1})
    (tmp_path / "c.json").write_text('{"working_dir": "/", "other": 1}')
    (tmp_path / "d.json").write_text('[{"working_dir": "/", "conversation": []}]')
    inner = '{"a": {"working_dir": "/", "conversation": [], "said": "\\"}"}}'
    (tmp_path / "f.json").write_text(inner)
    with closing(sqlite3.connect(tmp_path / "e.db")) as db:
        db.execute("CREATE TABLE sessions (id)")
    assert list(find(tmp_path, formats=["goose"])) == []


@pytest.mark.parametrize("most", [0.5, 0.02])
def test_a_damaged_database_of_that_name_is_reported(
    tmp_path: Path, most: float
) -> None:
    wrote(tmp_path, held(asked("m1", "x" * 9000)))
    raw = (tmp_path / DB).read_bytes()
    damaged = tmp_path / "new" / "sessions.db"
    damaged.parent.mkdir()
    damaged.write_bytes(raw[: int(len(raw) * most)])
    (foreign_store,) = find(damaged.parent)
    with pytest.raises(SourceError, match=r"sessions\.db"):
        list(foreign_store.read())


def test_the_environment_names_the_places_of_sessions() -> None:
    env = {
        "GOOSE_PATH_ROOT": "/g",
        "XDG_DATA_HOME": "/x",
        "HOME": "/h",
        "APPDATA": "/a",
    }
    folders = default_locations(env, formats=["goose"])
    assert [path.as_posix() for path in folders] == [
        "/g/data/sessions", "/x/goose/sessions", "/a/Block/goose/data/sessions",
        "/h/.local/share/goose/sessions", "/h/.config/goose/sessions",
    ]  # fmt: skip


# -- the real program -----------------------------------------------------------------------


@pytest.mark.slow
def test_the_sums_and_the_context_of_a_real_store(
    real_store: Callable[[str], Path], store: Store
) -> None:
    for foreign_store in find(real_store("goose-1.34.0") / "data", formats=["goose"]):
        assert all(
            isinstance(item, Imported) for item in store.ingest(foreign_store.read())
        )
    found_by_id = by_id(store)
    compact = found_by_id["20261120_6"]
    assert (compact.title, compact.tokens_input, compact.tokens_output) == (
        "compact", 214657, 1592
    )  # fmt: skip
    path = [m for m in store.messages(compact) if m.role == "user"]
    assert texts(path) == [
        "Describe a release plan with three steps.", "Carry on with step one of the plan."
    ]  # fmt: skip
    context = store.context(compact)
    assert (context.summary or "").startswith("## Goal")
    assert len(context.messages) == 5
    assert found_by_id["20261120_7"].tokens_input is None
