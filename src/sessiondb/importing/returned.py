"""Sessions of this database that went to another program and come back from it.

An export names a session by its id here. A session that returns under that name is
never a second session: what was said over there since is appended, behind the
last message that both know. Messages that both know stay as they are here.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import or_, select

from sessiondb.database.core import Core
from sessiondb.engine.sql import Statement, p
from sessiondb.errors import InvalidInputError
from sessiondb.importing import checks
from sessiondb.model import (
    Imported,
    MessageDraft,
    Problem,
    SourceMessage,
    SourceSession,
)
from sessiondb.repository import Read
from sessiondb.schema import message, session

_OWN = Statement(
    lambda: select(session.c.id).where(
        session.c.id == p("source_id"), session.c.time_deleted.is_(None)
    )
)
_KNOWN = Statement(
    lambda: select(message.c.id).where(
        message.c.session_id == p("session"),
        or_(message.c.id == p("id"), message.c.id == p("asked")),
    )
)


def original(source: SourceSession) -> Read[str | None]:
    """Return our session that *source* was exported from, or None."""
    rows = yield _OWN, {"source_id": source.source_id}
    return rows[0][0] if rows else None


def bring_back(
    core: Core, item: SourceSession, own: str, dry_run: bool
) -> Iterator[Imported | Problem]:
    """Append the new messages of *item* to session *own*; diverged if they share none."""
    drafts: dict[str, MessageDraft] = {}
    problems: list[Problem] = []
    seen: set[str] = set()
    for found in checks.records(item):
        if isinstance(found, Problem):
            problems.append(found)
            continue
        try:
            accepted, _, _, without = checks.accept_message(found, seen)
        except InvalidInputError as error:
            problems.append(checks.refused_message(item, found, error))
            continue
        if without is not None:
            problems.append(checks.refused_message(item, found, without))
        drafts[str(accepted.draft.id)] = accepted.draft
    names = list(drafts)
    shared = next(
        (
            n
            for n in range(len(names), 0, -1)
            if core.read(_is_known(own, names[n - 1]))
        ),
        0,
    )
    unit = core.unit()
    for name in names[shared:]:
        try:
            unit.append(own, drafts[name])
        except (
            InvalidInputError
        ) as error:  # what is appended is held to the rules of verbs
            problems.append(
                checks.refused_message(item, SourceMessage(drafts[name]), error)
            )
    yield from problems
    outcome = "updated" if unit.effects else "unchanged"
    if not shared and drafts:
        outcome = "diverged"
    elif not dry_run:
        core.commit(unit)
    yield Imported(
        outcome, own, item.source, item.source_id, len(drafts), tuple(problems)
    )


def _is_known(own: str, name: str) -> Read[bool]:
    # OpenCode 1.x has two messages for one of our summaries, the second under its id and an "s".
    rows = yield _KNOWN, {"session": own, "id": name, "asked": name.removesuffix("s")}
    return bool(rows)
