"""An import comes in any order, in small transactions, beside others, and may be cut short."""

from __future__ import annotations

import signal
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from backends import Backend
from foreign_sessions import SOURCE, T0, outcomes, said, session_of, take_in
from processes import run

from sessiondb import ALL, MessageDraft, Store, ids, text, tool, user
from sessiondb.database.core import Core
from sessiondb.effects import Unit, ownership
from sessiondb.effects.transaction import Transaction
from sessiondb.errors import SourceError
from sessiondb.importing.rows import family
from sessiondb.importing.units import MAX_BYTES, MAX_RECORDS
from sessiondb.maintenance import check
from sessiondb.model import (
    Imported,
    Problem,
    SourceMessage,
    SourceSession,
)
from sessiondb.model.source import MOST_PROBLEMS

pytestmark = pytest.mark.slow


def texts(store: Store, name: str, **how: Any) -> list[str]:
    return [item.text for item in store.messages(name, **how)]


def test_children_imported_first_are_linked_by_the_import_of_their_parent(
    store: Store,
) -> None:
    deep = session_of(
        "deep", said("d", cost=4.0), parent_source_id="child", relation="subagent"
    )
    child = session_of(
        "child", said("c", cost=2.0), parent_source_id="top", relation="subagent",
        parent_message="a2", call_id="call",
    )  # fmt: skip
    top = session_of("top", said("a1", cost=1.0), said("a2"), said("a3"))
    take_in(store, deep)
    assert store.session("deep").parent_source_id == "child"
    native = store.fork(store.session("deep").id)
    take_in(store, child)
    take_in(store, top)
    root = store.session("top").id
    for name in ("top", "child", "deep", native.id):
        assert store.session(name).root_id == root
    assert store.session("child").parent_id == root
    # Where a child was cut is known when it is read the next time.
    take_in(store, child)
    assert (store.session("child").parent_seq, store.session("child").call_id) == (
        2,
        "call",
    )
    assert outcomes(take_in(store, deep, child, top)) == ["unchanged"] * 3
    assert store.usage(by=())[0].cost == 7.0
    assert check(store) == []


def test_children_and_parent_of_one_import_are_linked_in_any_order(
    store: Store,
) -> None:
    child = session_of("c", said("x"), said("y"), parent_source_id="p", relation="fork")
    take_in(store, child, session_of("p", said("a")))
    assert store.session("c").parent_id == store.session("p").id
    assert store.session("c").last_seq == 2
    store.append(store.session("c").id, user("z"))
    assert texts(store, "c") == ["x", "y", "z"]
    assert check(store) == []


def test_a_child_continued_here_is_linked_and_does_not_diverge(store: Store) -> None:
    child = session_of("c", said("x"), parent_source_id="p", relation="subagent")
    take_in(store, child)
    store.append(store.session("c").id, user("here"))
    take_in(store, session_of("p", said("a")))
    assert store.session("c").parent_id == store.session("p").id
    assert outcomes(take_in(store, child)) == ["unchanged"]


def test_a_circle_of_parents_is_cut_and_reported(store: Store) -> None:
    one = session_of("1", said("a"), parent_source_id="2", relation="fork")
    two = session_of("2", said("b"), parent_source_id="1", relation="fork")
    own = session_of("3", said("c"), parent_source_id="3", relation="fork")
    results = list(store.ingest([one, two, own]))
    assert len([item for item in results if isinstance(item, Problem)]) == 2
    done = [item for item in results if isinstance(item, Imported)]
    assert outcomes(done) == ["imported"] * 3
    assert store.session("2").parent_id == store.session("1").id
    assert store.session("1").parent_id is None
    assert store.session("3").parent_id is None
    store.delete(store.session("1").id)
    assert len(store.sessions(project=ALL)) == 1


@pytest.mark.parametrize("upwards", [False, True])
def test_a_chain_of_parents_is_never_too_long_to_be_deleted(
    store: Store, backend: Backend, upwards: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(family, "MAX_CHAIN", 20)
    given = [
        session_of(
            f"{n}",
            said("a"),
            parent_source_id=f"{n - 1}" if n else None,
            relation="fork",
        )
        for n in range(50)
    ]
    results = list(store.ingest(given[::-1] if upwards else given))
    assert any(isinstance(item, Problem) for item in results)
    assert len([item for item in results if isinstance(item, Imported)]) == len(given)
    tops = [
        item
        for item in store.sessions(project=ALL, limit=100)
        if item.parent_id is None
    ]
    assert len(tops) == 3
    backend.run(store, "DELETE FROM session WHERE parent_id IS NULL")
    assert backend.rows(store, "SELECT count(*) FROM session") == [(0,)]


def test_a_copy_that_is_recognised_is_counted_once_in_either_order(
    backend: Backend,
) -> None:
    original = session_of("o", said("m", cost=3.0, tokens=4))
    copy = session_of(
        "c", said("n", cost=3.0, tokens=4, usage_id="m"), time_created=T0 + 9
    )
    for order in ((original, copy), (copy, original)):
        with Store.open(backend.fresh(), durability="normal") as store:
            take_in(store, *order)
            assert store.session("o").cost == 3.0
            assert (store.session("c").cost, store.session("c").cost_inherited) == (
                None,
                3.0,
            )
            assert check(store) == []


def test_a_transaction_holds_a_bounded_number_of_records_and_bytes(
    store: Store, backend: Backend
) -> None:
    with backend.watching(store):
        given: dict[str, int] = {"records": 0, "bytes": 0}

        def committed(sql: str) -> int:
            ((found,),) = backend.rows(store, sql)
            return int(found)

        def messages() -> Iterator[SourceMessage]:
            for number in range(400):
                size = 700_000 if number >= 390 else 10
                words = f"{number:<{size}}"
                yield said(
                    f"m{number}", at=number, parts=(tool("t", {}, output=words),) * 2
                )
                given["records"] += 3
                given["bytes"] += size if size > 10 else 0
                count = "SELECT (SELECT count(*) FROM message) + (SELECT count(*) FROM part)"
                # One record more has been read than can be written.
                assert given["records"] - committed(count) <= MAX_RECORDS + 3
                large = committed("SELECT coalesce(sum(size), 0) FROM blob")
                assert given["bytes"] - large <= MAX_BYTES + size
                listed = store.sessions(project=ALL, empty=True)
                assert not listed.items, "a session is listed when it is whole"

        source = session_of("s", digest="1")
        take_in(store, replace(source, messages=messages()))
        assert committed("SELECT count(*) FROM message") == 400
        empty = (session_of(f"e{number}") for number in range(MAX_RECORDS + 20))
        for number, _ in enumerate(store.ingest(empty)):
            assert committed("SELECT count(*) FROM session") > number


INTERRUPTED = """
import os, signal, sys
from dataclasses import replace
from foreign_sessions import said, session_of
from sessiondb import Store

def messages():
    for number in range(300):
        if number == 290:
            os.kill(os.getpid(), signal.SIGKILL)
        yield said(f"m{number}", at=number, cost=1.0, usage_id=f"o{number}")

with Store.open(sys.argv[1]) as store:
    list(store.ingest([replace(session_of("s", digest="1"), messages=messages())]))
"""


def test_a_killed_import_continues_from_where_it_was(backend: Backend) -> None:
    def message(number: int, name: str = "m") -> SourceMessage:
        return said(f"{name}{number}", at=number, cost=1.0, usage_id=f"o{number}")

    place = backend.fresh()
    with Store.open(place, durability="normal") as store:
        # A younger copy of the same answers, which does not own them any more half-way.
        copy = session_of(
            "copy", *(message(n, "c") for n in range(300)), time_created=T0 + 9
        )
        take_in(store, copy)
    done = run(INTERRUPTED, place)
    assert done.returncode == -signal.SIGKILL, done.stderr
    with Store.open(place, durability="normal") as store:
        assert [item.source_id for item in store.sessions(project=ALL)] == ["copy"]
        assert check(store) == []
        complete = session_of("s", *map(message, range(300)), digest="1")
        (done,) = take_in(store, complete)
        assert (done.outcome, done.messages) == ("imported", 300)
        assert [item.seq for item in store.messages("s")] == list(range(1, 301))
        assert (store.session("s").cost, store.session("copy").cost) == (300.0, None)
        assert outcomes(take_in(store, complete)) == ["unchanged"]
        assert check(store) == []


def test_a_session_deleted_during_its_import_does_not_affect_the_next(
    store: Store,
) -> None:
    def messages() -> Iterator[SourceMessage]:
        for number in range(600):
            if number == 400:
                store.delete(ids.imported_session_id(SOURCE, "s", T0))
            yield said(f"m{number}")

    given = replace(session_of("s", digest="1"), messages=messages())
    results = take_in(store, given, session_of("t", said("a")))
    assert outcomes(results) == ["deleted", "imported"]
    assert [item.source_id for item in store.sessions(project=ALL)] == ["t"]
    store.reap()
    assert check(store) == []


class _Fails:
    """An effect that fails, after everything before it was written."""

    verb = "fail"

    def apply(self, tx: Transaction) -> None:
        raise LookupError("as a neighbour in the same transaction may")


@pytest.mark.parametrize("known", [False, True])
def test_a_transaction_that_is_tried_again_makes_no_circle_of_messages(
    store: Store, known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = Core.commit

    def commit_at_the_second_attempt(core: Core, unit: Unit) -> None:
        effects = list(unit.effects)
        unit.add(_Fails())
        with pytest.raises(LookupError):
            commit(core, unit)
        unit.effects[:] = effects
        commit(core, unit)

    if known:
        take_in(store, session_of("s", said("m1"), said("m2", at=1)))
    monkeypatch.setattr(Core, "commit", commit_at_the_second_attempt)
    first, second = said("m1", parent="m2"), said("m2", at=1, parent="m1")
    take_in(store, session_of("s", first, second, said("m3", at=2)))
    links = [(m.id, m.parent_seq) for m in store.messages("s", branches=True)]
    assert links == [("m1", None), ("m2", 1), ("m3", 2)]
    assert check(store) == []


def test_a_state_that_another_import_wrote_of_a_returned_message_stays(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = store.create_session(directory="/tmp").id
    first = store.append(own, user("one"))
    commit = Core.commit

    def commit_behind_another(core: Core, unit: Unit) -> None:
        monkeypatch.setattr(Core, "commit", commit)
        store.append(own, MessageDraft("assistant", (text("complete"),), id="m"))
        commit(core, unit)

    monkeypatch.setattr(Core, "commit", commit_behind_another)
    back = session_of(own, said(first.id, "one"), said("m", "part"), said("n"))
    assert outcomes(take_in(store, back)) == ["updated"]
    assert texts(store, own) == ["one", "complete", "n"]
    assert outcomes(take_in(store, back)) == ["unchanged"]
    assert check(store) == []


def test_the_messages_of_a_session_that_returns_are_not_held_in_memory(
    store: Store,
) -> None:
    own = store.create_session(directory="/tmp").id
    first = store.append(own, user("one"))

    def messages() -> Iterator[SourceMessage]:
        yield said("before", "It was left out here.")
        yield said(first.id, "one", role="user")
        for n in range(1200):
            yield said(f"m{n}", "word " * 5000, at=n)

    back = replace(session_of(own, digest="1"), messages=messages())
    tracemalloc.start()
    try:
        (done,) = take_in(store, back)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (done.outcome, done.messages) == ("updated", 1202)
    assert [m.id for m in store.messages(own)] == [first.id] + [
        f"m{n}" for n in range(1200)
    ]
    # 30 MB of text.
    assert peak < 5 * MAX_BYTES
    assert check(store) == []


def test_two_imports_of_the_same_at_once_write_it_once(store: Store) -> None:
    given = session_of(
        "s", *(said(f"m{number}", at=number) for number in range(600)), digest="1"
    )

    def interrupted() -> Iterator[SourceMessage]:
        for number, message in enumerate(given.messages):
            if number == 400:
                take_in(store, given)
            yield message  # type: ignore[misc]

    take_in(store, replace(given, messages=interrupted()))
    assert [item.seq for item in store.messages("s")] == list(range(1, 601))
    assert check(store) == []


def test_a_session_shows_its_old_state_until_its_import_is_complete(
    store: Store,
) -> None:
    take_in(store, session_of("s", said("a"), said("b")))
    seen: list[list[str]] = []

    def more() -> Iterator[SourceMessage]:
        yield from (said("a"), said("b"))
        for number in range(600):
            yield said(f"m{number}")
            if number % 300 == 299:
                seen.append(texts(store, "s", limit=3))

    take_in(store, replace(session_of("s", digest="2"), messages=more()))
    assert seen == [["a", "b"]] * 2
    assert len(store.messages("s")) == 602


def test_a_link_left_out_for_a_parent_of_an_earlier_import_is_reported(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(family, "MAX_CHAIN", 3)
    chain = [session_of("0", said("a"))]
    chain += (
        session_of(f"{n}", said("a"), parent_source_id=f"{n - 1}", relation="subagent")
        for n in range(1, 4)
    )
    for item in chain[:3]:
        take_in(store, item)
    # At each import again: the chain above it may have become shorter.
    for outcome in ("imported", "unchanged"):
        problem, done = store.ingest([chain[3]])
        assert isinstance(problem, Problem)
        assert isinstance(done, Imported)
        assert "chain of more than 3" in problem.why
        assert (done.outcome, done.problems) == (outcome, (problem,))
    assert store.session("3").parent_id is None
    monkeypatch.setattr(family, "MAX_CHAIN", 4)
    assert outcomes(take_in(store, chain[3])) == ["updated"]
    assert store.session("3").parent_id == store.session("2").id


def test_each_linked_child_is_read_again_whatever_its_name(store: Store) -> None:
    names = ("k", "a#k", "#", "k#a#k")
    child = {"relation": "fork", "parent_source_id": "p", "parent_message": "a2"}
    children = [session_of(name, said(name), **child) for name in names]
    other = session_of("other#k-not", said("x"))
    take_in(store, *children, other)
    take_in(store, session_of("p", said("a1"), said("a2")))
    done = take_in(store, *children, other)
    again = {item.source_id for item in done if item.outcome == "updated"}
    assert again == set(names)
    assert [store.session(name).parent_seq for name in names] == [2] * 4


@pytest.mark.parametrize("shared", ["nothing", "the key", "the message"])
def test_waiting_children_are_compared_by_as_few_queries_however_many_they_are(
    backend: Backend, shared: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    queries = {ownership._BY_KEY, ownership._BY_PLACE, ownership._PARENT}
    noted: list[Any] = []

    def counting(inner: Any) -> Any:
        def count(tx: Transaction, statement: Any, **values: Any) -> Any:
            noted.extend({statement} & queries)
            return inner(tx, statement, **values)

        return count

    for name in ("run", "one", "value"):
        monkeypatch.setattr(Transaction, name, counting(getattr(Transaction, name)))

    answers = {
        "nothing": lambda n: said(f"m{n}", cost=1.0),
        "the key": lambda n: said(f"m{n}", cost=1.0, usage_id="same"),
        "the message": lambda n: said("m", cost=1.0),
    }

    def counted(children: int) -> int:
        answer = answers[shared]
        fork = {"parent_source_id": "0", "relation": "fork"}
        waiting = [session_of(f"{n}", answer(n), **fork) for n in range(1, children)]
        noted.clear()
        with Store.open(backend.fresh(), durability="normal") as store:
            take_in(store, *waiting)
            take_in(store, session_of("0", answer(0)))
            owned = children if shared == "nothing" else 1
            assert store.usage(by=())[0].cost == owned
            assert check(store) == []
        return len(noted)

    # A query for each child would read each session of the family as often.
    assert counted(160) == counted(40) < 12


@pytest.mark.parametrize("children_first", [False, True])
def test_copies_of_one_answer_are_imported_in_linear_time(
    backend: Backend, children_first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, one, counted = Transaction.run, Transaction.one, {"statements": 0}

    def counting(inner: Any) -> Any:
        def count(tx: Transaction, statement: Any, **values: Any) -> Any:
            counted["statements"] += 1
            return inner(tx, statement, **values)

        return count

    monkeypatch.setattr(Transaction, "run", counting(run))
    monkeypatch.setattr(Transaction, "one", counting(one))

    def statements(copies: int) -> float:
        answer = said("m", cost=1.0, usage_id="same")
        family = [session_of("0", answer)]
        fork = {"parent_source_id": "0", "relation": "fork"}
        family += (session_of(f"{n}", answer, **fork) for n in range(1, copies))
        counted["statements"] = 0
        with Store.open(backend.fresh(), durability="normal") as store:
            take_in(store, *(family[::-1] if children_first else family))
            assert store.usage(by=())[0].cost == 1.0
        return counted["statements"] / copies

    # Some for each copy and transaction, but none for each pair of copies.
    assert statements(320) < 1.5 * statements(80)


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (SourceError("cannot read /x: torn"), "session s: cannot read /x: torn"),
        (ValueError("is not a log"), "session s: it is not a log"),
        (OSError("gone"), "session s: gone"),
        (KeyError("x"), "session s: its reader failed: KeyError('x')"),
    ],
)
def test_a_session_that_cannot_be_completed_is_reported_once(
    store: Store, error: Exception, why: str
) -> None:
    def fail() -> SourceSession:
        raise error

    given = replace(session_of("s"), complete=fail), session_of("t", said("x"))
    problem, done = store.ingest(given)
    assert isinstance(problem, Problem)
    assert isinstance(done, Imported)
    assert (problem.why, done.source_id) == (why, "t")


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize(
    ("besides", "why"), [(2, "2 further problems"), (20, "20 further problems")]
)
def test_a_session_with_many_refused_messages_reports_a_bounded_number(
    store: Store, dry_run: bool, besides: int, why: str
) -> None:
    refused = (said("\0") for _ in range(MOST_PROBLEMS + besides))
    (*problems, done) = store.ingest([session_of("s", *refused)], dry_run=dry_run)
    assert isinstance(done, Imported)
    assert tuple(problems) == done.problems
    assert len(problems) == MOST_PROBLEMS + 1
    assert problems[-1] == Problem("/elsewhere/store", why, number=besides)


def test_problems_that_are_counted_are_counted_once_and_not_by_one(
    store: Store,
) -> None:
    """The last of 1,001 takes as much room as its number; a count may be of a reader."""
    refused = (said("\0") for _ in range(MOST_PROBLEMS + 1))
    (*problems, _) = store.ingest([session_of("s", *refused)])
    assert len(problems) == MOST_PROBLEMS + 1
    assert {problem.number for problem in problems if isinstance(problem, Problem)} == {
        1
    }

    counted = [Problem("/log", "line skipped")] * MOST_PROBLEMS
    counted.append(Problem("/log", "4,000 further problems", number=4000))
    (*problems, _) = store.ingest([session_of("t", said("x"), *counted, said("\0"))])
    assert problems[-1] == Problem(
        "/elsewhere/store", "4,001 further problems", number=4001
    )
