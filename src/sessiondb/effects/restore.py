"""Effects of an import from one of our logs: rows as they were, two states of one session joined.

A session that is not here becomes the same rows. One that is here is known by
its id; its messages are joined by theirs, so a branch from each side stays.
Of what both sides have, one holds by an order that both agree on: of the fields
of a session the one with the greater version (`model.versions`), of a message the
one that is more finished. Nothing is removed because it is missing from a file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import select, text

from sessiondb import codec
from sessiondb.effects import ownership
from sessiondb.effects.ingest import Entry, Run, above
from sessiondb.effects.ingest_batch import DROP_PARTS, MATCH, MATCH_PARTS, SHARED_KEYS
from sessiondb.effects.message import insert_message, insert_part
from sessiondb.effects.project import Place, project_of
from sessiondb.effects.results import filled_call
from sessiondb.effects.session import MAX_CHAIN, free_slug
from sessiondb.effects.transaction import SessionState, Transaction
from sessiondb.engine.sql import Statement, as_list, p, update_of
from sessiondb.model import StoredMessage, StoredSession
from sessiondb.places import stored
from sessiondb.schema import message, session, tombstone
from sessiondb.schema.rows import MESSAGE, SESSION, Blob, PartRow

_FOUND = Statement(
    lambda: select(session.c.id, session.c.revision, session.c.time_importing).where(
        session.c.id == p("sid"), session.c.time_deleted.is_(None)
    )
)
_FOUND_BY_SOURCE = Statement(
    lambda: select(session.c.id, session.c.revision, session.c.time_importing).where(
        session.c.source == p("source"),
        session.c.source_id == p("source_id"),
        session.c.time_deleted.is_(None),
    )
)
_FAMILY = Statement(
    lambda: select(session.c.root_id).where(
        session.c.id == p("sid"), session.c.time_deleted.is_(None)
    )
)
#: Only forks hold copies that have no usage key.
_FORKED = Statement(
    lambda: (
        select(session.c.id)
        .where(session.c.root_id == p("root"), session.c.time_deleted.is_(None))
        .where(session.c.relation == text("'fork'"))
        .limit(1)
    )
)
_SLUG = Statement(
    lambda: select(session.c.id).where(
        session.c.project_id == p("pid"), session.c.slug == p("slug")
    )
)
_PLACED = update_of(session, "parent_seq", session.c.id == p("sid"))
_UNBURY = Statement(
    lambda: tombstone.delete().where(
        tombstone.c.source == p("source"), tombstone.c.source_id == p("source_id")
    )
)
_at = (message.c.session_id == p("sid"), message.c.seq == p("at"))
_OWN = ("session_id", "seq", "id", "parent_seq", "inherited")
_REPLACE = update_of(
    message, " ".join(name for name in MESSAGE if name not in _OWN), *_at
)
_SEQ = Statement(
    lambda: select(message.c.seq).where(
        message.c.session_id == p("sid"), message.c.id == p("mid")
    )
)


@dataclass(slots=True)
class Restoration(Run):
    """The import of one of our sessions, over as many transactions as it takes.

    ``unfinished``: an earlier import of it ended in the middle. ``revision`` is
    ours before it began; ``kept``: we have something that is missing from the file.
    ``pending`` are (seq, id of the parent) of messages whose parent comes later.
    """

    stored: StoredSession = field(kw_only=True)
    unfinished: bool = False
    revision: int = 0
    kept: bool = False
    pending: dict[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class OpenRestore:
    """Make the row of a session as it was, or update the one that is here."""

    verb = "import"
    run: Restoration
    place: Place
    columns: dict[str, Any]
    blobs: tuple[Blob, ...]
    parent_source_id: str | None
    relation: str | None

    def apply(self, tx: Transaction) -> None:
        """Write it."""
        run = self.run
        tx.insert_blobs(self.blobs)
        buried = tx.run(
            _UNBURY, source=run.source, source_id=run.stored.buried_as(run.source_id)
        )
        found = tx.one(_FOUND, sid=run.stored.id)
        # A session that was removed here is restored as itself, also if a new one has its name.
        if found is None and not run.stored.native and not buried.rowcount:
            found = tx.one(_FOUND_BY_SOURCE, source=run.source, source_id=run.source_id)
        run.fresh = found is None
        if found is None:
            run.session_id = run.stored.id
            self._make(tx)
            return
        run.session_id, run.revision = found[:2]
        run.unfinished = found[2] is not None

    def _make(self, tx: Transaction) -> None:
        run, of = self.run, self.run.stored
        project_id = project_of(tx, self.place)
        parent_id = self._parent(tx)
        above_it = None if parent_id is None else tx.one(_FAMILY, sid=parent_id)[0]
        slug = of.slug
        if slug is None or tx.one(_SLUG, pid=project_id, slug=slug) is not None:
            slug = free_slug(tx, project_id, run.session_id)
        named = self.parent_source_id
        if named is None and parent_id is None:
            named = of.parent_id  # until it comes: see `LinkRestored`
        values = {
            **self.columns,
            "id": run.session_id,
            "project_id": project_id,
            "parent_id": parent_id,
            "relation": self.relation,
            "parent_seq": None,
            "parent_source_id": named,
            "root_id": above_it or of.root_id or run.session_id,
            "slug": slug,
            "directory": stored(self.place.directory, tx.root),
            "source": run.source,
            "source_id": self._free_name(tx),
            "time_importing": tx.now,
            "time_imported": of.time_imported,
        }
        tx.insert(session, SESSION, tuple(values[name] for name in SESSION))
        tx.run(_PLACED, sid=run.session_id, parent_seq=of.parent_seq)
        run.changed = True

    def _free_name(self, tx: Transaction) -> str | None:
        run = self.run
        name = {"source": run.source, "source_id": run.source_id}
        taken = run.stored.native or tx.one(_FOUND_BY_SOURCE, **name) is not None
        return None if taken else run.source_id

    def _parent(self, tx: Transaction) -> str | None:
        parent = self.run.stored.parent_id
        if parent is None or parent == self.run.session_id:
            return None
        row = tx.one(_FAMILY, sid=parent)
        return (
            parent if row is not None and len(above(tx, parent)) < MAX_CHAIN else None
        )


@dataclass(slots=True)
class WriteRows:
    """Write some messages as they were; *stored* says by id what an entry does not."""

    verb = "import"
    run: Restoration
    entries: tuple[Entry, ...]
    stored: Mapping[str, StoredMessage]
    _begun: tuple[int, tuple[int | None, str | None]] | None = None

    def apply(self, tx: Transaction) -> None:
        """Write them; those that are here are updated."""
        run = self.run
        self._begun = self._begun or (run.messages, run.last)
        run.messages, run.last = self._begun
        state = tx.peek(run.session_id)
        # A copy that stayed may be the one that is counted by now.
        forked = tx.one(_FORKED, root=state.root_id) is not None
        touched: list[ownership.UsageClass] = []
        keys: dict[str, ownership.UsageClass] = {}
        for entry in self.entries:
            kept = self.stored[entry.row.id]
            match = None if run.fresh else tx.one(MATCH, sid=state.id, mid=entry.row.id)
            if match is None:
                seq = self._insert(tx, state, entry, kept)
            else:
                seq = match[1]
                self._update(
                    tx, state, entry, kept, dict(zip(MESSAGE, match, strict=True))
                )
            when = entry.row.time_created or 0
            lost = ownership.UsageClass(
                state.root_id, seq, entry.row.id, when, kept.usage_key
            )
            if kept.inherited or forked or (kept.usage_key and not run.fresh):
                touched.append(lost)
            elif kept.usage_key:
                keys[kept.usage_key] = lost
            run.last = run.places[entry.row.id] = (seq, entry.row.turn_id)
            run.messages += 1
        shared = tx.run(SHARED_KEYS, keys=as_list(keys)).fetchall()
        touched += [keys[key] for (key,) in shared]
        ownership.recount(tx, ownership.assign_owner(tx, touched))

    def _insert(
        self, tx: Transaction, state: SessionState, entry: Entry, kept: StoredMessage
    ) -> int:
        run, row = self.run, entry.row
        seq = kept.seq if kept.seq > state.last_seq else state.last_seq + 1
        parent = None
        if entry.parent is not None:
            parent = self._seq(tx, entry.parent)
            if parent is None:
                parent = run.last[0]
                run.pending[seq] = entry.parent
        tx.insert_blobs(entry.blobs)
        insert_message(
            tx, state.id, seq, row, parent_seq=parent, turn_id=row.turn_id, key=kept.usage_key,
            inherited=int(kept.inherited),
        )  # fmt: skip
        self._insert_parts(tx, entry, seq, int(kept.inherited))
        tx.session(state.id)
        state.last_seq = seq
        state.first_new_seq = state.first_new_seq or seq
        run.changed = True
        return seq

    def _seq(self, tx: Transaction, message_id: str) -> int | None:
        if message_id in self.run.places:
            return self.run.places[message_id][0]
        row = (
            None
            if self.run.fresh
            else tx.one(_SEQ, sid=self.run.session_id, mid=message_id)
        )
        return row[0] if row else None

    def _insert_parts(
        self, tx: Transaction, entry: Entry, seq: int, inherited: int
    ) -> None:
        complete = entry.row.time_completed is not None
        for idx, given in enumerate(entry.parts):
            item = given
            # A text that SQLite cannot show is recognised by its exact form, also if it is stored
            # with the call.
            if _is_exact(item) and filled_call(tx, self.run.session_id, item):
                item = item._replace(text=None, text_blob=None)
            insert_part(
                tx,
                self.run.session_id,
                seq,
                idx,
                item,
                complete=complete,
                inherited=inherited,
            )

    def _update(
        self,
        tx: Transaction,
        state: SessionState,
        entry: Entry,
        kept: StoredMessage,
        old: dict[str, Any],
    ) -> None:
        row, seq = entry.row, old["seq"]
        values = (
            state.id, seq, row.id, None, row.turn_id, row.role, row.kind, row.agent,
            row.provider_id, row.model_id, row.response_id, kept.usage_key, row.cost, *row.tokens,
            row.finish, row.error, None, row.time_created, row.time_completed, row.data,
            row.data_blob,
        )  # fmt: skip
        new = {n: v for n, v in zip(MESSAGE, values, strict=True) if n not in _OWN}
        rows = tx.run(MATCH_PARTS, sid=state.id, at=seq).fetchall()
        parts = [PartRow(*r[4:17], *r[19:23]) for r in rows]
        if {n: old[n] for n in new} == new and _alike(parts, entry.parts):
            return
        here = _weight(old["time_completed"], {n: old[n] for n in new}, parts)
        if _weight(row.time_completed, new, entry.parts) < here:
            self.run.kept = True
            return
        hashes = [h for r in parts for h in (r.text_blob, r.input_blob, r.data_blob)]
        tx.loose.update(h for h in (old["data_blob"], *hashes) if h)
        tx.insert_blobs(entry.blobs)
        tx.run(_REPLACE, sid=state.id, at=seq, **new)
        tx.run(DROP_PARTS, sid=state.id, at=seq)
        tx.forget_rids()
        self._insert_parts(tx, entry, seq, old["inherited"])
        tx.session(state.id)
        state.first_new_seq = min(state.first_new_seq or seq, seq)
        self.run.changed = True


def _is_exact(row: PartRow) -> bool:
    """Return whether a result's exact text is in its data, wherever its text is stored."""
    known = row.type == "tool-result" and codec.EXACT.encode() in (row.data or b"")
    return known and codec.EXACT in codec.unpack(row.data)


def _shown(row: PartRow) -> PartRow:
    """Return a part as it compares: without what rows say in two ways."""
    shown = row._replace(time_updated=row.time_updated or row.time_created)
    return shown._replace(text=None, text_blob=None) if _is_exact(row) else shown


def _alike(here: Iterable[PartRow], there: Iterable[PartRow]) -> bool:
    return list(map(_shown, here)) == list(map(_shown, there))


def _weight(
    completed: int | None, columns: Mapping[str, Any], parts: Sequence[PartRow]
) -> tuple[int, int, bytes]:
    """Return by what one state of a message goes before another, on either side of a merge.

    The more finished state wins, then the one changed last; the rest is only an order.
    """
    open_ends = (completed is None) + sum(
        x.status in ("pending", "running") for x in parts
    )
    last = max(completed or 0, 0, *(item.time_updated or 0 for item in parts))
    content = repr((sorted(columns.items()), list(map(_shown, parts))))
    return (
        -open_ends,
        last,
        hashlib.sha256(content.encode("utf-8", "surrogatepass")).digest(),
    )
