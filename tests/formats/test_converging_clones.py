"""Clones that change the same sessions converge, and then nothing more is written."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from converging import Clone, exchanged, pushed_and_pulled, run_git, state, synced

from sessiondb import Store, user
from sessiondb.location import init_local
from sessiondb.maintenance import check
from sessiondb.maintenance.sync import sync

pytestmark = pytest.mark.slow

LONG = bool(os.environ.get("SESSIONDB_LONG"))


@contextmanager
def clones(tmp_path: Path, seed: int, *, git: bool) -> Iterator[list[Clone]]:
    """Make three clones that share two sessions."""
    chance = random.Random(seed)
    with ExitStack() as stack:
        found: list[Clone] = []
        if git:
            run_git(tmp_path, "init", "-q", "--bare", "-b", "main", "hub.git")
        for name in ("ada", "bob", "eve"):
            folder = tmp_path / name
            if git:
                run_git(tmp_path, "clone", "-q", str(tmp_path / "hub.git"), name)
                run_git(folder, "checkout", "-q", "-B", "main")
                if name == "ada":
                    run_git(folder, "commit", "-q", "--allow-empty", "-m", "first")
                    run_git(folder, "push", "-q", "-u", "origin", "main")
                else:
                    run_git(folder, "pull", "-q", "origin", "main")
            else:
                folder.mkdir()
            store = Store.open(init_local(folder).path, durability="normal", cwd=folder)
            found.append(Clone(folder, stack.enter_context(store), chance))
        for title in ("one", "two"):
            session = found[0].store.create_session(title=title)
            found[0].store.append(session, user("start"))
        yield found


def at_rest(found: list[Clone]) -> None:
    """Assert that all clones agree, that nothing is wrong, and that nothing is left to write."""
    first = state(found[0].store)
    for clone in found[1:]:
        assert state(clone.store) == first, found[0].done
    for clone in found:
        assert check(clone.store) == [], found[0].done


def run(found: list[Clone], exchange: int, *, delete: bool) -> None:
    chance = found[0].chance
    for clone in found:
        clone.done = found[0].done
    for _ in range(exchange):
        for clone in found:
            for _ in range(chance.randint(0, 4)):
                clone.act(delete=delete)
        here, there = chance.sample(found, 2)
        exchanged(here, there)
        found[0].done.append(f"{here.root.name} <- {there.root.name}")


EDITS: dict[str, Callable[[Store, str, str], object]] = {
    "title": lambda store, name, word: store.set_title(name, word),
    "label": lambda store, name, word: store.label(name, 1, word),
    "metadata": lambda store, name, word: store.set_metadata(name, {word: 1}),
    "todos": lambda store, name, word: store.set_todos(name, [word]),
}


@pytest.mark.parametrize(
    ("one", "other"), [("title", "title"), ("title", "label"), ("metadata", "todos")]
)
def test_two_clones_that_each_change_one_thing_agree_and_a_later_archive_is_kept(
    tmp_path: Path, one: str, other: str
) -> None:
    with clones(tmp_path, 0, git=False) as (ada, bob, _):
        exchanged(bob, ada)
        name = ada.store.sessions(empty=True).items[0].id
        EDITS[one](ada.store, name, "ada's")
        EDITS[other](bob.store, name, "bob's")
        assert ada.store.session(name).revision == bob.store.session(name).revision
        for _ in range(2):
            exchanged(bob, ada)
            exchanged(ada, bob)
        at_rest([ada, bob])
        ada.store.archive(name)
        EDITS[other](bob.store, name, "again")
        for _ in range(2):
            exchanged(bob, ada)
            exchanged(ada, bob)
        at_rest([ada, bob])
        assert bob.store.session(name).time_archived is not None
        if one == "title" != other:
            assert bob.store.session(name).title == "ada's"


@pytest.mark.parametrize("seed", range(200 if LONG else 6))
def test_clones_that_exchange_their_logs_end_with_the_same(
    tmp_path: Path, seed: int
) -> None:
    with clones(tmp_path, seed, git=False) as found:
        ada, bob, eve = found
        run(found, 5, delete=seed % 2 == 1)
        for _ in range(4):
            for here, there in ((bob, ada), (eve, bob), (ada, eve)):
                exchanged(here, there)
        at_rest(found)
        for clone in found:
            assert sync(clone.store).written == [], ada.done


@pytest.mark.parametrize("seed", range(200 if LONG else 1))
def test_three_git_clones_end_with_the_same(
    git: str, tmp_path: Path, seed: int
) -> None:
    with clones(tmp_path, seed, git=True) as found:
        chance = found[0].chance
        for _ in range(3):
            for clone in found:
                clone.done = found[0].done
                for _ in range(chance.randint(0, 4)):
                    clone.act(delete=seed % 2 == 1)
                if chance.random() < 0.5:
                    synced(clone)
            pushed_and_pulled(chance.choice(found))
        for _ in range(4):
            for clone in found:
                pushed_and_pulled(clone)
        at_rest(found)
