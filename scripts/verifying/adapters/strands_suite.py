"""Strands' own tests of session repositories and of storages, on ours.

    python strands_suite.py FOLDER_OF_THE_SDIST

The classes that the tests make are replaced before the tests are imported: the
repository in memory that their fixtures have, the file manager, and both storages.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import strands.session.file_session_manager as file_managers
import strands.storage as storages
import strands.storage.in_memory_storage as storages_in_memory
import strands.storage.local_file_storage as storages_in_files
from strands.session.repository_session_manager import RepositorySessionManager

from sessiondb.adapters.strands import SessionDBRepository, SessionDBStorage

FILES = (
    "session/test_repository_session_manager.py",
    "session/test_snapshot_session_manager.py",
    "session/test_file_session_manager.py",
    "storage/test_in_memory_storage.py",
    "storage/test_local_file_storage.py",
    "storage/test_storage.py",
    "storage/search/test_keyword.py",
)
_FILE = "session/test_file_session_manager.py::"
_LOCAL = "storage/test_local_file_storage.py::TestLocalFileStorage::"
_MEMORY = "storage/test_in_memory_storage.py::TestInMemoryStorage::"
#: Tests of what is private to a store of Strands, or of it alone, by the reason.
LEFT_OUT = {
    "opens the files of FileSessionManager by its private methods": [
        f"{_FILE}test_create_session",
        f"{_FILE}test_delete_session",
        f"{_FILE}test_create_agent",
        f"{_FILE}test_create_message",
        f"{_FILE}test_message_durable_id_persists",
        f"{_FILE}test_corrupted_json_file",
        f"{_FILE}test_create_multi_agent",
        f"{_FILE}test_create_session_multi_agent_directory_structure",
    ],
    "calls a private method of FileSessionManager; tests/adapters has the same ids": [
        f"{_FILE}test__get_session_path_invalid_session_id[a/../b]",
        f"{_FILE}test__get_session_path_invalid_session_id[a/b]",
        f"{_FILE}test__get_agent_path_invalid_agent_id[a/../b]",
        f"{_FILE}test__get_agent_path_invalid_agent_id[a/b]",
        f"{_FILE}test__get_message_path_invalid_message_id[../../../secret]",
        f"{_FILE}test__get_message_path_invalid_message_id[../../attack]",
        f"{_FILE}test__get_message_path_invalid_message_id[../escape]",
        f"{_FILE}test__get_message_path_invalid_message_id[path/traversal]",
        f"{_FILE}test__get_message_path_invalid_message_id[not_an_int]",
        f"{_FILE}test__get_message_path_invalid_message_id[None]",
        f"{_FILE}test__get_message_path_invalid_message_id[message_id6]",
    ],
    "clear() is a method of InMemoryStorage alone": [
        f"{_MEMORY}test_clear",
        f"{_MEMORY}test_namespace_clear_only_clears_prefix",
    ],
    "sets the private dictionary of InMemoryStorage": [
        "storage/search/test_keyword.py::TestKeywordSearch::"
        "test_skips_keys_where_read_returns_none",
    ],
    "looks into the folder of LocalFileStorage, or makes it unusable": [
        f"{_LOCAL}test_write_creates_directories",
        f"{_LOCAL}test_namespace_returns_local_file_storage",
        f"{_LOCAL}test_normpath_prevents_trailing_slash_in_namespace",
        f"{_LOCAL}test_write_error_raises_storage_error",
        f"{_LOCAL}test_read_error_raises_storage_error",
        f"{_LOCAL}test_write_atomic_cleanup_on_replace_failure",
    ],
    "a LocalFileStorage that writes through a sandbox": [
        f"{_LOCAL}test_for_sandbox_returns_self_if_same",
        f"{_LOCAL}test_for_sandbox_returns_new_if_different",
        f"{_LOCAL}test_sandbox_binary_round_trip",
        f"{_LOCAL}test_sandbox_delete",
        f"{_LOCAL}test_sandbox_delete_missing_is_noop",
        f"{_LOCAL}test_sandbox_list",
        f"{_LOCAL}test_sandbox_list_nested",
        f"{_LOCAL}test_namespace_preserves_for_sandbox",
        f"{_LOCAL}test_delete_error_raises_storage_error",
        f"{_LOCAL}test_list_error_raises_storage_error",
        f"{_LOCAL}test_sandbox_write_skips_indexing",
        f"{_LOCAL}test_for_sandbox_preserves_search_strategy",
        f"{_LOCAL}test_rejects_host_fs_strategy_with_sandbox",
        f"{_LOCAL}test_for_sandbox_drops_host_fs_strategy_with_warning",
    ],
}
#: Tests of a stash that does not outlive its process, as only one in memory does.
EPHEMERAL = "TestSnapshotStashIntegration"

folder = tempfile.mkdtemp(prefix="sessiondb-suite-")
atexit.register(shutil.rmtree, folder)
EphemeralStorage = storages_in_memory.InMemoryStorage


def new_path() -> str:
    """Return the path of a new database."""
    return os.path.join(tempfile.mkdtemp(dir=folder), "strands.db")


class MockedSessionRepository(SessionDBRepository):
    """The repository of the fixtures: made of nothing."""

    def __init__(self) -> None:
        super().__init__(new_path(), durability="normal")


class FileSessionManager(RepositorySessionManager):
    """A manager of the sessions in the database of a folder, and their repository."""

    def __init__(self, session_id: str, storage_dir: str | None = None) -> None:
        path = os.path.join(storage_dir, "strands.db") if storage_dir else new_path()
        repository = SessionDBRepository(path, durability="normal")
        super().__init__(session_id, repository)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.session_repository, name)


class InMemoryStorage(SessionDBStorage):
    """A storage made of nothing, in a database."""

    def __init__(self, **options: Any) -> None:
        super().__init__(new_path(), durability="normal", **options)


class LocalFileStorage(SessionDBStorage):
    """A storage in the database of a folder."""

    def __init__(self, base_dir: str | None = None, **options: Any) -> None:
        path = os.path.join(base_dir, "strands.db") if base_dir else new_path()
        super().__init__(path, durability="normal", parents=True, **options)


class Outcomes:
    """A plugin that leaves out what is named, and gathers the outcomes."""

    def __init__(self, left_out: dict[str, list[str]]) -> None:
        self.passed = 0
        self.failures: list[str] = []
        self.left_out: list[str] = []
        self._reasons = {
            f"tests/strands/{name}": reason
            for reason, names in left_out.items()
            for name in names
        }

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out the tests that are named, each of which has to be there."""
        missing = self._reasons.keys() - {item.nodeid for item in items}
        if missing:
            raise pytest.UsageError(f"no such tests: {', '.join(sorted(missing))}")
        self.left_out = [
            f"left out: {item.nodeid}: {self._reasons[item.nodeid]}"
            for item in items
            if item.nodeid in self._reasons
        ]
        items[:] = [item for item in items if item.nodeid not in self._reasons]

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Any:
        """Let tests of an ephemeral storage have one."""
        module: Any = getattr(item, "module", None)
        if EPHEMERAL in item.nodeid:
            module.InMemoryStorage = EphemeralStorage
        yield
        if EPHEMERAL in item.nodeid:
            module.InMemoryStorage = InMemoryStorage

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a test that passed, and note one that did not."""
        if report.failed:
            error = str(report.longrepr).strip().splitlines()[-1]
            self.failures.append(f"{report.nodeid}: {report.when}: {error}")
        elif report.when == "call" and report.passed:
            self.passed += 1


def main() -> None:
    """Run the tests of the sdist, and print the counts."""
    source = Path(sys.argv[1]).absolute()
    os.chdir(source)
    sys.path.insert(0, str(source))
    # Only the tests of S3 use it.
    sys.modules.setdefault("moto", ModuleType("moto"))
    fixtures = import_module("tests.fixtures.mock_session_repository")
    for module, replacement in (
        (fixtures, MockedSessionRepository),
        (file_managers, FileSessionManager),
        (storages, InMemoryStorage),
        (storages_in_memory, InMemoryStorage),
        (storages, LocalFileStorage),
        (storages_in_files, LocalFileStorage),
    ):
        setattr(module, replacement.__name__, replacement)

    outcomes = Outcomes(LEFT_OUT)
    options = [
        "-q",
        "-p",
        "no:cacheprovider",
        "--override-ini=addopts=",
        "-W",
        "ignore",
    ]
    stdout, sys.stdout = sys.stdout, sys.stderr
    pytest.main([*options, *[f"tests/strands/{file}" for file in FILES]], [outcomes])
    sys.stdout = stdout
    print(outcomes.passed, len(outcomes.failures), len(outcomes.left_out))
    print(*outcomes.failures, *outcomes.left_out, sep="\n")


if __name__ == "__main__":
    main()
