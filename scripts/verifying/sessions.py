"""Sessions that no OpenCode has seen: every role, calls of every state, a complete family."""

from __future__ import annotations

from typing import Any

from sessiondb import (
    MessageDraft,
    SessionHandle,
    Store,
    Todo,
    assistant,
    event,
    file,
    part,
    reasoning,
    system,
    text,
    tool,
    tool_result,
    user,
)


def talk(store: Store) -> None:
    """Write a session with every feature of our own interface, a subagent of it and two forks."""
    session = store.create_session(title="Mend the parser 🔧", directory="/tmp/parser")  # noqa: S108
    tokens: dict[str, Any] = {"provider": "acme", "model": "large", "cost": 0.25}
    store.append(session, event("context", text("You are careful.")))
    store.append(session, system("Be brief."))
    attached = file(content=b"\x89PNG", mime="image/png", filename="a.png")
    linked = file(url="https://example.org/spec.txt", mime="text/plain")
    store.append(session, user(text("Mend it, 直して"), attached, linked))
    parts = (
        reasoning("Hm"),
        text("Reading."),
        tool("read", {"path": "a.py"}, call_id="call_1", output="x = 1\0"),
        tool("edit", ["no", "object"], call_id="call_2", error="No such file"),
        tool("bash", {"command": "rm -r /"}, call_id="call_3", outcome="denied"),
        part("hologram", depth=3),
    )
    asked = store.append(session, assistant(*parts), finish="tool-calls", **tokens)
    calls = [tool("ls", {"path": name}, call_id=f"call_{name}") for name in "ab"]
    store.append(session, assistant(*calls), **tokens)
    store.append(session, MessageDraft("tool", (tool_result("call_b", "b.py"),)))
    store.append(session, MessageDraft("tool", (tool_result("call_a", "a.py"),)))
    store.append(session, event("custom_message", text("The file changed meanwhile.")))
    store.append(session, event("model_change"), provider="acme", model="small")
    store.append(session, event("compaction", text("A parser was mended.")))
    store.append(session, user("And?"))
    last = store.append(session, assistant("Done."), finish="stop", **tokens)
    store.append(session, user("Stop"))
    store.append(session, assistant("Ha"), finish="cancelled", **tokens)
    store.append(session, event("cancelled"))
    store.append(session, user("Again"))
    store.append(
        session, assistant(""), finish="error", error={"message": "429"}, **tokens
    )
    store.append(session, event("failed"))
    store.set_todos(session, [Todo("Ship")])
    store.label(session, last, "good")
    _family(store, session, asked.id, last.id)


def _family(store: Store, session: SessionHandle, early: str, late: str) -> None:
    child = store.create_session(
        parent=session, relation="subagent", call_id="call_1", title="Helper"
    )
    store.append(child, user("Count"))
    store.append(
        child, assistant("3"), finish="stop", provider="acme", model="large", cost=0.5
    )
    for place, said in ((early, "Another way"), (late, "Something else")):
        fork = store.fork(session, at=place)
        store.append(fork, user(said))
        store.append(
            fork, assistant("So be it."), finish="stop", provider="acme", model="large"
        )
