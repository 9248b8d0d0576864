"""Our own databases as a source: complete, never changed, and refused with a next step."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from jsonl_tables import bundle, differences, outcomes, read_into

from sessiondb import ALL, Store, assistant, tool, user
from sessiondb.errors import SourceError
from sessiondb.formats import find
from sessiondb.maintenance import check
from sessiondb.model import FileDiff, Imported, Problem

Opened = Callable[[str], Store]
GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "schema-1.db"


def family(store: Store) -> list[str]:
    """A session with a label and a prompt, its subagent and its fork."""
    top = store.create_session(title="Fix the parser").id
    store.append(top, user("Fix the off-by-one"))
    call = tool("bash", {"command": "ls"}, call_id="c1", output="x" * 9000)
    done = store.append(top, assistant("Done.", call), cost=0.5, model="m")
    store.label(top, done, "good")
    store.add_prompt("Fix the off-by-one", session=top)
    helper = store.create_session(parent=top, call_id="c1").id
    store.append(helper, user("Where is the lexer?"))
    fork = store.fork(top).id
    store.append(fork, user("Another idea"))
    return [top, helper, fork]


def old_file(opened: Opened, tmp_path: Path) -> tuple[Path, list[str]]:
    """Return a database that no process has open, and the ids of its sessions."""
    store = opened("old")
    ids = family(store)
    store.close()
    return tmp_path / "old.db", ids


def files_in(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_database_of_a_release_comes_in_with_every_row(
    opened: Opened, tmp_path: Path
) -> None:
    folder = tmp_path / "golden"
    folder.mkdir()
    path = shutil.copy(GOLDEN, folder / "old.db")
    before = files_in(folder)
    there = opened("there")
    assert set(outcomes(read_into(there, path))) == {"imported"}
    assert set(outcomes(read_into(there, path))) == {"unchanged"}
    assert files_in(folder) == before
    assert check(there) == []
    with Store.open(path, read_only=True) as old:
        everything = {
            "project": ALL,
            "archived": True,
            "subagents": True,
            "empty": True,
        }
        names = sorted(session.id for session in old.sessions(**everything))  # type: ignore[arg-type]
        assert names == sorted(session.id for session in there.sessions(**everything))  # type: ignore[arg-type]
        assert bundle(there, names) == bundle(old, names)


def test_an_import_updates_only_sessions_that_changed_in_the_source(
    opened: Opened, tmp_path: Path
) -> None:
    here, there = opened("here"), opened("there")
    ids = family(here)
    assert outcomes(read_into(there, tmp_path / "here.db")) == ["imported"] * 3
    here.append(ids[2], user("One more"))
    here.set_title(ids[0], "Renamed")
    results = read_into(there, tmp_path / "here.db")
    assert sorted(outcomes(results)) == ["unchanged", "updated", "updated"]
    assert differences(tmp_path / "here.db", tmp_path / "there.db") == []


def test_a_session_that_both_continued_keeps_both_branches(
    opened: Opened, tmp_path: Path
) -> None:
    here, there = opened("here"), opened("there")
    top = family(here)[0]
    read_into(there, tmp_path / "here.db")
    here.append(top, user("Here"))
    there.append(top, user("There"))
    read_into(there, tmp_path / "here.db")
    said = [m.parts[0].text for m in there.messages(top, branches=True)]
    assert {"Here", "There"} <= set(said)
    assert there.messages(top)[-1].parts[0].text == "There"


def test_a_session_whose_own_import_did_not_end_is_reported_and_left_out(
    opened: Opened, tmp_path: Path
) -> None:
    path, (top, helper, fork) = old_file(opened, tmp_path)
    altered(path, f"UPDATE session SET time_importing = 1 WHERE id = '{fork}'")
    there = opened("there")
    done = read_into(there, path)
    (problem,) = [one for one in done if isinstance(one, Problem)]
    assert fork in problem.why
    assert "did not end" in problem.why
    assert {one.id for one in there.sessions(project=ALL, subagents=True)} == {
        top,
        helper,
    }


def test_a_session_removed_here_returns_only_on_request(
    opened: Opened, tmp_path: Path
) -> None:
    path, (top, *_) = old_file(opened, tmp_path)
    there = opened("there")
    read_into(there, path)
    there.delete(top)
    assert set(outcomes(read_into(there, path))) == {"deleted"}
    assert set(outcomes(read_into(there, path, undelete=True))) == {"imported"}
    assert bundle(there, [top]).count("\n") > 3


def test_a_file_is_read_while_another_process_writes_to_it(
    opened: Opened, tmp_path: Path
) -> None:
    here, there = opened("here"), opened("there")
    family(here)
    with closing(sqlite3.connect(tmp_path / "here.db")) as writing:
        writing.execute("BEGIN IMMEDIATE")
        writing.execute("UPDATE session SET title = 'never committed'")
        assert outcomes(read_into(there, tmp_path / "here.db")) == ["imported"] * 3
    assert "never committed" not in bundle(there, [s.id for s in there.sessions()])


def test_it_is_imported_only_if_it_is_named(opened: Opened, tmp_path: Path) -> None:
    path, _ = old_file(opened, tmp_path)
    assert list(find(tmp_path)) == []
    assert [store.source for store in find(path)] == ["sessiondb"]


def test_directories_of_a_projects_database_are_those_of_the_project(
    opened: Opened, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    local = project / ".sessiondb" / "sessions.db"
    (project / "src").mkdir(parents=True)
    local.parent.mkdir()
    with Store.open(local, durability="normal") as store:
        store.append(
            store.create_session(directory=str(project / "src")), user("Hello")
        )
    there = opened("there")
    assert outcomes(read_into(there, local)) == ["imported"]
    (session,) = there.sessions(project=ALL)
    assert session.directory == str(project / "src")


def refusal(path: Path) -> str:
    (store,) = find(path)
    with pytest.raises(SourceError) as raised:
        list(store.read())
    return str(raised.value)


def altered(path: Path, statement: str) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
        connection.commit()
    return path


def test_a_file_of_an_older_schema_says_how_to_update_it(
    opened: Opened, tmp_path: Path
) -> None:
    path, _ = old_file(opened, tmp_path)
    said = refusal(altered(path, "PRAGMA user_version = 0"))
    assert f"{path} has schema 0, which is older" in said
    assert f"`sessiondb --db {path} migrate`" in said


def test_a_file_of_a_newer_schema_is_refused_if_it_excludes_older_readers(
    opened: Opened, tmp_path: Path
) -> None:
    path, _ = old_file(opened, tmp_path)
    altered(path, "PRAGMA user_version = 9")
    assert [type(x).__name__ for s in find(path) for x in s.read()] == [
        "SourceSession"
    ] * 3
    altered(path, "UPDATE meta SET value = '99.0' WHERE key = 'min_reader'")
    said = refusal(path)
    assert f"{path} has schema 9, which is newer" in said
    assert "install a newer sessiondb" in said


def test_a_file_with_a_trigger_of_another_person_is_refused(
    opened: Opened, tmp_path: Path
) -> None:
    path, _ = old_file(opened, tmp_path)
    trigger = "CREATE TRIGGER x AFTER UPDATE ON session BEGIN SELECT 1; END"
    assert "trigger that is not ours" in refusal(altered(path, trigger))


@pytest.mark.slow
def test_a_damaged_page_costs_the_sessions_that_it_holds(
    opened: Opened, tmp_path: Path
) -> None:
    store = opened("old")
    for number in range(40):
        session = store.create_session(title=f"session {number}")
        store.append(session, user(f"question {number} " * 60))
    store.close()
    path = tmp_path / "old.db"
    raw = bytearray(path.read_bytes())
    at = raw.index(b"question 7 question 7")
    raw[at - at % 4096 : at - at % 4096 + 4096] = b"\xff" * 4096
    path.write_bytes(raw)
    there = opened("there")
    said = outcomes(read_into(there, path))
    assert said.count("imported") > 20
    assert any("malformed" in why or "damaged" in why for why in said)
    assert check(there) == []


def without_blob(path: Path, held_by: str) -> tuple[object, ...]:
    """Remove the blob that a query finds; return its row."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        (row,) = connection.execute(
            f"SELECT * FROM blob WHERE hash IN ({held_by})"
        ).fetchall()
        connection.execute(f"DELETE FROM blob WHERE hash IN ({held_by})")
        connection.commit()
    return tuple(row)


def with_blob(path: Path, row: tuple[object, ...]) -> None:
    with closing(sqlite3.connect(path)) as connection:
        marks = ", ".join("?" * len(row))
        connection.execute(f"INSERT INTO blob VALUES ({marks})", row)
        connection.commit()


def test_a_missing_blob_costs_its_message_alone_and_it_is_read_again(
    opened: Opened, tmp_path: Path
) -> None:
    store = opened("old")
    session = store.create_session().id
    for said in ("one", "two " * 999, "three", "four"):
        store.append(session, user(said))
    store.close()
    path, there = tmp_path / "old.db", opened("there")
    row = without_blob(path, "SELECT text_blob FROM part")

    for outcome in ("imported", "unchanged"):
        problem, done = read_into(there, path)
        assert isinstance(problem, Problem)
        assert f"message 2 of session {session} is damaged" in problem.why
        assert isinstance(done, Imported)
        assert (done.outcome, done.messages, done.problems) == (outcome, 3, (problem,))
        assert [m.text for m in there.messages(session)] == ["one", "three", "four"]
    assert check(there) == []

    with_blob(path, row)
    assert outcomes(read_into(there, path)) == ["updated"]
    assert len(there.messages(session, branches=True)) == 4
    assert outcomes(read_into(there, path)) == ["unchanged"]


def test_a_missing_blob_of_a_diff_costs_the_diffs_and_removes_none_here(
    opened: Opened, tmp_path: Path
) -> None:
    store = opened("old")
    session = store.create_session().id
    asked = store.append(session, user("one"))
    diffs = [FileDiff("a", before=b"x" * 5000, seq=asked.seq)]
    store.set_diffs(session, diffs)
    store.close()
    path, there, late = tmp_path / "old.db", opened("there"), opened("late")
    read_into(there, path)
    row = without_blob(path, "SELECT before_blob FROM file_diff")
    altered(path, "UPDATE session SET revision = revision + 1")

    for store in (there, late):
        problem, done = read_into(store, path)
        assert isinstance(problem, Problem)
        assert f"the diff of 'a' of session {session} is damaged" in problem.why
        assert isinstance(done, Imported)
        assert (done.messages, done.problems) == (1, (problem,))
    assert there.diffs(session) == diffs
    assert late.diffs(session) == []

    with_blob(path, row)
    assert outcomes(read_into(late, path)) == ["updated"]
    assert late.diffs(session) == diffs


def test_a_file_that_breaks_off_says_so(opened: Opened, tmp_path: Path) -> None:
    path, _ = old_file(opened, tmp_path)
    path.write_bytes(path.read_bytes()[: 8 * 4096])
    said = refusal(path)
    assert str(path) in said
    assert f"`sessiondb --db {path} check`" in said


def damage(path: Path, change: str, *values: object) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = 1")
        connection.execute(change, values)
        connection.commit()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("UPDATE prompt SET text = ''", "session {id}: its prompt: a prompt without text"),
        ("UPDATE session SET revision = -1 WHERE title = 'Fix the parser'",
         "session {id}: its session_state: not a revision: -1"),
        ("UPDATE message SET role = 'x' WHERE seq = 2", "message 2 of session {id} is damaged: 'x'"),
        ("UPDATE session SET metadata = '[1]' WHERE title = 'Fix the parser'", "session {id}: "),
    ],
)  # fmt: skip
def test_a_problem_names_the_session_or_message_of_the_database_and_no_line(
    opened: Opened, tmp_path: Path, change: str, why: str
) -> None:
    path, (top, helper, fork) = old_file(opened, tmp_path)
    damage(path, change)
    results = read_into(opened("there"), path)
    problems = [item for item in results if isinstance(item, Problem)]
    assert why.format(id=top) in "".join(problem.why for problem in problems)
    assert {(problem.source, problem.line) for problem in problems} == {
        (str(path), None)
    }
    # The sessions behind it are read all the same.
    assert {helper, fork} <= {item.id for item in results if isinstance(item, Imported)}


def test_a_damaged_call_costs_its_message_and_none_behind_it(
    opened: Opened, tmp_path: Path
) -> None:
    store = opened("old")
    session = store.create_session().id
    store.append(session, user("one"))
    store.append(
        session, assistant("two", tool("bash", {"command": "ls"}, call_id="c1"))
    )
    store.append(session, user("three"))
    store.close()
    damage(tmp_path / "old.db", "UPDATE part SET input = '{' WHERE tool IS NOT NULL")
    there = opened("there")
    problem, done = read_into(there, tmp_path / "old.db")
    assert isinstance(problem, Problem)
    assert isinstance(done, Imported)
    assert problem.why.startswith(f"message 2 of session {session} is damaged: ")
    assert [message.text for message in there.messages(session)] == ["one", "three"]
