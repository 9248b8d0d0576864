"""The report of a failed command: two lines for a person, one line of JSON for a program."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command_line import Ran, Run, Story

from sessiondb import Store, user
from sessiondb.errors import MAX_MESSAGE, InvalidInputError, SessionDBError, abridged


def error_of(ran: Ran) -> dict[str, Any]:
    """Return the error that stderr holds as one line of JSON and nothing else."""
    (line,) = ran.err.splitlines()
    document = json.loads(line)
    assert list(document) == ["error"]
    error: dict[str, Any] = document["error"]
    assert {"type", "message", "hint", "exit_code"} <= set(error)
    assert error["exit_code"] == ran.code
    assert ran.out == ""
    return error


@pytest.mark.slow
@pytest.mark.parametrize(
    ("args", "kind", "code"),
    [
        (["show", "nobody", "--json"], "NotFoundError", 3),
        (["show", "nobody", "--jsonl"], "NotFoundError", 3),
        (["show", "", "--json"], "InvalidInputError", 2),
        (["list", "--json", "--no-such-option"], "UsageError", 2),
        (["list", "--since", "whenever", "--json"], "UsageError", 2),
        (["list", "--json", "--jsonl"], "UsageError", 2),
        (["--db", "x", "--local", "list", "--json"], "UsageError", 2),
        (["--no-such-option", "list", "--json"], "UsageError", 2),
        (["lost", "--json"], "UsageError", 2),
        (["--db", "not-there.db", "list", "--json"], "NotFoundError", 3),
        (["sql", "SELEKT", "--json"], "InvalidInputError", 2),
        (["sql", "DELETE FROM session", "--json"], "ReadOnlyError", 1),
    ],
)
def test_with_json_an_error_is_one_line_of_json(
    sessiondb: Run, story: Story, args: list[str], kind: str, code: int
) -> None:
    error = error_of(sessiondb(*args))
    assert (error["type"], error["exit_code"]) == (kind, code)
    assert error["hint"]


@pytest.mark.slow
def test_a_process_reports_json_before_its_command_was_understood(
    process: Run, project: Path
) -> None:
    assert error_of(process("nothing", "--json"))["type"] == "UsageError"
    assert error_of(process("show", "x", "--json"))["type"] == "NotFoundError"


def test_json_after_two_dashes_is_an_argument(sessiondb: Run, story: Story) -> None:
    assert sessiondb("show", "--", "--json").err.startswith("sessiondb: ")


def test_an_interrupt_is_json_as_well(
    sessiondb: Run, story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Store, "sessions", interrupt)
    error = error_of(sessiondb("list", "--json"))
    assert (error["type"], error["hint"], error["exit_code"]) == (
        "Interrupted",
        None,
        130,
    )


@pytest.mark.parametrize(
    "given",
    [["--local", "--global"], ["--global", "--local"], ["--db", "x", "--global"],
     ["--db", "x", "--local"], ["--db", "x", "--local", "--global"]],
)  # fmt: skip
def test_one_database_is_chosen_at_most(
    sessiondb: Run, project: Path, given: list[str]
) -> None:
    ran = sessiondb(*given, "list")
    assert (ran.code, ran.out) == (2, "")
    assert "exclude each other" in ran.err
    assert list(project.iterdir()) == []


def test_an_ambiguous_name_prints_id_title_and_age_one_per_line(
    sessiondb: Run, story: Story
) -> None:
    ran = sessiondb("show", "ses_")
    first, *candidates, hint = ran.err.splitlines()
    assert first == "sessiondb: 'ses_' names 4 sessions"
    assert len(candidates) == 4
    (line,) = [line for line in candidates if story.other in line]
    assert line.split("  ")[1:] == [
        story.other[-6:].lower(),
        story.other,
        "now",
        "Write the manual",
    ]
    assert "`sessiondb show ses_" in hint
    error = error_of(sessiondb("show", "ses_", "--json"))
    assert {c["id"] for c in error["candidates"]} == {
        story.parser, story.fork, story.helper, story.other
    }  # fmt: skip


def test_an_ambiguous_name_reports_that_more_candidates_exist(
    sessiondb: Run, store: Store, story: Story
) -> None:
    for number in range(8):
        store.append(store.create_session(title=f"n{number}"), user("x"))
    ran = sessiondb("show", "ses_")
    assert ran.err.startswith("sessiondb: 'ses_' names 9 sessions or more\n")
    assert len(ran.err.splitlines()) == 11


@pytest.mark.parametrize("command", ["show", "tail", "resume", "rm", "tree", "archive"])
def test_an_empty_name_of_a_session_is_refused_everywhere(
    sessiondb: Run, story: Story, command: str
) -> None:
    ran = sessiondb(command, "", *(["--yes"] if command == "rm" else []))
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.splitlines()[0].endswith("not ''")


class Loud:
    """A value whose `repr` fails."""

    def __repr__(self) -> str:
        raise RuntimeError("no")


def _deep(levels: int) -> Any:
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    ["x" * 50_000_000, b"\xff" * 50_000_000, _deep(1_000), {"a": _deep(5_000)}, 10**20_000,
     list(range(1_000_000)), Loud(), [Loud()], "\ud800", type("S", (str,), {})("x" * 10_000_000)],
    ids=["text", "bytes", "deep", "deeper", "digits", "long", "loud", "louder", "half", "subclass"],
)  # fmt: skip
def test_a_value_in_a_message_is_short_whatever_it_is(value: Any) -> None:
    assert len(abridged(value)) < 400
    assert "\n" not in abridged(value)
    abridged(value).encode()


def test_a_message_is_short_whatever_is_in_it() -> None:
    message = str(SessionDBError("a" * 1_000_000 + "end"))
    assert len(message) <= MAX_MESSAGE
    assert message.endswith("end")


def test_hostile_values_are_refused_by_reads_without_being_printed(
    store: Store,
) -> None:
    for by in ("colour", ["day", "colour"], 5, None, _deep(1_000), ("day", "day")):
        with pytest.raises(InvalidInputError) as caught:
            store.usage(by=by)  # type: ignore[arg-type]
        assert len(str(caught.value)) < 400
    assert store.usage(by="model") == store.usage(by=("model",))


@pytest.mark.parametrize("json_too", [False, True])
def test_a_missing_extra_is_reported_like_any_error(
    project: Path, json_too: bool
) -> None:
    code = (
        "import sys\nfrom sessiondb import cli\n"
        "class Finder:\n"
        "  def find_spec(name, *_):\n"
        "    if name == 'rich': raise ModuleNotFoundError('no rich', name='rich')\n"
        "sys.meta_path.insert(0, Finder)\ncli.run()"
    )
    command = [sys.executable, "-c", code, "list", *(["--json"] if json_too else [])]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    ran = Ran(ended.returncode, ended.stdout, ended.stderr)
    if json_too:
        assert error_of(ran)["type"] == "MissingExtraError"
    else:
        assert (ran.code, ran.out) == (1, "")
        assert (
            ran.err
            == "sessiondb: rich is missing; run `pip install 'sessiondb[cli]'`\n"
        )


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("list -a --db x.db", "--db x.db list -a"),
        ("list --db=x.db -a", "--db x.db list -a"),
        ("show @ --local", "--local show @"),
        ("stats --global --json", "--global stats --json"),
        ("check -v", "-v check"),
    ],
)
def test_an_option_behind_the_command_is_shown_at_its_place(
    sessiondb: Run, typed: str, meant: str
) -> None:
    ran = sessiondb(*typed.split())
    assert ran.code == 2
    assert "goes before the command" in ran.err
    assert f"`sessiondb {meant}`" in ran.err


def test_a_file_that_is_not_a_database_is_named(sessiondb: Run, tmp_path: Path) -> None:
    path = tmp_path / "notes.md"
    path.write_text("notes " * 500)
    ran = sessiondb("--db", str(path), "list", "--json")
    error = error_of(ran)
    assert error["type"] == "NotADatabaseError"
    assert error["message"] == f"{path} is not a sessiondb database"


def test_the_url_of_another_server_is_reported_as_unsupported(sessiondb: Run) -> None:
    ran = sessiondb("--db", "mysql://host/db", "list", "--json")
    assert ran.code == 2
    error = error_of(ran)
    assert (error["type"], error["exit_code"]) == ("UnsupportedError", 2)
    assert error["message"] == "mysql is not supported"


def test_a_database_that_cannot_be_reached_is_to_be_tried_again(
    sessiondb: Run, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(*_: object, **__: object) -> None:
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    monkeypatch.setattr("sessiondb.engine.sqlite.files._make_file", unreachable)
    ran = sessiondb("init", "--json")
    error = error_of(ran)
    assert (ran.code, error["type"]) == (5, "UnavailableError")
    assert "try again" in error["hint"]
