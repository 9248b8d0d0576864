"""The suite on every installed Python, one after the other: `scripts/test --all-pythons`.

The first is the one of ``.venv``, which runs this; each other has an environment of its own,
e.g. ``.venv-3.13``. On the first the contract of the engines is run on PostgreSQL, too: the
suite itself runs it on SQLite. At the end there is a line for each run and, as the last
one, the sum in the form of pytest's own summary.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OLDEST = 11
#: The outcomes that pytest counts, in its order.
COUNTED = (
    "failed", "passed", "skipped", "deselected", "xfailed", "xpassed", "warnings", "errors",
)  # fmt: skip
_NAME = re.compile(r"python3\.(\d+)")
_FOLDER = re.compile(r"3\.(\d+)\.\d+")
_SUMMARY = re.compile(r"^=* ?(\d+ [a-z]+(?:, \d+ [a-z]+)*) in [\d.]+s\b")
_CONTRACT = ("--backend", "postgresql", "tests/effects", "tests/repository")
_QUESTION = "import ensurepip, venv, sys; print(*sys.version_info[:2])"


@dataclass(frozen=True)
class Run:
    """The suite, or a part of it, on one Python."""

    #: e.g. ``Python 3.13.0``
    name: str
    counts: Counter[str]
    seconds: float
    is_green: bool


def installed_pythons(path: str, pyenv: Path) -> dict[int, str]:
    """Return the Pythons on *path*, else those of pyenv, by their minor version.

    Only those from 3.11 on that can make environments. A shim of pyenv for a version that is
    not selected cannot be run, so the version itself is taken.
    """
    pythons: dict[int, str] = {}
    for minor, candidate in (*_on_path(path), *_of_pyenv(pyenv)):
        if minor >= OLDEST and minor not in pythons and _can_make_one(candidate, minor):
            pythons[minor] = str(candidate)
    return dict(sorted(pythons.items()))


def _on_path(path: str) -> Iterator[tuple[int, Path]]:
    for folder in map(Path, path.split(os.pathsep)):
        if not folder.is_dir():
            continue
        for file in sorted(folder.iterdir()):
            name = _NAME.fullmatch(file.name)
            if name is not None:
                yield int(name[1]), file


def _of_pyenv(pyenv: Path) -> Iterator[tuple[int, Path]]:
    for folder in sorted(pyenv.glob("versions/*")):
        name = _FOLDER.fullmatch(folder.name)
        if name is not None:
            yield int(name[1]), folder / "bin" / "python"


def _can_make_one(python: Path, minor: int) -> bool:
    try:
        answer = subprocess.run(
            [python, "-c", _QUESTION], capture_output=True, text=True, check=False
        )
    except OSError:
        return False
    return answer.returncode == 0 and answer.stdout.split() == ["3", str(minor)]


def counts_in(output: str) -> Counter[str]:
    """Return what the last summary of *output* counts; one error if there is none."""
    counts = Counter({"errors": 1})
    for line in output.splitlines():
        summary = _SUMMARY.match(line)
        if summary is not None:
            counts = _counts_of(summary[1])
    return counts


def _counts_of(summary: str) -> Counter[str]:
    counts: Counter[str] = Counter()
    for term in summary.split(", "):
        number, word = term.split()
        plural = {"error": "errors", "warning": "warnings"}.get(word, word)
        counts[plural] += int(number)
    return counts


def summary_of(counts: Counter[str], seconds: float) -> str:
    """Return a summary as pytest words it, without its frame."""
    terms = [f"{counts[word]} {word}" for word in COUNTED if counts[word]]
    duration = f"{seconds:.2f}s ({_clock(seconds)})"
    return f"{', '.join(terms) or 'no tests ran'} in {duration}"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"


def _run_suite(python: str, arguments: list[str], suffix: str = "") -> Run:
    """Run the suite with the interpreter of an environment; its output is shown as it comes.

    *suffix* ends the name of the run.
    """
    command = [python, "-m", "pytest", "-n", "auto", *arguments]
    print("$", *command, flush=True)
    question = [python, "-c", "import platform; print(platform.python_version())"]
    version = subprocess.check_output(question, text=True).strip()
    started = time.monotonic()
    lines = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    return Run(
        f"Python {version}{suffix}",
        counts_in("".join(lines)),
        time.monotonic() - started,
        process.returncode == 0,
    )


def _environment_of(python: str, minor: int) -> str | None:
    """Return the interpreter of the environment of a Python; None if it cannot be made."""
    made = subprocess.run(
        [ROOT / "scripts" / "environment", "dev", python], check=False
    )
    if made.returncode:
        return None
    return str(Path(f".venv-3.{minor}", "bin", "python"))


def _runs(arguments: list[str]) -> Iterator[Run]:
    first = str(Path(".venv", "bin", "python"))
    yield _run_suite(first, arguments)
    yield _run_suite(first, [*_CONTRACT, *arguments], ", contract on PostgreSQL")

    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    for minor, python in installed_pythons(os.environ["PATH"], pyenv).items():
        if minor == sys.version_info.minor:
            continue
        interpreter = _environment_of(python, minor)
        if interpreter is None:
            print(f"{python} gets no environment: see above", file=sys.stderr)
            yield Run(f"Python 3.{minor}", Counter({"errors": 1}), 0.0, is_green=False)
        else:
            yield _run_suite(interpreter, arguments)


def main(arguments: list[str]) -> int:
    """Run the suite on each Python with *arguments* of pytest; 0 only if all are green."""
    os.chdir(ROOT)
    runs = list(_runs(arguments))
    print()
    for run in runs:
        print(f"{run.name}: {summary_of(run.counts, run.seconds)}")
    counts = sum((run.counts for run in runs), Counter[str]())
    summary = summary_of(counts, sum(run.seconds for run in runs))
    print(f" {summary} ".center(80, "="), flush=True)
    return 0 if all(run.is_green for run in runs) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
