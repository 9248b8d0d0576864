"""The parts of a stream: text that grows, and calls whose arguments do."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Protocol

from sessiondb import codec
from sessiondb.effects import encode
from sessiondb.effects.calls import Settle, Start
from sessiondb.effects.queue import Effect
from sessiondb.effects.unit import Unit
from sessiondb.errors import InvalidInputError, abridged
from sessiondb.model.draft import NO_INPUT
from sessiondb.model.handles import PartHandle, part_key
from sessiondb.schema.rows import Blob


class Owner(Protocol):
    """The stream, as its parts use it."""

    def check(self) -> None:
        """Raise the error of the last failed write, once; refuse a finished stream."""

    def grown(self, size: int) -> None:
        """Record that there is something to write."""

    def checked(self, verb: Callable[[Unit], Any]) -> Callable[[], None]:
        """Check a verb, and return what puts it in line."""


class StreamPart:
    """A part that grows. ``add`` is in memory; ``id`` names the part."""

    def __init__(self, stream: Owner, handle: PartHandle) -> None:
        self._stream, self._handle = stream, handle
        # Only ever appended to; the writing thread alone counts how far it was taken.
        self._pieces: list[str] = []
        self._taken = self._before = 0
        #: Characters that are in the file.
        self.written = 0
        #: True once a piece needed an exact form beside its readable one.
        self.inexact = False

    @property
    def id(self) -> str:
        """The id of the part."""
        return self._handle.id

    @property
    def handle(self) -> PartHandle:
        """The handle of the part, for `settle` in a later unit."""
        return self._handle

    def add(self, delta: str) -> None:
        """Add a piece of text, or of a call's arguments as JSON text; never waits.

        Raises the error of an earlier write that failed, once; the piece is kept
        all the same, and written with what could not be.
        """
        if not isinstance(delta, str):
            raise InvalidInputError(f"a delta is a string, not {abridged(delta)}")

        try:
            self._stream.check()
        except InvalidInputError:
            raise
        except Exception:
            # Raised when the piece is safe.
            self._take_in(delta)
            raise

        self._take_in(delta)

    def _take_in(self, delta: str) -> None:
        self._pieces.append(delta)
        self._stream.grown(len(delta))

    @property
    def content(self) -> str:
        """Everything that was added."""
        return "".join(self._pieces)

    @property
    def unwritten(self) -> bool:
        """True while there is something that was not sent to the writer."""
        return self._taken < len(self._pieces)

    def take(self) -> str:
        """Return what was added since the last write; on the writing thread."""
        end = len(self._pieces)
        delta = "".join(self._pieces[self._taken : end])
        self._before, self._taken = self._taken, end
        return delta

    def put_back(self) -> None:
        """Take back what was taken last, because its write failed."""
        self._taken = self._before


class StreamCall(StreamPart):
    """A tool call that is being made: arguments first, then the result."""

    def __init__(self, stream: Owner, handle: PartHandle) -> None:
        super().__init__(stream, handle)
        self.started = self.settled = False

    def add(self, delta: str) -> None:
        """Add a piece of the arguments, as JSON text; not after `start`."""
        if self.started or self.settled:
            raise InvalidInputError(f"call {self.id} has its arguments already")
        super().add(delta)

    def arguments(self, *, partial: bool = True) -> Any:
        """Return the arguments that were streamed, decoded.

        Anything but a JSON value is text if *partial*, else NO_INPUT, as nothing is.
        """
        content = self.content
        if not content:
            return NO_INPUT

        try:
            value = json.loads(content)
            codec.json_text(value, "input")
        except (ValueError, RecursionError):
            return content if partial else NO_INPUT

        return value

    def start(self, input: Any = NO_INPUT) -> None:
        """Record that the call is running, with *input* or with what was streamed."""
        if self.started or self.settled:
            raise InvalidInputError(f"call {self.id} was started already")

        arguments = self.arguments() if input is NO_INPUT else input
        sid, handle = self._handle.session_id, self._handle
        queue = self._stream.checked(
            lambda unit: unit.start(sid, handle, input=arguments)
        )
        # First: the writing thread must not write these arguments after the start.
        self.started = True
        queue()

    def settle(
        self,
        *,
        output: str | None = None,
        error: str | None = None,
        outcome: str | None = None,
        title: str | None = None,
        **data: Any,
    ) -> None:
        """Write the result of the call with the next flush."""
        if self.settled:
            raise InvalidInputError(f"call {self.id} is settled already")
        if self._pieces and not self.started:
            self.start()

        sid, handle = self._handle.session_id, self._handle

        def settle(unit: Unit) -> None:
            unit.settle(
                sid,
                handle,
                output=output,
                error=error,
                outcome=outcome,
                title=title,
                **data,
            )

        queue = self._stream.checked(settle)
        self.settled = True
        queue()

    def recorded(self, *, partial: bool) -> list[Effect]:
        """Return the effect that writes the arguments of a call before it starts."""
        if self.started or self.settled:
            return []

        arguments = self.arguments(partial=partial)
        if arguments is NO_INPUT:
            return []

        blobs: list[Blob] = []
        text, text_blob = encode.input_columns(arguments, blobs)
        note = Start(
            session_id=self._handle.session_id,
            part=part_key(self._handle),
            input=text,
            input_blob=text_blob,
            blobs=tuple(blobs),
            status="pending",
        )
        return [note]

    def interrupted(self) -> list[Effect]:
        """Return the effect that ends a call that was not settled."""
        if self.settled:
            return []

        end = Settle(
            session_id=self._handle.session_id,
            part=part_key(self._handle),
            status="error",
            outcome="interrupted",
            text=None,
            text_blob=None,
            title=None,
            data={},
            blobs=(),
            if_open=True,
        )
        return [end]
