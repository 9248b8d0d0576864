"""Drafts as they will be read: an adapter compares them with what it was given.

A framework has to get back what it stored. Whether a conversion into parts can be
undone shows only when it is undone, so that is done before a message is written.
"""

from __future__ import annotations

from sessiondb.formats.kit.texts import compact_json
from sessiondb.model import Part, PartDraft
from sessiondb.model.draft import NO_INPUT


def part_as_read(draft: PartDraft) -> Part:
    """Return the part that a draft will be when it is read, without id and times.

    Raises `ValueError` and `TypeError` for an input that is not JSON.
    """
    has_input = draft.input is not NO_INPUT
    return Part(
        idx=0,
        id="",
        type=draft.type,
        tool=draft.tool,
        call_id=draft.call_id,
        status=draft.status,
        outcome=draft.outcome,
        title=draft.title,
        input_json=compact_json(draft.input) if has_input else None,
        text=draft.text,
        data=draft.data,
        inherited=False,
        time_created=0,
        time_updated=0,
        time_started=None,
        time_ended=None,
        synthetic=draft.synthetic,
    )
