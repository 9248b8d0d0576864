"""What a plain log carries of a session of another program."""

from __future__ import annotations

from sessiondb.formats.kit.carrying import (
    CALL,
    EVENT,
    FILE,
    MODEL,
    RESULT,
    SAID,
    TEXT,
    TIMES,
    USAGE,
    Carried,
    Statement,
)

_SAID = {"text": TEXT, "file": FILE}
_CALL = Carried(
    CALL | TIMES | {"outcome"},
    values={"status": frozenset({"pending", "completed", "error"})},
    objects=frozenset({"input_json"}),
)
_SESSION = frozenset(
    {"directory", "title", "agent", "version", "relation", "time_created"}
)

CARRIES = Statement(
    session=Carried(_SESSION | MODEL),
    own=Carried(_SESSION | MODEL | {"call_id", "data"}),
    messages={
        "user": Carried(EVENT, parts=_SAID),
        "system": Carried(EVENT, parts=_SAID),
        "assistant": Carried(
            SAID | MODEL | USAGE | {"agent", "finish", "error"},
            parts={**_SAID, "reasoning": TEXT, "tool": _CALL},
        ),
        "tool": Carried(SAID, parts={"tool-result": Carried(RESULT)}),
        "event": Carried(EVENT | {"data"}),
    },
)
