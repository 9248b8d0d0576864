"""A session may be yielded after a look at its beginning; the rest is read if needed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from foreign_sessions import said, session_of

from sessiondb import ALL, Store
from sessiondb.formats.kit.json import OddRecordError
from sessiondb.model import Imported, Problem, SourceSession


class Log:
    """A session of the source that counts how often it was read to its end."""

    def __init__(self, *, title: str = "Its title", digest: str = "1") -> None:
        self.whole = session_of("s", said("a"), said("b"), title=title, digest=digest)
        self.read = 0

    def beginning(self) -> SourceSession:
        return replace(self.whole, title="", messages=(), complete=self._complete)

    def _complete(self) -> SourceSession:
        self.read += 1
        return self.whole


def take_in(store: Store, log: Log, **how: bool) -> Imported | Problem:
    (result,) = store.ingest([log.beginning()], **how)
    return result


def outcome(result: Imported | Problem) -> tuple[str, int]:
    assert isinstance(result, Imported)
    return result.outcome, result.messages


def test_a_new_session_is_read_to_its_end(store: Store) -> None:
    log = Log()
    assert outcome(take_in(store, log)) == ("imported", 2)
    (found,) = store.sessions(project=ALL)
    assert (found.title, found.message_count, log.read) == ("Its title", 2, 1)


def test_an_unchanged_session_is_not_read(store: Store) -> None:
    log = Log()
    take_in(store, log)
    assert outcome(take_in(store, log)) == ("unchanged", 2)
    assert log.read == 1


def test_a_changed_session_is_read_again(store: Store) -> None:
    take_in(store, Log())
    changed = Log(title="Another title", digest="2")
    assert outcome(take_in(store, changed)) == ("updated", 2)
    assert store.sessions(project=ALL).items[0].title == "Another title"


def test_a_removed_session_is_not_read(store: Store) -> None:
    take_in(store, Log())
    store.delete(store.sessions(project=ALL).items[0].id)
    again = Log(digest="2")
    result = take_in(store, again)
    assert (outcome(result)[0], again.read) == ("deleted", 0)


def test_a_session_of_another_project_is_not_read(store: Store) -> None:
    log = Log()
    results = list(store.ingest([log.beginning()], project_root="/another"))
    assert (results, log.read) == ([], 0)


def test_a_dry_run_counts_the_messages_that_would_be_imported(store: Store) -> None:
    assert outcome(take_in(store, Log(), dry_run=True)) == ("imported", 2)


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (OddRecordError("has no header"), "session s: it has no header"),
        (OSError(5, "Input/output error"), "Input/output error"),
        (KeyError("id"), "its reader failed"),
    ],
)
def test_a_session_that_cannot_be_read_is_a_problem_and_the_next_is_imported(
    store: Store, error: Exception, why: str
) -> None:
    def fail() -> SourceSession:
        raise error

    broken = replace(session_of("s"), complete=fail)
    first, second = store.ingest([broken, session_of("t", said("a"))])
    assert isinstance(first, Problem)
    assert why in first.why
    assert isinstance(second, Imported)
