"""The contents of the database, as frozen, slotted dataclasses.

No I/O and no SQLAlchemy.

*Records* are what reads return, *drafts* are what writes take, *sources* are
what the reader of a foreign format yields. The field names are the column names.
Sources and exports are loaded on first use: most programs move no session.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sessiondb.model.draft import MessageDraft, PartDraft
from sessiondb.model.drafting import (
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
from sessiondb.model.feed import BEGINNING
from sessiondb.model.json import hit_json, message_json, part_json, session_json
from sessiondb.model.records import (
    Change,
    Comparison,
    ContextSource,
    DeletePlan,
    FileDiff,
    Hit,
    Label,
    Message,
    MessageNode,
    ModelName,
    Page,
    Part,
    Project,
    Prompt,
    Session,
    Todo,
    Tokens,
    Tree,
    Unfinished,
)
from sessiondb.model.usage import UsageRecord, UsageRow

if TYPE_CHECKING:
    from sessiondb.model.export import Document, Export, ExtensionRow, Loss
    from sessiondb.model.source import (
        Imported,
        Problem,
        Problems,
        SourceHistory,
        SourceItem,
        SourceMessage,
        SourceProject,
        SourcePrompt,
        SourceSession,
        SourceValue,
        SourceValues,
        StoredMessage,
        StoredSession,
        TerminalUse,
    )
else:  # a type checker would take any name for one of the module

    def __getattr__(name: str) -> Any:
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module 'sessiondb.model' has no attribute {name!r}")
        value = getattr(import_module(home), name)
        globals()[name] = value
        return value


#: Name → module of what is loaded on first use.
_HOMES = {
    **dict.fromkeys(
        ("Document", "Export", "ExtensionRow", "Loss"), "sessiondb.model.export"
    ),
    **dict.fromkeys(
        (
            "Imported",
            "Problem",
            "Problems",
            "SourceHistory",
            "SourceItem",
            "SourceMessage",
            "SourceProject",
            "SourcePrompt",
            "SourceSession",
            "SourceValue",
            "SourceValues",
            "StoredMessage",
            "StoredSession",
            "TerminalUse",
        ),
        "sessiondb.model.source",
    ),
}

__all__ = [
    "BEGINNING",
    "Change",
    "Comparison",
    "ContextSource",
    "DeletePlan",
    "Document",
    "Export",
    "ExtensionRow",
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
    "Problems",
    "Project",
    "Prompt",
    "Session",
    "SourceHistory",
    "SourceItem",
    "SourceMessage",
    "SourceProject",
    "SourcePrompt",
    "SourceSession",
    "SourceValue",
    "SourceValues",
    "StoredMessage",
    "StoredSession",
    "TerminalUse",
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
    "hit_json",
    "message_json",
    "part",
    "part_json",
    "reasoning",
    "session_json",
    "system",
    "text",
    "tool",
    "tool_result",
    "user",
]
