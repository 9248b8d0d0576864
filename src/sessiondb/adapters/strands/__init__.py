"""Strands Agents on sessiondb: `SessionDBRepository` and `SessionDBStorage`.

The extra ``strands`` installs what they need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sessiondb.errors import MissingExtraError

if TYPE_CHECKING:
    from sessiondb.adapters.strands.repository import SessionDBRepository
    from sessiondb.adapters.strands.storage import SessionDBStorage

__all__ = ["SessionDBRepository", "SessionDBStorage"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from sessiondb.adapters.strands import repository, storage
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"{name} needs strands-agents", hint="pip install 'sessiondb[strands]'"
        ) from error
    if name == "SessionDBStorage":
        return storage.SessionDBStorage
    return repository.SessionDBRepository
