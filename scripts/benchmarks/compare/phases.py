"""The phases of a round: in each, the stores take turns, each in a process of its own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median
from types import TracebackType
from typing import Any, Self

from benchmarks.compare.catalog import Store
from benchmarks.compare.driven import Driven, PhaseError
from benchmarks.compare.write_ahead_log import PagesWritten

CHUNK, WARM_UP = 50, 20
LOADS, FORKS, PAGES = 7, 5, 200
PROCESSES = 4


@dataclass(eq=False)
class Measured:
    """A store of the run, and the samples of its figures: one for each round."""

    store: Store
    python: Path | None
    turns: int
    why: str = ""  # the reason why it has no figures, or no more of them
    can_fork: bool = False
    samples: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    @property
    def figures(self) -> dict[str, float]:
        """The medians over the rounds."""
        return {name: median(values) for name, values in self.samples.items()}

    def start(self, home: Path) -> Driven:
        """Start a process of this store."""
        assert self.python is not None
        return Driven(self.python, self.store.module, home)

    def add(self, name: str, value: float) -> None:
        """Add the sample of a round."""
        self.samples[name].append(value)


class Group:
    """Stores that take turns, a process each; one that fails leaves."""

    def __init__(self, stores: list[Measured], home: Path) -> None:
        self.running: dict[Measured, Driven] = {}
        self.passes = 0
        home.mkdir()
        for one in stores:
            if not one.why:
                self.running[one] = one.start(home / one.store.module)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for process in self.running.values():
            process.end()

    def step(
        self,
        name: str,
        arguments_of: Callable[[Measured], tuple[str | int, ...] | None],
    ) -> dict[Measured, dict[str, Any]]:
        """Let each store do a step with its arguments; return the answers.

        One that has None for them is passed over. Every pass begins with another store.
        """
        order = list(self.running)
        first = self.passes % max(1, len(order))
        self.passes += 1
        answers = {}
        for one in order[first:] + order[:first]:
            arguments = arguments_of(one)
            if arguments is None:
                continue
            try:
                answers[one] = self.running[one].step(name, *arguments)
            except PhaseError as failure:
                self.leave(one, failure)
        return answers

    def leave(self, one: Measured, failure: PhaseError) -> None:
        """Take a store out, whose process failed."""
        one.why = str(failure)
        self.running.pop(one).end()

    def open(self, place: Path, first: Callable[[Measured], int]) -> None:
        """Open each store in its folder below *place*."""

        def where(one: Measured) -> tuple[str, str, int]:
            folder = place / one.store.module
            folder.mkdir(exist_ok=True)
            return str(folder), "session-0", first(one)

        for one, answer in self.step("open", where).items():
            one.can_fork = answer["forks"]

    def close(self) -> None:
        """Close each store."""
        self.step("close", lambda _: ())


@dataclass(frozen=True, slots=True)
class Round:
    """One round: its stores, and its folders on a disk and in memory."""

    stores: list[Measured]
    disk: Path
    memory: Path

    def measure(self) -> None:
        """Do all phases; a store that fails keeps what was measured and says why."""
        with self._group("append") as group:
            self.append(group, self.disk, "disk")
            self.append(group, self.memory, "memory")
        with self._group("read") as group:
            self.read(group)
        with self._group("fork") as group:
            self.fork(group)
        with self._group("pages") as group:
            self.count_pages(group)
        for one in self.stores:
            if not one.why:
                self.contend(one)

    def append(self, group: Group, place: Path, kind: str) -> None:
        """Append all turns, 50 of a store at a time, and measure the closed files."""
        seconds: dict[Measured, list[float]] = defaultdict(list)
        worked: dict[Measured, list[float]] = defaultdict(list)
        written: dict[Measured, list[float]] = defaultdict(list)
        group.open(place, lambda _: 0)
        group.step("append", lambda one: (min(WARM_UP, one.turns),))
        most = max(one.turns for one in self.stores)
        for done in range(WARM_UP, most, CHUNK):

            def chunk(one: Measured, done: int = done) -> tuple[int] | None:
                remaining = min(CHUNK, one.turns - done)
                return (remaining,) if remaining > 0 else None

            for one, answer in group.step("append", chunk).items():
                seconds[one] += answer["seconds"]
                worked[one].append(answer["worked"])
                written[one].append(answer["written"])
        group.close()
        for one in group.running:
            ordered = sorted(seconds[one])
            one.add(f"append_p50_us_{kind}", median(ordered) * 1e6)
            one.add(f"append_p99_us_{kind}", ordered[len(ordered) * 99 // 100] * 1e6)
            one.add(f"append_cpu_us_{kind}", median(worked[one]) * 1e6)
            one.add(f"written_bytes_{kind}", fmean(written[one]))
            one.add(f"bytes_{kind}", _size(place / one.store.module) / one.turns)

    def read(self, group: Group) -> None:
        """Load the session, and its last 25 turns, alternately."""
        group.open(self.memory, lambda one: one.turns)
        for step in ("load", "last"):
            self._repeat(group, step, LOADS, lambda one: (one.turns,))
        group.close()

    def fork(self, group: Group) -> None:
        """Fork the session, if the store can."""
        group.open(self.memory, lambda one: one.turns)
        self._repeat(group, "fork", FORKS, lambda one: () if one.can_fork else None)
        group.close()

    def count_pages(self, group: Group) -> None:
        """Count what further turns add to a write-ahead log, a store after the other."""
        group.open(self.memory, lambda one: one.turns)
        for one, process in list(group.running.items()):
            try:
                process.step("append", WARM_UP)
                log = PagesWritten(self.memory / one.store.module)
                for _ in range(PAGES):
                    process.step("append", 1)
                    log.end_turn()
            except PhaseError as failure:
                group.leave(one, failure)
                continue
            if log.per_turn is not None:
                one.add("pages", log.per_turn)
        group.close()

    def contend(self, one: Measured) -> None:
        """Append in four processes at once, each to a session of its own in one place."""
        home = self.disk / "homes" / f"{one.store.module}-contended"
        home.mkdir()
        with ExitStack() as ending:
            processes = []
            for number in range(PROCESSES):
                processes.append(one.start(home / str(number)))
                ending.callback(processes[-1].end)
            try:
                errors = _contend_in(self.disk, "disk", one, processes)
                errors += _contend_in(self.memory, "memory", one, processes)
                one.add("errors", errors)
            except PhaseError as failure:
                one.why = str(failure)

    def _group(self, name: str) -> Group:
        homes = self.disk / "homes"
        homes.mkdir(exist_ok=True)
        return Group(self.stores, homes / name)

    @staticmethod
    def _repeat(
        group: Group,
        step: str,
        times: int,
        arguments_of: Callable[[Measured], tuple[int, ...] | None],
    ) -> None:
        """Do a step *times* times after one that does not count; add the medians."""
        seconds: dict[Measured, list[float]] = defaultdict(list)
        worked: dict[Measured, list[float]] = defaultdict(list)
        group.step(step, arguments_of)
        for _ in range(times):
            for one, answer in group.step(step, arguments_of).items():
                seconds[one].append(answer["seconds"])
                worked[one].append(answer["worked"])
        for one, samples in seconds.items():
            one.add(f"{step}_us", median(samples) * 1e6)
            one.add(f"{step}_cpu_us", median(worked[one]) * 1e6)


def _contend_in(place: Path, kind: str, one: Measured, processes: list[Driven]) -> int:
    """Let the processes append at once, in a new folder.

    Returns the number of turns that were lost to errors; raises `PhaseError`.
    """
    folder = place / f"{one.store.module}-contended"
    folder.mkdir()
    each = max(1, one.turns // PROCESSES)
    for number, process in enumerate(processes):
        process.step("open", str(folder), f"session-{number}", number * one.turns)
        process.step("append", 5)
    for process in processes:
        process.begin("contend", each)
    answers = [process.answer() for process in processes]
    for process in processes:
        process.step("close")
    errors = sum(len(answer["errors"]) for answer in answers)
    end = max(answer["end"] for answer in answers)
    start = min(answer["start"] for answer in answers)
    longest = max(answer["longest"] for answer in answers)
    one.add(f"processes_per_second_{kind}", (each * PROCESSES - errors) / (end - start))
    one.add(f"longest_wait_us_{kind}", longest * 1e6)
    return errors


def _size(folder: Path) -> int:
    """Return the bytes of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
