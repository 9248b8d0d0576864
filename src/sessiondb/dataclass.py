"""Dataclasses with slots that are completed when something of them is first needed.

The standard `dataclasses` write and compile the methods of a class when it is defined,
and a dozen classes take as long as the start of Python; so does loading it. A process
uses few of ours, and a record that is read from a row needs no method. So a class is
defined with its slots alone. Its ``__init__`` is written here when the first object is
made, and comparison needs none; the first look-up of any other method, or of the
fields, takes all that the same class has as the standard library makes it. Everything
else is as there: defaults, `fields`, `replace`, `match`, pickling. A class without
slots is a standard one.

The standard ``__init__`` of a frozen class sets each field through
``object.__setattr__``, which for 15 fields takes eight times as long as to assign them.
Here an object is of an open twin of its class until its fields are assigned.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

#: The methods that the standard library adds to a class, by its options.
_ADDED = (
    "__init__", "__repr__", "__eq__", "__hash__", "__match_args__", "__replace__",
    "__dataclass_fields__", "__dataclass_params__",
)  # fmt: skip
#: Methods of plain objects, which a frozen class has not.
_OF_OBJECT = ("__init__", "__setattr__", "__delattr__")


class _Unset:
    """The default of an argument whose field has a factory."""

    def __repr__(self) -> str:
        return "<factory>"


_UNSET = _Unset()


class _FieldOptions:
    """The options of a `field`; it becomes a standard field with its class."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.options = options


class _Field:
    """A field as methods need it; without a value it is `_UNSET`."""

    def __init__(
        self,
        annotation: Any,
        default: Any = _UNSET,
        factory: Any = _UNSET,
        *,
        init: bool = True,
        compare: bool = True,
    ) -> None:
        self.annotation, self.default, self.factory = annotation, default, factory
        self.init, self.compare = init, compare


def _field_of(annotation: Any, value: Any) -> _Field:
    """Return the field of a name in a class; *value* is what the class has there."""
    if isinstance(value, _FieldOptions):
        options = value.options
        return _Field(
            annotation,
            options.get("default", _UNSET),
            options.get("default_factory", _UNSET),
            init=options.get("init", True),
            compare=options.get("compare", True),
        )
    standard = sys.modules.get("dataclasses")
    if standard is None or not isinstance(value, standard.Field):
        return _Field(annotation, value)

    default, factory = [
        _UNSET if item is standard.MISSING else item
        for item in (value.default, value.default_factory)
    ]
    return _Field(
        annotation, default, factory, init=value.init, compare=bool(value.compare)
    )


def open_twin(cls: type[Any]) -> type[Any]:
    """Return a subclass of *cls* that is not frozen and has its layout.

    An object may change from one to the other by its ``__class__``.
    """
    members = {name: getattr(object, name) for name in _OF_OBJECT}
    return type(cls.__name__, (cls,), {"__slots__": (), **members})


# -- the constructor -------------------------------------------------------------


def _write_init(
    cls: type[Any], fields: Mapping[str, _Field], *, frozen: bool
) -> Callable[..., None]:
    """Return the ``__init__`` of a class, which assigns its fields in their order."""
    names: dict[str, Any] = {"_UNSET": _UNSET, "_cls": cls}
    parameters, values = ["self"], {}
    for name, item in fields.items():
        names |= {f"_default_{name}": item.default, f"_make_{name}": item.factory}
        has_default = item.default is not _UNSET
        has_factory = item.factory is not _UNSET
        if has_factory and item.init:
            parameters.append(f"{name}=_UNSET")
            values[name] = f"_make_{name}() if {name} is _UNSET else {name}"
        elif has_factory:
            values[name] = f"_make_{name}()"
        elif item.init:
            parameters.append(f"{name}=_default_{name}" if has_default else name)
            values[name] = name
        elif has_default:
            values[name] = f"_default_{name}"

    assigned = [f"self.{name} = {value}" for name, value in values.items()]
    if frozen:
        names |= {"_set": object.__setattr__, "_twin": open_twin(cls)}
        body = [
            "if self.__class__ is _cls:",
            *_indented(["_set(self, '__class__', _twin)", *assigned]),
            "    self.__class__ = _cls",
            # Of a subclass, whose layout may be another one.
            "else:",
            "    pass",
            *_indented(f"_set(self, {n!r}, {value})" for n, value in values.items()),
        ]
    else:
        body = assigned or ["pass"]
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")

    source = [f"def __init__({', '.join(parameters)}):", *_indented(body)]
    exec("\n".join(source), names)  # noqa: S102  as the standard library does
    init: Callable[..., None] = names["__init__"]
    stated = {name: item.annotation for name, item in fields.items() if item.init}
    init.__annotations__ = {**stated, "return": None}
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    return init


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"    {line}" for line in lines]


# -- comparison ------------------------------------------------------------------


def _compared_values(fields: Mapping[str, _Field]) -> Callable[[Any], Any]:
    """Return the function that returns the values by which objects are compared."""
    names = [name for name, item in fields.items() if item.compare]
    return attrgetter(*names) if names else lambda _: ()


def _equality(fields: Mapping[str, _Field]) -> Callable[[Any, object], Any]:
    values = _compared_values(fields)

    def are_equal(self: Any, other: object) -> Any:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return values(self) == values(other)

    return are_equal


def _hash_function(fields: Mapping[str, _Field]) -> Callable[[Any], int]:
    values = _compared_values(fields)

    def hash_values(self: Any) -> int:
        return hash(values(self))

    return hash_values


# -- the class -------------------------------------------------------------------


class _Standard:
    """The same class as `dataclasses` makes it; it is made on first use."""

    def __init__(self, cls: type[Any], options: dict[str, bool]) -> None:
        self._name, self._bases = cls.__name__, cls.__bases__
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
        return dict(vars(_complete_class(plain, self._options)))

    def member(self, name: str, cls: type[Any]) -> Any:
        """Return a member of *cls*, which has its slots already."""
        fields = vars(cls)["__late_fields__"]
        if name == "__init__" and not self._options.get("kw_only", False):
            is_frozen = self._options.get("frozen", False)
            return _write_init(cls, fields, frozen=is_frozen)
        if name == "__eq__":
            return _equality(fields)
        if name == "__hash__":
            return _hash_function(fields)
        if name == "__match_args__" and not self._options.get("kw_only", False):
            return tuple(name for name, item in fields.items() if item.init)
        return self.members[name]


def _complete_class(cls: type[Any], options: dict[str, bool]) -> type[Any]:
    """Return *cls* as the standard library completes it."""
    import dataclasses

    for name, value in list(vars(cls).items()):
        if isinstance(value, _FieldOptions):
            setattr(cls, name, dataclasses.field(**value.options))
    completed: type[Any] = dataclasses.dataclass(**options)(cls)
    return completed


class _LateMember:
    """Stands for a member of a class until it is looked up, and is then replaced."""

    def __init__(self, standard: _Standard) -> None:
        self._standard = standard

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self._cls, self._name = owner, name

    def __get__(self, instance: object, owner: type[Any]) -> Any:
        member = self._standard.member(self._name, self._cls)
        setattr(self._cls, self._name, member)
        return getattr(owner if instance is None else instance, self._name)


class _Frozen:
    """The methods of frozen classes, which need not be compiled for each."""

    def __setattr__(self, name: str, *_value: object) -> None:
        from dataclasses import FrozenInstanceError

        kind = type(self).__name__
        raise FrozenInstanceError(f"cannot assign to {name!r} of {kind}")

    def __getstate__(self) -> list[Any]:
        names = type(self).__late_fields__  # type: ignore[attr-defined]
        return [getattr(self, name) for name in names]

    def __setstate__(self, state: list[Any]) -> None:
        names = type(self).__late_fields__  # type: ignore[attr-defined]
        for name, value in zip(names, state, strict=True):
            object.__setattr__(self, name, value)


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
        return _complete_class(cls, options)

    standard = _Standard(cls, options)
    fields: dict[str, _Field] = {}
    for base in reversed(cls.__mro__[1:]):
        fields |= vars(base).get("__late_fields__", {})
    # Annotations are texts: every module of the package postpones them.
    names = tuple(
        name
        for name, annotation in cls.__annotations__.items()
        if not str(annotation).startswith("ClassVar")
    )
    for name in names:
        value = standard.namespace.get(name, _UNSET)
        fields[name] = _field_of(cls.__annotations__[name], value)

    members = {
        name: value for name, value in standard.namespace.items() if name not in names
    }
    if options.get("eq", True):
        # Not compared by identity, and so without a hash unless it is frozen.
        members.setdefault("__hash__", None)
    members |= {"__slots__": names, "__late_fields__": fields}
    for name in _late_members(options):
        if name not in standard.namespace:
            members[name] = _LateMember(standard)
    if options.get("frozen", False):
        members |= {
            "__setattr__": _Frozen.__setattr__,
            "__delattr__": _Frozen.__setattr__,
            "__getstate__": _Frozen.__getstate__,
            "__setstate__": _Frozen.__setstate__,
        }

    new_class: Any = type(cls.__name__, cls.__bases__, members)
    new_class.__qualname__ = cls.__qualname__
    return new_class


if TYPE_CHECKING:
    from dataclasses import asdict, dataclass, field, fields, replace

    __all__ = ["asdict", "dataclass", "field", "fields", "replace"]
else:

    def dataclass(cls: type[Any] | None = None, /, **options: bool) -> Any:
        """Define a dataclass; the options are those of the standard library."""
        return partial(_define, **options) if cls is None else _define(cls, **options)

    def field(**options: Any) -> Any:
        """Return the options of a field; they are those of the standard library."""
        return _FieldOptions(options)

    def replace(record: Any, /, **changes: Any) -> Any:
        """Return a copy of a record with other values of some fields."""
        names = getattr(type(record), "__late_fields__", None)
        if names is None:
            from dataclasses import replace as replace_standard

            return replace_standard(record, **changes)
        values = {name: getattr(record, name) for name in names if names[name].init}
        return type(record)(**values | changes)

    def fields(record: Any) -> Any:
        """Return the fields of a class or an object as the standard library does."""
        from dataclasses import fields as standard_fields

        return standard_fields(record)

    def asdict(record: Any) -> dict[str, Any]:
        """Return a record as a dictionary as the standard library does."""
        from dataclasses import asdict as standard_asdict

        return standard_asdict(record)
