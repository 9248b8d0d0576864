"""Agno's `SqliteDb`: a row for each run, and one for the session that each run updates."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from agno.db.sqlite import SqliteDb
from agno.models.message import Message
from agno.run.agent import RunOutput
from agno.session import AgentSession

from benchmarks.peers.turns import MODEL, TOOL, Turn

ITEMS = 1
AGENT = "agent"


class Peer:
    """A session of one agent; the database has no fork."""

    def __init__(self, folder: Path, session: str) -> None:
        self.database = SqliteDb(db_file=str(folder / "agno.db"))
        self.session = AgentSession(session_id=session, agent_id=AGENT)
        self.database.upsert_session(self.session)

    async def append(self, turn: Turn) -> None:
        """Write the session and the run, as an agent does when a run ends."""
        self.database.upsert_session(self.session)
        run = run_output(turn, self.session.session_id)
        self.database.upsert_run(run, self.session.session_id)

    async def load(self) -> list[Any]:
        """Return all runs; they are read, not taken from the cache of the object."""
        return self.database.get_runs(session_id=self.session.session_id)

    async def last(self, turns: int) -> list[Any]:
        """Return the newest runs."""
        found = self.database.get_session(self.session.session_id, runs_limit=turns)
        return found.runs

    async def close(self) -> None:
        """Close the connections."""
        self.database.close()


def run_output(turn: Turn, session: str) -> RunOutput:
    """Return a turn as a run with its messages."""
    call = {
        "id": turn.call_id,
        "type": "function",
        "function": {"name": TOOL, "arguments": json.dumps(turn.arguments)},
    }
    return RunOutput(
        run_id=f"{session}-run-{turn.number}",
        agent_id=AGENT,
        session_id=session,
        model=MODEL,
        messages=[
            Message(role="user", content=turn.prompt),
            Message(role="assistant", content=turn.answer, tool_calls=[call]),
            Message(role="tool", content=turn.result, tool_call_id=turn.call_id),
        ],
    )
