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
from sessiondb.formats.kit.carrying import TOKENS, USAGE, carriable, sort_of
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
    return part.type, bool(part.data.get("synthetic"))


# -- comparing -----------------------------------------------------------------------


def differences(before: Copy, after: Copy | None) -> Counter[Place]:
    """Return what *after* has not as *before* has it, with the number of times."""
    if after is None:
        return Counter({("session", ""): 1})

    found: Counter[Place] = Counter()
    found.update(_of_record("session", before.session, after.session))
    found.update(_of_lists(before, after))

    pairs = dict(aligned(before.messages, after.messages))
    for index, message in enumerate(before.messages):
        if index in pairs:
            found.update(_of_messages(message, after.messages[pairs[index]]))
        else:
            off = "" if message.seq in before.path else OFF
            found.update((off + of, name) for of, name in _of_lost(message))
    found.update(_of_order(before, after, pairs))
    return found


def _of_lost(message: Message) -> Iterator[Place]:
    """Yield the parts of a message that is gone; itself if it has none."""
    of = sort_of(message)
    for part in message.parts:
        yield f"{of}/{part.type}", ""
    if not message.parts:
        yield of, ""


def _of_record(of: str, before: Any, after: Any) -> Iterator[Place]:
    """Yield the fields of a record that are not what they were."""
    for name in sorted(carriable(type(before))):
        here, there = getattr(before, name), getattr(after, name)
        if name == "data":
            if any(there.get(key) != value for key, value in here.items()):
                yield of, name
        elif (
            name not in ("parts", "messages")
            and here not in (None, "", {}, [])
            and here != there
        ):
            yield of, name


def _is_value(name: str, value: Any) -> bool:
    """Return whether a field says something: tokens of which there are none do not."""
    return value not in (None, "", {}, []) and not (value == 0 and name in TOKENS)


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
        alike = called or [item for item in alike if item.tool == part.tool]
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

    # The others by most of their content, in their order.
    for index in sorted(left_here):
        likeness = [(_likeness(before[index], after[place]), -place) for place in left_there]  # fmt: skip
        best, place = max(likeness, default=(0, 0))
        if best > 0:
            left_there.discard(-place)
            yield index, -place


def _content(message: Message) -> tuple[Any, ...]:
    parts = [(p.type, p.text or p.call_id) for p in message.parts if p.type in ("text", "tool")]  # fmt: skip
    return message.role, message.kind if not parts else None, *parts


def _likeness(before: Message, after: Message) -> int:
    """Return how many texts and calls two messages have in common."""
    texts = {p.text or p.call_id for p in after.parts if p.text or p.call_id}
    said = "\n".join(p.text or "" for p in after.parts)
    common = [p for p in before.parts if (p.text or p.call_id) in texts or (p.text and p.text in said)]  # fmt: skip
    same = before.role == after.role and before.kind == after.kind
    is_bare = not before.parts and not after.parts
    is_alike = bool(common) or is_bare or before.role == "event"
    return 2 * len(common) + (same and is_alike)


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
    same = [name for name in ("title", "time_created", "directory") if getattr(here.session, name) == getattr(there.session, name)]  # fmt: skip
    return 2 * common / whole + 0.2 * len(same)


def unreported(
    store: Store, form: str, folder: Path, detail: str = ""
) -> dict[str, Counter[Place]]:
    """Return what sessions lost without a report on their way through a format."""
    losses = written(store, form, folder, detail)
    silent: dict[str, Counter[Place]] = {}
    for before, after in matched(copies_in(store), read_back(folder)):
        name = before.session.id
        stated = {(loss.of, loss.field) for loss in losses if loss.session_id == name}
        found = differences(before, after)
        missing = Counter(
            {at: n for at, n in found.items() if not is_stated(at, stated)}
        )
        if missing:
            silent[name] = missing
    return silent


def is_stated(place: Place, stated: set[Place]) -> bool:
    """Return whether a loss covers a difference: of its field, or of its record."""
    of, name = place[0].removeprefix(OFF), place[1]
    if of != place[0] and ("session", "branches") in stated:
        return True
    whole = {(of, ""), (of.partition("/")[0], "")}
    if name in USAGE:
        whole.add((of, "usage"))
    return (of, name) in stated or not whole.isdisjoint(stated)
