"""Our rollouts for Codex, continued by the real program. Called by `verify-codex`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from verifying.continuing import (
    PROMPT,
    Continued,
    continue_all,
    document,
    install,
    run,
)
from verifying.provider import Provider

from sessiondb import Session, Store
from sessiondb.formats import exporter
from sessiondb.formats.protocol import Written

PACKAGES = ("@openai/codex@0.169.0", "node@24")
#: A rollout is continued with the provider that it names, and no other.
SETTINGS = """
model = "echo"
model_provider = {provider}
openai_base_url = {address}
"""
PROVIDER = """
[model_providers.{provider}]
name = {provider}
base_url = {address}
wire_api = "responses"
"""


class Codex:
    """The program in a home of its own, with one model."""

    def __init__(self, tools: Path, home: Path, provider: Provider) -> None:
        self._bin = tools / "node_modules" / ".bin"
        if not (self._bin / "codex").exists():
            install(tools, *PACKAGES)

        self._project = home / "project"
        self._project.mkdir()
        folder = home / ".codex"
        folder.mkdir()
        self._address = json.dumps(provider.address)
        self._settings = folder / "config.toml"
        self._env = {
            "PATH": f"{self._bin}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(home),
            "CODEX_HOME": str(folder),
            "OPENAI_API_KEY": "none",
            "CODEX_API_KEY": "none",
        }

    def resume(self, store: Store, session: Session) -> Continued | str:
        """Put a rollout into the home, and continue it by its thread."""
        name, text = document(store, session, "codex")
        take_in = exporter("codex").take_in
        assert take_in is not None
        self._configure(json.loads(text.partition("\n")[0])["payload"])
        taken = take_in(Written(name, text, session.directory), self._env)
        assert taken.place is not None
        taken.place.parent.mkdir(parents=True, exist_ok=True)
        taken.place.write_text(text, encoding="utf-8")

        *_, thread = taken.resume
        program = [str(self._bin / "node"), str((self._bin / "codex").resolve())]
        options = ("exec", "--json", "--skip-git-repo-check", "resume", thread, PROMPT)
        failed = run([*program, *options], self._project, self._env)
        return failed or Continued(taken.place, text)

    def _configure(self, facts: dict[str, Any]) -> None:
        provider = facts["model_provider"]
        # The provider of its own cannot be defined again.
        text = SETTINGS if provider == "openai" else SETTINGS + PROVIDER
        known = {"provider": json.dumps(provider), "address": self._address}
        self._settings.write_text(text.format(**known), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(continue_all(Codex))
