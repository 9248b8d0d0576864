"""A session made here that has everything a session can have, with a fork and a subagent."""

from __future__ import annotations

from sessiondb import (
    FileDiff,
    MessageDraft,
    PartDraft,
    Store,
    Todo,
    Tokens,
    assistant,
    context_source,
    event,
    file,
    reasoning,
    system,
    text,
    tool,
    tool_result,
    user,
)

#: When the first message was written, and the time between two, in Unix ms.
BEGAN, STEP = 1_770_000_000_123, 1_000


def drafts() -> list[tuple[MessageDraft, dict[str, object]]]:
    """Return the messages of the session, with what is stated of each besides."""
    model: dict[str, object] = {"provider": "acme", "model": "large", "agent": "plan"}
    spent: dict[str, object] = {"cost": 0.25, "tokens": Tokens(100, 20, 7, 50, 5)}
    whole = {"name": "tool-output/o", "content": "the complete output"}
    calls = (
        tool("read", {"path": "a.py"}, call_id="c1", output="x = 1", title="a.py"),
        tool("edit", {"path": "b.py"}, call_id="c2", error="No such file"),
        tool("rm", {"path": "c.py"}, call_id="c3", outcome="denied"),
        tool("sleep", {"seconds": 9}, call_id="c4", outcome="interrupted"),
        tool("patch", "*** Begin Patch", call_id="c5", output="Done"),
        tool("wait", {}, call_id="c6"),
        tool("log", {}, call_id="c7", output="cut", output_file=whole),
    )
    picture = file(content=b"\x89PNG", mime="image/png", filename="tea.png")
    sources = context_source("file", "AGENTS.md", text="Rules")
    answered = {"finish": "tool-calls", "response_id": "resp_1", **model, **spent}
    return [
        (system("Be brief."), {}),
        (event("context", text("Rules"), sources), {}),
        (event("model_change"), {"provider": "acme", "model": "large"}),
        (user("Mend the parser", text("Reminder of a program", synthetic=True), picture), {}),
        (assistant(reasoning("First I look"), text("I look."), *calls), answered),
        (MessageDraft("tool", (tool_result("c6", "waited long"),)), {}),
        (assistant(text("It is broken"), custom={"key": [1]}), {"finish": "stop", **model, **spent}),
        (event("compaction", text("A summary of all")), {**spent}),
        (event("rules", rules=["no network"]), {}),
        (user("And the tests?", file("https://x.example/spec.pdf", mime="application/pdf")), {}),
        (assistant(), {"finish": "error", "error": {"message": "rate limit"}, **model, **spent}),
        (assistant(text("Half an answer"), PartDraft("hologram", data={"depth": 3})),
         {"finish": "cancelled", **model}),
        (event("usage"), {**spent}),
    ]  # fmt: skip


def make(store: Store) -> None:
    """Make the session, its fork and its subagent, in *store*."""
    session = store.create_session(
        title="Mend the parser", directory="/home/ada/tea", agent="plan", version="3.1"
    )
    handles = []
    for number, (draft, stated) in enumerate(drafts()):
        when = BEGAN + number * STEP
        handles.append(store.append(session, draft, time=when, **stated))
    store.append(session, assistant("On a branch"), after=handles[3].id)
    store.set_leaf(session, handles[-1].id)
    store.append(session, assistant("Unfinished answer"), open=True)

    store.label(session, handles[3].id, "start")
    store.set_todos(session, [Todo("Write a test", "pending", "high")])
    store.set_diffs(session, [FileDiff("a.py", patch="+x", additions=1, deletions=0)])
    store.set_metadata(session, {"ticket": 7})
    store.set_permission(session, ["ask"])
    store.append(store.fork(session), user("Another way?"))
    child = store.create_session(
        parent=session, relation="subagent", title="Look", directory="/home/ada/tea"
    )
    store.append(child, user("Look for it"))
    store.archive(child)
