"""A crowd of programs that use one file, and what happens to them."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from torturing.faults import folder_is_read_only, no_file_grows, replace
from torturing.verdict import Line

SCRIPTS = Path(__file__).resolve().parent.parent
PROGRAMS = 3
#: Seconds that a program may take to end.
PATIENCE = 120.0
#: A fault at the database of a path that some processes use, as a block.
Fault = Callable[[Path, list[int], random.Random], AbstractContextManager[None]]


class Program:
    """One running program, and its output."""

    def __init__(self, path: Path, seed: int, *, faults: bool = False) -> None:
        folders = os.pathsep.join((str(SCRIPTS.parent / "src"), str(SCRIPTS)))
        self.log: list[Line] = []
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  as long as this
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-X",
                "faulthandler",
                "-m",
                "torturing.program",
                path,
                str(seed),
                *(["faults"] if faults else []),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # A thread that meets a fault reports it there: shown only if it is fatal.
            stderr=self._errors if faults else None,
            env={**os.environ, "PYTHONPATH": folders},
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.log.append(json.loads(line))

    @property
    def number(self) -> int:
        """The number of its process."""
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """True once it has ended by itself."""
        return self._process.poll() is not None

    @property
    def ready(self) -> bool:
        """True once it is at work, or has ended."""
        return bool(self.log) or self.has_ended

    def interrupt(self) -> None:
        """Send SIGINT."""
        self._process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        """Kill it with SIGKILL, at any point of its work."""
        self._process.kill()
        self._process.wait()
        self._reader.join()

    def ask_to_end(self) -> None:
        """Let it end by itself, as soon as its current work is done."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def end(self) -> None:
        """Let it end by itself, and wait; if it does not end, its log shows why."""
        self.ask_to_end()
        try:
            code = self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.send_signal(signal.SIGABRT)  # faulthandler prints its stack
            code = self._process.wait()
        self._reader.join()
        if code:
            self._errors.seek(0)
            errors = self._errors.read()[-3000:].decode(errors="replace")
            what = f"a program ended with {code} {errors}"
            self.log.append({"kind": "wrong", "what": what})


class Crowd:
    """Programs on one file for one round; those that are killed are replaced by others."""

    def __init__(self, path: Path, chance: random.Random, *, faults: bool) -> None:
        self._path = path
        self._chance = chance
        self._faults = faults
        self._gone: list[Program] = []
        self._programs = [self._begin() for _ in range(PROGRAMS)]
        self._wait()

    def work(self, seconds: float) -> None:
        """Let them work; interrupt them all the time, and kill one now and then."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            time.sleep(self._chance.uniform(0, 0.02))
            number = self._chance.randrange(PROGRAMS)
            program = self._programs[number]
            if self._chance.random() < 0.01:
                program.kill()
                self._replace(number)
            elif program.has_ended and self._faults:
                # It found another file in place of its own.
                program.end()
                self._replace(number)
            elif program.ready:
                program.interrupt()

    def suffer(self, seconds: float) -> None:
        """Let them work with a fault for a moment of every half a second."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.work(self._chance.uniform(0.1, 0.5))
            self._wait()
            with self._chance.choice(FAULTS)(self._path, self._numbers, self._chance):
                if self._chance.random() < 0.5:
                    # A program that begins meanwhile waits until it can open the file.
                    number = self._chance.randrange(PROGRAMS)
                    self._programs[number].kill()
                    self._replace(number)
                for _ in range(self._chance.randint(1, 20)):
                    time.sleep(self._chance.uniform(0, 0.02))
                    program = self._chance.choice(self._programs)
                    if program.ready:
                        program.interrupt()

    def lose_its_file(self, folder: Path) -> Path:
        """Put a new file in place of theirs; return where the old one is."""
        self._wait()
        return replace(self._path, self._numbers, folder)

    def end(self) -> list[Line]:
        """Let all of them end; return the output of everyone."""
        # First all are asked. A program that ends beside two that still write waits for
        # its turn at the file, which is not a wait for ever.
        for program in self._programs:
            program.ask_to_end()
        for program in self._programs:
            program.end()
        return [
            line for program in (*self._gone, *self._programs) for line in program.log
        ]

    @property
    def _numbers(self) -> list[int]:
        return [program.number for program in self._programs if not program.has_ended]

    def _begin(self) -> Program:
        return Program(self._path, self._chance.getrandbits(32), faults=self._faults)

    def _replace(self, number: int) -> None:
        self._gone.append(self._programs[number])
        self._programs[number] = self._begin()

    def _wait(self) -> None:
        while not all(program.ready for program in self._programs):
            time.sleep(0.01)


def _read_only(
    path: Path, _processes: list[int], _chance: random.Random
) -> AbstractContextManager[None]:
    return folder_is_read_only(path)


FAULTS: tuple[Fault, ...] = (no_file_grows, _read_only)
