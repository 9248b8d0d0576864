"""The fenced blocks of a Markdown page, with the text before each of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/FORMAT.md", "docs/DESIGN.md",
         "docs/JSONL.md", "docs/LIBRARY.md", "docs/COOKBOOK.md", "docs/CLI.md", "docs/BENCHMARKS.md",
         "docs/ADD_A_FORMAT.md", "docs/ADAPTERS.md",
         *sorted(f"docs/adapters/{page.name}" for page in (ROOT / "docs/adapters").iterdir()))  # fmt: skip
EXAMPLES = ("agent", "fork", "subagent", "costs", "providers")
_FENCE = re.compile(r"(?m)^```(\w+)\n(.*?)^```$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """One block: its text, the paragraph (or comment) before it, and its line."""

    text: str
    before: str
    line: int


def page(name: str) -> str:
    """Return the text of a page of the repository."""
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(text: str, language: str) -> list[Block]:
    """Return the blocks of one language, in order."""
    found = []
    for match in _FENCE.finditer(text):
        if match[1] == language:
            before = (
                text[: match.start()]
                .rstrip()
                .rsplit("\n\n", 1)[-1]
                .rsplit("```\n", 1)[-1]
            )
            line = text.count("\n", 0, match.start()) + 1
            found.append(Block(match[2], before.strip(), line))
    return found
