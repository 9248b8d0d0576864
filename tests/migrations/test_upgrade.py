"""Up, down, and nothing lost on the way; any failure leaves the file unchanged."""

from __future__ import annotations

import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from later_releases import LAST, NEXT

from sessiondb import ALL, Store
from sessiondb.engine.sqlite import migrations
from sessiondb.errors import (
    BusyError,
    ConflictError,
    InvalidInputError,
    NotADatabaseError,
    NotFoundError,
    SchemaVersionError,
    UntrustedDatabaseError,
)
from sessiondb.schema.version import HEAD, MIN_WRITER, VERSION

pytestmark = pytest.mark.slow

Remember = Callable[[Path], Callable[[Path], list[str]]]
Schema = Callable[[Path], list[str]]
Contents = Callable[[Path], object]

SCRIPT = f"{NEXT}_one_more.py"
MIGRATION = '''"""one more migration."""
import os, signal
from alembic import op
revision, down_revision, branch_labels, depends_on = "{next}", "{head}", None, None
VERSION, ADDITIVE = {version}, {additive}
def upgrade():
{body}
def downgrade():
    pass
'''


def migration(folder: Path, *statements: str, additive: bool = False) -> list[Path]:
    """Write a migration that runs *statements* of Python and return its folder as *versions*."""
    folder.mkdir()
    body = "\n".join(f"    {statement}" for statement in statements)
    text = MIGRATION.format(
        head=HEAD, next=NEXT, version=VERSION + 1, additive=additive, body=body
    )
    (folder / SCRIPT).write_text(text)
    return [folder]


def ask(path: Path, sql: str) -> list[Any]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        return connection.execute(sql).fetchall()


def found(path: Path, word: str) -> int:
    search = "SELECT count(*) FROM part_search WHERE part_search MATCH ?"
    with closing(sqlite3.connect(path)) as connection:
        for table in ("part_search", "session_search", "prompt_search"):
            connection.execute(
                f"INSERT INTO {table} ({table}, rank) VALUES ('integrity-check', 1)"
            )
        return int(connection.execute(search, (word,)).fetchone()[0])


# -- up -----------------------------------------------------------------------


def test_an_upgrade_keeps_every_value_of_every_row_and_the_search(
    old: Path, later: list[Path], remember: Remember
) -> None:
    ask(old, "UPDATE project SET name = worktree")
    lost, hits = remember(old), found(old, "loop")
    assert hits > 0
    assert [step[0] for step in migrations.pending(old, versions=later)] == [NEXT, LAST]
    migrations.upgrade(old, versions=later)
    assert migrations.current(old) == LAST
    assert migrations.pending(old, versions=later) == []
    assert lost(old) == []
    assert found(old, "loop") == hits
    assert ask(old, "SELECT pinned FROM session_list") == [(None,)] * 6
    assert ask(old, "PRAGMA foreign_key_check") == []


def test_a_pending_migration_reports_whether_it_needs_confirmation(
    old: Path, later: list[Path]
) -> None:
    assert migrations.pending(old, versions=later) == [
        (NEXT, "sessions can be pinned", True),
        (LAST, "every project has a name", False),
    ]


def test_only_a_migration_that_is_not_additive_makes_a_backup(
    old: Path, later: list[Path], tmp_path: Path, contents: Contents
) -> None:
    backups = tmp_path / "state" / "backups"
    assert migrations.upgrade(old, NEXT, versions=later, backups=backups) is None
    before = contents(old)
    backup = migrations.upgrade(old, versions=later, backups=backups)
    assert backup is not None
    assert list(backups.iterdir()) == [backup]
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    assert stat.S_IMODE(backups.stat().st_mode) == 0o700
    assert contents(backup) == before
    assert migrations.current(backup) == NEXT


def test_a_persons_own_index_view_and_table_survive_a_table_that_is_built_again(
    old: Path, later: list[Path]
) -> None:
    ask(old, "CREATE INDEX mine ON project (vcs)")
    ask(old, "CREATE VIEW roots AS SELECT worktree FROM project")
    ask(
        old,
        "CREATE TABLE notes (project TEXT REFERENCES project (id) ON DELETE CASCADE)",
    )
    ask(old, "INSERT INTO notes SELECT id FROM project")
    migrations.upgrade(old, versions=later)
    assert ask(old, "SELECT tbl_name FROM sqlite_schema WHERE name = 'mine'") == [
        ("project",)
    ]
    assert len(ask(old, "SELECT * FROM roots")) == 2
    assert len(ask(old, "SELECT * FROM notes JOIN project ON id = project")) == 2


def test_an_upgrade_takes_up_what_is_still_in_the_wal(
    old: Path, later: list[Path]
) -> None:
    with Store.open(old) as store:
        session = store.create_session(title="Just now", directory="/home/ada/parser")
        migrations.upgrade(old, versions=later)
        assert store.session(session.id).title == "Just now"
    assert ask(old, "SELECT title FROM session ORDER BY id LIMIT 1") == [("Just now",)]


# -- down ---------------------------------------------------------------------


def test_each_step_down_on_a_copy_gives_the_rows_and_the_schema_of_before(
    old: Path, later: list[Path], tmp_path: Path, remember: Remember, schema: Schema
) -> None:
    lost = remember(old)
    stages = {HEAD: schema(old)}
    for revision in (NEXT, LAST):
        migrations.upgrade(old, revision, versions=later)
        stages[revision] = schema(old)
    copy = Path(shutil.copy(old, tmp_path / "copy.db"))
    for revision in (NEXT, HEAD):
        migrations.downgrade(copy, "-1", versions=later)
        assert migrations.current(copy) == revision
        assert schema(copy) == stages[revision]
    assert lost(copy) == []
    assert dict(ask(copy, "SELECT key, value FROM meta"))["min_writer"] == MIN_WRITER
    with Store.open(copy) as store:
        assert len(store.sessions(project=ALL)) == 4
    assert schema(old) == stages[LAST]


def test_the_last_step_down_refuses_while_there_are_sessions(
    old: Path, contents: Contents
) -> None:
    before = contents(old)
    with pytest.raises(ConflictError, match="6 sessions would be lost"):
        migrations.downgrade(old, "base")
    assert contents(old) == before
    assert list(old.parent.glob("*schema*")) == []


def test_without_sessions_the_last_step_down_is_a_file_to_begin_with(
    tmp_path: Path,
) -> None:
    path = tmp_path / "sessions.db"
    Store.open(path).close()
    migrations.downgrade(path, "base")
    assert migrations.current(path) is None
    with Store.open(path) as store:
        store.create_session(title="Again")
    assert migrations.current(path) == HEAD


# -- nothing lost -------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("DELETE FROM todo WHERE position = 0", "todo had 4 rows, then 2"),
        ("DROP TABLE label", "label had 2 rows, then no table"),
        (
            "UPDATE part SET session_id = 'nobody' WHERE rid = 1",
            "1 rows of part lost their message",
        ),
        (
            "CREATE TRIGGER t AFTER INSERT ON part BEGIN DELETE FROM part; END",
            "a trigger that is not ours: t",
        ),
    ],
)
def test_a_migration_that_loses_something_is_undone(
    statement: str, why: str, old: Path, tmp_path: Path, contents: Contents
) -> None:
    before = contents(old)
    versions = migration(tmp_path / "versions", f"op.execute({statement!r})")
    with pytest.raises((ConflictError, UntrustedDatabaseError), match=why):
        migrations.upgrade(old, versions=versions)
    assert contents(old) == before
    assert list(tmp_path.glob("*schema*")) == []


def test_a_migration_may_change_the_rows_it_declares(old: Path, tmp_path: Path) -> None:
    statements = ["op.execute('DELETE FROM todo')"]
    versions = migration(tmp_path / "versions", *statements)
    script = tmp_path / "versions" / SCRIPT
    script.write_text(f"{script.read_text()}CHANGED = ('todo',)\n")
    migrations.upgrade(old, versions=versions)
    assert ask(old, "SELECT * FROM todo") == []


def test_orphaned_rows_do_not_block_a_migration(old: Path, later: list[Path]) -> None:
    ask(old, "DELETE FROM message WHERE rid = 1")
    migrations.upgrade(old, versions=later)
    assert migrations.current(old) == LAST


def test_an_additive_migration_that_touches_search_is_refused(
    old: Path, tmp_path: Path
) -> None:
    versions = migration(tmp_path / "versions", "pass", additive=True)
    script = tmp_path / "versions" / SCRIPT
    script.write_text(f"{script.read_text()}DERIVED = ()\n")
    with pytest.raises(InvalidInputError, match="search is not additive"):
        migrations.upgrade(old, versions=versions)
    assert migrations.current(old) == HEAD


# -- interrupted, at once, in the way -------------------------------------------

UPGRADE = (
    "import sys\nfrom pathlib import Path\nfrom sessiondb.engine.sqlite.migrations import upgrade\n"
    "upgrade(Path(sys.argv[1]), versions=[Path(sys.argv[2])])"
)


def test_a_migration_killed_halfway_leaves_the_old_version_intact(
    old: Path, tmp_path: Path, contents: Contents, later: list[Path]
) -> None:
    before = contents(old)
    (folder,) = migration(
        tmp_path / "versions",
        "op.execute('PRAGMA cache_size=5')",
        "op.execute('DELETE FROM part')",
        "op.execute('DROP TABLE message')",
        "os.kill(os.getpid(), signal.SIGKILL)",
    )
    killed = subprocess.run([sys.executable, "-c", UPGRADE, old, folder], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert old.with_name("sessions.db-wal").stat().st_size > 0
    assert contents(old) == before
    with Store.open(old) as store:
        assert len(store.sessions(project=ALL)) == 4
    migrations.upgrade(old, versions=later)
    assert migrations.current(old) == LAST


def test_two_processes_that_migrate_at_once_migrate_once(
    old: Path, later: list[Path]
) -> None:
    command = [sys.executable, "-W", "error", "-c", UPGRADE, str(old), str(later[0])]
    running = [subprocess.Popen(command) for _ in range(2)]
    assert [process.wait(60) for process in running] == [0, 0]
    assert migrations.current(old) == LAST
    assert len(list(old.parent.glob(f"*schema{VERSION}-*"))) == 1


def test_threads_migrate_their_files_at_once(tmp_path: Path, later: list[Path]) -> None:
    paths = [tmp_path / f"{number}.db" for number in range(4)]
    threads = [
        threading.Thread(
            target=migrations.upgrade, args=(path,), kwargs={"versions": later}
        )
        for path in paths
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [migrations.current(path) for path in paths] == [LAST] * 4


def test_a_writer_in_the_way_is_busy_after_the_timeout(
    old: Path, later: list[Path]
) -> None:
    with closing(sqlite3.connect(old, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("BEGIN IMMEDIATE")
        with pytest.raises(BusyError):
            migrations.upgrade(old, versions=later, busy_timeout=0.05)
    migrations.upgrade(old, versions=later, busy_timeout=0.05)


# -- not ours -------------------------------------------------------------------


def test_a_file_of_another_program_is_refused_and_stays_as_it_is(
    tmp_path: Path,
) -> None:
    path = tmp_path / "other.db"
    ask(path, "PRAGMA application_id=42")
    before = path.read_bytes()
    for call in (migrations.current, migrations.pending, migrations.upgrade):
        with pytest.raises(NotADatabaseError):
            call(path)
    with pytest.raises(NotADatabaseError):
        migrations.downgrade(path, "base")
    assert path.read_bytes() == before
    assert not list(tmp_path.glob("other.db-*"))


def test_a_missing_file_is_not_found_and_not_made(tmp_path: Path) -> None:
    path = tmp_path / "missing.db"
    for call in (
        migrations.current,
        migrations.pending,
        lambda path: migrations.downgrade(path, "base"),
    ):
        with pytest.raises(NotFoundError):
            call(path)
    assert list(tmp_path.iterdir()) == []


def test_a_file_with_a_planted_trigger_or_a_changed_view_is_not_migrated(
    old: Path, later: list[Path], tmp_path: Path
) -> None:
    for number, planted in enumerate(
        (
            "CREATE TRIGGER evil AFTER UPDATE ON session BEGIN DELETE FROM session; END",
            "DROP VIEW session_list",
        )
    ):
        path = Path(shutil.copy(old, tmp_path / f"{number}.db"))
        ask(path, planted)
        with pytest.raises((UntrustedDatabaseError, SchemaVersionError)):
            migrations.upgrade(path, versions=later)
        assert migrations.current(path) == HEAD


def test_a_file_that_contradicts_itself_is_refused(
    old: Path, later: list[Path]
) -> None:
    ask(old, f"PRAGMA user_version={VERSION + 1}")
    with pytest.raises(
        SchemaVersionError, match=f"revision {HEAD} but schema {VERSION + 1}"
    ):
        migrations.upgrade(old, versions=later)


def test_a_target_that_does_not_exist_is_bad_input(
    old: Path, later: list[Path]
) -> None:
    with pytest.raises(InvalidInputError, match="9999"):
        migrations.upgrade(old, "9999", versions=later)


def test_a_newer_file_is_left_alone_if_this_release_may_write_it_and_refused_if_not(
    old: Path, later: list[Path]
) -> None:
    migrations.upgrade(old, NEXT, versions=later)
    assert migrations.pending(old) == []
    assert migrations.upgrade(old) is None
    assert migrations.current(old) == NEXT
    migrations.upgrade(old, versions=later)
    before = old.read_bytes()
    for call in (
        migrations.pending,
        migrations.upgrade,
        lambda path: migrations.downgrade(path, "-1"),
    ):
        with pytest.raises(SchemaVersionError):
            call(old)
    assert old.read_bytes() == before
