"""Values that programs keep by namespace and key, beside sessions.

A namespace is one or more names, such as ``("users", "42")``. It is stored as a JSON
array in one spelling, ``["users","42"]``: a shell reads it, no name can be taken for
two, and the namespaces below a prefix are one range of texts (`range_below`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from sessiondb.dataclass import dataclass
from sessiondb.errors import InvalidInputError, abridged

#: Bytes of a key, and of a namespace as it is stored: both are in each index entry.
MOST_NAME_BYTES = 4_096

#: ``users`` is the namespace ``("users",)``.
Namespace = str | Sequence[str]

_encode_names = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class KeyValue:
    """A value under a key of a namespace.

    ``value`` is a JSON value, or bytes. ``revision`` grows with each write, and a key
    that is used again never gets one that it had before. Times are Unix ms;
    ``time_expires`` is None for a value that does not expire.
    """

    namespace: tuple[str, ...]
    key: str
    value: Any
    revision: int
    time_created: int
    time_updated: int
    time_expires: int | None


@dataclass(slots=True)
class ValueHandle:
    """A value that was or will be written; ``revision`` is None before the commit."""

    namespace: tuple[str, ...]
    key: str
    revision: int | None = None


#: Where a value is stored: its namespace as text, and its key.
ValueAddress = tuple[str, str]


def value_name(address: ValueAddress) -> str:
    """Return how an error names a value."""
    namespace, key = address
    return f"value {abridged(key)} of {namespace}"


def addresses_of(pairs: Iterable[tuple[Namespace, str]]) -> list[ValueAddress]:
    """Return the addresses that *pairs* state; raises `InvalidInputError`."""
    addresses: list[ValueAddress] = []
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise InvalidInputError(
                f"addresses are pairs of a namespace and a key, not {abridged(pair)}"
            )
        addresses.append(value_address(*pair))
    return addresses


def value_address(namespace: Namespace, key: str) -> ValueAddress:
    """Return the address of a value; raises `InvalidInputError`."""
    try:
        text = _text_of_tuple(namespace) if type(namespace) is tuple else None
    except TypeError:  # an unhashable name
        text = None
    if text is None:
        text = namespace_text(namespace_names(namespace))
    return text, value_key(key)


# A program has few namespaces at a time, and writes many values into each.
@lru_cache(maxsize=256)
def _text_of_tuple(namespace: tuple[str, ...]) -> str:
    return namespace_text(namespace_names(namespace))


def namespace_names(
    namespace: Namespace, argument: str = "namespace", *, least: int = 1
) -> tuple[str, ...]:
    """Return the names of a namespace; one string is one name.

    They are at least *least*. Raises `InvalidInputError`, also for an empty name.
    """
    if isinstance(namespace, bytes) or not isinstance(namespace, Sequence):
        raise InvalidInputError(
            f"{argument} must be a string or a list of strings, "
            f"not {abridged(namespace)}"
        )
    names = (namespace,) if isinstance(namespace, str) else tuple(namespace)
    if len(names) < least:
        raise InvalidInputError(f"{argument} needs a name at least")
    for name in names:
        _check_name(name, f"a name of {argument}")
    return names


def namespace_text(names: Sequence[str], argument: str = "namespace") -> str:
    """Return checked names as they are stored; raises `InvalidInputError`."""
    text = _encode_names(names)
    _check_length(text, argument)
    return text


def value_key(key: str) -> str:
    """Return *key* if it can be stored; raises `InvalidInputError`."""
    _check_name(key, "key")
    _check_length(key, "key")
    return key


def range_below(names: Sequence[str]) -> tuple[str, str]:
    """Return the first and the last text that a namespace below *names* can have.

    The last one is that of *names* itself, the first one is not a namespace. A ``"`` in
    a name is escaped, so after the last name there is either ``,`` or ``]``, and
    nothing else begins with the same characters.
    """
    if not names:
        return "[", "]"
    text = namespace_text(names, "prefix")
    return f"{text[:-1]},", text


@lru_cache(maxsize=256)
def names_in(text: str) -> tuple[str, ...]:
    """Return the names of a stored namespace.

    Raises `ValueError` for a text that `namespace_text` does not write.
    """
    names = json.loads(text)
    if not (isinstance(names, list) and names and _encode_names(names) == text):
        raise ValueError("not a JSON array of strings in the one spelling")
    for name in names:
        _check_name(name, "a name of it")
    return tuple(names)


def _check_name(name: object, argument: str) -> None:
    if not isinstance(name, str) or not name:
        raise InvalidInputError(
            f"{argument} must be a non-empty string, not {abridged(name)}"
        )
    if "\0" in name:
        # A shell shows and compares only what is before it.
        raise InvalidInputError(f"{argument} contains NUL: {abridged(name)}")
    if not name.isascii():
        try:
            name.encode()
        except UnicodeEncodeError:
            raise InvalidInputError(
                f"{argument} is not valid Unicode: {abridged(name)}"
            ) from None


def _check_length(text: str, argument: str) -> None:
    # A character has four bytes at most: short names are not encoded to be measured.
    if len(text) * 4 <= MOST_NAME_BYTES:
        return
    size = len(text.encode())
    if size > MOST_NAME_BYTES:
        raise InvalidInputError(
            f"{argument} is {size:,} bytes, at most {MOST_NAME_BYTES:,} are allowed"
        )
