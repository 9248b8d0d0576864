"""A process of one phase, driven through its standard input; see `peers.driver`."""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

SCRIPTS = Path(__file__).resolve().parents[2]
SOURCE = SCRIPTS.parent / "src"
QUIET = {
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "AGNO_TELEMETRY": "false",
    "LANGSMITH_TRACING": "false",
    "OTEL_SDK_DISABLED": "true",
    "PYTHONWARNINGS": "ignore",
}


class PhaseError(Exception):
    """The process of a store ended; the text is the last line that it wrote."""


class Driven:
    """A store in a process of its own, which *home* is the home of."""

    def __init__(self, python: Path, module: str, home: Path) -> None:
        home.mkdir()
        self.log = home / "stderr"
        environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith("SESSIONDB_")},
            **QUIET,
            "HOME": str(home),
            "XDG_CACHE_HOME": str(home),
            "PYTHONPATH": f"{SCRIPTS}{os.pathsep}{SOURCE}",
        }
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [python, "-m", "benchmarks.peers.driver", module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                encoding="utf-8",
                env=environment,
                cwd=home,
            )

    def step(self, name: str, *arguments: str | int) -> dict[str, Any]:
        """Do a step and return its answer; raises `PhaseError`."""
        self.begin(name, *arguments)
        return self.answer()

    def begin(self, name: str, *arguments: str | int) -> None:
        """Let a step begin, and do not wait for it."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps([name, *arguments]) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise PhaseError(self._last_words()) from None

    def answer(self) -> dict[str, Any]:
        """Wait for the answer of the step that began; raises `PhaseError`."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise PhaseError(self._last_words())
        return dict(json.loads(line))

    def end(self) -> None:
        """Let the process end, by the end of its input, and wait for it."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()

    def _last_words(self) -> str:
        self.process.wait()
        lines = self.log.read_text(encoding="utf-8", errors="replace").split("\n")
        return next((line for line in lines[::-1] if line.strip()), "no error message")
