"""A session has the model of its last answer unless one is stated, and every field a verb."""

from __future__ import annotations

from typing import Any

import pytest
from backends import Backend
from facades import Contract

from sessiondb import (
    ALL,
    InvalidInputError,
    MessageDraft,
    NotFoundError,
    SessionHandle,
    Store,
    assistant,
    event,
    user,
)
from sessiondb.formats import find
from sessiondb.model import SourceMessage, SourceSession

OLD = 1_700_000_000_000


async def model(contract: Contract, session: Any) -> tuple[str | None, str | None, str]:
    found = await contract.store.session(session)
    return found.provider_id, found.model_id, found.model_source


async def test_the_model_is_that_of_the_last_answer(
    contract: Contract, session: SessionHandle
) -> None:
    store = contract.store
    assert await model(contract, session) == (None, None, "derived")
    await store.append(session, user("x"), model="not an answer")
    assert await model(contract, session) == (None, None, "derived")
    await store.append(session, assistant("x"), provider="p", model="one")
    assert await model(contract, session) == ("p", "one", "derived")
    await store.append(session, assistant("x"))
    await store.append(session, event("model_change", model_id="three"))
    assert await model(contract, session) == ("p", "one", "derived")
    last = await store.append(session, assistant("x"), model="two", open=True)
    assert await model(contract, session) == (None, "two", "derived")
    fork = await store.fork(session, before=last)
    assert await model(contract, fork) == ("p", "one", "derived")
    await store.truncate(session, after=4)
    assert await model(contract, session) == ("p", "one", "derived")
    await store.truncate(session, after=None)
    assert await model(contract, session) == (None, None, "derived")
    contract.check()


async def test_a_stream_sets_it_with_its_first_write(
    contract: Contract, session: SessionHandle
) -> None:
    async with contract.store.stream(session, provider="p", model="m") as out:
        out.text().add("hello")
        assert await model(contract, session) == ("p", "m", "derived")
    assert await model(contract, session) == ("p", "m", "derived")


async def test_a_model_that_the_caller_sets_stays_until_it_is_cleared(
    contract: Contract,
) -> None:
    store = contract.store
    session = await store.create_session(model="mine", provider="p")
    await store.append(session, assistant("x"), model="one", provider="q")
    assert await model(contract, session) == ("p", "mine", "caller")
    assert (await model(contract, await store.fork(session)))[1:] == ("mine", "caller")
    await store.update_session(session, model=None)
    assert await model(contract, session) == ("q", "one", "derived")
    async with store.effects() as fx:
        fx.append(session, assistant("x"), model="two")
        fx.update_session(session, model="fixed")
        fx.append(session, assistant("x"), model="three")
    assert (await model(contract, session))[1:] == ("fixed", "caller")


async def test_the_descriptive_fields_of_a_session_can_be_set(
    contract: Contract, session: SessionHandle
) -> None:
    store = contract.store
    before = await store.session(session)
    given: dict[str, Any] = {
        "version": "1.2", "agent": "plan", "provider": "p", "model": "m",
        "summary_additions": 3, "summary_deletions": 0, "summary_files": 2,
        "summary_diffs": [{"file": "a.py", "additions": 3}], "time_compacting": OLD,
    }  # fmt: skip
    await store.update_session(session, **given)
    found = await store.session(session)
    named = {"provider": "provider_id", "model": "model_id"}
    assert {name: getattr(found, named.get(name, name)) for name in given} == given
    assert (found.time_updated, found.revision) == (
        before.time_updated,
        before.revision + 1,
    )
    await store.update_session(session, version=None, time_compacting=None)
    cleared = await store.session(session)
    assert (cleared.version, cleared.time_compacting) == (None, None)
    assert (cleared.agent, cleared.summary_files) == ("plan", 2)


BAD: list[dict[str, Any]] = [
    {}, {"version": 3}, {"agent": b"x"}, {"model": 1}, {"summary_additions": -1},
    {"summary_files": 1.5}, {"summary_deletions": True}, {"summary_diffs": {1, 2}},
    {"time_compacting": 1_700_000_000}, {"time_compacting": "now"},
]  # fmt: skip


@pytest.mark.parametrize("fields", BAD, ids=str)
async def test_a_field_of_the_wrong_kind_is_refused_when_queued(
    contract: Contract, session: SessionHandle, fields: dict[str, Any]
) -> None:
    unit = contract.store.unit()
    with pytest.raises(InvalidInputError):
        unit.update_session(session, **fields)
    assert unit.effects == []


async def test_only_a_session_that_is_here_can_be_updated(contract: Contract) -> None:
    with pytest.raises(NotFoundError):
        await contract.store.update_session("none", version="1")


def read(store: Store, digest: str, *models: str, stated: str | None = None) -> None:
    messages = [
        SourceMessage(MessageDraft("assistant", id=f"m{n}", model_id=name))
        for n, name in enumerate(models)
    ]
    item = SourceSession(
        "other", "s", "/store", digest, messages, directory="/", model_id=stated
    )
    assert all(type(result).__name__ == "Imported" for result in store.ingest([item]))


def test_an_import_without_a_model_of_its_own_has_that_of_its_last_answer(
    backend: Backend,
) -> None:
    with Store.open(backend.fresh(), durability="normal") as store:
        read(store, "1", "one", "two")
        found = store.session("s")
        assert (found.model_id, found.model_source) == ("two", "derived")
        revision = found.revision
        read(store, "2", "one", "two")
        assert store.session("s").revision == revision, "nothing changed"
        read(store, "3", "one", "two", "three")
        assert store.session("s").model_id == "three"
        read(store, "4", "one", "two", "three", stated="stated")
        assert (store.session("s").model_id, store.session("s").model_source) == (
            "stated", "source",
        )  # fmt: skip
        store.update_session(found, model="mine")
        read(store, "5", "one", "two", "three", stated="again")
        assert (store.session("s").model_id, store.session("s").model_source) == (
            "mine",
            "caller",
        )


def test_every_real_session_with_answers_has_a_model(
    real_store: Any, backend: Backend
) -> None:
    with Store.open(backend.fresh(), durability="normal") as store:
        for found in find(real_store("opencode-1.1.65")):
            list(store.ingest(found.read()))
        sessions = list(store.sessions(project=ALL, subagents=True))
        assert len(sessions) >= 9
        for session in sessions:
            answers = {m.model_id for m in store.messages(session, branches=True)} - {
                None
            }
            assert (
                (session.model_id in answers) if answers else session.model_id is None
            )
