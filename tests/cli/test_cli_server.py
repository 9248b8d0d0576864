"""Commands on a database of a server: what works there, and what is used instead."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click
import pytest
from command_line import SAMPLE, Ran, Run, Story
from served import PASSWORD, SHOWN, URL, Unreachable, served

from sessiondb import Store, errors, maintenance
from sessiondb.cli.app import COMMANDS, app
from sessiondb.cli.watchers import Watchers
from sessiondb.engine.address import ServerAddress
from sessiondb.location import resolve

#: Arguments of every command; SESSION is a session, and the directory is a project.
SESSION = "SESSION"
EXAMPLES: dict[str, list[str]] = {
    "status": [],
    "list": ["-a", "--title", "parser"],
    "show": [SESSION],
    "tail": [SESSION],
    "search": ["-a", "lexer"],
    "prompts": ["-a"],
    "tree": [SESSION],
    "diff": [SESSION, SESSION],
    "stats": ["-a", "--by", "session"],
    "fork": [SESSION],
    "resume": [SESSION, "--print", "--in", "pi"],
    "title": [SESSION, "Another title"],
    "label": [SESSION, "1", "start"],
    "archive": [SESSION],
    "unarchive": [SESSION],
    "rm": [SESSION, "--yes"],
    "prune": ["--older-than", "30d", "--dry-run"],
    "import": [str(SAMPLE)],
    "export": ["-a", "--to", "jsonl"],
    "sync": [],
    "backup": ["copy.db"],
    "relink": [".", "."],
    "completion": ["bash"],
    "path": [],
    "init": [],
    "trust": [],
    "sql": ["SELECT count(*) FROM session_list"],
    "migrate": [],
    "check": [],
    "vacuum": [],
    "doctor": [],
}
#: Commands that need a file, with their advice.
REFUSED = {
    "backup": "pg_dump",
    "sync": "init --local",
    "trust": "the roles of the server",
    "vacuum": "autovacuum",
}
#: Commands that connect to no database.
APART = {"completion", "path", "trust"}


def test_every_command_is_tried() -> None:
    # Its arguments name both databases: see `tests/test_copy.py`.
    assert set(EXAMPLES) == set(COMMANDS) - {"copy"}


@pytest.fixture
def on_server(
    sessiondb: Run, database: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Ran]:
    """Type a command with the URL of a server, whose database is *database*."""
    monkeypatch.setattr("sessiondb.engine.default.target_of", partial(served, database))
    return partial(sessiondb, "--db", URL)


def typed(command: str, session: str) -> list[str]:
    words = EXAMPLES[command]
    return [command, *(session if word == SESSION else word for word in words)]


@pytest.mark.parametrize("command", sorted(set(EXAMPLES) - set(REFUSED) - {"tail"}))
def test_a_command_works_on_a_server(
    on_server: Run, store: Store, story: Story, command: str
) -> None:
    store.close()
    ran = on_server(*typed(command, story.parser))
    assert ran.code == 0, ran.err
    assert PASSWORD not in ran.out + ran.err


@pytest.mark.parametrize("command", sorted(REFUSED))
def test_a_command_that_needs_a_file_names_what_to_use_instead(
    on_server: Run, store: Store, story: Story, command: str
) -> None:
    store.close()
    ran = on_server(*typed(command, story.parser))
    message, hint = ran.err.splitlines()
    assert ran.code == 2
    assert SHOWN in message or command == "sync"
    assert REFUSED[command] in hint
    assert not Path("copy.db").exists()


def test_a_repair_is_refused_before_the_check(
    on_server: Run, store: Store, story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.close()
    monkeypatch.setattr(maintenance, "check", None)
    ran = on_server("check", "--repair", "--yes")
    message, hint = ran.err.splitlines()
    assert ran.code == 2
    assert message.endswith(f"a database that is a file; {SHOWN} is one of a server")
    assert "restore a backup" in hint


def test_functions_that_need_a_file_name_what_to_use_instead(
    on_server: Run, story: Story
) -> None:
    with Store.open(URL) as store:
        assert store.path is None
        assert str(store.location) == SHOWN
        assert maintenance.check(store) == []
        for refused, advice in (
            (partial(maintenance.backup, store, "copy.db"), "pg_dump"),
            (partial(maintenance.repair, store), "backup"),
            (partial(maintenance.plan_vacuum, store), "VACUUM FULL"),
            (partial(maintenance.vacuum, store), "VACUUM FULL"),
            (partial(store.read_past_damage, print), "backup"),
        ):
            with pytest.raises(errors.UnsupportedError, match="one of a server") as e:
                refused()
            assert advice in str(e.value.hint)
            assert PASSWORD not in str(e.value)


def test_init_and_path_show_the_url_without_its_password(on_server: Run) -> None:
    assert on_server("path").out == f"{SHOWN}\n"
    assert on_server("path", "--json").json == {
        "path": SHOWN, "kind": "explicit", "exists": None
    }  # fmt: skip
    assert on_server("list").code == 3
    assert on_server("check").code == 3
    assert on_server("init", "--json").json == {"path": SHOWN}
    assert on_server("check").err == "all is well\n"


def test_the_overview_makes_no_tables(
    on_server: Run, sessiondb: Run, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SESSIONDB_PATH", URL)
    assert sessiondb("status").out.startswith("no sessions")
    assert sessiondb().out.startswith("No sessions yet")
    assert not database.exists()


def test_a_hint_repeats_the_command_without_the_password(
    on_server: Run, sessiondb: Run, store: Store, story: Story
) -> None:
    store.close()
    ran = on_server("show", "nothing-like-it")
    assert ran.code == 3
    assert f"sessiondb --db '{SHOWN}' list -a" in ran.err
    # Behind the command and in one word it is a mistake, and shown as well.
    for words in (["--db", URL], [f"--db={URL}"]):
        ran = sessiondb("list", *words)
        assert ran.code == 2
        assert SHOWN in ran.err
        assert PASSWORD not in ran.err


def test_resume_prints_a_command_with_the_url(
    on_server: Run, store: Store, story: Story
) -> None:
    store.close()
    ran = on_server("resume", story.parser, "--print", "--in", "pi")
    assert f"sessiondb --db '{SHOWN}' export {story.parser}" in ran.out


def test_the_doctor_names_the_server(
    on_server: Run, store: Store, story: Story
) -> None:
    store.close()
    lines = on_server("doctor").out.splitlines()
    assert lines[0].endswith("PostgreSQL 15.18")
    assert lines[1] == SHOWN
    report = on_server("doctor", "--json").json
    assert report["database"]["exists"] is True
    assert "error" not in report


def test_names_on_a_server_are_not_completed(
    on_server: Run, store: Store, story: Story
) -> None:
    slug = store.session(story.parser).slug
    store.close()
    assert slug in on_server("list", "-a", "--json").out
    words = {"COMP_WORDS": f"sessiondb --db {URL} show ", "COMP_CWORD": "4"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in words.items():
            patch.setenv(name, value)
        patch.setenv("_SESSIONDB_COMPLETE", "bash_complete")
        ran = on_server()
    assert (ran.code, ran.out.strip(), ran.err) == (0, "", "")


def test_a_second_watcher_of_a_server_learns_of_the_first(
    project: Path, store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    target = served(Path(str(store.path)), ServerAddress(URL))
    first, second = Watchers(target, [project]), Watchers(target, [project / "src"])
    with click.Context(app):
        first.join()
        second.join()
    assert "is already watching for this database" in capsys.readouterr().err


# -- out of reach ------------------------------------------------------------


@pytest.mark.parametrize("command", sorted(set(EXAMPLES) - APART))
def test_a_server_that_does_not_answer_is_one_line_and_a_hint(
    sessiondb: Run, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sessiondb.engine.default.target_of", Unreachable)
    ran = sessiondb("--db", URL, *typed(command, "01ABC"))
    assert ran.code == 5
    assert PASSWORD not in ran.out + ran.err
    if command == "doctor":
        assert f"! {SHOWN} does not answer; check that it runs" in ran.out
        return
    message, hint = ran.err.splitlines()
    assert message == f"sessiondb: {SHOWN} does not answer"
    assert hint.strip() == "check that it runs"


@pytest.mark.parametrize("command", sorted(set(EXAMPLES) - APART))
def test_a_closed_port_is_one_line_and_a_hint(sessiondb: Run, command: str) -> None:
    pytest.importorskip("sessiondb.engine.postgresql.target", reason="needs psycopg")
    url = f"postgresql://ann:{PASSWORD}@127.0.0.1:1/team"
    ran = sessiondb("--db", url, *typed(command, "01ABC"))
    assert ran.code == 5
    assert PASSWORD not in ran.out + ran.err
    if command != "doctor":
        assert len(ran.err.splitlines()) == 2


@pytest.mark.parametrize("command", sorted(set(EXAMPLES) - APART))
def test_without_the_driver_the_extra_is_named(
    sessiondb: Run, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    ran = sessiondb("--db", URL, *typed(command, "01ABC"))
    message, hint = ran.err.splitlines()
    assert ran.code == 1
    assert message == "sessiondb: a database of PostgreSQL needs psycopg"
    assert hint.strip() == "pip install 'sessiondb[postgresql]'"


def test_a_target_needs_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sessiondb.engine.default.target_of", Unreachable)
    assert str(resolve(URL).target()) == SHOWN
