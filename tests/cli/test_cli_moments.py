"""Times as people type them: each form is the span of the calendar that it names."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import pytest
from command_line import Run
from hypothesis import given
from hypothesis import strategies as st

from sessiondb import Store, user
from sessiondb.cli.moments import Moment
from sessiondb.moments import FORMS, read_span

#: A Wednesday.
NOW = datetime.fromisoformat("2026-11-25T15:30:05")


@pytest.mark.parametrize(
    ("typed", "first", "after"),
    [
        ("today", "2026-11-25", "2026-11-26"), ("yesterday", "2026-11-24", "2026-11-25"),
        ("monday", "2026-11-23", "2026-11-24"), ("wed", "2026-11-25", "2026-11-26"),
        ("thursday", "2026-11-19", "2026-11-20"), ("last thu", "2026-11-19", "2026-11-20"),
        ("last wednesday", "2026-11-18", "2026-11-19"),
        ("this week", "2026-11-23", "2026-11-30"), ("last week", "2026-11-16", "2026-11-23"),
        ("this month", "2026-11-01", "2026-12-01"), ("last month", "2026-10-01", "2026-11-01"),
        ("this year", "2026-01-01", "2027-01-01"), ("last year", "2025-01-01", "2026-01-01"),
        ("2026", "2026-01-01", "2027-01-01"), ("2026-12", "2026-12-01", "2027-01-01"),
        ("2026-w47", "2026-11-16", "2026-11-23"), ("2026-11-01", "2026-11-01", "2026-11-02"),
        ("20261101", "2026-11-01", "2026-11-02"),
    ],
)  # fmt: skip
def test_a_day_a_week_a_month_and_a_year_are_spans(
    typed: str, first: str, after: str
) -> None:
    start, end = read_span(typed, NOW)
    assert (start, end) == (
        datetime.fromisoformat(first),
        datetime.fromisoformat(after),
    )


@pytest.mark.parametrize(
    ("typed", "moment"),
    [
        ("now", "2026-11-25T15:30:05"), ("3 days ago", "2026-11-22T15:30:05"),
        ("3d", "2026-11-22T15:30:05"), ("a week ago", "2026-11-18T15:30:05"),
        ("2w", "2026-11-11T15:30:05"), ("an hour ago", "2026-11-25T14:30:05"),
        ("12h", "2026-11-25T03:30:05"), ("30min", "2026-11-25T15:00:05"),
        ("30 minutes ago", "2026-11-25T15:00:05"), ("1mo", "2026-10-25T15:30:05"),
        ("9 months ago", "2026-02-25T15:30:05"), ("one year ago", "2025-11-25T15:30:05"),
        ("14:30", "2026-11-25T14:30"), ("yesterday 9:05", "2026-11-24T09:05"),
        ("monday at 08:00", "2026-11-23T08:00"), ("2026-11-01 14:30", "2026-11-01T14:30"),
        ("2026-11-01t14:30:15", "2026-11-01T14:30:15"),
    ],
)  # fmt: skip
def test_an_age_and_a_time_of_a_day_are_moments(typed: str, moment: str) -> None:
    start, end = read_span(typed, NOW)
    assert start == end == datetime.fromisoformat(moment)


def test_a_month_before_the_31st_is_its_last_day() -> None:
    assert read_span("1mo", datetime.fromisoformat("2026-03-31"))[0].date() == date(
        2026, 2, 28
    )


@given(st.datetimes(NOW - timedelta(days=9_999), NOW + timedelta(days=9_999)))
def test_the_spans_of_any_day_contain_it_and_follow_each_other(now: datetime) -> None:
    for unit in ("week", "month", "year"):
        this, last = read_span(f"this {unit}", now), read_span(f"last {unit}", now)
        assert last[0] < last[1] == this[0] <= now < this[1]
    start, end = read_span(now.strftime("%A").lower(), now)
    assert start <= now < end == start + timedelta(days=1)


@pytest.mark.parametrize("typed", FORMS.split(", "))
def test_each_form_that_help_and_errors_name_is_read(
    sessiondb: Run, typed: str
) -> None:
    assert Moment().convert(typed, None, None) <= Moment(end=True).convert(
        f" {typed.upper()} ", None, None
    )
    helped = " ".join(sessiondb("list", "--help").out.split())
    assert typed in helped


@pytest.mark.parametrize(
    "typed",
    ["", "soon", "next week", "3 fortnights ago", "14:75", "2026-13", "2026-W60",
     "last 2026-11-01", "last week 14:30", "99999y", "9" * 9 + "d", "²d", "on monday"],
)  # fmt: skip
def test_any_other_word_is_refused_with_every_form(sessiondb: Run, typed: str) -> None:
    ran = sessiondb("list", "--since", typed)
    assert ran.code == 2
    assert FORMS in ran.err


def test_1m_is_refused_because_it_could_be_either(sessiondb: Run) -> None:
    ran = sessiondb("list", "--since", "1m")
    assert ran.code == 2
    assert "type 1min or 1mo" in ran.err


def test_one_parser_serves_lists_costs_searches_and_prune(
    sessiondb: Run, store: Store
) -> None:
    store.append(store.create_session(title="Of today"), user("word"))
    for words in (["list"], ["search", "word"], ["stats"], ["prompts"]):
        assert sessiondb(*words, "--since", "3 days ago", "--until", "today").code == 0
    assert "Of today" in sessiondb("list", "--since", "this week").out
    assert "Of today" not in sessiondb("list", "--until", "last week").out
    pruned = sessiondb("prune", "--older-than", "last month", "--dry-run")
    assert pruned.out == "nothing to remove\n"
