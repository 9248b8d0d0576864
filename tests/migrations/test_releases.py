"""Several releases share one file: which writes continue or are refused, and migration on open."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol

import pytest
from later_releases import LAST, NEXT

from sessiondb import ALL, SchemaVersionError, Store, assistant, tool, user
from sessiondb.engine.sqlite import migrations

pytestmark = pytest.mark.slow

Remember = Callable[[Path], Callable[[Path], list[str]]]
Contents = Callable[[Path], object]


class Release(Protocol):
    def run(self, code: str, *args: object) -> Any: ...


Releases = Callable[[str], Release]

WRITE = """
import sys
from sessiondb import ALL, Store, user
with Store.open(sys.argv[1]) as store:
    session = store.create_session(title=sys.argv[2], directory="/home/ada/parser")
    store.append(session, user("Written by another release"))
    print(len(store.sessions(project=ALL)))
"""
REFUSED = """
import sys
from sessiondb import SchemaVersionError, Store
try:
    Store.open(sys.argv[1])
except SchemaVersionError as error:
    print(error.exit_code, error.hint)
"""


def demand(path: Path, key: str) -> None:
    """Mark a file so that only a release of the far future may use it."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE meta SET value = '2000.0.0' WHERE key = ?", (key,))


@pytest.fixture
def newer(old: Path, later: list[Path]) -> Path:
    """A file that a newer release migrated, additively."""
    migrations.upgrade(old, NEXT, versions=later)
    return old


def test_a_newer_release_migrates_additively_when_it_opens_the_file(
    old: Path, release: Releases, remember: Remember
) -> None:
    lost = remember(old)
    result = release(NEXT).run(
        "import sys, sessiondb; sessiondb.Store.open(sys.argv[1])", old
    )
    assert result.returncode == 0, result.stderr
    assert migrations.current(old) == NEXT
    assert lost(old) == []


def test_two_releases_write_to_one_file_in_turn(old: Path, release: Releases) -> None:
    for number in range(2):
        result = release(NEXT).run(WRITE, old, "theirs")
        assert result.stdout == f"{5 + number}\n", result.stderr
        with Store.open(old) as store:
            session = store.create_session(title="ours", directory="/home/ada/parser")
            call = tool("bash", {"command": "ls"}, output="a.py")
            store.append(session, assistant("Look", call), cost=0.5)
            store.append(store.fork(session), user("Once more"))
            store.delete(store.fork(session))
            assert store.search("written by another release").items
            store.delete(session)
    assert migrations.current(old) == NEXT


def test_an_open_store_keeps_working_after_an_additive_migration(
    old: Path, later: list[Path]
) -> None:
    with Store.open(old) as store:
        session = store.create_session(title="Before", directory="/home/ada/parser")
        store.append(session, user("one"))
        migrations.upgrade(old, NEXT, versions=later)
        store.append(session, user("two"))
        store.set_title(session, "After")
        assert [m.parts[0].text for m in store.messages(session.id)] == ["one", "two"]
        assert len(store.search("two").items) == 1


def test_an_open_store_writes_nothing_once_a_migration_forbids_it(
    old: Path, later: list[Path], contents: Contents
) -> None:
    with Store.open(old) as store:
        session = store.create_session(title="Before", directory="/home/ada/parser")
        store.append(session, user("one"))
        migrations.upgrade(old, LAST, versions=later)
        before = contents(old)
        for _ in range(2):
            with pytest.raises(SchemaVersionError, match=f"schema {int(LAST)}"):
                store.append(session, user("two"))
        assert [m.parts[0].text for m in store.messages(session.id)] == ["one"]
        assert contents(old) == before


def test_a_file_that_only_newer_releases_may_write_can_be_read(
    newer: Path, contents: Contents
) -> None:
    demand(newer, "min_writer")
    before = contents(newer)
    with Store.open(newer) as store:
        (session, *_) = store.sessions(project=ALL)
        assert store.messages(session.id)
        with pytest.raises(SchemaVersionError) as caught:
            store.append(session, user("no"))
    assert caught.value.exit_code == 6
    assert contents(newer) == before


def test_a_file_that_only_newer_releases_may_read_is_refused_and_stays_as_it_is(
    newer: Path,
) -> None:
    demand(newer, "min_reader")
    before = newer.read_bytes()
    for read_only in (False, True):
        with pytest.raises(SchemaVersionError) as caught:
            Store.open(newer, read_only=read_only)
        assert caught.value.exit_code == 6
        assert caught.value.hint == "install a newer sessiondb"
    assert newer.read_bytes() == before


def test_a_migration_that_is_not_additive_waits_for_a_person(
    old: Path, release: Releases, remember: Remember
) -> None:
    Store.open(old).close()
    before, lost = old.read_bytes(), remember(old)
    result = release(LAST).run(REFUSED, old)
    assert result.stdout.startswith(f"6 `sessiondb --db {old} migrate` "), result.stderr
    assert old.read_bytes() == before
    upgrade = (
        "import sys\nfrom pathlib import Path\nfrom sessiondb.engine.sqlite.migrations import upgrade\n"
        "print(upgrade(Path(sys.argv[1])))"
    )
    backup = Path(release(LAST).run(upgrade, old).stdout.strip())
    assert lost(backup) == []
    result = release(LAST).run(WRITE, old, "theirs")
    assert result.stdout == "5\n", result.stderr
    with pytest.raises(SchemaVersionError):
        Store.open(old)


def test_the_backup_is_a_store_that_the_old_release_opens(
    old: Path, later: list[Path], tmp_path: Path
) -> None:
    backup = migrations.upgrade(old, versions=later)
    assert backup is not None
    with Store.open(shutil.copy(backup, tmp_path / "restored.db")) as store:
        session = store.create_session(title="Again", directory="/home/ada/parser")
        store.append(session, user("hello"))
        assert len(store.search("hello").items) == 1
