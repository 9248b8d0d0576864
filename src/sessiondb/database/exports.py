"""A session whose messages are read while they are iterated, for exporters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Unpack

from sessiondb.database.core import Core
from sessiondb.database.queries import Queries
from sessiondb.dataclass import replace
from sessiondb.errors import InvalidInputError
from sessiondb.repository import Read
from sessiondb.repository.transcript import PAGE

if TYPE_CHECKING:
    from sessiondb.database.message_queries import Selected
    from sessiondb.model import Export, Message
    from sessiondb.model.export import ExtensionRow
    from sessiondb.model.handles import SessionRef
    from sessiondb.repository.cuts import Cut

#: Rows of extensions that are read at a time: one may be a large state.
EXTENSION_ROWS = 50


def walked(
    core: Core,
    queries: Queries,
    ref: SessionRef,
    *,
    page: int = PAGE,
    resolve: bool = True,
    **selected: Unpack[Selected],
) -> Iterator[Message]:
    """Yield the messages of a session, at most *page* at a time.

    No transaction is open in between; a message removed by then is left out.
    """
    pages = core.read(queries.pages(ref, page=page, **selected))
    for seqs in pages.seqs:
        yield from core.read(queries.page(pages, seqs, resolve=resolve))


def with_messages(
    core: Core, export: Export, *, branches: bool, resolve: bool
) -> Export:
    """Return *export* with its messages and the rows of programs.

    They are read while they are iterated.
    """
    messages = walked(
        core, Queries(core), export.session, branches=branches, resolve=resolve
    )
    rows = extension_rows(core.read, export.session.id)
    return replace(export, messages=messages, extension_rows=rows)


def extension_rows(
    read: Callable[[Read[Any]], Any], session_id: str
) -> Iterator[ExtensionRow]:
    """Yield the rows that programs added to a session, some at a time."""
    from sessiondb.repository.extension_rows import (
        row_numbers,
        rows_at,
        tables_with_rows,
    )

    for table in read(tables_with_rows(session_id)):
        rids = read(row_numbers(table, session_id))
        for start in range(0, len(rids), EXTENSION_ROWS):
            yield from read(rows_at(table, rids[start : start + EXTENSION_ROWS]))


def refuse_branches(branches: bool) -> None:
    """Raise `InvalidInputError` for an export at a message with *branches*."""
    if branches:
        raise InvalidInputError("an export at a message is one path: no branches")


def with_messages_at(
    core: Core, shell_and_cut: tuple[Export, Cut], *, resolve: bool
) -> Export:
    """Return the shell of a session with the messages of a cut, read in pages."""
    shell, cut = shell_and_cut

    def messages() -> Iterator[Message]:
        for seqs in cut.pages:
            yield from core.read(cut.load(seqs, resolve=resolve))

    return replace(shell, messages=messages())
