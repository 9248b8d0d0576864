"""ADK: our service beside its `SqliteSessionService`, the faster one of its own two.

A session of 400 turns: a prompt, a call, its result, and an answer that sets state.
"""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.sessions import BaseSessionService, Session
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai import types

from benchmarks.adapters.timing import Timings
from sessiondb.adapters.adk import SessionDBSessionService

OPERATIONS = (
    "create", "append one", "append a turn", "append with shared state", "load all",
    "last 50", "since a time", "no events", "list 200", "list all users", "user state",
    "delete",
)  # fmt: skip
TURNS, SESSIONS = 400, 200
WORDS = "The test fails because the index is compared with the length. "
KEYS: dict[str, Any] = {"app_name": "bench", "user_id": "user"}


def event(author: str, part: types.Part, **fields: Any) -> Event:
    """Return an event of one part."""
    role = "model" if author == "coder" and part.function_response is None else "user"
    content = types.Content(role=role, parts=[part])
    return Event(author=author, invocation_id="i", content=content, **fields)


def turn(number: int) -> list[Event]:
    """Return the four events of a turn."""
    name, call_id = "bash", f"adk-{number}"
    answered: dict[str, Any] = {
        "model_version": "gemini-2.5-flash",
        "finish_reason": types.FinishReason.STOP,
        "usage_metadata": types.GenerateContentResponseUsageMetadata(
            prompt_token_count=900 + number, candidates_token_count=60, total_token_count=960 + number
        ),
    }  # fmt: skip
    call = types.FunctionCall(id=call_id, name=name, args={"command": "pytest -q"})
    result = types.FunctionResponse(
        id=call_id, name=name, response={"result": f"{number} passed\n" * 10}
    )
    return [
        event("user", types.Part(text=f"Prompt {number}. {WORDS}")),
        event("coder", types.Part(function_call=call), **answered),
        event("coder", types.Part(function_response=result)),
        event(
            "coder",
            types.Part(text=WORDS * 5),
            actions=EventActions(state_delta={"answer": f"Answer {number}"}),
            **answered,
        ),
    ]


async def read(
    service: BaseSessionService, session_id: str, **config: Any
) -> Session | None:
    """Return a session."""
    return await service.get_session(
        **KEYS, session_id=session_id, config=GetSessionConfig(**config)
    )


async def run(kind: str, folder: Path, timings: Timings) -> None:
    """Perform the work on one of the two services."""
    path = folder / "adk.db"
    service: BaseSessionService = (
        SessionDBSessionService(path)
        if kind == "ours"
        else SqliteSessionService(str(path))
    )
    session = await service.create_session(**KEYS, session_id="long")
    for number in range(TURNS):
        events = turn(number)
        with timings.of("append a turn"):
            for item in events:
                await service.append_event(session, item)
    for number in range(50):
        item = event("user", types.Part(text=f"One more, {number}. {WORDS}"))
        with timings.of("append one"):
            await service.append_event(session, item)
        shared = EventActions(state_delta={"app:a": number, "user:u": number})
        item = Event(author="coder", invocation_id="i", actions=shared)
        with timings.of("append with shared state"):
            await service.append_event(session, item)
    late = session.events[-50].timestamp
    # A full collection of what is in memory here takes as long as a load of either.
    gc.disable()
    for _ in range(7):
        with timings.of("load all"):
            await read(service, "long")
    gc.enable()
    for _ in range(20):
        with timings.of("last 50"):
            await read(service, "long", num_recent_events=50)
        with timings.of("since a time"):
            await read(service, "long", after_timestamp=late)
        with timings.of("no events"):
            await read(service, "long", num_recent_events=0)

    for number in range(SESSIONS):
        with timings.of("create"):
            short = await service.create_session(
                **KEYS, session_id=f"s{number}", state={"topic": WORDS, "user:n": 1}
            )
        await service.append_event(short, turn(number)[-1])
    for _ in range(20):
        with timings.of("list 200"):
            await service.list_sessions(**KEYS)
        with timings.of("list all users"):
            await service.list_sessions(app_name="bench")
        with timings.of("user state"):
            await service.get_user_state(**KEYS)
    for number in range(50):
        with timings.of("delete"):
            await service.delete_session(**KEYS, session_id=f"s{number}")
    if isinstance(service, SessionDBSessionService | SqliteSessionService):
        await service.close()
    timings.bytes(folder)
