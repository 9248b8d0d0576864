"""What Claude Code states that its requests cost: once, on what it paid for."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from imported import all_taken, by_id
from samples import new_store, read_into
from samples_claude import (
    PROJECT,
    Record,
    answered,
    aside,
    asked,
    beside,
    call,
    moment,
    session,
    spent,
    time_of,
    words,
    write,
)

from sessiondb import Store
from sessiondb.formats import writable
from sessiondb.formats.claude.costs import model_name
from sessiondb.formats.registry import exporter
from sessiondb.maintenance import check
from sessiondb.model import Document, Session

U1 = asked(1, "1", None)


def answer(number: int, **fields: Any) -> Record:
    """An answer like the requests of `spent`, under an id of its own."""
    return answered(number, words("A"), **{"name": f"msg_{number}", **fields})


def stated(store: Store) -> float:
    """Return the cost of everything, in USD."""
    (row,) = store.usage(by=())
    return row.cost or 0.0


def costs(store: Store, of: Session) -> list[float | None]:
    """Return the costs of the answers of a session, and then those of its events."""
    every = list(store.messages(of, branches=True))
    answers = [m.cost for m in every if m.role == "assistant"]
    return answers + [m.cost for m in every if m.kind == "usage"]


def one(store: Store, folder: Path, *records: Record) -> list[float | None]:
    write(folder / PROJECT, session(1), *records)
    return costs(store, all_taken(store, folder)[session(1)])


# -- a transcript --------------------------------------------------------------------


def test_answers_have_the_difference_of_two_states_by_their_tokens(
    store: Store, tmp_path: Path
) -> None:
    second = spent(3, 0.6)
    # As dear as 62.9 tokens of input: one like it has 31.45.
    second["modelUsage"]["large"]["inputTokens"] += 21
    second["modelUsage"]["large"]["outputTokens"] += 2
    longer = answered(5, words("A"), name="msg_5", output=6)
    longer["message"]["usage"]["input_tokens"] = 31 + 0
    lines = [U1, answer(2), spent(1, 0.1), asked(3, "2"), answer(4), longer, second]
    assert one(store, tmp_path, *lines) == [
        0.1,
        pytest.approx(0.5 * 31.45 / 93.9),
        pytest.approx(0.5 * 62.45 / 93.9),
        None,
        None,
    ]
    assert stated(store) == pytest.approx(0.6)
    assert store.usage(by=())[0].cost_estimated is None


def test_a_log_that_grows_by_a_state_gives_its_answers_their_cost(
    store: Store, tmp_path: Path
) -> None:
    assert one(store, tmp_path, U1, answer(2)) == [None]
    lines = [U1, answer(2), spent(1, 0.1)]
    assert one(store, tmp_path, *lines) == [0.1, None]
    lines += [asked(3, "2"), answer(4), answer(5)]
    assert one(store, tmp_path, *lines) == [0.1, None, None, None]
    lines += [spent(4, 0.7)]
    assert one(store, tmp_path, *lines) == [0.1, 0.2, 0.2, None, 0.2]
    assert one(store, tmp_path, *lines) == [0.1, 0.2, 0.2, None, 0.2]
    assert check(store) == []


def test_a_request_without_an_answer_is_on_the_event_of_the_state(
    store: Store, tmp_path: Path
) -> None:
    one(store, tmp_path, U1, answer(2), spent(3, 0.3), asked(3, "2"), spent(4, 0.4))
    rows = {row.key["model"]: row for row in store.usage(by="model")}
    assert rows.keys() == {"large"}, "the only one of the requests"
    assert rows["large"].cost == pytest.approx(0.4)
    assert rows["large"].tokens.input == 10

    records = store.usage_records({"model": "large"})
    assert [(record.cost, record.time_created) for record in records] == [
        (0.1, time_of(2)),
        (pytest.approx(0.2), time_of(2)),
        (pytest.approx(0.1), time_of(3)),
    ]
    assert [record.tokens.known for record in records] == [True, False, False]


def test_a_request_to_one_of_several_models_has_none(
    store: Store, tmp_path: Path
) -> None:
    state = spent(2, 0.3)
    state["modelUsage"]["small"] = {"inputTokens": 9, "outputTokens": 9, "costUSD": 0.1}
    state["totalCostUSD"] = 0.4
    one(store, tmp_path, U1, answer(2), state)
    rows = {row.key["model"]: row.cost for row in store.usage(by="model")}
    assert rows == {None: pytest.approx(0.25), "large": pytest.approx(0.15)}


def test_an_older_counter_and_a_new_one_count_once_each(
    store: Store, tmp_path: Path
) -> None:
    lines = [
        U1, answer(2), spent(1, 0.1),
        asked(3, "2"), answer(4), asked(6, "3"), answer(7), spent(2, 0.5, began=5),
    ]  # fmt: skip
    assert one(store, tmp_path, *lines) == [0.1, None, 0.25, None, 0.25]
    assert stated(store) == pytest.approx(0.6), "the answer between them is estimated"


def test_answers_of_a_process_that_was_killed_are_not_those_of_the_next(
    store: Store, tmp_path: Path
) -> None:
    lines = [
        U1, answer(2), spent(1, 0.1), asked(3, "2"), answer(4), answer(5),
        asked(6, "3"), answer(7), spent(2, 0.3),
    ]  # fmt: skip
    assert one(store, tmp_path, *lines) == [0.1, None, None, 0.2, None, None]


def test_an_answer_that_was_interrupted_does_not_cost_another_its_share(
    store: Store, tmp_path: Path
) -> None:
    lines = [U1, answer(2), answer(3, stop=None), spent(1, 0.1)]
    assert one(store, tmp_path, *lines) == [0.1, None, None]


def test_an_answer_after_the_last_state_has_no_cost(
    store: Store, tmp_path: Path
) -> None:
    assert one(store, tmp_path, U1, spent(0, 0.0), answer(2)) == [None, None]


def test_an_answer_that_states_its_cost_is_in_no_state(
    store: Store, tmp_path: Path
) -> None:
    lines = [U1, answer(2, costUSD=7.0), answer(4), spent(1, 0.1, began=3)]
    assert one(store, tmp_path, *lines) == [7.0, 0.1, None]


def test_writes_for_an_hour_cost_more(store: Store, tmp_path: Path) -> None:
    hour = answer(2)
    hour["message"]["usage"]["cache_creation"] = {"ephemeral_1h_input_tokens": 1}
    state = spent(2, 0.64)
    state["modelUsage"]["large"]["cacheCreationEphemeral1hInputTokens"] = 1
    first, second, _ = one(store, tmp_path, U1, hour, answer(3), state)
    assert (first, second) == (
        pytest.approx(0.64 * 32.2 / 63.65),
        pytest.approx(0.64 * 31.45 / 63.65),
    )


@pytest.mark.parametrize(
    ("requested", "answering"),
    [
        ("claude-opus-4-6[1m]", "claude-opus-4-6"),
        ("claude-opus-4-6", "claude-opus-4-6-20260101"),
        ("us.anthropic.claude-opus-4-6-20260101-v1:0", "claude-opus-4-6-20260101"),
        ("claude-opus-4-6@20260101", "claude-opus-4-6"),
    ],
)
def test_a_model_is_known_by_the_names_that_clouds_give_it(
    requested: str, answering: str
) -> None:
    assert model_name(requested) == model_name(answering) == "claude-opus-4-6"


def test_a_gateway_may_answer_under_any_name(store: Store, tmp_path: Path) -> None:
    lines = [U1, answer(2, model="glm-4.6"), spent(2, 0.3, model="claude-opus-4-6")]
    assert one(store, tmp_path, *lines) == [0.15, 0.15]


@pytest.mark.parametrize(
    "odd",
    [
        {"totalCostUSD": "1"}, {"totalCostUSD": -1}, {"startTime": None},
        {"modelUsage": []}, {"stated_total": {"cost": 9}}, {"total_since": 1},
    ],
)  # fmt: skip
def test_what_the_program_would_not_continue_is_an_event_without_a_cost(
    store: Store, tmp_path: Path, odd: Record
) -> None:
    state = {**spent(1, 0.1), **odd}
    write(tmp_path / PROJECT, session(1), U1, answer(2), state)
    found = all_taken(store, tmp_path)[session(1)]
    assert found.cost is None
    assert _written(store, [found])[f"{session(1)}.jsonl"][-1] == state


def test_states_in_other_units_break_nothing(store: Store, tmp_path: Path) -> None:
    state = {**spent(1, 0.1), "modelUsage": {"large": 1, "": {"inputTokens": -3}}}
    assert one(store, tmp_path, U1, answer(2), state) == [None, 0.1]


# -- forks ---------------------------------------------------------------------------


def _fork(folder: Path) -> list[Path]:
    """A session, and a fork of it that continues its counter; each goes on."""
    said = [U1, answer(2)]
    first = beside("queue-operation", operation="enqueue", timestamp=moment(0))
    more = [spent(2, 0.2), asked(7, "2", 2), answer(8), spent(3, 0.3)]
    began = beside("queue-operation", of=2, operation="enqueue", timestamp=moment(4))
    copied = [{**record, "sessionId": session(2)} for record in said]
    own = [asked(5, "Other", 2, of=2), answer(6, of=2), spent(4, 0.6, of=2)]
    return [
        write(folder / PROJECT, session(1), first, *said, *more),
        write(folder / PROJECT, session(2), began, *copied, *own),
    ]


def test_a_fork_continues_the_total_of_its_original(
    store: Store, tmp_path: Path
) -> None:
    _fork(tmp_path)
    family = all_taken(store, tmp_path)
    assert costs(store, family[session(1)]) == [0.1, 0.1, 0.1, None]
    assert costs(store, family[session(2)]) == [0.1, 0.2, 0.2]
    fork = by_id(store)[session(2)]
    assert (fork.cost, fork.cost_inherited) == (pytest.approx(0.4), 0.1)
    assert stated(store) == pytest.approx(0.3 + 0.4)


@pytest.mark.slow
def test_no_order_of_imports_counts_what_a_fork_continues_twice(
    tmp_path: Path,
) -> None:
    original, fork = _fork(tmp_path / "theirs")
    both = tmp_path / "theirs"
    for order in permutations([original, fork, both]):
        with new_store() as store:
            for place in order:
                read_into(store, place)
                assert stated(store) <= 0.7 + 1e-9
            read_into(store, both)
            assert stated(store) == pytest.approx(0.7)
            assert check(store) == []


def test_a_fork_whose_original_is_gone_keeps_its_costs(
    store: Store, tmp_path: Path
) -> None:
    original, fork = _fork(tmp_path)
    read_into(store, tmp_path)
    original.unlink()
    with fork.open("a") as file:
        file.write(json.dumps(asked(9, "More", 6, of=2)) + "\n")
    read_into(store, tmp_path)
    assert stated(store) == pytest.approx(0.7)

    with new_store() as alone:
        read_into(alone, tmp_path)
        (row,) = alone.usage(by=())
        assert row.cost == pytest.approx(0.15), "the rest may be the original's"


def test_a_fork_with_a_counter_of_its_own_continues_nothing(
    store: Store, tmp_path: Path
) -> None:
    _, fork = _fork(tmp_path)
    lines = [json.loads(line) for line in fork.read_text().splitlines()]
    write(fork.parent, fork.stem, *lines[:-1], spent(1, 0.1, of=2, began=4))
    read_into(store, tmp_path)
    assert stated(store) == pytest.approx(0.3 + 0.1)


def test_a_fork_may_continue_a_state_before_the_last_one_of_its_original(
    store: Store, tmp_path: Path
) -> None:
    first = beside("queue-operation", operation="enqueue", timestamp=moment(0))
    said = [U1, answer(2), asked(3, "2"), answer(4)]
    original = [first, *said[:2], spent(1, 0.1), *said[2:], spent(2, 0.2)]
    write(tmp_path / PROJECT, session(1), *original)

    began = beside("queue-operation", of=2, operation="enqueue", timestamp=moment(5))
    copied = [{**record, "sessionId": session(2)} for record in said]
    own = [asked(6, "3", 4, of=2), answer(7, of=2), answer(8, of=2)]
    write(tmp_path / PROJECT, session(2), began, *copied, *own, spent(3, 0.3, of=2))
    family = all_taken(store, tmp_path)
    assert family[session(2)].cost == pytest.approx(0.2)
    assert stated(store) == pytest.approx(0.4)


# -- subagents -------------------------------------------------------------------------


def _with_subagent(folder: Path) -> list[Path]:
    """A session of 6 requests: 2 answers here, 2 of a subagent, 2 without an answer."""
    start = answered(2, call("c1", "Agent", prompt="Look"), name="msg_2")
    inner = aside(
        3, "a1", asked(3, "Look"), answer(4, name="msg_4"), answer(9, name="msg_9")
    )
    path = folder / PROJECT
    return [
        write(path, session(1), U1, start, answer(8, above=2), spent(6, 0.6)),
        write(path / session(1) / "subagents", "agent-a1", *inner),
    ]


def test_the_answers_of_subagents_are_in_the_total_of_their_session(
    store: Store, tmp_path: Path
) -> None:
    _with_subagent(tmp_path)
    family = all_taken(store, tmp_path)
    assert costs(store, family[session(1)]) == [0.1, 0.1, 0.2]
    assert costs(store, family[f"{session(1)}/agent-a1"]) == [0.1, 0.1]
    assert stated(store) == pytest.approx(0.6)


@pytest.mark.slow
def test_no_order_of_imports_counts_a_subagent_twice(tmp_path: Path) -> None:
    both = tmp_path / "theirs"
    log, subagent = _with_subagent(both)
    for order in permutations([log, subagent, both]):
        with new_store() as store:
            for place in order:
                read_into(store, place)
                assert stated(store) <= 0.6 + 1e-9
            assert stated(store) == pytest.approx(0.6)
            assert check(store) == []


@pytest.mark.parametrize("gone", [0, 1])
def test_a_transcript_that_was_cleaned_up_keeps_its_part_of_the_total(
    store: Store, tmp_path: Path, gone: int
) -> None:
    paths = _with_subagent(tmp_path)
    read_into(store, tmp_path)
    paths[gone].unlink()
    with paths[1 - gone].open("a") as file:
        file.write(json.dumps(beside("mode", mode="normal")) + "\n")
    read_into(store, tmp_path)
    (row,) = store.usage(by=())
    assert (row.cost, row.cost_estimated) == (pytest.approx(0.6), None)


# -- everything that may happen ----------------------------------------------------------


@pytest.mark.slow
@given(
    steps=st.lists(
        st.sampled_from(["answer", "hidden", "subagent", "end", "account"]),
        max_size=12,
    ),
    cut=st.integers(0, 40),
)
@settings(max_examples=12, deadline=None)
def test_the_cost_of_a_session_is_that_of_its_last_states(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str], cut: int
) -> None:
    lines, inner = [U1], []
    number, began = 1, 0
    # The requests that are in no state yet, in the last one, and in earlier counters.
    waiting, ended, total = 0, 0, 0
    for step in [*steps, "end"]:
        number += 2
        if step == "answer":
            lines.append(answer(number, above=None))
        elif step == "subagent":
            inner.append(answer(number, above=None))
        if step in ("answer", "subagent", "hidden"):
            waiting += 1
            continue

        ended, waiting = ended + waiting, 0
        lines.append(spent(ended, ended / 10, began=began))
        if step == "account":
            total, ended, began = total + ended, 0, number
        lines.append(asked(number + 1, "More", None))

    folder = tmp_path_factory.mktemp("steps")
    log = folder / PROJECT / f"{session(1)}.jsonl"
    if inner:
        agents = folder / PROJECT / session(1) / "subagents"
        write(agents, "agent-a1", *aside(99, "a1", asked(99, "Look"), *inner))
    with new_store() as store:
        for records in (lines[:cut], lines, lines):
            write(log.parent, log.stem, *records)
            read_into(store, folder)
        rows = store.usage(by=())
        cost = sum(row.cost or 0.0 for row in rows)
        assert cost == pytest.approx((total + ended) / 10)
        assert check(store) == []


# -- the real program, and what is written ---------------------------------------------


@pytest.mark.slow
def test_each_family_of_a_real_store_costs_what_its_last_state_says(
    store: Store, real_store: Callable[[str], Path], tmp_path: Path
) -> None:
    home = tmp_path / "home"
    shutil.copytree(real_store("claude-code-2.1.329") / "data", home)
    last: dict[str, Record] = {}
    for path in home.rglob("*.jsonl"):
        records = [json.loads(line) for line in path.read_text().split("\n")[:-1]]
        for record in records:
            if record["type"] == "cost-state":
                last[record["sessionId"]] = record

    family = all_taken(store, home)
    # A fork continues the counter of its original, so that both began at one time.
    counters: dict[int, float] = {}
    for record in last.values():
        began, usd = record["startTime"], record["totalCostUSD"]
        counters[began] = max(counters.get(began, 0.0), usd)
    assert stated(store) == pytest.approx(sum(counters.values()), abs=1e-9)
    for name, record in last.items():
        of_session = [s for n, s in family.items() if n.partition("/")[0] == name]
        own = [s.cost or 0.0 for s in of_session]
        inherited = [s.cost_inherited or 0.0 for s in of_session]
        paid = sum(own) + sum(inherited)
        assert paid == pytest.approx(record["totalCostUSD"], abs=1e-9)


def _written(store: Store, sessions: list[Session]) -> dict[str, list[Record]]:
    to = exporter("claude")
    exports = [store.export(found, **to.read) for found in sessions]
    documents = [item for item in to.write(exports) if isinstance(item, Document)]
    return {
        document.name: [
            json.loads(line) for line in b"".join(document.encoded()).splitlines()
        ]
        for document in documents
    }


def test_an_export_states_the_cost_as_the_program_did(
    store: Store, tmp_path: Path
) -> None:
    assert "claude" in writable()
    log, subagent = _with_subagent(tmp_path)
    family = all_taken(store, tmp_path)
    written = _written(store, list(family.values()))
    for path in (log, subagent):
        name = str(path.relative_to(tmp_path / PROJECT))
        assert written[name] == [
            json.loads(n) for n in path.read_text().split("\n")[:-1]
        ]
