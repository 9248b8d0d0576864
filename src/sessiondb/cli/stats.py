"""``stats``: cost and tokens, grouped; unknown cost is never 0."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
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

if TYPE_CHECKING:
    from sessiondb.repository.usage import Prices
    from sessiondb.store import Store

_NOTHING = UsageRow({}, 0, 0, None, None, Tokens(), 0)


@click.command("stats")
@shared.filters()
@click.option(
    "--by", default="model", show_default=True, metavar="K[,K]",
    help="day, week, month, model, source, project, tool, session, agent.",
)  # fmt: skip
@click.option(
    "--prices", type=shared.PATH, metavar="FILE",
    help='USD per million tokens, as [prices."model"] in config.toml.',
)  # fmt: skip
@shared.as_json
@click.pass_obj
def stats_command(
    options: Options, *, where: shared.Where, by: str, prices: str | None, as_json: bool
) -> None:
    """Cost and tokens of this project (-a: everywhere).

    Archived sessions and subagents are counted with --archived and --subagents;
    stderr says what is left out. Messages that a fork copied are counted once. A cost
    that no source stated is estimated from --prices or config.toml, and shown
    apart. In a pipe each line is, tab-separated: the keys, sessions, messages,
    cost, estimated cost, tokens (input, output, reasoning, cache read, cache
    write), tokens without a price.
    """
    keys = _keys(by)
    chosen = where.filters()
    rates = _prices(prices)
    with open_store(options) as store:
        rows = store.usage(by=keys, prices=rates, **chosen)
        total = next(iter(store.usage(by=(), prices=rates, **chosen)), _NOTHING)
        unknown = [] if rows else list(unknown_names(store, where))
        left = list(_left_out(store, where, total, rates))
    if as_json:
        output.write_json(
            {"rows": list(map(_row_json, rows)), "total": _row_json(total)}
        )
    elif output.screen().terminal and rows:
        output.page(
            output.table(*_table(keys, rows, total), right=_RIGHT, spare=_SPARE)
        )
    else:
        for row in rows:
            output.write_tsv(*row.key.values(), *_numbers(row))
    if unknown:
        say(" · ".join(unknown))
    elif not rows:
        say(
            "nothing to count"
            + ("" if where.everywhere else " here · -a for every project")
        )
    for line in left:
        say(line)


def _keys(by: str) -> list[str]:
    """Return the keys of ``--by``; raises `click.BadParameter` for one that is not known."""
    from sessiondb.repository.usage import DIMENSIONS

    keys = [key.strip() for key in by.split(",")]
    for key in keys:
        if key not in DIMENSIONS or keys.count(key) > 1:
            why = "is there twice" if key in DIMENSIONS else "is not a key"
            known = f"{', '.join(DIMENSIONS[:-1])} and {DIMENSIONS[-1]}"
            raise click.UsageError(f"--by: {abridged(key)} {why}; the keys are {known}")
    return keys


def _left_out(
    store: Store, where: shared.Where, total: UsageRow, rates: Prices
) -> Iterator[str]:
    """Yield a line for each of ``--archived`` and ``--subagents`` that would add something."""
    for name in ("archived", "subagents"):
        wider = replace(where, **{name: True})  # type: ignore[arg-type]
        if wider == where:
            continue
        every = next(
            iter(store.usage(by=(), prices=rates, **wider.filters())), _NOTHING
        )
        if sessions := every.sessions - total.sessions:
            cost = None if every.cost is None else every.cost - (total.cost or 0.0)
            yield f"left out: {count(sessions, 'session')}, {money(cost)} (--{name})"


def _prices(file: str | None) -> Prices:
    """Return the prices in *file*, or of config.toml; usage error without *file*."""
    from sessiondb.location import load_config

    path = None if file is None else Path(file)
    if path is not None and not os.path.exists(path):
        raise click.UsageError(f"--prices: there is no file {abridged(file)}")
    return {
        model: {name: rate for name, rate in asdict(price).items() if rate is not None}
        for model, price in load_config(path).prices.items()
    }


def _row_json(row: UsageRow) -> dict[str, Any]:
    fields = asdict(row)
    return {**fields.pop("key"), **fields}


def _numbers(row: UsageRow) -> list[Any]:
    counts = row.tokens.columns()
    return [
        row.sessions, row.messages, row.cost, row.cost_estimated, *counts, row.tokens_unpriced
    ]  # fmt: skip


_HEAD = ["SESSIONS", "ANSWERS", "COST", "ESTIMATE", "INPUT", "OUTPUT", "CACHED"]
_RIGHT = " ".join(_HEAD)
_SPARE = "CACHED ANSWERS SESSIONS ESTIMATE OUTPUT INPUT"


def _table(
    keys: Sequence[str], rows: Sequence[UsageRow], total: UsageRow
) -> tuple[list[str], list[list[str]]]:
    lines = [
        [*(_key(name, row.key[name]) for name in keys), *_cells(row)] for row in rows
    ]
    lines.append(["total", *[""] * (len(keys) - 1), *_cells(total)])
    return [*(name.upper() for name in keys), *_HEAD], lines


def _key(name: str, value: Any) -> str:
    if value is None:
        return "–"
    return short_id(value) if name == "session" else str(value)


def _cells(row: UsageRow) -> list[str]:
    tokens = (row.tokens.input, row.tokens.output, row.tokens.cache_read)
    return [
        f"{row.sessions:,}",
        f"{row.messages:,}",
        money(row.cost),
        money(row.cost_estimated),
        *("–" if number is None else f"{number:,}" for number in tokens),
    ]
