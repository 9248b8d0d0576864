"""The end of an import from a log of ours: leaf, labels, lists, counters, ledger, family."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import delete, func, or_, select, text

from sessiondb.effects import ownership
from sessiondb.effects.encode import Blob
from sessiondb.effects.ingest import above, below
from sessiondb.effects.paths import nearest
from sessiondb.effects.project import Place, project_of
from sessiondb.effects.restore import Restoration
from sessiondb.effects.session import MAX_CHAIN, PROMPT, put_label
from sessiondb.effects.transaction import SessionState, Transaction
from sessiondb.engine.sql import Statement, insert_text, p, update_of
from sessiondb.places import stored
from sessiondb.schema import file_diff, import_ledger, label, message, prompt, session, todo

_SEQ = Statement(
    lambda: select(message.c.seq).where(message.c.session_id == p("sid"), message.c.id == p("mid"))
)
_COUNT = Statement(lambda: select(func.count()).where(message.c.session_id == p("sid")))
_RELINK = update_of(
    message, "parent_seq", message.c.session_id == p("sid"), message.c.seq == p("at")
)
_WHOLE = update_of(session, "time_importing", session.c.id == p("sid"))
_LABELS = Statement(
    lambda: select(label.c.label, label.c.seq).where(label.c.session_id == p("sid"))
)
_PROMPT_OF = Statement(lambda: select(prompt.c.session_id).where(prompt.c.id == p("pid")))
_OWN_PROMPT = update_of(prompt, "session_id", prompt.c.id == p("pid"))


def _branched() -> Any:
    mine, theirs = message.alias("mine"), message.alias("theirs")
    same = (
        select(theirs.c.seq)
        .join_from(mine, theirs, theirs.c.id == mine.c.id)
        .where(mine.c.session_id == session.c.id, mine.c.seq == session.c.parent_seq)
        .where(theirs.c.session_id == session.c.parent_id)
    )
    return (
        session.update()
        .values(parent_seq=same.scalar_subquery())
        .where(session.c.id == p("sid"), session.c.relation == text("'fork'"), same.exists())
    )


#: Where a fork begins is a place in its parent, which may number its messages otherwise here.
_BRANCHED = Statement(_branched)
_TODO = tuple("session_id position id content status priority time_created time_updated".split())
_TODOS = Statement(
    lambda: (
        select(*(todo.c[name] for name in _TODO))
        .where(todo.c.session_id == p("sid"))
        .order_by(todo.c.position)
    )
)
_CLEAR_TODOS = Statement(lambda: delete(todo).where(todo.c.session_id == p("sid")))
_DIFF = tuple("session_id seq path before_blob after_blob patch additions deletions".split())
_DIFFS = Statement(
    lambda: (
        select(*(file_diff.c[name] for name in _DIFF))
        .where(file_diff.c.session_id == p("sid"))
        .order_by(file_diff.c.seq, file_diff.c.rid)
    )
)
_CLEAR_DIFFS = Statement(lambda: delete(file_diff).where(file_diff.c.session_id == p("sid")))
_LEDGER = tuple("source path size mtime_ns offset digest problems time_imported".split())


class OldPrompt(NamedTuple):
    """A line of the prompt history as it was; *place* None: it is of the session's project."""

    id: str
    text: str
    directory: str | None
    place: Place | None
    source: str
    time: int


@dataclass(frozen=True, slots=True, eq=False)
class CloseRestore:
    """Make a session whole; todos and diffs are rows without the session's id."""

    verb = "import"
    run: Restoration
    digest: str
    size: int | None
    mtime_ns: int | None
    problems: list[Any]
    time_updated: int
    todos: tuple[tuple[Any, ...], ...]
    diffs: tuple[tuple[Any, ...], ...]
    blobs: tuple[Blob, ...]
    prompts: list[OldPrompt] = field(default_factory=list)

    def apply(self, tx: Transaction) -> None:
        """Write it."""
        run = self.run
        state = tx.peek(run.session_id)
        for seq, parent in run.pending.items():
            if (row := tx.one(_SEQ, sid=state.id, mid=parent)) and row[0] != seq:
                tx.run(_RELINK, sid=state.id, at=seq, parent_seq=row[0])
        full = tx.one(_COUNT, sid=state.id)[0] == run.messages
        if run.fresh:
            tx.run(_BRANCHED, sid=state.id)
        self._labels(tx, state)
        self._prompts(tx, state)
        if run.newer:
            self._lists(tx, state)
        self._leaf(tx, state, full)
        tx.run(_WHOLE, sid=state.id, time_importing=None)
        run.changed = run.changed or (run.newer and run.stored.revision != run.revision)
        if run.changed:
            self._counters(tx, state, full)
        self._note(tx)

    def _counters(self, tx: Transaction, state: SessionState, full: bool) -> None:
        run, of = self.run, self.run.stored
        tx.session(state.id)
        state.last_seq = max(state.last_seq, of.last_seq)
        if run.fresh:
            state.time_updated, state.time_detached = self.time_updated, of.time_detached
        else:
            state.time_updated = max(self.time_updated, state.time_updated)
            state.time_detached = state.time_detached or of.time_detached
        both = max(run.revision, of.revision) + 1
        # What is written adds one.
        state.revision = (of.revision if run.fresh or (run.newer and full) else both) - 1
        ownership.recount(tx, [state.id])
        ownership.derive_model(tx, state.id)

    def _leaf(self, tx: Transaction, state: SessionState, full: bool) -> None:
        run = self.run
        wanted = None
        if run.stored.leaf is not None:
            row = tx.one(_SEQ, sid=state.id, mid=run.stored.leaf)
            wanted = row[0] if row else run.last[0]
        here = state.leaf_seq
        goes_on = here is not None and wanted is not None
        goes_on = goes_on and nearest(tx, state.id, wanted, {here or 0}) is not None
        if wanted != here and (run.fresh or (run.newer and full) or goes_on):
            state.leaf_seq = wanted
            run.changed = True

    def _labels(self, tx: Transaction, state: SessionState) -> None:
        here = dict(tx.run(_LABELS, sid=state.id).fetchall())
        for name, text_ in self.run.stored.labels:
            row = tx.one(_SEQ, sid=state.id, mid=name)
            if row and here.get(text_) != row[0] and (self.run.newer or text_ not in here):
                put_label(tx, state.id, row[0], text_)
                self.run.changed = True

    def _prompts(self, tx: Transaction, state: SessionState) -> None:
        for given in self.prompts:
            row = tx.one(_PROMPT_OF, pid=given.id)
            if row is None:
                directory = given.directory and stored(given.directory, tx.root)
                project = project_of(tx, given.place) if given.place else state.project_id
                values = (given.id, given.text, directory, project, state.id, given.source)
                tx.insert(prompt, PROMPT, (*values, given.time))
            elif row[0] is None:
                tx.run(_OWN_PROMPT, pid=given.id, session_id=state.id)
            self.run.changed = self.run.changed or row is None or row[0] is None

    def _lists(self, tx: Transaction, state: SessionState) -> None:
        seqs = self.run.seqs
        todos = [(state.id, place, *row) for place, row in enumerate(self.todos)]
        todos = [(*row[:6], row[6] or tx.now, row[7] or row[6] or tx.now) for row in todos]
        if [tuple(row) for row in tx.run(_TODOS, sid=state.id).fetchall()] != todos:
            tx.run(_CLEAR_TODOS, sid=state.id)
            for row in todos:
                tx.insert(todo, _TODO, row)
            self.run.changed = True
        diffs = [(state.id, seqs.get(row[0], row[0]), *row[1:]) for row in self.diffs]
        before = [tuple(row) for row in tx.run(_DIFFS, sid=state.id).fetchall()]
        if before != diffs:
            tx.loose.update(h for row in before for h in row[3:5] if h)
            tx.insert_blobs(self.blobs)
            tx.run(_CLEAR_DIFFS, sid=state.id)
            for row in diffs:
                tx.connection.execute(insert_text(file_diff, _DIFF, "OR REPLACE"), row)
            self.run.changed = True

    def _note(self, tx: Transaction) -> None:
        run = self.run
        problems = json.dumps(self.problems) if self.problems else None
        values = (
            run.source, run.ledger, self.size, self.mtime_ns, run.messages, self.digest, problems,
            tx.now,
        )  # fmt: skip
        tx.connection.execute(insert_text(import_ledger, _LEDGER, "OR REPLACE"), values)


def _waiting() -> Any:
    child, parent = session.alias("child"), session.alias("parent")
    by_source = (parent.c.source == child.c.source) & (
        parent.c.source_id == child.c.parent_source_id
    )
    return (
        select(child.c.id, parent.c.id, child.c.parent_source_id, child.c.relation)
        .join_from(child, parent, or_(parent.c.id == child.c.parent_source_id, by_source))
        .where(
            child.c.parent_source_id.is_not(None),
            child.c.parent_id.is_(None),
            child.c.id != parent.c.id,
            child.c.time_deleted.is_(None),
            parent.c.time_deleted.is_(None),
        )
    )


_WAITING = Statement(_waiting)
_FAMILY = Statement(lambda: select(session.c.root_id).where(session.c.id == p("sid")))
_LINK = update_of(session, "parent_id parent_source_id", session.c.id == p("sid"))
_ROOT = update_of(session, "root_id", session.c.id == p("sid"))
_ROWS = Statement(
    lambda: select(message.c.seq, message.c.id, message.c.time_created, message.c.usage_key).where(
        message.c.session_id == p("sid")
    )
)


def _copied() -> Any:
    other = message.alias("other")
    same = (
        (other.c.session_id == p("parent"))
        & (other.c.id == message.c.id)
        & (other.c.time_created == message.c.time_created)
    )
    return select(message.c.seq).where(
        message.c.session_id == p("sid"),
        message.c.inherited == text("0"),
        message.c.usage_key.is_(None),
        select(other.c.rid).where(same, other.c.seq == message.c.seq).exists(),
    )


_COPIED = Statement(_copied)


@dataclass(frozen=True, slots=True, eq=False)
class LinkRestored:
    """Put sessions below their parents that came after them."""

    verb = "import"

    def apply(self, tx: Transaction) -> None:
        """Write it; a link that made a cycle, or too long a chain, is left out."""
        for child, parent, named, relation in tx.run(_WAITING).fetchall():
            chain, levels = above(tx, parent), below(tx, child)
            if child not in chain and len(chain) + len(levels) < MAX_CHAIN:
                kept = None if named == parent else named
                tx.run(_LINK, sid=child, parent_id=parent, parent_source_id=kept)
                self._settle(tx, parent, [sid for level in levels for sid in level])
                if relation == "fork":
                    tx.run(_BRANCHED, sid=child)
                    self._mark(tx, child, parent)

    def _settle(self, tx: Transaction, parent: str, going: list[str]) -> None:
        root_id = tx.one(_FAMILY, sid=parent)[0]
        lost: list[ownership.Lost] = []
        for sid in going:
            tx.run(_ROOT, sid=sid, root_id=root_id)
            if sid in tx.states:
                tx.states[sid].root_id = root_id
            lost += [ownership.Lost(root_id, *row) for row in tx.run(_ROWS, sid=sid).fetchall()]
        ownership.recount(tx, ownership.settle(tx, lost))

    def _mark(self, tx: Transaction, child: str, parent: str) -> None:
        copied = tx.run(_COPIED, sid=child, parent=parent).fetchall()
        for (seq,) in copied:
            ownership.mark(tx, child, seq, 1)
        ownership.recount(tx, [child] if copied else [])
