"""Dataclasses with slots that are completed when something of them is first needed.

The standard `dataclasses` write and compile the methods of a class when it is defined,
and a dozen classes take as long as the start of Python. A process uses few of ours, and
a record that is read from a row needs no method. So a class is defined with its slots
alone, and the first look-up of a method, or of its fields, takes all that the same
class has as the standard library makes it. Everything else is as there: defaults,
`fields`, `replace`, `match`, pickling. A class without slots is a standard one.

A frozen class of the standard library sets each field through ``object.__setattr__``,
which for 15 fields costs eight times what they take to assign. Here an object is of an
open twin of its class, with the same layout, until all fields are assigned.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from functools import cached_property, partial, wraps
from types import FunctionType
from typing import TYPE_CHECKING, Any

#: What the standard library adds to a class, as far as its options ask for it.
_ADDED = (
    "__init__", "__repr__", "__eq__", "__hash__", "__match_args__", "__replace__",
    "__dataclass_fields__", "__dataclass_params__",
)  # fmt: skip


class _Standard:
    """The same class as `dataclasses` makes it; it is made on first use."""

    def __init__(self, cls: type[Any], options: dict[str, bool]) -> None:
        self._name, self._bases = cls.__name__, cls.__bases__
        self._qualname = cls.__qualname__
        self.namespace = {
            name: value
            for name, value in vars(cls).items()
            if name not in ("__dict__", "__weakref__")
        }
        self._options = options

    @cached_property
    def members(self) -> dict[str, Any]:
        """Everything in the class."""
        plain = type(self._name, self._bases, dict(self.namespace))
        return dict(vars(dataclasses.dataclass(**self._options)(plain)))

    def member(self, name: str, cls: type[Any]) -> Any:
        """Return a member of *cls*, which has its slots already."""
        if name == "__init__" and self._options.get("frozen", False):
            return _init_of(self.open_twin(cls))
        return self.members[name]

    def open_twin(self, cls: type[Any]) -> type[Any]:
        """Return the class of objects of *cls* whose fields are being assigned."""
        complete = self.namespace.get("__post_init__")

        def become(record: Any) -> None:
            record.__class__ = cls
            if complete is not None:
                complete(record)

        members = {**self.namespace, "__post_init__": become}
        twin = type(self._name, self._bases, members)
        twin.__qualname__ = self._qualname
        options = {**self._options, "frozen": False, "eq": False, "repr": False}
        standard: type[Any] = dataclasses.dataclass(**options)(twin)
        return standard


#: With the parameters of the class: to hand them on as ``*args, **values`` takes longer
#: than to assign them.
_INIT = """
def __init__(self, {parameters}):
    _set_attribute(self, "__class__", _twin)
    _assign(self, {arguments})
"""


def _init_of(twin: Any) -> Callable[..., None]:
    """Return the method ``__init__`` of the class that *twin* is an open twin of."""
    assign = twin.__init__
    code = assign.__code__
    positional = code.co_varnames[1 : code.co_argcount]
    named = code.co_varnames[code.co_argcount :][: code.co_kwonlyargcount]
    text = _INIT.format(
        parameters=", ".join([*positional, *(["*"] if named else []), *named]),
        arguments=", ".join([*positional, *(f"{name}={name}" for name in named)]),
    )
    namespace: dict[str, Any] = {
        "_assign": assign, "_twin": twin, "_set_attribute": object.__setattr__,
    }  # fmt: skip
    exec(text, namespace)  # noqa: S102  as the standard library makes its own
    method: FunctionType = namespace["__init__"]
    method.__defaults__ = assign.__defaults__
    method.__kwdefaults__ = assign.__kwdefaults__
    return wraps(assign)(method)


class _LateMember:
    """Stands for a member of a class until it is looked up, and is then replaced."""

    def __init__(self, name: str, cls: type[Any], standard: _Standard) -> None:
        self._name, self._cls, self._standard = name, cls, standard

    def __get__(self, instance: object, owner: type[Any]) -> Any:
        member = self._standard.member(self._name, self._cls)
        setattr(self._cls, self._name, member)
        return getattr(owner if instance is None else instance, self._name)


class _Frozen:
    """The methods of frozen classes, which need not be compiled for each."""

    def __setattr__(self, name: str, *_value: object) -> None:
        kind = type(self).__name__
        raise dataclasses.FrozenInstanceError(f"cannot assign to {name!r} of {kind}")

    def __getstate__(self) -> list[Any]:
        described = dataclasses.fields(self)  # type: ignore[arg-type]
        return [getattr(self, field.name) for field in described]

    def __setstate__(self, state: list[Any]) -> None:
        described = dataclasses.fields(self)  # type: ignore[arg-type]
        for field, value in zip(described, state, strict=True):
            object.__setattr__(self, field.name, value)


def _late_members(options: dict[str, bool]) -> list[str]:
    """Return the names of what a class with *options* has, and does not have yet."""
    is_compared = options.get("eq", True)
    left_out = set() if sys.version_info >= (3, 13) else {"__replace__"}
    if not options.get("repr", True):
        left_out.add("__repr__")
    if not is_compared:
        left_out.add("__eq__")
    if not (is_compared and options.get("frozen", False)):
        left_out.add("__hash__")
    return [name for name in _ADDED if name not in left_out]


def _define(cls: type[Any], **options: bool) -> Any:
    if not options.get("slots", False):
        return dataclasses.dataclass(**options)(cls)

    standard = _Standard(cls, options)
    names = tuple(cls.__annotations__)
    members = {
        name: value for name, value in standard.namespace.items() if name not in names
    }
    if options.get("eq", True):
        # Not compared by identity, and so without a hash unless it is frozen.
        members.setdefault("__hash__", None)
    members["__slots__"] = names
    new_class: Any = type(cls.__name__, cls.__bases__, members)
    new_class.__qualname__ = cls.__qualname__
    for name in _late_members(options):
        if name not in standard.namespace:
            setattr(new_class, name, _LateMember(name, new_class, standard))

    if options.get("frozen", False):
        new_class.__setattr__ = new_class.__delattr__ = _Frozen.__setattr__
        new_class.__getstate__ = _Frozen.__getstate__
        new_class.__setstate__ = _Frozen.__setstate__
    return new_class


if TYPE_CHECKING:
    from dataclasses import dataclass

    __all__ = ["dataclass"]
else:

    def dataclass(cls: type[Any] | None = None, /, **options: bool) -> Any:
        """Define a dataclass; the options are those of the standard library."""
        return partial(_define, **options) if cls is None else _define(cls, **options)
