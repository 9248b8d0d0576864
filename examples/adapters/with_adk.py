"""An agent of Google ADK whose session is in a database of sessiondb."""

import asyncio
import sys

from google.adk.agents import LlmAgent
from google.adk.models import Gemini
from google.adk.runners import Runner
from google.genai.types import UserContent

from sessiondb import Store
from sessiondb.adapters.adk import SessionDBSessionService

DATABASE = sys.argv[1] if len(sys.argv) > 1 else "agent.db"


def bash(command: str) -> str:
    """Run a command: here, none."""
    del command
    return "3 passed"


agent = LlmAgent(name="coder", model=Gemini(model="scripted-1"), tools=[bash])


async def ask(words: str) -> None:
    """Ask the agent, in a session that continues the last one."""
    async with SessionDBSessionService(DATABASE) as service:
        runner = Runner(
            app_name="tests", agent=agent, session_service=service, auto_create_session=True
        )
        key = {"user_id": "ada", "session_id": "terminal-1"}
        _ = [it async for it in runner.run_async(**key, new_message=UserContent(words))]


asyncio.run(ask("Do the tests pass?"))
asyncio.run(ask("Are you sure?"))
with Store.open(DATABASE) as store:
    for message in store.messages(store.sessions().items[0]):
        print(f"{message.role}: {message.text}")
