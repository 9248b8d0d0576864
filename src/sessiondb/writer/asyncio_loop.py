"""Event loops of asyncio, and the question which kind of loop is running."""

from __future__ import annotations

import asyncio
import sys
import weakref
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any, TypeVar

from sessiondb.writer.loop import Event, Future, Loop

T = TypeVar("T")
#: The attribute of a loop that is ours of it.
_ATTRIBUTE = "_sessiondb_loop"


class AsyncioLoop(Loop):
    """An event loop of asyncio."""

    Cancelled = asyncio.CancelledError

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        # Weakly: the loop owns this object, and ends without the help of the collector.
        self._loop = weakref.ref(loop)
        self._tasks: set[asyncio.Task[None]] = set()

    def call_from_thread(self, function: Callable[[], object]) -> bool:
        """Have the loop call *function*; False if it is closed."""
        loop = self._loop()
        if loop is None:
            return False
        try:
            loop.call_soon_threadsafe(function)
        except RuntimeError:
            return False
        return True

    def call_soon(self, function: Callable[[], object]) -> None:
        """Call *function* after the tasks that can continue now."""
        asyncio.get_running_loop().call_soon(function)

    def new_future(self) -> Future[Any]:
        """Return a future of this loop."""
        return asyncio.get_running_loop().create_future()

    def start_task(self, function: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run a coroutine function in a task whose end is not awaited."""
        task = asyncio.get_running_loop().create_task(function())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def run_in_background(self, function: Callable[[], object]) -> None:
        """Run a function that blocks in a thread, whose end is not awaited."""
        asyncio.get_running_loop().run_in_executor(None, function)

    async def run_in_thread(self, function: Callable[[], T]) -> T:
        """Return the result of a function that blocks, from a thread."""
        return await asyncio.to_thread(function)

    def ending(self) -> AbstractContextManager[object]:
        """Return a block like any other: a cancelled task awaits what it wants."""
        return nullcontext()

    async def wait_through(self, future: Future[Any]) -> None:
        """Wait for *future* even if the task is cancelled."""
        with suppress(asyncio.CancelledError):
            await future

    async def wait_for(self, event: Event | None, seconds: float) -> None:
        """Wait for *seconds* at most, until *event* happens."""
        if event is None:
            await asyncio.sleep(seconds)
            return
        with suppress(TimeoutError):
            await asyncio.wait_for(event.wait(), seconds)


def running_loop() -> Loop:
    """Return the loop that runs here, whichever kind it is of.

    Our object of a loop belongs to it. An outcome refers to its loop, so in a mapping
    of weak keys an outcome that a closed loop never saw would keep the loop and its
    tasks forever. Every subclass of `asyncio.AbstractEventLoop` takes attributes.
    """
    if "trio" in sys.modules:
        from sessiondb.writer.trio_loop import running_trio_loop

        trio_loop = running_trio_loop()
        if trio_loop is not None:
            return trio_loop

    asyncio_loop = asyncio.get_running_loop()
    loop: Loop | None = vars(asyncio_loop).get(_ATTRIBUTE)
    if loop is None:
        loop = vars(asyncio_loop)[_ATTRIBUTE] = AsyncioLoop(asyncio_loop)
    return loop
