"""Options that several commands share: formats of output, FILTERS, moments, REF."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from sessiondb.cli import paths
from sessiondb.cli.opening import current
from sessiondb.errors import abridged

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

F = TypeVar("F", bound=Callable[..., Any])

as_json = click.option("--json", "as_json", is_flag=True, help="One JSON document.")
_as_jsonl = click.option(
    "--jsonl", "as_jsonl", is_flag=True, help="One JSON object a line."
)
_limit = click.option(
    "--limit", type=click.IntRange(1, 10_000), metavar="N", help="At most N."
)
_cursor = click.option(
    "--cursor", metavar="C", help="Continue after the page that named C."
)
PATH = paths.PATH
_UNITS = {"h": "hours", "d": "days", "w": "weeks"}


def as_json_or_jsonl(function: F) -> F:
    """Add ``--json`` and ``--jsonl``, which exclude each other."""

    @wraps(function)
    def checked(*args: Any, as_json: bool, as_jsonl: bool, **rest: Any) -> Any:
        if as_json and as_jsonl:
            raise click.UsageError("--json and --jsonl exclude each other")
        return function(*args, as_json=as_json, as_jsonl=as_jsonl, **rest)

    return as_json(_as_jsonl(checked))  # type: ignore[return-value]


class Ref(click.ParamType):  # type: ignore[type-arg]
    """A name of a session, as typed; what it names, the store finds out."""

    name = "REF"

    def shell_complete(
        self,
        ctx: click.Context,
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        """Return names of sessions that begin so."""
        from sessiondb.cli.completing import sessions

        return sessions(ctx, incomplete)


#: The type of every argument that names a session.
REF = Ref()


def one_of(
    names: Callable[[], list[str]],
) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Return what completes one of *names*."""

    def complete(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
        return [name for name in names() if name.startswith(incomplete)]

    return complete


def either(names: Iterable[str]) -> str:
    """Return names as a list to choose from: ``a, b or c``."""
    *most, last = names
    return f"{', '.join(most)} or {last}" if most else last


def paged(function: F) -> F:
    """Add ``--limit`` and ``--cursor``."""
    return _limit(_cursor(function))


def further(cursor: str) -> str:
    """Return the command that shows what comes after a page."""
    return current().again("--cursor", cursor, without="--cursor")


class Moment(click.ParamType):  # type: ignore[type-arg]
    """A point in time, as Unix ms: ``today``, ``yesterday``, ``7d``, a date, a month, ISO time.

    A day or month is meant completely: as the *end* of a span it is the midnight after it.
    """

    name = "T"

    def __init__(self, *, end: bool = False) -> None:
        self._end = end

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Return the Unix ms that *value* means in the local time zone; usage error if none."""
        try:
            return int(self._read(str(value).strip().lower()).timestamp() * 1000)
        except (ValueError, OverflowError, OSError):
            self.fail(
                f"{abridged(value)} is not a time; try today, 7d, 12h or 2026-11-01",
                param,
                ctx,
            )

    def _read(self, text: str) -> datetime:
        now = datetime.now().astimezone()
        if back := re.fullmatch(r"(\d{1,6})([hdw])", text):
            return now - timedelta(**{_UNITS[back[2]]: int(back[1])})
        names = {"today": 0, "yesterday": 1}
        if text in names:
            text = (now.date() - timedelta(days=names[text])).isoformat()
        if re.fullmatch(r"\d{4}-\d\d-\d\d", text):
            # Naive, so that midnight is found also on the day the clocks change.
            return datetime.fromisoformat(text) + timedelta(days=int(self._end))
        if re.fullmatch(r"\d{4}-\d\d", text):
            # 31 days after the first of a month is one of the first days of the next.
            first = datetime.fromisoformat(f"{text}-01")
            return (first + timedelta(days=31 * self._end)).replace(day=1)
        return datetime.fromisoformat(text.upper())


@dataclass(frozen=True, slots=True)
class Where:
    """The FILTERS of a command line. Times are Unix ms; None does not narrow."""

    everywhere: bool = False
    project: str | None = None
    source: str | None = None
    agent: str | None = None
    since: int | None = None
    until: int | None = None
    title: str | None = None
    archived: bool = False
    subagents: bool = False

    @property
    def filtered(self) -> bool:
        """True when something else than the project was chosen."""
        chosen = (self.source, self.agent, self.since, self.until, self.title)
        return any(value is not None for value in chosen)

    @property
    def narrows(self) -> bool:
        """True when something beyond the default was chosen, so that a removal is meant."""
        kept = {**asdict(self), "archived": False, "subagents": False}
        return Where(**kept) != Where()

    def filters(self, *without: str) -> dict[str, Any]:
        """Return the keywords of `Store.sessions` and friends, but those named."""
        from sessiondb.repository.sessions import ALL, HERE

        found = asdict(self)
        scope = self.project if self.project is not None else HERE
        found["project"] = ALL if found.pop("everywhere") else scope
        return {name: value for name, value in found.items() if name not in without}


_FILTERS = {
    "everywhere": click.option(
        "-a", "--all", "everywhere", is_flag=True, help="Every project."
    ),
    "project": click.option(
        "--project", type=PATH, metavar="DIR", help="The project of DIR."
    ),
    "source": click.option("--source", metavar="S", help="Sessions of this program."),
    "agent": click.option("--agent", metavar="A", help="Sessions of this agent."),
    "since": click.option(
        "--since",
        type=Moment(),
        help="Not before T: today, yesterday, 7d, 12h, 2026-11[-01].",
    ),
    "until": click.option(
        "--until",
        type=Moment(end=True),
        help="Not after T; a day or month is included.",
    ),
    "title": click.option("--title", metavar="TEXT", help="With TEXT in the title."),
    "archived": click.option("--archived", is_flag=True, help="Archived ones too."),
    "subagents": click.option("--subagents", is_flag=True, help="Subagents too."),
}


def filters(*names: str) -> Callable[[F], F]:
    """Add FILTERS (all, or those named); the command gets them as ``where``, a `Where`."""
    chosen = names or tuple(_FILTERS)

    def decorate(function: F) -> F:
        @wraps(function)
        def collected(*args: Any, **given: Any) -> Any:
            where = Where(**{name: given.pop(name) for name in chosen})
            if where.everywhere and where.project is not None:
                raise click.UsageError("-a and --project exclude each other")
            return function(*args, where=where, **given)

        decorated: Any = collected
        for name in reversed(chosen):
            decorated = _FILTERS[name](decorated)
        return decorated  # type: ignore[no-any-return]

    return decorate
