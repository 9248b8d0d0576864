"""The progress of a long command: shown on a terminal, and nowhere else."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from command_line import SAMPLE, Run, Story

pytestmark = pytest.mark.slow

COMMANDS = {
    "import": f"import {SAMPLE}",
    "export": "export -a --to jsonl -o out.jsonl",
    "backup": "backup copy.db",
    "vacuum": "vacuum --yes",
}


@pytest.mark.parametrize("what", COMMANDS)
def test_a_terminal_shows_a_bar_that_disappears(
    terminal: Run, story: Story, what: str
) -> None:
    ran = terminal(f"--color never {COMMANDS[what]}")
    assert ran.code == 0
    assert re.search(rf"{what} .*0:00:0", ran.out)
    assert "\x1b[2K" in ran.out, "the line is erased"
    assert ran.out.index("0:00:0") < ran.out.rindex("\x1b[?25h"), "the cursor is back"


def test_json_output_has_no_progress(terminal: Run, story: Story) -> None:
    for what in ("import", "backup", "vacuum"):
        ran = terminal(f"{COMMANDS[what]} --json")
        assert ran.code == 0
        assert "0:00:0" not in ran.out


def test_pipes_receive_no_progress(sessiondb: Run, story: Story) -> None:
    for command in COMMANDS.values():
        ran = sessiondb(*command.split())
        assert ran.code == 0
        assert "0:00:0" not in ran.err
        assert "\r" not in ran.err + ran.out


def test_an_export_to_the_terminal_itself_is_left_alone(
    terminal: Run, story: Story
) -> None:
    ran = terminal(f"export {story.parser} --to jsonl")
    assert "0:00:0" not in ran.out
    assert ran.out.startswith("{")


def test_without_a_terminal_nothing_is_loaded_for_it(story: Story) -> None:
    code = (
        "import sys\nfrom sessiondb.cli import main\n"
        "sys.argv = ['sessiondb', 'export', '-a', '--to', 'jsonl']\n"
        "try:\n    main()\nfinally:\n    print('rich.progress' in sys.modules)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert ran.stdout.endswith("False\n")
