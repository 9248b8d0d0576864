"""Sessions of all kinds written as OpenCode would, and the losses of each generation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from opencode2_store import asked, everything2, session2, sqlite2_store
from opencode_store import T0, assistant, everything, session, sqlite_store, user
from opencode_store import text as text_1
from opencode_writing import import_store, into_folder, one_written, talk, written

import sessiondb as sdb
from sessiondb import Store
from sessiondb.errors import InvalidInputError
from sessiondb.formats import exporter, find, writable
from sessiondb.formats.kit.conversion import is_native
from sessiondb.formats.opencode.ids import mint_id
from sessiondb.model import MessageDraft


def test_every_writer_of_opencode_is_known_by_its_name() -> None:
    assert {"opencode", "opencode2"} <= set(writable())
    with pytest.raises(InvalidInputError):
        exporter("opencode3")


def test_a_session_goes_back_in_the_generation_it_came_from(
    store: Store, tmp_path: Path
) -> None:
    first, second = everything(), everything2()
    ids = import_store(
        store, sqlite_store(tmp_path / "a" / "opencode.db", first, version="1.2")
    )
    assert one_written("opencode", store.export(ids["ses_0001"]))[0] == first
    store.delete(ids["ses_0001"])
    with Store.open(tmp_path / "other.db", durability="normal") as other:
        ids = import_store(other, sqlite2_store(tmp_path / "b" / "opencode.db", second))
        assert one_written("opencode", other.export(ids["ses_0001"]))[0] == second
        assert one_written("opencode2", other.export(ids["ses_0001"]))[0] == second


def test_a_session_of_our_own_becomes_one_of_version_1(store: Store) -> None:
    handle = talk(store)
    document, losses = one_written("opencode", store.export(handle.id))
    info, entries = document["info"], document["messages"]
    assert (info["id"], info["title"], info["directory"]) == (handle.id, "Mend", "/tmp")
    assert {"slug", "projectID", "version", "time", "cost", "tokens"} <= info.keys()
    assert (info["cost"], info["agent"]) == (0.75, "plan")
    roles = [entry["info"]["role"] for entry in entries]
    assert roles == ["user", "user", "assistant", "user", "user", "assistant", "user",
                     "assistant", "assistant"]  # fmt: skip
    note, prompt, answer, _, asked_for, summary, *_, cut = entries
    assert note["parts"][0] | {"id": ""} == {
        "id": "", "messageID": note["info"]["id"], "sessionID": handle.id,
        "type": "text", "text": "Be brief.", "synthetic": True,
    }  # fmt: skip
    assert prompt["info"]["model"] == {"providerID": "acme", "modelID": "large"}
    assert prompt["parts"][1]["url"] == "data:image/png;base64,AAE="
    assert answer["info"]["parentID"] == prompt["info"]["id"]
    assert [p["type"] for p in answer["parts"]] == [
        "reasoning",
        "text",
        "tool",
        "tool",
        "tool",
    ]
    done, failed, denied = (p["state"] for p in answer["parts"][2:])
    assert (done["status"], done["output"], done["input"]) == (
        "completed",
        "x\0",
        {"path": "a"},
    )
    assert (failed["status"], failed["error"]) == ("error", "No such file")
    assert (failed["input"], denied["status"]) == ({"value": ["a"]}, "error")
    assert asked_for["parts"][0]["type"] == "compaction"
    assert (summary["info"]["summary"], summary["parts"][0]["text"]) == (
        True,
        "A summary.",
    )
    assert cut["info"]["error"]["name"] == "MessageAbortedError"
    assert losses == {
        "the role of 1 system message", "the role of 1 compaction",
        "the role of 1 event of kind custom_message", "the kind of 1 event of kind custom_message",
        "1 part of type hologram in answers", "the input of 1 call in answers",
        "the outcome of 1 call in answers",
        "that costs or counts are unknown: they are written as 0",
    }  # fmt: skip


def test_a_session_of_our_own_becomes_one_of_version_2(store: Store) -> None:
    handle = talk(store)
    document, losses = one_written("opencode2", store.export(handle.id))
    info, records = document["info"], document["messages"]
    assert info["location"] == {"directory": "/tmp"}
    assert (info["cost"], info["title"]) == (0.75, "Mend")
    assert [record["type"] for record in records] == [
        "system", "user", "assistant", "synthetic", "compaction", "user", "assistant", "assistant",
    ]  # fmt: skip
    _, prompt, answer, _, summary, *_, cut = records
    assert prompt["files"][0] | {"source": 0} == {
        "data": "AAE=",
        "mime": "image/png",
        "source": 0,
    }
    assert [piece["type"] for piece in answer["content"]] == [
        "reasoning", "text", "tool", "tool", "tool",
    ]  # fmt: skip
    done, _, denied = (piece["state"] for piece in answer["content"][2:])
    assert done["content"] == [{"type": "text", "text": "x\0"}]
    assert denied["error"]["type"] == "permission.rejected"
    assert (summary["summary"], summary["recent"]) == ("A summary.", "")
    assert (cut["finish"], cut["error"]["type"]) == ("error", "aborted")
    assert losses == {
        "1 part of type hologram in answers", "the input of 1 call in answers",
    }  # fmt: skip


def test_an_open_answer_is_not_written_for_version_2(store: Store) -> None:
    handle = store.create_session(title="Open")
    store.append(handle, sdb.user("Go"))
    store.append(
        handle, sdb.assistant(sdb.tool("ls", {}, call_id="call_1")), finish="stop"
    )
    store.append(handle, sdb.assistant("Half"), open=True)
    document, losses = one_written("opencode2", store.export(handle.id))
    assert (
        document["messages"][1]["content"][0]["state"]["error"]["type"]
        == "tool.interrupted"
    )
    assert len(document["messages"]) == 2
    assert losses == {
        "the status of 1 call in answers", "a message that never ended",
    }  # fmt: skip


def test_results_that_repeat_their_call_are_not_a_loss(store: Store) -> None:
    handle = store.create_session(title="Results")
    store.append(handle, sdb.user("Go"))
    calls = [sdb.tool("ls", {}, call_id=name) for name in ("call_1", "call_2")]
    store.append(handle, sdb.assistant(*calls))
    store.append(handle, MessageDraft("tool", (sdb.tool_result("call_1", "a"),)))
    store.append(handle, MessageDraft("tool", (sdb.tool_result("call_9", "b"),)))
    for form in ("opencode", "opencode2"):
        _, losses = written(form, store.export(handle.id))
        assert [loss.why for loss in losses if "result" in loss.why] == [
            "a result of call call_9"
        ]
        assert all(loss.message_id for loss in losses if "result" in loss.why)


def test_times_that_step_back_do_not_change_the_order_in_version_1(
    store: Store,
) -> None:
    handle = store.create_session(title="Clocks")
    for number in (3, 1, 2):
        store.append(handle, sdb.user(str(number)), time=T0 + number)
    document, losses = one_written("opencode", store.export(handle.id))
    places = [
        (e["info"]["time"]["created"], e["info"]["id"]) for e in document["messages"]
    ]
    assert places == sorted(places)
    assert [e["parts"][0]["text"] for e in document["messages"]] == ["3", "1", "2"]
    assert losses == {"its time, moved so that the order stays"}


def ids_in(document: dict[str, Any]) -> list[str]:
    ids = []
    for entry in document["messages"]:
        ids.append(entry.get("info", entry)["id"])
        ids += [part["id"] for part in entry.get("parts", ())]
    return ids


@pytest.mark.parametrize("form", ["opencode", "opencode2"])
def test_a_fork_made_here_shares_no_id_with_its_original(
    form: str, store: Store
) -> None:
    handle = talk(store)
    fork = store.fork(handle)
    store.append(fork, sdb.user("Another way"))
    exports = [store.export(handle.id), store.export(fork.id)]
    (original, copy), losses = written(form, *exports)
    assert not set(ids_in(original)) & set(ids_in(copy))
    assert len(set(ids_in(copy))) == len(ids_in(copy))
    own = store.messages(fork.id)[-1].id
    assert own in ids_in(copy)
    assert [loss.session_id for loss in losses if "fork" in loss.why] == [fork.id]
    again, _ = written(form, store.export(fork.id))
    assert again == [copy]


def test_a_fork_made_here_of_a_session_of_version_1_keeps_its_records(
    store: Store, tmp_path: Path
) -> None:
    answer = assistant(1, text_1("Two"), {"type": "step-finish", "reason": "stop"})
    item = session(1, user(0, "One"), answer)
    ids = import_store(store, sqlite_store(tmp_path / "opencode.db", item))
    fork = store.fork(ids["ses_0001"])
    store.append(fork, sdb.user("Else"))
    document, _ = one_written("opencode", store.export(fork.id))
    prompt, copy, own = document["messages"]
    assert not set(ids_in(document)) & set(ids_in(item))
    assert copy["info"]["parentID"] == prompt["info"]["id"]
    given = {
        k: v
        for k, v in answer["info"].items()
        if k not in ("id", "sessionID", "parentID")
    }
    assert {key: copy["info"][key] for key in given} == given
    assert [part["type"] for part in copy["parts"]] == ["text", "step-finish"]
    assert {part["messageID"] for part in copy["parts"]} == {copy["info"]["id"]}
    assert own["parts"][0]["text"] == "Else"


def test_a_session_continued_here_is_written_as_one_session(
    store: Store, tmp_path: Path
) -> None:
    first = sqlite_store(tmp_path / "a" / "opencode.db", session(1, user(0, "One")))
    second = sqlite2_store(tmp_path / "b" / "opencode.db", session2(2, asked(0, "One")))
    for path, name in ((first, "ses_0001"), (second, "ses_0002")):
        own = import_store(store, path)[name]
        store.append(
            own, sdb.assistant("Two"), finish="stop", provider="acme", model="large"
        )
        document, _ = one_written("opencode", store.export(own))
        assert document["info"]["id"] == name
        mine = document["messages"][-1]
        assert is_native(mine.get("info", mine)["id"])
        assert "Two" in json.dumps(mine)


def test_subagents_name_the_parent_that_was_written(
    store: Store, tmp_path: Path
) -> None:
    parent = import_store(
        store, sqlite_store(tmp_path / "opencode.db", session(1, user(0, "One")))
    )
    child = store.create_session(
        parent=parent["ses_0001"], relation="subagent", title="Helper"
    )
    store.append(child, sdb.user("Count"))
    grandchild = store.create_session(parent=child, relation="subagent", title="Deeper")
    store.append(grandchild, sdb.user("Count more"))
    for form in ("opencode", "opencode2"):
        documents, _ = written(
            form, store.export(child.id), store.export(grandchild.id)
        )
        assert [document["info"]["parentID"] for document in documents] == [
            "ses_0001",
            child.id,
        ]


def test_other_programs_ids_become_ids_that_opencode_takes(store: Store) -> None:
    handle = store.create_session(title="Foreign")
    store.append(handle, sdb.user("One", id="0f8c-1"))
    store.append(handle, sdb.assistant("Two", id="msg_01AbC"))
    document, _ = one_written("opencode", store.export(handle.id))
    names = [entry["info"]["id"] for entry in document["messages"]]
    assert all(name.startswith("msg_") and len(name) == 30 for name in names)
    assert names == sorted(names)
    assert document["messages"][1]["info"]["parentID"] == names[0]
    assert (
        mint_id("msg_", T0, 1, "a")
        == mint_id("msg_", T0, 1, "a")
        != mint_id("msg_", T0, 1, "b")
    )


def test_labels_todos_and_diffs_are_reported_as_lost(store: Store) -> None:
    handle = store.create_session(title="Beside")
    message = store.append(handle, sdb.user("One"))
    store.label(handle, message, "start")
    store.set_todos(handle, [sdb.Todo("Ship")])
    for form in ("opencode", "opencode2"):
        _, losses = one_written(form, store.export(handle.id))
        assert losses == {"label start", "its todo list"}


def test_ends_of_turns_and_changes_of_model_are_kept_if_the_format_has_a_place_for_them(
    store: Store,
) -> None:
    handle = store.create_session(title="Ends")
    store.append(handle, sdb.user("Go"))
    calls = [sdb.tool("ls", {"path": name}, call_id=name) for name in "ab"]
    store.append(
        handle, sdb.assistant(*calls), finish="tool-calls", provider="acme", model="s"
    )
    for name in "ba":
        store.append(
            handle, MessageDraft("tool", (sdb.tool_result(name, f"in {name}"),))
        )
    store.append(handle, sdb.event("model_change"), provider="acme", model="large")
    store.append(handle, sdb.event("mode_change"), agent="plan")
    for kind in ("cancelled", "failed", "rules"):
        store.append(handle, sdb.event(kind))
    first, lost = one_written("opencode", store.export(handle.id))
    answer = first["messages"][1]
    assert [part["state"]["output"] for part in answer["parts"]] == ["in a", "in b"]
    kinds = ("model_change", "mode_change", "cancelled", "failed", "rules")
    assert {f"1 event of kind {kind}" for kind in kinds} < lost
    second, lost = one_written("opencode2", store.export(handle.id))
    _, answer, *events = second["messages"]
    results = [piece["state"]["content"][0]["text"] for piece in answer["content"]]
    assert results == ["in a", "in b"]
    assert [event["type"] for event in events] == [
        "model-switched", "agent-switched", "idle", "idle",
    ]  # fmt: skip
    assert lost == {"1 event of kind rules"}


@pytest.mark.parametrize("form", ["opencode", "opencode2"])
def test_odd_details_of_a_part_do_not_stop_the_export(form: str, store: Store) -> None:
    handle = store.create_session(title="Odd")
    store.append(handle, sdb.user("Go"))
    odd = [
        sdb.part("patch", hash="a", files=None),
        sdb.PartDraft("step-finish", data={"cost": "much", "tokens": 7}),
        sdb.tool("ls", {}, call_id="c", output="x", state="gone"),
        sdb.tool(
            "ls",
            {},
            call_id="d",
            output="x",
            state={"content": ["y"], "metadata": b"z"},
        ),
        sdb.part("file", url=7, mime=None),
    ]
    store.append(handle, sdb.assistant(*odd), finish="stop")
    documents, _ = written(form, store.export(handle.id))
    assert "ls" in json.dumps(documents)


@pytest.mark.parametrize("form", ["opencode", "opencode2"])
@pytest.mark.parametrize("odd", [["stop"], {"a": 1}, 7])
def test_odd_fields_of_an_answer_or_event_do_not_stop_the_export(
    form: str, odd: Any, store: Store, tmp_path: Path
) -> None:
    answer = assistant(1, text_1("Hi"), finish=odd, cost=odd, tokens=odd)
    path = sqlite_store(tmp_path / "opencode.db", session(1, user(0, "Go"), answer))
    ids = import_store(store, path)
    handle = store.create_session(title="Odd")
    event = MessageDraft("event", id="e1", kind="custom", data={"type": odd})
    store.append(handle, event)
    for name in (ids["ses_0001"], handle.id):
        documents, _ = written(form, store.export(name))
        assert documents


def test_no_name_of_a_session_leads_out_of_the_folder_it_is_written_to(
    store: Store, tmp_path: Path
) -> None:
    path = sqlite_store(
        tmp_path / "opencode.db", session(1, user(0, "Hi"), id="..", projectID=".")
    )
    ids = import_store(store, path)
    for document in exporter("opencode").write(
        [store.export(ids[".."])], detail="full"
    ):
        steps = getattr(document, "name", "").split("/")
        assert not {".", ".."} & set(steps)


@pytest.mark.parametrize("form", ["opencode", "opencode2"])
def test_our_session_that_comes_back_is_extended_and_never_doubled(
    form: str, store: Store, tmp_path: Path
) -> None:
    handle = talk(store)
    store.append(handle, sdb.event("compaction", sdb.text("Another summary.")))
    before = store.messages(handle.id)
    into_folder(tmp_path / "out", store.export(handle.id), form=form)
    (foreign,) = find(tmp_path / "out")
    assert [item.outcome for item in store.ingest(foreign.read())] == ["unchanged"]
    there = tmp_path / "there.db"
    with Store.open(there, durability="normal") as other:  # where it is continued
        (name,) = import_store(other, tmp_path / "out").values()
        other.append(name, sdb.user("Back?"), time=T0 * 2)
        other.append(name, sdb.assistant("Back."), finish="stop", time=T0 * 2 + 1)
        into_folder(tmp_path / "out", other.export(name), form=form)
    for outcome in ("updated", "unchanged"):
        (done,) = store.ingest(foreign.read())
        assert (done.outcome, done.id) == (outcome, handle.id)
        after = store.messages(handle.id)
        assert [m.id for m in after[:-2]] == [m.id for m in before]
        assert [m.text for m in after[-2:]] == ["Back?", "Back."]
    assert len(store.sessions(project=sdb.ALL, subagents=True)) == 1


def test_an_import_that_shares_no_message_with_the_session_it_names_diverges(
    store: Store, tmp_path: Path
) -> None:
    handle = talk(store)
    path = sqlite_store(
        tmp_path / "opencode.db", session(1, user(0, "Other"), id=handle.id)
    )
    (foreign,) = find(path)
    (done,) = store.ingest(foreign.read())
    assert (done.outcome, done.id) == ("diverged", handle.id)
    assert store.session(handle.id).message_count == len(store.messages(handle.id))
