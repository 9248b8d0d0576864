"""A PostgreSQL of the tests' own: a new cluster that listens on a socket in a folder."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def binaries() -> Path | None:
    """Return the folder of ``initdb``: Debian keeps it off the PATH."""
    on_path = shutil.which("initdb")
    if on_path:
        return Path(on_path).resolve().parent
    return max(Path("/usr/lib/postgresql").glob("*/bin"), default=None)


def _owner() -> str | None:
    """Return the user that runs the server if this process may not: root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name).pw_name
        except KeyError:
            continue
    return None


class Server:
    """A cluster that runs, used through its own client ``psql``."""

    def __init__(self, folder: Path, programs: Path, connections: int = 300) -> None:
        self.folder, self.programs, self.user = folder, programs, _owner()
        self.connections = connections

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [str(self.programs / program), *arguments],
            check=True, capture_output=True, user=self.user, cwd=self.folder, timeout=60,
        )  # fmt: skip

    def start(self) -> None:
        """Make the cluster and start it; what it writes need not survive anything."""
        if self.user is not None:
            shutil.chown(self.folder, self.user)
        data = str(self.folder / "data")
        self._run("initdb", "-D", data, "-A", "trust", "-U", "sessiondb",
                  "-E", "UTF8", "--locale=C", "--no-sync")  # fmt: skip
        # Everybody is trusted but the role of this name, which states its password.
        rules = self.folder / "data" / "pg_hba.conf"
        rules.write_text(f"local all sworn scram-sha-256\n{rules.read_text()}")
        self.start_again()

    def start_again(self) -> None:
        """Start the server after `stop`."""
        options = (
            f"-k {self.folder} -c listen_addresses='' -c fsync=off "
            f"-c max_connections={self.connections}"
        )
        self._run("pg_ctl", "-D", str(self.folder / "data"), "-o", options, "-l",
                  str(self.folder / "log"), "-w", "start")  # fmt: skip

    def stop(self, mode: str = "immediate") -> None:
        """Stop the server: ``immediate`` as a power cut does, ``fast`` in order."""
        self._run("pg_ctl", "-D", str(self.folder / "data"), "-m", mode, "stop")

    @property
    def socket_file(self) -> Path:
        """The socket on which it listens."""
        return self.folder / ".s.PGSQL.5432"

    def url(self, database: str = "postgres", more: str = "") -> str:
        """Return the URL of a database, with further options: ``&name=value``."""
        return f"postgresql:///{database}?host={self.folder}&user=sessiondb{more}"

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
        server.start()
        try:
            yield server
        finally:
            server.stop()
