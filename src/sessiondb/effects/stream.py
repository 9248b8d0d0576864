"""Streaming: an answer that is written while it is being given.

Deltas gather in memory and are written by the writer's thread after
`FLUSH_SECONDS` or `FLUSH_BYTES`, whichever comes first: writing each of them
would cost 16 to 38 times the WAL. Search sees the text when the message is
complete. A write that failed is raised by the next call, once, and its text is
written again with the next.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy import select, text

from sessiondb import codec
from sessiondb.effects import encode
from sessiondb.effects.encode import Blob
from sessiondb.effects.handles import MessageHandle, PartHandle
from sessiondb.effects.lease import DropLease, TakeLease
from sessiondb.effects.transaction import Transaction
from sessiondb.effects.unit import Unit
from sessiondb.effects.writer import Job
from sessiondb.engine.sql import Statement, p, update_of
from sessiondb.errors import InvalidInputError, NotFoundError
from sessiondb.model import PartDraft, Tokens, assistant
from sessiondb.model.draft import FINISHES, NO_INPUT
from sessiondb.schema import part

FLUSH_SECONDS = 0.25
FLUSH_BYTES = 4096

_ROW = Statement(
    lambda: (
        select(part.c.rid, part.c.seq)
        .where(part.c.session_id == p("sid"), part.c.id == p("pid"))
        .order_by(part.c.seq.desc())
        .limit(1)
    )
)
_GROW = Statement(
    lambda: (
        part.update()
        .where(part.c.rid == p("row"))
        .values(
            text=text("coalesce(part.text, '') || :delta"),
            time_updated=text(":now"),
        )
    )
)
_SEAL = update_of(
    part, "text text_blob data data_blob time_updated time_ended", part.c.rid == p("row")
)


def _find(tx: Transaction, session_id: str, part_id: str) -> tuple[int, int]:
    row = tx.one(_ROW, sid=session_id, pid=part_id)
    if row is None:
        raise NotFoundError(f"part {part_id} is not in session {session_id}")
    return row[0], row[1]


@dataclass(frozen=True, slots=True)
class Grow:
    """Add a piece of text to a part of an open message."""

    verb = "stream"
    session_id: str
    part_id: str
    delta: str

    def apply(self, tx: Transaction) -> None:
        """Write it; raises `NotFoundError`."""
        state = tx.session(self.session_id)
        rid, seq = _find(tx, state.id, self.part_id)
        tx.run(_GROW, row=rid, delta=self.delta, now=tx.now)
        state.first_new_seq = min(state.first_new_seq or seq, seq)
        tx.used(state)


@dataclass(frozen=True, slots=True)
class Seal:
    """Give a streamed part its final columns: the whole text, as a blob where it is large."""

    verb = "stream"
    session_id: str
    part_id: str
    columns: tuple[str | None, str | None, bytes | None, str | None]
    blobs: tuple[Blob, ...]

    def apply(self, tx: Transaction) -> None:
        """Write it; raises `NotFoundError`."""
        rid, _ = _find(tx, self.session_id, self.part_id)
        tx.insert_blobs(self.blobs)
        shown, shown_blob, data, data_blob = self.columns
        tx.run(
            _SEAL,
            row=rid,
            text=shown,
            text_blob=shown_blob,
            data=data,
            data_blob=data_blob,
            time_updated=tx.now,
            time_ended=tx.now,
        )


class StreamPart:
    """A part that grows. ``add`` is in memory; ``id`` names the part."""

    def __init__(self, stream: Stream, handle: PartHandle) -> None:
        self._stream, self._handle = stream, handle
        self._pieces: list[str] = []
        self._unwritten: list[str] = []
        self.settled = False

    @property
    def id(self) -> str:
        """The id of the part."""
        return self._handle.id

    @property
    def handle(self) -> PartHandle:
        """The handle of the part, for `settle` in a later unit."""
        return self._handle

    def add(self, delta: str) -> None:
        """Add a piece of text, or of a call's arguments as JSON text; never waits."""
        if not isinstance(delta, str):
            raise InvalidInputError(f"a delta is a string, not {delta!r}")
        with self._stream.lock:
            self._pieces.append(delta)
            self._unwritten.append(delta)
        self._stream.grown(len(delta))

    @property
    def content(self) -> str:
        """Everything that was added."""
        return "".join(self._pieces)

    @property
    def unwritten(self) -> bool:
        """True while there is something that was not sent to the writer."""
        return bool(self._unwritten)

    def take(self) -> str:
        """Return what was added since the last write (with the stream's lock held)."""
        delta, self._unwritten = "".join(self._unwritten), []
        return delta

    def put_back(self, delta: str) -> None:
        """Take back a piece whose write failed."""
        self._unwritten.insert(0, delta)


class StreamCall(StreamPart):
    """A tool call that is being made: arguments first, then the result."""

    def arguments(self) -> Any:
        """The arguments that were streamed, decoded; text that is no JSON stays text."""
        content = self.content
        if not content:
            return NO_INPUT
        try:
            return json.loads(content)
        except ValueError:
            return content

    def start(self, input: Any = NO_INPUT) -> None:
        """Note that the call is running, with *input* or with what was streamed."""
        given = self.arguments() if input is NO_INPUT else input
        self._stream.queue(
            lambda unit: unit.start(self._handle.session_id, self._handle, input=given)
        )

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
        result = {"output": output, "error": error, "outcome": outcome, "title": title}
        sid, handle = self._handle.session_id, self._handle
        self._stream.queue(lambda unit: unit.settle(sid, handle, **result, **data))
        self.settled = True


PartT = TypeVar("PartT", bound=StreamPart)


class Stream:
    """The part of a stream that both façades share. Not to be made directly."""

    def __init__(
        self,
        session_id: str,
        new_unit: Callable[[], Unit],
        send: Callable[[Unit, Callable[[Job], None]], None],
        call_later: Callable[[float, Callable[[], None]], None],
    ) -> None:
        self.lock = threading.Lock()
        self.session_id = session_id
        self.message: MessageHandle | None = None
        self._new_unit, self._send, self._call_later = new_unit, send, call_later
        self._parts: list[StreamPart] = []
        self._verbs: list[Callable[[Unit], Any]] = []
        self._pending = 0
        self._scheduled = self._writing = self._closed = False
        self._error: BaseException | None = None
        self._end: dict[str, Any] | None = None
        self._waiting: list[Callable[[BaseException | None], None]] = []

    # -- what the caller uses ------------------------------------------------

    def text(self) -> StreamPart:
        """Begin a text part."""
        return self._begin(StreamPart, PartDraft("text", ""))

    def reasoning(self) -> StreamPart:
        """Begin a reasoning part."""
        return self._begin(StreamPart, PartDraft("reasoning", ""))

    def tool(self, name: str, *, call_id: str | None = None, input: Any = NO_INPUT) -> StreamCall:
        """Begin a tool call; ``.add`` streams its arguments."""
        draft = PartDraft("tool", None, name, call_id, input=input)
        return self._begin(StreamCall, draft)

    def finish(
        self,
        finish: str = "stop",
        *,
        cost: float | None = None,
        tokens: Tokens | dict[str, int] | None = None,
        error: Any = None,
    ) -> None:
        """Say how the answer ended; it is written when the block is left."""
        encode.one_of(finish, FINISHES, "finish")
        encode.money(cost), encode.token_counts(tokens)
        self._end = {"finish": finish, "cost": cost, "tokens": tokens, "error": error}

    # -- what the façades use ------------------------------------------------

    def _begin(self, kind: type[PartT], draft: PartDraft) -> PartT:
        self._check()
        if self.message is None:
            raise InvalidInputError("a stream is used inside its with block")
        staged = self._new_unit()
        handle = staged.add_part(self.session_id, self.message.id, draft)
        item = kind(self, handle)
        effect = staged.effects[0]
        with self.lock:
            self._parts.append(item)
            self._verbs.append(lambda unit: unit.effects.append(effect))
        self.grown(0)
        return item

    def queue(self, verb: Callable[[Unit], Any]) -> None:
        """Put a verb in line behind what was queued before."""
        self._check()
        verb(self._new_unit())
        with self.lock:
            self._verbs.append(verb)
        self.grown(0)

    def _check(self) -> None:
        if self._closed:
            raise InvalidInputError("the stream is finished")
        error = self.take_error()
        if error is not None:
            raise error

    def grown(self, size: int) -> None:
        """Note that there is something to write, and when."""
        self._check()
        with self.lock:
            self._pending += size
            full, first = self._pending >= FLUSH_BYTES, not self._scheduled
            if self._writing or not (full or first):
                return
            self._scheduled = True
        if full:
            self.write()
        else:
            self._call_later(FLUSH_SECONDS, self.write)

    def write(self, done: Callable[[BaseException | None], None] | None = None) -> None:
        """Send what is unwritten to the writer, one unit at a time; *done* gets its error."""
        with self.lock:
            if self._writing:
                if done is not None:
                    self._waiting.append(done)
                return
            unit, taken, verbs = self._staged()
            self._scheduled = False
            self._pending = 0
            self._writing = bool(unit.effects)
        if not unit.effects:
            if done is not None:
                done(None)
            return

        def written(job: Job) -> None:
            self._written(job.error, taken, verbs)
            if done is not None:
                done(job.error)

        self._send(unit, written)

    def _staged(self) -> tuple[Unit, list[tuple[StreamPart, str]], list[Callable[[Unit], Any]]]:
        unit, verbs = self._new_unit(), self._verbs
        self._verbs = []
        taken = []
        for verb in verbs:
            verb(unit)
        for item in self._parts:
            delta = item.take()
            if delta:
                taken.append((item, delta))
            if delta and not isinstance(item, StreamCall):
                shown = codec.readable(delta)[0]
                unit.effects.append(Grow(self.session_id, item.id, shown))
        return unit, taken, verbs

    def _written(
        self,
        error: BaseException | None,
        taken: list[tuple[StreamPart, str]],
        verbs: list[Callable[[Unit], Any]],
    ) -> None:
        with self.lock:
            self._writing = False
            if error is not None:
                self._error = error
                self._verbs = verbs + self._verbs
                for item, delta in reversed(taken):
                    item.put_back(delta)
            again = bool(self._verbs or any(item.unwritten for item in self._parts))
            waiting, self._waiting = self._waiting, []
            soon = again and not self._scheduled and not self._closed and not waiting
            self._scheduled = self._scheduled or soon
        if soon:
            self._call_later(FLUSH_SECONDS, self.write)
        for number, done in enumerate(waiting):
            # What was added during the write goes with the first of those who wait for it.
            self.write(done) if number == 0 else self._waiting.append(done)

    def take_error(self) -> BaseException | None:
        """Return the error of the last failed write, once."""
        error, self._error = self._error, None
        return error

    def opening(self, take: TakeLease, **fields: Any) -> Unit:
        """Return the unit that begins the stream: the lease and an open message."""
        unit = self._new_unit()
        unit.effects.append(take)
        self.message = unit.append(self.session_id, assistant(), open=True, **fields)
        return unit

    def closing(self, failure: BaseException | None, drop: DropLease) -> Unit:
        """Return the unit that ends the stream: the rest, the calls, the message, the lease."""
        with self.lock:
            self._closed = True
            unit, _, _ = self._staged()
        for item in self._parts:
            if isinstance(item, StreamCall):
                if not item.settled:
                    unit.settle(self.session_id, item.handle, outcome="interrupted")
                continue
            blobs: list[Blob] = []
            columns = encode.text_columns(item.content, {}, blobs)
            unit.effects.append(Seal(self.session_id, item.id, columns, tuple(blobs)))
        end = self._end or {"finish": "stop"}
        if failure is not None:
            end = {**end, **_how(failure)}
        assert self.message is not None
        unit.finish(self.session_id, self.message.id, **end)
        unit.effects.append(drop)
        return unit


def _how(failure: BaseException) -> dict[str, Any]:
    if isinstance(failure, Exception):
        error = {"name": type(failure).__name__, "message": str(failure)}
        return {"finish": "error", "error": error}
    return {"finish": "cancelled"}
