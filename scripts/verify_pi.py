"""Our logs for pi, continued by the real program. Called by `verify-pi`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from verifying.continuing import PROMPT, Continued, continue_all, document, run
from verifying.installing import installed, search_path
from verifying.provider import Provider

from sessiondb import Session, Store

PACKAGES = ("@earendil-works/pi-coding-agent@0.87.1", "node@24")


def provide(settings: Path, provider: Provider) -> None:
    """Write the settings that name a provider with one model."""
    model = {
        "id": "echo",
        "name": "Echo",
        "input": ["text"],
        "contextWindow": 2_000_000,
    }
    local = {
        "baseUrl": provider.address,
        "api": "openai-completions",
        "apiKey": "none",
        "models": [model],
    }
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps({"providers": {"local": local}}), encoding="utf-8")


def write_log(
    store: Store, session: Session, form: str, folder: Path
) -> tuple[Path, str]:
    """Write a session as a log in *folder*; return its path and text."""
    name, text = document(store, session, form)
    # The directory of a session must exist, and that of another machine does not.
    there, here = map(json.dumps, (session.directory, str(folder)))
    text = text.replace(f'"cwd":{there}', f'"cwd":{here}', 1)
    log = folder / name
    log.write_text(text, encoding="utf-8")
    return log, text


class Pi:
    """The program in a home of its own, with one model."""

    def __init__(self, tools: Path, home: Path, provider: Provider) -> None:
        self._program = installed(tools, ".bin/pi", *PACKAGES)
        self._home = home
        provide(home / ".pi" / "agent" / "models.json", provider)

    def resume(self, store: Store, session: Session) -> Continued | str:
        """Write a log and continue it by its path."""
        log, text = write_log(store, session, "pi", self._home)
        program = [str(self._program.with_name("node")), str(self._program.resolve())]
        options = ("-p", "--provider", "local", "--model", "echo")
        failed = run(
            [*program, *options, "--session", str(log), PROMPT],
            self._home,
            {"PATH": search_path(self._program.parent), "HOME": str(self._home)},
        )
        return failed or Continued(log, text)


if __name__ == "__main__":
    sys.exit(continue_all(Pi))
