"""The first step of an import: the row of a session, and its project."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sessiondb.dataclass import dataclass
from sessiondb.effects.place import MOVE
from sessiondb.effects.project import (
    ProjectPlace,
    RefreshProject,
    add_directory,
    home_of,
    is_known,
    project_of,
)
from sessiondb.effects.session import free_slug
from sessiondb.effects.transaction import Transaction
from sessiondb.engine.sql import Statement
from sessiondb.importing.rows.family import may_have_child, root_of
from sessiondb.importing.rows.run import ProjectFacts, Run
from sessiondb.places import stored
from sessiondb.schema.rows import SESSION

FACTS = "name permission metadata time_initialized time_created".split()
_PROJECT = Statement("importing.rows.session.PROJECT")
_SET_PROJECT = Statement("importing.rows.session.SET_PROJECT")

_PLACE = Statement("importing.rows.session.PLACE")
_MOVE_PROMPTS = Statement("importing.rows.session.MOVE_PROMPTS")
_FORMER = Statement("importing.rows.session.FORMER")
BY_SOURCE = Statement("importing.rows.session.BY_SOURCE")
UNBURY = Statement("importing.rows.session.UNBURY")
MODEL = ("provider_id", "model_id", "model_source")


@dataclass(frozen=True, slots=True, eq=False)
class OpenImport:
    """Make the row of a session, or merge what its source says into an existing one."""

    verb = "import"
    run: Run
    #: None if the source states no directory.
    place: ProjectPlace | None

    def apply(self, tx: Transaction) -> None:
        """Write it; the session is invisible from its making until it is closed."""
        run = self.run
        tx.lock_name("session", *run.name.values())
        tx.lock(run.session_id)
        session_id = run.policy.find(tx, run)
        # Again in a transaction that is tried again.
        run.created = run.fresh = session_id is None
        if session_id is None:
            self._make_session(tx)
        else:
            run.session_id = session_id
            tx.lock(session_id)
            tx.insert_blobs(session_id, run.checked.blobs)
            run.policy.update_row(tx, run)
            if self.place is not None:
                self._follow_directory(tx, self.place)
                RefreshProject(self.place).apply(tx)
        if run.checked.project is not None:
            self._describe_project(tx, run.checked.project)

    def _make_session(self, tx: Transaction) -> None:
        run, item = self.run, self.run.checked.item
        project_id, directory = home_of(tx, self.place)
        row = {
            **run.checked.columns,
            "project_id": project_id,
            "relation": item.relation,
            "parent_seq": None,
            "parent_source_id": item.parent_source_id,
            "directory": directory,
            "source": item.source,
            "namespace": item.namespace,
            "time_importing": tx.now,
            **run.policy.new_row(tx, run, project_id),
        }
        # A fork whose parent was deleted still has its root.
        tx.lock_new_session(row["id"], row["parent_id"] or row["root_id"])
        tx.insert_blobs(row["id"], run.checked.blobs)
        # A column that no source states has the default of its table.
        columns = tuple(name for name in SESSION if name in row)
        tx.insert("session", columns, tuple(row[name] for name in columns))
        tx.engine.search.put_titles(tx.connection, {row["id"]: row["title"]})
        run.session_id = row["id"]
        run.changed = True

    def _follow_directory(self, tx: Transaction, place: ProjectPlace) -> None:
        """Move a session whose source states another directory, or its first one.

        The program may have moved it, unless the directory is that of another machine.
        One that `relink` moved elsewhere is not followed.
        """
        may_move = self.run.checked.item.may_move
        sid, directory = self.run.session_id, stored(place.directory, tx.root)
        stored_directory = tx.value(_PLACE, sid=sid)
        is_first = stored_directory is None
        if not is_first and not (place.here and may_move):
            return
        if stored_directory == directory or tx.value(_FORMER, at=directory):
            return

        project_id = project_of(tx, place)
        slug = free_slug(tx, project_id, sid)
        tx.run(MOVE, sid=sid, directory=directory, project_id=project_id, slug=slug)
        if is_first:
            tx.run(_MOVE_PROMPTS, sid=sid, directory=directory, project_id=project_id)
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
        row = tx.one(_PROJECT, sid=self.run.session_id)
        if row is None:  # it has no directory here
            return
        project_id, *old = row
        source = self.run.checked.item.source
        new = _merge_facts(dict(zip(FACTS, old, strict=True)), facts, source)
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
    if new["title"] != old["title"]:
        titles = {run.session_id: new["title"]}
        tx.engine.search.put_titles(tx.connection, titles)
    run.changed = True

    # The state of the session must agree if it is loaded: it is written at the end.
    state = tx.states.get(run.session_id)
    for name in MODEL if state is not None else ():
        setattr(state, name, new[name])
    return True
