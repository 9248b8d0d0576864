"""The reader of OpenCode's stores: what becomes of records, good and odd."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opencode_store import (
    T0,
    assistant,
    done,
    failed,
    old_tree_store,
    session,
    sqlite_store,
    text,
    tool,
    tree_store,
    user,
)

from sessiondb.formats import find
from sessiondb.formats.opencode import convert, export_json, session_diff
from sessiondb.formats.opencode.export import message_info, part_json
from sessiondb.formats.opencode.records import unwrapped
from sessiondb.model import (
    Message,
    MessageDraft,
    Part,
    PartDraft,
    Problem,
    SourceMessage,
    SourceSession,
    Todo,
    Tokens,
)
from sessiondb.model.draft import NO_INPUT

Found = tuple[dict[str, SourceSession], list[Problem]]


def read(path: Path) -> Found:
    sessions, problems = {}, []
    for store in find(path):
        for item in store.read():
            if isinstance(item, Problem):
                problems.append(item)
            else:
                sessions[item.source_id] = item
    return sessions, problems


def drafts(source: SourceSession) -> list[MessageDraft]:
    return [item.draft for item in source.messages if isinstance(item, SourceMessage)]


def problems_in(source: SourceSession) -> list[str]:
    return [item.why for item in source.messages if isinstance(item, Problem)]


def one(path: Path) -> SourceSession:
    sessions, problems = read(path)
    assert not problems
    (source,) = sessions.values()
    return source


def everything() -> dict[str, Any]:
    """A session with a bit of everything that 1.x records hold."""
    return session(
        1,
        user(0, "Do it", summary={"title": "It", "diffs": []}, tools={"task": False}),
        assistant(
            1,
            {"type": "step-start", "snapshot": "abc"},
            {
                "type": "reasoning",
                "text": "Hm",
                "time": {"start": 1, "end": 2},
                "metadata": {"a": 1},
            },
            {"type": "text", "text": "", "time": {"start": 3}, "synthetic": True},
            tool("bash", "call_1", done({"command": "ls"}, "a\0b", exit=0)),
            tool("list", "call_2", done([1, 12345678901234567890123], "x")),
            tool("edit", "call_3", failed("No such file")),
            tool("read", "call_4", {"status": "pending", "input": {}, "raw": "{"}),
            tool("read", "call_5", {"status": "running", "input": None, "time": {"start": 4}}),
            {"type": "patch", "hash": "abc", "files": ["a.py"]},
            {"type": "file", "mime": "image/png", "url": "data:,", "filename": "a.png"},
            {"type": "hologram", "depth": {"z": [1, None, True]}},
            {"type": "step-finish", "reason": "stop", "cost": 0, "tokens": {"input": 0}},
        ),
        user(2, "And?", system="Be brief", format={"type": "text"}),
        assistant(3, text("Half"), error={"name": "MessageAbortedError", "data": {"message": "x"}}),
        assistant(4, text("Told"), summary=True, finish="content-filter"),
        permission=[{"permission": "edit", "pattern": "*", "action": "ask"}],
        revert={"messageID": "msg_0002", "snapshot": "abc"},
        summary={"additions": 1, "deletions": 2, "files": 3},
        share={"url": "https://opncd.ai/s/1"},
        time={"created": T0, "updated": T0 + 1, "compacting": T0 + 2, "archived": T0 + 3},
    )


def test_a_prompt_and_its_answer_become_columns(tmp_path: Path) -> None:
    item = session(1, user(0, "Do it"), assistant(1, text("Done")))
    prompt, answer = drafts(one(sqlite_store(tmp_path / "opencode.db", item)))
    assert (prompt.role, prompt.id, prompt.turn_id) == ("user", "msg_0000", "msg_0000")
    assert (prompt.provider_id, prompt.model_id, prompt.agent) == ("acme", "large", "build")
    assert (prompt.time_created, prompt.time_completed) == (T0, T0)
    assert [(p.type, p.text, p.id) for p in prompt.parts] == [("text", "Do it", "prt_00000000")]
    assert (answer.role, answer.turn_id, answer.kind) == ("assistant", "msg_0000", None)
    assert (answer.cost, answer.finish) == (0.25, "stop")
    assert answer.tokens == Tokens(input=10, output=2, reasoning=0, cache_read=5, cache_write=0)
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


def test_an_abort_a_summary_and_a_strange_finish_are_told_apart(tmp_path: Path) -> None:
    aborted, summary = drafts(one(sqlite_store(tmp_path / "opencode.db", everything())))[3:]
    assert aborted.finish == "stop"
    assert aborted.error["name"] == "MessageAbortedError"
    assert (summary.role, summary.kind, summary.finish) == ("assistant", "compaction", "other")
    cut = assistant(1, error={"name": "MessageAbortedError", "data": {}})
    del cut["info"]["finish"]
    (draft,) = drafts(one(sqlite_store(tmp_path / "b" / "opencode.db", session(1, cut))))
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
    assert export_json(source, drafts(source)) == {key: item[key] for key in ("info", "messages")}


def test_records_read_back_from_the_database_are_exported_alike(tmp_path: Path) -> None:
    item = everything()
    source = one(sqlite_store(tmp_path / "opencode.db", item, version="1.2"))
    stored = [_stored(draft, seq) for seq, draft in enumerate(drafts(source))]
    assert export_json(source, stored)["messages"] == item["messages"]


def _stored(draft: MessageDraft, seq: int) -> Message:
    parts = tuple(_stored_part(part, idx) for idx, part in enumerate(draft.parts))
    known = {"role", "id", "kind", "turn_id", "agent", "provider_id", "model_id", "response_id",
             "cost", "finish", "error", "time_created", "time_completed", "data"}  # fmt: skip
    tokens = draft.tokens or Tokens()
    return Message(
        **{name: getattr(draft, name) for name in known},
        **{f"tokens_{name}": getattr(tokens, name) for name in Tokens.__slots__},
        session_id="ses_x", seq=seq, parent_seq=seq - 1, inherited=False, parts=parts,
    )  # fmt: skip


def _stored_part(draft: PartDraft, idx: int) -> Part:
    given = None if draft.input is NO_INPUT else json.dumps(draft.input)
    known = {name: getattr(draft, name) for name in PartDraft.__slots__ if name != "input"}
    return Part(**{**known, "idx": idx, "input_json": given, "inherited": False})


def test_a_session_has_its_own_fields_and_what_lies_beside_it(tmp_path: Path) -> None:
    item = everything()
    item["todo"] = [{"content": "Ship", "status": "pending", "priority": "high"}]
    item["share"] = {"id": "1", "secret": "s3cret", "url": "https://opncd.ai/s/1"}
    source = one(sqlite_store(tmp_path / "opencode.db", item))
    assert source.worktree == "/home/ann/shop"
    assert (source.vcs, source.root_commit) == ("git", "0123456789abcdef0123456789abcdef01234567")
    assert source.todos == (Todo("Ship", "pending", "high"),)
    assert source.metadata == {"share": item["share"]}
    assert source.share_url == "https://opncd.ai/s/1"
    assert source.time_archived == T0 + 3
    assert source.revert == {"messageID": "msg_0002", "snapshot": "abc"}
    assert "s3cret" not in json.dumps(export_json(source, []))


def test_diffs_of_a_session_are_found_and_written_again(tmp_path: Path) -> None:
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
    assert session_diff(source.diffs, source.data) == diff


def test_a_session_outside_of_a_repository_has_no_worktree(tmp_path: Path) -> None:
    item = session(1, user(0, "Hi"), projectID="global")
    path = sqlite_store(tmp_path / "opencode.db", item)
    with sqlite3.connect(path) as db:
        db.execute("UPDATE project SET id = 'global', worktree = '/', vcs = NULL")
    db.close()
    source = one(path)
    assert (source.worktree, source.vcs, source.root_commit) == (None, None, None)
    assert source.directory == "/home/ann/shop"


def test_version_0_5_says_in_its_answers_where_it_was(tmp_path: Path) -> None:
    source = one(old_tree_store(tmp_path, session(1, user(0, "Hi"), assistant(1, text("Hello")))))
    assert (source.directory, source.worktree) == ("/home/ann/shop", "/home/ann/shop")
    answer = drafts(source)[1]
    assert (answer.agent, answer.turn_id) == ("build", None)


@pytest.mark.parametrize("write", [sqlite_store, tree_store, old_tree_store])
def test_a_subagent_names_the_call_that_started_it(write: Any, tmp_path: Path) -> None:
    started = done({"prompt": "Look"}, "Seen", sessionId="ses_0001")
    if write is old_tree_store:
        started = done({"prompt": "Look"}, "Seen", summary=[{"sessionID": "ses_0001"}])
    parent = session(2, user(10, "Go"), assistant(11, tool("task", "call_9", started)))
    child = session(1, user(0, "Look"), parentID="ses_0002")
    orphan = session(3, user(20, "Hm"), parentID="ses_0404")
    place = tmp_path / "opencode.db" if write is sqlite_store else tmp_path
    sessions, problems = read(write(place, child, parent, orphan))
    assert not problems
    assert list(sessions) == ["ses_0002", "ses_0001", "ses_0003"]
    source = sessions["ses_0001"]
    assert (source.relation, source.parent_source_id) == ("subagent", "ses_0002")
    assert (source.parent_message, source.call_id) == ("msg_0011", "call_9")
    assert sessions["ses_0003"].parent_source_id == "ses_0404"
    assert sessions["ses_0003"].call_id is None


def test_sessions_that_are_each_others_parents_are_cut_and_reported(tmp_path: Path) -> None:
    ring = [session(n, user(n, "Hi"), parentID=f"ses_{n % 3 + 1:04d}") for n in (1, 2, 3)]
    sessions, problems = read(sqlite_store(tmp_path / "opencode.db", *ring))
    assert len(sessions) == 3
    assert [source.parent_source_id is None for source in sessions.values()] == [True, False, False]
    assert len(problems) == 1
    assert "its own ancestor" in problems[0].why


def test_messages_are_ordered_by_time_and_parts_by_their_place_in_a_wrapped_clock(
    tmp_path: Path,
) -> None:
    early, late = "fffff15a0001AAAAAAAAAAAAAA", "00000ea60001AAAAAAAAAAAAAA"
    answer = assistant(1, text("one"), text("two"), name=f"msg_{early}")
    answer["parts"][0]["id"], answer["parts"][1]["id"] = f"prt_{early}", f"prt_{late}"
    item = session(1, user(0, "Hi"), answer, user(2, "Again", f"msg_{late}"))
    for number, path in enumerate(
        (sqlite_store(tmp_path / "opencode.db", item), tree_store(tmp_path / "tree", item))
    ):
        found = drafts(one(path))
        assert [draft.id for draft in found] == ["msg_0000", f"msg_{early}", f"msg_{late}"], number
        assert [part.text for part in found[1].parts] == ["one", "two"]
    assert unwrapped(["prt_b", "prt_a"]) == ["prt_b", "prt_a"]


def test_messages_are_read_when_they_are_asked_for(tmp_path: Path) -> None:
    item = session(1, user(0, "Hi"), assistant(1, text("Hello")))
    path = sqlite_store(tmp_path / "opencode.db", item)
    source = one(path)
    with sqlite3.connect(path) as db:
        db.execute("UPDATE part SET data = replace(data, 'Hello', 'Bye')")
    db.close()
    messages = iter(source.messages)
    next(messages)
    assert next(messages).draft.parts[0].text == "Bye"
    messages.close()
    assert len(list(source.messages)) == 2


def test_the_digest_changes_with_anything_that_changed(tmp_path: Path) -> None:
    item = session(1, user(0, "Hi"), assistant(1, text("Hello")))
    path = sqlite_store(tmp_path / "opencode.db", item)
    seen = {one(path).digest}
    assert one(path).digest in seen
    changes = (
        "UPDATE session SET title = 'New'",
        'UPDATE session SET model = \'{"id":"a"}\'',
        'UPDATE session SET model = \'{"id":"b"}\'',
        "UPDATE part SET time_updated = time_updated + 1 WHERE id = 'prt_00000000'",
        "DELETE FROM part WHERE id = 'prt_00000000'",
        "UPDATE project SET worktree = '/elsewhere'",
    )
    for number, change in enumerate(changes, 2):
        with sqlite3.connect(path) as db:
            db.execute(change)
        db.close()
        seen.add(one(path).digest)
        assert len(seen) == number, change
    tree = tree_store(tmp_path / "tree", item)
    before = one(tree).digest
    assert one(tree).digest == before
    (part,) = (tree / "part" / "msg_0001").iterdir()
    part.write_text(part.read_text().replace("Hello", "Hello!"))
    assert one(tree).digest != before


def test_a_cut_output_comes_along_only_from_inside_the_store(tmp_path: Path) -> None:
    data = tmp_path / "opencode"
    outputs = data / "tool-output"
    outputs.mkdir(parents=True)
    (outputs / "tool_1").write_bytes(b"all of it\0")
    (tmp_path / "secret").write_text("secret")
    (data / "auth.json").write_text("secret")
    (outputs / "tool_2").symlink_to(tmp_path / "secret")
    named = [
        "/home/ann/.local/share/opencode/tool-output/tool_1",
        "C:\\Users\\ann\\opencode\\tool-output\\tool_1",
        "/x/tool-output/tool_2",
        "/x/tool-output/../auth.json",
        "/x/tool-output/gone",
        str(data / "auth.json"),
        17,
    ]
    parts = [tool("bash", f"c{n}", done({}, "…", outputPath=path)) for n, path in enumerate(named)]
    item = session(1, assistant(1, *parts))
    source = one(sqlite_store(data / "opencode.db", item))
    (draft,) = drafts(source)
    files = [part.data.get("output_file") for part in draft.parts]
    whole = {"name": "tool-output/tool_1", "content": b"all of it\0"}
    assert files == [whole, whole, None, None, None, None, None]
    assert export_json(source, [draft])["messages"] == item["messages"]


ODD = {
    "not JSON": ("{", "is not JSON"),
    "no object": ("[1]", "is not a JSON object"),
    "NaN": ('{"role":"user","type":"text","cost":NaN}', "NaN"),
    "huge": ('{"role":"user","type":"text","n":99999999999999999999}', "64 bits"),
    "deep": ('{"role":"user","type":"text","n":' + "[" * 500 + "]" * 500 + "}", "nested"),
    "very deep": ("[" * 100_000, "nested"),
    "nothing": ('{"n":1}', "has no"),
    "wrong role": ('{"role":1,"type":1}', "has no"),
    "bytes": (b'{"role":"user","type":"text","text":"\xff"}', "UTF-8"),
}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("table", ["message", "part"])
def test_an_odd_record_is_a_problem_and_the_rest_goes_on(
    odd: str, table: str, tmp_path: Path
) -> None:
    content, why = ODD[odd]
    item = session(1, user(0, "Hi"), assistant(1, text("A"), text("B")), user(2, "Bye"))
    path = sqlite_store(tmp_path / "opencode.db", item)
    name = "msg_0001" if table == "message" else "prt_00010000"
    with sqlite3.connect(path) as db:
        db.execute(f"UPDATE {table} SET data = CAST(? AS TEXT) WHERE id = ?", (content, name))
    db.close()
    tree = tree_store(tmp_path / "tree", item)
    (file,) = tree.glob(f"{table}/*/{name}.json")
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    for place, where in ((path, path), (tree, file)):
        source = one(place)
        ids = [draft.id for draft in drafts(source)]
        assert ids == (
            ["msg_0000", "msg_0002"] if table == "message" else ["msg_0000", "msg_0001", "msg_0002"]
        )
        if table == "part":
            assert [part.text for part in drafts(source)[1].parts] == ["B"]
        (problem,) = (item for item in source.messages if isinstance(item, Problem))
        assert problem.source == str(where)
        assert name in problem.why
        assert why in problem.why


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
        1, prompt, answer, title="a\0b", permission={"edit": "ask"}, time={"created": T0}
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


def test_what_belongs_to_nothing_is_reported(tmp_path: Path) -> None:
    item = session(1, user(0, "Hi"))
    lost = session(2, user(1, "Lost"), assistant(2, text("Gone")))
    path = sqlite_store(tmp_path / "opencode.db", item, lost)
    with sqlite3.connect(path) as db:
        db.execute("DELETE FROM session WHERE id = 'ses_0002'")
        db.execute("DELETE FROM message WHERE id = 'msg_0002'")
    db.close()
    tree = tree_store(tmp_path / "tree", item, lost)
    next((tree / "session").glob("*/ses_0002.json")).unlink()
    next((tree / "message").glob("*/msg_0002.json")).unlink()
    for place in (path, tree):
        sessions, problems = read(place)
        assert list(sessions) == ["ses_0001"]
        assert len(problems) == 2
        assert "ses_0002" in problems[0].why
        assert "msg_0002" in problems[1].why


def test_an_odd_session_is_a_problem_and_the_others_are_read(tmp_path: Path) -> None:
    items = [session(n, user(n, "Hi")) for n in (1, 2)]
    tree = tree_store(tmp_path / "tree", *items)
    next((tree / "session").glob("*/ses_0001.json")).write_text("{")
    (tree / "todo").mkdir()
    (tree / "todo" / "ses_0002.json").write_text('{"not": "a list"}')
    sessions, problems = read(tree)
    assert list(sessions) == ["ses_0002"]
    assert [Path(p.source).name for p in problems] == ["ses_0001.json", "ses_0002.json"]
    path = sqlite_store(tmp_path / "opencode.db", *items)
    with sqlite3.connect(path) as db:
        db.execute("UPDATE session SET id = '' WHERE id = 'ses_0001'")
        db.execute("UPDATE session SET permission = '[', metadata = '7' WHERE id = 'ses_0002'")
    db.close()
    sessions, problems = read(path)
    assert list(sessions) == ["ses_0002"]
    assert sessions["ses_0002"].permission is None
    assert sessions["ses_0002"].data["permission"] == "["
    assert sessions["ses_0002"].data["metadata"] == 7
    assert len(problems) == 3
