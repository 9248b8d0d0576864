"""Costs as commands show them: stated ones, and apart from them estimated ones."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sessiondb.cli.text import money
from sessiondb.dataclass import asdict, fields
from sessiondb.errors import InvalidInputError, abridged
from sessiondb.model.nones import without_none

if TYPE_CHECKING:
    from sessiondb.model import Session, UsageRow
    from sessiondb.prices import Prices
    from sessiondb.store import Store

#: Before an amount that is estimated.
ESTIMATED = "~"
#: The usage of sessions by id. Sessions that have neither costs nor tokens are not
#: in it.
Usages = Mapping[str, "UsageRow"]


def read_prices(file: str | None) -> Prices:
    """Return the prices in *file*, else in config.toml, else those that ship.

    Usage error for a file that does not exist, `InvalidInputError` for a wrong one.
    """
    from sessiondb.location import load_config
    from sessiondb.location.config import Price
    from sessiondb.prices import known_prices, layered

    paths = [None] if file is None else [Path(file), None]
    if file is not None and not os.path.exists(file):
        raise click.UsageError(f"--prices: no file {abridged(file)}")

    layers: list[Prices] = []
    for path in paths:
        try:
            prices = load_config(path).prices
        except InvalidInputError as error:
            # Another file of settings would not be a remedy.
            if path is not None:
                error.hint = (
                    'correct it there: [prices."MODEL"] has any of '
                    f"{', '.join(f.name for f in fields(Price))}"
                )
            raise
        layers.append({name: without_none(asdict(prices[name])) for name in prices})
    return layered(*layers, known_prices().prices)


def usages_of(store: Store, sessions: Sequence[Session]) -> Usages:
    """Return what each of *sessions* cost, without its subagents; see `Usages`."""
    counted = [session for session in sessions if any(session.tokens.columns())]
    if not counted:
        return {}
    rows = store.usage(by="session", sessions=counted, prices=read_prices(None))
    return {row.key["session"]: row for row in rows}


def usage_until(
    store: Store, session: Session, seqs: Collection[int]
) -> UsageRow | None:
    """Return what a session cost whose sums are those of its messages at *seqs*.

    None if they have no counts.
    """
    from sessiondb.model import UsageRow

    key = {"session": session.id}
    records = store.usage_records(key, prices=read_prices(None))
    counted = [
        record for record in records if record.seq in seqs and record.counted_in is None
    ]
    if not counted:
        return None
    estimates = [r.cost_estimated for r in counted if r.cost_estimated is not None]
    return UsageRow(
        key=key,
        sessions=1,
        messages=len(counted),
        cost=session.cost,
        cost_estimated=sum(estimates) if estimates else None,
        tokens=session.tokens,
        tokens_unpriced=sum(record.tokens_unpriced for record in counted),
    )


def cost_cell(session: Session, usages: Usages) -> str:
    """Return what a session cost, for a narrow column: ``≥$1.15+~$0.14``."""
    usage = usages.get(session.id)
    estimated = None if usage is None else usage.cost_estimated
    amounts = [] if session.cost is None else [money(session.cost)]
    if estimated is not None:
        amounts.append(f"{ESTIMATED}{money(estimated)}")
    if not amounts:
        return money(None)
    bound = "≥" if usage is not None and usage.tokens_unpriced else ""
    return bound + "+".join(amounts)


def cost_json(session: Session, usages: Usages) -> dict[str, Any]:
    """Return the fields of a session besides its ``cost``: None is unknown."""
    usage = usages.get(session.id)
    if usage is None:
        return {"cost_estimated": None, "tokens_unpriced": 0}
    return {
        "cost_estimated": usage.cost_estimated,
        "tokens_unpriced": usage.tokens_unpriced,
    }
