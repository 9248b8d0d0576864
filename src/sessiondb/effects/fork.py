"""Fork by copy.

Rows go by INSERT … SELECT, blobs are shared. A copy keeps ids and seqs, so every
reference inside a payload stays true; it is inherited, so nothing is counted or
found twice. Nothing on the path is dropped: what is open is closed in the copy.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    Table,
    and_,
    case,
    exists,
    func,
    literal_column,
    null,
    or_,
    select,
    text,
    union_all,
)

from sessiondb.effects.message import seq_of
from sessiondb.effects.ownership import derive_model, recount
from sessiondb.effects.project import ProjectPlace, home_of
from sessiondb.effects.session import check_chain, free_slug, refuse_deleted
from sessiondb.effects.transaction import Transaction
from sessiondb.effects.tree import links
from sessiondb.engine.default import ENGINE
from sessiondb.engine.sql import Statement, as_list, numbers, p
from sessiondb.errors import ConflictError, NotFoundError, abridged
from sessiondb.model.damage import (
    CIRCLE,
    GONE,
    REMOVED,
    damaged,
    diff_name,
    message_name,
    part_name,
)
from sessiondb.model.handles import LEAF, SessionHandle
from sessiondb.model.paths import break_of, path_to
from sessiondb.schema import (
    UNSETTLED,
    blob,
    file_diff,
    label,
    message,
    part,
    session,
    todo,
)
from sessiondb.schema.rows import FILE_DIFF, LABEL, MESSAGE, TODO, columns

_SUFFIX = re.compile(r"(?:^| )\(fork #(\d{1,9})\)$")


def _copied_rows(table: Table) -> Any:
    return and_(
        table.c.session_id == p("sid"),
        table.c.seq <= p("cut"),
        table.c.seq.not_in(numbers("off")),
    )


def _copy_statement(
    table: Table, columns: tuple[str, ...], condition: Any, **changed: Any
) -> Any:
    values = [changed.get(name, table.c[name]).label(name) for name in columns]
    return table.insert().from_select(list(columns), select(*values).where(condition))


_new = p("new")
_open = message.c.time_completed.is_(None)
_COPY_MESSAGES = Statement(
    lambda: _copy_statement(
        message,
        MESSAGE,
        _copied_rows(message),
        session_id=_new,
        inherited=literal_column("1"),
        finish=case((_open, literal_column("'cancelled'")), else_=message.c.finish),
        time_completed=func.coalesce(message.c.time_completed, p("now")),
    )
)


def _seq_of_name() -> Any:
    """The seq of a message by its id, else by a label: the id takes precedence."""
    by_id = select(message.c.seq, literal_column("0").label("rank")).where(
        message.c.session_id == p("sid"), message.c.id == p("name")
    )
    by_label = select(label.c.seq, literal_column("1")).where(
        label.c.session_id == p("sid"), label.c.label == p("name")
    )
    return union_all(by_id, by_label).order_by(text("rank")).limit(1)


_SEQ_OF_NAME = Statement(_seq_of_name)


def _copy_parts() -> Any:
    result, copy = part.alias("result"), part.alias("here")
    behind = or_(result.c.seq > p("cut"), result.c.seq.in_(numbers("off")))
    # One query for all calls: with one for each, those of one id cost their square.
    ended_behind = select(result.c.call_id).where(
        result.c.session_id == p("sid"),
        result.c.call_id.is_not(None),
        result.c.type == text("'tool-result'"),
        result.c.text.is_(None),
        result.c.text_blob.is_(None),
        behind,
    )
    is_here = and_(
        copy.c.session_id == part.c.session_id,
        copy.c.call_id == part.c.call_id,
        copy.c.type == text("'tool-result'"),
        copy.c.seq > part.c.seq,
        copy.c.seq <= p("cut"),
        copy.c.seq.not_in(numbers("off")),
    )
    lost = and_(
        part.c.type == text("'tool'"),
        part.c.call_id.in_(ended_behind),
        ~exists().where(is_here),
    )
    cut = or_(UNSETTLED, lost)
    return _copy_statement(
        part,
        columns(part),
        _copied_rows(part),
        session_id=_new,
        inherited=literal_column("1"),
        indexed=literal_column("0"),
        status=case((cut, literal_column("'error'")), else_=part.c.status),
        outcome=case((cut, literal_column("'interrupted'")), else_=part.c.outcome),
        text=case((lost, null()), else_=part.c.text),
        text_blob=case((lost, null()), else_=part.c.text_blob),
        time_ended=case((UNSETTLED, p("now")), else_=part.c.time_ended),
        words=null(),
    )


_COPY_PARTS = Statement(_copy_parts)
_COPY_TODOS = Statement(
    lambda: _copy_statement(todo, TODO, todo.c.session_id == p("sid"), session_id=_new)
)
_COPY_LABELS = Statement(
    lambda: _copy_statement(label, LABEL, _copied_rows(label), session_id=_new)
)
_COPY_DIFFS = Statement(
    lambda: _copy_statement(
        file_diff, FILE_DIFF, _copied_rows(file_diff), session_id=_new
    )
)
_SESSION = tuple(
    "id project_id parent_id relation parent_seq root_id slug title title_source "
    "directory version source agent provider_id model_id model_source leaf_seq "
    "last_seq permission metadata "
    "time_created time_updated data data_blob".split()
)
_COPY_SESSION = Statement(
    lambda: _copy_statement(
        session,
        _SESSION,
        session.c.id == p("sid"),
        id=_new,
        parent_id=p("sid"),
        relation=literal_column("'fork'"),
        project_id=p("project_id"),
        parent_seq=p("parent_seq"),
        slug=p("slug"),
        title=p("title"),
        title_source=p("title_source"),
        directory=p("directory"),
        source=p("source"),
        # It is that of the source.
        version=case((session.c.source == p("source"), session.c.version)),
        leaf_seq=p("leaf"),
        metadata=func.json_remove(session.c.metadata, text("'$.share'")),
        time_created=p("now"),
        time_updated=p("now"),
        data=null(),
        data_blob=null(),
    )
)
_TITLES = Statement(
    lambda: select(session.c.title).where(
        session.c.root_id == p("root"),
        session.c.title.like(literal_column("'%(fork #%)'")),
        session.c.time_deleted.is_(None),
    )
)
_FORK = Statement(
    lambda: select(
        session.c.parent_id,
        session.c.relation,
        session.c.parent_seq,
        session.c.time_deleted,
    ).where(session.c.id == p("sid"))
)


def fork_title(tx: Transaction, root_id: str, title: str) -> str:
    """Return ``… (fork #n)`` with the next n that no fork of the family has."""
    base = _SUFFIX.sub("", title)
    numbers = [0]
    # Compared here: as a pattern, a title may be longer than SQLite takes.
    for (used_title,) in tx.run(_TITLES, root=root_id).fetchall():
        match = _SUFFIX.search(used_title)
        if match and _SUFFIX.sub("", used_title) == base:
            numbers.append(int(match[1]))

    return f"{base} (fork #{max(numbers) + 1})".strip()


def _without_value(table: Table, *place: Any) -> Statement:
    """Return the query for the *place* of the first row of which a blob is missing."""

    def build() -> Any:
        gone = [
            and_(column.is_not(None), ~exists().where(blob.c.hash == column))
            for column in table.c
            if column.name.endswith("_blob")
        ]
        of_session = table.c.session_id == p("sid")
        return select(*place).where(of_session, or_(*gone)).order_by(*place).limit(1)

    return Statement(build)


#: How an error names the place that a query finds.
_LOST: tuple[tuple[Callable[..., str], Statement], ...] = (
    (part_name, _without_value(part, part.c.seq, part.c.idx)),
    (message_name, _without_value(message, message.c.seq)),
    (diff_name, _without_value(file_diff, file_diff.c.path)),
)


def _check_values(tx: Transaction, session_id: str) -> None:
    """Raise `CorruptionError` if a large value of a session is missing."""
    for name_of, query in _LOST:
        if place := tx.one(query, sid=session_id):
            raise damaged(name_of(session_id, *place), GONE)


def _copy_rows(tx: Transaction, params: Mapping[str, Any]) -> None:
    """Copy what belongs to the path of a session."""
    tx.run(_COPY_MESSAGES, **params, now=tx.now)
    tx.run(_COPY_PARTS, **params, now=tx.now)
    tx.forget_rids()
    tx.run(_COPY_TODOS, sid=params["sid"], new=params["new"])
    tx.run(_COPY_LABELS, **params)
    tx.run(_COPY_DIFFS, **params)


@dataclass(frozen=True, slots=True, eq=False)
class Fork:
    """Copy a session up to a message into a new one."""

    verb = "fork"
    session_id: str
    handle: SessionHandle
    own_id: bool
    source: str
    at: Any = LEAF
    before: str | int | None = None
    #: True if the place is a string, which may be a label, and no handle.
    by_name: bool = False
    title: str | None = None
    place: ProjectPlace | None = None
    branches: bool = False

    def apply(self, tx: Transaction) -> None:
        """Apply it, or recognise it by its id.

        Raises `ConflictError`, `NotFoundError`, and `CorruptionError` for a path that
        is not complete.
        """
        if (self.own_id or tx.retried) and self._is_there(tx):
            return

        # The copy is made by SQL: what this unit wrote has to be in the rows.
        tx.flush()
        parent = tx.session(self.session_id)
        check_chain(tx, parent.id)
        parents = links(tx, parent.id)
        leaf = self._cut_seq(tx, parents)
        path = path_to(parents, leaf)
        end = break_of(parents, path, leaf)
        if end is not None:
            reason = CIRCLE if end in parents else REMOVED
            raise damaged(message_name(parent.id, end), reason)
        seqs = list(parents) if self.branches else path
        cut = max(seqs, default=0)
        off = sorted({seq for seq in parents if seq <= cut}.difference(seqs))
        params = {
            "sid": parent.id,
            "new": self.handle.id,
            "cut": cut,
            "off": as_list(off),
        }
        self._session_row(tx, leaf)
        try:
            _copy_rows(tx, params)
        except ENGINE.Error:
            # Only now: before, it would cost as much as the copies.
            _check_values(tx, parent.id)
            raise

        # Forking is not a change of the parent.
        del tx.states[parent.id]
        recount(tx, [self.handle.id])
        derive_model(tx, self.handle.id)
        tx.session(self.handle.id).first_new_seq = 1

    def _cut_seq(self, tx: Transaction, parents: dict[int, int | None]) -> int | None:
        if self.before is not None:
            return parents[self._seq_of_place(tx, self.before)]
        if self.at is LEAF:
            return tx.session(self.session_id).leaf_seq
        return self._seq_of_place(tx, self.at)

    def _seq_of_place(self, tx: Transaction, place: str | int) -> int:
        """Return the seq of a message; a string is its id, else a label."""
        if not self.by_name:
            return seq_of(tx, self.session_id, place)
        row = tx.one(_SEQ_OF_NAME, sid=self.session_id, name=place)
        if row is None:
            raise NotFoundError(
                f"session {self.session_id} has no message or label {abridged(place)}"
            )
        return int(row[0])

    def _session_row(self, tx: Transaction, leaf: int | None) -> None:
        parent = tx.session(self.session_id)
        project_id, directory = parent.project_id, parent.directory
        if self.place is not None:
            project_id, directory = home_of(tx, self.place)

        title = self.title or fork_title(tx, parent.root_id, parent.title)
        tx.run(
            _COPY_SESSION,
            sid=parent.id,
            new=self.handle.id,
            project_id=project_id,
            parent_seq=leaf,
            slug=free_slug(tx, project_id, self.handle.id),
            title=title,
            title_source="user" if self.title else parent.title_source,
            directory=directory,
            source=self.source,
            leaf=leaf,
            now=tx.now,
        )

    def _is_there(self, tx: Transaction) -> bool:
        row = tx.one(_FORK, sid=self.handle.id)
        if row is None:
            return False

        parent, relation, cut, deleted = row
        refuse_deleted(self.handle.id, deleted)
        asked = cut
        if self.at is not LEAF or self.before is not None:
            asked = self._cut_seq(tx, links(tx, self.session_id))
        if (parent, relation, cut) != (self.session_id, "fork", asked):
            raise ConflictError(f"session {self.handle.id} exists and is another fork")

        return True
