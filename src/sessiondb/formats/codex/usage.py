"""The counts of responses, each of which may be in several records of a rollout."""

from __future__ import annotations

from typing import Any

from sessiondb.formats.codex.fields import COUNTS
from sessiondb.formats.kit.fields import as_object, count, is_object
from sessiondb.formats.kit.usage import disjoint_tokens
from sessiondb.model import Tokens

Record = dict[str, Any]
#: Five counts in the order of `COUNTS`: the second and third are part of the first, the
#: last is part of the fourth.
Counts = tuple[int, ...]


class CodexUsage:
    """Counts each response once, whichever of its records come and how often.

    A ``token_usage_record`` is of one response, and has the total with it. Older
    rollouts have totals alone (``token_count``), each with the counts of the last
    response. A total is repeated when nothing was added, and in 2025 it began again
    whenever a session was continued: what it grew by is not what a response used.
    """

    def __init__(self) -> None:
        #: The last total; empty before the first.
        self.total: Counts = ()

    def tokens_of_response(self, payload: Record) -> Tokens | None:
        """Return the counts of a response; None if it was counted before."""
        counts = _read_counts(payload.get("usage"))
        if counts is None:
            return None

        total = _read_counts(payload.get("thread_token_usage"))
        if total is None:
            # Without a total there is nothing that could be a repetition.
            last = self.total or (0,) * len(COUNTS)
            self.total = tuple(a + b for a, b in zip(last, counts, strict=True))
            return _tokens_of(counts)
        if total == self.total:
            return None

        self.total = total
        return _tokens_of(counts)

    def tokens_of_total(self, payload: Record) -> Tokens | None:
        """Return the counts of the last response; None if it was counted before."""
        info = as_object(payload.get("info"))
        total = _read_counts(info.get("total_token_usage"))
        if total is None or total == self.total:
            return None

        self.total = total
        counts = _read_counts(info.get("last_token_usage"))
        if counts is None or not sum(counts):
            return None
        return _tokens_of(counts)


def _read_counts(usage: Any) -> Counts | None:
    """Return the five counts of a usage; None if one of them cannot be summed."""
    if not is_object(usage):
        return None

    counts = []
    for key in COUNTS:
        number = usage.get(key)
        if number is None:
            number = 0
        if not count(number):
            return None
        counts.append(number)
    return tuple(counts)


def _tokens_of(counts: Counts) -> Tokens | None:
    """Return counts as disjoint ones; None if they contradict each other."""
    all_input, cache_read, cache_write, all_output, reasoning = counts
    return disjoint_tokens(
        {
            "input": all_input,
            "cache_read": cache_read,
            "cache_write": cache_write,
            "output": all_output,
            "reasoning": reasoning,
        }
    )
