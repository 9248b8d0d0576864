"""The end of an import from one of our logs: fields, prompts, counters, ledger, family."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import func, or_, select, text

from sessiondb.effects import ownership
from sessiondb.effects.ingest import above, below
from sessiondb.effects.project import Place, project_of
from sessiondb.effects.restore import Restoration
from sessiondb.effects.restore_fields import LoggedFields, Merge
from sessiondb.effects.session import MAX_CHAIN
from sessiondb.effects.transaction import SessionState, Transaction
from sessiondb.engine.sql import Statement, p, update_of, upsert_text
from sessiondb.places import stored
from sessiondb.schema import import_ledger, message, prompt, session
from sessiondb.schema.rows import PROMPT

_SEQ = Statement(
    lambda: select(message.c.seq).where(
        message.c.session_id == p("sid"), message.c.id == p("mid")
    )
)
_LINKS = Statement(
    lambda: select(message.c.seq, message.c.parent_seq).where(
        message.c.session_id == p("sid")
    )
)
_COUNT = Statement(lambda: select(func.count()).where(message.c.session_id == p("sid")))
_RELINK = update_of(
    message, "parent_seq", message.c.session_id == p("sid"), message.c.seq == p("at")
)
_WHOLE = update_of(session, "time_importing", session.c.id == p("sid"))
_PROMPT_OF = Statement(
    lambda: select(prompt.c.session_id).where(prompt.c.id == p("pid"))
)
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
        .where(
            session.c.id == p("sid"),
            session.c.relation == text("'fork'"),
            same.exists(),
        )
    )


#: Where a fork begins is a place in its parent, which may number its messages otherwise here.
_BRANCHED = Statement(_branched)
_LEDGER = tuple(
    "source path size mtime_ns offset digest problems time_imported".split()
)


#: Later than any time in Unix ms.
MAX_TIME = 1 << 62


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
    """Make a session complete."""

    verb = "import"
    run: Restoration
    log: LoggedFields
    digest: str
    size: int | None
    mtime_ns: int | None
    problems: list[Any]
    time_updated: int
    prompts: list[OldPrompt] = field(default_factory=list)

    def apply(self, tx: Transaction) -> None:
        """Write it."""
        run = self.run
        state = tx.peek(run.session_id)
        if run.pending:
            self._link(tx, state)
        full = tx.one(_COUNT, sid=state.id)[0] == run.messages
        run.kept = run.kept or not full
        if run.fresh:
            tx.run(_BRANCHED, sid=state.id)

        Merge(run, self.log).apply(tx, state, full)
        self._prompts(tx, state)
        tx.run(_WHOLE, sid=state.id, time_importing=None)
        self._moved_on(state)
        if run.changed:
            self._counters(tx, state)
        self._note(tx)

    def _link(self, tx: Transaction, state: SessionState) -> None:
        """Put messages below their parents that came after them.

        One whose parent never came stays behind the message before it. A link that would
        make a message its own ancestor, as only a damaged log has it, is left out.
        """
        links: dict[int, int | None] = dict(tx.run(_LINKS, sid=state.id).fetchall())
        stored = {seq: links.pop(seq) for seq in self.run.pending}
        found = {}
        for seq, parent in self.run.pending.items():
            row = tx.one(_SEQ, sid=state.id, mid=parent)
            found[seq] = row[0] if row else None

        lost = [seq for seq, parent in found.items() if parent is None]
        known = [seq for seq, parent in found.items() if parent is not None]
        for seq in (*known, *lost):
            parent_seq = found[seq] if seq in known else stored[seq]
            if _leads_to(links, parent_seq, seq):
                parent_seq = None
            links[seq] = parent_seq
            if parent_seq != stored[seq]:
                tx.run(_RELINK, sid=state.id, at=seq, parent_seq=parent_seq)

    def _moved_on(self, state: SessionState) -> None:
        """Note whether the file has a later use, or a higher revision of the same."""
        run, of = self.run, self.run.stored
        detached = (
            of.time_detached is not None and state.time_detached != of.time_detached
        )
        later = self.time_updated > state.time_updated or of.last_seq > state.last_seq
        earlier = detached and (of.time_detached or 0) < (
            state.time_detached or MAX_TIME
        )
        newer = of.revision > run.revision and not run.kept
        run.changed = run.changed or later or earlier or newer

    def _counters(self, tx: Transaction, state: SessionState) -> None:
        run, of = self.run, self.run.stored
        tx.session(state.id)
        state.last_seq = max(state.last_seq, of.last_seq)
        detached = [x for x in (of.time_detached, state.time_detached) if x is not None]
        state.time_detached = min(detached, default=None)
        used = self.time_updated
        state.time_updated = used if run.fresh else max(used, state.time_updated)

        revision = of.revision
        if not (run.fresh or run.unfinished):
            # A value that only one side had until now makes a state that neither has seen.
            revision = max(of.revision, run.revision + 1)
            revision = max(of.revision, run.revision) + 1 if run.kept else revision
        if run.fresh and of.deleted is not None:
            revision = max(revision, of.deleted.revision)  # newer than its deletion
        state.revision = revision - 1  # what is written adds one
        ownership.recount(tx, [state.id])
        ownership.derive_model(tx, state.id)

    def _prompts(self, tx: Transaction, state: SessionState) -> None:
        for given in self.prompts:
            row = tx.one(_PROMPT_OF, pid=given.id)
            if row is None:
                directory = given.directory and stored(given.directory, tx.root)
                project = (
                    project_of(tx, given.place) if given.place else state.project_id
                )
                values = (
                    given.id,
                    given.text,
                    directory,
                    project,
                    state.id,
                    given.source,
                )
                tx.insert(prompt, PROMPT, (*values, given.time))
            elif row[0] is None:
                tx.run(_OWN_PROMPT, pid=given.id, session_id=state.id)
            self.run.changed = self.run.changed or row is None or row[0] is None

    def _note(self, tx: Transaction) -> None:
        run = self.run
        problems = json.dumps(self.problems) if self.problems else None
        values = (
            run.source, run.ledger, self.size, self.mtime_ns, run.messages, self.digest, problems,
            tx.now,
        )  # fmt: skip
        tx.connection.execute(upsert_text(import_ledger, _LEDGER), values)


def _leads_to(links: dict[int, int | None], seq: int | None, goal: int) -> bool:
    """Return whether *goal* is *seq* or one of its ancestors."""
    seen: set[int] = set()
    while seq is not None and seq not in seen:
        if seq == goal:
            return True
        seen.add(seq)
        seq = links.get(seq)
    return False


def _waiting() -> Any:
    child, parent = session.alias("child"), session.alias("parent")
    by_source = (parent.c.source == child.c.source) & (
        parent.c.source_id == child.c.parent_source_id
    )
    return (
        select(child.c.id, parent.c.id, child.c.parent_source_id, child.c.relation)
        .join_from(
            child, parent, or_(parent.c.id == child.c.parent_source_id, by_source)
        )
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
    lambda: select(
        message.c.seq, message.c.id, message.c.time_created, message.c.usage_key
    ).where(message.c.session_id == p("sid"))
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
        lost: list[ownership.UsageClass] = []
        for sid in going:
            tx.run(_ROOT, sid=sid, root_id=root_id)
            if sid in tx.states:
                tx.states[sid].root_id = root_id
            lost += [
                ownership.UsageClass(root_id, *row)
                for row in tx.run(_ROWS, sid=sid).fetchall()
            ]
        ownership.recount(tx, ownership.assign_owner(tx, lost))

    def _mark(self, tx: Transaction, child: str, parent: str) -> None:
        copied = tx.run(_COPIED, sid=child, parent=parent).fetchall()
        for (seq,) in copied:
            ownership.mark(tx, child, seq, 1)
        ownership.recount(tx, [child] if copied else [])
