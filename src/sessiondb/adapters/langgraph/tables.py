"""The tables of LangGraph's checkpoints, beside the sessions that are its threads.

A checkpoint is a row without its channel values. A value is stored once for each
version of its channel. Most values are lists that grow, such as the messages of a
conversation: the items of such a list are rows, and a value is a length of it. So a
step of a long thread writes what it added, and not the complete state again.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, Index, Integer, LargeBinary, Text, UniqueConstraint

from sessiondb.extensions import Extension, session_column

LANGGRAPH = Extension("langgraph", version=1)


def _text(name: str, *, required: bool = True) -> Column[Any]:
    return Column(name, Text, nullable=not required)


def _integer(name: str, *, required: bool = True) -> Column[Any]:
    return Column(name, Integer, nullable=not required)


def _serialized() -> list[Column[Any]]:
    """Return the columns of a value as the serializer of a graph returns it."""
    return [_text("type"), Column("body", LargeBinary, nullable=False)]


CHECKPOINT = LANGGRAPH.table(
    "checkpoint",
    session_column(),
    _text("ns"),
    _text("id"),
    _text("parent_id", required=False),
    _text("run_id", required=False),
    _text("metadata"),
    *_serialized(),
    UniqueConstraint("session_id", "ns", "id"),
    Index(None, "run_id"),
)
#: ``version`` is JSON, since LangGraph has texts and numbers as versions. A value
#: without ``list`` is in ``body``; with it, it is the first ``length`` items.
VALUE = LANGGRAPH.table(
    "value",
    session_column(),
    _text("ns"),
    _text("channel"),
    _text("version"),
    _integer("list", required=False),
    _integer("length", required=False),
    *_serialized(),
    UniqueConstraint("session_id", "ns", "channel", "version"),
)
ITEM = LANGGRAPH.table(
    "item",
    session_column(),
    _integer("list"),
    _integer("position"),
    *_serialized(),
    UniqueConstraint("session_id", "list", "position"),
)
#: Writes of a task for the step after a checkpoint. They may come before it.
WRITE = LANGGRAPH.table(
    "write",
    session_column(),
    _text("ns"),
    _text("checkpoint_id"),
    _text("task_id"),
    _integer("idx"),
    _text("task_path"),
    _text("channel"),
    *_serialized(),
    UniqueConstraint("session_id", "ns", "checkpoint_id", "task_id", "idx"),
)
