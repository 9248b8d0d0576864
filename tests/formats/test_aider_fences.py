"""Fences of aider: judged like by reading ahead from each, in steps of their number."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from samples_aider import run

from sessiondb.formats.aider import fences, scanner
from sessiondb.formats.aider.conventions import FENCE, HEADER
from sessiondb.formats.aider.scanner import TOP, Block, Scanner
from sessiondb.formats.kit.lines import Lines, open_pieces

PROMPT = "\n#### x  \n\n"
#: Texts in which each fence may have been left open, and the line that they end with.
HOSTILE = {
    "each line opens or closes": ("```\n" + PROMPT, ""),
    "each one is open to the end": ("```x\n" + PROMPT, ""),
    "all are closed by the last line": ("`````x\n" + PROMPT, "`````\n"),
    "two kinds": ("~~~\n" + PROMPT + "```\n" + PROMPT, "~~~\n"),
    "reports": ("```\n\n> Tokens: 1\n\n", ""),
    "marks of byte order": ("\ufeff```x\n" + PROMPT, "```x\n"),
}
LINES = (
    "\n", PROMPT, PROMPT, "#### x  \n", "\n> Tokens: 1\n", "> out\n", "text\n", f"{run(1)}", run(2).strip() + "\n",
    "```\n", "```\n", "```x\n", "```x\n", "````\n", "````x\n", "~~~\n", "~~~~ x\n", " ```\r\n", "``` a`b\n",
    "\ufeff```x\n", "\ufeff~~~\n",
)  # fmt: skip


class _Plain:
    """The same judgement, read ahead again from each fence."""

    def __init__(
        self, lines: Lines, fence: bytes, opened: int, begin: int, end: int
    ) -> None:
        del opened, begin
        self._lines, self._fence, self._end = lines, fence, end

    def reach(self, offset: int) -> bool:
        del offset
        return False

    def is_left_open(self, opened: int, offset: int) -> bool:
        del opened
        states: list[bytes | None] = [None, self._fence]
        inner, count, most = [0, 0], 0, min(self._end, offset + fences.AHEAD)
        for raw in self._lines.lines_from(offset):
            bare = raw.rstrip(b"\r\n")
            if offset >= most or (count and HEADER.fullmatch(bare)):
                break

            offset += len(raw)
            match = FENCE.fullmatch(bare)
            if match is None:
                continue

            count += 1
            for n, fence in enumerate(states):
                if fence is None:
                    states[n] = match[1]
                elif match[2].strip():
                    inner[n] += 1
                elif match[1].startswith(fence):
                    states[n] = None

        outside, inside = (
            (s is not None, n) for s, n in zip(states, inner, strict=True)
        )
        return outside < inside


def blocks_of(text: str) -> list[Block]:
    raw = text.encode()
    with open_pieces(Path("x.md"), [raw]) as lines:
        return list(Scanner(lines, TOP, len(raw)))


@given(st.lists(st.sampled_from(LINES), max_size=60), st.sampled_from((9, 60, 1 << 20)))
@example(["```\n", PROMPT, "````x\n", PROMPT, "```x\n", PROMPT, "````\n"], 1 << 20)
@settings(max_examples=300, deadline=None)
def test_fences_are_judged_as_by_reading_ahead_from_each(
    pieces: list[str], ahead: int
) -> None:
    text = PROMPT + "".join(pieces)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fences, "AHEAD", ahead)
        found = blocks_of(text)
        patch.setattr(scanner, "Fences", _Plain)
        assert blocks_of(text) == found


def steps_of(action: Callable[[], object]) -> int:
    """Return how many functions an action calls, of Python or not."""
    count = 0

    def counted(_: Any, event: str, __: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counted)
    try:
        action()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("name", HOSTILE)
def test_the_steps_for_fences_grow_with_their_number(name: str) -> None:
    piece, end = HOSTILE[name]
    few, many = (
        steps_of(lambda n=n: blocks_of(PROMPT + piece * n + end)) for n in (200, 800)
    )
    assert many < 8 * few


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_fences_of_100_kb_are_read(name: str) -> None:
    piece, end = HOSTILE[name]
    text = PROMPT + piece * (100_000 // len(piece)) + end
    # One by one it was tens of millions of steps.
    assert steps_of(lambda: blocks_of(text)) < 30 * text.count("\n")
