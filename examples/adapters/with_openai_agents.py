"""An agent of the OpenAI Agents SDK whose sessions are in a database of sessiondb."""

import asyncio
import sys

from agents import Agent, Runner, function_tool

from sessiondb import AsyncStore
from sessiondb.adapters.openai_agents import SessionDBSession

MODEL = "scripted-1"


@function_tool
def bash(command: str) -> str:
    """Run a command."""
    print(f"$ {command}")
    return "3 passed"


async def main(database: str) -> None:
    """Ask twice, each time with a session object of its own."""
    agent = Agent("tester", instructions="Test it.", model=MODEL, tools=[bash])
    async with AsyncStore.open(database) as store:
        for question in ("Do the tests pass?", "Do they pass again?"):
            session = SessionDBSession("terminal-1", store, model=MODEL)
            await Runner.run(agent, question, session=session)

        for stored in (await store.sessions(source="openai-agents")).items:
            for message in await store.messages(stored):
                if message.text:
                    print(f"{message.role}: {message.text}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "agent.db"))
