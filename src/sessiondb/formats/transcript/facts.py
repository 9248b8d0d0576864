"""The facts about a session: from its columns, and counted while its messages pass."""

from __future__ import annotations

from collections.abc import Iterable

from sessiondb.model import Export, Message, Session
from sessiondb.words import (
    changed,
    count,
    duration,
    excerpt,
    known,
    moment,
    money,
    tokens,
)

#: So many models are listed.
_MODELS = 12


class Tally:
    """Counts over messages; complete only after the last one.

    ``first`` and ``last`` are Unix ms.
    """

    def __init__(self, session: Session) -> None:
        self.messages = self.prompts = self.calls = self.failed = 0
        self.first = self.last = session.time_created
        # A dict as an ordered set.
        self.models: dict[str, None] = {}

    def add_message(self, message: Message) -> None:
        """Count a message."""
        self.messages += 1
        self.first = min(self.first, message.time_created)
        self.last = max(self.last, message.time_completed or message.time_created)

        calls = [part.status for part in message.parts if part.type == "tool"]
        self.calls += len(calls)
        self.failed += calls.count("error")

        if message.role == "assistant" and message.model_id:
            self.models[model_name(message)] = None


def session_title(session: Session) -> str:
    """Return the title of a session, on one line."""
    return excerpt(session.title, 300) or "(no title)"


def program_name(session: Session) -> str:
    """Return the program that wrote a session, and its version if known."""
    return " ".join(filter(None, [session.source, session.version]))


def model_name(of: Session | Message) -> str:
    """Return a model as ``provider/model``; empty if none is known."""
    return "/".join(filter(None, [of.provider_id, of.model_id]))


def parent_name(session: Session) -> str:
    """Return the id of the parent of a session, also of one that was never imported."""
    missing = "a session that is not here"
    return session.parent_id or session.parent_source_id or missing


def origin_text(session: Session, name: str, place: str) -> str:
    """Return how a session came from the one called *name*; nothing for a root.

    *place* is a form for the number of the message at which it began.
    """
    at = known(session.parent_seq, place.format)
    return known(session.relation, lambda relation: f"{relation} of {name}{at}")


def session_facts(
    export: Export, tally: Tally, inside: Iterable[Session], *, nested: bool
) -> list[tuple[str, str]]:
    """Return the names and values for the head of a transcript; the known ones.

    *inside* are the subagents that it contains, *nested* is one inside another.
    """
    session = export.session
    models = ", ".join(list(tally.models)[:_MODELS])
    agent = [program_name(session), session.agent]
    values = {
        "Agent": " · ".join(name for name in agent if name),
        "Models" if len(tally.models) > 1 else "Model": models,
        "Directory": session.directory,
        "Date": _period_text(tally),
        "Messages": _counts_text(tally),
        "Tokens": tokens(session.tokens.columns()),
        "Cost": _cost_text(session, [inner.cost for inner in inside]),
        "Changes": _changes_text(session),
        "Origin": "" if nested else _origin_fact(session, export.parent),
        "Archived": known(session.time_archived, lambda time: f"{moment(time)} UTC"),
        "Session": session.id,
    }
    return [(name, excerpt(text, 1000)) for name, text in values.items() if text]


def _period_text(tally: Tally) -> str:
    first, last = tally.first, tally.last
    if last - first < 1000:
        return f"{moment(first)} UTC"

    same_day = moment(first, "%Y-%m-%d") == moment(last, "%Y-%m-%d")
    end = moment(last, "%H:%M:%S") if same_day else moment(last)
    return f"{moment(first)} to {end} UTC ({duration(last - first)})"


def _counts_text(tally: Tally) -> str:
    failed = f" ({tally.failed:,} failed)" if tally.failed else ""
    words = [
        count(tally.messages, "message"),
        count(tally.prompts, "prompt"),
        count(tally.calls, "tool call") + failed,
    ]
    return ", ".join(words)


def _cost_text(session: Session, subagents: list[float | None]) -> str:
    said = [money(session.cost)]
    if session.cost_inherited is not None:
        said.append(f"and {money(session.cost_inherited)} inherited")
    if subagents:
        said.append(f"and {_sum_text(subagents)} of subagents")
    return ", ".join(said)


def _sum_text(costs: list[float | None]) -> str:
    stated = [cost for cost in costs if cost is not None]
    if not stated:
        return money(None)

    least = "at least " if None in costs else ""
    return f"{least}{money(sum(stated))}"


def _changes_text(session: Session) -> str:
    lines = changed(session.summary_additions, session.summary_deletions)
    place = known(session.summary_files, lambda files: f" in {count(files, 'file')}")
    return f"{lines} lines{place}" if lines else ""


def _origin_fact(session: Session, parent: Session | None) -> str:
    name = parent_name(session)
    if parent is not None and parent.title:
        name = f"“{excerpt(parent.title, 80)}” ({name})"
    return origin_text(session, name, ", at message {}")
