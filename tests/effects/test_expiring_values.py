"""Values with a ttl: gone at their time, and removed from the file soon after."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest
from backends import Backend
from facades import Contract, eventually

from sessiondb import ConflictError, Store, user
from sessiondb.maintenance import vacuum


async def age(contract: Contract, milliseconds: int) -> None:
    """Let all values be older, as if the clock had moved."""
    contract.execute(
        f"UPDATE key_value SET time_expires = time_expires - {milliseconds}"
    )


async def test_a_value_is_gone_at_its_time(contract: Contract) -> None:
    store = contract.store
    await store.set_value("cache", "k", 1, ttl=60)
    await store.set_value("cache", "kept", 2)
    value = await store.value("cache", "k")
    assert value.time_expires == value.time_updated + 60_000
    await age(contract, 60_000)
    assert await store.value("cache", "k") is None
    assert [item.key for item in await store.values("cache")] == ["kept"]
    assert [item.key for item in await store.values(order="updated")] == ["kept"]
    one, other = await store.values_of([("cache", "k"), ("cache", "kept")])
    assert (one, other.value) == (None, 2)
    assert (await store.delete_values("cache")).deleted == 1


async def test_a_namespace_of_expired_values_is_not_listed(contract: Contract) -> None:
    await contract.store.set_value(("cache", "a"), "k", 1, ttl=60)
    await contract.store.set_value(("cache", "b"), "k", 1)
    await age(contract, 60_000)
    assert (await contract.store.namespaces()).items == (("cache", "b"),)


async def test_a_write_over_an_expired_value_begins_a_new_one(
    contract: Contract,
) -> None:
    store = contract.store
    await store.set_value("cache", "k", {"n": 1}, ttl=60)
    await age(contract, 60_000)
    contract.execute("UPDATE key_value SET time_created = 5")
    seen = []
    with pytest.raises(ConflictError, match="does not exist"):
        await store.set_value("cache", "k", 2, expect_revision=1)
    handle = await store.update_value("cache", "k", lambda old: seen.append(old) or 2)
    value = await store.value("cache", "k")
    assert seen == [None]
    assert (value.value, value.time_expires) == (2, None)
    assert value.time_created > 5
    # Never one that it had before.
    assert handle.revision == value.revision == 2


async def test_a_set_states_the_ttl_and_an_update_keeps_it(contract: Contract) -> None:
    store = contract.store
    await store.set_value("cache", "k", 1, ttl=60)
    await age(contract, 30_000)
    await store.update_value("cache", "k", lambda present: present + 1)
    value = await store.value("cache", "k")
    assert value.time_expires == value.time_updated + 60_000
    await store.update_value("cache", "k", lambda present: present, ttl=90)
    value = await store.value("cache", "k")
    assert value.time_expires == value.time_updated + 90_000
    await store.update_value("cache", "k", lambda present: present, ttl=None)
    assert (await store.value("cache", "k")).time_expires is None
    await store.set_value("cache", "k", 1, ttl=60)
    await store.set_value("cache", "k", 1)
    assert (await store.value("cache", "k")).time_expires is None


async def test_a_refresh_prolongs_by_the_ttl_and_changes_nothing_else(
    contract: Contract,
) -> None:
    store = contract.store
    await store.set_value("cache", "k", 1, ttl=60)
    await store.set_value("cache", "kept", 1)
    before = await store.value("cache", "k")
    await age(contract, 59_000)
    await store.refresh_value("cache", "k")
    await store.refresh_value("cache", "kept")
    value = await store.value("cache", "k")
    assert value.time_expires >= before.time_expires
    assert (value.revision, value.time_updated) == (1, before.time_updated)
    assert (await store.value("cache", "kept")).time_expires is None
    await age(contract, 70_000)
    await store.refresh_value("cache", "k")
    assert await store.value("cache", "k") is None


async def test_what_expired_below_a_namespace_is_removed_and_counted(
    contract: Contract,
) -> None:
    store = contract.store
    await store.set_value(("cache", "a"), "k", 1, ttl=60)
    await store.set_value(("cache", "a"), "later", 1, ttl=600)
    await store.set_value("cache", "kept", 1)
    await store.set_value("other", "k", 1, ttl=60)
    assert (await store.delete_expired("cache")).deleted == 0
    await age(contract, 60_000)
    assert (await store.delete_expired(("cache", "a"))).deleted == 1
    rows = contract.rows("SELECT namespace, key FROM key_value ORDER BY namespace")
    assert rows == [
        ('["cache","a"]', "later"),
        ('["cache"]', "kept"),
        ('["other"]', "k"),
    ]
    # Revisions continue after what was removed.
    assert (await store.set_value(("cache", "a"), "k", 1)).revision == 2
    assert (await store.delete_expired()).deleted == 1


@pytest.mark.slow
async def test_expired_values_are_removed_in_the_background(contract: Contract) -> None:
    await contract.store.set_value("cache", "later", 1, ttl=3600)
    for number in range(3):
        await contract.store.set_value("cache", f"k{number}", 1, ttl=0.01)
    await eventually(lambda: contract.rows("SELECT key FROM key_value") == [("later",)])
    # The next write of such a key continues the revisions.
    assert (await contract.store.set_value("cache", "k1", 1)).revision == 2


@pytest.mark.slow
async def test_an_opening_finds_what_expires(contract: Contract) -> None:
    await contract.store.set_value("cache", "soon", 1, ttl=0.3)
    await contract.store.set_value("cache", "then", 1, ttl=1.6)
    await contract.store.close()
    await contract.open()
    await eventually(lambda: contract.rows("SELECT key FROM key_value") == [("then",)])
    await eventually(lambda: contract.rows("SELECT key FROM key_value") == [])


async def test_reaping_removes_what_expired(contract: Contract) -> None:
    store = contract.store
    for number in range(3):
        await store.set_value("cache", f"k{number}", b"x", ttl=3600)
    await store.set_value("cache", "kept", 1)
    await age(contract, 3_600_000)
    await store.reap()
    assert contract.rows("SELECT key FROM key_value") == [("kept",)]


@pytest.fixture
def expired(backend: Backend) -> Iterator[Store]:
    """A store of a session and 5,000 values of which half expired."""
    place = backend.fresh()
    now = int(time.time() * 1000)
    backend.run_many(
        place,
        "INSERT INTO key_value (namespace, key, revision, ttl, time_created, "
        "time_updated, time_expires, value) VALUES ('[\"c\"]', ?, ?, 9, 1, 1, ?, '1')",
        [
            (str(number), number, now + (3_600_000 if number % 2 else -1))
            for number in range(1, 5_001)
        ],
    )
    with Store.open(place, durability="normal") as store:
        yield store


@pytest.mark.slow
def test_many_expired_values_are_removed_in_short_transactions(
    backend: Backend, expired: Store
) -> None:
    session = expired.create_session(directory="/")
    expired.append(session, user("Hello"))
    # 2,500 of them, 2,000 in each at most.
    assert expired.reap() == 2
    assert backend.rows(expired, "SELECT count(*) FROM key_value") == [(2_500,)]
    # 5,000 expired: no value gets that revision again.
    assert expired.set_value("c", "new", 1).revision == 5_001


@pytest.mark.slow
@pytest.mark.needs("is_file", "a vacuum is of a file")
def test_a_vacuum_leaves_no_expired_value(backend: Backend, expired: Store) -> None:
    vacuum(expired)
    assert backend.rows(expired, "SELECT count(*) FROM key_value") == [(2_500,)]


def test_a_store_that_only_reads_removes_nothing(backend: Backend) -> None:
    place = backend.fresh()
    with Store.open(place) as store:
        store.set_value("cache", "k", 1, ttl=0.001)
    with Store.open(place, read_only=True) as store:
        assert store.value("cache", "k") is None
        assert not store._core.has_thread


async def test_times_of_many_values_need_one_timer(contract: Contract) -> None:
    core = contract.store.inner._core
    timers = []
    core.reap_soon, reap_soon = timers.append, core.reap_soon
    for _ in range(20):
        await contract.store.set_value("cache", "k", 1, ttl=3600)
    core.reap_soon = reap_soon
    assert len(timers) == 1
    await asyncio.sleep(0)
