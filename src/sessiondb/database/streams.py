"""The streams of both façades: one stream, two ways to wait for it."""

from __future__ import annotations

import queue
from collections.abc import Callable

from sessiondb.database.core import Core
from sessiondb.database.leases import Lease, new_stream
from sessiondb.model.draft import MessageFields
from sessiondb.model.handles import MessageHandle
from sessiondb.streaming.stream import Done, StreamWriting
from sessiondb.writer.loop import Future


class _StoreStream:
    """The methods of a stream that never wait: those that begin parts, and `finish`."""

    def __init__(self, inner: StreamWriting) -> None:
        self.inner = inner
        self.text = inner.text
        self.reasoning = inner.reasoning
        self.tool = inner.tool
        self.finish = inner.finish

    @property
    def message(self) -> MessageHandle:
        """The message that is being written."""
        assert self.inner.message is not None
        return self.inner.message


class Stream(_StoreStream):
    """A stream of a synchronous store: begin parts, add to them, `finish`."""

    def flush(self) -> None:
        """Return when everything added so far is committed.

        Raises the error of the write.
        """
        error = self._wait_for_end(self.inner.write)
        raised = self.inner.take_error() or error
        if raised is not None:
            raise raised

    def end(self, failure: BaseException | None, lease: Lease) -> None:
        """Write the end of the stream; a second failure never hides the first."""
        error = self._wait_for_end(
            lambda wake: self.inner.close(failure, lease.drop, wake)
        )
        if error is not None and failure is None:
            raise error

    @staticmethod
    def _wait_for_end(begin: Callable[[Done], None]) -> BaseException | None:
        ended: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
        begin(ended.put)
        return ended.get()


class StreamBlock:
    """A stream for the duration of a ``with`` block; see `LeaseBlock`."""

    def __init__(self, core: Core, lease: Lease, fields: MessageFields) -> None:
        self._core, self._fields = core, fields
        self._out = Stream(new_stream(core, lease.session_id))
        self._lease = lease

    def __enter__(self) -> Stream:
        lease, inner = self._lease, self._out.inner
        self._core.commit(inner.opening(lease.take, **self._fields))
        try:
            lease.taken()
        except BaseException as error:
            self._end_stream(error)
            raise

        return self._out

    def __exit__(self, _: object, failure: BaseException | None, __: object) -> None:
        try:
            if failure is None:
                self._out.flush()
        except BaseException as error:
            failure = error
            raise
        finally:
            self._end_stream(failure)

    def _end_stream(self, failure: BaseException | None) -> None:
        self._lease.given_back()
        self._out.end(failure, self._lease)

    def __del__(self) -> None:
        lease = getattr(self, "_lease", None)
        if lease is not None:
            inner = self._out.inner
            lease.abandon(
                lambda: inner.close(GeneratorExit(), lease.drop, lambda _: None)
            )


class AsyncStream(_StoreStream):
    """A stream of an `AsyncStore`: begin parts, add to them, `finish`."""

    async def flush(self) -> None:
        """Return when everything added so far is committed.

        Raises the error of the write.
        """
        error = await self._wait_for_end(self.inner.write)
        raised = self.inner.take_error() or error
        if raised is not None:
            raise raised

    async def end(self, failure: BaseException | None, lease: Lease) -> None:
        """Write the end of the stream; a second failure never hides the first.

        It is written even if the caller who waits for it is cancelled.
        """
        error = await self._wait_for_end(
            lambda wake: self.inner.close(failure, lease.drop, wake)
        )
        if error is not None and failure is None:
            raise error

    @staticmethod
    def _wait_for_end(
        begin: Callable[[Done], None],
    ) -> Future[BaseException | None]:
        # Not at the top: a synchronous stream loads no asyncio.
        from sessiondb.writer.asyncio_loop import running_loop

        loop = running_loop()
        future: Future[BaseException | None] = loop.new_future()
        begin(lambda error: loop.resolve(future, None, error))
        return future
