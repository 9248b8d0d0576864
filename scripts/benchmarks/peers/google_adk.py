"""Google ADK's `SqliteSessionService`: an event for each message, each committed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from google.adk.events import Event
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai import types

from benchmarks.peers.turns import TOOL, Turn

ITEMS = 3
APP, USER, AGENT = "bench", "user", "agent"


class Peer:
    """A session of one user; the service has no fork."""

    def __init__(self, folder: Path, session: str) -> None:
        self.service = SqliteSessionService(str(folder / "adk.db"))
        self.key = {"app_name": APP, "user_id": USER, "session_id": session}

    async def start(self) -> None:
        """Load the session, or make it."""
        self.session = await self.service.get_session(**self.key)
        if self.session is None:
            self.session = await self.service.create_session(**self.key)

    async def append(self, turn: Turn) -> None:
        """Append the events of a turn, each in a transaction of its own."""
        for event in events(turn):
            await self.service.append_event(self.session, event)

    async def load(self) -> list[Any]:
        """Return all events."""
        return (await self.service.get_session(**self.key)).events

    async def last(self, turns: int) -> list[Any]:
        """Return the events of the newest turns."""
        recent = GetSessionConfig(num_recent_events=turns * ITEMS)
        return (await self.service.get_session(**self.key, config=recent)).events

    async def close(self) -> None:
        """Close what the service keeps open."""
        await self.service.close()


def events(turn: Turn) -> list[Event]:
    """Return the prompt, the answer with its call, and the result of the call."""
    call = types.FunctionCall(id=turn.call_id, name=TOOL, args=turn.arguments)
    result = types.FunctionResponse(
        id=turn.call_id, name=TOOL, response={"result": turn.result}
    )
    return [
        _event(turn, USER, "user", types.Part(text=turn.prompt)),
        _event(
            turn,
            AGENT,
            "model",
            types.Part(text=turn.answer),
            types.Part(function_call=call),
        ),
        _event(turn, AGENT, "user", types.Part(function_response=result)),
    ]


def _event(turn: Turn, author: str, role: str, *parts: types.Part) -> Event:
    return Event(
        author=author,
        invocation_id=f"invocation-{turn.number}",
        content=types.Content(role=role, parts=list(parts)),
    )
