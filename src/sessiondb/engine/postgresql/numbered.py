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
    """A statement with numbers in place of its parameters."""

    sql: bytes
    #: The names in the order of their numbers; empty for question marks.
    names: tuple[str, ...]

    def values(self, parameters: Any) -> Sequence[Any]:
        """Return the values of the parameters in the order of their numbers.

        Raises `KeyError` for a name that is not given.
        """
        if isinstance(parameters, Mapping):
            return [parameters[name] for name in self.names]
        # Sequences of the rest of the package are tuples and lists, as they should be.
        return parameters if isinstance(parameters, list | tuple) else [*parameters]


def numbered(sql: str, parameters: Any) -> Numbered:
    """Return *sql* for parameters that are a mapping or a sequence, perhaps empty."""
    if not parameters:
        return Numbered(sql.encode(), ())
    if isinstance(parameters, Mapping):
        return _with_names(sql)
    return _with_marks(sql)


@lru_cache(_MOST_STATEMENTS)
def _with_names(sql: str) -> Numbered:
    names: dict[str, int] = {}

    def number(token: re.Match[str]) -> str:
        name = token["name"]
        if name is None:
            return token[0]
        return f"${names.setdefault(name, len(names) + 1)}"

    text = _TOKENS.sub(number, sql)
    return Numbered(text.encode(), tuple(names))


@lru_cache(_MOST_STATEMENTS)
def _with_marks(sql: str) -> Numbered:
    count = 0

    def number(token: re.Match[str]) -> str:
        nonlocal count
        if token["mark"] is None:
            return token[0]
        count += 1
        return f"${count}"

    text = _TOKENS.sub(number, sql)
    return Numbered(text.encode(), ())
