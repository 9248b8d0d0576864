"""A second import looks at the logs of a program by the hundred, and reads what changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from foreign_sessions import outcomes, said, session_of

from sessiondb import Store, user
from sessiondb.errors import SourceError
from sessiondb.importing import importer, sessions
from sessiondb.importing.unchanged import MOST, unchanged_sessions
from sessiondb.maintenance import check
from sessiondb.model import Imported, SourceItem, SourceSession
from sessiondb.repository import Read


def log(name: str, *words: str, **fields: Any) -> SourceSession:
    """A session that is yielded by its beginning; its digest is that of its content."""
    complete = session_of(
        name, *(said(f"{name}-{word}", word) for word in words), **fields
    )
    return replace(complete, messages=(), complete=lambda: complete)


def imported(store: Store, *items: SourceItem, **how: Any) -> list[Imported]:
    results = list(store.ingest(items, **how))
    assert all(isinstance(item, Imported) for item in results), results
    return [item for item in results if isinstance(item, Imported)]


def test_unchanged_logs_are_looked_up_by_the_hundred(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = [log(f"s{number}", "hello") for number in range(2 * MOST + 1)]
    first = imported(store, *logs)
    questions: list[int] = []

    def count(items: Sequence[SourceItem]) -> Read[list[Imported | None]]:
        questions.append(len(items))
        return unchanged_sessions(items)

    monkeypatch.setattr(importer, "unchanged_sessions", count)
    monkeypatch.delattr(sessions, "look_up")
    again = imported(store, *logs)
    assert questions == [MOST, MOST, 1]
    assert again == [
        replace(done, outcome="unchanged")
        for done in sorted(first, key=lambda done: int(done.source_id[1:]))
    ]


def test_changed_logs_among_unchanged_ones_are_read(store: Store) -> None:
    imported(store, *(log(f"s{number}", "hello") for number in range(5)))
    grown = [log(f"s{number}", "hello", *["more"][: number % 2]) for number in range(5)]
    added = log("s5", "new")
    done = imported(store, *grown, added)
    expected = ["unchanged", "updated", "unchanged", "updated", "unchanged", "imported"]
    assert outcomes(sorted(done, key=lambda item: item.source_id)) == expected
    assert check(store) == []


@pytest.mark.parametrize("how", ["deleted", "continued", "moved"])
def test_a_log_whose_session_changed_here_is_looked_up_by_itself(
    store: Store, how: str
) -> None:
    (done, _) = imported(store, log("s", "hello"), log("t", "hello"))
    if how == "deleted":
        store.delete(done.id)
    if how == "continued":
        store.append(done.id, user("more"))
    item = log("s", "hello")
    if how == "moved":
        item = replace(item, path="/elsewhere/other", digest="2")
    expected = {"deleted": "deleted", "continued": "unchanged", "moved": "unchanged"}
    results = imported(store, item, log("t", "hello"))
    assert outcomes(results) == [expected[how], "unchanged"]


def test_a_removed_log_that_is_restored_is_read(store: Store) -> None:
    (done,) = imported(store, log("s", "hello"))
    store.delete(done.id)
    assert outcomes(imported(store, log("s", "hello"))) == ["deleted"]
    assert outcomes(imported(store, log("s", "hello"), undelete=True)) == ["imported"]
    assert outcomes(imported(store, log("s", "hello"))) == ["unchanged"]


def test_a_child_is_read_again_after_its_parent_was_written_in_between(
    store: Store,
) -> None:
    read: list[str] = []

    def counted(item: SourceSession) -> SourceSession:
        def complete() -> SourceSession:
            read.append(item.source_id)
            assert item.complete is not None
            return item.complete()

        return replace(item, complete=complete)

    child = log("child", "x", "y", parent_source_id="parent", relation="fork")
    imported(store, child)
    # More records than a transaction holds: the parent is here when the child is next.
    words = [f"w{number}" for number in range(300)]
    parent, other = log("parent", *words), log("other", *words)
    imported(store, parent, other, counted(child))
    assert read == ["child"]
    assert store.session("child").parent_id == store.session("parent").id
    imported(store, counted(child))
    assert read == ["child"]
    assert check(store) == []


def test_logs_before_an_error_of_their_reader_have_an_outcome(store: Store) -> None:
    imported(store, log("s", "hello"))

    def read() -> Iterator[SourceItem]:
        yield log("s", "hello")
        raise SourceError("the store is gone")

    results = store.ingest(read())
    assert outcomes([next(results)]) == ["unchanged"]  # type: ignore[list-item]
    with pytest.raises(SourceError, match="the store is gone"):
        next(results)
