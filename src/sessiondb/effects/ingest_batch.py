"""The messages of an import: matched by id, inserted or updated in place."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import delete, func, select, text

from sessiondb import codec
from sessiondb.effects import ownership
from sessiondb.effects.ingest import Entry, Run
from sessiondb.effects.message import insert_message, insert_part
from sessiondb.effects.results import fill_call, filled_call
from sessiondb.effects.session import put_label
from sessiondb.effects.transaction import SessionState, Transaction
from sessiondb.engine.sql import Statement, as_list, p, texts, update_of
from sessiondb.schema import label, message, part
from sessiondb.schema.rows import MESSAGE, PART, MessageRow, PartRow

#: The stored state that a message imported again is compared with; a restore uses the same.
MATCH = Statement(
    lambda: select(*(message.c[name] for name in MESSAGE)).where(
        message.c.session_id == p("sid"), message.c.id == p("mid")
    )
)
MATCH_PARTS = Statement(
    lambda: (
        select(*(part.c[name] for name in PART))
        .where(part.c.session_id == p("sid"), part.c.seq == p("at"))
        .order_by(part.c.idx)
    )
)
_REPLACE = update_of(
    message,
    " ".join(
        name for name in MESSAGE if name not in ("session_id", "seq", "id", "inherited")
    ),
    message.c.session_id == p("sid"),
    message.c.seq == p("at"),
)
_RELINK = update_of(
    message,
    "parent_seq turn_id",
    message.c.session_id == p("sid"),
    message.c.seq == p("at"),
)
# Forks keep what they copied, but stay copies: what is counted once is found by its key.
_RENAME_COPIES = update_of(
    message,
    "usage_key",
    message.c.usage_key == p("old"),
    message.c.id == p("mid"),
    message.c.seq == p("at"),
    message.c.inherited == text("1"),
)
DROP_PARTS = Statement(
    lambda: delete(part).where(part.c.session_id == p("sid"), part.c.seq == p("at"))
)
SHARED_KEYS = Statement(
    lambda: (
        select(message.c.usage_key)
        .where(message.c.usage_key.in_(texts("keys")))
        .group_by(message.c.usage_key)
        .having(func.count() > text("1"))
    )
)
_LABELLED = Statement(
    lambda: select(label.c.seq).where(
        label.c.session_id == p("sid"), label.c.label == p("name")
    )
)


@dataclass(frozen=True, slots=True, eq=False)
class _Placed:
    """A message of the source with what its place in the session adds to it."""

    row: MessageRow
    parts: tuple[PartRow, ...]
    parent: int | None
    turn_id: str | None
    key: str

    def values(self, session_id: str, seq: int, inherited: int) -> tuple[Any, ...]:
        """Return it in the order of `MESSAGE`."""
        row = self.row
        return (
            session_id, seq, row.id, self.parent, self.turn_id, row.role, row.kind, row.agent,
            row.provider_id, row.model_id, row.response_id, self.key, row.cost, *row.tokens,
            row.finish, row.error, inherited, row.time_created, row.time_completed, row.data,
            row.data_blob,
        )  # fmt: skip


@dataclass(slots=True)
class WriteBatch:
    """Write some messages of an import."""

    verb = "import"
    run: Run
    entries: tuple[Entry, ...]
    _begun: tuple[int, tuple[int | None, str | None]] | None = None

    def apply(self, tx: Transaction) -> None:
        """Write them; changed records are updated in place."""
        run = self.run
        run.gone = run.gone or not tx.exists(run.session_id)
        if run.gone:
            return
        # The run moves along while it writes; a batch that is tried again begins where it began.
        self._begun = self._begun or (run.messages, run.last)
        run.messages, run.last = self._begun
        state = tx.session(run.session_id)
        run.fresh = run.fresh and run.tail == state.last_seq
        lost: dict[str, ownership.UsageClass] = {}
        for entry in self.entries:
            placed = self._place(state, entry)
            seq, keys = self._write(tx, state, entry, placed)
            row = placed.row
            for key in keys:
                when = row.time_created or 0
                lost[key] = ownership.UsageClass(state.root_id, seq, row.id, when, key)
            for name in entry.labels:
                self._label(tx, seq, name)
            run.last = run.places[row.id] = (seq, placed.turn_id)
            run.messages += 1
        run.tail = state.last_seq
        self._count_once(tx, state, lost)

    def _place(self, state: SessionState, entry: Entry) -> _Placed:
        """Find the parent among the records before: so it is the same in every import."""
        run = self.run
        parent, turn = run.last
        if entry.parent is None:
            parent, turn = None, None
        elif entry.parent is not ...:
            parent, turn = run.places.get(entry.parent, run.last)
        row = entry.row
        if row.time_created is None:
            row = row._replace(time_created=state.time_created)
        if row.turn_id is not None or row.role == "user":
            turn = row.turn_id or row.id
        made = row.time_created
        parts = tuple(_dated(item, made) for item in entry.parts)
        key = codec.usage_key(
            run.source, entry.usage_id, row.model_id, made, row.tokens
        )
        return _Placed(row, parts, parent, turn, key)

    def _write(
        self, tx: Transaction, state: SessionState, entry: Entry, placed: _Placed
    ) -> tuple[int, Iterable[str]]:
        """Insert or update; return the seq, and the usage keys whose copies must be settled."""
        run, row = self.run, placed.row
        match = None if run.fresh else tx.one(MATCH, sid=state.id, mid=row.id)
        if match is not None:
            return match[1], self._update(
                tx, entry, placed, dict(zip(MESSAGE, match, strict=True))
            )
        seq = state.last_seq = state.last_seq + 1
        state.first_new_seq = state.first_new_seq or seq
        run.changed = True
        tx.insert_blobs(entry.blobs)
        insert_message(
            tx,
            state.id,
            seq,
            row,
            parent_seq=placed.parent,
            turn_id=placed.turn_id,
            key=placed.key,
        )
        self._insert_parts(tx, seq, placed)
        return seq, [placed.key]

    def _insert_parts(
        self,
        tx: Transaction,
        seq: int,
        placed: _Placed,
        shared: Iterable[str | None] = (),
    ) -> None:
        """Insert parts; results in *shared* gave their text to a call before, and do so again."""
        state = tx.session(self.run.session_id)
        for idx, given in enumerate(placed.parts):
            item = given
            if item.type == "tool-result" and not _bare(item):
                again = item.call_id in shared
                item = fill_call(tx, state, placed.parent, item, again=again)
            insert_part(tx, state.id, seq, idx, item, complete=True)

    def _update(
        self, tx: Transaction, entry: Entry, placed: _Placed, old: dict[str, Any]
    ) -> Iterable[str]:
        """Bring a stored record up to date."""
        sid, seq = self.run.session_id, old["seq"]
        if old["inherited"] and old["usage_key"] and entry.usage_id == old["id"]:
            # Who reads a copy without its original does not know that it is one.
            placed = replace(placed, key=old["usage_key"])
        new = dict(zip(MESSAGE, placed.values(sid, seq, old["inherited"]), strict=True))
        rows = tx.run(MATCH_PARTS, sid=sid, at=seq).fetchall()
        stored = [PartRow(*row[4:17], *row[19:23]) for row in rows]
        by_id = {row.id: row for row in stored}
        parts = [self._as_stored(tx, by_id.get(item.id), item) for item in placed.parts]
        if stored == parts and old == new:
            return ()
        self.run.changed = True
        place = {"parent_seq": placed.parent, "turn_id": placed.turn_id}
        if stored == parts and {**old, **place} == new:
            tx.run(_RELINK, sid=sid, at=seq, **place)
            return ()
        if old["usage_key"] not in (None, placed.key):
            names = {"old": old["usage_key"], "usage_key": placed.key}
            tx.run(_RENAME_COPIES, **names, mid=old["id"], at=seq)
        hashes = [
            h for row in stored for h in (row.text_blob, row.input_blob, row.data_blob)
        ]
        tx.loose.update(h for h in (old["data_blob"], *hashes) if h)
        tx.insert_blobs(entry.blobs)
        fixed = ("session_id", "seq", "id", "inherited")
        values = {name: value for name, value in new.items() if name not in fixed}
        tx.run(_REPLACE, sid=sid, at=seq, **values)
        tx.run(DROP_PARTS, sid=sid, at=seq)
        tx.forget_rids()
        shared = {
            row.call_id for row in stored if row.type == "tool-result" and _bare(row)
        }
        self._insert_parts(tx, seq, replace(placed, parts=tuple(parts)), shared)
        state = tx.session(sid)
        state.first_new_seq = min(state.first_new_seq or seq, seq)
        if old["inherited"]:
            ownership.mark(tx, sid, seq, 1)
        return {key for key in (old["usage_key"], placed.key) if key}

    def _as_stored(
        self, tx: Transaction, old: PartRow | None, item: PartRow
    ) -> PartRow:
        """Return a part as it is stored if it did not change: a result's text is stored once."""
        if old is None or (old.type, old.call_id) != (item.type, item.call_id):
            return item
        if item.type == "tool" and old.settled and not item.settled:
            names = "status outcome text text_blob time_updated time_ended".split()
            kept = {name: getattr(old, name) for name in names}
            exact = codec.unpack(old.data).get(codec.EXACT)
            if exact is not None and item.data_blob is None:
                data = {**codec.unpack(item.data), codec.EXACT: exact}
                kept["data"] = codec.pack_data(data)
            return item._replace(**kept)
        shared = item.type == "tool-result" and _bare(old)
        if shared and filled_call(tx, self.run.session_id, item):
            return item._replace(text=None, text_blob=None)
        return item

    def _label(self, tx: Transaction, seq: int, name: str) -> None:
        """Take over a label of the source; a name that exists here stays as it is."""
        if tx.one(_LABELLED, sid=self.run.session_id, name=name) is None:
            put_label(tx, self.run.session_id, seq, name)
            self.run.changed = True

    def _count_once(
        self,
        tx: Transaction,
        state: SessionState,
        rows: dict[str, ownership.UsageClass],
    ) -> None:
        """Settle messages with copies, and make the counters that people may see by now."""
        settled = list(rows)
        if self.run.fresh:
            settled = [
                key for (key,) in tx.run(SHARED_KEYS, keys=as_list(settled)).fetchall()
            ]
        touched = ownership.assign_owner(tx, [rows[key] for key in settled])
        if rows and state.time_importing is None:
            touched.add(state.id)
        ownership.recount(tx, touched)


def _dated(item: PartRow, made: int | None) -> PartRow:
    created = made if item.time_created is None else item.time_created
    updated = created if item.time_updated is None else item.time_updated
    return item._replace(time_created=created, time_updated=updated)


def _bare(row: PartRow) -> bool:
    return row.text is None and row.text_blob is None
