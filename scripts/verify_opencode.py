"""Exports of ours, imported and exported again by the real OpenCode; called by verify-opencode."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sessiondb import (
    ALL,
    MessageDraft,
    Store,
    assistant,
    event,
    file,
    part,
    reasoning,
    system,
    text,
    tool,
    tool_result,
    user,
)
from sessiondb.formats import find
from sessiondb.formats.opencode.to1 import First
from sessiondb.formats.opencode.to2 import Second
from sessiondb.model import Loss, Problem, Session

ROOT = Path(__file__).resolve().parent.parent
FIXTURES = Path(os.environ.get("SESSIONDB_FIXTURES", ROOT.parent / "shared" / "fixtures"))
STORES = ("opencode-1.18.33", "opencode-1.1.65", "opencode-migrated-1.2.27", "opencode-0.5.29")
STORES += ("opencode-2.0.15", "opencode-upgraded-2.0.15")
PACKAGES = {"1.x": "opencode-ai@1.18.33", "2.x": "@opencode/cli-linux-x64-baseline@2.0.15"}
BINARIES = {
    "1.x": "node_modules/opencode-ai/bin/opencode.exe",
    "2.x": "node_modules/@opencode/cli-linux-x64-baseline/bin/opencode",
}
#: What an import sets anew, or forgets; 1.18 has no contents in the diffs of a prompt any more.
ANEW = {
    "1.x": {"projectID", "directory", "path", "messages[].info.summary.diffs[]"},
    "2.x": {"projectID", "location", "subpath", "fork", "revert", "time.updated"},
}
NOTHING = {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}


@dataclass
class Row:
    """A line of the table."""

    tool: str
    store: str
    sessions: int = 0
    imported: int = 0
    messages: int = 0
    info: int = 0
    lost: int = 0
    differences: Counter[str] = field(default_factory=Counter)


class Tool:
    """One version of OpenCode in a home of its own."""

    def __init__(self, generation: str, tools: Path, home: Path) -> None:
        self.generation = generation
        self._program = install(generation, tools)
        self._project = home / "project"
        self._project.mkdir(parents=True)
        self._env = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "PWD": str(self._project),
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
        }
        author = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
        self._run("git", "init", "-q")
        self._run("git", *author, "commit", "-q", "--allow-empty", "-m", "begin")

    def _run(self, *command: str, check: bool = True) -> str:
        """Run a command and return what it printed, errors last."""
        # Not through pipes: version 1 exits before a long export has left.
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
            subprocess.run(
                command, cwd=self._project, env=self._env, check=check, stdout=out,
                stderr=errors, timeout=120,
            )  # fmt: skip
            out.seek(0)
            errors.seek(0)
            return out.read() or errors.read()

    def round_trip(self, name: str, document: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
        """Import and export a session; None and why where the tool does not take it."""
        path = self._project.parent / f"{name}.json"
        path.write_text(json.dumps(document), encoding="utf-8")
        if self.generation == "1.x":
            done = self._run(self._program, "import", str(path), check=False)
            again = self._run(self._program, "export", name, check=False)
        else:
            where = ("--directory", str(self._project))
            done = self._run(self._program, "session", "import", *where, str(path), check=False)
            again = self._run(self._program, "session", "export", name, check=False)
        if f"Imported session: {name}" not in done:
            return None, " ".join(done.split())[:300]
        try:
            found: dict[str, Any] = json.loads(again)
        except ValueError:
            return None, " ".join(again.split())[:300]
        return found, ""

    def stop(self) -> None:
        """End the server that version 2 leaves running."""
        if self.generation == "2.x":
            self._run(self._program, "service", "stop", check=False)


def install(generation: str, tools: Path) -> str:
    """Install a version below *tools* unless it is there; return its program."""
    folder = tools / generation
    program = folder / BINARIES[generation]
    if not program.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        package = PACKAGES[generation]
        print(f"installing {package} ...", file=sys.stderr)
        options = ("--no-audit", "--no-fund", "--loglevel", "error")
        subprocess.run(["npm", "install", "--prefix", str(folder), *options, package], check=True)
        launcher = folder / "node_modules" / "opencode-ai" / "postinstall.mjs"
        if launcher.is_file():  # newer npm leaves it to us
            subprocess.run(["node", str(launcher)], cwd=launcher.parent, check=True)
    return str(program)


def differences(mine: Any, theirs: Any, path: str = "") -> Iterator[str]:
    """Yield the places where two JSON values differ; positions in lists are left out."""
    if isinstance(mine, dict) and isinstance(theirs, dict):
        for key in sorted(mine.keys() | theirs.keys()):
            yield from differences(mine.get(key, ...), theirs.get(key, ...), f"{path}.{key}")
    elif isinstance(mine, list) and isinstance(theirs, list) and len(mine) == len(theirs):
        for one, other in zip(mine, theirs, strict=True):
            yield from differences(one, other, f"{path}[]")
    elif mine != theirs:
        yield path.removeprefix(".")


def real_differences(generation: str, mine: Any, theirs: Any, path: str = "") -> set[str]:
    """Return what came back changed, besides what an import sets anew."""
    if generation == "1.x" and not path:  # it writes 0 where nothing is stated
        mine = {"cost": 0, "tokens": NOTHING, **mine}
    found = set(differences(mine, theirs, path))
    return {place for place in found if not any(
        place == known or place.startswith(f"{known}.") for known in ANEW[generation]
    )}  # fmt: skip


def sessions_of(store: Store) -> list[Session]:
    """Return every session, parents first."""
    found = store.sessions(
        project=ALL, archived=True, subagents=True, empty=True, order="created", limit=1000
    )
    newest_first = list(found)
    return newest_first[::-1]


def check(program: Tool, row: Row, store: Store, make: Callable[..., Any]) -> None:
    """Send the sessions of a store through the tool and note what comes back."""
    for session in sessions_of(store):
        losses: list[Loss] = []
        export = store.export(session.id)
        document = make(export, list(export.messages), losses).json()
        row.sessions += 1
        row.lost += len(losses)
        found, why = program.round_trip(document["info"]["id"], document)
        if found is None:
            row.differences[f"refused: {why}"] += 1
            continue
        row.imported += 1
        records = [both["messages"] for both in (document, found)]
        changed = real_differences(program.generation, *records, "messages")
        info = real_differences(program.generation, document["info"], found["info"])
        row.messages += not changed
        row.info += not info
        row.differences.update(changed | info)


def talk(store: Store) -> None:
    """Write sessions that no OpenCode has seen: every role, calls of every state, a family."""
    session = store.create_session(title="Mend the parser 🔧", directory="/tmp/parser")  # noqa: S108
    tokens = {"provider": "acme", "model": "large", "cost": 0.25}
    store.append(session, event("context", text("You are careful.")))
    store.append(session, system("Be brief."))
    prompt = user(text("Mend it, 直して"), file(content=b"\x89PNG", mime="image/png"))
    store.append(session, prompt)
    parts = (
        reasoning("Hm"),
        text("Reading."),
        tool("read", {"path": "a.py"}, call_id="call_1", output="x = 1\0"),
        tool("edit", ["no", "object"], call_id="call_2", error="No such file"),
        tool("bash", {"command": "rm -r /"}, call_id="call_3", outcome="denied"),
        part("hologram", depth=3),
    )
    store.append(session, assistant(*parts), finish="tool-calls", **tokens)
    store.append(session, assistant(tool("ls", {}, call_id="call_4")), **tokens)
    store.append(session, MessageDraft("tool", (tool_result("call_4", "a.py"),)))
    store.append(session, event("custom_message", text("The file changed meanwhile.")))
    store.append(session, event("compaction", text("A parser was mended.")))
    store.append(session, user("And?"))
    last = store.append(session, assistant("Done."), finish="stop", **tokens)
    store.append(session, user("Stop"))
    store.append(session, assistant("Ha"), finish="cancelled", **tokens)
    child = store.create_session(parent=session, relation="subagent", title="Helper")
    store.append(child, user("Count"))
    store.append(child, assistant("3"), finish="stop", **tokens)
    fork = store.fork(session, at=last)
    store.append(fork, user("Another way"))
    store.append(fork, assistant("So be it."), finish="stop", **tokens)


def report(rows: list[Row]) -> int:
    """Print the table; return how many sessions did not come back as they went."""
    names = ("tool", "store", "sessions", "imported", "messages equal", "info equal", "losses told")
    lines = [names, *(
        tuple(map(str, (r.tool, r.store, r.sessions, r.imported, r.messages, r.info, r.lost)))
        for r in rows
    )]  # fmt: skip
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = zip(line, widths, strict=True)
        print("  ".join(cell.ljust(width) for cell, width in cells).rstrip())
    for row in rows:
        for place, number in row.differences.most_common():
            print(f"{row.tool} {row.store}: {number} x {place}")
    return sum(2 * row.sessions - row.messages - row.info for row in rows)


def main() -> int:
    """Run everything."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tools", type=Path)
    parser.add_argument("stores", nargs="*", type=Path)
    asked = parser.parse_args()
    stores = asked.stores or [FIXTURES / name / "data" for name in STORES]
    rows: list[Row] = []
    with contextlib.ExitStack() as stack:
        temporary = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="verify-")))
        tools = asked.tools or temporary / "tools"
        for number, path in enumerate([*stores, None]):
            name = "made here" if path is None else path.parent.name or path.name
            store = stack.enter_context(Store.open(temporary / f"{number}.db"))
            if path is None:
                talk(store)
            else:
                for found in find(path):
                    for item in store.ingest(found.read()):
                        if isinstance(item, Problem):
                            print(f"{name}: {item.why}", file=sys.stderr)
            for generation, make in (("1.x", First), ("2.x", Second)):
                program = Tool(generation, tools, temporary / f"home-{number}-{generation}")
                stack.callback(program.stop)
                rows.append(Row(generation, name))
                check(program, rows[-1], store, make)
                program.stop()
    return 1 if report(rows) else 0


if __name__ == "__main__":
    sys.exit(main())
