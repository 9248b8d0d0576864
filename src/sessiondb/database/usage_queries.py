"""The reads of costs and tokens, see `queries`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sessiondb.arguments import checks_arguments
from sessiondb.database.scoped_queries import ScopedQueries
from sessiondb.loading import load
from sessiondb.model import Session, UsageRecord, UsageRow
from sessiondb.model.bounds import TypedTime
from sessiondb.model.handles import SessionRef
from sessiondb.repository import Read
from sessiondb.repository.sessions import ALL, ProjectFilter

if TYPE_CHECKING:
    from sessiondb.prices import Prices


@checks_arguments
class UsageQueries(ScopedQueries):
    """Costs of sessions, in sums and by message."""

    def usage(
        self,
        *,
        by: str | Sequence[str] = ("day", "model"),
        project: ProjectFilter = ALL,
        scope: str | None = None,
        source: str | None = None,
        agent: str | None = None,
        since: TypedTime | None = None,
        until: TypedTime | None = None,
        title: str | None = None,
        archived: bool = True,
        subagents: bool = True,
        sessions: Sequence[SessionRef] | None = None,
        prices: Prices | None = None,
    ) -> Read[list[UsageRow]]:
        """Return cost and tokens by the dimensions of *by*.

        *by* is one or several of ``day week month model source project tool session
        agent``; none is the total. *sessions* are those that count, None for all.
        Inherited messages are never counted, unknown cost is None. *prices* (USD
        per million tokens, by model and kind of token) estimate answers without a cost;
        by default the list prices that ship (`sessiondb.prices.known_prices`), and with
        ``{}`` nothing. Reasoning has the price of the output unless it has its own.
        Nothing to count is ``[]``; raises `InvalidInputError` for another dimension or
        a price that is not a number.
        """
        load("sessiondb.repository.usage")
        from sessiondb.repository.usage import usage

        filters = yield from self._filters_of_project(
            project, scope=scope, source=source, agent=agent, since=since, until=until,
            title=title, archived=archived, subagents=subagents,
        )  # fmt: skip
        ids = yield from self._ids_of(sessions)
        return (yield from usage(filters, by=by, sessions=ids, prices=prices))

    def usage_records(
        self,
        key: Mapping[str, str | None],
        *,
        project: ProjectFilter = ALL,
        scope: str | None = None,
        source: str | None = None,
        agent: str | None = None,
        since: TypedTime | None = None,
        until: TypedTime | None = None,
        title: str | None = None,
        archived: bool = True,
        subagents: bool = True,
        prices: Prices | None = None,
    ) -> Read[list[UsageRecord]]:
        """Return the messages behind a row of `usage`, oldest first.

        *key* is that of the row; the filters and *prices* are those that it was made
        with. Copies in forks are in the list too: they are counted elsewhere, and their
        costs are no part of the row. No such row is ``[]``; raises `InvalidInputError`
        as `usage` does.
        """
        load("sessiondb.repository.usage")
        from sessiondb.repository.usage import usage_records

        filters = yield from self._filters_of_project(
            project, scope=scope, source=source, agent=agent, since=since, until=until,
            title=title, archived=archived, subagents=subagents,
        )  # fmt: skip
        return (yield from usage_records(filters, key, prices=prices))

    def _ids_of(self, sessions: Sequence[SessionRef] | None) -> Read[list[str] | None]:
        if sessions is None:
            return None
        ids = []
        for ref in sessions:
            if isinstance(ref, Session):
                ids.append(ref.id)
            else:
                ids.append((yield from self._extent_of(ref)).id)
        return ids
