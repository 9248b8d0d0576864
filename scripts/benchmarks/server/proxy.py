"""A proxy on the loopback that delays what it passes on, and counts round trips.

It is a process of its own, so that it does not share the interpreter with what is
measured. Each byte arrives a given time after it was sent, however many are under way:
the latency of a network, and not its throughput.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_PIECE = 1 << 16


class Proxy:
    """A proxy that runs; made by `proxy_before`."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.port = int(self._answer())

    def trips(self) -> int:
        """Return how often a client has sent something and waited for the answer."""
        assert self._process.stdin
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return int(self._answer())

    def _answer(self) -> str:
        assert self._process.stdout
        return self._process.stdout.readline()


@contextmanager
def proxy_before(socket_file: Path, delay: float) -> Iterator[Proxy]:
    """Run a proxy to a socket for a ``with`` block; *delay* is in ms, each way."""
    command = [sys.executable, __file__, str(socket_file), str(delay)]
    pipe: Any = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            yield Proxy(process)
        finally:
            process.terminate()


@dataclass
class _Listener:
    """The process: it passes on what clients and the server send."""

    socket_file: str
    #: In seconds.
    delay: float
    trips: int = 0

    async def serve(self) -> None:
        server = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        _say(server.sockets[0].getsockname()[1])
        loop = asyncio.get_running_loop()
        loop.add_reader(sys.stdin, self._report)
        async with server:
            await server.serve_forever()

    def _report(self) -> None:
        if sys.stdin.readline():
            _say(self.trips)

    async def _connect(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        connected = await asyncio.open_unix_connection(self.socket_file)
        from_server, to_server = connected
        line = _Line(self)
        await asyncio.gather(
            line.carry(reader, to_server, is_request=True),
            line.carry(from_server, writer, is_request=False),
        )


@dataclass
class _Line:
    """A connection of a client to the server."""

    listener: _Listener
    is_answered: bool = True

    async def carry(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        is_request: bool,
    ) -> None:
        loop = asyncio.get_running_loop()
        pieces: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

        async def deliver() -> None:
            piece = b"begin"
            while piece:
                due, piece = await pieces.get()
                await asyncio.sleep(due - loop.time())
                writer.write(piece)
                await writer.drain()
            writer.close()

        async def receive() -> None:
            piece = b"begin"
            while piece:
                piece = await reader.read(_PIECE)
                if piece:
                    self._count(is_request=is_request)
                pieces.put_nowait((loop.time() + self.listener.delay, piece))

        with contextlib.suppress(ConnectionError):
            await asyncio.gather(receive(), deliver())

    def _count(self, *, is_request: bool) -> None:
        """Count a request that follows an answer: more of the same belongs to it."""
        self.listener.trips += is_request and self.is_answered
        self.is_answered = not is_request


def _say(number: int) -> None:
    print(number, flush=True)


if __name__ == "__main__":
    _socket_file, _delay = sys.argv[1:]
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_Listener(_socket_file, float(_delay) / 1000).serve())
