"""SQL that is put together at run time, outside of an engine, runs on the server as well.

The texts of reads are those that they make for a second engine, which is answered with the
rows that SQLite has. Those of writes and of maintenance are noted as they pass a connection of
SQLite's. The server plans each, with values of the types that it is given.
"""

from __future__ import annotations

import re
import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import pytest
import sqlalchemy
from foreign_sessions import said, session_of, take_in
from partitions import make_partitioned, partitioned, touched
from postgresql_server import Server
from sqlalchemy import Column, Integer, UniqueConstraint, select
from sqlalchemy.sql.dml import UpdateBase
from sqlalchemy.sql.selectable import SelectBase

import sessiondb
from sessiondb import ALL, Store, assistant, event, text, tool, tool_result, user
from sessiondb.adapters.langgraph.tables import LANGGRAPH
from sessiondb.cli import completing, listing, overview, resume, resume_model
from sessiondb.engine.address import ServerAddress
from sessiondb.engine.message_sums import MessageSums
from sessiondb.engine.postgresql import dialect as postgresql
from sessiondb.engine.postgresql.compiling import table_statement
from sessiondb.engine.postgresql.ddl import names_of
from sessiondb.engine.postgresql.families import in_family
from sessiondb.engine.sql import Read, insert_new_text, insert_text, upsert_text
from sessiondb.engine.sqlite import dialect as sqlite
from sessiondb.engine.sqlite import search_query
from sessiondb.engine.sqlite.connection import SQLiteConnection
from sessiondb.engine.sqlite.engine import SQLITE
from sessiondb.errors import SessionDBError
from sessiondb.extensions import Extension, numbers, session_column
from sessiondb.formats import jsonl
from sessiondb.maintenance import (
    backup,
    check,
    deletions,
    diagnose,
    plan_vacuum,
    vacuum,
)
from sessiondb.maintenance.repair import repair
from sessiondb.model import FileDiff, MessageDraft
from sessiondb.repository import ENGINE_IN_USE, TIME
from sessiondb.repository.decode import LOST
from sessiondb.repository.hits import search_filters
from sessiondb.repository.sessions import Filters
from sessiondb.repository.usage import DIMENSIONS
from sessiondb.schema.columns import KEYS, TABLES

pytestmark = pytest.mark.slow
PACKAGE = Path(sessiondb.__file__).parent
#: The folders whose texts are for one engine, and the module that runs what each of them
#: has as an attribute.
ENGINES = ("engine/sqlite/", "engine/postgresql/", "engine/declared_tables.py")
#: Texts that an engine has as attributes.
OF_SQLITE = {
    SQLITE.extensions.declarations,
    SQLITE.search.count_missing,
    SQLITE.search.count_orphans,
}
_OF_TRANSACTIONS = re.compile(r"BEGIN|COMMIT|ROLLBACK|SAVEPOINT|RELEASE")


class Text(NamedTuple):
    """A text, the values of its parameters, and where it comes from."""

    sql: str
    values: Any
    place: str
    #: The lines of ours that run it, from the inside to the outside.
    places: tuple[str, ...] = ()


class Ours:
    """An engine that differs from SQLite in its dialect, and keeps no sums."""

    def __init__(self, dialect: Any) -> None:
        self.dialect = dialect
        self.usage = MessageSums(dialect)

    def __getattr__(self, name: str) -> Any:
        return getattr(SQLITE, name)


FIRST, SECOND = Ours(sqlite.DIALECT), Ours(postgresql.DIALECT)
#: The time that reads see, Unix ms.
NOW = 1_780_000_000_000


#: Rooms whose texts may ask all families: lists, searches and sums, names that a user or
#: a program gives, and maintenance of everything.
OF_ALL_FAMILIES = (
    "repository/sessions.py",
    "repository/lists.py",
    "repository/references.py",
    "repository/hits.py",
    "repository/usage.py",
    "engine/message_sums.py",
    "database/core.py",
    "cli/",
    "adapters/",
    "maintenance/",
)

# -- reads -------------------------------------------------------------------------------


def answers(read: Read[Any], connection: sqlite3.Connection) -> Iterator[Any]:
    """Yield what each statement of a read is answered on SQLite."""
    answer: Any = None
    while True:
        try:
            statement, params = read.send(answer)
        except (StopIteration, SessionDBError):
            return
        if statement is ENGINE_IN_USE:
            answer = FIRST
        elif statement is TIME:
            answer = NOW
        elif statement is LOST:
            answer = []
        else:
            answer = connection.execute(statement.text_on(FIRST), params).fetchall()
            yield answer


def texts_of(read: Read[Any], answered: Iterator[Any]) -> Iterator[Text]:
    """Yield the texts that a read makes for the second engine."""
    answer: Any = None
    while True:
        try:
            statement, params = read.send(answer)
        except (StopIteration, SessionDBError):
            return
        if statement is ENGINE_IN_USE:
            answer = SECOND
        elif statement is TIME:
            answer = NOW
        elif statement is LOST:
            answer = []
        else:
            answer = next(answered)
            innermost: Any = read
            while innermost.gi_yieldfrom is not None:
                innermost = innermost.gi_yieldfrom
            place = place_of(innermost.gi_frame)
            sql = statement.text_on(SECOND)
            if not place.startswith(ENGINES) and sql not in OF_SQLITE:
                yield Text(sql, params, place)


def place_of(frame: FrameType) -> str:
    """Return the file and line of a frame of the package."""
    return f"{Path(frame.f_code.co_filename).relative_to(PACKAGE)}:{frame.f_lineno}"


TIMES = {"since": 1, "until": 1 << 41}
NARROWING: list[dict[str, Any]] = [
    {}, {"project": "."}, {"scope": "s"}, {"source": "mine"}, {"agent": "build"}, TIMES,
    {"title": "a"}, {"project": ".", "scope": "s", "source": "mine", "agent": "build",
    "title": "a", **TIMES},
]  # fmt: skip
SHOWN = {"archived": True, "subagents": True, "empty": True}


def reads_of(store: Store) -> Iterator[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    """Yield reads that put their SQL together, by name and arguments."""
    for order in ("used", "created", "cost", "size"):
        for narrowing in NARROWING:
            for shown in ({}, SHOWN):
                for reverse in (False, True):
                    page = {"order": order, "reverse": reverse, "limit": 1}
                    page |= narrowing | shown
                    yield "sessions", (), page
                    cursor = store.sessions(**page).next_cursor
                    if cursor is not None:
                        yield "sessions", (), page | {"cursor": cursor}

    left_out = {"archived": False, "subagents": False}
    for narrowing in NARROWING:
        for by in ((), *DIMENSIONS, ("day", "model", "tool"), DIMENSIONS):
            yield "usage", (), {"by": by, **narrowing}
        for row in store.usage(by=DIMENSIONS, **narrowing)[:1]:
            yield "usage_records", (row.key,), narrowing
        yield "usage_records", (dict.fromkeys(DIMENSIONS),), narrowing | left_out
        yield "usage", (), {"by": ("week",), **narrowing, **left_out}
    every = store.sessions(project=ALL, limit=100, **SHOWN).items
    yield "usage", (), {"sessions": every}

    for where in (
        None,
        {"a": 1},
        {"a": {"$gt": 0.5}, "b": {"c": "x", "d": None}},
        {"b": {}},
    ):
        for order in ("key", "updated"):
            for reverse in (False, True):
                page = {"where": where, "order": order, "reverse": reverse, "limit": 1}
                yield "values", ("n",), page
                cursor = store.values("n", **page).next_cursor
                if cursor is not None:
                    yield "values", ("n",), page | {"cursor": cursor}
    yield "namespaces", (), {"limit": 1}
    yield "values_of", ([("n", "one"), ("n", "none")],), {}

    first = every[0]
    names = [
        first.id,
        first.slug,
        first.id[:8],
        first.id[-6:].lower(),
        first.title,
        "@",
        "@~1",
    ]
    for name in (*names, "thread", "no such session"):
        yield "session", (name,), {}
    for item in every:
        for name in ("tree", "plan_delete", "messages", "todos", "diffs", "labels", "context",
                     "children", "subagents", "session_shell"):  # fmt: skip
            yield name, (item,), {}
        yield "compare", (item, first), {}
    yield "tree", (first,), {"messages": True}
    yield "freed_bytes", (every,), {}
    for narrowing in NARROWING:
        yield "prompts", (), narrowing
    for name in ("projects", "unfinished", "half_imported", "newest_change"):
        yield name, (), {}
    yield (
        "select",
        (select(STEP.c.order).where(STEP.c.order.in_(numbers("n"))), {"n": [1]}),
        {},
    )


# -- writes and maintenance --------------------------------------------------------------

WORDS = Extension("words")
#: A table with a column whose name is a word of SQL.
STEP = WORDS.table(
    "step", session_column(), Column("order", Integer), Column("user", sqlalchemy.Text),
    UniqueConstraint("session_id", "order"),
)  # fmt: skip


@contextmanager
def noted() -> Iterator[list[Text]]:
    """Note what runs on connections of SQLite's from the code of all engines."""
    texts: list[Text] = []

    def note(sql: str, values: Any) -> None:
        frame: FrameType | None = sys._getframe(2)
        places = []
        while frame is not None and len(places) < 4:
            if PACKAGE in Path(frame.f_code.co_filename).parents:
                places.append(place_of(frame))
            frame = frame.f_back
        is_ours = places and not places[0].startswith(ENGINES)
        # What reads make is for SQLite here.
        if is_ours and not places[0].startswith("database/reading.py"):
            texts.append(Text(sql, values, " ".join(places), tuple(places)))

    def execute(self: Any, sql: str, values: Any = (), /) -> Any:
        note(sql, values)
        return run(self, sql, values)

    def executemany(self: Any, sql: str, rows: Any, /) -> Any:
        rows = list(rows)
        if rows:
            note(sql, rows[0])
        return run_many(self, sql, rows)

    run, run_many = SQLiteConnection.execute, SQLiteConnection.executemany
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SQLiteConnection, "execute", execute)
        patch.setattr(SQLiteConnection, "executemany", executemany)
        yield texts


def write_everything(store: Store) -> None:
    """Use the verbs of a store, and what sums up, moves, names and removes."""
    here = str(Path.cwd())
    tokens = {
        "input": 7,
        "output": 2,
        "reasoning": 1,
        "cache_read": 3,
        "cache_write": 1,
    }
    used = {"model": "m", "provider": "p", "cost": 0.5, "tokens": tokens}
    top = store.create_session(
        title="a top", directory=here, agent="build", scope="s", metadata={"a": 1}
    )
    store.append(top, user("asks"))
    call = tool("bash", {"command": "x" * 1500}, call_id="c")
    store.append(top, assistant(text("said " * 600), call), agent="plan", **used)
    store.append(top, MessageDraft("tool", (tool_result("c", "a result"),)))
    store.append(top, event("note", text("noted"), text("")))
    store.label(top, 1, "start")
    store.set_todos(top, ["one", "two"])
    store.set_diffs(top, [FileDiff("a.py", before=b"old", after=b"new")])
    store.add_prompt("typed", session=top)
    store.note_used(top, "terminal", directory=here)
    store.set_title(top, "a title")
    store.set_share(top, "https://example.org", secret="x")
    store.set_permission(top, {"edit": "ask"})
    store.set_revert(top, {"message": "1"})
    store.set_directory(top, "/moved")
    store.update_metadata(top, lambda found: {**(found or {}), "b": 2})
    named = store.open_session("thread", source="mine", directory=here)
    store.append(named, assistant("answer"), **used)
    store.update_session(named, model="chosen")
    store.archive(named)
    store.append_openai(named, [{"role": "user", "content": "hi"}])

    fork = store.fork(top, scope="t")
    store.append(fork, assistant("other"), **used)
    store.append(fork, assistant("more"), **used)
    store.append(fork, assistant("free"))
    store.append(fork, assistant("popped"), cost=1.0, model="m")
    store.pop(fork)
    store.remove(fork, [store.append(fork, user("removed"))])
    store.replace(fork, store.append(fork, user("old")), user("new"))
    store.set_leaf(fork, 2)
    store.truncate(fork, after=1)
    helper = store.create_session(parent=top, relation="subagent")
    with store.effects() as fx:
        message = fx.append(helper, assistant("open"), open=True, **used)
        part = fx.add_part(helper, message, tool("bash", {"a": 1}, call_id="d"))
        fx.start(helper, part)
        fx.settle(helper, part, output="done")
        fx.finish(helper, message, cost=0.25)
    with store.effects() as fx:
        fx.append(
            fx.create_session(), assistant(tool("bash", {}, call_id="e")), open=True
        )
    with store.lease(helper, ttl=30):
        store.append(helper, user("held"))
    store.create_session(title="empty", parent=fork, relation="fork")

    store.set_value("n", "one", {"a": 1, "b": {"c": "x"}})
    store.set_value(("n", "m"), "two", b"bytes", ttl=60)
    store.update_value("n", "one", lambda found: {**found, "d": 2})
    store.refresh_value(("n", "m"), "two")
    store.set_value("n", "three", None)
    store.delete_value("n", "three")
    store.delete_expired()
    store.set_value("gone", "x", 1)
    store.delete_values("gone")

    store.insert_rows(STEP, [{"session_id": top, "order": 1, "user": "ada"}])
    store.insert_rows(STEP, [{"session_id": top, "order": 1}], on_conflict="replace")
    store.insert_rows(STEP, [{"session_id": fork, "order": 1}], on_conflict="keep")

    chat = [said("first", role="user", at=1), said("second", at=2, cost=1.0, tokens=5)]
    take_in(store, session_of("known", *chat))
    take_in(store, session_of("known", *chat, said("third", at=3)))
    store.delete(store.fork(take_in(store, session_of("gone", *chat))[0].id))
    store.delete(named)
    store.reap()


def exchange_everything(store: Store, folder: Path) -> None:
    """Move sessions by logs, and by the histories of a program."""
    with Store.open(folder / "target.db", cwd=folder) as target:
        for item in store.sessions(project=ALL, limit=100, **SHOWN):
            (document,) = jsonl.write_logs([store.export(item, **jsonl.READ)])
            log = folder / "log.jsonl"
            log.write_bytes(b"".join(document.encoded()))  # type: ignore[union-attr]
            target.extend(WORDS)
            list(target.ingest(jsonl.read_log_file(log)))


ADAPTERS = (
    "adk",
    "claude_agent",
    "langgraph",
    "openai_agents",
    "pydantic_ai",
    "strands",
)


def statements_of_adapters() -> Iterator[Text]:
    """Yield the statements of the adapters whose frameworks are installed."""
    for name in ADAPTERS:
        with suppress(ImportError):
            module = import_module(f"sessiondb.adapters.{name}.statements")
            found = [*vars(module).values(), *getattr(module, "COPIES", ())]
            if name == "langgraph":
                filters = ("thread", "ns", "id", "before", "last_rid")
                found += [module.page_of_checkpoints(frozenset(filters))]
                found += [module.page_of_checkpoints(frozenset())]
            for statement in found:
                if isinstance(statement, SelectBase | UpdateBase):
                    sql, constants, names = postgresql.DIALECT.compile_with_constants(
                        statement
                    )
                    yield Text(
                        sql, constants | dict.fromkeys(names), f"adapters/{name}"
                    )


def inserts() -> Iterator[Text]:
    """Yield every way to insert a row of each table that the server has."""
    # An engine inserts blobs by itself.
    for table in names_of("TABLE") & TABLES.keys() - {"blob"}:
        columns = TABLES[table]
        # The server keeps ``hidden`` by itself.
        names = tuple(name for name in columns if name not in ("rid", "hidden"))
        values = [None] * len(names)
        if names:
            yield Text(insert_text(table, names), values, table)
        if names and table in KEYS:
            yield Text(insert_new_text(table, names), values, table)
            yield Text(upsert_text(table, names), values, table)


def further_queries() -> Iterator[Text]:
    """Yield queries of the command line, and some that the scenarios do not run."""
    cli = "cli/completing.py"
    yield Text(completing._NEWEST, {"offered": 1}, cli)
    yield Text(completing._NAMED, {"offered": 1, "begins": "a%"}, cli)
    yield Text(completing._PLACES, {"offered": 1, "name": "a"}, cli)
    yield Text(listing._LAST_PROMPT, {"id": "a"}, "cli/listing.py")
    yield Text(overview._COUNTS, {"today": 1}, "cli/overview.py")
    yield Text(resume._CONTINUED, {"id": "a"}, "cli/resume.py")
    yield Text(resume_model._MODELS, {"id": "a"}, "cli/resume_model.py")
    yield Text(deletions._TOMBSTONES, (), "maintenance/deletions.py")


def break_everything(path: Path) -> None:
    """Do to a file what a shell may, so that every repair has something to do."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for sql in (
            "UPDATE session SET message_count = 77, cost = 9, root_id = 'none'",
            "UPDATE session SET model_id = 'wrong', last_seq = 0 WHERE model_source = 'derived'",
            "UPDATE session SET leaf_seq = 99, change = 5",
            "UPDATE session SET parent_id = 'none' WHERE relation = 'fork'",
            "UPDATE message SET inherited = 2 WHERE seq = 1",
            "UPDATE message SET parent_seq = seq WHERE seq = 2",
            "UPDATE message SET usage_name = 'odd' || seq, usage_key = 'k' WHERE seq > 2",
            "UPDATE part SET inherited = 1 - inherited",
            "UPDATE part SET indexed = 0 WHERE idx = 0",
            "UPDATE blob SET size = size + 1",
            "UPDATE blob SET hash = 'no' WHERE rid = (SELECT min(rid) FROM blob)",
            "INSERT INTO blob (hash, size, encoding, data) VALUES ('loose', 1, 'raw', x'00')",
            "DELETE FROM project",
            "DELETE FROM meta WHERE key = 'min_reader'",
            "UPDATE prompt SET session_id = 'none'",
            "UPDATE label SET session_id = session_id || '#'",
            "UPDATE import_ledger SET path = path || '#none'",
            "UPDATE key_value SET namespace = '[\"n\" ]' WHERE key = 'one'",
            "DROP TABLE ext_words_step",
        ):
            connection.execute(sql)


def maintain_everything(store: Store, folder: Path) -> None:
    """Examine, copy and rewrite the file, break it and repair it."""
    diagnose(store.location)
    plan_vacuum(store)
    check(store)
    backup(store, folder / "copy.db")
    vacuum(store)
    break_everything(folder / "copy.db")
    with Store.open(folder / "copy.db", cwd=folder) as broken:
        repair(broken)
    break_families(folder / "copy.db")
    with Store.open(folder / "copy.db", cwd=folder) as broken:
        repair(broken)


def break_families(path: Path) -> None:
    """Make messages and sessions their own ancestors, and a project a second time."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        # Whoever breaks the circle of 2 and 3 makes one of 1 and 2.
        connection.execute(
            "UPDATE message SET parent_seq = CASE seq WHEN 2 THEN 3 ELSE 2 END WHERE seq < 4"
        )
        connection.execute("UPDATE session SET parent_id = id")
        connection.execute(
            "INSERT INTO project (id, worktree, time_created, time_updated) "
            "SELECT 'twin', worktree, 1, 1 FROM project LIMIT 1"
        )


# -- the tests ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("composed")


@pytest.fixture(scope="module")
def written(folder: Path) -> Iterator[tuple[Store, list[Text]]]:
    """A store with something of everything, and the texts that wrote it."""
    with (
        noted() as texts,
        Store.open(folder / "s.db", durability="normal", cwd=folder) as store,
    ):
        write_everything(store)
        yield store, list(texts)


@pytest.fixture(scope="module")
def planned(server: Server) -> Iterator[Callable[[list[Text]], list[str]]]:
    """Return a function that plans texts, and reports those that the server refuses.

    The tables are in partitions by family; it also reports texts that touch several.
    """
    import psycopg

    from sessiondb.engine.postgresql.target import PostgreSQLDatabase

    server.run("CREATE DATABASE composed")
    make_partitioned(server.url("composed"))
    database = PostgreSQLDatabase(ServerAddress(server.url("composed")))
    with closing(database.ensure() or database.connect()):
        pass
    with closing(database.connect()) as connection:
        for table in (
            *WORDS.metadata.tables.values(),
            *LANGGRAPH.metadata.tables.values(),
        ):
            for statement in partitioned([table_statement(table)]):
                connection.execute(statement)

        def plan(texts: list[Text]) -> list[str]:
            refused = {}
            for item in texts:
                sql = in_family(item.sql)
                try:
                    lines = connection.execute(f"EXPLAIN {sql}", item.values).fetchall()
                except psycopg.Error as error:
                    refused[item.sql] = f"{item.place}: {error}\n{item.sql}"
                    continue
                partitions = touched([line for (line,) in lines])
                if max(partitions.values(), default=0) > 1 and not any(
                    room in item.place for room in OF_ALL_FAMILIES
                ):
                    refused[item.sql] = f"{item.place}: {partitions}\n{sql}"
            return list(refused.values())

        yield plan
    server.run("DROP DATABASE composed")


Plan = Callable[[list[Text]], list[str]]


def test_the_server_plans_what_reads_put_together(
    written: tuple[Store, list[Text]], planned: Plan
) -> None:
    store, _ = written
    queries = store._queries
    texts = []
    with closing(sqlite3.connect(store.path)) as connection:
        search_query.register(connection)
        for name, positional, named in reads_of(store):
            read = getattr(queries, name)
            answered = answers(read(*positional, **named), connection)
            texts += texts_of(read(*positional, **named), answered)
    places = {item.place.partition(":")[0] for item in texts}
    assert places >= {
        "repository/sessions.py",
        "repository/values.py",
        "repository/usage.py",
    }
    assert not planned(texts)


def test_the_server_plans_the_terms_of_searches(planned: Plan) -> None:
    every = Filters(
        project_id="p", scope="s", source="x", agent="a", since=1, until=2, title="t"
    )
    texts = []
    for role, name in (("tool", None), ("user", "bash"), (None, None)):
        terms = search_filters(SECOND, every, role, name)
        for term in (*terms.of_parts, *(terms.of_titles or ()), *terms.of_times):
            rows = "message AS m JOIN session AS s ON s.id = m.session_id JOIN part AS p ON true"
            sql = f"SELECT 1 FROM {rows} WHERE {term}"
            texts.append(Text(sql, terms.params, "repository/hits.py"))
    assert not planned(texts)


def test_the_server_plans_what_writes_put_together(
    written: tuple[Store, list[Text]], planned: Plan
) -> None:
    _, texts = written
    assert not planned(composed(texts))


def test_the_server_plans_what_maintenance_and_imports_run(
    written: tuple[Store, list[Text]], planned: Plan, folder: Path
) -> None:
    store, of_writes = written
    with noted() as texts:
        exchange_everything(store, folder)
        maintain_everything(store, folder)
    assert not planned(composed(texts))
    heard = {
        place.partition(":")[0]
        for text in (*of_writes, *texts)
        for place in text.places
    }
    assert rooms_with_text() - heard == UNHEARD


#: Modules whose texts are not heard, for they only begin and end transactions, pass on
#: what others make, or insert (see `inserts` and `further_queries`); or that the server
#: runs in `test_copies`.
UNHEARD = {
    "cli/completing.py",
    "database/reading.py",
    "effects/preload.py",
    "importing/known_files.py",
    "maintenance/copying.py",
    "maintenance/deletions.py",
    "maintenance/stored_rows.py",
    "writer/connection.py",
}


def rooms_with_text() -> set[str]:
    """Return the modules that hand a text to a connection."""
    rooms = set()
    for file in PACKAGE.rglob("*.py"):
        name = file.relative_to(PACKAGE).as_posix()
        is_free = name.startswith(("engine/", "formats/", "adapters/"))
        if not is_free and re.search(r"\.execute(many)?\(", file.read_text()):
            rooms.add(name)
    return rooms


def composed(texts: list[Text]) -> list[Text]:
    """Return the texts that do not ship, and have a plan."""
    shipped = set(sqlite.DIALECT.shipped.values())
    return [
        item
        for item in texts
        if item.sql not in shipped | OF_SQLITE and not _OF_TRANSACTIONS.match(item.sql)
    ]


@pytest.mark.parametrize("make", [further_queries, inserts, statements_of_adapters])
def test_the_server_plans_every_further_text(
    planned: Plan, make: Callable[[], Iterable[Text]]
) -> None:
    texts = list(make())
    assert texts
    assert not planned(texts)


def test_a_text_that_the_server_refuses_is_reported_with_its_place(
    planned: Plan,
) -> None:
    (refused,) = planned([Text("SELECT iif(:a, 1, 2)", {"a": 1}, "room/file.py:1")])
    assert refused.startswith("room/file.py:1: function iif")
