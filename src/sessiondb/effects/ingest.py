"""Effects of an import: a session that another program wrote, matched record by record.

A session is opened (row made or updated, parents and children
linked), its messages are written in batches, and it is closed: only then is it
listed. Records match by id: new ones append, changed ones are updated in place,
vanished ones stay, off the live path. Changes made here win. Every message of
an import has a usage key, so that copies are recognised in any order of imports.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import delete, func, select, update

from sessiondb import ids
from sessiondb.effects import ownership
from sessiondb.effects.project import Place, project_of
from sessiondb.effects.session import MAX_CHAIN, free_slug
from sessiondb.effects.transaction import Transaction
from sessiondb.engine.sql import Statement, p, update_of
from sessiondb.places import stored
from sessiondb.schema import (
    import_ledger,
    message,
    session,
    tombstone,
)
from sessiondb.schema.rows import SESSION, Blob, MessageRow, PartRow


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
    """The import of one session, over as many transactions as it takes.

    ``fresh``: nothing of it was here before, so no record needs to be looked up.
    ``last`` is the (seq, turn_id) of the record written or met last, ``places``
    those of all of this run, by id. ``tail`` is the session's last_seq as this
    run left it: another process may import the same. ``gone``: it was deleted since.
    """

    session_id: str
    source: str
    source_id: str
    ledger: str
    fresh: bool = True
    changed: bool = False
    messages: int = 0
    last: tuple[int | None, str | None] = (None, None)
    places: dict[str, tuple[int | None, str | None]] = field(default_factory=dict)
    tail: int = 0
    gone: bool = False
    problems: list[str] = field(default_factory=list)


_BY_SOURCE = Statement(
    lambda: select(session.c.id).where(
        session.c.source == p("source"),
        session.c.source_id == p("source_id"),
        session.c.time_deleted.is_(None),
    )
)
_PARENT = Statement(
    lambda: select(session.c.parent_id, session.c.root_id).where(
        session.c.id == p("sid")
    )
)
_MERGED = (
    "version agent provider_id model_id model_source summary_additions summary_deletions "
    "summary_files summary_diffs share_url revert permission time_compacting data data_blob"
).split()
_STORED = Statement(
    lambda: select(
        session.c.title, session.c.title_source, *(session.c[name] for name in _MERGED)
    ).where(session.c.id == p("sid"))
)
_MERGE = update_of(
    session, "title title_source " + " ".join(_MERGED), session.c.id == p("sid")
)
_WAITING = Statement(
    lambda: select(
        session.c.id,
        session.c.source_id,
        session.c.relation,
        session.c.time_imported,
        session.c.time_detached,
    ).where(
        session.c.source == p("source"),
        session.c.parent_source_id == p("source_id"),
        session.c.parent_id.is_(None),
        session.c.id != p("sid"),
        session.c.time_deleted.is_(None),
    )
)
#: Forks that were detached when this session was removed name it by its id here.
_DETACHED = Statement(
    lambda: select(
        session.c.id,
        session.c.source_id,
        session.c.relation,
        session.c.time_imported,
        session.c.time_detached,
    ).where(
        session.c.parent_source_id == p("sid"),
        session.c.parent_id.is_(None),
        session.c.id != p("sid"),
        session.c.time_deleted.is_(None),
    )
)
_LINK = update_of(session, "parent_id relation", session.c.id == p("sid"))
_CHILDREN = Statement(
    lambda: select(session.c.id).where(session.c.parent_id == p("sid"))
)
_ROOT = update_of(session, "root_id", session.c.id == p("sid"))
_TAKEN = Statement(lambda: select(session.c.id).where(session.c.id == p("sid")))
# An entry without offset is read again, whatever its digest says.
_READ_AGAIN = Statement(
    lambda: (
        update(import_ledger)
        .where(
            import_ledger.c.source == p("source"),
            func.substr(import_ledger.c.path, -func.length(p("tail"))) == p("tail"),
        )
        .values(offset=None)
    )
)
_UNBURY = Statement(
    lambda: delete(tombstone).where(
        tombstone.c.source == p("source"), tombstone.c.source_id == p("source_id")
    )
)
_FREE_SOURCE = Statement(
    lambda: (
        update(session)
        .where(session.c.id == p("sid"))
        .values(source_id=None, time_imported=None)
    )
)


def above(tx: Transaction, session_id: str) -> list[str]:
    """Return the ancestors of a session, nearest first."""
    chain: list[str] = []
    row = tx.one(_PARENT, sid=session_id)
    while row and row[0] and row[0] not in chain:
        chain.append(row[0])
        row = tx.one(_PARENT, sid=row[0])
    return chain


def below(tx: Transaction, session_id: str) -> list[list[str]]:
    """Return a session and its descendants, by level."""
    levels, seen = [[session_id]], {session_id}
    while levels[-1]:
        found = [
            row[0]
            for sid in levels[-1]
            for row in tx.run(_CHILDREN, sid=sid).fetchall()
        ]
        levels.append([sid for sid in found if sid not in seen])
        seen.update(found)
    return levels[:-1]


_MODEL = ("provider_id", "model_id", "model_source")


def keep_model(old: Mapping[str, Any], new: dict[str, Any]) -> None:
    """Let the model of a stored session stay in *new*, unless the source states another.

    A model that the caller set here wins; a derived one is derived again when the import ends.
    """
    stays = old["model_source"] == "caller" and new["model_source"] != "caller"
    if stays or new["model_source"] == "derived" == old["model_source"]:
        new.update({name: old[name] for name in _MODEL})


def note_model(tx: Transaction, session_id: str, columns: Mapping[str, Any]) -> None:
    """Let the state of a session, if it is loaded, agree with columns just written."""
    if session_id in tx.states:
        for name in _MODEL:
            setattr(tx.states[session_id], name, columns[name])


@dataclass(frozen=True, slots=True, eq=False)
class OpenImport:
    """Make or update the row of an imported session, and link its family."""

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
        undeleted = (
            tx.run(_UNBURY, source=run.source, source_id=run.source_id).rowcount > 0
        )
        if self.supersedes is not None:
            tx.run(_FREE_SOURCE, sid=self.supersedes)
        run.problems.clear()
        found = tx.one(_BY_SOURCE, source=run.source, source_id=run.source_id)
        run.fresh = found is None
        if found is None:
            self._make(tx)
        else:
            run.session_id = found[0]
            self._merge(tx)
        if self.supersedes is None:
            self._find_parent(tx)
            self._adopt(tx, undeleted)

    def _make(self, tx: Transaction) -> None:
        run, columns = self.run, self.columns
        if tx.one(_TAKEN, sid=run.session_id) is not None:
            # It was continued here, the source's state became a fork, and that was removed.
            run.session_id = ids.new_session_id()
        project_id = project_of(tx, self.place)
        parent_id, root_id = self.supersedes, run.session_id
        if parent_id is not None:
            root_id = tx.one(_PARENT, sid=parent_id)[1]
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
            "time_imported": tx.now,
        }
        tx.insert(session, SESSION, tuple(values[name] for name in SESSION))
        run.changed = True

    def _merge(self, tx: Transaction) -> None:
        run = self.run
        old = tx.one(_STORED, sid=run.session_id)
        new = {name: self.columns[name] for name in ("title", "title_source", *_MERGED)}
        if old[1] == "user" or (old[0] and not new["title"]):
            new["title"], new["title_source"] = old[0], old[1]
        keep_model(dict(zip(new, old, strict=True)), new)
        if tuple(new.values()) == tuple(old):
            return
        if old[-1] and old[-1] != new["data_blob"]:
            tx.loose.add(old[-1])
        tx.run(_MERGE, sid=run.session_id, **new)
        note_model(tx, run.session_id, new)
        run.changed = True

    def _find_parent(self, tx: Transaction) -> None:
        run = self.run
        if (
            self.parent_source_id is None
            or tx.one(_PARENT, sid=run.session_id)[0] is not None
        ):
            return
        row = tx.one(_BY_SOURCE, source=run.source, source_id=self.parent_source_id)
        if row is not None:
            self._link(tx, run.session_id, row[0], self.relation)

    def _adopt(self, tx: Transaction, undeleted: bool) -> None:
        """Link children that came before this session, or that its removal detached."""
        run = self.run
        waiting = tx.run(
            _WAITING, source=run.source, source_id=run.source_id, sid=run.session_id
        ).fetchall()
        if undeleted:
            waiting += tx.run(_DETACHED, sid=run.session_id).fetchall()
        for child, source_id, relation, imported, detached in waiting:
            linked = self._link(tx, child, run.session_id, relation)
            if linked and imported is not None and detached is None:
                # The source says where the child was cut: read it again next time.
                tx.run(_READ_AGAIN, source=run.source, tail="#" + source_id)

    def _link(
        self, tx: Transaction, child: str, parent: str, relation: str | None
    ) -> bool:
        """Put a session below another, unless that made a cycle or too long a chain."""
        chain, levels = above(tx, parent), below(tx, child)
        if child in (parent, *chain):
            self.run.problems.append(
                f"session {child} is above its parent {parent}: not linked"
            )
            return False
        if len(chain) + len(levels) >= MAX_CHAIN:
            why = f"session {child} would be part of a chain of more than {MAX_CHAIN} parents"
            self.run.problems.append(why + ": not linked")
            return False
        tx.run(_LINK, sid=child, parent_id=parent, relation=relation)
        root_id = tx.one(_PARENT, sid=parent)[1]
        lost: list[ownership.UsageClass] = []
        for sid in (sid for level in levels for sid in level):
            tx.run(_ROOT, sid=sid, root_id=root_id)
            if sid in tx.states:
                tx.states[sid].root_id = root_id
            lost += [
                ownership.UsageClass(root_id, *row)
                for row in tx.run(_KEYED, sid=sid).fetchall()
            ]
        ownership.recount(tx, ownership.assign_owner(tx, lost))
        self.run.changed = True
        return True


_KEYED = Statement(
    lambda: select(
        message.c.seq, message.c.id, message.c.time_created, message.c.usage_key
    ).where(message.c.session_id == p("sid"), message.c.usage_key.is_not(None))
)
