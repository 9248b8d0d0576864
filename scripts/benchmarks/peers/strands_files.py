"""Strands' `FileSessionManager`: a JSON file for each message, without fsync."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from strands.session.file_session_manager import FileSessionManager
from strands.types.session import SessionAgent, SessionMessage

from benchmarks.peers.turns import TOOL, Turn

ITEMS = 3
AGENT = "agent"


class Peer:
    """A folder for a session; the manager has no fork."""

    def __init__(self, folder: Path, session: str) -> None:
        self.session = session
        self.manager = FileSessionManager(session, storage_dir=str(folder))
        if self.manager.read_agent(session, AGENT) is None:
            self.manager.create_agent(session, SessionAgent(AGENT, {}, {}))
        self.count = len(self.manager.list_messages(session, AGENT))

    async def append(self, turn: Turn) -> None:
        """Write the messages of a turn, a file each."""
        for message in messages(turn):
            stored = SessionMessage.from_message(message, self.count)
            self.manager.create_message(self.session, AGENT, stored)
            self.count += 1

    async def load(self) -> list[Any]:
        """Return all messages."""
        return self.manager.list_messages(self.session, AGENT)

    async def last(self, turns: int) -> list[Any]:
        """Return the messages of the newest turns."""
        return self.manager.list_messages(
            self.session, AGENT, offset=self.count - turns * ITEMS
        )

    async def close(self) -> None:
        """Do nothing: every file is closed already."""


def messages(turn: Turn) -> list[dict[str, Any]]:
    """Return the prompt, the answer with its call, and the result of the call."""
    call = {"toolUseId": turn.call_id, "name": TOOL, "input": turn.arguments}
    result = {
        "toolUseId": turn.call_id,
        "status": "success",
        "content": [{"text": turn.result}],
    }
    return [
        {"role": "user", "content": [{"text": turn.prompt}]},
        {"role": "assistant", "content": [{"text": turn.answer}, {"toolUse": call}]},
        {"role": "user", "content": [{"toolResult": result}]},
    ]
