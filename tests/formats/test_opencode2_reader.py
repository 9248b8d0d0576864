"""The reader on tiny stores in the format of OpenCode 2."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from odd_json import changed_anywhere, same
from opencode2_store import (
    MODEL,
    answered,
    asked,
    called,
    everything2,
    forked2,
    insert,
    message,
    message_row,
    resulted,
    session2,
    sqlite2_store,
    tokens,
)
from opencode_reading import drafts, one, problems_in, read
from opencode_store import (
    PROJECT,
    T0,
    WORKTREE,
    assistant,
    session,
    sqlite_store,
    text,
    user,
)

from sessiondb import ContextSource, Store
from sessiondb.formats import find
from sessiondb.formats.opencode.v2.drafts import message_draft, session_fields
from sessiondb.formats.opencode.v2.records import (
    export_json,
    message_json,
    session_info,
)
from sessiondb.model import MessageDraft, SourceMessage, SourceSession


def by_kind(messages: list[MessageDraft]) -> dict[str | None, MessageDraft]:
    return {draft.kind or draft.role: draft for draft in messages}


def test_every_record_of_version_2_is_exported_as_it_was(tmp_path: Path) -> None:
    item = everything2()
    source = one(sqlite2_store(tmp_path / "opencode.db", item))
    assert export_json(source, drafts(source)) == item


def test_records_of_version_2_come_back_from_the_database_as_they_were(
    tmp_path: Path,
) -> None:
    item = everything2()
    (foreign,) = find(sqlite2_store(tmp_path / "opencode.db", item))
    with Store.open(tmp_path / "own.db", durability="normal") as store:
        (done,) = store.ingest(foreign.read())
        export = store.export(done.id)
        assert export_json(export.session, export.messages) == item
        (source,) = store.context(done.id).sources
        assert source == ContextSource("skill", title="tidy")


def test_a_session_of_version_2_has_its_own_fields(tmp_path: Path) -> None:
    source = one(sqlite2_store(tmp_path / "opencode.db", everything2()))
    assert (source.title, source.version, source.agent) == (
        "Session 1",
        "2.0.15",
        "plan",
    )
    assert (source.provider_id, source.model_id) == ("acme", "large")
    assert (source.directory, source.worktree) == (f"{WORKTREE}/src", WORKTREE)
    assert (source.time_created, source.time_archived) == (T0, T0 + 3)
    assert source.metadata == {"ticket": "№ 7"}
    assert source.revert["messageID"] == "msg_0002"


def test_messages_of_version_2_have_the_roles_and_kinds_of_all_sessions(
    tmp_path: Path,
) -> None:
    messages = drafts(one(sqlite2_store(tmp_path / "opencode.db", everything2())))
    assert [draft.kind or draft.role for draft in messages] == [
        "system", "user", "assistant", "idle", "custom_message", "custom_message", "shell",
        "model_change", "mode_change", "location-switched", "compaction", "compaction_failed",
        "assistant", "cancelled", "hologram",
    ]  # fmt: skip
    kinds = by_kind(messages)
    prompt, shell, summary = kinds["user"], kinds["shell"], kinds["compaction"]
    assert [part.type for part in prompt.parts] == ["text", "file", "agent"]
    assert prompt.parts[1].data["content"] == b"\x00\x01\x02"
    assert (shell.parts[0].input, shell.parts[0].text) == ({"command": "ls"}, "a\n")
    assert (shell.parts[0].status, shell.time_completed) == ("completed", T0 + 8)
    assert [part.text for part in summary.parts] == ["Sum", "[User]: x"]
    assert (summary.cost, summary.model_id) == (0.5, "large")
    assert (kinds["mode_change"].agent, kinds["model_change"].model_id) == (
        "plan",
        "large",
    )
    assert kinds["compaction_failed"].error["type"] == "compaction.failed"
    assert kinds["assistant"].finish == "cancelled"
    assert kinds["hologram"].data == {"type": "hologram", "depth": 3}


def test_calls_of_version_2_have_input_result_and_outcome(tmp_path: Path) -> None:
    aborted = {
        "status": "error",
        "input": {},
        "error": {"type": "aborted", "message": "x"},
    }
    migrated = called("bash", "call_3", resulted({}, "a"))
    del migrated["time"]["ran"]
    content = (
        called("shell", "call_1", resulted({"command": "ls"}, "a\n", "b")),
        called("read", "call_2", aborted),
        migrated,
        called("read", "call_4", {"status": "streaming", "input": '{"pa'}),
        called("read", "call_5", {"status": "running", "input": {}, "metadata": {}}),
    )
    item = session2(1, asked(0, "Do it"), answered(1, *content))
    source = one(sqlite2_store(tmp_path / "opencode.db", item))
    first, second, third, fourth, fifth = drafts(source)[-1].parts
    assert (first.tool, first.call_id, first.input) == (
        "shell",
        "call_1",
        {"command": "ls"},
    )
    assert (first.text, first.status, first.time_started) == (
        "a\n\nb",
        "completed",
        T0 + 2,
    )
    assert (second.status, second.outcome, second.text) == ("error", "interrupted", "x")
    assert (third.time_started, third.time_ended) == (T0 + 1, T0 + 9)
    assert (fourth.status, fourth.input, fifth.status) == ("pending", '{"pa', "running")
    assert export_json(source, drafts(source)) == item


def test_messages_are_ordered_by_seq_regardless_of_their_times(
    tmp_path: Path,
) -> None:
    item = session2(
        1, {**asked(9, "First"), "seq": 4}, {**asked(1, "Second"), "seq": 7}
    )
    source = one(sqlite2_store(tmp_path / "opencode.db", item))
    assert [draft.parts[0].text for draft in drafts(source)] == ["First", "Second"]


def test_unfinished_messages_are_open_and_are_not_exported(tmp_path: Path) -> None:
    half = answered(1, {"type": "text", "text": ""})
    del half["time"]["completed"]
    shell = message("shell", 2, shellID="sh_1", command="ls", status="running")
    item = session2(1, asked(0, "Do it"), half, shell)
    source = one(sqlite2_store(tmp_path / "opencode.db", item))
    read_drafts = drafts(source)
    assert [draft.time_completed for draft in read_drafts] == [T0, None, None]
    assert read_drafts[2].parts[0].status == "running"
    assert [m["id"] for m in export_json(source, read_drafts)["messages"]] == [
        "msg_0000"
    ]


def test_a_title_that_cost_something_is_an_event_of_kind_usage_in_front(
    tmp_path: Path,
) -> None:
    item = session2(1, asked(0, "Do it"), answered(1))
    item["info"] |= {"cost": 0.75, "tokens": tokens(15, 2, 0, 7, 0)}
    path = sqlite2_store(tmp_path / "opencode.db", item)
    usage, *_ = drafts(one(path))
    assert (usage.role, usage.kind, usage.cost) == ("event", "usage", 0.5)
    assert usage.tokens is not None
    assert usage.tokens.columns() == (5, None, None, 7, None)
    assert export_json(one(path), drafts(one(path))) == item
    with Store.open(tmp_path / "own.db", durability="normal") as store:
        (done,) = store.ingest(one_store(path))
        assert store.session(done.id).cost == 0.75


def one_store(path: Path) -> Any:
    (foreign,) = find(path)
    return foreign.read()


def test_a_fork_of_version_2_knows_its_copies_by_seq(tmp_path: Path) -> None:
    original = session2(1, asked(0, "One"), answered(1), asked(2, "Two"), answered(3))
    fork = forked2(original, 2, 3, asked(9, "Else"), answered(10))
    again = forked2(fork, 3, 2)
    again["info"]["fork"]["boundary"] = {"type": "before", "messageID": "msg_02f_2"}
    path = sqlite2_store(tmp_path / "opencode.db", again, fork, original)
    sources, problems = read(path)
    assert not problems
    assert list(sources) == ["ses_0001", "ses_0002", "ses_0003"]
    assert [sources[name].relation for name in sources] == [None, "fork", "fork"]
    assert [sources[name].parent_message for name in sources] == [
        None,
        "msg_0002",
        "msg_02f_1",
    ]
    copies = [m for m in sources["ses_0003"].messages if isinstance(m, SourceMessage)]
    assert [m.usage_id for m in copies] == ["msg_0000", "msg_0001"]
    with Store.open(tmp_path / "own.db", durability="normal") as store:
        ids = {done.source_id: done.id for done in store.ingest(one_store(path))}
        costs = {name: store.session(ids[name]).cost for name in ids}
        assert costs == {"ses_0001": 0.5, "ses_0002": 0.25, "ses_0003": None}


def test_a_fork_whose_original_lost_the_boundary_knows_its_copies_by_their_ids(
    tmp_path: Path,
) -> None:
    original = session2(1, asked(0, "One"), answered(1), asked(2, "Two"))
    fork = forked2(original, 2, 3, asked(3, "Else"))
    original["messages"].pop()
    sources, _ = read(sqlite2_store(tmp_path / "opencode.db", original, fork))
    copied = [
        m.usage_id for m in sources["ses_0002"].messages if isinstance(m, SourceMessage)
    ]
    assert copied == ["msg_0000", "msg_0001", "msg_02f_2", "msg_0003"]


def test_a_fork_that_version_1_made_is_recognised_in_the_tables_of_2(
    tmp_path: Path,
) -> None:
    original = session2(1, asked(0, "One"), answered(1), asked(2, "Two"))
    copy = json.loads(json.dumps(original["messages"][:2]))
    for number, record in enumerate(copy):
        record["id"] = f"msg_c{number}"
    copy[1]["time"]["completed"] += 1000
    fork = session2(2, *copy, asked(9, "Else"))
    sources, _ = read(sqlite2_store(tmp_path / "opencode.db", original, fork))
    assert sources["ses_0002"].relation == "fork"
    assert sources["ses_0002"].parent_message == "msg_0001"


def test_an_export_imported_under_new_ids_is_a_copy_that_counts_nothing_again(
    tmp_path: Path,
) -> None:
    title = {"cost": 0.375, "tokens": tokens(12, 3, 0, 0, 0)}
    original = session2(1, asked(0, "One"), answered(1), **title)
    original["info"]["id"] = "ses_z"  # stored first, though its id sorts last
    copy = json.loads(json.dumps(original))
    copy["info"]["id"] = "ses_a"
    copy["info"]["time"] |= {"updated": T0 + 9000, "archived": T0 + 9000}
    for number, record in enumerate(copy["messages"]):
        record["id"] = f"msg_c{number}"
    continued = json.loads(json.dumps(copy))
    continued["messages"].append(answered(7))
    continued["info"] |= {"cost": 0.625, "tokens": tokens(22, 5, 0, 0, 0)}
    for imported, own, total in [(copy, None, 0.375), (continued, 0.25, 0.625)]:
        folder = tmp_path / str(own)
        folder.mkdir()
        path = sqlite2_store(folder / "opencode.db", original, imported)
        sources, problems = read(path)
        assert not problems
        assert sources["ses_z"].relation is None
        assert sources["ses_a"].parent_source_id == "ses_z"
        with Store.open(folder / "own.db", durability="normal") as store:
            ids = {done.source_id: done.id for done in store.ingest(one_store(path))}
            costs = {name: store.session(ids[name]).cost for name in ids}
            assert costs == {"ses_z": 0.375, "ses_a": own}
            rows = store.usage(archived=True)
            assert sum(row.cost or 0 for row in rows) == total


def test_a_subagent_of_version_2_knows_the_call_that_started_it(tmp_path: Path) -> None:
    state = resulted({"prompt": "Count"}, "3", sessionID="ses_0002")
    parent = session2(
        1, asked(0, "Ask"), answered(1, called("subagent", "call_1", state))
    )
    child = session2(2, asked(2, "Count"), parentID="ses_0001")
    sources, _ = read(sqlite2_store(tmp_path / "opencode.db", child, parent))
    assert list(sources) == ["ses_0001", "ses_0002"]
    source = sources["ses_0002"]
    assert (source.relation, source.parent_message, source.call_id) == (
        "subagent", "msg_0001", "call_1",
    )  # fmt: skip


def test_waiting_messages_and_instructions_are_kept_in_the_data(tmp_path: Path) -> None:
    path = sqlite2_store(tmp_path / "opencode.db", session2(1, asked(0, "Do it")))
    with closing(sqlite3.connect(path)) as db, db:
        insert(db, "session_inbox", {
            "id": "msg_9", "session_id": "ses_0001", "type": "user", "payload": {"text": "Later"},
            "delivery": "queue", "enqueued_seq": 5, "time_created": T0,
        })  # fmt: skip
        values = {"core/date": "aa", "core/long": "bb"}
        insert(db, "instruction_state", {
            "session_id": "ses_0001", "epoch_start": 0, "through_seq": 0,
            "initial_values": values, "current_values": values,
        })  # fmt: skip
        insert(db, "instruction_blob", {"hash": "aa", "value": '"Friday"'})
        insert(db, "instruction_blob", {"hash": "bb", "value": "x" * 5000})
    source = one(path)
    assert source.data["inbox"][0]["payload"] == '{"text": "Later"}'
    assert source.data["instructions"]["instruction_blob"] == {"aa": '"Friday"'}
    assert "inbox" not in export_json(source, [])["info"]


@pytest.mark.parametrize(("start", "place"), [(-1, 0), (1, 2), (2, None)])
def test_instructions_are_sources_of_the_first_prompt_of_their_epoch(
    tmp_path: Path, start: int, place: int | None
) -> None:
    rules = [{"path": f"/home/ann/{name}", "content": "x" * 2000} for name in "ab"]
    values = {
        "core/instructions": rules, "core/date": "Friday", "core/odd": [1, {"path": "c"}],
    }  # fmt: skip
    hashes = {
        **{key: f"h-{key}" for key in values},
        "core/gone": "h",
        "core/hostile": [7],
    }
    item = session2(1, *(asked(n, "Go on") for n in range(3)))
    path = sqlite2_store(tmp_path / "opencode.db", item)
    with closing(sqlite3.connect(path)) as db, db:
        insert(db, "instruction_state", {
            "session_id": "ses_0001", "epoch_start": start, "through_seq": start,
            "initial_values": hashes, "current_values": {},
        })  # fmt: skip
        for key, value in values.items():
            row = {"hash": f"h-{key}", "value": json.dumps(value)}
            insert(db, "instruction_blob", row)

    source = one(path)
    sources = [[p for p in d.parts if p.type == "source"] for d in drafts(source)]
    assert [n for n, parts in enumerate(sources) if parts] == [place][place is None :]
    assert export_json(source, drafts(source)) == item
    if place is None:
        return

    assert [(p.title, p.text) for p in sources[place]] == [
        *((rule["path"], rule["content"]) for rule in rules),
        ("core/date", "Friday"), ("core/odd", '[1,{"path":"c"}]'), ("core/gone", None),
    ]  # fmt: skip
    assert sources[place][0].input == {
        "kind": "core/instructions", "hash": "h-core/instructions", "path": "/home/ann/a",
    }  # fmt: skip
    assert set(sources[place][-1].input) == {"kind", "hash", "error"}


def test_the_complete_output_of_a_cut_command_is_imported(tmp_path: Path) -> None:
    file = tmp_path / "shell" / PROJECT / "sh_1.out"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"everything")
    saved = f"part\n[full output saved to /elsewhere/shell/{PROJECT}/sh_1.out]"
    output = {"output": "x", "truncated": True}
    shell = message(
        "shell", 2, shellID="sh_1", command="ls", status="exited", output=output
    )
    outside = "[full output saved to /etc/shell/../passwd]"
    item = session2(
        1,
        asked(0, "Do it"),
        answered(1, called("shell", "call_1", resulted({}, saved, truncated=True)),
                 called("shell", "call_2", resulted({}, saved, truncated=False)),
                 called("shell", "call_3", resulted({}, outside, truncated=True))),
        shell,
    )  # fmt: skip
    source = one(sqlite2_store(tmp_path / "opencode.db", item))
    outputs = [p.data.get("output_file") for d in drafts(source) for p in d.parts]
    wanted = {"name": f"shell/{PROJECT}/sh_1.out", "content": b"everything"}
    assert outputs == [None, wanted, None, None, wanted]
    assert export_json(source, drafts(source)) == item


def test_a_file_of_both_generations_is_read_newer_first(tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    stale = session(1, user(0, "Do it"), assistant(1, text("Old")))
    late = session(2, user(5, "Later"), assistant(6, text("Done")), parentID="ses_0001")
    sqlite_store(path, stale, late)
    sqlite2_store(
        path,
        session2(1, asked(0, "Do it"), answered(1, {"type": "text", "text": "New"})),
    )
    sources, problems = read(path)
    assert not problems
    assert list(sources) == ["ses_0001", "ses_0002"]
    assert drafts(sources["ses_0001"])[1].parts[0].text == "New"
    assert sources["ses_0002"].parent_source_id == "ses_0001"
    assert drafts(sources["ses_0002"])[1].turn_id == "msg_0005"


def test_a_session_is_read_from_a_log_that_was_never_written_back(
    tmp_path: Path,
) -> None:
    path = sqlite2_store(tmp_path / "opencode.db", session2(1, asked(0, "Do it")))
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("PRAGMA journal_mode = WAL")
        insert(db, "session_message", message_row("ses_0001", 5, asked(1, "More")))
        db.commit()
        assert [draft.parts[0].text for draft in drafts(one(path))] == ["Do it", "More"]


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (
            "UPDATE session_message SET data = '{' WHERE seq = 1",
            "message 'msg_0001' is not JSON",
        ),
        (
            "UPDATE session_message SET data = '[]' WHERE seq = 1",
            "is not a JSON object",
        ),
        ("UPDATE session_message SET type = '' WHERE seq = 1", "has no usable id"),
        ("UPDATE session_message SET id = '' WHERE seq = 1", "has no usable id"),
    ],
)
def test_a_damaged_message_is_a_problem_and_the_rest_is_read(
    damage: str, why: str, tmp_path: Path
) -> None:
    item = session2(1, asked(0, "One"), asked(1, "Two"), asked(2, "Three"))
    path = sqlite2_store(tmp_path / "opencode.db", item)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(damage)
    source = one(path)
    assert [draft.id for draft in drafts(source)] == ["msg_0000", "msg_0002"]
    assert why in problems_in(source)[0]


def test_a_change_of_a_session_of_version_2_changes_its_digest(tmp_path: Path) -> None:
    path = sqlite2_store(
        tmp_path / "opencode.db", session2(1, asked(0, "One")), session2(2)
    )
    before = {name: source.digest for name, source in read(path)[0].items()}
    with closing(sqlite3.connect(path)) as db, db:
        insert(db, "session_message", message_row("ses_0001", 5, asked(1, "More")))
    after = {name: source.digest for name, source in read(path)[0].items()}
    assert before["ses_0001"] != after["ses_0001"]
    assert before["ses_0002"] == after["ses_0002"]


def test_an_answer_that_was_open_is_completed_by_the_next_import(
    tmp_path: Path,
) -> None:
    half = answered(
        1, {"type": "text", "text": ""}, cost=0, tokens=tokens(0, 0, 0, 0, 0)
    )
    del half["time"]["completed"]
    path = sqlite2_store(tmp_path / "opencode.db", session2(1, asked(0, "One"), half))
    with Store.open(tmp_path / "own.db", durability="normal") as store:
        (done,) = store.ingest(one_store(path))
        finished = answered(1, {"type": "text", "text": "Done"})
        row = message_row("ses_0001", 1, finished)
        with closing(sqlite3.connect(path)) as db, db:
            db.execute("DELETE FROM session_message WHERE seq = 1")
            insert(db, "session_message", {**row, "time_updated": T0 + 99})
            db.execute("UPDATE session_v2 SET cost = 0.5")
        (again,) = store.ingest(one_store(path))
        assert (again.outcome, again.id) == ("updated", done.id)
        usage, prompt, answer = store.messages(done.id)
        assert (usage.kind, prompt.role, answer.text) == ("usage", "user", "Done")
        assert store.session(done.id).cost == 0.5


def test_an_event_of_version_2_says_what_a_model_is_sent(tmp_path: Path) -> None:
    with Store.open(tmp_path / "own.db", durability="normal") as store:
        (done,) = store.ingest(
            one_store(sqlite2_store(tmp_path / "o.db", everything2()))
        )
        context = store.context(done.id)
        assert context.summary == "Sum\n[User]: x"
        assert (context.mode, context.models["default"].model_id) == (
            "plan",
            MODEL["id"],
        )


RECORDS = [*everything2()["messages"], everything2()["info"]]


@pytest.mark.slow
@settings(max_examples=50)
@given(st.data())
def test_any_record_of_version_2_is_written_as_it_was(
    data: st.DataObject,
) -> None:
    record, given_record = changed_anywhere(
        data, RECORDS, keep=("id", "type", "created", "location")
    )
    name = record.pop("id")
    if "type" in record:
        draft = message_draft(record.pop("type"), record, name)
        again = message_json(draft)
    else:
        fields = session_fields(record, name)
        again = session_info(SourceSession("opencode", name, "", "", (), **fields))
    assert same(again, given_record)
