"""The session database for coding agents.

    from sessiondb import Store, assistant, text, tool, user

    with Store.open() as store:
        session = store.create_session(title="Fix the parser")
        store.append(session, user("Fix the off-by-one"))

Names are resolved on first use, so that ``import sessiondb`` is almost free and a
command that needs no database does not load SQLAlchemy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "sessiondb.store": ("Store",),
    "sessiondb.aio": ("AsyncStore",),
    "sessiondb.repository.sessions": ("HERE", "ALL"),
    "sessiondb.effects": (
        "LEAF",
        "MessageHandle",
        "OpenedSession",
        "PartHandle",
        "SessionHandle",
    ),
    "sessiondb.errors": (
        "AmbiguousIdError",
        "BusyError",
        "CodecError",
        "ConflictError",
        "CorruptionError",
        "DatabaseReplacedError",
        "InvalidInputError",
        "LeaseHeldError",
        "MissingExtraError",
        "NotADatabaseError",
        "NotFoundError",
        "ReadOnlyError",
        "SchemaVersionError",
        "SessionDBError",
        "SourceError",
        "StorageError",
        "StorageFullError",
        "StoreClosedError",
        "UnavailableError",
        "UnsupportedError",
        "UntrustedDatabaseError",
    ),
    "sessiondb.model": (
        "BEGINNING",
        "Change",
        "Comparison",
        "Context",
        "ContextSource",
        "DeletePlan",
        "FileDiff",
        "Hit",
        "Label",
        "Message",
        "MessageDraft",
        "Page",
        "Part",
        "PartDraft",
        "Project",
        "Prompt",
        "Session",
        "Todo",
        "Tokens",
        "Tree",
        "Unfinished",
        "UsageRow",
        "assistant",
        "context_source",
        "event",
        "file",
        "part",
        "reasoning",
        "system",
        "text",
        "tool",
        "tool_result",
        "user",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

# Computed, so that there is one list of names.
__all__ = sorted([*_HOME_OF, "__version__"])  # noqa: PLE0605

if TYPE_CHECKING:
    from sessiondb.aio import AsyncStore as AsyncStore
    from sessiondb.effects import (
        LEAF as LEAF,
    )
    from sessiondb.effects import (
        MessageHandle as MessageHandle,
    )
    from sessiondb.effects import (
        OpenedSession as OpenedSession,
    )
    from sessiondb.effects import (
        PartHandle as PartHandle,
    )
    from sessiondb.effects import (
        SessionHandle as SessionHandle,
    )
    from sessiondb.errors import *  # noqa: F403
    from sessiondb.model import *  # noqa: F403
    from sessiondb.repository.sessions import ALL as ALL
    from sessiondb.repository.sessions import HERE as HERE
    from sessiondb.store import Store as Store


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'sessiondb' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
