"""The tokens of answers, which the runner counts and items do not have.

A run counts its requests in the wrapper of its context, and hands that to a session
whose methods take it. The requests since the last items that were added are those of
the last answer among the new ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

from agents.run_context import RunContextWrapper
from agents.usage import RequestUsage

from sessiondb.adapters.openai_agents.items import ItemDraft
from sessiondb.dataclass import replace
from sessiondb.formats.kit.usage import disjoint_tokens
from sessiondb.model import Tokens

RunWrapper: TypeAlias = RunContextWrapper[Any]


class CountedRequests:
    """The requests of each run that are counted with an answer."""

    def __init__(self) -> None:
        self._counts: WeakKeyDictionary[RunWrapper, int] = WeakKeyDictionary()

    def add_tokens(
        self, wrapper: RunWrapper, drafts: list[ItemDraft], model: str | None
    ) -> int:
        """Set tokens and model of the last answer; return the requests that count then.

        The answer that names no model is of *model*.
        """
        requests = wrapper.usage.request_usage_entries
        answers = [
            place
            for place, (draft, _) in enumerate(drafts)
            if draft.role == "assistant"
        ]
        counted = self._counts.get(wrapper)
        if counted is None:
            # A run that another object began may have counted the first ones already.
            is_new = any(draft.role == "user" for draft, _ in drafts)
            counted = 0 if is_new else len(requests)
        if not answers:
            return counted
        last_draft, item_json = drafts[answers[-1]]
        tokens = _sum_of(requests[counted:])
        if tokens is not None:
            last_draft = replace(
                last_draft, tokens=tokens, model_id=last_draft.model_id or model
            )
            drafts[answers[-1]] = (last_draft, item_json)
        return len(requests)

    def count(self, wrapper: RunWrapper, requests: int) -> None:
        """Record what `add_tokens` returned, once the answer is stored."""
        self._counts[wrapper] = requests


def _sum_of(requests: Sequence[RequestUsage]) -> Tokens | None:
    """Return the tokens of requests; None without any, or if they contradict."""
    if not requests:
        return None
    columns = {
        "input": sum(request.input_tokens for request in requests),
        "output": sum(request.output_tokens for request in requests),
        "reasoning": sum(
            request.output_tokens_details.reasoning_tokens or 0 for request in requests
        ),
        "cache_read": sum(
            request.input_tokens_details.cached_tokens or 0 for request in requests
        ),
        "cache_write": sum(
            getattr(request.input_tokens_details, "cache_write_tokens", 0) or 0
            for request in requests
        ),
    }
    return disjoint_tokens(columns)
