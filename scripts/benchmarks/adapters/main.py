"""The command: rounds of both stores in turns, and a table of their ratios."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from verify_adapters import FRAMEWORKS, python_for

SCRIPTS = Path(__file__).resolve().parents[2]
HEAD = (
    "framework", "operation", "theirs ms", "ours ms", "clock", "processor", "range"
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Ratio:
    """One operation: milliseconds of both by the clock, and ours divided by theirs."""

    framework: str
    operation: str
    theirs: float
    ours: float
    clock: float
    processor: float
    lowest: float
    highest: float

    def line(self) -> str:
        """Return a row of the table."""
        return (
            f"{self.framework:<14} {self.operation:<28} {self.theirs:>10.3f} {self.ours:>9.3f}"
            f" {self.clock:>7.2f}x {self.processor:>8.2f}x  {self.lowest:.2f}-{self.highest:.2f}"
        )


def run_once(python: Path, framework: str, kind: str) -> dict[str, list[float] | int]:
    """Measure one store in a process of its own, on a file of its own."""
    with tempfile.TemporaryDirectory(prefix="sessiondb-bench-") as folder:
        done = subprocess.run(
            [
                python,
                "-m",
                "benchmarks.adapters.timing",
                framework,
                kind,
                folder,
            ],
            cwd=folder,
            check=False,
            capture_output=True,
            text=True,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(
                    [str(SCRIPTS), str(SCRIPTS.parent / "src")]
                ),
            },
        )
    if done.returncode:
        sys.exit(f"{framework}, {kind}: {done.stderr.strip()}")
    return json.loads(done.stdout.splitlines()[-1])


def ratios(python: Path, framework: str, rounds: int) -> Iterator[Ratio | str]:
    """Yield a row for each operation, and a line about the bytes."""
    clock, processor = defaultdict(list), defaultdict(list)
    times: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for number in range(rounds):
        order = ("theirs", "ours") if number % 2 else ("ours", "theirs")
        measured = {kind: run_once(python, framework, kind) for kind in order}
        sizes = [measured[kind].pop("bytes") for kind in ("theirs", "ours")]
        for operation, theirs in measured["theirs"].items():
            ours = measured["ours"][operation]
            clock[operation].append(ours[0] / theirs[0])
            processor[operation].append(ours[1] / theirs[1] if theirs[1] else 0.0)
            times[operation].append((theirs[0], ours[0]))
    for operation in clock:
        theirs_ms, ours_ms = (
            1000 * statistics.median(column)
            for column in zip(*times[operation], strict=True)
        )
        yield Ratio(
            framework, operation, theirs_ms, ours_ms,
            statistics.median(clock[operation]), statistics.median(processor[operation]),
            min(clock[operation]), max(clock[operation]),
        )  # fmt: skip
    yield f"{framework:<14} {'bytes':<28} {sizes[0]:>10,} {sizes[1]:>9,}"


def main(arguments: list[str]) -> int:
    """Measure the adapters that are named, or all."""
    names = [framework.name for framework in FRAMEWORKS]
    parser = argparse.ArgumentParser(
        prog="scripts/bench adapters",
        description="Measure each adapter beside the store of its own framework: ours "
        "divided by theirs, medians of rounds of fresh processes in turns, full durability.",
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--tools",
        type=Path,
        help="the folder of the environments; else a temporary one",
    )
    parser.add_argument("frameworks", nargs="*", choices=[[], *names])
    options = parser.parse_args(arguments)
    print("{:<14} {:<28} {:>10} {:>9} {:>8} {:>9}  {}".format(*HEAD), flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        tools = (options.tools or Path(temporary)).absolute()
        for framework in FRAMEWORKS:
            if options.frameworks and framework.name not in options.frameworks:
                continue
            python = python_for(framework, tools)
            for row in ratios(python, framework.name, options.rounds):
                print(row if isinstance(row, str) else row.line(), flush=True)
    return 0
