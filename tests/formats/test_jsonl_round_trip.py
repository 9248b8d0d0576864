from __future__ import annotations

import contextlib
import json
import math
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from jsonl_tables import bundle, differences, outcomes, read_into

from sessiondb import (
    FileDiff,
    PartDraft,
    Store,
    Todo,
    assistant,
    event,
    file,
    part,
    reasoning,
    system,
    text,
    tool,
    tool_result,
    user,
)
from sessiondb.formats.jsonl.values import line_of, record_of
from sessiondb.maintenance import check

pytestmark = pytest.mark.slow

# Characters that break naive writers: controls, separators, surrogates alone and as a pair.
_characters = (
    'ab {}"\\$\0\n\r\t\x1b\x7f\x85\u2028\u2029\u202e\ufeff\ud83d\ude00\U0001f600\u00e9'
)
nasty = st.text(st.sampled_from(_characters), max_size=12)
# JSON cannot distinguish a pair of surrogates from its character: refused, tested elsewhere.
nasty_json = nasty.filter(lambda value: "\ud83d\ude00" not in value)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(1 << 63), (1 << 64) - 1),
    st.floats(allow_nan=False) | st.just(math.nan),
    nasty,
    st.binary(max_size=8),
)
keys = st.sampled_from(["a", "$bytes", "$", "x y", "\ud83d\ude00"])
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3)
    ),
    max_leaves=6,
)
data = st.dictionaries(keys, values, max_size=3)
plain = st.recursive(
    st.none()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | nasty_json,
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(nasty_json, inner, max_size=2)
    ),
    max_leaves=4,
)


def same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float) and math.isnan(a):
        return math.isnan(b)
    if isinstance(a, dict) and isinstance(b, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b and str(a) == str(b)


@given(data)
def test_a_line_holds_any_value_exactly_and_no_control_character(
    record: dict[str, Any],
) -> None:
    line = line_of(record, lambda _: None)
    assert line.endswith("\n")
    assert len((line + "x").splitlines()) == 2
    assert not any(c < " " or "\x7f" <= c <= "\x9f" or c == "\ufeff" for c in line[:-1])
    raw = line.encode()
    json.loads(raw)
    assert same(record_of(raw, lambda _: b""), record)


@st.composite
def parts(draw: st.DrawFn) -> PartDraft:
    words = draw(nasty) * draw(st.sampled_from([1, 1, 1, 800]))
    more = {f"d{k}": v for k, v in draw(data).items()}
    kind = draw(st.integers(0, 6))
    if kind == 0:
        return reasoning(words, **more)
    if kind == 1:
        return tool("bash", draw(plain), call_id=draw(st.sampled_from("xyz")), **more)
    if kind == 2:
        done = draw(st.sampled_from(["output", "error"]))
        path = words.replace("\ude00", "")  # repeated text may make a pair, too
        return tool(
            "edit", {"path": path}, call_id="w", title="T", **{done: words}, **more
        )
    if kind == 3:
        return file(
            mime="image/png",
            content=draw(st.sampled_from([b"", b"\xff" * 5000])),
            **more,
        )
    if kind == 4:
        return part("never-seen", text=words or None, **more)
    if kind == 5:
        return tool_result(draw(st.sampled_from("xyz")), words, **more)
    return text(words, **more)


def fill(draw: st.DrawFn, store: Store, name: str) -> None:
    """Write some messages into a session, on any branch."""
    ids = [message.id for message in store.messages(name, branches=True)]
    for _ in range(draw(st.integers(0, 4))):
        content = draw(st.lists(parts(), max_size=3))
        role = draw(
            st.sampled_from([user, assistant, system, "context", "cancelled", "odd"])
        )
        more = draw(data)
        draft = event(role, *content) if isinstance(role, str) else role(*content)
        draft = type(draft)(
            **{**{n: getattr(draft, n) for n in draft.__slots__}, "data": more}
        )
        after = (
            {"after": draw(st.sampled_from([None, *ids]))}
            if draw(st.booleans())
            else {}
        )
        spent: dict[str, Any] = {}
        if draw(st.booleans()):
            spent = {
                "cost": draw(st.floats(0, 9)),
                "tokens": {"input": 5},
                "model": "m",
            }
        is_open = draw(st.integers(0, 5)) == 0
        ids.append(store.append(name, draft, open=is_open, **after, **spent).id)
    if ids and draw(st.booleans()):
        store.label(
            name, draw(st.sampled_from(ids)), draw(st.sampled_from(["one", "two"]))
        )
    if draw(st.integers(0, 3)) == 0:
        store.set_leaf(name, draw(st.sampled_from([None, *ids])))


def decorate(draw: st.DrawFn, store: Store, name: str) -> None:
    """Set the fields of a session."""
    store.set_metadata(name, {"k": draw(plain)})
    store.set_permission(name, draw(plain))
    store.set_todos(name, [Todo("do " + draw(nasty), "pending", "high", "t1"), "more"])
    store.set_diffs(
        name,
        [FileDiff("a.py", before=draw(st.binary(max_size=4)), additions=1),
         FileDiff("b.py", patch="+" * draw(st.sampled_from([1, 5000])))],
    )  # fmt: skip
    store.set_share(name, "https://example.org/s", secret="hidden")
    store.set_revert(name, {"message_id": "m"})
    said = draw(nasty) * draw(st.sampled_from([1, 800]))
    store.add_prompt(
        said + "?", session=name, directory=draw(st.sampled_from([None, "/tmp"]))
    )
    store.add_prompt("typed, never sent", session=name, time=1_700_000_000_005)
    if draw(st.booleans()):
        store.archive(name)


@st.composite
def families(draw: st.DrawFn, store: Store) -> list[str]:
    top = store.create_session(title=draw(nasty) or None, agent="build").id
    fill(draw, store, top)
    names = [top]
    if draw(st.booleans()):
        decorate(draw, store, top)
    for _ in range(draw(st.integers(0, 2))):
        above = draw(st.sampled_from(names))
        if draw(st.booleans()):
            names.append(store.fork(above, branches=draw(st.booleans())).id)
        else:
            names.append(store.create_session(parent=above, call_id="x").id)
        fill(draw, store, names[-1])
    return names


@pytest.mark.parametrize("by", ["log", "file"])
@settings(
    max_examples=10, suppress_health_check=list(HealthCheck), phases=[Phase.generate]
)
@given(choose=st.data())
def test_a_family_is_the_same_rows_in_another_database(
    by: str, choose: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        here = stack.enter_context(Store.open(folder / "a.db", durability="normal"))
        there = stack.enter_context(Store.open(folder / "b.db", durability="normal"))
        names = choose.draw(families(here))
        log = bundle(here, names)
        assert "hidden" not in log
        path = folder / "log.jsonl"
        path.write_bytes(log.encode())
        source = path if by == "log" else folder / "a.db"
        assert set(outcomes(read_into(there, source))) == {"imported"}
        assert differences(folder / "a.db", folder / "b.db") == []
        assert bundle(there, names) == log
        assert set(outcomes(read_into(there, source))) == {"unchanged"}
        other = folder / "copy.jsonl"
        other.write_bytes(log.encode())
        assert set(outcomes(read_into(there, other))) == {"unchanged"}
        assert differences(folder / "a.db", folder / "b.db") == []
        assert check(there) == []
