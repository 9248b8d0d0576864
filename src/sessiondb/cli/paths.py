"""The type of every option and argument that is a path.

A module of its own, because ``--help`` needs it and little else.
"""

from __future__ import annotations

import os
from typing import Any

import click

from sessiondb.errors import abridged

#: Bytes of a path, with its end, that Linux opens; other systems open less.
MAX_PATH = 32_768 if os.name == "nt" else 4_096


class AnyPath(click.Path):
    """A path that shells complete; each command checks what is there.

    Text that is not a path on any system is refused: empty, with NUL, with half a
    character, or too long.
    """

    def __init__(self) -> None:
        super().__init__(readable=False)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Return *value*; usage error if it cannot be a path."""
        try:
            written = os.fsencode(value)
            possible = 0 < len(written) < MAX_PATH and b"\0" not in written
        except UnicodeEncodeError:
            possible = False
        if not possible:
            self.fail(f"{abridged(value)} is not a path", param, ctx)
        return value


PATH = AnyPath()
