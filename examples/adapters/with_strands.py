"""An agent of Strands whose session is in a database, continued by a new agent."""

import os
import sys

from strands import Agent
from strands.models.openai import OpenAIModel
from strands.session import RepositorySessionManager
from strands.tools import tool

from sessiondb.adapters.strands import SessionDBRepository

PATH = sys.argv[1] if len(sys.argv) > 1 else "agent.db"
MODEL = OpenAIModel(client_args={"base_url": os.environ["OPENAI_BASE_URL"]}, model_id="scripted-1")


@tool
def bash(command: str) -> str:
    """Run a command in the shell."""
    print(f"$ {command}")
    return "3 passed"


for prompt in ("Do the tests pass?", "Are you sure?"):
    with SessionDBRepository(PATH, model="scripted-1") as repository:
        session = RepositorySessionManager("terminal-1", repository)
        agent = Agent(MODEL, tools=[bash], session_manager=session, callback_handler=None)
        agent(prompt)

with SessionDBRepository(PATH) as repository:
    for stored in repository.list_messages("terminal-1", "default"):
        for block in stored.to_message()["content"]:
            if "text" in block:
                print(f"{stored.message['role']}: {block['text']}")
