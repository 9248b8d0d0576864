"""Clones of a project that change the same sessions and exchange logs, at random."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sessiondb import Store, Todo, assistant, user
from sessiondb.location import init_local
from sessiondb.maintenance.sync import sync
from sessiondb.repository.sessions import ALL

EVERYTHING: dict[str, Any] = {
    "project": ALL,
    "archived": True,
    "subagents": True,
    "empty": True,
}
WORDS = ("red", "green", "blue")


def state(store: Store) -> dict[str, Any]:
    """Return the sessions of a database, regardless of the order in which they arrived."""
    found: dict[str, Any] = {}
    for session in store.sessions(**EVERYTHING, limit=1000):
        messages = store.messages(session.id, branches=True)
        ids = {message.seq: message.id for message in messages}
        tree = sorted(
            (m.id, ids.get(m.parent_seq or 0), m.role, m.text, m.cost, m.finish, m.time_completed,
             [(p.id, p.status, p.text) for p in m.parts])
            for m in messages
        )  # fmt: skip
        found[session.id] = {
            "title": (session.title, session.title_source),
            "archived": session.time_archived,
            "metadata": dict(session.metadata),
            "permission": session.permission,
            "revert": session.revert,
            "todos": [
                (t.content, t.status, t.time_created) for t in store.todos(session.id)
            ],
            "diffs": sorted(
                (d.path, d.patch, ids.get(d.seq)) for d in store.diffs(session.id)
            ),
            "labels": sorted((x.label, ids[x.seq]) for x in store.labels(session.id)),
            "leaf": ids.get(session.leaf_seq or 0),
            "lineage": (session.parent_id, session.relation, session.parent_source_id),
            "counts": (session.revision, session.time_updated, session.message_count),
            "costs": [round(x or 0, 6) for x in (session.cost, session.cost_inherited)],
            "tree": tree,
        }
    return found


@dataclass
class Clone:
    """One clone: its folder, its database, and the changes made there."""

    root: Path
    store: Store
    chance: random.Random
    done: list[str] = field(default_factory=list)

    @property
    def logs(self) -> Path:
        return self.root / ".sessiondb" / "sessions"

    def act(self, *, delete: bool) -> None:
        """Do one thing to one session."""
        here = list(self.store.sessions(**EVERYTHING, limit=1000))
        names = [s.id for s in here]
        if not names:
            self.store.create_session(title="first")
            return
        name = self.chance.choice(names)
        acts = [
            "title",
            "agent_title",
            "metadata",
            "label",
            "unlabel",
            "todos",
            "diffs",
            "archive",
        ]
        acts += [
            "permission",
            "revert",
            "append",
            "append",
            "append",
            "fork",
            "leaf",
            "create",
        ]
        acts += ["truncate", "open", "finish", "remove", "pop", "replace"]
        acts += ["delete"] * delete
        act = self.chance.choice(acts)
        self.done.append(f"{self.root.name}: {act} {name[-4:]}")
        getattr(self, f"_{act}")(name, self.chance.choice(WORDS))

    def _title(self, name: str, word: str) -> None:
        self.store.set_title(name, f"{word} {self.chance.random()}")

    def _agent_title(self, name: str, word: str) -> None:
        self.store.set_title(name, word, by="agent")

    def _metadata(self, name: str, word: str) -> None:
        metadata = dict(self.store.session(name).metadata)
        if self.chance.random() < 0.3:
            metadata.pop(word, None)
        else:
            metadata[word] = self.chance.randint(0, 9)
        self.store.set_metadata(name, metadata)

    def _some_message(self, name: str) -> str | None:
        messages = self.store.messages(name, branches=True)
        return self.chance.choice(messages).id if messages else None

    def _label(self, name: str, word: str) -> None:
        if (message := self._some_message(name)) is not None:
            self.store.label(name, message, word)

    def _unlabel(self, name: str, word: str) -> None:
        for label in self.store.labels(name)[:1]:
            self.store.label(name, label.seq, None)

    def _todos(self, name: str, word: str) -> None:
        self.store.set_todos(name, [Todo(word)] * self.chance.randint(0, 2))

    def _diffs(self, name: str, word: str) -> None:
        from sessiondb.model import FileDiff

        message = self._some_message(name)
        seq = 0 if message is None else self.store.message(name, message).seq
        self.store.set_diffs(name, [FileDiff(word, seq=seq, patch=f"+{word}")])

    def _archive(self, name: str, word: str) -> None:
        archived = self.store.session(name).time_archived is not None
        (self.store.unarchive if archived else self.store.archive)(name)

    def _permission(self, name: str, word: str) -> None:
        self.store.set_permission(name, self.chance.choice([None, [word]]))

    def _revert(self, name: str, word: str) -> None:
        self.store.set_revert(name, self.chance.choice([None, {"message_id": word}]))

    def _append(self, name: str, word: str) -> None:
        self.store.append(name, user(f"{word} {self.chance.random()}"))

    def _open(self, name: str, word: str) -> None:
        self.store.append(name, assistant(word), open=True)

    def _finish(self, name: str, word: str) -> None:
        for message in self.store.messages(name, branches=True):
            if message.time_completed is None:
                self.store.finish(name, message.id, cost=self.chance.random())
                return

    def _leaf(self, name: str, word: str) -> None:
        if (message := self._some_message(name)) is not None:
            self.store.set_leaf(name, message)

    def _truncate(self, name: str, word: str) -> None:
        if (
            message := self._some_message(name)
        ) is not None and self.chance.random() < 0.5:
            self.store.truncate(name, after=message)

    def _remove(self, name: str, word: str) -> None:
        if (message := self._some_message(name)) is not None:
            self.store.remove(name, [message])

    def _pop(self, name: str, word: str) -> None:
        self.store.pop(name)

    def _replace(self, name: str, word: str) -> None:
        if (message := self._some_message(name)) is not None:
            draft = user(f"{word} {self.chance.random()}")
            self.store.replace(name, message, draft)

    def _fork(self, name: str, word: str) -> None:
        if self.chance.random() < 0.4:
            self.store.fork(name)

    def _create(self, name: str, word: str) -> None:
        if self.chance.random() < 0.4:
            parent = self.chance.choice([None, name])
            self.store.create_session(title=word, parent=parent)

    def _delete(self, name: str, word: str) -> None:
        self.store.delete(name, keep_forks=self.chance.random() < 0.5)


def run_git(folder: Path, *args: str) -> str:
    """Run git in a folder and return what it prints."""
    done = subprocess.run(
        ["git", "-C", str(folder), *args], check=True, capture_output=True
    )
    return done.stdout.decode()


def synced(clone: Clone) -> None:
    """Sync a clone; nothing may be a problem."""
    done = sync(clone.store)
    assert done.problems == [], (done.problems, clone.done)


def pushed_and_pulled(clone: Clone) -> None:
    """Sync, commit, merge what the others pushed, sync, and push, as people do."""
    synced(clone)
    run_git(clone.root, "add", "-A")
    run_git(clone.root, "commit", "-q", "--allow-empty", "-m", "sync")
    run_git(clone.root, "pull", "-q", "--no-rebase", "--no-edit", "origin", "main")
    synced(clone)
    run_git(clone.root, "add", "-A")
    run_git(clone.root, "commit", "-q", "--allow-empty", "-m", "merged")
    run_git(clone.root, "push", "-q", "origin", "main")


def exchanged(here: Clone, there: Clone) -> None:
    """Merge the logs of two clones line by line, as git does with ``merge=union``, without git."""
    synced(there)
    synced(here)
    for path in there.logs.glob("*.jsonl"):
        ours = here.logs / path.name
        if not ours.exists():
            shutil.copy(path, ours)
            continue
        lines = ours.read_text().splitlines(keepends=True)
        lines += [
            x for x in path.read_text().splitlines(keepends=True) if x not in set(lines)
        ]
        ours.write_text("".join(lines))
    synced(here)


@contextmanager
def two_clones(
    folder: Path, prompts: Sequence[str]
) -> Iterator[tuple[Clone, Clone, str]]:
    """Open two clones in *folder* that have the same session, with messages m1, m2, …"""
    with ExitStack() as stack:
        clones = []
        for name in ("ada", "bob"):
            root = folder / name
            root.mkdir()
            store = Store.open(init_local(root).path, durability="normal", cwd=root)
            clones.append(Clone(root, stack.enter_context(store), random.Random(0)))
        ada, bob = clones
        session = ada.store.create_session(title="Shared").id
        for number, prompt in enumerate(prompts, 1):
            ada.store.append(session, user(prompt, id=f"m{number}"))
        exchanged(bob, ada)
        yield ada, bob, session
