"""Writes of commands: places that no command ever replaces, and how a file appears."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from command_line import SAMPLE, Run, Story

from sessiondb import Store, user
from sessiondb.cli import TERMINATED
from sessiondb.errors import (
    ConflictError,
    InvalidInputError,
    SessionDBError,
    StorageError,
)
from sessiondb.maintenance import backup
from sessiondb.maintenance.bundle import write_bundle

pytestmark = pytest.mark.slow

Place = Callable[[Path, Path], Path]


def _foreign(folder: Path) -> Path:
    path = folder / "notes"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE kept (x)")
        connection.commit()
    return path


def _made(path: Path, make: Callable[[Path], object]) -> Path:
    make(path)
    return path


#: Contents of places that are never written, by name: functions of a folder and our database.
NEVER: dict[str, Place] = {
    "the open database": lambda folder, db: db,
    "its write-ahead log": lambda folder, db: Path(f"{db}-wal"),
    "its shared memory": lambda folder, db: Path(f"{db}-shm"),
    "its journal, which is not there": lambda folder, db: Path(f"{db}-journal"),
    "its lock": lambda folder, db: Path(f"{db}.lock"),
    "a log in capitals": lambda folder, db: folder / "OTHER.DB-WAL",
    "a hard link to the database": lambda folder, db: _made(
        folder / "x", lambda p: os.link(db, p)
    ),
    "a hard link to its shared memory": lambda folder, db: _made(
        folder / "x", lambda p: os.link(f"{db}-shm", p)
    ),
    "another program's database": lambda folder, db: _foreign(folder),
    "a database that is being made": lambda folder, db: _made(
        folder / "new.db", lambda p: (p.touch(), Path(f"{p}.lock").touch())
    ),
    "the name of a database in use": lambda folder, db: _made(
        folder / "gone.db", lambda p: Path(f"{p}-wal").write_bytes(b"x")
    ),
    "a link to a file": lambda folder, db: _made(
        folder / "link",
        lambda p: (folder.joinpath("t").touch(), p.symlink_to(folder / "t")),
    ),
    "a link to nothing": lambda folder, db: _made(
        folder / "link", lambda p: p.symlink_to(folder / "nothing")
    ),
    "a link to a database": lambda folder, db: _made(
        folder / "link", lambda p: p.symlink_to(db)
    ),
    "a pipe": lambda folder, db: _made(folder / "pipe", os.mkfifo),
    "a device": lambda folder, db: Path("/dev/null"),
    "a place behind a link of a project": lambda folder, db: _made(
        folder / "out" / "x",
        lambda p: (
            folder.joinpath(".git").mkdir(),
            folder.joinpath("real").mkdir(),
            folder.joinpath("out").symlink_to(folder / "real"),
        ),
    ),
}
COMMANDS: dict[str, Callable[[Story, Path], list[str]]] = {
    "export": lambda story, to: ["export", "-a", "--to", "jsonl", "--force", "-o", str(to)],
    "export of one page": lambda story, to: [
        "export", story.other, "--to", "html", "--force", "-o", str(to)
    ],
    "rm": lambda story, to: ["rm", story.other, "--yes", "--bundle", str(to)],
    "rm --json": lambda story, to: ["rm", story.other, "--yes", "--json", "--bundle", str(to)],
    "prune": lambda story, to: ["prune", "-a", "--keep", "1", "--yes", "--bundle", str(to)],
    "backup": lambda story, to: ["backup", str(to)],
}  # fmt: skip


def seen(folder: Path) -> dict[str, object]:
    """Return a folder's contents by name; of a database only its inode, as SQLite writes it."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        facts = path.lstat()
        found[str(path)] = facts.st_ino, facts.st_mode, os.path.realpath(path)
    return found


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_writes_over_a_database_or_through_a_link(
    sessiondb: Run, store: Store, story: Story, tmp_path: Path, command: str
) -> None:
    for number, (place, make) in enumerate(NEVER.items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        target = make(folder, store.path)
        before, sessions = (
            seen(tmp_path),
            store.sessions(project=None, archived=True).items,
        )
        ran = sessiondb(*COMMANDS[command](story, target))
        assert ran.code in (1, 2), (place, ran.err)
        assert len(ran.err.splitlines()) == (1 if "--json" in command else 2), (
            place,
            ran.err,
        )
        assert seen(tmp_path) == before, place
        assert store.sessions(project=None, archived=True).items == sessions, place
    assert sessiondb("check").code == 0


@pytest.mark.parametrize("command", ["rm", "prune", "backup"])
def test_a_file_that_must_be_new_replaces_no_other(
    sessiondb: Run, story: Story, tmp_path: Path, command: str
) -> None:
    notes = tmp_path / "notes.md"
    notes.write_text("mine")
    assert sessiondb(*COMMANDS[command](story, notes)).code == 1
    assert notes.read_text() == "mine"
    assert sessiondb("show", story.other).code == 0


def test_an_export_replaces_a_file_only_with_force_or_a_yes(
    sessiondb: Run, story: Story, tmp_path: Path
) -> None:
    notes = tmp_path / "notes.md"
    notes.write_text("mine")
    notes.chmod(0o640)
    export = ["export", story.other, "--to", "markdown", "-o", str(notes)]
    ran = sessiondb(*export)
    assert (ran.code, notes.read_text()) == (1, "mine")
    assert "--force" in ran.err
    assert sessiondb(*export, "--force").code == 0
    assert "Write the manual" in notes.read_text()
    assert notes.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path).count("notes.md") == 1


def test_a_typed_yes_replaces_a_file_and_anything_else_does_not(
    terminal: Run, story: Story, tmp_path: Path
) -> None:
    notes = tmp_path / "notes.md"
    notes.write_text("mine")
    export = f"export {story.other} --to markdown -o {notes}"
    assert terminal(export, typed="y\n").code == 1
    assert notes.read_text() == "mine"
    assert terminal(export, typed="yes\n").code == 0
    assert "Write the manual" in notes.read_text()


def test_stdout_can_be_named(sessiondb: Run, process: Run, story: Story) -> None:
    export = ["export", story.other, "--to", "jsonl"]
    plain = sessiondb(*export).out
    assert plain
    assert sessiondb(*export, "-o", "-").out == plain
    assert process(*export, "-o", "/dev/stdout").out == plain
    assert not Path("-").exists()


def test_a_folder_of_files_is_replaced_completely_or_not_at_all(
    sessiondb: Run, story: Story, tmp_path: Path
) -> None:
    export = ["export", "-a", "--to", "markdown", "-o"]
    assert sessiondb(*export, str(tmp_path / "names")).code == 0
    names = sorted(os.listdir(tmp_path / "names"))
    assert len(names) == 3

    out = tmp_path / "out"
    out.mkdir()
    (out / names[0]).write_text("mine")
    ran = sessiondb(*export, str(out))
    assert (ran.code, os.listdir(out)) == (1, names[:1])
    assert (out / names[0]).read_text() == "mine"
    assert sessiondb(*export, str(out), "--force").code == 0
    assert sorted(os.listdir(out)) == names
    texts = [(out / name).read_text() for name in names]
    assert sum("Write the manual" in text for text in texts) == 1


def test_a_tree_is_never_written_through_a_link_inside_of_the_folder(
    sessiondb: Run, tmp_path: Path
) -> None:
    sessiondb("import", str(SAMPLE))
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    out.mkdir()
    elsewhere.mkdir()
    (out / "sessions").symlink_to(elsewhere)
    ran = sessiondb("export", "-a", "--to", "codex", "-o", str(out), "--force")
    assert ran.code == 2
    assert (os.listdir(elsewhere), os.listdir(out)) == ([], ["sessions"])


def test_a_file_in_the_way_of_a_folder_of_the_tree_stays(
    sessiondb: Run, tmp_path: Path
) -> None:
    sessiondb("import", str(SAMPLE))
    out = tmp_path / "out"
    out.mkdir()
    (out / "sessions").write_text("mine")
    ran = sessiondb("export", "-a", "--to", "codex", "-o", str(out), "--force")
    assert ran.code == 2
    assert (out / "sessions").read_text() == "mine"


def test_a_new_folder_is_removed_if_the_export_fails(
    sessiondb: Run, store: Store, story: Story, tmp_path: Path
) -> None:
    with closing(sqlite3.connect(store.path)) as connection:
        connection.execute("UPDATE part SET data = x'c1' WHERE rid = 1")
        connection.commit()
    ran = sessiondb(
        "export", story.parser, "--to", "markdown", "-o", f"{tmp_path}/a/b/"
    )
    assert ran.code == 4
    assert not (tmp_path / "a").exists()


def test_an_interrupt_or_a_full_disk_leaves_the_old_file_alone(
    store: Store, story: Story, tmp_path: Path
) -> None:
    from sessiondb.engine import outputs

    old = tmp_path / "old.jsonl"
    old.write_text("mine")
    for error in (KeyboardInterrupt(), OSError(28, "No space left on device")):
        before = os.listdir(tmp_path)
        with (
            pytest.raises((KeyboardInterrupt, StorageError)),
            outputs.writing(old, replace=True) as file,
        ):
            file.write(b"half")
            raise error
        assert (old.read_text(), os.listdir(tmp_path)) == ("mine", before)


def test_an_export_that_is_interrupted_leaves_no_file(
    sessiondb: Run, story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sessiondb.formats.jsonl import writer

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(writer, "record_lines", interrupted)
    out = tmp_path / "out"
    out.mkdir()
    for target in (out / "x.jsonl", f"{out}/new/"):
        assert (
            sessiondb("export", story.other, "--to", "jsonl", "-o", str(target)).code
            == 130
        )
        assert os.listdir(out) == []


def test_a_removal_begins_only_after_its_bundle_was_read_back(
    store: Store,
    story: Story,
    tmp_path: Path,
    sessiondb: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from sessiondb.formats import jsonl

    write = jsonl.write_logs
    bundle = tmp_path / "bundle.jsonl"
    monkeypatch.setattr(
        jsonl, "write_logs", lambda *a, **k: _without(write(*a, **k), "off-by-one")
    )
    ran = sessiondb("rm", story.parser, "--yes", "--bundle", str(bundle))
    assert ran.code == 1
    assert "would not restore the sessions" in ran.err
    assert store.session(story.parser).title == "Fix the parser"


def _without(documents: object, word: str) -> object:
    for item in documents:  # type: ignore[attr-defined]
        yield item.__class__(
            item.name, [line for line in item.chunks if word not in line]
        )


def test_a_session_that_changes_after_its_bundle_stays(
    store: Store, story: Story, tmp_path: Path
) -> None:
    revisions = write_bundle(
        store, [store.session(story.other)], tmp_path / "b.jsonl.gz"
    )
    store.append(story.other, user("One more thing"))
    with pytest.raises(ConflictError, match="changed after"), store.effects() as fx:
        fx.delete(story.other, revisions=revisions)
    assert store.session(story.other).message_count == 2
    with pytest.raises(ConflictError, match="already exists"):
        write_bundle(store, [store.session(story.other)], tmp_path / "b.jsonl.gz")


def test_a_new_child_of_a_bundled_session_keeps_it(
    store: Store, story: Story, tmp_path: Path
) -> None:
    revisions = write_bundle(store, [store.session(story.other)], tmp_path / "b.jsonl")
    fork = store.fork(story.other)
    with pytest.raises(ConflictError), store.effects() as fx:
        fx.delete(story.other, revisions=revisions)
    assert store.session(fork).parent_id == story.other


@pytest.mark.parametrize("ending", ["-wal", "-shm", "-journal", ".lock"])
def test_no_database_is_made_under_a_name_that_belongs_to_another(
    sessiondb: Run, tmp_path: Path, ending: str
) -> None:
    path = tmp_path / f"real.db{ending}"
    assert sessiondb("--db", str(path), "init").code == 1
    assert not path.exists()


def test_the_library_keeps_the_same_rule(
    store: Store, story: Story, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    for place in (store.path, Path(f"{store.path}-wal"), tmp_path / "link", tmp_path):
        with pytest.raises(InvalidInputError):
            backup(store, place)
        with pytest.raises(SessionDBError):
            write_bundle(store, [store.session(story.other)], place)


def test_sigterm_leaves_no_incomplete_file(tmp_path: Path) -> None:
    code = """
import os, signal, sys, time
from pathlib import Path
from sessiondb import cli
from sessiondb.engine import outputs

def work():
    with outputs.writing(Path(sys.argv[1])) as file:
        file.write(b"half")
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(10)

cli.main = work
cli.run()
"""
    target = tmp_path / "saved.jsonl"
    ran = subprocess.run([sys.executable, "-c", code, target], check=False)
    assert ran.returncode == TERMINATED
    assert list(tmp_path.iterdir()) == []
