"""Combinations of options that several commands refuse in the same words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click


def exclusive(options: Mapping[str, Any]) -> None:
    """Raise `click.UsageError` if more than one of *options* is given.

    Keyed by what is typed; None and False are options that are not given.
    """
    given = [
        name
        for name, value in options.items()
        if value is not None and value is not False
    ]
    if len(given) > 1:
        raise click.UsageError(f"{' and '.join(given)} exclude each other")
