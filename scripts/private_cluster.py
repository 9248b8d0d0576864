"""A PostgreSQL of this process alone: a new cluster that listens on a socket."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

#: The path of a socket has about this many characters at most.
_LONGEST_PATH = 100
#: Runs until its input ends, then stops a server and removes its files.
_GUARD = """
import shutil, subprocess, sys
sys.stdin.read()
program, data, folder, *user = sys.argv[1:]
stop = [program, "-D", data, "-m", "immediate", "stop"]
subprocess.run(stop, user=user[0] if user else None, cwd="/", capture_output=True)
shutil.rmtree(folder, ignore_errors=True)
"""


def binaries() -> Path | None:
    """Return the folder of ``initdb``, which Debian keeps off the PATH, or None."""
    on_path = shutil.which("initdb")
    if on_path:
        return Path(on_path).resolve().parent
    folders = Path("/usr/lib/postgresql").glob("*/bin")
    return max(folders, key=lambda folder: int(folder.parent.name), default=None)


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


class Cluster:
    """A cluster in an empty folder; its superuser is ``sessiondb``, without a password.

    *settings* are those of the server that differ from its defaults.
    """

    def __init__(
        self, folder: Path, programs: Path, settings: Mapping[str, str | int]
    ) -> None:
        self.folder, self.programs, self.user = folder, programs, _owner()
        self._settings = settings
        if len(str(self.socket_file)) > _LONGEST_PATH:
            raise ValueError(f"{self.socket_file} is too long for the path of a socket")

    def initialize(self) -> None:
        """Make the cluster."""
        if self.user is not None:
            shutil.chown(self.folder, self.user)
        self._run("initdb", "-D", str(self.data), "-A", "trust", "-U", "sessiondb",
                  "-E", "UTF8", "--locale=C", "--no-sync")  # fmt: skip

    def start(self) -> None:
        """Start the server, and wait until it takes connections."""
        options = [f"-k {self.folder} -c listen_addresses=''"]
        options += [f"-c {name}={value}" for name, value in self._settings.items()]
        self._run("pg_ctl", "-D", str(self.data), "-o", " ".join(options), "-l",
                  str(self.folder / "log"), "-w", "start")  # fmt: skip

    @contextmanager
    def ended(self) -> Iterator[None]:
        """End the server, and remove its files, at the end of a ``with`` block.

        Another process waits for that, so it happens even if this one is killed.
        """
        user = [] if self.user is None else [self.user]
        command = [sys.executable, "-c", _GUARD, str(self.programs / "pg_ctl"),
                   str(self.data), str(self.folder), *user]  # fmt: skip
        # Leaving the block closes the pipe. An interrupt at the terminal does not reach
        # the new session.
        with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True):
            yield

    def stop(self, mode: str = "immediate") -> None:
        """Stop the server: ``immediate`` as a power cut does, ``fast`` in order."""
        self._run("pg_ctl", "-D", str(self.data), "-m", mode, "stop")

    @property
    def data(self) -> Path:
        """The folder of the cluster's files."""
        return self.folder / "data"

    @property
    def socket_file(self) -> Path:
        """The socket on which it listens."""
        return self.folder / ".s.PGSQL.5432"

    def url(self, database: str = "postgres", more: str = "") -> str:
        """Return the URL of a database, with further options: ``&name=value``."""
        return f"postgresql:///{database}?host={self.folder}&user=sessiondb{more}"

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [str(self.programs / program), *arguments],
            check=True,
            capture_output=True,
            user=self.user,
            cwd=self.folder,
            timeout=60,
        )
