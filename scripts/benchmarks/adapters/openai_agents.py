"""A session of OpenAI's Agents SDK: `SessionDBSession` beside `SQLiteSession`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

from agents import SQLiteSession
from agents.items import TResponseInputItem

from benchmarks.adapters.timing import Timings
from sessiondb import AsyncStore
from sessiondb.adapters.openai_agents import SessionDBSession

OPERATIONS: tuple[str, ...] = (
    "append a turn (4 items)",
    "append one item",
    "load all (1,600 items)",
    "load the last 50",
    "new object, load the last 50",
    "pop",
    "clear (1,600 items)",
)
TURNS, CLEARED = 400, 3

Session: TypeAlias = SQLiteSession | SessionDBSession
Items: TypeAlias = list[TResponseInputItem]


def turn(number: int) -> Items:
    """Return the items of a turn with a call of a tool."""
    call_id = f"call_{number:024}"
    items: list[Any] = [
        {"content": f"Do the tests of module {number} pass, and why?", "role": "user"},
        {
            "type": "function_call", "id": f"fc_{number:048}", "call_id": call_id,
            "name": "bash", "status": "completed",
            "arguments": f'{{"command":"pytest -q tests/module_{number}.py"}}',
        },
        {
            "type": "function_call_output", "call_id": call_id,
            "output": f"{number} passed, 1 failed\\nFAILED test_{number} - AssertionError",
        },
        answer(number),
    ]  # fmt: skip
    return items


def answer(number: int) -> Any:
    """Return the item of an answer."""
    text = f"Module {number} has an error in its loop, which ends one round too early."
    return {
        "type": "message", "id": f"msg_{number:048}", "role": "assistant",
        "status": "completed",
        "content": [
            {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
        ],
    }  # fmt: skip


async def run(kind: str, folder: Path, timings: Timings) -> None:
    """Perform the work on a store of one *kind*, ``theirs`` or ``ours``."""
    path = folder / "agents.db"
    store = AsyncStore(path)

    def session_of(name: str) -> Session:
        if kind == "theirs":
            return SQLiteSession(name, path)
        return SessionDBSession(name, store)

    session = session_of("long")
    for number in range(TURNS):
        with timings.of("append a turn (4 items)"):
            await session.add_items(turn(number))
    for number in range(TURNS):
        with timings.of("append one item"):
            await session.add_items([answer(number)])
    for _ in range(TURNS):
        with timings.of("pop"):
            await session.pop_item()
    for _ in range(9):
        with timings.of("load all (1,600 items)"):
            items = await session.get_items()
    assert len(items) == 4 * TURNS
    for _ in range(60):
        with timings.of("load the last 50"):
            await session.get_items(50)
    for _ in range(30):
        # As a server does, with an object for each request.
        with timings.of("new object, load the last 50"):
            of_request = session_of("long")
            await of_request.get_items(50)
            of_request.close()
    session.close()
    await store.close()
    timings.bytes(path)

    path = folder / "cleared.db"
    store = AsyncStore(path)
    for number in range(CLEARED):
        cleared = session_of(f"cleared {number}")
        for first in range(0, TURNS, 20):
            turns = [item for at in range(20) for item in turn(first + at)]
            await cleared.add_items(turns)
        with timings.of("clear (1,600 items)"):
            await cleared.clear_session()
        cleared.close()
    await store.close()
