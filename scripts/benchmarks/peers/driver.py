"""The process of one phase: opens a store, does what its standard input says, in turns.

    python -m benchmarks.peers.driver PEER

A line of input is a list, the name of a step and its arguments; each is answered with a
line of JSON. The time between two lines belongs to the other stores.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import warnings
from importlib import import_module
from pathlib import Path
from time import monotonic, perf_counter, process_time
from types import ModuleType
from typing import Any

from benchmarks.peers.turns import turn

Answer = dict[str, Any]


class Phase:
    """The steps; all except the first need an open store."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module

    async def open(self, folder: str, session: str, first: int) -> Answer:
        """Open a store; the turns that are appended are numbered from *first*."""
        self.peer = self.module.Peer(Path(folder), session)
        if hasattr(self.peer, "start"):
            await self.peer.start()
        self.next = first
        self.forks = 0
        return {"forks": hasattr(self.peer, "fork")}

    async def append(self, count: int) -> Answer:
        """Append turns: seconds for each, and bytes, pages and processor time for all."""
        turns = [turn(self.next + number) for number in range(count)]
        self.next += count
        seconds = []
        written, worked = bytes_written(), process_time()
        for one in turns:
            started = perf_counter()
            await self.peer.append(one)
            seconds.append(perf_counter() - started)
        worked = process_time() - worked
        return {
            "seconds": seconds,
            "worked": worked / count,
            "written": (bytes_written() - written) / count,
        }

    async def contend(self, count: int) -> Answer:
        """Append turns while other processes do; an error is counted and the turn lost."""
        turns = [turn(self.next + number) for number in range(count)]
        seconds, errors = [], []
        started = monotonic()
        for one in turns:
            begun = perf_counter()
            try:
                await self.peer.append(one)
            except Exception as error:  # noqa: BLE001 - whatever a store raises is its figure
                errors.append(f"{type(error).__name__}: {error}".splitlines()[0])
            seconds.append(perf_counter() - begun)
        return {
            "start": started,
            "end": monotonic(),
            "longest": max(seconds),
            "errors": errors,
        }

    async def load(self, turns: int) -> Answer:
        """Load the session, which must have so many turns."""
        started, worked = perf_counter(), process_time()
        loaded = await self.peer.load()
        answer = spent(started, worked)
        self._expect(loaded, turns, turns)
        return answer

    async def last(self, turns: int) -> Answer:
        """Load the newest 25 of so many turns, ten times; the figures are those of one."""
        started, worked = perf_counter(), process_time()
        for _ in range(10):
            loaded = await self.peer.last(25)
        answer = spent(started, worked)
        self._expect(loaded, 25, turns)
        return {name: figure / 10 for name, figure in answer.items()}

    async def fork(self) -> Answer:
        """Fork the session."""
        self.forks += 1
        started, worked = perf_counter(), process_time()
        await self.peer.fork(f"fork-{self.forks}")
        return spent(started, worked)

    async def close(self) -> Answer:
        """Close the store."""
        await self.peer.close()
        return {}

    def _expect(self, loaded: list[Any], turns: int, newest: int) -> None:
        """Compare what was loaded with what was appended: its length, and its end."""
        if len(loaded) != turns * self.module.ITEMS:
            raise LookupError(
                f"{len(loaded)} items were loaded, not {turns * self.module.ITEMS}"
            )
        if turn(newest - 1).mark not in str(loaded[-self.module.ITEMS :]):
            raise LookupError("the newest turn was not loaded")


def spent(started: float, worked: float) -> Answer:
    """Return the seconds since both readings, of the clock and of the processor."""
    return {"seconds": perf_counter() - started, "worked": process_time() - worked}


def bytes_written() -> int:
    """Return the bytes that this process has passed to write(2), 0 if the system has no count."""
    try:
        lines = Path("/proc/self/io").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return int(next(line for line in lines if line.startswith("wchar")).split()[1])


async def serve(name: str) -> None:
    """Do the steps of standard input, and answer each of them."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    # A store that prints does not garble the answers.
    os.dup2(2, 1)
    phase = Phase(import_module(f"benchmarks.peers.{name}"))
    for line in sys.stdin:
        step, *arguments = json.loads(line)
        answer = await getattr(phase, step)(*arguments)
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    asyncio.run(serve(sys.argv[1]))
