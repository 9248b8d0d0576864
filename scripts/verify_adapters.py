"""The command line of `scripts/verify-adapters`: environments, suites, and their counts."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tarfile
import tempfile
import venv
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SUITES = ROOT / "scripts" / "verifying" / "adapters"
#: Packages that our own tests of an adapter need besides the framework.
FOR_TESTS = ("hypothesis>=6.120", "pytest>=9.0", "pytest-asyncio>=1.2")


@dataclass(frozen=True, slots=True)
class Framework:
    """A framework: its name, and the releases that its suite is run with.

    *source* is the release whose sdist has the suite, for a framework whose wheel or
    conformance package does not; *repository* is where else it is: a clone, which
    `--clone` names. `scripts/bench adapters` uses the same environments.
    """

    name: str
    packages: tuple[str, ...]
    source: str = ""
    repository: str = ""


FRAMEWORKS = (
    Framework(
        "adk",
        ("google-adk[db]==2.13.0",),
        repository="https://github.com/google/adk-python, tag v2.13.0",
    ),
    Framework(
        "claude_agent",
        ("claude-agent-sdk==0.2.189", "trio"),
        source="claude-agent-sdk==0.2.189",
    ),
    Framework(
        "langgraph",
        (
            "langgraph==1.2.22",
            "langgraph-checkpoint==4.3.2",
            "langgraph-checkpoint-conformance==0.0.2",
            "langgraph-checkpoint-sqlite==3.1.2",
            "openai",
        ),
        source="langgraph-checkpoint-sqlite==3.1.2",
    ),
    Framework(
        "openai_agents",
        ("openai-agents==0.24.0", "cryptography", "sqlalchemy[asyncio]"),
        source="openai-agents==0.24.0",
    ),
    Framework("pydantic_ai", ("pydantic-ai-slim[openai]==2.68.0", "trio")),
    Framework(
        "strands",
        ("strands-agents[openai]==1.62.0", "boto3", "trio"),
        source="strands-agents==1.62.0",
    ),
)


def python_for(framework: Framework, tools: Path) -> Path:
    """Return the interpreter of a framework's environment, made or brought up to date."""
    folder = tools / framework.name
    python = folder / "bin" / "python"
    if not python.exists():
        print(f"# installing {', '.join(framework.packages)} ...", file=sys.stderr)
        venv.create(folder, with_pip=True)
    wanted = [*framework.packages, *FOR_TESTS, "--editable", f"{ROOT}[cli]"]
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *wanted], check=True)
    return python


def source_of(framework: Framework, tools: Path) -> Path | None:
    """Return the unpacked sdist that has the suite; None for a suite without one."""
    if not framework.source:
        return None
    folder = tools / f"{framework.name}-source"
    if not folder.exists():
        with tempfile.TemporaryDirectory() as temporary:
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
            options = ["--no-binary", ":all:", "--dest", temporary]
            subprocess.run([*pip, *options, framework.source], check=True)
            (archive,) = Path(temporary).glob("*.tar.gz")
            with tarfile.open(archive) as tar:
                tar.extractall(folder, filter="data")
    (source,) = folder.iterdir()
    return source


def own_suite(
    framework: Framework, python: Path, source: Path | str | None
) -> list[str]:
    """Run the suite of a framework, print its counts, and return its failures.

    The script prints the numbers of tests that passed, failed and were left out, then a
    line for each that failed, and for each that was left out with the reason.
    """
    script = SUITES / f"{framework.name}_suite.py"
    command = [python, script, *([source] if source else [])]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        return [f"the suite did not run: {done.stderr.strip()[-2000:]}"]
    counts, *lines = [line for line in done.stdout.splitlines() if line]
    passed, failed, left_out = map(int, counts.split())
    print(
        f"{framework.name}: its own suite: {passed} passed, {failed} failed, "
        f"{left_out} left out"
    )
    reasons = Counter(
        line.split(": ", 2)[2] for line in lines if line.startswith("left out: ")
    )
    for reason, count in reasons.items():
        print(f"    left out by {count} names: {reason}")
    return [line for line in lines if not line.startswith("left out: ")]


def our_tests(framework: Framework, python: Path) -> list[str]:
    """Run our tests of an adapter; return what failed."""
    folder = ROOT / "tests" / "adapters"
    tests = sorted(folder.glob(f"test_{framework.name}*.py"))
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    done = subprocess.run(
        command,
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "tests")},
    )
    lines = done.stdout.strip().splitlines() or [done.stderr.strip()]
    print(f"{framework.name}: our tests: {lines[-1].strip('= ')}")
    return [] if done.returncode == 0 else lines


def main() -> int:
    """Run what is wanted; 1 if anything failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=Path, help="the folder of the environments")
    parser.add_argument(
        "--clone", action="append", default=[], metavar="FRAMEWORK=DIR",
        help="a clone of a repository that alone has the suite of a framework",
    )  # fmt: skip
    parser.add_argument(
        "frameworks", nargs="*", choices=[[], *(it.name for it in FRAMEWORKS)]
    )
    options = parser.parse_args()
    clones = dict(item.split("=", 1) for item in options.clone)
    failures: list[str] = []
    with tempfile.TemporaryDirectory() as temporary:
        tools = (options.tools or Path(temporary)).absolute()
        for framework in FRAMEWORKS:
            if options.frameworks and framework.name not in options.frameworks:
                continue
            python = python_for(framework, tools)
            source = clones.get(framework.name) or source_of(framework, tools)
            if framework.repository and source is None:
                print(f"{framework.name}: its own suite: not run, it needs --clone "
                      f"{framework.name}=DIR ({framework.repository})")  # fmt: skip
            else:
                failures += own_suite(framework, python, source)
            failures += our_tests(framework, python)
    for failure in failures:
        print(failure)
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
