"""Times: verbs and reads take datetimes with a time zone, reads also what people type."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from sessiondb import (
    ALL,
    InvalidInputError,
    MessageDraft,
    PartDraft,
    Store,
    assistant,
    user,
)
from sessiondb.maintenance import plan_prune
from sessiondb.moments import FORMS

OLD = 1_770_000_000_000
#: The same moment in another zone.
MOMENT = datetime.fromtimestamp(OLD / 1000, timezone(timedelta(hours=5, minutes=30)))
NAIVE = MOMENT.replace(tzinfo=None)
LATER = timedelta(milliseconds=1)


@pytest.fixture
def dated(store: Store) -> Store:
    session = store.create_session(title="then", time=MOMENT)
    store.append(session, assistant("words"), time=MOMENT, cost=0.1)
    store.add_prompt("words", session=session, time=MOMENT)
    store.create_session(title="empty")
    return store


READS: dict[str, Any] = {
    "sessions": lambda store, **times: [
        item.title for item in store.sessions(project=ALL, **times)
    ],
    "search": lambda store, **times: [
        hit.session.title for hit in store.search("words", **times)
    ],
    "usage": lambda store, **times: ["then" for _ in store.usage(by="model", **times)],
    "prompts": lambda store, **times: ["then" for _ in store.prompts(**times)],
}


@pytest.mark.parametrize("name", READS)
def test_a_read_takes_a_moment_as_it_takes_its_milliseconds(
    dated: Store, name: str
) -> None:
    read = READS[name]
    assert read(dated, since=MOMENT, until=MOMENT + LATER) == ["then"]
    assert read(dated, since=OLD, until=OLD + 1) == ["then"]
    assert "then" not in read(dated, since=MOMENT + LATER)
    assert "then" not in read(dated, until=MOMENT)
    for argument in ("since", "until"):
        with pytest.raises(
            InvalidInputError, match=f"{argument} .*without a time zone"
        ):
            read(dated, **{argument: NAIVE})
        with pytest.raises(
            InvalidInputError, match=f"{argument}: 'soon' is not a time"
        ):
            read(dated, **{argument: "soon"})
        with pytest.raises(InvalidInputError, match=f"{argument} is Unix milliseconds"):
            read(dated, **{argument: 0.5})


@pytest.mark.parametrize("name", READS)
def test_a_read_takes_a_time_as_people_type_it(dated: Store, name: str) -> None:
    read = READS[name]
    day = MOMENT.astimezone().date().isoformat()
    # The day that is named is included at both ends.
    assert read(dated, since=day, until=day) == ["then"]
    assert read(dated, since=MOMENT.isoformat(), until=day[:4]) == ["then"]
    assert "then" not in read(dated, until=MOMENT.isoformat())
    assert "then" not in read(dated, since="7d")
    assert "then" not in read(dated, since="monday", until="today")


def test_a_time_that_is_not_read_names_every_form(dated: Store) -> None:
    for typed in ("", "soon", "2026-13", "9" * 5000):
        with pytest.raises(InvalidInputError) as caught:
            dated.sessions(since=typed)
        assert caught.value.hint == f"the forms are {FORMS}"
        assert len(str(caught.value)) < 200
    with pytest.raises(InvalidInputError, match="minute or a month") as caught:
        dated.search("words", since="5m")
    assert caught.value.hint == "type 5min or 5mo"


def test_results_have_milliseconds(dated: Store) -> None:
    (session,) = dated.sessions(project=ALL)
    message = dated.messages(session)[0]
    (prompt,) = dated.prompts()
    times = (session.time_created, message.time_created, prompt.time_created)
    assert times == (OLD, OLD, OLD)


def test_a_prune_takes_a_moment(dated: Store) -> None:
    assert not plan_prune(dated, older_than=MOMENT, project=ALL).going
    assert plan_prune(dated, older_than=MOMENT + LATER, project=ALL).going
    assert plan_prune(dated, older_than="7d", project=ALL).going
    assert not plan_prune(dated, older_than="60y", project=ALL).going
    with pytest.raises(InvalidInputError, match=r"older_than .*without a time zone"):
        plan_prune(dated, older_than=NAIVE, project=ALL)


def test_a_terminal_and_all_verbs_take_a_moment(dated: Store) -> None:
    (session,) = dated.sessions(project=ALL)
    dated.note_used(session, "tty1")
    assert dated.session("@", terminal={"tty1": MOMENT}).id == session.id
    with pytest.raises(InvalidInputError, match="without a time zone"):
        dated.session("@", terminal={"tty1": NAIVE})

    call = PartDraft(
        "tool", tool="t", call_id="c", time_started=MOMENT,  # type: ignore[arg-type]
    )  # fmt: skip
    draft = MessageDraft("assistant", (call,), time_created=MOMENT)  # type: ignore[arg-type]
    opened = dated.append(session, draft, open=True)
    dated.settle(session, "c", output="x", time=MOMENT)
    dated.finish(session, opened, time=MOMENT)
    dated.update_session(session, time_compacting=MOMENT)
    message = dated.messages(session)[-1]
    part = message.parts[0]
    times = (
        message.time_created,
        message.time_completed,
        part.time_started,
        part.time_ended,
    )
    assert times == (OLD,) * 4
    assert dated.session(session).time_compacting == OLD
    for verb in (
        lambda: dated.create_session(time=NAIVE),
        lambda: dated.append(session, user("x"), time=NAIVE),
        lambda: dated.add_prompt("x", time=NAIVE),
        lambda: dated.update_session(session, time_compacting=NAIVE),
    ):
        with pytest.raises(InvalidInputError, match="without a time zone"):
            verb()


def test_a_moment_before_the_first_use_is_no_error(dated: Store) -> None:
    assert len(dated.sessions(project=ALL, since=datetime(1970, 1, 1, tzinfo=UTC))) == 1
