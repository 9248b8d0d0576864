"""Outcomes on their way from threads to event loops.

Waking a loop costs a system call and a fight for the interpreter, so what is
resolved while it sleeps wakes it once: 64 appenders of one commit, one wake-up.
"""

from __future__ import annotations

import weakref
from collections import deque
from typing import TYPE_CHECKING, Any

from sessiondb.living import LivingObjects

if TYPE_CHECKING:
    import asyncio


class Inbox:
    """Outcomes that one loop has yet to see."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        # Weakly: the loop owns its box, and ends without the help of the collector.
        self._loop = weakref.ref(loop)
        self._outcomes: deque[tuple[asyncio.Future[Any], BaseException | None, Any]] = (
            deque()
        )
        self._called = False

    def put(
        self,
        future: asyncio.Future[Any],
        error: BaseException | None,
        value: Any = None,
    ) -> None:
        """Add the outcome of *future*; the loop sees it after `wake`."""
        self._outcomes.append((future, error, value))

    def wake(self) -> None:
        """Have the loop resolve what was put in; on a closed loop no task waits."""
        loop = self._loop()
        if loop is None or self._called:
            return

        try:
            self._called = True
            loop.call_soon_threadsafe(self._empty_box)
        except BaseException as error:
            # Also after an interrupt: a flag left set would keep all from waking it.
            self._called = False
            if not isinstance(error, RuntimeError):
                raise

    def _empty_box(self) -> None:
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
        future: asyncio.Future[Any], error: BaseException | None, value: Any
    ) -> None:
        if future.done():  # cancelled by now, or resolved before an interrupt
            return
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)


#: The attribute of a loop that is its inbox.
_ATTRIBUTE = "_sessiondb_inbox"
_inboxes: LivingObjects[Inbox] = LivingObjects()


def inbox(loop: asyncio.AbstractEventLoop) -> Inbox:
    """Return the inbox of a loop; from any thread.

    The loop itself owns it. An outcome refers to its loop, so in a mapping of weak keys
    an outcome that a closed loop never saw would keep the loop and its tasks forever.
    Every subclass of `asyncio.AbstractEventLoop` takes attributes.
    """
    attributes = vars(loop)
    box: Inbox | None = attributes.get(_ATTRIBUTE)
    if box is None:
        new = Inbox(loop)
        _inboxes.add(new)
        # Without a lock, which a child of fork(2) could inherit locked: `setdefault` is
        # one step.
        box = attributes.setdefault(_ATTRIBUTE, new)
    return box


def wake_late() -> None:
    """Wake every loop that has not seen everything.

    An interrupt on the very first line of `_empty_box` ends it before it can do
    anything about that. The loop then stops, as a rule; this is for one that is run
    again.
    """
    for box in _inboxes:
        box.wake_late()


def resolve(
    future: asyncio.Future[Any], error: BaseException | None, value: Any = None
) -> None:
    """Resolve a future from any thread, soon."""
    box = inbox(future.get_loop())
    box.put(future, error, value)
    box.wake()
