"""OpenCode's records become drafts, and can be written again as they were."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from odd_json import changed_anywhere, same
from opencode_reading import drafts, one, problems_in, session_diff
from opencode_store import (
    T0,
    assistant,
    done,
    everything,
    failed,
    session,
    sqlite_store,
    text,
    tool,
    tree_store,
    user,
)

from sessiondb.formats.opencode.v1.drafts import (
    message_draft,
    part_draft,
    session_fields,
)
from sessiondb.formats.opencode.v1.records import (
    export_json,
    message_info,
    part_json,
    session_info,
)
from sessiondb.model import (
    Message,
    MessageDraft,
    Part,
    PartDraft,
    SourceSession,
    Todo,
    Tokens,
)
from sessiondb.model.draft import NO_INPUT


def test_a_prompt_and_its_answer_become_columns(tmp_path: Path) -> None:
    item = session(1, user(0, "Do it"), assistant(1, text("Done")))
    prompt, answer = drafts(one(sqlite_store(tmp_path / "opencode.db", item)))
    assert (prompt.role, prompt.id, prompt.turn_id) == ("user", "msg_0000", "msg_0000")
    assert (prompt.provider_id, prompt.model_id, prompt.agent) == (
        "acme",
        "large",
        "build",
    )
    assert prompt.time_created == T0
    assert [(p.type, p.text, p.id) for p in prompt.parts] == [
        ("text", "Do it", "prt_00000000")
    ]
    assert (answer.role, answer.turn_id, answer.kind) == ("assistant", "msg_0000", None)
    assert (answer.cost, answer.finish) == (0.25, "stop")
    assert answer.tokens == Tokens(
        input=10, output=2, reasoning=0, cache_read=5, cache_write=0
    )
    assert (answer.time_created, answer.time_completed) == (T0 + 1, T0 + 6)
    assert answer.data == {
        "mode": "build",
        "path": {"cwd": "/home/ann/shop", "root": "/home/ann/shop"},
    }


def test_calls_have_their_input_result_and_outcome(tmp_path: Path) -> None:
    rejected = "The user rejected permission to use this specific tool call."
    parts = [
        tool("bash", "call_1", done({"command": "ls"}, "a", exit=0)),
        tool("bash", "call_2", failed("exit 1")),
        tool("bash", "call_3", failed(rejected)),
        tool("bash", "call_4", failed(f"Error: {rejected}")),
        tool("bash", "call_5", failed("Tool execution aborted")),
        tool("bash", "call_6", failed("half an output", interrupted=True)),
        tool("bash", "call_7", {"status": "pending", "input": {}, "raw": "{"}),
    ]
    item = session(1, user(0, "Do it"), assistant(1, *parts))
    _, answer = drafts(one(sqlite_store(tmp_path / "opencode.db", item)))
    first = answer.parts[0]
    assert (first.tool, first.call_id, first.status) == ("bash", "call_1", "completed")
    assert (first.input, first.text, first.title) == ({"command": "ls"}, "a", "")
    assert (first.time_started, first.time_ended) == (T0, T0 + 7)
    assert first.data == {"state": {"metadata": {"exit": 0}}}
    assert [p.outcome for p in answer.parts] == [
        None, "failed", "denied", "denied", "interrupted", "interrupted", None,
    ]  # fmt: skip
    assert answer.parts[-1].data == {"state": {"raw": "{"}}


def test_instructions_that_a_read_added_are_sources(tmp_path: Path) -> None:
    names = ["/home/ann/shop/AGENTS.md", 7, ""]
    parts = [tool("read", "call_1", done({}, "a", loaded=names)), text("Done")]
    item = session(1, user(0, "Read it"), assistant(1, *parts))
    source = one(sqlite_store(tmp_path / "opencode.db", item))
    _, answer = drafts(source)
    assert [part.type for part in answer.parts] == ["tool", "source", "text"]
    added = answer.parts[1]
    assert (added.title, added.text) == (names[0], None)
    assert added.input == {"kind": "loaded", "path": names[0]}
    assert export_json(source, drafts(source))["messages"] == item["messages"]


def test_an_abort_a_summary_and_a_strange_finish_are_distinguished(
    tmp_path: Path,
) -> None:
    aborted, summary = drafts(
        one(sqlite_store(tmp_path / "opencode.db", everything()))
    )[3:]
    assert aborted.finish == "stop"
    assert aborted.error["name"] == "MessageAbortedError"
    assert (summary.role, summary.kind, summary.finish) == (
        "assistant",
        "compaction",
        "other",
    )
    cut = assistant(1, error={"name": "MessageAbortedError", "data": {}})
    del cut["info"]["finish"]
    (draft,) = drafts(
        one(sqlite_store(tmp_path / "b" / "opencode.db", session(1, cut)))
    )
    assert draft.finish == "cancelled"
    assert "finish" not in (message_info(draft, "ses_0001") or {})


@pytest.mark.parametrize("kind", ["1.2", "1.18", "tree"])
def test_every_record_is_exported_as_it_was(kind: str, tmp_path: Path) -> None:
    item = everything()
    if kind == "1.18":
        cache = {"read": 4, "write": 5}
        item["info"] |= {
            "path": "",
            "agent": "build",
            "model": {"id": "large", "providerID": "acme", "variant": "high"},
            "cost": 0.5,
            "tokens": {"input": 1, "output": 2, "reasoning": 3, "cache": cache},
            "metadata": {"mine": 1},
        }
    if kind == "tree":
        source = one(tree_store(tmp_path, item))
    else:
        source = one(sqlite_store(tmp_path / "opencode.db", item, version=kind))
    assert export_json(source, drafts(source)) == {
        key: item[key] for key in ("info", "messages")
    }


def test_records_read_back_from_the_database_are_exported_alike(tmp_path: Path) -> None:
    item = everything()
    source = one(sqlite_store(tmp_path / "opencode.db", item, version="1.2"))
    stored = [_stored(draft, seq) for seq, draft in enumerate(drafts(source))]
    assert export_json(source, stored)["messages"] == item["messages"]


def _stored(draft: MessageDraft, seq: int) -> Message:
    parts = tuple(_stored_part(part, idx) for idx, part in enumerate(draft.parts))
    columns = {field.name for field in fields(draft)} - {"parts", "tokens"}
    tokens = draft.tokens or Tokens()
    return Message(
        **{name: getattr(draft, name) for name in columns},
        **{f"tokens_{name}": getattr(tokens, name) for name in Tokens.__slots__},
        session_id="ses_x", seq=seq, parent_seq=seq - 1, usage_key=None, usage_name=None,
        inherited=False,
        parts=parts,
    )  # fmt: skip


def _stored_part(draft: PartDraft, idx: int) -> Part:
    arguments = None if draft.input is NO_INPUT else json.dumps(draft.input)
    known = {
        name: getattr(draft, name) for name in PartDraft.__slots__ if name != "input"
    }
    return Part(**{**known, "idx": idx, "input_json": arguments, "inherited": False})


def test_a_session_has_its_own_fields_and_what_lies_beside_it(tmp_path: Path) -> None:
    item = everything()
    item["todo"] = [{"content": "Ship", "status": "pending", "priority": "high"}]
    item["share"] = {"id": "1", "secret": "s3cret", "url": "https://opncd.ai/s/1"}
    source = one(sqlite_store(tmp_path / "opencode.db", item))
    assert source.worktree == "/home/ann/shop"
    assert (source.vcs, source.root_commit) == (
        "git",
        "0123456789abcdef0123456789abcdef01234567",
    )
    assert source.todos == (Todo("Ship", "pending", "high"),)
    assert source.metadata == {"share": item["share"]}
    assert source.share_url == "https://opncd.ai/s/1"
    assert source.time_archived == T0 + 3
    assert source.revert == {"messageID": "msg_0002", "snapshot": "abc"}
    assert "s3cret" not in json.dumps(export_json(source, []))


def test_diffs_of_a_session_are_read_completely(tmp_path: Path) -> None:
    item = session(1, user(0, "Do it"))
    diff = [
        {"file": "b", "before": "", "after": "x\ud800", "additions": 1, "status": "added"},
        {"file": "a", "patch": "@@", "additions": 1.5, "deletions": 0},
        {"file": "a", "patch": "again"},
        "what?",
    ]  # fmt: skip
    path = sqlite_store(tmp_path / "opencode.db", item)
    file = tmp_path / "storage" / "session_diff" / "ses_0001.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(diff))
    source = one(path)
    assert source.diffs is not None
    assert [(d.path, d.seq, d.patch, d.after) for d in source.diffs] == [
        ("b", 0, None, b"x\xed\xa0\x80"),
        ("a", 0, "@@", None),
    ]
    assert session_diff(source) == diff


def test_values_of_another_type_are_kept_and_written_again(tmp_path: Path) -> None:
    prompt = user(0, "Hi", time="yesterday", agent=7, model=["large"])
    answer = assistant(
        1,
        {"type": "text", "text": {"no": "string"}, "time": []},
        tool("", "call_1", {"status": "exploded", "output": "x"}),
        {"type": "tool", "tool": "a\0b", "callID": None, "state": "gone"},
        {"type": "text", "text": "lone \ud800 and \0"},
        cost="much", tokens={"input": -1, "output": 1.5, "cache": {}}, finish=[], error="bad",
        parentID=3, time={"created": 10**30, "completed": None}, summary="short", mode=None,
    )  # fmt: skip
    del answer["info"]["tokens"]
    item = session(
        1,
        prompt,
        answer,
        title="a\0b",
        permission={"edit": "ask"},
        time={"created": T0},
    )
    item["info"]["time"]["archived"] = -1.5
    source = one(tree_store(tmp_path, item))
    assert source.title == "a\u2400b"
    assert [type(why) for why in problems_in(source)] == [str]
    assert "64 bits" in problems_in(source)[0]
    answer["info"]["time"]["created"] = T0 + 1
    source = one(tree_store(tmp_path, item))
    assert export_json(source, drafts(source)) == item
    assert drafts(source)[1].parts[2].tool == "a\u2400b"
    assert drafts(source)[1].parts[3].text == "lone \ud800 and \0"


RECORDS = [
    record
    for message in everything()["messages"]
    for record in (message["info"], *message["parts"])
] + [everything()["info"]]


@pytest.mark.slow
@given(st.data())
def test_any_record_is_written_as_it_was(
    data: st.DataObject,
) -> None:
    record, given_record = changed_anywhere(data, RECORDS, keep=("role", "type"))
    if "slug" in record:
        fields = session_fields(record, "ses_1")
        again = session_info(SourceSession("opencode", "ses_1", "", "", (), **fields))
    elif "type" in record:
        part = part_draft(record, "prt_1", "msg_1", "ses_1")
        again = part_json(part, "msg_1", "ses_1")
    else:
        message = message_draft(record, "msg_1", "ses_1")
        again = message_info(message, "ses_1") or {}
    assert same(again, given_record)
