"""A source's facts about a project, merged into its row.

A project is one row for every program that works in it. So the earliest time of
creation holds, a name is replaced by one that the source gives, and the source's
own record stays under the name of the source in ``metadata``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import select

from sessiondb.effects.ingest import Run
from sessiondb.effects.project import add_directory, is_known
from sessiondb.effects.transaction import Transaction
from sessiondb.engine.sql import Statement, p, update_of
from sessiondb.places import stored
from sessiondb.schema import project, session

_FACTS = "name permission metadata time_initialized time_created".split()
_OF_SESSION = Statement(
    lambda: (
        select(project.c.id, *(project.c[name] for name in _FACTS))
        .join_from(session, project, project.c.id == session.c.project_id)
        .where(session.c.id == p("sid"))
    )
)
_SET = update_of(project, " ".join((*_FACTS, "time_updated")), project.c.id == p("pid"))


class ProjectFacts(NamedTuple):
    """What a source says of a project; every value can be stored."""

    name: str | None
    permission: str | None
    sandboxes: tuple[str, ...]
    time_created: int | None
    time_initialized: int | None
    record: str | None


@dataclass(frozen=True, slots=True, eq=False)
class DescribeProject:
    """Merge what a source says of its project into the row of an imported session's project."""

    verb = "import"
    run: Run
    facts: ProjectFacts

    def apply(self, tx: Transaction) -> None:
        """Write what changed; a no-op where nothing did."""
        row = tx.one(_OF_SESSION, sid=self.run.session_id)
        if row is None:
            return

        project_id, *old = row
        new = self._merged(dict(zip(_FACTS, old, strict=True)))
        if list(new.values()) != old:
            tx.run(_SET, pid=project_id, time_updated=tx.now, **new)
        for directory in self.facts.sandboxes:
            place = stored(directory, tx.root)
            if not is_known(tx, place):
                add_directory(tx, project_id, place, "sandbox")

    def _merged(self, old: dict[str, Any]) -> dict[str, Any]:
        facts, metadata = self.facts, old["metadata"]
        if facts.record is not None:
            kept = json.loads(metadata)
            record = json.loads(facts.record)
            if kept.get(self.run.source) != record:
                metadata = json.dumps({**kept, self.run.source: record})
        return {
            "name": facts.name or old["name"],
            "permission": facts.permission or old["permission"],
            "metadata": metadata,
            "time_initialized": _earliest(
                old["time_initialized"], facts.time_initialized
            ),
            "time_created": _earliest(old["time_created"], facts.time_created),
        }


def _earliest(*times: int | None) -> int | None:
    return min((time for time in times if time is not None), default=None)
