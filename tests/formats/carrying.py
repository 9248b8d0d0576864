"""What a session loses on its way through a format, found by comparing it with itself.

A session is exported, and the export imported into a new database. Every field of its
records is compared, whatever fields there are, and each difference is named in the words
of a `Loss`: of which record, and which field of it. `facts_of` brings a fact that programs record in different places
to one place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from samples import new_store, read_into

from sessiondb import Store
from sessiondb.formats import exporter
from sessiondb.formats.content import file_of
from sessiondb.formats.kit.carrying import (
    MODEL,
    TOKENS,
    USAGE,
    carriable_fields,
    sort_of,
)
from sessiondb.formats.kit.conversion import live_path
from sessiondb.formats.kit.turns import is_moved, with_usage
from sessiondb.model import (
    FileDiff,
    Label,
    Loss,
    Message,
    Part,
    Problem,
    Session,
    Todo,
)
from sessiondb.repository.sessions import ALL

#: Of which record a difference is, and of which field; an empty one is the record.
Place = tuple[str, str]
#: Differences that say the same in other words, by format, and the reasons.
SAME: dict[str, dict[Place, str]] = {
    "opencode2": {
        ("session", "permission"): "the same rules, with the names of version 2",
        ("user/compaction", ""): "a field of the compaction",
        ("assistant/step-start", ""): "a field of the answer",
        ("assistant/step-finish", ""): "a field of the answer",
        ("assistant/snapshot", ""): "a field of the answer",
        ("assistant/patch", ""): "a field of the answer",
    },
    "goose": {
        ("event:usage", "time_created"): "sums have the time of the session",
        ("event:usage", "time_completed"): "sums have the time of the session",
    },
    "aider": {("session", "directory"): "where the file is"},
}
#: Programs with a record for each text and each call, which are messages again.
SPLIT = frozenset({"codex", "openai-agents"})
#: Formats in which such records are messages of one answer again.
JOINING = frozenset({"claude"})
#: Characters of a text that may be in others by chance.
SHORT = 4
#: Before the record of a `Place`: its message is not on the live path.
OFF = "off the path: "
#: Parts that say nothing but their text, in one piece or in several.
TEXTS = ("text", "reasoning")


@dataclass
class Copy:
    """A session as it is in one database.

    ``above`` is the seq that each of its messages follows, ``path`` the live one.
    """

    session: Session
    messages: list[Message]
    above: dict[int, int | None]
    path: set[int]
    todos: list[Todo] = field(default_factory=list)
    diffs: list[FileDiff] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)


def copies_in(store: Store) -> list[Copy]:
    """Return all sessions of a database, parents first."""
    found = store.sessions(
        project=ALL, archived=True, subagents=True, empty=True, limit=1000
    )
    sessions = sorted(found, key=lambda item: item.time_created)
    return [copy_of(store, session) for session in sessions]


def copy_of(store: Store, session: Session) -> Copy:
    """Return a session as it is in *store*."""
    messages = store.messages(session.id, branches=True)
    return Copy(
        session,
        facts_of(messages),
        {message.seq: message.parent_seq for message in messages},
        {message.seq for message in live_path(session, messages)},
        list(store.todos(session.id)),
        list(store.diffs(session.id)),
        list(store.labels(session.id)),
    )


# -- one fact in one place -----------------------------------------------------------


def facts_of(messages: Iterable[Message]) -> list[Message]:
    """Return messages with counts on answers, and results with their calls.

    Programs have these in messages of their own, or not; a message of which nothing is
    left then is left out, as is a part that says nothing.
    """
    found = with_usage(messages)
    calls = {part.call_id: part.text for m in found for part in m.parts if part.type == "tool"}  # fmt: skip
    facts = []
    for message in found:
        parts = [p for p in message.parts if not _is_repeated(p, calls) and not _is_empty(p)]  # fmt: skip
        is_copy = message.role == "tool" and not parts
        if not is_copy and not is_moved(message):
            facts.append(replace(message, parts=tuple(_joined(parts))))
    return facts


def _is_repeated(part: Part, calls: dict[str | None, str | None]) -> bool:
    if part.type != "tool-result" or part.call_id not in calls:
        return False
    return part.text is None or part.text == calls[part.call_id]


def _is_empty(part: Part) -> bool:
    return part.type in TEXTS and not part.text


def _joined(parts: list[Part]) -> Iterator[Part]:
    """Yield parts, texts of one kind that follow each other as one."""
    last: Part | None = None
    for part in parts:
        is_text = part.type in TEXTS
        if last is not None and is_text and _kind(last) == _kind(part):
            last = replace(last, text=f"{last.text}\n{part.text}", data={**part.data, **last.data})  # fmt: skip
            continue
        if last is not None:
            yield last
        last = part
    if last is not None:
        yield last


def _kind(part: Part) -> tuple[str, bool]:
    return part.type, part.synthetic


def answers_in_one(messages: Iterable[Message]) -> list[Message]:
    """Return messages with the answers to a prompt as one."""
    found: list[Message] = []
    last: int | None = None
    for message in messages:
        if message.role == "assistant" and last is not None:
            found[last] = _both(found[last], message)
            continue
        if message.role not in ("event", "tool") and not _is_added(message):
            last = len(found) if message.role == "assistant" else None
        found.append(message)
    return found


def _is_added(message: Message) -> bool:
    """Return whether a program added a message: a user typed nothing of it."""
    typed = [p for p in message.parts if p.type in ("text", "file") and not p.synthetic]  # fmt: skip
    return message.role == "user" and bool(message.parts) and not typed


def _both(first: Message, last: Message) -> Message:
    """Return two messages as one, with the sums of what they used."""
    values: dict[str, Any] = {}
    for name in carriable_fields(Message) - {"time_created", "data", "kind"}:
        here, there = getattr(first, name), getattr(last, name)
        values[name] = here if there is None else there
        if name in USAGE and None not in (here, there):
            values[name] = here + there
    data = {**first.data, **last.data}
    parts = tuple(_joined([*first.parts, *last.parts]))
    return replace(first, **values, data=data, parts=parts)


# -- comparing -----------------------------------------------------------------------


def differences(
    before: Copy, after: Copy | None, *, is_split: bool = False
) -> Counter[Place]:
    """Return what *after* has not as *before* has it, with the number of times.

    *is_split*: the format has a record for each text and each call of an answer.
    """
    if after is None:
        return Counter({("session", ""): 1})

    if is_split:
        before = replace(before, messages=answers_in_one(before.messages))
        after = replace(after, messages=answers_in_one(after.messages))
    found: Counter[Place] = Counter()
    derived = _derived(before.session)
    of_session = _of_record("session", before.session, after.session)
    found.update(place for place in of_session if place[1] not in derived)
    found.update(_of_lists(before, after))

    pairs = dict(aligned(before.messages, after.messages))
    for index, message in enumerate(before.messages):
        off = "" if message.seq in before.path else OFF
        if index in pairs:
            lost = _of_messages(message, after.messages[pairs[index]])
        else:
            lost = _of_lost(message)
        found.update((off + of, name) for of, name in lost)
    found.update(_of_order(before, after, pairs))
    # Counts of an answer without a record are on one beside it.
    kept = {name for name in USAGE if _total(before, name) == _total(after, name)}
    if is_split:
        # An answer begins with the first of its records that is left.
        kept |= {"time_created", "time_completed"}
    return Counter({at: times for at, times in found.items() if at[1] not in kept})


def _total(copy: Copy, name: str) -> float:
    """Return the sum of a count, or of the costs, of all messages."""
    return round(sum(getattr(message, name) or 0 for message in copy.messages), 9)


def _derived(session: Session) -> set[str]:
    """Return the fields that a database derives from the messages of a session."""
    title = {"title"} if session.title_source == "derived" else set()
    return title | (set(MODEL) if session.model_source == "derived" else set())


def _of_lost(message: Message) -> Iterator[Place]:
    """Yield the parts of a message that is gone; itself if it has none."""
    of = sort_of(message)
    for part in message.parts:
        yield f"{of}/{part.type}", ""
    if not message.parts:
        yield of, ""


def _of_record(of: str, before: Any, after: Any) -> Iterator[Place]:
    """Yield the fields of a record that are not what they were."""
    for name in sorted(carriable_fields(type(before))):
        here, there = getattr(before, name), getattr(after, name)
        if name == "data" and of.endswith("/file"):
            if _file(before) != _file(after):
                yield of, name
        elif name == "data":
            if any(there.get(key) != value for key, value in here.items()):
                yield of, name
        elif _is_value(name, here) and here != there:
            yield of, name


def _file(part: Part) -> tuple[str, str | None, str | None]:
    """Return type, name and content of a file, or its address without content."""
    file = file_of(part)
    return file.mime, file.name, file.url if file.data is None else file.data


def _is_value(name: str, value: Any) -> bool:
    """Return whether a field says something: a flag that is not set does not.

    Neither do tokens of which there are none.
    """
    if value is False or (value == 0 and name in TOKENS):
        return False
    # An odd time: no session has been written so soon after 1970.
    is_odd = name.startswith("time_") and value is not None and value < 10**9
    return value not in (None, "", {}, []) and not is_odd


def _of_lists(before: Copy, after: Copy) -> Iterator[Place]:
    if before.todos != after.todos:
        yield "todos", ""
    if sorted(map(repr, map(_without_place, before.diffs))) != sorted(map(repr, map(_without_place, after.diffs))):  # fmt: skip
        yield "diffs", ""
    here, there = ({label.label for label in copy.labels} for copy in (before, after))
    for _ in here - there:
        yield "labels", ""


def _without_place(diff: FileDiff) -> FileDiff:
    return replace(diff, seq=min(diff.seq, 1))


def _of_messages(before: Message, after: Message) -> Iterator[Place]:
    of = sort_of(before)
    yield from _of_record(of, before, after)
    rest = list(after.parts)
    for part in before.parts:
        same = _same_part(part, rest)
        if same is None:
            yield f"{of}/{part.type}", ""
        else:
            # Several texts may be one afterwards.
            if same.text == part.text or part.type not in TEXTS:
                rest.remove(same)
            elif (part.text or "") in (same.text or ""):
                same = replace(same, text=part.text)
            yield from _of_record(f"{of}/{part.type}", part, same)


def _same_part(part: Part, parts: list[Part]) -> Part | None:
    """Return the part that *part* became: of its type, and with its text if there is one."""
    alike = [item for item in parts if item.type == part.type]
    if part.type == "tool" and part.call_id is not None:
        called = [item for item in alike if item.call_id == part.call_id]
        named = [item for item in alike if item.tool == part.tool]
        alike = called or named or [item for item in alike if item.text == part.text]
    exact = [item for item in alike if item.text == part.text]
    within = [item for item in alike if part.text and part.text in (item.text or "")]
    chosen = exact or within or alike
    return chosen[0] if chosen else None


def _of_order(before: Copy, after: Copy, pairs: dict[int, int]) -> Iterator[Place]:
    """Yield the messages that follow another one than before, of those that are left."""
    pairs = {
        index: place
        for index, place in pairs.items()
        if before.messages[index].role != "event"
    }
    here = {before.messages[index].seq: place for index, place in pairs.items()}
    there = {after.messages[place].seq: place for place in pairs.values()}
    for index, place in pairs.items():
        message = before.messages[index]
        above = _above(message, before.above, here)
        if above != _above(after.messages[place], after.above, there):
            yield sort_of(message), "order"


def _above(
    message: Message, above: dict[int, int | None], places: dict[int, int]
) -> int | None:
    """Return the place of the message that *message* follows; None for the first."""
    seq = above[message.seq]
    while seq is not None and seq not in places:
        seq = above[seq]
    return None if seq is None else places[seq]


def aligned(before: list[Message], after: list[Message]) -> Iterator[tuple[int, int]]:
    """Yield the places of messages that are the same, before and after."""
    here, there = ([_content(m) for m in messages] for messages in (before, after))
    matcher = SequenceMatcher(None, here, there, autojunk=False)
    left_here, left_there = set(range(len(before))), set(range(len(after)))
    for a, b, size in matcher.get_matching_blocks():
        for offset in range(size):
            left_here.discard(a + offset)
            left_there.discard(b + offset)
            yield a + offset, b + offset

    # The others by most of their content.
    likeness = {
        (index, place): _likeness(before[index], after[place])
        for index in sorted(left_here)
        for place in sorted(left_there)
    }
    for index, place in sorted(likeness, key=lambda pair: -likeness[pair]):
        if likeness[index, place] and index in left_here and place in left_there:
            left_here.discard(index)
            left_there.discard(place)
            yield index, place


def _content(message: Message) -> tuple[Any, ...]:
    parts = [(p.type, p.text or p.call_id) for p in message.parts if p.type in ("text", "tool")]  # fmt: skip
    return message.role, message.kind if not parts else None, *parts


def _likeness(before: Message, after: Message) -> int:
    """Return how much two messages have in common: most of all texts and calls."""
    names = {name for part in after.parts for name in _names_of(part)}
    text = "\n".join(part.text or "" for part in after.parts)
    common = [
        part
        for part in before.parts
        if not names.isdisjoint(_names_of(part))
        or (part.type in TEXTS and _is_within(part.text, text))
    ]
    is_same = (before.role, before.kind) == (after.role, after.kind)
    is_bare = not before.parts and not after.parts
    is_event = before.role == after.role == "event"
    likeness = 4 * len(common)
    if is_event and before.model_id is not None and before.model_id == after.model_id:
        likeness += 1
    if is_same and (common or is_bare or is_event):
        likeness += 2
    if common and before.role != "event":
        likeness += 1
    if (
        is_event
        and after.kind == "custom"
        and before.time_created == after.time_created
    ):
        likeness += 1
    return likeness


def _is_within(part: str | None, text: str) -> bool:
    """Return whether a text is part of another one; a short one may be in anything."""
    return part is not None and len(part) > SHORT and part in text


def _names_of(part: Part) -> set[tuple[str, str]]:
    """Return the values by which a part is found again; a call may have any id."""
    named = {"text": part.text, "call": part.call_id, "tool": part.tool}
    return {(name, value) for name, value in named.items() if value}


# -- a pair of formats ---------------------------------------------------------------


def written(store: Store, form: str, folder: Path, detail: str = "") -> list[Loss]:
    """Export all sessions of *store* to a folder; return what was reported as lost."""
    to = exporter(form)
    exports = [store.export(copy.session, **to.read) for copy in copies_in(store)]
    losses = []
    for item in to.write(exports, detail=detail or to.details[0]):
        if isinstance(item, Loss):
            losses.append(item)
            continue
        path = folder / item.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(item.encoded()))
    return losses


def read_back(folder: Path) -> list[Copy]:
    """Return the sessions of a folder, from a new database."""
    with new_store() as store:
        results = read_into(store, folder)
        assert [item for item in results if isinstance(item, Problem)] == []
        return copies_in(store)


def matched(
    before: list[Copy], after: list[Copy]
) -> Iterator[tuple[Copy, Copy | None]]:
    """Yield each session with what it became: the one that has most of its content."""
    likeness = {
        (here, there): _alike(copy, other)
        for here, copy in enumerate(before)
        for there, other in enumerate(after)
    }
    pairs: dict[int, int] = {}
    for here, there in sorted(likeness, key=lambda pair: -likeness[pair]):
        if here not in pairs and there not in pairs.values() and likeness[here, there]:
            pairs[here] = there
    for here, copy in enumerate(before):
        yield copy, after[pairs[here]] if here in pairs else None


def _alike(here: Copy, there: Copy) -> float:
    texts = [Counter(p.text for m in copy.messages for p in m.parts if p.text) for copy in (here, there)]  # fmt: skip
    common = (texts[0] & texts[1]).total()
    whole = max(1, texts[0].total() + texts[1].total())
    same = [name for name in ("title", "directory", "cost") if getattr(here.session, name) == getattr(there.session, name)]  # fmt: skip
    is_same_second = (
        here.session.time_created // 1000 == there.session.time_created // 1000
    )
    return 2 * common / whole + 0.2 * (len(same) + is_same_second)


def unreported(
    store: Store, form: str, folder: Path, *, is_own: bool = False
) -> dict[str, list[Place]]:
    """Return what sessions lost without a report on their way through a format.

    *is_own*: the program of the format wrote them, and the data of a record of its own
    says where in its store it was.
    """
    losses = written(store, form, folder)
    same = SAME.get(form, {})
    silent: dict[str, list[Place]] = {}
    for before, after in matched(copies_in(store), read_back(folder)):
        name = before.session.id
        stated = {(loss.of, loss.field) for loss in losses if loss.session_id == name}
        is_joined = form in JOINING and before.session.source in SPLIT
        is_split = form in SPLIT or is_joined
        for place in differences(before, after, is_split=is_split):
            is_place = is_own and place[1] == "data"
            is_same = (place[0].removeprefix(OFF), place[1]) in same or is_place
            if not is_stated(place, stated) and not is_same:
                silent.setdefault(name, []).append(place)
    return silent


def is_stated(place: Place, stated: set[Place]) -> bool:
    """Return whether a loss covers a difference: of its field, or of its record."""
    of, name = place[0].removeprefix(OFF), place[1]
    if of != place[0] and ("session", "branches") in stated:
        return True
    # A message that is gone says nothing of the fields of others; an event may come
    # back as another one, which its program makes itself.
    is_record = not name or "/" in of or of.startswith("event")
    whole = {(of, ""), (of.partition("/")[0], "")} if is_record else set()
    if name in USAGE:
        # What a program states beside an answer is an event of its own.
        whole |= {(of, "usage"), ("event:usage", name), ("event:usage", "")}
    if "/text" in of:
        # Another text is not found again.
        whole |= {(of, "text"), (of.partition("/")[0], "text")}
    if name == "time_completed":
        # It moves with the message.
        whole.add((of, "time_created"))
    if name == "order":
        whole |= {place for place in stated if place[1] == "order"}
    if name.startswith("time_"):
        # An event of another kind is another event.
        whole.add((of, "kind"))
    return (of, name) in stated or not whole.isdisjoint(stated)
