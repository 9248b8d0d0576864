"""The prompt history of a program, added to ours: each prompt once.

Most of its lines are prompts of sessions that were imported, which have them already;
the others are commands of the program, and prompts of sessions that are gone. The id of
a line is made of its facts, so that it is the same one in every import.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import delete, or_, select, union_all

from sessiondb import ids
from sessiondb.effects.imports.close import write_entry
from sessiondb.effects.imports.prompts import plain, prompt_row
from sessiondb.effects.project import Place, home_of
from sessiondb.effects.transaction import Transaction
from sessiondb.engine.sql import Statement, as_list, p, texts, upsert_text
from sessiondb.model import Problem
from sessiondb.places import stored
from sessiondb.schema import deletion, prompt, session, tombstone
from sessiondb.schema.rows import PROMPT

#: Milliseconds between the line of a prompt and its message, if no session is named.
_NEAR = 60_000
_KNOWN = Statement(
    lambda: select(prompt.c.id, prompt.c.session_id).where(
        prompt.c.id.in_(texts("names"))
    )
)
_SESSIONS = Statement(
    lambda: select(
        session.c.id, session.c.source, session.c.source_id, session.c.time_deleted
    ).where(
        or_(
            session.c.id.in_(texts("own")),
            (session.c.source == p("source")) & session.c.source_id.in_(texts("names")),
        )
    )
)
_BURIED = Statement(
    lambda: union_all(
        select(tombstone.c.source_id).where(
            tombstone.c.source == p("source"), tombstone.c.source_id.in_(texts("names"))
        ),
        select(deletion.c.session_id).where(deletion.c.session_id.in_(texts("own"))),
    )
)
_FACTS = (prompt.c.id, prompt.c.text, prompt.c.time_created)
_IN_SESSION = Statement(lambda: select(*_FACTS).where(prompt.c.session_id == p("sid")))
_AT_TIME = Statement(
    lambda: select(*_FACTS).where(
        prompt.c.time_created.between(p("since"), p("until")),
        prompt.c.source == p("source"),
    )
)
_REMOVE = Statement(lambda: delete(prompt).where(prompt.c.id == p("pid")))

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
    own: str | None
    directory: str | None
    place: Place | None


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
        known = dict(tx.run(_KNOWN, names=names).fetchall())
        homes = _Homes(tx, self.source, self.lines)
        typed = _Typed(tx, self.source)

        rows = []
        for line in self.lines:
            home = homes.of(line)
            # A line is written again when its session, unknown before, was imported.
            is_known = line.id in known and (known[line.id] or home.id is None)
            if is_known or home.is_gone or self._is_elsewhere(line, home):
                continue
            if typed.has(line, home):
                tx.run(_REMOVE, pid=line.id)
            else:
                rows.append(self._row(tx, line, home))

        tx.connection.executemany(upsert_text(prompt, PROMPT), rows)

    def _is_elsewhere(self, line: HistoryLine, home: _Home) -> bool:
        return self.is_limited and home.id is None and line.place is None

    def _row(self, tx: Transaction, line: HistoryLine, home: _Home) -> tuple[Any, ...]:
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
            "own": as_list({line.own for line in lines if line.own}),
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
        home = self._by_name.get(line.session) or self._by_id.get(line.own)
        return home or _Home(
            is_gone=not self._buried.isdisjoint({line.session, line.own})
        )


@dataclass(slots=True)
class _Typed:
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
        said = plain(line.text)
        if home.id is not None:
            return said in self._of_session(home.id, line.session)
        if line.session is not None:
            return False

        minute = line.time // _NEAR
        return any(
            abs(time - line.time) <= _NEAR
            for near in (minute - 1, minute, minute + 1)
            for time in self._of_minute(near).get(said, ())
        )

    def _of_session(self, session_id: str, name: str | None) -> _Times:
        key = session_id, name
        if key not in self._in_sessions:
            rows = self.tx.run(_IN_SESSION, sid=session_id)
            self._in_sessions[key] = self._messages(rows, name)
        return self._in_sessions[key]

    def _of_minute(self, minute: int) -> _Times:
        if minute not in self._in_minutes:
            since = minute * _NEAR
            where = {"since": since, "until": since + _NEAR - 1, "source": self.source}
            rows = self.tx.run(_AT_TIME, **where)
            self._in_minutes[minute] = self._messages(rows, None)
        return self._in_minutes[minute]

    def _messages(self, rows: Iterable[Any], session: str | None) -> _Times:
        found: _Times = defaultdict(list)
        for name, text, time in rows:
            if name != ids.history_prompt_id(self.source, session, text, time):
                found[plain(text)].append(time)
        return found


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
