"""The result of a typed command, and the sessions that most tests read."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: A small store of real OpenCode files that ships with the project.
SAMPLE = Path(__file__).resolve().parents[2] / "examples" / "sample-opencode"


@dataclass(frozen=True)
class Ran:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[list[str]]:
        """The tab-separated lines of stdout."""
        return [line.split("\t") for line in self.out.splitlines()]


@dataclass(frozen=True)
class Story:
    """The ids of the sessions that most tests read."""

    parser: str
    fork: str
    helper: str
    other: str


Run = Callable[..., Ran]
