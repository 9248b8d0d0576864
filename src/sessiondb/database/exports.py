"""A session whose messages are read while they are iterated, for exporters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sessiondb.database.core import Core
from sessiondb.database.queries import Queries
from sessiondb.dataclass import replace
from sessiondb.errors import InvalidInputError
from sessiondb.repository.transcript import PAGE

if TYPE_CHECKING:
    from sessiondb.model import Export, Message
    from sessiondb.model.handles import SessionRef
    from sessiondb.repository.cuts import Cut


def walked(
    core: Core,
    queries: Queries,
    ref: SessionRef,
    *,
    branches: bool,
    page: int = PAGE,
    resolve: bool = True,
) -> Iterator[Message]:
    """Yield the messages of a session, at most *page* at a time.

    No transaction is open in between; a message removed by then is left out.
    """
    session_id, pages = core.read(queries.pages(ref, branches=branches, page=page))
    for seqs in pages:
        yield from core.read(queries.page(session_id, seqs, resolve=resolve))


def with_messages(
    core: Core, export: Export, *, branches: bool, resolve: bool
) -> Export:
    """Return *export* with its messages, which are read while they are iterated."""
    messages = walked(
        core, Queries(core), export.session, branches=branches, resolve=resolve
    )
    return replace(export, messages=messages)


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
