"""sessiondb's `Store`: a message for the prompt, one for the answer with its call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.peers.turns import COST, MODEL, TOOL, Turn
from sessiondb import ALL, Store, assistant, text, tool, user

ITEMS = 2


class Peer:
    """A session in a database; the one that is there is opened again."""

    def __init__(self, folder: Path, session: str) -> None:
        self.store = Store.open(folder / "sessions.db", source="bench")
        present = self.store.sessions(project=ALL, title=session, empty=True).items
        if present:
            self.id = present[0].id
        else:
            self.id = self.store.create_session(directory=str(folder), title=session).id

    async def append(self, turn: Turn) -> None:
        """Append both messages in one unit."""
        call = tool(TOOL, turn.arguments, call_id=turn.call_id, output=turn.result)
        with self.store.effects() as unit:
            unit.append(self.id, user(turn.prompt))
            unit.append(
                self.id, assistant(text(turn.answer), call), model=MODEL, cost=COST
            )

    async def load(self) -> list[Any]:
        """Return all messages."""
        return self.store.messages(self.id)

    async def last(self, turns: int) -> list[Any]:
        """Return the messages of the newest turns."""
        return self.store.messages(self.id, last=turns * ITEMS)

    async def fork(self, name: str) -> None:
        """Fork the session at its end."""
        self.store.fork(self.id, title=name)

    async def close(self) -> None:
        """Close the database."""
        self.store.close()
