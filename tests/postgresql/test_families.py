"""The tables can be sharded by family, and what is about one session touches one family.

Citus cannot be installed here. Hash partitions refuse the same keys, and a plan names
those that a statement touches. Other refusals of Citus are looked for in the texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from partitions import PARTITIONS, make_partitioned, partitioned, touched
from postgresql_server import Server

from sessiondb.engine.default import target_of
from sessiondb.engine.postgresql import ddl, moving, routes, search_writing
from sessiondb.engine.postgresql.dialect import DIALECT
from sessiondb.engine.postgresql.families import (
    FAMILY_OF,
    SHARDED,
    family_of_root,
    in_family,
)

_PARAMETER = re.compile(r"(?<![:\w]):(\w+)")
#: Values by their type. A text may be that of a list.
VALUES = {
    "bigint": "7",
    "integer": "7",
    "double precision": "7.5",
    "text": "'[\"7\"]'",
    "bytea": "'\\x37'",
    "boolean": "true",
    "jsonb": "'[\"7\"]'",
    "json": "'[\"7\"]'",
    "bigint[]": "'{7}'",
}
#: Statements that query all families, by what they look for.
ACROSS = {
    "a session by a name that a user, a terminal or a program gave it": {
        "effects.creation.NAMED",
        "effects.session.SLUG",
        "importing.beside.history.SESSIONS",
        "importing.lookup.HERE",
        "importing.lookup.NAMESPACES",
        "importing.rows.same_store.NAMESPACES",
        "importing.rows.session.BY_SOURCE",
        "importing.unchanged.FOLLOWING",
        "repository.references.BY_SLUG",
        "repository.references.BY_SOURCE_ID",
        "repository.references.BY_SOURCE_PREFIX",
        "repository.references.BY_TAIL",
        "repository.references.BY_TITLE",
        "repository.references.IN_ANY",
        "repository.references.IN_TERMINAL",
        "repository.transcript.PLACE_OF_ID",
    },
    "sessions of a list, a search or a project": {
        "effects.merge.SESSIONS",
        "effects.place.SESSIONS",
        "effects.transaction.LOAD_MANY",
        "repository.hits.SESSIONS_BY_ID",
        "repository.lists.ABANDONED",
        "repository.lists.HALF_IMPORTED",
        "repository.sessions.ALL",
        "repository.sessions.BY_IDS",
        "repository.sessions.CREATED",
        "repository.sessions.PROJECT_CREATED",
        "repository.sessions.PROJECT_USED",
        "repository.sessions.SCOPE_CREATED",
        "repository.sessions.SCOPE_USED",
        "repository.sessions.USED",
    },
    "copies of an answer, which counts once, in whatever session": {
        "effects.delete.SHARED",
        "effects.message.TWIN",
        "effects.ownership.BY_KEY",
        "effects.ownership.BY_PLACE",
        "importing.policies.derived.RENAME_COPIES",
        "importing.rows.messages.BEGINNINGS",
        "importing.rows.messages.IDS_ELSEWHERE",
        "importing.rows.messages.SHARED_KEYS",
        "importing.rows.sums.COSTS",
        "importing.rows.sums.SUBAGENTS",
    },
    "a child whose parent comes later": {
        "importing.rows.family.BY_ID",
        "importing.rows.family.BY_SOURCE",
        "importing.snapshot.FAMILIES",
    },
    "a message that may be of any session": {"effects.expect.IS_STORED"},
    "what deleted sessions leave": {"effects.delete.LEAF", "effects.transaction.FREE"},
    "a blob by its hash alone": {"effects.calls.BLOB", "repository.transcript.BLOB"},
}


@pytest.fixture(scope="module")
def connection(server: Server) -> Iterator[Any]:
    """A connection to a database whose tables are in partitions."""
    psycopg = pytest.importorskip("psycopg")
    assert server.run("CREATE DATABASE families") == ""
    make_partitioned(server.url("families"))
    with psycopg.connect(server.url("families"), autocommit=True) as connected:
        # The values of a statement decide which partitions it touches.
        connected.execute("SET plan_cache_mode = force_custom_plan")
        yield connected
    server.run("DROP DATABASE families")


def plan(connection: Any, sql: str) -> list[str]:
    """Return the plan of a statement of ours, with some values."""
    names = list(dict.fromkeys(_PARAMETER.findall(sql)))
    numbered = _PARAMETER.sub(lambda it: f"${names.index(it[1]) + 1}", sql)
    connection.execute(f"PREPARE planned AS {numbered}")
    try:
        ((types,),) = connection.execute(
            "SELECT CAST(parameter_types AS text[]) FROM pg_prepared_statements "
            "WHERE name = 'planned'"
        ).fetchall()
        values = ", ".join(VALUES[type_] for type_ in types)
        explained = f"EXPLAIN (COSTS OFF) EXECUTE planned({values})"
        if not values:
            explained = "EXPLAIN (COSTS OFF) EXECUTE planned"
        return [line for (line,) in connection.execute(explained).fetchall()]
    finally:
        connection.execute("DEALLOCATE planned")


def spread(connection: Any, statements: dict[str, str]) -> set[str]:
    """Return the names of the statements that touch several families."""
    return {
        name
        for name, sql in statements.items()
        if max(touched(plan(connection, sql)).values(), default=0) > 1
    }


@pytest.mark.slow
def test_a_statement_that_ships_touches_one_family_unless_it_is_listed(
    connection: Any,
) -> None:
    statements = dict(DIALECT.shipped)
    assert spread(connection, statements) == set().union(*ACROSS.values())


@pytest.mark.slow
def test_a_statement_without_a_family_touches_all(connection: Any) -> None:
    without = "SELECT seq FROM message WHERE session_id = :sid"
    assert touched(plan(connection, without)) == {"message": PARTITIONS}
    assert touched(plan(connection, in_family(without))) == {"message": 1}


@pytest.mark.slow
def test_what_brings_the_index_up_to_date_touches_the_families_that_it_names(
    connection: Any,
) -> None:
    statements = {
        name: in_family(getattr(search_writing, name))
        for name in ("_OF_ADDRESSES", "_TAKE_OUT")
    }
    assert spread(connection, statements) == set()


@pytest.mark.slow
def test_every_sharded_table_is_in_partitions(connection: Any) -> None:
    rows = connection.execute(
        "SELECT relname FROM pg_class WHERE relkind = 'p'"
    ).fetchall()
    assert {name for (name,) in rows} == SHARDED | {"route"}


def test_partitions_refuse_a_key_without_the_family(server: Server) -> None:
    statements = partitioned(["CREATE TABLE todo (family BIGINT, id TEXT UNIQUE)"])
    errors = server.run("".join(f"{sql};\n" for sql in statements))
    assert "must include all partitioning columns" in errors


# -- what Citus refuses, and partitions do not ---------------------------------------------

#: Functions whose result differs from call to call.
VOLATILE = re.compile(
    r"\b(random|clock_timestamp|now|gen_random_uuid|nextval|pg_current_xact_id)\s*\(",
    re.IGNORECASE,
)


def test_nothing_in_the_schema_runs_by_itself() -> None:
    text = "\n".join(ddl.statements()).upper()
    assert not re.search(r"CREATE (OR REPLACE )?(TRIGGER|FUNCTION|RULE)\b", text)


def test_no_statement_changes_the_family_of_a_row() -> None:
    texts = [*DIALECT.shipped.values(), *texts_of(moving), *texts_of(search_writing)]
    assert not [
        sql
        for sql in texts
        if re.search(r"\bUPDATE\b.*\bSET\b[^;]*\bfamily\s*=", set_of(sql))
    ]


def test_no_update_has_a_volatile_function() -> None:
    updates = [
        sql
        for sql in (
            *DIALECT.shipped.values(),
            *texts_of(routes),
            *texts_of(search_writing),
        )
        if sql.lstrip().startswith("UPDATE")
    ]
    assert len(updates) > 20
    assert not [sql for sql in updates if VOLATILE.search(sql)]


def test_recursions_and_row_locks_are_within_a_family() -> None:
    recursive = {
        name
        for name, sql in DIALECT.shipped.items()
        if re.search(r"\bRECURSIVE\b|\bFOR (UPDATE|SHARE)\b", sql)
        and re.search(rf"\b(FROM|JOIN) ({'|'.join(SHARDED)})\b", sql)
    }
    assert recursive
    assert not recursive & set().union(*ACROSS.values())


def texts_of(module: Any) -> list[str]:
    """Return the statements that a module has as constants."""
    values = [value for name, value in vars(module).items() if name.startswith("_")]
    every = [each for it in values for each in (it if isinstance(it, tuple) else (it,))]
    return [it for it in every if isinstance(it, str) and " " in it]


def set_of(sql: str) -> str:
    """Return an UPDATE up to its conditions; another statement is empty."""
    if not sql.lstrip().startswith("UPDATE") or "UPDATE route" in sql:
        return ""
    return sql.partition("WHERE")[0]


# -- the rule -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "known"),
    [
        (
            "SELECT seq FROM message WHERE session_id = :sid",
            "message.family = :family_of_sid",
        ),
        (
            "SELECT 1 FROM session AS s WHERE :sid = s.id",
            "s.family = :family_of_sid",
        ),
        (
            "SELECT 1 FROM session AS s LEFT JOIN blob AS b ON b.hash = s.data_blob",
            "ON b.family = s.family AND",
        ),
        (
            "SELECT 1 FROM session AS c JOIN session AS p ON p.id = c.parent_id "
            "WHERE c.id = :sid",
            "ON p.family = :family_of_sid AND",
        ),
        (
            "SELECT 1 FROM session AS s LEFT JOIN terminal AS t ON t.session_id = s.id "
            "WHERE s.id = :sid",
            "ON t.session_id = s.id WHERE s.family = :family_of_sid AND",
        ),
        (
            "DELETE FROM label WHERE session_id = :sid AND (label = :a OR seq = :b)",
            "WHERE label.family = :family_of_sid AND session_id",
        ),
        (
            "UPDATE session SET title = ? WHERE id = ?",
            "WHERE session.family = :family_of_1 AND id = ?",
        ),
        (
            'INSERT INTO message ("session_id", "seq") VALUES (?, ?)',
            'INSERT INTO message (family, "session_id", "seq") VALUES (:family_of_0, ?, ?)',
        ),
        (
            "INSERT INTO lease (holder, session_id) VALUES (:a, :b) "
            "ON CONFLICT (session_id) DO UPDATE SET holder = :a",
            "VALUES (:family_of_b, :a, :b) ON CONFLICT (session_id, family) DO",
        ),
        (
            "INSERT INTO ext_a_b (session_id, n) SELECT m.session_id, 1 FROM message AS m",
            "SELECT coalesce((SELECT family FROM route WHERE session_id = m.session_id), -1), "
            "m.session_id",
        ),
        (
            "DELETE FROM ext_a_b WHERE session_id IN (SELECT value FROM "
            "jsonb_array_elements_text(CAST(:ids AS JSONB)) AS value)",
            "ext_a_b.family = ANY (CAST(:families_of_ids AS BIGINT[]))",
        ),
        (
            "SELECT 1 FROM message AS m WHERE m.session_id = :sid AND EXISTS "
            "(SELECT 1 FROM part AS p WHERE p.session_id = m.session_id)",
            "(SELECT 1 FROM part AS p WHERE p.family = :family_of_sid AND",
        ),
    ],
)
def test_a_family_follows_from_what_is_compared(sql: str, known: str) -> None:
    assert known in in_family(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 FROM session WHERE id = :sid OR source_id = :name",
        "SELECT 1 FROM message WHERE session_id <> :sid",
        "SELECT 1 FROM message WHERE id = :mid",
        "SELECT 1 FROM session WHERE title = 'session_id = :sid'",
        "SELECT 1 FROM session WHERE NOT (id = :sid)",
        "SELECT 1 FROM prompt WHERE session_id = :sid",
        "INSERT INTO key_value (namespace, key) VALUES (?, ?)",
        "DELETE FROM blob WHERE hash = ?",
    ],
)
def test_nothing_is_added_where_no_family_follows(sql: str) -> None:
    assert in_family(sql) == sql


def test_a_session_that_a_subquery_compares_says_nothing_of_the_tables_around() -> None:
    sql = (
        "SELECT 1 FROM message AS m WHERE m.id IN "
        "(SELECT o.id FROM message AS o WHERE o.session_id = :sid)"
    )
    assert in_family(sql).count("family =") == 1
    assert "o.family = :family_of_sid" in in_family(sql)


def test_an_outer_join_says_nothing_of_the_rows_that_it_keeps() -> None:
    sql = (
        "SELECT 1 FROM session AS s LEFT JOIN ext_a_b AS e "
        "ON e.session_id = s.id AND e.session_id = :sid WHERE s.title = :t"
    )
    assert in_family(sql).count("family =") == 1
    assert "ON e.family = :family_of_sid AND" in in_family(sql)


def test_statements_name_families_once() -> None:
    for sql in DIALECT.shipped.values():
        assert in_family(sql) == sql or FAMILY_OF not in sql


def test_a_family_has_63_bits_and_follows_from_the_id_of_its_root() -> None:
    assert family_of_root("ses_a") == family_of_root("ses_a") != family_of_root("ses_b")
    assert all(0 < family_of_root(f"ses_{number}") < 1 << 63 for number in range(99))


# -- routes ----------------------------------------------------------------------------------


@pytest.fixture
def two(connected: Any, address: Any) -> tuple[Any, Any]:
    """Two connections to a database with our tables."""
    made = target_of(address).ensure()
    assert made is not None
    made.close()
    return connected(), connected()


def make_session(
    connection: Any, session_id: str, parent_id: str | None = None
) -> None:
    """Insert the row of a session, in a transaction that is open."""
    connection.engine.lock_new_session(connection, session_id, parent_id)
    connection.execute(
        'INSERT INTO session ("id", "parent_id", "root_id", "slug", "source", '
        '"time_created", "time_updated") VALUES (?, ?, ?, ?, ?, ?, ?)',
        (session_id, parent_id, parent_id or session_id, session_id, "test", 1, 1),
    )


def families(connection: Any) -> dict[str, int]:
    """Return the family of each session, which its route states as well."""
    rows = connection.execute(
        "SELECT s.id, s.family, r.family FROM session AS s "
        "JOIN route AS r ON r.session_id = s.id"
    ).fetchall()
    assert all(family == route for _, family, route in rows)
    return {session_id: family for session_id, family, _ in rows}


@pytest.mark.slow
def test_a_child_has_the_family_of_its_parent(two: Any) -> None:
    one, other = two
    one.engine.begin_write(one)
    make_session(one, "a")
    make_session(one, "b", "a")
    make_session(one, "c")
    one.commit()
    assert families(other) == {
        "a": family_of_root("a"), "b": family_of_root("a"), "c": family_of_root("c")
    }  # fmt: skip


@pytest.mark.slow
def test_what_a_savepoint_undid_is_not_remembered(two: Any) -> None:
    one, other = two
    one.engine.begin_write(one)
    make_session(one, "a")
    one.execute("SAVEPOINT unit")
    make_session(one, "b", "a")
    one.execute("ROLLBACK TO unit")
    make_session(one, "b")
    one.commit()
    assert families(other)["b"] == family_of_root("b")


@pytest.mark.slow
def test_what_was_not_committed_is_not_remembered(two: Any) -> None:
    one, other = two
    one.engine.begin_write(one)
    make_session(one, "a")
    one.execute("SAVEPOINT unit")
    one.execute("ROLLBACK TO unit")
    assert one.routes.family("a") == family_of_root("a")
    one.execute("ROLLBACK")
    other.engine.begin_write(other)
    make_session(other, "b")
    make_session(other, "a", "b")
    other.commit()
    one.engine.begin_write(one)
    assert one.routes.family("a") == family_of_root("b")
    one.execute("ROLLBACK")


@pytest.mark.slow
def test_an_id_that_is_used_again_below_a_parent_has_its_family_everywhere(
    two: Any,
) -> None:
    one, other = two
    one.engine.begin_write(one)
    make_session(one, "a")
    make_session(one, "b")
    one.commit()
    title = "SELECT id FROM session WHERE id = :sid"
    other.execute(other.engine.begin_read)
    assert other.execute(title, {"sid": "b"}).fetchall() == [("b",)]
    other.execute("ROLLBACK")

    one.engine.begin_write(one)
    one.execute("DELETE FROM session WHERE id = ?", ("b",))
    make_session(one, "b", "a")
    one.commit()
    assert families(one) == dict.fromkeys("ab", family_of_root("a"))
    # The other connection remembers another family, and notices.
    other.execute(other.engine.begin_read)
    assert other.execute(title, {"sid": "b"}).fetchall() == [("b",)]


@pytest.mark.slow
def test_an_id_is_taken_in_whatever_family(two: Any) -> None:
    one, _ = two
    one.engine.begin_write(one)
    make_session(one, "a")
    make_session(one, "b")
    with pytest.raises(one.engine.Error, match="uq_session_id"):
        make_session(one, "b", "a")
        one.settle()


@pytest.mark.slow
def test_a_session_without_a_route_has_no_rows(two: Any) -> None:
    one, _ = two
    sql = "SELECT count(*) FROM session WHERE id = ?"
    assert one.execute(sql, ("none",)).fetchall() == [(0,)]


# -- the script of the documentation -------------------------------------------------


def test_the_documented_script_distributes_every_sharded_table() -> None:
    text = (Path(__file__).parents[2] / "docs" / "POSTGRES.md").read_text()
    distributed = dict(re.findall(r"create_distributed_table\('(\w+)', '(\w+)'", text))
    assert distributed == {**dict.fromkeys(SHARDED, "family"), "route": "session_id"}
    # A table comes after those that it refers to.
    names = list(distributed)
    for sql in ddl.statements():
        if (made := re.match(r"CREATE TABLE (\w+)", sql)) and made[1] in distributed:
            referred = set(re.findall(r"REFERENCES (\w+)", sql)) & SHARDED - {made[1]}
            assert all(names.index(made[1]) > names.index(it) for it in referred)


def test_what_a_sharded_table_refers_to_is_sharded_too_or_on_every_node() -> None:
    text = (Path(__file__).parents[2] / "docs" / "POSTGRES.md").read_text()
    on_every_node = set(re.findall(r"create_reference_table\('(\w+)'\)", text))
    for sql in ddl.statements():
        if (made := re.match(r"CREATE TABLE (\w+)", sql)) and made[1] in SHARDED:
            assert set(re.findall(r"REFERENCES (\w+)", sql)) <= SHARDED | on_every_node
