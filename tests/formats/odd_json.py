"""Records with anything in any place, for hypothesis."""

from __future__ import annotations

import copy
import json
from collections.abc import Collection
from typing import Any

from hypothesis import strategies as st

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 64) - 1) | st.text(max_size=3)
    | st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(["stop", "error", "a\0b"]),
    lambda inner: st.lists(inner, max_size=2)
    | st.dictionaries(st.sampled_from(["read", "time", "status", "x"]), inner, max_size=2),
    max_leaves=6,
)  # fmt: skip


def changed_anywhere(
    data: st.DataObject, records: list[dict[str, Any]], keep: Collection[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """One of *records* with up to three values changed, but those of the keys *keep*; twice."""
    record = copy.deepcopy(data.draw(st.sampled_from(records)))
    for place in data.draw(st.lists(st.sampled_from(_places(record)), max_size=3)):
        if place[-1] in keep:
            continue
        holder = record
        for key in place[:-1]:
            holder = holder[key] if isinstance(holder.get(key), dict) else {}
        holder[place[-1]] = data.draw(JSON)
    return record, copy.deepcopy(record)


def same(a: Any, b: Any) -> bool:
    return json.dumps(a, sort_keys=True) == json.dumps(b, sort_keys=True)


def _places(
    record: dict[str, Any], path: tuple[str, ...] = ()
) -> list[tuple[str, ...]]:
    found = []
    for key, value in record.items():
        found.append((*path, key))
        if isinstance(value, dict):
            found += _places(value, (*path, key))
    return found
