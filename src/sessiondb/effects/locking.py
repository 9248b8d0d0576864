"""The keys that units lock before the first of their effects is applied.

Writers that run side by side wait for each other's sessions. If each locked them in the
order of its effects, two could wait for each other, until the server aborts one of them
after a second. So all sessions and names that the effects state are locked by one
statement, in one order for all. The sessions that an effect finds on its way, such as
those below a deleted one, are locked then.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from sessiondb.dataclass import dataclass, field
from sessiondb.engine.base import Name

if TYPE_CHECKING:
    from sessiondb.effects.queue import Queue
    from sessiondb.effects.transaction import Transaction


@dataclass(slots=True)
class Keys:
    """What units state: the sessions that they write, their parents, and names."""

    session_ids: set[str] = field(default_factory=set)
    parent_ids: set[str] = field(default_factory=set)
    names: set[Name] = field(default_factory=set)

    @property
    def all_session_ids(self) -> set[str]:
        """Parents, too."""
        return self.session_ids | self.parent_ids


def keys_of(units: Iterable[Queue]) -> Keys:
    """Return the keys that the effects of *units* state."""
    keys = Keys()
    for unit in units:
        for effect in unit.effects:
            keys.names.update(getattr(effect, "names", ()))
            session_id = getattr(effect, "session_id", None)
            if session_id is not None:
                keys.session_ids.add(session_id)
            parent_id = getattr(effect, "parent_id", None)
            if parent_id is not None:
                keys.parent_ids.add(parent_id)
    return keys


def lock_ahead(tx: Transaction, units: Iterable[Queue]) -> None:
    """Lock the keys of *units* together; a single key is left to its effect."""
    if not tx.engine.writes_side_by_side:
        return
    keys = keys_of(units)
    if len(keys.all_session_ids) + len(keys.names) > 1:
        tx.lock(*keys.all_session_ids, names=keys.names)
