"""An answer that was made here, and comes again under other ids: counted once.

The index of usage keys has no entry for such an answer: its id is the name in its key,
and copies are found by that. So copies arrive in every way that can state the name, in
sessions of every kind, while sessions are forked, cut and removed around them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from backends import Backend
from foreign_sessions import SOURCE, T0, said, session_of, take_in
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from sessiondb import ALL, Store, assistant, user
from sessiondb.effects import ownership
from sessiondb.formats import find, jsonl
from sessiondb.maintenance import check, repair
from sessiondb.model import Problem

NATIVE, APPENDED, IMPORTED, FORKED, REMOVED, CUT, EXCHANGED = (
    "native", "appended", "imported", "forked", "removed", "cut", "exchanged",
)  # fmt: skip
#: How a copy names its original.
NAMES = st.sampled_from(["id", "response_id", "usage_id"])
steps = st.lists(
    st.tuples(
        st.sampled_from(
            [NATIVE, APPENDED, APPENDED, IMPORTED, IMPORTED, FORKED, REMOVED, CUT, EXCHANGED]
        ),
        st.integers(0, 9),
        NAMES,
        st.booleans(),
    ),
    min_size=4,
    max_size=14,
)  # fmt: skip


@dataclass
class Places:
    """Two stores of one program, and the answers that were made in the first one."""

    here: Store
    there: Store
    folder: Path
    answers: list[str] = field(default_factory=list)
    number: int = 0

    def take(self, step: str, pick: int, naming: str, flag: bool) -> None:
        """Take one step, if there is something to take it with."""
        self.number += 1
        store = self.there if flag and step in (APPENDED, IMPORTED) else self.here
        sessions = list(store.sessions(project=ALL))
        if step == NATIVE or not self.answers:
            self._make_answer()
        elif step == APPENDED:
            self._append_copy(store, pick % len(self.answers), naming)
        elif step == IMPORTED:
            self._import_copy(store, pick % len(self.answers), naming)
        elif step == EXCHANGED:
            one, other = self.here, self.there
            self._carry(*((one, other) if flag else (other, one)))
        elif sessions:
            session = sessions[pick % len(sessions)]
            if step == FORKED:
                store.append(store.fork(session), user("continues"))
            elif step == REMOVED:
                store.delete(session, keep_forks=flag)
            else:
                store.truncate(session, after=None)

    def _make_answer(self) -> None:
        session = self.here.create_session(directory="/here")
        place = len(self.answers)
        made = self.here.append(session, assistant("said"), **self._facts(place))
        self.answers.append(made.id)

    def _facts(self, place: int) -> dict[str, Any]:
        """Return what all copies of an answer state; its time is that of no other."""
        return {
            "model": "m", "cost": 1.0, "tokens": {"input": place + 1}, "time": T0 + place,
        }  # fmt: skip

    def _append_copy(self, store: Store, place: int, naming: str) -> None:
        session, facts = store.create_session(directory="/here"), self._facts(place)
        copy = assistant("said")
        if naming == "id":
            copy = replace(copy, id=self.answers[place])
        else:
            facts["response_id"] = self.answers[place]
        store.append(session, copy, **facts)

    def _import_copy(self, store: Store, place: int, naming: str) -> None:
        names: dict[str, Any] = {"id": f"copy{self.number}"}
        names[naming] = self.answers[place]
        copy = said(**names, at=place, cost=1.0, tokens=place + 1, model_id="m")
        take_in(store, session_of(f"s{self.number}", copy))

    def _carry(self, one: Store, other: Store) -> None:
        """Import all sessions of one store into the other, as logs."""
        for session in one.sessions(project=ALL, empty=True):
            log = self.folder / f"{self.number}-{session.id}.jsonl"
            lines = jsonl.session_lines(one.export(session, **jsonl.READ))
            log.write_text("\n".join(lines))
            for found in find(log):
                assert not [
                    of for of in other.ingest(found.read()) if isinstance(of, Problem)
                ]


def assert_counted_once(backend: Backend, store: Store) -> None:
    """Compare all live copies of each answer, without any index or key."""
    counted = backend.rows(
        store,
        "SELECT m.time_created, sum(CASE WHEN m.inherited = 0 THEN 1 ELSE 0 END) "
        "FROM message AS m JOIN session AS s ON s.id = m.session_id "
        "WHERE m.cost IS NOT NULL AND s.time_deleted IS NULL GROUP BY m.time_created",
    )
    assert [row for row in counted if row[1] != 1] == []
    costs = [row.cost for row in store.usage(by="source") if row.cost]
    assert sum(costs) == len(counted)
    assert check(store) == []


#: What fails is not shrunk: each try writes two files.
examples = settings(
    max_examples=300 if os.environ.get("SESSIONDB_LONG") else 20,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.mark.slow
@examples
@given(taken=steps)
def test_an_answer_that_comes_again_under_its_id_is_counted_once(
    backend: Backend,
    tmp_path_factory: pytest.TempPathFactory,
    taken: list[tuple[str, int, str, bool]],
) -> None:
    folder = tmp_path_factory.mktemp("copies")
    options: dict[str, Any] = {"source": SOURCE, "durability": "normal", "cwd": folder}
    with (
        Store.open(backend.fresh(), **options) as here,
        Store.open(backend.fresh(), **options) as there,
    ):
        places = Places(here, there, folder)
        for step in taken:
            places.take(*step)
            assert_counted_once(backend, here)
            assert_counted_once(backend, there)


@pytest.fixture
def store(backend: Backend, tmp_path: Path) -> Iterator[Store]:
    with Store.open(backend.fresh(), source=SOURCE, cwd=tmp_path) as opened:
        yield opened


def test_a_log_carries_the_name_under_which_a_copy_is_found(
    store: Store, backend: Backend, tmp_path: Path
) -> None:
    with Store.open(backend.fresh(), source=SOURCE, cwd=tmp_path) as there:
        places = Places(store, there, tmp_path)
        places.take(NATIVE, 0, "id", False)
        places.take(IMPORTED, 0, "usage_id", True)
        places.take(EXCHANGED, 0, "id", False)
        assert len(list(store.sessions(project=ALL))) == 2
        assert_counted_once(backend, store)


def test_an_answer_made_here_has_no_entry_in_the_index_of_keys(
    store: Store, backend: Backend, tmp_path: Path
) -> None:
    places = Places(store, store, tmp_path)
    places.take(NATIVE, 0, "id", False)
    places.take(IMPORTED, 0, "usage_id", False)
    hint = backend.by_index("ix_message_usage_key")
    keys = backend.rows(
        store,
        f"SELECT usage_name, inherited FROM message{hint} "
        "WHERE usage_key IS NOT NULL AND (usage_name IS NOT NULL OR response_id IS NOT NULL)",
    )
    # That of the copy alone, which the session of the program was before.
    assert keys == [(places.answers[0], 0)]


@pytest.mark.needs("is_file", "a repair is of a file")
def test_a_key_with_two_names_is_a_finding_and_repaired(
    store: Store, backend: Backend, tmp_path: Path
) -> None:
    places = Places(store, store, tmp_path)
    places.take(NATIVE, 0, "id", False)
    places.take(IMPORTED, 0, "usage_id", False)
    backend.run(store, "UPDATE message SET usage_name = NULL, inherited = 0")
    found = {finding.what for finding in check(store)}
    assert {"usage keys with several names", "messages that are counted twice"} <= found
    assert repair(store).left == []
    assert_counted_once(backend, store)


def test_answers_that_a_unit_copies_are_counted_once_whatever_comes_between(
    store: Store, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[list[str]] = []
    recount = ownership.recount

    def note(tx: Any, session_ids: Any) -> None:
        counted.append(sorted(session_ids))
        recount(tx, counted[-1])

    monkeypatch.setattr(ownership, "recount", note)

    def append_answers(fx: Any, session: Any, numbers: Iterable[int]) -> None:
        for number in numbers:
            answer = assistant(f"Answer {number}")
            fx.append(
                session, answer, response_id=f"r{number}", cost=1.0,
                time=1_770_000_000_000 + number, tokens={"output": 1 + number},
            )  # fmt: skip

    with store.effects() as fx:
        original = fx.create_session(title="original")
        append_answers(fx, original, range(6))
    with store.effects() as fx:
        copy = fx.create_session(title="copy", parent=original, relation="fork")
        append_answers(fx, copy, range(4))
        fx.set_title(copy, "renamed")
        append_answers(fx, copy, [6, 4, 5])
        again = fx.fork(copy)
    # Before the title, before the fork: once for all answers in a row.
    assert counted == [[copy.id], [copy.id]]
    assert_counted_once(backend, store)
    costs = [store.session(it) for it in (original, copy, again)]
    assert [(it.cost, it.cost_inherited) for it in costs] == [
        (6.0, None),
        (1.0, 6.0),
        (None, 7.0),
    ]
    store.delete(original, keep_forks=True)
    assert_counted_once(backend, store)
