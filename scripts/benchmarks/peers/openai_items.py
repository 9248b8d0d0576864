"""A turn as the items of OpenAI's Responses API, which all sessions of Agents store."""

from __future__ import annotations

import json
from typing import Any

from benchmarks.peers.turns import TOOL, Turn

ITEMS = 4


def response_items(turn: Turn) -> list[dict[str, Any]]:
    """Return the prompt, the message, the call and its output."""
    return [
        {"role": "user", "content": turn.prompt},
        {
            "id": f"msg_{turn.number}",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [
                {"type": "output_text", "text": turn.answer, "annotations": []}
            ],
        },
        {
            "type": "function_call",
            "call_id": turn.call_id,
            "name": TOOL,
            "arguments": json.dumps(turn.arguments),
        },
        {
            "type": "function_call_output",
            "call_id": turn.call_id,
            "output": turn.result,
        },
    ]
