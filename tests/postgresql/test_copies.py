"""A file copied to a server, and back again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from postgresql_server import Server
from test_copy import StopError, described, fill

from sessiondb import ALL, FileDiff, Store, user
from sessiondb.formats import find
from sessiondb.maintenance import check
from sessiondb.maintenance.copying import copy


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "file.db", durability="normal") as store:
        for number in range(3):
            fill(store, f"n{number}")
        yield store


@pytest.fixture
def served(server: Server, database: str) -> Iterator[Store]:
    with Store.open(server.url(database), durability="normal") as store:
        yield store


def test_a_file_goes_to_a_server_and_comes_back_as_it_was(
    file: Store, served: Store, tmp_path: Path
) -> None:
    there = copy(file, served)
    assert described(served) == described(file)
    assert check(served) == []
    assert served.search("n2 result", project=ALL).items

    with Store.open(tmp_path / "back.db", durability="normal") as back:
        again = copy(served, back)
        assert described(back) == described(file)
        assert check(back) == []
    assert (again.digest, again.rows) == (there.digest, there.rows)


def test_a_text_that_another_family_has_as_a_file_stays_a_text(
    served: Store, tmp_path: Path
) -> None:
    def add_file(content: str) -> None:
        session = served.create_session(directory="/tmp")
        served.set_diffs(session, [FileDiff("a", before=content.encode())])

    def add_text(content: str) -> None:
        served.append(served.create_session(directory="/tmp"), user(content))

    # A file is compressed, a text is not; each family has its own of the same content.
    for number, adding in enumerate([(add_file, add_text), (add_text, add_file)]):
        for add in adding:
            add(f"{number} word {'and so on ' * 9_000}")

    with Store.open(tmp_path / "back.db", durability="normal") as back:
        copy(served, back)
        assert described(back) == described(served)
        assert check(back) == []
        assert len(back.search("word", project=ALL).items) == 2


@pytest.mark.slow
def test_the_sessions_of_every_agent_leave_a_server_as_they_were_read(
    served: Store, tmp_path: Path, real_store: Callable[[str], Path]
) -> None:
    for folder in sorted(real_store("opencode-1.18.33").parent.iterdir()):
        for found in find(folder):
            list(served.ingest(found.read()))
    assert check(served) == []
    with Store.open(tmp_path / "back.db", durability="normal") as back:
        assert copy(served, back).sessions > 50
        # Not sums of costs: each engine adds them up in an order of its own.
        assert described(back)[0] == described(served)[0]
        assert check(back) == []


def test_a_copy_on_a_server_that_was_interrupted_is_completed(
    file: Store, served: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sessiondb.maintenance.copying._SESSIONS", 2)

    def stop(done: int, _: int) -> None:
        if done == 4:
            raise StopError

    with pytest.raises(StopError):
        copy(file, served, progress=stop)
    sessions = file.sessions(project=ALL, subagents=True, limit=100).items
    file.append(sessions[-1].id, user("later"))
    file.set_title(sessions[0].id, "another title")

    assert copy(file, served).equal > 0
    assert described(served) == described(file)
    assert check(served) == []
