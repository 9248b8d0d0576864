"""Real processes: a Python child that runs a piece of code with sessiondb at hand."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

SRC = Path(__file__).resolve().parent.parent / "src"


def environment(**more: str) -> dict[str, str]:
    """Return the environment of a child: this one's, with sessiondb and the tests importable."""
    places = [str(SRC), str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    places.append(more.pop("PYTHONPATH", ""))
    return {**os.environ, **more, "PYTHONPATH": os.pathsep.join(filter(None, places))}


def start(
    code: str, *args: object, flags: tuple[str, ...] = ()
) -> subprocess.Popen[str]:
    """Start a child that runs *code*; its three streams are pipes."""
    command = [sys.executable, *flags, "-c", textwrap.dedent(code), *map(str, args)]
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment()
    )


def run(
    code: str,
    *args: object,
    flags: tuple[str, ...] = (),
    python: str = sys.executable,
    timeout: float = 60,
    input: str = "",
    **env: str,
) -> subprocess.CompletedProcess[str]:
    """Run *code* in a child to its end."""
    command = [python, *flags, "-c", textwrap.dedent(code), *map(str, args)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=timeout, env=environment(**env),
        input=input, check=False,
    )  # fmt: skip


def said(done: subprocess.CompletedProcess[str]) -> str:
    """Return the output of a child, which must have succeeded."""
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
