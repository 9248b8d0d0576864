"""Mistakes in a command line that several places refuse in the same words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click


def exclusive(options: Mapping[str, Any]) -> None:
    """Raise `click.UsageError` if more than one of *options* is given.

    The keys are the options as they are typed; an option that is not given is None or
    False.
    """
    stated = [name for name, value in options.items() if value not in (None, False)]
    if len(stated) > 1:
        raise click.UsageError(f"{' and '.join(stated)} exclude each other")


def similar(names: Sequence[str]) -> str:
    """Return the end of a message about a name that is unknown but similar to these.

    Empty for none.
    """
    return f"; is it {' or '.join(names)}?" if names else ""
