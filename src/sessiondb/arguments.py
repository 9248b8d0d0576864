"""Arguments of public callables, checked against their annotations.

A type checker refuses `sessions(archived=[])` before it runs; a caller without one gets
the same answer here, as one line that names the argument. An annotation is checked only
if all of its alternatives are in `_KNOWN`: sessions, paths and JSON are checked by the
code that interprets them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache, partial, wraps
from pathlib import Path
from types import FunctionType, NoneType
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, Protocol, TypeVar

from sessiondb.errors import InvalidInputError, UnsupportedError, abridged

if TYPE_CHECKING:
    from sessiondb.location.database import Database

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=type)
Test = Callable[[object], bool]


def _is_number(types: type | tuple[type, ...], value: object) -> bool:
    # True where a number is expected is a mistake, although bool is an int.
    return isinstance(value, types) and not isinstance(value, bool)


def _is_several(value: object) -> bool:
    # A string is iterable, but never meant as a list of characters.
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)


def _has_attribute(attribute: str, value: object) -> bool:
    return not isinstance(value, type) and hasattr(value, attribute)


#: The types that nearly every argument has, by the alternative that admits them. Their
#: values need no test, which would cost time in every call of every verb.
_USUAL: dict[str, tuple[type, ...]] = {
    "None": (NoneType,),
    "bool": (bool,),
    "str": (str,),
    "bytes": (bytes,),
    "int": (int,),
    "float": (float, int),
    "Mapping": (dict,),
    "Iterable": (list, tuple),
    "Sequence": (list, tuple),
}
#: The alternatives of an annotation: the test of a value, and its name in messages.
_KNOWN: dict[str, tuple[Test, str]] = {
    "None": (lambda value: value is None, "None"),
    "bool": (lambda value: isinstance(value, bool), "True or False"),
    "str": (lambda value: isinstance(value, str), "a string"),
    "bytes": (lambda value: isinstance(value, bytes), "bytes"),
    "int": (partial(_is_number, int), "an integer"),
    "float": (partial(_is_number, (float, int)), "a number"),
    "Path": (lambda value: isinstance(value, Path), "a pathlib.Path"),
    "Mapping": (lambda value: isinstance(value, Mapping), "a mapping"),
    "Iterable": (_is_several, "a list"),
    "Sequence": (_is_several, "a list"),
    "Callable": (callable, "a function"),
    "Callback": (callable, "a function"),
    # Duck types, so that this module imports no other.
    "OpenedStore": (partial(_has_attribute, "path"), "an opened store"),
    "Store": (partial(_has_attribute, "sessions"), "an opened store"),
    "Database": (partial(_has_attribute, "kind"), "a location.Database"),
    "threading.Event": (partial(_has_attribute, "is_set"), "an event"),
    "trio.Event": (partial(_has_attribute, "is_set"), "an event"),
    "asyncio.Event": (partial(_has_attribute, "is_set"), "an event"),
}


class OpenedStore(Protocol):
    """An opened store, of either façade."""

    @property
    def path(self) -> Path | None:
        """The database file; None for a database of a server."""

    @property
    def location(self) -> Database:
        """Where the database is."""


def file_of(store: OpenedStore, advice: str) -> Path:
    """Return the database file of a store, for work that only a file allows.

    Raises `UnsupportedError` for a database of a server, with *advice* as its hint.
    """
    if store.path is None:
        raise UnsupportedError(
            "this needs a database that is a file; "
            f"{store.location} is one of a server",
            hint=advice,
        )
    return store.path


class _Rule(NamedTuple):
    """The values that one parameter admits: of usual types, or accepted by a test."""

    usual: frozenset[type]
    tests: tuple[Test, ...]
    words: str


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Return *function* with checked arguments.

    One of another type raises `InvalidInputError`, which names the argument.
    """
    code = function.__code__
    positional = code.co_varnames[: code.co_argcount]
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    hints = function.__annotations__
    rules = {name: rule for name in names if (rule := _rule_of(hints.get(name, "Any")))}
    # Parameters without a rule are skipped, such as session and message of an append.
    places = [
        (index, name, rules[name].usual)
        for index, name in enumerate(positional)
        if name in rules
    ]
    usual_types = {name: rule.usual for name, rule in rules.items()}

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        # No call for a value of a usual type: every verb of every turn gets here.
        for index, name, usual in places:
            if index >= len(args):
                break
            if type(args[index]) not in usual:
                _check_argument(name, args[index], rules[name])

        for name, value in kwargs.items():
            if name in rules and type(value) not in usual_types[name]:
                _check_argument(name, value, rules[name])

        return function(*args, **kwargs)

    return call if rules else function


def checks_arguments(cls: C) -> C:
    """Check the arguments of every public method of a class: see `checked`."""
    for name, value in list(vars(cls).items()):
        if isinstance(value, FunctionType) and not name.startswith("_"):
            setattr(cls, name, checked(value))
    return cls


def _check_argument(name: str, value: object, rule: _Rule) -> None:
    if not any(test(value) for test in rule.tests):
        raise InvalidInputError(f"{name} must be {rule.words}, not {abridged(value)}")


def session_argument(
    verb: Callable[..., R], args: tuple[object, ...], kwargs: Mapping[str, object]
) -> tuple[Any, Callable[..., R]]:
    """Return the ``session`` that a call names, and the verb without it.

    The second takes the unit and the id of that session.
    """
    by_name = dict(kwargs)
    if args:
        ref, *others = args
    elif "session" in by_name:
        ref, others = by_name.pop("session"), []
    else:
        raise TypeError(
            f"{verb.__name__}() missing 1 required positional argument: 'session'"
        )

    def complete(unit: object, session_id: str) -> R:
        return verb(unit, session_id, *others, **by_name)

    return ref, complete


def one_of(value: Any, allowed: Collection[str], name: str) -> str | None:
    """Return *value* if it is None or allowed; raises `InvalidInputError`.

    *name* is that of the argument, whose annotation says whether it may be None.
    """
    if value is not None and value not in allowed:
        raise InvalidInputError(
            f"{name} is one of {', '.join(allowed)}, not {abridged(value)}"
        )
    return value  # type: ignore[no-any-return]


@cache
def _rule_of(annotation: str) -> _Rule | None:
    """Return the rule of an annotation; None if an alternative is not in `_KNOWN`."""
    outer = re.sub(r"\[.*\]", "", annotation)
    rules = [_KNOWN.get(name) for name in outer.split(" | ")]
    if None in rules:
        return None
    rules_known = [item for item in rules if item is not None]
    usual = frozenset(
        kind for name in outer.split(" | ") for kind in _USUAL.get(name, ())
    )
    tests, words = zip(*rules_known, strict=True)
    return _Rule(usual, tests, " or ".join(dict.fromkeys(words)))
