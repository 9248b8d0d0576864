"""Pydantic AI on sessiondb: `SessionDBConversationStore`, a store of conversations.

The extra ``pydantic-ai`` installs what it needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sessiondb.errors import MissingExtraError

if TYPE_CHECKING:
    from sessiondb.adapters.pydantic_ai.conversations import SessionDBConversationStore

__all__ = ["SessionDBConversationStore"]


def __getattr__(name: str) -> Any:
    if name != "SessionDBConversationStore":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from sessiondb.adapters.pydantic_ai import conversations
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            "SessionDBConversationStore needs pydantic-ai",
            hint="pip install 'sessiondb[pydantic-ai]'",
        ) from error
    return conversations.SessionDBConversationStore
