"""A unit on its way through the writer, and who hears of its outcome."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from sessiondb.effects.unit import Unit

_log = logging.getLogger("sessiondb")


@dataclass(slots=True)
class Job:
    """One unit; ``error`` or None once ``done``.

    ``notify`` is called when it is, then ``wake`` once for all of a batch that have the same.
    """

    unit: Unit
    durability: str = "full"
    busy_timeout: float = 10.0
    root: str | None = None
    notify: Callable[[Job], None] | None = None
    wake: Callable[[], None] | None = None
    done: bool = False
    error: BaseException | None = None

    def end(self, error: BaseException | None = None) -> None:
        """Give out the result, once."""
        if self.done:
            return
        self.error = error
        self.unit.committed = self.unit.committed or error is None
        self.done = True
        if self.notify is None:
            return
        try:
            self.notify(self)
        except Exception:
            _log.debug("nobody waits for a unit of sessiondb any more", exc_info=True)
