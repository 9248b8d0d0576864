"""A fork is a self-contained copy that shares its blobs and is never counted twice."""

from __future__ import annotations

import re

import pytest
from backends import Backend

from sessiondb import ALL, AsyncStore, Store, assistant, text, tool, tool_result, user
from sessiondb.errors import ConflictError, InvalidInputError, NotFoundError
from sessiondb.maintenance import check
from sessiondb.model import FileDiff, Message, MessageDraft, Todo


def result(call_id: str, output: str) -> MessageDraft:
    """A result that is a record of its own."""
    return MessageDraft("tool", (tool_result(call_id, output),))


def words(store: Store, session: object) -> list[str]:
    return [item.text for item in store.messages(session)]  # type: ignore[arg-type]


def content(message: Message) -> tuple[object, ...]:
    """Return the content that a copy has in common with its original."""
    parts = [
        (p.id, p.type, p.tool, p.status, p.text, p.input_json, p.data)
        for p in message.parts
    ]
    return (message.seq, message.id, message.parent_seq, message.turn_id, message.role,
            message.cost, message.time_created, message.data, parts)  # fmt: skip


@pytest.fixture
def plan(store: Store) -> str:
    """A session of four messages and a branch: 1 2 3 4, and 5 after 2."""
    with store.effects() as fx:
        session = fx.create_session(
            title="Plan", agent="build", provider="p", model="m"
        )
        fx.append(session, user("one"))
        done = tool("bash", {"cmd": "ls"}, call_id="c", output="x" * 3000)
        fx.append(session, assistant("two", done), cost=0.5, tokens={"input": 7})
        fx.append(session, user("three"))
        fx.append(session, assistant("four"), cost=0.25)
    store.append(session, user("five"), after=2)
    store.set_leaf(session, 4)
    return session.id


def test_a_fork_copies_the_path_with_ids_seqs_times_and_content(
    store: Store, plan: str
) -> None:
    fork = store.fork(plan)
    original = store.messages(plan)
    copies = store.messages(fork)
    assert [content(item) for item in copies] == [content(item) for item in original]
    assert all(item.inherited for item in copies)
    assert all(part.inherited for item in copies for part in item.parts)
    stored = store.session(fork)
    assert (stored.parent_id, stored.relation, stored.parent_seq) == (plan, "fork", 4)
    assert stored.root_id == plan == store.session(plan).root_id
    assert (stored.agent, stored.provider_id, stored.model_id) == ("build", "p", "m")
    assert (stored.message_count, stored.cost, stored.cost_inherited) == (4, None, 0.75)
    assert stored.tokens_input is None


def test_a_fork_is_cut_at_a_message_or_before_one(store: Store, plan: str) -> None:
    assert words(store, store.fork(plan, at=2)) == ["one", "two"]
    assert words(store, store.fork(plan, before=3)) == ["one", "two"]
    assert words(store, store.fork(plan, at=5)) == ["one", "two", "five"]
    empty = store.fork(plan, before=1)
    assert words(store, empty) == []
    assert store.session(empty).parent_seq is None
    message = store.message(plan, 3)
    assert words(store, store.fork(plan, at=message)) == ["one", "two", "three"]
    assert words(store, store.fork(plan, at=message.id)) == ["one", "two", "three"]
    with pytest.raises(NotFoundError):
        store.fork(plan, at=99)
    with pytest.raises(InvalidInputError):
        store.fork(plan, at=1, before=2)


def test_a_fork_with_branches_has_all_branches(store: Store, plan: str) -> None:
    fork = store.fork(plan, branches=True)
    assert [m.text for m in store.messages(fork, branches=True)] == [
        "one", "two", "three", "four", "five",
    ]  # fmt: skip
    assert words(store, fork) == ["one", "two", "three", "four"]
    store.set_leaf(fork, 5)
    assert words(store, fork) == ["one", "two", "five"]
    part = store.fork(plan, at=5)
    assert len(store.messages(part, branches=True)) == 3


def test_a_fork_takes_todos_settings_diffs_and_labels_along(
    store: Store, plan: str
) -> None:
    store.set_todos(plan, [Todo("write", "done", "high", "t1"), "test"])
    store.set_permission(plan, {"bash": "ask"})
    store.set_metadata(plan, {"theme": "dark"})
    store.set_share(plan, "https://example.org/s", secret="hush")
    store.set_diffs(
        plan, [FileDiff("a.py", 2, before=b"a", after=b"b"), FileDiff("b.py", 4)]
    )
    store.label(plan, 2, "kept")
    store.label(plan, 4, "behind the cut")
    fork = store.fork(plan, at=3)
    assert store.todos(fork) == store.todos(plan)
    stored = store.session(fork)
    assert (stored.permission, stored.metadata) == ({"bash": "ask"}, {"theme": "dark"})
    assert stored.share_url is None
    assert store.diffs(fork) == [FileDiff("a.py", 2, before=b"a", after=b"b")]
    assert [(item.seq, item.label) for item in store.labels(fork)] == [(2, "kept")]


def test_open_work_is_closed_in_the_copy_and_stays_open_in_the_original(
    store: Store,
) -> None:
    session = store.create_session()
    calls = (tool("a", {}, call_id="1"), tool("b", {}, call_id="2", status="running"))
    message = store.append(session, assistant("so", *calls), open=True)
    fork = store.fork(session)
    (copy,) = store.messages(fork)
    assert (copy.finish, copy.time_completed is not None) == ("cancelled", True)
    assert [(p.status, p.outcome) for p in copy.parts[1:]] == [
        ("error", "interrupted")
    ] * 2
    assert all(p.time_ended for p in copy.parts[1:])
    (original,) = store.messages(session)
    assert (original.finish, original.time_completed) == (None, None)
    assert [p.status for p in original.parts[1:]] == ["pending", "running"]
    store.settle(session, "1", output="late")
    store.finish(session, message, cost=1.0)
    assert store.messages(fork) == [copy]
    assert store.session(session).cost == 1.0
    assert store.unfinished()[0].session.id == session.id
    assert fork.id not in [item.session.id for item in store.unfinished()]


def test_a_call_whose_result_lies_behind_the_cut_loses_it(store: Store) -> None:
    session = store.create_session()
    store.append(session, assistant(tool("a", {}, call_id="1")))
    store.append(session, assistant(tool("b", {}, call_id="2")))
    store.append(session, result("1", "first " * 400))
    store.append(session, result("2", "second"))
    complete = store.fork(session)
    assert [m.parts[0].status for m in store.messages(complete)[:2]] == [
        "completed"
    ] * 2
    cut = store.fork(session, at=3)
    one, two, node = (item.parts[0] for item in store.messages(cut))
    assert (one.status, one.text, node.text) == (
        "completed",
        "first " * 400,
        "first " * 400,
    )
    assert (two.status, two.outcome, two.text) == ("error", "interrupted", None)
    assert check(store) == []


def test_a_call_id_that_is_used_again_loses_only_its_own_result(store: Store) -> None:
    session = store.create_session()
    for output in ("one", "two"):
        store.append(session, assistant(tool("a", {}, call_id="call_0")))
        store.append(session, result("call_0", output))
    first, _, last = (
        item.parts[0] for item in store.messages(store.fork(session, at=3))
    )
    assert (first.status, first.text) == ("completed", "one")
    assert (last.status, last.outcome, last.text) == ("error", "interrupted", None)


def test_forks_are_numbered_within_the_family(store: Store, plan: str) -> None:
    first = store.fork(plan)
    second = store.fork(first)
    third = store.fork(plan)
    titles = [store.session(item).title for item in (first, second, third)]
    assert titles == ["Plan (fork #1)", "Plan (fork #2)", "Plan (fork #3)"]
    named = store.fork(plan, title="Another way")
    assert store.session(named).title == "Another way"
    assert store.session(store.fork(named)).title == "Another way (fork #1)"
    store.set_title(third, "100% other (fork #7)")
    assert store.session(store.fork(third)).title == "100% other (fork #8)"
    store.delete(second)
    assert store.session(store.fork(plan)).title == "Plan (fork #2)"


def test_forks_of_a_session_with_a_title_of_any_length_are_numbered(
    store: Store, plan: str
) -> None:
    title = "%_" * 60_000
    store.set_title(plan, title)
    first = store.session(store.fork(plan))
    assert first.title == f"{title} (fork #1)"
    assert store.session(store.fork(first)).title == f"{title} (fork #2)"


@pytest.mark.parametrize("verb", ["fork", "delete"])
async def test_the_session_may_be_given_by_name(backend: Backend, verb: str) -> None:
    async with AsyncStore.open(backend.fresh()) as store:
        session = await store.create_session()
        await store.append(session, user("one"))
        made = await getattr(store, verb)(session=session.id)
        assert len(await store.sessions(project=ALL)) == (2 if verb == "fork" else 0)
        with pytest.raises(TypeError, match="'session'"):
            await getattr(store, verb)()
    with Store.open(backend.fresh()) as store_:
        session = store_.create_session()
        store_.append(session, user("one"))
        made = getattr(store_, verb)(session=session)
        assert len(store_.sessions(project=ALL)) == (2 if verb == "fork" else 0)
        assert (made is None) == (verb == "delete")
        with pytest.raises(TypeError, match="'session'"):
            getattr(store_, verb)()


def test_a_session_without_a_title_has_numbered_forks_too(store: Store) -> None:
    session = store.create_session()
    fork = store.fork(session)
    titles = [store.session(item).title for item in (fork, store.fork(fork))]
    assert titles == ["(fork #1)", "(fork #2)"]


def test_a_fork_continues_independently(store: Store, plan: str) -> None:
    fork = store.fork(plan, at=2)
    added = store.append(fork, user("another way"))
    assert added.seq == 6, "numbers that the original gave out are not given out again"
    assert words(store, fork) == ["one", "two", "another way"]
    assert words(store, plan) == ["one", "two", "three", "four"]
    again = store.fork(fork)
    assert [item.inherited for item in store.messages(again)] == [True] * 3
    assert store.session(again).root_id == plan


@pytest.mark.parametrize("gone", ["truncated", "deleted", "reaped", "in the shell"])
def test_a_fork_stays_intact_when_its_parent_changes_or_is_removed(
    store: Store, backend: Backend, plan: str, gone: str
) -> None:
    fork = store.fork(plan, branches=True)
    before = [content(item) for item in store.messages(fork)]
    if gone == "truncated":
        store.truncate(plan, after=None)
    elif gone == "in the shell":
        # A person may detach by hand, as one statement.
        detach = "UPDATE session SET parent_id = NULL WHERE id = ?"
        backend.run(store, detach, fork.id)
        backend.run(store, "DELETE FROM session WHERE id = ?", plan)
    else:
        store.delete(plan, keep_forks=True)
        if gone == "reaped":
            store.reap()
    assert [content(item) for item in store.messages(fork)] == before
    if gone != "in the shell":
        assert store.session(fork).cost == 0.75
        assert check(store) == []


def test_blobs_are_shared(store: Store, backend: Backend) -> None:
    session = store.create_session()
    with store.effects() as fx:
        for number in range(20):
            fx.append(session, assistant(tool("cat", {}, output=f"{number} " * 5000)))

    size = backend.size(store)
    for _ in range(3):
        store.fork(session)
    assert backend.rows(store, "SELECT count(*) FROM blob") == [(20,)]
    assert backend.size(store) < size * 1.35


def test_the_same_fork_asked_for_again_is_the_same_fork(
    store: Store, plan: str
) -> None:
    one = store.fork(plan, at=2, id="ses_mine")
    store.append(one, user("later"))
    assert store.fork(plan, at=2, id="ses_mine") == one
    assert words(store, one) == ["one", "two", "later"]
    for other in ({"at": 3}, {"before": 2}):
        with pytest.raises(ConflictError):
            store.fork(plan, id="ses_mine", **other)
    with pytest.raises(ConflictError):
        store.fork(one, id="ses_mine")
    with pytest.raises(ConflictError):
        store.fork(one, id=plan)
    store.delete(one)
    store.fork(plan, at=2, id="ses_mine")
    assert words(store, one) == ["one", "two"]


def test_a_unit_can_write_fork_and_continue_writing(store: Store) -> None:
    with store.effects() as fx:
        session = fx.create_session(title="x")
        fx.append(session, assistant("a"), cost=1.0)
        fork = fx.fork(session)
        fx.append(fork, assistant("b"), cost=2.0)
        fx.append(session, assistant("c"), cost=4.0)
    assert words(store, fork) == ["a", "b"]
    assert words(store, session) == ["a", "c"]
    assert [store.session(item).cost for item in (session, fork)] == [5.0, 2.0]
    assert check(store) == []


def test_a_fork_may_live_in_another_directory(store: Store, tmp_path: object) -> None:
    session = store.create_session(directory="/")
    store.append(session, user("x"))
    fork = store.fork(session, directory=str(tmp_path))
    stored = store.session(fork)
    assert stored.directory == str(tmp_path)
    assert stored.project_id != store.session(session).project_id
    assert [item.id for item in store.sessions(project=str(tmp_path))] == [fork.id]


def test_slugs_of_forks_are_unique_in_their_project(store: Store, plan: str) -> None:
    slugs = {store.session(store.fork(plan)).slug for _ in range(10)}
    assert len(slugs) == 10
    assert all(re.fullmatch(r"[a-z]+-[a-z]+-[0-9a-z]+", slug) for slug in slugs)


def test_comparing_says_what_is_shared_and_what_is_not(store: Store, plan: str) -> None:
    fork = store.fork(plan, at=2)
    store.append(fork, user("another"))
    found = store.compare(plan, fork)
    assert [item.seq for item in found.common] == [1, 2]
    assert [item.text for item in found.only_a] == ["three", "four"]
    assert [item.text for item in found.only_b] == ["another"]
    sibling = store.fork(plan, at=3)
    between = store.compare(fork, sibling)
    assert ([m.seq for m in between.common], [m.seq for m in between.only_b]) == (
        [1, 2],
        [3],
    )
    store.delete(plan, keep_forks=True)
    store.reap()
    assert [item.seq for item in store.compare(fork, sibling).common] == [1, 2]
    stranger = store.create_session()
    store.append(stranger, user("one"))
    assert store.compare(fork, stranger).common == ()


def test_an_original_that_is_named_by_prefix_is_found(store: Store, plan: str) -> None:
    assert store.session(store.fork(plan[-6:])).parent_id == plan
    session = store.create_session(title="long")
    store.append(session, assistant(text("x"), tool("a", {"b": 1}, output="ok")))
    assert (
        store.session(store.fork(store.session(session).slug)).parent_id == session.id
    )


def test_a_fork_owns_what_its_parent_loses_however_far_apart(store: Store) -> None:
    parent = store.create_session(directory="/here")
    base = store.append(parent, user("go"))
    early = store.append(parent, assistant("early"))
    store.append(parent, user("elsewhere"), after=None)
    for number in range(80):
        store.append(parent, assistant(f"{number}"))
    store.append(parent, assistant("late"), after=early)
    fork = store.fork(parent, branches=True)

    store.truncate(parent, after=base)
    copies = store.messages(fork, branches=True)
    assert [m.text for m in copies if not m.inherited] == ["early", "late"]
    hits = {hit.session.id for word in ("early", "late") for hit in store.search(word)}
    assert hits == {fork.id}
    assert check(store) == []


def test_ids_that_agree_by_chance_in_a_family_are_not_copies(store: Store) -> None:
    parent = store.create_session(directory="/here")
    agents = [store.create_session(parent=parent) for _ in range(3)]
    for number, agent in enumerate(agents):
        words = f"word{number}"
        store.append(agent, user(words, id="same"), time=1_700_000_000_000)

    store.truncate(agents.pop(), after=None)
    for number, agent in enumerate(agents):
        assert [m.inherited for m in store.messages(agent)] == [False]
        assert [h.session.id for h in store.search(f"word{number}")] == [agent.id]
    assert check(store) == []


def test_a_fork_by_another_program_has_not_the_version_of_the_original(
    backend: Backend,
) -> None:
    place = backend.fresh()
    with Store.open(place, source="kettle") as store:
        session = store.create_session(version="1.2")
        assert store.session(store.fork(session)).version == "1.2"
    with Store.open(place, source="teapot") as store:
        fork = store.session(store.fork(session))
        assert (fork.source, fork.version) == ("teapot", None)


def test_a_fork_is_cut_at_a_label_of_its_session(store: Store) -> None:
    session = store.create_session()
    _, second, third = (store.append(session, user(text)) for text in "abc")
    store.label(session, second, "plan")
    fork = store.fork(session, at="plan")
    assert [message.text for message in store.messages(fork)] == ["a", "b"]
    assert store.fork(session, at="plan", id=fork.id).id == fork.id, "the same fork"
    before = store.fork(session, before="plan")
    assert [message.text for message in store.messages(before)] == ["a"]
    with store.effects() as fx:
        fx.label(session, third, "end")
        whole = fx.fork(session, at="end")
    assert len(store.messages(whole)) == 3
    with pytest.raises(NotFoundError, match="no message or label 'plna'"):
        store.fork(session, at="plna")


def test_an_id_takes_precedence_over_a_label_and_a_handle_is_no_label(
    store: Store,
) -> None:
    session, other = store.create_session(), store.create_session()
    first = store.append(session, user("a", id="one"))
    second = store.append(session, user("b"))
    store.label(session, second, first.id)
    assert len(store.messages(store.fork(session, at=first.id))) == 1

    foreign = store.append(other, user("c", id="two"))
    store.label(session, second, foreign.id)
    assert len(store.messages(store.fork(session, at=foreign.id))) == 2
    with pytest.raises(NotFoundError):
        store.fork(session, at=foreign)


@pytest.mark.parametrize("place", [1, 2, 3, 4, 5])
async def test_an_export_at_a_message_is_what_a_fork_there_has(
    store: Store, backend: Backend, plan: str, place: int
) -> None:
    store.label(plan, 2, "kept")
    fork = store.fork(plan, at=place)
    exported = store.export(plan, at=place)
    assert [content(item) for item in exported.messages] == [
        content(item) for item in store.messages(fork)
    ]
    session, copy = exported.session, store.session(fork)
    for name in ("message_count", "prompt_count", "leaf_seq", "last_seq"):
        assert getattr(session, name) == getattr(copy, name)
    # It spent itself what the fork inherited.
    assert (session.cost, session.id) == (copy.cost_inherited, plan)
    assert [item.seq for item in exported.labels] == [
        item.seq for item in store.labels(fork)
    ]
    async with AsyncStore.open(backend.place_of(store)) as other:
        again = await other.export(plan, at=place)
        assert again.session == session
        assert list(again.messages) == list(store.export(plan, at=place).messages)
        with pytest.raises(InvalidInputError, match="one path"):
            await other.export(plan, at=place, branches=True)


def test_a_call_whose_result_is_behind_the_place_of_an_export_is_interrupted(
    store: Store,
) -> None:
    session = store.create_session()
    for output in ("one", "two"):
        store.append(session, assistant(tool("a", {}, call_id="call_0")))
        store.append(session, result("call_0", output))
    first, _, last = (
        item.parts[0] for item in store.export(session, at=3, resolve=False).messages
    )
    assert (first.status, first.text) == ("completed", "one")
    assert (last.status, last.outcome, last.text) == ("error", "interrupted", None)


def test_sessions_are_compared_up_to_a_message(store: Store, plan: str) -> None:
    fork = store.fork(plan, at=3)
    for a, b, end_a, end_b, sides in (
        (plan, plan, 2, 4, (2, 0, 2)),
        (plan, plan, 4, 5, (2, 2, 1)),
        (plan, fork, 2, None, (2, 0, 1)),
        (fork, plan, None, "kept", (2, 1, 0)),
    ):
        store.label(plan, 2, "kept")
        compared = store.compare(a, b, at_a=end_a, at_b=end_b)
        assert sides == tuple(
            map(len, (compared.common, compared.only_a, compared.only_b))
        )
    with pytest.raises(NotFoundError):
        store.compare(plan, plan, at_a=99)
