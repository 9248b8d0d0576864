"""Tables that a program adds: made by its first write, and known to everything after it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from backends import Backend, Place
from facades import Contract
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from peers import Connection, other, ran
from sqlalchemy import (
    REAL,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Text,
    UniqueConstraint,
    bindparam,
    delete,
    func,
    insert,
    literal,
    select,
    text,
    update,
)

from sessiondb import (
    ALL,
    AsyncStore,
    ConflictError,
    InvalidInputError,
    LeaseHeldError,
    NotFoundError,
    Problem,
    SchemaVersionError,
    SessionHandle,
    Store,
    user,
)
from sessiondb.extensions import Extension, numbers, session_column, texts
from sessiondb.formats import exporter, jsonl, writable
from sessiondb.formats.redact import Redaction
from sessiondb.importing import databases
from sessiondb.maintenance import backup, check
from sessiondb.maintenance.bundle import write_bundle
from sessiondb.maintenance.doctor import diagnose
from sessiondb.maintenance.repair import repair
from sessiondb.model import Document
from sessiondb.schema import tables

GRAPH = Extension("graph")
STEP = GRAPH.table(
    "step",
    session_column(),
    Column("number", Integer, nullable=False),
    Column("state", LargeBinary),
    Column("note", Text),
    Column("weight", REAL),
    UniqueConstraint("session_id", "number"),
)
CACHE = GRAPH.table(
    "cache", Column("key", Text, nullable=False), Column("size", Integer)
)

#: The next version of the program: a further column, index and table.
GRAPH_2 = Extension("graph", version=2)
STEP_2 = GRAPH_2.table(
    "step",
    session_column(),
    Column("number", Integer, nullable=False),
    Column("state", LargeBinary),
    Column("note", Text),
    Column("weight", REAL),
    Column("kind", Text, nullable=False, server_default=text("'step'")),
    UniqueConstraint("session_id", "number"),
    Index(None, "kind"),
)
RUN_2 = GRAPH_2.table("run", Column("id", Text, nullable=False), UniqueConstraint("id"))

STEPS = (
    select(STEP.c.number, STEP.c.note)
    .where(STEP.c.session_id == bindparam("session_id"))
    .order_by(STEP.c.number)
)
ALL_STEPS = select(STEP.c.number).order_by(STEP.c.number)


def step(session: object, number: int, **more: Any) -> dict[str, Any]:
    return {"session_id": session, "number": number, "note": f"n{number}", **more}


# -- writing and reading ---------------------------------------------------------------


async def test_the_first_write_makes_the_tables_and_no_row_is_read_before(
    contract: Contract, session: SessionHandle
) -> None:
    assert await contract.store.select(ALL_STEPS) == []
    assert contract.rows("SELECT name FROM extension") == []
    written = await contract.store.insert_rows(
        STEP, [step(session, 2), step(session, 1)]
    )
    assert written.rowcount == 2
    rows = await contract.store.select(STEPS, {"session_id": session})
    assert rows == [(1, "n1"), (2, "n2")]
    assert contract.rows("SELECT name, version, tables FROM extension") == [
        ("graph", 1, '["ext_graph_step", "ext_graph_cache"]')
    ]
    contract.check()


async def test_rows_are_written_in_the_unit_of_the_session_that_is_opened(
    contract: Contract,
) -> None:
    known = await contract.store.open_session("t")
    async with contract.store.effects() as fx:
        thread = fx.open_session("t")
        fx.append(thread, user("hi"))
        fx.insert_rows(STEP, [step(thread, 1)])
        done = fx.execute(
            update(STEP)
            .where(STEP.c.session_id == bindparam("session_id"))
            .values(note=bindparam("text")),
            {"session_id": thread, "text": "set"},
        )
    assert thread.id == known.id
    assert done.rowcount == 1
    assert await contract.store.select(STEPS, {"session_id": known}) == [(1, "set")]


async def test_a_unit_that_fails_leaves_neither_rows_nor_tables(
    contract: Contract, session: SessionHandle
) -> None:
    with pytest.raises(ConflictError):
        async with contract.store.effects() as fx:
            fx.insert_rows(STEP, [step(session, 1)])
            fx.append(session, user("x"), expect_revision=77)
    assert contract.rows("SELECT name FROM extension") == []
    await contract.store.insert_rows(STEP, [step(session, 1)])
    assert await contract.store.select(ALL_STEPS) == [(1,)]


def test_tables_that_go_with_a_failed_unit_of_a_commit_are_made_again(
    backend: Backend,
) -> None:
    with Store.open(backend.fresh()) as store:
        awaited = AsyncStore.sharing(store)
        session = store.create_session()

        async def fails() -> None:
            async with awaited.effects() as fx:
                for number in range(2):
                    row = {"session_id": session, "number": number}
                    fx.insert_rows(STEP, [row])
                # Whatever it learned of the tables is to be forgotten.
                going = fx.create_session()
                fx.delete(going)
                fx.set_value("a", "k", 1, expect_revision=9)

        async def succeeds() -> None:
            await awaited.set_value("b", "k", 1)

        async def run() -> list[Any]:
            return await asyncio.gather(
                fails(), succeeds(), fails(), succeeds(), return_exceptions=True
            )

        for _ in range(2):
            outcomes = asyncio.run(run())
            assert [type(it) for it in outcomes] == [
                ConflictError, type(None), ConflictError, type(None),
            ]  # fmt: skip
            going = store.create_session()
            store.delete(going)
            assert store.select(select(STEP.c.number)) == []
        store.insert_rows(STEP, [{"session_id": session, "number": 1}])
        store.insert_rows(STEP, [{"session_id": session, "number": 2}])
        store.delete(session)
        assert store.select(select(STEP.c.number)) == []
        assert check(store) == []


async def test_a_row_whose_key_is_taken_is_an_error_replaced_or_kept(
    contract: Contract, session: SessionHandle
) -> None:
    store = contract.store
    await store.insert_rows(STEP, [step(session, 1, weight=1.5)])
    with pytest.raises(ConflictError):
        await store.insert_rows(STEP, [step(session, 1)])
    kept = await store.insert_rows(
        STEP, [step(session, 1) | {"note": "no"}, step(session, 2)], on_conflict="keep"
    )
    replaced = await store.insert_rows(
        STEP, [step(session, 2) | {"note": "yes"}], on_conflict="replace"
    )
    assert (kept.rowcount, replaced.rowcount) == (1, 1)
    assert await store.select(STEPS, {"session_id": session}) == [(1, "n1"), (2, "yes")]
    # Columns that a row does not have stay.
    assert await store.select(select(STEP.c.weight).where(STEP.c.number == 1)) == [
        (1.5,)
    ]


def test_a_column_may_have_the_name_of_a_word_of_sql(
    store: Store, opened: Callable[[str], Store], tmp_path: Path
) -> None:
    words = Extension("words").table(
        "sql",
        session_column(),
        Column("order", Integer),
        Column("user", Text),
        UniqueConstraint("order"),
    )
    session = store.create_session()
    store.append(session, user("hi"))
    row = {"session_id": session, "order": 1, "user": "ada"}
    store.insert_rows(words, [row], on_conflict="keep")
    store.insert_rows(words, [row | {"user": "eve"}], on_conflict="replace")
    target = opened("target")
    target.extend(words.metadata.info["extension"])
    (done,) = target.ingest(
        jsonl.read_log_file(_log_of(store, session, tmp_path / "l"))
    )
    assert done.problems == ()  # type: ignore[union-attr]
    assert target.select(select(words.c.order, words.c.user)) == [(1, "eve")]
    assert target.sessions(project=ALL, order="size").sizes


async def test_a_unit_whose_outcome_was_unknown_writes_its_rows_once(
    contract: Contract, session: SessionHandle
) -> None:
    unit = contract.store.unit()
    unit.insert_rows(STEP, [step(session, 1)])
    await contract.store.commit(unit)
    # As after a commit whose acknowledgement was lost.
    unit.committed, unit.tried = False, True
    await contract.store.commit(unit)
    assert await contract.store.select(ALL_STEPS) == [(1,)]


async def test_a_write_counts_as_a_use_of_its_session(
    contract: Contract, session: SessionHandle
) -> None:
    before = await contract.store.session(session)
    await contract.store.insert_rows(STEP, [step(session, 1)])
    after = await contract.store.session(session)
    assert after.revision == before.revision + 1
    assert after.time_updated > before.time_updated or before.message_count == 0


def hold(pipe: Connection, place: Place, session_id: str) -> None:
    with Store.open(place) as store, store.lease(session_id, 30):
        pipe.send("held")
        pipe.recv()


def test_a_write_needs_the_lease_of_its_session(backend: Backend) -> None:
    place = backend.fresh()
    with Store.open(place) as store:
        session = store.create_session(id="s")
        with other(hold, place, session.id) as holder:
            holder.hear()
            with pytest.raises(LeaseHeldError):
                store.insert_rows(STEP, [step(session, 1)])
            holder.say()
            holder.end()
        store.insert_rows(STEP, [step(session, 1)])


async def test_statements_take_constants_lists_and_parameters(
    contract: Contract, session: SessionHandle
) -> None:
    store = contract.store
    await store.insert_rows(STEP, [step(session, n, weight=n / 2) for n in range(6)])
    number = STEP.c.number
    for condition, parameters in (
        (number.in_([1, 3]), None),
        (number.in_(numbers("wanted")), {"wanted": "[1, 3]"}),
        (STEP.c.note.in_(texts("wanted")), {"wanted": '["n1", "n3"]'}),
        (STEP.c.note.in_(["n1", "n3", "it's"]), None),
        ((number == 1) | (number == bindparam("n")), {"n": 3}),
    ):
        statement = select(number).where(condition).order_by(number)
        assert await store.select(statement, parameters) == [(1,), (3,)]
    copied = await store.execute(
        insert(STEP).from_select(
            ["session_id", "number"], select(STEP.c.session_id, number + 100)
        )
    )
    removed = await store.execute(delete(STEP).where(number < 100))
    assert (copied.rowcount, removed.rowcount) == (6, 6)
    joined = select(func.count()).select_from(
        STEP.join(tables.session, tables.session.c.id == STEP.c.session_id)
    )
    assert await store.select(joined) == [(6,)]


async def test_a_number_of_rows_that_is_not_the_expected_one_writes_nothing(
    contract: Contract,
) -> None:
    store = contract.store
    session = await store.create_session()
    await store.insert_rows(STEP, [step(session, number) for number in range(3)])
    some = delete(STEP).where(STEP.c.number < bindparam("n"))
    unit = store.unit()
    unit.append(session, user("not written"))
    unit.execute(some, {"n": 2}, expect_rows=3)
    with pytest.raises(ConflictError, match="2 rows, expected 3"):
        await store.commit(unit)
    assert not await store.messages(session)
    assert len(await store.select(select(STEP))) == 3

    done = await store.execute(some, {"n": 2}, expect_rows=2)
    assert done.rowcount == 2
    await store.execute(some, {"n": 2}, expect_rows=0)


# -- what is refused -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({}, "mappings"),
        ({"number": 1}, "needs session_id"),
        ({"session_id": "s", "number": "1"}, "number is Integer"),
        ({"session_id": "s", "number": None}, "must not be None"),
        ({"session_id": "s", "number": 1 << 63}, "64 bits"),
        ({"session_id": "s", "number": 1, "note": b"x"}, "note is Text"),
        ({"session_id": "s", "number": 1, "note": "\ud800"}, "Unicode"),
        ({"session_id": "s", "number": 1, "state": "x"}, "state is LargeBinary"),
        ({"session_id": "s", "number": 1, "weight": float("nan")}, "NaN"),
        ({"session_id": "s", "number": 1, "rid": 7}, "no column rid"),
        ({"session_id": "s", "number": 1, "other": 7}, "no column other"),
        ({"session_id": 7, "number": 1}, "session_id"),
        ({"session_id": "", "number": 1}, "session_id"),
    ],
)
def test_a_row_that_its_table_cannot_have_is_refused_when_it_is_queued(
    store: Store, row: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidInputError, match=said):
        store.insert_rows(STEP, [row])


def test_what_is_no_write_of_an_extension_is_refused(store: Store) -> None:
    session = store.create_session()
    refused: list[Callable[[], object]] = [
        lambda: store.insert_rows(tables.session, [{"id": "x"}]),
        lambda: store.insert_rows("ext_graph_step", [step(session, 1)]),  # type: ignore[arg-type]
        lambda: store.insert_rows(STEP, [step(session, 1)], on_conflict="update"),
        lambda: store.insert_rows(CACHE, [{"key": "a"}], on_conflict="keep"),
        lambda: store.insert_rows(
            STEP, [step(session, 1), {"session_id": session, "number": 2}]
        ),
        lambda: store.execute(delete(tables.session)),
        lambda: store.execute(text("DELETE FROM ext_graph_step")),  # type: ignore[arg-type]
        lambda: store.execute(select(STEP)),  # type: ignore[arg-type]
        lambda: store.execute("DELETE FROM ext_graph_step"),  # type: ignore[arg-type]
        lambda: store.execute(delete(STEP), {"n": 1}),
        lambda: store.execute(delete(STEP), expect_rows=-1),
        lambda: store.execute(delete(STEP), expect_rows="1"),  # type: ignore[arg-type]
        lambda: store.execute(delete(STEP).where(STEP.c.number == bindparam("n"))),
        lambda: store.execute(
            delete(STEP).where(STEP.c.number == bindparam("n")), {"n": [1]}
        ),
        lambda: store.execute(delete(STEP).where(STEP.c.state.in_([b"1"]))),
        lambda: store.execute(
            delete(STEP).where(STEP.c.number.in_(bindparam("n", expanding=True))),
            {"n": [1]},
        ),
        lambda: store.extend(STEP),  # type: ignore[arg-type]
        lambda: store.select(delete(STEP)),  # type: ignore[arg-type]
        lambda: store.select(text("SELECT 1")),  # type: ignore[arg-type]
        lambda: store.select(STEPS),
        lambda: store.select(STEPS, {"session_id": 7}),
    ]
    for call in refused:
        with pytest.raises(InvalidInputError):
            call()
    assert store.select(ALL_STEPS) == []


def test_a_row_of_a_session_that_is_not_there_is_refused(store: Store) -> None:
    with pytest.raises(NotFoundError):
        store.insert_rows(STEP, [step("nobody", 1)])


def _table(*items: Any) -> Callable[[], object]:
    return lambda: Extension("other").table("thing", *items)


@pytest.mark.parametrize(
    "define",
    [
        lambda: Extension("Graph"),
        lambda: Extension(""),
        lambda: Extension("a" * 41),
        lambda: Extension("graph;"),
        lambda: Extension("graph", version=0),
        lambda: Extension("graph", version=True),
        lambda: Extension("graph").table("Step"),
        lambda: GRAPH.table("step", Column("a", Text)),
        _table(Column("a", Boolean)),
        _table(Column("a", Text, primary_key=True)),
        _table(Column("rid", Integer)),
        _table(Column("A", Text)),
        _table(Column("a", Text, ForeignKey("session.id"))),
        _table(Column("session_id", Text)),
        _table(Index("named", "a"), Column("a", Text)),
        _table(text("CHECK (1)")),
    ],
)
def test_a_definition_that_would_not_fit_into_a_file_is_refused(
    define: Callable[[], object],
) -> None:
    with pytest.raises(InvalidInputError):
        define()


# -- sessions that go ------------------------------------------------------------------


async def test_the_rows_of_a_session_go_with_it_and_with_its_family(
    contract: Contract, session: SessionHandle
) -> None:
    store = contract.store
    child = await store.create_session(parent=session)
    stays = await store.create_session()
    rows = [step(session, 1), step(child, 2), step(stays, 3)]
    await store.insert_rows(STEP, rows)
    await store.delete(session)
    # At once: the rows of the session itself are removed later.
    assert await store.select(ALL_STEPS) == [(3,)]
    contract.check()


@pytest.mark.needs("is_file", "a repair is of a file")
def test_check_finds_and_repair_removes_rows_without_their_session(
    backend: Backend,
) -> None:
    place = backend.fresh()
    with Store.open(place) as store:
        store.insert_rows(STEP, [step(store.create_session(), 1)])
    backend.tear(place, "DELETE FROM session")
    backend.run(place, "DROP TABLE ext_graph_cache")
    with Store.open(place) as store:
        findings = [(f.check, f.what) for f in check(store)]
        assert (
            "references",
            "rows of ext_graph_step without their session",
        ) in findings
        missing = "table ext_graph_cache of extension graph is missing"
        assert ("extensions", missing) in findings
        repair(store)
        assert check(store) == []
        assert store.select(ALL_STEPS) == []
        store.insert_rows(CACHE, [{"key": "a", "size": 1}])
        assert store.select(select(CACHE.c.key)) == [("a",)]


# -- versions --------------------------------------------------------------------------


async def test_a_later_version_completes_the_tables_and_an_earlier_one_continues(
    contract: Contract, session: SessionHandle
) -> None:
    store = contract.store
    await store.insert_rows(STEP, [step(session, 1)])
    with pytest.raises(SchemaVersionError, match="version 1, before 2"):
        await store.select(select(STEP_2.c.kind))
    await store.extend(GRAPH_2)
    assert await store.select(select(STEP_2.c.kind)) == [("step",)]
    assert await store.select(select(RUN_2.c.id)) == []
    await store.insert_rows(STEP, [step(session, 2)])
    await store.insert_rows(STEP_2, [step(session, 3, kind="end")])
    assert await store.select(ALL_STEPS) == [(1,), (2,), (3,)]
    assert contract.rows("SELECT version FROM extension") == [(2,)]
    assert contract.backend.has_index(contract.place, "ix_ext_graph_step_kind")
    contract.check()


def test_a_column_that_older_rows_cannot_have_is_refused(store: Store) -> None:
    store.extend(GRAPH)
    wrong = Extension("graph", version=3)
    wrong.table("cache", Column("key", Text), Column("new", Text, nullable=False))
    with pytest.raises(InvalidInputError, match="server_default"):
        store.extend(wrong)
    store.insert_rows(CACHE, [{"key": "a"}])


def insert_steps(pipe: Connection, place: Place, first: int) -> None:
    del pipe
    with Store.open(place, durability="normal") as store:
        for number in range(first, first + 25):
            with store.effects() as fx:
                thread = fx.open_session("t")
                fx.insert_rows(STEP, [step(thread, number)])


def test_four_processes_make_the_tables_and_write_rows_at_once(
    backend: Backend,
) -> None:
    place = backend.fresh()
    with (
        other(insert_steps, place, 0) as one,
        other(insert_steps, place, 100) as two,
        other(insert_steps, place, 200) as three,
        other(insert_steps, place, 300) as four,
    ):
        for process in (one, two, three, four):
            process.end()
    with Store.open(place) as store:
        assert len(store.select(ALL_STEPS)) == 100
        assert check(store) == []


def read_steps(pipe: Connection, place: Place) -> None:
    del pipe
    with Store.open(place, read_only=True) as store:
        assert store.select(ALL_STEPS) == [(1,)]


def test_a_read_only_store_in_another_process_reads_them(backend: Backend) -> None:
    place = backend.fresh()
    with Store.open(place) as store:
        store.insert_rows(STEP, [step(store.create_session(), 1)])
        ran(read_steps, place)


# -- logs, databases, copies -----------------------------------------------------------

_TEXTS = st.text(st.characters(codec="utf-8"), max_size=20) | st.just("$map")
_ROWS = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "state": st.binary(max_size=20) | st.just(b"\0" * 5000),
            "note": _TEXTS,
            "weight": st.floats(allow_nan=False),
        },
    ),
    max_size=5,
)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=_ROWS)
def test_a_log_brings_every_value_of_every_row_to_another_database(
    store: Store,
    opened: Callable[[str], Store],
    tmp_path: Path,
    rows: list[dict[str, Any]],
) -> None:
    with store.effects() as fx:
        session = fx.create_session()
        fx.append(session, user("hi"))
        for number, row in enumerate(rows):
            fx.insert_rows(STEP, [{"session_id": session, "number": number, **row}])
    mine = select(STEP.c["number", "state", "note", "weight"]).where(
        STEP.c.session_id == bindparam("session_id")
    )
    (document,) = jsonl.write_logs([store.export(session, **jsonl.READ)])
    log = tmp_path / "log.jsonl"
    log.write_bytes(b"".join(document.encoded()))  # type: ignore[union-attr]
    target = opened("target")
    target.extend(GRAPH)
    for outcome in ("imported", "unchanged"):
        (done,) = target.ingest(jsonl.read_log_file(log))
        assert (done.outcome, done.problems) == (outcome, ())  # type: ignore[union-attr]
        assert target.select(mine, {"session_id": session}) == store.select(
            mine, {"session_id": session}
        )


def _log_of(store: Store, session: SessionHandle, path: Path) -> Path:
    (document,) = jsonl.write_logs([store.export(session, **jsonl.READ)])
    path.write_bytes(b"".join(document.encoded()))  # type: ignore[union-attr]
    return path


@pytest.fixture
def stepped(store: Store) -> SessionHandle:
    """A session with two rows of the extension."""
    session = store.create_session()
    store.append(session, user("hi"))
    store.insert_rows(STEP, [step(session, 1)])
    store.insert_rows(STEP, [step(session, 2, state=b"\0\xff")])
    return session


def test_rows_of_a_program_that_is_not_installed_are_left_out_and_reported(
    store: Store, stepped: SessionHandle, opened: Callable[[str], Store], tmp_path: Path
) -> None:
    log = _log_of(store, stepped, tmp_path / "log.jsonl")
    target = opened("target")
    problem, done = target.ingest(jsonl.read_log_file(log))
    assert isinstance(problem, Problem)
    assert "no table ext_graph_step of graph here" in problem.why
    assert (done.outcome, done.messages) == ("imported", 1)  # type: ignore[union-attr]
    # Once it is there, the next import brings them.
    target.extend(GRAPH)
    list(target.ingest(jsonl.read_log_file(log)))
    assert target.select(ALL_STEPS) == [(1,), (2,)]


@pytest.mark.parametrize(
    "row",
    [
        '"row":{"number":"x"}',
        '"row":{"unknown":1}',
        '"row":{"number":[1]}',
        '"row":{"number":true}',
        '"row":{"number":99999999999999999999}',
        '"row":{}',
        '"row":7',
        '"rows":{}',
    ],
)
def test_a_row_that_does_not_fit_costs_only_itself(
    store: Store,
    stepped: SessionHandle,
    opened: Callable[[str], Store],
    tmp_path: Path,
    row: str,
) -> None:
    log = _log_of(store, stepped, tmp_path / "log.jsonl")
    (line,) = [x for x in log.read_text().splitlines() if '"number":1' in x]
    damaged = line.replace('"row":{"number":1,"note":"n1"}', row)
    assert damaged != line
    log.write_text(log.read_text().replace(line, damaged))
    target = opened("target")
    target.extend(GRAPH)
    outcomes = list(target.ingest(jsonl.read_log_file(log)))
    assert any(isinstance(item, Problem) for item in outcomes)
    assert target.select(ALL_STEPS) == [(2,)]
    assert [m.text for m in target.messages(stepped)] == ["hi"]


@pytest.mark.needs("is_file", "a database of a server is not imported")
def test_another_database_is_imported_with_the_rows_of_its_sessions(
    store: Store,
    backend: Backend,
    stepped: SessionHandle,
    opened: Callable[[str], Store],
) -> None:
    target = opened("target")
    target.extend(GRAPH)
    outcomes = list(target.ingest(databases.read(backend.place_of(store))))
    assert [item.outcome for item in outcomes] == ["imported"]  # type: ignore[union-attr]
    assert target.select(ALL_STEPS) == [(1,), (2,)]


def test_a_bundle_has_the_rows_and_restores_them(
    store: Store, stepped: SessionHandle, tmp_path: Path
) -> None:
    bundle = tmp_path / "bundle.jsonl"
    write_bundle(store, [store.session(stepped)], bundle)
    store.delete(stepped)
    assert store.select(ALL_STEPS) == []
    list(store.ingest(jsonl.read_log_file(bundle), undelete=True))
    assert store.select(ALL_STEPS) == [(1,), (2,)]


def test_a_redacted_export_has_no_rows_and_says_so(
    store: Store, stepped: SessionHandle
) -> None:
    redaction = Redaction()
    redaction.learn(store.export(stepped))
    cleaned = redaction.redact(store.export(stepped))
    assert (cleaned.extension_tables, list(cleaned.extension_rows)) == ((), [])
    (removed,) = redaction.report()
    assert (removed.kind, removed.fields) == (
        "table of an extension",
        ("ext_graph_step",),
    )


def test_other_formats_report_the_rows_as_lost(
    store: Store, stepped: SessionHandle
) -> None:
    for name in {*writable()} - {"jsonl", "markdown", "html"}:
        how = exporter(name)
        losses = []
        for item in how.write([store.export(stepped, **how.read)]):
            if isinstance(item, Document):
                list(item.encoded())
            elif item.of == "extension_rows":
                losses.append(item.why)
        assert losses == ["rows of ext_graph_step"], name


@pytest.mark.needs("is_file", "a backup is a file")
def test_a_backup_and_doctor_have_them(
    store: Store, stepped: SessionHandle, tmp_path: Path
) -> None:
    backup(store, tmp_path / "copy.db")
    with Store.open(tmp_path / "copy.db") as copy:
        assert copy.select(ALL_STEPS) == [(1,), (2,)]
        assert check(copy) == []
    assert (
        "ext_graph_step: 2 rows, of graph 1" in diagnose(store.location)["extensions"]
    )
    assert "ext_graph_step" in diagnose(store.location)["bytes_by_table"]


def test_the_size_of_a_session_includes_its_rows(
    store: Store, stepped: SessionHandle
) -> None:
    before = store.freed_bytes([stepped])
    # Not zeros, which a server compresses.
    store.insert_rows(STEP, [step(stepped, 3, state=os.urandom(100_000))])
    assert store.freed_bytes([stepped]) == pytest.approx(before + 110_000, rel=0.1)
    page = store.sessions(order="size", project=ALL)
    assert page.sizes[0] > 100_000


# -- files of other people ---------------------------------------------------------------


@pytest.mark.parametrize(
    "names",
    [
        '["session"]',
        '["ext_graph_step; DROP TABLE session"]',
        '["sqlite_schema"]',
        "[7, null]",
        "{}",
    ],
)
def test_a_declaration_that_names_another_table_is_not_believed(
    backend: Backend, names: str
) -> None:
    place = backend.fresh()
    with Store.open(place) as store:
        session = store.create_session()
        store.append(session, user("hi"))
        store.insert_rows(STEP, [step(session, 1)])
    backend.run(place, "UPDATE extension SET tables = ?", names)
    with Store.open(place) as store:
        assert list(store.export(session).extension_rows) == []
        fork = store.fork(session)
        store.delete(session, keep_forks=True)
        store.reap()
        assert [m.text for m in store.messages(fork)] == ["hi"]


def test_a_literal_in_a_statement_is_bound_and_never_sql(store: Store) -> None:
    session = store.create_session()
    store.insert_rows(STEP, [step(session, 1)])
    hostile = "'; DROP TABLE session; --"
    assert store.select(select(literal(hostile)).select_from(STEP)) == [(hostile,)]
    assert store.select(select(STEP.c.number).where(STEP.c.note.in_([hostile]))) == []
