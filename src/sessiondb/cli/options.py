"""Options that several commands share: forms of output, FILTERS, moments, REF."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from sessiondb.cli import paths
from sessiondb.cli.moments import Moment
from sessiondb.cli.opening import current, find_all, here, place_named, say
from sessiondb.cli.text import clock
from sessiondb.cli.usage import exclusive
from sessiondb.dataclass import dataclass, replace
from sessiondb.moments import FORMS

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from sessiondb.model import Message, Page, Session
    from sessiondb.store import Store

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
Option = Callable[[Any], Any]

PATH = paths.PATH
as_json = click.option("--json", "as_json", is_flag=True, help="One JSON document.")
_as_jsonl = click.option(
    "--jsonl", "as_jsonl", is_flag=True, help="One JSON object per line."
)
#: The levels of detail of a conversation, on a terminal and as a page.
DETAIL_HELP = (
    "brief has prompts, last answers and a line for each call, normal also other "
    "answers, changes and why a call failed, full everything that is recorded."
)
_cursor = click.option(
    "--cursor",
    metavar="C",
    help="The page of this number, or after the page that printed C.",
)


def gathered(
    name: str, make: Callable[..., Any], options: Mapping[str, Option]
) -> Callable[[F], F]:
    """Add *options*; the command gets ``make(**values)`` of them as *name*."""

    def decorate(function: F) -> F:
        @wraps(function)
        def collected(*args: Any, **given: Any) -> Any:
            values = {option: given.pop(option) for option in options}
            return function(*args, **{name: make(**values)}, **given)

        command: Any = collected
        # The help lists them in their order.
        for option in reversed(list(options.values())):
            command = option(command)
        return command  # type: ignore[no-any-return]

    return decorate


def as_json_or_jsonl(function: F) -> F:
    """Add ``--json`` and ``--jsonl``, which exclude each other."""

    @wraps(function)
    def checked(*args: Any, as_json: bool, as_jsonl: bool, **others: Any) -> Any:
        exclusive({"--json": as_json, "--jsonl": as_jsonl})
        return function(*args, as_json=as_json, as_jsonl=as_jsonl, **others)

    return as_json(_as_jsonl(checked))  # type: ignore[return-value]


class Ref(click.ParamType):  # type: ignore[type-arg]
    """The name of a session, as typed; the store resolves it."""

    name = "REF"

    def shell_complete(
        self,
        ctx: click.Context,
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        """Return names of sessions that begin with *incomplete*."""
        from sessiondb.cli.completing import sessions

        return sessions(ctx, incomplete)


class Address(Ref):
    """The name of a session, or the address of a message in it, as typed."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return names of sessions, or after a ``#`` labels and prompts of one."""
        from sessiondb.cli.completing import places

        if "#" in incomplete:
            return places(ctx, incomplete)
        return super().shell_complete(ctx, param, incomplete)


#: The types of arguments that name a session, and of those that take ``REF#M`` as well.
REF = Ref()
ADDRESS = Address()


def format_option(
    *names: str, of: Callable[[], list[str]], about: str = "", **options: Any
) -> Option:
    """Return an option for one of the formats *of*, which its help and shells list."""

    def complete(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
        return [name for name in of() if name.startswith(incomplete)]

    *most, last = of()
    return click.option(
        *names,
        metavar="F",
        help=f"{about}{', '.join(most)} or {last}.",
        shell_complete=complete,
        **options,
    )


def paged(limit: int) -> Callable[[F], F]:
    """Add ``--limit``, by default *limit*, and ``--cursor``."""
    most = click.IntRange(1, 10_000)
    option = click.option(
        "--limit", type=most, default=limit, metavar="N", help="Show at most N."
    )
    return lambda function: option(_cursor(function))


def read_page(read: Callable[..., Page[T]], cursor: str | None) -> Page[T]:
    """Return the page that a ``--cursor`` names; *read* takes ``cursor=``.

    A number is that of a page, from 1 on. A page after the last one is empty.
    """
    number = _page_number(cursor)
    if number is None:
        return read(cursor=cursor)

    page = read(cursor=None)
    for _ in range(number - 1):
        if page.next_cursor is None:
            return replace(page, items=(), sizes=())
        page = read(cursor=page.next_cursor)
    return page


def _page_number(cursor: str | None) -> int | None:
    """Return the page that is named by its number, None for any other cursor."""
    # Ours have letters, and so many pages are no list that is read page by page.
    is_number = cursor is not None and re.fullmatch("[1-9][0-9]{0,3}", cursor)
    return int(is_number[0]) if is_number else None


def further(page: Page[Any], cursor: str | None, *, exact: bool = False) -> str:
    """Return the line that names the page after *page*, that of *cursor*.

    It is short, the number of the page, unless *cursor* was not, or *exact*. After a
    page that was read without an index it says how far back that came.
    """
    number = 1 if cursor is None else _page_number(cursor)
    following = str(page.next_cursor)
    # A number would read those texts again.
    if number is not None and not exact and page.searched_to is None:
        following = str(number + 1)
    more = f"more: {current().again('--cursor', following, without='--cursor')}"
    if page.searched_to is None:
        return more
    result = "" if page.items else "nothing found; "
    return f"{result}searched back to {clock(page.searched_to)} · {more}"


def say_further(
    page: Page[Any], cursor: str | None, *, as_json: bool, as_jsonl: bool = False
) -> None:
    """Name the next page on stderr if there is one; JSON has its cursor."""
    if page.next_cursor is not None and not as_json:
        say(further(page, cursor, exact=as_jsonl))


@dataclass(frozen=True, slots=True)
class FilterOptions:
    """The FILTERS of a command line. Times are Unix ms; None does not narrow.

    Raises `click.UsageError` for both *everywhere* and a *project*.
    """

    everywhere: bool = False
    project: str | None = None
    source: str | None = None
    agent: str | None = None
    since: int | None = None
    until: int | None = None
    title: str | None = None
    archived: bool = False
    subagents: bool = False

    def __post_init__(self) -> None:
        exclusive({"-a": self.everywhere, "--project": self.project})

    @property
    def filtered(self) -> bool:
        """True if something other than the project was chosen."""
        chosen = (self.source, self.agent, self.since, self.until, self.title)
        return any(value is not None for value in chosen)

    @property
    def narrows(self) -> bool:
        """True if something beyond the default was chosen, as a removal requires."""
        return replace(self, archived=False, subagents=False) != FilterOptions()

    @property
    def place(self) -> str:
        """Where these filters look, for a message."""
        return "in any project" if self.everywhere else f"in {self.project or here()}"

    @property
    def wider(self) -> str:
        """The wider search, as the end of a message; empty if there is none."""
        return "" if self.everywhere else " here · -a for every project"

    def keywords(self) -> dict[str, Any]:
        """Return the keywords of `Store.sessions` and of other reads with filters."""
        from sessiondb.repository.sessions import ALL, HERE

        values: dict[str, Any] = {name: getattr(self, name) for name in self.__slots__}
        scope = self.project if self.project is not None else HERE
        values["project"] = ALL if values.pop("everywhere") else scope
        return values


_FILTERS: dict[str, Option] = {
    "everywhere": click.option(
        "-a", "--all", "everywhere", is_flag=True, help="Sessions of every project."
    ),
    "project": click.option(
        "--project", type=PATH, metavar="DIR", help="Sessions of the project at DIR."
    ),
    "source": click.option("--source", metavar="S", help="Sessions of this program."),
    "agent": click.option("--agent", metavar="A", help="Sessions of this agent."),
    "since": click.option(
        "--since",
        type=Moment(),
        help=f"Not before T: {FORMS}.",
    ),
    "until": click.option(
        "--until",
        type=Moment(end=True),
        help="Not after T; a day, week, month or year is included.",
    ),
    "title": click.option(
        "--title", metavar="TEXT", help="Sessions with TEXT in the title."
    ),
    "archived": click.option(
        "--archived", is_flag=True, help="Include archived sessions."
    ),
    "subagents": click.option("--subagents", is_flag=True, help="Include subagents."),
}
#: Adds FILTERS; the command gets them as ``filters``.
filters = gathered("filters", FilterOptions, _FILTERS)


@dataclass(frozen=True, slots=True)
class Selection:
    """The sessions that a command is about: those named, or all that FILTERS choose."""

    refs: tuple[str, ...]
    filters: FilterOptions
    #: Whether filters choose sessions without messages, too.
    with_empty: bool = False

    def check(self, verb: str) -> None:
        """Raise `click.UsageError` for both, and for none: all is not a default."""
        if self.refs and self.filters != FilterOptions():
            raise click.UsageError("give sessions or filters, not both")
        if not self.refs and not self.filters.narrows:
            raise click.UsageError(
                f"name the sessions to {verb}, or filters that choose them"
            )

    def places(self, store: Store) -> Iterator[tuple[Session, Message | None]]:
        """Yield the sessions, each with the message that an address names in it."""
        if self.refs:
            for ref in self.refs:
                yield place_named(store, ref)
        else:
            for session in self.sessions(store):
                yield session, None

    def sessions(self, store: Store) -> Iterator[Session]:
        """Yield the sessions; those that filters choose newest first."""
        from sessiondb.maintenance import every

        if self.refs:
            yield from find_all(store, self.refs)
        else:
            yield from every(store, **self.filters.keywords(), empty=self.with_empty)
