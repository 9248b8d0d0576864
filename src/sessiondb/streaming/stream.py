"""Streaming: an answer that is written while it is being given.

Deltas gather in memory and are written by the writer's thread after
`FLUSH_SECONDS` or `FLUSH_BYTES`, whichever comes first: writing each of them
would cost 16 to 38 times the WAL. Each write renews the lease, so no writer that
lost it continues. Search sees the text when the message is complete. A write that
failed is raised by the next call, once, and is made again with the next.

A stream has no lock. Its callers only append, to lists that only grow, and post; all
else belongs to the writer's daemon thread. An interrupt in a caller can so leave
nothing half done, and nothing locked.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, Unpack

from sessiondb import codec, ids
from sessiondb.dataclass import dataclass, replace
from sessiondb.effects import encode
from sessiondb.effects.lease import DropLease, TakeLease
from sessiondb.effects.open_message import AppendText, CompleteText, OpenPart
from sessiondb.effects.queue import Effect
from sessiondb.effects.unit import Unit
from sessiondb.errors import InvalidInputError
from sessiondb.model import PartDraft, Tokens, assistant
from sessiondb.model.draft import NO_INPUT, MessageFields
from sessiondb.model.handles import MessageHandle
from sessiondb.schema.rows import Blob
from sessiondb.streaming.parts import StreamCall, StreamPart
from sessiondb.writer.job import Job
from sessiondb.writer.service import Service

FLUSH_SECONDS = 0.25
FLUSH_BYTES = 4096

PartT = TypeVar("PartT", bound=StreamPart)
Done = Callable[[BaseException | None], None]


@dataclass(slots=True)
class _Write:
    """The contents of one write, to be put back if it fails."""

    unit: Unit
    verbs: list[Callable[[Unit], Any]]
    deltas: list[tuple[StreamPart, int]]


class StreamWriting:
    """The part of a stream that both façades share. Not to be made directly."""

    def __init__(
        self,
        session_id: str,
        new_unit: Callable[[], Unit],
        send: Callable[[Unit, Callable[[Job], None]], None],
        service: Service,
    ) -> None:
        self.session_id = session_id
        self.message: MessageHandle | None = None
        self._new_unit, self._send, self._service = new_unit, send, service
        self._renew: list[TakeLease] = []
        self._parts: list[StreamPart] = []
        self._queued: deque[Callable[[Unit], Any]] = deque()
        #: Characters that were added; several threads may count a few too little.
        self._added = 0
        self._closed = False
        self._error: BaseException | None = None
        self._end: dict[str, Any] = {"finish": "stop"}
        # Owned by the writer's daemon thread.
        self._verbs: list[Callable[[Unit], Any]] = []
        self._sent = 0
        self._scheduled = self._writing = False
        self._waiting: list[Done] = []

    # -- what the caller uses ------------------------------------------------

    def text(self) -> StreamPart:
        """Begin a text part."""
        return self._begin_part(StreamPart, PartDraft("text", ""))

    def reasoning(self) -> StreamPart:
        """Begin a reasoning part."""
        return self._begin_part(StreamPart, PartDraft("reasoning", ""))

    def tool(
        self, name: str, *, call_id: str | None = None, input: Any = NO_INPUT
    ) -> StreamCall:
        """Begin a tool call; ``.add`` streams its arguments."""
        return self._begin_part(
            StreamCall, PartDraft("tool", None, name, call_id, input=input)
        )

    def finish(
        self,
        finish: str = "stop",
        *,
        cost: float | None = None,
        tokens: Tokens | Mapping[str, int] | None = None,
        error: Any = None,
    ) -> None:
        """State how the answer ended; it is written when the block is left."""
        self.check()
        end = {"finish": finish, "cost": cost, "tokens": tokens, "error": error}
        self._new_unit().finish(self.session_id, self._message_id, **end)
        self._end = end

    # -- what its parts use --------------------------------------------------

    def check(self) -> None:
        """Raise the error of the last failed write, once; refuse a finished stream."""
        if self._closed:
            raise InvalidInputError("the stream is finished")
        error = self.take_error()
        if error is not None:
            raise error

    def checked(self, verb: Callable[[Unit], Any]) -> Callable[[], None]:
        """Check a verb, and return what puts it in line behind what was queued."""
        self.check()
        verb(self._new_unit())

        def queue() -> None:
            self._queued.append(verb)
            self.grown(0)

        return queue

    def grown(self, size: int) -> None:
        """Record that there is something to write, and have it written soon."""
        self._added += size
        if self._writing:  # after which the writing thread looks again
            return

        if self._full:
            self._service.post(self._write_if_full)
        elif not self._scheduled:
            self._service.post(self._write_soon)

    # -- what the façades use ------------------------------------------------

    def opening(self, take: TakeLease, **fields: Unpack[MessageFields]) -> Unit:
        """Return the unit that begins the stream: the lease and an open message."""
        unit = self._new_unit()
        unit.add(take)
        self.message = unit.append(self.session_id, assistant(), open=True, **fields)
        self._renew = [replace(take, renew=True)]
        return unit

    def write(self, done: Done) -> None:
        """Send what is unwritten to the writer; *done* gets the error."""
        self._service.post(lambda: self._write_unwritten(done))

    def close(self, failure: BaseException | None, drop: DropLease, done: Done) -> None:
        """Write what is unwritten, and how it ended; *done* gets the error."""
        self._closed = True

        def end(_: BaseException | None) -> None:
            try:
                effects = self._closing_effects(failure, drop)
            except Exception as error:  # noqa: BLE001  the caller waits for it
                done(error)
            else:
                self._commit_effects(effects, done)

        self.write(end)

    def take_error(self) -> BaseException | None:
        """Return the error of the last failed write, once."""
        error, self._error = self._error, None
        return error

    # -- on the writer's daemon thread ---------------------------------------

    def _write_soon(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._service.call_later(FLUSH_SECONDS, self._write_scheduled)

    def _write_scheduled(self) -> None:
        # First: what is added from now on is either taken below or scheduled again.
        self._scheduled = False
        self._write_unwritten()

    @property
    def _full(self) -> bool:
        return self._added - self._sent >= FLUSH_BYTES

    def _write_if_full(self) -> None:
        if self._full and not self._writing:
            self._write_unwritten()

    def _write_unwritten(self, done: Done = lambda _: None) -> None:
        """Send what is unwritten, one unit at a time."""
        if self._writing:
            self._waiting.append(done)
            return

        try:
            taken = self._stage_deltas()
        except Exception as error:  # noqa: BLE001  its caller waits
            done(error)
            return

        if not taken.unit.effects:
            done(None)
            return

        self._writing = True

        def written(error: BaseException | None) -> None:
            self._note_written(error, taken)
            done(error)
            self._continue_later()

        self._commit_effects(taken.unit.effects, written)

    def _note_written(self, error: BaseException | None, taken: _Write) -> None:
        self._writing = False
        if error is None:
            for item, length in taken.deltas:
                item.written += length
            return

        self._error = error
        self._verbs = taken.verbs + self._verbs
        for item, _ in taken.deltas:
            item.put_back()

    def _continue_later(self) -> None:
        """Write for those who came during a write, or what was left, later."""
        waiting, self._waiting = self._waiting, []
        for done in waiting:
            self._write_unwritten(done)

        if self._closed or not self._has_more:
            return

        if self._full:
            self._write_if_full()
        else:
            self._write_soon()

    @property
    def _has_more(self) -> bool:
        if self._verbs or self._queued:
            return True
        return any(item.unwritten for item in self._parts)

    @property
    def _message_id(self) -> str:
        if self.message is None:
            raise InvalidInputError("a stream is used inside its with block")
        return self.message.id

    def _begin_part(self, kind: type[PartT], draft: PartDraft) -> PartT:
        self.check()
        staged = self._new_unit()
        # An id of its own makes the part known when an uncertain write is made again.
        named_draft = replace(draft, id=ids.new_part_id())
        handle = staged.add_part(self.session_id, self._message_id, named_draft)
        item = kind(self, handle)
        effect = staged.effects[0]
        # In this order: a part that the writing thread finds has its verb in line.
        self._queued.append(lambda unit: unit.add(effect))
        self._parts.append(item)
        self.grown(0)
        return item

    def _commit_effects(self, effects: list[Effect], done: Done) -> None:
        unit = self._new_unit()
        unit.add(*self._renew, *effects)
        try:
            self._send(unit, lambda job: done(job.error))
        except Exception as error:  # noqa: BLE001  the store is closed
            done(error)

    def _stage_deltas(self) -> _Write:
        # Parts before verbs, verbs before deltas: see `_begin_part`.
        parts = list(self._parts)
        verbs, self._verbs = self._verbs, []
        while self._queued:
            verbs.append(self._queued.popleft())

        taken = _Write(self._new_unit(), verbs, [])
        for verb in verbs:
            verb(taken.unit)

        self._sent = self._added
        for item in parts:
            delta = item.take()
            if delta:
                taken.deltas.append((item, len(delta)))
                taken.unit.add(*self._growth_effects(item, delta))

        return taken

    def _growth_effects(self, item: StreamPart, delta: str) -> list[Effect]:
        if isinstance(item, StreamCall):
            return item.recorded(partial=False)

        shown, changed = codec.readable(delta)
        item.inexact = item.inexact or changed
        if item.inexact:
            return [self._complete_text(item, ended=False)]

        return [AppendText(self._open_part(item), shown, item.written)]

    def _open_part(self, item: StreamPart) -> OpenPart:
        return OpenPart(self.session_id, self._message_id, item.id)

    def _complete_text(self, item: StreamPart, *, ended: bool) -> CompleteText:
        blobs: list[Blob] = []
        columns = encode.text_columns(item.content, {}, blobs)
        return CompleteText(self._open_part(item), columns, tuple(blobs), ended)

    def _closing_effects(
        self, failure: BaseException | None, drop: DropLease
    ) -> list[Effect]:
        unit = self._stage_deltas().unit
        for item in self._parts:
            if not isinstance(item, StreamCall):
                unit.add(self._complete_text(item, ended=True))
                continue

            unit.add(*item.recorded(partial=True))
            if failure is not None:
                unit.add(*item.interrupted())

        end = self._end if failure is None else {**self._end, **_ending_fields(failure)}
        unit.finish(self.session_id, self._message_id, **end)
        return [*unit.effects, drop]


def _ending_fields(failure: BaseException) -> dict[str, Any]:
    if isinstance(failure, Exception):
        error = {"name": type(failure).__name__, "message": str(failure)}
        return {"finish": "error", "error": error}
    return {"finish": "cancelled"}
