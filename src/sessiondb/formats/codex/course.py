"""The course of a session: what one record of a rollout means for those after it.

Model, counts and outcomes are on other records than the messages that they belong to,
and a rollback takes back turns that stay in the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from hashlib import blake2b
from typing import Any, NamedTuple

from sessiondb.formats.codex.fields import COUNTS, INJECTED, ITEMS, RESULTS
from sessiondb.formats.kit.fields import (
    as_list,
    as_object,
    as_text,
    clean_name,
    count,
    fitting,
    is_object,
    text,
    within,
)
from sessiondb.formats.kit.json import known_time, load_object, load_text, usable_id
from sessiondb.model import Tokens

Record = dict[str, Any]
#: Five counts in the order of `COUNTS`: the second and third are part of the first, the
#: last is part of the fourth.
Counts = tuple[int, ...]

#: Records that a fork of 2025 copies.
_COPIED = frozenset({"response_item", "compacted", *ITEMS})
_EXIT = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d+)$", re.MULTILINE)
#: Characters of a result in which it says how it ended.
_BEGINNING = 400
_ENDED = {"failed": "failed", "declined": "denied", "completed": None}


class Ending(NamedTuple):
    """How a call ended, as an event says: its outcome, None for success, and times."""

    outcome: str | None
    started: int | None = None
    ended: int | None = None


class Course:
    """What is known in the course of one session; *root* is where its forks began."""

    def __init__(self, root: str, provider: str | None) -> None:
        self.provider = provider
        self.model: str | None = None
        #: Of the last turn, for what the next one changes.
        self.effort: str | None = None
        self.turn_model: str | None = None
        #: The prompts that events name; None: no event names any.
        self.prompts: set[int] | None = None
        self.usage = Usage()
        self.turns = Turns()
        self._root = root
        self._digest = blake2b(root.encode(), digest_size=12)
        self._endings: dict[str, Ending] = {}

    def pass_by(self, record: Record) -> None:
        """Note what a record says of others, before it is taken apart."""
        payload = as_object(record.get("payload", record))
        kind = as_text(record.get("type"))
        if kind == "turn_context":
            self.model = fitting(payload.get("model"), clean_name, self.model)
        elif kind == "event_msg":
            self._event(payload)
        elif "ordinal" not in record and kind in _COPIED:
            # Forks of 2025 are copies in new envelopes: only what they hold is equal.
            said = repr(payload).encode("utf-8", "surrogatepass")
            self._digest.update(said)

    def _event(self, event: Record) -> None:
        if event.get("type") == "thread_settings_applied":
            named = within(event, "thread_settings", "model_provider_id")
            self.provider = fitting(named, clean_name, self.provider)

        call, ending = _ending(event)
        if call is not None and ending is not None:
            self._endings[call] = ending

    def usage_id(self, record: Record) -> str | None:
        """Return what stays the same when a count is copied into a fork."""
        response = within(record, "payload", "response_id")
        if usable_id(response):
            return str(response)
        if "ordinal" in record:
            return None

        return f"{self._root[:100]}:{self._digest.hexdigest()}"

    def ending(self, call: Any, said: str) -> Ending:
        """Return how a call ended: as an event said, else as its result says."""
        known = self._endings.pop(call, None) if text(call) else None
        return known or Ending(_outcome_of(said))

    def is_typed(self, said: str) -> bool:
        """Return whether a person said a text, where its record does not tell."""
        if self.prompts is not None:
            return hash(said) in self.prompts

        return not said.lstrip().startswith(INJECTED)


class Usage:
    """Counts each response once, whichever of its records come and how often.

    A ``token_usage_record`` is of one response, and says the total with it; in older
    rollouts only totals are repeated (``token_count``), and a response is what was
    added to the last one.
    """

    def __init__(self) -> None:
        self._total: Counts | None = None

    def of_response(self, payload: Record) -> Counts | None:
        """Return the counts of a response, None if they were counted before."""
        usage = counts_of(payload.get("usage"))
        total = counts_of(payload.get("thread_token_usage"))
        if usage is None or (total is not None and total == self._total):
            return None

        before = self._total or (0,) * len(COUNTS)
        self._total = total or _added(before, usage)

        return usage

    def of_total(self, info: Record) -> Counts | None:
        """Return what a total has more than the one before; None for nothing."""
        total = counts_of(info.get("total_token_usage"))
        if total is None:
            return None

        before, self._total = self._total, total
        last = counts_of(info.get("last_token_usage"))
        # The total of a fork goes on from that of its parent, which may be missing.
        added = _added(total, before, -1) if before else last or total
        if min(added) < 0:
            added = last or total

        return added if any(added) else None


def counts_of(value: Any) -> Counts | None:
    """Return the five counts of a usage; None if one of them cannot be summed."""
    if not is_object(value):
        return None

    found = tuple(value.get(key) or 0 for key in COUNTS)
    return found if all(map(count, found)) else None


def tokens_of(counts: Counts | None) -> Tokens | None:
    """Return counts as disjoint ones; None if they contradict each other."""
    if counts is None:
        return None

    all_in, cached, cache_write, all_out, reasoning = counts
    fresh, spoken = all_in - cached - cache_write, all_out - reasoning
    if fresh < 0 or spoken < 0:
        return None

    return Tokens(fresh, spoken, reasoning, cached, cache_write)


def _added(one: Counts, other: Counts, sign: int = 1) -> Counts:
    return tuple(a + sign * b for a, b in zip(one, other, strict=True))


class Turns:
    """The turns of a session by the message before each, for a rollback.

    A turn begins with its ``task_started``; a rollout without them has a turn for each
    prompt.
    """

    def __init__(self) -> None:
        self._before: list[str | None] = []
        self._begun: str | None = None
        self._is_open = self._has_tasks = False

    def started(self, above: str | None) -> None:
        """Note the beginning of a task after the message *above*."""
        self._begun = above
        self._is_open = self._has_tasks = True

    def prompted(self, above: str | None) -> None:
        """Note a prompt; only the first one of a task makes it a turn."""
        if self._is_open:
            self._before.append(self._begun)
        elif not self._has_tasks:
            self._before.append(above)

        self._is_open = False

    def rolled_back(self, number: Any) -> Any:
        """Return what is continued when the last turns are taken back."""
        if type(number) is not int or number <= 0 or not self._before:
            return ...

        kept = max(0, len(self._before) - number)
        above = self._before[kept]
        del self._before[kept:]

        return above


# -- how calls end -----------------------------------------------------------------


def _ending(event: Record) -> tuple[str | None, Ending | None]:
    """Return the call that an event ends, and how; None for any other event."""
    make = _ENDINGS.get(as_text(event.get("type")) or "")
    return (None, None) if make is None else make(event)


def _item(event: Record) -> tuple[str | None, Ending | None]:
    item = as_object(event.get("item"))
    status = as_text(item.get("status"))
    if status is None:
        return None, None

    outcome = _ENDED.get(status.lower()) or _failed(item.get("exit_code"))
    started = known_time(event.get("started_at_ms"))
    ended = known_time(event.get("completed_at_ms"))
    return as_text(item.get("id")), Ending(outcome, started, ended)


def _command(event: Record) -> tuple[str | None, Ending | None]:
    outcome = _ENDED.get(as_text(event.get("status")) or "")
    outcome = outcome or _failed(event.get("exit_code"))
    return as_text(event.get("call_id")), Ending(outcome)


def _patch(event: Record) -> tuple[str | None, Ending | None]:
    failed = event.get("success") is False
    return as_text(event.get("call_id")), Ending("failed" if failed else None)


def _foreign_tool(event: Record) -> tuple[str | None, Ending | None]:
    result = as_object(event.get("result"))
    said = as_object(result.get("Ok"))
    failed = "Err" in result or True in (said.get("isError"), said.get("is_error"))
    return as_text(event.get("call_id")), Ending("failed" if failed else None)


_ENDINGS: Mapping[str, Callable[[Record], tuple[str | None, Ending | None]]] = {
    "item_completed": _item,
    "exec_command_end": _command,
    "patch_apply_end": _patch,
    "mcp_tool_call_end": _foreign_tool,
}


def started_by(payload: Record, thread: str) -> str | None:
    """Return the call that started a sub-agent, if that is what a record says."""
    item = as_object(payload.get("item"))
    if thread in as_list(item.get("receiver_thread_ids")):
        is_start = item.get("tool") in ("spawn_agent", "spawnAgent")
        return as_text(item.get("id")) if is_start else None
    if payload.get("new_thread_id") == thread:
        return as_text(payload.get("call_id"))
    if payload.get("type") not in RESULTS:
        return None

    with suppress(ValueError):
        said = load_text(as_text(payload.get("output")) or "")
        if within(said, "agent_id") == thread:
            return as_text(payload.get("call_id"))

    return None


def _failed(code: Any) -> str | None:
    return "failed" if type(code) is int and code != 0 else None


def _outcome_of(said: str) -> str | None:
    """Return the outcome that the text of a result tells; None for success."""
    start = said[:_BEGINNING]
    if start == "aborted" or start.startswith("aborted by user"):
        return "interrupted"
    if "rejected by user" in start:
        return "denied"

    if start.startswith('{"output"'):
        with suppress(ValueError):
            found = load_object(said.encode("utf-8", "surrogatepass"))
            return _failed(within(found, "metadata", "exit_code"))

    match = _EXIT.search(start.partition("\nOutput:\n")[0])
    return None if match is None else _failed(int(match[1]))
