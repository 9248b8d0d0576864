"""``stats --explain``: the messages behind a row, and how each of them was counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from sessiondb.cli import output
from sessiondb.cli.opening import Options, find_all, open_store, say
from sessiondb.cli.text import (
    cost_words,
    count,
    iso,
    money,
    rough,
    rounded,
    short_id,
)
from sessiondb.dataclass import asdict
from sessiondb.words import moment

if TYPE_CHECKING:
    from sessiondb.cli.options import FilterOptions
    from sessiondb.model import UsageRecord
    from sessiondb.prices import Prices
    from sessiondb.store import Store

#: The row of all messages.
TOTAL = "total"
_MINUTE = "%Y-%m-%d %H:%M"
#: The text for a key that is not known.
UNKNOWN = ("", "–")


def write_explanation(
    options: Options,
    filters: FilterOptions,
    keys: Sequence[str],
    row: str,
    rates: Prices,
    *,
    limit: int | None,
    as_json: bool,
) -> None:
    """Write the messages behind *row*, one of those that ``stats --by keys`` prints."""
    with open_store(options) as store:
        key = _key_of_row(store, keys, row)
        records = store.usage_records(key, prices=rates, **filters.keywords())

    counted = [record for record in records if record.counted_in is None]
    listing = output.Listing(
        name="messages",
        items=records[:limit],
        as_json=asdict,
        values=_values_of_record,
        table=_table,
        more={"key": key, "total": _sums_json(counted)},
    )
    listing.write(as_json=as_json)
    if not records:
        say(f"no messages of {row}: the rows are those of stats with the same options")
    elif limit is not None and limit < len(records):
        say(f"{limit:,} of {count(len(records), 'message')}")
    if not as_json:
        for line in _summary(records, counted):
            say(line)


def _key_of_row(store: Store, keys: Sequence[str], row: str) -> dict[str, str | None]:
    """Return the key of a row as it was typed; usage error for too many values."""
    from sessiondb.repository.sessions import check_text

    if row == TOTAL:
        return {}
    values = row.split(",") if len(keys) > 1 else [row]
    if len(values) != len(keys):
        raise click.UsageError(
            f"--explain: a row by {','.join(keys)} has {len(keys)} keys, with commas"
        )

    key: dict[str, str | None] = {}
    for name, typed in zip(keys, values, strict=True):
        value = typed.strip()
        if name == "session":
            (session,) = find_all(store, [value])
            key[name] = session.id
        else:
            key[name] = None if value in UNKNOWN else check_text(value, "--explain")
    return key


def _sums_json(records: Sequence[UsageRecord]) -> dict[str, Any]:
    return {
        "messages": len(records),
        "cost": _sum_of([record.cost for record in records]),
        "cost_estimated": _sum_of([record.cost_estimated for record in records]),
        "tokens_unpriced": sum(record.tokens_unpriced for record in records),
    }


def _sum_of(amounts: Sequence[float | None]) -> float | None:
    numbers = [amount for amount in amounts if amount is not None]
    return sum(numbers) if numbers else None


def _values_of_record(record: UsageRecord) -> list[Any]:
    return [
        f"{record.session_id}#{record.seq}",
        iso(record.time_created),
        record.model_id,
        rounded(record.cost),
        rounded(record.cost_estimated),
        *record.tokens.columns(),
        record.tokens_unpriced,
        record.counted_in,
    ]


def _table(records: Sequence[UsageRecord]) -> Iterator[str]:
    head = ["MESSAGE", "TIME", "MODEL", "COST", "EST", "IN", "OUT", "CACHED"]
    lines = []
    for record in records:
        numbers = (
            record.tokens.input,
            record.tokens.output,
            record.tokens.cache_read,
        )
        if record.counted_in is None:
            costs = [money(record.cost), money(record.cost_estimated)]
        else:
            owner, _, seq = record.counted_in.rpartition("#")
            costs = ["copy", f"{short_id(owner)}#{seq}" if owner else "gone"]
        lines.append(
            [
                f"{short_id(record.session_id)}#{record.seq}",
                moment(record.time_created, _MINUTE, zone=None),
                record.model_id or "–",
                *costs,
                *("–" if number is None else rough(number) for number in numbers),
            ]
        )
    return output.table(
        head, lines, right="COST EST IN OUT CACHED", spare="CACHED TIME MODEL OUT IN"
    )


def _summary(
    records: Sequence[UsageRecord], counted: Sequence[UsageRecord]
) -> Iterator[str]:
    """Yield the sum, the rates that were used, and what was counted elsewhere."""
    if counted:
        sums = _sums_json(counted)
        amounts = (sums["cost"], sums["cost_estimated"], sums["tokens_unpriced"])
        words = cost_words(*amounts) or "cost unknown"
        yield f"{count(len(counted), 'message')}: {words}"

    beside = [record.cost for record in counted if not record.tokens.known]
    if (usd := _sum_of(beside)) is not None:
        yield f"{money(usd)} of it is stated without tokens"

    used: dict[str, None] = {}  # a dict as an ordered set
    for record in counted:
        if record.rates:
            rates = ", ".join(
                f"{rate:g} {kind.replace('_', ' ')}"
                for kind, rate in record.rates.items()
            )
            used[f"{record.model_id}: {rates}"] = None
    for line in used:
        yield f"USD per million tokens of {line}"

    if copies := len(records) - len(counted):
        noun = "message that a fork" if copies == 1 else "messages that forks"
        yield f"not in it: {copies:,} {noun} copied, counted in the original"
