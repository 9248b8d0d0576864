"""Totals from the kept sums are those of the messages, after whatever was done to them."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from backends import Backend
from foreign_sessions import said, session_of, take_in
from hypothesis import given, settings
from hypothesis import strategies as st

from sessiondb import ALL, Store, assistant, user
from sessiondb.errors import ConflictError, CorruptionError, NotFoundError
from sessiondb.maintenance import check
from sessiondb.model import UsageRow
from sessiondb.prices import Rates

STEPS = ("answer", "open", "finish", "prompt", "fork", "delete", "truncate", "archive",
         "unarchive", "import", "move", "change", "remove", "rest",
         "agent")  # fmt: skip
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Asia/Kathmandu",
         "Australia/Lord_Howe", "Pacific/Chatham")  # fmt: skip
KEYS = ((), ("day",), ("week",), ("month",), ("model",), ("agent",), ("project",), ("source",),
        ("session",), ("day", "model"), ("month", "project", "agent"))  # fmt: skip
TOKENS = ("input", "output", "reasoning", "cache_read", "cache_write")
MODELS = ("long", "short", "free", None)
#: Of one model the price changes with the length of a prompt.
PRICES: dict[str, Any] = {
    "long": {"input": 1.0, "output": 2.0, "above": {100: {"input": 8.0}, 200: {"input": 32.0}}},
    "short": {"input": 4.0, "cache_read": 0.5},
}  # fmt: skip
#: The clock of Berlin, New York and Lord Howe changes in these days.
START = int(datetime.fromisoformat("2026-10-20T00:00+00:00").timestamp() * 1000)
HOUR = 3_600_000


@pytest.fixture(autouse=True)
def _own_time_zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    yield
    monkeypatch.undo()
    time.tzset()


def rows_by_hand(
    backend: Backend, store: Store, **filters: Any
) -> list[dict[str, Any]]:
    """Return the counted messages, with the keys of each, from nothing but their rows."""
    rows = backend.records(
        store,
        "SELECT m.*, s.agent AS session_agent, s.source, s.title, s.time_archived, "
        "s.relation, s.project_id, j.worktree AS project FROM message AS m "
        "JOIN session AS s ON s.id = m.session_id JOIN project AS j ON j.id = s.project_id "
        "WHERE s.time_deleted IS NULL AND s.time_importing IS NULL AND m.inherited = 0",
    )
    found = []
    for row in rows:
        if row["cost"] is None and all(
            row[f"tokens_{name}"] is None for name in TOKENS
        ):
            continue
        when = datetime.fromtimestamp(row["time_created"] / 1000)  # noqa: DTZ006
        row["day"] = f"{when:%Y-%m-%d}"
        row["week"] = f"{when - timedelta(days=when.weekday()):%Y-%m-%d}"
        row["month"] = f"{when:%Y-%m}"
        row["model"], row["session"] = row["model_id"], row["session_id"]
        row["agent"] = row["session_agent"] if row["agent"] is None else row["agent"]
        if (
            filters.get("since", 0)
            <= row["time_created"]
            < filters.get("until", 1 << 60)
            and filters.get("agent", row["agent"]) == row["agent"]
            and filters.get("sessions", [row["session"]]).count(row["session"])
            and (filters.get("archived", True) or row["time_archived"] is None)
            and (filters.get("subagents", True) or row["relation"] != "subagent")
        ):
            found.append(row)
    return found


def usage_by_hand(
    backend: Backend, store: Store, by: tuple[str, ...], **filters: Any
) -> list[UsageRow]:
    """Return what `usage` has to, one message after the other."""
    rates, groups = Rates(PRICES), {}
    for row in rows_by_hand(backend, store, **filters):
        groups.setdefault(tuple(row[name] for name in by), []).append(row)
    order = sorted(
        groups, key=lambda key: [(value is not None, value) for value in key]
    )
    rows = []
    for key in order:
        group = groups[key]
        estimated, unpriced = [], 0
        for row in group:
            if row["cost"] is not None:
                continue
            prompt = sum(
                row[f"tokens_{name}"] or 0
                for name in ("input", "cache_read", "cache_write")
            )
            size = max((each for each in rates.sizes if prompt > each), default=0)
            known = rates.of_model(row["model"], size)
            for name in TOKENS:
                count = row[f"tokens_{name}"]
                if count and name in known:
                    estimated.append(count * known[name] / 1e6)
                else:
                    unpriced += count or 0
        sums = {}
        for name in ("cost", *(f"tokens_{name}" for name in TOKENS)):
            stated = [row[name] for row in group if row[name] is not None]
            sums[name] = sum(stated) if stated else None
        rows.append((
            dict(zip(by, key, strict=True)), len({row["session"] for row in group}), len(group),
            sums["cost"], sum(estimated) if estimated else None,
            tuple(sums[f"tokens_{name}"] for name in TOKENS), unpriced,
        ))  # fmt: skip
    return rows


def same(rows: list[UsageRow], expected: list[Any]) -> None:
    found = [
        (row.key, row.sessions, row.messages, row.cost, row.cost_estimated,
         row.tokens.columns(), row.tokens_unpriced) for row in rows
    ]  # fmt: skip
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one[:3] == other[:3]
        assert one[3] == pytest.approx(other[3])
        assert one[4] == pytest.approx(other[4])
        assert tuple(one[5]) == other[5]
        assert one[6] == other[6]


def some_usage(chance: random.Random) -> dict[str, Any]:
    """Return what an answer states: a cost or not, some tokens or none."""
    fields: dict[str, Any] = {"model": chance.choice(MODELS)}
    if chance.random() < 0.4:
        fields["cost"] = chance.choice([0.0, 0.125, 1.5])
    names = chance.sample(TOKENS, chance.randint(0, 3))
    fields["tokens"] = {name: chance.choice([0, 7, 60, 150]) for name in names}
    if chance.random() < 0.3:
        fields["agent"] = "plan"
    return fields


@settings(max_examples=30, deadline=None)
@given(
    steps=st.lists(st.sampled_from(STEPS), min_size=5, max_size=45),
    seed=st.integers(0, 10_000),
    zone=st.sampled_from(ZONES),
)
def test_whatever_is_done_the_totals_are_those_of_the_messages(
    backend: Backend,
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[str],
    seed: int,
    zone: str,
) -> None:
    folder, place = tmp_path_factory.mktemp("sums"), backend.fresh()
    chance = random.Random(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", zone)
        time.tzset()
        for name in ("one", "two"):
            (folder / name).mkdir()
        with (
            Store.open(place, durability="normal", cwd=folder) as store,
            Store.open(place, read_only=True) as reader,
            backend.watching(place),
        ):
            work = _Work(backend, store, chance, folder)
            for step in steps:
                work.do(step)
                by = chance.choice(KEYS)
                filters = some_filters(chance, work)
                expected = usage_by_hand(backend, store, by, **filters)
                same(reader.usage(by=by, prices=PRICES, **filters), expected)
                with backend.without_sums():
                    same(reader.usage(by=by, prices=PRICES, **filters), expected)
                if backend.has_views:
                    compare_views(backend, store)
            wrong = [found for found in check(store) if found.check == "usage"]
            assert not wrong


def some_filters(chance: random.Random, work: _Work) -> dict[str, Any]:
    filters: dict[str, Any] = {}
    if chance.random() < 0.3:
        filters["since"] = (
            START + chance.randrange(20 * 24) * HOUR + chance.choice([0, 1, 1799])
        )
    if chance.random() < 0.3:
        filters["until"] = (
            START + chance.randrange(20 * 24) * HOUR + chance.choice([0, 1, 1799])
        )
    if chance.random() < 0.2:
        filters["agent"] = chance.choice(["plan", "build"])
    if chance.random() < 0.2:
        filters["archived"] = False
    if chance.random() < 0.2:
        filters["subagents"] = False
    if chance.random() < 0.2 and work.sessions:
        filters["sessions"] = chance.sample(work.sessions, 1)
    return filters


def compare_views(backend: Backend, store: Store) -> None:
    """The views of a shell say the same, at every moment."""
    rows = rows_by_hand(backend, store)
    models = backend.rows(
        store,
        "SELECT provider_id, model_id, messages, sessions, cost, tokens_input FROM usage_by_model",
    )
    days = backend.rows(
        store, "SELECT day, sum(messages) FROM usage_by_day GROUP BY day ORDER BY day"
    )
    expected: dict[Any, list[Any]] = {}
    for row in rows:
        expected.setdefault((row["provider_id"], row["model_id"]), []).append(row)
    assert {key[:2] for key in models} == expected.keys()
    for provider, model, messages, sessions, cost, tokens in models:
        group = expected[provider, model]
        assert messages == len(group)
        assert sessions == len({row["session"] for row in group})
        costs = [row["cost"] for row in group if row["cost"] is not None]
        assert cost == (pytest.approx(sum(costs)) if costs else None)
        counts = [
            row["tokens_input"] for row in group if row["tokens_input"] is not None
        ]
        assert tokens == (sum(counts) if counts else None)
    utc = [
        f"{datetime.fromtimestamp(row['time_created'] / 1000, tz=UTC):%Y-%m-%d}"
        for row in rows
    ]
    assert days == sorted({day: utc.count(day) for day in utc}.items())


class _Work:
    """What is done to a store in a test."""

    def __init__(
        self, backend: Backend, store: Store, chance: random.Random, folder: Path
    ) -> None:
        self.backend, self.store = backend, store
        self.chance, self.folder = chance, folder
        self.open: list[tuple[str, str]] = []
        self.imported = 0
        self.sessions = [self.new_session() for _ in range(3)]

    def new_session(self) -> str:
        parent = None
        if getattr(self, "sessions", None) and self.chance.random() < 0.3:
            parent = self.chance.choice(self.sessions)
        agent = self.chance.choice([None, "build"])
        directory = str(self.folder / self.chance.choice(["one", "two"]))
        return self.store.create_session(
            title="x", agent=agent, directory=directory, parent=parent
        ).id

    def moment(self) -> int:
        return (
            START
            + self.chance.randrange(20 * 24 * 4) * HOUR // 4
            + self.chance.randrange(900_000)
        )

    def do(self, step: str) -> None:
        # A session may be gone, with its parent, or a message, by a shell.
        with suppress(NotFoundError, ConflictError, CorruptionError):
            self._do(step, self.chance.choice(self.sessions))
        every: dict[str, Any] = {"archived": True, "subagents": True, "empty": True}
        listed = self.store.sessions(project=ALL, limit=1000, **every)
        self.sessions = [session.id for session in listed]
        self.sessions = self.sessions or [self.new_session()]

    def _do(self, step: str, session: str) -> None:
        store, chance = self.store, self.chance
        match step:
            case "answer":
                if chance.random() < 0.2:
                    session = self.new_session()
                for _ in range(chance.randint(1, 4)):
                    store.append(
                        session,
                        assistant("said"),
                        time=self.moment(),
                        **some_usage(chance),
                    )
            case "prompt":
                store.append(session, user("asked"))
            case "open":
                handle = store.append(
                    session,
                    assistant("be"),
                    open=True,
                    model=chance.choice(MODELS),
                    time=self.moment(),
                )
                self.open.append((session, handle.id))
            case "finish" if self.open:
                session, message = self.open.pop()
                usage = some_usage(chance)
                store.finish(
                    session, message, cost=usage.get("cost"), tokens=usage["tokens"]
                )
            case "fork":
                store.fork(session)
            case "delete":
                store.delete(session)
            case "truncate":
                messages = store.messages(session)
                if messages:
                    store.truncate(session, after=chance.choice(messages).id)
            case "archive":
                store.archive(session)
            case "unarchive":
                store.unarchive(session)
            case "import":
                self.imported += 1
                number = chance.randrange(3)
                answers = [
                    said(f"m{number}-{each}", cost=chance.choice([None, 2.0]), at=each)
                    for each in range(chance.randint(1, 4))
                ]
                take_in(store, session_of(f"s{number}", *answers))
            case "agent":
                store.update_session(session, agent=chance.choice(["build", "plan"]))
            case "move" | "change" | "remove" if self.backend.has_triggers:
                self._change_in_shell(step)
            case "rest":
                store._core.writer.idle()

    def _change_in_shell(self, step: str) -> None:
        """Change rows as a user of a shell does, who knows nothing of the sums."""
        rows = self.backend.rows(self.store, "SELECT rid FROM message ORDER BY rid")
        rids = [rid for (rid,) in rows]
        if not rids:
            return
        rid = self.chance.choice([rids[-1], self.chance.choice(rids)])
        # References are not enforced in most shells.
        shell = partial(self.backend.tear, self.store)
        if step == "remove":
            shell("DELETE FROM message WHERE rid = ?", rid)
        elif step == "change":
            column, value = self.chance.choice(
                [("cost", 0.75), ("cost", None), ("tokens_input", 9), ("model_id", "short"),
                 ("agent", "plan"), ("time_created", self.moment()), ("inherited", 1)]
            )  # fmt: skip
            shell(f"UPDATE message SET {column} = ? WHERE rid = ?", value, rid)
        else:
            shell(
                f"UPDATE session SET source = '{self.chance.choice(['x', 'y'])}', "
                "project_id = (SELECT id FROM project ORDER BY rid DESC "
                "LIMIT 1) WHERE id = (SELECT session_id FROM message WHERE rid = ?)",
                rid,
            )


#: Appends answers of a cost of 1 to a session of its own, and says which are stored.
WRITER = """
import sys
from sessiondb import Store, assistant
place, count = sys.argv[1:]
with Store.open(place, durability="normal") as store:
    session = store.create_session()
    for number in range(int(count)):
        store.append(session, assistant("said"), cost=1.0, tokens={"input": 1})
        print(number, flush=True)
        sys.stdin.readline()
"""


@pytest.mark.slow
def test_what_several_processes_write_is_in_a_total_as_soon_as_it_is_stored(
    backend: Backend,
) -> None:
    turns, place = 80, backend.fresh()
    command = [sys.executable, "-c", WRITER, str(place), str(turns)]
    writers = [
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    stored = 0
    with Store.open(place, read_only=True) as reader:
        for number in range(turns):
            for process in writers:
                assert process.stdout is not None
                assert process.stdout.readline().strip() == str(number)
                stored += 1
                # The others may have written their next one already.
                (row,) = reader.usage(by=())
                assert stored <= row.messages <= stored + 2
                assert (row.cost, row.tokens.input) == (row.messages, row.messages)
                assert process.stdin is not None
                process.stdin.write("\n")
                process.stdin.flush()
    for process in writers:
        process.communicate()
        assert process.returncode == 0
    with Store.open(place) as store:
        assert check(store) == []
        assert [row.cost for row in store.usage(by=())] == [3 * turns]
