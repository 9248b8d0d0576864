"""LangGraph on sessiondb: a checkpointer for any graph, and a long-term memory.

The extra ``langgraph`` installs what `SessionDBSaver` and `SessionDBStore` need. The
tables are defined without it, so that a database is complete wherever it is imported.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sessiondb.errors import MissingExtraError

if TYPE_CHECKING:
    from sessiondb.adapters.langgraph.saver import SessionDBSaver
    from sessiondb.adapters.langgraph.store import SessionDBStore

__all__ = ["SessionDBSaver", "SessionDBStore"]

_HOMES = {"SessionDBSaver": "saver", "SessionDBStore": "store"}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = import_module(f"{__name__}.{home}")
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"{name} needs langgraph", hint="pip install 'sessiondb[langgraph]'"
        ) from error
    return getattr(module, name)
