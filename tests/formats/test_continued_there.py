"""Sessions of other programs that were written for a program, and continued there.

For each format that is written: a record is appended as its program does, and the
import appends that message, and nothing else, to the session that was written.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from samples import new_store, read_into

from sessiondb import ALL, Store, Tokens, context_source, event, user
from sessiondb.formats import exporter
from sessiondb.model import (
    Document,
    Imported,
    MessageDraft,
    PartDraft,
    Session,
    SourceMessage,
    SourceSession,
)

Record = dict[str, Any]
T0 = 1_770_000_000_000
#: When the session is continued, in ms and as a text.
LATER, LATER_TEXT = T0 + 86_400_000, "2026-02-03T02:40:00.000Z"
USAGE = {"cost": 0.5, "tokens": Tokens(10, 4)}


def text(content: str, **data: Any) -> PartDraft:
    return PartDraft("text", content, data=data)


def call(name: str, **given: Any) -> PartDraft:
    known = {"tool": "bash", "call_id": name, "input": {"command": "date"}}
    return PartDraft(
        "tool", **{**known, "status": "completed", "text": "Monday", **given}
    )


def messages() -> list[SourceMessage]:
    """A conversation with most of what a program may write as records of its own."""
    kept = "m5"
    drafts = [
        MessageDraft("system", (text("Be brief"),), "m1"),
        MessageDraft("user", (text("Which day?"), text("It is late", synthetic=True)), "m2"),
        MessageDraft("assistant", (PartDraft("reasoning", "Hm"), call("c1"), text("Monday.")), "m3",
                     model_id="large", provider_id="fake", finish="stop", **USAGE),
        MessageDraft("event", (text("Summed up"),), "m4", "compaction", data={"first_kept_id": kept}),
        MessageDraft("user", (text("And now?"),), "m5"),
        MessageDraft("assistant", (text("Look:"), call("c2", status="pending", text=None)), "m6",
                     model_id="large", provider_id="fake"),
        MessageDraft("tool", (PartDraft("tool-result", "Tuesday", call_id="c2"),), "m7"),
        MessageDraft("user", (text("Thanks"),), "m8"),
        MessageDraft("assistant", (call("c3"), call("c4", status="error", outcome="failed")), "m9",
                     model_id="large", provider_id="fake", finish="tool-calls", **USAGE),
    ]  # fmt: skip
    made = (SourceMessage(draft) for draft in drafts)
    return [*map(_dated, made, range(len(drafts)))]


def _dated(message: SourceMessage, number: int) -> SourceMessage:
    from dataclasses import replace

    at = T0 + number * 1000
    return replace(
        message, draft=replace(message.draft, time_created=at, time_completed=at)
    )


def foreign(store: Store, count: int = 9) -> Session:
    given = SourceSession(
        "elsewhere", "20260101_1", path="db", digest="1", directory="/home/ada/tea",
        title="Tea", time_created=T0, messages=messages()[:count],
    )  # fmt: skip
    (done,) = store.ingest([given])
    assert isinstance(done, Imported)
    assert not done.problems
    return store.session(done.id)


def forked(store: Store) -> Session:
    """A fork made here of a session of another program: its messages are inherited."""
    return store.session(store.fork(foreign(store).id).id)


# -- what each program appends --------------------------------------------------------


def lines_of(path: Path) -> list[Record]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def append(path: Path, *records: Record) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(record) + "\n" for record in records)


def pi(path: Path) -> None:
    above = lines_of(path)[-1]["id"]
    said = {"role": "user", "content": "Again?", "timestamp": LATER}
    append(path, {"type": "message", "id": "0000000a", "parentId": above,
                  "timestamp": LATER_TEXT, "message": said})  # fmt: skip


def codex(path: Path) -> None:
    said = {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "Again?"}],
    }
    append(path, {"timestamp": LATER_TEXT, "type": "response_item", "payload": said},
           {"timestamp": LATER_TEXT, "type": "event_msg", "payload": {"type": "user_message", "message": "Again?"}})  # fmt: skip


def claude(path: Path) -> None:
    last = next(line for line in reversed(lines_of(path)) if "uuid" in line)
    kept = {key: last[key] for key in ("sessionId", "cwd", "version", "isSidechain")}
    append(path, {**kept, "type": "user", "uuid": "5f0e8f9c-0000-4000-8000-000000000001",
                  "parentUuid": last["uuid"], "timestamp": LATER_TEXT, "userType": "external",
                  "message": {"role": "user", "content": "Again?"}})  # fmt: skip


def opencode1(path: Path) -> None:
    found = json.loads(path.read_text())
    session = found["info"]["id"]
    name, model = (
        "msg_fffffffff001abcdefghijklmn",
        {"providerID": "fake", "modelID": "large"},
    )
    info = {"id": name, "sessionID": session, "role": "user", "time": {"created": LATER},
            "agent": "build", "model": model}  # fmt: skip
    part = {"id": "prt_fffffffff001abcdefghijklmn", "sessionID": session, "messageID": name,
            "type": "text", "text": "Again?"}  # fmt: skip
    found["messages"].append({"info": info, "parts": [part]})
    found["info"]["time"]["updated"] = LATER
    path.write_text(json.dumps(found))


def opencode2(path: Path) -> None:
    found = json.loads(path.read_text())
    said = {
        "id": "msg_fffffffff001abcdefghijklmn",
        "type": "user",
        "time": {"created": LATER},
        "text": "Again?",
    }
    found["messages"].append(said)
    found["info"]["time"]["updated"] = LATER
    path.write_text(json.dumps(found))


def goose(path: Path) -> None:
    """Import the file, which gives it a new id, continue it, and export it again."""
    found = json.loads(path.read_text())
    path.unlink()
    found.update(id="20260203_7", created_at=LATER_TEXT, updated_at=LATER_TEXT)
    said = {"id": "msg_20260203_7_1", "role": "user", "created": LATER // 1000,
            "content": [{"type": "text", "text": "Again?"}],
            "metadata": {"userVisible": True, "agentVisible": True}}  # fmt: skip
    found["conversation"].append(said)
    found["message_count"] = len(found["conversation"])
    path.with_name("20260203_7.json").write_text(json.dumps(found))


def event_log(path: Path) -> None:
    last = lines_of(path)[-1]
    append(path, {"schema_version": 1, "seq": last["seq"] + 1, "time": LATER,
                  "type": "user_message", "text": "Again?"})  # fmt: skip


PROGRAMS: dict[str, Callable[[Path], None]] = {
    "pi": pi, "oh-my-pi": pi, "codex": codex, "claude": claude, "opencode": opencode1,
    "opencode2": opencode2, "event-log": event_log,
    "goose": goose,
}  # fmt: skip


def written(store: Store, session: Session, folder: Path, form: str) -> Path:
    to = exporter(form)
    export = store.export(session, **to.read)
    found = to.write([export], detail=to.taken or to.details[0])
    (document,) = (item for item in found if isinstance(item, Document))
    path = folder / document.name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(document.chunks), encoding="utf-8", newline="")
    return path


def texts(store: Store, session: str) -> list[tuple[str, str | None, str]]:
    return [(m.role, m.kind, m.text) for m in store.messages(session)]


def added(store: Store, session: str, before: int) -> list[tuple[str, str]]:
    """The messages after so many; programs also record events of their own."""
    after = texts(store, session)[before:]
    return [(role, said) for role, kind, said in after if role != "event"]


def usage(store: Store) -> list[tuple[float | None, Tokens]]:
    return [(row.cost, row.tokens) for row in store.usage(by=())]


def check_continued(form: str, store: Store, session: Session, folder: Path) -> None:
    """Continue a session in a program: its import adds a prompt and changes no other."""
    before, counted = texts(store, session.id), usage(store)
    path = written(store, session, folder, form)
    PROGRAMS[form](path)

    (more,) = read_into(store, folder)
    assert isinstance(more, Imported), more
    assert (more.id, more.outcome) == (session.id, "updated")
    assert texts(store, session.id)[: len(before)] == before
    assert added(store, session.id, len(before)) == [("user", "Again?")]
    assert usage(store) == counted


@pytest.mark.parametrize("form", PROGRAMS)
@pytest.mark.parametrize("count", [9, 8, 6, 4])
def test_a_message_that_was_added_there_is_appended(
    form: str, count: int, store: Store, tmp_path: Path
) -> None:
    session = foreign(store, count)
    check_continued(form, store, session, tmp_path)
    (again,) = read_into(store, tmp_path)
    assert isinstance(again, Imported)
    assert again.outcome == "unchanged"
    assert [item.id for item in store.sessions(project=ALL)] == [session.id]


@pytest.mark.parametrize("form", PROGRAMS)
def test_a_fork_comes_back_to_itself(form: str, store: Store, tmp_path: Path) -> None:
    session = forked(store)
    check_continued(form, store, session, tmp_path)


@pytest.mark.parametrize("form", PROGRAMS)
def test_a_session_that_was_not_continued_is_unchanged(
    form: str, store: Store, tmp_path: Path
) -> None:
    session = foreign(store)
    before = texts(store, session.id)
    written(store, session, tmp_path, form)
    (done,) = read_into(store, tmp_path)
    assert isinstance(done, Imported), done
    assert (done.id, done.outcome) == (session.id, "unchanged")
    assert texts(store, session.id) == before


def test_a_copy_in_goose_of_a_session_that_is_not_here_is_its_own(
    store: Store, tmp_path: Path
) -> None:
    path = written(store, foreign(store), tmp_path, "goose")
    goose(path)
    with new_store() as other:
        (done,) = read_into(other, tmp_path)
        assert isinstance(done, Imported)
        assert (done.source_id, done.outcome) == ("20260203_7", "imported")


def spent(path: Path, number: int, **sums: Any) -> None:
    """Continue the export of a session that Goose took, whose sums grow to *sums*."""
    found = json.loads(path.read_text())
    said = {"id": f"there_{number}", "role": "assistant", "created": LATER // 1000 + number,
            "content": [{"type": "text", "text": "Yes"}], "metadata": {}}  # fmt: skip
    found["conversation"].append(said)
    known = {f"accumulated_{key}": value for key, value in sums.items()}
    path.write_text(json.dumps({**found, **known}))


def test_the_costs_of_a_continuation_in_goose_are_added_once(
    store: Store, tmp_path: Path
) -> None:
    """Before 1.50: the sums of the session alone, which begin with those from here."""
    session = foreign(store)
    ((cost, tokens),) = usage(store)
    goose(written(store, session, tmp_path, "goose"))
    (path,) = tmp_path.iterdir()
    begun = json.loads(path.read_text())
    given = begun["accumulated_input_tokens"]
    for number in (1, 2):
        spent(path, number, cost=begun["accumulated_cost"] + 0.25 * number,
              output_tokens=begun["accumulated_output_tokens"] + number,
              input_tokens=given + 100 * number, cache_read_tokens=40 * number)  # fmt: skip
        expected = (
            (cost or 0) + 0.25 * number,
            Tokens(
                (tokens.input or 0) + 60 * number,
                (tokens.output or 0) + number,
                tokens.reasoning,
                (tokens.cache_read or 0) + 40 * number,
                tokens.cache_write,
            ),
        )
        for outcome in ("updated", "unchanged"):
            (done,) = read_into(store, tmp_path)
            assert isinstance(done, Imported)
            assert (done.id, done.outcome) == (session.id, outcome)
            assert usage(store) == [expected]
            assert store.session(session.id).cost == expected[0]
        # The sums are beside the path, whatever is said after them.
        assert [text for _, _, text in texts(store, session.id)][-1] == "Yes"

    with new_store() as other:
        read_into(other, tmp_path)
        sums = json.loads(path.read_text())
        ((paid, used),) = usage(other)
        assert paid == sums["accumulated_cost"]
        assert (used.input or 0) + (used.cache_read or 0) == given + 200

    # What was counted here is where the next continuation begins.
    again = written(store, store.session(session.id), tmp_path / "again", "goose")
    begun = json.loads(again.read_text())["extension_data"]["sessiondb.v0"]
    assert begun["accumulated"]["cost"] == (cost or 0) + 0.5


def test_the_costs_that_answers_of_goose_state_are_theirs(
    store: Store, tmp_path: Path
) -> None:
    """Since 1.50: the sums are those of the answers, and nothing else is added."""
    session = foreign(store)
    ((cost, tokens),) = usage(store)
    goose(written(store, session, tmp_path, "goose"))
    (path,) = tmp_path.iterdir()
    found = json.loads(path.read_text())
    stated = {
        "inputTokens": 100,
        "outputTokens": 10,
        "cacheReadTokens": 40,
        "cost": 0.1,
    }
    answers = [
        {"id": f"there_{number}", "role": "assistant", "created": LATER // 1000 + number,
         "content": [{"type": "text", "text": "Yes"}], "metadata": {"usage": stated}}
        for number in range(3)
    ]  # fmt: skip
    found["conversation"] += answers
    found["accumulated_input_tokens"] += 300
    found["accumulated_output_tokens"] += 30
    found["accumulated_cache_read_tokens"] = 120
    # A sum of fractions is not exactly the sum of their sums.
    found["accumulated_cost"] += 0.1 + 0.1 + 0.1
    path.write_text(json.dumps(found))
    read_into(store, tmp_path)
    ((paid, used),) = usage(store)
    assert paid == pytest.approx((cost or 0) + 0.3)
    assert (used.input, used.cache_read) == ((tokens.input or 0) + 180, (tokens.cache_read or 0) + 120)  # fmt: skip
    found_here = store.messages(session.id, branches=True)
    assert [m.cost for m in found_here if m.text == "Yes"] == [0.1] * 3
    assert "usage" not in {m.kind for m in store.messages(session.id, branches=True)}


@pytest.mark.parametrize("named", [7, [], {}, "", "a\0", None, "x" * 300])
def test_a_session_of_goose_that_names_no_session_is_imported(
    named: Any, store: Store, tmp_path: Path
) -> None:
    path = written(store, foreign(store), tmp_path, "goose")
    goose(path)
    (path,) = tmp_path.iterdir()
    found = json.loads(path.read_text())
    found["extension_data"] = {"sessiondb.v0": {"session": named}}
    path.write_text(json.dumps(found))
    (done,) = read_into(store, tmp_path)
    assert isinstance(done, Imported)
    assert (done.source_id, done.outcome) == ("20260203_7", "imported")


@pytest.mark.parametrize("form", ["codex", "opencode2", "event-log"])
def test_the_content_of_sources_is_written_where_a_context_has_no_other_text(
    form: str, store: Store, tmp_path: Path
) -> None:
    session = store.create_session().id
    given = [context_source("file", f"{name}.md", text=f"Rule {name}") for name in "ab"]
    store.append(session, event("context", *given))
    store.append(session, user("Hi"))
    path = written(store, store.session(session), tmp_path, form)
    assert "Rule a" in path.read_text()
    assert "Rule b" in path.read_text()


@pytest.mark.parametrize("form", ["opencode", "opencode2", "event-log"])
def test_branches_that_are_not_written_are_reported(form: str, store: Store) -> None:
    session = store.create_session(title="Tea").id
    asked = store.append(session, user("How long?"))
    lost = "1 message of branches that are not continued"
    whys = []
    for text in ("And coffee?", "And milk?"):
        store.append(session, user(text), after=asked)
        to = exporter(form)
        for item in to.write([store.export(session, **to.read)], detail="full"):
            if isinstance(item, Document):
                list(item.chunks)
            else:
                whys.append(item.why)
    assert whys.count(lost) == 1


def test_a_session_that_is_deleted_while_it_comes_back_is_skipped(
    store: Store,
) -> None:
    own = store.create_session(title="Mine")
    store.append(own, user("Tea"))

    def read() -> Iterator[SourceMessage]:
        yield SourceMessage(MessageDraft("user", (text("More"),), "other"))
        store.delete(own.id)

    came = SourceSession("goose", own.id, "/a", "1", messages=read())
    other = SourceSession("goose", "b", "/b", "1", messages=messages())
    outcomes = [item.outcome for item in store.ingest([came, other])]  # type: ignore[union-attr]
    assert outcomes == ["diverged", "imported"]
    (again,) = store.ingest([came])
    assert isinstance(again, Imported)
    assert again.outcome == "deleted"
