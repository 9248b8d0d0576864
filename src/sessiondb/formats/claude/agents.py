"""Subagents: their chains in a transcript, their sidecars, and the calls of them.

Before 2.0 the lines of subagents were in the transcript of their session. Each such
chain is a session here, which keeps the numbers of its records among all of the
transcript, so that all of them can be written in their order again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from heapq import merge
from itertools import islice
from pathlib import Path
from sys import maxsize
from typing import Any

from sessiondb.formats.claude.fields import HEAD, blocks_of
from sessiondb.formats.claude.logs import (
    SIDECHAIN_LINE,
    ClaudeLog,
    records_of,
    with_first_line,
)
from sessiondb.formats.kit.fields import as_list, as_string, value_at
from sessiondb.formats.kit.files import read_file
from sessiondb.formats.kit.heads import objects_of
from sessiondb.formats.kit.json import load_object, usable_id
from sessiondb.formats.kit.lines import opened
from sessiondb.formats.kit.remembered import known_fact
from sessiondb.patterns import late_pattern

Record = dict[str, Any]
#: Tools that start subagents; the second name is the newer one.
_STARTS = ("Task", "Agent")
#: A line with calls, or with the name of an agent.
_CALL_LINE = late_pattern(rb'"tool_use"|"agentId"')
#: The keys of the first line of a chain that say something of its session.
_OF_FIRST = frozenset({"agentId", "timestamp", *HEAD})
#: The key of a session's data with its places in the transcript of its parent.
PLACES_KEY = "places"


# -- in the transcript of their parent -----------------------------------------------


class SubagentChains:
    """Separates the chains of subagents in a transcript from its conversation."""

    def __init__(self) -> None:
        self._chains_by_uuid: dict[str, str] = {}

    def chain_of(self, record: Record) -> str:
        """Return the name of the chain that the next line is in; "" for none."""
        if record.get("isSidechain") is not True:
            return ""

        uuid = as_string(record.get("uuid"))
        parent_uuid = as_string(record.get("parentUuid"))
        agent = record.get("agentId")
        if usable_id(agent):
            chain = str(agent)
        else:
            chain = self._chains_by_uuid.get(parent_uuid, uuid)
        if uuid:
            self._chains_by_uuid[uuid] = chain
        return chain if usable_id(f"agent-{chain}") else ""


def chains_in(log: ClaudeLog) -> Iterator[ClaudeLog]:
    """Yield the chains of subagents in a transcript, in the order they begin.

    Raises `SourceError`.
    """
    if log.chain is None:
        return
    for chain, first in known_fact(log.path, "claude chains", _first_lines_of_chains):
        subagent = ClaudeLog(
            log.path,
            f"{log.session}/agent-{chain}",
            chain,
            parent=log.session,
            relation="subagent",
            agent=as_string(first.get("agentId")),
        )
        yield with_first_line(subagent, first)


def _first_lines_of_chains(path: Path) -> list[tuple[str, Record]]:
    """Return the chains in a transcript, each with what its first line says of it."""
    chains = SubagentChains()
    lines: dict[str, Record] = {}
    with opened(path) as file:
        for record in objects_of(raw for _, raw in file if SIDECHAIN_LINE.search(raw)):
            chain = chains.chain_of(record)
            if chain and chain not in lines:
                lines[chain] = {key: record[key] for key in _OF_FIRST & record.keys()}
    return list(lines.items())


def add_number(runs: list[list[int]], number: int) -> None:
    """Add the next of ascending numbers to *runs*: first ones and lengths."""
    if runs and number == sum(runs[-1]):
        runs[-1][1] += 1
    else:
        runs.append([number, 1])


def number_records(
    data: Mapping[str, Any], records: Iterable[Record]
) -> Iterator[tuple[int, Record]]:
    """Yield the records of a subagent with their places; new ones come last."""
    numbers = (
        number
        for first, length in as_list(data[PLACES_KEY])
        for number in range(first, first + length)
    )
    for record in records:
        yield next(numbers, maxsize), record


def merge_records(
    records: Iterable[Record], subagents: Iterable[Iterator[tuple[int, Record]]]
) -> Iterator[Record]:
    """Yield the records of a transcript with those of *subagents* in their places."""
    conversation = iter(records)
    count = 0
    for number, record in merge(*subagents, key=lambda numbered: numbered[0]):
        yield from islice(conversation, max(number - count, 0))
        yield record
        count = number + 1

    yield from conversation


# -- in files of their own ---------------------------------------------------------


def read_sidecar(log: ClaudeLog) -> Record:
    """Return the sidecar of a subagent; {} if there is no such file.

    Raises `OddRecordError` for one that cannot be read.
    """
    if log.relation != "subagent":
        return {}

    raw = read_file(log.sidecar)
    return {} if raw is None else load_object(raw)


class SubagentCalls:
    """The calls in a transcript that started subagents.

    The result of a call names the agent; in older transcripts only the prompt of the
    two is the same, of which the first call of the conversation itself counts.
    """

    def __init__(self, path: Path) -> None:
        self._by_agent: dict[str, str] = {}
        self._by_prompt: dict[str, str] = {}
        for record in records_of(path, _CALL_LINE):
            self._add_result(record)
            if record.get("isSidechain") is not True:
                self._add_starts(record)

    def find_call(self, agent: str, prompt: str) -> str | None:
        """Return the id of the call that started a subagent; None if it is unknown."""
        return self._by_agent.get(agent) or self._by_prompt.get(prompt) or None

    def _add_result(self, record: Record) -> None:
        agent = as_string(value_at(record, "toolUseResult", "agentId"))
        if not agent or agent in self._by_agent:
            return
        self._by_agent[agent] = ""
        for block in blocks_of(record):
            call = as_string(block.get("tool_use_id"))
            if call:
                self._by_agent[agent] = call
                return

    def _add_starts(self, record: Record) -> None:
        for block in blocks_of(record):
            prompt = as_string(value_at(block, "input", "prompt"))
            if block.get("name") in _STARTS and prompt:
                self._by_prompt.setdefault(prompt, as_string(block.get("id")))
