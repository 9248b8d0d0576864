"""LangGraph's conformance suite of checkpointers, on `SessionDBSaver`."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from langgraph.checkpoint.conformance import checkpointer_test, validate

from sessiondb.adapters.langgraph import SessionDBSaver


@checkpointer_test(name="SessionDBSaver")
async def made() -> AsyncIterator[SessionDBSaver]:
    """Yield a saver on a new file."""
    with tempfile.TemporaryDirectory() as folder:
        async with SessionDBSaver(Path(folder, "graph.db")) as saver:
            yield saver


async def main() -> None:
    """Run every capability, and print the counts."""
    results = (await validate(made)).results.values()
    passed = sum(result.tests_passed for result in results)
    failures = [failure for result in results for failure in result.failures]
    print(passed, len(failures), 0)
    print(*failures, sep="\n")


if __name__ == "__main__":
    asyncio.run(main())
