"""Our rollouts for Codex, continued by the real program. Called by `verify-codex`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from verifying.continuing import PROMPT, Continued, continue_all, given, run
from verifying.installing import installed, search_path
from verifying.provider import Provider

from sessiondb import Session, Store

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
        self._program = installed(tools, ".bin/codex", *PACKAGES)
        self._project = home / "project"
        self._project.mkdir()
        folder = home / ".codex"
        folder.mkdir()
        self._address = json.dumps(provider.address)
        self._settings = folder / "config.toml"
        self._env = {
            "PATH": search_path(self._program.parent),
            "HOME": str(home),
            "CODEX_HOME": str(folder),
            "OPENAI_API_KEY": "none",
            "CODEX_API_KEY": "none",
        }

    def resume(self, store: Store, session: Session) -> Continued | str:
        """Put a rollout into the home, and continue it by its thread."""
        taken = given(store, session, "codex", session.directory, self._env)
        self._configure(json.loads(taken.text.partition("\n")[0])["payload"])
        taken.put()

        *_, thread = taken.handover.resume
        node = self._program.with_name("node")
        options = ("exec", "--json", "--skip-git-repo-check", "resume", thread, PROMPT)
        command = [str(node), str(self._program.resolve()), *options]
        failed = run(command, self._project, self._env)
        return failed or Continued(taken.place, taken.text)

    def _configure(self, facts: dict[str, Any]) -> None:
        provider = facts["model_provider"]
        # The provider of its own cannot be defined again.
        text = SETTINGS if provider == "openai" else SETTINGS + PROVIDER
        known = {"provider": json.dumps(provider), "address": self._address}
        self._settings.write_text(text.format(**known), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(continue_all(Codex))
