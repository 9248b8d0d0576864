"""Late dataclasses behave as those of the standard library, whose methods they take."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, asdict, field, fields, replace
from typing import Any, ClassVar

import pytest

from sessiondb.dataclass import dataclass
from sessiondb.dataclass import field as late_field
from sessiondb.dataclass import replace as late_replace


@dataclass(frozen=True, slots=True)
class Place:
    """A place."""

    name: str
    tags: list[str] = field(default_factory=list, compare=False)
    size: int = 1


def defined(maker: Callable[..., Any], **options: bool) -> Any:
    """Return a class that is defined by *maker* with *options*."""

    class Base:
        """Nothing."""

    class Pair(Base):
        """A pair."""

        LIMIT: ClassVar[int] = 9
        first: int
        second: tuple[int, ...] = (1, 2)
        third: list[int] = field(default_factory=list, repr=False)
        fourth: int | None = field(default=None, init=False)

        def __post_init__(self) -> None:
            if self.first < 0:
                raise ValueError("first")

        @property
        def double(self) -> int:
            return 2 * self.first

    return maker(**options)(Pair)


@pytest.mark.parametrize("maker", [dataclass, dataclasses.dataclass])
def test_a_variable_of_the_class_is_no_field(maker: Callable[..., Any]) -> None:
    pair = defined(maker, slots=True)
    assert (pair.LIMIT, pair(1).LIMIT) == (9, 9)
    assert "LIMIT" not in {item.name for item in fields(pair)}
    assert "LIMIT" not in repr(pair(1))
    with pytest.raises(TypeError):
        pair(1, LIMIT=3)


def outcome(act: Callable[[], object]) -> object:
    try:
        return act()
    except (TypeError, ValueError, AttributeError) as error:
        return type(error)


OPTIONS = [
    {"frozen": True, "slots": True},
    {"frozen": True, "slots": True, "eq": False},
    {"slots": True},
    {"slots": True, "eq": False, "repr": False},
    {"frozen": True, "kw_only": True},
    {},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_late_dataclass_does_what_the_standard_one_does(
    options: dict[str, bool],
) -> None:
    def behaviour(maker: Callable[..., Any]) -> list[object]:
        cls = defined(maker, **options)
        one, same, other = cls(first=3), cls(first=3), cls(first=3, second=())
        shown = [repr(one)] if options.get("repr", True) else []
        return [
            *shown,
            str(inspect.signature(cls)),
            [(f.name, f.type, f.kw_only) for f in fields(cls)],
            one == same,
            one == other,
            one == 3,
            outcome(lambda: cls(3, (4,))),
            outcome(lambda: cls(first=-1)),
            outcome(lambda: cls()),
            outcome(lambda: hash(one) == hash(same)),
            outcome(lambda: setattr(one, "first", 4)),
            outcome(lambda: delattr(one, "second")),
            outcome(lambda: setattr(one, "unknown", 4)),
            outcome(lambda: one.double),
            outcome(lambda: one.fourth),
            outcome(lambda: asdict(replace(other, first=5))),
            outcome(lambda: asdict(copy.deepcopy(other))),
            cls.__match_args__,
            hasattr(one, "__dict__"),
            cls.__doc__,
        ]

    def plain(values: list[object]) -> list[object]:
        # The classes themselves differ, and an object without a name shows its place.
        return [
            v if isinstance(v, str | bool | list | tuple) else str(type(v))
            for v in values
        ]

    standard, late = behaviour(dataclasses.dataclass), behaviour(dataclass)
    assert plain(late) == plain(standard)


def test_a_frozen_record_can_be_pickled_and_copied_and_not_changed() -> None:
    place = Place("Oslo", ["north"])
    assert pickle.loads(pickle.dumps(place)) == place
    assert copy.copy(place).tags is place.tags
    with pytest.raises(FrozenInstanceError, match="cannot assign to 'name' of Place"):
        place.name = "Rome"  # type: ignore[misc]


def test_a_method_is_compiled_when_it_is_first_looked_up() -> None:
    cls = defined(dataclass, frozen=True, slots=True)
    assert not inspect.isfunction(vars(cls)["__init__"])
    cls(first=1)
    assert inspect.isfunction(vars(cls)["__init__"])
    assert not inspect.isfunction(vars(cls)["__repr__"])


@pytest.mark.parametrize("frozen", [True, False])
def test_a_field_of_ours_is_one_of_the_standard_library(frozen: bool) -> None:
    @dataclass(frozen=frozen, slots=True)
    class Late:
        first: int
        second: list[int] = late_field(default_factory=list)
        third: int = late_field(default=3, compare=False)
        fourth: int = late_field(default=4, init=False)

    assert [item.name for item in fields(Late)] == [
        "first",
        "second",
        "third",
        "fourth",
    ]
    one = Late(1)
    assert (one.second, one.third, one.fourth) == ([], 3, 4)
    assert one.second is not Late(1).second
    assert one == Late(1, [], 5) != Late(2)
    assert late_replace(one, third=6).third == 6
    assert late_replace(one, first=2) == replace(one, first=2)
    assert asdict(one) == {"first": 1, "second": [], "third": 3, "fourth": 4}


def test_a_subclass_of_a_frozen_record_stays_one() -> None:
    class Named(Place):
        """A place with a dictionary."""

    named = Named("Oslo")
    named.__dict__["note"] = "north"
    assert type(named) is Named
    assert (named.name, named.tags, named.size) == ("Oslo", [], 1)
    with pytest.raises(FrozenInstanceError):
        named.name = "Rome"  # type: ignore[misc]


def test_a_late_dataclass_takes_over_the_fields_of_its_base() -> None:
    @dataclass(slots=True)
    class Base:
        first: int

    @dataclass(slots=True)
    class Child(Base):
        second: int = 2

    assert repr(Child(1)).endswith("Child(first=1, second=2)")
    assert Child(1, 2) == Child(first=1) != Child(2)
    assert [item.name for item in fields(Child)] == ["first", "second"]
    assert late_replace(Child(1), second=3) == Child(1, 3)
