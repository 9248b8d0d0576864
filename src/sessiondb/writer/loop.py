"""An event loop, as the store uses it: outcomes on their way to it from threads.

Waking a loop costs a system call and a fight for the interpreter, so what is
resolved while it sleeps wakes it once: 64 appenders of one commit, one wake-up.

A loop is one of asyncio or of trio. All that differs between them is in `asyncio_loop`
and `trio_loop`; code that awaits gets its own from `asyncio_loop.running_loop`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from sessiondb.living import LivingObjects

T = TypeVar("T")


class Future(Awaitable[T], Protocol[T]):
    """A value that a task awaits; set by the thread of its loop."""

    def done(self) -> bool:
        """Return whether it has an outcome, or its task was cancelled."""

    def set_result(self, value: T, /) -> None:
        """Give it a value."""

    def set_exception(self, error: BaseException, /) -> None:
        """Give it an error, which is raised where it is awaited."""


class Event(Protocol):
    """An event that tasks of a loop wait for: of asyncio or of trio."""

    def is_set(self) -> bool:
        """Return whether it happened."""

    async def wait(self) -> Any:
        """Wait until it happens."""


class Loop:
    """One event loop, and the outcomes that it has yet to see."""

    #: The error of a task that is cancelled.
    Cancelled: type[BaseException]

    def __init__(self) -> None:
        self._outcomes: deque[tuple[Future[Any], BaseException | None, Any]] = deque()
        self._called = False
        _loops.add(self)

    # -- outcomes, from any thread ---------------------------------------------

    def put(
        self, future: Future[Any], error: BaseException | None, value: Any = None
    ) -> None:
        """Add the outcome of *future*; the loop sees it after `wake`."""
        self._outcomes.append((future, error, value))

    def resolve(
        self, future: Future[Any], error: BaseException | None, value: Any = None
    ) -> None:
        """Give *future* its outcome soon."""
        self.put(future, error, value)
        self.wake()

    def wake(self) -> None:
        """Have the loop resolve what was put in; on a closed loop no task waits."""
        if self._called:
            return

        try:
            self._called = True
            is_called = self.call_from_thread(self._resolve_outcomes)
        except BaseException:
            # Also after an interrupt: a flag left set would keep all from waking it.
            self._called = False
            raise
        if not is_called:
            self._called = False

    def _resolve_outcomes(self) -> None:
        # First: what is put in from now on is seen below, or wakes the loop again.
        self._called = False
        try:
            while self._outcomes:
                self._resolve_future(*self._outcomes[0])
                self._outcomes.popleft()
        except BaseException:
            # An interrupt in the loop's thread, if the loop runs on after it.
            self.wake()
            raise

    def wake_late(self) -> None:
        """Wake the loop again if it has not seen everything."""
        if self._outcomes:
            self._called = False
            self.wake()

    @staticmethod
    def _resolve_future(
        future: Future[Any], error: BaseException | None, value: Any
    ) -> None:
        if future.done():  # cancelled by now, or resolved before an interrupt
            return
        if error is None:
            future.set_result(value)
        elif isinstance(error, StopIteration):
            # A future refuses it; a coroutine that raises it has this error, too.
            future.set_exception(RuntimeError("StopIteration in a unit"))
        else:
            future.set_exception(error)

    # -- what the loop offers ------------------------------------------------------

    def call_from_thread(self, function: Callable[[], object]) -> bool:
        """Have the loop call *function*, from any thread; False if it has ended."""
        raise NotImplementedError

    def call_soon(self, function: Callable[[], object]) -> None:
        """Call *function* after the tasks that can continue now."""
        raise NotImplementedError

    def new_future(self) -> Future[Any]:
        """Return a future of this loop."""
        raise NotImplementedError

    def start_task(self, function: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run a coroutine function in a task whose end is not awaited."""
        raise NotImplementedError

    def run_in_background(self, function: Callable[[], object]) -> None:
        """Run a function that blocks in a thread, whose end is not awaited."""
        raise NotImplementedError

    async def run_in_thread(self, function: Callable[[], T]) -> T:
        """Return the result of a function that blocks, from a thread."""
        raise NotImplementedError

    def ending(self) -> AbstractContextManager[object]:
        """Return a block in which a task that was cancelled may still await.

        What it began has to end: the next task finds its lease given back.
        """
        raise NotImplementedError

    async def wait_through(self, future: Future[Any]) -> None:
        """Wait for *future* even if the task is cancelled."""
        raise NotImplementedError

    async def wait_for(self, event: Event | None, seconds: float) -> None:
        """Wait for *seconds* at most, until *event* happens."""
        raise NotImplementedError


_loops: LivingObjects[Loop] = LivingObjects()


def wake_late() -> None:
    """Wake every loop that has not seen everything.

    An interrupt on the very first line of `_resolve_outcomes` ends it before it can do
    anything about that. The loop then stops, as a rule; this is for one that is run
    again.
    """
    for loop in _loops:
        loop.wake_late()
