"""An import is idempotent, applies changes of the source, and keeps changes of the user."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from tempfile import SpooledTemporaryFile
from typing import Any

import pytest
from backends import Backend
from foreign_sessions import SOURCE, T0, outcomes, said, session_of, take_in

from sessiondb import ALL, Store, assistant, ids, tool, tool_result, user
from sessiondb.errors import StorageFullError
from sessiondb.importing.policies import returned
from sessiondb.maintenance import check
from sessiondb.model import (
    FileDiff,
    Imported,
    Problem,
    SourceMessage,
    SourceSession,
    Todo,
)


def texts(store: Store, name: str, **how: Any) -> list[str]:
    return [item.text for item in store.messages(name, **how)]


def everything(backend: Backend, store: Store) -> list[tuple[Any, ...]]:
    """All rows but those that only record the time of a look."""
    tables = ("session", "message", "part", "blob", "todo", "file_diff", "label")
    return [
        row
        for table in tables
        for row in sorted(backend.rows(store, f"SELECT * FROM {table}"), key=repr)
    ]


def full_session(**fields: Any) -> SourceSession:
    call = (tool("bash", {"cmd": "ls"}, call_id="c", output="x" * 3000),)
    return session_of(
        "s", said("a", role="user", labels=("start",)),
        said("b", at=1, cost=0.5, tokens=7, parts=call),
        said("c", at=2, parts=(tool("t", call_id="d"),)),
        said("d", role="tool", at=3, parts=(tool_result("d", "y" * 2000),)),
        title="Told", todos=(Todo("one", "done"),), diffs=(FileDiff("a", before=b"b"),), **fields,
    )  # fmt: skip


def test_importing_again_changes_nothing(store: Store, backend: Backend) -> None:
    (first,) = take_in(store, full_session())
    assert (first.outcome, first.messages) == ("imported", 4)
    before = everything(backend, store)
    (again,) = take_in(store, full_session())
    assert (again.outcome, again.id, again.messages) == ("unchanged", first.id, 4)
    # Also where every record is looked at again, because the digest says so.
    (looked,) = take_in(store, full_session(digest="another"))
    assert (looked.outcome, looked.id) == ("unchanged", first.id)
    assert everything(backend, store) == before
    assert check(store) == []


def test_an_imported_id_is_the_same_on_every_machine(store: Store) -> None:
    (done,) = take_in(store, session_of("s", said("a"), time_created=T0 + 5))
    assert done.id == ids.imported_session_id(SOURCE, "s", T0 + 5)
    assert ids.time_of(done.id) == T0 + 5
    assert store.session("s").source_id == "s"


def test_new_records_are_added_and_only_they(store: Store) -> None:
    take_in(store, session_of("s", said("a"), said("b")))
    before = store.messages("s")
    assert outcomes(
        take_in(store, session_of("s", said("a"), said("b"), said("c")))
    ) == ["updated"]
    assert store.messages("s")[:2] == before
    assert texts(store, "s") == ["a", "b", "c"]


def test_changed_records_are_changed_in_place(store: Store) -> None:
    take_in(store, session_of("s", said("a"), said("b", "old", cost=1.0), said("c")))
    fork = store.fork(store.session("s").id)
    changed = session_of(
        "s", said("a"), said("b", "new " * 500, cost=2.0, tokens=5), said("c")
    )
    assert outcomes(take_in(store, changed)) == ["updated"]
    assert texts(store, "s") == ["a", "new " * 500, "c"]
    assert [item.seq for item in store.messages("s")] == [1, 2, 3]
    assert store.session("s").cost == 2.0
    # Copied messages belong to the fork, and are still copies.
    assert texts(store, fork) == ["a", "old", "c"]
    assert store.session(fork).cost is None
    assert len(store.search("new")) == 1
    assert not store.search("old")
    assert check(store) == []
    store.delete(store.session("s").id, keep_forks=True)
    assert store.session(fork).cost == 1.0
    assert check(store) == []


def test_vanished_records_stay_off_the_live_path(store: Store) -> None:
    take_in(store, session_of("s", said("a"), said("b"), said("c")))
    assert outcomes(take_in(store, session_of("s", said("a"), said("c")))) == [
        "updated"
    ]
    assert texts(store, "s") == ["a", "c"]
    assert texts(store, "s", branches=True) == ["a", "b", "c"]
    take_in(store, session_of("s", said("a")))
    assert texts(store, "s") == ["a"]
    take_in(store, session_of("s", said("a"), said("b"), said("c")))
    assert texts(store, "s") == ["a", "b", "c"]
    assert store.session("s").last_seq == 3


def test_a_session_missing_from_its_source_is_not_deleted(store: Store) -> None:
    take_in(store, session_of("s", said("a")), session_of("t", said("b")))
    take_in(store, session_of("t", said("b")))
    assert len(store.sessions(project=ALL)) == 2


def test_trees_of_the_source_are_kept_and_say_which_turn(store: Store) -> None:
    given = [
        said("1", role="user"), said("2"), said("3", role="user", parent="1"), said("4"),
        said("5", role="user", parent=None), said("6", parent="2"),
    ]  # fmt: skip
    take_in(store, session_of("s", *given, leaf="4"))
    assert texts(store, "s") == ["1", "3", "4"]
    every = store.messages("s", branches=True)
    assert [item.parent_seq for item in every] == [None, 1, 1, 3, None, 2]
    assert [item.turn_id for item in every] == ["1", "1", "3", "3", "5", "1"]
    assert outcomes(take_in(store, session_of("s", *given, leaf="6"))) == ["updated"]
    assert texts(store, "s") == ["1", "2", "6"]


def test_a_parent_that_comes_later_or_never_does_not_break_the_tree(
    store: Store,
) -> None:
    given = (said("1", parent="3"), said("2", parent="nowhere"), said("3", parent="1"))
    for _ in range(2):
        take_in(store, session_of("s", *given, digest=os.urandom(4).hex()))
        assert [item.parent_seq for item in store.messages("s", branches=True)] == [
            None,
            1,
            1,
        ]
    assert check(store) == []


def test_a_record_that_comes_twice_counts_once_and_is_a_problem(store: Store) -> None:
    given = session_of(
        "s", said("a"), said("b", "first"), said("b", "second"), said("c")
    )
    *problems, done = list(store.ingest([given]))
    assert isinstance(done, Imported)
    assert (done.outcome, done.messages, len(problems)) == ("imported", 3, 1)
    assert texts(store, "s") == ["a", "first", "c"]


def test_a_record_that_cannot_be_stored_is_a_problem_and_the_others_are_imported(
    store: Store,
    backend: Backend,
) -> None:
    broken = SourceMessage(replace(said("x").draft, finish="odd"))
    nameless = SourceMessage(replace(said("x").draft, id=None))
    torn = Problem("/elsewhere/store", "torn line", 3)
    given = session_of("s", said("a"), broken, nameless, torn, said("b"))
    *problems, done = list(store.ingest([Problem("/elsewhere", "unreadable"), given]))
    assert isinstance(done, Imported)
    assert len(problems) == 4
    assert set(done.problems) == set(problems[1:])
    assert texts(store, "s") == ["a", "b"]
    ((kept,),) = backend.rows(store, "SELECT problems FROM import_ledger")
    assert "torn line" in kept


def test_a_result_record_fills_its_call_and_stays_with_it_when_either_changes(
    store: Store,
    backend: Backend,
) -> None:
    def given(
        cost: float | None = None, output: str = "fine " * 300, at: int = 3
    ) -> SourceSession:
        call = said("call", at=1, cost=cost, parts=(tool("bash", {}, call_id="c"),))
        result = said("result", role="tool", at=at, parts=(tool_result("c", output),))
        return session_of("s", call, result)

    def shown() -> tuple[str | None, ...]:
        call, result = (item.parts[0] for item in store.messages("s"))
        assert call.status == "completed"
        return call.text, result.text

    def stored() -> int:
        sql = (
            "SELECT count(*) FROM part WHERE text IS NOT NULL OR text_blob IS NOT NULL"
        )
        ((found,),) = backend.rows(store, sql)
        return int(found)

    take_in(store, given())
    assert (shown(), stored()) == (("fine " * 300,) * 2, 1)
    assert outcomes(take_in(store, given(cost=1.0))) == ["updated"]
    assert (shown(), stored()) == (("fine " * 300,) * 2, 1)
    assert outcomes(take_in(store, given(cost=1.0, at=4))) == ["updated"]
    assert (shown(), stored()) == (("fine " * 300,) * 2, 1)
    assert outcomes(take_in(store, given(1.0, "better", 4))) == ["updated"]
    assert (shown(), stored()) == (("better",) * 2, 1)
    assert backend.rows(store, "SELECT count(*) FROM blob") == [(0,)]
    assert len(store.search("better")) == 1
    assert check(store) == []


def test_an_exact_result_stays_with_its_call_when_the_call_changes(
    store: Store,
) -> None:
    exact = "a\0b" * 800

    def given(cost: float) -> SourceSession:
        call = said("call", at=1, cost=cost, parts=(tool("bash", {}, call_id="c"),))
        result = said("result", role="tool", at=2, parts=(tool_result("c", exact),))
        return session_of("s", call, result)

    take_in(store, given(1.0))
    assert outcomes(take_in(store, given(2.0))) == ["updated"]
    shown = [item.parts[0].text for item in store.messages("s")]
    assert shown == [exact, exact]
    assert outcomes(take_in(store, given(2.0))) == ["unchanged"]
    assert check(store) == []


# -- local changes -------------------------------------------------------------


def test_changes_by_the_user_win_over_the_source(store: Store) -> None:
    (done,) = take_in(store, full_session())
    store.set_title(done.id, "My name")
    store.archive(done.id)
    store.set_metadata(done.id, {"mine": True})
    store.label(done.id, 3, "start")
    given = full_session(metadata={"theirs": 1}, time_archived=None)
    given = replace(given, title="Their new name", digest="2")
    take_in(store, given)
    kept = store.session(done.id)
    assert (kept.title, kept.title_source) == ("My name", "user")
    assert kept.time_archived is not None
    assert kept.metadata == {"mine": True}
    assert [(item.seq, item.label) for item in store.labels(done.id)] == [(3, "start")]


def test_changed_fields_of_the_source_are_taken_over(store: Store) -> None:
    take_in(store, session_of("s", said("a"), title="Old"))
    given = session_of(
        "s", said("a", labels=("named",)), title="New", version="2", agent="plan", model_id="m",
        share_url="https://example.org", todos=(Todo("x"),), diffs=(FileDiff("f"),),
        data={"kept": "whole"}, time_updated=T0 + 99,
    )  # fmt: skip
    assert outcomes(take_in(store, given)) == ["updated"]
    found = store.session("s")
    assert (found.title, found.version, found.agent, found.model_id) == (
        "New",
        "2",
        "plan",
        "m",
    )
    assert (found.share_url, found.data, found.time_updated) == (
        "https://example.org", {"kept": "whole"}, T0 + 99,
    )  # fmt: skip
    assert store.todos("s") == [Todo("x")]
    assert store.diffs("s") == [FileDiff("f")]
    assert [item.label for item in store.labels("s")] == ["named"]


def test_a_session_continued_here_diverges_and_keeps_its_own(store: Store) -> None:
    (done,) = take_in(store, session_of("s", said("a")))
    store.append(done.id, user("here"))
    assert outcomes(take_in(store, session_of("s", said("a")))) == ["unchanged"]
    given = session_of("s", said("a"), said("b"))
    assert outcomes(take_in(store, given)) == ["diverged"]
    assert texts(store, done.id) == ["a", "here"]


def test_as_fork_imports_the_diverged_state_under_the_source_id(store: Store) -> None:
    (done,) = take_in(store, session_of("s", said("a", cost=1.0)))
    store.append(done.id, assistant("here"), cost=2.0)
    given = session_of("s", said("a", cost=1.0), said("b", cost=4.0, at=1))
    (fork,) = take_in(store, given, as_fork=True)
    assert fork.id != done.id
    assert texts(store, done.id) == ["a", "here"]
    assert texts(store, fork.id) == ["a", "b"]
    theirs = store.session("s")
    assert (theirs.id, theirs.parent_id, theirs.relation) == (fork.id, done.id, "fork")
    assert theirs.parent_seq == 1
    assert store.session(done.id).source_id is None
    assert store.usage(by=())[0].cost == 7.0
    assert [item.text for item in store.compare(done.id, fork.id).common] == ["a"]
    # From now on it is the fork that follows the source.
    assert outcomes(take_in(store, given)) == ["unchanged"]
    more = session_of("s", *given.messages, said("c", at=2))
    assert outcomes(take_in(store, more)) == ["updated"]
    assert texts(store, fork.id) == ["a", "b", "c"]
    assert check(store) == []


def test_an_answer_that_a_fork_here_kept_counts_once_beside_as_fork(
    store: Store,
) -> None:
    (done,) = take_in(store, session_of("s", said("a", cost=1.0)))
    store.fork(done.id)
    store.truncate(done.id, after=None)
    # Its program has corrected the usage, so the key is another one.
    given = session_of("s", said("a", cost=1.0, tokens=7), digest="corrected")
    take_in(store, given, as_fork=True)
    assert store.usage(by=())[0].cost == 1.0
    assert check(store) == []


def test_an_answer_whose_usage_was_corrected_counts_once_beside_as_fork(
    store: Store,
) -> None:
    (done,) = take_in(store, session_of("s", said("a", cost=1.0)))
    store.append(done.id, user("here"))
    given = session_of("s", said("a", cost=1.0, tokens=7), digest="corrected")
    (fork,) = take_in(store, given, as_fork=True)
    assert store.session(fork.id).parent_seq == 1
    assert store.usage(by=())[0].cost == 1.0
    assert check(store) == []


def test_a_removed_session_stays_removed_until_it_is_undeleted(
    store: Store,
) -> None:
    given = session_of("s", said("a", cost=1.0), said("b", "b" * 3000))
    (done,) = take_in(store, given)
    for reaped in (False, True):
        store.delete(done.id)
        if reaped:
            store.reap()
        assert outcomes(take_in(store, given)) == ["deleted"]
        assert outcomes(take_in(store, given, undelete=True, dry_run=True)) == [
            "imported"
        ]
        assert len(store.sessions(project=ALL)) == 0
        (back,) = take_in(store, given, undelete=True)
        assert (back.outcome, back.id, back.messages) == ("imported", done.id, 2)
        assert texts(store, "s")[0] == "a"
        assert outcomes(take_in(store, given)) == ["unchanged"]
        assert check(store) == []


def test_a_removed_family_comes_back_completely(store: Store) -> None:
    family = (
        session_of("p", said("a", "a" * 2000)),
        session_of(
            "c", said("b", "b" * 2000), parent_source_id="p", relation="subagent"
        ),
    )
    take_in(store, *family)
    store.delete(store.session("p").id)
    assert outcomes(take_in(store, *family, undelete=True)) == ["imported"] * 2
    assert store.session("c").parent_id == store.session("p").id
    assert check(store) == []


def test_a_restored_name_whose_id_lives_on_here_gets_an_id_of_its_own(
    store: Store,
) -> None:
    (done,) = take_in(store, session_of("s", said("a", cost=1.0)))
    store.append(done.id, user("here"))
    (fork,) = take_in(
        store, session_of("s", said("a", cost=1.0), said("b")), as_fork=True
    )
    store.delete(fork.id)
    store.reap()
    (back,) = take_in(store, session_of("s", said("a", cost=1.0)), undelete=True)
    assert back.id not in (done.id, fork.id)
    assert store.usage(by=())[0].cost == 1.0
    assert check(store) == []


def test_a_dry_run_says_what_would_be_and_writes_nothing(
    store: Store, backend: Backend
) -> None:
    take_in(store, session_of("s", said("a")))
    before = everything(backend, store)
    given = (session_of("s", said("a"), said("b")), session_of("t", said("c")))
    results = take_in(store, *given, dry_run=True)
    assert [(r.outcome, r.messages) for r in results] == [
        ("updated", 2),
        ("imported", 1),
    ]
    assert everything(backend, store) == before


def test_an_imported_session_equals_its_source(store: Store) -> None:
    given = full_session()
    take_in(store, given)
    drafts = [item.draft for item in given.messages if isinstance(item, SourceMessage)]
    read = store.messages("s")
    assert [item.id for item in read] == [draft.id for draft in drafts]
    assert [item.role for item in read] == [draft.role for draft in drafts]
    assert [item.cost for item in read] == [draft.cost for draft in drafts]
    assert [item.time_created for item in read] == [
        draft.time_created for draft in drafts
    ]
    assert [[p.type for p in item.parts] for item in read] == [
        [p.type for p in draft.parts] for draft in drafts
    ]
    assert read[1].parts[0].input == {"cmd": "ls"}


def test_a_full_temporary_directory_is_a_storage_error(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session that returns waits there, and what the system says is translated."""

    class Full(SpooledTemporaryFile[bytes]):
        def write(self, *_: Any) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(returned, "SpooledTemporaryFile", Full)
    session = store.create_session()
    store.append(session.id, user("hello"))
    coming_back = session_of(session.id, said("m-new", "said elsewhere"))
    with pytest.raises(StorageFullError, match="temporary directory"):
        list(store.ingest([coming_back]))


def test_a_session_of_this_database_that_was_removed_stays_removed_when_it_returns(
    store: Store,
) -> None:
    """Another program names it by its id here, whether it was made here or imported."""
    (imported,) = take_in(store, session_of("s", said("a")))
    made = store.create_session()
    store.append(made, user("hello"))
    for name in (made.id, imported.id):
        returning = session_of(name, said("m", "said elsewhere"))
        store.delete(name)
        for reaped in (False, True):
            if reaped:
                store.reap()
            assert outcomes(take_in(store, returning)) == ["deleted"]
        assert outcomes(take_in(store, returning, undelete=True)) == ["imported"]
        assert outcomes(take_in(store, returning)) == ["unchanged"]
    assert outcomes(take_in(store, session_of("other", said("m")))) == ["imported"]
    assert check(store) == []


def test_a_removed_message_stays_removed_although_its_source_has_it(
    store: Store,
) -> None:
    source = session_of("s", said("a"), said("b"), said("c"))
    take_in(store, source)
    session = store.session("s").id
    store.remove(session, ["b"])
    popped = store.pop(session)
    assert popped is not None
    assert popped.id == "c"
    more = session_of("s", said("a"), said("b"), said("c"), said("d"))
    assert [item.outcome for item in take_in(store, more)] == ["diverged"]
    assert [m.id for m in store.messages(session, branches=True)] == ["a"]
    assert check(store) == []


def test_the_prompt_history_loses_what_is_removed_from_an_import(store: Store) -> None:
    words = ["secret one", "secret two", "kept"]
    source = session_of(
        "s", *(said(f"m{n}", word, role="user", at=n) for n, word in enumerate(words))
    )
    take_in(store, source)
    assert len(store.prompts("secret")) == 2
    session = store.session("s").id
    store.remove(session, ["m0"])
    store.replace(session, "m1", user("[redacted]"))
    assert [prompt.text for prompt in store.prompts()] == ["kept"]
    assert not store.prompts("secret")
    assert check(store) == []


def test_a_replaced_message_is_not_overwritten_by_its_source(store: Store) -> None:
    take_in(store, session_of("s", said("a", "secret", role="user", cost=1.0)))
    session = store.session("s").id
    store.replace(session, "a", user("[redacted]"))
    again = session_of("s", said("a", "secret", role="user", cost=2.0))
    assert [item.outcome for item in take_in(store, again)] == ["diverged"]
    (message,) = store.messages(session)
    assert (message.text, message.cost) == ("[redacted]", 1.0)
    assert not store.search("secret")
    assert check(store) == []
