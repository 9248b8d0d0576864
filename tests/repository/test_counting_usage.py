"""`usage()`: cost and tokens by dimension, unknown never 0, inherited never counted."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from foreign_sessions import T0, said, session_of, take_in

from sessiondb import Store, assistant, tool, user
from sessiondb.errors import InvalidInputError
from sessiondb.model import Tokens


def costs(store: Store, *by: str, **how: Any) -> dict[Any, float | None]:
    found = {}
    for row in store.usage(by=by, **how):
        key = tuple(row.key[name] for name in by)
        found[key[0] if len(key) == 1 else key] = row.cost
    return found


@pytest.fixture
def spent(store: Store, tmp_path: Path) -> dict[str, str]:
    """Two sessions in two projects, with models, agents, tools and a helper."""
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
    with store.effects() as fx:
        one = fx.create_session(title="one", directory=str(folders[0]), agent="build")
        fx.append(one, user("ask"))
        calls = (tool("bash", {}, output="x"), tool("edit", {}, output="y"))
        fx.append(
            one, assistant("a", *calls), model="big", cost=1.0, tokens={"input": 10}
        )
        fx.append(one, assistant("b", calls[0]), model="small", cost=0.5, agent="plan")
        helper = fx.create_session(parent=one, directory=str(folders[0]))
        fx.append(helper, assistant("c"), model="small", cost=0.25)
        two = fx.create_session(title="two", directory=str(folders[1]))
        fx.append(two, assistant("d"), model="big", cost=2.0, tokens={"output": 5})
        fx.append(
            two, assistant("e"), model="free", tokens={"input": 100, "cache_read": 1000}
        )
    fork = store.fork(one)
    store.append(fork, assistant("f"), model="big", cost=4.0)
    made = {"one": one, "helper": helper, "two": two, "fork": fork}
    return {name: handle.id for name, handle in made.items()}


def test_each_dimension_groups_what_it_names(
    store: Store, spent: dict[str, str], tmp_path: Path
) -> None:
    take_in(
        store, session_of("s", said("m", cost=8.0, at=1, model_id="big"), agent="build")
    )
    assert costs(store) == {(): 15.75}
    assert costs(store, "model") == {"big": 15.0, "free": None, "small": 0.75}
    assert costs(store, "source") == {"elsewhere": 8.0, "sessiondb": 7.75}
    assert costs(store, "agent") == {"build": 13.0, "plan": 0.5, None: 2.25}
    projects = {str(tmp_path / "one"): 5.75, str(tmp_path / "two"): 2.0}
    found = costs(store, "project")
    assert {name: found[name] for name in projects} == projects
    assert costs(store, "session") == {
        **{
            spent[n]: c
            for n, c in {"one": 1.5, "helper": 0.25, "two": 2.0, "fork": 4.0}.items()
        },
        store.session("s").id: 8.0,
    }
    assert costs(store, "model", "source") == {
        ("big", "elsewhere"): 8.0, ("big", "sessiondb"): 7.0, ("free", "sessiondb"): None,
        ("small", "sessiondb"): 0.75,
    }  # fmt: skip


def test_a_tool_counts_the_answers_it_took_part_in(
    store: Store, spent: dict[str, str]
) -> None:
    assert costs(store, "tool") == {None: 6.25, "bash": 1.5, "edit": 1.0}


def test_days_weeks_and_months_are_those_of_the_clock_on_the_wall(store: Store) -> None:
    moments = [datetime(2026, 11, day, 12) for day in (1, 2, 8, 9)]  # noqa: DTZ001
    for moment in moments:
        session = store.create_session()
        when = int(moment.timestamp() * 1000)
        store.append(session, assistant("x"), cost=1.0, time=when)
    days = {f"2026-11-{day:02}": 1.0 for day in (1, 2, 8, 9)}
    assert costs(store, "day") == days
    # 2 November 2026 is a Monday.
    assert costs(store, "week") == {
        "2026-10-26": 1.0,
        "2026-11-02": 2.0,
        "2026-11-09": 1.0,
    }
    assert costs(store, "month") == {"2026-11": 4.0}


def test_unknown_cost_is_none_and_never_nothing(store: Store) -> None:
    session = store.create_session()
    store.append(session, assistant("no usage at all"))
    assert store.usage() == []
    store.append(session, assistant("a"), tokens={"input": 3})
    (row,) = store.usage(by=())
    assert (row.cost, row.messages, row.tokens) == (None, 1, Tokens(input=3))
    assert (row.cost_estimated, row.tokens_unpriced) == (None, 3)
    store.append(session, assistant("b"), cost=0.0)
    (row,) = store.usage(by=())
    assert (row.cost, row.messages) == (0.0, 2)
    assert store.session(session).cost == 0.0
    assert store.session(store.create_session()).cost is None


def test_prices_estimate_only_what_has_no_cost(
    store: Store, spent: dict[str, str]
) -> None:
    prices = {"free": {"input": 2.0}, "big": {"input": 1000.0, "output": 1000.0}}
    rows = {row.key["model"]: row for row in store.usage(by=("model",), prices=prices)}
    assert (rows["free"].cost, rows["free"].cost_estimated) == (None, 100 * 2.0 / 1e6)
    assert rows["free"].tokens_unpriced == 1000
    assert (rows["big"].cost, rows["big"].cost_estimated) == (7.0, None)
    assert rows["big"].tokens == Tokens(input=10, output=5)
    assert rows["big"].tokens_unpriced == 0
    (total,) = store.usage(by=(), prices=prices)
    assert (total.cost, total.cost_estimated) == (7.75, 100 * 2.0 / 1e6)


def test_reasoning_has_the_price_of_the_output_unless_it_has_its_own(
    store: Store,
) -> None:
    session = store.create_session(model="m")
    spent = {"input": 10, "output": 20, "reasoning": 30}
    store.append(session, assistant("a"), model="m", tokens=spent)
    for rates, cost, unpriced in [
        ({"input": 1, "output": 2}, 10 + 40 + 60, 0),
        ({"input": 1, "output": 2, "reasoning": 3}, 10 + 40 + 90, 0),
        ({"input": 1}, 10, 50),
    ]:
        (row,) = store.usage(by=(), prices={"m": rates})
        assert row.cost_estimated == pytest.approx(cost / 1e6), rates
        assert row.tokens_unpriced == unpriced, rates


@pytest.mark.parametrize(
    "prices",
    [
        3, [], {"m": 3}, {"m": {"inptu": 1}}, {"m": {"input": "1"}}, {"m": {"input": -1}},
        {"m": {"input": float("nan")}}, {"m": {"input": True}}, {"m": {"input": None}},
    ],
)  # fmt: skip
def test_prices_that_make_no_sense_are_refused(store: Store, prices: Any) -> None:
    with pytest.raises(InvalidInputError, match="price"):
        store.usage(prices=prices)


def test_filters_narrow_what_is_counted(
    store: Store, spent: dict[str, str], tmp_path: Path
) -> None:
    def total(**how: Any) -> float | None:
        rows = store.usage(by=(), **how)
        return rows[0].cost if rows else None

    assert total(project=str(tmp_path / "two")) == 2.0
    assert total(project=str(tmp_path / "never seen")) is None
    assert total(agent="plan") == 0.5
    assert total(title="tw") == 2.0
    assert total(subagents=False) == 7.5
    store.archive(spent["two"])
    assert total() == 7.75
    assert total(archived=False) == 5.75
    assert total(source="elsewhere") is None
    assert total(since=1 << 50) is None
    take_in(store, session_of("s", said("m", cost=8.0, at=5)))
    assert total(since=T0, until=T0 + 6) == 8.0
    assert total(until=T0 + 5) is None


def test_sessions_and_messages_are_counted_once_each(
    store: Store, spent: dict[str, str]
) -> None:
    rows = {row.key["model"]: row for row in store.usage(by=("model",))}
    assert (rows["big"].sessions, rows["big"].messages) == (3, 3)
    (total,) = store.usage(by=())
    assert (total.sessions, total.messages) == (4, 6)
    odd = store.create_session(id="ses,with,commas")
    store.append(odd, assistant("x"), cost=1.0)
    assert store.usage(by=())[0].sessions == 5


def test_inherited_usage_is_counted_in_the_session_that_spent_it(
    store: Store, spent: dict[str, str]
) -> None:
    before = store.usage(by=())[0].cost
    copy = store.fork(spent["fork"])
    assert store.usage(by=())[0].cost == before
    assert store.session(copy).cost is None
    assert store.session(copy).cost_inherited == 5.5
    store.delete(spent["one"], keep_forks=True)
    assert store.usage(by=())[0].cost == 7.5
    assert store.session(spent["fork"]).cost == 5.5


def test_an_unknown_dimension_is_refused(store: Store) -> None:
    for wrong in (("colour",), "colour", ("day", "day")):
        with pytest.raises(InvalidInputError):
            store.usage(by=wrong)
