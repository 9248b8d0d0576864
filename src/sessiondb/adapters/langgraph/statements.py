"""The statements on the tables of LangGraph's checkpoints."""

from __future__ import annotations

from functools import cache
from typing import Any

from sqlalchemy import (
    Column,
    Insert,
    Select,
    Table,
    Text,
    bindparam,
    delete,
    func,
    insert,
    literal,
    select,
    tuple_,
    update,
)

from sessiondb.adapters.langgraph.lists import USUAL_TYPE
from sessiondb.adapters.langgraph.tables import CHECKPOINT, ITEM, VALUE, WRITE
from sessiondb.extensions import numbers, pairs, texts
from sessiondb.schema.tables import session

#: The program in whose name the sessions are.
SOURCE = "langgraph"


def _columns(table: Table, names: str) -> list[Column[Any]]:
    return [table.c[name] for name in names.split()]


_of_thread = (
    (session.c.source == literal(SOURCE))
    & (session.c.source_id == bindparam("thread"))
    & (session.c.namespace == literal(""))
)
#: The sessions of some threads.
THREADS = select(session.c.source_id, session.c.id).where(
    session.c.time_deleted.is_(None),
    session.c.source == literal(SOURCE),
    session.c.namespace == literal(""),
    session.c.source_id.in_(texts("threads")),
)
_checkpoints: Select[Any] = select(
    session.c.source_id,
    *_columns(CHECKPOINT, "session_id ns id parent_id metadata type body"),
).join(session, session.c.id == CHECKPOINT.c.session_id)
_in_ns = CHECKPOINT.c.ns == bindparam("ns")
_of_id = CHECKPOINT.c.id == bindparam("id")

LATEST = (
    _checkpoints.where(_of_thread, _in_ns).order_by(CHECKPOINT.c.id.desc()).limit(1)
)
ONE = _checkpoints.where(_of_thread, _in_ns, _of_id)

_in_session = CHECKPOINT.c.session_id == bindparam("session_id")
OF_SESSION = _checkpoints.where(_in_session)

_version = pairs("versions")
#: The values of channels, each in one version.
VALUES = select(*_columns(VALUE, "channel list length type body")).where(
    VALUE.c.session_id == bindparam("session_id"),
    VALUE.c.ns == bindparam("ns"),
    tuple_(VALUE.c.channel, VALUE.c.version).in_(
        select(_version.c.first, _version.c.second)
    ),
)
ALL_VALUES = select(*_columns(VALUE, "rid ns channel version")).where(
    VALUE.c.session_id == bindparam("session_id")
)
#: The list that a channel had last.
LAST_LIST = (
    select(VALUE.c.list)
    .where(
        VALUE.c.session_id == bindparam("session_id"),
        VALUE.c.ns == bindparam("ns"),
        VALUE.c.channel == bindparam("channel"),
        VALUE.c.list.is_not(None),
    )
    .order_by(VALUE.c.rid.desc())
    .limit(1)
)
#: The items of a list up to a length. Nearly all have one type, which is None then: a
#: text is made for each row.
ITEMS = (
    select(func.nullif(ITEM.c.type, USUAL_TYPE), ITEM.c.body)
    .where(
        ITEM.c.session_id == bindparam("session_id"),
        ITEM.c.list == bindparam("list"),
        ITEM.c.position < bindparam("length"),
    )
    .order_by(ITEM.c.position)
)
WRITES = select(*_columns(WRITE, "task_path task_id idx channel type body")).where(
    WRITE.c.session_id == bindparam("session_id"),
    WRITE.c.ns == bindparam("ns"),
    WRITE.c.checkpoint_id == bindparam("checkpoint_id"),
)
#: Changes nothing, and one row if the item is there.
TOUCH_ITEM = (
    update(ITEM)
    .where(
        ITEM.c.session_id == bindparam("session_id"),
        ITEM.c.list == bindparam("list"),
        ITEM.c.position == bindparam("position"),
    )
    .values(type=ITEM.c.type)
)

RUNS = (
    select(CHECKPOINT.c.session_id)
    .where(CHECKPOINT.c.run_id.in_(texts("runs")))
    .distinct()
)
DROP_CHECKPOINTS = delete(CHECKPOINT).where(
    _in_session, _in_ns, CHECKPOINT.c.id.in_(texts("ids"))
)
DROP_WRITES = delete(WRITE).where(
    WRITE.c.session_id == bindparam("session_id"),
    WRITE.c.ns == bindparam("ns"),
    WRITE.c.checkpoint_id.in_(texts("ids")),
)
DROP_VALUES = delete(VALUE).where(
    VALUE.c.session_id == bindparam("session_id"), VALUE.c.rid.in_(numbers("rids"))
)
_is_used = (
    select(VALUE.c.rid)
    .where(VALUE.c.session_id == ITEM.c.session_id, VALUE.c.list == ITEM.c.list)
    .exists()
)
#: The items of lists of which no value is left: a list goes as a whole.
DROP_ITEMS = delete(ITEM).where(ITEM.c.session_id == bindparam("session_id"), ~_is_used)


def _copy_of(table: Table) -> Insert:
    """Return the statement that copies the rows of the session ``original``."""
    names = [
        column.name for column in table.c if column.name not in ("rid", "session_id")
    ]
    rows = select(
        bindparam("session_id", type_=Text), *(table.c[name] for name in names)
    )
    return insert(table).from_select(
        ["session_id", *names], rows.where(table.c.session_id == bindparam("original"))
    )


COPIES = [_copy_of(table) for table in (CHECKPOINT, VALUE, ITEM, WRITE)]


@cache
def page_of_checkpoints(filters: frozenset[str]) -> Select[Any]:
    """Return the query for ``most`` checkpoints, newest first, by *filters*.

    They are ``thread``, ``ns``, ``id``, ``before``, and for a page that is not the
    first one ``last_id`` and ``last_rid``, of the last row before it.
    """
    statement = _checkpoints.add_columns(CHECKPOINT.c.rid)
    if "thread" in filters:
        statement = statement.where(_of_thread)
    else:
        statement = statement.where(session.c.source == literal(SOURCE))
    if "ns" in filters:
        statement = statement.where(_in_ns)
    if "id" in filters:
        statement = statement.where(_of_id)
    if "before" in filters:
        statement = statement.where(CHECKPOINT.c.id < bindparam("before"))
    if "last_rid" in filters:
        row = tuple_(CHECKPOINT.c.id, CHECKPOINT.c.rid)
        last_row = tuple_(bindparam("last_id"), bindparam("last_rid"))
        statement = statement.where(row < last_row)
    statement = statement.order_by(CHECKPOINT.c.id.desc(), CHECKPOINT.c.rid.desc())
    return statement.limit(bindparam("most"))
