"""The fields of a session and those of a log of it, merged: see `model.versions`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import chain, repeat
from typing import Any

from sessiondb import codec
from sessiondb.dataclass import dataclass
from sessiondb.effects import encode
from sessiondb.effects.calls import data_of
from sessiondb.effects.paths import nearest
from sessiondb.effects.session import put_label
from sessiondb.effects.session_state import SessionState
from sessiondb.effects.transaction import Transaction
from sessiondb.effects.versions import (
    agree,
    base_of,
    values_in,
    values_of_row,
    versions_in,
)
from sessiondb.engine.sql import Statement
from sessiondb.importing.rows.lists import write_diffs, write_todos
from sessiondb.importing.rows.messages import seq_by_id
from sessiondb.importing.rows.run import Run
from sessiondb.importing.rows.session import set_columns
from sessiondb.model import StoredSession, versions
from sessiondb.model.versions import Version, digest, order
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
MERGED = (*_OF_FIELDS, "metadata", "data", "data_blob")
_STORED = Statement("importing.policies.fields.STORED")
_MERGE = Statement("importing.policies.fields.MERGE")
_DROP_LABEL = Statement("importing.policies.fields.DROP_LABEL")
_UNSETTLED = Version(0, 0)
#: Less than the order of any value: a side that does not have a field.
_NONE = (-1,)


@dataclass(slots=True)
class Fields:
    """Takes over each field that is newer in a log.

    *new*: an import made this session, so the log wins every field. *complete*: the log
    has every message of the session in this database. ``revision`` is the local
    one before the run. ``has_more``: a field here is newer than, or missing from, the
    log.
    """

    tx: Transaction
    run: Run
    state: SessionState
    logged: StoredSession
    revision: int
    is_new: bool
    complete: bool
    has_more: bool = False
    values: dict[str, Any] = field(init=False)
    versions: dict[str, Version] = field(init=False)

    def __post_init__(self) -> None:
        self.values = self._stated_values()
        of_session = Version(
            self.logged.revision, self.run.checked.columns["time_updated"]
        )
        all_versions = {
            **dict.fromkeys(self.values, of_session),
            **self.logged.versions,
        }
        self.versions = {
            name: version._replace(digest=digest(self.values.get(name)))
            for name, version in all_versions.items()
        }

    def _stated_values(self) -> dict[str, Any]:
        """Return the fields that have a value in the log."""
        checked, logged = self.run.checked, self.logged

        diffs = []
        for message_id, row in self._diffs_of_log():
            _, path, before_blob, after_blob, patch, *counts = row
            diffs.append((message_id, path, patch, before_blob, after_blob, *counts))

        todos = []
        for todo_id, content, status, priority, *times in self._stated_todos():
            todos.append((content, status, priority, todo_id, *times))

        return values_of_row(
            {**checked.columns, "data": checked.data},
            labels={name: message_id for message_id, name in logged.labels},
            todos=todos,
            diffs=diffs,
            leaf=logged.leaf,
        )

    def _stated_todos(self) -> Sequence[tuple[Any, ...]]:
        return self.run.checked.todos or ()

    def _diffs_of_log(self) -> Iterator[tuple[str | None, tuple[Any, ...]]]:
        """Yield each diff of the log with the id of its message, or None."""
        diffs = self.run.checked.diffs or ()
        names = chain(self.logged.diff_messages, repeat(None))
        yield from zip(names, diffs, strict=False)

    def merge(self) -> None:
        """Write every field that is newer in the log, and the new merge base."""
        tx, sid = self.tx, self.state.id
        stored = values_in(tx, sid)
        stored_versions = {} if self.is_new else versions_in(tx, sid, stored)

        taken = self._newer_fields(stored, stored_versions)
        if not self.run.created:
            self._set_columns(taken)
        self._set_labels(taken)
        self._set_lists(taken)

        for name in taken:
            if stored.get(name) != self.values.get(name):
                self.run.changed = True

        agreed = {**stored_versions, **{name: self.versions[name] for name in taken}}
        leaf = self._merge_leaf(stored_versions.get(versions.LEAF))
        if leaf is not None:
            agreed[versions.LEAF] = leaf
        self._agree_on(agreed)

    def _agree_on(self, agreed: Mapping[str, Version]) -> None:
        """Make the versions of the fields that hold now the merge base."""
        tx, sid = self.tx, self.state.id
        values = values_in(tx, sid)
        base = {
            name: version
            for name, version in agreed.items()
            if version.digest == digest(values.get(name))
        }
        base[versions.SETTLED] = Version(0, 0, digest(values.get(versions.LEAF)))
        if base != base_of(tx, sid):
            agree(tx, sid, base)

    def _newer_fields(
        self, stored: Mapping[str, Any], stored_versions: Mapping[str, Version]
    ) -> list[str]:
        """Return the fields that are newer in the log; the leaf is decided apart."""
        taken = []
        for name in sorted(
            (stored_versions.keys() | self.versions.keys()) - {versions.LEAF}
        ):
            stored_order = _order_of(name, stored, stored_versions)
            logged_order = _order_of(name, self.values, self.versions)
            if stored_order > logged_order:
                self.has_more = True
            elif logged_order > stored_order:
                taken.append(name)
        return taken

    # -- columns and lists ---------------------------------------------------

    def _set_columns(self, taken: Iterable[str]) -> None:
        columns = self.run.checked.columns
        old = dict(zip(MERGED, self.tx.one(_STORED, sid=self.state.id), strict=True))

        new = dict(old)
        for name in taken:
            for column in _COLUMNS.get(name, ()):
                new[column] = columns[column]
        self._set_metadata(old, new, taken)
        self._set_data(old, new, versions.DATA in taken)

        if set_columns(self.tx, self.run, _MERGE, old, new):
            self.tx.session(self.state.id)
            self.state.title = new["title"]
            self.state.title_source = new["title_source"]

    def _set_metadata(
        self, old: dict[str, Any], new: dict[str, Any], taken: Iterable[str]
    ) -> None:
        metadata = json.loads(old["metadata"])
        stored = dict(metadata)

        for name, key in _names_of_kind(taken, versions.METADATA):
            # A key without a value was taken away on the other side.
            metadata.pop(key, None)
            if name in self.values:
                (metadata[key],) = self.values[name]

        if metadata != stored:
            new["metadata"] = json.dumps(metadata)

    def _set_data(self, old: dict[str, Any], new: dict[str, Any], taken: bool) -> None:
        """Merge what has no column; the unknown records of both sides are kept."""
        stored = data_of(self.tx, old["data"], old["data_blob"])
        logged = codec.unpack(self.run.checked.data)
        records = list(stored.get(versions.UNKNOWN, ()))
        for item in logged.get(versions.UNKNOWN, ()):
            if item not in records:
                records.append(item)

        data = dict(logged if taken else stored)
        if records:
            data[versions.UNKNOWN] = records
        # Digests, because equal values of MessagePack may be of different types.
        if digest(data) == digest(stored):
            return

        blobs: list[Blob] = []
        packed = codec.pack_data(data)
        new["data"], new["data_blob"] = encode.spill(packed, codec.MSGPACK, blobs)
        self.tx.insert_blobs(self.state.id, blobs)

    def _set_labels(self, taken: Iterable[str]) -> None:
        sid = self.state.id
        for field_name, name in _names_of_kind(taken, versions.LABEL):
            message_id = self.values.get(field_name)
            seq = seq_by_id(self.tx, sid, message_id)
            if seq is not None:
                put_label(self.tx, sid, seq, name)
            elif message_id is None:
                self.tx.run(_DROP_LABEL, sid=sid, name=name)

    def _set_lists(self, taken: Iterable[str]) -> None:
        tx, sid = self.tx, self.state.id
        if versions.TODOS in taken:
            write_todos(tx, sid, self._stated_todos())

        if versions.DIFFS in taken:
            rows = []
            for message_id, (_, *columns) in self._diffs_of_log():
                # The seq of the message may be another one here than in the log.
                rows.append((seq_by_id(tx, sid, message_id) or 0, *columns))
            write_diffs(tx, self.run, rows)

    # -- the leaf ------------------------------------------------------------

    def _merge_leaf(self, stored: Version | None) -> Version | None:
        """Move the leaf if the log's holds; return its version, or None."""
        state, logged = self.state, self.versions.get(versions.LEAF)
        wanted = seq_by_id(self.tx, state.id, self.logged.leaf)

        # A damaged log may name a message that it does not have.
        lost = self.logged.leaf is not None and wanted is None
        if self.is_new:
            state.leaf_seq = self.run.last[0] if lost else wanted
            return None if wanted is None else logged
        if logged is None or lost:
            if stored is not None:
                self.has_more = True
            return stored

        new = logged if stored is None else self._better_leaf(wanted, stored, logged)
        if new.digest == logged.digest and wanted != state.leaf_seq:
            state.leaf_seq = wanted
            self.run.changed = True

        if new > logged:
            self.has_more = True
        return new

    def _better_leaf(
        self, wanted: int | None, stored: Version, logged: Version
    ) -> Version:
        """Return the version of the leaf that holds, the local one or that of the log.

        A user who works on a branch here is not moved to another one by a merge: such a
        leaf gets a revision above both, once. Only one that did not move since
        the last merge, or that the other side has seen, follows the order alone.
        """
        newest, leaf = max(stored, logged), self.state.leaf_seq
        base = base_of(self.tx, self.state.id)
        # Without a merge before, the leaf counts as moved.
        moved = base.get(versions.SETTLED, _UNSETTLED).digest != stored.digest
        if not moved or leaf is None or wanted in (None, leaf):
            return newest

        again = max(self.revision, self.logged.revision) + 1
        if nearest(self.tx, self.state.id, wanted, {leaf}) is not None:
            # Theirs continues the branch that the user is on.
            return logged if logged > stored else logged._replace(revision=again)
        seen = self.logged.revision > self.revision and self.complete
        if newest is stored or seen:
            return newest
        self.run.changed = True
        return stored._replace(revision=again)


def _names_of_kind(fields: Iterable[str], kind: str) -> Iterator[tuple[str, str]]:
    """Yield the fields of one kind, each with the name that it has within its kind."""
    for name in fields:
        if name.startswith(kind):
            yield name, name.removeprefix(kind)


def _order_of(
    name: str, values: Mapping[str, Any], known_versions: Mapping[str, Version]
) -> tuple[Any, ...]:
    if name not in known_versions:
        return _NONE
    return order(name, values.get(name), known_versions[name])
