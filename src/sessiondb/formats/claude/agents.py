"""Subagents: their chains in a transcript, their sidecars, and the calls of them.

Before 2.0 the lines of subagents were in the transcript of their session. Each such
chain is a session here, which keeps the numbers of its records among all of the
transcript, so that all of them can be written in their order again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from heapq import merge
from itertools import chain, islice, repeat
from operator import itemgetter
from pathlib import Path
from sys import maxsize
from typing import Any

from sessiondb.errors import SourceError
from sessiondb.formats.claude.fields import blocks_of
from sessiondb.formats.claude.logs import BESIDE, Log
from sessiondb.formats.kit.fields import as_list, as_string, as_text, fitting, within
from sessiondb.formats.kit.files import read_file
from sessiondb.formats.kit.json import load_object, usable_id
from sessiondb.formats.kit.lines import opened

Record = dict[str, Any]
#: Tools that start subagents; the second name is the newer one.
_STARTS = ("Task", "Agent")
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
    with suppress(SourceError), opened(log.path) as lines:
        for _, _, record in lines.records(_beside):
            name = chains.of(record)
            if name not in seen:
                seen.add(name)
                inner = f"{log.session}/agent-{name}"
                yield Log(log.path, inner, name, log.session, "subagent", record)


def _beside(raw: bytes) -> Record:
    """Return a line of a subagent; no other one is decoded."""
    return load_object(raw) if BESIDE.search(raw) else {}


def add_number(runs: list[list[int]], number: int) -> None:
    """Add the next of ascending numbers to *runs*: first ones and lengths."""
    if runs and number == sum(runs[-1]):
        runs[-1][1] += 1
    else:
        runs.append([number, 1])


def is_inside(data: Mapping[str, Any]) -> bool:
    """Return whether a session with this *data* was in the transcript of its parent."""
    return KEY in data


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


def call_of(parent: Path, agent: str | None, prompt: str | None) -> str | None:
    """Return the id of the call that started a subagent; None if it is not known.

    The result of the call names the agent; in older transcripts only the prompt of the
    two is the same, of which the first call counts.
    """
    same: str | None = None
    named = agent or "\0"

    with suppress(SourceError), opened(parent) as lines:
        for _, _, record in lines.records(partial(_candidate, named.encode())):
            if within(record, "toolUseResult", "agentId") == named:
                return _first(blocks_of(record), "tool_use_id")
            same = same or _started(record, prompt)

    return same


def _candidate(named: bytes, raw: bytes) -> Record:
    """Return a line with calls, or with results that name an agent.

    Others are not decoded: a parent may be large, and is read for each subagent.
    """
    is_result = named in raw and b"tool_result" in raw
    return load_object(raw) if is_result or b'"tool_use"' in raw else {}


def _started(record: Record, prompt: str | None) -> str | None:
    """Return the id of the call with that prompt; the conversation itself has it."""
    if prompt is None or record.get("isSidechain") is True:
        return None

    starts = filter(_is_start, blocks_of(record))
    same = (call for call in starts if within(call, "input", "prompt") == prompt)
    return _first(same, "id")


def _is_start(block: Record) -> bool:
    return block.get("name") in _STARTS


def _first(blocks: Iterable[Record], key: str) -> str | None:
    named = (as_text(block.get(key)) for block in blocks)
    return next(filter(None, named), None)
