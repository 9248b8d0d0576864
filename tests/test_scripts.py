"""The scripts that a newcomer runs first, on machines with missing tools."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from all_pythons import COUNTED, counts_in, installed_pythons, summary_of
from verify_goose import _TAGS, _difference
from verifying.continuing import Continued

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ("cat", "cksum", "dirname", "rm", "sh")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The files that quickstart needs of a fresh clone."""
    clone = tmp_path / "a clone"
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "scripts", clone / "scripts", ignore=ignore)
    shutil.copytree(
        ROOT / "examples" / "sample-opencode", clone / "examples" / "sample-opencode"
    )
    shutil.copy(ROOT / "pyproject.toml", clone)
    return clone


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A PATH with the plain tools and no Python."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in TOOLS:
        (folder / tool).symlink_to(shutil.which(tool) or pytest.fail(f"no {tool} here"))
    return folder


def python3(machine: Path, name: str, module: str) -> None:
    """Give the machine a python3 in which *module* shadows the one called *name*."""
    shadow = machine.parent / "shadow"
    shadow.mkdir()
    (shadow / f"{name}.py").write_text(module)
    wrapper = machine / "python3"
    wrapper.write_text(
        f'#!/bin/sh\nPYTHONPATH="{shadow}" exec "{sys.executable}" "$@"\n'
    )
    wrapper.chmod(0o755)


def quickstart(clone: Path, machine: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [clone / "scripts" / "quickstart"],
        env={"PATH": str(machine), "HOME": str(clone.parent)},
        check=False,
        capture_output=True,
        text=True,
    )


def test_without_ensurepip_quickstart_prints_the_one_line_fix(
    clone: Path, machine: Path
) -> None:
    python3(machine, "ensurepip", "raise ImportError('No module named ensurepip')")
    result = quickstart(clone, machine)
    assert result.returncode == 1
    assert "sudo apt-get install python3-venv" in result.stderr.splitlines()
    assert not (clone / ".venv").exists()


def test_with_an_old_python_quickstart_says_which_it_needs(
    clone: Path, machine: Path
) -> None:
    old = "import sys\nsys.version_info = (3, 9, 2, 'final', 0)\n"
    python3(machine, "sitecustomize", old)
    result = quickstart(clone, machine)
    assert result.returncode == 1
    assert "3.11 or newer" in result.stderr


def test_without_any_python_quickstart_says_which_it_needs(
    clone: Path, machine: Path
) -> None:
    result = quickstart(clone, machine)
    assert result.returncode == 1
    assert "3.11 or newer" in result.stderr


def tour(clone: Path, home: Path) -> str:
    result = subprocess.run(
        [sys.executable, clone / "scripts" / "tour.py"],
        env={"HOME": str(home), "PATH": os.environ["PATH"]},
        check=False,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def sessions_listed_next(home: Path, *words: str) -> list[tuple[str, int]]:
    """Return the sessions that a command typed after the tour lists."""
    listed = subprocess.run(
        [Path(sys.executable).parent / "sessiondb", *words],
        env={"HOME": str(home)},
        check=True,
        capture_output=True,
        text=True,
    )
    found = json.loads(listed.stdout)["sessions"]
    return [(session["id"], session["message_count"]) for session in found]


@pytest.mark.slow
def test_after_the_tour_the_next_command_shows_the_same_sessions(
    clone: Path, tmp_path: Path
) -> None:
    if not (Path(sys.executable).parent / "sessiondb").exists():
        pytest.skip("sessiondb is not installed in this environment")
    home = tmp_path / "home"
    home.mkdir()
    shown = tour(clone, home)
    assert len(shown.splitlines()) <= 2 * 24
    for fact in ("3 sessions of opencode", "$0.08", "Release notes for 0.3", str(home)):
        assert fact in shown
    every = ("list", "-a", "--subagents", "--json")
    after_first = sessions_listed_next(home, *every)
    assert len(after_first) == len(sample_sessions())

    tour(clone, home)
    assert sessions_listed_next(home, *every) == after_first, "nothing is duplicated"


def sample_sessions() -> list[str]:
    sample = ROOT / "examples" / "sample-opencode" / "storage" / "session"
    return [json.loads(file.read_text())["id"] for file in sample.glob("*/*.json")]


def _imports_of_ours(script: Path) -> Iterator[tuple[str, str]]:
    for node in ast.walk(ast.parse(script.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
            "sessiondb"
        ):
            yield from ((str(node.module), alias.name) for alias in node.names)


@pytest.mark.parametrize(
    "script", sorted((ROOT / "scripts").rglob("*.py")), ids=lambda path: path.stem
)
def test_every_name_that_a_script_imports_exists(script: Path) -> None:
    for module, name in _imports_of_ours(script):
        found = importlib.import_module(module)
        assert hasattr(found, name) or importlib.util.find_spec(f"{module}.{name}"), (
            name
        )


INSTALLER = """\
#!/bin/sh
# Stands in for an environment: an installation takes a moment and is not interrupted.
case "$*" in
*pip\\ install*)
    mkdir "$0.busy" || { echo "two at once" >&2; exit 9; }
    sleep 0.5
    rmdir "$0.busy"
    ;;
*) exec PYTHON "$@" ;;
esac
"""


@pytest.mark.slow
def test_two_scripts_prepare_the_environment_one_after_the_other(
    clone: Path, machine: Path
) -> None:
    for tool in ("mkdir", "rmdir", "sleep"):
        (machine / tool).symlink_to(shutil.which(tool) or pytest.fail(f"no {tool}"))
    (machine / "python3").symlink_to(sys.executable)
    python = clone / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(INSTALLER.replace("PYTHON", sys.executable))
    python.chmod(0o755)

    running = [
        subprocess.Popen(
            [clone / "scripts" / "environment", extras],
            env={"PATH": str(machine)},
            stderr=subprocess.PIPE,
            text=True,
        )
        for extras in ("all", "dev")
    ]
    said = [process.communicate()[1] for process in running]
    assert [process.returncode for process in running] == [0, 0], said
    assert sum("waiting for it" in text for text in said) == 1
    installed = sorted(path.name for path in (clone / ".venv").glob(".installed-*"))
    assert installed == [".installed-all", ".installed-dev"]


def interpreter(path: Path, answer: str) -> None:
    """Write a program that answers what a Python would, or that nothing can be made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{answer}\n")
    path.chmod(0o755)


def test_the_pythons_are_those_on_path_and_those_that_pyenv_keeps(
    tmp_path: Path,
) -> None:
    on_path, pyenv = tmp_path / "bin", tmp_path / "pyenv"
    interpreter(on_path / "python3.9", "echo 3 9")
    interpreter(on_path / "python3.11", "echo 3 11")
    interpreter(on_path / "python3.11-config", "echo 3 11")
    interpreter(
        on_path / "python3.12", "echo 'a shim that is not selected' >&2; exit 127"
    )
    interpreter(on_path / "python3.15", "echo 'no ensurepip' >&2; exit 1")
    for version in ("3.8.18", "3.11.7", "3.12.1", "3.13.0", "3.13-dev"):
        minor = version.split(".")[1]
        interpreter(pyenv / "versions" / version / "bin" / "python", f"echo 3 {minor}")

    path = f"{tmp_path / 'missing'}:{on_path}"
    assert installed_pythons(path, pyenv) == {
        11: str(on_path / "python3.11"),
        12: str(pyenv / "versions" / "3.12.1" / "bin" / "python"),
        13: str(pyenv / "versions" / "3.13.0" / "bin" / "python"),
    }
    assert installed_pythons(str(on_path), tmp_path).keys() == {11}


def test_the_sum_of_all_pythons_has_the_form_of_a_summary_of_pytest() -> None:
    green = counts_in(
        "..\n==== 70 passed, 3 skipped, 1 warning in 61.02s (0:01:01) ====\n"
    )
    red = counts_in("1 failed, 72 passed, 2 errors in 3.00s\nan exit\n")
    ended_early = counts_in("..F\nTimeout! Stack of thread 1\n")
    assert green == {"passed": 70, "skipped": 3, "warnings": 1}
    assert ended_early == {"errors": 1}

    summary = summary_of(green + red + ended_early, 3671.5)
    assert summary == (
        "1 failed, 142 passed, 3 skipped, 1 warnings, 3 errors in 3671.50s (1:01:11)"
    )
    assert counts_in(summary) == green + red + ended_early
    assert set(counts_in(summary)) <= set(COUNTED)


def test_texts_of_goose_are_compared_as_it_composes_them() -> None:
    given = [{"id": "m1", "content": [{"text": "cafe\u0301 \U000e0041"}]}]
    loaded = [{"id": "m1", "content": [{"text": "caf\u00e9 "}]}]
    other = [{"id": "m1", "content": [{"text": "cafe "}]}]
    assert _difference(given, loaded) == ""
    assert _difference(given, other)
    done = Continued(Path("log"), "", _TAGS, is_composed=True)
    assert done.sent("e\u0301\U000e0041") == "\u00e9"
    assert Continued(Path("log"), "").sent("e\u0301") == "e\u0301"
