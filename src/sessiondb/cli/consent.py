"""A plan is shown first and carried out after a typed yes, or with ``--yes``."""

from __future__ import annotations

import sys
from collections.abc import Iterable

import click

from sessiondb.cli import output
from sessiondb.cli.opening import say
from sessiondb.dataclass import dataclass


@dataclass(frozen=True, kw_only=True)
class Consent:
    """The options of a command that shows a plan before it changes anything."""

    dry_run: bool
    yes: bool
    as_json: bool

    def check(self) -> None:
        """Raise `click.UsageError` if a yes is needed and stdin is not a terminal."""
        # A program gets an error, not a question that it would wait on for ever.
        if not (self.dry_run or self.yes or can_ask()):
            raise click.UsageError(
                "not a terminal: pass --yes, or --dry-run to see the plan"
            )

    def show(self, plan: Iterable[str]) -> None:
        """Write the plan: to stdout where it is the result, else to stderr."""
        is_result = self.dry_run and not self.as_json
        for line in plan:
            if is_result:
                output.write(f"{line}\n")
            else:
                say(line)

    def given(self, action: str) -> bool:
        """Return whether to do *action*, by ``--yes`` or a typed yes."""
        return self.yes or typed_yes(action)


def can_ask() -> bool:
    """Return whether a user can answer a question."""
    return sys.stdin.isatty()


def typed_yes(action: str) -> bool:
    """Ask whether to do *action*; only a typed yes counts as one."""
    click.echo(f"Type yes to {action}: ", err=True, nl=False)
    return sys.stdin.readline().strip() == "yes"
