"""ADK's contract tests of session services, on `SessionDBSessionService`.

Its sdist has no tests: they come from a checkout of its repository, whose path is the
argument. To get it:

    git clone --depth 1 --branch v2.13.0 https://github.com/google/adk-python

Each test that takes the fixture ``session_service`` runs with our service as its only
backend, without divergences. Each that makes a service itself makes ours. What is left
out are tests of the tables, the SQL and the private attributes of ADK's own services.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from sessiondb.adapters.adk import SessionDBSessionService

FILES = (
    "tests/unittests/sessions/test_session_service.py",
    "tests/unittests/runners/test_runner_rewind.py",
)
TABLES = "it reads or changes the tables of DatabaseSessionService"
PRIVATE = "it uses private attributes of DatabaseSessionService"
ENGINE = "it is about SQLAlchemy engines and their URLs"
MEMORY = "it uses attributes of InMemorySessionService"
NO_SERVICE = "it uses no session service"
SYNCHRONOUS = "it calls deprecated methods of InMemorySessionService that do not await"
LEFT_OUT = {
    "test_append_event_calls_rollback_on_commit_failure": PRIVATE,
    "test_append_event_locks_only_scopes_with_deltas": PRIVATE,
    "test_append_event_raises_if_app_state_row_missing": TABLES,
    "test_append_event_raises_if_user_state_row_missing": TABLES,
    "test_append_event_reads_storage_revision_before_commit": PRIVATE,
    "test_append_event_when_session_is_same_ref_as_storage_session": MEMORY,
    "test_concurrent_prepare_tables_no_race_condition": PRIVATE,
    "test_create_session_calls_rollback_on_commit_failure": PRIVATE,
    "test_create_session_reads_storage_revision_before_commit": PRIVATE,
    "test_database_session_service_caller_owned_engine_not_disposed_on_close": ENGINE,
    "test_database_session_service_creates_read_only_engine_for_other_dialects": ENGINE,
    "test_database_session_service_creates_read_only_engine_for_spanner": ENGINE,
    "test_database_session_service_enables_pool_pre_ping_by_default": ENGINE,
    "test_database_session_service_engine_error_hides_password": ENGINE,
    "test_database_session_service_get_session_uses_read_only_factory": PRIVATE,
    "test_database_session_service_keeps_timezone_for_spanner": ENGINE,
    "test_database_session_service_list_sessions_orders_by_update_time_then_id": TABLES,
    "test_database_session_service_list_sessions_uses_read_only_factory": PRIVATE,
    "test_database_session_service_malformed_url_reports_usable_error": ENGINE,
    "test_database_session_service_preserves_timezone_for_other_dialects": NO_SERVICE,
    "test_database_session_service_requires_one_argument": ENGINE,
    "test_database_session_service_respects_pool_pre_ping_override": ENGINE,
    "test_database_session_service_sqlite_file_timestamp_read_after_reopen": TABLES,
    "test_database_session_service_strips_timezone_for_dialect": NO_SERVICE,
    "test_database_session_service_sync_driver_url_names_async_driver": ENGINE,
    "test_database_session_service_uses_naive_datetime_for_dialect": ENGINE,
    "test_database_session_service_visible_in_module_namespace": NO_SERVICE,
    "test_database_session_service_with_db_engine": ENGINE,
    "test_delete_session_calls_rollback_on_commit_failure": PRIVATE,
    "test_delete_session_sync_removes_only_the_targeted_users_session": SYNCHRONOUS,
    "test_delete_session_sync_unknown_session_is_a_noop": SYNCHRONOUS,
    "test_dynamic_json_column_statement_is_cacheable": TABLES,
    "test_get_or_create_state_creates_new_row": PRIVATE,
    "test_get_or_create_state_handles_race_condition": PRIVATE,
    "test_get_or_create_state_returns_existing_row": PRIVATE,
    "test_get_session_config_rejects_negative_num_recent_events": NO_SERVICE,
    "test_get_session_orders_tied_timestamps_by_id": "it wants events of one time in the "
    "order of their ids; ours are in the order in which they were appended, as in memory",
    "test_get_user_state_copies_to_session_state_depth": MEMORY,
    "test_list_sessions_sync_strips_events_and_merges_scoped_state": SYNCHRONOUS,
    "test_list_sessions_sync_unknown_app_or_user_returns_empty_response": SYNCHRONOUS,
    "test_prepare_tables_idempotent_after_creation": PRIVATE,
    "test_prepare_tables_serializes_schema_detection_and_creation": PRIVATE,
    "test_public_prepare_tables_eager_initialization": PRIVATE,
    "test_recorded_divergences_name_a_contract_test": NO_SERVICE,
    "test_service_recovers_after_multiple_failures": PRIVATE,
    "test_session_type_decorators_opt_into_statement_cache": TABLES,
    "test_sqlite_session_service_preserves_uri_query_parameters": "it wants an error of "
    "sqlite3 for a file that is not a database of sessiondb",
    "test_vertex_ai_session_service_raises_not_implemented_for_get_user_state": "it is "
    "about VertexAiSessionService",
}  # fmt: skip
#: The services that tests make by name; ours is made instead.
SERVICES = ("DatabaseSessionService", "InMemorySessionService", "SqliteSessionService")


class OurService(SessionDBSessionService):
    """Our service, made as ADK's are: of a path, a URL of SQLAlchemy, or nothing."""

    def __init__(self, db_url: str = ":memory:") -> None:
        if db_url.startswith("sqlite+aiosqlite://"):
            db_url = db_url.replace("+aiosqlite", "", 1)
        super().__init__(":memory:" if db_url.endswith(":memory:") else db_url)


class OnSessionDB:
    """The plugin of pytest that replaces the services, and counts."""

    def __init__(self) -> None:
        self.passed = 0
        self.failures: list[str] = []
        self.left_out: list[str] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Make our service the only backend of a test of the contract."""
        marks = metafunc.definition.iter_markers("parametrize")
        is_stated = any(mark.args[0] == "session_service" for mark in marks)
        if "session_service" in metafunc.fixturenames and not is_stated:
            conformance = metafunc.module._conformance  # noqa: SLF001
            ours = conformance._Backend("sessiondb", made)  # noqa: SLF001
            # As a mark it takes the place of the parameters of the fixture.
            mark = pytest.mark.parametrize(
                "session_service", [pytest.param(ours, id="sessiondb")], indirect=True
            )
            metafunc.definition.add_marker(mark)

    def pytest_collection_modifyitems(self, items: list[pytest.Function]) -> None:
        """Leave out tests, and let the others make our service."""
        for item in list(items):
            if item.originalname in LEFT_OUT:
                items.remove(item)
                reason = LEFT_OUT[item.originalname]
                self.left_out.append(f"left out: {item.nodeid}: {reason}")
            for name in SERVICES:
                if hasattr(item.module, name):
                    setattr(item.module, name, OurService)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Function) -> Iterator[Any]:
        """Replace a service that a test has as its parameter."""
        if type(item.funcargs.get("session_service")).__name__ in SERVICES:
            item.funcargs["session_service"] = OurService()
        return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a test."""
        if report.failed:
            self.failures.append(f"{report.nodeid}: {report.longreprtext[-1500:]}")
        elif report.when == "call":
            self.passed += 1

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Count a file that cannot be imported as a failure."""
        if report.failed:
            self.failures.append(f"{report.nodeid}: {report.longreprtext[-1500:]}")


@contextlib.asynccontextmanager
async def made(_: Path) -> AsyncIterator[SessionDBSessionService]:
    """Yield a service on a new file."""
    with tempfile.TemporaryDirectory() as folder:
        async with SessionDBSessionService(Path(folder, "adk.db")) as service:
            yield service


def main() -> int:
    """Run the tests of the checkout that is the argument, and print the counts."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    checkout = Path(sys.argv[1]).absolute()
    files = [checkout / name for name in FILES if (checkout / name).exists()]
    if checkout / FILES[0] not in files:
        sys.exit(f"{FILES[0]} is not in {checkout}\n\n{__doc__}")
    plugin = OnSessionDB()
    options = ["-q", "-p", "no:cacheprovider", "-o", "addopts=", "-W", "ignore"]
    rooted = ["--rootdir", str(checkout), "-c", str(checkout / "pyproject.toml")]
    with contextlib.redirect_stdout(io.StringIO()):
        pytest.main([*options, *rooted, *map(str, files)], plugins=[plugin])
    print(plugin.passed, len(plugin.failures), len(plugin.left_out))
    print(*plugin.failures, *plugin.left_out, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
