"""Numbers of an imported message that its columns refuse, moved into its ``data``.

An absurd cost, token count or time must not cost the message. Each goes to
``data`` under ``out_of_bounds``, by the name of its field: as it is where MessagePack
holds it, an integer of more than 64 bits as a string in hexadecimal. This is done only
for a message that was refused, so that sound ones cost nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sessiondb.importing.gate.values import Check, accepts, time
from sessiondb.model import MessageDraft, PartDraft, Tokens, bounds

_TESTS = Mapping[str, Check]
_PART: _TESTS = dict.fromkeys(
    ("time_created", "time_updated", "time_started", "time_ended"), time
)
_MESSAGE: _TESTS = {
    "cost": bounds.usd,
    "time_created": time,
    "time_completed": time,
}
_TOKENS: _TESTS = dict.fromkeys(Tokens.__slots__, bounds.tokens)


def keep_in_data(message: Any) -> tuple[Any, list[str]]:
    """Return a `SourceMessage` without numbers out of bounds, and their names.

    Anything without them, or that is not a message, is returned unchanged.
    """
    draft = getattr(message, "draft", None)
    if not isinstance(draft, MessageDraft) or not isinstance(draft.parts, tuple | list):
        return message, []

    names: list[str] = []
    parts = []
    for idx, part in enumerate(draft.parts):
        moved = _refused_numbers(part, PartDraft, _PART)
        parts.append(_move_to_data(part, moved, moved))
        names += _prefix_names(f"parts[{idx}].", moved)

    # The counts are one value of the draft, and each is a column by itself.
    moved = _refused_numbers(draft, MessageDraft, _MESSAGE)
    counts = _refused_numbers(draft.tokens, Tokens, _TOKENS)
    all_moved = moved | _prefix_names("tokens.", counts)

    draft = _move_to_data(replace(draft, parts=tuple(parts)), moved, all_moved)
    if counts:
        draft = replace(draft, tokens=replace(draft.tokens, **dict.fromkeys(counts)))
    return replace(message, draft=draft), [*all_moved, *names]


def _prefix_names(prefix: str, numbers: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{prefix}{name}": value for name, value in numbers.items()}


def _refused_numbers(record: Any, kind: type, tests: _TESTS) -> dict[str, Any]:
    """Return the numbers that columns refuse, by field, as ``data`` keeps them.

    A value that is not of this *kind* has none.
    """
    refused: dict[str, Any] = {}
    if not isinstance(record, kind):
        return refused

    for name, test in tests.items():
        value = getattr(record, name)
        if type(value) in (int, float) and not accepts(test, value, name):
            refused[name] = _as_kept(value)
    return refused


def _as_kept(value: float) -> str | float:
    """Return a number as MessagePack holds it, which has integers of 64 bits."""
    if isinstance(value, int) and value.bit_length() > 63:
        return hex(value)
    return value


def _move_to_data(
    draft: Any, fields: Mapping[str, Any], added: Mapping[str, Any]
) -> Any:
    """Return a draft without *fields*, and with *added* added to its ``data``."""
    if not added or not isinstance(draft.data, Mapping):
        return draft

    values = dict(added)
    earlier = draft.data.get("out_of_bounds")
    if isinstance(earlier, Mapping):
        values = {**earlier, **added}

    return replace(
        draft,
        **dict.fromkeys(fields),
        data={**draft.data, "out_of_bounds": values},
    )
