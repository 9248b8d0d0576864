"""The Claude Agent SDK on sessiondb: `SessionDBSessionStore`, its `SessionStore`.

The extra ``claude-agent`` installs what it needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sessiondb.errors import MissingExtraError

if TYPE_CHECKING:
    from sessiondb.adapters.claude_agent.session_store import SessionDBSessionStore

__all__ = ["SessionDBSessionStore"]


def __getattr__(name: str) -> Any:
    if name != "SessionDBSessionStore":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from sessiondb.adapters.claude_agent import session_store
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            "SessionDBSessionStore needs claude-agent-sdk",
            hint="pip install 'sessiondb[claude-agent]'",
        ) from error
    return session_store.SessionDBSessionStore
