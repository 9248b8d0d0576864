"""A proxy before a server that loses connections where a test wants it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

#: Asked for each message of a client: what becomes of the connection.
PASS, LOSE_IT, LOSE_THE_ANSWER = "pass", "lose it", "lose the answer"
Rule = Callable[[bytes], str]


class Proxy:
    """Listens on a port of the loopback, and passes bytes to and from a socket file.

    ``rule`` may be replaced at any time. With ``LOSE_IT`` the bytes do not reach the
    server; with ``LOSE_THE_ANSWER`` they do, and the client never hears of it.
    """

    def __init__(self, socket_file: Path) -> None:
        self._socket_file = socket_file
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.rule: Rule = lambda _: PASS
        self.lost = 0
        #: Clients that came while there was no server.
        self.refused = 0
        self._open: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Stop listening, and end every connection."""
        self._listener.close()
        self.lose_all()

    def lose_all(self) -> None:
        """End every connection, as a server does that is killed."""
        for end in list(self._open):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            try:
                server.connect(str(self._socket_file))
            except OSError:  # it was stopped
                self.refused += 1
                self._end(client, server)
                continue
            self._open |= {client, server}
            for work in (self._to_server, self._to_client):
                threading.Thread(
                    target=work, args=(client, server), daemon=True
                ).start()

    def _to_server(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while sent := client.recv(1 << 16):
                verdict = self.rule(sent)
                if verdict != PASS:
                    self.lost += 1
                    # Before the server can answer.
                    client.shutdown(socket.SHUT_RDWR)
                if verdict == LOSE_IT:
                    break
                server.sendall(sent)
                if verdict == LOSE_THE_ANSWER:
                    # Until the server has done it: it ends the connection then.
                    server.shutdown(socket.SHUT_WR)
                    while server.recv(1 << 16):
                        pass
                    break
        self._end(client, server)

    def _to_client(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while answer := server.recv(1 << 16):
                client.sendall(answer)
        self._end(client, server)

    def _end(self, *ends: socket.socket) -> None:
        for end in ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            self._open.discard(end)
            end.close()


@contextmanager
def proxy_before(socket_file: Path) -> Iterator[Proxy]:
    """Run a proxy for the time of a block."""
    proxy = Proxy(socket_file)
    try:
        yield proxy
    finally:
        proxy.close()
