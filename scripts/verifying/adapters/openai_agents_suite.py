"""The suite of OpenAI's Agents SDK for its `SQLiteSession`, on `SessionDBSession`.

    python openai_agents_suite.py SDIST

*SDIST* is the unpacked source of the release that is installed. Before its tests are
collected, `agents.SQLiteSession` is replaced by a class with the same arguments.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import agents
import agents.memory
import pytest

from sessiondb.adapters.openai_agents import SessionDBSession

FILES = (
    "tests/memory/test_session.py",
    "tests/memory/test_session_limit.py",
    "tests/memory/test_session_persistence_sanitize.py",
    "tests/memory/test_session_context_wrapper.py",
    "tests/deferred_session_writes",
    "tests/extensions/memory/test_encrypt_session.py",
    "tests/memory/test_compaction_suffix.py",
    "tests/memory/test_compaction_model_visibility.py",
    "tests/memory/test_openai_responses_compaction_session.py",
)

_CONNECTIONS = "its own connections and locks: _connections, _lock, _get_connection"
_TABLE = "its own table: writes to agent_messages or agent_sessions"
_INSERT = "its own method _insert_items"
_ISINSTANCE = (
    "EncryptedSession authenticates in the transaction of its own SQLiteSession alone"
)
#: Tests of private attributes or tables of `SQLiteSession`, by the ends of their ids.
LEFT_OUT: Mapping[str, str] = {
    "test_sqlite_session_close_closes_worker_thread_connections": _CONNECTIONS,
    "test_sqlite_session_reaps_connections_from_exited_worker_threads": _CONNECTIONS,
    "test_sqlite_session_closes_retired_connections_before_the_next_allocation": (
        _CONNECTIONS
    ),
    "test_sqlite_session_keeps_connections_of_live_worker_threads": _CONNECTIONS,
    "test_sqlite_session_pop_item_skips_corrupt_most_recent": _TABLE,
    "test_sqlite_session_pop_item_returns_none_after_dropping_only_corrupt_rows": (
        _TABLE
    ),
    "test_sqlite_session_get_items_limit_skips_corrupt_newest_rows": _TABLE,
    "test_sqlite_session_get_items_session_settings_limit_skips_corrupt_rows": _TABLE,
    "test_sqlite_session_file_lock_is_shared_across_instances": _CONNECTIONS,
    "test_sqlite_session_failed_add_items_releases_write_lock": _TABLE,
    "test_sqlite_session_failed_clear_session_rolls_back": _TABLE,
    "test_sqlite_session_failed_pop_item_releases_write_lock": _TABLE,
    "test_sqlite_session_rollback_failure_evicts_connection": _CONNECTIONS,
    "test_sqlite_session_close_retries_quarantined_connection": _CONNECTIONS,
    "test_sqlite_session_post_commit_cancellation_propagates_after_known_outcome[add]": (
        _CONNECTIONS
    ),
    "test_sqlite_session_post_commit_cancellation_propagates_after_known_outcome[pop]": (
        _CONNECTIONS
    ),
    "test_sqlite_session_post_commit_cancellation_propagates_after_known_outcome[clear]": (
        _CONNECTIONS
    ),
    "test_encrypted_pop_wrong_key_preserves_recoverable_history[False]": _ISINSTANCE,
    "test_encrypted_pop_wrong_key_preserves_recoverable_history[True]": _ISINSTANCE,
    "test_encrypted_pop_rechecks_authentication_after_expired_tail": _ISINSTANCE,
    "test_encrypted_pop_authentication_is_atomic_with_concurrent_mutations[append]": (
        _ISINSTANCE
    ),
    "test_encrypted_pop_authentication_is_atomic_with_concurrent_mutations[clear]": (
        _ISINSTANCE
    ),
    "test_encrypted_pop_wrong_key_preserves_row_identity": _ISINSTANCE,
    "test_encrypted_pop_cancellation_waits_for_authentication_rollback": _ISINSTANCE,
    "test_suffix_transaction_rolls_back_failed_insert[sqlite]": _TABLE,
    "test_cancelled_suffix_transaction_settles_before_newer_append[sqlite]": _INSERT,
    "test_failed_encrypted_suffix_transaction_preserves_original_tokens[sqlite-False]": (
        _TABLE
    ),
    "test_failed_encrypted_suffix_transaction_preserves_original_tokens[sqlite-True]": (
        _TABLE
    ),
    "test_settled_pop_failure_invalidates_response_chain[cancelled]": _CONNECTIONS,
    "test_settled_pop_failure_invalidates_response_chain[error]": _CONNECTIONS,
    "test_settled_clear_failure_invalidates_response_chain[cancelled]": _CONNECTIONS,
    "test_settled_clear_failure_invalidates_response_chain[error]": _CONNECTIONS,
}


class SQLiteSession(SessionDBSession):
    """Ours, with the arguments and the name in messages of the SDK's own."""

    def __init__(
        self,
        session_id: str,
        db_path: str | Path = ":memory:",
        *,
        session_settings: Any = None,
    ) -> None:
        super().__init__(session_id, db_path, session_settings=session_settings)


class Counts:
    """A plugin of pytest: leaves tests out, and counts the others."""

    def __init__(self) -> None:
        self.passed = 0
        self.failures: list[str] = []
        self.left_out: list[str] = []

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Leave the tests of `LEFT_OUT` out."""
        left = [item for item in items if item.name in LEFT_OUT]
        items[:] = [item for item in items if item.name not in LEFT_OUT]
        config.hook.pytest_deselected(items=left)
        gone = LEFT_OUT.keys() - {item.name for item in left}
        self.failures += [f"{name} is left out, and not there" for name in sorted(gone)]
        self.left_out = [
            f"left out: {item.nodeid}: {LEFT_OUT[item.name]}" for item in left
        ]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count an outcome."""
        if report.failed:
            self.failures.append(f"{report.nodeid} ({report.when})")
        elif report.when == "call" and report.passed:
            self.passed += 1

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Count a file that cannot be collected."""
        if report.failed:
            self.failures.append(report.nodeid)


def main() -> None:
    """Run the suite, and print its counts."""
    os.chdir(sys.argv[1])
    agents.SQLiteSession = SQLiteSession  # type: ignore[misc, assignment]
    agents.memory.SQLiteSession = SQLiteSession  # type: ignore[misc, assignment]
    counts = Counts()
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        status = pytest.main(["-q", "-p", "no:cacheprovider", *FILES], plugins=[counts])
    if status > pytest.ExitCode.TESTS_FAILED or not counts.passed:
        sys.exit(shown.getvalue())
    print(counts.passed, len(counts.failures), len(counts.left_out))
    print(*counts.failures, *counts.left_out, sep="\n")


if __name__ == "__main__":
    main()
