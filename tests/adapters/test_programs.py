"""The program on the page of each adapter, and its session on the command line."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from loopback_model import Script, served

from sessiondb.cli.app import app

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = sorted((ROOT / "examples" / "adapters").glob("with_*.py"))
MAX_LINES = 40
#: The package that a program needs, by the name of its adapter.
NEEDS = {
    "adk": "google.adk",
    "claude_agent": "claude_agent_sdk",
    "langgraph": "langgraph",
    "openai_agents": "agents",
    "pydantic_ai": "pydantic_ai",
    "strands": "strands",
}

pytestmark = pytest.mark.slow


def surroundings(url: str, home: Path) -> dict[str, str]:
    """Return an environment in which every provider is the model on loopback."""
    return {
        **{name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ},
        "HOME": str(home),
        "PYTHONPATH": str(ROOT / "src"),
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_API_KEY": "none",
        "OPENAI_AGENTS_DISABLE_TRACING": "1",
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "none",
        "GOOGLE_GEMINI_BASE_URL": url,
        "GOOGLE_API_KEY": "none",
    }


def adapter_of(program: Path) -> str:
    # A program may not be called like a package that it imports.
    return program.stem.removeprefix("with_")


def run(environment: dict[str, str], program: Path, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, str(program), "agent.db"],
        cwd=folder, env=environment, check=False, capture_output=True, text=True, timeout=90,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("program", PROGRAMS, ids=adapter_of)
def test_the_session_of_a_program_is_a_session_like_any_other(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(NEEDS[adapter_of(program)])
    script = Script()
    with served(script) as url:
        environment = surroundings(url, tmp_path)
        printed = run(environment, program, tmp_path)
    asked = [line for line in printed.splitlines() if line.startswith("user: ")]
    answered = [line for line in printed.splitlines() if "The tests say" in line]
    assert len(asked) == len(set(asked)) == 2, printed
    assert answered == ["assistant: The tests say: 3 passed"] * 2
    first = asked[0].removeprefix("user: ")
    assert first in json.dumps(script.requests[-1]), "the history was not sent"

    monkeypatch.chdir(tmp_path)

    def sessiondb(*arguments: str) -> str:
        result = CliRunner().invoke(app, ["--db", "agent.db", *arguments])
        assert result.exit_code == 0, result.output
        return result.stdout

    (session,) = json.loads(sessiondb("list", "-a", "--json"))["sessions"]
    assert "3 passed" in sessiondb("show", session["id"])
    assert first in sessiondb("search", "-a", first)
    statistics = json.loads(sessiondb("stats", "-a", "--by", "model", "--json"))
    assert "scripted-1" in json.dumps(statistics)
    sessiondb("fork", session["id"])
    assert len(json.loads(sessiondb("list", "-a", "--json"))["sessions"]) == 2
    sessiondb("resume", session["id"], "--in", "claude", "--print")
    assert sessiondb("check") == ""


@pytest.mark.parametrize("program", PROGRAMS, ids=adapter_of)
def test_a_program_is_short_and_the_one_on_its_page(program: Path) -> None:
    text = program.read_text()
    assert len(text.splitlines()) <= MAX_LINES
    page = (ROOT / "docs" / "adapters" / f"{adapter_of(program)}.md").read_text()
    assert text in re.findall(r"(?s)```python\n(.*?)```", page)


def test_each_adapter_has_a_program_and_a_page() -> None:
    assert [adapter_of(program) for program in PROGRAMS] == sorted(NEEDS)
