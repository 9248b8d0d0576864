"""`SessionDBStore`: the items of LangGraph's own stores, in a file of sessions."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import math
import re
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

pytest.importorskip("langgraph", reason="langgraph is not installed")

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore
from peers import Connection, other

from sessiondb import AsyncStore, Store, user
from sessiondb.adapters.langgraph import SessionDBSaver, SessionDBStore
from sessiondb.errors import (
    CodecError,
    InvalidInputError,
    StoreClosedError,
    UnsupportedError,
)
from sessiondb.maintenance import backup, check


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[SessionDBStore]:
    with SessionDBStore(tmp_path / "graph.db", durability="normal") as opened:
        yield opened
        assert check(opened.store) == []


def plain(result: Any) -> Any:
    """Return what a result is without its times; a search without its order."""
    if isinstance(result, list):
        items = [plain(item) for item in result]
        return sorted(items, key=repr)
    if result is None or isinstance(result, tuple):
        return result
    return result.namespace, result.key, result.value


# -- as in memory ------------------------------------------------------------------

LABELS = st.sampled_from(["a", "b", "ab", "*x", '"', "\n", "é", "[", '","', "\ud800"])
NAMESPACES = st.lists(LABELS, min_size=1, max_size=3).map(tuple)
KEYS = st.sampled_from(["k", "", "k.1", "\0", '"k"', "\udfff", "k" * 900, "7"])
LEAVES = st.none() | st.sampled_from(["x", "", "\\", 'a"b', "ä", 1, 2.5, 10**30, -1])
VALUES = st.fixed_dictionaries(
    {"score": st.integers(-3, 3) | st.floats(-3, 3)},
    optional={
        "kind": LEAVES,
        "tags": st.lists(LEAVES, max_size=2),
        "author": st.dictionaries(st.sampled_from(["name", "a b"]), LEAVES),
    },
)
NUMBERS = st.integers(-3, 3) | st.floats(-3, 3)
ORDERS = st.sampled_from(["$gt", "$gte", "$lt", "$lte"])
FILTERS = st.none() | st.fixed_dictionaries(
    {},
    optional={
        "kind": LEAVES
        | st.dictionaries(st.sampled_from(["$eq", "$ne"]), LEAVES, min_size=1),
        "score": NUMBERS | st.dictionaries(ORDERS, NUMBERS, min_size=1),
        "tags": st.lists(LEAVES, max_size=2),
        "author": st.dictionaries(st.sampled_from(["name", "a b"]), LEAVES),
        "missing": st.just({"$ne": 1}) | st.none(),
    },
)
PATTERNS = st.lists(LABELS | st.just("*"), max_size=2).map(tuple)
CONDITIONS = st.builds(
    lambda *fields: MatchCondition(*fields),
    st.sampled_from(["prefix", "suffix"]),
    PATTERNS,
)
# Functions, since hypothesis would fill the other fields of a class as well.
OPS = st.one_of(
    st.builds(lambda *fields: GetOp(*fields), NAMESPACES, KEYS),
    st.builds(lambda *fields: PutOp(*fields), NAMESPACES, KEYS, VALUES),
    st.builds(lambda *fields: PutOp(*fields), NAMESPACES, KEYS, VALUES | st.none()),
    st.builds(
        lambda *fields: SearchOp(*fields, limit=1_000),
        st.just(()) | NAMESPACES,
        FILTERS,
    ),
    st.builds(
        lambda *fields: ListNamespacesOp(*fields),
        st.none() | st.lists(CONDITIONS, max_size=2).map(tuple),
        st.none() | st.integers(1, 3),
    ),
)


@settings(
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(st.lists(OPS, min_size=1, max_size=4), min_size=5, max_size=12))
def test_any_batches_have_the_results_of_the_store_in_memory(
    memory: SessionDBStore, batches: list[list[Any]]
) -> None:
    memory.store.delete_values("langgraph.store")
    theirs = InMemoryStore()
    for ops in batches:
        ours = memory.batch(ops)
        assert list(map(plain, ours)) == list(map(plain, theirs.batch(list(ops))))
    # Namespaces of which every item was removed are still listed in memory.
    everything = memory.search((), limit=1_000)
    assert plain(everything) == plain(theirs.search((), limit=1_000))
    assert set(memory.list_namespaces()) == {item.namespace for item in everything}


# In memory a namespace stays when its last item goes.
@pytest.fixture(autouse=True)
def forget_empty_namespaces(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = InMemoryStore._handle_list_namespaces

    def listed_if_used(self: Any, op: ListNamespacesOp) -> Any:
        for namespace in [name for name, items in self._data.items() if not items]:
            del self._data[namespace]
        return listed(self, op)

    monkeypatch.setattr(InMemoryStore, "_handle_list_namespaces", listed_if_used)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.lists(
        st.text(min_size=1).filter(lambda label: not {".", "\0"} & {*label}),
        min_size=1,
        max_size=3,
    ).map(tuple),
    st.text(),
    st.dictionaries(st.text(), JSON, max_size=4),
)
def test_any_names_and_values_come_back_as_they_were(
    memory: SessionDBStore, namespace: tuple[str, ...], key: str, value: dict[str, Any]
) -> None:
    if namespace[0] == "langgraph":
        return
    memory.put(namespace, key, value)
    item = memory.get(namespace, key)
    assert item is not None
    assert (item.namespace, item.key, item.value) == (namespace, key, value)
    assert [it.key for it in memory.search(namespace, limit=1)] == [key]
    memory.delete(namespace, key)
    assert memory.get(namespace, key) is None


def test_pages_of_a_search_and_of_a_list_are_all_of_it(memory: SessionDBStore) -> None:
    for number in range(23):
        memory.put(("a", str(number)), "k", {"n": number})
    pages = [memory.search(("a",), limit=5, offset=at) for at in range(0, 25, 5)]
    numbers = [item.value["n"] for page in pages for item in page]
    assert sorted(numbers) == list(range(23))
    assert len(memory.search(("a",), filter={"n": {"$gte": 20}}, offset=1)) == 2
    listed = [memory.list_namespaces(limit=5, offset=at) for at in range(0, 25, 5)]
    assert len({name for page in listed for name in page}) == 23
    suffixed = memory.list_namespaces(suffix=("*", "7"), limit=1)
    assert suffixed == [("a", "7")]
    for prefix in (("a", "7"), ("*", "*"), ("a", "*")):
        assert memory.list_namespaces(prefix=prefix, max_depth=1) == [("a",)]
    assert memory.search(("a",), limit=0) == memory.list_namespaces(limit=0) == []
    with pytest.raises(ValueError, match="0 or more, not -1 and 0"):
        memory.search(("a",), limit=-1)


def test_the_last_update_comes_first_and_the_creation_stays(
    memory: SessionDBStore,
) -> None:
    for key in ("one", "two"):
        memory.put(("a",), key, {"n": 1})
        time.sleep(0.002)
    memory.put(("a",), "one", {"n": 2})
    one, two = memory.search(("a",))
    assert (one.key, two.key) == ("one", "two")
    assert one.created_at < two.created_at < one.updated_at
    assert abs(one.updated_at - datetime.now(UTC)).total_seconds() < 60
    assert one.score is None


def test_a_key_with_a_period_is_a_key_or_else_a_path(memory: SessionDBStore) -> None:
    memory.put(("a",), "key", {"user.name": "Ada"})
    memory.put(("a",), "path", {"user": {"name": "Ada"}})
    memory.put(("a",), "both", {"user.name": "Bo", "user": {"name": "Ada"}})
    found = memory.search(("a",), filter={"user.name": "Ada"}, limit=2)
    assert {item.key for item in found} == {"key", "path"}
    (other_one,) = memory.search(("a",), filter={"user.name": {"$gt": "Ada"}})
    assert other_one.key == "both"


def test_keys_of_filters_are_no_sql(memory: SessionDBStore) -> None:
    memory.put(("a",), "k", {"access": "private"})
    key = "access') = 'public' OR '1'='1' OR json_extract(value, '$"
    for name in (key, "it's", "*", "%"):
        assert memory.search(("a",), filter={name: "public"}) == []
        memory.put(("a",), name, {name: "public"})
        (item,) = memory.search(("a",), filter={name: "public"})
        assert item.key == name
    with pytest.raises(ValueError, match=re.escape("'$regex' is not one of $eq")):
        memory.search(("a",), filter={"access": {"$regex": "."}})


class Color(Enum):
    RED = "red"


@dataclasses.dataclass
class Point:
    x: int
    when: datetime


def test_values_that_are_not_json_are_written_as_upstream_writes_them(
    memory: SessionDBStore,
) -> None:
    when = datetime(2026, 5, 4, tzinfo=UTC)
    value = {
        "when": when,
        "id": UUID(int=7),
        "color": Color.RED,
        "point": Point(1, when),
        "numbers": (math.nan, math.inf, 1.5),
        "big": 10**40,
    }
    memory.put(("a",), "k", value)
    item = memory.get(("a",), "k")
    assert item is not None
    assert item.value == {
        "when": "2026-05-04T00:00:00+00:00",
        "id": "00000000-0000-0000-0000-000000000007",
        "color": "red",
        "point": {"x": 1, "when": "2026-05-04T00:00:00+00:00"},
        "numbers": [None, None, 1.5],
        "big": 10**40,
    }
    for wrong in ({"a": object()}, {"a": {1: 2}}, {"a": b"x"}):
        with pytest.raises(CodecError):
            memory.batch([PutOp(("b",), "before", {}), PutOp(("b",), "k", wrong)])
    assert memory.search(("b",)) == []


# -- batches -----------------------------------------------------------------------


def test_a_batch_is_refused_before_anything_is_done(memory: SessionDBStore) -> None:
    for namespace in (("a.b",), ("a", ""), ("a", 1)):
        with pytest.raises(InvalidNamespaceError):
            memory.batch([PutOp(("a",), "k", {}), GetOp(namespace, "k")])  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match=r"4,096 bytes|4,097"):
        memory.batch([PutOp(("a",), "k", {}), PutOp(("a",), "k" * 4097, {})])
    with pytest.raises(ValueError, match="unknown operation: int"):
        memory.batch([PutOp(("a",), "k", {}), 1])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="no such match type: 'infix'"):
        condition: Any = MatchCondition("infix", ("a",))  # type: ignore[arg-type]
        memory.batch([PutOp(("a",), "k", {}), ListNamespacesOp((condition,))])
    assert memory.batch([]) == memory.search(()) == []


def swap(pipe: Connection, path: Path, name: str) -> None:
    """Put tokens of its own, and report those that were there before."""
    with SessionDBStore(path, durability="normal") as memory:
        seen = []
        for number in range(40):
            put = PutOp(("a",), "token", {"token": f"{name}{number}"})
            item, _ = memory.batch([GetOp(("a",), "token"), put])
            assert item is None or not isinstance(item, list)
            seen.append(item and item.value["token"])
        pipe.send(seen)


@pytest.mark.slow
def test_of_processes_that_exchange_an_item_each_gets_what_another_one_put(
    tmp_path: Path,
) -> None:
    path = tmp_path / "graph.db"
    Store.open(path).close()
    processes = [other(swap, path, name) for name in "abc"]
    tokens = []
    running = [process.__enter__() for process in processes]
    for process in running:
        tokens += process.hear()
    for process in running:
        process.end()
    with SessionDBStore(path) as memory:
        last = memory.get(("a",), "token")
        assert last is not None
        tokens.append(last.value["token"])
        assert check(memory.store) == []
    put = [f"{name}{number}" for name in "abc" for number in range(40)]
    assert sorted(filter(None, tokens)) == sorted(put)
    assert tokens.count(None) == 1


def write_pairs(pipe: Connection, path: Path) -> None:
    with SessionDBStore(path, durability="normal") as memory:
        for number in range(150):
            ops = [PutOp(("a",), key, {"n": number}) for key in ("x", "y")]
            memory.batch(ops)
            if not number:
                pipe.send("started")


@pytest.mark.slow
def test_the_reads_of_a_batch_see_one_moment(tmp_path: Path) -> None:
    path = tmp_path / "graph.db"
    with SessionDBStore(path) as memory, other(write_pairs, path) as writer:
        writer.hear()
        last = 0
        while last < 149:
            x, found, y = memory.batch(
                [GetOp(("a",), "x"), SearchOp(("a",)), GetOp(("a",), "y")]
            )
            numbers = {item.value["n"] for item in [x, *found, y]}  # type: ignore[union-attr,misc]
            assert len(numbers) == 1
            (last,) = numbers
        writer.end()


# -- expiry ------------------------------------------------------------------------


def expiring(path: Path, **ttl: Any) -> SessionDBStore:
    return SessionDBStore(path, ttl=ttl, durability="normal")  # type: ignore[arg-type]


def age(memory: SessionDBStore, seconds: float) -> None:
    """Let all items be older, as if the clock had moved."""
    path = memory.store.path or ""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(
            "UPDATE key_value SET time_expires = time_expires - ?", (seconds * 1000,)
        )


def test_an_item_lives_for_the_minutes_that_are_stated_or_configured(
    tmp_path: Path,
) -> None:
    with expiring(tmp_path / "graph.db", default_ttl=1) as memory:
        memory.put(("a",), "default", {})
        memory.put(("a",), "longer", {}, ttl=2.5)
        memory.put(("a",), "kept", {}, ttl=None)
        memory.put(("a",), "over", {}, ttl=0)
        memory.store.set_value("another", "program", 1, ttl=1)
        time.sleep(0.01)
        age(memory, 59)
        assert {item.key for item in memory.search(("a",))} == {
            "default",
            "longer",
            "kept",
        }
        age(memory, 61)
        assert memory.get(("a",), "default") is None
        assert {item.key for item in memory.search(("a",))} == {"longer", "kept"}
        assert memory.sweep_ttl() == 2
        assert asyncio.run(memory.asweep_ttl()) == 0
        age(memory, 40)
        assert memory.list_namespaces() == [("a",)]
        memory.delete(("a",), "kept")
        assert memory.list_namespaces() == []
        rows = memory.store.connection()
        with rows:
            names = rows.exec_driver_sql("SELECT namespace, key FROM key_value")
            assert sorted(names.fetchall()) == [
                ('["another"]', "program"),
                ('["langgraph.store","a"]', "longer"),
            ]


@pytest.mark.parametrize("configured", [True, False])
def test_a_read_prolongs_a_life_if_that_is_asked_for(
    tmp_path: Path, configured: bool
) -> None:
    with expiring(
        tmp_path / "graph.db", default_ttl=1, refresh_on_read=configured
    ) as memory:
        for key in ("got", "found", "seen", "asked"):
            memory.put((key,), key, {"n": 1})
        age(memory, 40)
        memory.get(("got",), "got")
        memory.search(("found",))
        memory.get(("seen",), "seen", refresh_ttl=False)
        memory.get(("asked",), "asked", refresh_ttl=True)
        memory.get(("asked",), "nothing", refresh_ttl=True)
        age(memory, 40)
        alive = {item.key for item in memory.search((), refresh_ttl=False)}
        assert alive == ({"got", "found", "asked"} if configured else {"asked"})


async def test_an_awaited_read_prolongs_it_as_well(tmp_path: Path) -> None:
    async with expiring(
        tmp_path / "graph.db", default_ttl=1, refresh_on_read=True
    ) as memory:
        await memory.aput(("a",), "k", {})
        age(memory, 40)
        assert await memory.aget(("a",), "k") is not None
        age(memory, 40)
        assert await memory.aget(("a",), "k", refresh_ttl=False) is not None
        age(memory, 40)
        assert await memory.asearch(("a",)) == []


def test_a_sweeper_runs_until_it_is_stopped(tmp_path: Path) -> None:
    with expiring(
        tmp_path / "graph.db", default_ttl=1, sweep_interval_minutes=0.01 / 60
    ) as memory:
        future = memory.start_ttl_sweeper()
        assert memory.start_ttl_sweeper() is future
        memory.put(("a",), "k", {})
        age(memory, 61)
        deadline = time.monotonic() + 10
        with memory.store.connection() as rows:
            while rows.exec_driver_sql("SELECT 1 FROM key_value").fetchall():
                rows.rollback()
                assert time.monotonic() < deadline
        assert memory.stop_ttl_sweeper(5)
        assert memory.stop_ttl_sweeper()
        assert future.result(1) is None
        cancelled = memory.start_ttl_sweeper(100)
        assert cancelled.cancel()
        assert memory.stop_ttl_sweeper(5)
        last = memory.start_ttl_sweeper(0.01 / 60)
        memory.store.close()
        assert last.result(5) is None
        assert memory.stop_ttl_sweeper(5)


def test_a_sweeper_ends_with_its_store_and_needs_a_configuration(
    tmp_path: Path,
) -> None:
    with Store.open(tmp_path / "graph.db") as store:
        assert SessionDBStore(store).start_ttl_sweeper().result(0) is None
        memory = SessionDBStore(store, ttl={"sweep_interval_minutes": 100})
        future = memory.start_ttl_sweeper()
        assert not future.done()
        del memory
        gc.collect()
        assert future.result(5) is None


# -- called, awaited, closed --------------------------------------------------------


async def test_it_is_called_in_a_loop_and_awaited_alike(tmp_path: Path) -> None:
    async with SessionDBStore(tmp_path / "graph.db", durability="normal") as memory:
        memory.put(("a",), "called", {"n": 1})
        await memory.aput(("a",), "awaited", {"n": 2})
        for key in ("called", "awaited"):
            item = memory.get(("a",), key)
            assert item == await memory.aget(("a",), key)
        assert await memory.asearch(("a",)) == memory.search(("a",))
        assert await memory.alist_namespaces() == memory.list_namespaces() == [("a",)]
        await memory.adelete(("a",), "called")
        found, none = await memory.abatch(
            [SearchOp(("a",)), PutOp(("a",), "awaited", None)]
        )
        assert [item.key for item in found] == ["awaited"]  # type: ignore[union-attr]
        assert none is None
        assert memory.search(()) == []
        numbers = range(50)
        await asyncio.gather(
            *[memory.aput(("many",), str(number), {"n": number}) for number in numbers]
        )
        items = await asyncio.gather(
            *[memory.aget(("many",), str(number)) for number in numbers]
        )
        assert [item and item.value["n"] for item in items] == [*numbers]


async def test_the_write_of_a_cancelled_caller_is_complete_or_not_there(
    memory: SessionDBStore,
) -> None:
    for number in range(30):
        ops = [PutOp(("a", str(number)), key, {"n": number}) for key in ("x", "y")]
        task = asyncio.ensure_future(memory.abatch(ops))
        for _ in range(number % 5):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
    await memory.aput(("b",), "k", {})
    counts = [len(memory.search(("a", str(number)))) for number in range(30)]
    assert set(counts) <= {0, 2}


def test_a_store_that_is_given_stays_open_and_other_values_are_not_items(
    tmp_path: Path,
) -> None:
    with Store.open(tmp_path / "graph.db") as store:
        store.set_value("langgraph", "k", {"n": 1})
        store.set_value(("a",), "k", {"n": 1})
        with SessionDBStore(store) as memory:
            assert memory.search(()) == memory.list_namespaces() == []
            memory.put(("a",), "k", {"n": 2})
        assert store.value(("a",), "k").value == {"n": 1}  # type: ignore[union-attr]
        assert store.value(("langgraph.store", "a"), "k").value == {"n": 2}  # type: ignore[union-attr]
        with pytest.raises(InvalidInputError, match="open already"):
            SessionDBStore(store, durability="normal")
        with SessionDBStore(AsyncStore.sharing(store)) as memory:
            assert len(memory.search(())) == 1
        copy = tmp_path / "copy.db"
        backup(store, copy)
    with SessionDBStore(copy) as memory:
        assert [item.value for item in memory.search(())] == [{"n": 2}]


def test_a_closed_store_refuses_all(tmp_path: Path) -> None:
    memory = SessionDBStore(tmp_path / "graph.db")
    memory.close()
    memory.close()
    for call in (
        lambda: memory.get(("a",), "k"),
        lambda: memory.put(("a",), "k", {}),
        lambda: memory.search(()),
        lambda: asyncio.run(memory.aget(("a",), "k")),
        memory.sweep_ttl,
    ):
        with pytest.raises(StoreClosedError):
            call()


def test_a_vector_index_is_refused_and_a_query_without_one_is_no_condition(
    memory: SessionDBStore, tmp_path: Path
) -> None:
    with pytest.raises(UnsupportedError, match="no vector search"):
        SessionDBStore(tmp_path / "graph.db", index={"dims": 3})
    memory.put(("a",), "k", {"text": "tree"}, index=["text"])
    memory.put(("a",), "l", {"text": "house"}, index=False)
    found = memory.search(("a",), query="green plants")
    assert [item.score for item in found] == [None, None]


def test_a_graph_remembers_in_the_file_of_its_threads(tmp_path: Path) -> None:
    def note(state: dict[str, Any], runtime: Runtime[Any]) -> dict[str, Any]:
        assert runtime.store is not None
        items = runtime.store.search(("notes",))
        runtime.store.put(("notes",), f"n{len(items)}", {"text": state["text"]})
        return {"text": "|".join(sorted(item.value["text"] for item in items))}

    with Store.open(tmp_path / "graph.db") as store:
        builder: Any = StateGraph(dict)
        builder.add_node("note", note)
        builder.add_edge(START, "note")
        builder.add_edge("note", END)
        graph = builder.compile(
            checkpointer=SessionDBSaver(store), store=SessionDBStore(store)
        )
        for number, text in enumerate(["one", "two", "three"]):
            thread: Any = {"configurable": {"thread_id": str(number)}}
            said = graph.invoke({"text": text}, thread)
        assert said == {"text": "one|two"}
        assert {session.source_id for session in store.sessions(empty=True).items} == {
            "0",
            "1",
            "2",
        }
        session = store.open_session("0", source="langgraph")
        store.append(session, user("one more"))
        assert check(store) == []


def test_without_the_framework_the_class_names_the_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import sessiondb.adapters.langgraph as package
    from sessiondb.errors import MissingExtraError

    for name in [name for name in sys.modules if name.startswith(package.__name__)]:
        if name != package.__name__:
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "langgraph.store.base", None)
    with pytest.raises(MissingExtraError, match="SessionDBStore needs langgraph"):
        package.SessionDBStore  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'Other'"):
        package.Other  # noqa: B018
