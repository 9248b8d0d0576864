"""A turn as the messages of LangChain, which LangGraph stores as well."""

from __future__ import annotations

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from benchmarks.peers.turns import TOOL, Turn

ITEMS = 3


def chat_messages(turn: Turn) -> list[BaseMessage]:
    """Return the prompt, the answer with its call, and the result of the call."""
    call = {"id": turn.call_id, "name": TOOL, "args": turn.arguments}
    return [
        HumanMessage(turn.prompt),
        AIMessage(turn.answer, tool_calls=[call]),
        ToolMessage(turn.result, tool_call_id=turn.call_id, name=TOOL),
    ]
