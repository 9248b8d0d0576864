"""The rollouts of Codex: what is in them twice, what they continue, and how they break."""

from __future__ import annotations

import json
import random
import re
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from imported import all_taken, by_id
from opencode_store import everything, tree_store
from samples import new_store, read_into
from samples_codex import (
    DAY,
    FAKE,
    PNG,
    Record,
    answered,
    asked,
    base,
    call,
    counts,
    event,
    forked,
    history,
    home_of_2025,
    home_of_2026,
    index,
    item,
    labelled,
    line,
    log,
    meta,
    name_of,
    numbered,
    oldest_home,
    ran,
    result,
    said,
    state,
    thread,
    totals,
    turn,
    typed,
    used,
    write,
)

from sessiondb import ALL, Store, Tokens
from sessiondb.errors import SourceError
from sessiondb.formats import default_locations, exporter, find
from sessiondb.formats.codex.logs import look_at
from sessiondb.formats.kit.fields import without_keys
from sessiondb.formats.kit.naming import MARK
from sessiondb.formats.protocol import Written
from sessiondb.model import Document, Imported, Message, Problem, Session, SourceSession
from sessiondb.model.drafting import assistant, text, tool, user
from sessiondb.model.drafting import event as event_draft

HOME = Path(".codex")


def messages(store: Store, folder: Path, *records: Record) -> list[Message]:
    """Return the messages of a session with these records after its header."""
    write(folder / HOME, 1, meta(), *records)
    return all_of(store, all_taken(store, folder)[thread(1)])


def all_of(store: Store, session: Session) -> list[Message]:
    return list(store.messages(session, branches=True))


def spoken(store: Store, session: Session, role: str = "user") -> list[str]:
    """Return what a role said on the live path."""
    return [m.text for m in store.messages(session) if m.role == role]


# -- twice in a rollout ------------------------------------------------------------


def test_a_turn_that_is_recorded_twice_is_read_once(
    store: Store, tmp_path: Path
) -> None:
    found = messages(
        store, tmp_path, *typed(1, "Tea?"), said(2, "assistant", "Yes"),
        event(2, "agent_message", message="Yes"), event(2, "agent_reasoning", text="Hm"),
    )  # fmt: skip
    assert [(m.role, m.kind, m.text) for m in found] == [
        ("user", None, "Tea?"), ("event", "user_message", ""), ("assistant", None, "Yes"),
        ("event", "agent_message", ""), ("event", "agent_reasoning", ""),
    ]  # fmt: skip
    assert found[1].data["payload"]["message"] == "Tea?"


def test_text_that_codex_adds_to_a_prompt_is_synthetic(
    store: Store, tmp_path: Path
) -> None:
    kinds = ("environments.environment_context", "cwd"), ("user.text", "Tea?")
    added, mixed = messages(
        store, tmp_path, labelled(1, "user", kinds[0], name="m1"), labelled(2, "user", *kinds, name="m2"),
    )  # fmt: skip
    assert (added.role, added.kind) == ("event", "custom_message")
    assert [p.synthetic for p in (*added.parts, *mixed.parts)] == [True, True, False]  # fmt: skip
    assert mixed.role == "user"


@pytest.mark.parametrize("unsaid", ["content_item_kinds", "content_item_metadata"])
def test_either_label_of_a_block_says_who_typed_it(
    unsaid: str, store: Store, tmp_path: Path
) -> None:
    kinds = ("environments.environment_context", "cwd"), ("user.text", "Tea?")
    prompt = labelled(1, "user", *kinds, name="m1")
    del prompt["payload"]["internal_chat_message_metadata_passthrough"][unsaid]
    (message,) = messages(store, tmp_path, prompt)
    assert message.role == "user"
    assert [p.synthetic for p in message.parts] == [True, False]


def test_an_answer_has_the_model_of_its_turn_and_the_provider_of_the_session(
    store: Store, tmp_path: Path
) -> None:
    found = messages(
        store, tmp_path, *typed(1, "Tea?"), turn(2), said(3, "assistant", "Yes"),
        call(4, "c1"), turn(5, "small"), said(6, "assistant", "Done"),
    )  # fmt: skip
    answers = [m for m in found if m.role == "assistant"]
    assert [(m.model_id, m.provider_id) for m in answers] == [
        ("large", FAKE), ("large", FAKE), ("small", FAKE),
    ]  # fmt: skip


def test_the_marks_around_a_picture_are_synthetic(store: Store, tmp_path: Path) -> None:
    texts = (
        '<image name=[Image #1] path="/home/ada/tea.png">',
        "</image>",
        "What is it?",
    )
    prompt = labelled(1, "user", *(("user.text", said) for said in texts), name="m1")
    alone = labelled(2, "user", ("user.text", "</image>"), name="m2")
    payload = prompt["payload"]
    picture = {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"}
    payload["content"].insert(1, picture)
    about = payload["internal_chat_message_metadata_passthrough"]
    for known in about.values():
        known.insert(1, known[0])

    found, other = messages(store, tmp_path, prompt, alone)
    assert [p.synthetic for p in found.parts] == [True, False, True, False]
    assert other.role == "user"
    (session,) = by_id(store).values()
    assert session.title == "What is it?"
    ((*_, written, _),) = back(store, session).values()
    assert written == prompt


def test_an_event_names_the_typed_text_if_no_block_does(
    store: Store, tmp_path: Path
) -> None:
    tag = "<environment_context> is what?"
    found = messages(
        store, tmp_path, said(1, "user", "An added text without a mark"), *typed(2, tag),
        said(2, "user", "# Files"), event(2, "user_message", message="# Files", kind="user_instructions"),
        said(3, "user", "one ", "two"), event(3, "user_message", message="one two"),
    )  # fmt: skip
    assert [m.text for m in found if m.role == "user"] == [tag, "one \ntwo"]
    assert found[0].parts[0].synthetic is True


def test_without_any_event_the_beginning_of_a_text_decides(
    store: Store, tmp_path: Path
) -> None:
    found = messages(
        store, tmp_path, said(1, "user", "# AGENTS.md instructions for /home"),
        said(2, "user", "<user_instructions>x"), said(3, "user", "Tea?"),
    )  # fmt: skip
    assert [m.text for m in found if m.role == "user"] == ["Tea?"]


# -- calls ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ended", "output", "outcome"),
    [
        ([], "Process exited with code 0\nOutput:\nExit code: 3", None),
        ([], "Exit code: 3\nOutput:\n", "failed"),
        ([], '{"output":"x","metadata":{"exit_code":2}}', "failed"),
        ([], "aborted by user after 2s", "interrupted"),
        ([], "exec command rejected by user", "denied"),
        ([ran(2, "c1", 1)], "No words of a failure", "failed"),
        ([event(2, "exec_command_end", call_id="c1", exit_code=1)], "x", "failed"),
        ([event(2, "patch_apply_end", call_id="c1", success=False)], "x", "failed"),
        ([event(2, "mcp_tool_call_end", call_id="c1", result={"Err": "x"})], "x", "failed"),
        ([event(2, "item_completed", item={"id": "c1", "status": "declined"})], "x", "denied"),
    ],
)  # fmt: skip
def test_the_outcome_of_a_call_is_that_of_its_event_or_result(
    ended: list[Record], output: str, outcome: str, store: Store, tmp_path: Path
) -> None:
    found = messages(store, tmp_path, call(1, "c1"), *ended, result(3, "c1", output))
    (part,) = found[0].parts
    assert (part.text, part.outcome) == (output, outcome)
    assert part.status == ("error" if outcome else "completed")


def test_arguments_are_json_in_a_string_and_raw_text_in_a_custom_call(
    store: Store, tmp_path: Path
) -> None:
    patch = item(2, "custom_tool_call", call_id="c2", name="apply_patch", input="***")
    shell = item(3, "local_shell_call", call_id="c3", action={"command": ["ls"]})
    found = messages(store, tmp_path, call(1, "c1", "ls"), patch, shell)
    calls = [(m.parts[0].tool, m.parts[0].input) for m in found]
    assert calls == [
        ("exec_command", {"cmd": "ls"}),
        ("apply_patch", "***"),
        ("local_shell", {"command": ["ls"]}),
    ]


def test_a_result_of_blocks_is_one_text_and_its_pictures(
    store: Store, tmp_path: Path
) -> None:
    blocks = [
        {"type": "input_text", "text": "Exit code: 1"},
        {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"},
        {"type": "input_text", "text": "Output:"},
    ]
    asked_for, answer = messages(store, tmp_path, call(1, "c1"), result(2, "c1", blocks))  # fmt: skip
    assert asked_for.parts[0].text == "Exit code: 1\nOutput:"
    assert asked_for.parts[0].outcome == "failed"
    assert answer.parts[1].data["content"].startswith(b"\x89PNG")


def test_a_call_without_a_tool_is_kept(store: Store, tmp_path: Path) -> None:
    nameless = item(1, "function_call", name=["x"], arguments="{}", call_id="c1")
    (found,) = messages(store, tmp_path, nameless)
    assert found.parts[0].type == "custom"
    assert found.data["payload"]["call_id"] == "c1"


# -- usage ----------------------------------------------------------------------------


def tokens(found: list[Message]) -> list[tuple[int | None, ...]]:
    return [
        (m.tokens_input, m.tokens_cache_read, m.tokens_output, m.tokens_reasoning)
        for m in found
        if m.tokens
    ]


def test_each_response_is_counted_once_and_its_counts_are_disjoint(
    store: Store, tmp_path: Path
) -> None:
    found = messages(
        store, tmp_path, turn(1), used(1, "r1", 10, 2, 5, 1), totals(2, 10, 2, 5, 1),
        used(3, "r1", 10, 2, 5, 1), totals(4, 10, 2, 5, 1),
        used(5, "r2", 20, 4, 6, 2, total=(30, 6, 11, 3)), totals(6, 30, 6, 11, 3, last=(20, 4, 6, 2)),
    )  # fmt: skip
    assert tokens(found) == [(8, 2, 4, 1), (16, 4, 4, 2)]
    assert {m.kind for m in found if m.tokens} == {"usage"}
    assert {(m.model_id, m.provider_id) for m in found if m.tokens} == {("large", "fake")}  # fmt: skip


def test_totals_are_never_summed(store: Store, tmp_path: Path) -> None:
    last = (5, 0, 1, 0)
    found = messages(
        store, tmp_path, event(1, "token_count", info=None), totals(1, 10, 2, 5, 1), totals(2, 10, 2, 5, 1),
        totals(3, 30, 6, 11, 3, last=(20, 4, 6, 2)), totals(4, *last),
    )  # fmt: skip
    # The last total begins again: a program that was started again counts from nothing.
    assert tokens(found) == [(8, 2, 4, 1), (16, 4, 4, 2), (5, 0, 1, 0)]


def test_counts_that_contradict_each_other_stay_in_the_record(
    store: Store, tmp_path: Path
) -> None:
    (found,) = messages(store, tmp_path, used(1, "r1", 1, 2, 3, 4))
    assert (found.tokens, found.kind) == (None, "token_usage_record")
    assert found.data["payload"]["usage"] == counts(1, 2, 3, 4)


def test_a_total_that_begins_again_is_that_of_a_new_response(
    store: Store, tmp_path: Path
) -> None:
    found = messages(
        store, tmp_path, totals(1, 10, 2, 5, 1), event(2, "token_count", info=None),
        totals(3, 12, 3, 6, 2), totals(4, 12, 3, 6, 2), totals(5, 30, 4, 9, 2, last=(18, 1, 3, 0)),
    )  # fmt: skip
    assert tokens(found) == [(8, 2, 4, 1), (9, 3, 4, 2), (17, 1, 3, 0)]


# -- forks ----------------------------------------------------------------------------


def test_a_fork_has_the_records_it_refers_to_and_counts_them_once(
    store: Store, tmp_path: Path
) -> None:
    home_of_2026(tmp_path / HOME)
    found = all_taken(store, tmp_path)
    parent, fork = found[thread(1)], found[thread(2)]
    assert spoken(store, fork) == ["How long does tea take?", "And coffee?"]
    assert (fork.relation, fork.parent_id, fork.parent_seq) == ("fork", parent.id, 13)
    own = all_of(store, fork)
    assert [m.id for m in own[:13]] == [m.id for m in all_of(store, parent)[:13]]
    assert tokens([m for m in own if not m.inherited]) == [(9, 0, 2, 0)]


def test_a_fork_of_a_fork_has_the_chain_below_each_cut(
    store: Store, tmp_path: Path
) -> None:
    home = tmp_path / HOME
    write(home, 1, *numbered([meta(), asked(1, "1"), asked(2, "2"), asked(3, "3")]))
    write(home, 2, *numbered([forked(2, 1, 3), asked(4, "4"), asked(5, "5")], 3))
    write(home, 3, *numbered([forked(3, 2, 5), asked(6, "6")], 5))
    # Taken back beyond the fork: its beginning is in the first rollout.
    rewound = meta(4, forked_from_id=thread(2), history_base=base(1, 2))
    write(home, 4, *numbered([rewound, asked(7, "7")], 2))
    found = all_taken(store, tmp_path)
    assert spoken(store, found[thread(3)]) == ["1", "2", "4", "6"]
    assert spoken(store, found[thread(4)]) == ["1", "7"]
    assert found[thread(3)].parent_id == found[thread(2)].id


def test_a_fork_of_a_reverted_session_begins_at_the_message_of_its_parent(
    store: Store, tmp_path: Path
) -> None:
    home = tmp_path / HOME
    write(home, 1, *numbered([meta(), asked(1, "1"), asked(2, "reverted")]))
    head = meta(history_base=base(1, 2), at=10)
    write(home, 1, *numbered([head, asked(11, "2"), asked(12, "3")], 2), segment="b")
    known = {"forked_from_id": thread(1), "history_base": base("b", 4)}
    write(home, 2, *numbered([meta(2, at=20, **known), asked(21, "mine")], 4))

    found = all_taken(store, tmp_path)
    parent, fork = found[thread(1)], found[thread(2)]
    assert spoken(store, fork) == ["1", "2", "mine"]
    cut = next(m.seq for m in all_of(store, parent) if m.text == "2")
    assert fork.parent_seq == cut


def test_a_fork_begins_at_a_message_of_a_parent_that_is_imported_later(
    store: Store, tmp_path: Path
) -> None:
    home = tmp_path / HOME
    write(home, 2, *numbered([forked(2, 1, 4), asked(9, "mine")], 4))
    read_into(store, tmp_path)
    assert by_id(store)[thread(2)].parent_seq is None
    write(home, 1, *numbered([meta(), *(asked(n, str(n)) for n in range(1, 5))]))

    found = all_taken(store, tmp_path)
    assert spoken(store, found[thread(2)]) == ["1", "2", "3", "mine"]
    assert found[thread(2)].parent_seq == 3


def test_a_fork_without_its_parent_has_its_own_turns(
    store: Store, tmp_path: Path
) -> None:
    own = [forked(2, 1, 3), asked(4, "4"), used(4, "r", 9, 1, 2, 0, total=(99, 1, 9, 0))]  # fmt: skip
    write(tmp_path / HOME, 2, *numbered(own, 3))
    problem, result_ = sorted(read_into(store, tmp_path), key=lambda x: isinstance(x, Imported))  # fmt: skip
    assert isinstance(problem, Problem)
    assert thread(1) in problem.why
    assert isinstance(result_, Imported)
    assert spoken(store, store.session(result_.id)) == ["4"]
    assert store.session(result_.id).tokens_output == 2


def test_a_copy_of_2025_is_counted_where_it_was_made(
    store: Store, tmp_path: Path
) -> None:
    home_of_2025(tmp_path / HOME)
    found = all_taken(store, tmp_path)
    fork = found[thread(2)]
    assert (fork.relation, fork.parent_id) == ("fork", found[thread(1)].id)
    assert spoken(store, fork) == ["How long?", "And?"]
    assert [m.inherited for m in all_of(store, fork) if m.tokens] == [True, False]
    assert [m.inherited for m in store.messages(fork) if m.role == "user"] == [True, False]  # fmt: skip
    assert all_of(store, fork)[0].kind == "session_meta"

    counted = next(m for m in all_of(store, found[thread(1)]) if m.tokens)
    assert fork.parent_seq == counted.seq
    typed_in = [prompt.text for prompt in store.prompts(project=ALL).items]
    assert sorted(typed_in) == ["And?", "How long?", "One", "Three", "Two"]


def migrated(records: list[Record]) -> list[Record]:
    """Return records as Codex numbers them, without what was rolled back."""
    found = []
    for record in numbered(records):
        payload = record["payload"]
        if payload.get("type") == "user_message":
            blocks = [{"type": "text", "text": payload["message"]}]
            done = {"type": "UserMessage", "id": "u", "content": blocks}
            record["payload"] = {"type": "item_completed", "item": done}
        found.append(record)

    return found


def test_a_rollout_that_codex_numbered_later_is_the_same_session(
    store: Store, tmp_path: Path
) -> None:
    begun = [meta(), *typed(1, "One"), said(2, "assistant", "1"), totals(2, 10, 2, 5, 1)]  # fmt: skip
    back = [*typed(3, "Two"), event(4, "thread_rolled_back", num_turns=1)]
    after = [*typed(5, "Three"), said(6, "assistant", "3"), totals(6, 30, 5, 9, 1)]
    write(tmp_path / HOME, 1, *begun, *back, *after)
    before = all_taken(store, tmp_path)[thread(1)]
    known = {m.id: m.text for m in all_of(store, before)}

    write(tmp_path / HOME, 1, *migrated([*begun, *after]))
    session = all_taken(store, tmp_path)[thread(1)]
    assert {m.id: m.text for m in all_of(store, session)} == known
    assert spoken(store, session) == ["One", "Three"]
    assert session.tokens_output == before.tokens_output
    events = [m.kind for m in store.messages(session) if m.role == "event"]
    assert events == ["item_completed", "usage", "item_completed", "usage"]


def test_a_fork_is_read_with_the_rollout_that_is_named_alone(
    store: Store, tmp_path: Path
) -> None:
    home_of_2026(tmp_path / HOME)
    path = tmp_path / HOME / DAY / name_of(2)
    (session,) = all_taken(store, path).values()
    assert spoken(store, session) == ["How long does tea take?", "And coffee?"]


def test_a_fork_finds_its_parent_in_a_copy_of_the_folders(
    store: Store, tmp_path: Path
) -> None:
    parent = numbered([meta(), asked(1, "1")])
    write(tmp_path / "copy", 1, *parent, folder=Path("2026/02/01"))
    write(tmp_path / "copy", 2, *numbered([forked(2, 1, 2), asked(2, "2")], 2), folder=Path("2026/02/02"))  # fmt: skip
    found = all_taken(store, tmp_path)
    assert spoken(store, found[thread(2)]) == ["1", "2"]
    assert all(m.time_completed for m in all_of(store, found[thread(2)]))


def test_a_subagent_belongs_to_the_call_that_started_it(
    store: Store, tmp_path: Path
) -> None:
    home_of_2026(tmp_path / HOME)
    done = {"type": "CollabAgentToolCall", "id": "c9", "tool": "spawn_agent", "status": "completed", "receiver_thread_ids": [thread(3)]}  # fmt: skip
    with (tmp_path / HOME / DAY / name_of(1)).open("a") as file:
        file.write(log([call(50, "c9", tool="spawn_agent"), event(50, "item_completed", item=done)]))  # fmt: skip
    found = all_taken(store, tmp_path)
    agent = found[thread(3)]
    parent = found[thread(1)]
    assert (agent.relation, agent.parent_id, agent.call_id) == ("subagent", parent.id, "c9")  # fmt: skip
    calls = {part.call_id: m.seq for m in all_of(store, parent) for part in m.parts}
    assert agent.parent_seq == calls["c9"]


def test_odd_records_that_name_a_subagent_do_no_harm(
    store: Store, tmp_path: Path
) -> None:
    home_of_2026(tmp_path / HOME)
    odd = [event(50, "x"), event(51, "x", output=thread(3))]
    odd[0]["payload"] = {"type": ["x"], "output": {"agent_id": thread(3)}}
    with (tmp_path / HOME / DAY / name_of(1)).open("a") as file:
        file.write(log(odd))
    agent = all_taken(store, tmp_path)[thread(3)]
    assert (agent.relation, agent.call_id) == ("subagent", None)


def test_a_name_beside_the_tool_of_an_item_is_written_again(
    store: Store, tmp_path: Path
) -> None:
    named = item(1, "local_shell_call", name="x", call_id="c1", action={"command": []})
    (found,) = messages(store, tmp_path, named)
    assert found.parts[0].tool == "local_shell"
    (session,) = store.sessions(project=ALL)
    ((_, *written),) = back(store, session).values()
    assert written == [named]


# -- what is taken back ------------------------------------------------------------


def test_a_reverted_session_continues_in_another_rollout(
    store: Store, tmp_path: Path
) -> None:
    home = tmp_path / HOME
    write(home, 1, *numbered([meta(), asked(1, "1"), asked(2, "2"), asked(3, "3")]))
    for number, (name, before, cut) in enumerate([("b", thread(1), 3), ("a", "b", 4)]):
        head = meta(1, at=10 + number, history_base=base(before, cut))
        turns = [asked(10 * (number + 2) + n, f"{name}{n}") for n in (1, 2)]
        write(home, 1, *numbered([head, *turns], 3 + number), segment=name)
    (session,) = all_taken(store, tmp_path).values()
    assert spoken(store, session) == ["1", "2", "a1", "a2"]
    texts = [m.text for m in all_of(store, session) if m.role == "user"]
    assert texts == ["1", "2", "3", "b1", "b2", "a1", "a2"]


def test_a_session_is_reverted_beyond_the_beginning_of_a_rollout(
    store: Store, tmp_path: Path
) -> None:
    home = tmp_path / HOME
    write(home, 1, *numbered([meta(), asked(1, "1"), asked(2, "2"), asked(3, "3")]))
    write(home, 2, *numbered([forked(2, 1, 4), asked(4, "4")], 4))
    # Each cut is below the first ordinal of the rollout that it names.
    for number, before, cut, name in [(1, thread(1), 4, "a"), (1, "a", 2, "b"), (2, thread(2), 3, "c")]:  # fmt: skip
        head = meta(number, at=20 + 10 * "abc".index(name), history_base=base(before, cut))  # fmt: skip
        write(home, number, *numbered([head, asked(50 + cut, name)], cut), segment=name)
    found = all_taken(store, tmp_path)
    assert spoken(store, found[thread(1)]) == ["1", "b"]
    assert spoken(store, found[thread(2)]) == ["1", "2", "c"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_forks_and_reverts_have_the_prompts_of_their_chain(
    seed: int, store: Store, tmp_path: Path
) -> None:
    rng, home = random.Random(seed), tmp_path / HOME
    #: Each rollout with its session, and the ordinals of the prompts in its chain.
    rollouts: dict[str, tuple[int, dict[int, str]]] = {"": (0, {})}
    heads: dict[int, dict[int, str]] = {}
    for step in range(1, 9):
        before = rng.choice(list(rollouts))
        session, chain = rollouts[before]
        is_revert = session > 0 and rng.random() < 0.6
        number, name = (session, f"s{step}") if is_revert else (step, thread(step))
        cut = rng.randint(1, max(chain) + 1) if chain else 0

        origin = {} if is_revert or not session else {"forked_from_id": thread(session)}
        known = origin | ({"history_base": base(before, cut)} if session else {})
        # The clock goes backwards, but for the rollouts of one session.
        head = meta(number, at=step if is_revert else 0, **known)
        own = {cut + place: f"{name}.{place}" for place in range(1, rng.randint(2, 4))}  # fmt: skip
        prompts = [asked(rng.randint(0, 99), text) for text in own.values()]
        for place, prompt in enumerate(prompts):
            prompt["payload"]["id"] = f"{name}.{place}"
        write(home, number, *numbered([head, *prompts], cut), segment=name if is_revert else "")  # fmt: skip
        below = {place: text for place, text in chain.items() if place < cut}
        rollouts[name] = number, below | own
        heads[number] = below | own

    found = all_taken(store, tmp_path)
    for number, chain in heads.items():
        of = found[thread(number)]
        assert spoken(store, of) == list(chain.values())
        for name, records in back(store, of).items():
            assert records == records_in(home / name)


def test_turns_that_are_rolled_back_are_a_branch(store: Store, tmp_path: Path) -> None:
    home_of_2025(tmp_path / HOME)
    session = all_taken(store, tmp_path)[thread(3)]
    assert spoken(store, session) == ["One", "Three"]
    assert "Two" in [m.text for m in all_of(store, session)]


def test_a_rollback_counts_tasks_and_not_what_was_added_to_them(
    store: Store, tmp_path: Path
) -> None:
    write(
        tmp_path / HOME, 1, meta(), event(1, "task_started"), *typed(1, "One"),
        event(2, "task_started"), *typed(2, "Two", before="<environment_context>"), *typed(3, "Two, more"),
        event(4, "thread_rolled_back", num_turns=1), event(5, "task_started"), *typed(5, "Three"),
    )  # fmt: skip
    (session,) = all_taken(store, tmp_path).values()
    live = list(store.messages(session))
    assert [m.text for m in live if m.role == "user"] == ["One", "Three"]
    assert [m for m in live if m.kind == "custom_message"] == []


def test_a_compaction_replaces_the_messages_before_it(
    store: Store, tmp_path: Path
) -> None:
    write(tmp_path / HOME, 1, meta(), asked(1, "One"), line(2, "compacted", message="S"), asked(3, "Two"))  # fmt: skip
    kept = [said(4, "user", "Kept")["payload"], item(4, "compaction", encrypted_content="x")["payload"]]  # fmt: skip
    write(tmp_path / HOME, 2, meta(2), asked(1, "One"), line(4, "compacted", message="", replacement_history=kept), item(4, "compaction", encrypted_content="x"), asked(5, "Two"))  # fmt: skip
    found = all_taken(store, tmp_path)
    texts = [[m.text for m in store.context(found[thread(n)]).messages] for n in (1, 2)]
    assert [store.context(found[thread(n)]).summary for n in (1, 2)] == ["S", "Kept"]
    assert [said[-1] for said in texts] == ["Two", "Two"]
    assert "One" not in [*texts[0], *texts[1]]


# -- the context -------------------------------------------------------------------


def sources(store: Store, folder: Path, *records: Record) -> list[tuple[Any, ...]]:
    """Return what the view says of the context in these records."""
    write(folder / HOME, 1, meta(), *records)
    (session,) = all_taken(store, folder).values()
    ((_, *written),) = back(store, session).values()
    assert written == list(records)
    wanted = "SELECT seq, kind, path, hash, title, text FROM context_source ORDER BY seq, idx"  # fmt: skip
    with store.connection() as connection:
        return [tuple(row) for row in connection.exec_driver_sql(wanted)]


def test_the_sections_of_a_state_are_sources_of_the_context(
    store: Store, tmp_path: Path
) -> None:
    digest = "32ca25d6d85edaeb6f1e19b2a5cc4e08d2a631cd"
    state = {
        "agents_md": {"directory": "/home/ada/tea", "text": "Be kind"}, "host_skills": {"body": "A list", "includeInstructions": True},
        "permissions": {"instructions": digest, "approved_command_prefixes": []}, "skills": False, "tools": {"a": "b"},
    }  # fmt: skip
    found = sources(
        store, tmp_path, line(1, "world_state", full=True, state=state), asked(2, "Tea?"),
        line(3, "world_state", full=True, state=state), line(4, "world_state", full=False, state={"agents_md": {"text": "Be brief"}}),
        line(5, "world_state", state=[1]), line(6, "world_state", state={"": {"text": "x"}, "a": {"text": 1, "body": ""}}),
    )  # fmt: skip
    assert found == [
        (1, "agents_md", "/home/ada/tea", None, "AGENTS.md", "Be kind"),
        (1, "host_skills", None, None, "host_skills", "A list"),
        (1, "permissions", None, digest, "permissions", None),
        (4, "agents_md", None, None, "AGENTS.md", "Be brief"),
    ]
    (session,) = store.sessions(project=ALL)
    assert [s.text for s in store.context(session).sources] == ["Be kind", "A list", None, "Be brief"]  # fmt: skip


def test_the_header_has_sources_of_the_context(store: Store, tmp_path: Path) -> None:
    home, long = tmp_path / HOME, "Be kind. " * 400
    tools = [{"name": "brew", "description": "Boils", "inputSchema": {}}, {"name": 7}, "x"]  # fmt: skip
    of_2026 = meta(base_instructions={"text": long, "provenance": {"type": "model"}}, dynamic_tools=tools)  # fmt: skip
    of_2025 = meta(2, instructions=long, user_instructions=" ", base_instructions=None)
    oldest = {"id": thread(3), "timestamp": of_2026["timestamp"], "instructions": long}
    for number, header in enumerate([of_2026, of_2025, oldest], 1):
        write(home, number, header, turn(1), said(1, "user", "Tea?"))
    found = all_taken(store, tmp_path)

    for number in (1, 2, 3):
        ((name, written),) = back(store, found[thread(number)]).items()
        assert written == records_in(home / name)
        header_message = all_of(store, found[thread(number)])[0]
        assert (header_message.role, header_message.kind) == ("event", "session_meta")
    assert [(s.kind, s.title, s.text) for s in store.context(found[thread(1)]).sources] == [
        ("base_instructions", "base_instructions", long), ("dynamic_tools", "brew", "Boils"),
    ]  # fmt: skip
    for number in (2, 3):
        (source,) = store.context(found[thread(number)]).sources
        assert (source.kind, source.text) == ("instructions", long)
        # The heads of all rollouts are in memory at once, and have no long texts.
        assert long not in repr(look_at(home / DAY / name_of(number)))
    # A text that several sessions were given is stored once.
    with store.connection() as connection:
        sizes = "SELECT count(*) FROM blob WHERE instr(data, 'Be kind. Be kind.')"
        assert connection.exec_driver_sql(sizes).scalar() == 1
        rows = connection.exec_driver_sql("SELECT data FROM session").scalars()
        assert all(b"Be kind" not in data for data in rows)


def test_a_fork_has_the_sources_that_its_header_adds(
    store: Store, tmp_path: Path
) -> None:
    home = tmp_path / HOME
    given = {"base_instructions": {"text": "Be kind"}}
    write(home, 1, *numbered([meta(**given), asked(1, "1"), asked(2, "2")]))
    write(home, 2, *numbered([forked(2, 1, 2, **given), asked(3, "3")], 2))
    changed = {"base_instructions": {"text": "Be brief"}}
    write(home, 3, *numbered([forked(3, 1, 2, **changed), asked(4, "4")], 2))
    found = all_taken(store, tmp_path)
    texts = [[s.text for s in store.context(found[thread(n)]).sources] for n in (1, 2, 3)]  # fmt: skip
    assert texts == [["Be kind"], ["Be kind"], ["Be kind", "Be brief"]]
    for number in (1, 2, 3):
        ((name, written),) = back(store, found[thread(number)]).items()
        assert written == records_in(home / name)
        ((_, alone),) = complete(store, found[thread(number)]).items()
        expected = "Be brief" if number == 3 else "Be kind"
        assert alone[0]["payload"]["base_instructions"] == {"text": expected}


def test_instructions_in_items_and_turns_are_sources_of_the_context(
    store: Store, tmp_path: Path
) -> None:
    text = "# AGENTS.md instructions for /home/ada\n\n<INSTRUCTIONS>\nBe kind\n</INSTRUCTIONS>"
    skill = (
        "<skill>\n<name>brew</name>\n<path>/s/brew/SKILL.md</path>\nBoil it\n</skill>"
    )
    found = sources(
        store, tmp_path, said(1, "user", text), line(2, "world_state", state={"agents_md": {"directory": "/home/ada", "text": "Be kind"}}),
        said(3, "user", skill), said(4, "user", "# AGENTS.md instructions, torn"), *typed(5, "# AGENTS.md instructions for a prompt"),
        turn(6, user_instructions="Be brief", developer_instructions=" "), turn(7, user_instructions="Be brief"),
        turn(8, collaboration_mode={"mode": "plan", "settings": {"developer_instructions": "Plan it"}}),
    )  # fmt: skip
    assert found == [
        (1, "agents_md", "/home/ada", None, "AGENTS.md", "Be kind"),
        (3, "skill", "/s/brew/SKILL.md", None, "brew", "Boil it"),
        (7, "user_instructions", None, None, "user_instructions", "Be brief"),
        (9, "collaboration_mode", None, None, "collaboration_mode", "Plan it"),
    ]
    (session,) = store.sessions(project=ALL)
    shown = [m.text for m in store.context(session).messages]
    assert shown[:2] == [text, skill]


# -- names and places --------------------------------------------------------------


def test_names_come_from_the_database_then_from_the_index(
    store: Store, tmp_path: Path
) -> None:
    home = tmp_path / HOME
    for number in range(1, 6):
        write(home, number, meta(number), *typed(1, "Make tea, please"))
    renamed = event(9, "thread_name_updated", thread_id=thread(5), thread_name="Event")
    write(home, 5, meta(5), *typed(1, "Make tea"), renamed)
    index(home, (1, "Old"), (2, "First"), (2, "Last"))
    state(home, (thread(1), "Outdated", "", "", None), number=4)
    state(
        home, (thread(1), "Name", "Make tea", "Make tea", None),
        (thread(3), None, "A title", "Make tea, please", None),
        (thread(4), None, "Make tea", "Make tea, please", None), number=10,
    )  # fmt: skip
    found = all_taken(store, tmp_path)
    titles = [found[thread(n)].title for n in (1, 2, 3, 5)]
    assert titles == ["Name", "Last", "A title", "Event"]
    assert found[thread(4)].title_source == "derived"


def test_a_new_name_is_taken_over_and_nothing_else_is_read(
    store: Store, tmp_path: Path
) -> None:
    home_of_2026(tmp_path / HOME)
    all_taken(store, tmp_path)
    index(tmp_path / HOME, (1, "Renamed"))
    outcomes = [r.outcome for r in read_into(store, tmp_path) if isinstance(r, Imported)]  # fmt: skip
    assert sorted(outcomes) == ["unchanged", "unchanged", "updated"]
    assert all_taken(store, tmp_path)[thread(1)].title == "Renamed"


def test_an_archived_session_has_the_time_of_archiving(
    store: Store, tmp_path: Path
) -> None:
    home = tmp_path / HOME
    write(home, 1, meta(), asked(1, "One"), folder=Path("archived_sessions"))
    write(home, 2, meta(2), asked(1, "Two"), folder=Path("archived_sessions"))
    write(home, 3, meta(3), asked(1, "Three"))
    state(home, (thread(1), None, "", "", 1_770_000_000))
    found = all_taken(store, tmp_path)
    assert found[thread(1)].time_archived == 1_770_000_000_000
    assert found[thread(2)].time_archived is not None
    assert found[thread(3)].time_archived is None


def test_a_session_that_is_archived_after_its_import_is_archived_here(
    store: Store, tmp_path: Path
) -> None:
    home = tmp_path / HOME
    path = write(home, 1, meta(), asked(1, "One"))
    session = all_taken(store, tmp_path)[thread(1)]
    assert session.time_archived is None

    moved = home / "archived_sessions" / path.name
    moved.parent.mkdir()
    path.rename(moved)
    assert all_taken(store, tmp_path)[thread(1)].time_archived is not None

    # The user shows it again: a further import of the same state leaves it so.
    store.unarchive(session)
    index(home, (1, "Tea"))
    found = all_taken(store, tmp_path)[thread(1)]
    assert (found.title, found.time_archived) == ("Tea", None)


def test_a_packed_rollout_is_read_and_a_plain_one_beside_it_wins(
    store: Store, tmp_path: Path
) -> None:
    zstandard = pytest.importorskip("zstandard")
    for number in (1, 2):
        path = write(tmp_path / HOME, number, meta(number), asked(1, f"{number}"))
        packed = path.with_name(f"{path.name}.zst")
        packed.write_bytes(zstandard.compress(path.read_bytes()))
    path.unlink()
    write(tmp_path / HOME, 1, meta(1), asked(1, "1"), asked(2, "More"))
    found = all_taken(store, tmp_path)
    assert spoken(store, found[thread(1)]) == ["1", "More"]
    assert spoken(store, found[thread(2)]) == ["2"]


def test_a_rollout_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    path = write(tmp_path / HOME, 1, meta(), asked(1, "1"))
    packed = path.rename(path.with_name(f"{path.name}.zst"))
    (found,) = find(packed, formats=["codex"])
    assert found.source == "codex"
    with pytest.raises(SourceError, match=re.escape(str(packed))):
        list(found.read())
    (found,) = find(tmp_path / HOME, formats=["codex"])
    (problem,) = found.read()
    assert isinstance(problem, Problem)
    assert problem.source == str(packed)


def test_the_oldest_lines_have_neither_type_nor_envelope(
    store: Store, tmp_path: Path
) -> None:
    oldest_home(tmp_path / HOME)
    found = all_taken(store, tmp_path)
    assert len(found) == 3
    kinds = [(m.role, m.kind) for m in all_of(store, found[thread(1)])]
    assert kinds == [
        ("event", "state"), ("event", "custom_message"), ("user", None), ("assistant", None), ("tool", None),
    ]  # fmt: skip


def test_codex_home_names_the_default_location() -> None:
    home, configured = (
        {"HOME": "/home/ada"},
        {"HOME": "/home/ada", "CODEX_HOME": "/srv/codex"},
    )
    assert default_locations(home, formats=["codex"]) == [Path("/home/ada/.codex")]
    assert default_locations(configured, formats=["codex"]) == [Path("/srv/codex")]


def test_a_home_is_one_store_and_so_is_the_folder_inside(tmp_path: Path) -> None:
    home_of_2026(tmp_path / HOME)
    for place in (tmp_path, tmp_path / HOME, tmp_path / HOME / "sessions"):
        (found,) = find(place, formats=["codex"])
        items = [x for x in found.read() if isinstance(x, SourceSession)]
        assert len(items) == 3


def test_prompts_of_the_terminal_are_in_the_history_once(
    store: Store, tmp_path: Path
) -> None:
    home = tmp_path / HOME
    write(home, 1, meta(), *typed(1, "Tea?"), *typed(9, "And?"))
    history(home, (1, 1, "Tea?"), (1, 5, "/status"), (7, 100, "Gone"))
    rows: list[Any] = [
        {"session_id": [], "ts": 1769997800, "text": "No session"},
        {"ts": "1", "text": "No time"}, {"ts": 1769997800, "text": ["x"]}, [],
    ]  # fmt: skip
    with (home / "history.jsonl").open("a", encoding="utf-8") as file:
        file.write(log(rows))
    found = read_into(store, tmp_path)
    assert [x.line for x in found if isinstance(x, Problem)] == [5, 6, 7]

    (session,) = store.sessions(project=ALL)
    prompts = list(store.prompts(project=ALL))
    assert {p.text: p.session_id for p in prompts} == {
        "Tea?": session.id, "/status": session.id, "And?": session.id, "Gone": None, "No session": None,
    }  # fmt: skip
    assert len(prompts) == 5
    assert {p.directory for p in prompts if p.session_id} == {"/home/ada/tea"}
    assert next(p.time_created for p in prompts if p.text == "Gone") == 1769997700000


# -- damage ---------------------------------------------------------------------------


def test_a_damaged_line_is_reported_and_skipped(store: Store, tmp_path: Path) -> None:
    path = write(
        tmp_path / HOME, 1, meta(), asked(1, "1"), asked(2, "2"), asked(3, "3")
    )
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines[:2], lines[2][:40] + "\n", lines[3][:-9]]))
    found = read_into(store, tmp_path)
    assert [x.line for x in found if isinstance(x, Problem)] == [3, 4]
    (session,) = (x for x in found if isinstance(x, Imported))
    assert session.messages == 1


def test_lines_that_are_added_while_a_rollout_is_read_wait_for_the_next_import(
    store: Store, tmp_path: Path
) -> None:
    path = write(tmp_path / HOME, 1, meta(), *typed(1, "One"))
    (found,) = find(tmp_path, formats=["codex"])
    (session,) = (x for x in found.read() if isinstance(x, SourceSession))
    assert session.complete is not None
    complete = session.complete()
    with path.open("a") as file:
        file.write(log(typed(2, "Two")))
    assert len(list(complete.messages)) == 2
    (session,) = all_taken(store, tmp_path).values()
    assert spoken(store, session) == ["One", "Two"]


def test_a_rollout_that_lost_its_header_is_read_under_its_name(
    store: Store, tmp_path: Path
) -> None:
    write(tmp_path / HOME, 1, asked(1, "1"))
    assert list(all_taken(store, tmp_path)) == [thread(1)]


def test_rollouts_that_continue_each_other_in_a_circle_end(
    store: Store, tmp_path: Path
) -> None:
    home = tmp_path / HOME
    write(home, 1, *numbered([forked(1, 2, 9), asked(1, "1")]))
    write(home, 2, *numbered([forked(2, 1, 9), asked(2, "2")]))
    found = read_into(store, tmp_path)
    assert len([x for x in found if isinstance(x, Imported)]) == 2
    assert any("its own ancestor" in x.why for x in found if isinstance(x, Problem))


def test_of_two_copies_of_a_rollout_the_longer_one_is_read(
    store: Store, tmp_path: Path
) -> None:
    write(tmp_path / HOME, 1, meta(), asked(1, "1"), asked(2, "2"))
    write(tmp_path / HOME, 1, meta(), asked(1, "1"), folder=Path("archived_sessions"))
    problem, session = read_into(store, tmp_path)
    assert isinstance(problem, Problem)
    assert "which is not shorter" in problem.why
    assert isinstance(session, Imported)
    assert session.messages == 2


def test_hostile_names_of_sessions_and_kinds_are_kept_apart(
    store: Store, tmp_path: Path
) -> None:
    odd: list[Any] = [
        line(1, "compaction"), event(2, "reset"), item(3, "context"), {"timestamp": 4, "type": "x", "payload": [1]},
    ]  # fmt: skip
    found = messages(store, tmp_path, *odd)
    kinds = [m.kind for m in found]
    assert kinds == ["codex_compaction", "codex_reset", "codex_context", "x"]
    assert json.loads(json.dumps(found[3].data)) == odd[3]


# -- back -----------------------------------------------------------------------------


def complete(store: Store, session: Session) -> dict[str, list[Record]]:
    """Return the rollout of a session that is given to Codex."""
    return back(store, session, exporter("codex").taken)


def back(
    store: Store, session: Session, detail: str = "full"
) -> dict[str, list[Record]]:
    """Return the records of each rollout that a session is written as, by its name."""
    to = exporter("codex")
    found = to.write([store.export(session, **to.read)], detail=detail)
    return {
        document.name: [
            json.loads(row) for row in "".join(document.chunks).split("\n")[:-1]
        ]
        for document in found
        if isinstance(document, Document)
    }


def records_in(path: Path) -> list[Record]:
    text = path.read_text(encoding="utf-8")
    return [json.loads(row) for row in text.split("\n") if row]


@pytest.mark.parametrize("write_home", [home_of_2026, home_of_2025, oldest_home])
def test_rollouts_are_written_as_they_were(
    write_home: Callable[[Path], None], store: Store, tmp_path: Path
) -> None:
    home = tmp_path / HOME
    write_home(home)
    for session in all_taken(store, tmp_path).values():
        for name, records in back(store, session).items():
            assert records == records_in(home / name)


def test_records_before_a_header_are_written_before_it(
    store: Store, tmp_path: Path
) -> None:
    home = tmp_path / HOME
    write(home, 1, *numbered([asked(1, "1"), meta(), asked(2, "2")]))
    head = meta(1, at=10, history_base=base(1, 2))
    write(home, 1, *numbered([asked(11, "3"), head], 2), segment="b")
    (session,) = all_taken(store, tmp_path).values()
    found = back(store, session)
    assert found == {str(DAY / name): records_in(home / DAY / name) for name in (name_of(1), name_of(1, "b"))}  # fmt: skip


def test_a_rollout_whose_first_record_is_odd_is_a_rollout_again(
    store: Store, tmp_path: Path
) -> None:
    home = tmp_path / HOME
    write(home, 1, *numbered([meta(), asked(1, "1"), asked(2, "2")]))
    head = meta(1, at=10, history_base=base(1, 2), odd=1 << 70)
    write(home, 1, *numbered([head, asked(11, "3")], 2), segment="b")
    problem, found = read_into(store, tmp_path)
    assert isinstance(problem, Problem)
    assert isinstance(found, Imported)
    session = store.session(found.id)
    assert spoken(store, session) == ["1", "3"]
    records = back(store, session)[str(DAY / name_of(1, "b"))]
    assert records == records_in(home / DAY / name_of(1, "b"))[1:]


def test_each_segment_is_a_rollout_again(store: Store, tmp_path: Path) -> None:
    home = tmp_path / HOME
    write(home, 1, *numbered([meta(), asked(1, "1"), asked(2, "2")]))
    head = meta(1, at=10, history_base=base(1, 2))
    write(home, 1, *numbered([head, asked(11, "3")], 2), segment="b")
    (session,) = all_taken(store, tmp_path).values()
    found = back(store, session)
    assert found == {str(DAY / name): records_in(home / DAY / name) for name in (name_of(1), name_of(1, "b"))}  # fmt: skip


def test_records_that_do_not_fit_are_written_as_they_were(
    store: Store, tmp_path: Path
) -> None:
    image = {"type": "input_image", "image_url": "data:image/png;base64,!!", "detail": "high"}  # fmt: skip
    records = [
        item(1, "function_call", name=7, arguments="{}", call_id="c1"),
        item(2, "function_call", name="x", arguments='{ "a" : 1 }', call_id="c2"),
        item(3, "function_call", name="x", arguments="not json", call_id=[1]),
        item(4, "function_call_output", call_id="c2", output={"content": "x"}),
        item(5, "function_call_output", call_id="c3", output=[{"type": "input_text", "text": "a\n", "more": 1}, {"type": "input_text", "text": ""}, image]),
        item(6, "message", role="user", content=[7]), item(7, "message", role="tool", content=[{"type": "odd", "text": "x"}]),
        item(8, "message", role="user", content="plain"), item(9, "message", role="assistant", content=[image]),
        item(10, "reasoning", summary=[], content=[{"type": "text", "text": ""}]), item(11, "reasoning", summary=[7]),
        item(12, "image_generation_call", id="ig", status="completed", revised_prompt="a cup", result=PNG),
        item(12, "image_generation_call", id="ig2", result="not\nbase64"), item(13, "tool_search_output", call_id="c4", status="completed", tools=[{"name": "a"}]),
        line(14, "compacted", message=""), line(15, "turn_context", model=[], effort="low"), turn(16, effort="high", level="x"),
        {"timestamp": "yesterday", "type": "event_msg", "payload": "text"}, event(18, "token_count", info={"total_token_usage": 1}),
        item(19, "agent_message", author="a", recipient="b", content=[{"type": "input_text", "text": "Hi"}]),
        item(20, "web_search_call", status="failed", action=None), item(21, "local_shell_call", action="x", status="completed"),
    ]  # fmt: skip
    records += [
        event(22, "compacted", message="x"), {**turn(23, effort="low"), "level": "y"}, event(24, "world_state", state={"a": {"text": "x"}}),
        {"timestamp": "", "type": "compacted", "message": "x"}, {"timestamp": "", "id": "x", "cwd": "y"}, line(25, "session_meta", instructions=[1]),
    ]  # fmt: skip
    records = json.loads(json.dumps(records))
    messages(store, tmp_path, *records)
    (session,) = store.sessions(project=ALL)
    ((_, *written),) = back(store, session).values()
    assert written == records


@pytest.mark.parametrize("given", [{}, {"base_instructions": {"text": "Be kind"}}])
def test_messages_added_here_follow_with_ordinals(
    given: Record, store: Store, tmp_path: Path
) -> None:
    write(tmp_path / HOME, 1, *numbered([meta(**given), asked(1, "1")]))
    (session,) = all_taken(store, tmp_path).values()
    with store.effects() as unit:
        unit.append(session.id, user("More"))
        unit.append(
            session.id, assistant(text("Yes"), tool("ls", {"a": 1}, output="x"))
        )
    (records,) = back(store, store.session(session.id)).values()
    assert [record["ordinal"] for record in records] == list(range(len(records)))
    kinds = [record["payload"]["type"] for record in records[2:]]
    assert kinds == [
        "task_started", "message", "user_message", "message", "agent_message",
        "function_call", "function_call_output", "task_complete",
    ]  # fmt: skip


def test_the_rollout_of_another_programs_session_reads_the_same(
    store: Store, tmp_path: Path
) -> None:
    opencode = tmp_path / "opencode"
    tree_store(opencode, everything())
    (found,) = read_into(store, opencode)
    assert isinstance(found, Imported)
    ((name, records),) = back(store, store.session(found.id)).items()
    path = tmp_path / HOME / name
    path.parent.mkdir(parents=True)
    path.write_text(log(records))

    with new_store() as other:
        (session,) = all_taken(other, tmp_path / HOME).values()
        for role in ("user", "assistant"):
            said = [t for t in spoken(store, store.session(found.id), role) if t]
            again = "\n".join(spoken(other, session, role))
            assert all(line in again for text in said for line in text.splitlines())
        calls = [p for m in all_of(other, session) for p in m.parts if p.type == "tool"]
        assert {part.status for part in calls} <= {"completed", "error", "pending"}
    assert set(records[0]["payload"]) >= {"id", "timestamp", "cwd", "originator", "cli_version", "source"}  # fmt: skip
    assert uuid.UUID(records[0]["payload"]["id"])


@pytest.mark.parametrize(
    "given",
    [
        [user("Tea?"), assistant(text("Yes"), tool("pour", {"a": 1}, output="x"))],
        [user("Tea?"), user("Coffee?")],
        [assistant(text("Yes"))],
    ],
    ids=["answered", "prompts", "no prompt"],
)
def test_turns_that_codex_appends_extend_the_original(
    given: list[Any], store: Store, tmp_path: Path
) -> None:
    session = store.create_session(title="Tea")
    for message in given:
        store.append(session, message)
    before = [m.id for m in store.messages(session.id)]
    ((name, records),) = back(store, store.session(session.id)).items()
    assert records[0]["payload"]["id"] in name
    path = tmp_path / HOME / name
    path.parent.mkdir(parents=True)
    path.write_text(log(records))

    (same,) = read_into(store, tmp_path)
    assert isinstance(same, Imported)
    assert (same.id, same.outcome) == (session.id, "unchanged")

    turn_id = "01a1f9a8-0000-7000-8000-0000000000aa"
    added = [
        event(1, "task_started", turn_id=turn_id), turn(1, turn_id=turn_id), *typed(1, "And milk?"),
        said(2, "assistant", "No"), event(3, "task_complete", turn_id=turn_id),
    ]  # fmt: skip
    for outcome in ("updated", "unchanged"):
        path.write_text(log([*records, *added]))
        (more,) = read_into(store, tmp_path)
        assert isinstance(more, Imported)
        assert (more.id, more.outcome) == (session.id, outcome)

    after = list(store.messages(session.id))
    assert [m.id for m in after[: len(before)]] == before
    said_there = [m.text for m in after[len(before) :] if m.role != "event"]
    assert said_there == ["And milk?", "No"]
    assert [s.id for s in store.sessions(project=ALL).items] == [session.id]

    # Written again, it holds both, and nothing of it is new here.
    path.write_text(log(*back(store, store.session(session.id)).values()))
    (again,) = read_into(store, tmp_path)
    assert isinstance(again, Imported)
    assert (again.id, again.outcome) == (session.id, "unchanged")


def test_codex_continues_a_rollout_that_lies_in_its_home() -> None:
    to = exporter("codex")
    assert to.take_in is not None
    written = Written("sessions/2026/02/02/r.jsonl", log([meta()]), "/home/ada")
    found = to.take_in(written, {"CODEX_HOME": "/srv/codex"})
    assert found.place == Path("/srv/codex/sessions/2026/02/02/r.jsonl")
    assert found.resume == ["codex", "resume", thread(1)]


def test_a_fork_is_complete_where_it_is_given_to_codex(
    store: Store, tmp_path: Path
) -> None:
    home = tmp_path / HOME
    write(home, 1, *numbered([meta(history_mode="paginated"), asked(1, "1"), answered(2, "a"), asked(3, "2")]))  # fmt: skip
    write(home, 2, *numbered([forked(2, 1, 3), asked(4, "3"), asked(5, "4")], 3))
    write(home, 3, *numbered([forked(3, 2, 5), asked(6, "5")], 5))
    found = all_taken(store, tmp_path)
    ((name, records),) = complete(store, found[thread(3)]).items()
    assert name == str(DAY / name_of(3))
    header, *rest = records
    assert header["payload"] == meta(3)["payload"]
    assert not any("ordinal" in record for record in records)
    texts = [record["payload"]["content"][0]["text"] for record in rest]
    assert texts == ["1", "a", "3", "5"]

    # Turns that Codex appends extend the fork, wherever its beginning is.
    path = tmp_path / "other" / HOME / name
    path.parent.mkdir(parents=True)
    path.write_text(log([*records, asked(9, "More")]), encoding="utf-8")
    (same,) = read_into(store, tmp_path / "other")
    assert isinstance(same, Imported)
    assert (same.id, same.outcome) == (found[thread(3)].id, "updated")
    assert spoken(store, store.session(same.id)) == ["1", "3", "5", "More"]


@pytest.mark.parametrize("write_home", [home_of_2026, home_of_2025])
def test_a_fork_made_here_has_the_records_of_its_session_and_comes_back(
    write_home: Callable[[Path], None], store: Store, tmp_path: Path
) -> None:
    write_home(tmp_path / HOME)
    session = all_taken(store, tmp_path)[thread(1)]
    fork = store.fork(session.id)
    store.append(fork, user("Mine"))
    ((name, records),) = complete(store, store.session(fork.id)).items()
    lines = (tmp_path / HOME / DAY / name_of(1)).read_text("utf-8").splitlines()
    own = [without_keys(("ordinal",), json.loads(line)) for line in lines[1:]]
    made = [without_keys((MARK,), record) for record in records]
    assert [record for record in made if record in own] == own
    assert not any("ordinal" in record for record in made)

    path = tmp_path / "other" / HOME / name
    path.parent.mkdir(parents=True)
    more = typed(90, "More")
    path.write_text(log([*records, *more]), encoding="utf-8")
    (same,) = read_into(store, tmp_path / "other")
    assert isinstance(same, Imported)
    assert (same.id, same.outcome) == (fork.id, "updated")
    before = spoken(store, store.session(session.id))
    assert spoken(store, store.session(fork.id)) == [*before, "Mine", "More"]
    assert store.session(fork.id).tokens_output is None


def test_an_empty_rollout_is_passed_over(store: Store, tmp_path: Path) -> None:
    path = write(tmp_path / HOME, 1, meta(), asked(1, "One"))
    path.with_name(name_of(2)).touch()
    assert list(all_taken(store, tmp_path)) == [thread(1)]


def test_the_rollouts_of_a_reverted_session_are_one_where_it_is_given_to_codex(
    store: Store, tmp_path: Path
) -> None:
    home = tmp_path / HOME
    write(home, 1, *numbered([meta(), asked(1, "1"), asked(2, "2")]))
    head = meta(1, at=10, history_base=base(1, 2))
    write(home, 1, *numbered([head, asked(11, "3")], 2), segment="b")
    (session,) = all_taken(store, tmp_path).values()
    ((_, records),) = complete(store, session).items()
    kinds = [record["type"] for record in records]
    assert kinds == ["session_meta", "response_item", "response_item"]
    assert records[2]["payload"]["content"][0]["text"] == "3"


def test_a_session_that_needs_no_other_rollout_is_complete_as_it_was(
    store: Store, tmp_path: Path
) -> None:
    write(tmp_path / HOME, 1, *numbered([meta(), asked(1, "1")]))
    (session,) = all_taken(store, tmp_path).values()
    assert complete(store, session) == back(store, session)


def test_messages_that_a_compaction_kept_are_in_its_history(store: Store) -> None:
    session = store.create_session()
    store.append(session, user("1"))
    kept = store.append(session, user("2"))
    store.append(session, assistant(text("b"), tool("ls", {}, output="x")))
    of = store.append(session, event_draft("compaction", text("S"), first_kept_id=kept.id))  # fmt: skip
    store.append(session, event_draft("compaction", text("T"), first_kept_id="gone"))
    (records,) = back(store, store.session(session.id)).values()
    stated, summary = (r["payload"] for r in records if r["type"] == "compacted")
    history = [item.get("content", [{}])[0].get("text", item["type"]) for item in stated["replacement_history"]]  # fmt: skip
    assert history == ["S", "2", "b", "function_call", "function_call_output"]
    assert summary == {"message": "T"}
    assert of.id in {record.get("sessiondb") for record in records}


def test_each_response_is_counted_by_itself(store: Store, tmp_path: Path) -> None:
    session = store.create_session()
    store.append(session, user("1"))
    store.append(session, assistant("a"))
    for number in (10, 20):
        store.append(session, event_draft("usage"), tokens=Tokens(number, 1))
    ((name, records),) = back(store, store.session(session.id)).items()
    infos = [r["payload"]["info"] for r in records if r["payload"].get("type") == "token_count"]  # fmt: skip
    # Codex compacts a context by the size that the last one states.
    assert [info["last_token_usage"]["input_tokens"] for info in infos] == [10, 20]
    assert [info["total_token_usage"]["input_tokens"] for info in infos] == [10, 30]

    path = tmp_path / HOME / name
    path.parent.mkdir(parents=True)
    path.write_text(log(records), encoding="utf-8")
    with Store.open(":memory:") as other:
        (again,) = all_taken(other, tmp_path).values()
        assert again.tokens == Tokens(30, 2, 0, 0, 0)


@pytest.mark.parametrize("title", ["", "Tea"])
def test_a_session_without_messages_comes_back_as_it_was_and_is_continued(
    title: str, store: Store, tmp_path: Path
) -> None:
    session = store.create_session(title=title)
    ((name, records),) = back(store, store.session(session.id)).items()
    path = tmp_path / HOME / name
    path.parent.mkdir(parents=True)
    for added, outcome in (([], "unchanged"), ([asked(9, "Tea?")], "updated")):
        path.write_text(log([*records, *added]), encoding="utf-8")
        (found,) = read_into(store, tmp_path)
        assert isinstance(found, Imported)
        assert (found.id, found.outcome) == (session.id, outcome)
    assert [m.text for m in store.messages(session.id)] == ["Tea?"]


def test_an_archived_session_is_continued_where_others_are(
    store: Store, tmp_path: Path
) -> None:
    write(tmp_path / HOME, 1, meta(), asked(1, "1"), folder=Path("archived_sessions"))
    (theirs,) = all_taken(store, tmp_path).values()
    ours = store.create_session()
    store.append(ours, user("1"))
    store.archive(ours)
    for session in (theirs, store.session(ours.id)):
        (there,), (given,) = back(store, session), complete(store, session)
        assert there.startswith("archived_sessions/")
        assert given.startswith("sessions/")


@pytest.mark.slow
def test_rollouts_of_the_real_program_are_written_as_they_were(
    real_store: Callable[[str], Path], store: Store
) -> None:
    home = real_store("codex-0.169.0") / "data/.codex"
    count = 0
    for session in all_taken(store, home).values():
        for name, records in back(store, session).items():
            assert records == records_in(home / name)
            count += len(records)
    assert count == 315


def test_lone_surrogates_are_escaped_in_a_line(store: Store, tmp_path: Path) -> None:
    prompt = said(1, "user", "half \ud83d")
    path = write(tmp_path / HOME, 1, meta())
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{json.dumps(prompt)}\n")

    (session,) = all_taken(store, tmp_path).values()
    to = exporter("codex")
    found = to.write([store.export(session, **to.read)])
    (log_,) = ("".join(of.chunks) for of in found if isinstance(of, Document))
    assert json.loads(log_.encode().splitlines()[1]) == prompt
