"""The hints of `resume`: each is typed, for every agent and every kind of session."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import Ran, Run
from test_cli_hints import typed

from sessiondb import Store, user
from sessiondb.formats.registry import (
    handover_targets,
    importable_programs,
    resume_commands,
)
from sessiondb.model import SourceMessage, SourceSession

pytestmark = pytest.mark.slow

LONG = bool(os.environ.get("SESSIONDB_LONG"))
#: One that imports files, one with a store of files, one of a family, one that continues
#: only its own sessions, and one that continues none.
AGENTS = ["opencode", "claude", "oh-my-pi", "gemini", "aider"]
if LONG:
    AGENTS = [*importable_programs(), "an agent of my own"]
#: How many hints may follow each other until one leads to a program.
STEPS = 3


def ingested(
    store: Store, agent: str, name: str, *, namespace: str = "", is_empty: bool = False
) -> str:
    said = SourceMessage(user("Hello", id="01a1f9a8-0000-4000-8000-000000000002"))
    session = SourceSession(
        source=agent, source_id=name, namespace=namespace, title="There", path=name, digest="1",
        directory=str(Path.cwd()), time_created=1, messages=() if is_empty else (said,),
    )  # fmt: skip
    (result,) = store.ingest([session])
    return str(result.id)  # type: ignore[union-attr]


def imported(store: Store, agent: str) -> str:
    return ingested(store, agent, f"0b1c-{agent}")


def without_messages(store: Store, agent: str) -> str:
    return ingested(store, agent, f"0b1d-{agent}", is_empty=True)


def named_like_an_option(store: Store, agent: str) -> str:
    return ingested(store, agent, f"--yolo-{agent}")


def named_like_a_path(store: Store, agent: str) -> str:
    return ingested(store, agent, f"0b1e/{agent}")


def of_two_stores(store: Store, agent: str) -> str:
    ingested(store, agent, f"0b1f-{agent}", namespace="1/a")
    return ingested(store, agent, f"0b1f-{agent}", namespace="2/b")


def with_messages_of_ours(store: Store, agent: str) -> str:
    session = ingested(store, agent, f"0b20-{agent}")
    store.append(session, user("Only here"))
    return session


def fork_made_here(store: Store, agent: str) -> str:
    return store.fork(imported(store, agent)).id


def fork_of_a_fork(store: Store, agent: str) -> str:
    return store.fork(fork_made_here(store, agent)).id


def fork_without_messages(store: Store, agent: str) -> str:
    return store.fork(without_messages(store, agent)).id


def subagent_made_here(store: Store, agent: str) -> str:
    parent = imported(store, agent)
    session = store.create_session(parent=parent, relation="subagent")
    store.append(session, user("Look around"))
    return session.id


def archived(store: Store, agent: str) -> str:
    session = fork_made_here(store, agent)
    store.archive(session)
    return session


KINDS: list[Callable[[Store, str], str]] = [
    imported, without_messages, named_like_an_option, named_like_a_path, of_two_stores,
    with_messages_of_ours, fork_made_here, fork_of_a_fork, fork_without_messages,
    subagent_made_here, archived,
]  # fmt: skip


def followed(sessiondb: Run, ran: Ran, words: list[str]) -> None:
    """Type the command of each hint until one succeeds, and what it promises of a copy."""
    typed_before = [words]
    while ran.code:
        (hint,) = typed(ran.err)
        assert hint not in typed_before, f"{hint} leads nowhere: {ran.err}"
        assert len(typed_before) < STEPS, typed_before
        typed_before.append(hint)
        is_fork = hint[0] == "fork"
        program = re.search(r"a copy that --in (\S+) can take there", ran.err)
        promised = ["--in", program[1] if program else "claude"]
        ran = sessiondb(*hint, *([] if is_fork else ["--print"]))
        assert "Traceback" not in ran.err
        if is_fork and ran.code == 0:
            ran = sessiondb("resume", ran.out.split()[0], *promised, "--print")
            assert ran.code == 0, (typed_before, ran.err)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_the_hints_of_resume_lead_to_a_program_that_continues_it(
    sessiondb: Run, store: Store, kind: Callable[[Store, str], str]
) -> None:
    for agent in AGENTS:
        session = kind(store, agent)
        ways: list[list[str]] = [[]]
        if LONG:
            ways += [["--in", program] for program in handover_targets()]
        elif agent in handover_targets():
            ways.append(["--in", agent])
        for way in ways:
            words = ["resume", session, *way]
            followed(sessiondb, sessiondb(*words, "--print"), words)


@pytest.mark.parametrize(
    "agent", [name for name in resume_commands() if name in handover_targets()]
)
def test_a_fork_is_continued_in_the_program_of_its_original(
    sessiondb: Run, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, agent: str
) -> None:  # fmt: skip
    monkeypatch.setenv("PATH", str(tmp_path))
    fork = fork_made_here(store, agent)
    alone = sessiondb("resume", fork, "--print")
    assert alone.code == 0
    named = sessiondb("resume", fork, "--in", agent, "--print")
    assert without_times(alone.out) == without_times(named.out)

    # Where only another program is installed, that one continues it.
    other = "codex" if agent == "claude" else "claude"
    (tmp_path / other).write_text("#!/bin/sh\n")
    (tmp_path / other).chmod(0o755)
    assert typed_here(sessiondb("resume", fork)) == f"resume {fork} --in {other}"


def without_times(printed: str) -> list[str]:
    """Return words, without ids and names of files, which the moment is part of."""
    return [word for word in printed.split() if not re.search(r"\d{4}", word)]


def typed_here(ran: Ran) -> str:
    """Return the words after ``sessiondb`` of the only command in a hint."""
    return ran.err.partition("`sessiondb ")[2].partition("`")[0]
