"""Values by namespace and key: set, updated, removed, and removed once they expired.

A value is written by one statement. Its revision grows with each write, and continues
after the greatest one of a value that is gone (``value_revision`` of ``meta``), so that
`expect_revision` never matches a value that was removed and written again. A value that
expired is not there: the next write of its key begins a new one.
"""

from __future__ import annotations

import json
from types import EllipsisType
from typing import Any

from sessiondb import codec
from sessiondb.dataclass import dataclass, field
from sessiondb.effects.fold import CallerFold
from sessiondb.effects.transaction import Transaction
from sessiondb.engine.base import Name
from sessiondb.engine.sql import Statement, as_list, upsert_text
from sessiondb.errors import ConflictError
from sessiondb.model.damage import damaged
from sessiondb.model.values import (
    ValueAddress,
    ValueHandle,
    range_below,
    value_name,
)

_CURRENT = Statement("effects.values.CURRENT")
_REMOVED = Statement("effects.values.REMOVED")
_PUT = Statement("effects.values.PUT")
_DROP = Statement("effects.values.DROP")
_BELOW = Statement("effects.values.BELOW")
_DROP_BELOW = Statement("effects.values.DROP_BELOW")
_REFRESH = Statement("effects.values.REFRESH")
_EXPIRED = Statement("effects.values.EXPIRED")
_DROP_EXPIRED = Statement("effects.values.DROP_EXPIRED")
_DROP_EXPIRED_BELOW = Statement("effects.values.DROP_EXPIRED_BELOW")
_NEXT_EXPIRY = Statement("effects.values.NEXT_EXPIRY")


#: A value as it is stored: JSON text or bytes, the other one is None.
StoredValue = tuple[str | None, bytes | None]


def encode_value(value: Any) -> StoredValue:
    """Check and encode a value; raises `CodecError`."""
    if isinstance(value, bytes):
        return None, value
    return codec.json_text(value, "value"), None


def _decode_value(stored: StoredValue, address: ValueAddress) -> Any:
    """Return the value itself; raises `CorruptionError`."""
    text, content = stored
    if text is None:
        return content
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise damaged(value_name(address), error) from error


@dataclass(frozen=True, slots=True)
class _Current:
    """A value that is there; ``ttl`` in ms."""

    revision: int
    ttl: int | None
    stored: StoredValue


def name_of_value(address: ValueAddress) -> Name:
    """Return the name under which a value is locked."""
    return "value", *address


def _current(tx: Transaction, address: ValueAddress) -> _Current | None:
    namespace, key = address
    row = tx.one(_CURRENT, namespace=namespace, key=key, now=tx.now)
    if row is None:
        return None
    revision, ttl, text, content = row
    return _Current(revision, ttl, (text, content))


def _put_value(
    tx: Transaction, address: ValueAddress, stored: StoredValue, ttl: int | None
) -> int:
    """Write a value and return its revision."""
    (namespace, key), (text, content) = address, stored
    rows = tx.run(
        _PUT, namespace=namespace, key=key, now=tx.now, ttl=ttl, value=text,
        content=content,
    ).fetchall()  # fmt: skip
    revision: int = rows[0][0]
    return revision


def _announce(tx: Transaction, handle: ValueHandle, revision: int) -> None:
    tx.after_commit.append(lambda: setattr(handle, "revision", revision))


def _check_revision(
    address: ValueAddress, current: _Current | None, expected: int | None
) -> None:
    """Raise `ConflictError` unless a value has the expected revision, 0 for none."""
    revision = 0 if current is None else current.revision
    if expected is None or revision == expected:
        return

    if expected == 0:
        conflict = f"exists, with revision {revision}"
    elif revision == 0:
        conflict = f"does not exist, but revision {expected} was expected"
    else:
        conflict = f"has revision {revision}, not {expected}"
    raise ConflictError(
        f"{value_name(address)} {conflict}",
        hint="read it again, and decide by what it is",
    )


@dataclass(frozen=True, slots=True, eq=False)
class SetValue:
    """Write a value, whatever is there, or only over an expected revision."""

    verb = "set_value"
    address: ValueAddress
    handle: ValueHandle
    stored: StoredValue
    ttl: int | None
    expect_revision: int | None

    @property
    def names(self) -> tuple[Name, ...]:
        """That of the value."""
        return (name_of_value(self.address),)

    def apply(self, tx: Transaction) -> None:
        """Apply it; a retried unit may find it done. Raises `ConflictError`."""
        tx.lock_name(*name_of_value(self.address))
        # Nothing is read for a write that depends on nothing.
        if tx.retried or self.expect_revision is not None:
            current = _current(tx, self.address)
            if tx.retried and current is not None and self._is_done(current):
                _announce(tx, self.handle, current.revision)
                return
            _check_revision(self.address, current, self.expect_revision)
        revision = _put_value(tx, self.address, self.stored, self.ttl)
        _announce(tx, self.handle, revision)

    def _is_done(self, current: _Current) -> bool:
        follows = self.expect_revision is None or (
            current.revision > self.expect_revision
        )
        return follows and current.stored == self.stored


@dataclass(frozen=True, slots=True, eq=False)
class UpdateValue:
    """Write what a function makes of a value, which no other write can come between."""

    verb = "update_value"
    address: ValueAddress
    handle: ValueHandle
    fold: CallerFold
    ttl: int | EllipsisType | None

    @property
    def names(self) -> tuple[Name, ...]:
        """That of the value."""
        return (name_of_value(self.address),)

    def apply(self, tx: Transaction) -> None:
        """Apply it; an equal result writes nothing, unless a ttl is stated.

        Raises `CodecError`, and `CallerError` for what the function raises.
        """
        tx.lock_name(*name_of_value(self.address))
        current = _current(tx, self.address)
        if current is None:
            present, ttl = None, None
        else:
            present, ttl = _decode_value(current.stored, self.address), current.ttl
        stored = encode_value(self.fold.result_for(present))

        if not isinstance(self.ttl, EllipsisType):
            ttl = self.ttl
        elif current is not None and stored == current.stored:
            _announce(tx, self.handle, current.revision)
            return
        _announce(tx, self.handle, _put_value(tx, self.address, stored, ttl))


@dataclass(frozen=True, slots=True, eq=False)
class DeleteValue:
    """Remove a value, if there is one."""

    verb = "delete_value"
    address: ValueAddress
    expect_revision: int | None

    @property
    def names(self) -> tuple[Name, ...]:
        """That of the value."""
        return (name_of_value(self.address),)

    def apply(self, tx: Transaction) -> None:
        """Apply it; raises `ConflictError`."""
        tx.lock_name(*name_of_value(self.address))
        if self.expect_revision is not None:
            current = _current(tx, self.address)
            if tx.retried and current is None:
                return
            _check_revision(self.address, current, self.expect_revision)
        namespace, key = self.address
        for revision in tx.column(_DROP, namespace=namespace, key=key):
            _note_removed(tx, revision)


@dataclass(slots=True, eq=False)
class DeleteValues:
    """Remove all values of a namespace and those below it.

    ``deleted`` is how many there were.
    """

    verb = "delete_values"
    prefix: tuple[str, ...]
    deleted: int = field(default=0)

    def apply(self, tx: Transaction) -> None:
        """Apply it."""
        low, high = range_below(self.prefix)
        self.deleted, revision = tx.one(_BELOW, low=low, high=high, now=tx.now)
        if revision is not None:
            _note_removed(tx, revision)
            tx.run(_DROP_BELOW, low=low, high=high)


def _note_removed(tx: Transaction, revision: int) -> None:
    """Record the revision of a value that goes, after which new values continue."""
    tx.lock_name("value_revision")
    if revision > (tx.value(_REMOVED) or 0):
        meta = ("value_revision", str(revision))
        tx.connection.execute(upsert_text("meta", ("key", "value")), meta)


@dataclass(frozen=True, slots=True, eq=False)
class RefreshValue:
    """Let a value live for its ``ttl`` from now on, if it has one and is there."""

    verb = "refresh_value"
    address: ValueAddress

    def apply(self, tx: Transaction) -> None:
        """Apply it."""
        namespace, key = self.address
        tx.run(_REFRESH, namespace=namespace, key=key, now=tx.now)


@dataclass(slots=True, eq=False)
class DeleteExpired:
    """Remove the values of a namespace and those below it that have expired.

    ``deleted`` is how many there were.
    """

    verb = "delete_expired"
    prefix: tuple[str, ...]
    deleted: int = field(default=0)

    def apply(self, tx: Transaction) -> None:
        """Apply it."""
        low, high = range_below(self.prefix)
        revisions = tx.column(_DROP_EXPIRED_BELOW, low=low, high=high, now=tx.now)
        self.deleted = len(revisions)
        if revisions:
            _note_removed(tx, max(revisions))


def remove_expired(tx: Transaction, rows: int, most_bytes: int) -> bool:
    """Remove some values that expired, at most *rows*; False if there were none.

    They have at most *most_bytes*, unless the first one has more.
    """
    found = tx.run(_EXPIRED, now=tx.now, rows=rows).fetchall()
    if not found:
        return False

    addresses: list[ValueAddress] = []
    size = 0
    for namespace, key, length in found:
        size += length
        if addresses and size > most_bytes:
            break
        addresses.append((namespace, key))
    tx.lock(names=[name_of_value(address) for address in addresses])
    # One that was written again by now has not expired, and stays.
    dropped = tx.column(_DROP_EXPIRED, addresses=as_list(addresses), now=tx.now)
    if dropped:
        _note_removed(tx, max(dropped))
    return True


def next_expiry(tx: Transaction) -> int | None:
    """Return when the next value expires, in Unix ms; None if none does."""
    expiry: int | None = tx.value(_NEXT_EXPIRY)
    return expiry
