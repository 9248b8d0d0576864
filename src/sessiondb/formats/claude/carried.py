"""The facts of another program's session that a transcript of Claude Code carries."""

from __future__ import annotations

from sessiondb.formats.kit.carrying import (
    CALL,
    EVENT,
    RESULT,
    SAID,
    TEXT,
    USAGE,
    Carried,
    CarryStatement,
)

_FILE = Carried(keys=frozenset({"mime", "content"}))
_CALL = Carried(
    CALL | {"time_ended"},
    values={
        "status": frozenset({"completed", "error"}),
        "outcome": frozenset({"failed", "denied", "interrupted"}),
    },
    objects=frozenset({"input_json"}),
)
_SESSION = frozenset({"title", "directory", "time_created"})

CARRIES = CarryStatement(
    session=Carried(_SESSION),
    own_session=Carried(_SESSION | {"version", "agent", "relation", "call_id", "data"}),
    messages={
        "user": Carried(SAID, parts={"text": TEXT, "file": _FILE}),
        "assistant": Carried(
            USAGE | {"role", "time_created", "model_id", "response_id"},
            values={"finish": frozenset({"stop", "length", "tool-calls"})},
            parts={"text": TEXT, "tool": _CALL},
        ),
        "assistant:compaction": Carried(
            USAGE | {"kind", "time_created"},
            parts={"text": TEXT},
        ),
        "tool": Carried(SAID, parts={"tool-result": Carried(RESULT)}),
        "event:compaction": Carried(EVENT | USAGE, parts={"text": TEXT}),
        "event:custom_message": Carried(SAID - {"role"}, parts={"text": TEXT}),
        "event:branch_summary": Carried(SAID - {"role"}, parts={"text": TEXT}),
    },
)
