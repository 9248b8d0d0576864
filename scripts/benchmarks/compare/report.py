"""The tables of a comparison, its goals, and its JSON."""

from __future__ import annotations

import os
import platform
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from benchmarks.compare.catalog import BESIDE, OURS, RAW
from benchmarks.compare.phases import PROCESSES, Measured
from benchmarks.compare.starts import Start
from benchmarks.measure import Row, Skipped


class Column(NamedTuple):
    """A column: its two lines of heading, its figure, and how that is printed."""

    head: str
    unit: str
    figure: str
    divisor: float = 1.0
    digits: int = 0
    beside: str = ""  # the store whose figure is 1.0 in a further column


WRITING = (
    Column("p50", "disk, µs", "append_p50_us_disk", beside=BESIDE),
    Column("p99", "disk, µs", "append_p99_us_disk"),
    Column("CPU", "memory, µs", "append_cpu_us_memory", beside=BESIDE),
    Column("log", "pages", "pages", digits=1),
    Column("written", "KB", "written_bytes_memory", divisor=1000, digits=1),
    Column("closed", "bytes", "bytes_disk", beside=BESIDE),
)
READING = (
    Column("all", "ms", "load_us", divisor=1000, digits=1, beside=BESIDE),
    Column("its CPU", "ms", "load_cpu_us", divisor=1000, digits=1),
    Column("last 25", "µs", "last_us", beside=BESIDE),
    Column("its CPU", "µs", "last_cpu_us"),
    Column("fork", "ms", "fork_us", divisor=1000, digits=1, beside=RAW),
)
TOGETHER = (
    Column("disk", "turns/s", "processes_per_second_disk", beside=BESIDE),
    Column("longest", "ms", "longest_wait_us_disk", divisor=1000),
    Column("memory", "turns/s", "processes_per_second_memory", beside=BESIDE),
    Column("longest", "ms", "longest_wait_us_memory", divisor=1000),
    Column("lost", "turns", "errors"),
)
TABLES = (
    ("Appending, for each turn", WRITING),
    ("Loading, and forking a session", READING),
    (f"{PROCESSES} processes that append at once, to a session each", TOGETHER),
)
NAME, FIGURE, RATIO = 34, 11, 6  # widths


def tables(stores: Sequence[Measured], starts: Sequence[Start]) -> str:
    """Return the tables for people."""
    figures = {one.store.module: one.figures for one in stores}
    blocks = [_table(title, columns, stores, figures) for title, columns in TABLES]
    failed = [f"{one.store.title}: {one.why}" for one in stores if one.why]
    if failed:
        blocks.append("\n".join(["Not measured, or not to the end", *failed]))
    if starts:
        blocks.append(_starts(starts))
    return "\n\n".join(blocks)


def _table(
    title: str,
    columns: Sequence[Column],
    stores: Sequence[Measured],
    figures: dict[str, dict[str, float]],
) -> str:
    heads, units = " " * NAME, " " * NAME
    for column in columns:
        heads += f"{column.head:>{FIGURE}}"
        units += f"{column.unit:>{FIGURE}}"
        if column.beside:
            heads += " " * RATIO
            units += f"{'x':>{RATIO}}"
    lines = [title, heads.rstrip(), units]
    most = max(one.turns for one in stores)
    for one in stores:
        fewer = one.turns < most
        name = f"{one.store.title} ({one.turns} turns)" if fewer else one.store.title
        line = f"{name:<{NAME}}"
        for column in columns:
            value = figures[one.store.module].get(column.figure)
            line += _cell(value, column)
            if column.beside:
                base = figures.get(column.beside, {}).get(column.figure)
                # Loading fewer turns is other work.
                compared = not (fewer and column.figure == "load_us")
                line += _ratio(value, base if compared else None)
        lines.append(line)
    return "\n".join(lines)


def _cell(value: float | None, column: Column) -> str:
    if value is None:
        return f"{'–':>{FIGURE}}"
    return f"{value / column.divisor:{FIGURE},.{column.digits}f}"


def _ratio(value: float | None, base: float | None) -> str:
    if value is None or not base:
        return f"{'–':>{RATIO}}"
    return f"{value / base:{RATIO}.2f}"


def _starts(starts: Sequence[Start]) -> str:
    idle = starts[0]
    lines = ["A new process", f"{'':<{NAME}}{'ms':>{FIGURE}}{'x':>{RATIO}}"]
    lines[1] += f"{'CPU, ms':>{FIGURE}}{'x':>{RATIO}}"
    for start in starts:
        line = f"{start.name:<{NAME}}"
        line += f"{start.ms:{FIGURE}.1f}{start.ms / idle.ms:{RATIO}.1f}"
        line += f"{start.cpu_ms:{FIGURE}.1f}{start.cpu_ms / idle.cpu_ms:{RATIO}.1f}"
        lines.append(line)
    return "\n".join(lines)


def goals(
    stores: Sequence[Measured], starts: Sequence[Start]
) -> Iterator[Row | Skipped]:
    """Yield sessiondb's goals: beside SQLiteSession or a raw table, or as such."""
    figures = {one.store.module: one.figures for one in stores}
    if OURS in figures:
        yield from _beside(figures)
        yield from _alone(figures[OURS])
    if starts:
        idle = starts[0].ms
        for start in starts[1:]:
            if start.name.startswith("git"):
                continue
            limit = 8.0 if start.name.startswith("from") else 12.0
            yield Row(f"{start.name} / {starts[0].name}", idle, start.ms, limit)


def _beside(figures: dict[str, dict[str, float]]) -> Iterator[Row | Skipped]:
    for name, figure, other, limit, unit in (
        ("append, p50, disk", "append_p50_us_disk", BESIDE, 1.4, "µs"),
        ("append, CPU, memory", "append_cpu_us_memory", BESIDE, 1.4, "µs"),
        ("load", "load_us", BESIDE, 1.0, "µs"),
        ("load, CPU", "load_cpu_us", BESIDE, 1.0, "µs"),
        ("last 25 turns", "last_us", BESIDE, 1.0, "µs"),
        ("last 25 turns, CPU", "last_cpu_us", BESIDE, 1.0, "µs"),
        ("fork", "fork_us", RAW, 2.8, "µs"),
        ("4 processes, disk", "processes_per_second_disk", BESIDE, 0.7, "/s"),
        ("4 processes, memory", "processes_per_second_memory", BESIDE, 0.7, "/s"),
    ):
        title = f"{name} / {'raw' if other == RAW else 'SQLiteSession'}"
        floor = figures.get(other, {}).get(figure)
        ours = figures[OURS].get(figure)
        if floor is None or ours is None:
            yield Skipped(title, "not measured")
        else:
            yield Row(title, floor, ours, limit, unit, at_least=unit == "/s")


def _alone(ours: dict[str, float]) -> Iterator[Row | Skipped]:
    """Yield the goals that no other store sets: the floor is what is allowed."""
    if "append_p50_us_disk" in ours:
        p50, p99 = ours["append_p50_us_disk"], ours["append_p99_us_disk"]
        yield Row("append, p99 / p50, disk", p50, p99, 4.0, "µs")
    for name, figure, allowed, unit in (
        ("bytes per turn, closed / allowed", "bytes_disk", 3000, "bytes"),
        ("pages per turn / allowed", "pages", 17, "pages"),
        (
            "4 processes, disk, longest wait / allowed",
            "longest_wait_us_disk",
            3e5,
            "µs",
        ),
    ):
        if figure in ours:
            yield Row(name, allowed, ours[figure], 1.0, unit)


def machine() -> dict[str, Any]:
    """Return the class of this machine, without its name."""
    return {
        "cores": os.cpu_count(),
        "architecture": platform.machine(),
        "system": platform.system(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
    }


def as_json(
    stores: Sequence[Measured],
    starts: Sequence[Start],
    rounds: int,
    in_memory: bool,
) -> dict[str, Any]:
    """Return everything that was measured as JSON."""
    return {
        "machine": machine(),
        "in_memory": in_memory,
        "rounds": rounds,
        "stores": [
            {
                "name": one.store.module,
                "title": one.store.title,
                "release": one.store.release,
                "turns": one.turns,
                "why": one.why or None,
                "figures": one.figures,
                "samples": dict(one.samples),
            }
            for one in stores
        ],
        "starts": [{"name": s.name, "ms": s.ms, "cpu_ms": s.cpu_ms} for s in starts],
        "goals": [row.json() for row in goals(stores, starts) if isinstance(row, Row)],
    }
