"""The units whose blocks are open, which explain why an object is not there.

The things that a unit creates exist nowhere else until its block ends. A verb of the
store is a unit of its own, and a read sees what is committed: neither finds them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING
from weakref import ref

from sessiondb.effects.unit import Unit
from sessiondb.errors import NotFoundError
from sessiondb.model.handles import MessageHandle, SessionHandle

if TYPE_CHECKING:
    from sessiondb.database.core import Core

_HINT = "use the verbs of that unit (fx.append, …), or leave its block first"


class OpenUnits:
    """The units of one store that are being filled."""

    def __init__(self) -> None:
        # Weak: a block that is left by an exception forgets its unit.
        self._units: list[ref[Unit]] = []

    def add(self, unit: Unit) -> Unit:
        """Remember a unit until it is committed, and return it."""
        references = []
        for reference in self._units:
            earlier = reference()
            if earlier is not None and not earlier.committed:
                references.append(reference)
        self._units = [*references, ref(unit)]
        return unit

    def explain(self, error: NotFoundError, names: Iterable[object]) -> None:
        """Say so in *error* if a name is that of an object which an open unit creates.

        *names* are ids, handles and anything else that a call was given.
        """
        ids = [_id_of(name) for name in names]
        for reference in self._units:
            unit = reference()
            if unit is None or unit.committed:
                continue
            if any(unit.staged.creates(name) for name in ids if isinstance(name, str)):
                error.args = (f"{error.args[0]}: a unit that is still open creates it",)
                error.hint = _HINT
                return


class UnitBlock:
    """The block of `Store.effects`; leaving it normally commits its unit."""

    def __init__(self, core: Core, durability: str | None) -> None:
        self._core, self._durability = core, durability
        self._unit = core.open_units.add(core.unit())

    def __enter__(self) -> Unit:
        return self._unit

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._core.commit(self._unit, self._durability)


def named_by(unit: Unit) -> list[object]:
    """Return the sessions and messages that the effects of *unit* name."""
    names: list[object] = []
    for effect in unit.effects:
        attributes = ("session_id", "parent_id", "message")
        names += [getattr(effect, name, None) for name in attributes]
    return names


def _id_of(name: object) -> object:
    return name.id if isinstance(name, SessionHandle | MessageHandle) else name
