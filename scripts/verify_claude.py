"""Our transcripts for Claude Code, continued by the real program. Called by `verify-claude`."""

from __future__ import annotations

import sys
from pathlib import Path

from verifying.continuing import PROMPT, Continued, continue_all, given, run
from verifying.installing import installed, search_path
from verifying.provider import Provider

from sessiondb import InvalidInputError, Session, Store

PACKAGE = "@anthropic-ai/claude-code-linux-x64"
VERSION = "2.1.329"
#: It answers by a name that it knows, whatever the provider is.
OPTIONS = "-p --model claude-sonnet-4-5 --tools Bash,Read --system-prompt Echo."


class Claude:
    """The program in a home of its own, called by `sessiondb` under its usual name."""

    def __init__(self, tools: Path, home: Path, provider: Provider) -> None:
        program = installed(tools, f"{PACKAGE}/claude", f"{PACKAGE}@{VERSION}")
        self._home = home
        named = home / "bin" / "claude"
        named.parent.mkdir()
        # The prompt is typed by a person, so that `sessiondb` gives none.
        line = f"exec '{program}' {OPTIONS} \"$@\" '{PROMPT}'"
        named.write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
        named.chmod(0o700)

        self._env = {
            "PATH": search_path(named.parent),
            "HOME": str(home),
            "CLAUDE_CONFIG_DIR": str(home / ".claude"),
            "ANTHROPIC_BASE_URL": provider.root,
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        }

    def resume(self, store: Store, session: Session) -> Continued | str | None:
        """Take a session to the program, and continue it.

        Claude Code continues neither its own subagents nor a session without messages.
        """
        is_theirs = session.source == "claude" and session.time_imported is not None
        if is_theirs and session.relation == "subagent":
            return None

        # The directory of a session must exist, and that of another machine does not.
        # Two stores may have the same session.
        project = self._home / store.path.stem
        project.mkdir(exist_ok=True)
        store.set_directory(session, str(project))
        try:
            taken = given(store, session, "claude", str(project), self._env)
        except InvalidInputError:
            return None

        if is_theirs:
            # `sessiondb` refuses to make a second session of one of the program's own.
            taken.put()
            command = taken.handover.resume
        else:
            ours = str(Path(sys.executable).with_name("sessiondb"))
            command = [ours, "resume", session.id, "--in", "claude"]
        env = {**self._env, "SESSIONDB_PATH": str(store.path)}
        failed = run(command, project, env)
        return failed or Continued(taken.place, taken.text)


if __name__ == "__main__":
    sys.exit(continue_all(Claude))
