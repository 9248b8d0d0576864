"""The report of an import: what became of each session, and what could not be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sessiondb.cli.text import count, one_line
from sessiondb.model import Imported, Problem

OUTCOMES = ("imported", "updated", "unchanged", "deleted", "diverged")


@dataclass(slots=True)
class Report:
    """The result of an import."""

    outcomes: Counter[str] = field(default_factory=Counter)
    sessions: list[dict[str, Any]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """True if there was neither a session nor a problem."""
        return not (self.sessions or self.problems)

    def add(self, result: Imported | Problem) -> None:
        """Count one result."""
        if isinstance(result, Problem):
            self.problems.append(result)
            return
        self.outcomes[result.outcome] += 1
        names = ("id", "source", "source_id", "messages", "outcome")
        self.sessions.append({name: getattr(result, name) for name in names})

    @property
    def written(self) -> int:
        """The number of sessions that were imported, completely or in part."""
        return self.outcomes["imported"] + self.outcomes["updated"]

    def as_json(self) -> dict[str, Any]:
        """Return the complete report."""
        found = [
            {"source": p.source, "line": p.line, "why": p.why} for p in self.problems
        ]
        counts = {name: self.outcomes[name] for name in OUTCOMES}
        return {**counts, "sessions": self.sessions, "problems": found}

    def as_text(self, stores: int, *, dry_run: bool) -> str:
        """Return one line that counts the sessions of *stores* by their outcome."""
        found = ", ".join(counted(self.outcomes)) or "no sessions"
        would = "would be " if dry_run and self.outcomes else ""
        return f"{would}{found} · {count(stores, 'store')}"


def counted(outcomes: Mapping[str, int]) -> list[str]:
    """Return the outcomes that sessions had, each with its number: ``3 imported``."""
    return [f"{outcomes[name]} {name}" for name in OUTCOMES if outcomes[name]]


def problem_line(problem: Problem) -> str:
    """Return where a problem is and what it is, on one line."""
    where = problem.source + (f":{problem.line}" if problem.line else "")
    return f"{one_line(where)}: {one_line(problem.why)}"
