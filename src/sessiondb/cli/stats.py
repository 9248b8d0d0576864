"""``stats``: cost and tokens, grouped; unknown cost is never 0."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from sessiondb.cli import options as shared
from sessiondb.cli import output
from sessiondb.cli.costs import read_prices
from sessiondb.cli.emptiness import unknown_names
from sessiondb.cli.explaining import write_explanation
from sessiondb.cli.opening import Options, open_store, rows_of, say
from sessiondb.cli.text import cost_words, count, money, rough, rounded, short_id
from sessiondb.cli.usage import exclusive
from sessiondb.dataclass import asdict, dataclass, replace
from sessiondb.errors import abridged
from sessiondb.model import Tokens, UsageRow

if TYPE_CHECKING:
    from sessiondb.prices import Prices
    from sessiondb.store import Store

#: Orders of rows: by their key, or the largest first.
SORTS = ("key", "cost", "tokens", "answers")
#: Keys whose rows are read in their order, and as bars.
TIMES = ("day", "week", "month")
BAR_WIDTH = 12
_PARTS_OF_A_BLOCK = ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")
_NOTHING = UsageRow({}, 0, 0, None, None, Tokens(), 0)


@click.command("stats")
@shared.filters
@click.option(
    "--by",
    default="model",
    show_default=True,
    metavar="K[,K]",
    help="day, week, month, model, source, project, tool, session, agent.",
)
@click.option(
    "--sort",
    type=click.Choice(SORTS),
    help="Rows in this order; default: time, else cost.",
)
@click.option("--limit", type=click.IntRange(1), metavar="N", help="The first N rows.")
@click.option("--explain", metavar="ROW", help="The messages behind a row.")
@click.option(
    "--prices",
    type=shared.PATH,
    metavar="FILE",
    help='USD per million tokens, as [prices."model"] in config.toml.',
)
@shared.as_json
@click.pass_obj
def stats_command(
    options: Options,
    *,
    filters: shared.FilterOptions,
    by: str,
    sort: str | None,
    limit: int | None,
    explain: str | None,
    prices: str | None,
    as_json: bool,
) -> None:
    """Cost and tokens of this project (-a: everywhere).

    --explain ROW lists the messages behind a row, with the rates of what is estimated,
    and the copies in forks, which are counted elsewhere. ROW is its key as stats
    prints it, "total", or for --by session any REF; several keys have commas.

    Archived sessions and subagents are counted with --archived and --subagents;
    stderr reports what is left out. Messages that a fork copied are counted once. A
    cost that no source stated is estimated, and shown separately: from --prices, else
    from config.toml, else from the list prices that ship. In a pipe each line is,
    tab-separated: the keys, sessions, answers, cost, estimated cost, tokens (input,
    output, reasoning, cache read, cache write), tokens without a price.
    """
    keys = _group_keys(by)
    rates = read_prices(prices)
    if explain is not None:
        exclusive({"--explain": explain, "--sort": sort})
        write_explanation(
            options, filters, keys, explain, rates, limit=limit, as_json=as_json
        )
        return
    with open_store(options) as store:
        rows = store.usage(by=keys, prices=rates, **filters.keywords())
        total = _total_row(store, filters, rates)
        unknown = "" if rows else unknown_names(store, filters)
        left_out = list(_left_out(store, filters, total, rates))
        titles = _titles(store) if "session" in keys else {}

    shown = _sorted_rows(rows, sort or ("key" if keys[0] in TIMES else "cost"))
    usage = _Usage(keys, total, titles)
    listing = output.Listing(
        name="rows",
        items=shown[:limit],
        as_json=usage.row_json,
        values=_values_of_row,
        table=usage.table,
        more={"total": usage.row_json(total)},
    )
    listing.write(as_json=as_json)

    if not rows:
        say(unknown or f"nothing to count{filters.wider}")
    if limit is not None and limit < len(rows):
        say(f"{limit:,} of {count(len(rows), 'row')}")
    for line in left_out:
        say(line)


def _sorted_rows(rows: list[UsageRow], sort: str) -> list[UsageRow]:
    """Return rows in an order of `SORTS`; rows that are equal stay in that of keys."""

    def amount(row: UsageRow) -> float:
        if sort == "answers":
            return row.messages
        if sort == "tokens":
            return _all_tokens(row)
        return (row.cost or 0.0) + (row.cost_estimated or 0.0)

    return rows if sort == "key" else sorted(rows, key=amount, reverse=True)


def _all_tokens(row: UsageRow) -> int:
    return sum(number or 0 for number in row.tokens.columns())


def _titles(store: Store) -> dict[str, str]:
    return dict(rows_of(store, "SELECT id, title FROM session"))


def _group_keys(by: str) -> list[str]:
    """Return the keys of ``--by``; usage error for an unknown or repeated one."""
    from sessiondb.repository.usage import DIMENSIONS

    keys = list(map(str.strip, by.split(",")))
    key_names = f"{', '.join(DIMENSIONS[:-1])} and {DIMENSIONS[-1]}"
    # Each key may be there once.
    for key in Counter(keys) - Counter(DIMENSIONS):
        reason = "is given twice" if key in DIMENSIONS else "is not a key"
        raise click.UsageError(
            f"--by: {abridged(key)} {reason}; the keys are {key_names}"
        )
    return keys


def _total_row(store: Store, filters: shared.FilterOptions, rates: Prices) -> UsageRow:
    rows = store.usage(by=(), prices=rates, **filters.keywords())
    return rows[0] if rows else _NOTHING


def _left_out(
    store: Store, filters: shared.FilterOptions, total: UsageRow, rates: Prices
) -> Iterator[str]:
    """Yield a line for each of ``--archived`` and ``--subagents`` that adds more."""
    wider = {
        "archived": replace(filters, archived=True),
        "subagents": replace(filters, subagents=True),
    }
    for name, more in wider.items():
        if more == filters:
            continue
        # A second total instead of a count: a fork's copies are counted once.
        every = _total_row(store, more, rates)
        if sessions := every.sessions - total.sessions:
            cost = cost_words(
                _less(every.cost, total.cost),
                _less(every.cost_estimated, total.cost_estimated),
                every.tokens_unpriced - total.tokens_unpriced,
            )
            words = cost or "cost unknown"
            yield f"left out: {count(sessions, 'session')}, {words} (--{name})"


def _less(more: float | None, cost: float | None) -> float | None:
    """Return what *more* has besides *cost*; None if it is nothing."""
    if more is None or more == cost:
        return None
    return more - (cost or 0.0)


def _values_of_row(row: UsageRow) -> list[Any]:
    return [
        *row.key.values(),
        row.sessions,
        row.messages,
        rounded(row.cost),
        rounded(row.cost_estimated),
        *row.tokens.columns(),
        row.tokens_unpriced,
    ]


@dataclass(frozen=True, slots=True)
class _Usage:
    """Rows of usage as they are shown."""

    keys: Sequence[str]
    total: UsageRow
    #: Of the sessions, by id; empty unless they are a key.
    titles: Mapping[str, str]

    def row_json(self, row: UsageRow) -> dict[str, Any]:
        """Return a row as JSON values: its keys, then its sums."""
        fields = asdict(row)
        key = fields.pop("key")
        if "session" in key:
            key["title"] = self.titles.get(key["session"], "")
        return {**key, **fields}

    def table(self, rows: Sequence[UsageRow]) -> Iterator[str]:
        """Yield the lines of a table, with the total and what it consists of."""
        head = [*(name.upper() for name in self.keys), *_HEAD]
        lines = [
            [*(self._key_text(name, row) for name in self.keys), *_row_cells(row)]
            for row in rows
        ]
        blank = [""] * (len(self.keys) - 1)
        lines.append(["total", *blank, *_row_cells(self.total)])
        if self.keys[0] in TIMES and len(self.keys) == 1 and len(rows) > 1:
            head.append(" ")
            for line, bar in zip(lines, [*_bars(rows), ""], strict=True):
                line.append(bar)

        yield from output.table(head, lines, right=" ".join(_HEAD), spare=_SPARE)
        yield from _total_lines(self.total)

    def _key_text(self, name: str, row: UsageRow) -> str:
        value = row.key[name]
        if value is None:
            return "–"
        if name == "session":
            return f"{short_id(value)} {self.titles.get(value, '')}".rstrip()
        return str(value)


_HEAD = ["SESS", "ANSW", "COST", "EST", "IN", "OUT", "CACHED"]
#: The columns that a screen of less than 80 columns leaves out, the first one first.
_SPARE = "CACHED ANSW SESS OUT IN EST"


def _row_cells(row: UsageRow) -> list[str]:
    tokens = (row.tokens.input, row.tokens.output, row.tokens.cache_read)
    return [
        rough(row.sessions),
        rough(row.messages),
        money(row.cost),
        money(row.cost_estimated),
        *("–" if number is None else rough(number) for number in tokens),
    ]


def _bars(rows: Sequence[UsageRow]) -> list[str]:
    """Return a bar for each row: its share of the largest cost, or of the tokens."""
    amounts = [(row.cost or 0.0) + (row.cost_estimated or 0.0) for row in rows]
    if not any(amounts):
        amounts = [float(_all_tokens(row)) for row in rows]
    most = max(amounts) or 1.0
    eighths = [round(amount / most * BAR_WIDTH * 8) for amount in amounts]
    return ["█" * (number // 8) + _PARTS_OF_A_BLOCK[number % 8] for number in eighths]


def _total_lines(total: UsageRow) -> Iterator[str]:
    """Yield what the total consists of; nothing if all of it was stated."""
    from sessiondb.prices import known_prices

    estimated, unpriced = total.cost_estimated, total.tokens_unpriced
    if estimated is None:
        if unpriced:
            yield cost_words(total.cost, None, unpriced)
        return

    # Added up as they are shown.
    whole = round(total.cost or 0.0, 2) + round(estimated, 2)
    yield cost_words(whole, None, unpriced)
    stated = "" if total.cost is None else f"{money(total.cost)} stated + "
    prices = f"list prices of {known_prices().date}, or yours"
    yield f"{stated}{money(estimated)} estimated ({prices})"
