"""The fields of a session of another program that a rollout of Codex carries."""

from __future__ import annotations

from sessiondb.formats.kit.carrying import (
    CALL,
    EVENT,
    RESULT,
    SAID,
    TEXT,
    TOKENS,
    Carried,
    CarryStatement,
)

_FILE = Carried(keys=frozenset({"mime", "content"}))
_CALL = Carried(
    CALL | {"outcome"},
    values={"status": frozenset({"pending", "completed", "error"})},
    texts=frozenset({"input_json"}),
)
_SESSION = frozenset({"title", "directory", "time_created"})
_EVENT = Carried(EVENT, parts={"text": TEXT})

CARRIES = CarryStatement(
    session=Carried(_SESSION),
    own_session=Carried(
        # An archived rollout has no other time than that of its file.
        _SESSION
        | {"version", "agent", "relation", "call_id", "data"}
        | {"provider_id", "model_id"}
    ),
    messages={
        "user": Carried(SAID, parts={"text": TEXT, "file": _FILE}),
        "assistant": Carried(
            TOKENS | {"role", "time_completed"},
            parts={"text": TEXT, "reasoning": TEXT, "tool": _CALL},
        ),
        "system": Carried(SAID, parts={"text": TEXT}),
        "tool": Carried(SAID, parts={"tool-result": Carried(RESULT)}),
        "event:compaction": Carried(EVENT | TOKENS, parts={"text": TEXT}),
        "event:custom_message": _EVENT,
        "event:title_change": Carried(EVENT),
        "event:branch_summary": Carried(SAID, parts={"text": TEXT}),
        "event:context": Carried(SAID, parts={"text": TEXT}),
        "event:usage": Carried(EVENT | TOKENS),
    },
)
