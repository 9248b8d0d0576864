"""The end of an import: leaf, counters, lists, and the ledger's entry."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from sqlalchemy import and_, delete, func, select

from sessiondb.effects import ownership
from sessiondb.effects.ingest import Run
from sessiondb.effects.session import write_todos
from sessiondb.effects.transaction import Transaction
from sessiondb.engine.sql import Statement, p, update_of, upsert_text
from sessiondb.schema import file_diff, import_ledger, message, session, todo
from sessiondb.schema.rows import Blob

_SEQ = Statement(
    lambda: select(message.c.seq).where(
        message.c.session_id == p("sid"), message.c.id == p("mid")
    )
)
_there = message.alias("there")
_COMMON = Statement(
    lambda: (
        select(func.max(message.c.seq))
        .join(_there, and_(_there.c.seq == message.c.seq, _there.c.id == message.c.id))
        .where(message.c.session_id == p("sid"), _there.c.session_id == p("above"))
    )
)
_CLOSE = update_of(
    session,
    "leaf_seq time_updated time_importing parent_seq call_id",
    session.c.id == p("sid"),
)
_FACTS = Statement(
    lambda: select(
        session.c.parent_id, session.c.parent_seq, session.c.call_id, session.c.leaf_seq,
        session.c.time_updated, session.c.time_importing,
    ).where(session.c.id == p("sid"))
)  # fmt: skip
_OLD_TODOS = Statement(
    lambda: select(todo.c.id, todo.c.content, todo.c.status, todo.c.priority)
    .where(todo.c.session_id == p("sid"))
    .order_by(todo.c.position)
)  # fmt: skip
_DIFF = tuple(
    "session_id seq path before_blob after_blob patch additions deletions".split()
)
_OLD_DIFFS = Statement(
    lambda: select(*(file_diff.c[name] for name in _DIFF[1:]))
    .where(file_diff.c.session_id == p("sid"))
    .order_by(file_diff.c.rid)
)  # fmt: skip
_CLEAR_DIFFS = Statement(
    lambda: delete(file_diff).where(file_diff.c.session_id == p("sid"))
)
_LEDGER = tuple(
    "source path size mtime_ns offset digest problems time_imported".split()
)
_LAST_TIME = Statement(
    lambda: select(func.max(message.c.time_created)).where(
        message.c.session_id == p("sid")
    )
)


@dataclass(frozen=True, slots=True, eq=False)
class CloseImport:
    """Complete an imported session: leaf, counters, lists, and the ledger's entry."""

    verb = "import"
    run: Run
    digest: str
    size: int | None
    mtime_ns: int | None
    problems: list[Any]
    leaf: str | None
    parent_message: str | None
    call_id: str | None
    time_updated: int | None
    todos: tuple[tuple[str | None, str, str, str | None], ...] | None
    diffs: tuple[tuple[Any, ...], ...] | None
    blobs: tuple[Blob, ...]

    def apply(self, tx: Transaction) -> None:
        """Write it."""
        run = self.run
        run.gone = run.gone or not tx.exists(run.session_id)
        if run.gone:
            return
        state = tx.session(run.session_id)
        tx.insert_blobs(self.blobs)
        self._lists(tx)
        leaf = run.last[0]
        if self.leaf is not None and (row := tx.one(_SEQ, sid=state.id, mid=self.leaf)):
            leaf = row[0]
        old = tx.one(_FACTS, sid=state.id)
        new = (
            old[0],
            self._cut(tx, old),
            self.call_id or old[2],
            leaf,
            self._used(tx, old),
            None,
        )
        if new != tuple(old):
            run.changed = True
            tx.run(
                _CLOSE, sid=state.id, leaf_seq=leaf, time_updated=new[4], time_importing=None,
                parent_seq=new[1], call_id=new[2],
            )  # fmt: skip
        state.leaf_seq, state.time_updated = leaf, new[4]
        if not run.changed:
            del tx.states[state.id]
        ownership.recount(tx, [state.id])
        ownership.derive_model(tx, state.id)
        self._note(tx)

    def _cut(self, tx: Transaction, old: tuple[Any, ...]) -> int | None:
        """Return the parent's message that this session begins after."""
        cut: int | None = old[1]
        if old[0] is not None and self.parent_message is not None:
            row = tx.one(_SEQ, sid=old[0], mid=self.parent_message)
            cut = row[0] if row else cut
        if cut is None and tx.session(self.run.session_id).relation == "fork":
            cut = tx.one(_COMMON, sid=self.run.session_id, above=old[0])[0]
        return cut

    def _used(self, tx: Transaction, old: tuple[Any, ...]) -> int:
        if self.time_updated is not None:
            return self.time_updated
        last = tx.one(_LAST_TIME, sid=self.run.session_id)[0]
        return int(last if last is not None else old[4])

    def _lists(self, tx: Transaction) -> None:
        state = tx.session(self.run.session_id)
        if self.todos is not None:
            old = [tuple(row) for row in tx.run(_OLD_TODOS, sid=state.id).fetchall()]
            if old != list(self.todos):
                write_todos(tx, state, self.todos)
                self.run.changed = True
        if self.diffs is not None:
            before = [tuple(row) for row in tx.run(_OLD_DIFFS, sid=state.id).fetchall()]
            if before == list(self.diffs):
                return
            tx.loose.update(h for row in before for h in row[2:4] if h)
            tx.run(_CLEAR_DIFFS, sid=state.id)
            for row in self.diffs:
                tx.insert(file_diff, _DIFF, (state.id, *row))
            self.run.changed = True

    def _note(self, tx: Transaction) -> None:
        run = self.run
        noted = self.problems + [
            {"source": run.ledger, "line": None, "why": why} for why in run.problems
        ]
        problems = json.dumps(noted) if noted else None
        values = (
            run.source, run.ledger, self.size, self.mtime_ns, run.messages, self.digest, problems,
            tx.now,
        )  # fmt: skip
        tx.connection.execute(upsert_text(import_ledger, _LEDGER), values)
