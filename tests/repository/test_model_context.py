"""`context()`: the messages to send to a model, with no content rewritten."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from backends import Backend, Place

from sessiondb import (
    ContextSource,
    PartDraft,
    Store,
    assistant,
    context_source,
    event,
    file,
    part,
    system,
    text,
    tool,
    tool_result,
    user,
)
from sessiondb.errors import InvalidInputError
from sessiondb.formats import find, jsonl
from sessiondb.formats.redact import Redaction
from sessiondb.model import MessageDraft, ModelName, Problem


def result(*results: tuple[str, str]) -> MessageDraft:
    """Results that are records of their own."""
    return MessageDraft(
        "tool", tuple(tool_result(call, output) for call, output in results)
    )


def talk(store: Store, *messages: MessageDraft) -> str:
    session = store.create_session()
    with store.effects() as fx:
        for message in messages:
            fx.append(session, message)
    return session.id


def sent(store: Store, session: str, **how: Any) -> list[str]:
    return [item.text for item in store.context(session, **how).messages]


def test_messages_are_sent_to_the_model_and_events_without_content_are_not(
    store: Store,
) -> None:
    session = talk(
        store, user("ask"), event("session_init"), event("usage"), event("label"),
        event("something unknown"), event("custom", "not for the model"),
        event("custom_message", "for the model"), event("branch_summary", "what the branch did"),
        event("branch_summary"), assistant("answer"), event("failed"),
    )  # fmt: skip
    assert sent(store, session) == [
        "ask",
        "for the model",
        "what the branch did",
        "answer",
    ]
    assert store.context(session).problems == ()


def test_states_are_the_last_of_their_name(store: Store) -> None:
    session = talk(
        store, event("model_change", model_id="one"), event("thinking_level_change", level="low"),
        event("mode_change", mode="plan"), event("rules", allow=["bash"]), user("go"),
        event("thinking_level_change", level="high"), event("mode_change", mode="build"),
        event("rules", allow=[]),
    )  # fmt: skip
    store.append(session, assistant("done"), model="two")
    context = store.context(session)
    assert context.models == {"default": ModelName("two")}
    assert (context.thinking, context.mode) == ("high", "build")
    before = store.context(session, at=5)
    assert before.models == {"default": ModelName("one")}
    assert (before.thinking, before.mode) == ("low", "plan")


def test_a_model_is_kept_for_each_role(store: Store) -> None:
    session = talk(
        store, event("model_change", model_id="large", provider_id="p"),
        event("model_change", model_id="small", role="title"), user("go"),
    )  # fmt: skip
    store.append(session, event("model_change"), model="larger", provider="q")
    store.append(session, event("model_change", role="title"), model="tiny")
    assert {role: str(model) for role, model in store.context(session).models.items()} == {
        "default": "q/larger", "title": "tiny",
    }  # fmt: skip
    store.append(session, assistant("done"), model="answered", provider="p")
    assert store.context(session).models == {
        "default": ModelName("answered", "p"), "title": ModelName("tiny"),
    }  # fmt: skip
    assert store.context(talk(store, user("x"))).models == {}


def test_rules_add_up_over_the_path_each_once_in_order(store: Store) -> None:
    session = talk(
        store, event("rules", rules=["a", {"allow": ["bash"]}]), event("rules", rules=["b", "a"]),
        event("rules", allow=["bash"]), event("reset"), event("rules", rules=[]), user("go"),
    )  # fmt: skip
    assert store.context(session).rules == ("a", {"allow": ["bash"]}, "b")
    assert store.context(session, at=1).rules == ("a", {"allow": ["bash"]})
    assert store.context(talk(store, user("x"))).rules == ()


@pytest.mark.parametrize("repair", ["synthesise", "strip"])
def test_thousands_of_rules_and_of_calls_without_a_result_take_linear_time(
    store: Store, repair: str
) -> None:
    rules = event("rules", rules=[{"allow": number} for number in range(20_000)])
    calls = [tool("bash", call_id=f"c{number}") for number in range(4_000)]
    session = talk(store, rules, assistant("go", *calls))
    began = time.process_time()
    context = store.context(session, repair=repair)
    assert time.process_time() - began < 1.5
    assert (len(context.rules), len(context.problems)) == (20_000, 4_000)


def test_the_last_session_init_is_a_state(store: Store) -> None:
    session = talk(
        store, event("session_init", task="first", tools=["a"]), user("go"),
        event("session_init", task="second"),
    )  # fmt: skip
    assert store.context(session).session_init == {"task": "second"}
    assert store.context(session, at=2).session_init == {
        "task": "first",
        "tools": ["a"],
    }
    assert store.context(talk(store, user("x"))).session_init == {}


def test_a_result_is_sent_once_with_its_call(store: Store) -> None:
    calls = tool("a", {}, call_id="1"), tool("b", {}, call_id="2")
    with_file = MessageDraft("tool", (tool_result("2", "second"), file("x.png")))
    session = talk(
        store, user("ask"), assistant(*calls), result(("1", "first")), with_file
    )
    store.append(session, result(("1", "first, again")))
    for repair in ("synthesise", "strip", "drop", "none"):
        context = store.context(session, repair=repair)
        _, asked, node = context.messages
        assert [item.text for item in asked.parts] == ["first, again", "second"]
        assert [item.type for item in node.parts] == ["file"]
        assert context.problems == ()
    assert len(store.messages(session)) == 5, "nothing is rewritten for it"


def test_a_reset_cuts_everything_before_it(store: Store) -> None:
    session = talk(store, user("old"), assistant("older"), event("reset"), user("new"))
    assert sent(store, session) == ["new"]
    assert sent(store, session, at=2) == ["old", "older"]


def test_a_compaction_replaces_the_messages_it_summarises(store: Store) -> None:
    session = talk(
        store, user("a"), assistant("b"), event("compaction", "so far"), user("c")
    )
    context = store.context(session)
    assert ([item.text for item in context.messages], context.summary) == (
        ["c"],
        "so far",
    )
    store.append(session, event("compaction", "later", first_kept_id="none such"))
    store.append(session, user("d"))
    context = store.context(session)
    assert ([item.text for item in context.messages], context.summary) == (
        ["d"],
        "later",
    )
    assert context.problems != ()


def test_a_compaction_keeps_the_tail_it_names_also_when_that_begins_with_an_event(
    store: Store,
) -> None:
    session = talk(store, user("a"), assistant("b"))
    first = store.append(session, event("mode_change", mode="plan"))
    store.append(session, user("c"))
    store.append(session, event("compaction", "so far", first_kept_id=first.id))
    store.append(session, user("d"))
    context = store.context(session)
    assert ([item.text for item in context.messages], context.summary) == (
        ["c", "d"],
        "so far",
    )
    assert context.problems == ()


def test_a_compaction_that_was_asked_for_keeps_the_tail_that_was_asked_for(
    store: Store,
) -> None:
    session = talk(store, user("a"), assistant("b"))
    tail = store.append(session, user("c"))
    store.append(
        session, MessageDraft("user", (part("compaction", tail_start_id=tail.id),))
    )
    store.append(
        session, MessageDraft("assistant", (text("so far"),), kind="compaction")
    )
    store.append(session, user("d"))
    context = store.context(session)
    assert ([item.text for item in context.messages], context.summary) == (
        ["c", "d"],
        "so far",
    )


def test_a_compaction_that_failed_or_is_not_over_cuts_nothing(store: Store) -> None:
    session = talk(store, user("a"))
    summary = MessageDraft("assistant", (text("half"),), kind="compaction")
    store.append(session, summary, error={"name": "Overloaded"}, finish="error")
    store.append(session, summary, open=True)
    assert sent(store, session) == ["a"]
    assert store.context(session).summary is None


def test_system_texts_add_up_until_a_new_epoch_begins(store: Store) -> None:
    session = talk(store, system("be kind"), user("a"), system("be brief"))
    assert store.context(session).system == ("be kind", "be brief")
    epoch = event("context", text("AGENTS.md", origin="file"), text("date"))
    store.append(session, epoch)
    assert store.context(session).system == ("AGENTS.md", "date")
    store.append(session, system("and polite"))
    assert store.context(session).system == ("AGENTS.md", "date", "and polite")


def test_sections_of_the_system_text_are_those_that_were_given_last(
    store: Store,
) -> None:
    def section(name: str, said: str | None) -> PartDraft:
        return PartDraft("text", said, data={"section": name})

    first = [section("a", "old"), section("b", "bash")]
    session = talk(store, system("be kind"), system(*first), user("a"))
    store.append(session, system(section("a", "new"), section("b", None)))
    assert store.context(session).system == ("be kind", "new")
    store.append(session, event("context", "Use tabs"))
    assert store.context(session).system == ("Use tabs",)


@pytest.mark.parametrize("finish", ["error", "cancelled", "stop"])
def test_an_answer_that_is_unsent_is_left_out_with_its_results(
    store: Store, finish: str
) -> None:
    session = talk(store, user("a"))
    failed = MessageDraft("assistant", (text("b"), tool("bash", call_id="c1")), data={"unsent": True})  # fmt: skip
    store.append(session, failed, finish=finish, model="one")
    store.append(session, result(("c1", "c")))
    store.append(session, user("d"))
    is_left_out = finish != "stop"
    assert sent(store, session) == (["a", "d"] if is_left_out else ["a", "b", "d"])
    context = store.context(session, repair="none")
    assert context.models["default"].model_id == "one"
    assert not context.problems


def test_sources_of_earlier_epochs_are_left_out(store: Store) -> None:
    old, rules = (
        context_source("file", "old.md"),
        context_source("file", "AGENTS.md", text="Tabs"),
    )
    skill = context_source("skill", title="tea", truncated=True)
    session = talk(
        store,
        event("context", old),
        user("a", skill),
        event("context", "Use tabs", rules),
    )
    assert store.context(session).system == ("Use tabs",)
    assert store.context(session).sources == (
        ContextSource("file", "AGENTS.md", text="Tabs", title="AGENTS.md"),
    )
    store.append(session, event("custom_message", "Make tea", skill))
    added = ContextSource("skill", truncated=True, title="tea")
    assert store.context(session).sources[1:] == (added,)
    before = [store.context(session, at=seq).sources for seq in (1, 2)]
    assert [[source.title for source in sources] for sources in before] == [
        ["old.md"],
        ["old.md", "tea"],
    ]


def test_the_text_of_sources_is_the_system_text_if_there_is_no_other(
    store: Store,
) -> None:
    given = [context_source("file", f"{n}.md", text=f"{n}") for n in range(3)]
    session = talk(store, event("context", *given))
    assert store.context(session).system == ("0", "1", "2")


def test_a_source_of_an_unknown_shape_has_no_fields(store: Store) -> None:
    odd = [
        PartDraft("source", input=said)
        for said in ([1], "a", None, {"kind": 5, "x": 1})
    ]
    wrong = PartDraft("source", input={"truncated": "yes", "error": [1], "path": "a"})
    session = talk(store, event("context", *odd, PartDraft("source"), wrong))
    sources = store.context(session).sources
    assert sources == (*[ContextSource()] * 5, ContextSource(path="a", error=[1]))


def take_in(store: Store, path: Place) -> None:
    for found in find(path):
        assert not [of for of in store.ingest(found.read()) if isinstance(of, Problem)]


@pytest.mark.needs("is_file", "a database of a server is not imported")
def test_sources_survive_forks_redaction_and_round_trips(
    store: Store, backend: Backend, tmp_path: Path
) -> None:
    secret = "ghp_" + "a1" * 18
    source = context_source(
        "file",
        "AGENTS.md",
        hash="ab",
        error=f"use {secret}",
        text=f"a {secret}",
        more=1,
    )
    session = talk(store, event("context", source), user("a"))
    sources = store.context(session).sources
    assert store.context(store.fork(session)).sources == sources

    lines = [*jsonl.session_lines(store.export(session, **jsonl.READ))]
    (tmp_path / "log.jsonl").write_text("\n".join(lines))
    clean = Redaction().redact(store.export(session))
    assert secret not in str([message.parts for message in clean.messages])
    place = backend.fresh()
    with Store.open(place) as own:
        take_in(own, tmp_path / "log.jsonl")
        assert own.context(session).sources == sources
    with Store.open(":memory:") as other:
        take_in(other, place)
        assert other.context(session).sources == sources


def test_only_the_live_path_counts(store: Store) -> None:
    session = talk(store, user("a"), assistant("b"), event("reset"), user("c"))
    store.append(session, user("d"), after=2)
    assert sent(store, session) == ["a", "b", "d"]
    assert sent(store, session, at=4) == ["c"]


@pytest.fixture
def dangling(store: Store) -> str:
    """One message with a call that ended and two that never did, and its result node."""
    calls = (tool("a", {}, call_id="1"), tool("b", {}, call_id="2"), tool("c", {}))
    return talk(
        store, user("ask"), assistant("trying", *calls), result(("1", "fine")),
        assistant(tool("d", {}, call_id="4")), user("go on"),
    )  # fmt: skip


def test_a_call_without_result_gets_one_that_says_so(
    store: Store, dangling: str
) -> None:
    context = store.context(dangling)
    assert len(context.problems) == 3
    _, trying, alone, _ = context.messages
    states = [
        (item.status, item.outcome) for item in trying.parts if item.type == "tool"
    ]
    assert states == [
        ("completed", None),
        ("error", "interrupted"),
        ("error", "interrupted"),
    ]
    assert all(item.text for item in (*trying.parts, *alone.parts))
    assert trying.parts[1].text == "fine"
    stored = store.messages(dangling)
    assert [item.status for item in stored[1].parts] == [
        None,
        "completed",
        "pending",
        "pending",
    ]


def test_a_call_without_result_can_be_left_out(store: Store, dangling: str) -> None:
    context = store.context(dangling, repair="strip")
    shapes = [
        [(i.type, i.call_id) for i in message.parts] for message in context.messages
    ]
    assert shapes == [
        [("text", None)],
        [("text", None), ("tool", "1")],
        [("text", None)],
    ]


def test_a_message_with_such_a_call_can_be_left_out_with_the_results_it_had(
    store: Store, dangling: str
) -> None:
    context = store.context(dangling, repair="drop")
    assert [item.text for item in context.messages] == ["ask", "go on"]


def test_nothing_is_repaired_if_repair_is_none(store: Store, dangling: str) -> None:
    context = store.context(dangling, repair="none")
    # All but the record of the result that its call shows.
    assert list(context.messages) == [
        m for m in store.messages(dangling) if m.role != "tool"
    ]
    assert len(context.problems) == 3
    with pytest.raises(InvalidInputError):
        store.context(dangling, repair="guess")


def test_a_result_whose_call_was_cut_away_is_not_sent(store: Store) -> None:
    session = talk(store, user("a"), assistant(tool("a", {}, call_id="1")))
    node = store.append(session, result(("1", "fine")))
    store.append(session, event("compaction", "so far", first_kept_id=node.id))
    store.append(session, user("b"))
    for repair in ("synthesise", "strip", "drop"):
        assert sent(store, session, repair=repair) == ["b"]
    assert len(store.context(session, repair="none").messages) == 2
