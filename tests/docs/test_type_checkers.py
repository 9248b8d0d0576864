"""What type checkers and editors see of the package: mypy, and pyright, which Pylance is.

Both read the same files. `results` states the type of every result, `mistakes` has a
mistake in each line that says so, and the examples and pages have none. basedpyright
is pyright in a package that needs no network once it is installed.
"""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from docs_blocks import EXAMPLES, ROOT, blocks, page

import sessiondb
from sessiondb import AsyncStore, Store

FOLDER = Path(__file__).resolve().parent / "typed"
BIN = Path(sys.executable).parent
#: Pages whose Python is complete; the cookbook shows parts of the examples.
PAGES = ("README.md", "docs/LIBRARY.md")
REFUSED = "# refused"
Places = dict[tuple[str, int], list[str]]


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A folder with all that a checker is to read."""
    pytest.importorskip("basedpyright")
    folder = tmp_path / "sources"
    folder.mkdir()
    for name in ("results.py", "mistakes.py"):
        shutil.copy(FOLDER / name, folder)
    for name in EXAMPLES:
        shutil.copy(ROOT / "examples" / f"{name}.py", folder)
    for name in PAGES:
        for block in blocks(page(name), "python"):
            (folder / f"{Path(name).stem}_{block.line}.py").write_text(block.text)

    names = ", ".join(sessiondb.__all__)
    (folder / "names.py").write_text(f"from sessiondb import *\nprint({names})\n")
    return folder


def mistakes() -> set[tuple[str, int]]:
    """Return the lines that a checker must refuse."""
    lines = (FOLDER / "mistakes.py").read_text().splitlines()
    return {
        ("mistakes.py", number)
        for number, line in enumerate(lines, 1)
        if line.endswith(REFUSED)
    }


def assert_refused(complaints: Places) -> None:
    """Assert that a checker refuses the mistakes, and nothing else."""
    unexpected = {at: said for at, said in complaints.items() if at not in mistakes()}
    assert unexpected == {}
    assert mistakes() - complaints.keys() == set(), "accepted by the checker"


@pytest.mark.slow
def test_mypy_knows_every_result_and_refuses_every_mistake(
    sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # With the names of `mypy --strict src`, so that both use one cache.
    monkeypatch.setenv("MYPYPATH", "src")
    command = [BIN / "mypy", "--strict", "-O", "json", *sorted(sources.glob("*.py"))]
    done = subprocess.run(
        command, check=False, cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 1, done.stdout + done.stderr

    complaints: Places = {}
    for line in done.stdout.splitlines():
        found = json.loads(line)
        if found["severity"] == "error":
            at = (Path(found["file"]).name, found["line"])
            complaints.setdefault(at, []).append(found["message"])
    assert_refused(complaints)


@pytest.mark.slow
def test_pyright_knows_every_result_and_refuses_every_mistake(sources: Path) -> None:
    rules = {"typeCheckingMode": "strict", "reportWildcardImportFromLibrary": "none"}
    (sources / "pyrightconfig.json").write_text(json.dumps(rules))
    command = [BIN / "basedpyright", "--pythonpath", sys.executable, "-p", sources]
    done = subprocess.run(
        [*command, "--outputjson"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stdout + done.stderr

    complaints: Places = {}
    for found in json.loads(done.stdout)["generalDiagnostics"]:
        line = found["range"]["start"]["line"] + 1
        at = (Path(found["file"]).name, line)
        complaints.setdefault(at, []).append(found["message"])
    assert_refused(complaints)


@pytest.mark.parametrize(
    ("facade", "kind"),
    [(Store, ast.FunctionDef), (AsyncStore, ast.AsyncFunctionDef)],
)
def test_every_public_name_of_a_facade_has_its_type_stated(
    facade: type, kind: type[ast.AST]
) -> None:
    stated: set[str] = set()
    for function in ast.parse((FOLDER / "results.py").read_text()).body:
        if isinstance(function, kind):
            stated |= {
                node.attr
                for node in ast.walk(function)
                if isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id in ("store", facade.__name__)
            }
    public = {name for name in dir(facade) if not name.startswith("_")}
    assert public - stated == set()


def test_the_package_has_its_types_and_each_of_its_names() -> None:
    package = Path(sessiondb.__file__).parent
    assert (package / "py.typed").exists()
    for name in sessiondb.__all__:
        assert getattr(sessiondb, name) is not None
    assert {*sessiondb._HOME_OF, "__version__"} == {*sessiondb.__all__}
