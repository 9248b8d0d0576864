"""Our exports for Goose, continued by the real program. Called by `verify-goose`."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import unicodedata
from pathlib import Path
from typing import Any

from verifying.continuing import PROMPT, Continued, continue_all, document, run
from verifying.installing import PATIENCE, installed
from verifying.provider import Provider

from sessiondb import Session, Store

# `@aaif/goose` is a client of the program, which is in the packages of its platforms.
PACKAGE = "@aaif/goose-binary-linux-x64"
VERSION = "1.52.0"
#: The number that an import gives to a session.
_NUMBER = re.compile(r"^(\d{8}_\d+) - ", re.MULTILINE)
#: Loading a session puts this before the error of a result.
_CODE = "-32603: "
#: It composes texts (NFC) and drops the tag characters of Unicode, which a prompt could
#: hide text in.
_TAGS = re.compile("[\U000e0000-\U000e007f]")


class Goose:
    """The program in a home of its own, with one model."""

    def __init__(self, tools: Path, home: Path, provider: Provider) -> None:
        program = installed(tools, f"{PACKAGE}/bin/goose", f"{PACKAGE}@{VERSION}")
        self._program = str(program)
        self._home = home
        self._env = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "GOOSE_PATH_ROOT": str(home / "goose"),
            "GOOSE_DISABLE_KEYRING": "1",
            "GOOSE_TELEMETRY_ENABLED": "false",
            "GOOSE_PROVIDER": "openai",
            "GOOSE_MODEL": "echo",
            # Long sessions are not compacted.
            "GOOSE_CONTEXT_LIMIT": "2000000",
            "OPENAI_HOST": provider.root,
            "OPENAI_BASE_PATH": "v1/chat/completions",
            "OPENAI_API_KEY": "none",
        }

    def resume(self, store: Store, session: Session) -> Continued | str:
        """Import a session, continue it by its number, and export it again."""
        name, text = document(store, session, "goose")
        given = json.loads(text)
        # The directory of a session must exist, and that of another machine does not.
        given["working_dir"] = str(self._home)
        # Else it requests a name from the model, after the answer.
        given["user_set_name"] = True
        file = self._home / name
        file.write_text(json.dumps(given), encoding="utf-8")

        said = self._goose("session", "import", str(file))
        number = _NUMBER.search(said)
        if number is None:
            return f"not imported: {said[-300:]}"

        named = ("--resume", "--session-id", number[1], "--no-profile")
        failed = run(
            [self._program, "run", "-t", PROMPT, *named], self._home, self._env
        )
        if failed:
            return failed

        file.unlink()
        options = ("--session-id", number[1], "--format", "json", "-o", str(file))
        self._goose("session", "export", *options)
        found = json.loads(file.read_text(encoding="utf-8"))
        different = _difference(given["conversation"], found["conversation"])
        return different or Continued(file, "", _TAGS, is_composed=True)

    def _goose(self, *arguments: str) -> str:
        """Return everything that a command prints."""
        ran = subprocess.run(
            [self._program, *arguments],
            cwd=self._home,
            env=self._env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        return ran.stdout


def _difference(given: list[Any], found: list[Any]) -> str:
    """Return the first message that an export has not as it was given."""
    held = {message["id"]: message for message in found}
    for message in given:
        back = held.get(message["id"], {})
        if _as_loaded(back) != _as_loaded(message):
            return f"changed: {json.dumps([message, back])[:600]}"
    return ""


def _as_loaded(value: Any) -> Any:
    """Return a record without what loading it changes."""
    if isinstance(value, list):
        return [_as_loaded(item) for item in value]
    if isinstance(value, dict):
        return {
            key: _as_loaded(item) for key, item in value.items() if item is not None
        }
    if isinstance(value, str):
        return unicodedata.normalize("NFC", _TAGS.sub("", value.removeprefix(_CODE)))
    return value


if __name__ == "__main__":
    sys.exit(continue_all(Goose))
