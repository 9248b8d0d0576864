"""Every column that follows from other rows: planted wrong, found, and repaired exactly."""

from __future__ import annotations

import math
import sqlite3
from contextlib import closing
from typing import Any

import pytest
from backends import Backend, Place
from sqlalchemy import String

from sessiondb import ALL, Store, assistant, event, text, tool, tool_result, user
from sessiondb.maintenance import check
from sessiondb.maintenance.derived import DERIVATIONS, Derivation
from sessiondb.maintenance.repair import repair
from sessiondb.model import FileDiff, MessageDraft
from sessiondb.schema.tables import metadata

pytestmark = pytest.mark.slow

#: Columns that follow from other rows by more than a query (see `maintenance.derived`),
#: with the values to plant.
BY_OTHER_CHECKS = {
    ("blob", "hash"): ["'x' || hash"],
    ("blob", "size"): ["size + 1", "0"],
    ("message", "inherited"): ["0", "1", "7", "-1"],
    ("session", "change"): ["0", "-1", "(SELECT max(change) FROM session)"],
    ("session", "last_seq"): ["0", "-1"],
    ("message", "parent_seq"): ["seq", "10000", "-1"],
    ("session", "leaf_seq"): ["10000", "-1"],
    ("session", "parent_id"): ["id", "'gone'"],
    ("usage_hour", "session_rid"): ["session_rid % 4 + 1", "99"],
    ("usage_hour", "hour"): ["hour + 1", "0"],
    ("usage_hour", "model_rid"): ["model_rid % 2 + 1", "99"],
    ("usage_hour", "hidden"): ["hidden + 1", "8"],
    ("usage_hour", "project_rid"): ["0", "99"],
    ("usage_hour", "messages"): ["messages + 1", "0"],
    ("usage_hour", "cost"): ["NULL", "0.0", "cost + 1"],
    ("usage_hour", "longest_prompt"): ["longest_prompt + 1", "-1"],
    **{
        ("usage_hour", f"tokens_{name}"): ["NULL", "0", "9"]
        for name in ("input", "output", "reasoning", "cache_read", "cache_write")
    },
    **{
        ("usage_model", name): ["'wrong'", "''"]
        for name in ("source", "agent", "provider_id", "model_id")
    },
}
#: Of these the value before is not known from the rows: any consistent one is right.
NOT_RESTORED = {
    ("session", "change"), ("message", "parent_seq"), ("session", "leaf_seq"),
    ("session", "parent_id"), ("session", "root_id"),
}  # fmt: skip
#: Rows of a derived column that nothing follows: a message that is still written, a
#: provider that was stated before any answer.
FREE = {
    ("part", "indexed"): "session_id IN "
    "(SELECT session_id FROM message WHERE time_completed IS NULL)",
    ("session", "provider_id"): "model_id IS NULL",
}
#: Columns that state something: a caller, a program or the clock decides on them.
STATED = {
    "blob": "encoding data",
    "project": "id worktree vcs remote root_commit name permission metadata "
    "time_initialized time_created time_updated",
    "project_directory": "directory project_id kind time_created",
    "session": "id project_id relation parent_seq call_id parent_source_id slug title "
    "title_source directory version source source_id agent model_source revision "
    "summary_additions summary_deletions summary_files summary_diffs share_url revert "
    "permission metadata time_created time_updated time_compacting time_archived "
    "time_importing time_imported time_detached time_deleted data data_blob namespace "
    "scope",
    "message": "session_id seq id turn_id role kind agent provider_id model_id "
    "response_id usage_key cost usage_name tokens_input tokens_output tokens_reasoning "
    "tokens_cache_read tokens_cache_write finish error time_created time_completed "
    "data data_blob",
    "part": "session_id seq idx id type tool call_id status outcome title input text "
    "text_blob input_blob data data_blob time_created time_updated time_started "
    "time_ended synthetic words",
    "todo": "session_id position id content status priority time_created time_updated",
    "merge_base": "session_id fields",
    "file_diff": "session_id seq path before_blob after_blob patch additions deletions",
    "label": "session_id seq label",
    "prompt": "id text directory project_id session_id source time_created",
    "terminal": "id directory session_id time_updated",
    "lease": "session_id holder ttl time_expires",
    "import_ledger": "source path size mtime_ns offset digest problems time_imported "
    "namespace",
    "import_file": "folder name stamp facts",
    "tombstone": "source source_id time_deleted revision seen namespace",
    "deletion": "change session_id revision last_seq",
    "extension": "name version tables time_created time_updated",
    "key_value": "namespace key revision ttl time_created time_updated time_expires "
    "value content",
    "meta": "key value",
}
_DECLARED = [(d, column) for d in DERIVATIONS for column in d.values]
#: Columns of a server that cannot be written, or do not exist there: it keeps no sums.
NOT_OF_A_SERVER = {("session", "hidden")} | {
    place for place in BY_OTHER_CHECKS if place[0].startswith("usage_")
}


def test_every_column_is_derived_or_states_something() -> None:
    derived = {(d.table, column) for d, column in _DECLARED} | BY_OTHER_CHECKS.keys()
    stated = {
        (table, name) for table, names in STATED.items() for name in names.split()
    }
    columns = {
        (table.name, column.name)
        for table in metadata.tables.values()
        for column in table.c
        if column.name != "rid"
    }
    assert derived | stated == columns
    assert derived & stated == set()


@pytest.fixture(scope="module")
def sound(backend: Backend) -> Place:
    """A database with a family, a copy that counts elsewhere, and values of NULL."""
    place = backend.fresh()
    with Store.open(place, durability="normal") as store:
        top = store.create_session(title="top", directory="/one")
        store.append(top, user("asks"))
        call = tool("bash", {"command": "x" * 1500}, call_id="c")
        tokens = {"input": 7, "output": 2, "reasoning": 1, "cache_read": 3}
        store.append(
            top, assistant(text("said " * 600), call),
            model="m", provider="p", cost=0.5, tokens=tokens | {"cache_write": 4},
        )  # fmt: skip
        store.append(top, MessageDraft("tool", (tool_result("c", "a result"),)))
        store.append(top, event("note", text("noted"), text("")))
        store.set_diffs(top, [FileDiff("a.py", before=b"old", after=b"new")])
        store.label(top, 1, "start")
        fork = store.fork(top)
        store.append(fork, assistant("other"), model="n", cost=0.25)
        store.append(store.fork(fork), user("deeper"))
        helper = store.create_session(parent=top, relation="subagent", directory="/one")
        store.append(helper, user("no model, no cost"))
        stated = store.create_session(title="of a stated model", directory="/one")
        store.update_session(stated, model="chosen")
        store.append(stated, assistant("answer"), model="m", provider="q")
        unit = store.create_session(title="still open", directory="/one")
        with store.effects() as fx:
            fx.append(unit, assistant("open"), model="m", open=True)
        store.create_session(title="empty", directory="/one")
        assert check(store) == []
    return place


_CELLS = """
SELECT u.source, u.agent, u.provider_id, u.model_id, c.* FROM usage_hour AS c
  JOIN usage_model AS u ON u.rid = c.model_rid ORDER BY session_rid, hour, u.model_id
"""


def _rows(path: Place) -> dict[str, list[dict[str, Any]]]:
    """Return all rows, without the marks of a repair in those of sessions."""
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        rows = {
            table: [dict(r) for r in connection.execute(f"SELECT * FROM {table}")]
            for table in metadata.tables
            if not table.startswith("usage_")
        }
        # A repair makes these rows again, with other numbers.
        rows["usage_hour"] = [dict(r) for r in connection.execute(_CELLS)]
        for index in ("part_search", "session_search", "prompt_search"):
            rows[index] = [
                {"rid": rid}
                for (rid,) in connection.execute(f"SELECT id FROM {index}_docsize")
            ]
    for row in rows["session"]:
        del row["change"], row["revision"]
        for cost in ("cost", "cost_inherited"):
            row[cost] = row[cost] and round(row[cost], 9)
    for row in rows["usage_hour"]:
        del row["rid"], row["model_rid"]
    return rows


def _plant(
    backend: Backend, place: Place, address: tuple[str, str], value: str, where: str
) -> int:
    """Write *value* as a shell does; return the number of rows, 0 if it is refused."""
    table, column = address
    try:
        return backend.tear(
            place,
            f"UPDATE {table} SET {column} = {value} "
            f"WHERE {column} IS DISTINCT FROM ({value}) AND ({where})",
        )
    except backend.refusals:
        return 0


def _wrong_values(column: str, derivation: Derivation) -> list[str]:
    """Return what to plant: NULL, and values that are not those of any row."""
    kind = metadata.tables[derivation.table].c[column].type
    if isinstance(kind, String):
        return ["NULL", "''", "'wrong'"]
    is_zero = f"CASE WHEN {column} = 0 THEN 1 ELSE 0 END"
    return ["NULL", "-1", f"coalesce({column}, 0) + 1", "99", is_zero]


def _skip_what_no_server_has(backend: Backend, table: str, column: str) -> None:
    if (table, column) in NOT_OF_A_SERVER and not backend.is_file:
        pytest.skip(f"{backend.name}: nothing writes {table}.{column}")


@pytest.mark.parametrize(
    ("derivation", "column"), _DECLARED, ids=[f"{d.table}.{c}" for d, c in _DECLARED]
)
def test_a_derived_column_is_found_wrong_and_repaired_to_what_it_was(
    backend: Backend, sound: Place, derivation: Derivation, column: str
) -> None:
    _skip_what_no_server_has(backend, derivation.table, column)
    planted = 0
    table, free = derivation.table, FREE.get((derivation.table, column), "1 = 0")
    rids = f"SELECT {derivation.alias}.rid {derivation.rows}"
    where = f"rid IN ({rids}) AND NOT ({free})"
    for value in _wrong_values(column, derivation):
        place = backend.copy_of(sound)
        if not _plant(backend, place, (table, column), value, where):
            continue

        planted += 1
        with Store.open(place) as store:
            findings = check(store)
            assert derivation.what in [finding.what for finding in findings], value
            if backend.is_file:
                assert repair(store, findings).left == [], value
        if backend.is_file:
            assert _rows(place) == _rows(sound), value
    # NULL where a value was is refused by most; the other directions are not.
    assert planted >= 2


@pytest.mark.parametrize("address", BY_OTHER_CHECKS, ids=".".join)
def test_a_column_that_other_checks_follow_is_found_wrong_and_repaired(
    backend: Backend, sound: Place, address: tuple[str, str]
) -> None:
    table, column = address
    _skip_what_no_server_has(backend, table, column)
    where = "1 = 1"
    if column == "inherited":
        where = "time_completed IS NOT NULL"
    if column in ("leaf_seq", "parent_seq", "last_seq"):
        where += f" AND {column} IS NOT NULL AND {column} > 0"
    for value in BY_OTHER_CHECKS[address]:
        place = backend.copy_of(sound)
        assert _plant(backend, place, address, value, where), value
        with Store.open(place) as store:
            assert check(store) != [], value
            if backend.is_file:
                assert repair(store).left == [], value
            store.usage()
            assert list(store.sessions(project=ALL, empty=True))
        if backend.is_file and address not in NOT_RESTORED:
            assert _rows(place) == _rows(sound), value


def test_a_sum_that_differs_in_its_last_digits_is_right(
    backend: Backend, sound: Place
) -> None:
    place = backend.copy_of(sound)
    assert _plant(
        backend, place, ("session", "cost"), "cost + 1e-9", "cost IS NOT NULL"
    )
    with Store.open(place) as store:
        assert check(store) == []
        assert all(math.isfinite(s.cost or 0) for s in store.sessions(project=ALL))
