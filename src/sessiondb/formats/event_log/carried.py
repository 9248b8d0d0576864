"""The facts of another program's session that a plain log carries."""

from __future__ import annotations

from sessiondb.formats.kit.carrying import (
    ANY,
    CALL,
    FILE,
    MODEL,
    RESULT,
    TIMES,
    USAGE,
    Carried,
    CarryStatement,
)

_SESSION = MODEL | {
    "agent",
    "call_id",
    "directory",
    "metadata",
    "permission",
    "relation",
    "revert",
    "share_url",
    "summary_additions",
    "summary_deletions",
    "summary_files",
    "time_archived",
    "time_created",
    "title",
    "version",
}
_MESSAGE = MODEL | {
    "agent",
    "data",
    "error",
    "finish",
    "kind",
    "response_id",
    "role",
    "time_created",
}
_CALL = CALL | {"data", "outcome", "status", "title"}
_BLOCK = Carried(frozenset({"text", "data", "synthetic"}))
_BLOCKS = {
    ANY: _BLOCK,
    "file": FILE,
    "source": Carried(_BLOCK.fields | {"title", "input_json"}),
    "tool": Carried(_CALL),
}
_PIECE = Carried(_BLOCK.fields | {"time_started"})

CARRIES = CarryStatement(
    session=Carried(_SESSION),
    own_session=Carried(_SESSION | {"data"}),
    messages={
        "user": Carried(_MESSAGE, parts=_BLOCKS),
        "system": Carried(_MESSAGE, parts=_BLOCKS),
        "assistant": Carried(
            _MESSAGE | USAGE | {"time_completed"},
            parts={**_BLOCKS, ANY: _PIECE, "tool": Carried(_CALL | TIMES)},
        ),
        "tool": Carried(
            _MESSAGE,
            parts={**_BLOCKS, "tool-result": Carried(RESULT | {"status", "outcome"})},
        ),
        "event": Carried(_MESSAGE | USAGE, parts=_BLOCKS),
    },
)
