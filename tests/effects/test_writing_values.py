"""Values by namespace and key: written, updated, removed, by one program and by several."""

from __future__ import annotations

import asyncio
import json
import math
import multiprocessing
from typing import Any

import pytest
from backends import Backend, Place
from facades import Contract
from hypothesis import given
from hypothesis import strategies as st

from sessiondb import AsyncStore, ConflictError, KeyValue, Store, user
from sessiondb.errors import CodecError, InvalidInputError

USER = ("users", "42")


async def revision_of(contract: Contract, key: str) -> int | None:
    value: KeyValue | None = await contract.store.value(USER, key)
    return None if value is None else value.revision


async def test_a_value_is_read_as_it_was_written(contract: Contract) -> None:
    content = {"dark": True, "size": 1.5, "tags": ["a", None], "nested": {"": 2**70}}
    handle = await contract.store.set_value(USER, "theme", content)
    value = await contract.store.value(USER, "theme")
    assert (handle.namespace, handle.key, handle.revision) == (USER, "theme", 1)
    assert (value.namespace, value.key, value.value) == (USER, "theme", content)
    assert value.revision == 1
    assert value.time_created == value.time_updated
    assert value.time_expires is None
    assert await contract.store.value(USER, "other") is None
    assert await contract.store.value("users", "theme") is None


async def test_a_string_is_a_namespace_of_one_name(contract: Contract) -> None:
    await contract.store.set_value("app", "count", 1)
    value = await contract.store.value(["app"], "count")
    assert value.namespace == ("app",)


async def test_names_and_values_are_stored_as_json(contract: Contract) -> None:
    await contract.store.set_value(("users", 'a "b"', "Ä"), "k", {"name": "Ada"})
    assert contract.rows("SELECT namespace, value FROM key_value") == [
        ('["users","a \\"b\\"","Ä"]', '{"name":"Ada"}')
    ]


@pytest.mark.parametrize("content", [b"", b"\0\xff", b"x" * 5_000])
async def test_bytes_stay_bytes(contract: Contract, content: bytes) -> None:
    await contract.store.set_value("files", "f", content)
    assert (await contract.store.value("files", "f")).value == content
    assert contract.rows("SELECT value, content FROM key_value") == [(None, content)]


async def test_null_is_a_value(contract: Contract) -> None:
    await contract.store.set_value("app", "nothing", None)
    assert (await contract.store.value("app", "nothing")).value is None
    assert contract.rows("SELECT value FROM key_value") == [("null",)]


async def test_each_write_raises_the_revision_and_keeps_the_creation(
    contract: Contract,
) -> None:
    await contract.store.set_value(USER, "k", 1)
    first = await contract.store.value(USER, "k")
    contract.execute("UPDATE key_value SET time_created = 5, time_updated = 5")
    handle = await contract.store.set_value(USER, "k", b"2")
    second = await contract.store.value(USER, "k")
    assert (first.revision, handle.revision, second.revision) == (1, 2, 2)
    assert (second.time_created, second.value) == (5, b"2")
    assert second.time_updated > 5


async def test_an_expected_revision_is_that_of_the_value_or_a_conflict(
    contract: Contract,
) -> None:
    store = contract.store
    with pytest.raises(ConflictError, match="does not exist, but revision 1"):
        await store.set_value(USER, "k", 1, expect_revision=1)
    await store.set_value(USER, "k", 1, expect_revision=0)
    with pytest.raises(ConflictError, match="exists, with revision 1"):
        await store.set_value(USER, "k", 2, expect_revision=0)
    await store.set_value(USER, "k", 2, expect_revision=1)
    with pytest.raises(ConflictError, match="has revision 2, not 1"):
        await store.set_value(USER, "k", 3, expect_revision=1)
    with pytest.raises(ConflictError, match="has revision 2, not 1"):
        await store.delete_value(USER, "k", expect_revision=1)
    assert (await store.value(USER, "k")).value == 2
    await store.delete_value(USER, "k", expect_revision=2)
    with pytest.raises(ConflictError, match="does not exist"):
        await store.delete_value(USER, "k", expect_revision=2)


async def test_a_conflict_fails_all_of_its_unit(contract: Contract) -> None:
    await contract.store.set_value(USER, "k", 1)
    with pytest.raises(ConflictError) as raised:
        async with contract.store.effects() as fx:
            fx.set_value(USER, "other", 1)
            handle = fx.set_value(USER, "k", 2, expect_revision=7)
    assert (raised.value.effect, raised.value.position) == ("set_value", 1)
    assert handle.revision is None
    assert await revision_of(contract, "other") is None


async def test_a_value_and_a_message_are_written_together(contract: Contract) -> None:
    async with contract.store.effects() as fx:
        session = fx.create_session(directory="/")
        fx.append(session, user("Hello"))
        handle = fx.set_value(("state", session.id), "turns", 1)
        fx.update_value(("state", session.id), "turns", lambda turns: turns + 1)
    assert handle.revision == 1
    assert (await contract.store.value(("state", session.id), "turns")).value == 2


async def test_a_revision_is_never_used_twice_for_a_key(contract: Contract) -> None:
    store = contract.store
    for _ in range(3):
        await store.set_value(USER, "k", "first")
    await store.delete_value(USER, "k")
    assert (await store.set_value(USER, "k", "second")).revision == 4
    await store.delete_values("users")
    with pytest.raises(ConflictError):
        await store.set_value(USER, "k", "third", expect_revision=4)
    assert (await store.set_value(USER, "k", "third", expect_revision=0)).revision == 5


async def test_an_update_gets_the_present_value_or_none(contract: Contract) -> None:
    seen: list[Any] = []

    def fold(present: Any) -> Any:
        seen.append(present)
        return {"turns": (present or {"turns": 0})["turns"] + 1}

    first = await contract.store.update_value("state", "s", fold)
    second = await contract.store.update_value("state", "s", fold)
    assert seen == [None, {"turns": 1}]
    assert (first.revision, second.revision) == (1, 2)
    assert (await contract.store.value("state", "s")).value == {"turns": 2}


async def test_an_equal_result_of_an_update_writes_nothing(contract: Contract) -> None:
    store = contract.store
    await store.set_value("state", "s", {"a": 1, "b": [2]}, ttl=60)
    contract.execute("UPDATE key_value SET time_updated = 5")
    handle = await store.update_value("state", "s", dict)
    assert handle.revision == 1
    assert contract.rows("SELECT revision, time_updated FROM key_value") == [(1, 5)]
    # 1 and 1.0 are equal in Python, and two spellings of JSON.
    handle = await store.update_value("state", "s", lambda old: old | {"a": 1.0})
    assert handle.revision == 2
    handle = await store.update_value("state", "s", dict, ttl=None)
    assert (handle.revision, (await store.value("state", "s")).time_expires) == (
        3,
        None,
    )


async def test_an_update_that_raises_changes_nothing(contract: Contract) -> None:
    await contract.store.set_value("state", "s", [1])

    def fold(present: list[int]) -> list[int]:
        present.append(2)
        raise LookupError("not this one")

    with pytest.raises(LookupError, match="not this one"):
        await contract.store.update_value("state", "s", fold)
    with pytest.raises(CodecError):
        await contract.store.update_value("state", "s", lambda _: math.nan)
    value = await contract.store.value("state", "s")
    assert (value.value, value.revision) == ([1], 1)


class Stop(BaseException):
    """What a signal handler may raise, which is no Exception."""


def stop(_: Any) -> Any:
    raise Stop


async def test_whatever_a_fold_raises_reaches_its_caller(contract: Contract) -> None:
    with pytest.raises(Stop):
        await contract.store.update_value("state", "s", stop)
    handle = await contract.store.update_value("state", "s", lambda _: 1)
    assert handle.revision == 1


async def test_what_a_fold_raises_harms_no_other_task(
    store: Store, backend: Backend
) -> None:
    async with AsyncStore.open(backend.place_of(store)) as other:
        stopped, *written = await asyncio.gather(
            other.update_value("state", "s", stop),
            *[other.set_value("state", f"k{number}", number) for number in range(5)],
            return_exceptions=True,
        )
    assert isinstance(stopped, Stop)
    assert [handle.revision for handle in written] == [1] * 5  # type: ignore[union-attr]


async def test_a_retried_unit_finds_its_value_written(contract: Contract) -> None:
    unit = contract.store.unit()
    handle = unit.set_value(USER, "k", 1, expect_revision=0)
    await contract.store.commit(unit)
    again = contract.store.unit()
    again.effects += unit.effects
    again.tried = True
    await contract.store.commit(again)
    assert handle.revision == await revision_of(contract, "k") == 1
    contract.execute("UPDATE key_value SET value = '2', revision = 2")
    late = contract.store.unit()
    late.effects += unit.effects
    late.tried = True
    with pytest.raises(ConflictError):
        await contract.store.commit(late)


async def test_removing_a_prefix_spares_its_neighbours(contract: Contract) -> None:
    store = contract.store
    namespaces = [
        ("a",), ("a", "b"), ("a", "b", "c"), ("a b",), ("a!",), ("a,",), ('a"',),
        ("aa",), ("A",), ("b",), ("b", "a"), ("a-",), ("ä",),
    ]  # fmt: skip
    for names in namespaces:
        await store.set_value(names, "k", 1)
    removed = await store.delete_values("a")
    assert removed.deleted == 3
    left = {value.namespace for value in await store.values()}
    assert left == {names for names in namespaces if names[0] != "a"}
    assert (await store.delete_values("a")).deleted == 0
    assert (await store.delete_values(())).deleted == len(left)
    assert not list(await store.values())


async def test_removing_what_is_not_there_is_no_error(contract: Contract) -> None:
    await contract.store.delete_value(USER, "k")
    await contract.store.refresh_value(USER, "k")
    assert contract.rows("SELECT * FROM key_value") == []


@pytest.mark.parametrize(
    "namespace",
    [
        (),
        "",
        ("a", ""),
        ("a", 3),
        (None,),
        {"a": 1},
        b"a",
        3,
        "a\0b",
        "\ud800",
        "x" * 5_000,
    ],
)
async def test_a_namespace_that_cannot_be_stored_is_refused(
    contract: Contract, namespace: Any
) -> None:
    for call in (
        lambda: contract.store.set_value(namespace, "k", 1),
        lambda: contract.store.value(namespace, "k"),
        lambda: contract.store.values_of([(namespace, "k")]),
    ):
        with pytest.raises(InvalidInputError):
            await call()


@pytest.mark.parametrize("key", ["", None, 3, b"k", "a\0b", "\udfff", "x" * 4_097])
async def test_a_key_that_cannot_be_stored_is_refused(
    contract: Contract, key: Any
) -> None:
    for call in (contract.store.value, contract.store.refresh_value):
        with pytest.raises(InvalidInputError):
            await call("a", key)


@pytest.mark.parametrize(
    "content",
    [
        math.nan,
        math.inf,
        {1: 2},
        {"a": {None: 1}},
        {1, 2},
        object(),
        {"a": b""},
        bytearray(b"a"),
    ],
)
async def test_a_value_that_is_not_json_is_refused(
    contract: Contract, content: Any
) -> None:
    with pytest.raises(CodecError, match="value"):
        await contract.store.set_value("a", "k", content)


@pytest.mark.parametrize("ttl", [0, -1, math.nan, math.inf, True, "1", 10**12])
async def test_a_ttl_that_is_no_time_is_refused(contract: Contract, ttl: Any) -> None:
    with pytest.raises(InvalidInputError, match="ttl"):
        await contract.store.set_value("a", "k", 1, ttl=ttl)
    with pytest.raises(InvalidInputError, match="ttl"):
        await contract.store.update_value("a", "k", lambda _: 1, ttl=ttl)


async def test_other_arguments_are_refused(contract: Contract) -> None:
    store = contract.store
    for revision in (-1, True, "1", 1.0):
        with pytest.raises(InvalidInputError, match="expect_revision"):
            await store.set_value("a", "k", 1, expect_revision=revision)
    with pytest.raises(InvalidInputError, match="expect_revision"):
        await store.delete_value("a", "k", expect_revision=0)
    with pytest.raises(InvalidInputError, match="fold"):
        await store.update_value("a", "k", 3)


@pytest.mark.parametrize("address", [("a",), ("a", "k", 1), "ak", None, 3])
async def test_an_address_is_a_pair(contract: Contract, address: Any) -> None:
    with pytest.raises(InvalidInputError, match="pair"):
        await contract.store.values_of([address])


async def test_long_names_and_large_values_are_kept(contract: Contract) -> None:
    names = tuple(f"name-{number}" for number in range(200))
    key = "k" * 4_096
    large = {"text": "x" * 10_000_000}
    await contract.store.set_value(names, key, large)
    value = await contract.store.value(names, key)
    assert (value.namespace, value.key, value.value) == (names, key, large)
    page = await contract.store.values(names[:199])
    assert page.items == (value,)


def has_no_pair(text: str) -> bool:
    """Two halves in a row would become one character, and are refused."""
    return "\ud800\udc00" not in text


TEXTS = st.text() | st.text(st.sampled_from("a\0\ud800\udc00ü"), max_size=3).filter(
    has_no_pair
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda items: st.lists(items, max_size=3)
    | st.dictionaries(TEXTS, items, max_size=3),
    max_leaves=8,
)  # fmt: skip


@pytest.mark.slow
def test_every_json_value_comes_back(store: Store) -> None:
    @given(JSON)
    def comes_back(content: Any) -> None:
        store.set_value("a", "k", content)
        value = store.value("a", "k")
        assert value is not None
        assert value.value == json.loads(json.dumps(content))

    comes_back()


def _count(place: Place, times: int) -> None:
    with Store.open(place, durability="normal", busy_timeout=60) as store:
        for _ in range(times):
            store.update_value("app", "count", lambda count: (count or 0) + 1)


@pytest.mark.slow
def test_updates_of_several_processes_are_all_counted(
    store: Store, backend: Backend
) -> None:
    context = multiprocessing.get_context("spawn")
    place = backend.place_of(store)
    workers = [context.Process(target=_count, args=(place, 25)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    value = store.value("app", "count")
    assert value is not None
    assert (value.value, value.revision) == (100, 100)


def _claim(place: Place, name: str, won: Any) -> None:
    with Store.open(place, durability="normal", busy_timeout=60) as store:
        try:
            store.set_value("app", "leader", name, expect_revision=0)
        except ConflictError:
            return
        won.put(name)


@pytest.mark.slow
def test_of_several_processes_one_writes_what_was_not_there(
    store: Store, backend: Backend
) -> None:
    context = multiprocessing.get_context("spawn")
    won = context.SimpleQueue()
    place = backend.place_of(store)
    workers = [
        context.Process(target=_claim, args=(place, name, won)) for name in "abc"
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    winner = won.get()
    assert won.empty()
    value = store.value("app", "leader")
    assert value is not None
    assert value.value == winner
