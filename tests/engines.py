"""The engines that tests of the contract run on: see `backends`.

``pytest --backend sqlite,postgresql`` names them; without it, it is SQLite alone.
"""

from __future__ import annotations

from typing import Any

import pytest
from backends import Backend, SQLite
from postgresql_backend import PartitionedPostgreSQL, PostgreSQL

#: Environment variable with the engines, for runs that take no options.
VARIABLE = "SESSIONDB_TEST_BACKENDS"
#: The engines by the names that ``--backend`` takes.
BACKENDS: dict[str, type[Backend]] = {
    backend.name: backend for backend in (SQLite, PostgreSQL, PartitionedPostgreSQL)
}


def chosen(config: pytest.Config) -> list[str]:
    """Return the names that ``--backend`` or the environment gives."""
    names = [name.strip() for name in config.getoption("--backend").split(",")]
    unknown = sorted(set(names) - set(BACKENDS))
    if unknown:
        raise pytest.UsageError(
            f"no backend {', '.join(unknown)}: there is {', '.join(BACKENDS)}"
        )
    return names


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Repeat a test of the contract on each engine; the folders of the contract import this."""
    names = chosen(metafunc.config)
    if "backend" in metafunc.fixturenames and names != [SQLite.name]:
        engines = [_parameter(metafunc, name) for name in names]
        metafunc.parametrize("backend", engines, indirect=True, scope="session")


def _parameter(metafunc: pytest.Metafunc, name: str) -> Any:
    """Return an engine as a parameter: skipped if it lacks what the test needs."""
    needs = [mark.args for mark in metafunc.definition.iter_markers("needs")]
    missing = [why for fact, why in needs if not getattr(BACKENDS[name], fact)]
    marks = [pytest.mark.skip(reason=f"{name}: {why}") for why in missing]
    return pytest.param(name, marks=marks)
