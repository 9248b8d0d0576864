"""The options of an export that removes secrets, and the report of what it removed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import click

from sessiondb.cli import options as shared
from sessiondb.cli import output
from sessiondb.cli.opening import say
from sessiondb.cli.text import count, one_line
from sessiondb.cli.usage import exclusive
from sessiondb.dataclass import dataclass

if TYPE_CHECKING:
    from sessiondb.formats.redact import Redacted, Redaction

#: Messages and first characters that the report names for each kind of secret.
SHOWN = 5


@dataclass(frozen=True, slots=True)
class RedactionOptions:
    """``--redact``, and how it is reported."""

    redact: bool
    dry_run: bool
    as_json: bool

    def check(self, *, to_stdout: bool, opened: bool) -> None:
        """Raise `click.UsageError` if there is nothing to report, or no place for it.

        *to_stdout*: the sessions go there. *opened*: they are shown in a browser.
        """
        if self.dry_run and not self.redact:
            raise click.UsageError(
                "--dry-run reports what --redact would remove: add it"
            )
        exclusive({"--dry-run": self.dry_run, "--open": opened})
        if self.as_json and to_stdout and not self.dry_run:
            raise click.UsageError(
                "--json needs -o or --dry-run: stdout has the sessions"
            )

    def make_redaction(self) -> Redaction | None:
        """Return the redaction of an export; None if nothing is to be removed."""
        if not self.redact:
            return None
        from sessiondb.formats.redact import Redaction

        return Redaction()

    def show(self, redaction: Redaction | None, left_out: Sequence[str]) -> None:
        """Report what was removed: on stderr, or where no session is, on stdout.

        *left_out* are the ids of sessions that were not exported, for the JSON.
        """
        removed = [] if redaction is None else redaction.report()
        if self.as_json:
            facts = [redacted.as_json() for redacted in removed]
            output.write_json({"redacted": facts, "left_out": list(left_out)})
        elif redaction is not None:
            for line in _report_lines(removed):
                if self.dry_run:
                    output.write(f"{line}\n")
                else:
                    say(line)


redaction = shared.gathered(
    "removal",
    RedactionOptions,
    {
        "redact": click.option(
            "--redact", is_flag=True, help="Remove what looks like a key or a password."
        ),
        "dry_run": click.option(
            "--dry-run", is_flag=True, help="With --redact: report it, write nothing."
        ),
        "as_json": click.option(
            "--json",
            "as_json",
            is_flag=True,
            help="With -o or --dry-run: report as JSON.",
        ),
    },
)


def _report_lines(report: Iterable[Redacted]) -> Iterator[str]:
    """Yield a line for each session and kind of secret, and one if there is none."""
    nothing = True
    for removed in report:
        nothing = False
        found = f"{removed.kind}, {count(removed.count, 'time')}"
        where = " ".join([*removed.fields, *_message_words(removed)])
        starts = [one_line(start) for start in removed.starts[:SHOWN]]
        if len(removed.starts) > SHOWN:
            starts.append(f"{len(removed.starts) - SHOWN:,} more")
        line = f"{found}, in {where}"
        if starts:
            line += f": {', '.join(starts)}"
        yield f"{removed.session_id}: redacted: {line}"
    if nothing:
        yield "redacted: nothing has the form of a secret"


def _message_words(removed: Redacted) -> Iterator[str]:
    yield from (f"#{seq}" for seq in removed.seqs[:SHOWN])
    further = len(removed.seqs) - SHOWN
    if further > 0:
        yield f"and {count(further, 'other message')}"
