"""The main job, shown: import, list, show, fork, search, one SQL query, remove the fork.

Each command is printed as it can be typed, then run. Everything happens in
.quickstart/sessions.db inside the clone; a second run finds it all there and
adds nothing.
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
    "PAGER": "cat",  # the tour continues without a key press
}

DONE, NOT_FOUND, PROBLEMS = 0, 3, 4
QUERY = (
    "SELECT model_id, sessions, messages, round(cost, 4) AS usd "
    "FROM usage_by_model ORDER BY cost DESC LIMIT 10"
)
# A substitute for the shell: a header and rows, as `sqlite3 -header` prints them.
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


def say(sentence: str) -> None:
    """Print the purpose of the next command as a shell comment."""
    print(f"\n# {sentence}", end="")


def sessiondb(*arguments: str, accept: tuple[int, ...] = (DONE,)) -> None:
    """Show one command; ends the tour when it fails."""
    code = run("sessiondb", "--db", DATABASE, *arguments).returncode
    if code not in accept:
        sys.exit(code)


def ask(*arguments: str) -> dict[str, Any] | None:
    """Return the JSON that a command prints, or None if it fails."""
    result = run("sessiondb", "--db", DATABASE, *arguments, "--json", quiet=True)
    return json.loads(result.stdout) if result.returncode == DONE else None


def bring_in() -> list[dict[str, Any]]:
    """Import this machine's sessions, else the sample; return the newest ones."""
    say(
        "Bring in the sessions that OpenCode keeps on this machine; nothing over there changes."
    )
    # Problems in old files are reported by the import and do not stop the tour.
    sessiondb("import", accept=(DONE, NOT_FOUND, PROBLEMS))
    if not _listed():
        say("There are none yet, so here is a small sample.")
        sessiondb("import", SAMPLE)
    return _listed() or sys.exit("No session was imported.")


def _listed() -> list[dict[str, Any]]:
    page = ask("list", "-a")
    return page["sessions"] if page else []


def choose(sessions: list[dict[str, Any]]) -> tuple[str, str]:
    """Pick a session with something to see and a word that it contains."""
    session = next((s for s in sessions if s["message_count"] > 2), sessions[0])
    for ref in (session["slug"], session["id"]):
        shown = ask("show", ref, "--last", "40")
        if shown and shown["session"]["id"] == session["id"]:
            return ref, _word(shown)
    sys.exit(f"Session {session['id']} was listed and cannot be shown.")


def _word(shown: dict[str, Any]) -> str:
    parts = [part for message in shown["messages"] for part in message["parts"]]
    texts = [part["text"] for part in parts if part["type"] == "text"]
    words = re.findall(r"(?<!\w)[^\W\d_]{3,16}(?!\w)", " ".join(filter(None, texts)))
    return max(words, key=len, default="the")


def fork(ref: str) -> str:
    """Fork a session, showing the JSON that programs read; return the id of the fork."""
    say(
        "Try something else from its end, in a copy; --json is for programs, on any command."
    )
    command = ("sessiondb", "--db", DATABASE, "fork", ref, "--json")
    print(f"\n$ {shlex.join(command)}", flush=True)
    result = run(*command, quiet=True)
    print(result.stdout, end="")
    if result.returncode != DONE:
        sys.exit(result.stderr or result.returncode)
    return str(json.loads(result.stdout)["session"]["id"])


def query() -> None:
    """Query the file directly, without sessiondb in between."""
    say("The file is plain SQLite: what did each model cost?")
    if shutil.which("sqlite3", path=ENVIRONMENT["PATH"]):
        code = run("sqlite3", "-header", "-column", DATABASE, QUERY).returncode
    else:
        code = run("python3", "-c", PYTHON_SHELL, DATABASE, QUERY).returncode
    if code != DONE:
        sys.exit(code)


def main() -> None:
    """Show everything in its order."""
    print("To go on by yourself afterwards, type these two first:\n")
    print(f"$ cd {shlex.quote(str(ROOT))}")
    print('$ export PATH="$PWD/.venv/bin:$PATH"')
    sessions = bring_in()
    say("What is here now, in all projects (-a), newest first; subagents are left out.")
    if not sys.stdout.isatty():
        say(
            "This is not a terminal, so values are separated by tabs; on one it is a table."
        )
    sessiondb("list", "-a", "--limit", "10")
    ref, word = choose(sessions)
    say("Read one: the end of it, tool calls folded.")
    sessiondb("show", ref, "--last", "6")
    copy = fork(ref)
    try:
        say("Find a word in everything that was said and run.")
        sessiondb("search", word, "-a", "--limit", "5")
        query()
    finally:
        say("Remove the copy again. Without --yes it shows the plan and asks.")
        sessiondb("rm", copy, "--yes")
    print(NEXT.format(database=DATABASE, ref=ref))


NEXT = """
That is the main job. What to type next:

$ sessiondb --db {database} tree {ref}
$ sessiondb import            # the same into your own database, which then needs no --db
$ sessiondb list -a
$ sessiondb --help
"""

if __name__ == "__main__":
    main()
