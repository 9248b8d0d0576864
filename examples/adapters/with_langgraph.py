"""A graph with a tool: its threads and its memory are in one file."""

import sys
from typing import Any

from langchain_core.messages import convert_to_openai_messages
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.store.base import BaseStore
from openai import OpenAI

from sessiondb import Store
from sessiondb.adapters.langgraph import SessionDBSaver, SessionDBStore


def bash(command: str) -> str:
    """Run a command, and return its output."""
    return "3 passed" if command else ""


def ask(state: MessagesState, *, store: BaseStore) -> dict[str, Any]:
    """Ask the model, with what is remembered."""
    memory = f"You remember: {[item.value for item in store.search(('facts',))]}"
    asked: Any = convert_to_openai_messages([("system", memory), *state["messages"]])
    tools: Any = [convert_to_openai_tool(bash)]
    done: Any = OpenAI().chat.completions.create(model="scripted-1", messages=asked, tools=tools)
    about = {"model_name": done.model, "token_usage": done.usage.model_dump()}
    return {"messages": [done.choices[0].message.model_dump() | {"response_metadata": about}]}


graph = StateGraph(MessagesState).add_node(ask).add_node("tools", ToolNode([bash]))
graph.add_edge(START, "ask").add_edge("tools", "ask").add_conditional_edges("ask", tools_condition)
with Store.open(sys.argv[1] if len(sys.argv) > 1 else "agent.db") as store:
    SessionDBStore(store).put(("facts",), "tests", {"fact": "pytest runs the tests"})
    for question in ("Do the tests pass?", "And now?"):
        app = graph.compile(checkpointer=SessionDBSaver(store), store=SessionDBStore(store))
        app.invoke({"messages": [("user", question)]}, {"configurable": {"thread_id": "t1"}})
    for message in store.messages(store.open_session("t1", source="langgraph")):
        print(f"{message.role}: {message.text}")
