"""A function of a caller that computes what is written, called in the transaction."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from sessiondb.effects.transaction import CallerError


class CallerFold:
    """The function, and the thread that queued it.

    It runs in whichever thread commits. An error in it is of the unit that has it, and
    is carried to its own caller, a `SystemExit` too.
    """

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function
        self._thread = threading.get_ident()

    def result_for(self, value: Any) -> Any:
        """Return what the function makes of *value*; raises `CallerError`."""
        try:
            return self._function(value)
        except BaseException as error:
            # An interrupt falls into the main thread, and is of its own caller, whoever
            # the function is of.
            is_here = threading.get_ident() == self._thread
            is_main = threading.current_thread() is threading.main_thread()
            if is_main and not is_here and not isinstance(error, Exception):
                raise
            raise CallerError(error) from error
