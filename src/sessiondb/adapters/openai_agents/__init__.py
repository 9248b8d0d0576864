"""The OpenAI Agents SDK on sessiondb: `SessionDBSession`, a session for any runner.

The extra ``openai-agents`` installs what it needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sessiondb.errors import MissingExtraError

if TYPE_CHECKING:
    from sessiondb.adapters.openai_agents.session import SessionDBSession

__all__ = ["SessionDBSession"]


def __getattr__(name: str) -> Any:
    if name != "SessionDBSession":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from sessiondb.adapters.openai_agents import session
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            "SessionDBSession needs the OpenAI Agents SDK",
            hint="pip install 'sessiondb[openai-agents]'",
        ) from error
    return session.SessionDBSession
