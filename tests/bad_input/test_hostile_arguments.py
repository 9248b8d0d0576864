"""Every argument of every public callable, against one table of hostile values.

The callables are found by introspection, so a new verb or parameter is covered without
being named here. A value is either accepted for what it is, or refused by an error of our
tree: one line that names the argument, with nothing written. What no parameter can mean
(an object, a set, a cycle, …) is always refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import math
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Column, Text, delete, select

import sessiondb
from sessiondb import AsyncStore, Store, assistant, file, text, tool, user
from sessiondb.errors import InvalidInputError, SessionDBError
from sessiondb.extensions import Extension, session_column
from sessiondb.maintenance import (
    backup,
    check,
    diagnose,
    every,
    plan_prune,
    plan_vacuum,
    vacuum,
)
from sessiondb.model import SourceMessage, SourceSession


class BytesPath:
    def __fspath__(self) -> bytes:
        return b"/tmp/bytes"


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError("no repr")


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


def cyclic() -> Any:
    value: list[Any] = []
    value.append(value)
    return value


#: Values that are valid for some parameter.
ODD: dict[str, Any] = {
    "None": None,
    "empty": "",
    "huge text": "x" * 100_000,
    "lone surrogate": "\ud800",
    "NUL": "a\0b",
    "escape": "\x1b[31m",
    "superscript digit": "²",
    "REF of many digits": "@~" + "9" * 5000,
    "REF of many zeros": "@~" + "0" * 50_000 + "x",
    "True": True,
    "minus one": -1,
    "zero": 0,
    "65 bits": 1 << 64,
    "5,000 digits": 10**5000,
    "fraction": 1.5,
    "NaN": math.nan,
    "infinite": math.inf,
    "empty list": [],
    "empty dict": {},
    "dict of odd keys": {1: 2},
}
#: Values that are valid for no parameter.
WRONG: dict[str, Any] = {
    "object": object(),
    "unprintable": Unprintable(),
    "set": {1, 2},
    "complex": 1j,
    "bytes": b"x",
    "bytes path": BytesPath(),
    "1,000 deep": nested(1000),
    "cycle": cyclic(),
    "class": int,
}
#: Parameters that take any value (drafts are checked when they are queued), or bytes.
LAX = {
    ("file", "content", "bytes"),
    # A class is a function, too.
    ("on_commit", "callback", "class"),
    ("read_past_damage", "report", "class"),
    # Messages in any order, by their numbers.
    ("remove", "messages", "set"),
    ("set_value", "value", "bytes"),
}
#: A class is a function, too, and what it raises is raised as it is.
RAISED = {
    ("update_metadata", "fold", "class"),
    ("update_value", "fold", "class"),
    ("snapshot", "reads", "class"),
}
#: Without an event to stop it, a feed does not end.
ENDLESS = {("changes", "stop", "None")}
#: How messages call parameters whose name would not help.
CALLED = {
    "ref": "session", "sessions": "session", "a": "session", "b": "session", "items": "source", "diffs": "diff", "by": "usage", "draft": "message",
    "project": "directory", "old": "directory", "new": "directory", "cwd": "directory",
    "where": "path", "to": "path", "where_": "database",
    # Drafts are named by the field that they fill.
    "content": "text", "name": "tool", "output": "text", "error": "text", "url": "data",
    "mime": "data", "filename": "data",
}  # fmt: skip


class Room:
    """A store with one of everything, made again after each call that was accepted."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = Store.open(folder / "sessions.db", durability="normal")
        self.watch = sqlite3.connect(folder / "sessions.db")
        self.fresh()

    def fresh(self) -> None:
        store = self.store
        self.session = store.create_session(directory="/elsewhere")
        self.message = store.append(
            self.session, user("Hello", file(content=b"x" * 5000))
        )
        self.open = store.append(
            self.session, assistant(tool("sh"), tool("ls")), open=True
        )
        self.other = store.create_session(directory="/elsewhere", parent=self.session)
        (self.blob,) = self.watch.execute("SELECT hash FROM blob LIMIT 1").fetchone()
        self.version()

    def version(self) -> int:
        return int(self.watch.execute("PRAGMA data_version").fetchone()[0])

    def close(self) -> None:
        self.watch.close()
        self.store.close()


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    room = Room(tmp_path_factory.mktemp("room"))
    yield room
    assert check(room.store) == []
    room.close()


@pytest.fixture(autouse=True)
def _elsewhere(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hostile value may well be the name of a file."""
    monkeypatch.chdir(room.folder)


def drained(result: Any) -> Any:
    """Consume a lazy result; enter a context."""
    if hasattr(result, "__enter__") and not isinstance(result, Store):
        with result:
            return None
    if isinstance(result, Iterator):
        return list(result)
    if isinstance(result, Store):
        result.close()
    if inspect.isfunction(result):  # it ends a subscription
        result()
    return result


#: Valid arguments by name, or by "callable.name".
VALID: dict[str, Callable[[Room], Any]] = {
    "session": lambda r: r.session,
    "ref": lambda r: r.session,
    "sessions": lambda r: [r.session.id],
    "a": lambda r: r.session,
    "b": lambda r: r.other,
    "message": lambda r: r.message,
    "append.message": lambda _: user("x"),
    "append_openai.items": lambda _: [{"role": "user", "content": "x"}],
    "append_anthropic.messages": lambda _: [{"role": "user", "content": "x"}],
    "append_anthropic.system": lambda _: "x",
    "messages": lambda r: [r.message],
    "draft": lambda _: user("x"),
    "fold": lambda _: lambda metadata: {"a": 1},
    "find_message.id": lambda r: r.message.id,
    "finish.message": lambda r: r.open,
    "add_part.message": lambda r: r.open,
    "part": lambda _: text("x"),
    "start.part": lambda r: r.open.parts[0],
    "settle.part": lambda r: r.open.parts[0],
    "start.input": lambda _: {},
    "title": lambda _: "Title",
    "directory": lambda _: "/elsewhere",
    "metadata": lambda _: {},
    "permission": lambda _: [],
    "url": lambda _: "https://example.org",
    "revert": lambda _: {"message_id": "m"},
    "todos": lambda _: [],
    "diffs": lambda _: [],
    "name": lambda _: "name",
    "text": lambda _: "text",
    "content": lambda _: "text",
    "file.content": lambda _: b"x",
    "kind": lambda _: "usage",
    "type": lambda _: "text",
    "call_id": lambda _: "call",
    "output": lambda _: "out",
    "query": lambda _: "hello",
    "search.query": lambda _: "hello",
    "key": lambda _: {"model": "m"},
    **dict.fromkeys(
        (
            "set_value.key",
            "update_value.key",
            "delete_value.key",
            "refresh_value.key",
            "value.key",
        ),
        lambda _: "key",
    ),
    "namespace": lambda _: ("users", "1"),
    "prefix": lambda _: "users",
    "value": lambda _: {"a": 1},
    "update_value.fold": lambda _: lambda present: present,
    "addresses": lambda _: [("users", "key")],
    "terminal": lambda _: "tty",
    "old": lambda _: "/elsewhere",
    "new": lambda _: "/new",
    "after": lambda r: r.message,
    "hash": lambda r: r.blob,
    "unit": lambda r: r.store._core.unit(),
    "callback": lambda _: lambda changes: None,
    "items": lambda _: [
        SourceSession("else", "s", "/x", "1", messages=[SourceMessage(user("a"))])
    ],
    "source_id": lambda _: "thread-1",
    "stop": lambda _: set_event(),
    "to": lambda r: r.folder / "backup.db",
    "plan_prune.empty": lambda _: True,
    "update_session.version": lambda _: "1",
    "database": lambda r: r.store.location,
    "extension": lambda _: THINGS,
    "table": lambda _: THING,
    "rows": lambda r: [{"session_id": r.session, "name": "x"}],
    "statement": lambda _: delete(THING),
    "snapshot.reads": lambda _: lambda reads: reads.projects(),
    "select.statement": lambda _: select(THING),
    "execute.parameters": lambda _: {},
    "select.parameters": lambda _: {},
    "store": lambda r: r.store,
    "report": lambda _: lambda copy: None,
}


THINGS = Extension("things")
THING = THINGS.table("thing", session_column(), Column("name", Text))


def set_event() -> threading.Event:
    event = threading.Event()
    event.set()
    return event


READS_AND_WRITES = sorted(
    name
    for name, value in vars(Store).items()
    if not name.startswith("_")
    and inspect.isfunction(value)
    and name not in ("close", "effects")
)
#: Verbs and reads that `AsyncStore` shares with `Store` are not run again.
ASYNC_ONLY = ["changes", "commit", "connection", "effects", "export", "ingest", "lease",
              "on_commit", "open", "stream", "walk"]  # fmt: skip
BUILDERS = ["user", "assistant", "system", "event", "text", "reasoning", "tool", "tool_result",
            "file", "part"]  # fmt: skip
CARE = {
    f.__name__: f
    for f in (backup, check, diagnose, every, plan_prune, plan_vacuum, vacuum)
}


def parameters(function: Any) -> list[inspect.Parameter]:
    kinds = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    found = inspect.signature(function).parameters.values()
    return [p for p in found if p.kind not in kinds and p.name != "self"]


def arguments(room: Room, name: str, function: Any) -> dict[str, Any]:
    made = {}
    for parameter in parameters(function):
        own = VALID.get(f"{name}.{parameter.name}")
        if own is not None:
            made[parameter.name] = own(room)
        elif parameter.default is inspect.Parameter.empty or parameter.name == "stop":
            made[parameter.name] = VALID[parameter.name](room)
    return made


def call(function: Any, given: dict[str, Any]) -> Any:
    """Call by position where that is possible, as builders with ``*parts`` demand."""
    positional = []
    for parameter in parameters(function):
        if (
            parameter.kind is inspect.Parameter.KEYWORD_ONLY
            or parameter.name not in given
        ):
            break
        positional.append(given.pop(parameter.name))
    return drained(function(*positional, **given))


def verdict(room: Room, name: str, function: Any, argument: str, label: str) -> str:
    """Return the fault of an answer to one hostile value, or nothing."""
    given = arguments(room, name, function)
    given[argument] = (ODD | WRONG)[label]
    before = room.version()
    try:
        call(function, dict(given))
    except SessionDBError as error:
        wrong = refusal(error, argument)
        if not wrong and room.version() != before and writes(room, function, given):
            wrong = f"refused, and something was written: {error}"
    except BaseException as error:  # noqa: BLE001  anything else is a defect to be listed
        wrong = f"{type(error).__name__}: {str(error)[:150]}"
    else:
        wrong = (
            "accepted" if label in WRONG and (name, argument, label) not in LAX else ""
        )
        if room.version() != before:
            room.fresh()
    return wrong and f"{name}({argument}={label}): {wrong}"


def writes(room: Room, function: Any, given: dict[str, Any]) -> bool:
    """Return whether a refused call writes; rows deleted before may be removed during it."""
    for _ in range(5):
        before = room.version()
        with contextlib.suppress(SessionDBError):
            call(function, dict(given))
        if room.version() == before:
            return False
    return True


def refusal(error: SessionDBError, argument: str) -> str:
    """Return the fault of an error's text, or nothing."""
    said = str(error)
    if "\n" in said or len(said) > 2_200:
        return f"{len(said)} characters, {said.count(chr(10))} line breaks"
    named = (argument, argument.replace("_", " "), CALLED.get(argument, argument))
    if isinstance(error, InvalidInputError) and not any(word in said for word in named):
        return f"does not name the argument: {said[:150]}"
    return ""


def verdicts(room: Room, name: str, function: Any) -> list[str]:
    call(function, arguments(room, name, function))
    room.fresh()
    return [
        found
        for parameter in parameters(function)
        for label in ODD | WRONG
        if (name, parameter.name, label) not in ENDLESS | RAISED
        and (found := verdict(room, name, function, parameter.name, label))
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", READS_AND_WRITES)
def test_a_verb_or_read_of_a_store_answers_any_value(room: Room, name: str) -> None:
    function = getattr(room.store, name)
    if name == "stream":
        room.store.append(room.session, user("x"))
    assert verdicts(room, name, function) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", BUILDERS)
def test_a_draft_of_any_value_is_refused_when_it_is_queued(
    room: Room, name: str
) -> None:
    build = getattr(sessiondb, name)

    def queued(*positional: Any, **given: Any) -> None:
        built = build(*positional, **given)
        room.store.append(
            room.session, built if hasattr(built, "role") else assistant(built)
        )

    queued.__signature__ = inspect.signature(build)  # type: ignore[attr-defined]
    assert verdicts(room, name, queued) == []


@pytest.mark.parametrize("name", sorted(CARE))
def test_a_function_of_maintenance_answers_any_value(room: Room, name: str) -> None:
    function = CARE[name]
    if name == "backup":

        def function(store: Any, to: Any, **given: Any) -> Any:
            (room.folder / "backup.db").unlink(missing_ok=True)
            return backup(store, to, **given)

        function.__signature__ = inspect.signature(backup)  # type: ignore[attr-defined]
    assert verdicts(room, name, function) == []


async def awaited(result: Any, seconds: float = 10) -> None:
    """Wait for the result of an asynchronous callable."""
    if hasattr(result, "__aenter__") and not isinstance(result, AsyncStore):
        async with result:
            return
    if hasattr(result, "__aiter__"):
        # A feed does not end by itself.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                async for _ in result:
                    pass
    elif inspect.isawaitable(result):
        await awaited(await result, seconds)
    elif callable(result):
        result()


@pytest.mark.slow
@pytest.mark.parametrize("name", ASYNC_ONLY)
def test_methods_that_only_an_asynchronous_store_has_answer_any_value(
    room: Room, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(VALID, "open.where", lambda r: r.folder / "opened.db")
    with asyncio.Runner() as runner:
        store: AsyncStore = runner.run(opened(room.folder / "sessions.db"))
        function = getattr(store, name)
        monkeypatch.setitem(VALID, "unit", lambda _: store._core.unit())

        seconds = 0.02 if name == "changes" else 10

        def run(*positional: Any, **given: Any) -> None:
            async def call() -> None:
                await awaited(function(*positional, **given), seconds)

            runner.run(call())

        run.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
        try:
            assert verdicts(room, name, run) == []
        finally:
            runner.run(store.close())


async def opened(path: Path) -> AsyncStore:
    return await AsyncStore.open(path, durability="normal")


@pytest.mark.slow
def test_opening_answers_any_value(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(VALID, "open.where", lambda r: r.folder / "opened.db")
    assert verdicts(room, "open", Store.open) == []
