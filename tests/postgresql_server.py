"""A PostgreSQL of the tests' own: a new cluster that listens on a socket in a folder."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from private_cluster import Cluster, binaries

__all__ = ["Server", "binaries", "running"]


class Server(Cluster):
    """A cluster that runs, used through its own client ``psql``."""

    def __init__(self, folder: Path, programs: Path, connections: int = 300) -> None:
        # What it writes need not survive anything.
        settings = {"fsync": "off", "max_connections": connections}
        super().__init__(folder, programs, settings)

    def start(self) -> None:
        """Make the cluster and start it."""
        self.initialize()
        # Everybody is trusted but the role of this name, which states its password.
        rules = self.data / "pg_hba.conf"
        rules.write_text(f"local all sworn scram-sha-256\n{rules.read_text()}")
        super().start()

    def start_again(self) -> None:
        """Start the server after `stop`."""
        super().start()

    def run(self, script: str) -> str:
        """Run SQL to its end, whatever fails; return the lines of psql's errors."""
        done = subprocess.run(
            [str(self.programs / "psql"), "-X", "-q", "-h", str(self.folder),
             "-U", "sessiondb", "-v", "VERBOSITY=terse", "postgres"],
            input=script, text=True, capture_output=True, check=False, timeout=60,
        )  # fmt: skip
        assert done.returncode in (0, 3), done.stderr
        return done.stderr


@contextmanager
def running(programs: Path, connections: int = 300) -> Iterator[Server]:
    """Run a server for the time of a block; it admits so many *connections*."""
    # Not below a test's own folder: the path of a socket has about 100 characters.
    with tempfile.TemporaryDirectory(prefix="pg-") as folder:
        server = Server(Path(folder), programs, connections)
        with server.ended():
            server.start()
            yield server
