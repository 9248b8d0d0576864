"""The examples: short, run as a person would run them, and printing what README shows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from docs_blocks import EXAMPLES, ROOT, page
from docs_console import masked, typed

pytestmark = pytest.mark.slow

MAX_LINES = 80


def said(name: str, folder: Path) -> str:
    """Run an example on a database of its own; return what it prints."""
    done = subprocess.run(
        [sys.executable, f"examples/{name}.py", str(folder / "sessions.db")],
        cwd=ROOT, check=False, capture_output=True, text=True, timeout=60,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    shown = dict(typed(page("docs/COOKBOOK.md")))[f"python examples/{name}.py"]
    # Two subagents that begin in one millisecond have no order.
    assert sorted(masked(done.stdout).split("\n")) == sorted(masked(shown).split("\n"))
    return done.stdout


def test_an_example_is_short_enough_to_be_read() -> None:
    for name in EXAMPLES:
        lines = (ROOT / "examples" / f"{name}.py").read_text().splitlines()
        assert len(lines) <= MAX_LINES, name


def test_a_killed_agent_finds_its_open_work_and_continues(tmp_path: Path) -> None:
    lines = said("agent", tmp_path).split("\n")
    assert lines[1] == "left open: 1 message, 1 call"
    answer = lines.index("#2 assistant cancelled")
    assert lines[answer + 1 : answer + 6] == [
        "   text  I look at the code and run the tests.",
        "   grep completed timer.py:5",
        "   bash interrupted None",
        "#3 assistant stop",
        "   bash completed 3 passed",
    ]


def test_a_fork_shares_its_beginning_and_outlives_its_original(tmp_path: Path) -> None:
    printed = said("fork", tmp_path)
    shared = "'Make the parser faster', 'Two ways: a cache, or C.'"
    assert f"in common: [{shared}]" in printed
    assert f"the fork is complete: [{shared}, 'Take C', 'Rewritten in C.']" in printed
    assert "what it cost: $0.07 for 3 answers" in printed
    assert "and carries its cost now: $0.05" in printed


def test_subagents_work_at_once_below_the_call_that_asked_for_them(
    tmp_path: Path,
) -> None:
    printed = said("subagent", tmp_path)
    assert (
        printed.count("task completed: ")
        == printed.count("subagent at #2 for call_")
        == 2
    )
    assert "a list leaves subagents out: ['Rename remaining()']" in printed
    assert "left after the delete: 0" in printed


def test_costs_are_counted_once_and_unknown_is_not_0(tmp_path: Path) -> None:
    printed = said("costs", tmp_path)
    assert (
        "local-model: 1 answer, unknown stated, unknown estimated, 300 tokens"
        in printed
    )
    assert "own unknown, inherited $0.0125" in printed
    assert (
        printed.count("example-costs: 3 answers, $0.0125 stated, $0.0008 estimated")
        == 2
    )


def test_a_conversation_is_continued_with_another_provider(tmp_path: Path) -> None:
    printed = said("providers", tmp_path)
    assert printed.startswith("OpenAI is sent: developer user\n")
    assert "  user tool_result" in printed
    assert "gpt-5.2: 200 in, 24 out" in printed
    assert "claude-sonnet-4-5: 1100 in, 12 out" in printed
