"""The statements of `effects.fork`."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    Table,
    and_,
    case,
    exists,
    func,
    literal_column,
    null,
    or_,
    select,
    text,
    union_all,
)

from sessiondb.effects.fork import COPIED_OF_SESSION
from sessiondb.engine.elements import WithoutKey
from sessiondb.engine.expressions import numbers, p, string
from sessiondb.schema.rows import FILE_DIFF, LABEL, MESSAGE, PART, TODO
from sessiondb.schema.tables import (
    UNSETTLED,
    blob,
    file_diff,
    label,
    message,
    part,
    session,
    todo,
)


def _copied_rows(table: Table) -> Any:
    return and_(
        table.c.session_id == p("sid"),
        table.c.seq <= p("cut"),
        table.c.seq.not_in(numbers("off")),
    )


def _copy_statement(
    table: Table, columns: tuple[str, ...], condition: Any, **changed: Any
) -> Any:
    values = [changed.get(name, table.c[name]).label(name) for name in columns]
    return table.insert().from_select(list(columns), select(*values).where(condition))


_new = p("new")
_open = message.c.time_completed.is_(None)
COPY_MESSAGES = _copy_statement(
    message,
    MESSAGE,
    _copied_rows(message),
    session_id=_new,
    inherited=literal_column("1"),
    finish=case((_open, literal_column("'cancelled'")), else_=message.c.finish),
    time_completed=func.coalesce(message.c.time_completed, p("now")),
)


def _seq_of_name() -> Any:
    """The seq of a message by its id, else by a label: the id takes precedence."""
    by_id = select(message.c.seq, literal_column("0").label("rank")).where(
        message.c.session_id == p("sid"), message.c.id == p("name")
    )
    by_label = select(label.c.seq, literal_column("1")).where(
        label.c.session_id == p("sid"), label.c.label == p("name")
    )
    return union_all(by_id, by_label).order_by(text("rank")).limit(1)


SEQ_OF_NAME = _seq_of_name()


def _copy_parts() -> Any:
    result, copy = part.alias("result"), part.alias("here")
    behind = or_(result.c.seq > p("cut"), result.c.seq.in_(numbers("off")))
    # One query for all calls: with one for each, those of one id cost their square.
    ended_behind = select(result.c.call_id).where(
        result.c.session_id == p("sid"),
        result.c.call_id.is_not(None),
        result.c.type == text("'tool-result'"),
        result.c.text.is_(None),
        result.c.text_blob.is_(None),
        behind,
    )
    is_here = and_(
        copy.c.session_id == part.c.session_id,
        copy.c.call_id == part.c.call_id,
        copy.c.type == text("'tool-result'"),
        copy.c.seq > part.c.seq,
        copy.c.seq <= p("cut"),
        copy.c.seq.not_in(numbers("off")),
    )
    lost = and_(
        part.c.type == text("'tool'"),
        part.c.call_id.in_(ended_behind),
        ~exists().where(is_here),
    )
    cut = or_(UNSETTLED, lost)
    return _copy_statement(
        part,
        PART,
        _copied_rows(part),
        session_id=_new,
        inherited=literal_column("1"),
        indexed=literal_column("0"),
        status=case((cut, literal_column("'error'")), else_=part.c.status),
        outcome=case((cut, literal_column("'interrupted'")), else_=part.c.outcome),
        text=case((lost, null()), else_=part.c.text),
        text_blob=case((lost, null()), else_=part.c.text_blob),
        time_ended=case((UNSETTLED, p("now")), else_=part.c.time_ended),
        words=null(),
    )


COPY_PARTS = _copy_parts()
COPY_TODOS = _copy_statement(todo, TODO, todo.c.session_id == p("sid"), session_id=_new)
COPY_LABELS = _copy_statement(label, LABEL, _copied_rows(label), session_id=_new)
COPY_DIFFS = _copy_statement(
    file_diff, FILE_DIFF, _copied_rows(file_diff), session_id=_new
)
COPY_SESSION = _copy_statement(
    session,
    COPIED_OF_SESSION,
    session.c.id == p("sid"),
    id=_new,
    parent_id=string("sid"),
    relation=literal_column("'fork'"),
    project_id=p("project_id"),
    parent_seq=p("parent_seq"),
    slug=p("slug"),
    title=p("title"),
    title_source=p("title_source"),
    directory=p("directory"),
    source=p("source"),
    source_id=p("source_id"),
    # It is that of the source.
    version=case((session.c.source == p("source"), session.c.version)),
    leaf_seq=p("leaf"),
    metadata=WithoutKey(session.c.metadata, literal_column("'share'")),
    time_created=p("now"),
    time_updated=p("now"),
    data=null(),
    data_blob=null(),
    scope=func.coalesce(p("scope"), session.c.scope),
)
TITLES = select(session.c.title).where(
    session.c.root_id == p("root"),
    session.c.title.like(literal_column("'%(fork #%)'")),
    session.c.time_deleted.is_(None),
)
FORK = select(
    session.c.parent_id,
    session.c.relation,
    session.c.parent_seq,
    session.c.time_deleted,
).where(session.c.id == p("sid"))


def _without_value(table: Table, *place: Any) -> Any:
    """Return the query for the *place* of the first row of which a blob is missing."""
    gone = [
        and_(column.is_not(None), ~exists().where(blob.c.hash == column))
        for column in table.c
        if column.name.endswith("_blob")
    ]
    of_session = table.c.session_id == p("sid")
    return select(*place).where(of_session, or_(*gone)).order_by(*place).limit(1)


LOST_IN_PART = _without_value(part, part.c.seq, part.c.idx)
LOST_IN_MESSAGE = _without_value(message, message.c.seq)
LOST_IN_DIFF = _without_value(file_diff, file_diff.c.path)
