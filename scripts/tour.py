"""The end of quickstart: imports sessions, says what was found and what to type next.

Sessions go where `sessiondb` looks for them, so the next command that is typed shows
the same ones: SESSIONDB_PATH, or the database of this machine. A second run adds
nothing. Without sessions on this machine a small sample is imported.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SAMPLE = "examples/sample-opencode"
BIN = Path(sys.executable).parent
ENVIRONMENT = {
    **os.environ,
    "PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
    "PAGER": "cat",  # so that the tour never waits for a key
}

DONE, NOT_FOUND, PROBLEMS = 0, 3, 4


def sessiondb(*arguments: str, accept: tuple[int, ...] = (DONE,)) -> None:
    """Print and run one command; exit with its code unless that is in *accept*."""
    print(f"\n$ {shlex.join(['sessiondb', *arguments])}", flush=True)
    command = ["sessiondb", *arguments]
    code = subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, check=False).returncode
    if code not in accept:
        sys.exit(code)


def result_of(*arguments: str) -> dict[str, Any]:
    """Return the JSON that a command prints; exit with its code if it fails."""
    result = subprocess.run(
        ["sessiondb", *arguments, "--json"],
        cwd=ROOT,
        env=ENVIRONMENT,
        check=False,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )
    if result.returncode != DONE:
        sys.exit(result.returncode)
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def import_sessions() -> bool:
    """Import this machine's sessions, else the sample; return whether it is that."""
    print("# Your agents' files are only read; none of them changes.", end="")
    # Problems in old files are reported by the import and do not stop the tour.
    sessiondb("import", accept=(DONE, NOT_FOUND, PROBLEMS))
    if result_of("status")["sessions"] > 0:
        return False
    print("\n# No sessions on this machine: a small sample instead.", end="")
    sessiondb("import", SAMPLE)
    return True


def findings() -> str:
    """Return one sentence on the sessions, and one on their cost."""
    everything = ("-a", "--archived", "--subagents")
    by_source = result_of("stats", *everything, "--by", "source")
    status = result_of("status")
    oldest = result_of("list", "-a", "--sort", "created", "--limit", "10000")
    days = [session["time_created"] for session in oldest["sessions"]]

    programs = ", ".join(row["source"] for row in by_source["rows"])
    sessions = f"{status['sessions']:,} sessions of {programs or 'no program'}"
    if days:
        first = datetime.fromtimestamp(min(days) / 1000, UTC)
        sessions += f", the first of {first:%Y-%m-%d}"
    return f"{sessions}.\n{_cost_words(by_source['total'])}"


def _cost_words(total: dict[str, Any]) -> str:
    stated, estimated = total["cost"], total["cost_estimated"]
    words = "The programs state no cost"
    if stated is not None:
        words = f"The sessions cost ${stated:,.2f}"
    if estimated is not None:
        words += f", and an estimated ${estimated:,.2f}"
    if total["tokens_unpriced"]:
        words += f"; {total['tokens_unpriced']:,} tokens have no known price"
    return f"{words}."


def main() -> None:
    """Run the tour."""
    # For the databases that README makes.
    (ROOT / ".quickstart").mkdir(mode=0o700, exist_ok=True)
    is_sample = import_sessions()
    sessiondb()
    path = result_of("path")["path"]
    print(f"\n{findings()}")
    print(f"The sessions are in {path}.")
    print("\nTo type commands yourself, first:\n")
    print(f'$ export PATH={shlex.quote(str(BIN))}:"$PATH"')
    print("$ sessiondb")
    if is_sample:
        print("\nThe sample is removed with:\n")
        print("$ sessiondb rm -a --source opencode")


if __name__ == "__main__":
    main()
