"""Google ADK on sessiondb: `SessionDBSessionService`, a session service for any runner.

The extra ``adk`` installs what it needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sessiondb.errors import MissingExtraError

if TYPE_CHECKING:
    from sessiondb.adapters.adk.service import SessionDBSessionService

__all__ = ["SessionDBSessionService"]


def __getattr__(name: str) -> Any:
    if name != "SessionDBSessionService":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from sessiondb.adapters.adk import service
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            "SessionDBSessionService needs google-adk",
            hint="pip install 'sessiondb[adk]'",
        ) from error
    return service.SessionDBSessionService
