"""The place that a config of LangGraph names, and the row of a checkpoint."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import get_checkpoint_id

#: The type of a value that a channel does not have in a version, and of a list.
EMPTY, LIST = "empty", "list"


class CheckpointPlace(NamedTuple):
    """The place that a config names."""

    thread: str
    ns: str
    checkpoint_id: str | None

    @classmethod
    def named_by(cls, config: RunnableConfig) -> CheckpointPlace:
        """Return the place of a config."""
        configurable = config["configurable"]
        ns = configurable.get("checkpoint_ns", "")
        return cls(str(configurable["thread_id"]), ns, get_checkpoint_id(config))

    def config(self, checkpoint_id: str) -> RunnableConfig:
        """Return the config of a checkpoint beside this place."""
        return {
            "configurable": {
                "thread_id": self.thread,
                "checkpoint_ns": self.ns,
                "checkpoint_id": checkpoint_id,
            }
        }


class CheckpointRow(NamedTuple):
    """A row of a checkpoint, with the id of its thread."""

    thread: str
    session_id: str
    ns: str
    id: str
    parent_id: str | None
    metadata: str
    type: str
    body: bytes


#: Checkpoints by namespace and id.
Heads: TypeAlias = dict[tuple[str, str], CheckpointRow]
