"""The facts of another program's session that a chat history of aider carries."""

from __future__ import annotations

from sessiondb.formats.kit.carrying import (
    MODEL,
    TEXT,
    USAGE,
    Carried,
    CarryStatement,
)

# The folder of a history is the directory of its sessions.
_SESSION = frozenset({"directory", "time_created"})

CARRIES = CarryStatement(
    session=Carried(_SESSION),
    own_session=Carried(_SESSION | MODEL | {"version", "data"}),
    messages={
        "user": Carried(frozenset({"role"}), parts={"text": TEXT}),
        "assistant": Carried(
            MODEL | USAGE - {"tokens_reasoning"} | {"role"},
            parts={"text": TEXT, "reasoning": TEXT},
        ),
        "event:model_change": Carried(frozenset({"role", "kind"}) | MODEL),
    },
)
