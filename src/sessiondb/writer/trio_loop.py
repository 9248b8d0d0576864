"""Event loops of trio; loaded only by a program that has loaded trio."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from contextlib import AbstractContextManager
from typing import Any, Generic, TypeVar

import trio

from sessiondb.writer.loop import Event, Future, Loop
from sessiondb.writer.thread import logger

T = TypeVar("T")


class TrioFuture(Generic[T]):
    """A future as asyncio has them: an event and its outcome."""

    def __init__(self) -> None:
        self._ended = trio.Event()
        self._error: BaseException | None = None
        self._value: Any = None

    def done(self) -> bool:
        """Return whether it has an outcome."""
        return self._ended.is_set()

    def set_result(self, value: T, /) -> None:
        """Give it a value."""
        self._value = value
        self._ended.set()

    def set_exception(self, error: BaseException, /) -> None:
        """Give it an error."""
        self._error = error
        self._ended.set()

    def __await__(self) -> Generator[Any, Any, T]:
        yield from self._ended.wait().__await__()
        if self._error is not None:
            raise self._error
        value: T = self._value
        return value


class TrioLoop(Loop):
    """The loop of one call of `trio.run`."""

    Cancelled = trio.Cancelled

    def __init__(self) -> None:
        super().__init__()
        self._token = trio.lowlevel.current_trio_token()

    def call_from_thread(self, function: Callable[[], object]) -> bool:
        """Have the loop call *function*; False if it has ended."""
        try:
            self._token.run_sync_soon(function)
        except trio.RunFinishedError:
            return False
        return True

    def call_soon(self, function: Callable[[], object]) -> None:
        """Call *function* after the tasks that can continue now."""
        self._token.run_sync_soon(function)

    def new_future(self) -> Future[Any]:
        """Return a future of this loop."""
        return TrioFuture()

    def start_task(self, function: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run a coroutine function in a task whose end is not awaited."""
        trio.lowlevel.spawn_system_task(function)

    def run_in_background(self, function: Callable[[], object]) -> None:
        """Run a function that blocks in a thread, whose end is not awaited."""

        async def run() -> None:
            # An error in a task of the system would end the program.
            try:
                await trio.to_thread.run_sync(function, abandon_on_cancel=True)
            except Exception:
                logger().exception("an error in the background of sessiondb")

        trio.lowlevel.spawn_system_task(run)

    async def run_in_thread(self, function: Callable[[], T]) -> T:
        """Return the result of a function that blocks, from a thread."""
        return await trio.to_thread.run_sync(function)

    def ending(self) -> AbstractContextManager[object]:
        """Return a block that is not cancelled."""
        return trio.CancelScope(shield=True)

    async def wait_through(self, future: Future[Any]) -> None:
        """Wait for *future* even if the task is cancelled."""
        with trio.CancelScope(shield=True):
            await future

    async def wait_for(self, event: Event | None, seconds: float) -> None:
        """Wait for *seconds* at most, until *event* happens."""
        with trio.move_on_after(seconds):
            if event is None:
                await trio.sleep_forever()
            else:
                await event.wait()


#: Ends with the call of `trio.run` that it belongs to.
_running: trio.lowlevel.RunVar[TrioLoop] = trio.lowlevel.RunVar("sessiondb_loop")


def running_trio_loop() -> TrioLoop | None:
    """Return the loop of trio that runs here; None if there is none."""
    try:
        return _running.get()
    except LookupError:
        loop = TrioLoop()
        _running.set(loop)
        return loop
    except RuntimeError:
        return None
