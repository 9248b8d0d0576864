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

from sessiondb.effects.transaction import Transaction
from sessiondb.engine.base import Name

if TYPE_CHECKING:
    from sessiondb.effects.queue import Queue


def lock_ahead(tx: Transaction, units: Iterable[Queue]) -> None:
    """Lock the keys of *units*, if there are several; a single one is not in a row.

    It costs nothing where an effect would lock the same keys one by one.
    """
    if not tx.engine.writes_side_by_side:
        return
    session_ids: set[str] = set()
    names: set[Name] = set()
    for unit in units:
        for effect in unit.effects:
            names.update(getattr(effect, "names", ()))
            for attribute in ("session_id", "parent_id"):
                session_id = getattr(effect, attribute, None)
                if session_id is not None:
                    session_ids.add(session_id)
    if len(session_ids) + len(names) > 1:
        tx.lock(*session_ids, names=names)
