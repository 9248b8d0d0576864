"""Outcomes on their way from threads to event loops.

Waking a loop costs a system call and a fight for the interpreter, so what is
settled while it sleeps wakes it once: 64 appenders of one commit, one wake-up.
"""

from __future__ import annotations

import asyncio
import weakref
from collections import deque
from typing import Any


class Inbox:
    """What one loop has yet to see."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        # Weakly: the box is a value of a mapping that has the loop as its key.
        self._loop = weakref.ref(loop)
        self._outcomes: deque[tuple[asyncio.Future[Any], BaseException | None, Any]] = deque()
        self._called = False

    def put(
        self, future: asyncio.Future[Any], error: BaseException | None, value: Any = None
    ) -> None:
        """Add the outcome of *future*; the loop sees it after `wake`."""
        self._outcomes.append((future, error, value))

    def wake(self) -> None:
        """Let the loop settle what is here; nobody waits where it is closed."""
        loop = self._loop()
        if loop is None or self._called:
            return
        self._called = True
        try:
            loop.call_soon_threadsafe(self._empty)
        except RuntimeError:
            self._called = False

    def _empty(self) -> None:
        # First: what is put in from now on either is seen below or wakes the loop again.
        self._called = False
        while self._outcomes:
            future, error, value = self._outcomes.popleft()
            if future.done():  # cancelled meanwhile
                continue
            if error is None:
                future.set_result(value)
            else:
                future.set_exception(error)


_inboxes: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Inbox] = weakref.WeakKeyDictionary()


def inbox(loop: asyncio.AbstractEventLoop) -> Inbox:
    """Return the inbox of a loop; from any thread.

    Without a lock, which a child of fork(2) could inherit locked: `setdefault` is one step.
    """
    return _inboxes.get(loop) or _inboxes.setdefault(loop, Inbox(loop))


def settle(future: asyncio.Future[Any], error: BaseException | None, value: Any = None) -> None:
    """Settle a future from any thread, soon."""
    box = inbox(future.get_loop())
    box.put(future, error, value)
    box.wake()
