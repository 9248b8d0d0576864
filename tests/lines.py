"""Act on a chosen line of this package's code, as an interrupt or the collector would."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, Self

import sessiondb

PACKAGE = str(Path(sessiondb.__file__).parent)


class Interrupter:
    """Counts the lines of the package that the calling thread runs; acts on one of them.

    *act* is called on line number *at*, counted from 1, or on each line of a range; what
    it raises appears to be raised by that line. *before* maps a function's name to what is called once, when
    its first line is about to run. With *only*, lines of other files do not count.
    """

    def __init__(
        self,
        at: int | range,
        act: Callable[[], object],
        before: dict[str, Callable[[], object]] | None = None,
        only: tuple[str, ...] = (),
    ) -> None:
        self.lines = 0
        self.place = ""
        self._at = at if isinstance(at, range) else range(at, at + 1)
        self._act = act
        self._before = dict(before or {})
        self._only = frozenset(f"{PACKAGE}/{name}" for name in only)
        self._traced: FrameType | None = None

    @property
    def acted(self) -> bool:
        """True once line *at* was reached."""
        return bool(self.place)

    def __enter__(self) -> Self:
        gc.disable()
        self._traced = sys._getframe(1)
        sys.settrace(self._call)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)
        self._traced = None
        gc.enable()

    def _call(self, frame: FrameType, event: str, arg: Any) -> Any:
        # In this order: a commit calls many functions of files that do not count.
        wanted = self._counts(frame.f_code.co_filename)
        return self._line if wanted and not self._is_in_finaliser(frame) else None

    def _is_in_finaliser(self, frame: FrameType | None) -> bool:
        """Python swallows exceptions raised there."""
        while frame is not None and frame is not self._traced:
            if frame.f_code.co_name == "__del__":
                return True
            frame = frame.f_back
        return False

    def _counts(self, file: str) -> bool:
        if not self._only:
            return file.startswith(PACKAGE)
        return file in self._only

    def _line(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event != "line":
            return self._line
        if frame.f_code.co_name in self._before:
            self._before.pop(frame.f_code.co_name)()
        self.lines += 1
        if self.lines in self._at:
            code = frame.f_code
            self.place = f"{code.co_qualname} ({code.co_filename}:{frame.f_lineno})"
            self._act()
        return self._line


def interrupt() -> None:
    """Raise KeyboardInterrupt."""
    raise KeyboardInterrupt


COMMIT_PATH = (
    "aio.py",
    "store.py",
    "model/handles.py",
    "writer/job.py",
    "writer/registry.py",
    "writer/service.py",
    "effects/transaction.py",
    "writer/thread.py",
    "writer/role.py",
    "writer/applying.py",
    "writer/connection.py",
    "engine/sqlite/engine.py",
    "database/core.py",
    "database/facade.py",
    "database/lifetime.py",
    "writer/callbacks.py",
    "writer/loop.py",
)
STREAM_PATH = (
    "writer/service.py",
    "writer/thread.py",
    "effects/lease.py",
    "streaming/lease.py",
    "streaming/stream.py",
    "streaming/parts.py",
    "database/leases.py",
    "database/streams.py",
)
