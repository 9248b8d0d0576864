"""``stats``: cost and tokens, grouped; unknown cost is never 0."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sessiondb.cli import options as shared
from sessiondb.cli import output
from sessiondb.cli.emptiness import unknown_names
from sessiondb.cli.opening import Options, open_store, say
from sessiondb.cli.text import count, money, short_id
from sessiondb.errors import abridged
from sessiondb.model import Tokens, UsageRow
from sessiondb.model.nones import without_none

if TYPE_CHECKING:
    from sessiondb.repository.usage import Prices
    from sessiondb.store import Store

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
    prices: str | None,
    as_json: bool,
) -> None:
    """Cost and tokens of this project (-a: everywhere).

    Archived sessions and subagents are counted with --archived and --subagents;
    stderr reports what is left out. Messages that a fork copied are counted once. A
    cost that no source stated is estimated from --prices or config.toml, and shown
    separately. In a pipe each line is, tab-separated: the keys, sessions, messages,
    cost, estimated cost, tokens (input, output, reasoning, cache read, cache
    write), tokens without a price.
    """
    keys = _group_keys(by)
    rates = read_prices(prices)
    with open_store(options) as store:
        rows = store.usage(by=keys, prices=rates, **filters.keywords())
        total = _total_row(store, filters, rates)
        unknown = "" if rows else unknown_names(store, filters)
        left_out = list(_left_out(store, filters, total, rates))

    listing = output.Listing(
        name="rows",
        items=rows,
        as_json=_row_json,
        values=_values_of_row,
        table=partial(_usage_table, keys, total),
        more={"total": _row_json(total)},
    )
    listing.write(as_json=as_json)

    if not rows:
        say(unknown or f"nothing to count{filters.wider}")
    for line in left_out:
        say(line)


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
            cost = None if every.cost is None else every.cost - (total.cost or 0.0)
            yield f"left out: {count(sessions, 'session')}, {money(cost)} (--{name})"


def read_prices(file: str | None) -> Prices:
    """Return the prices in *file* (default: config.toml); usage error without it."""
    from sessiondb.location import load_config

    path = None if file is None else Path(file)
    if path is not None and not os.path.exists(path):
        raise click.UsageError(f"--prices: no file {abridged(file)}")
    return {
        model: without_none(asdict(price))
        for model, price in load_config(path).prices.items()
    }


def _row_json(row: UsageRow) -> dict[str, Any]:
    fields = asdict(row)
    return {**fields.pop("key"), **fields}


def _values_of_row(row: UsageRow) -> list[Any]:
    return [
        *row.key.values(),
        row.sessions,
        row.messages,
        row.cost,
        row.cost_estimated,
        *row.tokens.columns(),
        row.tokens_unpriced,
    ]


_HEAD = ["SESSIONS", "ANSWERS", "COST", "ESTIMATE", "INPUT", "OUTPUT", "CACHED"]
#: The columns that a narrow screen leaves out, the first one first.
_SPARE = "CACHED ANSWERS SESSIONS ESTIMATE OUTPUT INPUT"


def _usage_table(
    keys: Sequence[str], total: UsageRow, rows: Sequence[UsageRow]
) -> Iterator[str]:
    head = [*(name.upper() for name in keys), *_HEAD]
    lines = [
        [*(_key_text(name, row.key[name]) for name in keys), *_row_cells(row)]
        for row in rows
    ]
    lines.append(["total", *[""] * (len(keys) - 1), *_row_cells(total)])
    return output.table(head, lines, right=" ".join(_HEAD), spare=_SPARE)


def _key_text(name: str, value: Any) -> str:
    if value is None:
        return "–"
    return short_id(value) if name == "session" else str(value)


def _row_cells(row: UsageRow) -> list[str]:
    tokens = (row.tokens.input, row.tokens.output, row.tokens.cache_read)
    return [
        f"{row.sessions:,}",
        f"{row.messages:,}",
        money(row.cost),
        money(row.cost_estimated),
        *("–" if number is None else f"{number:,}" for number in tokens),
    ]
