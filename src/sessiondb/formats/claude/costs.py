"""The cost that Claude Code states itself, in lines of type ``cost-state``.

A process that ends writes what everything has cost since its counter began, by model:
the answers of the transcript, those of subagents, and requests without an answer in any
transcript, such as compactions and titles. The next process and a fork continue the
counter, with the time at which it began. After a process that was killed before its
first state, or a change of the account, another counter begins.

So the difference of two states is the cost of the requests between them. An answer has
its share of it by its tokens. The rest is on the event of the state; it is computed
from the rows of the database (`importing.rows.sums`), because transcripts of subagents
may be there that are no longer here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from sessiondb.dataclass import dataclass, field
from sessiondb.errors import SourceError
from sessiondb.formats.claude import fields
from sessiondb.formats.claude.logs import load_line
from sessiondb.formats.kit.fields import (
    as_object,
    as_string,
    cost,
    count,
    fitting,
    is_object,
    time,
    value_at,
)
from sessiondb.formats.kit.lines import Line, opened
from sessiondb.formats.kit.texts import time_of_text
from sessiondb.formats.providers.anthropic.fields import COUNTS
from sessiondb.model.source import STATED_TOTAL, TOTAL_SINCE
from sessiondb.patterns import late_pattern

Record = dict[str, Any]
#: A name without its date, version and context size, and without its cloud.
_MODEL = late_pattern(
    r"(?:.*/)?(?:[a-z-]+\.)?(?:anthropic\.)?(.+?)"
    r"(?:[-@]\d{8})?(?:-v\d+(?::\d+)?)?(?:\[[^]]*\])?"
)
_CONTEXT_SIZE = late_pattern(r"\[[^]]*\]\Z")
#: Digits of a cost in USD: sums of floats differ in their last ones.
_DIGITS = 12


class RequestTokens(NamedTuple):
    """The tokens of requests, with thoughts in the output."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    #: Those of ``cache_write`` that stay for an hour.
    hour_write: int = 0

    @property
    def weight(self) -> float:
        """Their price in tokens of input, by the rates that all Claude models share.

        A price list is not asked: it changes, and an import must not change with it.
        """
        written = 1.25 * self.cache_write + 0.75 * self.hour_write
        return self.input + 5 * self.output + 0.1 * self.cache_read + written

    def plus(self, other: RequestTokens) -> RequestTokens:
        """Return the tokens of both."""
        return RequestTokens(*(a + b for a, b in zip(self, other, strict=True)))

    def minus(self, other: RequestTokens) -> RequestTokens:
        """Return the tokens without those of *other*."""
        return RequestTokens(*(a - b for a, b in zip(self, other, strict=True)))


class ModelCost(NamedTuple):
    """The cost of the requests to a model, in USD, and their tokens."""

    usd: float = 0.0
    tokens: RequestTokens = RequestTokens()


@dataclass(slots=True, eq=False)
class CostState:
    """The counter of a process when it ended."""

    #: Where its line begins.
    offset: int
    #: The time of the line before it, and of the next one that has a time, in Unix ms.
    time: int
    until: float
    #: When the counter began, which tells it from others.
    began: int
    usd: float
    by_model: Mapping[str, ModelCost]
    #: The names of the models as the program has them.
    names: Mapping[str, str]

    def continues(self, other: CostState) -> bool:
        """Return whether the counter may have been *other* before."""
        if self.began != other.began or self.usd < other.usd:
            return False
        return all(
            min(self.by_model.get(name, ModelCost()).tokens.minus(spent.tokens)) >= 0
            for name, spent in other.by_model.items()
        )


class PaidAnswer(NamedTuple):
    """An answer with usage."""

    name: str
    time: int
    model: str
    tokens: RequestTokens
    #: Whether its last line says how it ended.
    is_complete: bool


class CostSpan(NamedTuple):
    """The time between two states, in Unix ms, and what a token cost in it."""

    since: float
    until: float
    #: USD for a token of input, by model. ``other_rate`` is for answers of models that
    #: the states have under another name; 0 if there is none.
    rates: Mapping[str, float]
    other_rate: float
    #: The answers in it that the states do not have.
    unpaid: frozenset[str]
    #: Whether the states tell the writes that stay for an hour, which cost more.
    has_hours: bool

    def has(self, answer: PaidAnswer) -> bool:
        """Return whether an answer is in the difference of the states."""
        return self.since <= answer.time < self.until and answer.name not in self.unpaid

    def share_of(self, answer: PaidAnswer) -> float | None:
        """Return the cost of an answer, in USD; None if its model is in no state."""
        rate = self.rates.get(answer.model, self.other_rate)
        tokens = answer.tokens
        if not self.has_hours:
            tokens = tokens._replace(hour_write=0)
        return round(rate * tokens.weight, _DIGITS) or None


class TotalOfState(NamedTuple):
    """The cost of a session when a state was written."""

    #: The time of the state, in Unix ms.
    time: int
    #: USD since a time in Unix ms; None if its original may have a part of it.
    usd: float | None
    since: float
    #: The only model of the requests since the state before, if it is one.
    model: str | None

    def facts(self) -> Record:
        """Return the keys of an event's data, for `importing.rows.sums`."""
        if self.usd is None or self.since == inf:
            return {}
        total = {"cost": float(round(self.usd, _DIGITS))}
        return {STATED_TOTAL: total, TOTAL_SINCE: int(self.since)}


# -- the lines of a transcript -------------------------------------------------------


@dataclass(slots=True)
class CostNotes:
    """The states and the answers of a transcript."""

    states: list[CostState] = field(default_factory=list)
    answers: dict[str, PaidAnswer] = field(default_factory=dict)
    #: The time of its first line that is no copy, or earlier; 0 without copies.
    begin: int = 0
    #: The time of its last line.
    last_time: int = 0
    #: The time of its first line, if that is never copied; else 0.
    _head_time: int | None = None

    def add(self, line: Line, record: Record, *, is_copy: bool) -> None:
        """Add the next line."""
        moment = time_of_text(record.get("timestamp"))
        if moment is not None:
            self._add_time(moment, is_copy, has_uuid="uuid" in record)

        if record["type"] == "cost-state":
            state = _state_of(record, line, self.last_time)
            if state is not None:
                self.states.append(state)
        answer = answer_of([record])
        if answer is not None:
            earlier = self.answers.get(answer.name, answer)
            self.answers[answer.name] = _joined([earlier, answer])

    def _add_time(self, moment: int, is_copy: bool, *, has_uuid: bool) -> None:
        self.last_time = max(self.last_time, moment)
        for state in reversed(self.states):
            if state.until != inf:
                break
            state.until = max(moment, state.time + 1)

        if self._head_time is None:
            self._head_time = 0 if has_uuid else moment
        if is_copy or (has_uuid and moment < self._head_time):
            self.begin = max(self.begin, moment + 1)


def read_notes(path: Path, is_copy: Callable[[Record], bool]) -> CostNotes:
    """Return the states and answers in a transcript, as far as it can be read."""
    notes = CostNotes()
    with suppress(SourceError), opened(path) as lines:
        for line, _, record in lines.records(load_line):
            notes.add(line, record, is_copy=is_copy(record))
    return notes


def answer_of(records: Iterable[Record]) -> PaidAnswer | None:
    """Return the answer that lines are of; None without usage, or with a cost."""
    answers = []
    for record in records:
        usage = value_at(record, "message", "usage")
        model = value_at(record, "message", "model")
        moment = time_of_text(record.get("timestamp"))
        is_answer = record.get("type") == "assistant" and fields.is_model(model)
        if not is_answer or not is_object(usage) or moment is None:
            continue
        if cost(record.get(fields.COST)):
            return None
        name = as_string(value_at(record, "message", "id")) or str(record.get("uuid"))
        is_complete = value_at(record, "message", "stop_reason") is not None
        tokens = _tokens_of_usage(usage)
        answers.append(PaidAnswer(name, moment, model_name(model), tokens, is_complete))
    return _joined(answers) if answers else None


def model_name(name: str) -> str:
    """Return the name of a model by which a state and an answer agree.

    A state has the name that was requested, with a context size or as a cloud knows it.
    """
    match = _MODEL.fullmatch(name)
    return name if match is None else match[1]


def _joined(answers: list[PaidAnswer]) -> PaidAnswer:
    """Return an answer by its lines: its last usage is that with the most output."""
    last = answers[0]
    for answer in answers:
        if answer.tokens.output >= last.tokens.output:
            last = answer
    is_complete = any(answer.is_complete for answer in answers)
    return last._replace(time=answers[0].time, is_complete=is_complete)


def _tokens_of_usage(usage: Record) -> RequestTokens:
    hour = value_at(usage, "cache_creation", "ephemeral_1h_input_tokens")
    counts = [usage.get(key) for key in COUNTS.values()]
    return _tokens_of_counts(*counts, hour)


def _state_of(record: Record, line: Line, before: int) -> CostState | None:
    """Return a state; None for one that the program itself would not continue."""
    began = record.get("startTime")
    usd = record.get("totalCostUSD")
    models = record.get("modelUsage")
    if not time(began) or not cost(usd) or not is_object(models):
        return None
    # A key of ours would be mistaken for one of the record.
    if STATED_TOTAL in record or TOTAL_SINCE in record:
        return None

    by_model: defaultdict[str, ModelCost] = defaultdict(ModelCost)
    for name, usage in models.items():
        spent, tokens = by_model[model_name(name)], _tokens_of_model(as_object(usage))
        added = fitting(value_at(usage, "costUSD"), cost, 0.0)
        by_model[model_name(name)] = ModelCost(
            spent.usd + added, spent.tokens.plus(tokens)
        )
    names = {model_name(name): _CONTEXT_SIZE.sub("", name) for name in models}
    return CostState(line.offset, before or began, inf, began, usd, by_model, names)


def _tokens_of_model(usage: Record) -> RequestTokens:
    keys = (
        "inputTokens",
        "outputTokens",
        "cacheReadInputTokens",
        "cacheCreationInputTokens",
        "cacheCreationEphemeral1hInputTokens",
    )
    return _tokens_of_counts(*(usage.get(key) for key in keys))


def _tokens_of_counts(*counts: Any) -> RequestTokens:
    return RequestTokens(*(fitting(value, count, 0) for value in counts))


# -- what the answers of a session cost ------------------------------------------------


class ClaudeCosts:
    """The costs of the answers of a session, and its totals, as the program has them.

    *inherited* are the costs of its original, None for one that is no fork or whose
    original is not at hand. The answers of its subagents cost by it, too.
    """

    def __init__(self, notes: CostNotes, inherited: ClaudeCosts | None = None) -> None:
        self._begin = notes.begin
        #: The time of its last line.
        self.end = notes.last_time
        self._inherited = inherited
        #: Its states, and before them those that it may continue.
        self.states: list[CostState] = []
        #: By the place of the line of a state.
        self.totals: dict[int, TotalOfState] = {}
        self._spans: list[CostSpan] = []
        if inherited is not None:
            self.states += (s for s in inherited.states if s.time < notes.begin)
        self._add_states(notes)

    def cost_of(self, answer: PaidAnswer | None) -> float | None:
        """Return what an answer cost, in USD; None if no state has it."""
        if answer is None:
            return None
        if self._inherited is not None and answer.time < self._begin:
            # Of a transcript that was cut the states are not those of what came after.
            is_there = answer.time <= self._inherited.end
            return self._inherited.cost_of(answer) if is_there else None
        for span in self._spans:
            if span.has(answer):
                return span.share_of(answer)
        return None

    def _add_states(self, notes: CostNotes) -> None:
        usd: float | None = 0.0
        since: float | None = None
        for state in notes.states:
            # Those among the copies are copies.
            if state.time < notes.begin:
                self.states.append(state)
                continue

            base, span = self._base_of(state, notes.answers.values())
            self._spans.append(span)
            # Without its base, a counter that began before a fork has the original's.
            if base is None and state.began < self._begin:
                usd, since = None, None
            elif usd is None or since is None:
                usd, since = 0.0, span.since
            if usd is not None:
                usd += state.usd - (0.0 if base is None else base.usd)
            self.totals[state.offset] = TotalOfState(
                state.time, usd, since or 0, _only_model(state, base)
            )
            self.states.append(state)

    def _base_of(
        self, state: CostState, answers: Collection[PaidAnswer]
    ) -> tuple[CostState | None, CostSpan]:
        """Return the state that one continues, and the time between them."""
        of_original = []
        for base in reversed(self.states):
            if not state.continues(base):
                continue
            if base.time >= self._begin:
                return base, _span_of(state, base, base.until, answers)
            of_original.append((base, _span_of(state, base, self._begin, answers)))

        # A process that leaves its session for a fork may have written a state of it
        # after it had read the one that the fork continues.
        for base, span in of_original:
            if not span.unpaid:
                return base, span
        if of_original:
            return of_original[0]
        return None, _span_of(state, None, max(state.began, self._begin), answers)


def _only_model(state: CostState, base: CostState | None) -> str | None:
    """Return the model of all requests between two states; None for several."""
    before = {} if base is None else base.by_model
    names = [
        state.names[name] for name in state.by_model
        if state.by_model[name] != before.get(name)
    ]  # fmt: skip
    return names[0] if len(names) == 1 else None


def _span_of(
    state: CostState,
    base: CostState | None,
    since: float,
    answers: Iterable[PaidAnswer],
) -> CostSpan:
    """Return the time from *since* to a state, and what a token cost in it."""
    spent: dict[str, ModelCost] = {}
    for name, total in state.by_model.items():
        before = ModelCost() if base is None else base.by_model.get(name, ModelCost())
        tokens = total.tokens.minus(before.tokens)
        spent[name] = ModelCost(max(total.usd - before.usd, 0.0), tokens)

    between = [answer for answer in answers if since <= answer.time < state.until]
    named = {answer.model for answer in between}
    others = [model for name, model in spent.items() if name not in named]
    other_weight = sum(model.tokens.weight for model in others)
    other_usd = sum(model.usd for model in others)
    return CostSpan(
        since,
        state.until,
        {
            name: model.usd / model.tokens.weight
            for name, model in spent.items()
            if model.tokens.weight > 0
        },
        other_usd / other_weight if other_weight > 0 else 0.0,
        frozenset(_unpaid_of(between, spent)),
        has_hours=any(model.tokens.hour_write for model in spent.values()),
    )


def _unpaid_of(
    answers: Iterable[PaidAnswer], spent: Mapping[str, ModelCost]
) -> Iterator[str]:
    """Yield the answers for which a difference has no tokens left.

    Those of a process that was killed come first in the time between two states, and an
    answer that was interrupted may not be in any state.
    """
    left = {name: model.tokens for name, model in spent.items()}
    newest_first = sorted(answers, key=lambda a: (a.is_complete, a.time), reverse=True)
    for answer in newest_first:
        if answer.model not in left:
            continue
        rest = left[answer.model].minus(answer.tokens)
        if min(rest[:4]) < 0:
            yield answer.name
        else:
            left[answer.model] = rest


NO_COSTS = ClaudeCosts(CostNotes())
