"""The facts of another program's session that a log of pi carries."""

from __future__ import annotations

from sessiondb.formats.kit.carrying import (
    CALL,
    EVENT,
    MODEL,
    RESULT,
    SAID,
    TEXT,
    USAGE,
    Carried,
    CarryStatement,
)

_FILE = Carried(keys=frozenset({"mime", "content", "url"}))
_CALL = Carried(
    CALL | {"time_ended"},
    values={
        "status": frozenset({"pending", "completed", "error"}),
        "outcome": frozenset({"failed"}),
    },
    objects=frozenset({"input_json"}),
)
_COMMAND = Carried(
    frozenset({"input_json", "text"}),
    values={
        "tool": frozenset({"bash"}),
        "status": frozenset({"pending", "completed", "error"}),
        "outcome": frozenset({"failed", "interrupted"}),
    },
    keys=frozenset({"exitCode", "exit", "exit_code", "truncated"}),
)
FINISHES = frozenset({"stop", "length", "tool-calls", "error", "cancelled"})
_SAID = {"text": TEXT, "file": _FILE}
_SESSION = frozenset({"title", "directory", "time_created"})

CARRIES = CarryStatement(
    session=Carried(_SESSION),
    own_session=Carried(_SESSION | {"version", "agent", "relation", "call_id", "data"}),
    lists=frozenset({"labels"}),
    messages={
        "user": Carried(SAID, parts=_SAID),
        "system": Carried(SAID, parts=_SAID),
        "assistant": Carried(
            SAID | MODEL | USAGE | {"error"},
            values={"finish": FINISHES},
            parts={**_SAID, "reasoning": TEXT, "tool": _CALL},
        ),
        "tool": Carried(SAID, parts={**_SAID, "tool-result": Carried(RESULT)}),
        # A command that the user ran has a record of its own, whatever its kind is.
        "event": Carried(SAID, parts={"tool": _COMMAND}),
        "event:custom": Carried(EVENT, parts={"tool": _COMMAND}),
        "event:custom_message": Carried(EVENT, parts={"text": TEXT, "tool": _COMMAND}),
        "event:branch_summary": Carried(EVENT | USAGE, parts={"text": TEXT}),
        "event:compaction": Carried(
            EVENT | USAGE, keys=frozenset({"first_kept_id"}), parts={"text": TEXT}
        ),
        "event:context_edit": Carried(
            EVENT, keys=frozenset({"target_id"}), parts=_SAID
        ),
        "event:model_change": Carried(EVENT | MODEL),
        "event:thinking_level_change": Carried(EVENT, keys=frozenset({"level"})),
    },
)
