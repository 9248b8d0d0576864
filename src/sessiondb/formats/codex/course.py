"""The course of a session: what one record of a rollout means for those after it.

Model, counts and outcomes are on other records than the messages that they belong to,
and a rollback takes back turns that stay in the file.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from hashlib import blake2b
from typing import Any

from sessiondb.formats.codex.fields import INJECTED
from sessiondb.formats.codex.outcomes import ending_of, outcome_of_item, outcome_of_text
from sessiondb.formats.codex.sources import CodexSources
from sessiondb.formats.codex.usage import CodexUsage
from sessiondb.formats.kit.fields import (
    as_object,
    clean_name,
    count,
    text,
    value_at,
)
from sessiondb.formats.kit.json import known_time, sorted_json, usable_id
from sessiondb.formats.kit.naming import MARK

Record = dict[str, Any]
#: The columns of a part.
Columns = dict[str, Any]


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
        #: Hashes of the prompts that events of the rollout name, if any does.
        self.prompt_hashes: set[int] = set()
        self.usage = CodexUsage()
        self.sources = CodexSources()
        #: The last message, and the one that the next continues; ``...`` is the last.
        self.last_id: str | None = None
        self.next_parent: Any = ...
        #: The message before each turn, for a rollback, and before a task.
        self._before_turns: list[str | None] = []
        self._before_task: str | None = None
        #: Whether a task has begun that has no prompt yet, and whether any has begun.
        self._is_task_open = self._has_tasks = False
        self._is_reverted = is_reverted
        #: The ordinals and ids of the messages of each rollout.
        self._places: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
        self._ids: set[str] = set()
        self._rollout = ""
        self._number = 1
        #: How often each time is repeated.
        self._repetitions: Counter[str] = Counter()
        self._root = root
        self._digest = blake2b(root.encode(), digest_size=12)
        self._endings: dict[str | None, Columns] = {}

    # -- places --------------------------------------------------------------------

    def begin_rollout(self, rollout: str, prompt_hashes: set[int]) -> None:
        """Begin a rollout, whose events name the prompts with these hashes."""
        self._rollout = rollout
        self._number = 1
        self.prompt_hashes = prompt_hashes

    def name_record(self, item_id: Any, time: int | None) -> str:
        """Return the id of a record: that of its item, else that of its place.

        Its place is its time, which stays the same when Codex numbers the records of an
        older rollout and leaves out those that were rolled back. A record without a
        time has its number among the messages of its rollout.
        """
        if usable_id(item_id) and item_id not in self._ids:
            return str(item_id)

        suffix = f"-{self._number}" if time is None else f".{time}"
        place = name = f"{self._rollout[:200]}{suffix}"
        # A time may be repeated, and a record have any id of its own.
        while name in self._ids:
            self._repetitions[place] += 1
            name = f"{place}-{self._repetitions[place]}"

        return name

    def add_message(self, name: str, ordinal: int) -> Any:
        """Record the next message and its ordinal; return its parent."""
        parent, self.next_parent = self.next_parent, ...
        self.last_id = name
        self._ids.add(name)
        self._number += 1
        if self._is_reverted:
            self._places[self._rollout].append((ordinal, name))

        return parent

    def last_below(self, rollout: str, cut: int) -> str | None:
        """Return the last message of a rollout below an ordinal; None if none is."""
        for ordinal, name in reversed(self._places[rollout]):
            if ordinal < cut:
                return name
        return None

    # -- copies --------------------------------------------------------------------

    def id_of_copies(self, record: Record, item: Record | None) -> str | None:
        """Return an id that stays the same when a record is copied into a fork.

        Forks that are copies have an item in a new envelope, with a new time. None for
        a numbered item with an id of its own, which forks refer to, and for events.
        """
        if item is None and record.get("type") != "compacted":
            return None
        if item is not None and "ordinal" in record and usable_id(item.get("id")):
            return None

        content = as_object(record.get("payload", record))
        # Keys have no order: an export writes those of a column after the others.
        self._digest.update(sorted_json(content).encode())
        return None if MARK in record else self._id_after_items()

    def usage_id(self, record: Record) -> str:
        """Return the id of a response, or of a count by the items before it.

        A response without items is known by the total that it leads to.
        """
        response = value_at(record, "payload", "response_id")
        if usable_id(response):
            return str(response)
        return f"{self._id_after_items()}:{sum(self.usage.total)}"

    def _id_after_items(self) -> str:
        return f"{self._root[:100]}:{self._digest.hexdigest()}"

    # -- turns, calls and prompts -------------------------------------------------

    def apply_settings(self, event: Record) -> None:
        """Record the provider of the following turns."""
        provider = value_at(event, "thread_settings", "model_provider_id")
        if clean_name(provider):
            self.provider = provider

    def begin_task(self) -> None:
        """Record the beginning of a task: it is a turn once it has a prompt."""
        self._before_task = self.last_id
        self._is_task_open = self._has_tasks = True

    def add_prompt(self) -> None:
        """Record a prompt, each of which is a turn in a rollout without tasks."""
        if self._is_task_open:
            self._before_turns.append(self._before_task)
        elif not self._has_tasks:
            self._before_turns.append(self.last_id)
        self._is_task_open = False

    def roll_back(self, event: Record) -> None:
        """Let the next message continue what was before the last turns."""
        number = event.get("num_turns")
        if count(number) and number and self._before_turns:
            first = max(len(self._before_turns) - number, 0)
            self.next_parent = self._before_turns[first]
            del self._before_turns[first:]

    def end_call(self, event: Record) -> None:
        """Record how a call ended by the event that says so."""
        item = as_object(event.get("item"))
        call = item.get("id") if item else event.get("call_id")
        # Items without a status are messages, whose ids are not those of calls.
        if text(call) and (not item or text(item.get("status"))):
            self._endings[call] = {
                **ending_of(outcome_of_item(item or event)),
                "time_started": known_time(event.get("started_at_ms")),
                "time_ended": known_time(event.get("completed_at_ms")),
            }

    def ending_of_call(self, call: str | None, result: str) -> Columns:
        """Return how a call ended: by an event, else by the text of its result."""
        ending = self._endings.pop(call, None)
        return ending or ending_of(outcome_of_text(result))

    def is_typed(self, prompt: str) -> bool:
        """Return whether the user typed a text whose record does not say so."""
        if self.prompt_hashes:
            return hash(prompt) in self.prompt_hashes

        return not prompt.lstrip().startswith(INJECTED)
