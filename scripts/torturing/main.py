"""The command: rounds of torture, each with a verdict."""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from sessiondb import Store
from torturing.verdict import Line, verdict

SCRIPTS = Path(__file__).resolve().parent.parent
PROGRAMS = 3
#: Seconds that a program may take to end.
PATIENCE = 120.0


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/torture",
        description="Let several programs use one file, kill, interrupt and cancel them, and "
        "compare what was acknowledged with what is in the file. Exit 0 only if everything holds.",
    )
    parser.add_argument(
        "--quick", action="store_true", help="two minutes instead of ten"
    )
    parser.add_argument("--minutes", type=float, metavar="N", help="run for so long")
    parser.add_argument(
        "--seed", type=int, metavar="N", help="as printed by another run"
    )
    parser.add_argument(
        "--round",
        type=float,
        default=6.0,
        metavar="S",
        help="seconds of a round (default: 6)",
    )
    return parser.parse_args(arguments)


def _report(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


class Program:
    """One running program, and its output."""

    def __init__(self, path: Path, seed: int) -> None:
        folders = os.pathsep.join((str(SCRIPTS.parent / "src"), str(SCRIPTS)))
        self.log: list[Line] = []
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-X",
                "faulthandler",
                "-m",
                "torturing.program",
                path,
                str(seed),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": folders},
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.log.append(json.loads(line))

    @property
    def ready(self) -> bool:
        """True once it is at work, or has ended."""
        return bool(self.log) or self._process.poll() is not None

    def interrupt(self) -> None:
        """Send SIGINT."""
        self._process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        """Kill it with SIGKILL, at any point of its work."""
        self._process.kill()
        self._process.wait()
        self._reader.join()

    def end(self) -> None:
        """Let it end by itself; if it does not, its log shows why."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            code = self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.send_signal(signal.SIGABRT)  # faulthandler prints its stack
            code = self._process.wait()
        self._reader.join()
        if code:
            self.log.append({"kind": "wrong", "what": f"a program ended with {code}"})


def torture(path: Path, chance: random.Random, seconds: float) -> list[Line]:
    """Run one round; return the output of all programs."""
    programs = [Program(path, chance.getrandbits(32)) for _ in range(PROGRAMS)]
    killed: list[Program] = []
    while not all(program.ready for program in programs):
        time.sleep(0.01)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(chance.uniform(0, 0.02))
        number = chance.randrange(PROGRAMS)
        if chance.random() < 0.01:
            programs[number].kill()
            killed.append(programs[number])
            programs[number] = Program(path, chance.getrandbits(32))
        elif programs[number].ready:
            programs[number].interrupt()
    for program in programs:
        program.end()
    return [line for program in (*killed, *programs) for line in program.log]


def main(arguments: list[str] | None = None) -> int:
    """Torture for the requested time; 0 only if every check passed."""
    options = _parse(arguments)
    minutes = (
        options.minutes if options.minutes is not None else 2 if options.quick else 10
    )
    seed = (
        options.seed
        if options.seed is not None
        else random.SystemRandom().getrandbits(32)
    )
    _report(f"seed {seed}")
    # The user's own database must not be found.
    os.environ.pop("SESSIONDB_PATH", None)
    chance, wrong = random.Random(seed), 0  # noqa: S311  to be repeated
    until, number = time.monotonic() + minutes * 60, 0
    while time.monotonic() < until or not number:
        number += 1
        with tempfile.TemporaryDirectory(prefix="sessiondb-torture-") as folder:
            path = Path(folder).resolve() / "sessions.db"
            Store.open(path).close()
            log = torture(path, chance, options.round)
            found = list(verdict(path, log))
        kinds = Counter(line["kind"] for line in log)
        _report(
            f"round {number}: {', '.join(f'{n} {kind}' for kind, n in sorted(kinds.items()))}"
        )
        for what in found[:20]:
            _report(f"  WRONG: {what}")
        wrong += len(found)
    _report(
        f"{wrong} wrong (seed {seed})" if wrong else f"everything holds (seed {seed})"
    )
    return 1 if wrong else 0
