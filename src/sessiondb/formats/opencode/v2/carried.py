"""What OpenCode 2 carries of a session of another program."""

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
    CarryStatement,
)
from sessiondb.formats.opencode.v2.fields import ENDS

_CALL = Carried(
    CALL | TIMES,
    values={
        "status": frozenset({"completed", "error"}),
        "outcome": frozenset({"failed", "denied", "interrupted"}),
    },
    objects=frozenset({"input_json"}),
)
_THOUGHT = Carried(frozenset({"text"}) | TIMES)
_FOLDED = Carried(frozenset({"data"}))
_SESSION = (
    frozenset(
        {
            "title",
            "directory",
            "agent",
            "metadata",
            "permission",
            "revert",
            "time_created",
            "time_archived",
        }
    )
    | MODEL
)
_ANSWER = SAID | MODEL | USAGE | {"agent", "finish", "error"}
_TEXTS = {"text": TEXT}

CARRIES = CarryStatement(
    session=Carried(_SESSION, values={"relation": frozenset({"subagent", "fork"})}),
    own_session=Carried(_SESSION | {"relation", "share_url", "data"}),
    messages={
        "user": Carried(
            SAID,
            parts={
                "text": Carried(frozenset({"text", "synthetic"})),
                "file": FILE,
                "agent": Carried(keys=frozenset({"name"})),
                "compaction": _FOLDED,
            },
        ),
        "assistant": Carried(
            _ANSWER,
            parts={
                "text": TEXT,
                "reasoning": _THOUGHT,
                "tool": _CALL,
                "step-start": _FOLDED,
                "step-finish": _FOLDED,
                "snapshot": _FOLDED,
                "patch": _FOLDED,
                "source": _FOLDED,
            },
        ),
        "assistant:compaction": Carried(
            frozenset({"kind", "time_created"}) | MODEL | USAGE, parts=_TEXTS
        ),
        "system": Carried(SAID, parts=_TEXTS),
        "tool": Carried(SAID, parts={"tool-result": Carried(RESULT)}),
        "event:compaction": Carried(EVENT | MODEL | USAGE, parts=_TEXTS),
        "event:custom_message": Carried(EVENT, parts=_TEXTS),
        "event:branch_summary": Carried(SAID, parts=_TEXTS),
        "event:context": Carried(SAID - {"role"}, parts=_TEXTS),
        "event:model_change": Carried(EVENT | MODEL),
        "event:mode_change": Carried(EVENT | {"agent"}),
        **{f"event:{kind}": Carried(EVENT) for kind in ENDS.values()},
    },
)
