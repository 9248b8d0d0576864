from __future__ import annotations

import gzip
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import SAMPLE, Run

COUNTS = ("imported", "updated", "unchanged", "deleted", "diverged")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return shutil.copytree(SAMPLE, tmp_path / "copy")


@pytest.mark.slow
def test_an_import_reports_each_session(sessiondb: Run) -> None:
    ran = sessiondb("import", str(SAMPLE), "--json")
    assert ran.code == 0
    assert set(COUNTS) | {"sessions", "problems"} <= set(ran.json)
    assert ran.json["imported"] == len(ran.json["sessions"]) > 0
    for session in ran.json["sessions"]:
        assert {"id", "source", "source_id", "messages"} <= set(session)
        shown = sessiondb("show", session["source_id"], "--json").json
        assert shown["session"]["id"] == session["id"]
        assert shown["session"]["message_count"] == session["messages"]


def test_a_second_import_changes_nothing(sessiondb: Run) -> None:
    sessiondb("import", str(SAMPLE))
    before = sessiondb("list", "-a", "--subagents", "--json").out
    again = sessiondb("import", str(SAMPLE), "--json").json
    assert (again["unchanged"], again["imported"]) == (len(again["sessions"]), 0)
    assert sessiondb("list", "-a", "--subagents", "--json").out == before


def test_a_dry_run_writes_nothing(sessiondb: Run) -> None:
    assert sessiondb("import", str(SAMPLE), "--dry-run", "--json").json["imported"] > 0
    assert sessiondb("list", "-a", "--json").json["sessions"] == []
    assert sessiondb("import", str(SAMPLE), "--dry-run").out.startswith("would be ")


def test_a_corrupt_file_is_a_problem_and_the_rest_is_imported(
    sessiondb: Run, copy: Path
) -> None:
    broken = next(copy.rglob("message/*/*.json"))
    broken.write_text("{ torn")
    ran = sessiondb("import", str(copy), "--json")
    assert ran.code == 4
    assert ran.json["imported"] > 0
    (problem,) = ran.json["problems"]
    assert set(problem) == {"source", "line", "why"}
    assert broken.name in problem["source"]
    ran = sessiondb("--db", "second.db", "import", str(copy))
    assert ran.code == 4
    assert broken.name in ran.err


def test_a_missing_path_does_not_stop_the_others(
    sessiondb: Run, tmp_path: Path
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    ran = sessiondb("import", "/no/such/place", str(empty), str(SAMPLE), "--json")
    assert ran.code == 4
    assert [p["source"] for p in ran.json["problems"]] == ["/no/such/place", str(empty)]
    assert ran.json["imported"] > 0


def test_without_a_path_it_looks_where_agents_keep_their_sessions(
    sessiondb: Run, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    nothing = sessiondb("import", "--json")
    assert (nothing.code, nothing.json["sessions"]) == (0, [])
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    shutil.copytree(SAMPLE, home / ".local" / "share" / "opencode")
    assert sessiondb("import", "--json").json["imported"] > 0


@pytest.mark.slow
def test_one_projects_sessions_alone(sessiondb: Run, home: Path) -> None:
    every = sessiondb("import", str(SAMPLE), "--dry-run", "--json").json["sessions"]
    assert (
        sessiondb("import", str(SAMPLE), "--project", ".", "--json").json["sessions"]
        == []
    )
    sessiondb("import", str(SAMPLE))
    directory = sessiondb("list", "-a", "--json").json["sessions"][0]["directory"]
    some = sessiondb(
        "--db", "one.db", "import", str(SAMPLE), "--project", directory, "--json"
    ).json["sessions"]
    assert 0 < len(some) <= len(every)


def test_a_database_of_one_project_takes_its_sessions_only(
    sessiondb: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SESSIONDB_PATH")
    assert sessiondb("init", "--local").code == 0
    ran = sessiondb("import", str(SAMPLE), "--json")
    assert ran.json["sessions"] == []
    assert "sessiondb --global import" in ran.err
    assert (project / ".sessiondb" / "sessions.db").is_file()


@pytest.mark.parametrize("args", [("--from", "nothing"), ("--no-such",)])
def test_bad_arguments_are_exit_2(sessiondb: Run, args: tuple[str, ...]) -> None:
    ran = sessiondb("import", str(SAMPLE), *args)
    assert (ran.code, ran.out) == (2, "")


@pytest.mark.slow
def test_a_terminal_sees_progress_and_a_pipe_does_not(
    terminal: Run, sessiondb: Run
) -> None:
    seen = terminal(f"import {SAMPLE}")
    assert "4 sessions" in seen.out
    assert sessiondb("import", str(SAMPLE)).err == ""


@pytest.mark.parametrize(
    "name",
    [
        "opencode-1.18.33",
        "opencode-migrated-1.2.27",
        "opencode-1.1.65",
        "opencode-0.5.29",
    ],
)
def test_a_real_store_is_imported_completely(
    sessiondb: Run, real_store: Callable[[str], Path], name: str
) -> None:
    folder = real_store(name)
    expected = json.loads((folder / "expected.json").read_text())
    ran = sessiondb("import", str(folder / "data"), "--json")
    assert (ran.code, ran.json["problems"]) == (0, [])
    known = {session["source_id"] for session in ran.json["sessions"]}
    assert {session["tool_session_id"] for session in expected["sessions"]} - {
        None
    } <= known
    listed = sessiondb("list", "-a", "--subagents", "--json").json["sessions"]
    assert {session["source_id"] for session in listed} == known
    assert sessiondb("check", "--json").json == {"ok": True, "findings": []}


def test_an_unreadable_store_does_not_affect_the_others(
    sessiondb: Run, copy: Path
) -> None:
    (copy / "before").mkdir()
    (copy / "before" / "opencode.db").write_bytes(b"SQLite format 3\0" + bytes(2000))
    ran = sessiondb("import", str(copy), "--json")
    assert ran.code == 4
    assert (
        ran.json["imported"]
        == sessiondb("import", str(SAMPLE), "--json").json["unchanged"]
        > 0
    )
    assert {Path(p["source"]).name for p in ran.json["problems"]} == {"opencode.db"}


def test_each_problem_is_reported_once(sessiondb: Run, copy: Path) -> None:
    for broken in list(copy.rglob("message/*/*.json"))[:2]:
        broken.write_text("{ torn")
    problems = sessiondb("import", str(copy), "--dry-run", "--json").json["problems"]
    assert len(problems) == len({p["source"] for p in problems}) == 2
    ran = sessiondb("import", str(copy)).err
    assert all(ran.count(p["source"]) == 1 for p in problems)


def story(tmp_path: Path) -> Path:
    """Return a database of another machine, with two sessions."""
    from sessiondb import Store, user

    path = tmp_path / "old.db"
    with Store.open(path, durability="normal") as store:
        for number in (1, 2):
            session = store.create_session(title=f"session {number}")
            store.append(session, user("Hello"))
    return path


def test_a_database_of_another_machine_is_imported_if_it_is_named(
    sessiondb: Run, tmp_path: Path
) -> None:
    path = story(tmp_path)
    before = path.read_bytes()
    assert sessiondb("import", str(path)).out == "2 imported · 1 store\n"
    assert sessiondb("import", str(path)).out == "2 unchanged · 1 store\n"
    assert sessiondb("import", "--from", "sessiondb", str(path)).code == 0
    assert sessiondb("import", str(path.parent), "--json").json["sessions"] == []
    assert path.read_bytes() == before


def test_a_database_cannot_be_imported_into_itself(
    sessiondb: Run, tmp_path: Path
) -> None:
    path = story(tmp_path)
    (tmp_path / "link.db").symlink_to(path)
    for name in (path, tmp_path / "link.db"):
        ran = sessiondb("--db", str(path), "import", str(name))
        assert (ran.code, ran.out) == (2, "")
        assert "is the database that is imported into" in ran.err


def exported(sessiondb: Run, path: Path) -> bytes:
    ran = sessiondb("--db", str(path), "export", "-a", "--to", "jsonl")
    assert ran.code == 0
    return ran.out.encode()


@pytest.mark.parametrize("packed", [False, True])
def test_a_bundle_is_read_from_stdin(
    sessiondb: Run, tmp_path: Path, packed: bool
) -> None:
    bundle = exported(sessiondb, story(tmp_path))
    stdin = gzip.compress(bundle) if packed else bundle
    assert sessiondb("import", "-", stdin=stdin).out == "2 imported · 1 store\n"
    assert sessiondb("import", "-", stdin=stdin).out == "2 unchanged · 1 store\n"
    assert sessiondb("export", "-a", "--to", "jsonl").out.encode() == bundle


def test_a_bundle_that_breaks_off_is_read_as_far_as_it_goes(
    sessiondb: Run, tmp_path: Path
) -> None:
    bundle = exported(sessiondb, story(tmp_path))
    half = bundle[: bundle.rindex(b'"type":"session_meta"') + 40]
    ran = sessiondb("import", "-", stdin=half)
    assert (ran.code, ran.out) == (4, "1 imported · 1 store\n")
    assert "the file ends inside of it" in ran.err


@pytest.mark.parametrize(
    ("stdin", "why"),
    [(b"", "there is nothing to read"), (b"hello\n{}\n", "not a log of sessiondb")],
)
def test_stdin_without_a_bundle_is_a_problem(
    sessiondb: Run, stdin: bytes, why: str
) -> None:
    ran = sessiondb("import", "-", "--json", stdin=stdin)
    assert (ran.code, ran.json["problems"]) == (
        4,
        [{"source": "-", "line": None, "why": why}],
    )
    assert sessiondb("import", "-", "--watch", stdin=stdin).code == 2


def test_stdin_is_a_log_and_no_store_of_another_format(
    sessiondb: Run, tmp_path: Path
) -> None:
    bundle = exported(sessiondb, story(tmp_path))
    ran = sessiondb("import", "-", "--from", "opencode", stdin=bundle)
    assert (ran.code, ran.out) == (2, "")
    assert "- is a log on stdin" in ran.err
    ran = sessiondb("import", "-", "--from", "jsonl", stdin=bundle)
    assert ran.out == "2 imported · 1 store\n"


def test_a_problem_is_not_followed_by_a_claim_of_success_if_nothing_was_imported(
    sessiondb: Run, tmp_path: Path
) -> None:
    assert sessiondb("import", "-", stdin=b"hello\n").err.startswith("1 problem:\n")
    bundle = exported(sessiondb, story(tmp_path))
    dry = sessiondb("import", "-", "--dry-run", stdin=bundle + b"torn")
    assert "1 problem:\n" in dry.err
    ran = sessiondb("import", "-", stdin=bundle + b"torn")
    assert "1 problem, everything else was imported:\n" in ran.err


def test_a_log_that_needs_a_package_names_its_installation(
    sessiondb: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    monkeypatch.setitem(sys.modules, "compression.zstd", None)
    packed = b"\x28\xb5\x2f\xfd" + bytes(20)
    path = tmp_path / "log.jsonl.zst"
    path.write_bytes(packed)
    for ran in (sessiondb("import", str(path)), sessiondb("import", "-", stdin=packed)):
        assert ran.code == 4
        assert "`pip install 'sessiondb[zstd]'` installs it" in ran.err


@pytest.mark.slow
def test_progress_counts_sessions_and_not_problems(terminal: Run) -> None:
    Path("log.jsonl").write_text("hello\n")
    seen = terminal("import log.jsonl")
    assert "0 sessions" in seen.out
    assert "1 session" not in seen.out
