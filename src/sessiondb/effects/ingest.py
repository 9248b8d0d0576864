"""Effects of an import: a session that another program wrote, matched record by record.

A session is opened (row made or brought up to date, parents and children
linked), its messages are written in batches, and it is closed: only then is it
listed. Records match by id: new ones append, changed ones are updated in place,
vanished ones stay, off the live path. What was done here wins. Every message of
an import has a usage key, so that copies are recognised in any order of imports.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import delete, func, select, text, update

from sessiondb import codec
from sessiondb.effects import ownership
from sessiondb.effects.encode import Blob, MessageRow, PartRow
from sessiondb.effects.message import MESSAGE, PART, fill_call, insert_message, insert_part
from sessiondb.effects.project import Place, project_of, stored
from sessiondb.effects.session import (
    MAX_CHAIN,
    SESSION,
    free_slug,
    put_label,
    write_todos,
)
from sessiondb.effects.transaction import Transaction
from sessiondb.engine.sql import Statement, insert_text, p, update_of
from sessiondb.schema import (
    file_diff,
    import_ledger,
    message,
    part,
    session,
    todo,
    tombstone,
)


class Entry(NamedTuple):
    """One encoded message of a source."""

    row: MessageRow
    parts: tuple[PartRow, ...]
    blobs: tuple[Blob, ...]
    parent: Any
    usage_id: str
    labels: tuple[str, ...]


@dataclass(slots=True)
class Run:
    """The import of one session, over as many transactions as it takes."""

    session_id: str
    source: str
    source_id: str
    ledger: str
    fresh: bool = True
    changed: bool = False
    messages: int = 0
    last_seq: int | None = None
    turn_id: str | None = None
    touched: set[str] = field(default_factory=set)


_BY_SOURCE = Statement(
    lambda: select(session.c.id).where(
        session.c.source == p("source"),
        session.c.source_id == p("source_id"),
        session.c.time_deleted.is_(None),
    )
)
_PARENT = Statement(
    lambda: select(session.c.parent_id, session.c.root_id).where(session.c.id == p("sid"))
)
_MERGED = (
    "version agent provider_id model_id summary_additions summary_deletions summary_files "
    "summary_diffs share_url revert permission time_compacting data data_blob"
).split()
_STORED = Statement(
    lambda: select(
        session.c.title, session.c.title_source, *(session.c[name] for name in _MERGED)
    ).where(session.c.id == p("sid"))
)
_MERGE = update_of(session, "title title_source " + " ".join(_MERGED), session.c.id == p("sid"))
_WAITING = Statement(
    lambda: select(session.c.id, session.c.source_id, session.c.root_id).where(
        session.c.source == p("source"),
        session.c.parent_source_id == p("source_id"),
        session.c.parent_id.is_(None),
        session.c.id != p("sid"),
        session.c.time_deleted.is_(None),
    )
)
_LINK = update_of(session, "parent_id relation parent_source_id", session.c.id == p("sid"))
_RELATION = Statement(lambda: select(session.c.relation).where(session.c.id == p("sid")))
_CHILDREN = Statement(lambda: select(session.c.id).where(session.c.parent_id == p("sid")))
_ROOT = update_of(session, "root_id", session.c.id == p("sid"))
_FORGET = Statement(
    lambda: update(import_ledger)
    .where(import_ledger.c.source == p("source"), import_ledger.c.path.like(p("tail"), escape="\\"))
    .values(digest=None)
)
_UNBURY = Statement(
    lambda: delete(tombstone).where(
        tombstone.c.source == p("source"), tombstone.c.source_id == p("source_id")
    )
)
_FREE_SOURCE = Statement(
    lambda: update(session).where(session.c.id == p("sid")).values(source_id=None)
)


def above(tx: Transaction, session_id: str) -> list[str]:
    """Return the ancestors of a session, nearest first."""
    chain: list[str] = []
    row = tx.one(_PARENT, sid=session_id)
    while row and row[0] and row[0] not in chain:
        chain.append(row[0])
        row = tx.one(_PARENT, sid=row[0])
    return chain


@dataclass(frozen=True, slots=True)
class OpenImport:
    """Make the row of an imported session, or bring it up to date, and link its family."""

    verb = "import"
    run: Run
    place: Place
    columns: dict[str, Any]
    blobs: tuple[Blob, ...]
    parent_source_id: str | None
    relation: str | None
    supersedes: str | None = None

    def apply(self, tx: Transaction) -> None:
        """Write it."""
        run = self.run
        tx.insert_blobs(self.blobs)
        tx.run(_UNBURY, source=run.source, source_id=run.source_id)
        if self.supersedes is not None:
            tx.run(_FREE_SOURCE, sid=self.supersedes)
        found = tx.one(_BY_SOURCE, source=run.source, source_id=run.source_id)
        if found is None:
            self._make(tx)
        else:
            run.session_id, run.fresh = found[0], False
            self._merge(tx)
        if self.supersedes is None:
            self._adopt(tx)

    def _parent(self, tx: Transaction) -> tuple[str | None, str]:
        run = self.run
        parent = self.supersedes
        if parent is None and self.parent_source_id is not None:
            row = tx.one(_BY_SOURCE, source=run.source, source_id=self.parent_source_id)
            parent = row[0] if row else None
        if parent is None or parent == run.session_id:
            return None, run.session_id
        chain = above(tx, parent)
        if run.session_id in chain or len(chain) >= MAX_CHAIN:
            return None, run.session_id
        return parent, tx.one(_PARENT, sid=parent)[1]

    def _make(self, tx: Transaction) -> None:
        run, columns = self.run, self.columns
        project_id = project_of(tx, self.place)
        parent_id, root_id = self._parent(tx)
        relation = "fork" if self.supersedes else self.relation
        values = {
            **columns,
            "id": run.session_id,
            "project_id": project_id,
            "parent_id": parent_id,
            "relation": relation,
            "parent_seq": None,
            "parent_source_id": self.parent_source_id,
            "root_id": root_id,
            "slug": free_slug(tx, project_id, run.session_id),
            "directory": stored(self.place.directory, tx.root),
            "source": run.source,
            "source_id": run.source_id,
            "time_importing": tx.now,
        }
        tx.insert(session, SESSION, tuple(values[name] for name in SESSION))
        run.changed = True

    def _merge(self, tx: Transaction) -> None:
        run = self.run
        old = tx.one(_STORED, sid=run.session_id)
        new = {name: self.columns[name] for name in ("title", "title_source", *_MERGED)}
        if old[1] == "user" or (old[0] and not new["title"]):
            new["title"], new["title_source"] = old[0], old[1]
        if tuple(new.values()) == tuple(old):
            return
        if old[-1] and old[-1] != new["data_blob"]:
            tx.loose.add(old[-1])
        tx.run(_MERGE, sid=run.session_id, **new)
        run.changed = True

    def _adopt(self, tx: Transaction) -> None:
        """Link children that came before their parent, and this session to its own."""
        run = self.run
        if not run.fresh:
            parent_id, root_id = self._parent(tx)
            row = tx.one(_PARENT, sid=run.session_id)
            if parent_id is not None and row[0] is None:
                self._link(tx, run.session_id, parent_id, root_id, self.relation)
        root_id = tx.one(_PARENT, sid=run.session_id)[1]
        waiting = tx.run(
            _WAITING, source=run.source, source_id=run.source_id, sid=run.session_id
        ).fetchall()
        for child, child_source, _ in waiting:
            if child not in above(tx, run.session_id):
                relation = tx.one(_RELATION, sid=child)[0]
                self._link(tx, child, run.session_id, root_id, relation)
                # Where the child was cut is told by its source: read it again next time.
                tail = "%#" + child_source.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
                tx.run(_FORGET, source=run.source, tail=tail)

    def _link(
        self, tx: Transaction, child: str, parent: str, root_id: str, relation: str | None
    ) -> None:
        source = tx.one(
            Statement(lambda: select(session.c.parent_source_id).where(session.c.id == p("sid"))),
            sid=child,
        )[0]
        tx.run(_LINK, sid=child, parent_id=parent, relation=relation, parent_source_id=source)
        going = [child]
        for sid in going:
            tx.run(_ROOT, sid=sid, root_id=root_id)
            going += [row[0] for row in tx.run(_CHILDREN, sid=sid).fetchall() if row[0] not in going]
        for sid in going:
            tx.states.pop(sid, None)
            rows = tx.run(_KEYED, sid=sid).fetchall()
            lost = [ownership.Lost(root_id, *row) for row in rows]
            self.run.touched |= ownership.settle(tx, lost)
        self.run.changed = True


_KEYED = Statement(
    lambda: select(message.c.seq, message.c.id, message.c.time_created, message.c.usage_key).where(
        message.c.session_id == p("sid"), message.c.usage_key.is_not(None)
    )
)
_MATCH = Statement(
    lambda: select(*(message.c[name] for name in MESSAGE)).where(
        message.c.session_id == p("sid"), message.c.id == p("mid")
    )
)
_MATCH_PARTS = Statement(
    lambda: (
        select(*(part.c[name] for name in PART))
        .where(part.c.session_id == p("sid"), part.c.seq == p("at"))
        .order_by(part.c.idx)
    )
)
_REPLACE = update_of(
    message,
    " ".join(name for name in MESSAGE if name not in ("session_id", "seq", "id", "inherited")),
    message.c.session_id == p("sid"),
    message.c.seq == p("at"),
)
_RELINK = update_of(
    message, "parent_seq", message.c.session_id == p("sid"), message.c.seq == p("at")
)
_DROP_PARTS = Statement(
    lambda: delete(part).where(part.c.session_id == p("sid"), part.c.seq == p("at"))
)
_SHARED_KEYS = Statement(
    lambda: (
        select(message.c.usage_key)
        .where(
            message.c.usage_key.in_(
                select(func.json_each(p("keys")).table_valued("value").c.value)
            )
        )
        .group_by(message.c.usage_key)
        .having(func.count() > text("1"))
    )
)
_SEQ = Statement(
    lambda: select(message.c.seq).where(
        message.c.session_id == p("sid"), message.c.id == p("mid")
    )
)


@dataclass(frozen=True, slots=True)
class WriteBatch:
    """Write some messages of an import."""

    verb = "import"
    run: Run
    entries: tuple[Entry, ...]

    def apply(self, tx: Transaction) -> None:
        """Write them; changed records are updated in place."""
        run = self.run
        state = tx.session(run.session_id)
        keys: dict[str, ownership.Lost] = {}
        for entry in self.entries:
            created = state.time_created if entry.row.time_created is None else entry.row.time_created
            row = entry.row._replace(time_created=created)
            key = codec.usage_key(run.source, entry.usage_id, row.model_id, created, row.tokens)
            turn_id = row.turn_id or (row.id if row.role == "user" else run.turn_id)
            parent = self._parent(tx, entry)
            match = None if run.fresh else tx.one(_MATCH, sid=state.id, mid=row.id)
            if match is None:
                seq = state.last_seq = state.last_seq + 1
                state.first_new_seq = state.first_new_seq or seq
                self._insert(tx, entry, row, seq, parent, turn_id, key)
                keys[key] = ownership.Lost(state.root_id, seq, row.id, created, key)
            else:
                seq = match[1]
                old = self._update(tx, entry, row, match, parent, turn_id, key)
                keys.update({k: ownership.Lost(state.root_id, seq, row.id, created, k) for k in old})
            for name in entry.labels:
                put_label(tx, state.id, seq, name)
            run.last_seq, run.turn_id = seq, turn_id
            run.messages += 1
        run.changed = run.changed or bool(keys)
        self._count_once(tx, keys)

    def _parent(self, tx: Transaction, entry: Entry) -> int | None:
        if entry.parent is ...:
            return self.run.last_seq
        if entry.parent is None:
            return None
        row = tx.one(_SEQ, sid=self.run.session_id, mid=entry.parent)
        return row[0] if row else self.run.last_seq

    def _insert(
        self,
        tx: Transaction,
        entry: Entry,
        row: MessageRow,
        seq: int,
        parent: int | None,
        turn_id: str | None,
        key: str,
    ) -> None:
        sid = self.run.session_id
        tx.insert_blobs(entry.blobs)
        insert_message(tx, sid, seq, row, parent_seq=parent, turn_id=turn_id, key=key)
        self._insert_parts(tx, entry, row, seq, parent)

    def _insert_parts(
        self, tx: Transaction, entry: Entry, row: MessageRow, seq: int, parent: int | None
    ) -> None:
        state = tx.session(self.run.session_id)
        for idx, item in enumerate(entry.parts):
            if item.time_created is None:
                item = item._replace(time_created=row.time_created)
            if item.type == "tool-result":
                item = fill_call(tx, state, parent, item)
            insert_part(tx, state.id, seq, idx, item, complete=True)

    def _update(
        self,
        tx: Transaction,
        entry: Entry,
        row: MessageRow,
        match: tuple[Any, ...],
        parent: int | None,
        turn_id: str | None,
        key: str,
    ) -> list[str]:
        """Bring a stored record up to date; return the usage keys whose copies must be settled."""
        sid, seq = self.run.session_id, match[1]
        old = dict(zip(MESSAGE, match, strict=True))
        new = dict(
            zip(
                MESSAGE,
                (
                    sid, seq, row.id, parent, turn_id, row.role, row.kind, row.agent,
                    row.provider_id, row.model_id, row.response_id, key, row.cost, *row.tokens,
                    row.finish, row.error, old["inherited"], row.time_created, row.time_completed,
                    row.data, row.data_blob,
                ),
                strict=True,
            )
        )  # fmt: skip
        parts = tx.run(_MATCH_PARTS, sid=sid, at=seq).fetchall()
        if old == new and _same_parts(parts, entry.parts, row.time_created):
            return []
        self.run.changed = True
        if {**old, "parent_seq": parent} == new and _same_parts(parts, entry.parts, row.time_created):
            tx.run(_RELINK, sid=sid, at=seq, parent_seq=parent)
            return []
        tx.insert_blobs(entry.blobs)
        tx.loose.update(h for item in parts for h in item[13:15] + item[16:17] if h)
        tx.loose.update([old["data_blob"]] if old["data_blob"] else [])
        fixed = ("session_id", "seq", "id", "inherited")
        values = {name: value for name, value in new.items() if name not in fixed}
        tx.run(_REPLACE, sid=sid, at=seq, **values)
        tx.run(_DROP_PARTS, sid=sid, at=seq)
        tx.forget_rids()
        self._insert_parts(tx, entry, row, seq, parent)
        state = tx.session(sid)
        state.first_new_seq = min(state.first_new_seq or seq, seq)
        if old["inherited"]:
            ownership.mark(tx, sid, seq, 1)
        return [k for k in {old["usage_key"], key} if k]

    def _count_once(self, tx: Transaction, keys: dict[str, ownership.Lost]) -> None:
        if not keys:
            return
        shared = tx.run(_SHARED_KEYS, keys=json.dumps(list(keys))).fetchall()
        alone = [row for key, row in keys.items() if not self.run.fresh]
        rows = [keys[key] for (key,) in shared] + alone
        self.run.touched |= ownership.settle(tx, rows)


def _same_parts(
    stored_parts: Iterable[tuple[Any, ...]], parts: tuple[PartRow, ...], created: int | None
) -> bool:
    rows = list(stored_parts)
    if len(rows) != len(parts):
        return False
    for old, new in zip(rows, parts, strict=True):
        made = created if new.time_created is None else new.time_created
        updated = made if new.time_updated is None else new.time_updated
        times = (made, updated, new.time_started, new.time_ended)
        filled = new.type == "tool" and not new.settled and old[8] in ("completed", "error")
        emptied = new.type == "tool-result" and old[12] is None and old[13] is None
        if filled:
            new = new._replace(status=old[8], outcome=old[9], text=old[12], text_blob=old[13])
            times = old[19:23]
        if emptied:
            new = new._replace(text=None, text_blob=None)
        if old[4:17] != tuple(new[:13]) or old[19:23] != times:
            return False
    return True


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
_DIFF = tuple("session_id seq path before_blob after_blob patch additions deletions".split())
_OLD_DIFFS = Statement(
    lambda: select(*(file_diff.c[name] for name in _DIFF[1:]))
    .where(file_diff.c.session_id == p("sid"))
    .order_by(file_diff.c.rid)
)  # fmt: skip
_CLEAR_DIFFS = Statement(lambda: delete(file_diff).where(file_diff.c.session_id == p("sid")))
_LEDGER = tuple("source path size mtime_ns offset digest problems time_imported".split())
_LAST_TIME = Statement(
    lambda: select(func.max(message.c.time_created)).where(message.c.session_id == p("sid"))
)


@dataclass(frozen=True, slots=True)
class CloseImport:
    """Make an imported session whole: leaf, counters, lists, and the ledger's entry."""

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
        state = tx.session(run.session_id)
        tx.insert_blobs(self.blobs)
        self._lists(tx)
        leaf = run.last_seq
        if self.leaf is not None and (row := tx.one(_SEQ, sid=state.id, mid=self.leaf)):
            leaf = row[0]
        old = tx.one(_FACTS, sid=state.id)
        new = (old[0], self._cut(tx, old), self.call_id or old[2], leaf, self._used(tx, old), None)
        if new != tuple(old):
            run.changed = True
            tx.run(
                _CLOSE, sid=state.id, leaf_seq=leaf, time_updated=new[4], time_importing=None,
                parent_seq=new[1], call_id=new[2],
            )  # fmt: skip
        state.leaf_seq, state.time_updated = leaf, new[4]
        if run.changed:
            run.touched.add(state.id)
        else:
            del tx.states[state.id]
        ownership.recount(tx, run.touched)
        self._note(tx)

    def _cut(self, tx: Transaction, old: tuple[Any, ...]) -> int | None:
        if old[0] is None or self.parent_message is None:
            return old[1]  # type: ignore[no-any-return]
        row = tx.one(_SEQ, sid=old[0], mid=self.parent_message)
        return row[0] if row else old[1]

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
        problems = json.dumps(self.problems) if self.problems else None
        values = (
            run.source, run.ledger, self.size, self.mtime_ns, run.messages, self.digest, problems,
            tx.now,
        )  # fmt: skip
        tx.connection.execute(insert_text(import_ledger, _LEDGER, "OR REPLACE"), values)
