"""The import of a prompt history: its lines pass the gate, and are written in batches.

A history is read only if its digest is not that of the ledger's entry, or if sessions
of its program were written since: these may be those of its lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from sqlalchemy import exists, select

from sessiondb import ids
from sessiondb.database.core import Core
from sessiondb.effects import encode
from sessiondb.effects.imports.history import AddHistory, HistoryLine, NoteHistory
from sessiondb.effects.project import Place
from sessiondb.effects.queue import Effect
from sessiondb.engine.sql import Statement, p
from sessiondb.errors import InvalidInputError
from sessiondb.formats.kit.naming import original
from sessiondb.importing import checks, values
from sessiondb.importing.prompts import as_prompt
from sessiondb.importing.values import Check, check_fields
from sessiondb.model import Problem, Problems, SourceHistory, SourcePrompt
from sessiondb.repository import Read
from sessiondb.schema import import_ledger

#: Lines of a transaction.
MAX_LINES = 500


def _noted() -> Any:
    other = import_ledger.alias("other")
    # Histories have no "#" before the name of a session.
    is_newer = exists().where(
        other.c.source == import_ledger.c.source,
        other.c.time_imported >= import_ledger.c.time_imported,
        other.c.path.contains("#"),
    )
    return select(
        import_ledger.c.digest,
        import_ledger.c.problems.is_(None) & ~is_newer,
    ).where(import_ledger.c.source == p("source"), import_ledger.c.path == p("path"))


_NOTED = Statement(_noted)
_HISTORY: Mapping[str, Check] = {
    "source": ids.valid_id,
    "path": values.path,
    "digest": values.exact,
}
_LINE: Mapping[str, Check] = {
    "text": values.stated(encode.string),
    "time_created": values.stated(values.time),
    "session": values.optional_id,
    "directory": values.optional(values.directory),
}


@dataclass(slots=True)
class Histories:
    """Imports histories; *root* limits them to the prompts of one project.

    *locate* returns where a directory is.
    """

    core: Core
    root: str | None
    locate: Callable[[str], Place]
    _places: dict[str, Place] = field(default_factory=dict)

    def run(self, item: SourceHistory) -> Iterator[Problem]:
        """Import a history unless nothing of it can be new; yield problems."""
        try:
            facts = check_fields(item, _HISTORY)
        except InvalidInputError as error:
            path = item.path if isinstance(item.path, str) else "a history"
            yield Problem(path, str(error))
            return

        # Without those of other projects it was not read to its end.
        if self.root is not None:
            facts["digest"] += f" {self.root}"
        if self.core.read(_is_known(facts)):
            return

        problems = Problems()
        count = 0
        found = self._lines(item, problems)
        while lines := tuple(islice(found, MAX_LINES)):
            self._commit(AddHistory(item.source, lines, self.root is not None))
            count += len(lines)

        self._commit(NoteHistory(**facts, count=count, problems=tuple(problems)))
        yield from problems

    def _commit(self, effect: Effect) -> None:
        unit = self.core.unit()
        unit.add(effect)
        self.core.commit(unit)

    def _lines(
        self, item: SourceHistory, problems: list[Problem]
    ) -> Iterator[HistoryLine]:
        """Yield the lines that are prompts, without those typed twice in a row."""
        last = None
        rest = "its other prompts"
        for found in checks.read_on(item.prompts, item.path, rest):
            if isinstance(found, Problem):
                problems.append(found)
                continue
            try:
                line = self._line(item.source, found)
            except InvalidInputError as error:
                problems.append(Problem(item.path, f"a prompt: {error}"))
                continue

            if line is None:
                continue
            if (line.session, line.text) != last:
                yield line
            last = line.session, line.text

    def _line(self, source: str, found: Any) -> HistoryLine | None:
        """Return a line as it is stored; raises `InvalidInputError`."""
        values.instance(found, SourcePrompt, "a prompt")
        row = check_fields(found, _LINE)
        said = as_prompt(row["text"])
        if said is None:
            return None

        session, time = row["session"], row["time_created"]
        return HistoryLine(
            ids.history_prompt_id(source, session, said, time),
            said,
            time,
            session,
            # A program names a session that it got from here by its id.
            None if session is None else original(ids.SESSION, session),
            row["directory"],
            self._place(row["directory"]),
        )

    def _place(self, directory: str | None) -> Place | None:
        """Return where a directory is; None outside of the project."""
        if not directory:
            return None

        if directory not in self._places:
            self._places[directory] = self.locate(directory)
        place = self._places[directory]
        return place if self.root in (None, place.root) else None


def _is_known(facts: Mapping[str, Any]) -> Read[bool]:
    """Return whether all of a history was read, after the sessions that it may name."""
    found = yield _NOTED, {name: facts[name] for name in ("source", "path")}
    return any(digest == facts["digest"] and known for digest, known in found)
