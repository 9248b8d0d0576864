"""One version of OpenCode, from the npm registry, in a home of its own."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from verifying.installing import PATIENCE, installed
from verifying.provider import MODEL

PACKAGES = {
    "1.x": "opencode-ai@1.18.33",
    "2.x": "@opencode/cli-linux-x64-baseline@2.0.15",
}
PROGRAMS = {
    "1.x": "opencode-ai/bin/opencode.exe",
    "2.x": "@opencode/cli-linux-x64-baseline/bin/opencode",
}


class Tool:
    """Imports, exports, lists and continues sessions as a person would, by typed commands."""

    def __init__(
        self, generation: str, tools: Path, home: Path, config: dict[str, Any]
    ) -> None:
        self.generation = generation
        self._program = install(generation, tools)
        self._home = home
        self._project = home / "project"
        self._project.mkdir(parents=True)
        places = {
            name: home / name.lower() for name in ("CONFIG", "DATA", "STATE", "CACHE")
        }
        self.data = places["DATA"]
        settings = places["CONFIG"] / "opencode" / "opencode.json"
        settings.parent.mkdir(parents=True)
        settings.write_text(json.dumps(config), encoding="utf-8")
        self._env = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            # It reads its directory from this, not from the system.
            "PWD": str(self._project),
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            **{f"XDG_{name}_HOME": str(path) for name, path in places.items()},
        }
        author = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
        self._run("git", "init", "-q")
        self._run("git", *author, "commit", "-q", "--allow-empty", "-m", "begin")

    def import_session(self, name: str, document: dict[str, Any]) -> str:
        """Import a session; return the reason if it is refused, else ""."""
        path = self._home / "session.json"
        path.write_text(json.dumps(document), encoding="utf-8")
        if self.generation == "1.x":
            said = self._opencode("import", str(path))
        else:
            where = ("--directory", str(self._project))
            said = self._opencode("session", "import", *where, str(path))
        return (
            "" if f"Imported session: {name}" in said else " ".join(said.split())[:300]
        )

    def export(self, name: str) -> dict[str, Any] | str:
        """Export a session; return its error text if it fails."""
        command = ("export",) if self.generation == "1.x" else ("session", "export")
        said = self._opencode(*command, name)
        try:
            found: dict[str, Any] = json.loads(said)
        except ValueError:
            return " ".join(said.split())[:300]
        return found

    def listed(self) -> set[str]:
        """Return the sessions that its list shows; children are never in it."""
        said = self._opencode("session", "list", "--format", "json")
        return {item["id"] for item in json.loads(said or "[]")}

    def continue_session(self, name: str, prompt: str) -> None:
        """Continue a session with another prompt."""
        self._opencode(
            "run", "--format", "json", "--auto", "-m", MODEL, "-s", name, prompt
        )

    def close(self) -> None:
        """End the server that version 2 leaves running in this home."""
        if self.generation == "2.x":
            self._opencode("service", "stop")

    def _opencode(self, *arguments: str) -> str:
        return self._run(self._program, *arguments, check=False)

    def _run(self, *command: str, check: bool = True) -> str:
        """Run a command and return its output, or its errors if the output is empty."""
        # Not through pipes: version 1 exits before a long export has left.
        with (
            tempfile.TemporaryFile("w+") as out,
            tempfile.TemporaryFile("w+") as errors,
        ):
            subprocess.run(
                command, cwd=self._project, env=self._env, check=check, timeout=PATIENCE,
                stdin=subprocess.DEVNULL, stdout=out, stderr=errors,
            )  # fmt: skip
            out.seek(0)
            errors.seek(0)
            return out.read() or errors.read()


def install(generation: str, tools: Path) -> str:
    """Install a version below *tools* unless it is there; return its program."""
    folder = tools / generation
    is_new = not (folder / "node_modules" / PROGRAMS[generation]).exists()
    program = installed(folder, PROGRAMS[generation], PACKAGES[generation])
    launcher = folder / "node_modules" / "opencode-ai" / "postinstall.mjs"
    if is_new and launcher.is_file():  # newer releases of npm leave this to the caller
        subprocess.run(["node", str(launcher)], cwd=launcher.parent, check=True)
    return str(program)
