"""The first step of an import: the row of a session, and its project."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    ColumnElement,
    delete,
    exists,
    func,
    literal_column,
    or_,
    select,
)

from sessiondb.effects.place import MOVE
from sessiondb.effects.project import (
    ProjectPlace,
    RefreshProject,
    add_directory,
    is_known,
    project_of,
)
from sessiondb.effects.session import free_slug
from sessiondb.effects.transaction import Transaction
from sessiondb.engine.sql import Statement, p, update_of
from sessiondb.importing.rows.family import may_have_child, root_of
from sessiondb.importing.rows.run import ProjectFacts, Run
from sessiondb.places import stored
from sessiondb.schema import project, project_directory, prompt, session, tombstone
from sessiondb.schema.rows import SESSION

_FACTS = "name permission metadata time_initialized time_created".split()
_PROJECT = Statement(
    lambda: (
        select(project.c.id, *(project.c[name] for name in _FACTS))
        .join_from(session, project, project.c.id == session.c.project_id)
        .where(session.c.id == p("sid"))
    )
)
_SET_PROJECT = update_of(
    project, " ".join((*_FACTS, "time_updated")), project.c.id == p("pid")
)

#: The directory of a session whose source does not state any.
UNKNOWN = os.sep
_PLACE = Statement(
    lambda: select(session.c.directory, session.c.project_id).where(
        session.c.id == p("sid")
    )
)
_MOVE_PROMPTS = update_of(
    prompt, "directory project_id", prompt.c.session_id == p("sid")
)
#: The project of no directory, after its last session and prompt got one.
_REMOVE_UNUSED = Statement(
    lambda: delete(project).where(
        project.c.id == p("pid"),
        ~exists().where(session.c.project_id == project.c.id),
        ~exists().where(prompt.c.project_id == project.c.id),
    )
)
#: Whether `Relink` moved a directory, or one above it.
_FORMER = Statement(
    lambda: (
        select(literal_column("1"))
        .where(project_directory.c.kind == "former")
        .where(_is_at_or_below(project_directory.c.directory))
        .limit(literal_column("1"))
    )
)


def _is_at_or_below(folder: ColumnElement[Any]) -> ColumnElement[bool]:
    # Not LIKE, which takes /A for /a.
    prefix = folder + os.sep
    return or_(
        p("at") == folder, func.substr(p("at"), 1, func.length(prefix)) == prefix
    )


#: The session that a source names, among those that are not deleted.
BY_SOURCE = Statement(
    lambda: select(session.c.id).where(
        session.c.source == p("source"),
        session.c.source_id == p("source_id"),
        session.c.namespace == p("namespace"),
        session.c.time_deleted.is_(None),
    )
)
UNBURY = Statement(
    lambda: delete(tombstone).where(
        tombstone.c.source == p("source"),
        tombstone.c.source_id == p("source_id"),
        tombstone.c.namespace == p("namespace"),
    )
)
MODEL = ("provider_id", "model_id", "model_source")


@dataclass(frozen=True, slots=True, eq=False)
class OpenImport:
    """Make the row of a session, or merge what its source says into an existing one."""

    verb = "import"
    run: Run
    place: ProjectPlace

    def apply(self, tx: Transaction) -> None:
        """Write it; the session is invisible from its making until it is closed."""
        run = self.run
        tx.insert_blobs(run.checked.blobs)

        session_id = run.policy.find(tx, run)
        # Again in a transaction that is tried again.
        run.created = run.fresh = session_id is None
        if session_id is None:
            self._make_session(tx)
        else:
            run.session_id = session_id
            run.policy.update_row(tx, run)
            self._follow_directory(tx)
            RefreshProject(self.place).apply(tx)
        if run.checked.project is not None:
            self._describe_project(tx, run.checked.project)

    def _make_session(self, tx: Transaction) -> None:
        run, item = self.run, self.run.checked.item
        project_id = project_of(tx, self.place)
        row = {
            **run.checked.columns,
            "project_id": project_id,
            "relation": item.relation,
            "parent_seq": None,
            "parent_source_id": item.parent_source_id,
            "directory": stored(self.place.directory, tx.root),
            "source": item.source,
            "namespace": item.namespace,
            "time_importing": tx.now,
            **run.policy.new_row(tx, run, project_id),
        }
        # A column that no source states has the default of its table.
        columns = tuple(name for name in SESSION if name in row)
        tx.insert(session, columns, tuple(row[name] for name in columns))
        run.session_id = row["id"]
        run.changed = True

    def _follow_directory(self, tx: Transaction) -> None:
        """Move a session whose source states another directory, or its first one.

        The program may have moved it, unless the directory is that of another machine.
        One that `relink` moved elsewhere is not followed.
        """
        item = self.run.checked.item
        if not (item.directory or item.worktree):
            return
        sid, directory = self.run.session_id, stored(self.place.directory, tx.root)
        stored_directory, former = tx.one(_PLACE, sid=sid)
        is_first = stored_directory == stored(UNKNOWN, tx.root)
        if not is_first and not (self.place.here and item.may_move):
            return
        if stored_directory == directory or tx.value(_FORMER, at=directory):
            return

        project_id = project_of(tx, self.place)
        slug = free_slug(tx, project_id, sid)
        tx.run(MOVE, sid=sid, directory=directory, project_id=project_id, slug=slug)
        if is_first:
            tx.run(_MOVE_PROMPTS, sid=sid, directory=directory, project_id=project_id)
            tx.run(_REMOVE_UNUSED, pid=former)
        self.run.changed = True
        state = tx.states.get(sid)
        if state is not None:
            state.directory, state.project_id = directory, project_id

    def _describe_project(self, tx: Transaction, facts: ProjectFacts) -> None:
        """Merge what a source says of a project into its row.

        A project is one row for every program that works in it. So the earliest time of
        creation holds, a name is replaced by one that the source gives, and the
        source's own record stays under the name of the source in ``metadata``.
        """
        project_id, *old = tx.one(_PROJECT, sid=self.run.session_id)
        source = self.run.checked.item.source
        new = _merge_facts(dict(zip(_FACTS, old, strict=True)), facts, source)
        if list(new.values()) != old:
            tx.run(_SET_PROJECT, pid=project_id, time_updated=tx.now, **new)

        for directory in facts.sandboxes:
            place = stored(directory, tx.root)
            if not is_known(tx, place):
                add_directory(tx, project_id, place, "sandbox")


def _merge_facts(
    old: dict[str, Any], facts: ProjectFacts, source: str
) -> dict[str, Any]:
    metadata = old["metadata"]
    if facts.record is not None:
        records, record = json.loads(metadata), json.loads(facts.record)
        if records.get(source) != record:
            metadata = json.dumps({**records, source: record})
    return {
        "name": facts.name or old["name"],
        "permission": facts.permission or old["permission"],
        "metadata": metadata,
        "time_initialized": _earliest_time(
            old["time_initialized"], facts.time_initialized
        ),
        "time_created": _earliest_time(old["time_created"], facts.time_created),
    }


def _earliest_time(*times: int | None) -> int | None:
    return min((time for time in times if time is not None), default=None)


def place_below(
    tx: Transaction, run: Run, parent_id: str | None, root_id: str
) -> tuple[str | None, str]:
    """Return (parent, root) of a new session; *root_id* without a parent."""
    # A chain that would be too long is reported by `LinkFamilies`.
    run.unlinked = parent_id is not None and not may_have_child(tx, parent_id)
    if parent_id is None or run.unlinked:
        return None, root_id
    return parent_id, root_of(tx, parent_id)


def set_columns(
    tx: Transaction,
    run: Run,
    statement: Statement,
    old: Mapping[str, Any],
    new: Mapping[str, Any],
) -> bool:
    """Write the columns of a session if they differ; return whether they did."""
    if new == old:
        return False
    tx.loose |= {old["data_blob"]} - {new["data_blob"], None}
    tx.run(statement, sid=run.session_id, **new)
    run.changed = True

    # The state of the session must agree if it is loaded: it is written at the end.
    state = tx.states.get(run.session_id)
    for name in MODEL if state is not None else ():
        setattr(state, name, new[name])
    return True
