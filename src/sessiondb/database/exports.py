"""A session whose messages are read while they are iterated, for exporters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from sessiondb.database.core import Core
from sessiondb.database.queries import Queries

if TYPE_CHECKING:
    from sessiondb.model import Export, Message


def with_messages(
    core: Core, found: Export, *, branches: bool, resolve: bool
) -> Export:
    """Return *found* with its messages, a page at a time.

    No transaction is open in between.
    """
    queries = Queries(core)

    def messages() -> Iterator[Message]:
        _, pages = core.read(queries.pages(found.session, branches=branches))
        for seqs in pages:
            yield from core.read(queries.page(found.session.id, seqs, resolve=resolve))

    return replace(found, messages=messages())
