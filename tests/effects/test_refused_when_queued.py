"""Validated when queued: an invalid value is refused at the verb, before any write."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import msgpack
import pytest
from backends import Place
from facades import Contract
from peers import Connection, other, ran

from sessiondb import (
    CodecError,
    ConflictError,
    FileDiff,
    InvalidInputError,
    MessageDraft,
    NotFoundError,
    PartDraft,
    SessionHandle,
    Store,
    Todo,
    Tokens,
    assistant,
    event,
    file,
    part,
    text,
    tool,
    user,
)
from sessiondb.effects import Unit

Queue = Callable[[Unit, SessionHandle], object]
DEEP: Any = []
for _ in range(1_000):
    DEEP = [DEEP]


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": value}
    return value


BAD_VALUES: dict[str, Queue] = {
    "cost NaN": lambda fx, s: fx.append(s, assistant("x"), cost=math.nan),
    "cost infinite": lambda fx, s: fx.append(s, assistant("x"), cost=-math.inf),
    "cost text": lambda fx, s: fx.append(s, assistant("x"), cost="0.1"),
    "cost bool": lambda fx, s: fx.append(s, assistant("x"), cost=True),
    "tokens negative": lambda fx, s: fx.append(s, assistant("x"), tokens={"input": -1}),
    "tokens 65 bits": lambda fx, s: fx.append(
        s, assistant("x"), tokens={"output": 1 << 63}
    ),
    "tokens fraction": lambda fx, s: fx.append(
        s, assistant("x"), tokens=Tokens(input=1.5)
    ),  # type: ignore[arg-type]
    "tokens unknown": lambda fx, s: fx.append(
        s, assistant("x"), tokens={"thoughts": 1}
    ),
    "tokens list": lambda fx, s: fx.append(s, assistant("x"), tokens=[1, 2]),
    "time 65 bits": lambda fx, s: fx.append(s, user("x"), time=1 << 63),
    "time fraction": lambda fx, s: fx.append(s, user("x"), time=1.5),
    "field unknown": lambda fx, s: fx.append(s, user("x"), price=3),
    "role unknown": lambda fx, s: fx.append(s, MessageDraft("robot")),
    "role missing": lambda fx, s: fx.append(s, MessageDraft(None)),  # type: ignore[arg-type]
    "event without kind": lambda fx, s: fx.append(s, MessageDraft("event")),
    "finish unknown": lambda fx, s: fx.append(s, assistant("x"), finish="done"),
    "status unknown": lambda fx, s: fx.append(
        s, assistant(tool("t", status="waiting"))
    ),
    "outcome unknown": lambda fx, s: fx.append(s, assistant(tool("t", outcome="lost"))),
    "message is a string": lambda fx, s: fx.append(s, "hello"),  # type: ignore[arg-type]
    "part is a number": lambda fx, s: fx.append(s, user(3)),  # type: ignore[arg-type]
    "text is bytes": lambda fx, s: fx.append(s, user(PartDraft("text", b"x"))),  # type: ignore[arg-type]
    "tool without a name": lambda fx, s: fx.append(s, assistant(PartDraft("tool"))),
    "title is a number": lambda fx, s: fx.append(s, assistant(tool("t", title=3))),  # type: ignore[arg-type]
    "data 65 bits": lambda fx, s: fx.append(s, user(part("x", n=1 << 64))),
    "data below 64 bits": lambda fx, s: fx.append(s, user(part("x", n=-(1 << 63) - 1))),
    "data key number": lambda fx, s: fx.append(s, user(part("x", m={1: 2}))),
    "data key number, deep": lambda fx, s: fx.append(
        s, user(part("x", m=[OrderedDict({1: 2})]))
    ),
    "data too deep": lambda fx, s: fx.append(s, user(part("x", m=DEEP))),
    "data set": lambda fx, s: fx.append(s, user(part("x", m={1, 2}))),
    "data time": lambda fx, s: fx.append(s, user(part("x", m=datetime.now(UTC)))),
    "data extension": lambda fx, s: fx.append(
        s, user(part("x", m=msgpack.ExtType(1, b"")))
    ),
    "data timestamp": lambda fx, s: fx.append(
        s, user(part("x", m=msgpack.Timestamp(0)))
    ),
    "data of a message": lambda fx, s: fx.append(s, user("x", m=object())),
    "input NaN": lambda fx, s: fx.append(s, assistant(tool("t", {"x": math.nan}))),
    "input key number": lambda fx, s: fx.append(s, assistant(tool("t", {"x": {1: 2}}))),
    "input too deep": lambda fx, s: fx.append(s, assistant(tool("t", DEEP))),
    "input bytes": lambda fx, s: fx.append(s, assistant(tool("t", {"x": b""}))),
    "error no JSON": lambda fx, s: fx.append(s, assistant("x"), error={"x": {1, 2}}),
    "two parts with one id": lambda fx, s: fx.append(
        s, user(text("a", id="p"), text("b", id="p"))
    ),
    "after 65 bits": lambda fx, s: fx.append(s, user("x"), after=1 << 63),
    "after zero": lambda fx, s: fx.append(s, user("x"), after=0),
    "leaf bool": lambda fx, s: fx.append(s, user("x"), expect_leaf=True),
    "leaf fraction": lambda fx, s: fx.append(s, user("x"), expect_leaf=1.5),
    "revision text": lambda fx, s: fx.append(s, user("x"), expect_revision="1"),  # type: ignore[arg-type]
    "session is None": lambda fx, s: fx.append(None, user("x")),  # type: ignore[arg-type]
    "settled twice over": lambda fx, s: fx.settle(s, "prt", output="a", error="b"),
    "result is a number": lambda fx, s: fx.settle(s, "prt", output=3),  # type: ignore[arg-type]
    "result data": lambda fx, s: fx.settle(s, "prt", output="a", extra={1: 2}),
    "finish None": lambda fx, s: fx.finish(s, "msg", finish=None),  # type: ignore[arg-type]
    "title empty": lambda fx, s: fx.set_title(s, ""),
    "title by a stranger": lambda fx, s: fx.set_title(s, "x", by="cat"),
    "metadata a list": lambda fx, s: fx.set_metadata(s, [1]),  # type: ignore[arg-type]
    "metadata key number": lambda fx, s: fx.set_metadata(s, {"a": {1: 2}}),
    "revert a string": lambda fx, s: fx.set_revert(s, "msg"),  # type: ignore[arg-type]
    "permission NaN": lambda fx, s: fx.set_permission(s, math.nan),
    "todo a number": lambda fx, s: fx.set_todos(s, [3]),  # type: ignore[list-item]
    "todo id a number": lambda fx, s: fx.set_todos(s, [Todo("x", id=3)]),  # type: ignore[arg-type]
    "diff content text": lambda fx, s: fx.set_diffs(s, [FileDiff("a", before="x")]),  # type: ignore[arg-type]
    "diff without a path": lambda fx, s: fx.set_diffs(s, [FileDiff("")]),
    "two diffs of one path": lambda fx, s: fx.set_diffs(
        s, [FileDiff("a"), FileDiff("a")]
    ),
    "prompt empty": lambda fx, s: fx.add_prompt(""),
    "directory a number": lambda fx, s: fx.create_session(directory=3),  # type: ignore[arg-type]
    "directory NUL": lambda fx, s: fx.create_session(directory="/tmp/a\0b"),
    "directory not Unicode": lambda fx, s: fx.create_session(directory="/tmp/\udcff"),
    "relation without parent": lambda fx, s: fx.create_session(relation="fork"),
    "relation unknown": lambda fx, s: fx.create_session(parent=s, relation="friend"),
    "cut twice": lambda fx, s: fx.fork(s, at="a", before="b"),
}


@pytest.fixture(scope="module")
def anywhere() -> Iterator[Store]:
    """A store for units that are never committed."""
    with Store.open(":memory:") as store:
        yield store


@pytest.fixture
def unit(anywhere: Store) -> Unit:
    return anywhere._core.unit()


@pytest.mark.parametrize("name", BAD_VALUES)
def test_a_bad_value_is_refused_at_the_verb_and_leaves_the_unit_as_it_was(
    unit: Unit, name: str
) -> None:
    with pytest.raises(InvalidInputError) as refused:
        BAD_VALUES[name](unit, SessionHandle("ses"))
    assert unit.effects == []
    assert refused.value.exit_code == 2


BAD_IDS = ["", "a\nb", "a\0", "\x7f", "\x85", "\ud800", "é" * 129, None, 7, b"id"]
TAKERS: dict[str, Callable[[Unit, Any], object]] = {
    "session": lambda fx, bad: fx.create_session(id=bad if bad is not None else ""),
    "message": lambda fx, bad: fx.append(
        "ses", user("x", id=bad if bad is not None else "")
    ),
    "part": lambda fx, bad: fx.append(
        "ses", user(text("x", id=bad if bad is not None else ""))
    ),
    "turn": lambda fx, bad: fx.append(
        "ses", user("x"), turn_id=bad if bad is not None else ""
    ),
    "prompt": lambda fx, bad: fx.add_prompt("x", id=bad if bad is not None else ""),
    "label": lambda fx, bad: fx.label("ses", 1, bad if bad is not None else ""),
    "fork": lambda fx, bad: fx.fork("ses", id=bad if bad is not None else ""),
    "target session": lambda fx, bad: fx.archive(bad),
    "target part": lambda fx, bad: fx.settle("ses", bad),
}


@pytest.mark.parametrize("taker", TAKERS)
@pytest.mark.parametrize("bad", BAD_IDS, ids=ascii)
def test_an_id_is_a_printable_string_of_at_most_256_bytes(
    unit: Unit, taker: str, bad: Any
) -> None:
    with pytest.raises(InvalidInputError):
        TAKERS[taker](unit, bad)
    assert unit.effects == []


async def test_ids_of_256_bytes_in_any_script_are_taken(contract: Contract) -> None:
    ids = {name: name + "é" * 100 for name in ("ses", "msg", "prt", "trn")}
    async with contract.store.effects() as fx:
        s = fx.create_session(id=ids["ses"])
        fx.append(s, user(text("x", id=ids["prt"]), id=ids["msg"]), turn_id=ids["trn"])
    (message,) = await contract.store.messages(ids["ses"])
    assert (message.id, message.parts[0].id) == (ids["msg"], ids["prt"])


async def test_nothing_of_a_unit_is_written_when_one_verb_refuses(
    contract: Contract, session: SessionHandle
) -> None:
    with pytest.raises(CodecError):
        async with contract.store.effects() as fx:
            fx.append(session, user("before"))
            fx.create_session(title="another")
            fx.append(session, user(part("x", m={1: 2})))
    assert await contract.store.messages(session) == []
    assert contract.rows("SELECT count(*) FROM session") == [(1,)]


async def test_a_refused_verb_can_be_corrected_in_the_same_unit(
    contract: Contract, session: SessionHandle
) -> None:
    async with contract.store.effects() as fx:
        with pytest.raises(InvalidInputError):
            fx.append(session, user("x", id="m1"), after=0)
        m = fx.append(session, assistant(tool("t", id="p1"), id="m1"), open=True)
        with pytest.raises(InvalidInputError):
            fx.settle(session, "p1", output="x", title=3)  # type: ignore[arg-type]
        fx.settle(session, "p1", output="x")
        with pytest.raises(InvalidInputError):
            fx.finish(session, m, time="now")  # type: ignore[arg-type]
        fx.finish(session, m)
        with pytest.raises(ConflictError):
            fx.create_session(id=fx.create_session(id="two").id)
    (message,) = await contract.store.messages(session)
    assert (message.id, message.finish, message.parts[0].text) == ("m1", "stop", "x")


STAGED: dict[str, Queue] = {
    "a session made twice": lambda fx, s: [fx.create_session(id="n") for _ in "ab"],
    "a message written twice": lambda fx, s: [
        fx.append(s, user("x", id="m")) for _ in "ab"
    ],
    "a message finished twice": lambda fx, s: [
        fx.finish(s, m) for m in [fx.append(s, user("x"), open=True)] * 2
    ],
    "a part in what was deleted": lambda fx, s: [
        fx.delete(s),
        fx.add_part(s, "m", "y"),
    ],
    "a call settled twice": lambda fx, s: [fx.settle(s, "p", output="x") for _ in "ab"],
    "a call started when settled": lambda fx, s: [fx.settle(s, "p"), fx.start(s, "p")],
    "a message in what was deleted": lambda fx, s: [
        fx.delete(s),
        fx.append(s, user("x")),
    ],
    "a title for what was deleted": lambda fx, s: [fx.delete(s), fx.set_title(s, "x")],
    "a fork of what was deleted": lambda fx, s: [fx.delete(s), fx.fork(s)],
    "a session deleted twice": lambda fx, s: [fx.delete(s), fx.delete(s)],
}


@pytest.mark.parametrize("name", STAGED)
def test_a_unit_knows_what_it_staged_itself(unit: Unit, name: str) -> None:
    with pytest.raises((InvalidInputError, ConflictError)):
        STAGED[name](unit, SessionHandle("ses"))


EXACT = ["a\0b", "\0", "\ud800", "x\udfffy", "a\0\ud800" * 600, "☃\u2400\ufffd"]


@pytest.mark.parametrize("value", EXACT, ids=lambda v: ascii(v[:8]))
async def test_nul_and_lone_surrogates_are_kept_exactly(
    contract: Contract, session: SessionHandle, value: str
) -> None:
    async with contract.store.effects() as fx:
        m = fx.append(
            session,
            assistant(
                text(value), tool("t", {"v": value}, output=value), part("x", v=value)
            ),
            open=True,
        )
        c = fx.add_part(session, m, tool("u"))
        fx.finish(session, m, error={"v": value})
    await contract.store.settle(session, c, output=value, note=value)
    (message,) = await contract.store.messages(session)
    said, call, odd, later = message.parts
    assert [said.text, call.text, later.text] == [value] * 3
    assert [call.input, odd.data, message.error, later.data] == [{"v": value}] * 3 + [
        {"note": value}
    ]
    shown = "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in value)
    stored = contract.rows(
        "SELECT text, b.data FROM part LEFT JOIN blob b"
        " ON b.hash = text_blob WHERE text IS NOT NULL OR text_blob IS NOT NULL ORDER BY idx"
    )
    texts = [data.decode() if short is None else short for short, data in stored]
    assert texts == [shown.replace("\0", "\u2400")] * 3


async def test_a_character_in_two_surrogates_is_kept_in_text_and_refused_in_json(
    contract: Contract, session: SessionHandle
) -> None:
    two = "\ud83d\ude00"
    await contract.store.append(session, user(text(two), part("x", v=two)))
    (message,) = await contract.store.messages(session)
    assert (message.parts[0].text, message.parts[1].data) == (two, {"v": two})
    with pytest.raises(CodecError, match="join"):
        await contract.store.append(session, assistant(tool("t", {"v": two})))


async def test_json_numbers_beyond_64_bits_are_kept_in_arguments(
    contract: Contract, session: SessionHandle
) -> None:
    given = {
        "big": 1 << 80,
        "small": -(1 << 63),
        "deep": nested(390),
        "none": None,
        "t": [True],
    }
    edge = {
        "most": (1 << 64) - 1,
        "least": -(1 << 63),
        "deep": nested(390),
        "raw": b"\0\xff",
    }
    await contract.store.append(session, assistant(tool("t", given), part("x", **edge)))
    (message,) = await contract.store.messages(session)
    assert message.parts[0].input == given
    assert message.parts[1].data == edge


async def test_an_unknown_part_type_is_kept_verbatim(
    contract: Contract, session: SessionHandle
) -> None:
    odd = part("hologram", text="seen", angle=1.5, layers=[{"a": None}], raw=b"\0")
    await contract.store.append(
        session, user(odd, file(content=b"\xff" * 5_000, filename="a.bin"))
    )
    await contract.store.append(session, event("anything-at-all", "said", why=[1]))
    first, second = await contract.store.messages(session)
    assert (first.parts[0].type, first.parts[0].text) == ("hologram", "seen")
    assert first.parts[0].data == {"angle": 1.5, "layers": [{"a": None}], "raw": b"\0"}
    assert first.parts[1].data == {"filename": "a.bin", "content": b"\xff" * 5_000}
    assert (second.kind, second.data) == ("anything-at-all", {"why": [1]})


def write_twenty(_: Connection, place: Place, session: str) -> None:
    with Store.open(place, durability="normal", busy_timeout=0.0) as store:
        for n in range(20):
            store.append(session, user(f"meanwhile {n}"))


def delete_on_request(pipe: Connection, place: Place, session: str) -> None:
    with Store.open(place, durability="normal") as store:
        pipe.recv()
        store.delete(session)


@pytest.mark.slow
async def test_no_lock_is_held_while_a_unit_is_open(
    contract: Contract, session: SessionHandle
) -> None:
    async with contract.store.effects() as fx:
        fx.append(session, user("first queued, last written"))
        fx.set_title(session, "open for long")
        ran(write_twenty, contract.place, session.id)
        fx.append(session, user("queued after"))
    seen = [message.text for message in await contract.store.messages(session)]
    assert seen == [f"meanwhile {n}" for n in range(20)] + [
        "first queued, last written",
        "queued after",
    ]


async def test_conditions_on_rows_are_checked_inside_the_transaction(
    contract: Contract, session: SessionHandle
) -> None:
    with (
        other(delete_on_request, contract.place, session.id) as deleter,
        pytest.raises(NotFoundError) as gone,
    ):
        async with contract.store.effects() as fx:
            fx.append(session, user("queued while it was there"))
            deleter.say()
            deleter.end()
    assert (gone.value.effect, gone.value.position) == ("append", 0)
