"""The console blocks of a page: run again, and compared with what the page shows.

    python tests/docs/docs_console.py README.md docs/COOKBOOK.md

writes the current output of the commands into the pages.

A block is commands after ``$ ``, each followed by what it prints on a terminal of
100 columns. ``sessiondb`` runs in this process on a fresh database, an example in
a process of its own; ``export`` and ``cd`` are for the reader. What no two runs have in
common (ids made at random) is masked before anything is compared.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

from docs_blocks import ROOT, page

from sessiondb.cli import main as command_line

_BLOCK = re.compile(r"(?m)^```console\n(.*?)^```$", re.DOTALL)
_RANDOM = (
    (re.compile(r"(?:ses|msg|prt)_[0-9A-HJKMNP-TV-Z]{26}"), "<id>"),
    (re.compile(r"(?m)^([ │├└─]*)[0-9a-hjkmnp-tv-z]{6}(?=  )"), r"\1<ref>"),
)


class _Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


def typed(text: str) -> list[tuple[str, str]]:
    """Return (command, its output on the page) of the console blocks of a page."""
    found = []
    for block in _BLOCK.findall(text):
        for piece in re.split(r"(?m)^\$ ", block)[1:]:
            command, _, shown = piece.partition("\n")
            found.append((command, shown.rstrip()))
    return found


def masked(text: str) -> str:
    """Return *text* without random values and without trailing spaces."""
    for pattern, mask in _RANDOM:
        text = pattern.sub(mask, text)
    return "\n".join(line.rstrip() for line in text.strip().split("\n"))


def run(command: str) -> str:
    """Run one command of a page; return the output that a reader sees, stderr included."""
    words = shlex.split(command, comments=True)
    if words[0] in ("export", "cd"):
        return ""
    if words[0] == "sessiondb":
        return _sessiondb(words[1:])
    assert words[0] == "python", command
    return subprocess.run(
        [sys.executable, *words[1:]], cwd=ROOT, check=True, text=True, capture_output=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    ).stdout  # fmt: skip


def _sessiondb(arguments: list[str]) -> str:
    raw = io.BytesIO()
    stdout = _Terminal(raw, encoding="utf-8", write_through=True)
    stderr = io.TextIOWrapper(raw, encoding="utf-8", write_through=True)
    with (
        mock.patch.multiple(
            sys, stdout=stdout, stderr=stderr, argv=["sessiondb", *arguments]
        ),
        contextlib.suppress(SystemExit),
        contextlib.chdir(ROOT),
    ):
        command_line()
    stdout.flush()
    return raw.getvalue().decode()


@contextlib.contextmanager
def fresh_terminal(database: Path) -> Iterator[None]:
    """Let commands find a new database, a terminal of 100 columns, and UTC."""
    wanted = {
        "SESSIONDB_PATH": str(database), "COLUMNS": "100", "LINES": "1000", "NO_COLOR": "1",
        "TZ": "UTC",
    }  # fmt: skip
    with mock.patch.dict(os.environ, wanted):
        time.tzset()
        try:
            yield
        finally:
            time.tzset()
    time.tzset()


def rewritten(text: str) -> str:
    """Return a page with every console block as its commands print it now."""

    def again(match: re.Match[str]) -> str:
        pieces = []
        for command, _ in typed(match[0]):
            lines = [line.rstrip() for line in run(command).strip().split("\n")]
            pieces.append(
                "\n".join([f"$ {command}", *filter(None, lines[:1]), *lines[1:]]) + "\n"
            )
        return "```console\n" + "\n".join(pieces) + "```"

    return _BLOCK.sub(again, text)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        with (
            tempfile.TemporaryDirectory() as folder,
            fresh_terminal(Path(folder, "sessions.db")),
        ):
            fresh = rewritten(page(name))
            (ROOT / name).write_text(fresh, encoding="utf-8")
