"""Subagents: their chains in a transcript, their sidecars, and the calls of them.

Before 2.0 the lines of subagents were in the transcript of their session. Each such
chain is a session here, which keeps the numbers of its records among all of the
transcript, so that all of them can be written in their order again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from heapq import merge
from itertools import chain, islice, repeat
from operator import itemgetter
from pathlib import Path
from sys import maxsize
from typing import Any

from sessiondb.formats.claude.fields import blocks_of
from sessiondb.formats.claude.logs import BESIDE, Log, records_of
from sessiondb.formats.kit.fields import as_list, as_string, as_text, fitting, within
from sessiondb.formats.kit.files import read_file
from sessiondb.formats.kit.json import load_object, usable_id

Record = dict[str, Any]
#: Tools that start subagents; the second name is the newer one.
_STARTS = ("Task", "Agent")
#: A line with calls, or with the name of an agent.
_CALLS = re.compile(rb'"tool_use"|"agentId"')
#: The key of a session's data with its places in the transcript of its parent.
KEY = "places"


# -- in the transcript of their parent -----------------------------------------------


class Chains:
    """Separates the chains of subagents in a transcript from its conversation."""

    def __init__(self) -> None:
        self._of: dict[str, str] = {}

    def of(self, record: Record) -> str:
        """Return the name of the chain that the next line is in; "" for none."""
        if record.get("isSidechain") is not True:
            return ""

        own = as_string(record.get("uuid"))
        before = self._of.get(as_string(record.get("parentUuid")), own)
        chain = str(fitting(record.get("agentId"), usable_id, before))
        if own:
            self._of[own] = chain
        return chain if usable_id(f"agent-{chain}") else ""


def chains_in(log: Log) -> Iterator[Log]:
    """Yield the chains of subagents in a transcript, in the order they begin."""
    if log.chain is None:
        return

    chains, seen = Chains(), {""}
    for record in records_of(log.path, BESIDE):
        name = chains.of(record)
        if name not in seen:
            seen.add(name)
            inner = f"{log.session}/agent-{name}"
            yield Log(log.path, inner, name, log.session, "subagent", record)


def add_number(runs: list[list[int]], number: int) -> None:
    """Add the next of ascending numbers to *runs*: first ones and lengths."""
    if runs and number == sum(runs[-1]):
        runs[-1][1] += 1
    else:
        runs.append([number, 1])


def placed(
    data: Mapping[str, Any], records: Iterable[Record]
) -> Iterator[tuple[int, Record]]:
    """Yield the records of a subagent with their places; new ones come last."""
    known = (range(first, first + length) for first, length in as_list(data[KEY]))
    places = chain(chain.from_iterable(known), repeat(maxsize))
    return zip(places, records, strict=False)


def merged(
    records: Iterable[Record], inside: Iterable[Iterator[tuple[int, Record]]]
) -> Iterator[Record]:
    """Yield the records of a transcript with those *inside* of it in their places."""
    own = iter(records)
    count = 0
    for place, record in merge(*inside, key=itemgetter(0)):
        yield from islice(own, max(place - count, 0))
        yield record
        count = place + 1

    yield from own


# -- in files of their own ---------------------------------------------------------


def sidecar_of(log: Log) -> Record:
    """Return the sidecar of a subagent; {} if there is no such file.

    Raises `OddRecordError` for one that cannot be read.
    """
    if log.relation != "subagent":
        return {}

    raw = read_file(log.sidecar)
    return {} if raw is None else load_object(raw)


class Calls:
    """The calls in a transcript that started subagents.

    The result of a call names the agent; in older transcripts only the prompt of the
    two is the same, of which the first call of the conversation itself counts.
    """

    def __init__(self, path: Path) -> None:
        # An agent or a prompt that is not known has no call.
        self._by_agent: dict[str, str | None] = {"": None}
        self._by_prompt = self._by_agent.copy()
        for record in records_of(path, _CALLS):
            self._add(record, blocks_of(record))

    def of(self, agent: str, prompt: str) -> str | None:
        """Return the id of the call that started a subagent; None if it is unknown."""
        return self._by_agent.get(agent) or self._by_prompt.get(prompt)

    def _add(self, record: Record, blocks: list[Record]) -> None:
        agent = as_string(within(record, "toolUseResult", "agentId"))
        ended = filter(None, (as_text(block.get("tool_use_id")) for block in blocks))
        self._by_agent.setdefault(agent, next(ended, None))

        if record.get("isSidechain") is not True:
            for block in filter(_is_start, blocks):
                prompt = as_string(within(block, "input", "prompt"))
                self._by_prompt.setdefault(prompt, as_text(block.get("id")))


def _is_start(block: Record) -> bool:
    return block.get("name") in _STARTS
