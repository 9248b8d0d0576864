"""Our histories for aider, restored by the real program. Called by `verify-aider`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
from pathlib import Path
from shutil import rmtree

from verifying.continuing import PROMPT, Continued, continue_all, document, run
from verifying.provider import Provider

from sessiondb import Session, Store

PACKAGE = "aider-chat==0.86.2"
HISTORY = ".aider.chat.history.md"
#: It adds two spaces to each line of a prompt, and a line to a history.
_SPACE = re.compile(r"\s+")
_OPTIONS = (
    "--restore-chat-history", "--max-chat-history-tokens", "100000000",
    "--model", "openai/echo", "--weak-model", "openai/echo", "--edit-format", "ask",
    "--no-git", "--map-tokens", "0", "--yes-always", "--no-pretty", "--no-fancy-input",
    "--no-check-update", "--no-show-release-notes", "--no-show-model-warnings",
    "--no-analytics", "--no-gitignore", "--no-detect-urls",
)  # fmt: skip


class Aider:
    """The program in a home of its own, with one model."""

    def __init__(self, tools: Path, home: Path, provider: Provider) -> None:
        self._program = str(_installed(tools))
        self._home = home
        self._env = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "OPENAI_API_BASE": f"{provider.root}/v1",
            "OPENAI_API_KEY": "none",
        }

    def resume(self, store: Store, session: Session) -> Continued | str | None:
        """Write a session as the history of a project, and restore it.

        A run of its own is written as it was, and restored with what aider loses of it.
        """
        if session.source == "aider":
            return None
        project = self._home / "project"
        rmtree(project, ignore_errors=True)
        project.mkdir()
        _, text = document(store, session, "aider")
        history = project / HISTORY
        history.write_bytes(text.encode())

        failed = run(
            [self._program, *_OPTIONS, "--message", PROMPT], project, self._env
        )
        # Not as text: the ends of lines inside of an answer are part of it.
        found = history.read_bytes().decode()
        if failed or not found.startswith(text):
            return failed or "the history was changed"

        # The run that aider began is a session of its own.
        history.write_bytes(found.removeprefix(text).encode())
        return Continued(history, "", _SPACE, is_typed=True)


def _installed(folder: Path) -> Path:
    """Return the path of the program; it is installed in *folder* unless it is there."""
    program = folder / "bin" / "aider"
    if not program.exists():
        print(f"installing {PACKAGE} ...", file=sys.stderr)
        venv.create(folder, with_pip=True)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        subprocess.run([*pip, PACKAGE], check=True, stdout=sys.stderr)
    return program


if __name__ == "__main__":
    sys.exit(continue_all(Aider))
