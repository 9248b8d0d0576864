"""The tests of the Claude Agent SDK that use a session store, on `SessionDBSessionStore`.

    claude_agent_suite.py FOLDER        # the unpacked sdist of claude-agent-sdk

They run as they are, under asyncio and trio, with ours in place of the SDK's store in
memory. ``--own`` runs the same tests on the SDK's.
"""

from __future__ import annotations

import itertools
import os
import sys
import tempfile
import threading
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import anyio
import claude_agent_sdk
import pytest
from claude_agent_sdk._internal import session_store

from sessiondb.adapters.claude_agent import SessionDBSessionStore

FILES = (
    "test_session_helpers_store.py",
    "test_session_import.py",
    "test_session_resume.py",
    "test_session_store_conformance.py",
    "test_session_summary.py",
    "test_transcript_mirror.py",
)
_SETS_MTIMES = "sets the private _mtimes of InMemorySessionStore"
_COUNTS_TICKS = "waits a fixed number of ticks of the event loop, not for the store"
#: Tests of the SDK's own store in memory, or of its speed, by their names.
LEFT_OUT = {
    "test_continue_picks_most_recent": _SETS_MTIMES,
    "test_continue_skips_sidechain_sessions": _SETS_MTIMES,
    "test_continue_tie_break_is_deterministic": _SETS_MTIMES,
    "test_clear_helper": "calls clear(), a helper of InMemorySessionStore for tests",
    "test_load_concurrency_is_bounded": _COUNTS_TICKS,
    "test_cancelled_after_mkdtemp_cleans_temp_dir": _COUNTS_TICKS,
    "test_gap_fill_bounded_concurrency": _COUNTS_TICKS,
    "test_eager_flush_mode_appends_per_frame_before_result": _COUNTS_TICKS,
}


class SubstitutedStore(SessionDBSessionStore):
    """A store on a new file, with what the SDK's store offers to tests alone."""

    numbers = itertools.count()
    folder = Path()

    def __init__(self) -> None:
        super().__init__(self.folder / f"{next(self.numbers)}.db", durability="normal")

    def get_entries(self, key: Any) -> list[Any]:
        """Return the entries of a transcript, without awaiting them."""
        loaded: list[Any] = []

        def load() -> None:
            loaded.extend(anyio.run(self.load, key) or [])

        thread = threading.Thread(target=load)
        thread.start()
        thread.join()
        return loaded

    @property
    def size(self) -> int:
        """The number of sessions, without subagents."""
        return len(self.store.sessions(subagents=False, limit=1000).items)


class Outcomes:
    """The plugin that counts what passed, and collects what did not."""

    def __init__(self) -> None:
        self.passed = 0
        self.failures: list[str] = []
        self.left_out: list[str] = []

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out what is named in `LEFT_OUT`."""
        kept = []
        for item in items:
            name = item.nodeid.rpartition("/")[2]
            reason = LEFT_OUT.get(item.name.partition("[")[0])
            if reason is None:
                kept.append(item)
            else:
                self.left_out.append(f"left out: {name}: {reason}")
        items[:] = kept

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count one test; a setup that fails is a failure, too."""
        name = report.nodeid.rpartition("/")[2]
        if report.failed:
            words = str(report.longrepr).strip().splitlines()
            self.failures.append(f"{name}: {words[-1] if words else 'failed'}")
        elif report.when == "call" and report.passed:
            self.passed += 1

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Report a file that cannot be collected."""
        if report.failed:
            self.failures.append(f"{report.nodeid}: cannot be collected")


def main() -> None:
    """Run the tests, and print the counts, the failures and what was left out."""
    source, *options = sys.argv[1:]
    tests = Path(source, "tests")
    outcomes = Outcomes()
    with tempfile.TemporaryDirectory() as folder:
        if "--own" in options:
            LEFT_OUT.clear()
        else:
            SubstitutedStore.folder = Path(folder)
            modules: list[Any] = [claude_agent_sdk, session_store]
            for module in modules:
                module.InMemorySessionStore = SubstitutedStore
        arguments = ["-q", "-c", os.devnull, "--rootdir", source, "-p", "anyio"]
        arguments += ["--import-mode=importlib", "-p", "no:cacheprovider"]
        arguments += [str(tests / name) for name in FILES]
        with redirect_stdout(sys.stderr):
            pytest.main(arguments, plugins=[outcomes])
    print(outcomes.passed, len(outcomes.failures), len(outcomes.left_out))
    print(*outcomes.failures, *outcomes.left_out, sep="\n")


if __name__ == "__main__":
    main()
