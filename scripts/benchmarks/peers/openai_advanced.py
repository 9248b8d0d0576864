"""OpenAI Agents' `AdvancedSQLiteSession`: a second table for turns, tools and branches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agents.extensions.memory import AdvancedSQLiteSession

from benchmarks.peers.openai_items import ITEMS, response_items
from benchmarks.peers.turns import Turn

__all__ = ["ITEMS", "Peer"]


class Peer:
    """A session in a file, whose branches are copies of its beginning."""

    def __init__(self, folder: Path, session: str) -> None:
        self.store = AdvancedSQLiteSession(
            session_id=session, db_path=folder / "agents.db", create_tables=True
        )
        self.newest = 0

    async def append(self, turn: Turn) -> None:
        """Add the items of a turn, which is one transaction."""
        await self.store.add_items(response_items(turn))

    async def load(self) -> list[Any]:
        """Return all items."""
        return await self.store.get_items()

    async def last(self, turns: int) -> list[Any]:
        """Return the items of the newest turns."""
        return await self.store.get_items(limit=turns * ITEMS)

    async def fork(self, name: str) -> None:
        """Branch before the newest turn, and return to the main branch."""
        if not self.newest:
            turns = await self.store.get_conversation_turns()
            self.newest = turns[-1]["turn"]
        await self.store.create_branch_from_turn(self.newest, name)
        await self.store.switch_to_branch("main")

    async def close(self) -> None:
        """Close the file."""
        self.store.close()
