"""The logs of pi, oh-my-pi and xcsh: their tree, their versions, and how they break."""

from __future__ import annotations

import codecs
import hashlib
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import samples_pi
from imported import taken, texts
from samples import new_store, read_into
from samples_pi import (
    PNG,
    T0,
    Record,
    answered,
    asked,
    call,
    entry,
    header,
    moment,
    result,
    said,
    words,
    write,
)

from sessiondb import (
    ALL,
    Context,
    Store,
    assistant,
    event,
    file,
    text,
    tool,
    tool_result,
    user,
)
from sessiondb.formats import exporter, find
from sessiondb.formats.kit.fields import without_keys
from sessiondb.formats.kit.naming import MARK
from sessiondb.model import (
    Document,
    FileDiff,
    Imported,
    Loss,
    Message,
    MessageDraft,
    ModelName,
    PartDraft,
    Problem,
    Session,
    SourceHistory,
)

HOME = Path("agent/sessions/--home-ada-tea--")


# -- the context that a program would send: the cases of its own tests ----------------

U1, A2, U3, A4 = asked(1, "1", None), answered(2, words("2")), asked(3, "3"), answered(4, words("4"))  # fmt: skip


#: A reference to a blob that is missing.
BLOB_OF_NONE = f"blob:sha256:{'0' * 64}"
#: The data of a compaction at the provider.
REMOTE = {"openaiRemoteCompaction": {"provider": "openai", "replacementHistory": []}}


def compaction(
    number: int, kept: int | None, summary: str = "S", **fields: Any
) -> Record:
    return entry(number, "compaction", summary=summary, firstKeptEntryId=f"{kept:08x}", tokensBefore=9, **fields)  # fmt: skip


COMPLEX = [
    U1, A2, U3, A4, compaction(5, 3), asked(6, "6"), answered(7, words("7")),
    asked(8, "8", 3), answered(9, words("9")),
    entry(10, "branch_summary", 3, fromId="00000003", summary="B"), asked(11, "11"),
]  # fmt: skip
CASES: dict[str, tuple[list[Record], int | None, list[str]]] = {
    "a prompt": ([U1], None, ["1"]),
    "a conversation": ([U1, A2, U3, A4], None, ["1", "2", "3", "4"]),
    "a change of the level": ([U1, entry(2, "thinking_level_change", thinkingLevel="high"), answered(3, words("3"))], None, ["1", "3"]),
    "a compaction": ([U1, A2, U3, A4, compaction(5, 3), asked(6, "6"), answered(7, words("7"))], None, ["3", "4", "6", "7"]),
    "a compaction that keeps all": ([U1, A2, compaction(3, 1), asked(4, "4")], None, ["1", "2", "4"]),
    "two compactions": ([U1, A2, compaction(3, 1, "S1"), asked(4, "4"), answered(5, words("5")), compaction(6, 4), asked(7, "7")], None, ["4", "5", "7"]),
    "a compaction that keeps more than the one before it": ([U1, A2, U3, compaction(4, 3, "S1"), asked(5, "5"), compaction(6, 2), asked(7, "7")], None, ["2", "3", "5", "7"]),
    "a compaction of what is not there": ([U1, A2, compaction(3, 99), asked(4, "4")], None, ["4"]),
    "a compaction at the provider": ([U1, A2, compaction(3, 1, preserveData=REMOTE), asked(4, "4")], None, ["4"]),
    "a compaction at a provider that kept nothing": ([U1, A2, compaction(3, 1, preserveData={"openaiRemoteCompaction": {}}), asked(4, "4")], None, ["1", "2", "4"]),
    "a compaction at a provider that kept no items": ([U1, A2, compaction(3, 1, preserveData={"openaiRemoteCompaction": {"provider": "openai", "replacementHistory": [1]}}), asked(4, "4")], None, ["1", "2", "4"]),
    "a compaction at the provider, and what came meanwhile": ([U1, A2, U3, A4, compaction(5, 3, preserveData=REMOTE, providerReplayThroughEntryId="00000002"), asked(6, "6")], None, ["3", "4", "6"]),
    "a compaction at the provider, of one of two branches": ([U1, A2, asked(3, "3", 2), asked(4, "4", 2), answered(5, words("5")), compaction(6, 2, preserveData=REMOTE, providerReplayThroughEntryId="00000002"), asked(7, "7")], None, ["4", "5", "7"]),
    "a compaction at the provider of all": ([U1, A2, compaction(3, 1, preserveData=REMOTE, providerReplayThroughEntryId="00000002"), asked(4, "4")], None, ["4"]),
    "a compaction at the provider of another path": ([U1, A2, asked(3, "3", 1), compaction(4, 1, preserveData=REMOTE, providerReplayThroughEntryId="00000002"), asked(5, "5")], None, ["5"]),
    "a compaction at the provider of what is not there": ([U1, A2, compaction(3, 1, preserveData=REMOTE, providerReplayThroughEntryId="77"), asked(4, "4")], None, ["4"]),
    "a compaction here of what a provider would replace": ([U1, A2, U3, compaction(4, 2, providerReplayThroughEntryId="00000002"), asked(5, "5")], None, ["2", "3", "5"]),
    "an answer that was left out later": ([U1, A2, entry(3, "context_edit", targetId="00000002", replacement=None), asked(4, "4")], None, ["1", "4"]),
    "before it was left out": ([U1, A2, entry(3, "context_edit", targetId="00000002", replacement=None), asked(4, "4")], 2, ["1", "2"]),
    "an answer that was edited twice": ([U1, A2, entry(3, "context_edit", targetId="00000002", replacement={"content": "x"}), entry(4, "context_edit", targetId="00000002", replacement={"content": [words("y")]})], None, ["1", "y"]),
    "an edit of what is not there": ([U1, A2, entry(3, "context_edit", targetId="77", replacement=None)], None, ["1", "2"]),
    "an edit that a compaction dropped": ([U1, A2, entry(3, "context_edit", targetId="00000001", replacement=None), compaction(4, 2), asked(5, "5")], None, ["2", "5"]),
    "an odd edit": ([U1, A2, entry(3, "context_edit", targetId=["00000002"], replacement=7)], None, ["1", "2"]),
    "a compaction that keeps no record": ([U1, A2, entry(3, "compaction", summary="S", tokensBefore=9), asked(4, "4")], None, ["4"]),
    "a compaction that keeps the last one of two records with one id": ([U1, {**asked(2, "2"), "id": U1["id"]}, asked(3, "3", 1), compaction(4, 1), asked(5, "5")], None, ["2", "3", "5"]),
    "a compaction after a clear": ([U1, A2, entry(3, "reset_boundary"), asked(4, "4"), compaction(5, 4), asked(6, "6")], None, ["4", "6"]),
    "a clear after a compaction": ([U1, A2, compaction(3, 1), asked(4, "4"), entry(5, "reset_boundary"), asked(6, "6")], None, ["6"]),
    "one branch": ([U1, A2, U3, asked(4, "4", 2)], 3, ["1", "2", "3"]),
    "the other branch": ([U1, A2, U3, asked(4, "4", 2)], 4, ["1", "2", "4"]),
    "a summary of a branch": ([U1, A2, U3, entry(4, "branch_summary", 2, fromId="00000002", summary="B"), asked(5, "5")], 5, ["1", "2", "B", "5"]),
    "a complex tree, compacted": (COMPLEX, 7, ["3", "4", "6", "7"]),
    "a complex tree, summarised": (COMPLEX, 11, ["1", "2", "3", "B", "11"]),
    "a leaf as it was left": ([U1, A2], None, ["1", "2"]),
    "an orphan": ([U1, asked(2, "2", 77)], None, ["2"]),
    "an entry of an extension": ([U1, entry(2, "custom", customType="x", data=1), answered(3, words("3"))], None, ["1", "3"]),
    "a label": ([U1, entry(2, "label", targetId="00000001", label="here")], None, ["1"]),
    "a message of an extension": ([U1, entry(2, "custom_message", customType="x", content="C", display=False)], None, ["1", "C"]),
    "a message of an older extension": ([U1, said(2, "hookMessage", customType="x", content="C", display=True)], None, ["1", "C"]),
    "a clear": ([U1, A2, entry(3, "reset_boundary"), asked(4, "4")], None, ["4"]),
    "a type that is not known": ([U1, entry(2, "lane_move", lane="x"), answered(3, words("3"))], None, ["1", "3"]),
    "a moved leaf": ([U1, A2, U3, entry(4, "leaf", targetId="00000002")], None, ["1", "2"]),
    "a leaf that moved, and was continued": ([U1, A2, U3, entry(4, "leaf", targetId="00000002"), asked(5, "5", 2)], None, ["1", "2", "5"]),
    "a leaf before the first record": ([U1, A2, entry(3, "leaf", targetId=None)], None, []),
    "a leaf that is not there": ([U1, A2, entry(3, "leaf", targetId="77")], None, ["1", "2"]),
    "a leaf that is itself": ([U1, A2, entry(3, "leaf", targetId="00000003")], None, ["1", "2"]),
    "nothing": ([], None, []),
    "a summary of a branch without a text": ([U1, entry(2, "branch_summary", fromId="root", summary=""), asked(3, "3")], None, ["1", "3"]),
    "a message of an extension in blocks": ([U1, entry(2, "custom_message", customType="x", content=[words("C")], display=True)], None, ["1", "C"]),
    "a change of the context of xcsh": ([U1, entry(2, "context_change", contextName="c", tenant="t", namespace="n"), asked(3, "3")], None, ["1", "3"]),
}  # fmt: skip


#: The context begins with a summary in these cases.
SUMMARISED = {
    name for name in CASES if "compact" in name and name != "a clear after a compaction"
}


@pytest.mark.parametrize("name", CASES)
def test_the_context_is_that_of_the_program(
    name: str, store: Store, tmp_path: Path
) -> None:
    records, leaf, expected = CASES[name]
    write(tmp_path / HOME, header(1), *records)
    session = taken(store, tmp_path)
    at = None if leaf is None else f"{leaf:08x}"
    context = store.context(session, at=at)
    assert texts(context.messages) == expected
    assert context.summary == ("S" if name in SUMMARISED else None)
    assert written(store)[1:] == records


OF_OMP, OF_XCSH = (Path(f"{home}/agent/sessions/-tea") for home in (".omp", ".xcsh"))
FAILED = [
    U1,
    answered(2, words("2"), call("c1"), stopReason="aborted"),
    result(3, "c1", "aborted"),
    asked(4, "4"),
    answered(5, words("5"), stopReason="error", errorMessage="Overloaded"),
    asked(6, "6"),
    answered(7, {"type": "thinking", "thinking": "Hm"}, stopReason="aborted"),
    entry(8, "custom_message", customType="interrupted-thinking", content="8", display=False),
    entry(9, "custom_message", customType="prewalk-plan", content="9", display=False),
    answered(10, words("10"), model="small"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("home", "expected"),
    [
        (HOME, ["1", "2", "4", "5", "6", "", "8", "10"]),
        (OF_XCSH, ["1", "2", "4", "5", "6", "", "8", "10"]),
        (OF_OMP, ["1", "4", "6", "", "8", "10"]),
    ],
)
def test_oh_my_pi_alone_leaves_failed_answers_out_of_the_context(
    home: Path, expected: list[str], store: Store, tmp_path: Path
) -> None:
    write(tmp_path / home, header(1), *FAILED)
    context = store.context(taken(store, tmp_path))
    assert [message.text for message in context.messages] == expected
    assert context.models["default"].model_id == "small"
    assert context.problems == ()
    assert written(store)[1:] == FAILED


def test_a_section_of_the_system_text_replaces_the_earlier_one_of_its_name(
    store: Store, tmp_path: Path
) -> None:
    first = {"preamble": "Be brief", "tools": "bash", "rules": "Tabs"}
    records = [
        said(1, "system", None, content="", sections=first), asked(2, "2"),
        said(3, "system", content="Be kind", sections={"rules": None, "tools": "read", "odd": 7}),
        compaction(4, 2),
    ]  # fmt: skip
    found = state(store, tmp_path, *records)
    assert found.system == ("Be kind", "Be brief", "read")
    assert written(store)[1:] == records


def state(store: Store, folder: Path, *records: Record) -> Context:
    write(folder / HOME, header(1), *records)
    return store.context(taken(store, folder))


def test_the_state_of_the_context_is_that_of_the_last_records(
    store: Store, tmp_path: Path
) -> None:
    found = state(
        store, tmp_path, U1,
        entry(2, "model_change", provider="openai", modelId="gpt-4"),
        entry(3, "thinking_level_change", thinkingLevel="high"),
        entry(4, "model_change", model="other/mini", role="smol"),
        entry(5, "mode_change", mode="plan"),
        entry(6, "ttsr_injection", injectedRules=["a", "b"]),
        entry(7, "ttsr_injection", injectedRules=["b", "c"]),
        entry(8, "session_init", systemPrompt="Be brief", task="tea", tools=["bash"]),
        compaction(9, 1),
    )  # fmt: skip
    assert found.models["default"] == ModelName("gpt-4", "openai")
    assert found.models["smol"] == ModelName("mini", "other")
    assert (found.thinking, found.mode, found.summary) == ("high", "plan", "S")
    assert found.rules == ("a", "b", "c")
    assert found.session_init["task"] == "tea"


@pytest.mark.parametrize("number", [0, 1, 2])
def test_the_context_of_xcsh_is_the_last_one(
    number: int, store: Store, tmp_path: Path
) -> None:
    names = ["staging", "production"][:number]
    changes = [
        entry(2 + at, "context_change", contextName=name, tenant="t", namespace="n")
        for at, name in enumerate(names)
    ]
    plan = entry(4, "mode_change", 1 + number, mode="plan", data={"file": "plan.md"})
    tools = entry(5, "mcp_tool_selection", selectedToolNames=["web"])
    write(tmp_path / OF_XCSH, header(1), U1, *changes, plan, tools)
    events = store.context(taken(store, tmp_path)).events
    found = events.get("context_change", {})
    assert found.get("contextName") == (names[-1] if names else None)
    assert events["mode_change"]["data"] == {"file": "plan.md"}
    assert events["mcp_tool_selection"]["selectedToolNames"] == ["web"]


@pytest.mark.parametrize("content", ["cut", [words("cut")]])
def test_an_edited_result_replaces_the_original_in_the_context(
    store: Store, tmp_path: Path, content: Any
) -> None:
    records = [
        answered(1, call("c1", command="date"), above=None), result(2, "c1", "Monday " * 99),
        entry(3, "context_edit", targetId="00000002", replacement={"content": content}), asked(4, "next"),
    ]  # fmt: skip
    found = state(store, tmp_path, *records)
    (call_,) = found.messages[0].parts
    assert (call_.text, call_.status) == ("cut", "completed")
    assert written(store)[1:] == records


def test_without_its_result_a_call_is_interrupted(store: Store, tmp_path: Path) -> None:
    edit = entry(3, "context_edit", targetId="00000002", replacement=None)
    records = [answered(1, call("c1"), above=None), result(2, "c1", "Monday"), edit]
    found = state(store, tmp_path, *records)
    ((part,),) = (message.parts for message in found.messages)
    assert (part.status, part.outcome) == ("error", "interrupted")
    assert "Monday" not in (part.text or "")


LOOKED = [U1, answered(2, words("2"), call("c1"), stopReason="toolUse")]


def test_a_call_whose_result_is_on_another_branch_has_none_in_the_context(
    store: Store, tmp_path: Path
) -> None:
    records = [*LOOKED, result(3, "c1", "Monday"), asked(4, "4", 2)]
    write(tmp_path / HOME, header(1), *records)
    session = taken(store, tmp_path)
    stripped = store.context(session, repair="strip")
    assert [part.type for part in stripped.messages[1].parts] == ["text"]
    assert store.context(session).messages[1].parts[1].outcome == "interrupted"

    call_ = store.context(session, at="00000003").messages[1].parts[1]
    assert (call_.text, call_.status) == ("Monday", "completed")
    assert written(store)[1:] == records


def test_a_call_with_a_result_on_each_branch_ends_as_on_its_own(
    store: Store, tmp_path: Path
) -> None:
    other = result(4, "c1", "Tuesday") | {"parentId": "00000002"}
    failed = result(3, "c1", "no clock", isError=True)
    write(tmp_path / HOME, header(1), *LOOKED, failed, other)
    session = taken(store, tmp_path)
    ends = [
        (part.text, part.status, part.outcome)
        for at in (failed, other)
        for part in store.context(session, at=at["id"]).messages[-1].parts[1:]
    ]
    assert ends == [("no clock", "error", "failed"), ("Tuesday", "completed", None)]


def test_without_records_the_state_of_the_context_is_unknown(
    store: Store, tmp_path: Path
) -> None:
    found = state(store, tmp_path)
    assert (found.models, found.thinking, found.mode) == ({}, None, None)
    assert (found.rules, found.session_init, found.summary) == ((), {}, None)


def test_the_model_is_that_of_the_last_answer(store: Store, tmp_path: Path) -> None:
    other = answered(4, words("4"), model="small")
    found = state(store, tmp_path, U1, A2, U3, other)
    assert found.models == {"default": ModelName("small", "fake")}


def test_a_model_that_was_chosen_in_oh_my_pi_stays_whatever_model_answers(
    store: Store, tmp_path: Path
) -> None:
    found = state(
        store, tmp_path, A2, entry(3, "model_change", model="openai/gpt-4"),
        entry(4, "model_change", model="other/mini", role="smol"), answered(5, words("5")),
    )  # fmt: skip
    chosen = {"default": ModelName("gpt-4", "openai")}
    assert found.models == {**chosen, "smol": ModelName("mini", "other")}


def test_xcsh_takes_the_model_of_the_last_answer(store: Store, tmp_path: Path) -> None:
    change = entry(2, "model_change", model="openai/gpt-4")
    write(tmp_path / OF_XCSH, header(1), U1, change, answered(3, words("3")))
    found = store.context(taken(store, tmp_path))
    assert found.models == {"default": ModelName("large", "fake")}
    assert written(store)[2] == change


def test_a_role_that_has_a_model_of_its_own_leaves_the_model_of_the_answers(
    store: Store, tmp_path: Path
) -> None:
    change = entry(2, "model_change", model="other/mini", role="smol")
    found = state(store, tmp_path, U1, change, answered(3, words("3")))
    assert found.models["default"] == ModelName("large", "fake")


def test_a_level_that_was_cleared_is_unknown(store: Store, tmp_path: Path) -> None:
    high = entry(2, "thinking_level_change", thinkingLevel="high")
    none = entry(3, "thinking_level_change", thinkingLevel=None)
    assert state(store, tmp_path, U1, high, none).thinking is None


def test_the_author_of_a_message_of_an_extension_is_kept(
    store: Store, tmp_path: Path
) -> None:
    fields = {"customType": "x", "content": "C", "display": True}
    by, anonymous = (entry(2, "custom_message", **fields, attribution="agent"), entry(3, "custom_message", **fields))  # fmt: skip
    found = state(store, tmp_path, U1, by, anonymous).messages
    assert [m.data.get("attribution", "none") for m in found[1:]] == ["agent", "none"]


def test_an_answer_decides_the_model_over_an_earlier_change(
    store: Store, tmp_path: Path
) -> None:
    change = entry(2, "model_change", provider="openai", modelId="gpt-4")
    found = state(store, tmp_path, U1, change, answered(3, words("3")))
    assert found.models["default"] == ModelName("large", "fake")


# -- what records become ------------------------------------------------------------


def messages(store: Store, folder: Path, *records: Record) -> list[Message]:
    write(folder / HOME, header(1), *records)
    return list(store.messages(taken(store, folder), branches=True))


def test_a_call_has_the_first_text_of_its_result_and_its_failure(
    store: Store, tmp_path: Path
) -> None:
    image = {"type": "image", "data": PNG, "mimeType": "image/png"}
    _, answer, answer_to = messages(
        store, tmp_path, U1, answered(2, call("c1", "edit", path="a.py"), stopReason="toolUse"),
        result(3, "c1", "no such file", image, isError=True),
    )  # fmt: skip
    (part,) = answer.parts
    assert (part.tool, part.input, part.text) == (
        "edit",
        {"path": "a.py"},
        "no such file",
    )
    assert (part.status, part.outcome, answer.finish) == (
        "error",
        "failed",
        "tool-calls",
    )
    assert answer_to.parts[1].data["content"].startswith(b"\x89PNG")


def test_usage_and_times_of_an_answer_are_columns(store: Store, tmp_path: Path) -> None:
    _, answer = messages(store, tmp_path, U1, A2)
    counts = (answer.tokens_input, answer.tokens_output, answer.tokens_cache_read, answer.tokens_cache_write)  # fmt: skip
    assert counts == (10, 4, 2, 1)
    assert (answer.cost, answer.provider_id, answer.model_id) == (0.25, "fake", "large")
    assert answer.time_completed is not None


@pytest.mark.parametrize(
    ("usage", "output", "reasoning"),
    [
        ({"output": 20, "reasoning": 15}, 5, 15),
        ({"output": 20, "reasoningTokens": 15}, 5, 15),
        ({"output": 20, "reasoning": 0}, 20, 0),
        ({"output": 20, "reasoning": 21}, 20, None),
        ({"output": 20, "reasoning": "15"}, 20, None),
        ({"reasoning": 3}, None, None),
    ],
)
def test_reasoning_is_not_counted_as_output_too(
    store: Store, tmp_path: Path, usage: Any, output: int | None, reasoning: int | None
) -> None:
    answer = answered(2, words("2"), usage=usage)
    _, read = messages(store, tmp_path, U1, answer)
    assert (read.tokens_output, read.tokens_reasoning) == (output, reasoning)
    assert written(store) == [header(1), U1, answer]


def test_every_cost_in_a_log_is_counted_once(store: Store, tmp_path: Path) -> None:
    cost = {"input": 0.1, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0.125}
    usage = {"input": 5, "output": 2, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 7, "cost": cost}  # fmt: skip
    model = {"provider": "fake", "model": "large", "usage": usage}
    records = [
        header(1), U1, A2, result(3, "c1", "ok", usage=usage), compaction(4, 1, usage=usage),
        entry(5, "branch_summary", fromId="00000002", summary="B", usage=usage),
        entry(6, "usage", kind="cache_warm", **model),
        entry(7, "model_usage", purpose="title", **model),
    ]  # fmt: skip
    write(tmp_path / HOME, *records)
    session = taken(store, tmp_path)
    counted = [m.cost for m in store.messages(session)]
    assert counted == [None, 0.25, *[0.125] * 5]
    assert (session.cost, session.tokens.input, session.tokens.output) == (0.875, 35, 14)  # fmt: skip
    kinds = [(m.kind, m.model_id) for m in store.messages(session)][-2:]
    assert kinds == [("usage", "large")] * 2
    assert written(store) == records


@pytest.mark.slow
def test_a_real_store_has_the_costs_that_its_logs_state(
    real_store: Callable[[str], Path], store: Store
) -> None:
    read_into(store, real_store("pi-0.87.1") / "data")
    for session in store.sessions(project=ALL, limit=100):
        records = back(store, session, "pi")
        used = (r.get("message", r).get("usage") for r in records)
        known = [usage["cost"]["total"] for usage in used if usage]
        counted = sum(filter(None, (session.cost, session.cost_inherited)))
        assert counted == pytest.approx(sum(known))


def test_an_answer_without_usage_or_with_an_odd_one_is_read(
    store: Store, tmp_path: Path
) -> None:
    bare = said(2, "assistant", content=[words("2")])
    odd = answered(
        3, words("3"), usage={"input": -1, "cost": None}, stopReason="why not"
    )
    _, first, second = messages(store, tmp_path, U1, bare, odd)
    assert (first.tokens, first.cost, first.finish) == (None, None, None)
    assert (second.tokens, second.finish) == (None, "other")
    assert second.data["message"]["usage"] == {"input": -1, "cost": None}


def test_a_failed_or_aborted_answer_states_the_reason(
    store: Store, tmp_path: Path
) -> None:
    failed = answered(2, stopReason="error", errorMessage="400: no")
    _, first, second = messages(
        store, tmp_path, U1, failed, answered(3, stopReason="aborted")
    )
    assert (first.finish, first.error, first.parts) == (
        "error",
        {"message": "400: no"},
        (),
    )
    assert second.finish == "cancelled"


@pytest.mark.parametrize(
    ("fields", "outcome", "kind"),
    [
        ({"exitCode": 0}, None, "custom_message"),
        ({"exitCode": 2}, "failed", "custom_message"),
        ({"exitCode": None, "cancelled": True}, "interrupted", "custom_message"),
        ({"exitCode": 0, "excludeFromContext": True}, None, "custom"),
    ],
)
def test_a_command_of_the_user_is_a_call_that_the_model_is_shown(
    store: Store, tmp_path: Path, fields: Record, outcome: str | None, kind: str
) -> None:
    ran = said(2, "bashExecution", command="ls", output="a.py\n", **fields)
    _, message = messages(store, tmp_path, U1, ran)
    (part,) = message.parts
    assert (part.tool, part.input, part.text) == ("bash", {"command": "ls"}, "a.py\n")
    assert (message.role, message.kind, part.outcome) == ("event", kind, outcome)


def test_a_title_is_that_of_the_last_record_that_names_one(
    store: Store, tmp_path: Path
) -> None:
    names = (
        entry(2, "session_info", name="First"),
        entry(3, "session_info", name=" Last "),
    )
    write(tmp_path / HOME, header(1), U1, *names)
    assert taken(store, tmp_path).title == "Last"


@pytest.mark.parametrize("cleared", [{"name": ""}, {"name": "  "}, {}, {"name": None}])
def test_a_title_that_was_cleared_is_the_first_prompt(
    store: Store, tmp_path: Path, cleared: Record
) -> None:
    names = entry(2, "session_info", name="First"), entry(3, "session_info", **cleared)
    write(tmp_path / HOME, header(1), asked(1, "Tea?", None), *names)
    assert taken(store, tmp_path).title == "Tea?"


def test_the_title_of_oh_my_pi_is_before_its_header(
    store: Store, tmp_path: Path
) -> None:
    slot = {
        "type": "title",
        "v": 1,
        "title": "In the slot",
        "updatedAt": moment(1),
        "pad": "  ",
    }
    write(tmp_path / HOME, slot, header(1, title="In the header"), U1)
    session = taken(store, tmp_path)
    assert (session.title, session.source) == ("In the slot", "oh-my-pi")


def test_labels_are_those_that_were_given_last(store: Store, tmp_path: Path) -> None:
    write(
        tmp_path / HOME, header(1), U1, A2,
        entry(3, "label", targetId="00000001", label="old"),
        entry(4, "label", targetId="00000002", label="cleared"),
        entry(5, "label", targetId="00000001", label="new"),
        entry(6, "label", targetId="00000002"),
        entry(7, "label", targetId="00000099", label="nowhere"),
    )  # fmt: skip
    session = taken(store, tmp_path)
    assert [(of.seq, of.label) for of in store.labels(session)] == [(1, "new")]


# -- versions -------------------------------------------------------------------------


def test_a_label_or_name_that_a_log_takes_back_is_removed_here(
    store: Store, tmp_path: Path
) -> None:
    named = [
        U1, entry(2, "session_info", name="Tea"), entry(3, "label", targetId="00000001", label="a"),
        entry(4, "label", targetId="00000001", label="b"), entry(5, "label", targetId="00000002", label="c"),
    ]  # fmt: skip
    write(tmp_path / HOME, header(1), *named)
    session = taken(store, tmp_path)
    store.label(session, 1, "mine")
    assert {label.label for label in store.labels(session)} == {"b", "c", "mine"}
    assert store.session(session).title == "Tea"

    cleared = [
        entry(6, "session_info", name=""),
        entry(7, "label", targetId="00000001"),
    ]
    write(tmp_path / HOME, header(1), *named, *cleared)
    taken(store, tmp_path)
    assert {label.label for label in store.labels(session)} == {"c", "mine"}
    assert store.session(session).title == "1"

    store.set_title(session, "Mine")
    write(
        tmp_path / HOME, header(1), *named, *cleared, entry(8, "session_info", name="")
    )
    taken(store, tmp_path)
    assert store.session(session).title == "Mine"


def bare(record: Record) -> Record:
    return {key: record[key] for key in record if key not in ("id", "parentId")}


def old_header(**fields: Any) -> Record:
    return {
        key: value for key, value in header(1, **fields).items() if key != "version"
    }


def test_the_first_version_has_the_same_ids_each_time(
    store: Store, tmp_path: Path
) -> None:
    log = write(tmp_path / HOME, old_header(), bare(U1), bare(A2))
    session = taken(store, tmp_path)
    before = [message.id for message in store.messages(session)]

    write(tmp_path / HOME, old_header(), bare(U1), bare(A2), bare(U3), name=log.name)
    (again,) = read_into(store, tmp_path)
    assert isinstance(again, Imported)
    assert (again.outcome, again.messages) == ("updated", 3)
    assert [message.id for message in store.messages(session)][:2] == before


def upgraded(number: int, record: Record, **more: Any) -> Record:
    """Return a record of the first version with the id that a later one gave it."""
    links = {"id": f"{number:08x}", "parentId": f"{number - 1:08x}" if number > 90 else None}  # fmt: skip
    return {**record, **links, **more}


def test_an_upgrade_of_the_first_version_is_the_same_session(
    store: Store, tmp_path: Path
) -> None:
    old = [U1, A2, said(3, "hookMessage", customType="x", content="3", display=True)]
    cut = entry(4, "compaction", summary="S", tokensBefore=9)
    settings = {"provider": "fake", "modelId": "large", "thinkingLevel": "high"}
    log = write(tmp_path / HOME, old_header(**settings), *map(bare, old), bare(cut) | {"firstKeptEntryIndex": 2})  # fmt: skip
    before = messages_of(store, taken(store, tmp_path))

    # As pi does it: linked, with random ids, and hook messages under another name.
    renamed = json.loads(json.dumps(bare(old[2])).replace("hookMessage", "custom"))
    records = [
        old_header(**settings) | {"version": 3},
        *(upgraded(90 + n, of) for n, of in enumerate([bare(U1), bare(A2), renamed])),
        upgraded(93, bare(cut), firstKeptEntryId=f"{91:08x}"),
        asked(5, "5", 93), entry(6, "label", targetId=f"{91:08x}", label="here"),
    ]  # fmt: skip
    write(tmp_path / HOME, *records, name=log.name)
    session = taken(store, tmp_path)
    assert messages_of(store, session)[:-2] == before
    assert texts(store.context(session).messages) == ["2", "3", "5"]
    assert [(label.label, label.seq) for label in store.labels(session)] == [
        ("here", 4)
    ]
    assert store.session(session).cost == pytest.approx(0.25)
    assert written(store) == records

    store.append(session, user("more"))
    store.label(session, 3, "prompt")
    added = back(store, store.session(session))[len(records) :]
    assert added[0]["parentId"] == records[-1]["id"]
    assert {record.get("targetId") for record in added} == {None, f"{90:08x}"}


def test_a_log_whose_keys_are_in_another_order_keeps_its_ids(
    store: Store, tmp_path: Path
) -> None:
    late = ("id", "parentId")
    records = [{key: of[key] for key in sorted(of, key=late.__contains__)} for of in (U1, A2)]  # fmt: skip
    assert list(records[0])[-2:] == ["id", "parentId"]
    write(tmp_path / HOME, header(1), *records)
    session = taken(store, tmp_path)
    found = [message.id for message in store.messages(session)]
    assert found == [U1["id"], A2["id"]]
    assert written(store)[1:] == records


def messages_of(store: Store, session: str) -> list[tuple[str, int | None]]:
    return [(message.id, message.parent_seq) for message in store.messages(session)]


def test_a_compaction_of_the_first_version_names_a_place_that_counts_the_header(
    store: Store, tmp_path: Path
) -> None:
    cut = entry(4, "compaction", summary="S", firstKeptEntryIndex=3, tokensBefore=9)
    write(tmp_path / HOME, old_header(), bare(U1), bare(A2), bare(U3), bare(cut), bare(asked(5, "5")))  # fmt: skip
    session = taken(store, tmp_path)
    assert texts(store.context(session).messages) == ["3", "5"]


@pytest.mark.parametrize("index", [0, -1, 99, 1 << 62, "1", None])
def test_a_compaction_of_the_first_version_that_names_no_place_keeps_nothing(
    store: Store, tmp_path: Path, index: Any
) -> None:
    cut = entry(2, "compaction", summary="S", firstKeptEntryIndex=index)
    write(tmp_path / HOME, old_header(), bare(U1), bare(cut), bare(U3))
    session = taken(store, tmp_path)
    assert texts(store.context(session).messages) == ["3"]


def test_the_header_of_the_first_version_states_the_model_and_the_level(
    store: Store, tmp_path: Path
) -> None:
    settings = {"provider": "anthropic", "modelId": "claude-opus-4-5", "thinkingLevel": "high"}  # fmt: skip
    records = [old_header(**settings), bare(U1), bare(A2)]
    log = write(tmp_path / HOME, *records[:2])
    session = taken(store, tmp_path)
    first = store.context(session)
    assert first.models == {"default": ModelName("claude-opus-4-5", "anthropic")}
    assert (first.thinking, texts(first.messages)) == ("high", ["1"])

    write(tmp_path / HOME, *records, name=log.name)
    read_into(store, tmp_path)
    second = store.context(session)
    assert second.models == {"default": ModelName("large", "fake")}
    assert (second.thinking, texts(second.messages)) == ("high", ["1", "2"])
    assert written(store) == records


@pytest.mark.parametrize("odd", [None, 7, [], {}, ""])
def test_a_header_with_odd_settings_states_none(
    store: Store, tmp_path: Path, odd: Any
) -> None:
    records = [old_header(provider=odd, modelId=odd, thinkingLevel=odd), bare(U1)]
    write(tmp_path / HOME, *records)
    found = store.context(taken(store, tmp_path))
    assert (found.models, found.thinking) == ({}, None)
    assert written(store) == records


def test_ids_in_a_file_of_the_first_version_do_not_count(
    store: Store, tmp_path: Path
) -> None:
    write(tmp_path / HOME, old_header(), U1, {**A2, "id": U1["id"], "parentId": "77"})
    assert texts(store.messages(taken(store, tmp_path))) == ["1", "2"]


def test_a_fork_of_the_first_version_has_a_newer_header_and_no_ids(
    store: Store, tmp_path: Path
) -> None:
    write(tmp_path / HOME, header(1), bare(U1), bare(A2), bare(U3))
    assert texts(store.messages(taken(store, tmp_path))) == ["1", "2", "3"]


# -- the tree -------------------------------------------------------------------------


def test_a_fork_counts_what_it_copied_once(store: Store, tmp_path: Path) -> None:
    parent = write(tmp_path / HOME, header(1), U1, A2)
    write(tmp_path / HOME, header(2, parentSession=str(parent)), U1, A2, U3, A4)
    read_into(store, tmp_path)
    by_id = {s.source_id: s for s in store.sessions(project=ALL)}
    fork, original = by_id[header(2)["id"]], by_id[header(1)["id"]]
    assert (fork.parent_id, fork.relation, fork.parent_seq) == (original.id, "fork", 2)
    assert (original.cost, fork.cost, fork.cost_inherited) == (0.25, 0.25, 0.25)


def test_a_fork_that_lost_its_labels_is_still_one_path(
    store: Store, tmp_path: Path
) -> None:
    # The program dropped the label in the middle and not the link to it.
    records = [U1, A2, asked(4, "4", 3), answered(5, words("5"))]
    write(tmp_path / HOME, header(1, parentSession="/elsewhere/2026-02-02T02-40-00-000Z_gone.jsonl"), *records)  # fmt: skip
    (found,) = read_into(store, tmp_path)
    assert isinstance(found, Imported)
    assert texts(store.context(found.id).messages) == ["1", "2", "4", "5"]


def test_a_damaged_line_is_reported_and_skipped(store: Store, tmp_path: Path) -> None:
    log = write(tmp_path / HOME, header(1), U1, A2, U3, A4)
    lines = log.read_text().splitlines(keepends=True)
    lines[2] = lines[2][:40] + "\n"
    log.write_text("".join(lines))
    found = read_into(store, tmp_path)
    assert [item.line for item in found if isinstance(item, Problem)] == [3]
    (session,) = (item for item in found if isinstance(item, Imported))
    assert texts(store.messages(session.id)) == ["1", "3", "4"]


def test_a_header_after_a_byte_order_mark_is_found(
    store: Store, tmp_path: Path
) -> None:
    log = write(tmp_path / HOME, header(1), U1, A2)
    log.write_bytes(codecs.BOM_UTF8 + log.read_bytes())
    session = taken(store, tmp_path)
    assert session.directory == header(1)["cwd"]
    assert back(store, session) == [header(1), U1, A2]


def test_of_two_records_with_one_id_the_last_one_is_continued(
    store: Store, tmp_path: Path
) -> None:
    again = {**asked(2, "again"), "id": U1["id"], "parentId": None}
    write(tmp_path / HOME, header(1), U1, again, asked(3, "3", 1))
    session = taken(store, tmp_path)
    assert texts(store.messages(session)) == ["again", "3"]
    assert texts(store.messages(session, branches=True)) == ["1", "again", "3"]


@pytest.mark.parametrize("above", ["00000003", "00000004"])
def test_a_cycle_of_parents_is_cut(store: Store, tmp_path: Path, above: str) -> None:
    write(tmp_path / HOME, header(1), U1, A2, {**U3, "parentId": above}, A4)
    session = taken(store, tmp_path)
    assert len(list(store.messages(session, branches=True))) == 4
    assert texts(store.messages(session)) == ["3", "4"]


# -- logs -----------------------------------------------------------------------------


def test_a_log_that_lost_its_header_is_read_under_its_name(
    store: Store, tmp_path: Path
) -> None:
    write(tmp_path / HOME, U1, A2, name="2026-02-02T02-40-00-000Z_01a1.jsonl")
    session = taken(store, tmp_path)
    assert (session.source_id, texts(store.messages(session))) == ("01a1", ["1", "2"])
    # No program opens a log without one.
    made, *records = written(store)
    assert (made["type"], made["id"], records) == ("session", "01a1", [U1, A2])


def test_a_null_line_is_reported_and_skipped(store: Store, tmp_path: Path) -> None:
    log = write(tmp_path / HOME, header(1), U1)
    log.write_bytes(b"\xef\xbb\xbf" + log.read_bytes() + b"null\n\r\n")
    problem, session = sorted(
        read_into(store, tmp_path), key=lambda r: isinstance(r, Imported)
    )
    assert isinstance(problem, Problem)
    assert isinstance(session, Imported)
    assert session.messages == 1


def test_logs_of_one_program_are_found_wherever_it_wrote_them(
    store: Store, tmp_path: Path
) -> None:
    write(tmp_path / HOME, header(1), U1)
    write(tmp_path / "agent", header(2), U1)
    write(tmp_path / "copies" / "elsewhere", header(3), U1, name="renamed.jsonl")
    assert len(read_into(store, tmp_path)) == 3


def test_a_log_of_a_sub_agent_belongs_to_the_one_beside_its_folder(
    store: Store, tmp_path: Path
) -> None:
    log = write(tmp_path / HOME, header(1), U1)
    write(log.with_suffix(""), header(2), asked(1, "Look", None), name="Look.jsonl")
    read_into(store, tmp_path)
    by_id = {s.source_id: s for s in store.sessions(project=ALL, subagents=True)}
    child = by_id[header(2)["id"]]
    assert (child.relation, child.parent_id) == ("subagent", by_id[header(1)["id"]].id)


def test_a_subagent_of_a_subagent_belongs_to_it_and_each_to_the_call_that_started_it(
    store: Store, tmp_path: Path
) -> None:
    def started(name: str, **details: Any) -> list[Record]:
        return [answered(1, call(f"c{name}", "task"), above=None), result(2, f"c{name}", name, details=details)]  # fmt: skip

    top = write(tmp_path / OF_OMP, header(1), *started("A", progress=[{"id": "A"}]))
    first = write(top.with_suffix(""), header(2), *started("B", results=[{"id": "B"}]), name="A.jsonl")  # fmt: skip
    write(first.with_suffix(""), header(3), asked(1, "Tea?"), name="B.jsonl")
    (top.with_suffix("") / "A.md").write_text("B")

    done = {str(of.source_id): of for of in read_into(store, tmp_path) if isinstance(of, Imported)}  # fmt: skip
    found = [store.session(done[str(header(number)["id"])].id) for number in (1, 2, 3)]
    assert [session.relation for session in found] == [None, "subagent", "subagent"]
    assert [session.parent_id for session in found[1:]] == [of.id for of in found[:2]]
    assert [session.call_id for session in found] == [None, "cA", "cB"]
    assert [session.parent_seq for session in found[1:]] == [1, 1]


def test_of_two_logs_of_one_session_the_longer_one_is_read(
    store: Store, tmp_path: Path
) -> None:
    write(tmp_path / HOME, header(1), U1)
    write(tmp_path / HOME.parent / "--moved--", header(1), U1, A2)
    problem, session = read_into(store, tmp_path)
    assert isinstance(problem, Problem)
    assert "which is not shorter" in problem.why
    assert isinstance(session, Imported)
    assert session.messages == 2


def test_a_session_that_was_moved_there_is_moved_here_unless_it_was_relinked(
    store: Store, tmp_path: Path
) -> None:
    first, second, third = (tmp_path / name for name in ("a", "b", "c"))
    for folder in (first, second, third):
        folder.mkdir()

    def taken_at(folder: Path, *records: Record) -> str | None:
        write(tmp_path / OF_OMP, header(1, cwd=str(folder)), *records)
        return store.session(taken(store, tmp_path)).directory

    assert taken_at(first, U1) == str(first)
    assert taken_at(second, U1, A2) == str(second)
    found = store.sessions(project=second).items
    assert [session.message_count for session in found] == [2]
    assert not store.sessions(project=first).items

    store.relink(str(second), str(third))
    assert taken_at(second, U1, A2, U3) == str(third)
    assert taken_at(first, U1, A2, U3, A4) == str(first)


@pytest.mark.parametrize(
    ("records", "source"),
    [
        ([header(1), entry(1, "model_change", None, provider="p", modelId="m")], "pi"),
        ([header(1), entry(1, "model_change", None, model="p/m")], "oh-my-pi"),
        ([header(1), entry(1, "session_init", None, task="tea")], "oh-my-pi"),
        ([header(1, title="Tea"), U1], "oh-my-pi"),
        ([header(1, id="0123456789abcdef"), U1], "oh-my-pi"),
        ([header(1, id=["odd"]), {"type": ["odd"]}, U1], "pi"),
        ([entry(1, "model_change", None, model="p/m"), A2], "oh-my-pi"),
        ([header(1, id="0123456789abcdef"), entry(1, "context_change", None)], "xcsh"),
    ],
)
def test_a_log_in_a_folder_of_no_program_is_known_by_its_own_records(
    store: Store, tmp_path: Path, records: list[Record], source: str
) -> None:
    write(tmp_path / HOME, header(9), U1)
    write(tmp_path / HOME, *records, name="2026-02-02T02-40-00-000Z_01a1.jsonl")
    read_into(store, tmp_path)
    (of,) = (s for s in store.sessions(project=ALL) if s.source_id != header(9)["id"])
    assert of.source == source

    (home,) = find(tmp_path)
    assert home.sources == {"pi", source}


def test_codex_has_a_folder_of_the_same_name(store: Store, tmp_path: Path) -> None:
    write(tmp_path / ".codex" / "sessions" / "2026", {"type": "session_meta", "payload": {}}, name="rollout-2026.jsonl")  # fmt: skip
    assert read_into(store, tmp_path) == []


def newer(folder: Path, name: str) -> Path:
    head = {"v": 4, "kind": "header", "id": name, "storageVersion": 1, "createdAt": T0, "cwd": "/tea"}  # fmt: skip
    path = folder / f"2026-02-02T02-40-00-000Z_{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(samples_pi.log(head, {**U1, "kind": "entry", "seq": 1}))
    return path


def test_a_log_of_version_4_is_named_and_affects_no_other(
    store: Store, tmp_path: Path
) -> None:
    write(tmp_path / HOME, header(1), U1)
    # Its session has a log that can be read, too, and which is shorter.
    paths = [newer(tmp_path / HOME.parent / "--other--", header(1)["id"]), newer(tmp_path, "alone")]  # fmt: skip
    found = read_into(store, tmp_path)
    problems = {of.source: of.why for of in found if isinstance(of, Problem)}
    why = "pi's experimental log of version 4: not supported yet"
    assert problems == dict.fromkeys(map(str, paths), why)
    assert [of.messages for of in found if isinstance(of, Imported)] == [1]


@pytest.mark.parametrize("place", ["agent", "agent/sessions", "elsewhere"])
def test_sessions_of_pi_in_sqlite_are_named(
    store: Store, tmp_path: Path, place: str
) -> None:
    write(tmp_path / HOME, header(1), U1)
    path = tmp_path / place / "sessions.sqlite"
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as file:
        file.execute("CREATE TABLE sessions (id, created_at, cwd, parent_session_id)")
        file.execute("CREATE TABLE entries (session_id, seq, id, parent_id, type, timestamp, payload)")  # fmt: skip
    before = path.read_bytes()
    problems = [of for of in read_into(store, tmp_path) if isinstance(of, Problem)]
    assert problems == [Problem(str(path), "pi's experimental sessions in SQLite: not supported yet")]  # fmt: skip
    assert path.read_bytes() == before
    assert len(list(store.sessions(project=ALL))) == 1


@pytest.mark.parametrize("content", [b"", b"no database" * 99, b"SQLite format 3\0"])
def test_another_file_of_that_name_is_not_a_database_of_pi(
    store: Store, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "sessions.sqlite").write_bytes(content)
    assert read_into(store, tmp_path) == []


# -- what was typed -------------------------------------------------------------------


def typed_in(
    home: Path, *rows: tuple[Any, ...], columns: str = "cwd, session_id"
) -> Path:
    """Write a prompt history: rows of text, time in seconds and *columns*."""
    home.mkdir(parents=True, exist_ok=True)
    path = home / "history.db"
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA journal_mode = WAL")
        file.execute(
            "CREATE TABLE history (id INTEGER PRIMARY KEY, prompt, created_at"
            + "".join(f", {name}" for name in filter(None, columns.split(", "))) + ")"
        )  # fmt: skip
        for row in rows:
            marks = ", ?" * len(row)
            file.execute(f"INSERT INTO history VALUES (NULL{marks})", row)
        file.commit()
    return path


def prompts(store: Store) -> list[tuple[str, str | None, bool]]:
    """Return text, directory, and whether there is a session, the first one first."""
    found = [*store.prompts(project=ALL)][::-1]
    return [(of.text, of.directory, of.session_id is not None) for of in found]


def test_a_prompt_of_the_history_is_added_once(store: Store, tmp_path: Path) -> None:
    home, name = tmp_path / ".omp/agent", header(1)["id"]
    slot = {"type": "title", "v": 1, "title": "", "updatedAt": moment(1), "pad": ""}
    write(home / "sessions/-tea", slot, header(1), asked(1, "1  \n2", None), A2)
    rows = [
        ("1\n2", T0 // 1000, "/home/ada/tea", name),
        ("/model", T0 // 1000 + 1, "/home/ada/tea/src", name),
        ("gone", T0 // 1000 + 2, "/home/ada", "no session"),
        ("nowhere", T0 // 1000 + 3, None, None),
    ]
    path = typed_in(home, *rows)
    before = path.read_bytes()
    for _ in range(2):
        read_into(store, tmp_path)
        assert prompts(store) == [
            ("1  \n2", "/home/ada/tea", True), ("/model", "/home/ada/tea/src", True),
            ("gone", "/home/ada", False), ("nowhere", None, False),
        ]  # fmt: skip
    assert [p.source for p in store.prompts(project=ALL)] == ["oh-my-pi"] * 4
    assert path.read_bytes() == before
    assert sorted(of.name for of in home.iterdir()) == ["history.db", "sessions"]


def test_an_older_history_has_no_sessions(store: Store, tmp_path: Path) -> None:
    home = tmp_path / ".xcsh/agent"
    write(home / "sessions/-tea", header(1), U1)
    rows = [("1", T0 // 1000, "/home/ada/tea"), ("2", T0 // 1000 + 90, "/home/ada/tea")]
    typed_in(home, *rows, columns="cwd")
    read_into(store, tmp_path)
    place = "/home/ada/tea"
    assert prompts(store) == [("1", place, True), ("2", place, False)]


def test_a_row_that_is_not_a_prompt_is_reported_and_skipped(
    store: Store, tmp_path: Path
) -> None:
    home = tmp_path / ".omp/agent"
    write(home / "sessions/-tea", header(1), U1)
    odd = [(7, 7), (None, 8), ("x", "soon"), ("x", 1 << 60), (b"x", 9), ("good", 10)]
    typed_in(home, *((*row, 5, b"x") for row in odd))
    problems = [of for of in read_into(store, tmp_path) if isinstance(of, Problem)]
    assert len(problems) == 5
    assert all("has no text with a time" in problem.why for problem in problems)
    assert prompts(store)[0] == ("good", None, False)


@pytest.mark.parametrize("content", [b"", b"no database" * 99, b"SQLite format 3\0"])
def test_sessions_are_read_beside_a_history_that_cannot_be_read(
    store: Store, tmp_path: Path, content: bytes
) -> None:
    home = tmp_path / ".omp/agent"
    write(home / "sessions/-tea", header(1), U1)
    (home / "history.db").write_bytes(content)
    session, *problems = sorted(read_into(store, tmp_path), key=lambda x: isinstance(x, Problem))  # fmt: skip
    assert isinstance(session, Imported)
    assert len(problems) == int(bool(content))


# -- files ----------------------------------------------------------------------------


def test_a_reference_to_a_blob_has_two_meanings(store: Store, tmp_path: Path) -> None:
    image, url = b"\x89PNG", b"data:image/png;base64,iVBORw=="
    for content in (image, url):
        path = tmp_path / "agent" / "blobs" / hashlib.sha256(content).hexdigest()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    block, sent = (f"blob:sha256:{hashlib.sha256(c).hexdigest()}" for c in (image, url))
    records = [
        said(1, "user", None, content=[{"type": "image", "data": block, "mimeType": "image/png"}]),
        answered(2, providerPayload={"items": [{"image_url": sent}]}),
    ]  # fmt: skip
    first, second = messages(store, tmp_path, *records)
    assert first.parts[0].data["content"] == image
    assert second.parts[0].data["url"] == url.decode()
    assert written(store)[1:] == records


def test_the_images_in_the_rest_of_a_record_are_parts_of_its_message(
    store: Store, tmp_path: Path
) -> None:
    image, url = b"\x89PNG", b"data:image/png;base64,iVBORw=="
    hashes = [hashlib.sha256(content).hexdigest() for content in (image, url)]
    for name, content in zip(hashes, (image, url), strict=True):
        path = tmp_path / "agent" / "blobs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    block, sent = (f"blob:sha256:{name}" for name in hashes)
    shown = {
        "images": [{"data": block, "mimeType": "image/webp"}, {"data": BLOB_OF_NONE}]
    }
    replaced = {"provider": "openai", "replacementHistory": [{"image_url": sent}]}
    records = [
        result(1, "c1", "Monday", details=shown),
        answered(2, providerPayload={"items": [{"type": "image_generation_call", "result": block}]}),
        compaction(3, 1, preserveData={"openaiRemoteCompaction": replaced, "snapcompact": {"frames": [*shown["images"]]}}),
        said(4, "bashExecution", command="ls", output="", exitCode=0, meta=shown),
        said(5, "fileMention", files=[{"path": "tea.md", "content": "Tea"}], more=shown),
        entry(6, "custom", customType="x", data=shown),
    ]  # fmt: skip
    found = messages(store, tmp_path, *records)
    files = [[p.data for p in m.parts if "added" in p.data] for m in found]
    assert [file.get("url") or file["content"] for (file, *_) in files] == [
        image, image, url.decode(), image, image, image,
    ]  # fmt: skip
    assert [len(given) for given in files] == [1, 1, 2, 1, 1, 1]
    assert files[0][0]["mime"] == "image/webp"
    assert store.context(found[0].session_id).summary == "S"
    assert written(store)[1:] == records

    # An export has the references alone.
    (session,) = store.sessions(project=ALL)
    losses = given(store, session, "oh-my-pi")[1]
    assert sum(loss.times for loss in losses if loss.of.endswith("/file")) == 7


def test_a_missing_blob_stays_a_reference(store: Store, tmp_path: Path) -> None:
    image = {"type": "image", "data": BLOB_OF_NONE, "mimeType": "image/png"}
    (message,) = messages(store, tmp_path, said(1, "user", None, content=[image]))
    assert message.parts[0].data == {"mime": "image/png", "data": BLOB_OF_NONE}


def test_the_complete_output_of_a_tool_is_imported(
    store: Store, tmp_path: Path
) -> None:
    details = {"meta": {"truncation": {"artifactId": "0"}}}
    log = write(tmp_path / HOME, header(1), U1, result(2, "c1", "cut", details=details))
    log.with_suffix("").mkdir()
    (log.with_suffix("") / "0.bash.log").write_bytes(b"all of it")
    session = taken(store, tmp_path)
    (*_, message) = store.messages(session)
    assert message.parts[-1].data["content"] == b"all of it"


# -- back -----------------------------------------------------------------------------


def written(store: Store) -> list[Record]:
    """Return the records of the only session, as they are exported."""
    (session,) = store.sessions(project=ALL, empty=True)
    return back(store, session)


def given(store: Store, session: Session, form: str) -> tuple[list[Record], list[Loss]]:
    """Return the records that a session is written as, and what is lost."""
    to = exporter(form)
    records, losses = [], []
    for item in to.write([store.export(session, **to.read)], detail="full"):
        if isinstance(item, Document):
            lines = "".join(item.chunks).split("\n")
            records += [json.loads(line) for line in lines if line]
        else:
            losses.append(item)
    return records, losses


def back(store: Store, session: Session, form: str = "oh-my-pi") -> list[Record]:
    """Return the records of a session, without the name it has here."""
    records, losses = given(store, session, form)
    # What a record names beside the log is not in it.
    assert {loss.why for loss in losses} <= {"files beside the log"}
    return [without_keys((MARK,), record) for record in records]


def test_records_that_do_not_fit_are_written_unchanged(
    store: Store, tmp_path: Path
) -> None:
    records = [
        header(1, version=4, later={"x": 1}), header(1), U1,
        {**A2, "parentId": "77"}, {**A2, "id": "", "parentId": "77"},
        {**A2, "id": "", "parentId": U1["id"]}, {**U1, "parentId": None}, bare(U3) | {"parentId": None},
        {"type": "message", "id": "odd", "parentId": None, "message": "a text"},
        said(5, "toolResult", toolCallId=7, content="one text", isError="no"),
        said(6, "user", content=[7, {"no": "type"}]),
        said(7, "user", content=[{"type": "file", "a": 1}, {"type": "strange"}]),
        said(8, "assistant", content=[{"type": "toolCall", "id": 7, "name": "", "arguments": None}]),
        compaction(9, 1, summary="", extra=1), entry(10, "model_change", model="alone"),
        entry(11, "model_usage", purpose="title", provider="p", model="m", usage={"input": 1}),
        said(13, "assistant", content=[{"type": "thinking", "thinking": "", "thinkingSignature": "s", "redacted": True}, {"type": "redactedThinking", "data": "x"}]),
        said(14, ["user"], content=[]), said(15, "assistant"), said(16, "custom"),
        said(17, "fileMention"), said(18, "fileMention", files=[{"filename": "a"}, {"path": "b\0", "content": 7}]),
        said(19, "fileMention", files=[{"path": "b\0", "content": "c"}]), said(20, "bashExecution", command=7),
        said(21, "system", content=None, sections={}), said(22, "user", content=[{"type": "text", "text": "t", "plain": True, "added": 1}]),
        said(23, "user", content=[{"type": "image", "mimeType": None, "data": PNG}, {"type": "image", "mimeType": "image/png"}, {"type": "x", "url": "u"}]),
        {"type": "message", "id": "bare", "parentId": None}, {**asked(24, "24", 1), "id": "~own"}, {**asked(25, "25"), "parentId": "~own"},
        said(12, "user", content=[{"type": "image", "data": "not base64!", "mimeType": "image/png"}]),
    ]  # fmt: skip
    write(tmp_path / HOME, *records)
    taken(store, tmp_path)
    assert written(store) == records


def test_a_log_for_pi_begins_with_its_header_and_names_the_session_at_its_end(
    store: Store, tmp_path: Path
) -> None:
    slot = {"type": "title", "v": 1, "title": "Tea", "updatedAt": moment(1), "pad": ""}
    write(tmp_path / HOME, slot, header(1), U1, A2)
    session = taken(store, tmp_path)
    head, *_, answer, last = back(store, session, "pi")
    assert head == header(1)
    assert (last["type"], last["name"], last["parentId"]) == (
        "session_info",
        "Tea",
        answer["id"],
    )
    assert back(store, session) == [slot, header(1), U1, A2]


def test_a_session_of_another_program_continues_from_its_leaf_in_pi(
    store: Store, tmp_path: Path
) -> None:
    session = store.create_session(directory="/home/ada/tea")
    first = store.append(session, user("1"))
    calls = assistant(text("2"), tool("ls", {"path": "."}, call_id="c", output="a.py"))
    counts = {"input": 1, "output": 2, "reasoning": 3}
    answer = store.append(session, calls, cost=0.5, tokens=counts)
    store.set_leaf(session, first)
    store.append(session, assistant("a dead end"))
    store.set_leaf(session, answer)
    written = back(store, store.session(session.id), "pi")

    write(tmp_path / HOME, *written)
    with new_store() as other:
        came = taken(other, tmp_path)
        shown = [(m.role, m.text) for m in other.messages(came) if m.role != "event"]
        (call,) = (p for m in other.messages(came) for p in m.parts if p.type == "tool")
        tokens = other.session(came.id).tokens
    assert (tokens.output, tokens.reasoning) == (2, 3)
    assert shown == [("user", "1"), ("assistant", "2"), ("tool", "")]
    assert (call.tool, call.input, call.text) == ("ls", {"path": "."}, "a.py")


@pytest.mark.parametrize(
    "change",
    [
        event("thinking_level_change", level="high"),
        event("thinking_level_change", text("high")),
    ],
)
def test_a_change_of_the_level_elsewhere_is_one_in_pi(
    change: MessageDraft, store: Store, tmp_path: Path
) -> None:
    session = store.create_session(directory="/home/ada/tea", title="Tea")
    store.append(session, user("1"))
    changed = store.append(session, change)
    store.append(session, user("2"))
    records, losses = given(store, store.session(session.id), "pi")
    level = records[2]
    assert (level["type"], level["id"]) == ("thinking_level_change", changed.id)
    assert level["thinkingLevel"] == "high"
    assert not [loss for loss in losses if loss.field in ("kind", "data")]

    write(tmp_path / HOME, *records)
    with new_store() as other:
        assert other.context(taken(other, tmp_path)).thinking == "high"


def test_a_compaction_that_keeps_nothing_names_itself(
    store: Store, tmp_path: Path
) -> None:
    session = store.create_session(directory="/home/ada/tea", title="Tea")
    store.append(session, user("1"))
    cut = store.append(session, event("compaction", text("S")))
    store.append(session, user("2"))
    records = back(store, store.session(session.id), "pi")
    (compacted,) = (of for of in records if of["type"] == "compaction")
    assert compacted["firstKeptEntryId"] == compacted["id"] == cut.id

    write(tmp_path / HOME, *records)
    with new_store() as other:
        found = other.context(taken(other, tmp_path))
        assert (texts(found.messages), found.summary) == (["2"], "S")
        assert found.problems == ()


def test_an_edit_of_the_context_is_one_in_a_fork_too(
    store: Store, tmp_path: Path
) -> None:
    edit = entry(3, "context_edit", targetId="00000001", replacement={"content": "x"})
    omit = entry(4, "context_edit", targetId="00000002", replacement=None)
    write(tmp_path / HOME, header(1), U1, A2, edit, omit, asked(5, "5"))
    fork = store.fork(taken(store, tmp_path))
    records = back(store, store.session(fork.id), "pi")
    write(tmp_path / "other" / HOME, *records)
    with new_store() as other:
        found = other.context(taken(other, tmp_path / "other"))
        assert texts(found.messages) == ["x", "5"]


@pytest.mark.parametrize(
    ("is_first", "is_again"), [(False, False), (True, False), (False, True)]
)
def test_a_fork_that_was_made_here_has_the_records_of_its_parent(
    is_first: bool, is_again: bool, store: Store, tmp_path: Path
) -> None:
    records = [
        said(1, "system", None, content="", sections={"preamble": "Be brief"}), asked(2, "2"),
        answered(3, {"type": "thinking", "thinking": "Hm", "thinkingSignature": "s"}, call("c1")),
        result(4, "c1", "Monday"), entry(5, "custom", customType="x", data={"a": 1}),
        compaction(6, 4), entry(7, "label", targetId="00000002", label="here"),
    ]  # fmt: skip
    head = header(1)
    if is_first:
        head, records = old_header(), [*map(bare, records)]
        del records[5]["firstKeptEntryId"]
        records[5]["firstKeptEntryIndex"] = 4
    write(tmp_path / HOME, head, *records)
    fork = store.fork(taken(store, tmp_path), title="Other")
    if is_again:
        fork = store.fork(fork, title="Other")
    store.append(fork, user("more"))
    found, losses = given(store, store.session(fork.id), "pi")
    copied, (more, name) = found[1:8], found[8:]
    assert not losses
    assert found[0]["id"] != head["id"]
    assert (more["parentId"], name["name"]) == (copied[-1]["id"], "Other")
    assert name["parentId"] == more["id"]
    if is_first:
        # The records of version 1 get links, as a program would give them.
        ids = [record["id"] for record in copied]
        assert [record["parentId"] for record in copied] == [None, *ids[:-1]]
        assert copied[5].pop("firstKeptEntryId") == ids[3]
        copied = [*map(bare, copied)]
    assert copied == records


def test_labels_are_records_after_the_leaf(store: Store, tmp_path: Path) -> None:
    session = store.create_session(directory="/home/ada/tea", title="Tea")
    first = store.append(session, user("1"))
    last = store.append(session, user("2"))
    for message, name in ((first, "begin"), (last, "other"), (last, "end")):
        store.label(session, message, name)
    records, losses = given(store, store.session(session.id), "pi")
    *_, one, two, title = records
    assert [(of["targetId"], of["label"]) for of in (one, two)] == [(first.id, "begin"), (last.id, "other")]  # fmt: skip
    assert (one["parentId"], two["parentId"], title["parentId"]) == (last.id, one["id"], two["id"])  # fmt: skip
    assert [loss.why for loss in losses] == ["label end"]

    write(tmp_path / HOME, *records)
    with new_store() as other:
        came = taken(other, tmp_path)
        assert texts(other.context(came).messages) == ["1", "2"]
        assert {of.label for of in other.labels(came)} == {"begin", "other"}
    (known,) = read_into(store, tmp_path)
    assert isinstance(known, Imported)
    assert (known.outcome, known.id) == ("unchanged", session.id)


def test_each_result_of_a_message_is_a_record(store: Store) -> None:
    session = store.create_session(directory="/home/ada/tea")
    calls = [tool("ls", {}, call_id=name) for name in "ab"]
    store.append(session, assistant(*calls))
    results = [tool_result(name, f"of {name}") for name in "ab"]
    said_too = text("and a text")
    store.append(session, MessageDraft("tool", (*results, said_too)))
    store.append(session, user("Thanks"))
    (_, _, *found, last, _), losses = given(store, store.session(session.id), "pi")
    shown = [
        (
            of["message"]["toolCallId"],
            [block["text"] for block in of["message"]["content"]],
        )
        for of in found
    ]
    assert shown == [("a", ["of a", "and a text"]), ("b", ["of b"])]
    assert [of["message"]["toolName"] for of in found] == ["ls", "ls"]
    assert (found[1]["parentId"], last["parentId"]) == (found[0]["id"], found[1]["id"])
    assert losses == []


@pytest.mark.parametrize("is_fork", [False, True])
def test_a_result_that_was_added_here_as_a_record_is_written_once(
    is_fork: bool, store: Store, tmp_path: Path
) -> None:
    write(tmp_path / HOME, header(1), U1, A2)
    session = store.session(taken(store, tmp_path))
    session = store.session(store.fork(session).id) if is_fork else session
    calls = [tool("ls", {}, call_id=name) for name in "abc"]
    store.append(session, assistant(*calls[:2], tool("cat", {}, call_id="d", output="of d")))  # fmt: skip
    store.append(session, event("thinking_level_change", level="high"))
    for name in "ab":
        store.append(session, MessageDraft("tool", (tool_result(name, f"of {name}"),)))
    store.append(session, assistant("Done"))

    found = [of["message"] for of in back(store, store.session(session.id), "pi") if of["type"] == "message"]  # fmt: skip
    results = [(of["toolCallId"], of["toolName"]) for of in found if of["role"] == "toolResult"]  # fmt: skip
    assert results == [("d", "cat"), ("a", "ls"), ("b", "ls")]


def test_the_data_of_another_program_is_not_in_a_block(store: Store) -> None:
    session = store.create_session(directory="/home/ada/tea", title="Tea")
    odd = {"block": {"type": "input_text"}, "type": "x", "added": 1, "absent": True}
    image = file(content=b"\x89PNG", mime="image/png", block={"type": "input_image"})
    store.append(
        session, MessageDraft("user", (PartDraft("text", "1", data=odd), image))
    )
    (_, record, _), losses = given(store, store.session(session.id), "pi")
    content, picture = record["message"]["content"]
    assert content == {"type": "text", "text": "1"}
    assert {(loss.of, loss.field) for loss in losses} == {
        ("user/text", "data"),
        ("user/file", "data"),
    }
    assert (picture["type"], picture["mimeType"]) == ("image", "image/png")


def test_a_label_that_was_given_here_follows_the_records_of_the_log(
    store: Store, tmp_path: Path
) -> None:
    old = entry(3, "label", targetId="00000001", label="old")
    write(tmp_path / HOME, header(1), U1, A2, old)
    session = taken(store, tmp_path)
    assert back(store, session, "pi") == [header(1), U1, A2, old]
    store.label(session, 2, "new")
    *log, added = back(store, store.session(session.id), "pi")
    assert log == [header(1), U1, A2, old]
    assert (added["type"], added["targetId"], added["label"], added["parentId"]) == (
        "label", "00000002", "new", "00000003",
    )  # fmt: skip


def test_a_title_that_was_given_here_follows_the_records_of_the_log(
    store: Store, tmp_path: Path
) -> None:
    slot = {"type": "title", "v": 1, "title": "Tea", "updatedAt": moment(1), "pad": ""}
    write(tmp_path / HOME, slot, header(1), U1, A2)
    session = taken(store, tmp_path)
    store.set_title(session, "Coffee")
    renamed = store.session(session.id)

    for form, log in (("pi", [header(1), U1, A2]), ("oh-my-pi", [slot, header(1), U1, A2])):  # fmt: skip
        *kept, last = back(store, renamed, form)
        assert kept == log
        assert (last["type"], last["name"], last["parentId"]) == ("session_info", "Coffee", "00000002")  # fmt: skip


def test_a_record_that_moves_the_leaf_keeps_the_name_of_the_session(
    store: Store, tmp_path: Path
) -> None:
    """An empty name would clear it."""
    named = entry(2, "session_info", name="Tea")
    write(tmp_path / HOME, header(1), U1, named, asked(3, "3"))
    session = taken(store, tmp_path)
    store.set_leaf(session, 2)
    *log, last = back(store, store.session(session.id), "pi")
    assert log == [header(1), U1, named, asked(3, "3")]
    assert (last["name"], last["parentId"]) == ("Tea", "00000002")


def test_lists_that_were_made_here_have_no_place_in_a_log(
    store: Store, tmp_path: Path
) -> None:
    write(tmp_path / HOME, header(1), U1)
    session = taken(store, tmp_path)
    store.set_todos(session, ["Brew"])
    store.set_diffs(session, [FileDiff("tea.py")])

    records, losses = given(store, store.session(session.id), "pi")
    assert records == [header(1), U1]
    assert [loss.why for loss in losses] == [
        "its todo list",
        "the diffs of its files",
    ]


def test_a_log_of_a_sub_agent_is_written_where_it_was(
    store: Store, tmp_path: Path
) -> None:
    log = write(tmp_path / HOME, header(1), U1)
    for number, name in ((2, "ConeSix.jsonl"), (3, "A task.jsonl")):
        write(log.with_suffix(""), header(number), asked(1, "Look", None), name=name)
    read_into(store, tmp_path)

    found = store.sessions(project=ALL, subagents=True)
    family = sorted(found, key=lambda session: session.source_id or "")
    to = exporter("oh-my-pi")
    exports = [store.export(session, **to.read) for session in family]
    names = [of.name for of in to.write(exports, detail="full") if isinstance(of, Document)]  # fmt: skip
    assert names == [
        log.name,
        f"{log.stem}/ConeSix.jsonl",
        f"{log.stem}/A%20task.jsonl",
    ]
    # Without its parent, or beside another one of its name, a log has one of its own.
    parent, child, _ = exports
    twin = replace(child, session=replace(child.session, id="twin", source_id="twin"))
    for given_ in ([child], [parent, child, twin]):
        *_, last = (of.name for of in to.write(given_, detail="full") if isinstance(of, Document))  # fmt: skip
        assert last.endswith(f"_{given_[-1].session.source_id}.jsonl")
        assert "/" not in last


@pytest.mark.parametrize(
    ("how", "data", "expected"),
    [
        ({"output": "a.py"}, {}, {"output": "a.py", "exitCode": 0, "cancelled": False}),
        ({"error": "no"}, {"exit": 7}, {"output": "no", "exitCode": 7}),
        ({"error": "no"}, {}, {"exitCode": 1, "cancelled": False}),
        ({"error": "", "outcome": "interrupted"}, {}, {"cancelled": True}),
        ({}, {}, {"output": "", "cancelled": False}),
    ],
)
def test_a_command_of_the_user_elsewhere_is_one_in_pi(
    store: Store, how: Record, data: Record, expected: Record
) -> None:
    session = store.create_session(directory="/home/ada/tea")
    ran = tool("shell", {"command": "ls"}, call_id="c", **how)
    store.append(session, event("shell", ran, **data))
    records, losses = given(store, store.session(session.id), "pi")
    said = records[1]["message"]
    assert (said["role"], said["command"]) == ("bashExecution", "ls")
    assert {loss.field for loss in losses} <= {"kind", "data", "tool", "call_id"}
    assert said.items() >= expected.items()
    assert ("exitCode" in said) == ("exitCode" in expected)
    assert "excludeFromContext" not in said


def test_a_command_without_one_is_lost_and_a_hidden_one_stays_hidden(
    store: Store,
) -> None:
    session = store.create_session(directory="/home/ada/tea")
    store.append(session, event("shell", tool("shell", {"command": 7})))
    store.append(session, event("custom", tool("bash", {"command": "ls"}, output="")))
    records, losses = given(store, store.session(session.id), "pi")
    lost = [(loss.of, loss.field) for loss in losses]
    assert lost == [
        ("event:shell", "kind"),
        ("event:shell/tool", "tool"),
        ("event:shell/tool", ""),
    ]
    assert [of.get("customType") for of in records[1:]] == ["shell", None]
    assert records[2]["message"]["excludeFromContext"] is True


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pi-0.87.1", "oh-my-pi-18.2.3"])
def test_logs_of_the_real_programs_are_written_unchanged(
    name: str, real_store: Callable[[str], Path], store: Store
) -> None:
    sources = [
        item for found in find(real_store(name) / "data") for item in found.read()
    ]
    count = 0
    for source in sources:
        if isinstance(source, SourceHistory):
            continue
        assert not isinstance(source, Problem)
        (result_,) = store.ingest([source])
        assert isinstance(result_, Imported)
        log = Path(source.path).read_text(encoding="utf-8")
        records = [json.loads(line) for line in log.split("\n") if line]
        assert back(store, store.session(result_.id)) == records
        count += len(records)
    assert count == {"pi-0.87.1": 121, "oh-my-pi-18.2.3": 138}[name]


@pytest.mark.parametrize("form", ["pi", "oh-my-pi", "xcsh"])
def test_a_log_for_a_descendant_comes_back_as_the_session_that_it_was_written_from(
    form: str, store: Store, tmp_path: Path
) -> None:
    write(tmp_path / ".omp/agent/sessions/-tea/one.jsonl", header(1), U1)
    session = taken(store, tmp_path)
    assert session.source == "oh-my-pi"

    records, _ = given(store, session, form)
    write(tmp_path / "outside" / "one.jsonl", *records)
    read_into(store, tmp_path / "outside")
    assert [m.id for m in store.messages(session)] == [U1["id"]]

    answer = {**U1, "id": "0000000f", "parentId": U1["id"]}
    write(tmp_path / "outside" / "one.jsonl", *records, answer)
    read_into(store, tmp_path / "outside")
    assert store.sessions(project=ALL, empty=True).items == (store.session(session.id),)
    assert [m.id for m in store.messages(session)] == [U1["id"], "0000000f"]
