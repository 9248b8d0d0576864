"""The prompt history of a program, added to ours: each prompt once.

Most of its lines are prompts of sessions that were imported, which have them already;
the others are commands of the program, and prompts of sessions that are gone. The id of
a line is made of its facts, so that it is the same one in every import. A history is
read only if its digest is not that of the ledger's entry, or if sessions of its program
were written since: these may be those of its lines.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from itertools import islice
from typing import Any, NamedTuple

from sessiondb import ids
from sessiondb.database.core import Core
from sessiondb.dataclass import dataclass
from sessiondb.effects import encode
from sessiondb.effects.project import ProjectPlace, home_of
from sessiondb.effects.queue import Effect
from sessiondb.effects.transaction import Transaction
from sessiondb.engine.sql import Statement, as_list
from sessiondb.errors import InvalidInputError
from sessiondb.formats.kit.naming import original_id
from sessiondb.importing.beside.prompts import (
    as_prompt,
    plain,
    prompt_row,
    put_prompts,
)
from sessiondb.importing.gate import checks, values
from sessiondb.importing.gate.values import Check, check_fields
from sessiondb.importing.rows.close import write_entry
from sessiondb.importing.unchanged import history_entry, is_known_history
from sessiondb.model import Problem, Problems, SourceHistory, SourcePrompt
from sessiondb.places import stored

#: Milliseconds between the line of a prompt and its message, if no session is named.
_NEAR = 60_000
_KNOWN = Statement("importing.beside.history.KNOWN")
_SESSIONS = Statement("importing.beside.history.SESSIONS")
_BURIED = Statement("importing.beside.history.BURIED")
_IN_SESSION = Statement("importing.beside.history.IN_SESSION")
_AT_TIME = Statement("importing.beside.history.AT_TIME")
_REMOVE = Statement("importing.beside.history.REMOVE")

#: The times of prompts by their text.
_Times = dict[str, list[int]]


class HistoryLine(NamedTuple):
    """A line that passed the gate; ``time`` is in Unix ms.

    ``session`` is the source's id of its session, ``own`` that of one that the source
    got from here. ``place`` is where ``directory`` is.
    """

    id: str
    text: str
    time: int
    session: str | None
    exported_id: str | None
    directory: str | None
    place: ProjectPlace | None


class _Home(NamedTuple):
    """The session of a line, None for an unknown one; ``is_gone``: it was deleted."""

    id: str | None = None
    is_gone: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class AddHistory:
    """Add lines of the history of *source* to the prompts that are not known.

    With *is_limited* those that are neither of a session here nor of a place are left
    out: they may be of another project.
    """

    verb = "import"
    source: str
    lines: tuple[HistoryLine, ...]
    is_limited: bool

    def apply(self, tx: Transaction) -> None:
        """Write those that are new, and the sessions of those that had none."""
        names = as_list(line.id for line in self.lines)
        sessions_by_prompt = dict(tx.run(_KNOWN, names=names).fetchall())
        homes = _Homes(tx, self.source, self.lines)
        typed = _TypedPrompts(tx, self.source)

        rows = []
        for line in self.lines:
            home = homes.of(line)
            # A line is written again when its session, unknown before, was imported.
            is_known = line.id in sessions_by_prompt and (
                sessions_by_prompt[line.id] or home.id is None
            )
            is_elsewhere = self.is_limited and home.id is None and line.place is None
            if is_known or home.is_gone or is_elsewhere:
                continue
            if typed.has(line, home):
                tx.run(_REMOVE, pid=line.id)
            else:
                rows.append(self._prompt_columns(tx, line, home))

        put_prompts(tx, rows)

    def _prompt_columns(
        self, tx: Transaction, line: HistoryLine, home: _Home
    ) -> tuple[Any, ...]:
        project_id = directory = None
        if home.id is not None:
            state = tx.peek(home.id)
            project_id, directory = state.project_id, state.directory
            if line.directory is not None:
                directory = stored(line.directory, tx.root)
        elif line.place is not None:
            project_id, directory = home_of(tx, line.place)

        return prompt_row(
            id=line.id,
            text=line.text,
            directory=directory,
            project_id=project_id,
            session_id=home.id,
            source=self.source,
            time_created=line.time,
        )


class _Homes:
    """The sessions that the lines of a batch name, read together.

    The tombstones have no index by our ids, so one read serves all lines.
    """

    def __init__(
        self, tx: Transaction, source: str, lines: Iterable[HistoryLine]
    ) -> None:
        facts = {
            "source": source,
            "names": as_list({line.session for line in lines if line.session}),
            "own": as_list({line.exported_id for line in lines if line.exported_id}),
        }
        self._by_name: dict[str, _Home] = {}
        self._by_id: dict[str | None, _Home] = {}
        for session_id, origin, name, deleted in tx.run(_SESSIONS, **facts).fetchall():
            home = self._by_id[session_id] = _Home(session_id, deleted is not None)
            if origin == source:
                self._by_name[name] = home

        self._buried = set(tx.column(_BURIED, **facts))

    def of(self, line: HistoryLine) -> _Home:
        """Return the session that a line names: by the source's id, else by ours."""
        if line.session is None:
            return _Home()
        home = self._by_name.get(line.session) or self._by_id.get(line.exported_id)
        return home or _Home(
            is_gone=not self._buried.isdisjoint({line.session, line.exported_id})
        )


@dataclass(slots=True)
class _TypedPrompts:
    """The prompts that messages are, read once for each session, and for each minute.

    Other lines of a history are none of them: the same text may be typed often.
    """

    tx: Transaction
    source: str
    _in_sessions: dict[tuple[str, str | None], _Times] = field(default_factory=dict)
    _in_minutes: dict[int, _Times] = field(default_factory=dict)

    def has(self, line: HistoryLine, home: _Home) -> bool:
        """Return whether a message is the prompt of a line, by those of its session.

        Of a line that names no session, by those about its time.
        """
        text = plain(line.text)
        if home.id is not None:
            return text in self._of_session(home.id, line.session)
        if line.session is not None:
            return False

        minute = line.time // _NEAR
        return any(
            abs(time - line.time) <= _NEAR
            for near in (minute - 1, minute, minute + 1)
            for time in self._of_minute(near).get(text, ())
        )

    def _of_session(self, session_id: str, name: str | None) -> _Times:
        key = session_id, name
        if key not in self._in_sessions:
            rows = self.tx.run(_IN_SESSION, sid=session_id)
            self._in_sessions[key] = self._times_of_messages(rows, name)
        return self._in_sessions[key]

    def _of_minute(self, minute: int) -> _Times:
        if minute not in self._in_minutes:
            since = minute * _NEAR
            until = since + _NEAR - 1
            rows = self.tx.run(_AT_TIME, since=since, until=until, source=self.source)
            self._in_minutes[minute] = self._times_of_messages(rows, None)
        return self._in_minutes[minute]

    def _times_of_messages(self, rows: Iterable[Any], session: str | None) -> _Times:
        times_by_text: _Times = defaultdict(list)
        for name, text, time in rows:
            if name != ids.history_prompt_id(self.source, session, text, time):
                times_by_text[plain(text)].append(time)
        return times_by_text


@dataclass(frozen=True, slots=True, eq=False)
class NoteHistory:
    """Record that a history was read, with the *count* of its lines."""

    verb = "import"
    source: str
    path: str
    digest: str
    count: int
    problems: tuple[Problem, ...]

    def apply(self, tx: Transaction) -> None:
        """Write its entry in the ledger."""
        facts = {
            "source": self.source,
            "path": self.path,
            "size": None,
            "mtime_ns": None,
            "offset": self.count,
            "digest": self.digest,
        }
        write_entry(tx, facts, self.problems)


#: Lines of a transaction.
MAX_LINES = 500


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
    locate: Callable[[str], ProjectPlace]
    _places: dict[str, ProjectPlace] = field(default_factory=dict)

    def run(self, item: SourceHistory) -> Iterator[Problem]:
        """Import a history unless nothing of it can be new; yield problems."""
        try:
            facts = history_entry(item, self.root)
        except InvalidInputError as error:
            path = item.path if isinstance(item.path, str) else "a history"
            yield Problem(path, str(error))
            return
        if self.core.read(is_known_history(facts)):
            return

        problems = Problems()
        count = 0
        read_lines = self._distinct_lines(item, problems)
        while lines := tuple(islice(read_lines, MAX_LINES)):
            self._commit_effect(AddHistory(item.source, lines, self.root is not None))
            count += len(lines)

        self._commit_effect(NoteHistory(**facts, count=count, problems=tuple(problems)))
        yield from problems

    def _commit_effect(self, effect: Effect) -> None:
        unit = self.core.unit()
        unit.add(effect)
        self.core.commit(unit)

    def _distinct_lines(
        self, item: SourceHistory, problems: list[Problem]
    ) -> Iterator[HistoryLine]:
        """Yield the lines that are prompts, without those typed twice in a row."""
        last = None
        remainder = "its other prompts"
        for source_prompt in checks.read_on(item.prompts, item.path, remainder):
            if isinstance(source_prompt, Problem):
                problems.append(source_prompt)
                continue
            try:
                line = self._stored_line(item.source, source_prompt)
            except InvalidInputError as error:
                problems.append(Problem(item.path, f"a prompt: {error}"))
                continue

            if line is None:
                continue
            if (line.session, line.text) != last:
                yield line
            last = line.session, line.text

    def _stored_line(self, source: str, source_prompt: Any) -> HistoryLine | None:
        """Return a line as it is stored; raises `InvalidInputError`."""
        values.instance(source_prompt, SourcePrompt, "a prompt")
        row = check_fields(source_prompt, _LINE)
        text = as_prompt(row["text"])
        if text is None:
            return None

        session, time = row["session"], row["time_created"]
        return HistoryLine(
            ids.history_prompt_id(source, session, text, time),
            text,
            time,
            session,
            # A program names a session that it got from here by its id.
            None if session is None else original_id(ids.SESSION, session),
            row["directory"],
            self._place_of(row["directory"]),
        )

    def _place_of(self, directory: str | None) -> ProjectPlace | None:
        """Return where a directory is; None outside of the project."""
        if not directory:
            return None

        if directory not in self._places:
            self._places[directory] = self.locate(directory)
        place = self._places[directory]
        return place if self.root in (None, place.root) else None
