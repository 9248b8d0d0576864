"""Tokens in our database are those of the responses that the stores of agents have."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from compare_usage import difference
from comparing.responses import COUNTERS, Count, claude

from sessiondb import Store
from sessiondb.formats import find

STORES = (
    "claude-code-2.1.329", "codex-0.169.0", "gemini-cli-0.61.0", "goose-1.34.0",
    "llm-0.36", "oh-my-pi-18.2.3", "opencode-1.18.33", "opencode-2.0.15", "pi-0.87.1",
    "qwen-code-0.24.4",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", STORES)
def test_each_response_that_an_agent_stored_counts_once(
    name: str, real_store: Callable[[str], Path], store: Store
) -> None:
    home = real_store(name) / "data"
    (count,) = [count for start, count in COUNTERS.items() if name.startswith(start)]
    for source in find(home):
        list(store.ingest(source.read()))
    (row,) = store.usage(by=())
    tokens = row.tokens
    sent = (tokens.input, tokens.cache_read, tokens.cache_write)
    received = (tokens.output, tokens.reasoning)
    counted = Count(sum(n or 0 for n in sent), sum(n or 0 for n in received))
    assert counted == count(home)


def test_lines_and_copies_of_a_response_are_one_in_the_independent_count(
    tmp_path: Path,
) -> None:
    usage = {
        "input_tokens": 5, "output_tokens": 2,
        "cache_read_input_tokens": 3, "cache_creation_input_tokens": 1,
    }  # fmt: skip
    line = {"type": "assistant", "message": {"id": "msg_1", "usage": usage}}
    folder = tmp_path / ".claude" / "projects" / "p"
    folder.mkdir(parents=True)
    for name in ("original", "fork"):
        text = f"{json.dumps(line)}\n{json.dumps(line)}\nnot JSON\n"
        (folder / f"{name}.jsonl").write_text(text)
    assert claude(tmp_path) == Count(9, 2)


def test_a_difference_is_in_percent_of_what_is_stored() -> None:
    stored = Count(1_000, 10)
    assert difference(Count(1_000, 10), stored) == "0"
    assert difference(Count(1_152, 10), stored) == "+15.2 %"
    assert difference(None, stored) == "–"
