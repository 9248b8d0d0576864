"""Beside the sessions of OpenCode: projects, permissions, secrets of shares."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from opencode2_store import asked, session2, sqlite2_store
from opencode_reading import read
from opencode_store import (
    PROJECT,
    T0,
    WORKTREE,
    assistant,
    session,
    sqlite_store,
    text,
    tree_store,
    user,
)
from opencode_writing import import_store

from sessiondb import ALL, Store
from sessiondb.formats import find
from sessiondb.formats.redact import Redaction
from sessiondb.model import Imported

RECORD: dict[str, Any] = {
    "id": PROJECT,
    "worktree": WORKTREE,
    "vcs": "git",
    "name": "The Shop",
    "icon": {"url": "data:,x", "color": "pink"},
    "commands": {"start": "make"},
    "sandboxes": ["/home/ann/shop-two", "/home/ann/shop-three"],
    "time": {"created": T0 - 5000, "updated": T0 + 9000, "initialized": T0 - 4000},
}
APPROVED = [{"permission": "bash", "pattern": "git *", "action": "allow"}]
SHARE = {"id": "abc", "secret": "s3cret", "url": "https://opncd.ai/s/abc"}


def put(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")


def talk(number: int = 1, **info: Any) -> dict[str, Any]:
    said = [
        user(1, "Hello", f"msg_{number}a"),
        assistant(2, text("Hi"), name=f"msg_{number}b"),
    ]
    return session(number, *said, **info)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree whose project has everything that a project of 1.x may have."""
    root = tree_store(tmp_path / "data", talk())
    put(root / "project" / f"{PROJECT}.json", RECORD)
    put(root / "permission" / f"{PROJECT}.json", APPROVED)
    return root


def test_all_facts_about_a_project_are_stored_in_its_row(
    store: Store, tree: Path
) -> None:
    import_store(store, tree)
    (project,) = store.projects()
    assert (project.worktree, project.vcs, project.name) == (
        WORKTREE,
        "git",
        "The Shop",
    )
    assert (project.time_created, project.time_initialized) == (T0 - 5000, T0 - 4000)
    assert project.permission == APPROVED
    kept = {key: RECORD[key] for key in RECORD if key not in ("id", "worktree", "vcs")}
    assert project.metadata == {"opencode": kept}
    with closing(sqlite3.connect(store.path)) as db:
        rows = db.execute(
            "SELECT directory, kind FROM project_directory ORDER BY rid"
        ).fetchall()
    boxes = [(path, "sandbox") for path in RECORD["sandboxes"]]
    assert rows == [(WORKTREE, "worktree"), *boxes]


def test_of_two_stores_the_earliest_time_and_the_name_that_is_given_hold(
    store: Store, tree: Path, tmp_path: Path
) -> None:
    import_store(store, tree)
    other = tree_store(tmp_path / "other", talk(2))
    put(
        other / "project" / f"{PROJECT}.json",
        {**RECORD, "name": None, "time": {"created": T0}},
    )
    import_store(store, other)
    (project,) = store.projects()
    assert (project.name, project.time_created) == ("The Shop", T0 - 5000)


def test_a_sandbox_that_is_a_project_of_its_own_stays_one(
    store: Store, tree: Path
) -> None:
    store.create_session(directory=RECORD["sandboxes"][0])
    import_store(store, tree)
    stored = store.sessions(project=RECORD["sandboxes"][0], empty=True, archived=True)
    assert [item.source for item in stored] == ["sessiondb"]


@pytest.mark.parametrize(
    "value", [7, "x", [], {"time": 5, "name": {}, "sandboxes": [1, "a"]}]
)
def test_an_odd_record_of_a_project_costs_no_session(
    store: Store, tree: Path, value: Any
) -> None:
    put(tree / "project" / f"{PROJECT}.json", value)
    put(tree / "permission" / f"{PROJECT}.json", value)
    sessions, _ = read(tree)
    results = list(store.ingest(sessions.values()))
    assert [item.source_id for item in results if isinstance(item, Imported)] == [
        "ses_0001"
    ]
    assert [item.message_count for item in store.sessions(project=ALL)] == [2]


@pytest.mark.slow
def test_a_database_describes_its_projects_too(store: Store, tmp_path: Path) -> None:
    path = sqlite_store(tmp_path / "opencode.db", talk())
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("ALTER TABLE project ADD COLUMN icon_color text")
        db.execute("ALTER TABLE project ADD COLUMN time_initialized integer")
        db.execute("CREATE TABLE permission (project_id text PRIMARY KEY, data text)")
        db.execute(
            "INSERT INTO permission VALUES (?, ?)", (PROJECT, json.dumps(APPROVED))
        )
        db.execute(
            "UPDATE project SET name = 'The Shop', icon_color = 'pink', time_created = ?,"
            " time_initialized = ?",
            (T0 - 5000, T0 - 4000),
        )
    import_store(store, path)
    (project,) = store.projects()
    assert (project.name, project.time_created) == ("The Shop", T0 - 5000)
    assert (project.time_initialized, project.permission) == (T0 - 4000, APPROVED)
    assert project.metadata["opencode"]["icon"] == {"color": "pink"}


def test_approvals_of_version_2_belong_to_their_project(
    store: Store, tmp_path: Path
) -> None:
    path = sqlite2_store(tmp_path / "opencode.db", session2(1, asked(1, "Hello")))
    with closing(sqlite3.connect(path)) as db, db:
        columns = "id text, project_id text, action text, resource text"
        db.execute(f"CREATE TABLE permission ({columns})")
        rows = [("2", PROJECT, "edit", "*"), ("1", PROJECT, "bash", "git *")]
        db.executemany("INSERT INTO permission VALUES (?, ?, ?, ?)", rows)
    import_store(store, path)
    (project,) = store.projects()
    assert project.permission == [
        {"action": "bash", "resource": "git *", "effect": "allow"},
        {"action": "edit", "resource": "*", "effect": "allow"},
    ]


@pytest.mark.parametrize("folder", ["share", "session_share"])
def test_a_share_without_its_session_is_a_problem(tree: Path, folder: str) -> None:
    put(tree / folder / "ses_0009.json", SHARE)
    _, (problem,) = read(tree)
    assert Path(problem.source) == tree / folder / "ses_0009.json"
    assert problem.why == "a share of session 'ses_0009', which does not exist"


def test_what_a_removal_leaves_is_not_a_problem(tree: Path) -> None:
    (tree / "message" / "ses_0009").mkdir()
    (tree / "part" / "msg_9a").mkdir()
    put(tree / "todo" / "ses_0009.json", [{"content": "Look"}])
    put(tree / "session_diff" / "ses_0009.json", [{"file": "a.py"}])
    assert read(tree)[1] == []
    put(tree / "message" / "ses_0009" / "msg_9a.json", {})
    _, (problem,) = read(tree)
    assert problem.why == "messages of session 'ses_0009', which does not exist"


ROWS = {
    "todo": "('ses_0009', 'Look', 'pending', 'high', 0, 0, 0)",
    "session_share": "('ses_0009', 'abc', 's3cret', 'https://opncd.ai/s/abc', 0, 0)",
}


@pytest.mark.parametrize("table", ROWS)
def test_a_row_without_its_session_is_a_problem(table: str, tmp_path: Path) -> None:
    path = sqlite_store(tmp_path / "opencode.db", talk())
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(f"INSERT INTO {table} VALUES {ROWS[table]}")
    sources, (problem,) = read(path)
    assert list(sources) == ["ses_0001"]
    assert problem.why == f"1 {table}(s) of session 'ses_0009', which does not exist"


def change(root: Path, name: str) -> Path:
    return root / "session" / PROJECT / f"{name}.json"


@pytest.mark.parametrize("folder", ["share", "session_share"])
@pytest.mark.parametrize("said", [True, False])
def test_a_share_keeps_its_address_and_its_secret(
    store: Store, tree: Path, folder: str, said: bool
) -> None:
    if said:
        put(change(tree, "ses_0001"), talk(share={"url": SHARE["url"]})["info"])
    put(tree / folder / "ses_0001.json", SHARE)
    import_store(store, tree)
    (stored,) = store.sessions(project=ALL)
    assert (stored.share_url, stored.metadata["share"]) == (SHARE["url"], SHARE)


def test_a_share_that_begins_changes_or_ends_after_an_import_does_so_here(
    store: Store, tree: Path
) -> None:
    file = tree / "share" / "ses_0001.json"
    import_store(store, tree)
    session = store.session("ses_0001")
    store.set_metadata(session, {"mine": 1})
    other = {"url": "https://opncd.ai/s/other", "secret": "another"}
    for share in (SHARE, other):
        put(file, share)
        import_store(store, tree)
        stored = store.session(session.id)
        assert (stored.share_url, stored.metadata) == (
            share["url"],
            {"mine": 1, "share": share},
        )

    file.unlink()
    import_store(store, tree)
    stored = store.session(session.id)
    assert (stored.share_url, stored.metadata) == (None, {"mine": 1})


def test_nothing_of_a_share_and_no_secret_of_a_project_leaves_with_redaction(
    store: Store, tree: Path
) -> None:
    put(tree / "share" / "ses_0001.json", SHARE)
    start = {"start": "API_KEY=sk-proj-abcdefghijklmnopqrstuvwxyz0123456789 make"}
    put(tree / "project" / f"{PROJECT}.json", {**RECORD, "commands": start})
    import_store(store, tree)
    exports = [
        Redaction().redact(store.export(item.id))
        for item in store.sessions(project=ALL)
    ]
    redacted = repr([(export.session, export.project) for export in exports])
    assert "The Shop" in redacted
    for secret in ("s3cret", "opncd.ai", "sk-proj"):
        assert secret not in redacted


def test_sessions_that_lie_flat_are_found(store: Store, tree: Path) -> None:
    here = change(tree, "ses_0001")
    here.rename(tree / "session" / "ses_0001.json")
    here.parent.rmdir()
    names = import_store(store, tree)
    assert names.keys() == {"ses_0001"}
    assert len(store.messages(names["ses_0001"])) == 2
    (project,) = store.projects()
    assert (project.worktree, project.name) == (WORKTREE, "The Shop")


@pytest.mark.parametrize(
    "place", ["storage/session", "project/shop/storage/session/info"]
)
def test_sessions_without_any_messages_are_found_by_their_records(
    store: Store, tmp_path: Path, place: str
) -> None:
    put(tmp_path / place / "ses_0001.json", talk()["info"])
    assert import_store(store, tmp_path).keys() == {"ses_0001"}


@pytest.mark.parametrize("record", [[], {"id": "ses_0001"}, {"id": "x", "time": {}}])
def test_another_program_may_name_its_files_so_too(tmp_path: Path, record: Any) -> None:
    put(tmp_path / "session" / "ses_0001.json", record)
    put(tmp_path / "session" / "other.json", talk()["info"])
    (tmp_path / "session" / "ses_0002.json").write_text("{torn")
    assert list(find(tmp_path)) == []
    (tmp_path / "message").mkdir()
    assert [store.path for store in find(tmp_path)] == [tmp_path]


def test_a_flat_session_that_names_no_project_has_that_of_its_directory(
    store: Store, tree: Path
) -> None:
    info = talk()["info"]
    del info["projectID"]
    info["directory"] = f"{WORKTREE}/src/app"
    change(tree, "ses_0001").unlink()
    put(tree / "session" / "ses_0001.json", info)
    put(tree / "project" / "global.json", {**RECORD, "id": "global", "worktree": "/"})
    put(tree / "project" / "odd.json", [1])
    import_store(store, tree)
    (project,) = store.projects()
    assert (project.worktree, project.name) == (WORKTREE, "The Shop")
    assert project.permission == APPROVED


@pytest.mark.parametrize("folder", ["share", "session_share"])
@pytest.mark.parametrize("shared", [True, False])
def test_a_database_has_the_secrets_that_its_migration_left_behind(
    store: Store, tmp_path: Path, folder: str, shared: bool
) -> None:
    path = sqlite_store(tmp_path / "opencode.db", talk())
    url = SHARE["url"] if shared else None
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE session SET share_url = ?", (url,))
    before = read(path)[0]["ses_0001"].digest
    put(tmp_path / "storage" / folder / "ses_0001.json", SHARE)
    assert read(path)[0]["ses_0001"].digest != before
    import_store(store, path)
    (stored,) = store.sessions(project=ALL)
    # A file of a session that is no longer shared is out of date.
    expected = {"share": SHARE} if shared else {}
    assert (stored.share_url, stored.metadata) == (url, expected)


def test_a_project_id_that_is_a_path_leads_nowhere(
    store: Store, tmp_path: Path
) -> None:
    root = tree_store(tmp_path / "data")
    put(tmp_path / "secret.json", {"name": "Secret", "worktree": "/secret"})
    item = talk(projectID="../../../secret")
    put(root / "session" / "ses_0001.json", item["info"])
    (root / "message").mkdir()
    import_store(store, root)
    assert [project.name for project in store.projects()] == ["shop"]


@pytest.mark.slow
def test_the_record_of_a_real_project_is_kept_as_it_is(
    store: Store, real_store: Callable[[str], Path]
) -> None:
    data = real_store("opencode-1.1.65/data")
    import_store(store, data)
    (file,) = data.rglob("storage/project/*.json")
    record = json.loads(file.read_text())
    (project,) = store.projects()
    columns = {"id": file.stem, "worktree": project.worktree, "vcs": project.vcs}
    assert record == {**columns, **project.metadata["opencode"]}
    assert project.time_created == record["time"]["created"]
