"""An object that an open unit creates: the store does not know it yet, and says why."""

from __future__ import annotations

from typing import Any

import pytest
from facades import Contract

from sessiondb import NotFoundError, SessionHandle, assistant, user


async def test_a_verb_or_read_on_a_session_of_an_open_unit_points_to_the_unit(
    contract: Contract,
) -> None:
    store = contract.store
    async with store.effects() as fx:
        session = fx.create_session()
        for use in (
            lambda: store.append(session, user("a")),
            lambda: store.append(session.id, user("a")),
            lambda: store.set_title(session, "a"),
            lambda: store.fork(session),
            lambda: store.delete(session.id),
            lambda: store.messages(session),
            lambda: store.session(session.id),
            lambda: store.create_session(parent=session),
        ):
            with pytest.raises(
                NotFoundError, match="unit that is still open"
            ) as caught:
                await use()
            assert "fx.append" in (caught.value.hint or "")
        fx.append(session, user("a"))
    assert len(await store.messages(session)) == 1
    contract.check()


async def test_a_message_of_an_open_unit_points_to_the_unit(
    contract: Contract, session: SessionHandle
) -> None:
    store = contract.store
    async with store.effects() as fx:
        answer = fx.append(session, assistant("a"), open=True)
        for use in (
            lambda: store.finish(session, answer),
            lambda: store.add_part(session, answer, "b"),
            lambda: store.message(session, answer),
        ):
            with pytest.raises(NotFoundError, match="unit that is still open"):
                await use()


async def test_what_no_open_unit_creates_is_only_not_there(contract: Contract) -> None:
    store = contract.store

    async def error_of(name: Any) -> NotFoundError:
        with pytest.raises(NotFoundError) as caught:
            await store.append(name, user("a"))
        return caught.value

    with pytest.raises(ZeroDivisionError):
        async with store.effects() as fx:
            gone = fx.create_session()
            assert "unit" not in str(await error_of("ses_other"))
            raise ZeroDivisionError
    del fx
    assert "unit" not in str(await error_of(gone))
