"""Two questions to Claude in one session; the second agent knows it from the database."""

import asyncio
import sys
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, create_sdk_mcp_server, query, tool

from sessiondb.adapters.claude_agent import SessionDBSessionStore

DATABASE = sys.argv[1] if len(sys.argv) > 1 else "agent.db"


@tool("bash", "Run a command", {"command": str})
async def bash(_: dict[str, Any]) -> dict[str, Any]:
    """Return what the command printed."""
    return {"content": [{"type": "text", "text": "3 passed"}]}


async def ask(prompt: str, resumed: str | None = None) -> str | None:
    """Return the id of the session in which Claude answered."""
    async with SessionDBSessionStore(DATABASE) as store:
        options = ClaudeAgentOptions(
            session_store=store, resume=resumed, model="claude-sonnet-4-5", tools=[],
            mcp_servers={"shell": create_sdk_mcp_server("shell", tools=[bash])},
            allowed_tools=["mcp__shell__bash"],
        )  # fmt: skip
        async for message in query(prompt=prompt, options=options):
            resumed = getattr(message, "session_id", resumed)
    return resumed


session_id = asyncio.run(ask("Do the tests pass?"))
asyncio.run(ask("And what did I ask first?", session_id))
with SessionDBSessionStore(DATABASE) as sessions:
    (session,) = sessions.store.sessions(source="claude-agent-sdk").items
    for said in sessions.store.messages(session, roles=("user", "assistant")):
        if said.text:
            print(f"{said.role}: {said.text}")
