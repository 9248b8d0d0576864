"""Modules that only some verbs and reads need, imported out of reach of an interrupt.

An interrupt inside an import is not an interrupt any more: Python turns one inside a
class body into a RuntimeError, and drops one inside a callback. Signals reach the main
thread alone, so the first import is done by another one, for which the caller waits; an
interrupt ends the wait.
"""

from __future__ import annotations

import sys
import threading
from importlib import import_module


def load(name: str) -> None:
    """Import a module; the import statement that follows only looks it up.

    Raises what the module raises.
    """
    if name in sys.modules:
        return

    raised: list[BaseException] = []

    def work() -> None:
        try:
            import_module(name)
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=work, name="sessiondb-import", daemon=True)
    try:
        thread.start()
    except RuntimeError:
        # The system refuses the thread.
        work()
    else:
        thread.join()

    if raised:
        raise raised[0]
