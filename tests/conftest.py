"""The base of every test: a home of its own, the fixtures of real agents, the tools it needs."""

from __future__ import annotations

import gc
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path

import pytest
import surroundings  # the first of ours: where bytecode and temporary files are
from audit import audited  # noqa: F401  a fixture
from backends import Backend, Place, SQLite
from engines import BACKENDS, VARIABLE
from hypothesis import settings

from sessiondb import Store

FIXTURES = Path(
    os.environ.get(
        "SESSIONDB_FIXTURES", surroundings.ROOT.parent / "shared" / "fixtures"
    )
)

# Machines differ too much for a deadline per example. Under CI hypothesis takes its own profile.
settings.register_profile("local", deadline=None)
if "CI" not in os.environ:
    settings.load_profile("local")


def pytest_collection_finish() -> None:
    # Modules and tests live as long as the process: no collection looks at them again.
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _isolated_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test reads or writes the sessions, settings or git identity of a person."""
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith(("SESSIONDB_", "XDG_", "OPENCODE_", "GIT_", "PG")):
                patch.delenv(name)
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        for role in ("AUTHOR", "COMMITTER"):
            patch.setenv(f"GIT_{role}_NAME", "Ada")
            patch.setenv(f"GIT_{role}_EMAIL", "ada@example.org")
        yield


@pytest.fixture(scope="session")
def _homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    # Not `mktemp` for each: to number a folder it lists all that were made before.
    folder = tmp_path_factory.mktemp("homes")
    return (folder / str(number) for number in count())


@pytest.fixture(autouse=True)
def home(_homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the empty home that this test has for itself."""
    home = next(_homes)
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    return home


@pytest.fixture(scope="session")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database without a session, to begin from."""
    path = tmp_path_factory.mktemp("empty") / "sessions.db"
    Store.open(path).close()
    return path


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--backend",
        default=os.environ.get(VARIABLE, SQLite.name),
        help="engines that the tests of the contract run on, separated by commas",
    )


@pytest.fixture(scope="session")
def backend(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Backend]:
    """The engine of a test's databases; that of files unless ``--backend`` says so."""
    kind = BACKENDS[getattr(request, "param", SQLite.name)]
    if why := kind.missing():
        pytest.skip(f"{kind.name}: {why}")
    with closing(kind(tmp_path_factory.mktemp(kind.name))) as backend:
        yield backend


@pytest.fixture(autouse=True)
def _databases_of_the_test(request: pytest.FixtureRequest) -> Iterator[None]:
    """Remove the databases that a test made, unless it failed."""
    if "backend" not in request.fixturenames:
        yield
        return
    backend: Backend = request.getfixturevalue("backend")
    places, failed = backend.places, request.session.testsfailed
    yield
    if request.session.testsfailed == failed:
        backend.remove_places(places)


@pytest.fixture
def store(backend: Backend) -> Iterator[Store]:
    """A store on a database of its own, outside of `tmp_path`; no power cut is survived."""
    with Store.open(backend.fresh(), durability="normal") as opened:
        yield opened


@pytest.fixture
def opened(backend: Backend) -> Iterator[Callable[[str], Store]]:
    """Return a function that opens the database of a name, a new one at first."""
    places: dict[str, Place] = {}
    with ExitStack() as stack:

        def open_(name: str) -> Store:
            if name not in places:
                places[name] = backend.fresh()
            return stack.enter_context(Store.open(places[name], durability="normal"))

        yield open_


@pytest.fixture(scope="session")
def real_store() -> Callable[[str], Path]:
    """Return the folder of a real agent's store by its name, e.g. ``opencode-1.18.33``."""

    def find(name: str) -> Path:
        folder = FIXTURES / name
        if not folder.is_dir():
            pytest.skip(f"no {name} in {FIXTURES} (set SESSIONDB_FIXTURES)")
        return folder

    return find


def _needed(tool: str) -> str:
    path = shutil.which(tool)
    if path is None:
        pytest.skip(f"{tool} is not installed")
    return path


@pytest.fixture(scope="session")
def sqlite3_shell() -> str:
    """Return the path of the ``sqlite3`` shell."""
    return _needed("sqlite3")


@pytest.fixture(scope="session")
def git() -> str:
    """Return the path of ``git``."""
    return _needed("git")
