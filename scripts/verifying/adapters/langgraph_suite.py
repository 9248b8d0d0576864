"""LangGraph's suites on `SessionDBSaver` and `SessionDBStore`.

The saver's is the conformance suite of checkpointers. The store's are the tests of
langgraph-checkpoint-sqlite, in its sdist, with our store in place of both of theirs.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from langgraph.checkpoint.conformance import checkpointer_test, validate

from sessiondb.adapters.langgraph import SessionDBSaver, SessionDBStore

STORE_TESTS = ("tests/test_store.py", "tests/test_async_store.py", "tests/test_ttl.py")
VECTORS = "vector search, which ours does not have"
#: Tests that are not run → why; each with all its parameters.
LEFT_OUT = {
    "test_store.py::test_vector_store_initialization": VECTORS,
    "test_store.py::test_vector_insert_with_auto_embedding": VECTORS,
    "test_store.py::test_vector_update_with_embedding": VECTORS,
    "test_store.py::test_vector_search_with_filters": VECTORS,
    "test_store.py::test_vector_search_pagination": VECTORS,
    "test_store.py::test_vector_search_edge_cases": VECTORS,
    "test_store.py::test_embed_with_path": VECTORS,
    "test_store.py::test_embed_with_path_operation_config": VECTORS,
    "test_store.py::test_scores": VECTORS,
    "test_store.py::test_non_ascii": VECTORS,
    "test_async_store.py::test_vector_store_initialization": VECTORS,
    "test_async_store.py::test_vector_insert_with_auto_embedding": VECTORS,
    "test_async_store.py::test_vector_update_with_embedding": VECTORS,
    "test_async_store.py::test_vector_search_with_filters": VECTORS,
    "test_async_store.py::test_vector_search_pagination": VECTORS,
    "test_async_store.py::test_vector_search_edge_cases": VECTORS,
    "test_async_store.py::test_embed_with_path": VECTORS,
    "test_store.py::test_nonnull_migrations": "the SQL of their migrations",
    "test_store.py::test_escape_glob_literal": "a private function that writes their SQL",
    "test_store.py::test_namespace_match_pattern": "a private function that writes their SQL",
    "test_store.py::test_list_namespaces_prefix_uses_indexable_condition": "their SQL",
    "test_store.py::test_sql_injection_vulnerability": "their SQL has the keys of a filter "
    "in its text and refuses most characters; ours takes any key, as a parameter",
    "test_async_store.py::test_no_running_loop": "their calls fail in the loop; ours work",
}


@checkpointer_test(name="SessionDBSaver")
async def made() -> AsyncIterator[SessionDBSaver]:
    """Yield a saver on a new file."""
    with tempfile.TemporaryDirectory() as folder:
        async with SessionDBSaver(Path(folder, "graph.db")) as saver:
            yield saver


class CalledStore(SessionDBStore):
    """Our store under the names of their synchronous one.

    Tests that search by no vector configure an index nevertheless; it is left out.
    """

    @classmethod
    @contextmanager
    def from_conn_string(
        cls, place: str, *, ttl: Any = None, **_: Any
    ) -> Iterator[CalledStore]:
        """Open a store at a path."""
        with cls(place, ttl=ttl) as store:
            yield store

    def setup(self) -> None:
        """Do nothing: the tables are there."""


class AwaitedStore(SessionDBStore):
    """Our store under the names of their asynchronous one, where all is awaited."""

    @classmethod
    @asynccontextmanager
    async def from_conn_string(
        cls, place: str, *, ttl: Any = None, **_: Any
    ) -> AsyncIterator[AwaitedStore]:
        """Open a store at a path."""
        async with cls(place, ttl=ttl) as store:
            yield store

    async def setup(self) -> None:
        """Do nothing: the tables are there."""

    async def sweep_ttl(self) -> int:  # type: ignore[override]
        """Sweep, and return the number of items."""
        return await self.asweep_ttl()

    async def start_ttl_sweeper(  # type: ignore[override]
        self, sweep_interval_minutes: float | None = None
    ) -> Future[None]:
        """Start the thread."""
        return super().start_ttl_sweeper(sweep_interval_minutes)

    async def stop_ttl_sweeper(  # type: ignore[override]
        self, *seconds: float | None
    ) -> bool:
        """Stop the thread."""
        return super().stop_ttl_sweeper(*seconds)


class Counts:
    """The results of the tests that pytest ran, and what was left out of them."""

    def __init__(self) -> None:
        self.passed = 0
        self.failures: list[str] = []
        #: Name of a test in `LEFT_OUT` → how many its parameters make of it.
        self.left_out = dict.fromkeys(LEFT_OUT, 0)

    def pytest_configure(self, config: pytest.Config) -> None:
        """Know a mark of a plugin that repeats tests."""
        config.addinivalue_line("markers", "flaky(retries): it may be repeated")

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out what is named."""
        selected: list[pytest.Item] = []
        for item in items:
            name = item.nodeid.partition("/")[2].partition("[")[0]
            if name in LEFT_OUT:
                self.left_out[name] += 1
            else:
                selected.append(item)
        items[:] = selected

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a test by its call, or by a fixture that failed."""
        if report.failed:
            self.failures.append(f"{report.nodeid}: {report.longreprtext[-500:]!r}")
        elif report.when == "call":
            self.passed += 1

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Count a file that cannot be imported as a failure."""
        if report.failed:
            self.failures.append(f"{report.nodeid}: {report.longreprtext[-500:]!r}")


def substitute_stores() -> None:
    """Let the modules of their stores have ours; private names are there unused."""
    package, base, awaited = (
        ModuleType(f"langgraph.store.sqlite{name}") for name in ("", ".base", ".aio")
    )
    package.SqliteStore = CalledStore  # type: ignore[attr-defined]
    package.AsyncSqliteStore = AwaitedStore  # type: ignore[attr-defined]
    awaited.AsyncSqliteStore = AwaitedStore  # type: ignore[attr-defined]
    base.BaseSqliteStore = CalledStore  # type: ignore[attr-defined]
    base.SqliteIndexConfig = dict  # type: ignore[attr-defined]
    for private in (
        "NS_MATCH_FUNCTION",
        "_escape_glob_literal",
        "_namespace_match_pattern",
    ):
        setattr(base, private, None)
    for module in (package, base, awaited):
        sys.modules[module.__name__] = module


def store_suite(source: Path) -> Counts:
    """Run the tests of the unpacked sdist on our store."""
    substitute_stores()
    os.chdir(source)
    counts = Counts()
    # The output of pytest itself is not part of the counts.
    standard_output, sys.stdout = sys.stdout, sys.stderr
    try:
        pytest.main(["-q", "-p", "no:cacheprovider", *STORE_TESTS], plugins=[counts])
    finally:
        sys.stdout = standard_output
    return counts


async def saver_suite() -> tuple[int, list[str]]:
    """Run every capability of a checkpointer; return what passed, and the failures."""
    results = (await validate(made)).results.values()
    passed = sum(result.tests_passed for result in results)
    return passed, [failure for result in results for failure in result.failures]


def main() -> None:
    """Run the suites, and print the counts; argument: the unpacked sdist."""
    passed, failures = asyncio.run(saver_suite())
    counts = store_suite(Path(sys.argv[1]).absolute())
    failures += counts.failures
    left_out = sum(counts.left_out.values())
    print(passed + counts.passed, len(failures), left_out)
    for failure in failures:
        print(failure)
    for name, reason in LEFT_OUT.items():
        print(f"left out: {name} ({counts.left_out[name]}): {reason}")


if __name__ == "__main__":
    main()
