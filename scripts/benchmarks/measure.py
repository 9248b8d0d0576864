"""A row of the result, and the timing of two things against each other."""

from __future__ import annotations

import gc
import shutil
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any, TypeVar

Figures = TypeVar("Figures", bound=tuple[float, ...])
HEAD = f"{'':<58} {'floor':>12} {'ours':>12} {'':<5} {'ratio':>6} {'goal':<18}"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the result; *floor* and *ours* in *unit*, *goal* a ratio of the two.

    Without a *goal* it is for information.
    *allowance* is what ours may cost above its goal, in *unit*; any of *errors* fails the row.
    """

    name: str
    floor: float
    ours: float
    goal: float | None
    unit: str = "ms"
    at_least: bool = False
    allowance: float = 0.0
    errors: int = 0

    @property
    def ratio(self) -> float:
        """Ours to floor."""
        return self.ours / self.floor

    @property
    def ok(self) -> bool:
        """True when the goal is met without an error."""
        if self.errors:
            return False
        if self.goal is None:
            return True
        if self.at_least:
            return self.ratio >= self.goal
        return self.ours <= self.goal * self.floor + self.allowance

    def json(self) -> dict[str, Any]:
        """Return the row as JSON."""
        return {
            "name": self.name,
            "floor": self.floor,
            "ours": self.ours,
            "ratio": round(self.ratio, 3),
            "goal": self.goal,
            "ok": self.ok,
            "unit": self.unit,
        }


@dataclass(frozen=True, slots=True)
class Skipped:
    """A row that cannot be measured here, and why."""

    name: str
    why: str


def line(row: Row | Skipped) -> str:
    """Return one line of the table."""
    if isinstance(row, Skipped):
        return f"{row.name:<58} skipped: {row.why}"
    figures = " ".join(f"{_figure(row, value):>12}" for value in (row.floor, row.ours))
    verdict = "" if row.goal is None else "ok" if row.ok else "MISSED"
    if row.errors:
        verdict = f"{row.errors} ERRORS"
    return (
        f"{row.name:<58} {figures} {row.unit:<5} {row.ratio:6.2f} "
        f"{_goal(row):<18} {verdict}"
    )


def markdown(rows: Iterable[Row]) -> str:
    """Return the table for a page."""
    lines = ["| | floor | sessiondb | ratio | goal |", "|---|---|---|---|---|"]
    for row in rows:
        floor, ours = (_figure(row, value) for value in (row.floor, row.ours))
        ratio = f"{row.ratio:.2f}" if row.ok else f"**{row.ratio:.2f}**"
        errors = f", {row.errors} errors" if row.errors else ""
        lines.append(
            f"| {row.name} | {floor} {row.unit} | {ours} {row.unit}{errors} | {ratio} "
            f"| {_goal(row)} |"
        )
    return "\n".join(lines) + "\n"


def _goal(row: Row) -> str:
    if row.goal is None:
        return ""
    limit = f"{'≥' if row.at_least else '≤'} {row.goal:g}"
    return f"{limit} + {row.allowance:.3f} {row.unit}" if row.allowance else limit


def _figure(row: Row, value: float) -> str:
    return f"{value:,.{_digits(row)}f}"


def _digits(row: Row) -> int:
    return {"ms": 3, "MB": 1, "MB/s": 2, "trips": 1, "%": 1}.get(row.unit, 0)


@dataclass(frozen=True, slots=True)
class Bench:
    """The size of the run, and the place of its files."""

    folder: Path
    quick: bool

    def size(self, full: int) -> int:
        """Return a size; a quick run divides those of 10⁵ and more by ten."""
        return full // 10 if self.quick and full >= 100_000 else full

    def times(self, full: int) -> int:
        """Return a number of repetitions; a quick run does a sixth."""
        return max(3, full // 6) if self.quick else full

    def copy(self, base: Path, name: str) -> Path:
        """Return a copy of a closed database."""
        path = self.folder / f"{name}.db"
        for old in self.folder.glob(f"{name}.db*"):
            old.unlink()
        shutil.copy(base, path)
        return path


def timed(function: Callable[[], object]) -> Callable[[], float]:
    """Return a function that calls *function* and returns its milliseconds."""

    def run() -> float:
        start = perf_counter()
        function()
        return (perf_counter() - start) * 1000

    return run


def worked(function: Callable[[], object]) -> float:
    """Call *function*; return the milliseconds of processor time of this process.

    Nothing that other processes do is in it, and no waiting for the disk.
    """
    start = process_time()
    function()
    return (process_time() - start) * 1000


def alternate(
    ours: Callable[[], float], floor: Callable[[], float], times: int, warm_up: int = 2
) -> tuple[float, float]:
    """Let both take turns, the first of each pair changing; return the medians (floor, ours)."""
    return medians(lambda turn: _pair(ours, floor, turn), times, warm_up)


def _pair(
    ours: Callable[[], float], floor: Callable[[], float], turn: int
) -> tuple[float, float]:
    if turn % 2:
        mine = ours()
        return floor(), mine
    return floor(), ours()


def medians(measure: Callable[[int], Figures], times: int, warm_up: int = 2) -> Figures:
    """Return the median of each of the figures that *measure* returns *times* times.

    What it returns for *warm_up* turns before them does not count.
    """
    _settle_memory()
    found = [measure(turn) for turn in range(warm_up + times)][warm_up:]
    return tuple(map(median, zip(*found, strict=True)))  # type: ignore[return-value]


async def alternate_async(
    ours: Callable[[], Awaitable[object]],
    floor: Callable[[], float],
    times: int,
    warm_up: int = 2,
) -> tuple[float, float]:
    """Let an awaitable and a floor take turns; return the medians (floor, ours)."""
    _settle_memory()
    pairs = []
    for _ in range(warm_up + times):
        start = perf_counter()
        await ours()
        mine = (perf_counter() - start) * 1000
        pairs.append((floor(), mine))
    return median(a for a, _ in pairs[warm_up:]), median(b for _, b in pairs[warm_up:])


def _settle_memory() -> None:
    """Keep the collector from walking the fixtures of the benchmark during a measurement."""
    gc.collect()
    gc.freeze()
