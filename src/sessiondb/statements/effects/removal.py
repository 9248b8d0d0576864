"""The statements of `effects.removal`."""

from __future__ import annotations

from typing import Any

from sqlalchemy import delete, exists, literal_column, select, text, union_all

from sessiondb.engine.expressions import by_index, number, numbers, p, texts, update_of
from sessiondb.schema.purposes import is_prompt
from sessiondb.schema.tables import blob, file_diff, message, part, prompt
from sessiondb.schema.terms import BRANCHED, USAGE
from sessiondb.statements.effects.ownership import name_of

_going = (message.c.session_id == p("sid"), message.c.seq.in_(numbers("seqs")))
LINKS = (
    select(message.c.seq, message.c.parent_seq, message.c.id, message.c.role)
    .where(*_going)
    .order_by(message.c.seq)
)


def _seqs_in_turn() -> Any:
    """Return the messages below ``:at`` that belong to the turn ``:turn``.

    A child has the next seq, or an entry in the index of branches.
    """
    path = select(number("at").label("seq")).cte("path", recursive=True)
    child, branch = message.alias("child"), message.alias("branch")
    branches = (
        select(branch.c.seq)
        .with_hint(*by_index(branch, "ix_message_branch"))
        .where(
            branch.c.session_id == p("sid"),
            branch.c.parent_seq == path.c.seq,
            branch.c.parent_seq != branch.c.seq - text("1"),
        )
        .correlate(path)
    )
    next_seq = select(path.c.seq + text("1")).correlate(path)
    children = (
        select(child.c.seq)
        .select_from(path.join(child, child.c.parent_seq == path.c.seq))
        .where(
            child.c.session_id == p("sid"),
            child.c.turn_id == p("turn"),
            child.c.seq.in_(union_all(next_seq, branches)),
        )
    )
    path = path.union(children)
    return select(path.c.seq).where(path.c.seq != p("at"))


IN_TURN = _seqs_in_turn()
SET_TURN = update_of(message, "turn_id", *_going)
_relinked = message.update().values(parent_seq=p("parent"))
RELINK_NEXT = _relinked.where(
    message.c.session_id == p("sid"),
    message.c.seq == p("at") + text("1"),
    message.c.parent_seq == p("at"),
)
RELINK_BRANCHES = _relinked.with_hint(
    by_index(message, "ix_message_branch")[1], dialect_name="sqlite"
).where(
    message.c.session_id == p("sid"),
    message.c.parent_seq == p("at"),
    text(BRANCHED),
)
_has_text = (
    part.c.type == text("'text'"),
    (part.c.text != text("''")) | part.c.text_blob.is_not(None),
)
#: In two steps: the planner would read and sort all texts of the session.
_first_seq = (
    select(message.c.seq)
    .where(
        message.c.session_id == p("sid"),
        message.c.role == text("'user'"),
        exists().where(
            part.c.session_id == message.c.session_id,
            part.c.seq == message.c.seq,
            *_has_text,
        ),
    )
    .order_by(message.c.seq)
    .limit(1)
    .scalar_subquery()
)
#: The first text of a message of the user.
FIRST_TEXT = (
    select(part.c.seq, part.c.text, blob.c.size, blob.c.encoding, blob.c.data)
    .outerjoin_from(part, blob, blob.c.hash == part.c.text_blob)
    .where(part.c.session_id == p("sid"), part.c.seq == _first_seq, *_has_text)
    .order_by(part.c.idx)
    .limit(1)
)
GOING = select(
    message.c.seq,
    message.c.id,
    message.c.time_created,
    message.c.usage_key,
    name_of(message),
    message.c.data_blob,
    message.c.inherited,
    message.c.model_id,
    literal_column(is_prompt("message")),
    *(message.c[name] for name in USAGE),
).where(*_going)
PART_BLOBS = select(part.c.text_blob, part.c.input_blob, part.c.data_blob).where(
    part.c.session_id == p("sid"), part.c.seq.in_(numbers("seqs"))
)
DIFF_BLOBS = select(file_diff.c.before_blob, file_diff.c.after_blob).where(
    file_diff.c.session_id == p("sid"), file_diff.c.seq.in_(numbers("seqs"))
)
DROP = delete(message).where(*_going)
DROP_DIFFS = delete(file_diff).where(
    file_diff.c.session_id == p("sid"), file_diff.c.seq.in_(numbers("seqs"))
)
PROMPTS = select(name_of(message), message.c.time_created).where(
    *_going, message.c.role == text("'user'"), message.c.inherited == text("0")
)
DROP_PROMPTS = delete(prompt).where(prompt.c.id.in_(texts("ids")))
