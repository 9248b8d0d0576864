"""What every format is held to, over a small store of each of its layouts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from opencode_store import session, tree_store, user
from samples import SAMPLES, bytes_of, content, files_in, permissions_hold, read_into

from sessiondb import Store
from sessiondb.formats import readable
from sessiondb.maintenance import check
from sessiondb.model import Imported, Problem

pytestmark = pytest.mark.slow


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "here" / "sessions.db", durability="normal") as store:
        yield store


@pytest.fixture(params=SAMPLES)
def sample(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a folder with a store of each layout in turn."""
    folder = tmp_path / "theirs"
    SAMPLES[request.param].write(folder)
    return folder


def whole(sample: Path) -> dict[str, list[object]]:
    """Return what an import of the intact store brings."""
    with Store.open(":memory:") as store:
        assert all(isinstance(result, Imported) for result in read_into(store, sample))
        return content(store)


def test_each_format_has_a_sample() -> None:
    assert {sample.format for sample in SAMPLES.values()} == set(readable())


def test_twice_is_once_and_nothing_of_it_changes(sample: Path, store: Store) -> None:
    before = bytes_of(sample)
    first = read_into(store, sample)
    assert {r.outcome for r in first if isinstance(r, Imported)} == {"imported"}
    assert len(first) == 3
    said = content(store)

    assert {r.outcome for r in read_into(store, sample) if isinstance(r, Imported)} == {
        "unchanged"
    }
    assert content(store) == said
    assert bytes_of(sample) == before
    assert check(store) == []


def test_what_may_not_be_read_is_a_problem_until_it_may(
    sample: Path, store: Store
) -> None:
    expected = whole(sample)
    neighbour = sample.parent / "neighbour"
    tree_store(neighbour, session(9, user(90, "Near")))
    expected |= whole(neighbour)

    closed = [*files_in(sample), *(path for path in sample.rglob("*") if path.is_dir())]
    # The files of one kind fail alike.
    for path in {(path.parent.parent, path.suffix): path for path in closed}.values():
        with Store.open(":memory:") as fresh:
            mode = path.stat().st_mode
            path.chmod(0)
            try:
                with permissions_hold():
                    first, again = read_into(fresh, sample), read_into(fresh, sample)
                    near = read_into(fresh, neighbour)
            finally:
                path.chmod(mode)
            problems = [r for r in first if isinstance(r, Problem)]
            assert problems, path
            assert all(
                os.fspath(path) in f"{p.source} {p.why}" for p in problems[:1]
            ), problems
            assert [r for r in again if isinstance(r, Problem)] == problems
            assert [r.source_id for r in near if isinstance(r, Imported)] == [
                "ses_0009"
            ]

            assert not [
                r for r in read_into(fresh, sample) if isinstance(r, Problem)
            ], path
            assert content(fresh) == expected, path
            assert check(fresh) == []


def test_a_reader_that_fails_is_a_problem_and_no_end(store: Store) -> None:
    from sessiondb.formats import ForeignStore as Found
    from sessiondb.model import MessageDraft, SourceMessage, SourceSession

    def messages() -> Iterator[SourceMessage]:
        yield SourceMessage(MessageDraft("user", id="m1", time_created=1))
        raise TypeError("a defect")

    def read(path: Path) -> Iterator[SourceSession]:
        yield SourceSession("odd", "s1", str(path), "d", messages())
        yield SourceSession("odd", "s2", str(path), "d", ())
        raise KeyError("another defect")

    results = list(store.ingest(Found("odd", Path("/odd"), read).read()))
    whys = [r.why for r in results if isinstance(r, Problem)]
    assert len(whys) == 2
    assert (
        "its other messages cannot be read: its reader failed: TypeError('a defect')"
        in "".join(whys)
    )
    assert "KeyError('another defect')" in "".join(whys)
    assert [r.messages for r in results if isinstance(r, Imported)] == [1, 0]
