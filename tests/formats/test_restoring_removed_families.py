"""Sessions removed with a bundle come back unchanged, in any order."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from jsonl_tables import bundle, log, outcomes, read_into

from sessiondb import Store, assistant, user
from sessiondb.maintenance import check
from sessiondb.repository.sessions import ALL


@dataclass
class Bundles:
    """The bundles of one store's removals."""

    store: Store
    folder: Path
    paths: list[Path] = field(default_factory=list)

    def remove(self, name: str, keep_forks: bool) -> None:
        plan = self.store.plan_delete(name, keep_forks=keep_forks)
        path = self.folder / f"{len(self.paths)}.jsonl"
        path.write_text(bundle(self.store, [session.id for session in plan.sessions]))
        self.paths.append(path)
        self.store.delete(name, keep_forks=keep_forks)

    def restore(self, path: Path) -> None:
        assert set(outcomes(read_into(self.store, path, undelete=True))) <= {
            "imported",
            "unchanged",
        }


def everything(store: Store) -> dict[str, str]:
    found = store.sessions(
        project=ALL, subagents=True, archived=True, empty=True, limit=1000
    )
    return {session.id: log(store, session.id) for session in found}


def test_a_parent_restored_after_its_forks_were_kept_is_their_parent_again(
    store: Store, tmp_path: Path
) -> None:
    parent = store.create_session(title="Parent").id
    store.append(parent, user("unmistakable question"))
    store.append(parent, assistant("answer"), cost=1.0)
    forks = [store.fork(parent).id for _ in range(2)]
    for fork in forks:
        store.append(fork, user("and then"))
    before = everything(store)

    bundles = Bundles(store, tmp_path)
    bundles.remove(parent, keep_forks=True)
    assert check(store) == []
    detached = store.session(forks[0])
    assert (detached.parent_id, detached.relation) == (None, "fork")
    bundles.restore(bundles.paths[0])
    assert check(store) == []
    assert len(store.search("unmistakable", all_hits=True).items) == 1
    assert [node.session.id for node in store.tree(forks[0]).children] == forks
    assert sum(row.cost or 0 for row in store.usage()) == 1.0
    assert everything(store) == before


def family(store: Store, chance: random.Random) -> list[str]:
    """Make forks of forks and subagents, each with messages of its own."""
    names = [store.create_session(title="Root").id]
    for number in range(chance.randint(3, 7)):
        name = chance.choice(names)
        for _ in range(chance.randint(0, 2)):
            store.append(name, user(f"question {number}"))
            store.append(name, assistant("answer"), cost=0.5, model="m")
        messages = store.messages(name)
        if messages and chance.random() < 0.7:
            names.append(store.fork(name, at=chance.choice(messages).seq).id)
        else:
            names.append(store.create_session(parent=name, title=f"Helper {number}").id)
    return names


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(120 if os.environ.get("SESSIONDB_LONG") else 6))
def test_any_removal_and_restore_in_any_order_is_clean_and_ends_as_it_began(
    store: Store, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    names = family(store, chance)
    before, costs = everything(store), store.usage()
    bundles = Bundles(store, tmp_path)

    for _ in range(chance.randint(1, 4)):
        here = [name for name in names if name in everything(store)]
        if here:
            bundles.remove(chance.choice(here), keep_forks=chance.random() < 0.6)
        if chance.random() < 0.5:
            store.reap()
        assert check(store) == []

    for path in chance.sample(bundles.paths, len(bundles.paths)):
        bundles.restore(path)
        assert check(store) == []
    assert everything(store) == before
    assert store.usage() == costs
