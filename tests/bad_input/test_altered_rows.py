"""Values that were changed in a shell, and paths that break off: reported by every read."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from sessiondb import (
    CorruptionError,
    FileDiff,
    Store,
    assistant,
    codec,
    text,
    tool,
    tool_result,
    user,
)
from sessiondb.cli.app import app
from sessiondb.model import MessageDraft

LARGE = 2_000
MESSAGES = 12


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A database with one session, in whose middle there are large values."""
    path = tmp_path / "sessions.db"
    with Store.open(path, durability="normal", cwd=tmp_path) as store:
        session = store.create_session(title="Torn", directory=str(tmp_path))
        store.append(session, user("the first words"))
        call = tool("bash", {"command": "i" * LARGE}, call_id="c1")
        answer = assistant(text("t" * LARGE), call, text("d", more="d" * LARGE))
        store.append(session, answer)
        result = MessageDraft("tool", (tool_result("c1", "r" * LARGE),))
        store.append(session, result)
        store.append(session, user("asked", more="m" * LARGE))
        for number in range(MESSAGES - 4):
            store.append(session, user(f"message {number + 5}"))
        store.set_diffs(session, [FileDiff("a.py", before=b"b" * LARGE)])
    monkeypatch.setenv("SESSIONDB_PATH", str(path))
    monkeypatch.chdir(tmp_path)
    return path


def type_in_a_shell(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute(statement).rowcount > 0
        connection.commit()


def run(*args: str) -> Result:
    return CliRunner().invoke(app, list(args))


def name_of(path: Path, value: str) -> str:
    """Return the name of the blob that contains *value* many times."""
    with closing(sqlite3.connect(path)) as connection:
        blobs = connection.execute("SELECT hash, size, encoding, data FROM blob")
        (name,) = [
            name
            for name, *stored in blobs
            if value.encode() * 500 in codec.content_of_blob(*stored)
        ]
    return str(name)


#: Where a value is → how an error names it.
_VALUES = {
    "t": "part 0 of message 2",
    "d": "part 2 of message 2",
    "r": "part 1 of message 2",
    "i": "part 1 of message 2",
    "m": "message 4",
}
_CHANGES = {
    "another text": "data = CAST('not ' || CAST(data AS TEXT) AS BLOB)",
    "emptied": "data = x''",
    "no text": "data = x'ff00fe'",
}
_READS: dict[str, Callable[[Any, Any], Any]] = {
    "messages": lambda store, session: store.messages(session),
    "branches": lambda store, session: store.messages(session, branches=True),
    "walk": lambda store, session: list(store.walk(session)),
    "context": lambda store, session: store.context(session),
    "export": lambda store, session: list(store.export(session).messages),
    "message": lambda store, session: store.message(session, 2),
}


@pytest.mark.slow
@pytest.mark.parametrize("change", _CHANGES)
@pytest.mark.parametrize("value", _VALUES)
def test_a_value_whose_bytes_were_changed_is_named_and_never_returned(
    path: Path, value: str, change: str
) -> None:
    type_in_a_shell(
        path,
        f"UPDATE blob SET {_CHANGES[change]} WHERE hash = '{name_of(path, value)}'",
    )
    with Store.open(path) as store:
        (session,) = store.sessions(project=path.parent)
        for name, read in _READS.items():
            if name == "message" and value == "m":
                continue
            with pytest.raises(CorruptionError, match="not the one that was") as raised:
                read(store, session)
            named = f"{_VALUES[value]} of session {session.id}"
            assert named in str(raised.value), name

    shown = run("show", session.id, "--full")
    assert shown.exit_code == 4
    assert shown.stderr.count("not the one that was stored") == 1
    assert "message 12" in shown.stdout
    assert "not " + value * 100 not in shown.stdout
    assert run("show", session.id, "--json").exit_code == 4
    checked = run("check")
    assert f"of session {session.id} were changed" in checked.stdout
    exported = run("export", session.id, "--to", "jsonl")
    assert (exported.exit_code, exported.stdout) == (4, "")


def test_a_changed_content_of_a_file_is_named_in_diffs_and_as_a_blob(
    path: Path,
) -> None:
    with Store.open(path) as store:
        (session,) = store.sessions(project=path.parent)
        name = name_of(path, "b")
        type_in_a_shell(path, f"UPDATE blob SET data = x'00' WHERE hash = '{name}'")
        with pytest.raises(CorruptionError, match=r"the diff of .a\.py."):
            store.diffs(session)
        with pytest.raises(CorruptionError, match=name):
            store.blob(name)
        assert len(store.messages(session)) == MESSAGES


#: Statement → what is reported, in live reads and in those of all branches.
_BREAKS = {
    "DELETE FROM message WHERE seq = 7": "message 7 of session",
    "UPDATE message SET parent_seq = 99 WHERE seq = 8": "message 99 of session",
    "UPDATE session SET leaf_seq = 77": "message 77 of session",
    "UPDATE message SET parent_seq = 10 WHERE seq = 8": "its own ancestor",
    "DELETE FROM part WHERE seq = 2 AND idx = 1": "message 2 of session",
}


@pytest.mark.slow
@pytest.mark.parametrize("statement", _BREAKS)
def test_a_path_that_breaks_off_is_named_and_shown_as_far_as_it_leads(
    path: Path, statement: str
) -> None:
    type_in_a_shell(path, statement)
    named = _BREAKS[statement]
    is_part = "part" in statement.split()[:3]
    with Store.open(path) as store:
        (session,) = store.sessions(project=path.parent)
        reads = [
            store.messages,
            store.context,
            lambda session: list(store.walk(session)),
            lambda session: list(store.export(session, branches=False).messages),
        ]
        if not is_part:
            reads += [store.fork, lambda session: store.compare(session, session)]
        for read in reads:
            with pytest.raises(CorruptionError, match=named) as raised:
                read(session)
            assert session.id in str(raised.value)

    shown = run("show", session.id)
    assert shown.exit_code == 4
    assert named in shown.stderr
    if "leaf" not in statement:
        assert "message 12" in shown.stdout
    for args in (["export", session.id, "--to", "markdown"], ["fork", session.id]):
        if not (is_part and args[0] == "fork"):
            assert run(*args).exit_code == 4, args
    assert run("check").exit_code == 4


def test_the_last_messages_are_read_without_the_break_above_them(path: Path) -> None:
    type_in_a_shell(path, "DELETE FROM message WHERE seq = 7")
    with Store.open(path) as store:
        (session,) = store.sessions(project=path.parent)
        assert [m.seq for m in store.messages(session, last=3)] == [10, 11, 12]
        with pytest.raises(CorruptionError, match="message 7"):
            store.messages(session, last=6)


def test_a_removed_end_of_a_branch_is_missed_by_its_number(path: Path) -> None:
    with Store.open(path) as store:
        (session,) = store.sessions(project=path.parent)
        store.set_leaf(session, 5)
        store.append(session, user("another branch"))
    type_in_a_shell(path, "DELETE FROM message WHERE seq = 12")
    with Store.open(path) as store:
        assert len(store.messages(session)) == 6
        with pytest.raises(CorruptionError, match="13 messages, 1 more"):
            store.messages(session, branches=True)
        with pytest.raises(CorruptionError, match="1 more"):
            store.tree(session, messages=True)
    assert run("export", session.id, "--to", "jsonl").exit_code == 4


def test_an_import_of_a_database_with_a_gap_takes_the_rest_and_reports_it(
    path: Path, tmp_path: Path
) -> None:
    type_in_a_shell(path, "DELETE FROM message WHERE seq = 7")
    ran = run("--db", str(tmp_path / "other.db"), "import", str(path))
    assert ran.exit_code == 4
    assert "message 7 of session" in ran.output
    with Store.open(tmp_path / "other.db") as store:
        (session,) = store.sessions(project=path.parent)
        assert session.message_count == MESSAGES - 1
