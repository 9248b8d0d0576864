"""Facts of a session that arrive in another program, in each format that can hold them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from carrying import read_back, written

from sessiondb import (
    PartDraft,
    Store,
    Tokens,
    assistant,
    event,
    file,
    reasoning,
    text,
    tool,
    user,
)
from sessiondb.model import Message, MessageDraft
from sessiondb.model.aliases import OUTCOMES

SPENT: dict[str, Any] = {"cost": 0.5, "tokens": Tokens(10, 4, 3, 2, 1)}
MODEL: dict[str, Any] = {"model": "large", "provider": "fake"}


@pytest.fixture
def session(store: Store) -> str:
    """A session that begins with a prompt."""
    name = store.create_session(directory="/home/ada/tea").id
    store.append(name, user("Which day?"))
    return name


def after(store: Store, form: str, folder: Path) -> list[Message]:
    """Return the messages that the only session of a database has in another program."""
    written(store, form, folder)
    (copy,) = read_back(folder)
    return copy.messages


def sums(messages: list[Message]) -> list[Any]:
    """Return the cost and the tokens of messages, together."""
    names = ("cost", "tokens_input", "tokens_output", "tokens_reasoning", "tokens_cache_read", "tokens_cache_write")  # fmt: skip
    return [sum(getattr(m, name) or 0 for m in messages) for name in names]


def calls(messages: list[Message]) -> dict[str | None, Any]:
    return {p.call_id: p for m in messages for p in m.parts if p.type == "tool"}


#: Outcomes that a program cannot tell from a failure.
UNKNOWN_OUTCOMES = {
    "claude": {"skipped"},
    "opencode": {"skipped", "denied"},
    "opencode2": {"skipped"},
}


@pytest.mark.parametrize("form", ["event-log", "codex", *UNKNOWN_OUTCOMES])
def test_a_call_ends_in_another_program_as_it_did(
    form: str, store: Store, session: str, tmp_path: Path
) -> None:
    ended = [tool("sh", {}, call_id=f"c-{name}", error="No", outcome=name) for name in OUTCOMES]  # fmt: skip
    fine = tool("sh", {}, call_id="c-fine", output="Exit code: 1\nOutput:\n")
    store.append(session, assistant(*ended, fine), **MODEL)
    found = calls(after(store, form, tmp_path))
    outcomes = {name: found[f"c-{name}"].outcome for name in OUTCOMES}
    unknown = UNKNOWN_OUTCOMES.get(form, set())
    expected = {name: "failed" if name in unknown else name for name in OUTCOMES}
    assert outcomes == expected
    assert (found["c-fine"].status, found["c-fine"].outcome) == ("completed", None)


@pytest.mark.parametrize("form", ["event-log", "codex"])
def test_a_text_is_the_input_of_a_call_in_another_program(
    form: str, store: Store, session: str, tmp_path: Path
) -> None:
    inputs = {"c1": "date", "c2": {"value": "date"}}
    given = [tool("sh", value, call_id=name, output="x") for name, value in inputs.items()]  # fmt: skip
    store.append(session, assistant(*given), **MODEL)
    found = calls(after(store, form, tmp_path))
    assert {name: part.input for name, part in found.items()} == inputs


@pytest.mark.parametrize("form", ["event-log", "codex", "pi", "oh-my-pi", "goose"])
def test_reasoning_is_reasoning_in_another_program(
    form: str, store: Store, session: str, tmp_path: Path
) -> None:
    store.append(session, assistant(reasoning("Hm"), text("Monday")), **MODEL)
    parts = [p for m in after(store, form, tmp_path) for p in m.parts]
    assert [p.text for p in parts if p.type == "reasoning"] == ["Hm"]


#: Three times `SPENT`, as a program records it: Codex has no costs, and Goose counts the
#: reasoning of an answer as output.
SPENT_THRICE = {
    form: [1.5, 30, 12, 9, 6, 3]
    for form in ("event-log", "claude", "pi", "oh-my-pi", "opencode", "opencode2")
}
SPENT_THRICE["codex"] = [0, 30, 12, 9, 6, 3]
SPENT_THRICE["goose"] = [1.5, 30, 15, 6, 6, 3]


@pytest.mark.parametrize("form", SPENT_THRICE)
def test_an_empty_answer_and_a_compaction_have_their_usage_in_another_program(
    form: str, store: Store, session: str, tmp_path: Path
) -> None:
    for draft in (assistant(text("Monday")), assistant(), event("compaction", "Sum")):
        store.append(session, draft, **MODEL, **SPENT)
    store.append(session, user("And now?"))
    store.append(session, assistant(text("Tuesday")), **MODEL)
    assert sums(after(store, form, tmp_path)) == SPENT_THRICE[form]


@pytest.mark.parametrize("form", ["event-log", "pi", "oh-my-pi"])
def test_the_complete_output_of_a_call_arrives_in_another_program(
    form: str, store: Store, session: str, tmp_path: Path
) -> None:
    store.append(session, assistant(tool("sh", {}, call_id="c1", output="1 … 9")), **MODEL)  # fmt: skip
    result, complete = PartDraft("tool-result", call_id="c1"), file(content=b"1 2 3")
    store.append(session, MessageDraft("tool", (result, complete)))
    parts = [p for m in after(store, form, tmp_path) for p in m.parts]
    contents = [p.data.get("content") for p in parts if p.type == "file"]
    assert contents == [b"1 2 3"]
