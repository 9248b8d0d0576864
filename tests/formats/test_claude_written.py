"""Transcripts that are written: as they were, and of sessions of other programs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from imported import besides_times
from samples import new_store, read_into
from samples_claude import (
    PNG,
    PROJECT,
    Record,
    answered,
    aside,
    asked,
    beside,
    call,
    first,
    line,
    result,
    session,
    uuid,
    words,
    write,
)

from sessiondb import ALL, InvalidInputError, Store, assistant, event, text, tool, user
from sessiondb.formats import exporter, find
from sessiondb.formats.claude.exporter import folder_of
from sessiondb.formats.protocol import Written
from sessiondb.model import (
    Document,
    Imported,
    Loss,
    MessageDraft,
    PartDraft,
    Problem,
    Session,
)

U1 = asked(1, "1", None)


def exported(store: Store, of: Session) -> list[Document | Loss]:
    to = exporter("claude")
    return [
        Document(item.name, ["".join(item.chunks)])
        if isinstance(item, Document)
        else item
        for item in to.write([store.export(of, **to.read)], detail="full")
    ]


def lines(store: Store, of: Session) -> list[Record]:
    document = exported(store, of)[0]
    assert isinstance(document, Document)
    return [json.loads(line) for line in "".join(document.chunks).split("\n") if line]


def losses(store: Store, of: Session) -> list[str]:
    return [item.why for item in exported(store, of) if isinstance(item, Loss)]


def back(store: Store, folder: Path, *records: Record) -> list[Record]:
    """Import a transcript and return what is written of it."""
    write(folder / PROJECT, session(1), *records)
    found, *_ = read_into(store, folder)
    assert isinstance(found, Imported)
    return lines(store, store.session(found.id))


# -- as they were --------------------------------------------------------------------


def test_lines_of_an_answer_are_written_in_their_places(
    store: Store, tmp_path: Path
) -> None:
    assert back(store, tmp_path, *first()) == first()


def test_a_boundary_on_the_path_is_written_without_a_parent(
    store: Store, tmp_path: Path
) -> None:
    cut = {"subtype": "compact_boundary", "logicalParentUuid": uuid(2)}
    records = [
        U1, asked(2, "2"), line(3, "system", None, **cut), asked(4, "S", isCompactSummary=True),
    ]  # fmt: skip
    assert back(store, tmp_path, *records) == records
    assert len(list(store.messages(*store.sessions(project=ALL)))) == 4


def test_lines_that_do_not_fit_are_written_as_they_were(
    store: Store, tmp_path: Path
) -> None:
    image = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": PNG},
    }
    odd = {
        "type": "image",
        "source": {"type": "base64", "media_type": 7, "data": "no base64"},
    }
    records = [
        asked(1, [], None), asked(2, ""), asked(3, [7, {"no": "type"}]), asked(4, None),
        asked(5, [{"type": "text", "text": "x", "plain": 1, "synthetic": 2}, {"type": "custom", "a": 1}]),
        asked(6, [image, odd, {"type": "image", "source": {"type": "url", "url": "http://x"}}]),
        asked(7, [{"type": "document", "title": "a.pdf", "source": {"type": "text", "data": "x"}}]),
        answered(8, call("c1"), name="m1"), result(9, "c1", [words("a"), image, words("b"), odd, 7]),
        answered(10, {"type": "tool_use", "id": 7, "name": "", "input": None}, name="m2"),
        result(11, "c1", [words("alone")], is_error=True), result(12, "c1", [], is_error=False),
        asked(13, [{"type": "tool_result", "tool_use_id": None}]),
        answered(14, {"type": "redacted_thinking", "data": "x"}, name="m3"),
        answered(15, {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}, name="m3"),
        answered(16, {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}, name="m3"),
        answered(17, {"type": "thinking", "thinking": "", "signature": "s"}, name="m3", requestId="r"),
        {**line(18, "user"), "message": "a text"}, {**line(19, "assistant"), "message": {}},
        {**line(20, "system", subtype="reset"), "content": "x"}, line(21, "system", content=7),
        line(22, "attachment", attachment={"type": "queued_command", "prompt": "x", "b": 1}),
        line(23, "attachment", attachment=7, rendered=[{"content": 7}]), line(24, "compaction", a=1),
        {**U1, "uuid": "", "timestamp": 7}, {**U1, "uuid": uuid(2)}, {"type": "mode", "mode": "plan"},
        beside("summary", summary="x", leafUuid=7), answered(27, words("a\0b"), other_lines=[1]),
    ]  # fmt: skip
    assert back(store, tmp_path, *records) == records


def test_files_that_a_model_was_given_are_written_as_they_were(
    store: Store, tmp_path: Path
) -> None:
    files = [
        {"path": "/a\0", "type": "User", "content": "a\0"},
        7,
        {"path": 8, "content": None},
        {"content": "c"},
    ]
    records = [
        U1, line(2, "attachment", attachment={"type": "instructions", "files": files}, rendered=[{"content": "x"}, {"content": "y", "a": 1}]),
        line(3, "attachment", attachment={"type": "nested_memory", "path": "/b", "content": {**files[0], "globs": ["*"]}}),
        line(4, "attachment", attachment={"type": "nested_memory", "content": "text"}, rendered=[7]),
        line(5, "attachment", attachment={"type": "invoked_skills", "skills": []}, rendered=[]),
        line(6, "attachment", attachment={"type": "relevant_memories", "memories": {"path": "x"}}),
        line(7, "attachment", attachment={"type": ["instructions"], "files": files}),
    ]  # fmt: skip
    assert back(store, tmp_path, *records) == records


@pytest.mark.parametrize("key", ["added", "plain", "in_result"])
def test_a_block_of_another_type_keeps_a_key_that_parts_have_here(
    store: Store, tmp_path: Path, key: str
) -> None:
    records = [U1, answered(2, {"type": "unknown", key: True})]
    assert back(store, tmp_path, *records) == records


def test_messages_added_here_follow_the_lines_of_the_program(
    store: Store, tmp_path: Path
) -> None:
    records = back(store, tmp_path, U1, answered(2, words("2")), answered(3, call("c1")), result(4, "c1", "x"))  # fmt: skip
    (found,) = store.sessions(project=ALL)
    store.append(found, user("And coffee?"))
    *before, added = lines(store, found)
    assert before == records
    assert (added["parentUuid"], added["sessionId"]) == (uuid(4), session(1))
    assert added["message"] == {"role": "user", "content": "And coffee?"}


@pytest.mark.slow
def test_transcripts_of_the_real_program_are_written_as_they_were(
    real_store: Callable[[str], Path], store: Store
) -> None:
    count = 0
    for found in find(real_store("claude-code-2.1.329") / "data"):
        for source in found.read():
            assert not isinstance(source, Problem)
            (done,) = store.ingest([source])
            assert isinstance(done, Imported)
            log = Path(source.path).read_text(encoding="utf-8")
            records = [json.loads(line) for line in log.split("\n") if line]
            assert lines(store, store.session(done.id)) == records
            count += len(records)
    assert count == 379


def test_a_result_of_a_call_that_is_in_the_transcript_twice_keeps_its_text(
    store: Store, tmp_path: Path
) -> None:
    answer = answered(2, call("c1"))
    records = [U1, answer, answer, result(3, "c1", "out")]
    assert back(store, tmp_path, *records) == records


def test_a_line_that_cannot_be_stored_is_left_out_of_its_answer(
    store: Store, tmp_path: Path
) -> None:
    odd = {2: {"a": 10**30}, 4: {"a": 10**30}}
    lines = (answered(n, words(str(n)), **odd.get(n, {})) for n in range(2, 6))
    write(tmp_path / PROJECT, session(1), U1, *lines)
    found = read_into(store, tmp_path)
    assert [item.line for item in found if isinstance(item, Problem)] == [2, 4]
    (only,) = store.sessions(project=ALL)
    _, answer = store.messages(only)
    assert [part.text for part in answer.parts] == ["3", "5"]


def with_agents() -> list[Record]:
    """A transcript of version 1, in which two subagents worked at the same time."""
    one = aside(4, "a1", asked(4, "One"), answered(6, words("1"), 4, name="msg_2"))
    two = aside(5, None, asked(5, "Two"), answered(8, words("2"), 5, name="msg_3"))
    return [
        U1, answered(2, call("c1", "Task", prompt="One")), answered(3, call("c2", "Task", prompt="Two")),
        one[0], two[0], one[1], beside("mode", mode="plan"), two[1], result(9, "c1", "1", 2), result(10, "c2", "2", 3),
    ]  # fmt: skip


def written(store: Store, of: list[Session]) -> dict[str, list[Record]]:
    to = exporter("claude")
    exports = [store.export(session, **to.read) for session in of]
    return {
        item.name: [json.loads(line) for line in "".join(item.chunks).splitlines()]
        for item in to.write(exports, detail="full")
        if isinstance(item, Document)
    }


def family(store: Store) -> list[Session]:
    return sorted(
        store.sessions(project=ALL, subagents=True),
        key=lambda found: found.time_created,
    )


def test_subagents_in_the_transcript_itself_are_written_where_they_were(
    store: Store, tmp_path: Path
) -> None:
    write(tmp_path / PROJECT, session(1), *with_agents())
    assert len(read_into(store, tmp_path)) == 3
    main, *agents = family(store)
    assert [agent.call_id for agent in agents] == ["c1", "c2"]
    assert written(store, [main, *agents]) == {f"{session(1)}.jsonl": with_agents()}


def test_a_subagent_that_is_written_alone_has_a_transcript_of_its_own(
    store: Store, tmp_path: Path
) -> None:
    write(tmp_path / PROJECT, session(1), *with_agents())
    read_into(store, tmp_path)
    main, one, _ = family(store)
    records = [record for record in with_agents() if record.get("agentId") == "a1"]
    name = f"{session(1)}/subagents/agent-a1.jsonl"
    assert written(store, [one]) == {name: records}
    apart = [record for record in with_agents() if not record.get("isSidechain")]
    assert written(store, [main]) == {f"{session(1)}.jsonl": apart}


def test_a_message_added_to_a_subagent_is_one_of_its_lines(
    store: Store, tmp_path: Path
) -> None:
    write(tmp_path / PROJECT, session(1), *with_agents())
    read_into(store, tmp_path)
    main, one, two = family(store)
    store.append(one, user("And three?"))
    (lines,) = written(store, [main, one, two]).values()
    assert lines[:-1] == with_agents()
    assert [lines[-1][key] for key in ("isSidechain", "agentId", "parentUuid", "sessionId")] == [
        True, "a1", uuid(6), session(1),
    ]  # fmt: skip


# -- sessions of other programs ------------------------------------------------------


def new(store: Store, **fields: Any) -> Session:
    return store.session(store.create_session(**fields).id)


def said(store: Store, found: Session, *messages: MessageDraft) -> None:
    for message in messages:
        store.append(found, message)


def native(store: Store) -> Session:
    """A session with two calls at once, a compaction and a branch that was left."""
    found = new(store, title="Tea", directory="/home/ada/tea")
    said(
        store, found, user("How long?"), assistant(
            PartDraft("reasoning", "Hm"), text("Let me see"), tool("clock", {"of": "tea"}, call_id="c.1", output="4"),
            tool("cup", call_id="c2", error="none"),
        ),
        event("compaction", text("All about tea")), event("custom_message", text("Be brief")),
        user(text("Go on"), PartDraft("file", data={"mime": "image/png", "content": b"\x89PNG"})),
        assistant(tool("clock", call_id="c3")), event("step"),
    )  # fmt: skip
    return store.session(found.id)


def test_each_call_has_a_result_that_follows_its_line(store: Store) -> None:
    written = lines(store, native(store))
    by_uuid = {record["uuid"]: record for record in written if "uuid" in record}
    results = {
        block["tool_use_id"]: (record, block)
        for record in written
        for block in record.get("message", {}).get("content", ())
        if isinstance(block, dict) and block["type"] == "tool_result"
    }
    assert set(results) == {"c_1", "c2", "c3"}
    for name, (record, _) in results.items():
        (asked_,) = by_uuid[record["parentUuid"]]["message"]["content"]
        assert (asked_["type"], asked_["id"]) == ("tool_use", name)
    assert results["c_1"][1]["content"] == "4"
    assert [results[name][1].get("is_error") for name in ("c_1", "c2", "c3")] == [
        None,
        True,
        True,
    ]


def test_a_session_has_the_fields_that_the_program_checks(store: Store) -> None:
    title, *written = lines(store, native(store))
    assert title["customTitle"] == "Tea"
    needed = {"type", "uuid", "parentUuid", "sessionId", "timestamp", "cwd", "version", "isSidechain", "userType"}  # fmt: skip
    assert all(needed <= record.keys() for record in written)
    assert len({record["uuid"] for record in written}) == len(written)
    assert [record["parentUuid"] for record in written].count(None) == 2
    answers = [r["message"]["id"] for r in written if r["type"] == "assistant"]
    assert len(answers) == 4
    assert len(set(answers)) == 2


def test_a_compaction_cuts_the_chain_and_thoughts_are_lost(store: Store) -> None:
    found = native(store)
    written = lines(store, found)
    cut = next(r for r in written if r.get("subtype") == "compact_boundary")
    summary = next(r for r in written if r.get("isCompactSummary"))
    assert (cut["parentUuid"], summary["parentUuid"]) == (None, cut["uuid"])
    assert summary["message"]["content"] == "All about tea"
    lost = losses(store, found)
    assert "1 thought in answers" in lost
    assert "1 event of kind step" in lost


def test_messages_that_a_compaction_keeps_follow_it(store: Store) -> None:
    found = new(store, directory="/home/ada/tea")
    kept = event("compaction", text("S"), first_kept_id="m2")
    said(store, found, user("1", id="m1"), user("2", id="m2"), kept, user("3"))
    shown = [r["message"]["content"] for r in lines(store, found) if "message" in r]
    assert shown == ["1", "S", "2", "3"]


def test_a_compaction_may_be_asked_for_and_answered(store: Store) -> None:
    found = new(store, directory="/home/ada/tea")
    asked_for = PartDraft("compaction", data={"tail_start_id": "m2"})
    summary = PartDraft("text", "S")
    said(
        store, found, user("1", id="m1"), user("2", id="m2"), user(asked_for),
        MessageDraft("assistant", (summary,), kind="compaction", finish="stop"), user("3"),
    )  # fmt: skip
    shown = [r["message"]["content"] for r in lines(store, found) if "message" in r]
    assert shown == ["1", "S", "2", "3"]


def test_calls_of_several_answers_in_a_row_are_those_of_one(store: Store) -> None:
    found = new(store, directory="/home/ada/tea")
    calls = [assistant(tool("clock", call_id=name)) for name in ("c1", "c2")]
    results = [
        MessageDraft("tool", (PartDraft("tool-result", name, call_id=name),))
        for name in ("c1", "c2")
    ]
    said(store, found, user("1"), *calls, *results, assistant("2"))
    written = lines(store, found)
    ids = [r["message"]["id"] for r in written if r["type"] == "assistant"]
    assert ids[0] == ids[1] != ids[2]
    blocks = [r["message"]["content"][0] for r in written if r["type"] == "user"][1:]
    assert [block["content"] for block in blocks] == ["c1", "c2"]


def test_a_result_without_its_call_is_refused_and_reported(store: Store) -> None:
    found = new(store, directory="/home/ada/tea")
    stray = PartDraft("tool-result", "x", call_id="gone")
    said(store, found, user("1"), MessageDraft("tool", (stray,)), user("2"))
    assert [r["message"]["content"] for r in lines(store, found)] == ["1", "2"]
    assert besides_times(losses(store, found)) == ["a result of call gone"]


def test_a_result_that_is_recorded_twice_is_written_once_and_not_lost(
    store: Store,
) -> None:
    found = new(store, directory="/home/ada/tea")
    call = assistant(tool("clock", call_id="c1"))
    once, again, other = (
        MessageDraft("tool", (PartDraft("tool-result", text, call_id="c1"),))
        for text in ("four", "four", "five")
    )
    said(store, found, user("1"), call, once, again, other, assistant("2"))
    blocks = [r["message"]["content"] for r in lines(store, found)]
    assert [block[0]["content"] for block in blocks[2:3]] == ["four"]
    assert len(blocks) == 4
    assert besides_times(losses(store, found)) == ["a result of call c1"]


def test_a_written_session_is_read_as_the_same_conversation(
    store: Store, tmp_path: Path
) -> None:
    found = native(store)
    records = lines(store, found)
    write(tmp_path / PROJECT, records[0]["sessionId"], *records)
    with new_store() as other:
        (again,) = read_into(other, tmp_path)
        assert isinstance(again, Imported)
        context = other.context(again.id)
        assert (context.summary, other.session(again.id).title) == ("All about tea", "Tea")  # fmt: skip
        messages = list(other.messages(again.id))
    assert messages[0].text == "How long?"
    done = next(message for message in messages if message.role == "assistant")
    assert [(p.type, p.text, p.status) for p in done.parts] == [
        ("text", "Let me see", None), ("tool", "4", "completed"), ("tool", "none", "error"),
    ]  # fmt: skip


def test_messages_added_there_are_imported_and_nothing_else(
    store: Store, tmp_path: Path
) -> None:
    found = native(store)
    log = write(tmp_path / PROJECT, "x", *lines(store, found))
    log = log.rename(log.with_name(f"{lines(store, found)[0]['sessionId']}.jsonl"))
    (same,) = read_into(store, tmp_path)
    assert isinstance(same, Imported)
    assert (same.outcome, same.id) == ("unchanged", found.id)

    above = json.loads(log.read_text().splitlines()[-1])["uuid"]
    with log.open("a") as file:
        file.write(json.dumps(asked(90, "And coffee?", above)) + "\n")
    (more,) = read_into(store, tmp_path)
    assert isinstance(more, Imported)
    assert (more.outcome, more.id) == ("updated", found.id)
    assert [m.text for m in store.messages(found)][-1] == "And coffee?"


# -- the store of the program ----------------------------------------------------------


def test_the_store_holds_a_transcript_and_never_continues_a_subagent(
    tmp_path: Path,
) -> None:
    write(tmp_path / PROJECT, session(1), U1)
    holds = exporter("claude").holds
    assert holds is not None
    names = session(1), session(2), f"{session(2)}/agent-a1"
    held = [holds(name, {"CLAUDE_CONFIG_DIR": str(tmp_path)}) for name in names]
    assert held == [True, False, True]


def test_a_transcript_is_taken_to_the_folder_of_its_directory() -> None:
    take_in = exporter("claude").take_in
    assert take_in is not None
    text = json.dumps(U1, separators=(",", ":"))
    written = Written("0b1c.jsonl", text, "/home/ada/tea_pots")
    taken = take_in(written, {"CLAUDE_CONFIG_DIR": "/srv/claude"})
    assert taken.place == Path("/srv/claude/projects/-home-ada-tea-pots/0b1c.jsonl")
    assert taken.resume == ["claude", "--resume", "0b1c"]


def test_a_session_without_messages_is_not_taken(store: Store) -> None:
    take_in = exporter("claude").take_in
    assert take_in is not None
    document, *_ = exported(store, new(store, title="Tea", directory="/home/ada/tea"))
    assert isinstance(document, Document)
    written = Written(document.name, "".join(document.chunks), "/home/ada/tea")
    with pytest.raises(InvalidInputError):
        take_in(written, {})


def test_the_folder_of_a_long_directory_ends_with_a_hash() -> None:
    name = folder_of("/" + "a" * 250)
    head, _, tail = name.rpartition("-")
    assert (head, len(head)) == ("-" + "a" * 199, 200)
    assert tail.isalnum()
