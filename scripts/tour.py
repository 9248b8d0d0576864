"""A tour of the main commands: import, list, show, fork, search, one SQL query, rm.

Each command is printed as it can be typed, then run. The tour uses only
.quickstart/sessions.db inside the clone; a second run adds nothing to it.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DATABASE = ".quickstart/sessions.db"
SAMPLE = "examples/sample-opencode"
BIN = Path(sys.executable).parent
ENVIRONMENT = {
    **os.environ,
    "PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
    "PAGER": "cat",  # so that the tour never waits for a key
}

DONE, NOT_FOUND, PROBLEMS = 0, 3, 4
QUERY = (
    "SELECT model_id, sessions, messages, round(cost, 4) AS usd "
    "FROM usage_by_model ORDER BY cost DESC LIMIT 10"
)
# Without the sqlite3 shell: a header and rows, as `sqlite3 -header` prints them.
PYTHON_SHELL = (
    "import sqlite3, sys; rows = sqlite3.connect(sys.argv[1]).execute(sys.argv[2]); "
    'print(*[c[0] for c in rows.description], sep="|"); [print(*row, sep="|") for row in rows]'
)


def run(*command: str, quiet: bool = False) -> subprocess.CompletedProcess[str]:
    """Run a command in the clone; *quiet* keeps its output instead of showing it."""
    if not quiet:
        print(f"\n$ {shlex.join(command)}", flush=True)
    return subprocess.run(
        command,
        cwd=ROOT,
        env=ENVIRONMENT,
        check=False,
        capture_output=quiet,
        encoding="utf-8",
    )


def explain(sentence: str) -> None:
    """Print the purpose of the next command as a shell comment."""
    print(f"\n# {sentence}", end="")


def sessiondb(*arguments: str, accept: tuple[int, ...] = (DONE,)) -> None:
    """Print and run one command; exit with its code unless that is in *accept*."""
    code = run("sessiondb", "--db", DATABASE, *arguments).returncode
    if code not in accept:
        sys.exit(code)


def result_of(*arguments: str) -> dict[str, Any] | None:
    """Return the JSON that a command prints, or None if it fails."""
    result = run("sessiondb", "--db", DATABASE, *arguments, "--json", quiet=True)
    return json.loads(result.stdout) if result.returncode == DONE else None


def import_sessions() -> list[dict[str, Any]]:
    """Import this machine's sessions, else the sample; return the newest ones."""
    (ROOT / DATABASE).parent.mkdir(mode=0o700, exist_ok=True)
    explain("Import your agents' sessions. They are only read: no file changes.")
    # Problems in old files are reported by the import and do not stop the tour.
    sessiondb("import", accept=(DONE, NOT_FOUND, PROBLEMS))
    if not _listed():
        explain("No sessions on this machine: import a small sample instead.")
        sessiondb("import", SAMPLE)
    return _listed() or sys.exit("No session was imported.")


def _listed() -> list[dict[str, Any]]:
    page = result_of("list", "-a")
    return page["sessions"] if page else []


def choose(sessions: list[dict[str, Any]]) -> tuple[str, str]:
    """Return a reference to a session worth showing, and a word that it contains."""
    session = next((s for s in sessions if s["message_count"] > 2), sessions[0])
    for ref in (session["slug"], session["id"]):
        shown = result_of("show", ref, "--last", "40")
        if shown and shown["session"]["id"] == session["id"]:
            return ref, _word(shown)
    sys.exit(f"Session {session['id']} is in the list but cannot be shown.")


def _word(shown: dict[str, Any]) -> str:
    parts = [part for message in shown["messages"] for part in message["parts"]]
    texts = [part["text"] for part in parts if part["type"] == "text"]
    words = re.findall(r"(?<!\w)[^\W\d_]{3,16}(?!\w)", " ".join(filter(None, texts)))
    return max(words, key=len, default="the")


def fork(ref: str) -> str:
    """Fork a session and print the JSON for programs; return the id of the fork."""
    explain(
        "Fork it to try another approach from its end. Every command has --json, for programs."
    )
    command = ("sessiondb", "--db", DATABASE, "fork", ref, "--json")
    print(f"\n$ {shlex.join(command)}", flush=True)
    result = run(*command, quiet=True)
    print(result.stdout, end="")
    if result.returncode != DONE:
        sys.exit(result.stderr or result.returncode)
    return str(json.loads(result.stdout)["session"]["id"])


def query() -> None:
    """Query the file directly, without sessiondb."""
    explain("The database is a plain SQLite file. For example, the cost of each model:")
    if shutil.which("sqlite3", path=ENVIRONMENT["PATH"]):
        code = run("sqlite3", "-header", "-column", DATABASE, QUERY).returncode
    else:
        code = run("python3", "-c", PYTHON_SHELL, DATABASE, QUERY).returncode
    if code != DONE:
        sys.exit(code)


def main() -> None:
    """Run the tour."""
    print("To run these commands yourself later, first type:\n")
    print(f"$ cd {shlex.quote(str(ROOT))}")
    print('$ export PATH="$PWD/.venv/bin:$PATH"')
    sessions = import_sessions()
    explain("List the sessions of all projects (-a), newest first, without subagents.")
    if not sys.stdout.isatty():
        explain("(Not a terminal: tabs between the columns instead of a table.)")
    sessiondb("list", "-a", "--limit", "10")
    ref, word = choose(sessions)
    explain("Show the end of one session, with its tool calls folded.")
    sessiondb("show", ref, "--last", "6")
    forked = fork(ref)
    try:
        explain("Search all messages and tool calls for a word.")
        sessiondb("search", word, "-a", "--limit", "5")
        query()
    finally:
        explain(
            "Remove the fork. Without --yes, rm shows its plan and waits for a yes."
        )
        sessiondb("rm", forked, "--yes")
    print(NEXT.format(database=DATABASE, ref=ref))


NEXT = """
Those are the main commands. Next, try:

$ sessiondb --db {database} tree {ref}
$ sessiondb import            # into your own database, the default without --db
$ sessiondb list -a
$ sessiondb --help
"""

if __name__ == "__main__":
    main()
