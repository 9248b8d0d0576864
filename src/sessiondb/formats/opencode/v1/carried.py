"""What OpenCode 1.x carries of a session of another program."""

from __future__ import annotations

from sessiondb.formats.kit.carrying import (
    CALL,
    FILE,
    MODEL,
    RESULT,
    SAID,
    TIMES,
    USAGE,
    Carried,
    CarryStatement,
)

_TEXT = Carried(frozenset({"text", "synthetic"}) | TIMES, keys=frozenset({"ignored"}))
_CALL = Carried(
    CALL | TIMES | {"status", "title"},
    values={"outcome": frozenset({"failed", "interrupted"})},
    objects=frozenset({"input_json"}),
)
_DATA = Carried(frozenset({"data"}))
_PARTS = {
    "text": _TEXT,
    "reasoning": _TEXT,
    "tool": _CALL,
    "file": FILE,
    "agent": _DATA,
    "patch": _DATA,
    "snapshot": _DATA,
    "step-start": _DATA,
    "step-finish": _DATA,
}
_SESSION = (
    frozenset(
        {
            "title",
            "directory",
            "version",
            "agent",
            "metadata",
            "permission",
            "revert",
            "share_url",
            "summary_additions",
            "summary_deletions",
            "summary_files",
            "time_created",
            "time_archived",
        }
    )
    | MODEL
)
_ANSWER = MODEL | USAGE | {"agent", "error", "time_created", "time_completed"}

CARRIES = CarryStatement(
    session=Carried(_SESSION, values={"relation": frozenset({"subagent", "fork"})}),
    own_session=Carried(_SESSION | {"relation", "summary_diffs", "data"}),
    messages={
        "user": Carried(SAID | MODEL | {"agent"}, parts=_PARTS),
        "assistant": Carried(_ANSWER | {"role", "finish"}, parts=_PARTS),
        "assistant:compaction": Carried(
            _ANSWER | {"role", "kind", "finish"}, parts=_PARTS
        ),
        "system": Carried(SAID - {"role"}, parts={"text": _TEXT}),
        "tool": Carried(SAID, parts={"tool-result": Carried(RESULT)}),
        "event:compaction": Carried(_ANSWER | {"kind"}, parts=_PARTS),
        "event:custom_message": Carried(SAID - {"role"}, parts={"text": _TEXT}),
        "event:branch_summary": Carried(SAID - {"role"}, parts={"text": _TEXT}),
    },
)
