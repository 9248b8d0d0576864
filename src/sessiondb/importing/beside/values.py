"""The values of another database, merged into this one.

A value that is not here is added. Of two of one key the later update wins, and that
which is here if both have one time: so a second import changes nothing. They belong to
no project, so an import of one project's sessions leaves them out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from sessiondb.database.core import Core
from sessiondb.dataclass import dataclass, replace
from sessiondb.effects.transaction import Transaction
from sessiondb.effects.values import encode_value, name_of_value
from sessiondb.engine.base import Name
from sessiondb.engine.sql import Statement
from sessiondb.errors import InvalidInputError
from sessiondb.importing.units import MAX_BYTES, MAX_RECORDS
from sessiondb.model import Problem, Problems, SourceValue, SourceValues, bounds
from sessiondb.model.values import names_in, value_key, value_name

#: The facts of a value beside its address.
STATED = (
    "ttl", "time_created", "time_updated", "time_expires", "value", "content",
)  # fmt: skip
_MERGE = Statement("importing.beside.values.MERGE")


@dataclass(frozen=True, slots=True, eq=False)
class MergeValues:
    """Write values that are not here, or that were updated later than those here."""

    verb = "import"
    values: tuple[SourceValue, ...]

    @property
    def names(self) -> tuple[Name, ...]:
        """Those of the values."""
        addresses = [(item.namespace, item.key) for item in self.values]
        return tuple(map(name_of_value, addresses))

    def apply(self, tx: Transaction) -> None:
        """Apply it."""
        tx.lock(names=self.names)
        for item in self.values:
            stated = {name: getattr(item, name) for name in STATED}
            tx.run(_MERGE, namespace=item.namespace, key=item.key, now=tx.now, **stated)


def merge_values(core: Core, source: SourceValues) -> Iterator[Problem]:
    """Merge the values of *source*; yield a problem for each that cannot be stored."""
    problems = Problems()
    for batch in _batches_of(source, problems):
        unit = core.unit()
        unit.add(MergeValues(tuple(batch)))
        lifetimes = [item.ttl for item in batch if item.ttl is not None]
        unit.shortest_ttl = min(lifetimes, default=None)
        core.commit(unit)
    yield from problems


def _batches_of(
    source: SourceValues, problems: Problems
) -> Iterator[list[SourceValue]]:
    """Yield what was read and can be stored, in batches for one transaction each."""
    batch: list[SourceValue] = []
    size = 0
    for item in source.values:
        if isinstance(item, Problem):
            problems.append(item)
            continue
        try:
            checked = _checked_value(item)
        except (ValueError, RecursionError) as error:
            name = value_name((str(item.namespace), str(item.key)))
            problems.append(Problem(source.path, f"{name}: {error}"))
            continue

        length = len(checked.value or checked.content or "")
        if batch and (len(batch) >= MAX_RECORDS or size + length > MAX_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(checked)
        size += length
    if batch:
        yield batch


def _checked_value(item: SourceValue) -> SourceValue:
    """Return a value as it is stored here; raises `ValueError`."""
    names_in(item.namespace)
    value_key(item.key)
    for name in ("time_created", "time_updated"):
        if bounds.time_ms(getattr(item, name), name) is None:
            raise InvalidInputError(f"{name} is missing")
    bounds.integer(item.ttl, "ttl", least=1)
    bounds.integer(item.time_expires, "time_expires", least=0)
    if (item.ttl is None) != (item.time_expires is None):
        raise InvalidInputError("ttl and time_expires belong together")
    if (item.value is None) == (item.content is None):
        raise InvalidInputError("it has no value, or two")

    content: Any = item.content
    if item.value is not None:
        content = json.loads(item.value)
    elif not isinstance(content, bytes):
        raise InvalidInputError("content is not bytes")
    # In the spelling of this release, whoever wrote it.
    text, _ = encode_value(content)
    return replace(item, value=text)
