"""Sessions that were written for another program, continued there, and come back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from sample import Sample
from samples import new_store, read_into
from samples_claude import SAMPLES as CLAUDE
from samples_codex import SAMPLES as CODEX

from sessiondb import ALL, Store, user
from sessiondb.formats import exporter, find
from sessiondb.formats.kit.naming import further_name, message_of, original_id, uuid_of
from sessiondb.formats.registry import handover_targets
from sessiondb.ids import new_message_id, new_session_id
from sessiondb.model import (
    Document,
    Imported,
    Loss,
    MessageDraft,
    PartDraft,
    Session,
    SourceHistory,
    SourceMessage,
    SourcePrompt,
    SourceSession,
)

T0 = 1_700_000_000_000


# -- names ---------------------------------------------------------------------------


def test_our_ids_become_uuids_and_are_found_by_them_again() -> None:
    for name, prefix in ((new_session_id(), "ses_"), (new_message_id(), "msg_")):
        found = uuid_of(name)
        assert str(UUID(found)) == found
        assert original_id(prefix, found) == name
    highest = "ses_7" + "Z" * 25
    assert original_id("ses_", uuid_of(highest)) == highest
    assert uuid_of("ses_" + "0" * 26) == str(UUID(int=0))


@pytest.mark.parametrize(
    "name", ["ses_8" + "Z" * 25, "msg_01hx", "", "\ud800", "ses_3b938957fffeSInhFZ"]
)
def test_other_ids_become_the_same_uuid_each_time(name: str) -> None:
    found = uuid_of(name)
    assert (str(UUID(found)), uuid_of(name)) == (found, found)
    assert found != uuid_of(f"{name}x")


def test_uuids_stay_and_other_names_have_no_original() -> None:
    theirs = "019a8f3e-0000-7000-8000-00000000abcd"
    assert uuid_of(theirs) == theirs
    assert original_id("ses_", "019A8F3E") == "019A8F3E"


def test_a_part_of_a_message_is_named_after_it() -> None:
    assert message_of(further_name("msg-1", 12)) == "msg-1"
    assert message_of("1a2b3c4d") is None


# -- there and back --------------------------------------------------------------------


def written(store: Store, session: Session, folder: Path, form: str = "pi") -> Path:
    to = exporter(form)
    export = store.export(session, **to.read)
    (document,) = (
        item for item in to.write([export], detail="full") if isinstance(item, Document)
    )
    log = folder / document.name
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("".join(document.chunks))
    return log


def continued(log: Path, *texts: str) -> None:
    """Append prompts to a log as pi does."""
    above = json.loads(log.read_text().splitlines()[-1])["id"]
    with log.open("a") as file:
        for number, text in enumerate(texts):
            said = {"role": "user", "content": text, "timestamp": T0}
            record = {
                "type": "message", "id": f"{number:08x}", "parentId": above,
                "timestamp": "2026-01-01T00:00:00.000Z", "message": said,
            }  # fmt: skip
            file.write(json.dumps(record) + "\n")
            above = record["id"]


def rows(store: Store, session: Session) -> list[tuple[str, str]]:
    return [(m.role, m.text) for m in store.messages(session.id)]


def native(store: Store) -> Session:
    session = store.create_session(title="Tea", directory="/home/ada/tea")
    store.append(session, user("How long?"))
    tool = PartDraft(
        "tool", "4 minutes", tool="clock", call_id="c1", input={"of": "tea"},
        status="completed",
    )  # fmt: skip
    store.append(session, MessageDraft("assistant", (tool,)))
    return store.session(session.id)


def given() -> SourceSession:
    parts = (
        PartDraft("text", "It is ready."),
        PartDraft("tool", "ok", tool="pour", call_id="c2", status="completed"),
    )
    return SourceSession(
        "goose", "20260101_1", path="db", digest="1", directory="/home/ada/tea",
        time_created=T0,
        messages=(
            SourceMessage(MessageDraft("user", (PartDraft("text", "Is it?"),), "1")),
            SourceMessage(MessageDraft("assistant", parts, "2")),
        ),
    )  # fmt: skip


def foreign(store: Store) -> Session:
    (done,) = store.ingest([given()])
    assert isinstance(done, Imported)
    return store.session(done.id)


@pytest.mark.parametrize("origin", [native, foreign])
def test_messages_that_are_added_there_are_appended_to_the_original(
    origin: Any, store: Store, tmp_path: Path
) -> None:
    session = origin(store)
    before = rows(store, session)
    log = written(store, session, tmp_path)
    header = json.loads(log.read_text().splitlines()[0])
    assert header["id"] == uuid_of(session.id)
    assert header["id"] in log.name

    (same,) = read_into(store, tmp_path)
    assert isinstance(same, Imported)
    assert (same.id, same.outcome) == (session.id, "unchanged")
    assert rows(store, session) == before

    continued(log, "And now?", "Really?")
    (more,) = read_into(store, tmp_path)
    assert isinstance(more, Imported)
    assert (more.id, more.outcome) == (session.id, "updated")
    assert rows(store, session) == [*before, ("user", "And now?"), ("user", "Really?")]

    (again,) = read_into(store, tmp_path)
    assert isinstance(again, Imported)
    assert again.outcome == "unchanged"
    prompts = [prompt.text for prompt in store.prompts(project=ALL)]
    assert prompts.count("Really?") == prompts.count("And now?") == 1
    assert len(set(prompts)) == len(prompts)
    assert [item.id for item in store.sessions(project=ALL).items] == [session.id]


@pytest.mark.parametrize("form", ["pi", "claude", "codex"])
@pytest.mark.parametrize("origin", [native, foreign])
def test_no_message_is_doubled_if_none_was_added(
    origin: Any, form: str, store: Store, tmp_path: Path
) -> None:
    session = origin(store)
    before = rows(store, session)
    written(store, session, tmp_path, form)
    (done,) = read_into(store, tmp_path)
    assert isinstance(done, Imported)
    assert (done.id, done.outcome) == (session.id, "unchanged")
    assert rows(store, session) == before


def test_a_session_that_was_removed_here_does_not_come_back(
    store: Store, tmp_path: Path
) -> None:
    session = native(store)
    written(store, session, tmp_path)
    store.delete(session.id)
    (done,) = read_into(store, tmp_path)
    assert isinstance(done, Imported)
    assert done.outcome == "deleted"


def test_a_fork_is_written_under_its_own_name_and_comes_back_to_it(
    store: Store, tmp_path: Path
) -> None:
    session = foreign(store)
    fork = store.fork(session.id)
    before = rows(store, session)
    log = written(store, store.session(fork.id), tmp_path)
    continued(log, "In the fork")
    (done,) = read_into(store, tmp_path)
    assert isinstance(done, Imported)
    assert (done.id, done.outcome) == (fork.id, "updated")
    assert rows(store, store.session(fork.id)) == [*before, ("user", "In the fork")]
    assert rows(store, session) == before


def test_elsewhere_the_log_is_a_session_of_that_program(
    store: Store, tmp_path: Path
) -> None:
    log = written(store, native(store), tmp_path)
    with new_store() as other:
        (done,) = read_into(other, tmp_path)
        assert isinstance(done, Imported)
        assert (done.source, done.outcome) == ("pi", "imported")
        assert done.source_id in log.name


@pytest.mark.parametrize("form", ["pi", "oh-my-pi", "codex", "claude"])
def test_in_a_new_database_a_copy_may_come_before_its_original(
    form: str, store: Store, tmp_path: Path
) -> None:
    session = foreign(store)
    log = written(store, session, tmp_path, form)
    typed = SourcePrompt("Is it?", T0, uuid_of(session.id), "/home/ada/tea")
    history = SourceHistory(form, "history", "1", (typed,))
    with new_store() as other:
        copies = [item for found in find(log) for item in found.read()]
        before, after = other.ingest([*copies, history, given()])
        assert isinstance(before, Imported)
        assert (before.source, before.outcome) == ("goose", "imported")
        assert isinstance(after, Imported)
        assert (after.id, after.source_id) == (before.id, uuid_of(session.id))
        assert rows(other, other.session(before.id)) == rows(store, session)
        (prompt,) = other.prompts(project=ALL)
        assert (prompt.text, prompt.session_id) == ("Is it?", before.id)
        again = other.ingest([*copies, history, given()])
        assert {done.outcome for done in again} == {"unchanged"}  # type: ignore[union-attr]


# -- one file ----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("sample", [*CLAUDE.values(), *CODEX.values()])
def test_a_program_is_given_a_session_as_one_file(
    sample: Sample, store: Store, tmp_path: Path
) -> None:
    """Subagents of Claude Code and reverts of Codex have files of their own."""
    sample.write(tmp_path)
    read_into(store, tmp_path)
    for form in handover_targets():
        to = exporter(form)
        detail = to.taken or to.details[0]
        for session in store.sessions(project=ALL):
            # A program is not given what it has.
            if form == session.source and to.holds is None:
                continue
            losses = []
            documents = 0
            for item in to.write([store.export(session, **to.read)], detail=detail):
                if isinstance(item, Loss):
                    losses.append(item)
                else:
                    documents += bool(list(item.chunks))
            assert documents == 1, (form, session.source_id)
            assert {loss.session_id for loss in losses} <= {session.id}


@pytest.mark.parametrize("form", [*handover_targets(), "event-log"])
def test_the_text_of_an_event_that_a_model_is_shown_is_written_or_reported_as_lost(
    form: str,
) -> None:
    added = PartDraft("text", "Be brief.", synthetic=True)
    command = PartDraft(
        "tool", "a.py\n", tool="bash", input={"command": "ls src"}, status="completed"
    )
    image = PartDraft("file", data={"mime": "image/png", "url": "file:///tea.png"})
    with new_store() as store:
        session = store.create_session(directory="/home/ada/tea")
        store.append(session, user("Tea?"))
        for part in (added, command, image):
            shown = MessageDraft("event", (part,), kind="custom_message")
            store.append(session, shown)
        to = exporter(form)
        texts, whys = [], []
        for item in to.write([store.export(session, **to.read)], detail="full"):
            if isinstance(item, Loss):
                whys.append(item.why)
            else:
                texts.append(b"".join(item.encoded()).decode())

    (text,) = texts
    assert "Be brief." in text
    assert "ls src" in text
    assert "a.py" in text
    named = {
        "1 file in events of kind custom_message",
        "1 event of kind custom_message",
    }
    assert named.intersection(whys) or "tea.png" in text
