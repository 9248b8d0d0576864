"""The fields of a session in rows, and their merge base: see `model.versions`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sessiondb import codec
from sessiondb.dataclass import dataclass
from sessiondb.effects.session import SHARE
from sessiondb.effects.transaction import Transaction
from sessiondb.engine.sql import Statement, upsert_text
from sessiondb.model import versions
from sessiondb.model.versions import Version
from sessiondb.schema.rows import MERGE_BASE

VERSIONED = (
    "title", "title_source", "metadata", "time_archived", *versions.PLAIN,
    *versions.ABOUT_FIELDS, *versions.SUMMARY_FIELDS, "data",
)  # fmt: skip
_JSON = ("metadata", "revert", "permission", "summary_diffs")
_ROW = Statement("effects.versions.ROW")
_LABELS = Statement("effects.versions.LABELS")
_TODOS = Statement("effects.versions.TODOS")
_DIFFS = Statement("effects.versions.DIFFS")
_ID = Statement("effects.versions.ID")
_BASE = Statement("effects.versions.BASE")


def values_in(tx: Transaction, session_id: str) -> dict[str, Any]:
    """Return the fields of a session that have a value."""
    leaf_seq = tx.peek(session_id).leaf_seq
    leaf = None if leaf_seq is None else tx.one(_ID, sid=session_id, at=leaf_seq)
    *columns, size, encoding, large = tx.one(_ROW, sid=session_id)
    if large is not None:
        columns[-1] = codec.content_of_blob(size, encoding, large)
    return values_of_row(
        dict(zip(VERSIONED, columns, strict=True)),
        labels=dict(tx.run(_LABELS, sid=session_id).fetchall()),
        todos=tx.run(_TODOS, sid=session_id).fetchall(),
        diffs=tx.run(_DIFFS, sid=session_id).fetchall(),
        leaf=None if leaf is None else leaf[0],
    )


def values_of_row(
    columns: Mapping[str, Any],
    *,
    labels: Mapping[str, str],
    todos: Iterable[Sequence[Any]],
    diffs: Iterable[Sequence[Any]],
    leaf: str | None,
) -> dict[str, Any]:
    """Return the fields that *columns* and rows of lists have; ``data`` is packed.

    A todo is (content, status, priority, id, created, updated), a diff (id of its
    message, path, patch, before, after, additions, deletions).
    """
    row = {**columns}
    for name in _JSON:
        if row[name] is not None:
            row[name] = json.loads(row[name])

    metadata = dict(row["metadata"])
    # The secret of a share stays in its database.
    metadata.pop(SHARE, None)
    data = codec.unpack(row["data"])
    data.pop(versions.UNKNOWN, None)
    return versions.values_of(
        title=(row["title"], row["title_source"]),
        metadata=metadata,
        labels=labels,
        todos=[list(item) for item in todos],
        diffs=sorted(map(_diff_columns, diffs), key=repr),
        about=versions.about_of(row),
        summary=tuple(row[name] for name in versions.SUMMARY_FIELDS),
        data=data,
        archived=row["time_archived"],
        leaf=leaf,
        **{name: row[name] for name in versions.PLAIN},
    )


def _diff_columns(row: Sequence[Any]) -> list[Any]:
    message_id, path, patch, *others = row
    if patch is not None:
        patch = hashlib.sha256(patch.encode("utf-8", "surrogatepass")).hexdigest()
    return [message_id, path, patch, *others]


def base_of(tx: Transaction, session_id: str) -> dict[str, Version]:
    """Return the merge base of a session, empty if it was never merged with a log."""
    row = tx.one(_BASE, sid=session_id)
    return versions.decoded(row and row[0])


def versions_in(
    tx: Transaction, session_id: str, values: Mapping[str, Any]
) -> dict[str, Version]:
    """Return the version of each field of a session that has, or had, a value."""
    state = tx.peek(session_id)
    base = base_of(tx, session_id)
    return versions.versions_of(values, base, state.revision, state.time_updated)


def agree(tx: Transaction, session_id: str, base: Mapping[str, Version]) -> None:
    """Make *base* the merge base of a session."""
    sql = upsert_text("merge_base", MERGE_BASE)
    tx.connection.execute(sql, (session_id, versions.encoded(base)))


@dataclass(frozen=True, slots=True, eq=False)
class NoteVersions:
    """Make the versions of now the merge base of a session: a log holds them."""

    verb = "sync"
    session_id: str

    def apply(self, tx: Transaction) -> None:
        """Apply it; a session that is gone is left alone."""
        if not tx.exists(self.session_id):
            return

        current = versions_in(tx, self.session_id, values_in(tx, self.session_id))
        base = base_of(tx, self.session_id)
        # Only a merge moves it: see `model.versions.SETTLED`.
        if versions.SETTLED in base:
            current[versions.SETTLED] = base[versions.SETTLED]

        agree(tx, self.session_id, current)
