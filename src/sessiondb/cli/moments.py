"""The parameter type of times on the command line: see `sessiondb.moments`."""

from __future__ import annotations

from typing import Any

import click

from sessiondb.errors import InvalidInputError
from sessiondb.moments import unix_ms


class Moment(click.ParamType):  # type: ignore[type-arg]
    """The Unix ms of a typed time: the start of its span, or the *end* of it."""

    name = "T"

    def __init__(self, *, end: bool = False) -> None:
        self._end = end

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Return Unix ms of *value* in the local time zone; usage error if invalid."""
        try:
            return unix_ms(str(value), end=self._end)
        except InvalidInputError as error:
            self.fail(f"{error}: {error.hint}", param, ctx)
