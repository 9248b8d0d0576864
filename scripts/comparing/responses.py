"""The tokens that the stores of agents have, counted without the library.

Each response that a provider gave counts once, however many lines, forks or copies
repeat it. A count is the tokens of the input, from cache or not, and of the output with
reasoning. Nothing here is shared with the readers that it checks.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple


class Count(NamedTuple):
    """Tokens of responses: of the input with what came from cache, of the output."""

    input: int
    output: int


def total(counts: Iterator[Count]) -> Count:
    """Return the sum of counts."""
    found = list(counts)
    return Count(sum(one.input for one in found), sum(one.output for one in found))


def records(folder: Path, pattern: str) -> Iterator[dict[str, Any]]:
    """Yield the records of the logs in a folder; a line that is not JSON is left out.

    A line ends at \\n alone: texts in it have other marks that break lines.
    """
    for file in sorted(folder.glob(pattern)):
        for line in file.read_text(encoding="utf-8", errors="replace").split("\n"):
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if isinstance(record, dict):
                yield record


def rows(file: Path, query: str) -> list[tuple[Any, ...]]:
    """Return the rows of a query, without changing the database or its folder."""
    uri = f"{file.as_uri()}?mode=ro&immutable=1"
    with closing(sqlite3.connect(uri, uri=True)) as database:
        return database.execute(query).fetchall()


def claude(home: Path) -> Count:
    """Count by the id of a message: a response has a line for each of its blocks."""
    by_id: dict[str, Count] = {}
    for record in records(home, ".claude/projects/**/*.jsonl"):
        message = record.get("message")
        usage = message.get("usage") if isinstance(message, dict) else None
        if record.get("type") != "assistant" or not usage:
            continue
        cached = usage["cache_read_input_tokens"] + usage["cache_creation_input_tokens"]
        count = Count(usage["input_tokens"] + cached, usage["output_tokens"])
        by_id[message["id"]] = count
    return total(iter(by_id.values()))


def codex(home: Path) -> Count:
    """Count by the id of a response, which records of usage have."""
    by_id: dict[str, Count] = {}
    for record in records(home, ".codex/**/*.jsonl"):
        if record.get("type") == "token_usage_record":
            payload = record["payload"]
            usage = payload["usage"]
            count = Count(usage["input_tokens"], usage["output_tokens"])
            by_id[payload["response_id"]] = count
    return total(iter(by_id.values()))


def gemini(home: Path) -> Count:
    """Count by the id of a record: a journal writes one again when it changes."""
    by_id: dict[str, Count] = {}
    for record in records(home, ".gemini/tmp/*/chats/**/*.jsonl"):
        tokens = record.get("tokens")
        if tokens:
            count = Count(tokens["input"], tokens["output"] + tokens["thoughts"])
            by_id[record["id"]] = count
    return total(iter(by_id.values()))


def qwen(home: Path) -> Count:
    """Count the telemetry by the id of a response."""
    by_id: dict[str, Count] = {}
    for record in records(home, ".qwen/projects/**/*.jsonl"):
        event = (record.get("systemPayload") or {}).get("uiEvent") or {}
        if event.get("event.name") == "qwen-code.api_response":
            output = event["output_token_count"]
            by_id[event["response_id"]] = Count(event["input_token_count"], output)
    return total(iter(by_id.values()))


def pi(home: Path) -> Count:
    """Count by the id and the time of an entry, which forks copy."""
    by_id: dict[tuple[str, str], Count] = {}
    for record in (*records(home, ".pi/**/*.jsonl"), *records(home, ".omp/**/*.jsonl")):
        usage = record.get("usage") or (record.get("message") or {}).get("usage")
        if usage:
            input_tokens = usage["input"] + usage["cacheRead"] + usage["cacheWrite"]
            place = (record["id"], record["timestamp"])
            by_id[place] = Count(input_tokens, usage["output"])
    return total(iter(by_id.values()))


def goose(home: Path) -> Count:
    """Count the sums that each session has of its own requests."""
    query = "SELECT accumulated_input_tokens, accumulated_output_tokens FROM sessions"
    sessions = rows(home / ".local/share/goose/sessions/sessions.db", query)
    return total(Count(sent or 0, received or 0) for sent, received in sessions)


def opencode_1(home: Path) -> Count:
    """Count by time, tokens and cost, which a fork copies under a new id."""
    query = "SELECT data FROM message"
    distinct: set[tuple[Any, ...]] = set()
    for (data,) in rows(home / ".local/share/opencode/opencode.db", query):
        message = json.loads(data)
        tokens = message.get("tokens")
        if tokens:
            cache = tokens["cache"]
            sent = tokens["input"] + cache["read"] + cache["write"]
            received = tokens["output"] + tokens["reasoning"]
            created = message["time"]["created"]
            distinct.add((created, sent, received, message["cost"]))
    return total(Count(sent, received) for _, sent, received, _ in distinct)


def opencode_2(home: Path) -> Count:
    """Count the sums of sessions; an imported copy has the sums of its original."""
    query = """
        SELECT DISTINCT time_created, cost, tokens_input,
               tokens_input + tokens_cache_read + tokens_cache_write,
               tokens_output + tokens_reasoning
          FROM session_v2
    """
    sessions = rows(home / ".local/share/opencode/opencode.db", query)
    return total(Count(sent, received) for *_, sent, received in sessions)


def llm(home: Path) -> Count:
    """Count the rows of responses."""
    query = "SELECT input_tokens, output_tokens FROM turns"
    turns = rows(home / ".config/io.datasette.llm/logs.db", query)
    return total(Count(sent or 0, received or 0) for sent, received in turns)


#: What is counted in the folder of a fixture, by how its name begins.
COUNTERS: dict[str, Callable[[Path], Count]] = {
    "claude-code-2": claude,
    "codex-0.16": codex,
    "gemini-cli-": gemini,
    "goose-1": goose,
    "llm-0.36": llm,
    "oh-my-pi-": pi,
    "opencode-1.18": opencode_1,
    "opencode-2": opencode_2,
    "pi-0": pi,
    "qwen-code-": qwen,
}
