"""Sizes as a person types them: ``500MB``, ``1.5 GB``, ``2GiB``, a number of bytes."""

from __future__ import annotations

import re
from typing import Any

import click

from sessiondb.errors import abridged

#: Bytes of each unit; kB is 1,000 bytes, as sizes are shown.
UNITS = {
    "": 1,
    "b": 1,
    "k": 10**3, "kb": 10**3, "kib": 2**10,
    "m": 10**6, "mb": 10**6, "mib": 2**20,
    "g": 10**9, "gb": 10**9, "gib": 2**30,
    "t": 10**12, "tb": 10**12, "tib": 2**40,
}  # fmt: skip


class Size(click.ParamType):  # type: ignore[type-arg]
    """A number of bytes above 0."""

    name = "SIZE"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Return *value* in bytes; usage error if it is not a size."""
        size = re.fullmatch(r"(\d{1,15}(?:\.\d{1,9})?) ?([a-z]*)", str(value).lower())
        number = 0
        if size is not None and size[2] in UNITS:
            number = int(float(size[1]) * UNITS[size[2]])
        if number == 0:
            self.fail(
                f"{abridged(value)} is not a size; the forms are 800kB, 500MB, 1.5GB, "
                "2GiB",
                param,
                ctx,
            )
        return number
