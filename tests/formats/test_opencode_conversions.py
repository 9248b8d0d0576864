"""Sessions of one generation of OpenCode written for the other, and as the tree of 1.x."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from opencode2_store import answered, asked, called, resulted, session2, sqlite2_store
from opencode_reading import drafts, read
from opencode_store import (
    PROJECT,
    T0,
    assistant,
    done,
    everything,
    session,
    sqlite_store,
    tree_store,
    user,
)
from opencode_store import text as text_1
from opencode_store import tool as tool_1
from opencode_writing import import_store, into_folder, one_written, talk

import sessiondb as sdb
from sessiondb import Store


def test_a_session_of_version_1_becomes_what_the_upgrade_makes_of_it(
    store: Store, tmp_path: Path
) -> None:
    attached = {
        "type": "file",
        "mime": "image/png",
        "url": "data:image/png;base64,AAE=",
    }
    prompt = user(0, "Do it")
    prompt["parts"] += [
        {**attached, "id": "prt_a"},
        {"id": "prt_b", "type": "text", "text": "Put in", "synthetic": True},
    ]
    cleared = {"start": T0, "end": T0 + 1, "compacted": T0 + 2}
    state = {
        "status": "completed",
        "input": {},
        "output": "x",
        "title": "",
        "metadata": {"a": 1},
    }
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
        {
            "id": "prt_c",
            "type": "compaction",
            "auto": False,
            "tail_start_id": "msg_0000",
        }
    ]
    summary = assistant(3, text_1("Sum"), summary=True)
    rules = [{"permission": "edit", "pattern": "*", "action": "ask"}]
    item = session(1, prompt, answer, compaction, summary, permission=rules)
    for message in item["messages"]:
        for part in message["parts"]:
            part.update(sessionID="ses_0001", messageID=message["info"]["id"])
    ids = import_store(store, sqlite_store(tmp_path / "opencode.db", item))
    document, losses = one_written("opencode2", store.export(ids["ses_0001"]))
    first, note, second, third = document["messages"]
    assert (first["text"], first["files"][0]["data"]) == ("Do it", "AAE=")
    assert (note["type"], note["text"]) == ("synthetic", "Put in")
    assert second["snapshot"] == {"start": "aa", "end": "bb", "files": ["a", "b"]}
    assert second["error"] == {"type": "provider.error", "message": "No"}
    assert second["content"][0]["state"]["metadata"] == {"a": 1}
    assert second["content"][1]["state"]["content"][0]["text"].startswith(
        "[Old tool result"
    )
    assert (third["id"], third["type"], third["summary"]) == (
        "msg_0002",
        "compaction",
        "Sum",
    )
    assert (third["reason"], third["recent"]) == ("manual", "[User]: Do it")
    assert document["info"]["permissions"] == [
        {"action": "edit", "resource": "*", "effect": "ask"}
    ]  # fmt: skip
    # Of 1.x alone is how a prompt is to be answered, and what its records repeat.
    assert "the agent of 2 prompts" in losses
    assert not {why for why in losses if why.startswith("the cost")}


def test_the_upgrade_of_a_real_store_is_what_we_make_of_it(
    real_store: Callable[[str], Path], tmp_path: Path
) -> None:
    upgraded = real_store("opencode-upgraded-2.0.15") / "reports"
    with Store.open(tmp_path / "real.db", durability="normal") as store:
        import_store(store, real_store("opencode-1.18.33") / "data")
        for path in sorted(upgraded.glob("export-*.out")):
            truth = json.loads(path.read_text(encoding="utf-8"))
            try:
                export = store.export(truth["info"]["id"])
            except sdb.NotFoundError:
                continue  # written after the upgrade
            document, _ = one_written("opencode2", export)
            made = [_without_times(record) for record in document["messages"]]
            assert (
                made
                == [_without_times(record) for record in truth["messages"]][: len(made)]
            )


def _without_times(record: dict[str, Any]) -> dict[str, Any]:
    # The upgrade takes the end from the row, and drops what a summary cost.
    lost = ("cost", "tokens", "model") if record["type"] == "compaction" else ()
    return {
        **{key: value for key, value in record.items() if key not in lost},
        "time": {"created": record["time"]["created"]},
    }


def test_a_session_of_version_2_becomes_a_tree_of_version_1(
    store: Store, tmp_path: Path
) -> None:
    state = resulted(
        {"path": "a"}, "x", {"type": "file", "uri": "data:,", "mime": "text/plain"}
    )
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
    ids = import_store(store, sqlite2_store(tmp_path / "opencode.db", item))
    into_folder(tmp_path / "out", store.export(ids["ses_0001"]))
    found, problems = read(tmp_path / "out")
    assert not problems
    source = found["ses_0001"]
    prompt, answer = drafts(source)
    assert source.permission == [
        {"permission": "edit", "pattern": "*", "action": "ask"}
    ]
    assert prompt.model_id == "large"
    assert [part.type for part in answer.parts] == [
        "step-start", "tool", "text", "step-finish", "patch",
    ]  # fmt: skip
    assert answer.parts[1].data["state"]["attachments"][0]["mime"] == "text/plain"
    assert (answer.turn_id, answer.cost) == ("msg_0000", 0.25)


def test_a_tree_is_written_as_it_was_read(store: Store, tmp_path: Path) -> None:
    item = everything()
    item["todo"] = [
        {"content": "Ship", "status": "pending", "priority": "high", "id": "1"}
    ]
    item["diff"] = [
        {"file": "a", "before": "", "after": "x", "additions": 1, "deletions": 0}
    ]
    item["share"] = {"id": "1", "secret": "s3cret", "url": "https://opncd.ai/s/1"}
    root = tree_store(tmp_path / "data", item)
    ids = import_store(store, root)
    losses = into_folder(tmp_path / "out", store.export(ids["ses_0001"]))
    assert not losses
    project = Path("project", f"{PROJECT}.json")
    assert contents(tmp_path / "out" / "storage", project) == contents(root, project)


def test_diffs_that_were_set_here_are_those_of_the_tree(
    store: Store, tmp_path: Path
) -> None:
    item = session(1, user(0, "Hi"))
    item["diff"] = [
        {"file": "a", "additions": 1, "deletions": 0, "more": 2},
        {"file": "b"},
    ]
    (name,) = import_store(store, tree_store(tmp_path / "data", item)).values()
    store.set_diffs(
        name, [sdb.FileDiff("b", additions=3), sdb.FileDiff("c", patch="@@")]
    )
    into_folder(tmp_path / "out", store.export(name))
    file = tmp_path / "out" / "storage" / "session_diff" / "ses_0001.json"
    assert json.loads(file.read_text()) == [
        {"file": "b", "additions": 3}, {"file": "c", "patch": "@@"},
    ]  # fmt: skip


def contents(root: Path, *without: Path) -> dict[str, Any]:
    files = (
        path for path in root.rglob("*.json") if path.relative_to(root) not in without
    )
    return {
        str(p.relative_to(root)): json.loads(p.read_text(encoding="utf-8"))
        for p in files
    }


def test_a_real_tree_is_written_as_it_was_read(
    real_store: Callable[[str], Path], tmp_path: Path
) -> None:
    data = real_store("opencode-1.1.65") / "data"
    with Store.open(tmp_path / "real.db", durability="normal") as store:
        ids = import_store(store, data)
        into_folder(tmp_path / "out", *(store.export(name) for name in ids.values()))
    (root,) = data.rglob("storage")
    made, truth = contents(tmp_path / "out" / "storage"), contents(root)
    known = ("session/", "message/", "part/", "session_diff/")
    assert {k for k in truth if k.startswith(known)} == {
        k for k in made if k.startswith(known)
    }
    assert {k: v for k, v in made.items() if k.startswith(known)} == {
        k: v for k, v in truth.items() if k.startswith(known)
    }
    (output,) = data.rglob("tool-output/*")
    assert (
        tmp_path / "out" / "tool-output" / output.name
    ).read_bytes() == output.read_bytes()


def test_an_output_that_is_not_utf_8_is_written_to_the_byte(
    store: Store, tmp_path: Path
) -> None:
    outputs = tmp_path / "in" / "tool-output"
    outputs.mkdir(parents=True)
    (outputs / "tool_1").write_bytes(b"caf\xe9\r\n")
    state = done({}, "…", outputPath=str(outputs / "tool_1"))
    item = session(1, assistant(1, tool_1("bash", "call_1", state)))
    ids = import_store(store, sqlite_store(tmp_path / "in" / "opencode.db", item))
    exports = [store.export(name) for name in ids.values()]
    assert into_folder(tmp_path / "out", *exports) == []
    written = tmp_path / "out" / "tool-output" / "tool_1"
    assert written.read_bytes() == b"caf\xe9\r\n"


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
