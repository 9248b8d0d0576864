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
from sessiondb.effects.imports.lists import write_diffs, write_todos
from sessiondb.effects.imports.messages import seq_by_id
from sessiondb.effects.imports.run import Run
from sessiondb.effects.imports.session import refresh_model
from sessiondb.effects.paths import nearest
from sessiondb.effects.session import put_label
from sessiondb.effects.transaction import SessionState, Transaction
from sessiondb.effects.versions import (
    agree,
    base_of,
    values_in,
    values_of_row,
    versions_in,
)
from sessiondb.engine.sql import Statement, p, update_of
from sessiondb.model import StoredSession, versions
from sessiondb.model.versions import Version, digest, order
from sessiondb.schema import blob as blob_table
from sessiondb.schema import label, session
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
_DROP_LABEL = Statement(
    lambda: delete(label).where(
        label.c.session_id == p("sid"), label.c.label == p("name")
    )
)
#: Less than the order of any value: a side that does not have a field.
_NONE = (-1,)


@dataclass(slots=True)
class Fields:
    """Takes over each field that is newer in a log.

    *new*: this session is not older than the run, so nothing of it is kept against the
    log. ``kept``: something of this session is newer than, or missing from, the log.
    """

    run: Run
    of: StoredSession
    revision: int
    new: bool
    kept: bool = False
    values: dict[str, Any] = field(init=False)
    versions: dict[str, Version] = field(init=False)

    def __post_init__(self) -> None:
        self.values = self._values()
        own = Version(self.of.revision, self.run.given.columns["time_updated"])
        named = {**dict.fromkeys(self.values, own), **self.of.versions}
        self.versions = {
            name: version._replace(digest=digest(self.values.get(name)))
            for name, version in named.items()
        }

    def _values(self) -> dict[str, Any]:
        """Return the fields that have a value in the log."""
        given, of = self.run.given, self.of
        diffs = given.diffs or ()
        changed = zip_longest(diffs, of.diff_messages[: len(diffs)])
        return values_of_row(
            {**given.columns, "data": given.data},
            labels={name: message_id for message_id, name in of.labels},
            todos=[(*row[1:4], row[0], *row[4:6]) for row in given.todos or ()],
            diffs=[(mid, row[1], row[4], *row[2:4], *row[5:7]) for row, mid in changed],
            leaf=of.leaf,
        )

    def merge(self, tx: Transaction, state: SessionState, complete: bool) -> None:
        """Write it; *complete*: the log has every message that is here."""
        run = self.run
        here = values_in(tx, state.id)
        known = {} if self.new else versions_in(tx, state.id, here)
        taken = self._newer(here, known)
        if not run.made:
            self._set_columns(tx, state, taken)
        self._set_labels(tx, state, taken)
        if versions.TODOS in taken:
            write_todos(tx, state.id, run.given.todos or ())
        if versions.DIFFS in taken:
            write_diffs(tx, run, self._diffs(tx, state))

        agreed = {**known, **{name: self.versions[name] for name in taken}}
        leaf = self._leaf(tx, state, known, complete)
        if leaf is not None:
            agreed[versions.LEAF] = leaf
        differs = (here.get(name) != self.values.get(name) for name in taken)
        run.changed = run.changed or any(differs)
        self._agree(tx, state, agreed)

    def _agree(
        self, tx: Transaction, state: SessionState, agreed: dict[str, Version]
    ) -> None:
        """Make the versions of the fields that hold now the merge base."""
        after = values_in(tx, state.id)
        base = {
            name: version
            for name, version in agreed.items()
            if version.digest == digest(after.get(name))
        }
        base[versions.SETTLED] = Version(0, 0, digest(after.get(versions.LEAF)))
        if base != base_of(tx, state.id):
            agree(tx, state.id, base)

    def _newer(
        self, here: Mapping[str, Any], known: Mapping[str, Version]
    ) -> list[str]:
        """Return the fields of the log that are newer than ours; the leaf is decided apart."""
        taken = []
        for name in sorted((known.keys() | self.versions.keys()) - {versions.LEAF}):
            mine = _order(name, here, known)
            theirs = _order(name, self.values, self.versions)
            if theirs > mine:
                taken.append(name)
            self.kept = self.kept or mine > theirs
        return taken

    def _set_columns(
        self, tx: Transaction, state: SessionState, taken: list[str]
    ) -> None:
        old = dict(zip(_MERGED, tx.one(_STORED, sid=state.id), strict=True))
        new = dict(old)
        metadata = json.loads(old["metadata"])
        for name in taken:
            columns = _COLUMNS.get(name, ())
            new.update({column: self.run.given.columns[column] for column in columns})
            if name.startswith(versions.METADATA):
                self._set_metadata(metadata, name)
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
        refresh_model(tx, state.id, new)
        self.run.changed = True

    def _set_metadata(self, metadata: dict[str, Any], name: str) -> None:
        key = name.removeprefix(versions.METADATA)
        metadata.pop(key, None)
        if name in self.values:
            metadata[key] = self.values[name][0]

    def _set_data(
        self, tx: Transaction, old: dict[str, Any], new: dict[str, Any], taken: bool
    ) -> None:
        """Put together what has no column; records of unknown types are those of both sides."""
        mine = _unpacked(tx, old)
        packed = self.run.given.data
        theirs = codec.unpack(packed) if packed else {}
        records = list(mine.get(versions.UNKNOWN, ()))
        for item in theirs.get(versions.UNKNOWN, ()):
            if item not in records:
                records.append(item)
        data = dict(theirs if taken else mine)
        if records:
            data[versions.UNKNOWN] = records
        if digest(data) == digest(mine):
            return

        blobs: list[Blob] = []
        packed = codec.pack_data(data)
        new["data_blob"] = encode.spill(packed, codec.MSGPACK, blobs)
        new["data"] = None if new["data_blob"] else packed
        tx.insert_blobs(blobs)

    def _set_labels(
        self, tx: Transaction, state: SessionState, taken: list[str]
    ) -> None:
        for field_name in taken:
            if not field_name.startswith(versions.LABEL):
                continue
            name = field_name.removeprefix(versions.LABEL)
            message_id = self.values.get(field_name)
            seq = seq_by_id(tx, state.id, message_id)
            if message_id is None:
                tx.run(_DROP_LABEL, sid=state.id, name=name)
            elif seq is not None:
                put_label(tx, state.id, seq, name)

    def _diffs(self, tx: Transaction, state: SessionState) -> list[tuple[Any, ...]]:
        """Return the diffs of the log with the seqs that their messages have here."""
        diffs = self.run.given.diffs or ()
        messages = self.of.diff_messages[: len(diffs)]
        return [
            (seq_by_id(tx, state.id, message_id) or 0, *row[1:])
            for row, message_id in zip_longest(diffs, messages)
        ]

    # -- the leaf ------------------------------------------------------------

    def _leaf(
        self,
        tx: Transaction,
        state: SessionState,
        known: Mapping[str, Version],
        complete: bool,
    ) -> Version | None:
        """Move the leaf if the log's holds, and return its version; None without one."""
        wanted = seq_by_id(tx, state.id, self.of.leaf)
        # A damaged log may name a message that it does not have.
        lost = self.of.leaf is not None and wanted is None
        mine, theirs = known.get(versions.LEAF), self.versions.get(versions.LEAF)
        if self.new:
            state.leaf_seq = self.run.last[0] if lost else wanted
            return None if wanted is None else theirs
        if theirs is None or lost:
            self.kept = self.kept or mine is not None
            return mine

        new = self._better(tx, state, wanted, (mine, theirs), complete)
        if new.digest == theirs.digest and wanted != state.leaf_seq:
            state.leaf_seq = wanted
            self.run.changed = True
        self.kept = self.kept or new > theirs
        return new

    def _better(
        self,
        tx: Transaction,
        state: SessionState,
        wanted: int | None,
        leaves: tuple[Version | None, Version],
        complete: bool,
    ) -> Version:
        """Return the version of the leaf that holds, the local one or that of the log."""
        mine, theirs = leaves
        if mine is None:
            return theirs
        if wanted == state.leaf_seq:
            return max(mine, theirs)
        return self._chosen(tx, state, wanted, (mine, theirs), complete)

    def _chosen(
        self,
        tx: Transaction,
        state: SessionState,
        wanted: int | None,
        leaves: tuple[Version, Version],
        complete: bool,
    ) -> Version:
        """Return the version of the leaf that wins, if the local and the logged one differ.

        A user who works on a branch here is not moved to another one by a merge: such a
        leaf is put in force again, over both, once. Only one that did not move since
        the last merge, or that the other side has seen, follows the order alone.
        """
        mine, theirs = leaves
        settled, here = base_of(tx, state.id).get(versions.SETTLED), state.leaf_seq
        moved = settled is None or settled.digest != mine.digest
        if not moved or here is None or wanted is None:
            return max(mine, theirs)

        both = max(self.revision, self.of.revision) + 1
        if nearest(tx, state.id, wanted, {here}) is not None:
            return theirs if theirs > mine else theirs._replace(revision=both)
        seen = self.of.revision > self.revision and complete
        if theirs > mine and not seen:
            self.run.changed = True
            return mine._replace(revision=both)
        return max(mine, theirs)


def _order(
    name: str, values: Mapping[str, Any], known: Mapping[str, Version]
) -> tuple[Any, ...]:
    if name not in known:
        return _NONE
    return order(name, values.get(name), known[name])


def _unpacked(tx: Transaction, row: Mapping[str, Any]) -> dict[str, Any]:
    packed = row["data"]
    if row["data_blob"]:
        packed = tx.one(_BLOB, hash=row["data_blob"])[0]
    return codec.unpack(packed) if packed else {}
