"""Our logs for pi, continued by the real program. Called by `verify-pi`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from verifying.continuing import PROMPT, Continued, Given, continue_all, given, run
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


def put(
    store: Store, session: Session, form: str, home: Path, folder: Path
) -> tuple[Given, list[str]]:
    """Write a session as a log of *folder*; return it, and how it is continued."""
    log = given(store, session, form, str(folder), {"HOME": str(home)})
    # The directory of a session must exist, and that of another machine does not.
    there, here = map(json.dumps, (session.directory, str(folder)))
    log = log._replace(text=log.text.replace(f'"cwd":{there}', f'"cwd":{here}', 1))
    log.put()
    return log, log.handover.resume[1:]


class Pi:
    """The program in a home of its own, with one model."""

    def __init__(self, tools: Path, home: Path, provider: Provider) -> None:
        self._program = installed(tools, ".bin/pi", *PACKAGES)
        self._home = home
        provide(home / ".pi" / "agent" / "models.json", provider)

    def resume(self, store: Store, session: Session) -> Continued | str:
        """Put a log into the store of pi, and continue it by its id."""
        log, how = put(store, session, "pi", self._home, self._home)
        program = [str(self._program.with_name("node")), str(self._program.resolve())]
        options = ("-p", "--provider", "local", "--model", "echo")
        failed = run(
            [*program, *options, *how, PROMPT],
            self._home,
            {"PATH": search_path(self._program.parent), "HOME": str(self._home)},
        )
        return failed or Continued(log.place, log.text)


if __name__ == "__main__":
    sys.exit(continue_all(Pi))
