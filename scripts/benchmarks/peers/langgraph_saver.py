"""LangGraph's `SqliteSaver`: a checkpoint holds all messages until then."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.sqlite import SqliteSaver

from benchmarks.peers.langchain_messages import ITEMS, chat_messages
from benchmarks.peers.turns import Turn

__all__ = ["ITEMS", "Peer"]


class Peer:
    """A thread; one checkpoint a turn, where a graph makes one for each of its steps."""

    def __init__(self, folder: Path, session: str) -> None:
        self.opened = ExitStack()
        self.saver = self.opened.enter_context(
            SqliteSaver.from_conn_string(str(folder / "checkpoints.db"))
        )
        self.thread = {"configurable": {"thread_id": session, "checkpoint_ns": ""}}
        newest = self.saver.get_tuple(self.thread)
        self.config = newest.config if newest else self.thread
        self.messages = (
            newest.checkpoint["channel_values"]["messages"] if newest else []
        )

    async def append(self, turn: Turn) -> None:
        """Put a checkpoint with the messages of this turn and of all before it."""
        self.messages = [*self.messages, *chat_messages(turn)]
        self.config = self._put(self.config, self.messages)

    async def load(self) -> list[Any]:
        """Return the messages of the newest checkpoint."""
        newest = self.saver.get_tuple(self.thread)
        return newest.checkpoint["channel_values"]["messages"]

    async def last(self, turns: int) -> list[Any]:
        """Return the messages of the newest turns, which takes loading all of them."""
        return (await self.load())[-turns * ITEMS :]

    async def fork(self, name: str) -> None:
        """Put the newest messages into another thread; the older checkpoints stay."""
        thread = {"configurable": {"thread_id": name, "checkpoint_ns": ""}}
        self._put(thread, await self.load())

    async def close(self) -> None:
        """Close the file."""
        self.opened.close()

    def _put(self, config: dict[str, Any], messages: list[Any]) -> dict[str, Any]:
        version = len(messages)
        checkpoint = empty_checkpoint()
        checkpoint["channel_values"] = {"messages": messages}
        checkpoint["channel_versions"] = {"messages": version}
        metadata = {"source": "loop", "step": version // ITEMS}
        return self.saver.put(config, checkpoint, metadata, {"messages": version})
