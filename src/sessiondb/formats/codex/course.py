"""The course of a session: what one record of a rollout means for those after it.

Model, counts and outcomes are on other records than the messages that they belong to,
and a rollback takes back turns that stay in the file.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from contextlib import suppress
from hashlib import blake2b
from typing import Any

from sessiondb.formats.codex.fields import COUNTS, INJECTED
from sessiondb.formats.codex.sources import StatedSources
from sessiondb.formats.kit.fields import (
    as_list,
    as_object,
    as_string,
    as_text,
    clean_name,
    count,
    fitting,
    is_object,
    text,
    within,
)
from sessiondb.formats.kit.json import known_time, load_object, load_text, usable_id
from sessiondb.formats.kit.naming import MARK
from sessiondb.formats.kit.usage import disjoint
from sessiondb.model import Tokens

Record = dict[str, Any]
#: The columns of a part.
Columns = dict[str, Any]
#: Five counts in the order of `COUNTS`: the second and third are part of the first, the
#: last is part of the fourth.
Counts = tuple[int, ...]

_EXIT = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d+)$", re.MULTILINE)
#: Characters of a result that say how it ended; the rest is output, which may say
#: anything.
_BEGINNING = 400
#: Tools that start a subagent.
_STARTS = ("spawn_agent", "spawnAgent")
#: When a call began and ended, in events of 2026.
_TIMES = {"time_started": "started_at_ms", "time_ended": "completed_at_ms"}
#: How statuses of events are known here; any other one is not a failure.
_FAILURES = {"failed": "failed", "declined": "denied"}
#: How texts of results begin, or what is in their beginning.
_ABORTED = re.compile(r"aborted(?: by user|\Z)")
_COLUMNS = ("input", "cache_read", "cache_write", "output", "reasoning")


class Course:
    """The state in the course of one session; *root* is where its forks began.

    It *is_reverted* if further rollouts continue others at any of their ordinals.
    """

    def __init__(self, root: str, provider: str | None, is_reverted: bool) -> None:
        self.provider = provider
        self.model: str | None = None
        #: Of the last turn, for what the next one changes.
        self.effort: str | None = None
        self.turn_model: str | None = None
        #: The prompts that events of the rollout name, if any does.
        self.prompts: set[int] = set()
        self.usage = Usage()
        self.sources = StatedSources()
        #: The last message, and the one that the next continues; ``...`` is the last.
        self.last: str | None = None
        self.next_parent: Any = ...
        #: The message before each turn, for a rollback, and before a task.
        self._turns: list[str | None] = []
        self._task: str | None = None
        self._is_open = self._has_tasks = False
        self._is_reverted = is_reverted
        #: The ordinals and ids of the messages of each rollout.
        self._placed: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
        self._ids: set[str] = set()
        self._rollout = ""
        self._number = 1
        #: How often each place is repeated.
        self._repeated: Counter[str] = Counter()
        self._root = root
        self._digest = blake2b(root.encode(), digest_size=12)
        self._endings: dict[str | None, Columns] = {}

    # -- places --------------------------------------------------------------------

    def begin(self, rollout: str, prompts: set[int]) -> None:
        """Begin a rollout, whose events name *prompts*."""
        self._rollout = rollout
        self._number = 1
        self.prompts = prompts

    def name_record(self, record_id: Any, time: int | None) -> str:
        """Return the id of a message: that of its record, else that of its place.

        Its place is its time, which stays the same when Codex numbers the records of an
        older rollout and leaves out those that were rolled back. A record without a
        time has its number among the messages of its rollout.
        """
        if usable_id(record_id) and record_id not in self._ids:
            return str(record_id)

        suffix = f"-{self._number}" if time is None else f".{time}"
        place = name = f"{self._rollout[:200]}{suffix}"
        # A time may be repeated, and a record have any id of its own.
        while name in self._ids:
            self._repeated[place] += 1
            name = f"{place}-{self._repeated[place]}"

        return name

    def follow(self, name: str, place: int) -> Any:
        """Record the next message and its ordinal; return what it continues."""
        parent, self.next_parent = self.next_parent, ...
        self.last = name
        self._ids.add(name)
        self._number += 1
        if self._is_reverted:
            self._placed[self._rollout].append((place, name))
        return parent

    def last_below(self, rollout: str, cut: int) -> str | None:
        """Return the last message of a rollout below an ordinal; None if none is."""
        for place, name in reversed(self._placed[rollout]):
            if place < cut:
                return name
        return None

    # -- copies --------------------------------------------------------------------

    def shared_id(
        self, record: Record, item: Record | None, item_id: Any
    ) -> str | None:
        """Return an id that stays the same when a record is copied into a fork.

        Forks that are copies have an item in a new envelope, with a new time. None for
        a numbered item with an id of its own, which forks refer to, and for events.
        """
        is_item = item is not None or record.get("type") == "compacted"
        if not is_item or ("ordinal" in record and usable_id(item_id)):
            return None

        content = as_object(record.get("payload", record))
        # Keys have no order: an export writes those of a column after the others.
        self._digest.update(json.dumps(content, sort_keys=True).encode())
        return None if MARK in record else self._after_items()

    def usage_id(self, record: Record) -> str:
        """Return the id of a response, or of a count by the items before it.

        A response without items is known by the total that it leads to.
        """
        response = within(record, "payload", "response_id")
        if usable_id(response):
            return str(response)
        return f"{self._after_items()}:{sum(self.usage.total)}"

    def _after_items(self) -> str:
        return f"{self._root[:100]}:{self._digest.hexdigest()}"

    # -- turns, calls and prompts -------------------------------------------------

    def apply_settings(self, event: Record) -> None:
        """Record the provider of the following turns."""
        provider = within(event, "thread_settings", "model_provider_id")
        self.provider = fitting(provider, clean_name, self.provider)

    def begin_task(self) -> None:
        """Record the beginning of a task: it is a turn once it has a prompt."""
        self._task = self.last
        self._is_open = self._has_tasks = True

    def begin_prompt(self) -> None:
        """Record a prompt, each of which is a turn in a rollout without tasks."""
        if self._is_open or not self._has_tasks:
            self._turns.append(self._task if self._is_open else self.last)
        self._is_open = False

    def roll_back(self, event: Record) -> None:
        """Let the next message continue what was before the last turns."""
        number = event.get("num_turns")
        taken = self._turns[-number:] if count(number) and number else []
        if taken:
            self.next_parent = taken[0]
            del self._turns[-len(taken) :]

    def end_call(self, event: Record) -> None:
        """Record how a call ended by the event that says so."""
        item = as_object(event.get("item"))
        call = item.get("id") if item else event.get("call_id")
        # Items without a status are messages, whose ids are not those of calls.
        if text(call) and (not item or text(item.get("status"))):
            times = {name: known_time(event.get(key)) for name, key in _TIMES.items()}
            self._endings[call] = ended_with(_outcome_of_event(item or event)) | times

    def take_ending(self, call: str | None, output: str) -> Columns:
        """Return how a call ended: by an event, else by the text of its result."""
        ending = self._endings.pop(call, None)
        return ending or ended_with(outcome_of_output(output))

    def is_typed(self, content: str) -> bool:
        """Return whether the user typed a text whose record does not say so."""
        if self.prompts:
            return hash(content) in self.prompts
        return not content.lstrip().startswith(INJECTED)


class Usage:
    """Counts each response once, whichever of its records come and how often.

    A ``token_usage_record`` is of one response, and has the total with it. Older
    rollouts have totals alone (``token_count``), each with the counts of the last
    response. A total is repeated when nothing was added, and in 2025 it began again
    whenever a session was continued: what it grew by is not what a response used.
    """

    def __init__(self) -> None:
        #: The last total; empty before the first.
        self.total: Counts = ()

    def of_response(self, payload: Record) -> Tokens | None:
        """Return the counts of a response; None if it was counted before."""
        usage = _counts_of(payload.get("usage"))
        if usage is None:
            return None

        total = _counts_of(payload.get("thread_token_usage"))
        if total is None:
            # Without a total there is nothing that could be a repetition.
            before = self.total or (0,) * len(usage)
            total = tuple([a + b for a, b in zip(before, usage, strict=True)])
        elif total == self.total:
            return None

        self.total = total
        return _tokens_of(usage)

    def of_total(self, payload: Record) -> Tokens | None:
        """Return the counts of the last response; None if it was counted before."""
        info = as_object(payload.get("info"))
        total = _counts_of(info.get("total_token_usage"))
        if total is None or total == self.total:
            return None

        self.total = total
        last = _counts_of(info.get("last_token_usage"))
        return _tokens_of(last) if last and any(last) else None


def _counts_of(value: Any) -> Counts | None:
    """Return the five counts of a usage; None if one of them cannot be summed."""
    if not is_object(value):
        return None

    counts = []
    for key in COUNTS:
        number = value.get(key)
        counts.append(0 if number is None else number)
    return tuple(counts) if all(count(number) for number in counts) else None


def _tokens_of(counts: Counts) -> Tokens | None:
    """Return counts as disjoint ones; None if they contradict each other."""
    return disjoint(dict(zip(_COLUMNS, counts, strict=True)))


# -- how calls end -----------------------------------------------------------------


def ended_with(outcome: str | None) -> Columns:
    """Return the columns of a result with an *outcome*; None is no failure."""
    return {"outcome": outcome, "status": "error" if outcome else None}


def _outcome_of_event(event: Record) -> str | None:
    """Return the outcome of a call by its item, or by an event of its own."""
    status = as_string(event.get("status")).lower()
    if status in _FAILURES:
        return _FAILURES[status]

    result = as_object(event.get("result"))
    answer = as_object(result.get("Ok"))
    if (
        event.get("success") is False
        or "Err" in result
        or answer.get("isError") is True
        or answer.get("is_error") is True
    ):
        return "failed"
    return _outcome_of_code(event.get("exit_code"))


def _outcome_of_code(code: Any) -> str | None:
    """Return the outcome of a command with that exit code."""
    return "failed" if type(code) is int and code != 0 else None


def outcome_of_output(output: str) -> str | None:
    """Return the outcome that the text of a result names; None for success."""
    start = output[:_BEGINNING]
    if _ABORTED.match(start):
        return "interrupted"
    if "rejected by user" in start:
        return "denied"

    if start.startswith('{"output"'):
        with suppress(ValueError):
            record = load_object(output.encode("utf-8", "surrogatepass"))
            return _outcome_of_code(within(record, "metadata", "exit_code"))

    exit_line = _EXIT.search(start.partition("\nOutput:\n")[0])
    return None if exit_line is None else _outcome_of_code(int(exit_line[1]))


# -- what calls start --------------------------------------------------------------


def started_by(payload: Record, thread: str) -> str | None:
    """Return the call that started a subagent, if that is what a record says."""
    item = as_object(payload.get("item"))
    agents = as_list(item.get("receiver_thread_ids"))
    # Later calls of other tools name the agents that they wait for, too.
    if item.get("tool") in _STARTS and thread in agents:
        return as_text(item.get("id"))

    started = [payload.get("new_thread_id")]
    with suppress(ValueError):
        output = load_text(as_string(payload.get("output")))
        started.append(within(output, "agent_id"))
    return as_text(payload.get("call_id")) if thread in started else None
