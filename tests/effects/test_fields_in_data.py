"""A field of a record is never lost in ``data``: no call takes its name as a key."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest

from sessiondb import (
    InvalidInputError,
    Message,
    MessageDraft,
    Part,
    PartDraft,
    Session,
    Store,
    StreamCall,
    Tokens,
    Unit,
    assistant,
    event,
    part,
    text,
    user,
)
from sessiondb.model import aliases, drafting
from sessiondb.model.reserved import OF_EVENTS

#: Each field, and each name that a provider has for one.
FIELDS = sorted(
    {field.name for record in (Message, Part, Session, Tokens, MessageDraft, PartDraft)
     for field in fields(record)} | aliases.FIELD.keys() | aliases.TOKEN.keys()
)  # fmt: skip
#: What a call needs beside its keywords.
ARGUMENTS: dict[str, tuple[str, ...]] = {
    "event": ("reset",), "text": ("a",), "reasoning": ("a",), "tool": ("bash",),
    "tool_result": ("c1", "a"), "part": ("patch",),
}  # fmt: skip


def takes_data(function: Any) -> bool:
    """Return whether the further keywords of a function become data."""
    parameters = inspect.signature(function).parameters.values()
    return any(
        item.kind is item.VAR_KEYWORD and item.name == "data" for item in parameters
    )


HELPERS = sorted(
    name
    for name, function in vars(drafting).items()
    if inspect.isfunction(function)
    and function.__module__ == drafting.__name__
    and takes_data(function)
)


def test_all_calls_that_take_data_are_known_here() -> None:
    verbs = {
        f"{cls.__name__}.{name}"
        for cls in (Unit, StreamCall, Store)
        for name, function in vars(cls).items()
        if inspect.isfunction(function) and takes_data(function)
    }
    assert verbs == {"Unit.settle", "StreamCall.settle", "Store.settle"}
    assert {*ARGUMENTS} < {*HELPERS}


@pytest.mark.parametrize("name", HELPERS)
def test_no_helper_takes_the_name_of_a_field_into_data(name: str) -> None:
    make: Callable[..., MessageDraft | PartDraft] = getattr(drafting, name)
    own = inspect.signature(make).parameters.keys()
    for field in [field for field in FIELDS if field not in own or field == "data"]:
        with pytest.raises(InvalidInputError, match=f"^{field} belongs to "):
            make(*ARGUMENTS.get(name, ()), **{field: "m"})


def test_no_result_of_a_call_takes_the_name_of_a_field_into_data(store: Store) -> None:
    session = store.create_session()
    unit = store._core.unit()
    own = inspect.signature(Unit.settle).parameters.keys()
    with store.stream(session) as out:
        call = out.tool("bash", call_id="c1")
        for field in [field for field in FIELDS if field not in own or field == "data"]:
            with pytest.raises(InvalidInputError, match=f"^{field} belongs to "):
                unit.settle(session, "c1", output="a", **{field: "m"})
            with pytest.raises(InvalidInputError, match=f"^{field} belongs to "):
                call.settle(output="a", **{field: "m"})
        call.settle(output="a", exit_code=0)
    assert unit.effects == []
    assert store.messages(session)[0].parts[0].data == {"exit_code": 0}


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("cost", "append(session, message, cost=…)"),
        ("model_id", "append(session, message, model=…)"),
        ("usage", "append(session, message, tokens=…)"),
        ("prompt_tokens", "append(session, message, tokens={'input': …})"),
        ("finish_reason", "append(session, message, finish=…)"),
        ("title", "PartDraft(type, title=…)"),
        ("role", "MessageDraft(role, role=…)"),
        ("directory", "the session"),
        ("usage_key", "sessiondb, which sets it itself"),
    ],
)
def test_the_refusal_names_the_place_of_the_field(name: str, place: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        assistant("a", **{name: 1})
    assert f"{name} belongs to {place}" in str(caught.value)


def test_documented_keys_of_an_event_and_own_keys_are_data(store: Store) -> None:
    session = store.create_session()
    for kind, names in OF_EVENTS.items():
        store.append(session, event(kind, **dict.fromkeys(names, "x")))
        assert {*store.messages(session)[-1].data} == names
        with pytest.raises(InvalidInputError, match="belongs to"):
            event("reset", **dict.fromkeys(names, "x"))
    message = user(text("a", synthetic=True), part("patch", files=["a.py"]), origin="b")
    store.append(session, message)
    stored = store.messages(session)[-1]
    assert [stored.data, *(item.data for item in stored.parts)] == [
        {"origin": "b"}, {}, {"files": ["a.py"]},
    ]  # fmt: skip


def test_a_draft_that_states_its_data_itself_has_any_keys(store: Store) -> None:
    session = store.create_session()
    data = {"cost": 1, "model": "m"}
    store.append(
        session, MessageDraft("user", (PartDraft("text", "a", data=data),), data=data)
    )
    stored = store.messages(session)[0]
    assert (stored.data, stored.parts[0].data, stored.cost) == (data, data, None)
