"""The logs of Gemini CLI: records applied in order, and what is dropped on the way."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

import pytest
from imported import all_taken, by_id, check_tokens, served, taken, texts
from samples import read_into
from samples_gemini import (
    CONTEXT,
    HASH,
    PROJECT,
    Record,
    answered,
    asked,
    call,
    document,
    header,
    log,
    moment,
    responded,
    said,
    session_id,
    update,
    write,
)

from sessiondb import ALL, Store
from sessiondb.formats import default_locations, find
from sessiondb.model import Imported, Message, Problem, Session

CHATS = Path(".gemini/tmp/tea/chats")


def session_of(store: Store, folder: Path, *records: Record) -> Session:
    write(folder / CHATS, header(1), *records)
    return taken(store, folder)


def messages(store: Store, folder: Path, *records: Record) -> list[Message]:
    return list(store.messages(session_of(store, folder, *records), branches=True))


def live_and_all(
    store: Store, folder: Path, *records: Record
) -> tuple[list[str], list[str]]:
    session = session_of(store, folder, *records)
    return texts(store.messages(session)), texts(store.messages(session, branches=True))


# -- records in order ------------------------------------------------------------------


def test_the_last_version_of_a_message_has_the_place_of_its_first_one(
    store: Store, tmp_path: Path
) -> None:
    first = answered(2, "Half")
    _, answer, after = messages(
        store, tmp_path, asked(1, "1"), first, asked(3, "3"),
        {**first, "content": "Half an answer", "toolCalls": [call("c1", "a.py")]},
    )  # fmt: skip
    assert (answer.id, answer.text, after.text) == ("m2", "Half an answer", "3")
    assert [part.type for part in answer.parts] == ["text", "tool"]


def test_a_replaced_text_is_kept_beside_the_one_that_counts(
    store: Store, tmp_path: Path
) -> None:
    before = answered(2, "2", toolCalls=[call("c1", "everything")])
    after = answered(2, "2", toolCalls=[call("c1", "masked")])
    _, answer = messages(store, tmp_path, asked(1, "1"), before, after)
    assert answer.parts[1].text == "masked"
    (earlier,) = answer.data["earlier"]
    assert "everything" in json.dumps(earlier)


def test_a_rewind_keeps_the_messages_that_it_drops_as_a_branch(
    store: Store, tmp_path: Path
) -> None:
    live, everything = live_and_all(
        store, tmp_path, asked(1, "1"), answered(2, "2"), asked(3, "3"), answered(4, "4"),
        {"$rewindTo": "m3"}, asked(5, "5"), answered(6, "6"),
    )  # fmt: skip
    assert live == ["1", "2", "5", "6"]
    assert everything == ["1", "2", "3", "4", "5", "6"]


def test_a_rewind_to_an_unknown_message_drops_all(store: Store, tmp_path: Path) -> None:
    live, everything = live_and_all(
        store, tmp_path, asked(1, "1"), answered(2, "2"), {"$rewindTo": "m9"}, asked(3, "3"),
    )  # fmt: skip
    assert live == ["3"]
    assert everything == ["1", "2", "3"]


def test_a_rewind_at_the_end_leaves_the_session_where_it_was_before(
    store: Store, tmp_path: Path
) -> None:
    records = [asked(1, "1"), answered(2, "2"), asked(3, "3"), {"$rewindTo": "m3"}]
    session = session_of(store, tmp_path, *records)
    assert texts(store.context(session).messages) == ["1", "2"]


def test_an_id_that_was_dropped_may_be_that_of_another_message(
    store: Store, tmp_path: Path
) -> None:
    live, everything = live_and_all(
        store, tmp_path, asked(1, "1"), asked(2, "old"), {"$rewindTo": "m2"}, asked(2, "new"),
    )  # fmt: skip
    assert (live, everything) == (["1", "new"], ["1", "old", "new"])


def test_new_messages_replace_all_and_those_that_were_there_stay(
    store: Store, tmp_path: Path
) -> None:
    live, everything = live_and_all(
        store, tmp_path, asked(1, "1"), answered(2, "2"), asked(3, "3"),
        update(messages=[asked(7, "Summary"), asked(3, "3")]), answered(8, "8"),
    )  # fmt: skip
    assert live == ["Summary", "3", "8"]
    assert sorted(everything) == ["1", "2", "3", "8", "Summary"]


def test_a_resumed_session_keeps_values_that_its_new_messages_do_not_repeat(
    store: Store, tmp_path: Path
) -> None:
    # The program writes all messages again: their content alone, at another time.
    answer = answered(2, "2", toolCalls=[call("c1", "a.py")])
    function = {"functionCall": {"id": "c1", "name": "ls", "args": {"path": "."}}}
    again = said(2, "gemini", [{"text": "2"}, function], timestamp=moment(50))
    _, found = messages(
        store, tmp_path, asked(1, "1"), answer, header(1), update(messages=[]),
        update(messages=[asked(1, "1"), again]),
    )  # fmt: skip
    assert (found.model_id, found.tokens_output) == ("gemini-2.5-pro", 4)
    assert [(p.type, p.call_id, p.text) for p in found.parts] == [
        ("text", None, "2"), ("tool", "c1", "a.py"),
    ]  # fmt: skip
    assert found.time_created == 1_769_997_602_000


def test_a_message_may_be_written_thousands_of_times(
    store: Store, tmp_path: Path
) -> None:
    texts_of_it = [str(number) for number in range(2500)]
    begin = process_time()
    (found,) = messages(
        store, tmp_path, *(asked(1, text) for text in texts_of_it[:1250]),
        update(messages=[asked(1, text) for text in texts_of_it[1250:]]),
    )  # fmt: skip
    assert process_time() - begin < 5
    assert found.text == texts_of_it[-1]
    before = [item["content"][0]["text"] for item in found.data["earlier"]]
    assert before == texts_of_it[:-1]


def test_a_resumed_session_was_created_when_it_began(
    store: Store, tmp_path: Path
) -> None:
    session = session_of(
        store, tmp_path, asked(1, "1"), header(1, startTime=moment(50)), asked(2, "2"),
    )  # fmt: skip
    (first, *_) = store.messages(session)
    assert session.time_created <= first.time_created


def test_metadata_is_merged_and_the_last_title_counts(
    store: Store, tmp_path: Path
) -> None:
    session = session_of(
        store, tmp_path, asked(1, "1"), update(summary="First"),
        update(summary="Last", lastUpdated=moment(59)), update(memoryScratchpad={"version": 1}),
    )  # fmt: skip
    assert session.title == "Last"
    assert session.data["memoryScratchpad"] == {"version": 1}
    assert session.time_updated - session.time_created == 59_000


def test_an_unknown_record_is_an_event_and_one_without_a_type_a_problem(
    store: Store, tmp_path: Path
) -> None:
    write(tmp_path / CHATS, header(1), asked(1, "1"), {"type": "note", "a": 1}, {"$later": 2}, {"b": 3})  # fmt: skip
    problem, session = sorted(read_into(store, tmp_path), key=lambda r: isinstance(r, Imported))  # fmt: skip
    assert isinstance(problem, Problem)
    assert isinstance(session, Imported)
    assert problem.line == 5
    _, note, later = store.messages(session.id)
    assert (note.role, note.kind, note.data["a"]) == ("event", "note", 1)
    assert (later.kind, later.data["$later"]) == ("$later", 2)


def test_a_damaged_line_is_reported_and_skipped(store: Store, tmp_path: Path) -> None:
    path = write(tmp_path / CHATS, header(1), asked(1, "1"), answered(2, "2"), asked(3, "3"))  # fmt: skip
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines[:2], lines[2][:30] + "\n", lines[3], '{"id": "m4']))
    found = read_into(store, tmp_path)
    assert [item.line for item in found if isinstance(item, Problem)] == [3, 5]
    (session,) = (item for item in found if isinstance(item, Imported))
    assert texts(store.messages(session.id)) == ["1", "3"]


# -- what messages become ------------------------------------------------------------


def test_counts_are_disjoint_and_thoughts_are_not_part_of_the_output(
    store: Store, tmp_path: Path
) -> None:
    (answer,) = messages(store, tmp_path, answered(1, "1"))
    counts = (answer.tokens_input, answer.tokens_output, answer.tokens_reasoning, answer.tokens_cache_read)  # fmt: skip
    assert counts == (10, 4, 3, 2)


def test_counts_that_contradict_each_other_stay_in_the_record(
    store: Store, tmp_path: Path
) -> None:
    odd = {"input": 1, "output": 2, "cached": 5}
    (answer,) = messages(store, tmp_path, answered(1, "1", tokens=odd))
    assert answer.tokens is None
    assert answer.data["tokens"] == odd


def test_thoughts_are_reasoning_before_the_answer(store: Store, tmp_path: Path) -> None:
    thoughts = [
        {"subject": "Tea", "description": "It is hot.", "timestamp": moment(1)},
        {"subject": "", "description": "Hm", "timestamp": moment(1)},
    ]
    (answer,) = messages(store, tmp_path, answered(1, "1", thoughts=thoughts))
    assert [(part.type, part.text) for part in answer.parts] == [
        ("reasoning", "**Tea** It is hot."), ("reasoning", "Hm"), ("text", "1"),
    ]  # fmt: skip


def test_thoughts_in_the_content_are_not_repeated(store: Store, tmp_path: Path) -> None:
    content = [{"text": "Hm", "thought": True, "thoughtSignature": "s"}, {"text": "1"}]
    thoughts = [{"subject": "", "description": "Hm", "timestamp": moment(1)}]
    (answer,) = messages(store, tmp_path, answered(1, content, thoughts=thoughts))
    assert [part.type for part in answer.parts] == ["reasoning", "text"]
    assert answer.parts[0].data["thoughtSignature"] == "s"


@pytest.mark.parametrize(
    ("state", "status", "outcome"),
    [
        ("success", "completed", None),
        ("error", "error", "failed"),
        ("cancelled", "error", "interrupted"),
        ("executing", "running", None),
        ("awaiting_approval", "pending", None),
        ("never seen", "pending", None),
    ],
)
def test_the_state_of_a_call_is_its_status(
    store: Store, tmp_path: Path, state: str, status: str, outcome: str | None
) -> None:
    records = [answered(1, "", toolCalls=[call("c1", "x", status=state)])]
    (part,) = messages(store, tmp_path, *records)[0].parts
    assert (part.status, part.outcome, part.input) == (status, outcome, {"path": "."})


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ("as a text", "as a text"),
        (None, None),
        ([{"functionResponse": {"id": "c1", "response": {"error": "no such file"}}}], "no such file"),
        ([{"functionResponse": {"id": "c1", "response": {"found": [1]}}}], '{"found":[1]}'),
        ([{"functionResponse": {"id": "c0", "response": {"output": "other"}}},
          {"functionResponse": {"id": "c1", "response": {"output": "own"}}}], "own"),
        ({"functionResponse": {"response": {"output": "without an id"}}}, "without an id"),
        ([{"text": "bare"}], "bare"),
    ],
)  # fmt: skip
def test_a_result_is_a_text_in_whatever_form_it_comes(
    store: Store, tmp_path: Path, result: Any, text: str | None
) -> None:
    calling = answered(1, "", toolCalls=[call("c1", result=result)])
    (part,) = messages(store, tmp_path, calling)[0].parts
    assert part.text == text


def test_a_response_is_a_message_of_role_tool_that_is_joined_with_its_call(
    store: Store, tmp_path: Path
) -> None:
    function = {"functionCall": {"id": "c1", "name": "ls", "args": {}}}
    answer, response = messages(
        store, tmp_path, said(1, "gemini", [function]), responded(2, "c1", "a.py")
    )
    assert response.role == "tool"
    assert (answer.parts[0].status, answer.parts[0].text) == ("completed", "a.py")


def test_a_call_without_a_name_is_kept_as_it_is(store: Store, tmp_path: Path) -> None:
    (answer,) = messages(store, tmp_path, answered(1, "1", toolCalls=[{"id": "c1", "name": ""}]))  # fmt: skip
    assert answer.parts[1].type == "custom"
    assert answer.parts[1].data["toolCall"]["id"] == "c1"


def test_images_are_files_also_in_results(store: Store, tmp_path: Path) -> None:
    image = {"inlineData": {"mimeType": "image/png", "data": base64.b64encode(b"png").decode()}}  # fmt: skip
    link = {"fileData": {"mimeType": "image/png", "fileUri": "gs://a/b.png"}}
    result = [{"functionResponse": {"id": "c1", "response": {"output": "x"}}}, image]
    prompt, answer = messages(
        store, tmp_path, said(1, "user", [{"text": "1"}, image, link]),
        answered(2, "", toolCalls=[call("c1", result=result)]),
    )  # fmt: skip
    assert prompt.parts[1].data == {"mime": "image/png", "content": b"png"}
    assert prompt.parts[2].data == {"mime": "image/png", "url": "gs://a/b.png"}
    assert [part.type for part in answer.parts] == ["tool", "file"]


def test_only_typed_text_is_a_prompt(store: Store, tmp_path: Path) -> None:
    added = said(
        2, "user", [{"text": "Read @a.py"}, {"text": "--- content ---"}],
        displayContent=[{"text": "Read @a.py"}],
    )  # fmt: skip
    context, prompt, summary = messages(
        store, tmp_path, asked(1, CONTEXT), added, asked(3, "<state_snapshot>S</state_snapshot>")
    )  # fmt: skip
    assert (context.role, context.kind) == ("event", "custom_message")
    assert [part.synthetic for part in prompt.parts] == [False, True]
    assert (summary.role, summary.kind) == ("event", "compaction")


def test_the_context_after_a_compression_is_its_replacement(
    store: Store, tmp_path: Path
) -> None:
    session = session_of(
        store, tmp_path, asked(1, "1"), answered(2, "2"),
        update(messages=[asked(7, "<state_snapshot>S"), said(8, "gemini", [{"text": "Got it."}])]),
        asked(9, "9"),
    )  # fmt: skip
    context = store.context(session)
    assert context.summary == "<state_snapshot>S"
    assert texts(context.messages) == ["Got it.", "9"]


@pytest.mark.parametrize("typed", [{}, {"displayContent": "Read @tea.py"}])
def test_files_that_a_prompt_mentions_and_contexts_of_hooks_are_not_typed(
    store: Store, tmp_path: Path, typed: Record
) -> None:
    # The program resolves the path of a file, so the typed text may be another one.
    texts = ["Read @src/tea.py", "\n--- Content from referenced files ---", "\nContent from @src/tea.py:\n", "x = 1", "\n--- End of content ---"]  # fmt: skip
    hook = "<hook_context>It is tea time</hook_context>"
    prompts = [
        said(1, "user", [{"text": text} for text in texts], **typed),
        said(2, "user", [{"text": "And milk?"}, {"text": hook}]),
    ]
    messages(store, tmp_path, *prompts)
    assert [p.text for p in store.prompts(project=ALL)] == ["And milk?", "Read @src/tea.py"]  # fmt: skip


# -- the prompt history ------------------------------------------------------------------


def entry(number: int, message: Any, session: int = 1, **fields: Any) -> Record:
    known = {"sessionId": session_id(session), "messageId": number, "type": "user"}
    return {**known, "message": message, "timestamp": moment(number), **fields}


def history(folder: Path, *entries: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "logs.json"
    path.write_text(json.dumps(entries, indent=2))
    return path


def test_a_prompt_of_the_history_is_not_doubled_with_that_of_its_session(
    store: Store, tmp_path: Path
) -> None:
    lines = [entry(1, "Hot?"), entry(2, "/stats"), entry(3, "Gone", session=7)]
    path = history(tmp_path / CHATS.parent, *lines)
    path.with_name(".project_root").write_text(PROJECT)
    session = session_of(store, tmp_path, asked(1, "Hot?"), answered(2, "Yes"))
    expected = [("Gone", None), ("/stats", session.id), ("Hot?", session.id)]
    for _ in range(2):
        found = store.prompts(project=ALL)
        assert [(p.text, p.session_id) for p in found] == expected
        assert {p.directory for p in found} == {PROJECT}
        read_into(store, tmp_path)


def test_a_history_without_sessions_is_read_and_qwen_code_has_the_same_one(
    store: Store, tmp_path: Path
) -> None:
    history(tmp_path / ".gemini/tmp" / HASH, entry(1, "Tea?"))
    switch = entry(3, '{"toModel": "b"}', type="model_switch")
    history(tmp_path / ".qwen/tmp" / HASH, entry(2, "Milk?"), switch)
    (tmp_path / "logs.json").write_text('[{"level": "info", "message": "by another"}]')
    assert read_into(store, tmp_path) == []
    found = [(p.text, p.source) for p in store.prompts(project=ALL)]
    assert found == [("Milk?", "qwen"), ("Tea?", "gemini")]


def test_an_odd_entry_of_the_history_is_one_problem(
    store: Store, tmp_path: Path
) -> None:
    odd = [7, entry(2, ["x"]), entry(3, "x", timestamp="soon"), {}]
    history(tmp_path / ".gemini/tmp/tea", entry(1, "a"), *odd, entry(4, "b"))
    found = read_into(store, tmp_path)
    assert [f.why[:8] for f in found if isinstance(f, Problem)] == [f"entry {n} " for n in (2, 3, 4, 5)]  # fmt: skip
    assert [p.text for p in store.prompts(project=ALL)] == ["b", "a"]

    for text in ("{}", '[{"messageId"'):
        write(tmp_path / "other" / CHATS, header(1), asked(1, "1"))
        history(tmp_path / "other" / CHATS.parent).write_text(text)
        (problem,) = [f for f in read_into(store, tmp_path / "other") if isinstance(f, Problem)]  # fmt: skip
        assert problem.why.startswith("the prompt history is not")


@pytest.mark.parametrize("kind", ["info", "warning", "error"])
def test_notes_of_the_program_are_events(
    store: Store, tmp_path: Path, kind: str
) -> None:
    (note,) = messages(store, tmp_path, said(1, kind, "Request cancelled."))
    assert (note.role, note.kind, note.text) == ("event", kind, "Request cancelled.")


# -- sessions ------------------------------------------------------------------------


def test_a_session_has_its_complete_id(store: Store, tmp_path: Path) -> None:
    assert session_of(store, tmp_path, asked(1, "1")).source_id == session_id(1)


def test_a_subagent_belongs_to_the_session_that_names_its_folder(
    store: Store, tmp_path: Path
) -> None:
    calling = answered(1, "", toolCalls=[call("c0", "x"), call("c1", "y", agentId=session_id(2))])  # fmt: skip
    write(tmp_path / CHATS, header(1), calling)
    write(
        tmp_path / CHATS / session_id(1), header(2, kind="subagent"), asked(1, "Look"),
        name=f"{session_id(2)}.jsonl",
    )  # fmt: skip
    first, second = read_into(store, tmp_path)
    assert isinstance(first, Imported)
    assert isinstance(second, Imported)
    child = by_id(store)[session_id(2)]
    assert (child.relation, child.parent_id, child.call_id) == ("subagent", first.id, "c1")  # fmt: skip


def test_a_bad_line_does_not_hide_the_call_that_started_a_subagent(
    store: Store, tmp_path: Path
) -> None:
    calling = answered(1, "", toolCalls=[call("c1", "y", agentId=session_id(2))])
    parent = write(tmp_path / CHATS, header(1), asked(3, "1"), calling)
    first, rest = parent.read_bytes().split(b"\n", 1)
    torn = b'{"agentId": "%s", ' % session_id(2).encode()
    parent.write_bytes(b"\n".join([first, torn, rest]))

    write(
        tmp_path / CHATS / session_id(1), header(2, kind="subagent"), asked(1, "Look"),
        name=f"{session_id(2)}.jsonl",
    )  # fmt: skip
    read_into(store, tmp_path)
    assert by_id(store)[session_id(2)].call_id == "c1"


def test_a_document_of_before_is_read(store: Store, tmp_path: Path) -> None:
    document(tmp_path / CHATS, 1, asked(1, "1"), answered(2, "2"), summary="Tea")
    session = taken(store, tmp_path)
    assert (session.source_id, session.title) == (session_id(1), "Tea")
    assert texts(store.messages(session)) == ["1", "2"]


def test_a_document_needs_a_session_and_messages_alone(
    store: Store, tmp_path: Path
) -> None:
    alone = {"messages": [asked(1, "x" * 70_000)], "sessionId": session_id(1)}
    other = {"sessionId": session_id(2), "messages": [asked(1, "1")]}
    for number, content in enumerate((alone, other, {"messages": []}), 1):
        path = tmp_path / CHATS / f"session-{number}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content))
    # Elsewhere such a file is of any program.
    (tmp_path / "session-4.json").write_text(json.dumps(alone))

    found = read_into(store, tmp_path)
    assert [f.why for f in found if isinstance(f, Problem)] == ["the log has no header"]
    assert sorted(by_id(store)) == [session_id(1), session_id(2)]
    assert len(store.messages(by_id(store)[session_id(1)])) == 1


def test_messages_of_two_sessions_may_have_the_same_id_and_time(
    store: Store, tmp_path: Path
) -> None:
    for number in (1, 2):
        write(tmp_path / CHATS, header(number), asked(1, f"{number}?"), answered(2, "Yes"))  # fmt: skip
    read_into(store, tmp_path)
    assert {p.text for p in store.prompts(project=ALL)} == {"1?", "2?"}
    assert store.usage(project=ALL)[0].tokens.input == 2 * 10


def test_a_document_that_was_migrated_is_not_read_again(
    store: Store, tmp_path: Path
) -> None:
    old = document(tmp_path / CHATS, 1, asked(1, "1"))
    write(tmp_path / CHATS, header(1), asked(1, "1"), asked(2, "2"))
    assert texts(store.messages(taken(store, tmp_path))) == ["1", "2"]
    assert read_into(store, old) == []


def test_a_document_counts_if_its_migration_failed(
    store: Store, tmp_path: Path
) -> None:
    old = document(tmp_path / CHATS, 1, asked(1, "1"))
    old.with_suffix(".jsonl").write_text("")
    found = read_into(store, tmp_path)
    assert [item.messages for item in found if isinstance(item, Imported)] == [1]


def test_a_torn_document_is_one_problem(store: Store, tmp_path: Path) -> None:
    old = document(tmp_path / CHATS, 1, asked(1, "1"), asked(2, "2"))
    old.write_text(old.read_text()[:-40])
    write(tmp_path / CHATS, header(2), asked(1, "1"))
    problem, other = sorted(read_into(store, tmp_path), key=lambda r: isinstance(r, Imported))  # fmt: skip
    assert isinstance(problem, Problem)
    assert problem.source == str(old)
    assert isinstance(other, Imported)


@pytest.mark.parametrize("by", ["root", "name", "hash", "context", "directories"])
def test_the_directory_is_found_wherever_it_is_named(
    store: Store, tmp_path: Path, by: str
) -> None:
    chats = tmp_path / CHATS
    records = [header(1), asked(1, "1")]
    chats.mkdir(parents=True)
    if by == "root":
        (chats.parent / ".project_root").write_text(PROJECT)
    elif by in ("name", "hash"):
        known = {"/home/ada": "other", PROJECT: "tea" if by == "name" else "tea-2"}
        (tmp_path / ".gemini" / "projects.json").write_text(json.dumps({"projects": known}))  # fmt: skip
    elif by == "context":
        records.append(update(messages=[asked(2, CONTEXT)]))
    else:
        records[0]["directories"] = [PROJECT]
    write(chats, *records)
    assert taken(store, tmp_path).directory == PROJECT


def test_a_directory_that_is_not_the_projects_is_not_taken_from_the_context(
    store: Store, tmp_path: Path
) -> None:
    other = CONTEXT.replace(PROJECT, "/home/ada/else")
    assert session_of(store, tmp_path, asked(1, other)).directory != "/home/ada/else"


def test_of_two_logs_of_one_session_the_longer_one_is_read(
    store: Store, tmp_path: Path
) -> None:
    write(tmp_path / CHATS, header(1), asked(1, "1"), name="session-a.jsonl")
    write(tmp_path / CHATS, header(1), asked(1, "1"), asked(2, "2"), name="session-b.jsonl")  # fmt: skip
    problem, session = sorted(read_into(store, tmp_path), key=lambda r: isinstance(r, Imported))  # fmt: skip
    assert isinstance(problem, Problem)
    assert problem.source.endswith("session-a.jsonl")
    assert isinstance(session, Imported)
    assert session.messages == 2


def test_a_recorded_message_is_complete(store: Store, tmp_path: Path) -> None:
    said = messages(store, tmp_path, asked(1, CONTEXT), asked(2, "2"), answered(3, "3"))
    assert [m.time_completed for m in said] == [m.time_created for m in said]


def test_a_log_that_a_resume_began_and_left_is_not_a_problem(
    store: Store, tmp_path: Path
) -> None:
    context = update(messages=[asked(0, CONTEXT)])
    write(tmp_path / CHATS, header(1), context, asked(1, "1"), name="session-a.jsonl")
    write(tmp_path / CHATS, header(1), context, update(sessionId=session_id(1)), name="session-b.jsonl")  # fmt: skip
    (session,) = read_into(store, tmp_path)
    assert isinstance(session, Imported)
    assert session.messages == 2


def test_a_complete_output_comes_with_the_first_message_that_names_it(
    store: Store, tmp_path: Path
) -> None:
    outputs = tmp_path / CHATS.parent / "tool-outputs" / f"session-{session_id(1)}"
    outputs.mkdir(parents=True)
    (outputs / "ls_c1.txt").write_text("everything")
    (tmp_path / "secret.txt").write_text("secret")
    cut = f"For full output see: /home/ada/.gemini/tmp/tea/tool-outputs/session-{session_id(1)}/ls_c1.txt\n"  # fmt: skip
    outside = "see /x/tool-outputs/../../../../secret.txt"
    answer, response, other = messages(
        store, tmp_path, answered(1, "", toolCalls=[call("c1", cut)]),
        responded(2, "c1", cut), responded(3, "c2", outside),
    )  # fmt: skip
    (file,) = [part for part in answer.parts if part.type == "file"]
    assert (file.data["content"], file.data["filename"]) == (b"everything", "ls_c1.txt")
    assert [part.type for part in (*response.parts, *other.parts)] == ["tool-result"] * 2  # fmt: skip


def test_a_growing_session_is_updated_in_place(store: Store, tmp_path: Path) -> None:
    path = write(tmp_path / CHATS, header(1), asked(1, "1"), answered(2, "2"))
    session = taken(store, tmp_path)
    more = [answered(2, "2", toolCalls=[call("c1", "x")]), {"$rewindTo": "m9"}, asked(3, "3")]  # fmt: skip
    path.write_text(path.read_text() + log(*more))
    (again,) = read_into(store, tmp_path)
    assert isinstance(again, Imported)
    assert (again.outcome, again.id) == ("updated", session.id)
    assert texts(store.messages(session)) == ["3"]


@pytest.mark.parametrize("home", [".qwen", "data/mine"])
@pytest.mark.parametrize("formats", [["qwen"], None])
def test_old_logs_of_qwen_code_are_its_own(
    store: Store, tmp_path: Path, formats: list[str] | None, home: str
) -> None:
    # A home of another name is known by the folder of later releases.
    (tmp_path / home / "projects").mkdir(parents=True)
    chats = tmp_path / home / "tmp" / HASH / "chats"
    document(chats, 1, asked(1, "1"), said(2, "qwen", "2"))
    history(chats.parent, entry(3, "/stats"))
    history(chats.parent.with_name("other"), entry(4, "/quit"))
    write(tmp_path / CHATS, header(2), asked(1, "1"))

    found = list(find(tmp_path / home, formats=formats))
    assert {of.source for of in found} == {"qwen"}
    results = [item for of in found for item in store.ingest(of.read())]
    (session,) = (store.session(of.id) for of in results if isinstance(of, Imported))
    assert session.source == "qwen"
    assert [m.role for m in store.messages(session)] == ["user", "assistant"]
    prompts = {(p.text, p.source) for p in store.prompts(project=ALL)}
    assert prompts >= {("/stats", "qwen"), ("/quit", "qwen")}


def test_logs_of_one_program_are_not_those_of_the_other(tmp_path: Path) -> None:
    write(tmp_path / CHATS, header(1), asked(1, "1"))
    document(tmp_path / ".qwen/tmp" / HASH / "chats", 2, asked(1, "1"))
    for name, home in (("gemini", ".gemini"), ("qwen", ".qwen")):
        (found,) = find(tmp_path, formats=[name])
        assert (found.source, found.path.parents[2]) == (name, tmp_path / home)


def test_a_log_of_qwen_code_is_one_by_a_relative_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    document(tmp_path / ".qwen/tmp" / HASH / "chats", 1, asked(1, "1"))
    monkeypatch.chdir(tmp_path / ".qwen/tmp")
    assert [of.source for of in find(HASH, formats=["qwen"])] == ["qwen"]


def test_its_folders_are_where_the_environment_says() -> None:
    env = {"HOME": "/home/ada", "GEMINI_CLI_HOME": "/data"}
    found = default_locations(env, formats=["gemini"])
    assert found == [Path("/data/.gemini"), Path("/data/.cache/.gemini")]


def test_a_folder_above_the_logs_does_not_hide_other_stores(
    store: Store, tmp_path: Path
) -> None:
    # ``tmp`` of a home directory may hold a copy of what the program has there.
    write(tmp_path / "tmp/tea/chats", header(1), asked(1, "1"))
    write(tmp_path / ".gemini/tmp/tea/chats", header(2), asked(1, "1"))
    assert len(read_into(store, tmp_path)) == 2


# -- the real store ----------------------------------------------------------------------


@pytest.mark.slow
def test_the_real_store_has_the_tokens_that_were_served(
    store: Store, real_store: Callable[[str], Path]
) -> None:
    folder = real_store("gemini-cli-0.61.0")
    sessions = all_taken(store, folder / "data")
    checked = 0
    # Answers that were empty or cut are not recorded by the program.
    for name, usage in served(folder, "bigout", "interrupt"):
        if name and usage:
            short = name.rpartition("-")[2]
            (session,) = (s for key, s in sessions.items() if key.startswith(short))
            checked += 1
            assert session.directory == "/home/dev/projects/acme"
            assert session.tokens_reasoning == usage["reasoning"]
            check_tokens(session, usage)
    assert checked == 4
