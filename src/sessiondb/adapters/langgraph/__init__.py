"""LangGraph on sessiondb: `SessionDBSaver`, a checkpointer for any graph.

The extra ``langgraph`` installs what it needs. The tables are defined without it, so
that a database is complete wherever it is imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sessiondb.errors import MissingExtraError

if TYPE_CHECKING:
    from sessiondb.adapters.langgraph.saver import SessionDBSaver

__all__ = ["SessionDBSaver"]


def __getattr__(name: str) -> Any:
    if name != "SessionDBSaver":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from sessiondb.adapters.langgraph import saver
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            "SessionDBSaver needs langgraph",
            hint="pip install 'sessiondb[langgraph]'",
        ) from error
    return saver.SessionDBSaver
