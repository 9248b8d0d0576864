"""The databases that are open in this process, and when they are closed.

A store that its program does not close is closed at the end of the process, or soon
after it was collected. Before a fork(2) idle connections are closed.
"""

from __future__ import annotations

import atexit
import os
from collections import deque
from typing import TYPE_CHECKING

from sessiondb.living import LivingObjects
from sessiondb.writer.thread import in_worker

if TYPE_CHECKING:
    from sessiondb.database.core import Core

OPEN: LivingObjects[Core] = LivingObjects()
#: Those whose stores were collected, to be closed by `close_collected`.
COLLECTED: deque[Core] = deque()


def close_collected() -> None:
    """Close the stores that were collected; to be called without a lock.

    Each of our threads closes its own store only: two threads that close each other's
    would wait for each other. Any other thread waits until all are closed.
    """
    for core in list(COLLECTED):
        if core.has_thread and in_worker():
            continue
        core.close_now()


def _close_all() -> None:
    for core in OPEN:
        core.close()


def _before_fork() -> None:
    for core in OPEN:
        core.pause()


atexit.register(_close_all)
os.register_at_fork(before=_before_fork, after_in_child=COLLECTED.clear)
