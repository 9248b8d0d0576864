"""Reads of a unit, on what its transaction finds: `Unit.snapshot`.

They come before the writes of the unit, so that they see rows that are complete: the
rows of sessions are written at its end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from sessiondb.dataclass import dataclass
from sessiondb.effects.fold import CallerFold
from sessiondb.effects.transaction import Transaction
from sessiondb.engine.base import Connection

R = TypeVar("R")

#: Runs reads in the transaction of a connection. They are a generator function of the
#: caller, which takes the reads of a store.
RunReads = Callable[[Connection, Callable[..., Any]], Any]


class SnapshotResult(Generic[R]):
    """The result of `Unit.snapshot`, once the unit is committed."""

    value: R


@dataclass(frozen=True, slots=True, eq=False)
class ReadInUnit:
    """Run reads; those of a retried unit see what it wrote, if it did."""

    verb = "snapshot"
    reads: CallerFold
    result: SnapshotResult[Any]

    def apply(self, tx: Transaction) -> None:
        """Apply it; raises `CallerError` for what the function raises."""
        self.result.value = self.reads.result_for(tx.connection)
