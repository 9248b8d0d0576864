"""A tool call that is a session of its own: an agent asks two helpers.

Run: python examples/subagent.py [DATABASE]
"""

from __future__ import annotations

import asyncio
import sys

from sessiondb import ALL, AsyncStore, MessageHandle, SessionHandle, assistant, text, tool, user


async def helper(
    store: AsyncStore, parent: SessionHandle, asked: MessageHandle, call_id: str, task: str
) -> None:
    """Do one task in a session below *parent*, and settle the call that asked for it."""
    session = await store.create_session(
        title=task, parent=parent, parent_message=asked, call_id=call_id, agent="explore"
    )
    await store.append(session, user(task))
    found = f"{task}: bell.py:21"
    reply = assistant(text(found), tool("grep", {"pattern": task}, output="bell.py:21"))
    await store.append(session, reply, model="small", cost=0.001)
    await store.settle(parent, call_id, output=found)


async def main(database: str) -> None:
    """Ask two helpers at once, look at the family, and remove it."""
    async with AsyncStore.open(database, source="example-subagent") as store:
        parent = await store.create_session(title="Rename remaining()")
        await store.append(parent, user("Rename remaining() to left()"))
        tasks = {"call_1": "callers in kettle", "call_2": "callers in tests"}
        calls = [tool("task", {"prompt": task}, call_id=key) for key, task in tasks.items()]
        asked = await store.append(parent, assistant(*calls), model="large", cost=0.01)

        # Both at once: their writes meet in one writer and share its commits.
        async with asyncio.TaskGroup() as group:
            for call_id, task in tasks.items():
                group.create_task(helper(store, parent, asked, call_id, task))

        (message,) = await store.messages(parent, last=1)
        for part in message.parts:
            print(f"{part.tool} {part.status}: {part.text}")

        listed = await store.sessions(project=ALL, source="example-subagent")
        print("a list leaves subagents out:", [session.title for session in listed])
        for child in (await store.tree(parent)).children:
            below = child.session
            print(f"{below.relation} at #{below.parent_seq} for {below.call_id}: {below.title}")
        for row in await store.usage(by=("agent", "model"), source="example-subagent"):
            print(f"{row.key['agent'] or 'main'} on {row.key['model']}: ${row.cost:.3f}")

        # A subagent goes with its parent.
        await store.delete(parent)
        left = await store.sessions(project=ALL, subagents=True, source="example-subagent")
        print("left after the delete:", len(left))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else ":memory:"))
