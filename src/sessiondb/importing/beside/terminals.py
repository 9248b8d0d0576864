"""The sessions that other programs used last in a terminal, for ``@``.

They are written at the end of an import, in one transaction: the id of a session is
certain then, and a use counts also if nothing else of the session changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from sessiondb.database.core import Core
from sessiondb.dataclass import dataclass, field
from sessiondb.effects.place import LAST_USE, TakeUses
from sessiondb.effects.project import ProjectPlace
from sessiondb.model import Imported, SourceSession, TerminalUse
from sessiondb.repository import Read

_Name = tuple[str, str]


@dataclass(slots=True)
class Uses:
    """The uses that the sources of one import name, and the ids of their sessions."""

    core: Core
    locate: Callable[[str], ProjectPlace]
    _named: dict[_Name, tuple[TerminalUse, ...]] = field(default_factory=dict)
    _ids: dict[_Name, str] = field(default_factory=dict)

    def add(self, item: SourceSession) -> None:
        """Add the uses of a session that passed the gate."""
        if item.terminals:
            self._named[item.source, item.source_id] = item.terminals

    def imported(self, done: Imported) -> None:
        """Note the id of a session; one that was removed here has no uses."""
        name = done.source, done.source_id
        if name in self._named and done.outcome != "deleted":
            self._ids[name] = done.id

    def commit(self) -> None:
        """Write those that are newer than what is known here."""
        newer = [row for row in self._terminal_rows() if self.core.read(_is_newer(row))]
        if newer:
            unit = self.core.unit()
            unit.add(TakeUses(tuple(newer)))
            self.core.commit(unit)

    def _terminal_rows(self) -> Iterator[tuple[Any, ...]]:
        for name, session_id in self._ids.items():
            for use in self._named[name]:
                directory = self.locate(use.directory).directory
                yield use.terminal, directory, session_id, use.time


def _is_newer(row: tuple[Any, ...]) -> Read[bool]:
    name, directory, _, time = row
    rows = yield LAST_USE, {"name": name, "directory": directory}
    return all(last_use < time for (last_use,) in rows)
