"""An agent of Pydantic AI whose conversation is a session: `with_pydantic_ai.py DATABASE`."""

import asyncio
import os
import sys

from pydantic_ai import Agent
from pydantic_ai.conversation import Conversation
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from sessiondb.adapters.pydantic_ai import SessionDBConversationStore

provider = OpenAIProvider(base_url=os.environ["OPENAI_BASE_URL"])
agent = Agent(OpenAIChatModel("scripted-1", provider=provider))


@agent.tool_plain
def bash(command: str) -> str:
    """Run a command."""
    return "3 passed" if command else ""


async def main(database: str) -> None:
    """Ask twice in one conversation, the second time from a store that is opened again."""
    for question in ("Do the tests pass?", "And after the change?"):
        async with SessionDBConversationStore(database) as conversations:
            conversation = await conversations.load("terminal-1")
            conversation = conversation or Conversation(conversation_id="terminal-1")
            result = await agent.run(question, conversation=conversation)
            await conversations.save(result, scope="alice")

    async with SessionDBConversationStore(database) as conversations:
        (session,) = await conversations.store.sessions(scope="alice")
        for message in await conversations.store.messages(session):
            if message.text:
                print(f"{message.role}: {message.text}")


asyncio.run(main(sys.argv[1] if sys.argv[1:] else "agent.db"))
