"""The databases that the pages talk about."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from docs_blocks import ROOT
from loopback_model import Script, served

from sessiondb import SessionHandle, Store, Tokens, assistant, file, text, tool, user
from sessiondb.formats import find

SAMPLE = ROOT / "examples" / "sample-opencode"


def _write_own(store: Store) -> SessionHandle:
    """Write a session of today: the pages ask for this month, for failed and for slow calls."""
    with store.effects() as fx:
        session = fx.create_session(title="A timer of our own")
        clock = file(content=b"a clock " * 200, filename="clock.txt", mime="text/plain")
        fx.append(session, user("Set the timer", clock))
        fx.append(session, user(text("a NUL \0 and half of a pair \ud800")))
        failed = tool("bash", {"command": "tea"}, error="no water", call_id="call_1")
        fx.append(
            session, assistant(text("Long. " * 400), failed), model="other", cost=0.25
        )
        fx.append(
            session, assistant("Priced."), model="some-model", cost=0.004, response_id="resp_1",
            time=1_770_800_000_000, tokens=Tokens(input=1810, output=64),
        )  # fmt: skip
    return session


@pytest.fixture(scope="session")
def database(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Path]:
    """Return a function that makes a database of the store at a path and a session of today."""
    made: dict[Path, Path] = {}

    def of(stores: Path) -> Path:
        if stores not in made:
            path = tmp_path_factory.mktemp("database") / "sessions.db"
            with Store.open(path, source="my-agent", durability="normal") as store:
                for found in find(stores):
                    assert list(store.ingest(found.read()))
                store.fork(_write_own(store))
            made[stores] = path
        return made[stores]

    return of


@pytest.fixture(scope="session")
def sample(database: Callable[[Path], Path]) -> Path:
    """Return the database of the sample."""
    return database(SAMPLE)


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return the folder in which a reader tries the pages; the examples are there."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.setenv("SESSIONDB_PATH", str(tmp_path / "own.db"))
    with contextlib.chdir(tmp_path):
        yield tmp_path


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[Script]:
    """Return the script of a model on loopback, which the programs of a page reach."""
    script = Script()
    with served(script) as url:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        yield script
