"""The report of an import: what became of each session, and what could not be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sessiondb.cli import output
from sessiondb.cli.text import count, one_line
from sessiondb.dataclass import dataclass, field
from sessiondb.formats.registry import agent_name
from sessiondb.model import Imported, Problem

OUTCOMES = ("imported", "updated", "unchanged", "deleted", "diverged")
#: The columns of the table of agents; one that is always 0 is left out of the last two.
_SHOWN = {"imported": "NEW", "updated": "UPDATED", "unchanged": "UNCHANGED"}
_RARE = {"deleted": "DELETED", "diverged": "DIVERGED"}


@dataclass(slots=True)
class Report:
    """The result of an import; *owner* names the program of a problem's source."""

    owner: Callable[[str], str | None] = lambda _: None
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

    @property
    def problem_count(self) -> int:
        """The number of problems, also of those that are only counted."""
        return sum(problem.number for problem in self.problems)

    @property
    def agents(self) -> dict[str, Counter[str]]:
        """The number of each outcome, and of problems, by the name of the program."""
        agents: dict[str, Counter[str]] = {}
        for session in self.sessions:
            agents.setdefault(session["source"], Counter())[session["outcome"]] += 1
        for problem in self.problems:
            owner = self.owner(problem.source)
            if owner is not None:
                agents.setdefault(owner, Counter())["problems"] += problem.number
        return agents

    def table(self) -> Iterator[str]:
        """Yield the lines of a table of agents and what became of their sessions."""
        rare = {name: head for name, head in _RARE.items() if self.outcomes.get(name)}
        columns = {**_SHOWN, **rare, "problems": "PROBLEMS"}
        rows = [
            [agent_name(source), *(f"{counts[name]:,}" for name in columns)]
            for source, counts in self.agents.items()
        ]
        heads = list(columns.values())
        return output.table(["AGENT", *heads], rows, right=" ".join(heads))

    def as_json(self) -> dict[str, Any]:
        """Return the complete report."""
        problems = [problem_json(problem) for problem in self.problems]
        counts = {name: self.outcomes[name] for name in OUTCOMES}
        names = {**_SHOWN, **_RARE, "problems": ""}
        agents = [
            {"agent": agent_name(source), "source": source}
            # A table of agents calls the first import of a session new.
            | {"new" if n == "imported" else n: counts[n] for n in names}
            for source, counts in self.agents.items()
        ]
        lists = {"sessions": self.sessions, "problems": problems}
        return {**counts, "agents": agents, **lists}

    def as_text(self, stores: int, *, dry_run: bool) -> str:
        """Return one line that counts the sessions of *stores* by their outcome."""
        outcomes = ", ".join(counted(self.outcomes)) or "no sessions"
        would = "would be " if dry_run and self.outcomes else ""
        return f"{would}{outcomes} · {count(stores, 'store')}"


def counted(outcomes: Mapping[str, int]) -> list[str]:
    """Return the outcomes that sessions had, each with its number: ``3 imported``."""
    return [f"{outcomes[name]:,} {name}" for name in OUTCOMES if outcomes[name]]


def problem_json(problem: Problem) -> dict[str, Any]:
    """Return a problem for a program: where it is, and what it is."""
    return {"source": problem.source, "line": problem.line, "why": problem.why}


def problem_line(problem: Problem) -> str:
    """Return where a problem is and what it is, on one line."""
    place = problem.source + (f":{problem.line}" if problem.line else "")
    # Some reasons are sentences of their own, which name the source again.
    reason = problem.why.replace(
        f"cannot read {problem.source}: ", "cannot be read: ", 1
    )
    return f"{one_line(place)}: {one_line(reason)}"
