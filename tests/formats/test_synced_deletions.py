"""A session deleted in one clone is deleted in the others, unless one of them continues it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from converging import Clone, exchanged, state, synced, two_clones
from jsonl_tables import outcomes, read_into

from sessiondb import Store, user
from sessiondb.cli.app import app
from sessiondb.errors import NotFoundError
from sessiondb.formats import find
from sessiondb.location import init_local
from sessiondb.maintenance import check
from sessiondb.maintenance.sync import sync
from sessiondb.model import SourceSession

pytestmark = pytest.mark.slow

Two = tuple[Clone, Clone, str]


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Two]:
    """Return two clones that have the same session."""
    with two_clones(tmp_path, ("start",)) as clones:
        yield clones


def at_rest(ada: Clone, bob: Clone) -> None:
    for _ in range(3):
        exchanged(ada, bob)
        exchanged(bob, ada)
    assert state(ada.store) == state(bob.store)
    assert check(ada.store) == check(bob.store) == []
    assert sync(ada.store).written == sync(bob.store).written == []


def test_a_deletion_reaches_the_other_clone_and_the_log_keeps_everything(
    shared: Two,
) -> None:
    ada, bob, session = shared
    ada.store.delete(session)
    exchanged(bob, ada)
    with pytest.raises(NotFoundError):
        bob.store.session(session)
    assert '"text":"start"' in (bob.logs / f"{session}.jsonl").read_text()
    at_rest(ada, bob)
    assert state(ada.store) == {}

    ran = CliRunner().invoke(
        app, ["--db", str(bob.store.path), "import", "--restore", str(bob.logs)]
    )
    assert ran.exit_code == 0, ran.output
    at_rest(ada, bob)
    assert [m.text for m in ada.store.messages(session)] == ["start"]


def test_a_restore_that_was_interrupted_is_completed_and_newer_than_the_deletion(
    shared: Two,
) -> None:
    ada, bob, session = shared
    with ada.store.effects() as fx:
        for number in range(600):
            fx.append(session, user(f"{number}"))
    for number in range(3):
        ada.store.set_title(session, f"title {number}")
    exchanged(ada, bob)
    exchanged(bob, ada)
    ada.store.delete(session)
    exchanged(bob, ada)
    log = bob.logs / f"{session}.jsonl"

    def broken(given: SourceSession) -> SourceSession:
        def messages() -> Iterator[Any]:
            yield from islice(given.messages, 550)
            raise KeyboardInterrupt

        return replace(given, messages=messages())

    (found,) = find(log)
    sessions = (broken(x) for x in found.read() if isinstance(x, SourceSession))
    with pytest.raises(KeyboardInterrupt):
        list(bob.store.ingest(sessions, undelete=True))
    assert set(outcomes(read_into(bob.store, log, undelete=True))) == {"imported"}
    at_rest(ada, bob)
    assert len(ada.store.messages(session)) == 601


def test_a_session_continued_by_one_user_is_kept_for_all(shared: Two) -> None:
    ada, bob, session = shared
    for number in range(9):
        ada.store.set_title(session, f"title {number}")
    ada.store.delete(session)
    bob.store.append(session, user("I go on"))
    at_rest(ada, bob)
    assert [m.text for m in ada.store.messages(session)] == ["start", "I go on"]
    assert ada.store.session(session).title in ("Shared", "title 8")


@pytest.mark.parametrize("synced_before", [False, True])
def test_an_edit_that_the_deletion_had_not_seen_keeps_it(
    shared: Two, synced_before: bool
) -> None:
    ada, bob, session = shared
    bob.store.set_title(session, "Edited")
    bob.store.archive(session)
    if synced_before:
        synced(bob)
    ada.store.delete(session)
    at_rest(ada, bob)
    assert ada.store.session(session).title == "Edited"
    assert ada.store.session(session).time_archived is not None


def test_a_fork_that_the_deletion_had_not_seen_stays_without_its_parent(
    shared: Two,
) -> None:
    ada, bob, session = shared
    fork = bob.store.fork(session).id
    helper = bob.store.create_session(parent=fork, title="helper").id
    bob.store.append(fork, user("in the fork"))
    revision = bob.store.session(session).revision
    for _ in range(revision):
        ada.store.set_metadata(session, {"a": 1})
    synced(ada)
    ada.store.delete(session)
    at_rest(ada, bob)
    assert [m.text for m in ada.store.messages(fork)] == ["start", "in the fork"]
    assert ada.store.session(helper).parent_id == fork


def test_a_clone_that_never_had_it_does_not_get_a_deleted_session(
    shared: Two, tmp_path: Path
) -> None:
    ada, _, session = shared
    ada.store.delete(session)
    synced(ada)
    folder = tmp_path / "eve"
    folder.mkdir()
    with Store.open(init_local(folder).path, cwd=folder) as store:
        eve = Clone(folder, store, random.Random(0))
        eve.logs.mkdir(parents=True)
        log = ada.logs / f"{session}.jsonl"
        (eve.logs / log.name).write_bytes(log.read_bytes())
        done = sync(store)
        assert [x.outcome for x in done.read] == ["deleted"]
        assert (state(store), done.written, done.problems) == ({}, [], [])


def test_the_command_says_what_others_removed(
    shared: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada, bob, session = shared
    ada.store.delete(session)
    synced(ada)
    log = f"{session}.jsonl"
    (bob.logs / log).write_bytes((ada.logs / log).read_bytes())
    monkeypatch.chdir(bob.root)
    ran = CliRunner().invoke(app, ["sync"])
    assert ran.exit_code == 0, ran.output
    assert "1 session removed here because others removed" in ran.stderr
    assert f"`sessiondb import --restore {bob.logs}`" in ran.stderr
    assert bob.store.sessions().items == ()
