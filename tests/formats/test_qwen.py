"""The logs of Qwen Code: their tree, their forks and subagents, and how they break."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from imported import all_taken, by_id, check_tokens, served, taken, texts
from samples import read_into
from samples_qwen import (
    Record,
    agent_log,
    answered,
    asked,
    call,
    forked,
    log,
    moment,
    of_session,
    record,
    request,
    result,
    said,
    session_id,
    system,
    uuid,
    words,
    write,
)

from sessiondb import Store
from sessiondb.formats import default_locations
from sessiondb.model import Imported, Message, ModelName, Problem, Session

PROJECT = Path(".qwen/projects/-home-ada-tea")
CHATS = PROJECT / "chats"


def session_of(store: Store, folder: Path, *records: Record) -> Session:
    write(folder / CHATS, *records)
    return taken(store, folder)


def messages(store: Store, folder: Path, *records: Record) -> list[Message]:
    return list(store.messages(session_of(store, folder, *records), branches=True))


U1, A2, U3, A4 = asked(1, "1", None), answered(2, words("2")), asked(3, "3"), answered(4, words("4"))  # fmt: skip


# -- the tree ------------------------------------------------------------------------


def test_the_last_record_of_the_file_is_where_a_session_continues(
    store: Store, tmp_path: Path
) -> None:
    # Two writers: the answer of one is beside the path of the other.
    session = session_of(store, tmp_path, U1, A2, U3, A4, asked(5, "5", 2))
    assert texts(store.messages(session)) == ["1", "2", "5"]
    assert texts(store.messages(session, branches=True)) == ["1", "2", "3", "4", "5"]


def test_a_rewind_leaves_the_dropped_messages_as_a_branch(
    store: Store, tmp_path: Path
) -> None:
    rewind = system(5, "rewind", above=2, truncatedCount=2)
    session = session_of(store, tmp_path, U1, A2, U3, A4, rewind, asked(6, "6"))
    assert texts(store.context(session).messages) == ["1", "2", "6"]
    assert "4" in texts(store.messages(session, branches=True))


def test_a_record_of_an_artifact_is_beside_the_conversation_and_not_its_end(
    store: Store, tmp_path: Path
) -> None:
    artifact = system(3, "session_artifact_event", above=1, changes=[])
    session = session_of(store, tmp_path, U1, A2, artifact)
    assert texts(store.messages(session)) == ["1", "2"]


def test_records_with_one_uuid_are_pieces_of_one_message(
    store: Store, tmp_path: Path
) -> None:
    again = {**A2, "message": {"role": "model", "parts": [words("and more")]}}
    del again["usageMetadata"]
    session = session_of(store, tmp_path, U1, A2, again, U3)
    assert texts(store.messages(session)) == ["1", "2", "and more", "3"]


def test_a_record_whose_parent_is_missing_begins_a_path_of_its_own(
    store: Store, tmp_path: Path
) -> None:
    session = session_of(store, tmp_path, U1, A2, asked(3, "3", 77))
    assert texts(store.messages(session)) == ["3"]


def test_a_damaged_line_is_reported_and_skipped(store: Store, tmp_path: Path) -> None:
    path = write(tmp_path / CHATS, U1, A2, U3, A4)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([lines[0], lines[1][:40] + "\n", *lines[2:]]))
    found = read_into(store, tmp_path)
    assert [item.line for item in found if isinstance(item, Problem)] == [2]
    (session,) = (item for item in found if isinstance(item, Imported))
    assert texts(store.messages(session.id)) == ["1", "3", "4"]


def test_records_that_two_writers_put_on_one_line_are_all_read(
    store: Store, tmp_path: Path
) -> None:
    path = write(tmp_path / CHATS, U1)
    path.write_text(log(U1) + log(A2).strip() + log(U3))
    assert texts(store.messages(taken(store, tmp_path))) == ["1", "2", "3"]


def test_the_torn_end_of_such_a_line_is_a_problem_and_its_beginning_is_read(
    store: Store, tmp_path: Path
) -> None:
    path = write(tmp_path / CHATS, U1)
    path.write_text(log(U1) + log(A2).strip() + log(U3)[:30])
    problem, session = sorted(read_into(store, tmp_path), key=lambda r: isinstance(r, Imported))  # fmt: skip
    assert isinstance(problem, Problem)
    assert problem.line == 2
    assert isinstance(session, Imported)
    assert texts(store.messages(session.id)) == ["1", "2"]


@pytest.mark.parametrize("above", [3, 4])
def test_a_circle_of_parents_is_cut(store: Store, tmp_path: Path, above: int) -> None:
    session = session_of(store, tmp_path, U1, A2, asked(3, "3", above), A4)
    assert texts(store.messages(session)) == ["3", "4"]


# -- what records become ---------------------------------------------------------------


def test_counts_are_disjoint_where_thoughts_are_part_of_the_output(
    store: Store, tmp_path: Path
) -> None:
    _, answer = messages(store, tmp_path, U1, A2)
    counts = (answer.tokens_input, answer.tokens_output, answer.tokens_reasoning, answer.tokens_cache_read)  # fmt: skip
    assert counts == (10, 4, 3, 2)


def test_counts_are_disjoint_where_thoughts_are_beside_the_output(
    store: Store, tmp_path: Path
) -> None:
    usage = {"promptTokenCount": 12, "candidatesTokenCount": 7, "thoughtsTokenCount": 3, "totalTokenCount": 22}  # fmt: skip
    (answer,) = messages(store, tmp_path, answered(1, words("1"), above=None, usageMetadata=usage))  # fmt: skip
    assert (answer.tokens_output, answer.tokens_reasoning) == (7, 3)


def test_counts_that_contradict_each_other_stay_in_the_record(
    store: Store, tmp_path: Path
) -> None:
    usage = {"promptTokenCount": 1, "cachedContentTokenCount": 5}
    (answer,) = messages(store, tmp_path, answered(1, words("1"), above=None, usageMetadata=usage))  # fmt: skip
    assert answer.tokens is None
    assert answer.data["usageMetadata"] == usage


def test_an_answer_has_the_id_of_the_request_before_it(
    store: Store, tmp_path: Path
) -> None:
    *_, first, _, second = messages(
        store, tmp_path, U1, request(2, "r1"), answered(3, words("3")), request(4, "r2"), answered(5, words("5"), above=3)
    )  # fmt: skip
    assert (first.response_id, second.response_id) == ("r1", None)


def test_a_request_without_an_answer_is_counted_once_and_one_with_it_by_that(
    store: Store, tmp_path: Path
) -> None:
    records = [U1, request(2, "r1"), answered(3, words("3")), request(4, "r2")]
    write(tmp_path / CHATS, *records)
    write(tmp_path / CHATS, *forked(2, *records), *of_session(2, request(5, "r3")))
    read_into(store, tmp_path)
    original, fork = by_id(store)[session_id(1)], by_id(store)[session_id(2)]
    assert (original.tokens_input, fork.tokens_input) == (20, 10)
    *_, first, usage = store.messages(original)
    assert (first.role, first.tokens_output) == ("assistant", 4)
    assert (usage.kind, usage.model_id, usage.response_id) == ("usage", "large", "r2")
    assert (usage.tokens_output, usage.tokens_reasoning) == (4, 3)


def test_a_record_with_an_id_that_is_not_a_text_hides_no_other(
    store: Store, tmp_path: Path
) -> None:
    odd = {**request(2, "resp_2"), "uuid": ["not a text"]}
    first, second, third = messages(
        store, tmp_path, asked(1, "1"), odd, asked(3, "3", above=1)
    )
    assert texts([first, third]) == ["1", "3"]
    assert second.id.startswith("~")


def test_a_request_is_counted_once_when_its_answer_arrives(
    store: Store, tmp_path: Path
) -> None:
    session = session_of(store, tmp_path, U1, request(2, "r1"))
    assert store.session(session.id).tokens_input == 10
    write(tmp_path / CHATS, U1, request(2, "r1"), answered(3, words("3")))
    read_into(store, tmp_path)
    assert store.session(session.id).tokens_input == 10
    _, event, answer = store.messages(session)
    assert (event.kind, event.tokens, answer.tokens_input) == ("ui_telemetry", None, 10)


def test_requests_of_a_subagent_are_counted_in_its_own_log(
    store: Store, tmp_path: Path
) -> None:
    theirs = request(2, "r1", subagent_id="explore-c1")
    memory = request(3, "r2", subagent_id="memory-1")
    write(tmp_path / CHATS, U1, theirs, memory)
    agent_log(tmp_path / PROJECT, "explore-c1", asked(11, "Look", None), answered(12, words("Found")))  # fmt: skip
    read_into(store, tmp_path)
    found = by_id(store)
    assert found[session_id(1)].tokens_input == 10
    assert found[f"{session_id(1)}/explore-c1"].tokens_input == 10


def test_a_request_of_a_subagent_that_is_only_named_is_counted_once(
    store: Store, tmp_path: Path
) -> None:
    # Two requests with the same counts, of which one is in the log of a subagent.
    theirs = [
        request(2, "r1", subagent_name="explore"),
        request(3, "r2", subagent_name="explore"),
    ]
    other = request(4, "r3", subagent_name="plan")
    write(tmp_path / CHATS, U1, *theirs, other)
    agent_log(
        tmp_path / PROJECT,
        "explore-c1",
        asked(11, "Look", None),
        answered(12, words("Found"), agentName="explore"),
    )
    read_into(store, tmp_path)
    found = by_id(store)
    assert found[session_id(1)].tokens_input == 20
    assert found[f"{session_id(1)}/explore-c1"].tokens_input == 10


def test_a_result_has_the_outcome_of_its_call(store: Store, tmp_path: Path) -> None:
    failed = said(
        3, "tool_result",
        {"functionResponse": {"id": "c1", "name": "ls", "response": {"error": "no such file"}}},
        toolCallResult={"status": "error"},
    )  # fmt: skip
    cancelled = result(4, "c2", "Cancelled by the user", state={"status": "cancelled"})
    answer, *_ = messages(
        store, tmp_path, answered(2, call("c1", path="a"), call("c2"), above=None), failed, cancelled
    )  # fmt: skip
    assert [(p.status, p.outcome, p.text) for p in answer.parts] == [
        ("error", "failed", "no such file"),
        ("error", "interrupted", "Cancelled by the user"),
    ]
    assert answer.parts[0].input == {"path": "a"}


@pytest.mark.parametrize(
    ("fields", "role", "kind"),
    [
        ({"provenance": "real_user"}, "user", None),
        ({"subtype": "mid_turn_user_message"}, "user", None),
        ({"subtype": "notification", "provenance": "system"}, "event", "custom_message"),
        ({"subtype": "cron"}, "event", "custom_message"),
        ({"provenance": "system"}, "event", "custom_message"),
    ],
)  # fmt: skip
def test_only_typed_text_is_a_prompt(
    store: Store, tmp_path: Path, fields: Record, role: str, kind: str | None
) -> None:
    (message,) = messages(store, tmp_path, {**U1, **fields})
    assert (message.role, message.kind, message.text) == (role, kind, "1")


def test_files_that_a_prompt_mentions_are_not_typed(
    store: Store, tmp_path: Path
) -> None:
    texts = ["Read @tea.py", "\n--- Content from referenced files ---", "x = 1"]
    mention = said(1, "user", *map(words, texts), above=None)
    shown = {"displayText": "And milk?", "hookContext": ""}
    other = said(2, "user", words("And milk?"), words("expanded"), systemPayload=shown)
    found = messages(store, tmp_path, mention, other)
    marks = [[part.synthetic for part in m.parts] for m in found]
    assert marks == [[False, True, True], [False, True]]


def test_text_that_a_hook_adds_to_a_prompt_is_synthetic(
    store: Store, tmp_path: Path
) -> None:
    added = "<qwen:user-prompt-submit-context>\nx\n</qwen:user-prompt-submit-context>"
    (prompt,) = messages(store, tmp_path, said(1, "user", words("1"), words(added), above=None))  # fmt: skip
    assert [part.synthetic for part in prompt.parts] == [False, True]


def test_a_compression_keeps_the_messages_that_it_repeats(
    store: Store, tmp_path: Path
) -> None:
    history = [
        {"role": "user", "parts": [words("Summary")]},
        {"role": "model", "parts": [words("Got it.")]},
        {"role": "user", "parts": [words("3")]},
        {"role": "model", "parts": [words("4")]},
    ]
    compression = system(5, "chat_compression", info={}, compressedHistory=history)
    session = session_of(store, tmp_path, U1, A2, U3, A4, compression, asked(6, "6"))
    context = store.context(session)
    assert context.summary == "Summary"
    assert texts(context.messages) == ["3", "4", "6"]


def test_a_compression_that_keeps_nothing_is_its_summary(
    store: Store, tmp_path: Path
) -> None:
    history = [{"role": "user", "parts": [words("Summary")]}]
    compression = system(3, "chat_compression", info={}, compressedHistory=history)
    session = session_of(store, tmp_path, U1, A2, compression, asked(4, "4"))
    context = store.context(session)
    assert (context.summary, texts(context.messages)) == ("Summary", ["4"])


def test_model_and_mode_are_those_of_the_last_record(
    store: Store, tmp_path: Path
) -> None:
    session = session_of(
        store, tmp_path, U1, system(2, "session_model", modelId="small", authType="openai"),
        system(3, "session_approval_mode", mode="plan"),
    )  # fmt: skip
    context = store.context(session)
    assert context.models["default"] == ModelName("small", None)
    assert context.mode == "plan"


def test_an_unknown_record_is_an_event_and_one_without_a_type_a_problem(
    store: Store, tmp_path: Path
) -> None:
    write(tmp_path / CHATS, U1, system(2, "never_seen", a=1), record(3, "note", b=2), {"c": 3})  # fmt: skip
    problem, session = sorted(read_into(store, tmp_path), key=lambda r: isinstance(r, Imported))  # fmt: skip
    assert isinstance(problem, Problem)
    assert problem.line == 4
    assert isinstance(session, Imported)
    _, first, second = store.messages(session.id)
    assert (first.kind, first.data["systemPayload"]) == ("never_seen", {"a": 1})
    assert (second.role, second.kind, second.data["b"]) == ("event", "note", 2)


def test_a_complete_output_comes_with_the_result_that_names_it(
    store: Store, tmp_path: Path
) -> None:
    outputs = tmp_path / ".qwen/tmp/0f"
    outputs.mkdir(parents=True)
    (outputs / "ls_1.output").write_text("everything")
    (tmp_path / "secret.output").write_text("secret")
    named = (
        "saved to: /home/ada/.qwen/tmp/0f/ls_1.output\nor /x/tmp/../../secret.output"
    )
    _, answer = messages(store, tmp_path, U1, result(2, "c1", named))
    (file,) = [part for part in answer.parts if part.type == "file"]
    assert (file.data["content"], file.data["filename"]) == (b"everything", "ls_1.output")  # fmt: skip


# -- sessions ----------------------------------------------------------------------------


def test_the_head_of_a_log_has_its_directory(store: Store, tmp_path: Path) -> None:
    session = session_of(store, tmp_path, U1, A2)
    assert (session.source_id, session.directory, session.version) == (
        session_id(1), "/home/ada/tea", "0.24.4",
    )  # fmt: skip


def test_the_last_title_counts(store: Store, tmp_path: Path) -> None:
    titles = [
        system(number, "custom_title", customTitle=title, titleSource="auto")
        for number, title in ((2, "First"), (3, "Last"), (4, ""))
    ]
    assert session_of(store, tmp_path, U1, *titles).title == "Last"


def test_a_fork_counts_its_copies_once(store: Store, tmp_path: Path) -> None:
    write(tmp_path / CHATS, U1, A2)
    write(tmp_path / CHATS, *forked(2, U1, A2), *of_session(2, U3, A4))
    read_into(store, tmp_path)
    original, fork = by_id(store)[session_id(1)], by_id(store)[session_id(2)]
    assert (fork.parent_id, fork.relation, fork.parent_seq) == (original.id, "fork", 2)
    assert (original.tokens_input, fork.tokens_input) == (10, 10)
    assert texts(store.messages(fork)) == ["1", "2", "3", "4"]


def test_a_fork_of_a_fork_names_the_one_that_it_was_made_of(
    store: Store, tmp_path: Path
) -> None:
    write(tmp_path / CHATS, U1, A2)
    write(tmp_path / CHATS, *forked(2, U1, A2))
    write(tmp_path / CHATS, *forked(3, *of_session(2, U1, A2)))
    read_into(store, tmp_path)
    found = by_id(store)
    assert found[session_id(3)].parent_id == found[session_id(2)].id


def test_a_subagent_belongs_to_the_session_and_call_that_started_it(
    store: Store, tmp_path: Path
) -> None:
    write(tmp_path / CHATS, U1, answered(2, call("c1", "agent")))
    agent_log(
        tmp_path / PROJECT, "explore-c1", asked(11, "Look", None), answered(12, words("Found")),
        toolUseId="c1", description="Look for it",
    )  # fmt: skip
    agent_log(tmp_path / PROJECT, "deep-c2", asked(21, "Deeper", None), parentAgentId="explore-c1")  # fmt: skip
    read_into(store, tmp_path)
    found = by_id(store)
    child = found[f"{session_id(1)}/explore-c1"]
    assert (child.relation, child.call_id, child.title, child.agent) == (
        "subagent", "c1", "Look for it", "explore",
    )  # fmt: skip
    assert child.parent_id == found[session_id(1)].id
    assert found[f"{session_id(1)}/deep-c2"].parent_id == child.id


def test_agents_of_two_sessions_may_have_the_same_name(
    store: Store, tmp_path: Path
) -> None:
    for number in (1, 2):
        write(tmp_path / CHATS, *of_session(number, U1))
        agent_log(tmp_path / PROJECT, "explore-call_0", *of_session(number, asked(11, "Look", None)))  # fmt: skip
    read_into(store, tmp_path)
    found = by_id(store)
    assert len(found) == 4
    for number in (1, 2):
        child = found[f"{session_id(number)}/explore-call_0"]
        assert child.parent_id == found[session_id(number)].id


def test_the_beginning_of_an_id_names_the_session_and_not_its_subagents(
    store: Store, tmp_path: Path
) -> None:
    write(tmp_path / CHATS, U1)
    for agent in ("explore-c1", "plan-c2"):
        agent_log(tmp_path / PROJECT, agent, asked(11, "Look", None))
    read_into(store, tmp_path)
    found = by_id(store)
    name = session_id(1)
    assert store.session(name[:12]).id == found[name].id
    assert store.session(f"{name}/pl").id == found[f"{name}/plan-c2"].id


def test_a_subagent_without_its_description_is_read(
    store: Store, tmp_path: Path
) -> None:
    write(tmp_path / CHATS, U1)
    path = agent_log(tmp_path / PROJECT, "explore-c1", asked(11, "Look", None))
    path.with_suffix(".meta.json").write_text("{")
    found = read_into(store, tmp_path)
    assert [Path(item.source).name for item in found if isinstance(item, Problem)] == ["agent-explore-c1.meta.json"]  # fmt: skip
    path.with_suffix(".meta.json").unlink()
    assert {type(item) for item in read_into(store, tmp_path)} == {Imported}
    child = by_id(store)[f"{session_id(1)}/explore-c1"]
    assert (child.relation, child.call_id) == ("subagent", None)


def test_a_session_that_another_one_started_is_its_child(
    store: Store, tmp_path: Path
) -> None:
    write(tmp_path / CHATS, U1)
    start = system(11, "parent_session", None, parentSessionId=session_id(1))
    write(tmp_path / CHATS, *of_session(2, start, asked(12, "Go")))
    read_into(store, tmp_path)
    found = by_id(store)
    child = found[session_id(2)]
    assert (child.relation, child.parent_id) == ("subagent", found[session_id(1)].id)


def test_a_log_in_the_archive_is_an_archived_session(
    store: Store, tmp_path: Path
) -> None:
    write(tmp_path / CHATS / "archive", U1)
    (found,) = read_into(store, tmp_path)
    assert isinstance(found, Imported)
    assert store.session(found.id).time_archived is not None


def test_of_two_logs_of_one_session_the_longer_one_is_read(
    store: Store, tmp_path: Path
) -> None:
    write(tmp_path / CHATS, U1)
    write(tmp_path / CHATS / "archive", U1, A2)
    problem, session = sorted(read_into(store, tmp_path), key=lambda r: isinstance(r, Imported))  # fmt: skip
    assert isinstance(problem, Problem)
    assert isinstance(session, Imported)
    assert session.messages == 2


def test_a_log_of_claude_code_is_not_one_of_qwen_code(
    store: Store, tmp_path: Path
) -> None:
    theirs = {**U1, "message": {"role": "user", "content": "1"}}
    write(tmp_path / "x", record(1, "system", None, content="x"), theirs, name="a.jsonl")  # fmt: skip
    found = [item for item in read_into(store, tmp_path) if isinstance(item, Imported)]
    assert "qwen" not in [item.source for item in found]


def test_a_growing_session_is_updated_in_place(store: Store, tmp_path: Path) -> None:
    session = session_of(store, tmp_path, U1, A2, U3)
    write(tmp_path / CHATS, U1, A2, U3, asked(4, "4", 2))
    (again,) = read_into(store, tmp_path)
    assert isinstance(again, Imported)
    assert (again.outcome, again.id) == ("updated", session.id)
    assert texts(store.messages(session)) == ["1", "2", "4"]


def test_ids_and_times_are_those_of_the_program(store: Store, tmp_path: Path) -> None:
    found = messages(store, tmp_path, U1, A2)
    assert [message.id for message in found] == [uuid(1), uuid(2)]
    assert found[1].time_created - found[0].time_created == 1000
    assert moment(1) == found[0].data["timestamp"]


def test_its_folders_are_where_the_environment_says() -> None:
    env = {"HOME": "/home/ada", "QWEN_HOME": "/data/qwen", "QWEN_RUNTIME_DIR": "/run/qwen"}  # fmt: skip
    found = default_locations(env, formats=["qwen"])
    assert found == [Path("/run/qwen"), Path("/data/qwen"), Path("/home/ada/.qwen")]


def test_a_folder_above_the_logs_does_not_hide_other_stores(
    store: Store, tmp_path: Path
) -> None:
    write(tmp_path / "projects/tea/chats", U1)
    write(tmp_path / CHATS, *of_session(2, U1))
    assert len(read_into(store, tmp_path)) == 2


# -- the real store ------------------------------------------------------------------------


@pytest.mark.slow
def test_the_real_store_has_the_tokens_that_were_served(
    store: Store, real_store: Callable[[str], Path]
) -> None:
    folder = real_store("qwen-code-0.24.4")
    sessions = all_taken(store, folder / "data")
    checked = 0
    # Half an answer has no counts; a compression that failed was not served completely.
    for name, usage in served(folder, "interrupt", "compact"):
        short = name.removeprefix("agent-")
        (session,) = (s for key, s in sessions.items() if key.endswith(short))
        checked += 1
        assert session.directory == "/home/dev/projects/acme"
        check_tokens(session, usage)
    assert checked == 7
