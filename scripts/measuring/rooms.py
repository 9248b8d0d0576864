"""A room, which is a directory: how plain its code is, and what it may not fall behind.

Four figures have a goal, and a room that has not reached one may not get worse than it
is written down in ``rooms.json``. The figures are of rooms and not of functions, and the
visible branches have none: a cap on them was met by hiding decisions.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from measuring.source import Function, Source

TABLE = Path(__file__).with_name("rooms.json")
#: A private function of so few lines that is used once belongs to where it is used.
SHORT = 3
#: Hidden branches per 100, vague names per 1,000 lines, words in the name of a function,
#: and short private functions that are used once, per 100 functions.
GOALS = {"hidden": 3.0, "vague": 3.0, "words": 1.7, "once": 2.5}
#: A share also rises if plain lines are removed beside the others.
SLACK = 1.05
#: Figures of which more is better.
RISING = frozenset({"words"})

Figures = Mapping[str, float]


@dataclass(frozen=True)
class Room:
    """The files of a directory."""

    name: str
    sources: list[Source]

    @property
    def functions(self) -> list[Function]:
        """The functions and methods of all files."""
        return [function for source in self.sources for function in source.functions]

    @property
    def lines(self) -> int:
        """Count the lines."""
        return sum(len(source.lines) for source in self.sources)

    @property
    def body(self) -> int:
        """Count the lines of the functions, without their docstrings."""
        return sum(function.lines for function in self.functions)

    def plainness(self, uses: Counter[str]) -> dict[str, float]:
        """Return the figures that have a goal; *uses* are those of the complete package."""
        functions = self.functions
        branches = sum(function.branches for function in functions)
        hidden = sum(function.hidden for function in functions)
        once = sum(is_used_once(function, uses) for function in functions)
        words = sum(function.words for function in functions)
        vague = sum(source.vague for source in self.sources)
        return {
            "hidden": round(100 * hidden / max(branches, 1), 1),
            "vague": round(1000 * vague / max(self.lines, 1), 1),
            # A room without functions has no name that says too little.
            "words": round(words / len(functions), 2) if functions else GOALS["words"],
            "once": round(100 * once / max(len(functions), 1), 1),
        }


def rooms(sources: Iterable[Source]) -> list[Room]:
    """Return the rooms of *sources*, by name."""
    by_folder: dict[str, list[Source]] = {}
    for source in sources:
        by_folder.setdefault(source.folder, []).append(source)
    return [Room(folder, by_folder[folder]) for folder in sorted(by_folder)]


def is_used_once(function: Function, uses: Counter[str]) -> bool:
    """Return whether a short private function is used at one place only."""
    name = function.name.rpartition(".")[2]
    is_private = name.startswith("_") and not name.startswith("__")
    return is_private and function.lines <= SHORT and uses[name] <= 1


def has_reached(figure: str, value: float, mark: float) -> bool:
    """Return whether *value* is at *mark* or better."""
    return value >= mark if figure in RISING else value <= mark


def fallen_behind(
    figures: Mapping[str, Figures], table: Mapping[str, Figures]
) -> Iterator[str]:
    """Yield a line for each figure of a room that is worse than its goal and its entry."""
    for room, values in figures.items():
        for figure, value in values.items():
            mark = table.get(room, {}).get(figure, GOALS[figure])
            bound = mark / SLACK if figure in RISING else mark * SLACK
            if not has_reached(figure, value, bound):
                yield f"{room}: {figure} {value}; it was {mark}"


def to_be_mended(figures: Mapping[str, Figures]) -> dict[str, dict[str, float]]:
    """Return the figures that have not reached their goal, by room."""
    table = {
        room: {
            figure: value
            for figure, value in values.items()
            if not has_reached(figure, value, GOALS[figure])
        }
        for room, values in figures.items()
    }
    return {room: values for room, values in table.items() if values}


def read_table() -> dict[str, dict[str, float]]:
    """Return what each room may not fall behind, where it has not reached a goal."""
    table: dict[str, dict[str, float]] = json.loads(TABLE.read_text())
    return table


def write_table(figures: Mapping[str, Figures]) -> None:
    """Write the present figures down."""
    TABLE.write_text(json.dumps(to_be_mended(figures), indent=1) + "\n")
