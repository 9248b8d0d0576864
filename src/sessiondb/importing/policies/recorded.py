"""The policy for sessiondb's logs: rows as they were, two states of a session joined.

A session that does not exist becomes the same rows. An existing one is found by its id;
its messages are joined by theirs, so a branch from each side stays. Of what both sides
have, one holds by an order that both agree on: of the fields of a session the one with
the greater version (`model.versions`), of a message the one that is more finished.
Nothing is removed because it is missing from a file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, NamedTuple, TypeVar

from sessiondb import codec
from sessiondb.dataclass import dataclass
from sessiondb.effects import ownership
from sessiondb.effects.calls import data_of, filled_call
from sessiondb.effects.project import ProjectPlace, project_of
from sessiondb.effects.session import free_slug, slug_holder
from sessiondb.effects.session_state import SessionState
from sessiondb.effects.transaction import Transaction
from sessiondb.engine.sql import Statement
from sessiondb.importing.beside.prompts import prompt_row
from sessiondb.importing.policies.fields import Fields
from sessiondb.importing.rows.family import match_cut
from sessiondb.importing.rows.messages import seq_by_id
from sessiondb.importing.rows.run import (
    CurrentMessage,
    ImportEntry,
    Placed,
    Run,
    Writing,
)
from sessiondb.importing.rows.session import BY_SOURCE, UNBURY, place_below
from sessiondb.model import StoredSession
from sessiondb.places import stored
from sessiondb.schema.rows import PROMPT, MessageRow, PartRow

Dated = TypeVar("Dated", MessageRow, PartRow)

_IS_HERE = Statement("importing.policies.recorded.IS_HERE")
_BEFORE = Statement("importing.policies.recorded.BEFORE")
_FORKED = Statement("importing.policies.recorded.FORKED")
_LINKS = Statement("importing.policies.recorded.LINKS")
_COUNT = Statement("importing.policies.recorded.COUNT")
_RELINK = Statement("importing.policies.recorded.RELINK")
_ID = Statement("effects.versions.ID")
_LIST = Statement("importing.policies.recorded.LIST")
_PROMPT_OF = Statement("importing.policies.recorded.PROMPT_OF")
_OWN_PROMPT = Statement("importing.policies.recorded.OWN_PROMPT")
_EXACT = codec.EXACT.encode()
#: Later than any time in Unix ms.
_NEVER = 1 << 62


class LoggedPrompt(NamedTuple):
    """A line of the prompt history; *place* None: it is of the session's project."""

    id: str
    text: str
    directory: str | None
    place: ProjectPlace | None
    source: str
    time: int


@dataclass(slots=True)
class Recorded:
    """The rules of a log: a record says its own place.

    ``unfinished``: an earlier import of the session ended in the middle. ``revision``
    is the local one before this run; ``has_more``: something here is missing from the
    file. ``pending`` are (id, id of the parent) of messages whose parent comes later,
    ``moved`` of messages that are here, with another parent;
    ``exact`` says of blobs of the message at hand whether they hold an exact text.
    """

    stored: StoredSession
    prompts: tuple[LoggedPrompt, ...] = ()
    unfinished: bool = False
    revision: int = 0
    has_more: bool = False
    pending: dict[str, str | None] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)
    exact: dict[str, bool] = field(default_factory=dict)
    children_know_id: bool = True
    states_cuts: bool = True
    states_prompts: bool = False
    states_family: bool = False

    # -- the row -------------------------------------------------------------

    def find(self, tx: Transaction, run: Run) -> str | None:
        """Return the session by its id, else by the name that it has at its source."""
        item, logged = run.checked.item, self.stored
        name, namespace = logged.buried_as(item.source_id, item.namespace)
        lifted = tx.run(UNBURY, source=item.source, source_id=name, namespace=namespace)
        buried = lifted.rowcount > 0

        session_id: str | None = tx.value(_IS_HERE, sid=logged.id)
        # One that was removed here is restored, also if a new one has its name.
        if not (session_id or logged.native or buried):
            session_id = tx.value(BY_SOURCE, **run.name)
        if session_id is None:
            return None

        self.revision, importing = tx.one(_BEFORE, sid=session_id)
        self.unfinished = importing is not None
        return session_id

    def new_row(
        self, tx: Transaction, run: Run, project_id: str | None
    ) -> dict[str, Any]:
        """Return the columns that the log states, as far as they are free here."""
        item, logged = run.checked.item, self.stored
        parent_name, known_parent = item.parent_source_id, self.find_parent(tx, run)
        parent_id, root_id = place_below(
            tx, run, known_parent, logged.root_id or logged.id
        )
        if parent_id is None:
            # Until it comes: see `LinkFamilies`.
            parent_name = parent_name or logged.parent_id

        # Of two sessions that one source knows by one name the first keeps it.
        has_name = not logged.native and tx.value(BY_SOURCE, **run.name) is None
        return {
            "id": logged.id,
            "parent_id": parent_id,
            "parent_seq": logged.parent_seq,
            "parent_source_id": parent_name,
            "root_id": root_id,
            "slug": self._free_slug(tx, project_id),
            "source_id": item.source_id if has_name else None,
            "time_imported": logged.time_imported,
        }

    def _free_slug(self, tx: Transaction, project_id: str | None) -> str:
        slug = self.stored.slug
        if slug is None or slug_holder(tx, project_id, slug) is not None:
            return free_slug(tx, project_id, self.stored.id)
        return slug

    def update_row(self, tx: Transaction, run: Run) -> None:
        """Leave the row alone: its fields are merged by their versions at the end."""

    def find_parent(self, tx: Transaction, run: Run) -> str | None:  # noqa: ARG002
        """Return the parent by its id; None also before it is imported."""
        logged = self.stored
        if logged.parent_id in (None, logged.id):
            return None
        parent_id: str | None = tx.value(_IS_HERE, sid=logged.parent_id)
        return parent_id

    # -- messages ------------------------------------------------------------

    def may_hold_copies(self, tx: Transaction, state: SessionState) -> bool:
        """Return whether the family has a fork, whose copies may be counted by now."""
        return tx.value(_FORKED, root=state.root_id) is not None

    def place(
        self, writing: Writing, entry: ImportEntry, current: CurrentMessage | None
    ) -> Placed:
        """Return the place that a message had, with another seq if that is taken."""
        row, logged = entry.row, entry.stored
        assert logged is not None, "a message of a log has a place"
        # They are stored only if the message is written, which depends on them.
        self.exact = {
            blob.hash: _has_exact(codec.content_of_blob(*blob[1:]))
            for blob in entry.blobs
            if blob.encoding.startswith(codec.MSGPACK)
        }

        if current is None:
            seq, inherited = (
                max(logged.seq, writing.state.last_seq + 1),
                int(logged.inherited),
            )
            parent = self._parent_seq(writing, row.id, entry.parent)
        else:
            seq, inherited = current.columns["seq"], current.columns["inherited"]
            parent = current.columns["parent_seq"]
            self._compare_parent(writing, row.id, entry.parent, parent)

        row, parts = _date_message(row, entry.parts, writing.state.time_created)
        # Of an open message, search indexes only the settled parts.
        complete = row.time_completed is not None
        return Placed(
            row,
            parts,
            seq,
            parent,
            row.turn_id,
            logged.usage_key,
            inherited,
            complete,
        )

    def _parent_seq(self, writing: Writing, child: str, name: str | None) -> int | None:
        tx, run = writing.tx, writing.run
        if name in run.places:
            return run.places[name][0]
        seq = None if run.fresh else seq_by_id(tx, run.session_id, name)
        if seq is None:
            # It comes later, or never: until the end it is the message before.
            # By id: in an attempt that is repeated its seq may be another one.
            self.pending[child] = name
            seq = run.last[0]
        return seq

    def _compare_parent(
        self, writing: Writing, child: str, name: str | None, parent_seq: int | None
    ) -> None:
        """Remember a message that another one precedes in the log."""
        if name is None:
            return
        place = writing.run.places.get(name)
        if place is None or place[0] != parent_seq:
            self.moved[child] = name

    def revise(
        self, writing: Writing, placed: Placed, current: CurrentMessage
    ) -> Placed | None:
        """Return the message of the log if it is more finished than the stored one."""
        stored = current.columns
        logged = dict(zip(stored, placed.values(writing.state.id), strict=True))

        new, old = (
            self._comparable_parts(writing.tx, placed.parts),
            self._comparable_parts(writing.tx, current.parts),
        )
        if (logged, new) == (stored, old):
            return None
        if _weight_of_state(logged, new) < _weight_of_state(stored, old):
            self.has_more = True
            return None
        return placed

    def result(
        self,
        writing: Writing,
        placed: Placed,  # noqa: ARG002
        item: PartRow,
        current: CurrentMessage | None,  # noqa: ARG002
    ) -> PartRow:
        """Return a result without a text that SQLite cannot show, if its call has it.

        Such a text is recognised by its exact form, also if it is stored with the call.
        """
        if not self._is_exact(writing.tx, item):
            return item
        writing.new_rows.write()
        if filled_call(writing.tx, writing.state.id, item):
            return item._replace(text=None, text_blob=None)
        return item

    def _is_exact(self, tx: Transaction, row: PartRow) -> bool:
        """Return whether a result's exact text is in its data."""
        if row.type != "tool-result":
            return False
        # Beside data of its own, a blob is the content of a file.
        if row.data is not None or row.data_blob is None:
            return _has_exact(row.data)

        if row.data_blob not in self.exact:
            data = data_of(tx, None, row.data_blob)
            self.exact[row.data_blob] = codec.EXACT in data
        return self.exact[row.data_blob]

    def _comparable_parts(
        self, tx: Transaction, parts: Iterable[PartRow]
    ) -> list[PartRow]:
        """Return parts in the form that is compared: a row may state a fact twice."""
        shown = []
        for row in parts:
            alike = row._replace(time_updated=row.time_updated or row.time_created)
            if self._is_exact(tx, row):
                alike = alike._replace(text=None, text_blob=None)
            shown.append(alike)
        return shown

    # -- the end -------------------------------------------------------------

    def close(self, tx: Transaction, run: Run) -> None:
        """Merge the fields of both sides by their versions, and list the session."""
        state = tx.peek(run.session_id)
        self._link_messages(tx, run, state)

        # Nothing is removed because it is missing from a file, but the file is behind.
        complete = tx.value(_COUNT, sid=state.id) == run.messages
        if run.created:
            match_cut(tx, state.id)

        new, logged = self._is_new(run), self.stored
        fields = Fields(tx, run, state, logged, self.revision, new, complete)
        fields.merge()

        self.has_more |= fields.has_more or not complete
        self._add_prompts(tx, run, state)
        tx.run(_LIST, sid=state.id, time_importing=None)
        state.time_importing = None

        if self._is_newer(run, state):
            run.changed = True
        if run.changed:
            self._count_both_sides(tx, run, state)

    def _link_messages(self, tx: Transaction, run: Run, state: SessionState) -> None:
        """Put messages below their parents that came after them.

        One whose parent never came stays behind the message before it. A link that
        would make a message its own ancestor, as in a damaged log, is left out.
        """
        if not (self.pending or self.moved):
            return

        links: dict[int, int | None] = dict(tx.run(_LINKS, sid=state.id).fetchall())
        former, wanted = {}, {}
        for child, name in self.pending.items():
            seq: Any = run.places[child][0]
            # A message of an earlier transaction may have been removed since.
            if seq in links:
                former[seq] = links.pop(seq)
                wanted[seq] = seq_by_id(tx, state.id, name)

        # Links that the log states come first: a substitute must not be in their way.
        for seq in sorted(wanted, key=lambda seq: wanted[seq] is None):
            parent_seq = former[seq] if wanted[seq] is None else wanted[seq]
            if _leads_to(links, parent_seq, seq):
                parent_seq = None
            links[seq] = parent_seq
            if parent_seq != former[seq]:
                tx.run(_RELINK, sid=state.id, at=seq, parent_seq=parent_seq)
        self._link_moved(tx, run, state, links)

    def _link_moved(
        self,
        tx: Transaction,
        run: Run,
        state: SessionState,
        links: dict[int, int | None],
    ) -> None:
        """Put messages below the parent of both sides that all clones choose.

        A message in between was removed on one side and is still on the other: of two
        parents, the one below the other, else that with the greater id.
        """
        for child, name in self.moved.items():
            seq: Any = run.places[child][0]
            logged, stored = seq_by_id(tx, state.id, name), links.get(seq)
            if logged in (None, stored) or seq not in links:
                continue
            is_below = stored is None or _leads_to(links, logged, stored)
            if not is_below and not _leads_to(links, stored, logged):
                (stored_name,) = tx.one(_ID, sid=state.id, at=stored)
                is_below = name > stored_name
            if is_below and not _leads_to(links, logged, seq):
                links[seq] = logged
                tx.run(_RELINK, sid=state.id, at=seq, parent_seq=logged)
                run.changed = True
            else:
                self.has_more = True

    def _is_newer(self, run: Run, state: SessionState) -> bool:
        """Return whether the file has a later use, or a higher revision of the same."""
        logged = self.stored
        return bool(
            run.checked.columns["time_updated"] > state.time_updated
            or logged.last_seq > state.last_seq
            or _or_never(logged.time_detached) < _or_never(state.time_detached)
            or (logged.revision > self.revision and not self.has_more)
        )

    def _count_both_sides(self, tx: Transaction, run: Run, state: SessionState) -> None:
        """Make the counters of a session those of both sides."""
        logged, used = self.stored, run.checked.columns["time_updated"]
        tx.session(state.id)
        state.last_seq = max(state.last_seq, logged.last_seq)

        detached = min(_or_never(logged.time_detached), _or_never(state.time_detached))
        state.time_detached = None if detached == _NEVER else detached
        state.time_updated = used if run.created else max(used, state.time_updated)

        # The write itself adds one.
        state.revision = self._agreed_revision(run) - 1
        ownership.derive_model(tx, state.id)

    def _agreed_revision(self, run: Run) -> int:
        """Return the revision of what both sides agree on."""
        logged = self.stored
        if self._is_new(run):
            # Newer than its deletion.
            return max(logged.revision, (logged.deleted or logged).revision)

        # A value that only one side had makes a state that neither has seen.
        return max(logged.revision + self.has_more, self.revision + 1)

    def _is_new(self, run: Run) -> bool:
        """Return whether this import made the session, or one that it completes."""
        return run.created or self.unfinished

    def _add_prompts(self, tx: Transaction, run: Run, state: SessionState) -> None:
        for line in self.prompts:
            # The session that a prompt was typed in may come later than the prompt.
            row = tx.one(_PROMPT_OF, pid=line.id)
            if row is None:
                self._insert_prompt(tx, state, line)
            elif row[0] is None:
                tx.run(_OWN_PROMPT, pid=line.id, session_id=state.id)
            else:
                continue
            run.changed = True

    def _insert_prompt(
        self, tx: Transaction, state: SessionState, line: LoggedPrompt
    ) -> None:
        project_id = state.project_id
        if line.place is not None:
            project_id = project_of(tx, line.place)

        row = prompt_row(
            id=line.id,
            text=line.text,
            directory=line.directory and stored(line.directory, tx.root),
            project_id=project_id,
            session_id=state.id,
            source=line.source,
            time_created=line.time,
        )
        tx.insert("prompt", PROMPT, row)


def _or_never(time: int | None) -> int:
    return _NEVER if time is None else time


def _leads_to(links: dict[int, int | None], seq: int | None, goal: int) -> bool:
    """Return whether *goal* is *seq* or one of its ancestors."""
    seen: set[int] = set()
    while seq is not None and seq not in seen:
        if seq == goal:
            return True
        seen.add(seq)
        seq = links.get(seq)
    return False


def _has_exact(packed: bytes | None) -> bool:
    """Return whether packed data holds the exact form of a text."""
    # Of nearly all data the bytes alone say that it does not.
    if packed is None or _EXACT not in packed:
        return False
    return codec.EXACT in codec.unpack(packed)


#: Columns that are not content: a message may have other places in other databases.
_PLACE = ("session_id", "seq", "id", "parent_seq", "inherited")


def _date_message(
    row: MessageRow, parts: tuple[PartRow, ...], began: int
) -> tuple[MessageRow, tuple[PartRow, ...]]:
    """Return a message and its parts with times: one out of bounds was left out.

    The time of the import would be another one each time.
    """
    row = _date_row(row, began)
    return row, tuple(_date_row(part, row.time_created) for part in parts)


def _date_row(row: Dated, time: int | None) -> Dated:
    """Return a row with *time* unless it states when it was made."""
    if row.time_created is not None:
        return row
    return row._replace(time_created=time)


def _weight_of_state(
    columns: Mapping[str, Any], parts: Sequence[PartRow]
) -> tuple[bool, int, int, int, int, bytes]:
    """Return the order of two states of a message, the same on either side of a merge.

    *parts* are in the form that they compare in.
    The more finished state wins, then the one changed last, then the one with more
    parts: logs that are joined line by line have those of both, again and again. A
    digest decides the rest.
    """
    completed: int | None = columns["time_completed"]
    finished = completed is not None
    # A log that breaks off in a message has fewer of its parts, and of its open calls.
    grown = 0 if finished else len(parts)
    running = sum(row.status in ("pending", "running") for row in parts)
    times = (completed, *(row.time_updated for row in parts))
    last = max((time for time in times if time), default=0)
    compared = sorted(item for item in columns.items() if item[0] not in _PLACE)
    content = repr((compared, parts))
    raw = content.encode("utf-8", "surrogatepass")
    return finished, grown, -running, last, len(parts), hashlib.sha256(raw).digest()
