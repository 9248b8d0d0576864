"""The type of every option and argument that is a path; alone, because ``--help`` needs it."""

from __future__ import annotations

import os
from typing import Any

import click

from sessiondb.errors import abridged

#: Bytes of a path, with its end; Linux opens no longer one, other systems not as long a one.
MAX_PATH = 32_768 if os.name == "nt" else 4_096


class AnyPath(click.Path):
    """A file or folder, for the sake of completion: what it is, each command finds out.

    No path of any system, so refused: nothing, NUL, half a character, too much.
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
