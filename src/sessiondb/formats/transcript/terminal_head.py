"""The head of a session on a terminal: its facts, before the conversation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sessiondb.formats.transcript.facts import (
    labels_text,
    model_name,
    origin_text,
    parent_name,
    program_name,
    spent_text,
    todos_text,
)
from sessiondb.formats.transcript.terminal import TerminalLine
from sessiondb.model import Label, Session, Todo, UsageRow
from sessiondb.words import count, moment, one_line, tokens

#: So many characters at the end of an id name a session, and those of a date.
_SHORT_ID, _DAY = 6, len("2026-11-01 ")


def head_lines(
    session: Session,
    usage: UsageRow | None = None,
    origin: Session | None = None,
    *,
    todos: Sequence[Todo] = (),
    labels: Sequence[Label] = (),
    subagents: Sequence[Session] = (),
) -> list[TerminalLine]:
    """Return the title of a session and lines of facts about it.

    With its *usage* also what is estimated of its cost. The program is that of the
    *origin* of a fork. *todos*, *labels* and *subagents* are those that belong to it.
    """
    title = one_line(session.title or "(no title)")
    lines = [TerminalLine(title, "strong")]
    belongings = [
        _named_value("todos", todos_text(todos)),
        _named_value("labels", labels_text(labels)),
        _subagents_text(session, subagents),
    ]
    for facts in [*_facts_by_line(session, usage, origin), belongings]:
        text = " · ".join([fact for fact in facts if fact])
        if text:
            lines.append(TerminalLine(one_line(text), "dim"))
    return lines


def _facts_by_line(
    session: Session, usage: UsageRow | None, origin: Session | None
) -> Iterator[list[str]]:
    """Yield the facts of each line; those that are unknown are empty."""
    yield [session.id, session.slug]
    yield [session.directory or ""]

    parent = parent_name(session)
    if parent == session.parent_id:
        parent = parent[-_SHORT_ID:].lower()
    yield [
        program_name(origin or session),
        session.agent or "",
        model_name(session),
        origin_text(session, parent, " at #{}"),
    ]

    first = moment(session.time_created, zone=None)
    last = moment(session.time_updated, zone=None)
    if last != first:
        end = last[_DAY:] if last[:_DAY] == first[:_DAY] else last
        first = f"{first} to {end}"
    yield [
        count(session.prompt_count, "prompt"),
        count(session.message_count, "message"),
        first,
        "archived" if session.time_archived else "",
        "reverted in its program" if session.revert else "",
    ]

    cost = spent_text(session, usage)
    is_estimated = usage is not None and usage.cost_estimated is not None
    if session.cost is not None or is_estimated:
        cost = f"cost {cost}"
    yield [_named_value("tokens", tokens(session.tokens.columns())), cost]
    yield [
        _named_value("scope", session.scope or ""),
        _named_value("shared at", session.share_url or ""),
    ]


def _subagents_text(session: Session, subagents: Sequence[Session]) -> str:
    """Return how many there are, and the command that shows them."""
    if not subagents:
        return ""
    verb, shown = ("show", subagents[0]) if len(subagents) == 1 else ("tree", session)
    number = count(len(subagents), "subagent")
    return f"{number}: sessiondb {verb} {shown.id[-_SHORT_ID:].lower()}"


def _named_value(name: str, value: str) -> str:
    return f"{name} {value}" if value else ""
