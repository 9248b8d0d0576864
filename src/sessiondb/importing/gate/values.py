"""The kinds of values that a source may give, each with its one rule.

Every function here takes a value and the name of its field, returns what is stored of
it, and raises `InvalidInputError`, which names the field, for anything else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from sessiondb import arguments, codec, ids
from sessiondb.effects import encode
from sessiondb.errors import CodecError, InvalidInputError, abridged
from sessiondb.model import TerminalUse, bounds
from sessiondb.model.versions import Version

#: Takes the value and the name of a field, and returns the value as it is stored.
Check = Callable[[Any, str], Any]

#: The largest seq and revision of a log. Counters of a session only grow, so one near
#: the end of 64 bits would make every later write fail.
MAX_COUNTER = 1 << 53
#: The largest last_seq that a log states: the messages of many years fit after it.
MAX_LAST_SEQ = MAX_COUNTER - (1 << 32)
#: Characters of a directory; no system has longer paths.
MAX_DIRECTORY = 32_767


def check_fields(record: Any, checks: Mapping[str, Check]) -> dict[str, Any]:
    """Return the fields of an object that *checks* names, as they are stored."""
    return {name: check(getattr(record, name), name) for name, check in checks.items()}


def instance(value: Any, kind: type, field: str) -> None:
    """Check the type of a record."""
    if not isinstance(value, kind):
        article = "an" if kind.__name__[0] in "AEIO" else "a"
        raise InvalidInputError(
            f"{field} must be {article} {kind.__name__}, not {abridged(value)}"
        )


def optional(check: Check) -> Check:
    """None, or anything that *check* takes."""
    return lambda value, field: None if value is None else check(value, field)


optional_id: Check = ids.optional_id


def session_id(value: Any, field: str) -> str:
    """An id under which a session can be named: ``@`` names the one used last."""
    name = ids.valid_id(value, field)
    if name.startswith("@"):
        raise InvalidInputError(
            f"{field} begins with @, which names the last session: {name!r}"
        )
    return name


def one_of(*allowed: str) -> Check:
    """None, or one of these."""
    return lambda value, field: arguments.one_of(value, allowed, field)


def filled(check: Check, default: Any) -> Check:
    """Anything that *check* takes; *default* replaces None and what is empty."""
    return lambda value, field: check(value, field) or default


def stated(check: Check) -> Check:
    """Anything that *check* takes, but not None."""

    def checked(value: Any, field: str) -> Any:
        if value is None:
            raise InvalidInputError(f"{field} is missing")
        return check(value, field)

    return checked


def counter(value: Any, field: str, *, least: int = 0) -> int:
    """A seq or a revision."""
    if type(value) is not int or not least <= value <= MAX_COUNTER:
        raise InvalidInputError(
            f"{field} must be an integer from {least} to {MAX_COUNTER}, "
            f"not {abridged(value)}"
        )
    return value


def last_seq(value: Any, field: str) -> int:
    """A counter with room for further messages.

    The next message is numbered after it. Near the end its own export would be refused.
    """
    if counter(value, field) > MAX_LAST_SEQ:
        raise InvalidInputError(
            f"{field} above 2^53 - 2^32 leaves no room for messages: {value}"
        )
    return value  # type: ignore[no-any-return]


#: Unix ms, or None. A program's time may be any small number; a large one would spoil
#: every order.
time: Check = partial(bounds.integer, least=0, most=bounds.TIME_MOST)


def flag(value: Any, field: str) -> bool:
    """A boolean."""
    if type(value) is not bool:
        raise InvalidInputError(f"{field} must be true or false, not {abridged(value)}")
    return value


def function(value: Any, field: str) -> Callable[..., Any]:
    """Anything that can be called."""
    if not callable(value):
        raise InvalidInputError(f"{field} must be a function, not {abridged(value)}")
    return value  # type: ignore[no-any-return]


def directory(value: Any, field: str) -> str:
    """A path that a database can name."""
    if not isinstance(value, str):
        raise InvalidInputError(f"{field} must be a string, not {abridged(value)}")
    if len(value) > MAX_DIRECTORY or codec.readable(value)[1]:
        raise InvalidInputError(
            f"{field} must be a path of at most {MAX_DIRECTORY} characters, "
            f"valid Unicode and without NUL, not {abridged(value)}"
        )
    return value


def exact(value: Any, field: str) -> str:
    """A string that is stored as it is, and is not empty."""
    if _is_readable(value) and value:
        return value  # type: ignore[no-any-return]
    raise _empty_error(value, field)


def namespace(value: Any, field: str) -> str:
    """An empty string, or one that is stored as it is."""
    return value if value == "" else ids.valid_id(value, field)


def path(value: Any, field: str) -> str:
    """The path of a file for the ledger: bytes that are not UTF-8 are escaped."""
    if not isinstance(value, str) or not value:
        raise _empty_error(value, field)
    return escaped_path(value)


def escaped_path(path: str) -> str:
    """Return a path as it is stored, whatever its bytes are."""
    return path.encode("utf-8", "backslashreplace").decode().replace("\0", "\\0")


def ledger_path(path_of_store: Any, source_id: str) -> str:
    """The path of a session's entry in the ledger."""
    return f"{path(path_of_store, 'path')}#{source_id}"


def _is_readable(value: Any) -> bool:
    """Return whether a value is a string that a column keeps as it is."""
    return isinstance(value, str) and not codec.readable(value)[1]


def _empty_error(value: Any, field: str) -> InvalidInputError:
    return InvalidInputError(
        f"{field} must be a non-empty string, not {abridged(value)}"
    )


def json(value: Any, field: str) -> str | None:
    """None, or a value of JSON as text."""
    return named(field, encode.json_column, value, field)  # type: ignore[no-any-return]


def items(value: Any, field: str) -> tuple[Any, ...] | list[Any]:
    """A tuple or list."""
    if isinstance(value, tuple | list):
        return value
    raise InvalidInputError(f"{field} must be a sequence, not {abridged(value)}")


def terminal_use(value: Any, field: str) -> TerminalUse:
    """A terminal and directory, and when they were used."""
    instance(value, TerminalUse, field)
    ids.valid_id(value.terminal, f"{field}: terminal")
    exact(directory(value.directory, f"{field}: directory"), f"{field}: directory")
    counter(time(value.time, f"{field}: time"), f"{field}: time")
    return value  # type: ignore[no-any-return]


def each(check: Check, name: str) -> Check:
    """A tuple or list of what *check* takes; an error says *name* of the list."""

    def checked(value: Any, field: str) -> tuple[Any, ...]:
        return tuple([check(item, f"{name} {field}") for item in items(value, field)])

    return checked


def pair(value: Any, field: str) -> tuple[str, str]:
    """Two ids."""
    if not isinstance(value, tuple) or len(value) != 2:
        raise InvalidInputError(f"{field} are pairs of ids, not {abridged(value)}")

    first, second = value
    return ids.valid_id(first, field), ids.valid_id(second, field)


def versions(value: Any, field: str) -> Mapping[str, Version]:
    """The versions of a session's fields, by name."""
    if not isinstance(value, Mapping):
        raise InvalidInputError(f"{field} must be a mapping, not {abridged(value)}")

    for name, value_version in value.items():
        if not _is_readable(name):
            raise InvalidInputError(
                f"{field}: a field cannot have this name: {abridged(name)}"
            )
        version(value_version, field)
    return value


def version(value: Any, field: str) -> Version:
    """When a field got its value."""
    instance(value, Version, field)
    counter(value.revision, f"{field}: revision")
    time(value.time, f"{field}: time")
    return value  # type: ignore[no-any-return]


def named(field: str, check: Callable[..., Any], *args: Any) -> Any:
    """Return what *check* does; its error names the field."""
    try:
        return check(*args)
    except InvalidInputError as error:
        kind = CodecError if isinstance(error, CodecError) else InvalidInputError
        raise kind(f"{field}: {error}") from None


def accepts(check: Callable[..., Any], *args: Any) -> bool:
    """Return whether *check* takes a value, without what it returns for it."""
    try:
        check(*args)
    except InvalidInputError:
        return False
    return True


def shown(value: Any) -> str:
    """Return an id as a problem names it, whatever it is."""
    if isinstance(value, str) and value.isprintable():
        return value if len(value) <= ids.MAX_ID_BYTES else abridged(value)
    return abridged(value)
