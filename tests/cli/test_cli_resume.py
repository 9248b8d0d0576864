"""Continuing a session in a program; the programs here record how they were started."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import stat
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from command_line import SAMPLE, Run
from samples import permissions_hold

from sessiondb import Store, assistant, event, part, reasoning, user
from sessiondb.cli.resume import Plan
from sessiondb.formats.registry import handover_targets
from sessiondb.model import SourceMessage, SourceSession

pytestmark = pytest.mark.slow

OPENCODE_ID = "ses_3b938957fffeSInhFZWsjHy7Pk"


@pytest.fixture
def programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Callable[[], Any]]:
    """Put a program of this name on PATH; return a function that reads how it was started."""
    folder = tmp_path / "bin"
    folder.mkdir()

    def program(name: str, exit_code: int = 0) -> Callable[[], Any]:
        (folder / name).write_text(
            f'#!/bin/sh\n{{ echo "$#" "$PWD"; printf "%s\\n" "$@"; }} >> "{folder}/{name}.log"\n'
            f'for last; do :; done; test -f "$last" && cp "$last" "{folder}/taken.json"\n'
            f'case "$*" in *import*) exit {exit_code};; esac\n'
        )
        (folder / name).chmod(0o755)

        def calls() -> list[tuple[str, list[str]]]:
            log = folder / f"{name}.log"
            lines = log.read_text().splitlines() if log.exists() else []
            found = []
            while lines:
                number, _, where = lines.pop(0).partition(" ")
                found.append((where, lines[: int(number)]))
                del lines[: int(number)]
            return found

        return calls

    shell = shutil.which("sh")
    assert shell is not None
    monkeypatch.setenv("PATH", f"{folder}:{Path(shell).parent}")
    return program


@pytest.fixture
def imported(sessiondb: Run, store: Store, project: Path) -> str:
    """A session of OpenCode whose directory is on this machine."""
    assert sessiondb("import", str(SAMPLE)).code == 0
    assert sessiondb("relink", "/home/ada/projects/kettle", str(project)).code == 0
    return store.session(OPENCODE_ID).id


def ingested(
    store: Store, source: str, source_id: str, directory: Path, *, namespace: str = "",
    messages: tuple[SourceMessage, ...] = (),
) -> str:  # fmt: skip
    found = SourceSession(
        namespace=namespace,
        source=source, source_id=source_id, title="From elsewhere", directory=str(directory),
        time_created=1_700_000_000_000, messages=messages, path="sessions", digest="1",
    )  # fmt: skip
    (result,) = store.ingest([found])
    return result.id  # type: ignore[union-attr, return-value]


def test_the_program_continues_in_the_directory_of_the_session(
    process: Run, programs: Any, imported: str, project: Path, tmp_path: Path
) -> None:
    calls = programs("opencode")
    ran = process("resume", imported, cwd=tmp_path)
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    model = ["-m", "anthropic/claude-sonnet-4-5"]
    assert calls() == [(str(project), ["--session", OPENCODE_ID, *model])]


def test_a_place_is_continued_in_a_fork_that_ends_there(
    process: Run, store: Store, programs: Any, imported: str
) -> None:
    calls = programs("opencode")
    ran = process("resume", f"{imported}#2")
    assert ran.code == 0, ran.err
    (fork,) = [
        session
        for session in store.sessions().items
        if session.relation == "fork" and session.source == "sessiondb"
    ]
    assert (fork.parent_id, fork.leaf_seq) == (imported, 2)
    assert f"fork {fork.id[-6:].lower()} ends at #2 of" in ran.err
    assert calls()
    assert store.session(imported).leaf_seq != 2


def test_each_program_has_its_own_command(
    sessiondb: Run, store: Store, tmp_path: Path
) -> None:
    there = tmp_path / "it's here"
    commands = {
        "codex": "codex resume 019a",
        "claude": "claude --resume 019a",
        "pi": "pi --session 019a",
        "goose": "goose session --resume --session-id 019a",
        "gemini": "gemini --resume 019a",
        "qwen": "qwen --resume 019a",
    }
    for source, command in commands.items():
        session = ingested(store, source, "019a", there)
        ran = sessiondb("resume", session, "--print")
        assert (ran.code, ran.err) == (0, "")
        assert ran.out == f"cd '{tmp_path}/it'\"'\"'s here' &&\n{command}\n"
        planned = sessiondb("resume", session, "--json").json
        assert (planned["directory"], planned["commands"][-1]) == (
            str(there),
            command.split(),
        )


ANSWERED = {
    "opencode": ("--session 019a", "-m p/it's"),
    "codex": ("resume 019a", "-m it's"),
    "claude": ("--resume 019a", "--model it's"),
    "pi": ("--session 019a", "--provider p --model it's"),
    "oh-my-pi": ("--resume 019a", "--model p/it's"),
    "xcsh": ("--resume 019a", "--model p/it's"),
    "gemini": ("--resume 019a", "-m it's"),
    "qwen": ("--resume 019a", "-m it's"),
    "llm": ("chat --cid 019a", "-m it's"),
    "goose": ("session --resume --session-id 019a", ""),
}


@pytest.mark.parametrize("source", ANSWERED)
def test_a_program_gets_the_model_that_it_answered_with(
    sessiondb: Run, store: Store, tmp_path: Path, source: str
) -> None:
    draft = replace(assistant("Hi", id="m1"), provider_id="p", model_id="it's")
    found = (SourceMessage(draft),)
    session = ingested(store, source, "019a", tmp_path, messages=found)
    options, model = ANSWERED[source]
    continues = sessiondb("resume", session, "--json").json["commands"][-1]
    assert continues[1:] == f"{options} {model}".split()
    printed = sessiondb("resume", session, "--print").out
    assert shlex.split(printed.splitlines()[-1]) == continues


def test_a_model_of_another_program_or_of_no_program_is_not_passed(
    sessiondb: Run, store: Store, tmp_path: Path
) -> None:
    def ends(*args: str) -> list[str]:
        planned = sessiondb("resume", *args, "--json").json
        return planned["commands"][-1][3:]  # type: ignore[no-any-return]

    def answered(name: str, model: str) -> str:
        draft = replace(assistant("Hi", id=f"m-{name}"), model_id=model)
        found = (SourceMessage(draft),)
        return ingested(store, "claude", name, tmp_path, messages=found)

    session = answered("019a", "claude-x")
    assert ends(session) == ["--model", "claude-x"]
    assert ends(session, "--in", "codex") == []
    fork = store.fork(session).id
    assert ends(fork) == ["--model", "claude-x"]
    assert ends(fork, "--in", "pi") == []
    store.append(fork, assistant("Added here"), model="gpt-y")
    assert ends(fork) == []
    for number, name in enumerate(("<synthetic>", "--yolo", "a\nb")):
        assert ends(answered(f"019b{number}", name)) == []


def test_the_head_of_a_fork_names_the_program_that_continues_it(
    sessiondb: Run, store: Store, tmp_path: Path
) -> None:
    found = (SourceMessage(user("Hello", id="m")),)
    session = ingested(store, "claude", "019a", tmp_path, messages=found)
    fork = store.fork(store.fork(session))
    for ref in (session, fork.id):
        assert re.search(r"(?m)^claude( · fork|$)", sessiondb("show", ref).out)
        page = sessiondb("export", ref, "--to", "markdown").out
        assert "**Agent:** claude" in page
    assert store.session(fork).source == "sessiondb"
    # A subagent that was started here is not a session of that program.
    helper = store.create_session(parent=session, relation="subagent").id
    store.append(helper, user("Help"))
    assert "\nsessiondb · subagent of" in sessiondb("show", helper).out


def test_of_two_stores_with_one_id_a_program_continues_only_its_own(
    sessiondb: Run, store: Store, tmp_path: Path
) -> None:
    one = ingested(store, "goose", "20260101_1", tmp_path, namespace="1/a")
    assert sessiondb("resume", one, "--print").code == 0
    ingested(store, "goose", "20260101_1", tmp_path, namespace="2/b")
    ran = sessiondb("resume", one, "--print")
    assert (ran.code, ran.out) == (1, "")
    assert "2 sessions have the id '20260101_1'" in ran.err
    assert f"sessiondb fork {one}" in ran.err


def test_printing_runs_nothing(sessiondb: Run, programs: Any, imported: str) -> None:
    calls = programs("opencode")
    assert OPENCODE_ID in sessiondb("resume", imported, "--print").out
    assert sessiondb("resume", imported, "--in", "opencode2", "--print").code == 0
    assert calls() == []


def test_a_program_that_is_not_installed_is_two_lines(
    sessiondb: Run, imported: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    ran = sessiondb("resume", imported)
    assert (ran.code, ran.out) == (1, "")
    failed, hint = ran.err.splitlines()
    assert failed.startswith("sessiondb: opencode is not installed")
    assert "--print" in hint


def test_a_directory_that_is_gone_is_two_lines(
    sessiondb: Run, programs: Any, imported: str, project: Path, store: Store
) -> None:
    calls = programs("opencode")
    project.rename(project.with_name("moved"))
    ran = sessiondb("resume", imported)
    assert ran.code == 3
    failed, hint = ran.err.splitlines()
    assert str(project) in failed
    assert "relink" in hint
    assert calls() == []


def test_a_session_of_no_program_gets_a_hint(
    sessiondb: Run, store: Store, tmp_path: Path
) -> None:
    own = store.create_session(title="Of my own agent")
    store.append(own, user("Hello"))
    aider = ingested(store, "aider", "run-1", tmp_path)
    helper = ingested(store, "claude", "0b1c/agent-1", tmp_path)
    option = ingested(store, "codex", "--yolo", tmp_path)
    for session in (own.id, aider, helper, option):
        ran = sessiondb("resume", session, "--print")
        assert (ran.code, ran.out) == (2, "")
        assert len(ran.err.splitlines()) == 2
        assert f"resume {session} --in opencode" in ran.err
    # Nor is it written again for the program, to be continued by that id.
    assert sessiondb("resume", option, "--in", "codex", "--print").code == 2


def test_resuming_in_an_unsupported_program_is_refused(
    sessiondb: Run, imported: str
) -> None:
    ran = sessiondb("resume", imported, "--in", "gemini")
    assert (ran.code, len(ran.err.splitlines())) == (2, 2)
    assert "reads sessions of Gemini CLI, and cannot write them" in ran.err
    assert "--in opencode" in ran.err
    assert sessiondb("resume", imported, "--in", "emacs").code == 2


@pytest.mark.parametrize(
    ("tool", "taking"),
    [
        ("opencode", ["import"]),
        ("opencode2", ["session", "import", "--directory", "<directory>"]),
    ],
)
def test_a_session_of_our_own_is_taken_to_opencode(
    process: Run, programs: Any, store: Store, project: Path, tmp_path: Path,
    *, tool: str, taking: list[str],
) -> None:  # fmt: skip
    session = store.create_session(title="Born here")
    store.append(session, user("Hello"))
    calls = programs("opencode")
    ran = process("resume", session.id, "--in", tool, cwd=tmp_path)
    assert (ran.code, ran.out) == (0, "")
    (taken_in, taken), (gone_on_in, gone_on) = calls()
    taking = [str(project) if word == "<directory>" else word for word in taking]
    assert (taken_in, taken[:-1], gone_on_in) == (str(project), taking, str(project))
    assert not os.path.exists(taken[-1]), "nothing of it is left behind"
    info = json.loads((tmp_path / "bin" / "taken.json").read_text())["info"]
    assert gone_on == ["--session", info["id"]]
    assert info["title"] == "Born here"


def test_the_last_session_of_a_program_needs_no_ref(
    sessiondb: Run, store: Store, project: Path
) -> None:
    sessions = {
        source: ingested(
            store, source, f"s-{source}", project,
            messages=(SourceMessage(user("Hello", id=f"m-{source}")),),
        )
        for source in ("codex", "claude")
    }  # fmt: skip
    ran = sessiondb("resume", "--source", "codex", "--in", "claude", "--json")
    assert ran.json["session"]["id"] == sessions["codex"]
    ran = sessiondb("resume", "--source", "goose")
    assert (ran.code, "no session of 'goose' in this project" in ran.err) == (3, True)
    ran = sessiondb("resume", sessions["codex"], "--source", "codex")
    assert (ran.code, ran.out) == (2, "")


def test_subagents_that_are_not_taken_along_are_reported(
    sessiondb: Run, store: Store
) -> None:
    session = store.create_session(title="Born here")
    store.append(session, user("Hello"))
    store.create_session(parent=session, relation="subagent")
    fork = store.fork(session)
    ran = sessiondb("resume", session.id, "--in", "pi", "--print")
    assert ran.code == 0
    assert ran.err.splitlines() == [
        "left out: 1 subagent of this session", "continues: 1 prompt",
    ]  # fmt: skip
    ran = sessiondb("resume", fork.id, "--in", "codex", "--print")
    assert ran.err.splitlines() == [
        "continues: 1 prompt", "stays here: its relation to another session",
    ]  # fmt: skip
    ran = sessiondb("-v", "resume", fork.id, "--in", "codex", "--print")
    assert f"{fork.id}: lost: its relation to another session" in ran.err


def test_records_of_the_program_that_stay_behind_are_named_with_v_alone(
    sessiondb: Run, store: Store
) -> None:
    session = store.create_session(title="Born here", version="1.0")
    store.append(session, user("Hello"))
    store.append(session, event("rate_limits"))
    store.append(session, assistant(part("step-start"), "Hello", reasoning("Polite.")))
    ran = sessiondb("resume", session.id, "--in", "claude", "--print")
    assert ran.err.splitlines() == [
        "continues: 1 prompt, 1 answer",
        "stays here: 1 thought in answers, records of its program (-v: all of it)",
    ]
    for verbose in (("-v", "resume"), ("resume", "-v")):
        ran = sessiondb(*verbose, session.id, "--in", "claude", "--print")
        assert "step-start" in ran.err
        assert "rate_limits" in ran.err
        assert "stays here" not in ran.err


def test_the_steps_that_are_printed_do_the_same_by_hand(
    sessiondb: Run, programs: Any, store: Store, project: Path, tmp_path: Path
) -> None:
    session = store.create_session(title="Born here")
    store.append(session, user("Hello"))
    calls = programs("opencode")
    ran = sessiondb("resume", session.id, "--in", "opencode", "--print")
    export, entered, *rest = ran.out.rstrip("\n").split(" &&\n")
    assert sessiondb(*export.split()[1:]).code == 0
    subprocess.run(["sh", "-c", " && ".join([entered, *rest])], check=True)
    Path(export.split()[-1]).unlink()
    assert [where for where, _ in calls()] == [str(project)] * 2
    info = json.loads((tmp_path / "bin" / "taken.json").read_text())["info"]
    assert calls()[1][1] == ["--session", info["id"]]


# -- programs whose sessions are files in their own store ------------------------------


@pytest.fixture
def agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that pi keeps its sessions in; it does not exist yet."""
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex home"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude home"))
    monkeypatch.setenv("PI_CODING_AGENT_DIR", str(tmp_path / "pi agent"))
    return tmp_path / "pi agent"


def born_here(store: Store) -> Any:
    session = store.create_session(title="Born here")
    store.append(session, user("Hello"))
    store.append(session, assistant("Hi"))
    return session


def test_a_session_becomes_a_new_log_of_pi_which_continues_it(
    process: Run, programs: Any, store: Store, agents: Path, project: Path
) -> None:
    session = born_here(store)
    calls = programs("pi")
    ran = process("resume", session.id, "--in", "pi")
    assert (ran.code, ran.out, ran.err) == (
        0, "", "continues: 1 prompt, 1 answer\n",
    )  # fmt: skip
    (log,) = agents.rglob("*.jsonl")
    below = str(project)[1:].replace("/", "-")
    assert log.parent == agents / "sessions" / f"--{below}--"
    assert log.stat().st_mode & 0o777 == 0o600
    header = json.loads(log.read_text().splitlines()[0])
    assert (header["type"], header["cwd"]) == ("session", str(project))
    assert UUID(header["id"])
    assert calls() == [(str(project), ["--session", header["id"]])]


#: The words before the id of a session with which a program continues it.
OPTIONS = {"codex": "resume", "pi": "--session"}


@pytest.mark.parametrize("source", OPTIONS)
def test_a_session_that_its_program_has_lost_is_written_for_it_again(
    process: Run, programs: Any, store: Store, agents: Path, source: str
) -> None:
    home = {"codex": agents.with_name("codex home"), "pi": agents}[source]
    project = Path.cwd()
    name = "01a1f9a8-0000-7000-8000-000000000001"
    session = ingested(store, source, name, project)
    calls = programs(source)
    for _ in range(2):
        ran = process("resume", session, "--in", source)
        assert (ran.code, ran.out, ran.err) == (0, "", "")
        (log,) = home.rglob("*.jsonl")
        # Wherever the program has it, it is not written a second time.
        if log.parent.name != "moved":
            (home / "sessions" / "moved").mkdir()
            log = log.rename(home / "sessions" / "moved" / log.name)
    header = json.loads(log.read_text().splitlines()[0])
    assert header.get("payload", header)["id"] == name
    assert calls() == [(str(project), [OPTIONS[source], name])] * 2


def test_a_log_of_pi_without_a_header_is_not_a_session_of_it(
    process: Run, programs: Any, store: Store, project: Path, agents: Path
) -> None:
    name = "01a1f9a8-0000-7000-8000-000000000001"
    session = ingested(store, "pi", name, project)
    programs("pi")
    broken = (
        agents / "sessions" / "--other--" / f"2026-02-02T02-40-00-000Z_{name}.jsonl"
    )
    broken.parent.mkdir(parents=True)
    broken.write_text('{"type":"message","id":"1","parentId":null}\n')
    plan = process("resume", session, "--in", "pi", "--json").json
    assert len(plan["commands"]) == 4


def test_a_transcript_from_another_machine_is_written_for_claude_code_once(
    process: Run, programs: Any, store: Store, project: Path, agents: Path
) -> None:
    name = "01a1f9a8-0000-4000-8000-000000000001"
    said = SourceMessage(user("Hello", id="01a1f9a8-0000-4000-8000-000000000002"))
    session = ingested(store, "claude", name, project, messages=(said,))
    calls = programs("claude")
    # Then Claude Code has it, and continues what is its own.
    for told in ("continues: 1 prompt\n", ""):
        ran = process("resume", session, "--in", "claude")
        assert (ran.code, ran.out, ran.err) == (0, "", told)
    (log,) = agents.with_name("claude home").rglob("*.jsonl")
    assert log.name == f"{name}.jsonl"
    assert calls() == [(str(project), ["--resume", name])] * 2


def test_a_file_of_the_program_is_never_written_again(
    process: Run, programs: Any, store: Store, agents: Path
) -> None:
    session = born_here(store)
    calls = programs("pi")
    process("resume", session.id, "--in", "pi")
    (log,) = agents.rglob("*.jsonl")
    with log.open("a") as file:
        file.write('{"type":"message"}\n')
    before = log.read_bytes()

    again = process("resume", session.id, "--in", "pi")
    assert (again.code, len(again.err.splitlines())) == (0, 1)
    assert calls()[0] == calls()[1]
    # What stayed here is still known.
    named = process("resume", session.id, "--in", "pi", "-v", "--print").err
    assert named.splitlines()[1:] == ["continues: 1 prompt, 1 answer"]

    store.append(session, user("Only here"))
    other = process("resume", session.id, "--in", "pi")
    assert (other.code, len(other.err.splitlines())) == (1, 2)
    assert "pi --session" in other.err
    assert (log.read_bytes(), len(calls())) == (before, 2)
    assert [log] == list(agents.rglob("*.jsonl"))


def test_a_file_that_another_resume_wrote_first_is_continued(
    sessiondb: Run,
    store: Store,
    programs: Any,
    agents: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    programs("pi")
    monkeypatch.setenv("PWD", str(Path.cwd()))
    ran: list[list[str]] = []
    monkeypatch.setattr(os, "execvp", lambda _, command: ran.append(command))
    session = born_here(store)
    assert sessiondb("resume", session.id, "--in", "pi").code == 0
    (log,) = agents.rglob("*.jsonl")

    # The look before the file is written finds nothing.
    looks = [False]
    is_taken = Plan.is_taken
    monkeypatch.setattr(
        Plan, "is_taken", lambda plan: looks.pop() if looks else is_taken(plan)
    )
    again = sessiondb("resume", session.id, "--in", "pi")
    assert (again.code, again.err.splitlines()) == (
        0,
        [
            "continues: 1 prompt, 1 answer",
            f"already there, so it is continued: {log}",
        ],
    )
    assert ran[0] == ran[1]


def test_a_link_in_the_store_of_the_program_is_not_followed(
    process: Run, programs: Any, store: Store, agents: Path, tmp_path: Path
) -> None:
    session = born_here(store)
    programs("pi")
    plan = process("resume", session.id, "--in", "pi", "--json").json
    log = Path(plan["commands"][1][-1])
    log.parent.mkdir(parents=True)
    log.symlink_to(tmp_path / "elsewhere")
    assert process("resume", session.id, "--in", "pi").code == 1
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("kind", ["pipe", "folder", "link", "socket"])
def test_a_place_with_anything_else_than_a_file_is_refused_at_once(
    sessiondb: Run, programs: Any, store: Store, agents: Path, kind: str
) -> None:
    session = born_here(store)
    calls = programs("pi")
    plan = sessiondb("resume", session.id, "--in", "pi", "--json").json
    log = Path(plan["commands"][1][-1])
    log.parent.mkdir(parents=True)
    if kind == "pipe":
        os.mkfifo(log)
    elif kind == "folder":
        log.mkdir()
    elif kind == "link":
        log.symlink_to(os.devnull)
    else:
        os.mknod(log, stat.S_IFSOCK | 0o600)
    for more in ([], ["--print"]):
        ran = sessiondb("resume", session.id, "--in", "pi", *more)
        failed, hint = ran.err.splitlines()
        assert (ran.code, ran.out) == (1, "")
        assert f"the store of pi: {log} is a {kind}" in failed
        assert "changed since" not in ran.err
        assert f"resume {session.id} --in" in hint
        assert "--in pi" not in hint
    assert calls() == []


def test_a_file_that_may_not_be_read_is_not_reported_as_changed(
    sessiondb: Run, store: Store, programs: Any, agents: Path
) -> None:
    session = born_here(store)
    programs("pi")
    plan = sessiondb("resume", session.id, "--in", "pi", "--json").json
    log = Path(plan["commands"][1][-1])
    log.parent.mkdir(parents=True)
    log.touch()
    log.chmod(0)
    with permissions_hold():
        ran = sessiondb("resume", session.id, "--in", "pi", "--print")
    assert (ran.code, ran.out) == (1, "")
    assert "Permission denied" in ran.err
    assert "changed since" not in ran.err


def test_the_steps_for_a_store_of_files_do_the_same_by_hand(
    sessiondb: Run, programs: Any, store: Store, agents: Path, project: Path
) -> None:
    session = born_here(store)
    calls = programs("pi")
    commands = sessiondb("resume", session.id, "--in", "pi", "--json").json["commands"]
    assert not agents.exists()
    made, exported, entered, continued = commands
    assert (made[:2], entered) == (["mkdir", "-p"], ["cd", str(project)])
    assert exported[-2] == "-o"
    Path(made[2]).mkdir(parents=True)
    assert sessiondb(*exported[1:]).code == 0
    subprocess.run(continued, check=True)
    (log,) = agents.rglob("*.jsonl")
    assert calls()[0][1][1] == json.loads(log.read_text().splitlines()[0])["id"]
    # The export wrote the same log: it is found, not written again.
    assert sessiondb("resume", session.id, "--in", "pi", "--print").code == 0


def test_a_log_of_a_program_that_descends_from_it_is_not_doubled(
    sessiondb: Run, store: Store, agents: Path, tmp_path: Path
) -> None:
    session = ingested(store, "oh-my-pi", "0198aa", tmp_path)
    ran = sessiondb("resume", session, "--in", "pi", "--print")
    assert (ran.code, len(ran.err.splitlines())) == (2, 2)
    fork = store.fork(session).id
    assert sessiondb("resume", fork, "--in", "pi", "--print").code == 0
    assert not agents.exists()

    theirs = ingested(store, "pi", "0198bb", tmp_path)
    for descendant in ("oh-my-pi", "xcsh"):
        assert sessiondb("resume", theirs, "--in", descendant, "--print").code == 2


@pytest.mark.parametrize(
    ("program", "command"), [("oh-my-pi", "omp"), ("xcsh", "xcsh")]
)
def test_a_session_becomes_a_new_log_of_a_descendant_of_pi(
    process: Run, programs: Any, store: Store, program: str, command: str
) -> None:
    session = born_here(store)
    calls = programs(command)
    assert process("resume", session.id, "--in", program).code == 0
    (log,) = (Path.home() / f".{command}" / "agent" / "sessions").rglob("*.jsonl")
    (header, *_) = map(json.loads, log.read_text().splitlines())
    directory = store.session(session).directory
    assert calls() == [(directory, ["--resume", header["id"]])]
    assert header["cwd"] == directory


def test_sessions_are_taken_wherever_an_exporter_says_how(sessiondb: Run) -> None:
    found = handover_targets()
    assert {"opencode", "opencode2", "pi"} <= set(found)
    assert not {"markdown", "html", "jsonl", "sessiondb"} & set(found)
    known = sessiondb("resume", "--in", "emacs").err
    described = sessiondb("resume", "--help").out
    assert all(name in known and name in described for name in found)


def test_messages_added_here_since_the_import_are_reported(
    sessiondb: Run, imported: str, store: Store
) -> None:
    store.append(imported, user("Only here"))
    ran = sessiondb("resume", imported, "--print")
    assert ran.code == 0
    assert "opencode does not see" in ran.err
    assert "sessiondb fork" in ran.err


def test_a_failed_import_is_reported_and_nothing_is_started(
    process: Run, programs: Any, store: Store
) -> None:
    session = store.create_session(title="Born here")
    store.append(session, user("Hello"))
    for program, tool, other in (
        ("opencode import", "opencode", "opencode2"),
        ("opencode session import --directory", "opencode2", "opencode"),
        ("goose session import", "goose", "opencode"),
    ):
        calls = programs(program.split()[0], exit_code=7)
        before = len(calls())
        ran = process("resume", session.id, "--in", tool)
        assert ran.code == 1
        assert f"`{program}" in ran.err
        assert "failed with exit code 7" in ran.err
        assert f"resume {session.id} --in {other}`" in ran.err
        assert len(calls()) == before + 1


def test_a_directory_that_would_write_on_the_terminal_is_escaped(
    sessiondb: Run, store: Store
) -> None:
    session = ingested(store, "codex", "019a", Path("/tmp/red\x1b[31m'"))
    ran = sessiondb("resume", session, "--print")
    assert ran.out.startswith("cd $'/tmp/red\\U0000001b[31m\\U00000027' &&")
