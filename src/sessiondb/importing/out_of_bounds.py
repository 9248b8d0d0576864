"""Numbers of an imported message that its columns refuse, moved into its ``data``.

No absurd cost, token count or time may cost what was said. Each goes to
``data`` under ``out_of_bounds``, by the name of its field: as it is where MessagePack
holds it, an integer of more than 64 bits as a string in hexadecimal. This is done only
for a message that was refused, so that sound ones cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from sessiondb.errors import InvalidInputError
from sessiondb.model import MessageDraft, PartDraft, Tokens, bounds

_TESTS = Mapping[str, Callable[[Any, str], Any]]
_time = partial(bounds.integer, least=0, most=bounds.TIME_MOST)
_PART: _TESTS = dict.fromkeys(
    ("time_created", "time_updated", "time_started", "time_ended"), _time
)
_MESSAGE: _TESTS = {
    "cost": bounds.usd,
    "time_created": _time,
    "time_completed": _time,
}
_TOKENS: _TESTS = dict.fromkeys(Tokens.__slots__, bounds.tokens)


def keep_in_data(found: Any) -> tuple[Any, list[str]]:
    """Return a `SourceMessage` without numbers out of bounds, and their names.

    What has none, or is not a message at all, is returned as it is.
    """
    draft = getattr(found, "draft", None)
    if not isinstance(draft, MessageDraft) or not isinstance(draft.parts, tuple | list):
        return found, []

    names: list[str] = []
    parts = []
    for idx, part in enumerate(draft.parts):
        moved = _refused(part, _PART) if isinstance(part, PartDraft) else {}
        parts.append(_moved(part, moved, moved))
        names += (f"parts[{idx}].{name}" for name in moved)

    # The counts are one value of the draft, and each is a column by itself.
    moved = _refused(draft, _MESSAGE)
    counts = _refused(draft.tokens, _TOKENS) if isinstance(draft.tokens, Tokens) else {}
    kept = moved | {f"tokens.{name}": value for name, value in counts.items()}
    draft = _moved(replace(draft, parts=tuple(parts)), moved, kept)
    if counts:
        draft = replace(draft, tokens=replace(draft.tokens, **dict.fromkeys(counts)))
    return replace(found, draft=draft), [*kept, *names]


def _refused(of: Any, tests: _TESTS) -> dict[str, Any]:
    """Return the numbers that columns refuse, by field, as ``data`` keeps them."""
    found = {}
    for name, test in tests.items():
        value = getattr(of, name)
        if type(value) not in (int, float):
            continue
        try:
            test(value, name)
        except InvalidInputError:
            # MessagePack has integers of 64 bits.
            wide = isinstance(value, int) and value.bit_length() > 63
            found[name] = hex(value) if wide else value
    return found


def _moved(draft: Any, fields: Mapping[str, Any], kept: Mapping[str, Any]) -> Any:
    if not kept or not isinstance(draft.data, Mapping):
        return draft
    before = draft.data.get("out_of_bounds")
    values = {**(before if isinstance(before, Mapping) else {}), **kept}
    return replace(
        draft, **dict.fromkeys(fields), data={**draft.data, "out_of_bounds": values}
    )
