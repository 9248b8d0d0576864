"""Completion: the answers that a real bash gets, and silence in case of errors."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from command_line import Run, Story

from sessiondb import Store, user
from sessiondb.cli.app import COMMANDS, app

pytestmark = pytest.mark.slow


@pytest.fixture
def ask(project: Path) -> Run:
    """Ask as the script of bash does; returns the values that are offered."""

    def ask(line: str, shell: str = "bash", **env: str) -> list[str]:
        asked = {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
        env |= {**asked, "_SESSIONDB_COMPLETE": f"{shell}_complete"}
        ran = CliRunner().invoke(app, [], env=env)
        assert (ran.exit_code, ran.stderr) == (0, "")
        return [value.partition(",")[2] for value in ran.stdout.splitlines() if value]

    return ask  # type: ignore[return-value]


def slug(store: Store, session_id: str) -> str:
    return store.session(session_id).slug


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell_names_the_command(sessiondb: Run, shell: str) -> None:
    ran = sessiondb("completion", shell)
    assert ran.code == 0
    assert "_SESSIONDB_COMPLETE" in ran.out
    assert "sessiondb" in ran.out


def test_the_help_of_completion_shows_its_installation(sessiondb: Run) -> None:
    helped = sessiondb("completion", "bash", "--help").out
    assert 'eval "$(sessiondb completion bash)"' in helped
    assert "completions/sessiondb.fish" in helped
    for words in (["tcsh"], []):
        ran = sessiondb("completion", *words)
        assert (ran.code, len(ran.err.splitlines())) == (2, 2)


def test_commands_options_choices_and_formats_are_offered(ask: Run) -> None:
    assert ask("sessiondb pr") == ["prompts", "prune"]
    assert set(ask("sessiondb ")) == set(COMMANDS)
    assert set(ask("sessiondb prune --ke")) == {"--keep", "--keep-forks"}
    assert ask("sessiondb list --sort u") == ["used"]
    assert ask("sessiondb completion z") == ["zsh"]
    assert "opencode2" in ask("sessiondb export --to open")
    assert ask("sessiondb import --from openc") == ["opencode"]


def test_files_are_left_to_the_shell(ask: Run) -> None:
    for line in (
        "import exa",
        "--db ses",
        "backup ",
        "list --project ",
        "rm --bundle x",
    ):
        (offered,) = ask(f"sessiondb {line}")
        assert offered in line


def test_sessions_are_offered_wherever_one_is_named(
    ask: Run, story: Story, store: Store
) -> None:
    name = slug(store, story.parser)
    commands = [
        "show", "tree", "tail", "diff", f"diff {story.fork}", "fork", "title", "label", "archive",
        "unarchive", "rm", f"rm {story.fork}", "export", "resume",
    ]  # fmt: skip
    for command in commands:
        assert ask(f"sessiondb {command} {name[:-1]}") == [name], command
    newest = {
        slug(store, session) for session in (story.parser, story.fork, story.other)
    }
    assert set(ask("sessiondb show ")) == newest


def test_each_of_a_sessions_ids_is_completed(ask: Run, story: Story) -> None:
    assert ask(f"sessiondb show {story.other[:28]}") == [story.other]
    tail = story.other[-6:].lower()
    assert ask(f"sessiondb show {tail[:5]}") == [tail]
    assert ask("sessiondb show no_such%") == []


def test_labels_and_prompts_of_a_session_are_offered_after_its_name(
    ask: Run, story: Story, store: Store
) -> None:
    name = slug(store, story.parser)
    store.label(story.parser, 2, "good")
    prompts = [m.seq for m in store.messages(story.parser) if m.purpose == "prompt"]
    offered = ask(f"sessiondb show {name}#")
    assert offered == [f"{name}#good", *(f"{name}#{seq}" for seq in prompts[::-1])]
    assert ask(f"sessiondb diff {name} {name}#g") == [f"{name}#good"]
    # These take sessions alone.
    for command in ("rm", "title", "tree"):
        assert ask(f"sessiondb {command} {name}#") == []


def test_titles_are_the_help_and_cannot_write_on_the_terminal(
    ask: Run, store: Store
) -> None:
    session = store.create_session(title="Red \x1b[31m\nline")
    store.append(session, user("Hello"))
    said = ask("sessiondb show ", shell="zsh")
    assert "\x1b" not in "".join(said)


def test_a_name_that_means_something_to_a_shell_is_not_offered(
    ask: Run, store: Store
) -> None:
    store.append(store.create_session(id="x$(reboot)"), user("Hello"))
    assert ask("sessiondb show x") == []


def test_the_database_before_the_command_is_used(
    ask: Run, story: Story, store: Store, tmp_path: Path
) -> None:
    name = slug(store, story.parser)
    # Another slug of the story may begin with the same word.
    line = f"sessiondb --db {store.path} show {name[:-1]}"
    assert ask(line, SESSIONDB_PATH=str(tmp_path / "none.db")) == [name]


def test_completion_without_a_database_offers_nothing_and_creates_none(
    ask: Run, project: Path, database: Path
) -> None:
    assert ask("sessiondb show ") == []
    assert not database.exists()
    database.write_bytes(b"remember the milk" * 100)
    assert ask("sessiondb show ") == []
    assert ask("sessiondb --local show ") == []
    assert database.read_bytes() == b"remember the milk" * 100
    assert list(project.iterdir()) == []


@pytest.mark.parametrize("line", ["sessiondb ", "sessiondb show "])
def test_completing_loads_no_sqlalchemy(story: Story, line: str) -> None:
    code = (
        "import os, sys\nfrom sessiondb.cli import main\n"
        "try:\n    main()\nfinally:\n"
        "    print(*{'sqlalchemy', 'alembic', 'rich.console'} & set(sys.modules), file=sys.stderr)"
    )
    asked = {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    env = {**os.environ, **asked, "_SESSIONDB_COMPLETE": "bash_complete"}
    ran = subprocess.run(
        [sys.executable, "-c", code],
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout
    assert ran.stderr == "\n"


def test_a_real_bash_completes_with_the_script(
    story: Story, store: Store, tmp_path: Path
) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash here")
    program = tmp_path / "bin" / "sessiondb"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m sessiondb "$@"\n')
    program.chmod(0o755)
    name = slug(store, story.parser)
    script = (
        'eval "$(sessiondb completion bash)"\n'
        f"COMP_WORDS=(sessiondb show {name[:-1]}); COMP_CWORD=2\n"
        '_sessiondb_completion sessiondb; echo "${COMPREPLY[@]}"'
    )
    path = f"{program.parent}:{os.environ['PATH']}"
    ran = subprocess.run(
        [bash, "--norc", "-c", script], env={**os.environ, "PATH": path},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert (ran.stdout, ran.stderr) == (f"{name}\n", "")
