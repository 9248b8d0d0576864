"""The parameters ``:name`` and ``?`` of a statement as the server has them: ``$1``.

Texts in quotes, comments and casts are left alone. A statement without parameters is
not read at all. The operators of ``jsonb`` that have a question mark in them cannot be
used beside ``?``; each of them has a function that does the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from sessiondb.engine.postgresql.families import FAMILIES_OF, FAMILY_OF, in_family
from sessiondb.patterns import late_pattern

#: What may have a colon or a question mark in it that is not of a parameter, then the
#: parameters: ``::`` is a cast, and ``a[1:n]`` a slice.
_TOKENS = late_pattern(
    r"""
    (?<!\w)[eE]'(?:[^'\\]|\\.|'')*'
    | '(?:[^']|'')*'
    | "(?:[^"]|"")*"
    | (?<!\w)\$(?P<tag>\w*)\$.*?\$(?P=tag)\$
    | --[^\n]*
    | /\*.*?\*/
    | ::
    | (?<!\w):(?P<name>[A-Za-z_]\w*)
    | (?P<mark>\?)
    """,
    re.DOTALL | re.VERBOSE,
)
#: Statements that are kept: more than ship, with room for those that are put together.
_MOST_STATEMENTS = 2_000


class Numbered(NamedTuple):
    """A statement with numbers in place of its parameters, and with families."""

    sql: bytes
    #: The names in the order of their numbers; empty for question marks.
    names: tuple[str, ...] = ()
    #: The parameters, by name or place, with a session whose family is a further value,
    #: and those with a list of them.
    sessions: tuple[str | int, ...] = ()
    lists: tuple[str, ...] = ()

    def values(self, parameters: Any, families: Sequence[Any] = ()) -> Sequence[Any]:
        """Return the values of the parameters in the order of their numbers.

        *families* are those of `sessions`, then of `lists`. Raises `KeyError` for a
        name that is not given.
        """
        if isinstance(parameters, Mapping):
            return [*(parameters[name] for name in self.names), *families]
        if families:
            return [*parameters, *families]
        # Sequences of the rest of the package are tuples and lists, as they should be.
        return parameters if isinstance(parameters, list | tuple) else [*parameters]


def numbered(sql: str, parameters: Any) -> Numbered:
    """Return *sql* for parameters that are a mapping or a sequence, perhaps empty."""
    if not parameters:
        return _without_parameters(sql)
    if isinstance(parameters, Mapping):
        return _with_names(sql)
    return _with_marks(sql)


@lru_cache(_MOST_STATEMENTS)
def _without_parameters(sql: str) -> Numbered:
    return Numbered(in_family(sql).encode())


@lru_cache(_MOST_STATEMENTS)
def _with_names(sql: str) -> Numbered:
    text = in_family(sql)
    every = dict.fromkeys(
        token["name"] for token in _TOKENS.finditer(text) if token["name"]
    )
    # Families come last: they are not among the values that are given.
    families = [name for name in every if name.startswith(FAMILY_OF)]
    lists = [name for name in every if name.startswith(FAMILIES_OF)]
    names = [name for name in every if name not in (*families, *lists)]
    ordered = [*names, *families, *lists]
    numbers = {name: number for number, name in enumerate(ordered, 1)}

    def number(token: re.Match[str]) -> str:
        name = token["name"]
        return token[0] if name is None else f"${numbers[name]}"

    return Numbered(
        _TOKENS.sub(number, text).encode(),
        tuple(names),
        tuple(name.removeprefix(FAMILY_OF) for name in families),
        tuple(name.removeprefix(FAMILIES_OF) for name in lists),
    )


@lru_cache(_MOST_STATEMENTS)
def _with_marks(sql: str) -> Numbered:
    text = in_family(sql)
    tokens = list(_TOKENS.finditer(text))
    marks = sum(token["mark"] is not None for token in tokens)
    families = dict.fromkeys(
        token["name"]
        for token in tokens
        if token["name"] and token["name"].startswith(FAMILY_OF)
    )
    numbers = {name: number for number, name in enumerate(families, marks + 1)}
    count = 0

    def number(token: re.Match[str]) -> str:
        nonlocal count
        if token["mark"] is not None:
            count += 1
            return f"${count}"
        return f"${numbers[token['name']]}" if token["name"] in numbers else token[0]

    sessions = tuple(int(name.removeprefix(FAMILY_OF)) for name in families)
    return Numbered(_TOKENS.sub(number, text).encode(), (), sessions)
