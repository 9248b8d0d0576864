"""Every write: validated when queued, applied in one transaction.

An effect is a small frozen value with a ``verb`` and an ``apply(transaction)``;
a `Unit` queues them and hands back handles; the `Writer` commits units.
"""

from sessiondb.effects.unit import Unit
from sessiondb.model.handles import (
    LEAF,
    MessageHandle,
    OpenedSession,
    PartHandle,
    PoppedMessage,
    SessionHandle,
)

__all__ = [
    "LEAF",
    "MessageHandle",
    "OpenedSession",
    "PartHandle",
    "PoppedMessage",
    "SessionHandle",
    "Unit",
]
