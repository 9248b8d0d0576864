"""LangChain's `SQLChatMessageHistory` on SQLite, by SQLAlchemy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from langchain_community.chat_message_histories import SQLChatMessageHistory

from benchmarks.peers.langchain_messages import ITEMS, chat_messages
from benchmarks.peers.turns import Turn

__all__ = ["ITEMS", "Peer"]


class Peer:
    """A history in a table; it has neither a limit for reading nor a fork."""

    def __init__(self, folder: Path, session: str) -> None:
        self.history = SQLChatMessageHistory(
            session, connection=f"sqlite:///{folder / 'history.db'}"
        )

    async def append(self, turn: Turn) -> None:
        """Add the messages of a turn, which is one transaction."""
        self.history.add_messages(chat_messages(turn))

    async def load(self) -> list[Any]:
        """Return all messages."""
        return self.history.messages

    async def last(self, turns: int) -> list[Any]:
        """Return the messages of the newest turns, which takes loading all of them."""
        return self.history.messages[-turns * ITEMS :]

    async def close(self) -> None:
        """Close the connections."""
        self.history.engine.dispose()
