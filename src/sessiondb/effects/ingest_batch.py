"""The messages of an import: matched by id, inserted or brought up to date in place."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, func, select, text

from sessiondb import codec
from sessiondb.effects import ownership
from sessiondb.effects.encode import MessageRow, PartRow
from sessiondb.effects.ingest import Entry, Run
from sessiondb.effects.message import MESSAGE, PART, insert_message, insert_part
from sessiondb.effects.results import fill_call
from sessiondb.effects.session import put_label
from sessiondb.effects.transaction import Transaction
from sessiondb.engine.sql import Statement, p, update_of
from sessiondb.schema import message, part

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
            message.c.usage_key.in_(select(func.json_each(p("keys")).table_valued("value").c.value))
        )
        .group_by(message.c.usage_key)
        .having(func.count() > text("1"))
    )
)
_SEQ = Statement(
    lambda: select(message.c.seq).where(message.c.session_id == p("sid"), message.c.id == p("mid"))
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
            created = (
                state.time_created if entry.row.time_created is None else entry.row.time_created
            )
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
                keys.update(
                    {k: ownership.Lost(state.root_id, seq, row.id, created, k) for k in old}
                )
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
        if {**old, "parent_seq": parent} == new and _same_parts(
            parts, entry.parts, row.time_created
        ):
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
            if old[16] != new.data_blob or b"text_exact" in (old[15] or b""):
                new = new._replace(data=old[15], data_blob=old[16])
        if emptied:
            new = new._replace(text=None, text_blob=None)
        if old[4:17] != tuple(new[:13]) or old[19:23] != times:
            return False
    return True
