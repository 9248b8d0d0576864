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

from sessiondb import readers

__version__ = "0.1.0"

if TYPE_CHECKING:
    from sessiondb.aio import AsyncStore
    from sessiondb.database.leases import Lease
    from sessiondb.database.queries import Queries
    from sessiondb.database.streams import AsyncStream, Stream
    from sessiondb.effects import (
        LEAF,
        MessageHandle,
        OpenedSession,
        PartHandle,
        PoppedMessage,
        SessionHandle,
        Unit,
    )
    from sessiondb.effects.snapshot import SnapshotResult
    from sessiondb.errors import (
        AccessError,
        AmbiguousIdError,
        BusyError,
        CodecError,
        ConflictError,
        CorruptionError,
        DatabaseReplacedError,
        InvalidInputError,
        LeaseHeldError,
        MissingExtraError,
        NotADatabaseError,
        NotFoundError,
        ReadOnlyError,
        SchemaVersionError,
        SessionDBError,
        SourceError,
        StorageError,
        StorageFullError,
        StoreClosedError,
        UnavailableError,
        UnsupportedError,
        UntrustedDatabaseError,
    )
    from sessiondb.model import (
        BEGINNING,
        Change,
        Comparison,
        ContextSource,
        DeletePlan,
        Document,
        Export,
        FileDiff,
        Hit,
        Imported,
        Label,
        Loss,
        Message,
        MessageDraft,
        MessageNode,
        ModelName,
        Page,
        Part,
        PartDraft,
        Problem,
        Project,
        Prompt,
        Session,
        Todo,
        Tokens,
        Tree,
        Unfinished,
        UsageRecord,
        UsageRow,
        assistant,
        context_source,
        event,
        file,
        part,
        reasoning,
        system,
        text,
        tool,
        tool_result,
        user,
    )
    from sessiondb.model.values import KeyValue, ValueHandle
    from sessiondb.repository import Read
    from sessiondb.repository.context_record import Context
    from sessiondb.repository.sessions import ALL, HERE
    from sessiondb.store import Store
    from sessiondb.streaming.parts import StreamCall, StreamPart

# Literal: type checkers and editors do not evaluate an expression.
__all__ = [
    "ALL",
    "BEGINNING",
    "HERE",
    "LEAF",
    "AccessError",
    "AmbiguousIdError",
    "AsyncStore",
    "AsyncStream",
    "BusyError",
    "Change",
    "CodecError",
    "Comparison",
    "ConflictError",
    "Context",
    "ContextSource",
    "CorruptionError",
    "DatabaseReplacedError",
    "DeletePlan",
    "Document",
    "Export",
    "FileDiff",
    "Hit",
    "Imported",
    "InvalidInputError",
    "KeyValue",
    "Label",
    "Lease",
    "LeaseHeldError",
    "Loss",
    "Message",
    "MessageDraft",
    "MessageHandle",
    "MessageNode",
    "MissingExtraError",
    "ModelName",
    "NotADatabaseError",
    "NotFoundError",
    "OpenedSession",
    "Page",
    "Part",
    "PartDraft",
    "PartHandle",
    "PoppedMessage",
    "Problem",
    "Project",
    "Prompt",
    "Queries",
    "Read",
    "ReadOnlyError",
    "SchemaVersionError",
    "Session",
    "SessionDBError",
    "SessionHandle",
    "SnapshotResult",
    "SourceError",
    "StorageError",
    "StorageFullError",
    "Store",
    "StoreClosedError",
    "Stream",
    "StreamCall",
    "StreamPart",
    "Todo",
    "Tokens",
    "Tree",
    "UnavailableError",
    "Unfinished",
    "Unit",
    "UnsupportedError",
    "UntrustedDatabaseError",
    "UsageRecord",
    "UsageRow",
    "ValueHandle",
    "__version__",
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
]

#: The module of each name, which is imported on first use.
_HOMES = {
    "sessiondb.aio": ("AsyncStore",),
    "sessiondb.database.leases": ("Lease",),
    "sessiondb.database.queries": ("Queries",),
    "sessiondb.database.streams": ("AsyncStream", "Stream"),
    "sessiondb.effects": (
        "LEAF",
        "MessageHandle",
        "OpenedSession",
        "PartHandle",
        "PoppedMessage",
        "PoppedMessage",
        "SessionHandle",
        "Unit",
    ),
    "sessiondb.effects.snapshot": ("SnapshotResult",),
    "sessiondb.errors": (
        "AccessError",
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
        "ContextSource",
        "DeletePlan",
        "Document",
        "Export",
        "FileDiff",
        "Hit",
        "Imported",
        "Label",
        "Loss",
        "Message",
        "MessageDraft",
        "MessageNode",
        "ModelName",
        "Page",
        "Part",
        "PartDraft",
        "Problem",
        "Project",
        "Prompt",
        "Session",
        "Todo",
        "Tokens",
        "Tree",
        "Unfinished",
        "UsageRecord",
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
    "sessiondb.repository.context_record": ("Context",),
    "sessiondb.model.values": ("KeyValue", "ValueHandle"),
    "sessiondb.repository": ("Read",),
    "sessiondb.repository.sessions": ("ALL", "HERE"),
    "sessiondb.store": ("Store",),
    "sessiondb.streaming.parts": ("StreamCall", "StreamPart"),
}
readers.MODULES["sessiondb"] = "sessiondb.importing.databases"
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

if not TYPE_CHECKING:  # a type checker would take any name for one of the package

    def __getattr__(name: str) -> Any:
        home = _HOME_OF.get(name)
        if home is None:
            raise AttributeError(f"module 'sessiondb' has no attribute {name!r}")
        value = getattr(import_module(home), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return __all__
