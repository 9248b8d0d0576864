"""Lists of values and of namespaces: their order, their pages, and what they cost."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from backends import Backend
from hand_clock import Clock
from hypothesis import given, settings
from hypothesis import strategies as st

from sessiondb import AsyncStore, KeyValue, Store
from sessiondb.errors import CorruptionError, InvalidInputError
from sessiondb.model.values import namespace_text

Names = tuple[str, ...]


def fill(store: Store, values: dict[tuple[Names, str], Any]) -> None:
    with store.effects() as fx:
        for (names, key), content in values.items():
            fx.set_value(names, key, content)


def pages(store: Store, **arguments: Any) -> list[KeyValue]:
    """Return all values of a list, page by page."""
    items: list[KeyValue] = []
    cursor = None
    while True:
        page = store.values(cursor=cursor, **arguments)
        items += page
        cursor = page.next_cursor
        if cursor is None:
            return items
        assert len(page.items) == arguments.get("limit", 50)


def namespace_pages(store: Store, **arguments: Any) -> list[Names]:
    names: list[Names] = []
    cursor = None
    while True:
        page = store.namespaces(cursor=cursor, **arguments)
        names += page
        cursor = page.next_cursor
        if cursor is None:
            return names


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
@pytest.mark.parametrize("reverse", [False, True])
def test_values_are_in_order_of_namespace_and_key(
    store: Store, limit: int, reverse: bool
) -> None:
    names = [("a",), ("a", "b"), ("a b",), ("b",), ("ä",)]
    addresses = list(itertools.product(names, ["k", "K", "key", "ü"]))
    fill(store, dict.fromkeys(addresses, 1))
    found = pages(store, limit=limit, reverse=reverse)
    expected = sorted(
        ((namespace_text(name), key) for name, key in addresses), reverse=reverse
    )
    assert [(namespace_text(v.namespace), v.key) for v in found] == expected
    below = pages(store, prefix="a", limit=limit, reverse=reverse)
    assert {v.namespace for v in below} == {("a",), ("a", "b")}
    assert below == [v for v in found if v.namespace[0] == "a"]


@pytest.mark.needs("has_our_clock", "the times are the server's")
@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_values_are_in_order_of_their_last_update(
    store: Store, set_clock: Clock, limit: int
) -> None:
    for key in "abcdef":
        # Two of each time.
        set_clock.now += 5 * (key in "ace")
        store.set_value("n", key, 1)
    set_clock.now += 5
    store.set_value("n", "c", 2)
    newest = pages(store, order="updated", limit=limit)
    assert "".join(v.key for v in newest) == "cefdab"
    oldest = pages(store, order="updated", reverse=True, limit=limit)
    assert oldest == newest[::-1]


def test_a_page_continues_beside_writes(store: Store) -> None:
    fill(store, {(("n",), f"k{number}"): number for number in range(4)})
    page = store.values("n", limit=2)
    store.delete_value("n", "k1")
    store.set_value("n", "k0a", 1)
    rest = store.values("n", limit=2, cursor=page.next_cursor)
    assert [v.key for v in rest] == ["k2", "k3"]


def test_no_value_is_an_empty_page(store: Store) -> None:
    assert store.values().items == ()
    assert store.values("n", where={"a": 1}, order="updated").items == ()
    assert store.namespaces("n", suffix="m", depth=1).items == ()
    assert store.values_of([]) == []


def test_several_values_are_read_in_the_order_of_their_addresses(store: Store) -> None:
    fill(store, {((name,), key): name + key for name in "ab" for key in "xy"})
    addresses = [("b", "x"), (("a",), "y"), ("c", "x"), ("b", "x"), (["a"], "z")]
    values = store.values_of(addresses)
    assert [v and v.value for v in values] == ["bx", "ay", None, "bx", None]


def test_other_arguments_are_refused(store: Store) -> None:
    fill(store, {(("a",), "k"): 1, (("b",), "k"): 2, (("b", "c"), "k"): 3})
    cursor = store.values("b", limit=1).next_cursor
    other = store.namespaces("b", limit=1).next_cursor
    assert cursor
    assert other
    for arguments in (
        {"order": "size"}, {"limit": 0}, {"limit": 10_001}, {"cursor": "x"},
        {"cursor": cursor, "order": "updated"}, {"cursor": other}, {"where": 3},
        {"prefix": "a", "cursor": cursor}, {"prefix": ("b", ""), "limit": 1},
    ):  # fmt: skip
        with pytest.raises(InvalidInputError):
            store.values(**arguments)  # type: ignore[arg-type]
    for arguments in (
        {"limit": 0}, {"depth": 0}, {"depth": True}, {"suffix": ("",)},
        {"cursor": cursor}, {"prefix": "a", "cursor": other},
    ):  # fmt: skip
        with pytest.raises(InvalidInputError):
            store.namespaces(**arguments)  # type: ignore[arg-type]


@pytest.mark.slow
def test_the_longest_names_fit_into_a_cursor(store: Store) -> None:
    name, key = "\x01" * 600, "ä" * 2_048
    fill(store, {((name,), key): 1, ((name,), key[:-1]): 2})
    found = [v.value for v in pages(store, limit=1)]
    assert found == [2, 1]
    assert [v.value for v in pages(store, limit=1, order="updated")] == [2, 1]


# -- namespaces ------------------------------------------------------------------

PATHS: list[Names] = [
    ("docs", "public"), ("docs", "private"), ("docs", "private", "v1"), ("images", "public"),
    ("docs",), ("cache", "a", "v1"), ("cache", "b", "v1"), ("cache", "b", "v2"),
]  # fmt: skip


@pytest.fixture
def named(store: Store) -> Store:
    fill(store, {(path, key): 1 for path in PATHS for key in "xyz"})
    return store


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, PATHS),
        ({"prefix": "docs"}, [path for path in PATHS if path[0] == "docs"]),
        ({"prefix": "doc"}, []),
        ({"prefix": ("*", "public")}, [("docs", "public"), ("images", "public")]),
        (
            {"prefix": ("cache", "*", "v1")},
            [("cache", "a", "v1"), ("cache", "b", "v1")],
        ),
        ({"suffix": "v1"}, [path for path in PATHS if path[-1] == "v1"]),
        ({"suffix": ("b", "*")}, [("cache", "b", "v1"), ("cache", "b", "v2")]),
        ({"prefix": "docs", "suffix": "v1"}, [("docs", "private", "v1")]),
        ({"depth": 1}, [("docs",), ("images",), ("cache",)]),
        ({"depth": 2, "prefix": "cache"}, [("cache", "a"), ("cache", "b")]),
        ({"depth": 1, "suffix": "v2"}, [("cache",)]),
        ({"depth": 9}, PATHS),
        ({"prefix": ("docs", "docs", "docs", "docs")}, []),
    ],
)
@pytest.mark.parametrize("limit", [1, 2, 100])
def test_namespaces_are_those_with_values(
    named: Store, arguments: Any, expected: list[Names], limit: int
) -> None:
    found = namespace_pages(named, limit=limit, **arguments)
    assert found == sorted(expected, key=namespace_text)


PART = st.text(st.sampled_from('ab*" ]'), min_size=1, max_size=2)
PATH = st.lists(PART, min_size=1, max_size=4).map(tuple)


def fits(pattern: Names, names: Names) -> bool:
    return all(
        wanted in ("*", name) for wanted, name in zip(pattern, names, strict=True)
    )


@pytest.mark.slow
@settings(max_examples=200)
@given(
    paths=st.sets(PATH, max_size=12),
    ends=st.tuples(st.just(()) | PATH, st.just(()) | PATH),
    depth=st.none() | st.integers(1, 4),
    limit=st.integers(1, 4),
)
def test_namespaces_are_those_that_python_would_choose(
    shared: Store,
    paths: set[Names],
    ends: tuple[Names, Names],
    depth: int | None,
    limit: int,
) -> None:
    prefix, suffix = ends
    shared.delete_values(())
    fill(shared, {(path, "k"): 1 for path in paths})
    chosen = {
        path[:depth]
        for path in paths
        if len(path) >= max(len(prefix), len(suffix))
        and fits(prefix, path[: len(prefix)])
        and fits(suffix, path[len(path) - len(suffix) :])
    }
    found = namespace_pages(
        shared, prefix=prefix, suffix=suffix, depth=depth, limit=limit
    )
    assert found == sorted(chosen, key=namespace_text)
    plain = [path for path in paths if path[: len(prefix)] == prefix]
    assert {v.namespace for v in pages(shared, prefix=prefix, limit=limit)} == set(
        plain
    )


@pytest.fixture(scope="module")
def shared(backend: Backend) -> Iterator[Store]:
    with Store.open(backend.fresh(), durability="normal") as store:
        yield store


async def test_the_async_store_lists_the_same(store: Store, backend: Backend) -> None:
    fill(store, {(("a",), key): {"n": number} for number, key in enumerate("xyz")})
    async with await AsyncStore.open(backend.place_of(store)) as other:
        assert await other.values(where={"n": {"$gt": 0}}) == store.values(
            where={"n": {"$gt": 0}}
        )
        assert await other.namespaces() == store.namespaces()
        assert await other.values_of([("a", "x")]) == store.values_of([("a", "x")])


def test_a_namespace_that_a_shell_wrote_in_another_way_is_damage(
    store: Store, backend: Backend
) -> None:
    backend.run(
        store,
        "INSERT INTO key_value (namespace, key, revision, time_created, "
        "time_updated, value) VALUES ('[\"a\", \"b\"]', 'k', 1, 1, 1, '1')",
    )
    with pytest.raises(CorruptionError, match=r'"a", "b"'):
        store.values()
    with pytest.raises(CorruptionError, match=r'"a", "b"'):
        store.namespaces()


@pytest.mark.parametrize("where", [None, {"n": {"$gte": 2}}])
def test_an_offset_passes_over_the_first_ones(store: Store, where: Any) -> None:
    for number in range(9):
        store.set_value("a", f"k{number}", {"n": number})
    everything = store.values("a", where=where).items
    for offset in range(11):
        page = store.values("a", where=where, limit=3, offset=offset)
        assert page.items == everything[offset : offset + 3]
        if page.next_cursor is not None:
            following = store.values("a", where=where, cursor=page.next_cursor)
            assert following.items == everything[offset + 3 :]
    with pytest.raises(InvalidInputError, match="offset"):
        store.values("a", offset=-1)


def test_a_value_with_spaces_around_it_is_read(store: Store, backend: Backend) -> None:
    store.set_value("a", "k", {"n": 1})
    backend.run(store, "UPDATE key_value SET value = ?", ' {"n": 2} ')
    value = store.value("a", "k")
    assert value is not None
    assert value.value == {"n": 2}
