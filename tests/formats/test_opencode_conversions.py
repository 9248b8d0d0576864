"""Sessions of one generation of OpenCode written for the other."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from opencode_store import T0, assistant, session, sqlite_store, user
from opencode_store import text as text_1
from opencode_store import tool as tool_1
from opencode_writing import import_store, one_written

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
