"""An agent that is killed in the middle of an answer, and goes on.

It starts itself as a child and kills it. Run: python examples/agent.py [DATABASE]
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path

from sessiondb import AsyncStore, Message, Unfinished, user


async def tool(result: str, seconds: float = 0.0) -> str:
    """Run a tool, as far as this example is concerned."""
    await asyncio.sleep(seconds)
    return result


async def answer(database: Path) -> None:
    """Stream an answer with two tool calls at once; it is killed before it ends."""
    async with AsyncStore.open(database, source="example-agent") as store:
        session = await store.create_session(title="Make the tests pass")
        await store.append(session, user("Why does test_timer fail?"))
        async with store.stream(session, model="scripted-1", ttl=0.5) as out:
            say = out.text()
            for word in ("I ", "look ", "at ", "the ", "code ", "and ", "run ", "the ", "tests."):
                say.add(word)
            grep, bash = out.tool("grep", call_id="call_1"), out.tool("bash", call_id="call_2")
            grep.start({"pattern": "remaining"})
            bash.start({"command": "pytest -q"})
            running = asyncio.create_task(tool("3 passed", seconds=3600))
            grep.settle(output=await tool("timer.py:5"))
            await out.flush()
            print(f"{session} has two calls, one is done", flush=True)
            bash.settle(output=await running)


async def resume(database: Path, session: str) -> list[Message]:
    """Settle what the dead process left open, and answer from there."""
    async with AsyncStore.open(database, source="example-agent") as store:
        left: list[Unfinished] = []
        while not left:  # nothing is taken from the living: the lease has to run out
            await asyncio.sleep(0.1)
            left = [x for x in await store.unfinished() if x.session.id == session]
        print(f"left open: {len(left[0].messages)} message, {len(left[0].calls)} call")
        await store.recover(session)
        context = await store.context(session)  # what the model is sent
        parts = [part for message in context.messages for part in message.parts]
        async with store.stream(session, model="scripted-1") as out:
            for part in [part for part in parts if part.outcome == "interrupted"]:
                again = out.tool(str(part.tool), call_id=f"{part.call_id}b", input=part.input)
                again.settle(output=await tool("3 passed"))
            out.text().add("Nothing fails any more.")
            out.finish("stop", cost=0.002, tokens={"input": 240, "output": 19})
        return await store.messages(session)


def main(database: Path) -> None:
    """Kill the child in the middle, then resume its session."""
    command = [sys.executable, __file__, str(database), "--child"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:  # noqa: S603
        session, said = child.stdout.readline().split(" ", 1) if child.stdout else ("", "")
        child.kill()
    print(session, said.strip() + ", and is killed")
    for message in asyncio.run(resume(database, session)):
        print(f"#{message.seq} {message.role} {message.finish or ''}".rstrip())
        for part in message.parts:
            print("  ", part.tool or part.type, part.outcome or part.status or "", part.text)


if __name__ == "__main__":
    if "--child" in sys.argv:
        asyncio.run(answer(Path(sys.argv[1])))
    else:
        with tempfile.TemporaryDirectory() as folder:
            main(Path(sys.argv[1] if len(sys.argv) > 1 else f"{folder}/sessions.db"))
