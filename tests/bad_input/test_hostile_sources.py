"""The gate of an import: each field that a reader can fill × each value that none should.

Every case is a session of its own between two good ones. A value that is refused is one
`Problem`, which names the field, and costs its own session or message; anything else is
imported. Nothing is half written, and importing it all again says the same.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import pytest

from sessiondb import Store, user
from sessiondb.maintenance import check
from sessiondb.model import (
    FileDiff,
    Imported,
    MessageDraft,
    PartDraft,
    Problem,
    Prompt,
    SourceMessage,
    SourceProject,
    SourceSession,
    StoredMessage,
    StoredSession,
    TerminalUse,
    Todo,
    Tokens,
)

pytestmark = pytest.mark.slow

T0 = 1_700_000_000_000


def _nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


HOSTILE: dict[str, Any] = {
    "none": None, "true": True, "small": 5, "negative": -1, "64 bits": (1 << 63) - 1,
    "70 bits": 1 << 70, "5000 digits": 10**5000, "nan": math.nan, "infinite": math.inf,
    "bytes": b"x", "list": [1], "object": {"a": 1}, "set": {1}, "instance": object(), "": "",
    "nul": "a\0b", "surrogate": "a\ud800b", "escape": "a\x1bb", "long": "x" * 300,
    "deep": _nested(1000),
}  # fmt: skip
#: Values that a field of each kind accepts, besides the intended ones.
TEXT = {"", "nul", "surrogate", "escape", "long"}
TAKES: dict[str, set[str]] = {
    "nothing": set(),
    "none": {"none"},
    "id": {"none"},
    "namespace": {""},
    "text": {"none"} | TEXT,
    "filled text": TEXT - {""},
    "exact text": {"escape", "long"},
    "path": {"none", "", "escape", "long"},
    "integer": {"none", "small", "negative", "64 bits"},
    "seq": {"small"},
    "time": {"none", "small"},
    "count": {"none", "small"},
    "cost": {"none", "small"},
    "JSON": {
        "none",
        "true",
        "small",
        "negative",
        "64 bits",
        "70 bits",
        "list",
        "object",
    }
    | TEXT,
    "data": {"none", "object"},
    "object": {"object"},
    "content": {"none", "bytes"},
    "flag": {"true"},
    "anything": set(HOSTILE),
}
SESSION = {
    "source": "nothing", "source_id": "nothing", "path": "filled text", "digest": "exact text",
    "messages": "messages", "title": "text", "title_source": "nothing", "directory": "path",
    "worktree": "path", "vcs": "text", "root_commit": "text", "remote": "text", "version": "text",
    "agent": "text", "provider_id": "text", "model_id": "text", "parent_source_id": "id",
    "relation": "none", "parent_message": "id", "call_id": "text", "leaf": "id",
    "share_url": "text", "scope": "id", "revert": "JSON", "permission": "JSON", "metadata": "data",
    "summary_additions": "integer", "summary_deletions": "integer", "summary_files": "integer",
    "summary_diffs": "JSON", "todos": "none", "diffs": "none", "time_created": "time",
    "time_updated": "time", "time_compacting": "time", "time_archived": "time",
    "size": "integer", "mtime_ns": "integer", "data": "data", "stored": "none", "project": "none",
    "complete": "none", "terminals": "nothing", "alias": "id", "namespace": "namespace",
    "message_count": "integer", "may_move": "flag", "is_excerpt": "flag",
    "extension_rows": "messages",
}  # fmt: skip
STORED = {
    "id": "nothing", "native": "flag", "slug": "id", "root_id": "id", "parent_id": "id",
    "parent_seq": "optional seq", "leaf": "id", "last_seq": "seq", "revision": "seq",
    "labels": "nothing", "time_detached": "time", "prompts": "nothing", "versions": "nothing",
    "seen": "text", "deleted": "none", "diff_messages": "nothing", "model_source": "none", "time_imported": "time",
}  # fmt: skip
TAKES["optional seq"] = {"none", "small"}
TODO = {
    "content": "text", "status": "text", "priority": "text", "id": "text",
    "time_created": "time", "time_updated": "time",
}  # fmt: skip
DIFF = {
    "path": "filled text", "seq": "seq", "patch": "text", "additions": "integer",
    "deletions": "integer", "before": "content", "after": "content",
}  # fmt: skip
SOURCE_MESSAGE = {
    "draft": "nothing", "parent": "id", "alias": "id", "usage_id": "text",
    "labels": "nothing", "unlabelled": "nothing", "open": "flag", "timeless": "flag", "stored": "anything",
}  # fmt: skip
STORED_MESSAGE = {
    "seq": "seq",
    "usage_key": "id",
    "usage_name": "text",
    "inherited": "flag",
}
MESSAGE = {
    "role": "nothing", "parts": "nothing", "id": "nothing", "kind": "text", "turn_id": "id",
    "agent": "text", "provider_id": "text", "model_id": "text", "response_id": "text",
    "cost": "cost", "tokens": "none", "finish": "none", "error": "JSON", "time_created": "time",
    "time_completed": "time", "data": "data",
}  # fmt: skip
TOKENS = dict.fromkeys(Tokens.__slots__, "count")
PART = {
    "type": "nothing", "text": "text", "tool": "text", "call_id": "text", "status": "none",
    "outcome": "none", "title": "text", "input": "JSON", "data": "object", "id": "id",
    "time_created": "time", "time_updated": "time", "time_started": "time", "time_ended": "time",
    "synthetic": "flag",
}  # fmt: skip
PROMPT = {
    "id": "nothing", "text": "filled text", "directory": "path", "project_id": "anything",
    "session_id": "anything", "source": "nothing", "time_created": "required time",
}  # fmt: skip
PROJECT = {
    "name": "text", "permission": "JSON", "sandboxes": "nothing", "time_created": "none",
    "time_initialized": "none", "record": "object",
}  # fmt: skip
TAKES["required time"] = {"small"}
USE = {"terminal": "nothing", "directory": "exact text", "time": "required time"}
TAKES["messages"] = set()
TABLES = {
    SourceSession: SESSION, StoredSession: STORED, Todo: TODO, FileDiff: DIFF,
    SourceMessage: SOURCE_MESSAGE, StoredMessage: STORED_MESSAGE, MessageDraft: MESSAGE,
    Tokens: TOKENS, PartDraft: PART, Prompt: PROMPT, SourceProject: PROJECT,
    TerminalUse: USE,
}  # fmt: skip

#: Numbers that cost a message nothing but their column.
KEPT = {"negative", "64 bits", "70 bits", "5000 digits", "nan", "infinite"}

#: Differences in our own logs, which have no projects.
OWN = {SourceMessage: {"stored": "nothing"}, SourceSession: {"project": "anything"}}


@dataclass
class Case:
    """A session with one odd value, and its expected outcome."""

    name: str
    field: str
    source: SourceSession
    #: Whether it is here afterwards, with how many messages, and how many problems it makes.
    here: bool
    messages: int
    problems: int


def _message(own: bool, number: int, session: str) -> SourceMessage:
    # With ids of its own, or the messages of all sessions were copies of one another.
    names = [f"{session}/{n}" for n in range(number + 1)]
    draft = MessageDraft(
        "user", (PartDraft("text", "hello"),), names[-1], time_created=T0
    )
    stored = StoredMessage(number) if own else None
    return SourceMessage(draft, parent=names[-2] if number > 1 else None, stored=stored)


def _session(own: bool, name: str, *messages: Any, **fields: Any) -> SourceSession:
    stored = StoredSession(name, False, last_seq=2) if own else None
    given = messages or (_message(own, 1, name), _message(own, 2, name))
    source = SourceSession(
        "elsewhere", name, f"/elsewhere/{name}", f"digest of {name}", given, title="A title",
        directory="/elsewhere/project", time_created=T0, stored=stored,
    )  # fmt: skip
    return replace(source, **fields)


def _cases(own: bool, group: type) -> Iterator[Case]:
    """Yield a case for each field of *group* and each hostile value."""
    table = TABLES[group] | (OWN.get(group, {}) if own else {})
    for field, kind in table.items():
        for what, value in HOSTILE.items():
            name = f"{field.replace('_', '-')}/{what.replace(' ', '-') or 'empty'}"
            taken = what in TAKES[kind]
            partly = group in (
                SourceMessage,
                StoredMessage,
                MessageDraft,
                Tokens,
                PartDraft,
            )
            source = _with(own, group, name, {field: value})
            kept = partly and kind in ("time", "count", "cost") and what in KEPT
            messages = 2 if taken or kept or not partly else 1
            here = taken or partly or group in (Prompt, SourceProject)
            problems = int(not taken)
            if field == "project" or (field == "prompts" and what in ("list", "deep")):
                here = True
            if kind == "messages" and what in ("list", "set", "deep"):
                here, messages = True, 0 if field == "messages" else 2
            yield Case(name, field, source, here, messages, problems)


def _with(own: bool, group: type, name: str, odd: dict[str, Any]) -> SourceSession:
    """Return a session whose record of type *group* has an *odd* value."""
    of = StoredSession(name, False, last_seq=2)
    prompt = Prompt(f"p {name}", "typed", None, None, name, "elsewhere", T0)
    use = TerminalUse("tty", "/elsewhere", T0)
    fields: dict[type, Callable[[], dict[str, Any]]] = {
        SourceSession: lambda: odd,
        StoredSession: lambda: {"stored": replace(of, **odd)},
        SourceProject: lambda: {"project": replace(SourceProject("A name"), **odd)},
        Todo: lambda: {"todos": (Todo("first"), replace(Todo("second"), **odd))},
        TerminalUse: lambda: {"terminals": (replace(use, **odd),)},
        FileDiff: lambda: {"diffs": (replace(FileDiff("a.py"), **odd),)},
        Prompt: lambda: {"stored": replace(of, prompts=(replace(prompt, **odd),))},
    }
    if group in fields:
        return _session(own, name, **fields[group]())
    return _session(
        own, name, _message(own, 1, name), _odd_message(own, group, name, odd)
    )


def _odd_message(
    own: bool, group: type, name: str, odd: dict[str, Any]
) -> SourceMessage:
    message = _message(own, 2, name)
    if group is SourceMessage:
        return replace(message, **odd)
    if group is StoredMessage:
        return replace(message, stored=replace(StoredMessage(2), **odd))
    if group is Tokens:
        odd = {"tokens": Tokens(**odd)}
    elif group is PartDraft:
        odd = {"parts": (replace(PartDraft("text", "hello"), **odd),)}
    return replace(message, draft=replace(message.draft, **odd))


GROUPS = [(False, group) for group in TABLES if "Stored" not in group.__name__]
GROUPS = [(own, group) for own, group in GROUPS if group is not Prompt]
GROUPS += [(True, group) for group in TABLES if group is not SourceProject]


@pytest.mark.parametrize("group", TABLES, ids=lambda group: group.__name__)
def test_each_field_that_a_reader_can_fill_is_in_the_table(group: type) -> None:
    assert TABLES[group].keys() == {field.name for field in fields(group)}


@pytest.mark.parametrize(
    ("own", "group"),
    GROUPS,
    ids=[
        f"{'our log' if own else 'foreign'}: {group.__name__}" for own, group in GROUPS
    ],
)
def test_no_value_in_any_field_harms_its_neighbours_or_is_half_written(
    store: Store, own: bool, group: type
) -> None:
    cases = list(_cases(own, group))
    names = list(TABLES[group])
    sources = [
        item
        for name in names
        for item in (
            *(case.source for case in cases if case.field == name),
            _session(own, f"after {name}"),
        )
    ]
    planned = list(store.ingest(sources, dry_run=True))
    first = list(store.ingest(sources))
    again = list(store.ingest(sources))

    wrong = _wrong(cases, first)
    assert not wrong, [(w, [r for r in first if w in str(r)]) for w in wrong[:5]]
    imported = [item for item in first if isinstance(item, Imported)]
    assert sum(item.source_id.startswith("after ") for item in imported) == len(names)
    assert {item.outcome for item in imported} == {"imported"}
    assert check(store) == []
    assert _importing(store) == 0

    assert _problems(again) == _problems(first)
    assert _problems(planned) == _problems(first)
    assert {item.outcome for item in again if isinstance(item, Imported)} == {
        "unchanged"
    }


@pytest.mark.parametrize("group", [SourceMessage, MessageDraft, Tokens, PartDraft])
def test_no_value_in_a_session_that_returns_harms_the_one_it_came_from(
    store: Store, group: type
) -> None:
    cases = list(_cases(False, group))
    with store.effects() as unit:
        for case in cases:
            name = case.source.source_id
            handle = unit.create_session(id=name, directory="/elsewhere/project")
            unit.append(handle, user("hello", id=f"{name}/1"), time=T0)
    results = list(store.ingest(case.source for case in cases))

    wrong = _wrong(cases, results)
    assert not wrong, [(w, [r for r in results if w in str(r)]) for w in wrong[:5]]
    assert {item.id for item in results if isinstance(item, Imported)} == {
        case.source.source_id for case in cases
    }
    counted = {
        case.source.source_id: store.session(case.source.source_id).message_count
        for case in cases
    }
    assert counted == {case.source.source_id: case.messages for case in cases}
    assert check(store) == []


def _wrong(cases: list[Case], results: list[Imported | Problem]) -> list[str]:
    """Return the names of the cases whose results are not what they should be."""
    imported = [item for item in results if isinstance(item, Imported)]
    problems = [item for item in results if isinstance(item, Problem)]
    by_source: dict[str, list[Problem]] = {}
    for problem in problems:
        by_source.setdefault(problem.source, []).append(problem)

    wrong = []
    for case in cases:
        about = by_source.get(f"/elsewhere/{case.name}", [])
        if case.field == "path":
            session = f"session {case.source.source_id}:"
            about = [problem for problem in problems if session in problem.why]
        is_named = all(case.field in problem.why for problem in about)
        counts = [item.messages for item in imported if _is_of(item, case)]
        expected = [case.messages] if case.here else []
        if len(about) != case.problems or not is_named or counts != expected:
            wrong.append(case.name)
    return wrong


def _is_of(result: Imported, case: Case) -> bool:
    source = case.source
    # The ids first: they are not equal but for one case.
    return result.source_id == source.source_id and result.source == source.source


def _importing(store: Store) -> int:
    with store.connection() as connection:
        query = "SELECT count(*) FROM session WHERE time_importing IS NOT NULL"
        return int(connection.exec_driver_sql(query).scalar_one())


def _problems(results: list[Imported | Problem]) -> Counter[Problem]:
    return Counter(item for item in results if isinstance(item, Problem))


@pytest.mark.parametrize("own", [False, True])
def test_a_number_out_of_bounds_costs_a_message_its_column_alone(
    store: Store, own: bool
) -> None:
    part = PartDraft("text", "said", time_started=-5)
    odd = {"cost": -1, "tokens": Tokens(input=1 << 70, output=7), "parts": (part,)}
    message = _odd_message(own, MessageDraft, "odd", odd | {"data": {"a": 1}})
    source = _session(own, "odd", _message(own, 1, "odd"), message)
    problem, imported = store.ingest([source])
    assert isinstance(problem, Problem)
    assert problem.why.endswith(
        "imported without cost, tokens.input, parts[0].time_started"
    )
    assert isinstance(imported, Imported)

    found = store.messages(imported.id, branches=True)[-1]
    assert (found.text, found.cost) == ("said", None)
    assert found.tokens == Tokens(output=7)
    kept = {"cost": -1, "tokens.input": hex(1 << 70)}
    assert found.data == {"a": 1, "out_of_bounds": kept}
    assert found.parts[0].time_started is None
    assert found.parts[0].data == {"out_of_bounds": {"time_started": -5}}
