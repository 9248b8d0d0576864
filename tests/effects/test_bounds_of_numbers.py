"""Times, costs and token counts have bounds; values beyond them are refused when queued."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone

import pytest
from backends import Backend

from sessiondb import InvalidInputError, PartDraft, Store, assistant, user
from sessiondb.effects import Unit
from sessiondb.maintenance import check
from sessiondb.model import bounds

Given = Callable[[Unit, object], object]


COSTS = (-1, -0.01, math.nan, math.inf, -math.inf, 1e10, 10**400, "1", True, b"1")
COUNTS = (-1, 1 << 62, 1 << 63, 10**400, 1.0, "1", True)
TIMES = (
    -1, 0, 1_772_000_000, 99_999_999_999, 1_772_000_000_000_000, 1 << 62, 10**400, 1.5, "now",
    True, datetime(2026, 1, 1),  # noqa: DTZ001
    datetime(1960, 1, 1, tzinfo=UTC),
)  # fmt: skip

COST_VERBS: dict[str, Given] = {
    "append": lambda fx, value: fx.append("s", assistant("x"), cost=value),
    "finish": lambda fx, value: fx.finish("s", "m", cost=value),  # type: ignore[arg-type]
}
COUNT_VERBS: dict[str, Given] = {
    "append": lambda fx, value: fx.append("s", assistant("x"), tokens={"input": value}),
    "finish": lambda fx, value: fx.finish("s", "m", tokens={"output": value}),  # type: ignore[dict-item]
}
TIME_VERBS: dict[str, Given] = {
    "append": lambda fx, value: fx.append("s", user("x"), time=value),
    "finish": lambda fx, value: fx.finish("s", "m", time=value),  # type: ignore[arg-type]
    "start": lambda fx, value: fx.start("s", "c", time=value),  # type: ignore[arg-type]
    "settle": lambda fx, value: fx.settle("s", "c", output="x", time=value),  # type: ignore[arg-type]
    "create_session": lambda fx, value: fx.create_session(time=value),  # type: ignore[arg-type]
    "add_prompt": lambda fx, value: fx.add_prompt("x", time=value),  # type: ignore[arg-type]
    "a part": lambda fx, value: fx.append(
        "s", user(PartDraft("text", "x", time_started=value))  # type: ignore[arg-type]
    ),
    "add_part": lambda fx, value: fx.add_part(
        "s", "m", PartDraft("text", "x", time_created=value)  # type: ignore[arg-type]
    ),
}  # fmt: skip


def refused(store: Store, verb: Given, value: object) -> InvalidInputError:
    with pytest.raises(InvalidInputError) as caught, store.effects() as fx:
        verb(fx, value)
    assert caught.value.effect is None, "refused by the verb, not by the transaction"
    assert len(str(caught.value)) < 200
    return caught.value


@pytest.mark.parametrize("verb", COST_VERBS)
def test_a_cost_is_finite_not_negative_and_bounded(store: Store, verb: str) -> None:
    for value in COSTS:
        assert "cost" in str(refused(store, COST_VERBS[verb], value))


@pytest.mark.parametrize("verb", COUNT_VERBS)
def test_a_token_count_is_a_bounded_integer(store: Store, verb: str) -> None:
    for value in COUNTS:
        assert "tokens." in str(refused(store, COUNT_VERBS[verb], value))


@pytest.mark.parametrize("verb", TIME_VERBS)
def test_a_time_is_in_milliseconds_and_the_hint_says_so(
    store: Store, verb: str
) -> None:
    for value in TIMES:
        refused(store, TIME_VERBS[verb], value)
    assert "ms" in (refused(store, TIME_VERBS[verb], 1_772_000_000).hint or "")


def test_times_may_be_datetimes_with_a_time_zone(store: Store) -> None:
    session = store.create_session()
    moment = datetime(2026, 3, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    store.append(session, user("x"), time=moment)
    assert store.messages(session)[0].time_created == int(moment.timestamp() * 1000)


def test_the_bounds_themselves_are_accepted(store: Store) -> None:
    session = store.create_session()
    most = {"input": bounds.TOKENS_MOST, "output": 0}
    store.append(session, assistant("x"), cost=bounds.COST_MOST, tokens=most)
    store.append(session, assistant("x"), cost=0, time=bounds.TIME_LEAST)
    store.append(session, assistant("x"), time=bounds.TIME_MOST)
    assert store.session(session).cost == bounds.COST_MOST


@pytest.mark.needs("is_file", "a CHECK refuses numbers whose sums overflow")
def test_rows_that_overflow_break_neither_append_nor_usage_nor_check(
    backend: Backend,
) -> None:
    place = backend.fresh()
    with Store.open(place, durability="normal") as store:
        session = store.create_session()
        for _ in range(2):
            store.append(
                session, assistant("x"), cost=1.0, tokens={"input": 1}, model="m"
            )
        fork = store.fork(session)
    largest = "tokens_input = 9223372036854775807"
    backend.run(place, f"UPDATE message SET {largest}, cost = 1.7e308")
    backend.run(place, f"UPDATE session SET {largest}, cost = ?", math.inf)
    with Store.open(place, durability="normal") as store:
        store.append(
            session, assistant("more"), cost=1.0, tokens={"input": 5}, model="m"
        )
        store.append(fork, assistant("more"), cost=1.0, tokens={"input": 5}, model="m")
        (row,) = store.usage(by=())
        assert row.cost == 2.0, "without the costs that no program can have meant"
        assert row.tokens.input == (1 << 63) - 1
        assert [row.key["day"] for row in store.usage(by=("day",))]
        store.delete(session, keep_forks=True)
        assert store.session(fork).tokens.input == (1 << 63) - 1
        with store.connection() as db:
            for view in ("usage_by_day", "usage_by_model", "session_list"):
                assert db.exec_driver_sql(f"SELECT * FROM {view}").fetchall()
        assert check(store) == []
