"""Our logs for oh-my-pi, continued by the real program. Called by `verify-oh-my-pi`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from verify_pi import provide, put
from verifying.continuing import PROMPT, Continued, continue_all, run
from verifying.installing import installed, search_path
from verifying.provider import MODEL, Provider

from sessiondb import Session, Store

PACKAGES = ("@oh-my-pi/pi-coding-agent@18.2.3", "bun")
OPTIONS = f"-p --model {MODEL} --no-title --no-tools --no-lsp --thinking off"


class OhMyPi:
    """The program in a home of its own, with one model."""

    def __init__(self, tools: Path, home: Path, provider: Provider) -> None:
        self._program = installed(tools, ".bin/omp", *PACKAGES)
        provide(home / ".omp" / "agent" / "models.yml", provider)
        self._home, self._project = home, home / "project"
        self._project.mkdir()

    def resume(self, store: Store, session: Session) -> Continued | str:
        """Put a log into the store of oh-my-pi, and continue it by its id."""
        log, how = put(store, session, "oh-my-pi", self._home, self._project)
        program = [str(self._program.with_name("bun")), str(self._program)]
        failed = run(
            [*program, *OPTIONS.split(), *how, PROMPT],
            self._project,
            {"PATH": search_path(self._program.parent), "HOME": str(self._home)},
        )
        if failed:
            return failed

        # The title before the header is rewritten in place.
        before, after = (
            records(log.text),
            records(log.place.read_text(encoding="utf-8")),
        )
        if after[: len(before)] != before:
            return "the log was changed"
        return Continued(log.place, "")


def records(text: str) -> list[Any]:
    """Return the records of a log without its title."""
    found = [json.loads(line) for line in text.split("\n") if line]
    return [record for record in found if record["type"] != "title"]


if __name__ == "__main__":
    sys.exit(continue_all(OhMyPi))
