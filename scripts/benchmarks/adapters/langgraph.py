"""LangGraph's `SqliteSaver` and `SqliteStore`, called and awaited, beside ours.

Their store is measured in the journal mode of their saver (WAL), with which it shares a
file: that is faster than its own. Each file is committed at full durability.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import aiosqlite
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.store.base import GetOp, PutOp
from langgraph.store.sqlite import AsyncSqliteStore, SqliteStore

from benchmarks.adapters.timing import Timings
from sessiondb.adapters.langgraph import SessionDBSaver, SessionDBStore

OPERATIONS = (
    "put, first 20",
    "put, 600 messages",
    "put_writes of 2",
    "get_tuple, latest",
    "get_tuple, older",
    "list, limit=5",
    "delete_thread, small",
    "aput, first 20",
    "aget_tuple",
    "store put",
    "store replace",
    "store get",
    "store get of 20",
    "store put of 20",
    "store search of 10",
    "store search of 300, filter",
    "store search, offset=290",
    "store list_namespaces",
    "store delete",
    "store aput",
    "store aget",
)
PUTS = 200
THREAD: Any = {"configurable": {"thread_id": "long", "checkpoint_ns": ""}}
PRAGMAS = "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"


def turn(number: int, thread: str = "") -> list[AnyMessage]:
    """Return the three messages that a step adds; no other thread has their ids."""
    name = f"{thread}-{number}"
    call = {"name": "bash", "args": {"command": f"pytest -k {name}"}, "id": f"c{name}"}
    tokens = {"input_tokens": 900, "output_tokens": 40, "total_tokens": 940}
    facts = {"model_name": "large", "finish_reason": "tool_calls"}
    return [
        HumanMessage(f"Do the tests of module {number} pass?", id=f"h{name}"),
        AIMessage(
            "I run them.",
            id=f"a{name}",
            tool_calls=[call],
            usage_metadata=tokens,
            response_metadata=facts,
        ),
        ToolMessage(f"{number} passed\n" * 10, tool_call_id=f"c{name}", id=f"t{name}"),
    ]


class Puts:
    """The arguments of the puts that a graph makes for one thread."""

    def __init__(self, thread: str) -> None:
        self.config: Any = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
        self.thread = thread
        self.messages: list[AnyMessage] = []
        self.version = ""

    def next(self, saver: Any, number: int) -> tuple[Any, ...]:
        """Return those of the next put."""
        self.messages = [*self.messages, *turn(number, self.thread)]
        self.version = saver.get_next_version(self.version or None, None)
        checkpoint = empty_checkpoint()
        checkpoint["channel_values"] = {"messages": self.messages, "step": number}
        checkpoint["channel_versions"] = versions = {
            "messages": self.version,
            "step": self.version,
        }
        metadata = {"source": "loop", "step": number, "parents": {}}
        return self.config, checkpoint, metadata, versions


def call_saver(saver: Any, timings: Timings) -> None:
    """Measure the saver that is called."""
    for number in range(5):  # what is made once
        warm = Puts(f"warm{number}")
        config = saver.put(*warm.next(saver, 0))
        saver.put_writes(config, [("messages", turn(0))], "task")
        saver.get_tuple(config)
        list(saver.list(config))
        saver.delete_thread(f"warm{number}")
    puts, configs = Puts("long"), []
    for number in range(PUTS):
        arguments = puts.next(saver, number)
        if number < 20:
            with timings.of("put, first 20"):
                puts.config = saver.put(*arguments)
        elif number >= PUTS - 20:
            with timings.of("put, 600 messages"):
                puts.config = saver.put(*arguments)
        else:
            puts.config = saver.put(*arguments)
        configs.append(puts.config)
    for number in range(30):
        writes = [("messages", turn(number)), ("step", number)]
        with timings.of("put_writes of 2"):
            saver.put_writes(puts.config, writes, f"task-{number}")
    for number in range(30):
        with timings.of("get_tuple, latest"):
            saver.get_tuple(THREAD)
        with timings.of("get_tuple, older"):
            saver.get_tuple(configs[150 + number])
        with timings.of("list, limit=5"):
            list(saver.list(THREAD, limit=5))
    for number in range(30):
        small = Puts(f"small{number}")
        small.config = saver.put(*small.next(saver, 0))
        saver.put_writes(small.config, [("messages", turn(0))], "task")
        with timings.of("delete_thread, small"):
            saver.delete_thread(f"small{number}")


async def await_saver(saver: Any, timings: Timings) -> None:
    """Measure the saver that is awaited."""
    for number in range(3):
        await saver.aput(*Puts(f"awarm{number}").next(saver, 0))
    puts = Puts("awaited")
    for number in range(20):
        arguments = puts.next(saver, number)
        with timings.of("aput, first 20"):
            puts.config = await saver.aput(*arguments)
    for _ in range(30):
        with timings.of("aget_tuple"):
            await saver.aget_tuple(puts.config)


def item(number: int) -> dict[str, Any]:
    """Return the value of an item."""
    return {"kind": "note", "score": number, "text": f"remember {number} " * 8}


def namespace(number: int) -> tuple[str, ...]:
    """Return the namespace of an item."""
    return ("users", f"u{number % 20}", "memories")


def call_store(store: Any, timings: Timings) -> None:
    """Measure the store that is called."""
    for number in range(10):
        store.put(("warm",), f"k{number}", item(number))
        store.get(("warm",), f"k{number}")
        store.search(("warm",), filter={"score": 1})
        store.list_namespaces()
        store.delete(("warm",), f"k{number}")
    for number in range(300):
        with timings.of("store put"):
            store.put(namespace(number), f"k{number}", item(number))
    for number in range(100):
        with timings.of("store replace"):
            store.put(namespace(number), f"k{number}", item(number))
        with timings.of("store get", 10):
            for _ in range(10):
                store.get(namespace(number), f"k{number}")
    for number in range(30):
        gets = [GetOp(namespace(at), f"k{at}") for at in range(number, number + 20)]
        with timings.of("store get of 20"):
            store.batch(gets)
        puts = [PutOp(("batch",), f"k{at}", item(at)) for at in range(20)]
        with timings.of("store put of 20"):
            store.batch(puts)
        with timings.of("store search of 10"):
            store.search(("users",))
        with timings.of("store search of 300, filter"):
            store.search(("users",), filter={"score": {"$gte": 100}}, limit=300)
        with timings.of("store search, offset=290"):
            store.search(("users",), limit=10, offset=290)
        with timings.of("store list_namespaces"):
            store.list_namespaces(prefix=("users",))
    for number in range(100):
        with timings.of("store delete"):
            store.delete(namespace(number), f"k{number}")


async def await_store(store: Any, timings: Timings) -> None:
    """Measure the store that is awaited."""
    for number in range(10):
        await store.aput(("warm",), f"k{number}", item(number))
        await store.aget(("warm",), f"k{number}")
    for number in range(100):
        with timings.of("store aput"):
            await store.aput(("awaited",), f"k{number}", item(number))
        with timings.of("store aget"):
            await store.aget(("awaited",), f"k{number}")


async def run(kind: str, folder: Path, timings: Timings) -> None:
    """Measure one kind of store; the files are in *folder*."""
    files = folder / "files"
    files.mkdir()
    path = str(files / "graph.db")
    if kind == "ours":
        with SessionDBSaver(path) as saver, SessionDBStore(saver.store) as store:
            call_saver(saver, timings)
            call_store(store, timings)
            await await_saver(saver, timings)
            await await_store(store, timings)
    else:
        with SqliteSaver.from_conn_string(path) as saver:
            call_saver(saver, timings)
        with SqliteStore.from_conn_string(path) as store:
            store.conn.executescript(PRAGMAS)
            store.setup()
            call_store(store, timings)
        async with AsyncExitStack() as stack:
            awaited = await stack.enter_async_context(
                AsyncSqliteSaver.from_conn_string(path)
            )
            await await_saver(awaited, timings)
            connection: Any = await stack.enter_async_context(
                aiosqlite.connect(path, isolation_level=None)
            )
            await connection.executescript(PRAGMAS)
            await await_store(AsyncSqliteStore(connection), timings)
    timings.bytes(files)
