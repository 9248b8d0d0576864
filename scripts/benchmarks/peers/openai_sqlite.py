"""OpenAI Agents' `SQLiteSession`: a table of JSON items, WAL and FULL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agents import SQLiteSession

from benchmarks.peers.openai_items import ITEMS, response_items
from benchmarks.peers.turns import Turn

__all__ = ["ITEMS", "Peer"]


class Peer:
    """A session in a file; it has no fork."""

    def __init__(self, folder: Path, session: str) -> None:
        self.store = SQLiteSession(session, folder / "agents.db")

    async def append(self, turn: Turn) -> None:
        """Add the items of a turn, which is one transaction."""
        await self.store.add_items(response_items(turn))

    async def load(self) -> list[Any]:
        """Return all items."""
        return await self.store.get_items()

    async def last(self, turns: int) -> list[Any]:
        """Return the items of the newest turns."""
        return await self.store.get_items(limit=turns * ITEMS)

    async def close(self) -> None:
        """Close the file."""
        self.store.close()
