"""Generated stores of several programs, each beside a plain model of what it shows."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import samples_aider as aider
import samples_gemini as gemini
import samples_llm as llm
import samples_openai_agents as agents
import samples_qwen as qwen
from hypothesis import given, settings
from hypothesis import strategies as st

from sessiondb.formats import find
from sessiondb.formats.aider.records import head_of, raw_of
from sessiondb.model import SourceMessage, SourceSession

pytestmark = pytest.mark.slow
some = settings(max_examples=30, deadline=None)
NAMES = st.sampled_from("abcde")


def sessions_in(folder: Path) -> list[SourceSession]:
    found = []
    for store in find(folder):
        for item in store.read():
            assert isinstance(item, SourceSession), item
            found.append(item.complete() if item.complete else item)
    return found


def messages_of(session: SourceSession) -> list[SourceMessage]:
    found = list(session.messages)
    assert all(isinstance(item, SourceMessage) for item in found), found
    return [item for item in found if isinstance(item, SourceMessage)]


def live(session: SourceSession) -> list[str]:
    """Return the ids on the path to the leaf, as an import walks it."""
    parents: dict[str | None, Any] = {}
    before = None
    for message in messages_of(session):
        parents[message.draft.id] = before if message.parent is ... else message.parent
        before = message.draft.id
    path, name = [], session.leaf or before
    while name is not None:
        path.append(name)
        name = parents.pop(name)
    return path[::-1]


def text_of(message: SourceMessage) -> str:
    return "".join(part.text or "" for part in message.draft.parts)


# -- Gemini CLI ----------------------------------------------------------------------

records = st.one_of(
    st.tuples(st.just("put"), NAMES),
    st.tuples(st.just("rewind"), NAMES),
    st.tuples(st.just("set"), st.lists(NAMES, unique=True)),
)


def gemini_message(name: str, version: int) -> dict[str, Any]:
    return {**gemini.asked(version, f"{name} {version}"), "id": name}


@some
@given(st.lists(records, min_size=1, max_size=12))
def test_a_log_of_gemini_has_what_its_changes_leave(steps: list[Any]) -> None:
    shown: dict[str, str] = {}
    written = [gemini.header(1)]
    for version, (kind, given_) in enumerate(steps):
        if kind == "put":
            shown[given_] = f"{given_} {version}"
            written.append(gemini_message(given_, version))
        elif kind == "rewind":
            names = list(shown)
            start = names.index(given_) if given_ in shown else 0
            shown = {name: shown[name] for name in names[:start]}
            written.append({"$rewindTo": given_})
        else:
            shown = {name: f"{name} {version}" for name in given_}
            items = [gemini_message(name, version) for name in given_]
            written.append(gemini.update(messages=items))

    with TemporaryDirectory() as folder:
        gemini.write(Path(folder) / ".gemini/tmp/tea/chats", *written)
        (session,) = sessions_in(Path(folder))
        texts = {m.draft.id: text_of(m) for m in messages_of(session)}
        said = {f"{name} {n}" for n, (kind, name) in enumerate(steps) if kind == "put"}
        kept = "".join(str(m.draft) for m in messages_of(session))
        assert all(text in kept for text in said)
        if shown:
            assert [texts[name] for name in live(session)] == list(shown.values())


# -- Qwen Code -----------------------------------------------------------------------


@some
@given(st.lists(st.integers(0, 10), min_size=1, max_size=12))
def test_a_log_of_qwen_is_a_tree_whose_last_record_is_live(above: list[int]) -> None:
    # Each record continues any one before it; 0 is a root.
    parents = {n: min(of, n - 1) for n, of in enumerate(above, 1)}
    written = [qwen.asked(n, f"{n}", above=of) for n, of in parents.items()]
    expected, name = [], len(above)
    while name:
        expected.append(qwen.uuid(name))
        name = parents[name]

    with TemporaryDirectory() as folder:
        qwen.write(Path(folder) / ".qwen/projects/tea/chats", *written)
        (session,) = sessions_in(Path(folder))
        assert live(session) == expected[::-1]
        assert len(messages_of(session)) == len(above)


# -- llm -----------------------------------------------------------------------------

#: Of each response: its conversation, fragments, attachments, whether it has a schema,
#: and whether it calls a tool.
responses = st.tuples(
    st.sampled_from(["c1", "c2", "c3"]),
    st.lists(st.sampled_from([1, 2]), unique=True),
    st.lists(st.sampled_from(["a1", "a2"]), unique=True),
    st.booleans(),
    st.booleans(),
)
#: The texts, files and calls of a message.
Said = tuple[str, list[str], int, int]


def said_in(session: SourceSession) -> list[Said]:
    return [
        (
            m.draft.role,
            [p.text or "" for p in m.draft.parts if p.type == "text"],
            sum(p.type == "file" for p in m.draft.parts),
            sum(p.type == "tool" for p in m.draft.parts),
        )
        for m in messages_of(session)
    ]


def begun(log: llm.Log) -> None:
    for number in (1, 2):
        log.add("fragments", id=number, hash=f"f{number}", content=f"fragment {number}")
        log.add("attachments", id=f"a{number}", type="image/png", content=llm.PNG)
    log.add("schemas", id="sch", content="{}")


@some
@given(st.lists(responses, min_size=1, max_size=6))
def test_a_log_of_llm_0_27_has_what_each_response_was_given(given_: list[Any]) -> None:
    expected: dict[str, list[Said]] = {}
    with TemporaryDirectory() as folder:
        with llm.log(Path(folder) / "logs.db", llm.OLD) as log:
            begun(log)
            for of in dict.fromkeys(name for name, *_ in given_):
                log.conversation(of)
            for n, (of, fragments, files, has_schema, calls) in enumerate(given_, 1):
                schema = "sch" if has_schema else None
                name = log.response(n, of, f"Prompt {n}", schema_id=schema)
                for order, number in enumerate(fragments):
                    log.add("prompt_fragments", response_id=name, fragment_id=number, order=order)  # fmt: skip
                for order, file in enumerate(files):
                    log.add("prompt_attachments", response_id=name, attachment_id=file, order=order)  # fmt: skip
                if calls:
                    log.add("tool_calls", response_id=name, name="bash", arguments="{}", tool_call_id=f"x{n}")  # fmt: skip
                texts = [*(f"fragment {number}" for number in fragments), f"Prompt {n}"]
                expected.setdefault(of, []).extend([
                    ("user", texts, len(files), 0),
                    ("assistant", [f"Answer {n}"], 0, int(calls)),
                ])  # fmt: skip
        assert {
            of.source_id: said_in(of) for of in sessions_in(Path(folder))
        } == expected


@some
@given(st.lists(responses, min_size=1, max_size=6))
def test_a_log_of_llm_0_36_has_what_each_turn_was_given(given_: list[Any]) -> None:
    expected: dict[str, list[Said]] = {}
    tips: dict[str, str | None] = {}
    with TemporaryDirectory() as folder:
        with llm.log(Path(folder) / "logs.db") as log:
            begun(log)
            for n, (of, fragments, files, _, calls) in enumerate(given_, 1):
                refs = [{"fragment": number} for number in fragments]
                asked = [
                    {"type": "text", "text_ref": [*refs, {"literal": f"Prompt {n}"}]},
                    *({"type": "attachment", "attachment": {"id": f}} for f in files),
                ]
                said = [llm.words(f"Answer {n}"), *[llm.call(f"x{n}")] * calls]
                prompt = log.message(tips.get(of), "user", *asked)
                tips[of] = log.message(prompt, "assistant", *said)
                log.turn(n, of, prompt, tips[of])
                texts = [*(f"fragment {number}" for number in fragments), f"Prompt {n}"]
                expected.setdefault(of, []).extend([
                    ("user", texts, len(files), 0),
                    ("assistant", [f"Answer {n}"], 0, int(calls)),
                ])  # fmt: skip
            for of, tip in tips.items():
                log.thread(of, tip)
        assert {
            of.source_id: said_in(of) for of in sessions_in(Path(folder))
        } == expected


# -- OpenAI Agents SDK ---------------------------------------------------------------

tables = st.text("ab ]['-é%_", min_size=1, max_size=6)


@some
@given(
    st.lists(tables, min_size=2, max_size=6, unique_by=str.casefold),
    st.lists(st.tuples(NAMES, st.booleans()), max_size=8),
)
def test_a_file_of_the_sdk_has_the_sessions_of_each_pair(
    names: list[str], items: list[tuple[str, bool]]
) -> None:
    talks: dict[str, list[dict[str, Any]]] = {}
    for number, (name, is_prompt) in enumerate(items):
        make = agents.prompt if is_prompt else agents.answer
        talks.setdefault(name, []).append(make(f"{number}"))

    pairs = list(zip(names[::2], names[1::2], strict=False))
    with TemporaryDirectory() as folder:
        for pair in pairs:
            agents.write(Path(folder) / "conversations.db", talks, pair)
        found = sessions_in(Path(folder))
        said = sorted([text_of(m) for m in messages_of(of)] for of in found)
        texts = [
            [str(n) for n, (of, _) in enumerate(items) if of == name] for name in talks
        ]
        assert said == sorted(texts * len(pairs))
        assert len({of.source_id for of in found}) == len(found)


# -- aider ---------------------------------------------------------------------------

LINES = ("text", "#### x", "# x", "> x", "é", "", "  x")
FENCES = ("```", "````md", "~~~", "  ```py")
#: Complete code, with prompts, reports, headers and fences of its own.
CODE = (
    "```py\n# x\n\n#### x  \n```",
    "````md\n```\n\n#### x  \n\n> Tokens: 1 sent, 1 received.  \n```\n````",
    "~~~\n\n# aider chat started at 2026-01-01 01:01:01\n\n```\n~~~",
)


def texts(*pieces: str) -> st.SearchStrategy[str]:
    found = st.lists(st.sampled_from(pieces), min_size=1, max_size=6)
    return found.map("\n".join).map(str.strip).filter(bool)


turns = st.lists(st.tuples(texts(*LINES, *FENCES), texts(*LINES, *CODE)), max_size=4)


def history(runs: list[list[tuple[str, str]]]) -> Iterator[tuple[str, str]]:
    """Yield the text of each run and its input, a run a year."""
    for year, talk in enumerate(runs, 2023):
        began = datetime(year, 12, 31, 23, 59, 59)  # noqa: DTZ001 - aider has no zone
        chat = [f"\n# aider chat started at {began}\n\n", aider.BANNER]
        typed = []
        for number, (prompt, answer) in enumerate(talk, 1):
            typed.append(
                (str(began + timedelta(seconds=number, microseconds=1)), prompt)
            )
            chat += [aider.asked(prompt), aider.answered(answer), aider.usage()]
        yield "".join(chat), aider.typed(*typed)


@some
@given(st.lists(turns, min_size=1, max_size=4), st.booleans())
def test_a_history_of_aider_is_read_and_written_to_the_byte(
    runs: list[list[tuple[str, str]]], is_of_windows: bool
) -> None:
    chats, inputs = zip(*history(runs), strict=True)
    chat, typed = "".join(chats), "".join(inputs)
    if is_of_windows:
        chat, typed = chat.replace("\n", "\r\n"), typed.replace("\n", "\r\n")

    with TemporaryDirectory() as folder:
        aider.write(Path(folder), chat, inputs=typed)
        found = [item for store in find(Path(folder)) for item in store.read()]
        assert all(isinstance(of, SourceSession) for of in found), found
        sessions = [of.complete() for of in found if of.complete]
        pieces: list[str | bytes] = []
        for session in sessions:
            drafts = [m.draft for m in session.messages if isinstance(m, SourceMessage)]
            pieces += [head_of(session.data), *map(raw_of, drafts)]
        written = b"".join(x.encode() if isinstance(x, str) else x for x in pieces)
        assert written.decode() == chat
        said = [
            [
                m.draft.parts[0].text
                for m in of.messages
                if isinstance(m, SourceMessage) and "typed" in m.draft.data
            ]
            for of in sessions
        ]
        assert said == [[prompt for prompt, _ in talk] for talk in runs]
