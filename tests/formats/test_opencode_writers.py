"""Sessions of all kinds written as OpenCode would, and what each generation cannot hold."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from opencode2_store import answered, asked, called, everything2, resulted, session2, sqlite2_store
from opencode_reading import drafts, read
from opencode_store import (
    PROJECT,
    T0,
    assistant,
    everything,
    session,
    sqlite_store,
    tree_store,
    user,
)
from opencode_store import text as text_1
from opencode_store import tool as tool_1

import sessiondb as sdb
from sessiondb import Store
from sessiondb.errors import InvalidInputError
from sessiondb.formats import WRITERS, find, writer
from sessiondb.formats.opencode.names import is_native, minted
from sessiondb.model import Document, Export, Loss, MessageDraft


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "own.db", durability="normal") as opened:
        yield opened


def written(form: str, *exports: Export) -> tuple[list[dict[str, Any]], list[Loss]]:
    found = list(writer(form).write(exports, detail="full"))
    documents = [json.loads("".join(d.chunks)) for d in found if isinstance(d, Document)]
    return documents, [loss for loss in found if isinstance(loss, Loss)]


def one_written(form: str, export: Export) -> tuple[dict[str, Any], set[str]]:
    (document,), losses = written(form, export)
    return document, {loss.why for loss in losses}


def brought_in(store: Store, path: Path) -> dict[str, str]:
    return {
        done.source_id: done.id  # type: ignore[union-attr]
        for found in find(path)
        for done in store.ingest(found.read())
    }


def talk(store: Store) -> sdb.SessionHandle:
    """A session that no OpenCode has seen."""
    usage: dict[str, Any] = {"provider": "acme", "model": "large", "cost": 0.25}
    handle = store.create_session(title="Mend", directory="/tmp", agent="plan")
    store.append(handle, sdb.system("Be brief."))
    store.append(handle, sdb.user("Mend it", sdb.file(content=b"\0\1", mime="image/png")))
    parts = (
        sdb.reasoning("Hm"),
        sdb.text("Reading."),
        sdb.tool("read", {"path": "a"}, call_id="call_1", output="x\0"),
        sdb.tool("edit", ["a"], call_id="call_2", error="No such file"),
        sdb.tool("rm", {}, call_id="call_3", outcome="denied"),
        sdb.part("hologram", depth=3),
    )
    store.append(handle, sdb.assistant(*parts), finish="tool-calls", **usage)
    store.append(handle, sdb.event("custom_message", sdb.text("It changed.")))
    store.append(handle, sdb.event("compaction", sdb.text("A summary.")))
    store.append(handle, sdb.user("And?"))
    store.append(handle, sdb.assistant("Done."), finish="stop", **usage)
    store.append(handle, sdb.assistant("Ha"), finish="cancelled", **usage)
    return handle


def test_every_writer_of_opencode_is_known_by_its_name() -> None:
    assert {"opencode", "opencode2", "opencode-tree"} <= set(WRITERS)
    with pytest.raises(InvalidInputError):
        writer("opencode3")


def test_a_session_goes_back_in_the_generation_it_came_from(store: Store, tmp_path: Path) -> None:
    first, second = everything(), everything2()
    ids = brought_in(store, sqlite_store(tmp_path / "a" / "opencode.db", first, version="1.2"))
    assert one_written("opencode", store.export(ids["ses_0001"]))[0] == first
    store.delete(ids["ses_0001"])
    with Store.open(tmp_path / "other.db", durability="normal") as other:
        ids = brought_in(other, sqlite2_store(tmp_path / "b" / "opencode.db", second))
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
    assert [p["type"] for p in answer["parts"]] == ["reasoning", "text", "tool", "tool", "tool"]
    done, failed, denied = (p["state"] for p in answer["parts"][2:])
    assert (done["status"], done["output"], done["input"]) == ("completed", "x\0", {"path": "a"})
    assert (failed["status"], failed["error"]) == ("error", "No such file")
    assert (failed["input"], denied["status"]) == ({"value": ["a"]}, "error")
    assert asked_for["parts"][0]["type"] == "compaction"
    assert (summary["info"]["summary"], summary["parts"][0]["text"]) == (True, "A summary.")
    assert cut["info"]["error"]["name"] == "MessageAbortedError"
    assert losses == {
        "role system: it became a synthetic prompt", "role event: it became a synthetic prompt",
        "part hologram", "that the input of call call_2 is no object",
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
    assert prompt["files"][0] | {"source": 0} == {"data": "AAE=", "mime": "image/png", "source": 0}
    assert [piece["type"] for piece in answer["content"]] == [
        "reasoning", "text", "tool", "tool", "tool",
    ]  # fmt: skip
    done, _, denied = (piece["state"] for piece in answer["content"][2:])
    assert done["content"] == [{"type": "text", "text": "x\0"}]
    assert denied["error"]["type"] == "permission.rejected"
    assert (summary["summary"], summary["recent"]) == ("A summary.", "")
    assert (cut["finish"], cut["error"]["type"]) == ("error", "aborted")
    assert losses == {"part hologram", "that the input of call call_2 is no object"}


def test_what_is_open_is_no_answer_of_version_2(store: Store) -> None:
    handle = store.create_session(title="Open")
    store.append(handle, sdb.user("Go"))
    store.append(handle, sdb.assistant(sdb.tool("ls", {}, call_id="call_1")), finish="stop")
    store.append(handle, sdb.assistant("Half"), open=True)
    document, losses = one_written("opencode2", store.export(handle.id))
    assert document["messages"][1]["content"][0]["state"]["error"]["type"] == "tool.interrupted"
    assert len(document["messages"]) == 2
    assert losses == {
        "that call call_1 is open: it is written as interrupted", "a message that never ended",
    }  # fmt: skip


def test_results_that_say_what_their_call_says_are_no_loss(store: Store) -> None:
    handle = store.create_session(title="Results")
    store.append(handle, sdb.user("Go"))
    calls = [sdb.tool("ls", {}, call_id=name) for name in ("call_1", "call_2")]
    store.append(handle, sdb.assistant(*calls))
    store.append(handle, MessageDraft("tool", (sdb.tool_result("call_1", "a"),)))
    store.append(handle, MessageDraft("tool", (sdb.tool_result("call_9", "b"),)))
    for form in ("opencode", "opencode2"):
        _, losses = written(form, store.export(handle.id))
        assert [loss.why for loss in losses if "result" in loss.why] == ["a result of call call_9"]
        assert all(loss.message_id for loss in losses if "result" in loss.why)


def test_times_that_step_back_do_not_change_the_order_in_version_1(store: Store) -> None:
    handle = store.create_session(title="Clocks")
    for number in (3, 1, 2):
        store.append(handle, sdb.user(str(number)), time=T0 + number)
    document, losses = one_written("opencode", store.export(handle.id))
    places = [(e["info"]["time"]["created"], e["info"]["id"]) for e in document["messages"]]
    assert places == sorted(places)
    assert [e["parts"][0]["text"] for e in document["messages"]] == ["3", "1", "2"]
    assert losses == {"its time, moved so that the order stays"}


def ids_in(document: dict[str, Any]) -> list[str]:
    found = []
    for entry in document["messages"]:
        found.append(entry.get("info", entry)["id"])
        found += [part["id"] for part in entry.get("parts", ())]
    return found


@pytest.mark.parametrize("form", ["opencode", "opencode2"])
def test_a_fork_of_ours_shares_no_id_with_its_original(form: str, store: Store) -> None:
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


def test_a_fork_of_ours_of_a_session_of_version_1_keeps_its_records(
    store: Store, tmp_path: Path
) -> None:
    answer = assistant(1, text_1("Two"), {"type": "step-finish", "reason": "stop"})
    item = session(1, user(0, "One"), answer)
    ids = brought_in(store, sqlite_store(tmp_path / "opencode.db", item))
    fork = store.fork(ids["ses_0001"])
    store.append(fork, sdb.user("Else"))
    document, _ = one_written("opencode", store.export(fork.id))
    prompt, copy, own = document["messages"]
    assert not set(ids_in(document)) & set(ids_in(item))
    assert copy["info"]["parentID"] == prompt["info"]["id"]
    given = {k: v for k, v in answer["info"].items() if k not in ("id", "sessionID", "parentID")}
    assert {key: copy["info"][key] for key in given} == given
    assert [part["type"] for part in copy["parts"]] == ["text", "step-finish"]
    assert {part["messageID"] for part in copy["parts"]} == {copy["info"]["id"]}
    assert own["parts"][0]["text"] == "Else"


def test_a_session_that_went_on_here_is_written_as_one(store: Store, tmp_path: Path) -> None:
    first = sqlite_store(tmp_path / "a" / "opencode.db", session(1, user(0, "One")))
    second = sqlite2_store(tmp_path / "b" / "opencode.db", session2(2, asked(0, "One")))
    for path, name in ((first, "ses_0001"), (second, "ses_0002")):
        own = brought_in(store, path)[name]
        store.append(own, sdb.assistant("Two"), finish="stop", provider="acme", model="large")
        document, _ = one_written("opencode", store.export(own))
        assert document["info"]["id"] == name
        mine = document["messages"][-1]
        assert is_native(mine.get("info", mine)["id"])
        assert "Two" in json.dumps(mine)


def test_subagents_name_the_parent_that_was_written(store: Store, tmp_path: Path) -> None:
    parent = brought_in(store, sqlite_store(tmp_path / "opencode.db", session(1, user(0, "One"))))
    child = store.create_session(parent=parent["ses_0001"], relation="subagent", title="Helper")
    store.append(child, sdb.user("Count"))
    grandchild = store.create_session(parent=child, relation="subagent", title="Deeper")
    store.append(grandchild, sdb.user("Count more"))
    for form in ("opencode", "opencode2"):
        documents, _ = written(form, store.export(child.id), store.export(grandchild.id))
        assert [document["info"]["parentID"] for document in documents] == ["ses_0001", child.id]


def test_other_programs_ids_become_ids_that_opencode_takes(store: Store) -> None:
    handle = store.create_session(title="Foreign")
    store.append(handle, sdb.user("One", id="0f8c-1"))
    store.append(handle, sdb.assistant("Two", id="msg_01AbC"))
    document, _ = one_written("opencode", store.export(handle.id))
    names = [entry["info"]["id"] for entry in document["messages"]]
    assert all(name.startswith("msg_") and len(name) == 30 for name in names)
    assert names == sorted(names)
    assert document["messages"][1]["info"]["parentID"] == names[0]
    assert minted("msg_", T0, 1, "a") == minted("msg_", T0, 1, "a") != minted("msg_", T0, 1, "b")


def test_labels_todos_and_diffs_are_told_as_lost(store: Store) -> None:
    handle = store.create_session(title="Beside")
    message = store.append(handle, sdb.user("One"))
    store.label(handle, message, "start")
    store.set_todos(handle, [sdb.Todo("Ship")])
    for form in ("opencode", "opencode2"):
        _, losses = one_written(form, store.export(handle.id))
        assert losses == {"label start", "its todo list"}


# -- from one generation to the other ------------------------------------------


def test_a_session_of_version_1_becomes_what_the_upgrade_makes_of_it(
    store: Store, tmp_path: Path
) -> None:
    attached = {"type": "file", "mime": "image/png", "url": "data:image/png;base64,AAE="}
    prompt = user(0, "Do it")
    prompt["parts"] += [
        {**attached, "id": "prt_a"},
        {"id": "prt_b", "type": "text", "text": "Put in", "synthetic": True},
    ]
    cleared = {"start": T0, "end": T0 + 1, "compacted": T0 + 2}
    state = {"status": "completed", "input": {}, "output": "x", "title": "", "metadata": {"a": 1}}
    answer = assistant(
        1,
        {"type": "step-start", "snapshot": "aa"},
        tool_1("read", "call_1", {**state, "time": {"start": T0, "end": T0 + 1}}),
        tool_1("read", "call_2", {**state, "time": cleared}),
        {"type": "patch", "hash": "aa", "files": ["a", "b", "a"]},
        {"type": "step-finish", "reason": "stop", "snapshot": "bb"},
        error={"name": "APIError", "data": {"message": "No", "isRetryable": False}},
    )
    compaction = user(2, "")
    compaction["parts"] = [
        {"id": "prt_c", "type": "compaction", "auto": False, "tail_start_id": "msg_0000"}
    ]
    summary = assistant(3, text_1("Sum"), summary=True)
    rules = [{"permission": "edit", "pattern": "*", "action": "ask"}]
    item = session(1, prompt, answer, compaction, summary, permission=rules)
    for message in item["messages"]:
        for part in message["parts"]:
            part.update(sessionID="ses_0001", messageID=message["info"]["id"])
    ids = brought_in(store, sqlite_store(tmp_path / "opencode.db", item))
    document, losses = one_written("opencode2", store.export(ids["ses_0001"]))
    first, note, second, third = document["messages"]
    assert (first["text"], first["files"][0]["data"]) == ("Do it", "AAE=")
    assert (note["type"], note["text"]) == ("synthetic", "Put in")
    assert second["snapshot"] == {"start": "aa", "end": "bb", "files": ["a", "b"]}
    assert second["error"] == {"type": "provider.error", "message": "No"}
    assert second["content"][0]["state"]["metadata"] == {"a": 1}
    assert second["content"][1]["state"]["content"][0]["text"].startswith("[Old tool result")
    assert (third["id"], third["type"], third["summary"]) == ("msg_0002", "compaction", "Sum")
    assert (third["reason"], third["recent"]) == ("manual", "[User]: Do it")
    assert document["info"]["permissions"] == [
        {"action": "edit", "resource": "*", "effect": "ask"}
    ]  # fmt: skip
    assert not losses


def test_the_upgrade_of_a_real_store_is_what_we_make_of_it(
    real_store: Callable[[str], Path], tmp_path: Path
) -> None:
    upgraded = real_store("opencode-upgraded-2.0.15") / "reports"
    with Store.open(tmp_path / "real.db", durability="normal") as store:
        brought_in(store, real_store("opencode-1.18.33") / "data")
        for path in sorted(upgraded.glob("export-*.out")):
            truth = json.loads(path.read_text(encoding="utf-8"))
            try:
                export = store.export(truth["info"]["id"])
            except sdb.NotFoundError:
                continue  # written after the upgrade
            document, _ = one_written("opencode2", export)
            made = [_without_times(record) for record in document["messages"]]
            assert made == [_without_times(record) for record in truth["messages"]][: len(made)]


def _without_times(record: dict[str, Any]) -> dict[str, Any]:
    # The upgrade takes the end from the row, and drops what a summary cost.
    lost = ("cost", "tokens", "model") if record["type"] == "compaction" else ()
    return {
        **{key: value for key, value in record.items() if key not in lost},
        "time": {"created": record["time"]["created"]},
    }


def test_a_session_of_version_2_becomes_a_tree_of_version_1(store: Store, tmp_path: Path) -> None:
    state = resulted({"path": "a"}, "x", {"type": "file", "uri": "data:,", "mime": "text/plain"})
    item = session2(
        1,
        asked(0, "Do it"),
        answered(
            1,
            called("read", "call_1", state),
            {"type": "text", "text": "Done"},
            snapshot={"start": "aa", "end": "bb", "files": ["a"]},
        ),
        permissions=[{"action": "edit", "resource": "*", "effect": "ask"}],
    )
    ids = brought_in(store, sqlite2_store(tmp_path / "opencode.db", item))
    into_folder(tmp_path / "out", store.export(ids["ses_0001"]))
    found, problems = read(tmp_path / "out")
    assert not problems
    source = found["ses_0001"]
    prompt, answer = drafts(source)
    assert source.permission == [{"permission": "edit", "pattern": "*", "action": "ask"}]
    assert prompt.model_id == "large"
    assert [part.type for part in answer.parts] == [
        "step-start", "tool", "text", "step-finish", "patch",
    ]  # fmt: skip
    assert answer.parts[1].data["state"]["attachments"][0]["mime"] == "text/plain"
    assert (answer.turn_id, answer.cost) == ("msg_0000", 0.25)


# -- the tree --------------------------------------------------------------------


def into_folder(folder: Path, *exports: Export) -> list[Loss]:
    losses = []
    for item in writer("opencode-tree").write(exports, detail="full"):
        if isinstance(item, Loss):
            losses.append(item)
            continue
        path = folder / item.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(item.chunks), encoding="utf-8")
    return losses


def test_a_tree_is_written_as_it_was_read(store: Store, tmp_path: Path) -> None:
    item = everything()
    item["todo"] = [{"content": "Ship", "status": "pending", "priority": "high", "id": "1"}]
    item["diff"] = [{"file": "a", "before": "", "after": "x", "additions": 1, "deletions": 0}]
    item["share"] = {"id": "1", "secret": "s3cret", "url": "https://opncd.ai/s/1"}
    root = tree_store(tmp_path / "data", item)
    ids = brought_in(store, root)
    losses = into_folder(tmp_path / "out", store.export(ids["ses_0001"]))
    assert not losses
    project = Path("project", f"{PROJECT}.json")
    assert contents(tmp_path / "out" / "storage", project) == contents(root, project)


def contents(root: Path, *without: Path) -> dict[str, Any]:
    files = (path for path in root.rglob("*.json") if path.relative_to(root) not in without)
    return {str(p.relative_to(root)): json.loads(p.read_text(encoding="utf-8")) for p in files}


def test_a_real_tree_is_written_as_it_was_read(
    real_store: Callable[[str], Path], tmp_path: Path
) -> None:
    data = real_store("opencode-1.1.65") / "data"
    with Store.open(tmp_path / "real.db", durability="normal") as store:
        ids = brought_in(store, data)
        into_folder(tmp_path / "out", *(store.export(name) for name in ids.values()))
    (root,) = data.rglob("storage")
    made, truth = contents(tmp_path / "out" / "storage"), contents(root)
    known = ("session/", "message/", "part/", "session_diff/")
    assert {k for k in truth if k.startswith(known)} == {k for k in made if k.startswith(known)}
    assert {k: v for k, v in made.items() if k.startswith(known)} == {
        k: v for k, v in truth.items() if k.startswith(known)
    }
    (output,) = data.rglob("tool-output/*")
    assert (tmp_path / "out" / "tool-output" / output.name).read_bytes() == output.read_bytes()


def test_a_session_of_our_own_is_read_again_from_the_tree_it_was_written_to(
    store: Store, tmp_path: Path
) -> None:
    handle = talk(store)
    into_folder(tmp_path / "out", store.export(handle.id))
    found, problems = read(tmp_path / "out")
    assert not problems
    source = found[handle.id]
    assert source.title == "Mend"
    assert sum(draft.cost or 0 for draft in drafts(source)) == 0.75
