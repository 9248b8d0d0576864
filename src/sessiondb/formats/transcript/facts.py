"""The facts about a session: from its columns, and counted while its messages pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from sessiondb.model import Export, Label, Message, Session, Todo, UsageRow
from sessiondb.model.purposes import (
    ANSWER,
    BOOKKEEPING,
    COMMAND,
    INJECTED,
    PROMPT,
    RESULT,
    SUMMARY,
)
from sessiondb.words import (
    changed,
    cost_words,
    count,
    duration,
    excerpt,
    known,
    moment,
    money,
    tokens,
)

#: So many models and labels are listed.
_MODELS, _LABELS = 12, 8
#: How an item of a todo list ended, if it did.
_TODO_ENDS = {"completed": "done", "cancelled": "cancelled"}
_TODO_WORDS = ("done", "open", "cancelled")

#: Messages of each purpose, as they are counted.
_PURPOSE_NOUNS = {
    PROMPT: "empty prompt",
    ANSWER: "empty answer",
    RESULT: "result",
    COMMAND: "command",
    SUMMARY: "empty compaction",
    INJECTED: "injected text",
    BOOKKEEPING: "bookkeeping record",
}


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
    export: Export, tally: Tally, inside: Iterable[Export], *, nested: bool
) -> list[tuple[str, str]]:
    """Return the names and values for the head of a transcript; the known ones.

    *inside* are the subagents that it contains, *nested* is one inside another.
    """
    session, subagents = export.session, list(inside)
    models = ", ".join(list(tally.models)[:_MODELS])
    agent = [program_name(export.origin or session), session.agent]
    values = {
        "Agent": " · ".join(name for name in agent if name),
        "Models" if len(tally.models) > 1 else "Model": models,
        "Directory": session.directory or "",
        "Date": _period_text(tally),
        "Messages": _counts_text(session, tally),
        "Tokens": tokens(session.tokens.columns()),
        "Cost": _cost_text(export, subagents),
        "Changes": _changes_text(session),
        "Origin": "" if nested else _origin_fact(session, export.parent),
        "Todo list": todos_text(export.todos),
        "Labels": labels_text(export.labels),
        "Subagents": _subagents_fact(export, subagents),
        "Scope": session.scope or "",
        "Shared at": session.share_url or "",
        "Reverted": "in its program" if session.revert else "",
        "Archived": known(session.time_archived, lambda time: f"{moment(time)} UTC"),
        "Session": session.id,
    }
    return [(name, excerpt(text, 1000)) for name, text in values.items() if text]


def todos_text(todos: Sequence[Todo]) -> str:
    """Return ``2 done, 1 open``; empty without any."""
    numbers = Counter([_TODO_ENDS.get(todo.status, "open") for todo in todos])
    return ", ".join([f"{numbers[end]} {end}" for end in _TODO_WORDS if numbers[end]])


def labels_text(labels: Sequence[Label]) -> str:
    """Return ``start (#2), end (#5)``; empty without any, and cut if there are many."""
    words = [f"{label.label} (#{label.seq})" for label in labels[:_LABELS]]
    more = len(labels) - len(words)
    return ", ".join([*words, f"{more} more"] if more else words)


def _subagents_fact(export: Export, inside: list[Export]) -> str:
    number = len(export.subagents)
    if number and not inside:
        return f"{number} (not in this file; --with-children includes them)"
    return str(number or "")


def _period_text(tally: Tally) -> str:
    first, last = tally.first, tally.last
    if last - first < 1000:
        return f"{moment(first)} UTC"

    same_day = moment(first, "%Y-%m-%d") == moment(last, "%Y-%m-%d")
    end = moment(last, "%H:%M:%S") if same_day else moment(last)
    return f"{moment(first)} to {end} UTC ({duration(last - first)})"


def _counts_text(session: Session, tally: Tally) -> str:
    """Return the numbers that a list of sessions has too, and the calls of the path."""
    off = session.prompt_count - tally.prompts
    elsewhere = f" ({off:,} off the live path)" if off > 0 else ""
    failed = f" ({tally.failed:,} failed)" if tally.failed else ""
    words = [
        count(session.message_count, "message"),
        count(session.prompt_count, "prompt") + elsewhere,
        count(tally.calls, "tool call") + failed,
    ]
    return ", ".join(words)


def _cost_text(export: Export, subagents: list[Export]) -> str:
    session = export.session
    said = [spent_text(session, export.usage) or money(None)]
    if session.cost_inherited is not None:
        said.append(f"and {money(session.cost_inherited)} inherited")
    if subagents:
        said.append(f"and {_sum_text(subagents)} of subagents")
    return ", ".join(said)


def spent_text(session: Session, usage: UsageRow | None) -> str:
    """Return what a session cost; empty if nothing is known.

    Without its *usage* only a stated cost is known.
    """
    if usage is None:
        return cost_words(session.cost, None, 0)
    return cost_words(session.cost, usage.cost_estimated, usage.tokens_unpriced)


def _sum_text(exports: list[Export]) -> str:
    stated: list[float] = []
    estimated: list[float] = []
    unpriced, is_least = 0, False
    for export in exports:
        cost, usage = export.session.cost, export.usage
        guess = None if usage is None else usage.cost_estimated
        unpriced += 0 if usage is None else usage.tokens_unpriced
        if cost is None and guess is None:
            is_least = True
        if cost is not None:
            stated.append(cost)
        if guess is not None:
            estimated.append(guess)

    words = cost_words(
        sum(stated) if stated else None, sum(estimated) if estimated else None, unpriced
    )
    if not stated and not estimated:
        return words or money(None)
    return f"at least {words}" if is_least and not unpriced else words


def _changes_text(session: Session) -> str:
    lines = changed(session.summary_additions, session.summary_deletions)
    place = known(session.summary_files, lambda files: f" in {count(files, 'file')}")
    return f"{lines} lines{place}" if lines else ""


def _origin_fact(session: Session, parent: Session | None) -> str:
    name = parent_name(session)
    if parent is not None and parent.title:
        name = f"“{excerpt(parent.title, 80)}” ({name})"
    return origin_text(session, name, ", at message {}")


def counted_purposes(numbers: Mapping[str, int]) -> str:
    """Return how many messages of each purpose there are, in words."""
    counted = [
        count(numbers[purpose], noun)
        for purpose, noun in _PURPOSE_NOUNS.items()
        if numbers.get(purpose)
    ]
    return ", ".join(counted)
