"""The recipes of the cookbook that write files, typed exactly as they are on the page."""

from __future__ import annotations

import re
import shlex
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from command_line import SAMPLE, Run, Story
from jsonl_tables import LOCAL, differences

from sessiondb import Store, assistant, event, text, tool, user
from sessiondb.model import FileDiff

pytestmark = pytest.mark.slow


def recipe(question: str) -> list[list[str]]:
    """Return the command lines of one recipe, those of sessiondb without their program's name."""
    page = (SAMPLE.parents[1] / "docs/COOKBOOK.md").read_text(encoding="utf-8")
    block = re.search(r"(?s)```sh\n(.*?)```", page.partition(f"**{question}")[2])
    assert block is not None
    lines = [shlex.split(line, comments=True) for line in block[1].splitlines()]
    commands = [line for line in lines if line]
    return [line[1:] if line[0] == "sessiondb" else line for line in commands]


def test_a_handed_over_file_contains_its_session(sessiondb: Run, project: Path) -> None:
    sessiondb("import", str(SAMPLE))
    for command in recipe("Hand over one transcript."):
        assert sessiondb(*command).code == 0
        written = project / command[-1]
        assert "The countdown no longer rings one second early" in written.read_text()


def test_a_new_laptop_has_everything(
    sessiondb: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessiondb("import", str(SAMPLE))
    export, importing, *_ = recipe("Take everything to a new laptop.")
    assert sessiondb(*export).code == 0
    every = ("list", "-a", "--archived", "--subagents", "--json")
    before = sessiondb(*every).json
    monkeypatch.setenv("SESSIONDB_PATH", str(project / "laptop.db"))
    assert sessiondb(*importing).code == 0
    assert sessiondb(*every).json == before
    assert len(before["sessions"]) == 4
    assert sessiondb("check").code == 0


def _fill(store: Store, project: Path) -> None:
    """Make sessions of every kind, with everything that can belong to one."""
    folder = str(project)
    empty = store.create_session(title="Without a message", directory=folder)
    for parent, relation in ((empty, "subagent"), (empty, "fork")):
        child = store.create_session(
            title=f"{relation} of nothing", parent=parent, relation=relation
        )
        store.append(child, user(f"a {relation}"))
    store.create_session(parent=empty, relation="subagent")

    top = store.create_session(
        title="Everything", directory=folder, metadata={"tags": ["kept"]}
    )
    store.append(top, user("Fix the parser"))
    call = tool("bash", {"command": "x" * 2000}, call_id="c1", output="y" * 9000)
    answer = assistant(text("Done."), call)
    done = store.append(
        top, answer, model="m", provider="p", cost=0.5, tokens={"input": 7, "output": 2}
    )
    store.append(top, user("another branch"))
    store.set_leaf(top, done)
    store.append(top, event("compaction", text("short")))
    store.label(top, done, "good")
    store.set_todos(top, ["write a test", "run it"])
    store.set_diffs(top, [FileDiff("a.py", additions=1, before=b"old", after=b"new")])
    store.add_prompt("Fix the parser", session=top)
    store.set_share(top, "https://example.org/s/1")
    store.note_used(top, "tty1")
    fork = store.fork(top, at=done)
    store.append(fork, assistant("Otherwise."), model="m", cost=0.25)
    store.append(store.fork(fork), user("deeper"))
    archived = store.create_session(title="Archived", directory=folder)
    store.append(archived, user("old"))
    store.archive(archived)
    archived_empty = store.create_session(title="Archived and empty")
    store.archive(archived_empty)


#: What a log does not transfer, as JSONL.md says: it is about this machine.
_OF_ONE_MACHINE = {
    "terminal", "lease", "import_ledger", "import_file", "tombstone", "deletion", "merge_base", "meta",
    "alembic_version", "project_directory",
    # What says which tables a program made here; the rows in these are transferred.
    "extension",
    # Values belong to no session: they come with a database, and not with a log.
    "key_value",
    # Sums of the messages: each database makes its own.
    "usage_hour", "usage_model", "usage_waiting",
}  # fmt: skip
#: The same of a project: what its program recorded of it.
_OF_PROGRAMS = ("project.metadata", "project.permission", "project.time_initialized")


def test_the_recipe_for_another_machine_copies_every_session_with_all_that_is_its_own(
    sessiondb: Run, project: Path, monkeypatch: pytest.MonkeyPatch, database: Path
) -> None:
    with Store.open(database, durability="normal") as store:
        _fill(store, project)
    sessiondb("import", str(SAMPLE))
    export, importing, *_ = recipe("Take everything to a new laptop.")
    assert sessiondb(*export).code == 0
    laptop = project / "laptop.db"
    monkeypatch.setenv("SESSIONDB_PATH", str(laptop))
    assert sessiondb(*importing).code == 0
    unlike = differences(database, laptop)
    assert [one for one in unlike if not one.startswith(_OF_PROGRAMS)] == []
    assert sessiondb("check").code == 0

    with closing(sqlite3.connect(database)) as connection:
        names = {
            name
            for (name,) in connection.execute(
                "SELECT name FROM pragma_table_list WHERE type = 'table' "
                "AND schema = 'main' AND name NOT LIKE 'sqlite_%'"
            )
        }
    assert names == set(LOCAL) | _OF_ONE_MACHINE, "a new table: is it transferred?"


def test_an_export_of_everything_reports_a_session_whose_import_did_not_end(
    sessiondb: Run, story: Story, store: Store, database: Path
) -> None:
    store.close()
    with closing(sqlite3.connect(database)) as connection:
        connection.execute(
            "UPDATE session SET time_importing = 1 WHERE id = ?", (story.other,)
        )
        connection.commit()
    ran = sessiondb("export", "-a", "--archived", "--subagents", "--to", "jsonl")
    assert (ran.code, story.other in ran.out) == (4, False)
    assert f"left out: {story.other}: its import did not end" in ran.err


def test_a_page_of_everything_leaves_sessions_without_messages_out(
    sessiondb: Run, store: Store, project: Path
) -> None:
    store.append(store.create_session(title="Spoken"), user("hello"))
    store.create_session(title="Silent")
    store.close()
    assert "Silent" not in sessiondb("export", "-a", "--to", "html").out
    assert "Silent" in sessiondb("export", "-a", "--to", "jsonl").out


def test_a_team_shares_what_git_has(
    sessiondb: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SESSIONDB_PATH")
    making, syncing, adding = recipe("Share a project's sessions with a team.")
    assert sessiondb(*making).code == 0
    with Store.open() as own:
        own.append(own.create_session(), user("shared"))
    assert sessiondb(*syncing).code == 0
    assert adding == ["git", "add", ".sessiondb"]
    (shared,) = (project / ".sessiondb").rglob("*.jsonl")
    assert "shared" in shared.read_text()
