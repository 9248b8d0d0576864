"""The interface of the sums of usage: how an engine answers for cost and tokens."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any, NamedTuple, Protocol

from sessiondb.dataclass import dataclass
from sessiondb.engine.base import Connection
from sessiondb.prices import Rates


@dataclass(frozen=True, slots=True)
class UsageQuestion:
    """A question for sums of usage."""

    #: The names of `message_sums.KEYS` by which the sums are grouped; none is a total.
    dimensions: tuple[str, ...]
    #: Parameter → the condition with it, over messages ``m`` of sessions ``s``.
    terms: Mapping[str, str]
    #: The values of these parameters.
    parameters: Mapping[str, Any]
    #: The prices that apply: messages with different ones are summed up apart.
    rates: Rates


class GroupedUsage(NamedTuple):
    """Sums over messages that have a key, a model, and prices in common."""

    key: tuple[str | None, ...]
    model: str | None
    #: The largest length of those at which prices change that the prompts are above.
    size: int
    #: Whether these are the messages without a cost.
    is_unpaid: bool
    #: The numbers of their sessions, with commas; one may be there twice.
    sessions: str
    messages: int
    cost: float | None
    tokens: tuple[int | None, ...]


#: A read: it yields statements with their parameters, and receives their rows.
Totals = Generator[Any, Any, list[GroupedUsage]]


class UsageSums(Protocol):
    """The sums of usage; an engine may keep some, and has to keep them right.

    New messages may wait for `put_waiting`, but are counted. Every other change of a
    message or of its session, also by a shell, counts at once.
    """

    def totals(self, question: UsageQuestion) -> Totals:
        """Return the sums of each group; the same key may be in several rows.

        It is a read, and all of its rows are of one state of the database.
        """

    def is_behind(self, connection: Connection) -> bool:
        """Return whether messages or sessions wait."""

    def put_waiting(self, connection: Connection) -> None:
        """Bring what is kept up to date; in a transaction that writes."""

    def count_wrong(self, connection: Connection) -> int:
        """Return how many sessions have sums that are not those of their messages."""

    def repair(self, connection: Connection) -> None:
        """Make all that is kept again where it is wrong; in a transaction as above."""
