"""Our logs for pi, continued by the real program. Called by `verify-pi`."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from verifying.provider import ANSWER, Provider
from verifying.stores import fill, sessions_of, stores

from sessiondb import Session, Store
from sessiondb.formats import exporter, find
from sessiondb.model import Document, Imported

PACKAGES = ("@earendil-works/pi-coding-agent@0.87.1", "node@24")
PROMPT = "Now continue."
#: The longest that a command may take, in seconds.
PATIENCE = 120
FIXTURES = ("pi-*", "oh-my-pi-*", "opencode-2.0.15", "opencode-1.18.33")


class Pi:
    """The program in a home of its own, with one model."""

    def __init__(self, tools: Path, home: Path, address: str) -> None:
        self._bin = tools / "node_modules" / ".bin"
        if not (self._bin / "pi").exists():
            print(f"installing {' and '.join(PACKAGES)} ...", file=sys.stderr)
            quiet = ("--no-audit", "--no-fund", "--loglevel", "error")
            command = ["npm", "install", "--prefix", str(tools), *quiet, *PACKAGES]
            subprocess.run(command, check=True, stdout=sys.stderr)

        self._home = home
        model = {
            "id": "echo",
            "name": "Echo",
            "input": ["text"],
            "contextWindow": 2_000_000,
        }
        local = {
            "baseUrl": address,
            "api": "openai-completions",
            "apiKey": "none",
            "models": [model],
        }
        settings = home / ".pi" / "agent" / "models.json"
        settings.parent.mkdir(parents=True)
        settings.write_text(
            json.dumps({"providers": {"local": local}}), encoding="utf-8"
        )

    def go_on(self, log: Path) -> str:
        """Continue the session of a log; return what the program printed if it failed."""
        command = [
            "pi",
            "-p",
            "--provider",
            "local",
            "--model",
            "echo",
            "--session",
            str(log),
            PROMPT,
        ]
        path = f"{self._bin}{os.pathsep}{os.environ['PATH']}"
        ran = subprocess.run(
            [str(self._bin / "node"), str((self._bin / "pi").resolve()), *command[1:]],
            cwd=self._home,
            env={"PATH": path, "HOME": str(self._home)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        return "" if ran.returncode == 0 else (ran.stderr or ran.stdout)[-300:]


def verify(
    pi: Pi, store: Store, session: Session, folder: Path, sent: list[str]
) -> str:
    """Return what is wrong with the log of a session; empty if nothing is."""
    to = exporter("pi")
    (document,) = (
        item
        for item in to.write([store.export(session, **to.read)], detail=to.details[0])
        if isinstance(item, Document)
    )
    log = folder / document.name
    # The directory of a session must exist, and that of another machine does not.
    there, here = (json.dumps(str(name)) for name in (session.directory, folder))
    text = "".join(document.chunks).replace(f'"cwd":{there}', f'"cwd":{here}', 1)
    log.write_text(text, encoding="utf-8")
    before = log.read_bytes()
    del sent[:]

    failed = pi.go_on(log)
    if failed:
        return f"NOT CONTINUED: {failed}"
    if not sent:
        return "NOT CONTINUED: no request"
    if not log.read_bytes().startswith(before):
        return "THE LOG WAS CHANGED"

    missing = [text for text in said(store, session) if _in_json(text) not in sent[-1]]
    if missing:
        return f"{len(missing)} TEXTS WERE NOT SENT: {missing[0][:80]!r}"
    return came_back(log)


def said(store: Store, session: Session) -> list[str]:
    """Return the texts that a model must be sent: those of prompts and whole answers."""
    whole = ("stop", "tool-calls", "length", None)
    return [
        part.text
        for message in store.context(session).messages
        if message.role in ("user", "assistant") and message.finish in whole
        for part in message.parts
        if part.type == "text" and part.text and part.text.strip()
    ]


def came_back(log: Path) -> str:
    """Import a continued log; return what is wrong with it."""
    with Store.open(":memory:") as store:
        found = [item for read in find(log) for item in store.ingest(read.read())]
        if len(found) != 1 or not isinstance(found[0], Imported):
            return f"DID NOT COME BACK: {found}"
        last = [message.text for message in store.messages(found[0].id, last=2)]
    return "" if ANSWER in last else f"DID NOT COME BACK: {last}"


def _in_json(text: str) -> str:
    # As the program sends it: without spaces around, and halves of characters replaced.
    clean = text.strip().encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return json.dumps(clean, ensure_ascii=False)[1:-1]


def main() -> int:
    """Continue every session; 1 if one of them cannot be."""
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--tools", type=Path, help="keep the installed pi here, for the next run"
    )
    parser.add_argument(
        "stores", nargs="*", type=Path, help="stores to take instead of those found"
    )
    asked = parser.parse_args()

    well, wrong = 0, 0
    provider = Provider()
    with contextlib.ExitStack() as stack:
        temporary = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="verify-"))
        )
        stack.enter_context(provider.serving())
        pi = Pi(
            asked.tools or temporary / "tools", temporary / "home", provider.address
        )
        for number, (name, path) in enumerate(stores(asked.stores, *FIXTURES)):
            store = stack.enter_context(Store.open(temporary / f"{number}.db"))
            fill(store, path)
            folder = temporary / f"logs-{number}"
            folder.mkdir()
            for session in sessions_of(store):
                why = verify(pi, store, session, folder, provider.sent)
                well, wrong = well + (not why), wrong + bool(why)
                print(f"{name:20}  {session.id:32}  {why or 'continued'}", flush=True)
    print(f"\n{well} continued, {wrong} not")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
