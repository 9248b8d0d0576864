"""README's recipes that write files: typed as they stand, by somebody who has the sample."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from command_line import SAMPLE, Run


def commands() -> list[list[str]]:
    """Return the command lines of the recipes, without their program's name."""
    page = (SAMPLE.parents[1] / "README.md").read_text(encoding="utf-8")
    recipes = page.partition("### Recipes")[2].partition("\n### ")[0]
    lines = "\n".join(re.findall(r"(?s)```sh\n(.*?)```", recipes)).splitlines()
    return [shlex.split(line, comments=True)[1:] for line in lines if line]


def test_what_is_handed_over_is_a_file_that_holds_it(
    sessiondb: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessiondb("import", str(SAMPLE))
    *handing, taking, bringing = commands()
    for command in handing:
        assert sessiondb(*command).code == 0
        written = project / command[-1]
        assert "The countdown no longer rings one second early" in written.read_text()
    assert sessiondb(*taking).code == 0
    every = ("list", "-a", "--archived", "--subagents", "--json")
    before = sessiondb(*every).json
    monkeypatch.setenv("SESSIONDB_PATH", str(project / "laptop.db"))
    assert sessiondb(*bringing).code == 0
    assert sessiondb(*every).json == before
    assert len(before["sessions"]) == 4
    assert sessiondb("check").code == 0
