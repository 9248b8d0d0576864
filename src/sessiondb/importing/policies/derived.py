"""The policy for foreign sources: a session is derived from what its source says now.

A session is known by its source and source id, and its messages by theirs. Places,
turns and usage keys are computed from the run, so they are the same in every import.
The source wins, except over what the user set here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sessiondb import codec, ids
from sessiondb.dataclass import dataclass
from sessiondb.effects import ownership
from sessiondb.effects.message import shortened, write_title
from sessiondb.effects.session import SHARE, free_slug
from sessiondb.effects.session_state import SessionState
from sessiondb.effects.transaction import Transaction
from sessiondb.engine.sql import Statement
from sessiondb.importing.rows import lists
from sessiondb.importing.rows.family import find_cut, move_cuts
from sessiondb.importing.rows.messages import is_bare, seq_by_id
from sessiondb.importing.rows.run import (
    CurrentMessage,
    ImportEntry,
    Placed,
    Run,
    Writing,
)
from sessiondb.importing.rows.same_store import namespace_beside
from sessiondb.importing.rows.session import (
    BY_SOURCE,
    MODEL,
    UNBURY,
    place_below,
    set_columns,
)
from sessiondb.importing.rows.stored_parts import (
    as_stored,
    dated_part,
    files_gone,
    gave_text,
    has_answer,
    is_same_data,
    part_identity,
    with_blobs_of,
    with_stored_usage,
)
from sessiondb.schema.rows import UNKNOWN_TOKENS, PartRow

_IS_TAKEN = Statement("importing.policies.derived.IS_TAKEN")
_FREE_SOURCE = Statement("importing.policies.derived.FREE_SOURCE")
MERGED = (
    "title title_source version agent provider_id model_id model_source "
    "summary_additions summary_deletions summary_files summary_diffs share_url revert "
    "permission metadata time_created time_compacting time_archived data data_blob"
).split()
_STORED = Statement("importing.policies.derived.STORED")
_MERGE = Statement("importing.policies.derived.MERGE")
_RENAME_COPIES = Statement("importing.policies.derived.RENAME_COPIES")
_IMPORTED = Statement("importing.policies.derived.IMPORTED")
CLOSED = "leaf_seq time_updated time_importing parent_seq call_id".split()
_FACTS = Statement("importing.policies.derived.FACTS")
_CLOSE = Statement("importing.policies.derived.CLOSE")
_LAST_TIME = Statement("importing.policies.derived.LAST_TIME")


#: (model_source here, of the source) for which the model here stays: one that the user
#: set wins, and a derived one is derived again when the import ends.
_MODEL_STAYS = {("caller", "source"), ("caller", "derived"), ("derived", "derived")}


@dataclass(slots=True)
class Derived:
    """The rules of a foreign source.

    With *supersedes*, the id of a session that was continued here, the source's state
    becomes a fork of it, which takes over its name and follows the source from then on.
    """

    supersedes: str | None = None
    children_know_id: bool = False
    states_cuts: bool = False
    states_prompts: bool = True
    states_family: bool = True

    # -- the row -------------------------------------------------------------

    def find(self, tx: Transaction, run: Run) -> str | None:
        """Return the session that the source names, with its tombstone lifted."""
        buried = tx.run(UNBURY, **run.name).rowcount > 0

        # Forks that its removal detached name it by its id here.
        self.children_know_id = buried and self.supersedes is None
        if self.supersedes is not None:
            tx.run(_FREE_SOURCE, sid=self.supersedes)

        return _id_of(tx, **run.name)

    def new_row(
        self, tx: Transaction, run: Run, project_id: str | None
    ) -> dict[str, Any]:
        """Return the columns of a new session: its own id, its family, its slug."""
        session_id = run.session_id
        if tx.one(_IS_TAKEN, sid=session_id) is not None:
            # It was continued here; the source's state became a fork that was removed.
            session_id = ids.new_session_id()

        parent = self.supersedes
        relation: str | None = "fork"
        if parent is None:
            parent, relation = self.find_parent(tx, run), run.checked.item.relation
        parent_id, root_id = place_below(tx, run, parent, session_id)
        return {
            "id": session_id,
            "parent_id": parent_id,
            "relation": relation,
            "root_id": root_id,
            "slug": free_slug(tx, project_id, session_id),
            "source_id": run.checked.item.source_id,
            "time_imported": tx.now,
        }

    def update_row(self, tx: Transaction, run: Run) -> None:
        """Take over the columns of the source; what the user set here stays."""
        old = dict(zip(MERGED, tx.one(_STORED, sid=run.session_id), strict=True))
        new = {name: run.checked.columns[name] for name in MERGED}
        new["metadata"] = _merged_metadata(old["metadata"], new["metadata"])

        stays: tuple[str, ...] = ()
        if _title_stays(old, new, run.checked.item.title_source):
            stays += ("title", "title_source")
        if (old["model_source"], new["model_source"]) in _MODEL_STAYS:
            stays += MODEL
        if not _is_archived_since(tx, run, old, new):
            stays += ("time_archived",)
        if run.checked.item.time_created is None and old["time_created"]:
            stays += ("time_created",)

        new.update((name, old[name]) for name in stays)
        set_columns(tx, run, _MERGE, old, new)
        if run.session_id in tx.states:
            tx.states[run.session_id].time_created = new["time_created"]

    def find_parent(self, tx: Transaction, run: Run) -> str | None:
        """Return the parent that the source names; None also before it is imported."""
        parent_name = run.checked.item.parent_source_id
        if parent_name is None or self.supersedes is not None:
            return None

        namespace = namespace_beside(tx, run, parent_name)
        if namespace is None:
            return None
        return _id_of(
            tx, **run.name | {"source_id": parent_name, "namespace": namespace}
        )

    # -- messages ------------------------------------------------------------

    def may_hold_copies(
        self,
        tx: Transaction,  # noqa: ARG002
        state: SessionState,
    ) -> bool:
        """Return whether it is a fork: copies may differ from the original in usage."""
        return state.relation == "fork"

    def place(
        self, writing: Writing, entry: ImportEntry, current: CurrentMessage | None
    ) -> Placed:
        """Compute the place of a message from the records before it."""
        run, row = writing.run, entry.row
        # The record before, unless it names a parent that came before, too.
        parent, turn = run.places.get(entry.parent, run.last)

        # A prompt opens a turn, unless the source has turns of its own.
        turn = row.turn_id or (row.id if row.role == "user" else turn)
        created, completed = row.time_created, row.time_completed
        if created is None:
            created = writing.state.time_created
        if completed is None and not entry.open:
            completed = created

        seq, inherited, key = writing.state.last_seq + 1, 0, None
        name: str | None = codec.readable(entry.usage_id)[0]
        if current is not None:
            seq, inherited = current.columns["seq"], current.columns["inherited"]
            entry = with_blobs_of(writing.tx, current, entry)
            row = with_stored_usage(writing.tx, current, entry)
            # A reader of a copy without its original does not know what it is. One of
            # another kind by now, as a usage that got its answer, is not a copy.
            same = (current.columns["role"], current.columns["kind"]) == (
                row.role,
                row.kind,
            )
            if inherited and same and entry.usage_id == row.id:
                key = current.columns["usage_key"]
            if key is not None:
                name = current.usage_name

        if key is None:
            # Without usage, too: or a prompt would be a copy in one order of imports
            # alone.
            key = codec.usage_key(
                run.checked.item.source,
                entry.usage_id,
                row.model_id,
                None if entry.timeless else created,
                row.tokens,
            )
        if name == (row.response_id or row.id):
            name = row.usage_name
        row = row._replace(
            time_created=created, time_completed=completed, usage_name=name
        )
        if (
            current is not None
            and row.kind == "usage"
            and has_answer(writing, row, seq)
        ):
            row = row._replace(cost=None, tokens=UNKNOWN_TOKENS)
        return Placed(row, entry.parts, seq, parent, turn, key, inherited, True)

    def revise(
        self, writing: Writing, placed: Placed, current: CurrentMessage
    ) -> Placed | None:
        """Return the message of the source if it differs from the stored one."""
        tx, run = writing.tx, writing.run
        stored = current.columns
        # Of another type, or of another call, it is not the same part.
        stored_parts = {part_identity(row): row for row in current.parts}
        parts = tuple(
            as_stored(
                writing, stored_parts.get(part_identity(item)), dated_part(item, placed)
            )
            for item in placed.parts
        )
        parts += tuple(files_gone(tx, current.parts, parts))
        row = placed.row
        if is_same_data(stored["data"], row.data):
            row = row._replace(data=stored["data"])
        placed = placed._replace(row=row, parts=parts)

        current_values = tuple(stored.values()), current.parts
        if (placed.values(run.session_id), parts) == current_values:
            return None

        if stored["usage_key"] not in (None, placed.usage_key):
            tx.run(
                _RENAME_COPIES,
                old=stored["usage_key"],
                usage_key=placed.usage_key,
                usage_name=placed.usage_name,
                mid=placed.row.id,
                at=placed.seq,
            )
        return placed

    def result(
        self,
        writing: Writing,
        placed: Placed,
        item: PartRow,
        current: CurrentMessage | None,
    ) -> PartRow:
        """End the call of a result with its text, if it is the first on the path."""
        # A result without a text never had any to give.
        again = (
            current is not None
            and not is_bare(item)
            and gave_text(current, item.call_id)
        )
        dated = dated_part(item, placed)
        return writing.new_rows.fill_call(placed.parent_seq, dated, again=again)

    # -- the end -------------------------------------------------------------

    def close(self, tx: Transaction, run: Run) -> None:
        """Take over leaf, time and lists of the source; its place in the parent."""
        item, state = run.checked.item, tx.peek(run.session_id)
        run.changed |= lists.replace_changed(tx, run)

        leaf = seq_by_id(tx, state.id, item.leaf)
        if leaf is None:
            # A leaf that the source does not name, or does not have, is the last one.
            leaf = run.last[0]

        parent_id, *old = tx.one(_FACTS, sid=state.id)
        current = dict(zip(CLOSED, old, strict=True))
        call_id = run.checked.columns["call_id"] or current["call_id"]
        new = {
            "leaf_seq": leaf,
            "time_updated": _last_use(tx, run, current["time_updated"]),
            "time_importing": None,
            "parent_seq": _cut_of_parent(
                tx, run, parent_id, call_id, current["parent_seq"]
            ),
            "call_id": call_id,
        }

        if new != current:
            run.changed = True
            tx.run(_CLOSE, sid=state.id, **new)
        self._name_session(tx, run)
        if run.changed:
            tx.session(state.id)
            state.leaf_seq, state.time_updated = leaf, new["time_updated"]
            state.time_importing = None
            run.moved_children = move_cuts(tx, state.id)
        ownership.derive_model(tx, state.id)

    def _name_session(self, tx: Transaction, run: Run) -> None:
        """Name a session that its source does not name by its first prompt."""
        state = tx.peek(run.session_id)
        title = shortened(run.first_typed or "")
        is_named = run.checked.item.title or state.title_source != "derived"
        if title and title != state.title and not is_named:
            run.changed = True
            write_title(tx, state, title)


def _cut_of_parent(
    tx: Transaction,
    run: Run,
    parent_id: str | None,
    call_id: str | None,
    stored_seq: int | None,
) -> int | None:
    """Return the parent's message that a session begins after, or None."""
    if parent_id is None:
        return stored_seq

    stated_seq = seq_by_id(tx, parent_id, run.checked.item.parent_message)
    if stated_seq is not None:
        return stated_seq
    # Found again each time: an earlier import may have had only a part of it.
    cut = find_cut(tx, parent_id, run.session_id, call_id)
    return stored_seq if cut is None else cut


def _id_of(tx: Transaction, **name: str) -> str | None:
    """Return the id of the session that has a name at its source, or None."""
    session_id: str | None = tx.value(BY_SOURCE, **name)
    return session_id


def _last_use(tx: Transaction, run: Run, stored_time: int) -> int:
    """Return when a session was used last: as stated, else its last message."""
    if run.checked.item.time_updated is not None:
        return run.checked.item.time_updated
    last: int | None = tx.value(_LAST_TIME, sid=run.session_id)
    return stored_time if last is None else last


def _title_stays(old: Mapping[str, Any], new: Mapping[str, Any], source: str) -> bool:
    """Return whether the user set the title here, or the source has none to offer.

    A *source* that has one by the first prompt alone took another one back.
    """
    if old["title_source"] == "user":
        return True
    is_taken_back = source == "derived" != old["title_source"]
    return bool(old["title"] and not new["title"] and not is_taken_back)


def _is_archived_since(
    tx: Transaction, run: Run, old: Mapping[str, Any], new: Mapping[str, Any]
) -> bool:
    """Return whether the source archived a session after the last import of it.

    What it archived before, the user may have shown again here.
    """
    archived = new["time_archived"]
    if archived is None or old["time_archived"] is not None:
        return False

    item = run.checked.item
    last: int | None = tx.value(_IMPORTED, source=item.source, path=run.checked.ledger)
    return last is None or archived > last


def _merged_metadata(stored: str, incoming: str) -> str:
    """Return the metadata that a session has from now on: see `Derived`.

    That of the source, unless the user added keys here; its share in any case.
    """
    merged, source_keys = json.loads(stored), json.loads(incoming)
    if merged.keys() - {SHARE} <= source_keys.keys():
        return stored if merged == source_keys else incoming
    if merged.get(SHARE) == source_keys.get(SHARE):
        return stored

    merged.pop(SHARE, None)
    shared = {SHARE: source_keys[SHARE]} if SHARE in source_keys else {}
    return codec.json_text(merged | shared, "metadata")
