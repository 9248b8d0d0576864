"""A handle, a record or a full id is exact; only text typed by a user is a REF."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from backends import Backend, Place
from facades import Contract
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sessiondb import (
    ALL,
    ConflictError,
    InvalidInputError,
    MessageHandle,
    NotFoundError,
    PartHandle,
    SessionHandle,
    Store,
    assistant,
    text,
    tool,
    user,
)
from sessiondb.effects import Unit
from sessiondb.model import Session, session_json

# -- sessions with ids that look like parts of each other's names ------------------------

SEEDS = ("user-1234", "1", "12", "%", "_", "ses_1", "brave-otter-7k", "thread-1")


@st.composite
def adversarial(draw: st.DrawFn) -> list[tuple[str, str | None]]:
    """Ids and source ids, each a prefix or suffix of another one, equal to it, or digits."""
    names = set(draw(st.lists(st.sampled_from(SEEDS), min_size=1, max_size=3)))
    for _ in range(draw(st.integers(2, 5))):
        base = draw(st.sampled_from(sorted(names)))
        cut = draw(st.integers(0, len(base)))
        more = draw(st.sampled_from(["", "x", "-1", "4"]))
        names.add(
            draw(st.sampled_from([base[:cut], base[cut:], base + more, base.upper()]))
        )
    ids = sorted(name for name in names if name)
    known = [draw(st.one_of(st.none(), st.sampled_from(ids))) for _ in ids]
    seen: set[str] = set()
    return [(name, None if s in seen or (s and seen.add(s)) else s)
            for name, s in zip(ids, known, strict=True)]  # fmt: skip


VERBS: dict[str, Callable[[Unit, Any], object]] = {
    "append": lambda fx, s: fx.append(s, user("new")),
    "set_title": lambda fx, s: fx.set_title(s, "new"),
    "set_metadata": lambda fx, s: fx.set_metadata(s, {"new": 1}),
    "set_todos": lambda fx, s: fx.set_todos(s, ["new"]),
    "update_session": lambda fx, s: fx.update_session(s, version="new"),
    "archive": lambda fx, s: fx.archive(s),
    "set_leaf": lambda fx, s: fx.set_leaf(s, 1),
    "truncate": lambda fx, s: fx.truncate(s, after=1),
    "label": lambda fx, s: fx.label(s, 1, "new"),
    "finish": lambda fx, s: fx.finish(s, 2),
    "settle": lambda fx, s: fx.settle(s, "c", output="new"),
    "add_part": lambda fx, s: fx.add_part(s, 2, "new"),
    "delete": lambda fx, s: fx.delete(s),
}
READS: dict[str, Callable[[Store, Any], str]] = {
    "session": lambda store, s: store.session(s).id,
    "messages": lambda store, s: store.messages(s)[0].session_id,
    "message": lambda store, s: store.message(s, 1).session_id,
    "walk": lambda store, s: next(store.walk(s)).session_id,
    "context": lambda store, s: store.context(s).messages[0].session_id,
    "export": lambda store, s: store.export(s).session.id,
    "plan_delete": lambda store, s: store.plan_delete(s).sessions[0].id,
}


def state(store: Store) -> dict[str, int]:
    page = store.sessions(project=ALL, archived=True, empty=True, limit=100)
    return {session.id: session.revision for session in page}


def made(place: Place, names: list[tuple[str, str | None]]) -> Store:
    store = Store.open(place, durability="normal", source="tests")
    with store.effects() as fx:
        for name, known in names:
            session = (
                fx.create_session(id=name, directory="/")
                if known is None
                else fx.open_session(known, id=name, directory="/")
            )
            fx.append(session, user(name))
            fx.append(session, assistant(tool("t", {}, call_id="c")), open=True)
    return store


@pytest.mark.slow
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(names=adversarial(), data=st.data())
def test_every_verb_and_read_hits_exactly_the_session_it_is_given(
    backend: Backend,
    names: list[tuple[str, str | None]],
    data: Any,
) -> None:
    with made(backend.fresh(), names) as store:
        gone: set[str] = set()
        for _ in range(6):
            name = data.draw(st.sampled_from([name for name, _ in names]))
            absent = name in gone
            forms = [SessionHandle(name), name] + (
                [] if absent else [store.session(name)]
            )
            form = data.draw(st.sampled_from(forms))
            for read in READS.values():
                if absent:
                    with pytest.raises(NotFoundError):
                        read(store, SessionHandle(name))
                else:
                    assert read(store, form) == name
            verb = data.draw(st.sampled_from(sorted(VERBS)))
            before = state(store)
            with suppress(ConflictError, NotFoundError), store.effects() as fx:
                VERBS[verb](fx, form)
            after = state(store)
            changed = {
                key for key in before | after if before.get(key) != after.get(key)
            }
            assert changed <= {name}
            if verb == "delete":
                gone.add(name)


def test_a_handle_never_means_part_of_another_name(store: Store) -> None:
    session = store.create_session(id="user-1234")
    store.append(session, user("private"))
    for ref in ("1234", "-1234", "er-1234"):
        assert store.session(ref).id == "user-1234", "a person may type it"
        for read in READS.values():
            with pytest.raises(NotFoundError):
                read(store, SessionHandle(ref))
        for verb in (store.delete, store.fork):
            with pytest.raises(NotFoundError):
                verb(SessionHandle(ref))
    found = store.session(store.session(session).slug)
    assert isinstance(found, Session)
    store.delete(found)
    with pytest.raises(NotFoundError):
        store.delete(found)


def test_a_formerly_complete_id_never_matches_as_a_prefix_of_another(
    store: Store,
) -> None:
    for name in ("user-1", "user-12", "x-user-1"):
        store.append(store.create_session(id=name), user(name))
    store.open_session("user-1x")
    store.delete("user-1")
    for again in (store.delete, store.fork, store.session, store.messages):
        with pytest.raises(NotFoundError, match="removed"):
            again("user-1")
    assert {"user-12", "x-user-1"} <= set(state(store))
    native = store.create_session()
    store.append(native, user("x"))
    longer = store.create_session(id=native.id + "0")
    store.append(longer, user("y"))
    assert store.session(native.id).id == native.id
    store.delete(native)
    store.reap()
    with pytest.raises(NotFoundError):
        store.delete(native.id)
    assert store.session(longer.id[:-1] + "0").id == longer.id
    never = store.create_session().id[:-4] + "0000"
    store.create_session(id=never + "0")
    with pytest.raises(NotFoundError):
        store.session(never)


def test_an_id_goes_before_every_other_name(store: Store) -> None:
    first = store.create_session(id="a")
    slug = store.session(first).slug
    by_slug, tail = (
        store.create_session(id=slug),
        store.create_session(id="zzzz-a-long-name"),
    )
    store.open_session("zzzz", id="named")
    exact = store.create_session(id="zzzz")
    assert store.session(slug).id == by_slug.id
    assert store.session("zzzz").id == exact.id
    assert store.session("long-name").id == tail.id
    assert session_json(store.session(first))["slug"] == slug


def test_a_session_id_that_a_ref_cannot_name_is_refused_when_queued(
    store: Store,
) -> None:
    for bad in ("@", "@mine", "@~1"):
        with store.effects() as fx:
            for verb in (
                lambda fx=fx, bad=bad: fx.create_session(id=bad),
                lambda fx=fx, bad=bad: fx.open_session("t", id=bad),
                lambda fx=fx, bad=bad: fx.fork("s", id=bad),
            ):
                with pytest.raises(InvalidInputError, match="@"):
                    verb()
            assert fx.effects == []


# -- messages ----------------------------------------------------------------------------


async def test_a_string_is_an_id_or_a_label_and_a_number_is_a_seq(
    contract: Contract, session: SessionHandle
) -> None:
    store = contract.store
    await store.append(session, user("first"))
    two = await store.append(session, user("second", id="1"))
    await store.append(session, user("third", id="2"))
    await store.label(session, 1, "3")
    await store.label(session, 1, "2")
    wanted = {1: "first", "1": "second", "2": "third", "3": "first", 3: "third"}
    for name, shown in wanted.items():
        assert (await store.message(session, name)).text == shown
    assert (await store.message(session, two)).text == "second"
    for name in ("4", "²", "first", 4, MessageHandle(session.id, "3"), "9" * 5_000):
        with pytest.raises((NotFoundError, InvalidInputError)):
            await store.message(session, name)
    record = (await store.messages(session))[2]
    assert (await store.message(session, record)).text == "third"
    assert [m.text for m in await store.messages(session, after="1")] == ["third"]
    assert [m.text for m in await store.messages(session, before="2")] == [
        "first",
        "second",
    ]
    assert [m.text for m in await store.messages(session, before=2)] == ["first"]
    assert len((await store.context(session, at="1")).messages) == 2


async def test_the_staged_state_of_a_unit_knows_an_id_from_a_seq(
    contract: Contract, session: SessionHandle
) -> None:
    await contract.store.append(session, assistant("open"), open=True)
    async with contract.store.effects() as fx:
        fx.append(session, assistant("complete", id="1"))
        fx.add_part(session, 1, "more")
        fx.finish(session, 1)
    messages = await contract.store.messages(session)
    assert [m.text for m in messages] == ["open\nmore", "complete"]


# -- calls -------------------------------------------------------------------------------


@pytest.mark.parametrize("swapped", [False, True], ids=["later", "earlier"])
async def test_the_id_of_a_call_goes_before_the_call_id_of_another(
    contract: Contract, session: SessionHandle, swapped: bool
) -> None:
    store = contract.store
    calls = [
        tool("mine", {}, id="p1", call_id="c1"),
        tool("theirs", {}, id="p2", call_id="p1"),
    ]
    for call in reversed(calls) if swapped else calls:
        handle = await store.append(session, assistant(call))
    await store.settle(session, "p1", output="by id")

    async def texts() -> dict[str, str | None]:
        parts = [part for m in await store.messages(session) for part in m.parts]
        return {part.tool: part.text for part in parts}

    assert await texts() == {"mine": "by id", "theirs": None}
    await store.settle(
        session, PartHandle(session.id, handle.id, "p2"), output="by handle"
    )
    assert await texts() == {"mine": "by id", "theirs": "by handle"}


async def test_the_handle_of_a_call_that_is_gone_is_not_the_call_id_of_another(
    contract: Contract, session: SessionHandle
) -> None:
    store = contract.store
    kept = await store.append(
        session, assistant(tool("theirs", {}, id="p2", call_id="p1"))
    )
    mine = await store.append(session, assistant(tool("mine", {}, id="p1")))
    (part,) = mine.parts
    await store.truncate(session, after=kept)
    for verb in (store.settle, store.start):
        with pytest.raises(NotFoundError):
            await verb(session, part)
    await store.settle(session, "p1", output="by call_id")
    assert (await store.message(session, kept)).parts[0].text == "by call_id"


async def test_one_unit_settles_a_handle_and_a_call_id_of_the_same_name(
    contract: Contract, session: SessionHandle
) -> None:
    calls = assistant(
        text("x"), tool("a", {}, id="p", call_id="q"), tool("b", {}, id="q")
    )
    handle = await contract.store.append(session, calls)
    async with contract.store.effects() as fx:
        fx.settle(session, "p", output="a")
        fx.settle(session, handle.parts[2], output="b")
    parts = (await contract.store.messages(session))[0].parts
    assert [part.text for part in parts] == ["x", "a", "b"]
