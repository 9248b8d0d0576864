"""`sessions()`: filters, orders and pages."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from backends import Backend
from hand_clock import Clock

from sessiondb import ALL, HERE, Store, assistant, ids, tool, user
from sessiondb.errors import InvalidInputError
from sessiondb.model import Session
from sessiondb.repository.sessions import encode_cursor


def titles(store: Store, **filters: Any) -> list[str]:
    return [item.title for item in store.sessions(**{"project": ALL, **filters})]


def talk(store: Store, title: str, **fields: Any) -> str:
    """A session of one message, in a project of its own unless one is given."""
    with store.effects() as fx:
        handle = fx.create_session(title=title, **fields)
        fx.append(handle, user(f"about {title}"))
    return handle.id


def all_pages(store: Store, limit: int, **filters: Any) -> list[Session]:
    found: list[Session] = []
    cursor = None
    while True:
        page = store.sessions(project=ALL, limit=limit, cursor=cursor, **filters)
        found += page
        cursor = page.next_cursor
        if cursor is None:
            return found
        assert len(page) == limit


def test_the_session_used_last_comes_first(store: Store, set_clock: Clock) -> None:
    first = talk(store, "first")
    set_clock.now += 1000
    talk(store, "second")
    assert titles(store) == ["second", "first"]
    set_clock.now += 1000
    store.append(first, user("once more"))
    assert titles(store) == ["first", "second"]
    assert titles(store, order="created") == ["second", "first"]


@pytest.mark.slow
@pytest.mark.parametrize("order", ["used", "created", "cost", "size"])
@pytest.mark.parametrize("limit", [1, 3, 10])
@pytest.mark.parametrize("reverse", [False, True])
def test_pages_leave_no_gap_and_repeat_nothing_even_at_equal_times(
    store: Store, set_clock: Clock, order: str, limit: int, reverse: bool
) -> None:
    with store.effects() as fx:
        for number in range(23):
            handle = fx.create_session(title=f"t{number}")
            cost = (None, 0.0, 0.5)[number % 3]
            fx.append(handle, assistant("x" * (number % 4)), cost=cost)
    set_clock.now += 5
    for handle in itertools.islice(
        store.sessions(project=ALL, order="created"), 0, 23, 5
    ):
        store.append(handle, user("again"))
    paged = all_pages(store, limit, order=order, reverse=reverse)
    unpaged = store.sessions(order=order, limit=100)
    if reverse:
        paged.reverse()
    assert [item.id for item in paged] == [item.id for item in unpaged]
    assert len({item.id for item in paged}) == 23
    if order == "used":
        keys = [(-item.time_updated, item.id) for item in paged]
    elif order == "cost":
        keys = [(-1 if item.cost is None else item.cost, item.id) for item in paged]
        keys = [(-cost, name) for cost, name in keys]
    else:
        keys = [(0, item.id) for item in paged] if order == "created" else []
    assert keys == sorted(keys)


def test_lists_searches_and_sums_cover_every_project_unless_one_is_stated(
    store: Store, tmp_path: Path
) -> None:
    (tmp_path / "there").mkdir()
    for directory in (tmp_path, tmp_path / "there"):
        with store.effects() as fx:
            session = fx.create_session(directory=str(directory))
            fx.append(session, assistant("word"), cost=1.0)
            fx.add_prompt("word", session=session)
    assert len(store.sessions()) == len(store.search("word")) == 2
    assert len(store.prompts()) == 2
    assert store.usage(by=())[0].cost == 2.0
    for one in (tmp_path, HERE):
        count = 1 if one is tmp_path else 0
        assert len(store.sessions(project=one)) == count
        assert len(store.search("word", project=one)) == count
        assert len(store.prompts(project=one)) == count
        assert len(store.usage(by=(), project=one)) == count


def test_a_reversed_list_with_every_flag_is_the_list_from_its_end(
    store: Store, set_clock: Clock
) -> None:
    for number in range(12):
        set_clock.now += number % 2
        parent = talk(store, f"t{number}")
        store.create_session(parent=parent)
        if number % 3 == 0:
            store.archive(parent)
    flags = dict.fromkeys(("archived", "subagents", "empty"), True)
    for order in ("used", "created", "cost", "size"):
        complete = all_pages(store, 5, order=order, **flags)
        assert len(complete) == 24
        backwards = all_pages(store, 5, order=order, reverse=True, **flags)
        assert backwards == complete[::-1]


def test_filters_apply_before_the_limit(store: Store) -> None:
    talk(store, "needle")
    with store.effects() as fx:
        for number in range(200):
            fx.append(fx.create_session(title=f"hay {number}"), user("x"))
    assert titles(store, title="needle", limit=1) == ["needle"]
    assert store.sessions(project=ALL, title="needle", limit=1).next_cursor is None


def test_each_filter_narrows_and_they_combine(
    store: Store, backend: Backend, tmp_path: Path
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    place = backend.place_of(store)
    here.mkdir()
    there.mkdir()
    talk(store, "mine here", directory=str(here), agent="build")
    talk(store, "mine there", directory=str(there), agent="plan")
    with Store.open(place, source="other", durability="normal") as other:
        talk(other, "theirs here", directory=str(here), agent="build")
    assert titles(store, project=str(here)) == ["theirs here", "mine here"]
    assert titles(store, project=str(here), source="other") == ["theirs here"]
    assert titles(store, agent="plan") == ["mine there"]
    assert titles(store, agent="build", source="sessiondb") == ["mine here"]
    assert titles(store, project=str(tmp_path / "never seen")) == []
    with Store.open(place, cwd=there, durability="normal") as placed:
        assert titles(placed, project=HERE) == ["mine there"]


@pytest.mark.needs("has_our_clock", "the times are the server's")
def test_since_and_until_are_times_of_last_use_and_until_is_exclusive(
    store: Store, set_clock: Clock
) -> None:
    for name in ("a", "b", "c"):
        talk(store, name)
        set_clock.now += 10
    start = set_clock.now - 30
    assert titles(store, since=start + 10) == ["c", "b"]
    assert titles(store, until=start + 10) == ["a"]
    assert titles(store, since=start + 10, until=start + 20) == ["b"]


@pytest.mark.parametrize("part", ["100%", "a_b", "\\", "50% a_b\\"])
def test_a_title_is_found_by_its_own_characters_and_not_as_a_pattern(
    store: Store, part: str
) -> None:
    talk(store, f"at {part} done")
    talk(store, "at 100x axb 50y")
    assert titles(store, title=part) == [f"at {part} done"]


def test_empty_sessions_archived_ones_and_subagents_show_when_asked(
    store: Store,
) -> None:
    plain = talk(store, "plain")
    talk(store, "helper", parent=plain)
    store.archive(talk(store, "old"))
    store.create_session(title="empty")
    assert titles(store) == ["plain"]
    assert titles(store, subagents=True) == ["helper", "plain"]
    assert titles(store, archived=True) == ["old", "plain"]
    assert titles(store, empty=True) == ["empty", "plain"]
    everything = titles(store, subagents=True, archived=True, empty=True)
    assert sorted(everything) == ["empty", "helper", "old", "plain"]


def test_forks_are_listed_like_any_session(store: Store) -> None:
    plain = talk(store, "plain")
    store.fork(plain)
    assert titles(store) == ["plain (fork #1)", "plain"]


@pytest.mark.needs("has_our_clock", "the times are the server's")
def test_messages_parts_and_settlements_move_the_last_use(
    store: Store, set_clock: Clock
) -> None:
    session = talk(store, "x")

    def moves(write: Any, *args: Any, **kwargs: Any) -> Any:
        before = store.session(session).time_updated
        set_clock.now += 10
        result = write(session, *args, **kwargs)
        assert store.session(session).time_updated == before + 10 == set_clock.now
        return result

    message = moves(store.append, assistant(tool("bash", {}, call_id="c")), open=True)
    moves(store.add_part, message, "text")
    moves(store.start, "c")
    moves(store.settle, "c", output="done")
    moves(store.finish, message)


def test_changes_to_the_facts_of_a_session_do_not_move_its_last_use(
    store: Store, set_clock: Clock
) -> None:
    session = talk(store, "x")
    before = store.session(session).time_updated
    set_clock.now += 1000
    store.set_title(session, "another")
    store.archive(session)
    store.unarchive(session)
    store.set_metadata(session, {"a": 1})
    store.set_permission(session, ["ask"])
    store.set_todos(session, ["write tests"])
    store.label(session, 1, "start")
    store.set_share(session, "https://example.org/s/1", secret="s")
    assert store.session(session).time_updated == before


def test_plain_order_by_id_is_newest_first_also_when_the_clock_steps_back(
    store: Store, backend: Backend, set_clock: Clock
) -> None:
    made = []
    for step in (0, 1, 0, -3_600_000, 5, 0, -1, 7_200_000, -86_400_000, 0):
        set_clock.now += step
        made.append(talk(store, "x"))
    rows = backend.rows(store, "SELECT id FROM session ORDER BY id")
    assert [name for (name,) in rows] == made[::-1]
    assert [item.id for item in store.sessions(project=ALL, order="created")] == made[
        ::-1
    ]


def test_new_ids_continue_below_those_in_the_opened_file(
    backend: Backend, set_clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = backend.fresh()
    with Store.open(place, durability="normal") as store:
        older = talk(store, "older")
    # Another process, on a machine whose clock is a year behind.
    fresh = ids.Mint()
    monkeypatch.setattr(ids, "new_session_id", fresh.session)
    monkeypatch.setattr(ids, "saw_session", fresh.saw_session)
    set_clock.now -= 365 * 86_400_000
    with Store.open(place, durability="normal") as store:
        newer = talk(store, "newer")
        assert newer < older
        assert titles(store, order="created") == ["newer", "older"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"order": "name"},
        {"limit": 0},
        {"limit": 10_001},
        {"limit": True},
        {"cursor": "nonsense"},
        {"cursor": ""},
        {"cursor": "ä"},
        {"cursor": encode_cursor(1)},
        {"cursor": encode_cursor([1], {"a": 1})},
        {"cursor": encode_cursor(1, None)},
        {"cursor": encode_cursor(10**30, "ses_1")},
        {"cursor": encode_cursor(float("inf"), "ses_1")},
        {"cursor": encode_cursor(True, "ses_1")},
        {"cursor": encode_cursor(1, "\ud800")},
        {"cursor": encode_cursor(1, "ses_1") + "="},
        {"cursor": "W" * 1_000_000},
    ],
)
def test_an_invalid_listing_is_refused(store: Store, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        store.sessions(project=ALL, **wrong)
