"""A session can be dated: chats that are older than their row are listed where they belong."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest
from backends import Backend, Place
from facades import Contract

from sessiondb import (
    ALL,
    BEGINNING,
    InvalidInputError,
    PartDraft,
    Store,
    assistant,
    ids,
    tool,
    user,
)
from sessiondb.maintenance import plan_prune

DAY = 86_400_000
OLD = 1_700_000_000_000


async def test_a_session_made_for_an_old_chat_is_as_old_as_the_chat(
    contract: Contract,
) -> None:
    store = contract.store
    session = await store.create_session(time=OLD, directory="/tmp")
    found = await store.session(session)
    assert (found.time_created, found.time_updated, ids.time_of(session.id)) == (
        OLD,
        OLD,
        OLD,
    )
    await store.append(session, user("asked"), time=OLD + 2_000)
    call = tool("a", {}, output="fine")
    await store.append(session, assistant("answered", call), time=OLD + 3_000)
    await store.append(session, user("told late"), time=OLD + 1_000)
    assert (await store.session(session)).time_updated == OLD + 3_000
    answer = await store.append(session, assistant("more"), time=OLD + 4_000, open=True)
    await store.finish(session, answer, time=OLD + 9_000)
    assert (await store.session(session)).time_updated == OLD + 9_000
    assert ids.time_of(session.id) == OLD

    call = tool("b", {}, call_id="c")
    answer = await store.append(session, assistant(call), time=OLD + 10_000, open=True)
    await store.start(session, "c", time=OLD + 11_000)
    await store.settle(session, "c", output="fine", time=OLD + 12_000)
    await store.add_part(
        session, answer, PartDraft("text", "so", time_created=OLD + 13_000)
    )
    await store.finish(session, answer, time=OLD + 14_000)
    assert (await store.session(session)).time_updated == OLD + 14_000
    parts = (await store.message(session, answer)).parts
    assert (parts[0].time_started, parts[0].time_ended) == (OLD + 11_000, OLD + 12_000)
    assert [part.time_created for part in parts] == [OLD + 10_000, OLD + 13_000]
    await store.append(session, user("today"))
    assert (await store.session(session)).time_updated > time.time() * 1000 - DAY


async def test_the_newest_stated_time_holds_also_in_a_session_that_was_made_today(
    contract: Contract,
) -> None:
    session = await contract.store.create_session()
    await contract.store.append(session, user("asked"), time=OLD)
    await contract.store.append(session, assistant("answered"), time=OLD + 1)
    assert (await contract.store.session(session)).time_updated == OLD + 1


async def test_a_time_may_be_a_datetime_and_must_be_one_in_milliseconds(
    contract: Contract,
) -> None:
    moment = datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
    session = await contract.store.create_session(time=moment)
    assert (await contract.store.session(session)).time_created == OLD
    for bad in (OLD // 1000, 0, -1, OLD * 1000, "2023", datetime(2023, 11, 14)):  # noqa: DTZ001
        with pytest.raises(InvalidInputError):
            await contract.store.create_session(time=bad)


@pytest.fixture
def dated(backend: Backend) -> Place:
    """A database with ten chats, one a day, the oldest written last, and one of today."""
    place = backend.fresh()
    with Store.open(place, durability="normal") as store:
        store.append(store.create_session(title="today", directory="/tmp"), user("x"))
        for day in range(10):
            when = OLD - day * DAY
            session = store.create_session(title=f"{day}", time=when, directory="/tmp")
            store.append(session, user("x"), time=when)
    return place


def test_lists_filters_and_prune_go_by_the_stated_time(dated: Place) -> None:
    with Store.open(dated, durability="normal") as store:
        expected = ["today", *map(str, range(10))]
        for order in ("used", "created"):
            page = store.sessions(project=ALL, order=order)
            assert [session.title for session in page] == expected
        page = store.sessions(project=ALL, since=OLD - 3 * DAY, until=OLD)
        assert [session.title for session in page] == ["1", "2", "3"]
        removal = plan_prune(store, older_than=OLD - 6 * DAY, project=ALL)
        assert sorted(session.title for session in removal.going.values()) == [
            "7",
            "8",
            "9",
        ]


def test_a_session_made_now_is_above_all_that_were_dated(dated: Place) -> None:
    with Store.open(dated, durability="normal") as store:
        newest = store.create_session(directory="/tmp")
        store.append(newest, user("x"))
        assert store.sessions(project=ALL, order="created").items[0].id == newest.id


async def test_a_feed_reports_writes_that_state_an_old_time(
    contract: Contract,
) -> None:
    session = await contract.store.create_session(time=OLD)
    feed = contract.store.changes(since=BEGINNING)
    first = await anext(feed)
    await contract.store.append(session, user("x"), time=OLD)
    second = await anext(feed)
    assert (first.session_id, second.session_id) == (session.id, session.id)
    assert second.cursor > first.cursor
    await feed.aclose()
