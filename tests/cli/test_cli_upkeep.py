from __future__ import annotations

import re
import shlex
import sqlite3
import stat
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from command_line import SAMPLE, Run, Story

from sessiondb import Store, assistant, user
from sessiondb.cli.checking import restore_command
from sessiondb.engine.default import ENGINE
from sessiondb.engine.sqlite.space import bytes_by_table, estimated_by_table
from sessiondb.maintenance import check

pytestmark = pytest.mark.slow


def harm(database: Path, *statements: str) -> None:
    """Run statements as a shell could: without foreign keys, without our triggers."""
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        triggers = connection.execute(
            "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'"
        ).fetchall()
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            connection.execute(statement)
        for _, sql in triggers:
            connection.execute(sql)


def test_a_sound_database_has_no_findings(sessiondb: Run, story: Story) -> None:
    sessiondb("import", str(SAMPLE))
    ran = sessiondb("check", "--json")
    assert (ran.code, ran.json) == (0, {"ok": True, "findings": []})
    assert sessiondb("check").out == ""


@pytest.mark.parametrize(
    ("statement", "found_by"),
    [
        ("DELETE FROM message WHERE seq = 2", "references"),
        ("DELETE FROM blob", "references"),
        ("UPDATE blob SET data = x'00'", "blobs"),
        ("UPDATE blob SET size = 1", "blobs"),
        (
            "INSERT INTO blob (hash, size, encoding, data) VALUES ("
            "'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855', 0, 'utf-8', x'')",
            "blobs",
        ),
        ("UPDATE session SET message_count = 99", "counters"),
        ("UPDATE session SET cost = 12.5", "counters"),
        ("UPDATE session SET tokens_input = NULL", "counters"),
        ("UPDATE session SET leaf_seq = 77", "counters"),
        ("UPDATE message SET inherited = 0", "ownership"),
        ("UPDATE message SET inherited = 1", "ownership"),
        ("UPDATE part SET inherited = 1 - inherited", "ownership"),
        ("UPDATE message SET parent_seq = 99 WHERE seq = 2", "tree"),
        ("UPDATE part SET indexed = 0 WHERE type = 'tool'", "search"),
        ("UPDATE part SET indexed = 1", "search"),
        ("UPDATE part SET text = 'never said' WHERE indexed = 1", "search index"),
        ("UPDATE session SET title = 'never named'", "search index"),
        ("DELETE FROM part WHERE indexed = 1", "search"),
    ],
)
def test_check_finds_damage(
    sessiondb: Run,
    story: Story,
    store: Store,
    database: Path,
    *,
    statement: str,
    found_by: str,
) -> None:
    store.append(story.parser, assistant("x" * 5000))
    store.close()
    harm(database, statement)
    ran = sessiondb("check", "--json")
    assert ran.code == 4
    assert ran.json["ok"] is False
    assert found_by in {finding["check"] for finding in ran.json["findings"]}
    assert all(finding["count"] > 0 for finding in ran.json["findings"])
    (line, *_) = sessiondb("check").lines
    assert line[3] in ("sessiondb check --repair", restore_command([story.parser]))


@pytest.mark.parametrize(
    "statement", ["DELETE FROM blob", "UPDATE blob SET data = x'ff'"]
)
def test_check_names_the_steps_that_replace_what_is_lost_from_a_backup(
    sessiondb: Run, story: Story, store: Store, database: Path, statement: str
) -> None:
    store.append(story.parser, assistant("x" * 5000))
    assert sessiondb("backup", "old.db").code == 0
    before = sessiondb("show", story.parser, "--json").out
    store.close()
    harm(database, statement)
    ran = sessiondb("export", "-a", "--to", "jsonl")
    assert ran.code == 4
    assert f"left out: {story.parser[-6:].lower()}" in ran.err
    assert story.other in ran.out

    ran = sessiondb("check")
    restore = restore_command([story.parser])
    assert restore in {line[3] for line in ran.lines}
    first, second, third = re.findall(r"`sessiondb ([^`]*)`", ran.err)[:3]
    assert first == restore.removeprefix("sessiondb ")
    for step in (first.replace("BACKUP", "old.db"), f"{second} --yes", third):
        assert sessiondb(*shlex.split(step)).code == 0, step

    assert sessiondb("show", story.parser, "--json").out == before
    assert restore not in {line[3] for line in sessiondb("check").lines}


def test_check_finds_the_remains_of_a_delete_in_a_shell(
    sessiondb: Run, story: Story, store: Store, database: Path
) -> None:
    store.close()
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("DELETE FROM session WHERE id = ?", (story.parser,))
    found = {
        f["what"]: f["count"] for f in sessiondb("check", "--json").json["findings"]
    }
    assert found["rows of message without their session"] == 3
    assert found["rows of session without their session"] == 2


def test_a_damaged_page_is_a_finding_and_not_the_end(
    store: Store, story: Story, database: Path
) -> None:
    for _ in range(20):
        store.append(story.other, user("word " * 400))
    store.close()
    with closing(sqlite3.connect(database)) as connection:
        (page,) = connection.execute(
            "SELECT max(pageno) FROM dbstat WHERE name = 'message' AND pagetype = 'leaf'"
        ).fetchone()
    with database.open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xff" * 4096)
    with Store.open(database) as damaged:
        assert "integrity" in {finding.check for finding in check(damaged)}


def test_a_backup_is_complete_private_and_new(
    sessiondb: Run, story: Story, project: Path, database: Path
) -> None:
    ran = sessiondb("backup", "copy.db", "--json")
    copy = project / "copy.db"
    assert ran.json == {"path": str(copy), "bytes": copy.stat().st_size, "sessions": 4}
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    of_copy = sessiondb("--db", "copy.db", "show", story.parser, "--json").out
    assert of_copy == sessiondb("show", story.parser, "--json").out
    assert sessiondb("--db", "copy.db", "check").code == 0
    assert database.exists()


def test_a_backup_overwrites_nothing(sessiondb: Run, project: Path) -> None:
    (project / "precious").write_text("mine")
    ran = sessiondb("backup", "precious")
    assert (ran.code, ran.out) == (1, "")
    assert (project / "precious").read_text() == "mine"
    assert sessiondb("backup").code == 2


def test_a_backup_into_a_folder_is_named_by_the_time(
    sessiondb: Run,
    story: Story,
    project: Path,
) -> None:
    (project / "backups").mkdir()
    assert sessiondb("backup", "backups").code == 0
    (copy,) = (project / "backups").glob("sessions-*.db")
    assert sessiondb("--db", str(copy), "list", "-a", "--json").json["sessions"]


def test_agents_keep_writing_during_a_backup(
    sessiondb: Run, story: Story, store: Store
) -> None:
    done = threading.Event()

    def write() -> None:
        while not done.is_set():
            store.append(story.other, user("more"))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert sessiondb("backup", "copy.db").code == 0
    finally:
        done.set()
        writer.join()
    assert sessiondb("--db", "copy.db", "check").code == 0


def test_doctor_reports_versions_sizes_and_advice(sessiondb: Run, story: Story) -> None:
    sessiondb("import", str(SAMPLE))
    report = sessiondb("doctor", "--json").json
    assert report["versions"]["sqlite"] == sqlite3.sqlite_version
    assert report["database"]["mode"] == "0600"
    assert report["pragmas"]["journal_mode"] == "wal"
    assert report["rows"]["sessions"] > 4
    assert report["bytes_by_table"]["session"] > 0
    assert (
        report["biggest_sessions"][0]["bytes"]
        >= report["biggest_sessions"][-1]["bytes"]
    )
    assert report["last_import"]["source"] == "opencode"
    assert report["pending_migrations"] == []
    named = any("WAL-reset" in line for line in report["advice"])
    assert named == (sqlite3.sqlite_version_info < (3, 51, 3))
    text = sessiondb("doctor", "--verbose").out
    assert sessiondb("-v", "doctor").out == text
    assert "biggest sessions" in text
    assert sqlite3.sqlite_version in text


def test_doctor_is_one_screen_with_what_is_there(
    terminal: Run, sessiondb: Run, story: Story, database: Path
) -> None:
    sessiondb("import", str(SAMPLE))
    shown = terminal("doctor", height=24).out
    assert sum(max(1, -(-len(line) // 80)) for line in shown.splitlines()) <= 24
    for fact in (str(database), sqlite3.sqlite_version, "8 sessions", "opencode"):
        assert fact in shown


def test_each_finding_of_doctor_has_the_command_that_remedies_it(
    sessiondb: Run, story: Story, store: Store, database: Path
) -> None:
    store.close()
    database.chmod(0o644)
    troubled = {
        "database": {
            "exposed": [str(database), "/tmp/it's"],
            "network_filesystem": "nfs",
            "bytes_wal": 10**10,
        },
        "pragmas": {"freelist_count": 10**6, "page_size": 4096},
    }
    named = [line for line in sessiondb("doctor").out.splitlines() if line[:1] == "!"]
    assert any(f"`chmod 600 {database}`" in line for line in named)
    for finding in [*named, *ENGINE.upkeep.advice(troubled)]:
        assert re.search(r"`(sessiondb|chmod) [^`]+`", finding), finding


def test_doctor_names_what_to_do_without_a_database(
    sessiondb: Run, project: Path
) -> None:
    ran = sessiondb("--db", "new.db", "doctor")
    assert ran.code == 0
    assert "`sessiondb --db new.db init` creates it" in ran.out


def test_doctor_makes_no_database(sessiondb: Run, database: Path) -> None:
    report = sessiondb("doctor", "--json").json
    assert report["database"]["exists"] is False
    assert not database.exists()


def test_doctor_helps_with_a_file_that_cannot_be_used(
    sessiondb: Run, database: Path
) -> None:
    database.write_bytes(b"remember the milk" * 300)
    report = sessiondb("doctor", "--json").json
    assert "not a sessiondb database" in report["error"]["message"]
    assert report["error"]["type"] == "NotADatabaseError"
    assert report["versions"]["sessiondb"]
    assert sessiondb("doctor").code == report["error"]["exit_code"] == 1


def test_doctor_warns_of_a_file_that_others_can_read(
    sessiondb: Run,
    story: Story,
    store: Store,
    database: Path,
) -> None:
    store.close()
    database.chmod(0o644)
    advice = sessiondb("doctor", "--json").json["advice"]
    assert any(str(database) in line and "chmod" in line for line in advice)


def test_sizes_are_estimated_without_dbstat(
    story: Story,
    store: Store,
    database: Path,
) -> None:
    with closing(sqlite3.connect(database)) as connection:
        exact, estimated = bytes_by_table(connection), estimated_by_table(connection)
    assert estimated.keys() <= exact.keys() | {"sqlite_schema"}
    assert 0 < estimated["part"] <= exact["part"]


def test_migrate_reports_a_file_of_the_newest_schema(
    sessiondb: Run, story: Story
) -> None:
    ran = sessiondb("migrate", "--json")
    assert (ran.code, ran.json["pending"]) == (0, [])
    assert "up to date" in sessiondb("migrate", "--dry-run").err


def test_migrate_makes_no_database(sessiondb: Run, database: Path) -> None:
    assert sessiondb("migrate").code == 3
    assert not database.exists()


def test_a_file_of_a_newer_release_is_exit_6(
    sessiondb: Run,
    story: Story,
    store: Store,
    database: Path,
) -> None:
    store.close()
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("PRAGMA user_version = 99")
        connection.execute("UPDATE meta SET value = '99.0.0' WHERE key LIKE 'min_%'")
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    before = database.read_bytes()
    for command in (["list"], ["migrate"], ["check"]):
        assert sessiondb(*command).code == 6
    assert database.read_bytes() == before


def test_a_busy_database_is_exit_5(
    sessiondb: Run, story: Story, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    patience: Callable[..., Store] = Store.open
    monkeypatch.setattr(
        Store, "open", lambda *a, **k: patience(*a, busy_timeout=0.05, **k)
    )
    with closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        ran = sessiondb("title", story.parser, "Later")
        assert sessiondb("list").code == 0, "readers never wait"
    assert (ran.code, ran.out) == (5, "")


@pytest.mark.parametrize(
    "typed",
    ["DELETE FROM session WHERE id = ?", "DELETE FROM message WHERE session_id = ?"],
)
def test_after_a_delete_in_a_shell_every_command_works_for_the_rest(
    sessiondb: Run, story: Story, store: Store, tmp_path: Path, typed: str
) -> None:
    store.close()
    with closing(sqlite3.connect(store.path, isolation_level=None)) as connection:
        connection.execute(typed, (story.parser,))
    for command in (
        ["list", "-a", "--subagents"], ["show", story.fork], ["show", story.other],
        ["search", "lexer", "-a"], ["prompts"], ["stats", "-a"], ["stats", "-a", "--by", "project"],
        ["tree", story.fork], ["tree", story.other], ["diff", story.fork, story.other],
        ["list", "-a", "--sort", "size"], ["doctor"], ["label", story.other, "1", "start"],
        *(["export", "-a", "--subagents", "--to", form, "-o", f"{tmp_path}/{form}/"]
          for form in ("jsonl", "markdown", "html", "opencode", "opencode2")),
    ):  # fmt: skip
        ran = sessiondb(*command)
        # A session without its messages is left out of an export, and named.
        is_left_out = command[0] == "export" and "FROM message" in typed
        assert ran.code == (4 if is_left_out else 0), command
        assert (f"left out: {story.parser[-6:].lower()}" in ran.err) is is_left_out
    ran = sessiondb("check")
    assert ran.code == 4
    assert all(line[3] == "sessiondb check --repair" for line in ran.lines)
    asked = sessiondb("check", "--repair")
    assert (asked.code, "--yes" in asked.err, "--dry-run" in asked.err) == (
        2,
        True,
        True,
    )
    plan = sessiondb("check", "--repair", "--dry-run")
    assert (plan.code, len(plan.lines)) == (4, 1 + len(ran.lines))
    done = sessiondb("check", "--repair", "--yes", "--json")
    assert (done.code, done.json["left"]) == (0, [])
    assert Path(done.json["backup"]).stat().st_mode & 0o777 == 0o600
    assert sessiondb("check").code == 0
    assert sessiondb("check", "--repair", "--yes").err == "nothing to repair\n"


def test_a_repair_needs_no_yes_if_there_is_nothing_to_repair(
    sessiondb: Run, story: Story
) -> None:
    ran = sessiondb("check", "--repair")
    assert (ran.code, ran.out, ran.err) == (0, "", "nothing to repair\n")


def test_a_repair_prompts_on_a_terminal(
    terminal: Run, story: Story, store: Store, database: Path
) -> None:
    store.close()
    harm(database, "UPDATE session SET message_count = 99")
    refused = terminal("check --repair", typed="y\n")
    assert (refused.code, "nothing repaired" in refused.out) == (1, True)
    assert terminal("check --repair", typed="yes\n").code == 0
    assert terminal("check").code == 0


def test_one_session_that_cannot_be_read_does_not_stop_a_sync(
    sessiondb: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SESSIONDB_PATH")
    sessiondb("init", "--local")
    with Store.open() as store:
        broken, other = (
            store.create_session(title=name) for name in ("broken", "other")
        )
        for session in (broken, other):
            store.append(session, user("hello"))
        path = store.path
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(
            "UPDATE part SET data = x'c1' WHERE session_id = ?", (broken.id,)
        )
    ran = sessiondb("sync", "--json")
    assert (ran.code, ran.json["written"]) == (4, [other.id])
    assert [broken.id in problem["why"] for problem in ran.json["problems"]] == [True]
    exported = sessiondb("export", "-a", "--to", "jsonl")
    assert exported.code == 4
    assert (broken.id in exported.out, other.id in exported.out) == (False, True)
    assert "broken" in exported.err
