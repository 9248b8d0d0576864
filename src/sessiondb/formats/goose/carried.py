"""The facts that a session of Goose carries of a session of another program."""

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

_FILE = Carried(keys=frozenset({"mime", "content"}))
_CALL = Carried(
    CALL | {"time_ended"},
    values={
        "status": frozenset({"pending", "completed", "error"}),
        "outcome": frozenset({"failed"}),
    },
    objects=frozenset({"input_json"}),
)
_SAID = {"text": TEXT, "reasoning": TEXT, "file": _FILE}
_SESSION = frozenset({"title", "directory", "time_created"}) | MODEL

CARRIES = CarryStatement(
    session=Carried(_SESSION),
    own_session=Carried(
        _SESSION | {"version", "agent", "relation", "call_id", "data", "time_archived"}
    ),
    messages={
        "user": Carried(SAID, parts=_SAID),
        "system": Carried(SAID - {"role"}, parts=_SAID),
        "assistant": Carried(
            MODEL | USAGE - {"tokens_reasoning"} | {"role", "time_created"},
            parts={**_SAID, "tool": _CALL},
        ),
        "tool": Carried(SAID, parts={**_SAID, "tool-result": Carried(RESULT)}),
        "event:compaction": Carried(EVENT, parts={"text": TEXT}),
        "event:custom_message": Carried(EVENT, parts={"text": TEXT}),
        "event:branch_summary": Carried(SAID, parts={"text": TEXT}),
    },
)
