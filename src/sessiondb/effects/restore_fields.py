"""The fields of a session and those of a log of it, merged: see `model.versions`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from sqlalchemy import delete, select

from sessiondb import codec
from sessiondb.effects import encode
from sessiondb.effects.ingest import note_model
from sessiondb.effects.paths import nearest
from sessiondb.effects.restore import Restoration
from sessiondb.effects.session import put_label
from sessiondb.effects.transaction import SessionState, Transaction
from sessiondb.effects.versions import (
    agree,
    base_of,
    values_in,
    values_of_row,
    versions_in,
)
from sessiondb.engine.sql import Statement, p, update_of, upsert_text
from sessiondb.model import StoredSession, versions
from sessiondb.model.versions import Version, digest, order
from sessiondb.schema import blob as blob_table
from sessiondb.schema import file_diff, label, message, session, todo
from sessiondb.schema.rows import Blob

#: Field → the columns it is.
_COLUMNS = {
    versions.TITLE: ("title", "title_source"),
    versions.ARCHIVED: ("time_archived",),
    versions.ABOUT: versions.ABOUT_FIELDS,
    versions.SUMMARY: versions.SUMMARY_FIELDS,
    **{name: (name,) for name in versions.PLAIN},
}
_OF_FIELDS = [column for columns in _COLUMNS.values() for column in columns]
_MERGED = (*_OF_FIELDS, "metadata", "data", "data_blob")
_STORED = Statement(
    lambda: select(*(session.c[name] for name in _MERGED)).where(
        session.c.id == p("sid")
    )
)
_MERGE = update_of(session, " ".join(_MERGED), session.c.id == p("sid"))
_BLOB = Statement(
    lambda: select(blob_table.c.data).where(blob_table.c.hash == p("hash"))
)
_SEQ = Statement(
    lambda: select(message.c.seq).where(
        message.c.session_id == p("sid"), message.c.id == p("mid")
    )
)
_DROP_LABEL = Statement(
    lambda: delete(label).where(
        label.c.session_id == p("sid"), label.c.label == p("name")
    )
)
_TODO = tuple(
    "session_id position id content status priority time_created time_updated".split()
)
_CLEAR_TODOS = Statement(lambda: delete(todo).where(todo.c.session_id == p("sid")))
_DIFF = tuple(
    "session_id seq path before_blob after_blob patch additions deletions".split()
)
_DIFF_BLOBS = Statement(
    lambda: select(file_diff.c.before_blob, file_diff.c.after_blob).where(
        file_diff.c.session_id == p("sid")
    )
)
_CLEAR_DIFFS = Statement(
    lambda: delete(file_diff).where(file_diff.c.session_id == p("sid"))
)


@dataclass(frozen=True, slots=True, eq=False)
class LoggedFields:
    """The fields of a session in a log: rows as they are stored, checked.

    ``todos`` are (id, content, status, priority, created, updated), ``diffs`` rows
    without the session's id. ``data`` is packed, also if it is a blob.
    """

    columns: dict[str, Any]
    data: bytes | None
    todos: tuple[tuple[Any, ...], ...]
    diffs: tuple[tuple[Any, ...], ...]
    blobs: tuple[Blob, ...]

    def values(self, of: StoredSession) -> dict[str, Any]:
        """Return the fields that have a value."""
        changed = zip_longest(self.diffs, of.diff_messages[: len(self.diffs)])
        return values_of_row(
            {**self.columns, "data": self.data},
            labels={name: message_id for message_id, name in of.labels},
            todos=[(*row[1:4], row[0], *row[4:6]) for row in self.todos],
            diffs=[(mid, row[1], row[4], *row[2:4], *row[5:7]) for row, mid in changed],
            leaf=of.leaf,
        )

    def versions(
        self, of: StoredSession, values: Mapping[str, Any]
    ) -> dict[str, Version]:
        """Return the versions of the fields that have, or had, a value."""
        own = Version(of.revision, self.columns["time_updated"])
        named = {**dict.fromkeys(values, own), **of.versions}
        return {n: v._replace(digest=digest(values.get(n))) for n, v in named.items()}


@dataclass(slots=True)
class Merge:
    """Takes over each field that is newer in a log."""

    run: Restoration
    log: LoggedFields
    values: dict[str, Any] = field(init=False)
    versions: dict[str, Version] = field(init=False)

    def __post_init__(self) -> None:
        self.values = self.log.values(self.run.stored)
        self.versions = self.log.versions(self.run.stored, self.values)

    def apply(self, tx: Transaction, state: SessionState, full: bool) -> None:
        """Write it; *full*: the log has every message that is here."""
        run = self.run
        here = values_in(tx, state.id)
        known = {} if run.fresh or run.unfinished else versions_in(tx, state.id, here)
        taken = self._newer(here, known)
        merged = {**known, **{name: self.versions[name] for name in taken}}
        if not run.fresh:
            self._set_columns(tx, state, taken)
        for name in sorted(taken):
            if name.startswith(versions.LABEL):
                self._label(
                    tx, state, name.removeprefix(versions.LABEL), self.values.get(name)
                )
        if versions.TODOS in taken:
            self._set_todos(tx, state)
        if versions.DIFFS in taken:
            self._set_diffs(tx, state)
        leaf = self._leaf(tx, state, known, full)
        merged |= {versions.LEAF: leaf} if leaf is not None else {}

        run.changed = run.changed or any(
            here.get(n) != self.values.get(n) for n in taken
        )
        after = values_in(tx, state.id)
        merged = {n: v for n, v in merged.items() if v.digest == digest(after.get(n))}
        merged[versions.SETTLED] = Version(0, 0, digest(after.get(versions.LEAF)))
        if merged != base_of(tx, state.id):
            agree(tx, state.id, merged)

    def _newer(self, here: dict[str, Any], known: dict[str, Version]) -> set[str]:
        """Return the fields of the log that are newer than ours; the leaf is decided apart."""
        run = self.run
        taken: set[str] = set()
        for name in (known.keys() | self.versions.keys()) - {versions.LEAF}:
            mine = order(name, here.get(name), known[name]) if name in known else (-1,)
            version = self.versions.get(name)
            other = (
                (-1,)
                if version is None
                else order(name, self.values.get(name), version)
            )
            if other > mine:
                taken.add(name)
            run.kept = run.kept or mine > other
        return taken

    def _set_columns(
        self, tx: Transaction, state: SessionState, taken: set[str]
    ) -> None:
        old = dict(zip(_MERGED, tx.one(_STORED, sid=state.id), strict=True))
        new = dict(old)
        for name in taken & _COLUMNS.keys():
            new |= {column: self.log.columns[column] for column in _COLUMNS[name]}
        metadata = json.loads(old["metadata"])
        for name in sorted(taken):
            if name.startswith(versions.METADATA):
                key = name.removeprefix(versions.METADATA)
                metadata.pop(key, None)
                metadata |= {key: self.values[name][0]} if name in self.values else {}
        if metadata != json.loads(old["metadata"]):
            new["metadata"] = json.dumps(metadata)
        self._set_data(tx, old, new, versions.DATA in taken)
        if new == old:
            return

        if old["data_blob"] and old["data_blob"] != new["data_blob"]:
            tx.loose.add(old["data_blob"])
        tx.run(_MERGE, sid=state.id, **new)
        tx.session(state.id)
        state.title, state.title_source = new["title"], new["title_source"]
        note_model(tx, state.id, new)
        self.run.changed = True

    def _set_data(
        self, tx: Transaction, old: dict[str, Any], new: dict[str, Any], taken: bool
    ) -> None:
        """Put together what has no column; records of unknown types are those of both sides."""
        mine = _unpacked(tx, old)
        theirs = codec.unpack(self.log.data) if self.log.data else {}
        records = list(mine.get(versions.UNKNOWN, ()))
        records += [
            item for item in theirs.get(versions.UNKNOWN, ()) if item not in records
        ]
        data = dict(theirs if taken else mine)
        data |= {versions.UNKNOWN: records} if records else {}
        if digest(data) == digest(mine):
            return
        blobs: list[Blob] = []
        packed = codec.pack_data(data)
        new["data_blob"] = encode.spill(packed, codec.MSGPACK, blobs)
        new["data"] = None if new["data_blob"] else packed
        tx.insert_blobs(blobs)

    def _label(
        self, tx: Transaction, state: SessionState, name: str, message_id: str | None
    ) -> None:
        if message_id is None:
            tx.run(_DROP_LABEL, sid=state.id, name=name)
        elif row := tx.one(_SEQ, sid=state.id, mid=message_id):
            put_label(tx, state.id, row[0], name)

    def _set_todos(self, tx: Transaction, state: SessionState) -> None:
        tx.run(_CLEAR_TODOS, sid=state.id)
        for place, row in enumerate(self.log.todos):
            times = row[4] or tx.now, row[5] or row[4] or tx.now
            tx.insert(todo, _TODO, (state.id, place, *row[:4], *times))

    def _set_diffs(self, tx: Transaction, state: SessionState) -> None:
        before = tx.run(_DIFF_BLOBS, sid=state.id).fetchall()
        tx.loose.update(name for row in before for name in row if name)
        tx.insert_blobs(self.log.blobs)
        tx.run(_CLEAR_DIFFS, sid=state.id)
        messages = self.run.stored.diff_messages[: len(self.log.diffs)]
        for row, message_id in zip_longest(self.log.diffs, messages):
            found = message_id and tx.one(_SEQ, sid=state.id, mid=message_id)
            where = found[0] if found else 0
            sql = upsert_text(file_diff, _DIFF)
            tx.connection.execute(sql, (state.id, where, *row[1:]))

    def _leaf(
        self,
        tx: Transaction,
        state: SessionState,
        known: dict[str, Version],
        full: bool,
    ) -> Version | None:
        """Move the leaf if the log's holds, and return its version; None is none."""
        run, of = self.run, self.run.stored
        mine, theirs = known.get(versions.LEAF), self.versions.get(versions.LEAF)
        row = None if of.leaf is None else tx.one(_SEQ, sid=state.id, mid=of.leaf)
        wanted = row[0] if row else None
        if run.fresh or run.unfinished:
            state.leaf_seq = (
                run.last[0] if of.leaf is not None and row is None else wanted
            )
            return theirs if row else None
        if theirs is None or (of.leaf is not None and row is None):
            run.kept = run.kept or mine is not None
            return mine

        if mine is None or wanted == state.leaf_seq:
            new = max(theirs, mine or theirs)
        else:
            new = self._chosen(tx, state, wanted, (mine, theirs), full)
        if new.digest == theirs.digest and wanted != state.leaf_seq:
            state.leaf_seq = wanted
            run.changed = True
        run.kept = run.kept or new > theirs
        return new

    def _chosen(
        self,
        tx: Transaction,
        state: SessionState,
        wanted: int | None,
        leaves: tuple[Version, Version],
        full: bool,
    ) -> Version:
        """Return the version of the leaf that wins, if the local and the logged one differ.

        Who works on a branch here is not moved to another one by a merge: such a
        leaf is put in force again, over both, once. Only one that did not move since
        the last merge, or that the other side has seen, follows the order alone.
        """
        run, (mine, theirs) = self.run, leaves
        both = max(run.revision, run.stored.revision) + 1
        settled = base_of(tx, state.id).get(versions.SETTLED)
        moved = settled is None or settled.digest != mine.digest
        here = state.leaf_seq
        if moved and here is not None and wanted is not None:
            if nearest(tx, state.id, wanted, {here}) is not None:
                return theirs if theirs > mine else theirs._replace(revision=both)
            seen = run.stored.revision > run.revision and full
            if theirs > mine and not seen:
                run.changed = True
                return mine._replace(revision=both)
        return max(mine, theirs)


def _unpacked(tx: Transaction, row: dict[str, Any]) -> dict[str, Any]:
    packed = row["data"]
    if row["data_blob"]:
        packed = tx.one(_BLOB, hash=row["data_blob"])[0]
    return codec.unpack(packed) if packed else {}
