"""Stores of other programs are found wherever they are, and left as they are."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from opencode_store import (
    assistant,
    old_tree_store,
    session,
    sqlite_store,
    text,
    tree_store,
    user,
)

from sessiondb.errors import InvalidInputError, SourceError
from sessiondb.formats import default_locations, find
from sessiondb.formats.kit.sqlite import ForeignDatabase
from sessiondb.model import Problem, SourceSession

ROOT = Path(__file__).resolve().parents[2]
HOLD = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("UPDATE session SET title = 'live'")
print("ready", flush=True)
sys.stdin.read()
"""


def hello(number: int = 1) -> dict:
    return session(
        number, user(number * 10, "Hi"), assistant(number * 10 + 1, text("Hello"))
    )


def titles(path: Path) -> dict[str, str]:
    found = [item for store in find(path) for item in store.read()]
    assert all(isinstance(item, SourceSession) for item in found), found
    return {
        item.source_id: item.title for item in found if isinstance(item, SourceSession)
    }


def wal_store(path: Path) -> Path:
    sqlite_store(path, hello())
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("PRAGMA journal_mode = WAL")
    return path


def contents(folder: Path) -> dict[str, bytes]:
    return {
        p.name: p.read_bytes() for p in folder.iterdir() if not p.name.endswith("-shm")
    }


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Path]:
    """A database in WAL mode whose newest title is still in the ``-wal`` of a living process."""
    path = wal_store(tmp_path / "opencode.db")
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield path
        process.communicate("")


def test_a_store_is_read_while_another_process_writes_to_it(held: Path) -> None:
    before = contents(held.parent)
    assert before["opencode.db-wal"]
    assert titles(held) == {"ses_0001": "live"}
    assert contents(held.parent) == before


def test_a_database_that_no_process_has_open_is_left_without_side_files(
    tmp_path: Path,
) -> None:
    path = wal_store(tmp_path / "opencode.db")
    before = contents(tmp_path)
    assert titles(tmp_path) == {"ses_0001": "Session 1"}
    assert contents(tmp_path) == before == {"opencode.db": path.read_bytes()}
    assert not path.with_name("opencode.db-shm").exists()


def test_a_link_leads_to_what_is_beside_the_file_itself(
    held: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    link = tmp_path_factory.mktemp("links") / "linked.db"
    link.symlink_to(held)
    with ForeignDatabase(link, glance=True).reading() as db:
        assert db.execute("SELECT title FROM session").fetchall() == [("live",)]


def test_a_database_that_is_read_by_a_link_is_left_without_side_files(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = wal_store(tmp_path / "opencode.db")
    link = tmp_path_factory.mktemp("links") / "linked.db"
    link.symlink_to(path)
    assert titles(link) == {"ses_0001": "Session 1"}
    assert [found.name for found in tmp_path.iterdir()] == ["opencode.db"]


@pytest.mark.parametrize(("with_wal", "title"), [(True, "live"), (False, "Session 1")])
def test_a_store_whose_shared_memory_cannot_be_made_is_read_all_the_same(
    with_wal: bool, title: str, held: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("copy")
    names = ["opencode.db", "opencode.db-wal"][: 1 + with_wal]
    for name in names:
        shutil.copy(held.with_name(name), folder)
    (
        folder / "opencode.db-shm"
    ).mkdir()  # as good as a directory that cannot be written
    before = {name: (folder / name).read_bytes() for name in names}
    assert titles(folder) == {"ses_0001": title}
    assert {name: (folder / name).read_bytes() for name in names} == before


@pytest.mark.slow
def test_no_database_is_opened_by_anything_but_sqlite(held: Path) -> None:
    program = (
        "import sys\nopened = []\n"
        "sys.addaudithook(lambda event, args: event == 'open' and opened.append(str(args[0])))\n"
        "from sessiondb.formats import find\n"
        "n = [len(list(i.messages)) for s in find(sys.argv[1]) for i in s.read()]\n"
        "print(n, [name for name in opened if '.db' in name])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(held.parent)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[2] []\n"


def test_formats_are_imported_without_what_only_some_of_them_need() -> None:
    program = "import sys, sessiondb.formats; print({'sqlite3', 'sqlalchemy'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "set()\n"


def test_a_damaged_store_says_so_when_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    path.write_bytes(b"this is no database, " * 100)
    (store,) = find(tmp_path)
    with pytest.raises(SourceError, match=r"opencode\.db"):
        list(store.read())
    path.unlink()
    with pytest.raises(SourceError, match="no such file"):
        list(store.read())


def test_a_database_whose_pages_are_damaged_gives_what_is_left_and_a_problem(
    tmp_path: Path,
) -> None:
    many = [session(n, user(n, "x" * 3000)) for n in range(1, 40)]
    path = sqlite_store(tmp_path / "opencode.db", *many)
    with closing(sqlite3.connect(path)) as db, db:
        (page,) = db.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'message'"
        ).fetchone()
    raw = bytearray(path.read_bytes())
    raw[(page - 1) * 4096 : page * 4096] = b"\xff" * 4096
    path.write_bytes(raw)
    (store,) = find(path)
    sessions = [item for item in store.read() if isinstance(item, SourceSession)]
    assert len(sessions) == len(many)
    for item in sessions:
        (problem,) = item.messages
        assert isinstance(problem, Problem)
        assert "cannot be read" in problem.why


def test_a_database_with_a_part_of_its_last_page_is_found_and_not_half_read(
    tmp_path: Path,
) -> None:
    """SQLite would read zeros: rows would be missing, and no stamp would say so."""
    path = sqlite_store(tmp_path / "opencode.db", hello(1))
    raw = path.read_bytes()
    path.write_bytes(raw[:-1])

    (found,) = find(tmp_path)
    with pytest.raises(SourceError, match="its end is missing"):
        list(found.read())
    with ForeignDatabase(path, glance=True).reading() as db:
        assert db.execute("SELECT count(*) FROM session").fetchone() == (1,)

    path.write_bytes(raw)
    assert set(titles(tmp_path)) == {"ses_0001"}


def test_stores_are_found_by_what_they_are(tmp_path: Path) -> None:
    sqlite_store(tmp_path / "a" / "backup.db", hello(1))
    sqlite_store(
        tmp_path / ".local" / "share" / "opencode" / "opencode-dev.db", hello(2)
    )
    tree_store(tmp_path / "b" / "opencode", hello(3))
    old_tree_store(tmp_path / "c" / "opencode", hello(4))
    with closing(sqlite3.connect(tmp_path / "other.db")) as db, db:
        db.execute("CREATE TABLE session (id)")
    (tmp_path / "notes.db").write_text("not a database")
    for hidden in (".git", "node_modules", "snapshot"):
        sqlite_store(tmp_path / hidden / "opencode.db", hello(5))
    for name in ("HEAD", "objects", "refs"):
        (tmp_path / "snapshot" / name).mkdir()
    (tmp_path / "linked").symlink_to(tmp_path / "a")
    found = {store.path.relative_to(tmp_path).as_posix() for store in find(tmp_path)}
    assert found == {
        "a/backup.db",
        ".local/share/opencode/opencode-dev.db",
        "b/opencode/storage",
        "c/opencode/project/home-ann-shop/storage/session",
    }
    assert {store.source for store in find(tmp_path)} == {"opencode"}
    assert [store.path for store in find(tmp_path / "b" / "opencode" / "storage")]
    assert [store.path for store in find(tmp_path / "linked" / "backup.db")]


def test_older_stores_of_a_data_directory_add_sessions_missing_from_newer_ones(
    tmp_path: Path,
) -> None:
    newest = hello(1)
    newest["info"]["title"] = "newest"
    sqlite_store(tmp_path / "opencode.db", newest)
    tree_store(tmp_path, hello(1), hello(2))
    old_tree_store(tmp_path, hello(1), hello(2), hello(3))
    assert titles(tmp_path) == {
        "ses_0001": "newest",
        "ses_0002": "Session 2",
        "ses_0003": "Session 3",
    }
    assert set(titles(tmp_path / "storage")) == {"ses_0002"}


def test_a_database_copied_for_another_channel_adds_what_is_newer_there(
    tmp_path: Path,
) -> None:
    def used(number: int, time: int, title: str) -> dict:
        item = hello(number)
        item["info"] |= {"title": title, "time": {"created": 1, "updated": time}}
        return item

    sqlite_store(
        tmp_path / "opencode-dev.db", used(1, 5, "stale"), used(2, 9, "went on in dev")
    )
    sqlite_store(
        tmp_path / "opencode.db", used(1, 5, "here"), used(2, 7, "stale"), hello(3)
    )
    sqlite_store(tmp_path / "opencode-next.db", hello(4))
    (tmp_path / "opencode-local.db").write_text(
        "damaged, and no reason to lose anything else"
    )
    tree_store(tmp_path, hello(1), hello(5))
    stores = [
        store for store in find(tmp_path) if store.path.name != "opencode-local.db"
    ]
    found = [item for store in stores for item in store.read()]
    assert sorted(getattr(item, "title", repr(item)) for item in found) == [
        "Session 3", "Session 4", "Session 5", "here", "went on in dev",
    ]  # fmt: skip


def test_a_missing_file_or_an_unknown_format_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no such file"):
        list(find(tmp_path / "gone"))
    with pytest.raises(InvalidInputError, match="opencode"):
        list(find(tmp_path, formats=["telepathy"]))


@pytest.mark.parametrize(
    ("env", "places"),
    [
        ({"HOME": "/h"}, ["/h/.local/share/opencode"]),
        ({"USERPROFILE": "/u"}, ["/u/.local/share/opencode"]),
        ({"HOME": "/h", "XDG_DATA_HOME": "/x"}, ["/x/opencode"]),
        (
            {"HOME": "/h", "OPENCODE_DB": "/d/my.db"},
            ["/h/.local/share/opencode", "/d/my.db"],
        ),
        ({"XDG_DATA_HOME": "/x", "OPENCODE_DB": "my.db"}, ["/x/opencode"]),
        (
            {"XDG_DATA_HOME": "/x", "OPENCODE_DB": "mine"},
            ["/x/opencode", "/x/opencode/mine"],
        ),
        ({"XDG_DATA_HOME": "/x", "OPENCODE_DB": ":memory:"}, ["/x/opencode"]),
        (
            {"HOME": "/h", "OPENCODE_DB": "/h/.local/share/opencode/a.db"},
            ["/h/.local/share/opencode"],
        ),
        (
            {"HOME": "/h", "USERPROFILE": "/u"},
            ["/h/.local/share/opencode", "/u/.local/share/opencode"],
        ),
        ({"OPENCODE_DB": "/d/my.db"}, ["/d/my.db"]),
        ({"OPENCODE_DB": "my.db"}, []),
        ({}, []),
    ],
)
def test_opencode_keeps_its_stores_where_its_environment_says(
    env: dict[str, str], places: list[str]
) -> None:
    found = default_locations(env, formats=["opencode"])
    assert [path.as_posix() for path in found] == places


def test_readers_of_one_database_share_a_snapshot(tmp_path: Path) -> None:
    path = sqlite_store(tmp_path / "opencode.db", hello())
    database = ForeignDatabase(path)
    title = "SELECT title FROM session"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        with database.reading() as first:
            db.execute("UPDATE session SET title = 'new'")
            with database.reading() as second:
                assert second is first
            assert first.execute(title).fetchone() == ("Session 1",)
            with pytest.raises(sqlite3.OperationalError, match="readonly"):
                first.execute("DELETE FROM session")
        with database.reading() as later:
            assert later.execute(title).fetchone() == ("new",)
