"""Clones of a project that change the same sessions, delete them, and exchange logs by git."""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from converging import Clone, pushed_and_pulled, run_git, state, synced

from sessiondb import Store, user
from sessiondb.location import init_local
from sessiondb.maintenance.check import check

NAMES = ("ada", "bob", "eve")


def converge(folder: Path, chance: random.Random) -> Iterator[str]:
    """Let three clones work and be killed while they sync; yield what does not agree."""
    with contextlib.ExitStack() as stack:
        clones = [stack.enter_context(_clone(folder, name, chance)) for name in NAMES]
        for clone in clones:
            clone.done = clones[0].done
        for title in ("one", "two"):
            session = clones[0].store.create_session(title=title)
            clones[0].store.append(session, user("start"))

        for _ in range(3):
            for clone in clones:
                for _ in range(chance.randint(0, 4)):
                    clone.act(delete=True)
                if chance.random() < 0.5:
                    _kill_while_it_syncs(clone, chance)
            pushed_and_pulled(chance.choice(clones))
        for _ in range(4):
            for clone in clones:
                pushed_and_pulled(clone)
        yield from _differences(clones)


@contextlib.contextmanager
def _clone(folder: Path, name: str, chance: random.Random) -> Iterator[Clone]:
    hub = folder / "hub.git"
    is_first = not hub.exists()
    if is_first:
        run_git(folder, "init", "-q", "--bare", "-b", "main", "hub.git")
    run_git(folder, "clone", "-q", str(hub), name)
    root = folder / name
    run_git(root, "checkout", "-q", "-B", "main")
    if is_first:
        run_git(root, "commit", "-q", "--allow-empty", "-m", "first")
        run_git(root, "push", "-q", "-u", "origin", "main")
    else:
        run_git(root, "pull", "-q", "origin", "main")
    path = init_local(root).path
    with Store.open(path, durability="normal", cwd=root) as store:
        yield Clone(root, store, chance)


def _kill_while_it_syncs(clone: Clone, chance: random.Random) -> None:
    """Kill a program that syncs, at any point; the next sync completes it."""
    with subprocess.Popen(
        [sys.executable, "-m", "sessiondb", "--local", "sync"],
        cwd=clone.root,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as syncing:
        time.sleep(chance.uniform(0.1, 0.8))
        syncing.kill()
    synced(clone)


def _differences(clones: list[Clone]) -> Iterator[str]:
    first, *others = clones
    expected = state(first.store)
    for clone in others:
        if state(clone.store) != expected:
            yield f"{clone.root.name} and {first.root.name} differ after {first.done}"
    for clone in clones:
        for finding in check(clone.store):
            yield f"check of {clone.root.name}: {finding}"


def surroundings(home: Path) -> dict[str, str]:
    """Return the variables with which git and sessiondb find nothing of a person."""
    people = {
        f"GIT_{role}_{what}": value
        for role in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", "Ada"), ("EMAIL", "ada@example.org"))
    }
    return {**os.environ, **people, "HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1"}
