"""Generated logs of pi: versions, links, headers and leaves in any combination."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from samples import read_into
from samples_pi import (
    Record,
    answered,
    asked,
    call,
    entry,
    header,
    moment,
    result,
    said,
    words,
)

from sessiondb import ALL, Store
from sessiondb.formats import exporter
from sessiondb.formats.kit.fields import without_keys
from sessiondb.formats.kit.naming import MARK
from sessiondb.model import Document, Imported

LOG = Path("agent/sessions/-tea/2026-02-02T02-40-00-000Z_01a1.jsonl")
REMOTE = {"openaiRemoteCompaction": {"provider": "o", "replacementHistory": [{}]}}
BLOB = f"blob:sha256:{'0' * 64}"


def versionless(record: Record) -> Record:
    return {key: value for key, value in record.items() if key != "version"}


def generated(pick: random.Random) -> Record:
    """A record of any type, with any links: also to itself, later or missing ones."""
    number, other = pick.randrange(1, 14), f"{pick.randrange(20):08x}"
    image = {"type": "image", "data": BLOB, "mimeType": "image/png"}
    makers: list[Callable[[], Record]] = [
        lambda: asked(number, "Tea?"),
        lambda: answered(number, words("Yes"), call(f"c{number}")),
        lambda: result(number, f"c{number - 1}", "Monday"),
        lambda: said(number, "user", content=[image]),
        lambda: entry(number, "leaf", targetId=pick.choice([None, "77", other])),
        lambda: entry(number, "label", targetId=other, label=pick.choice(["a", None])),
        lambda: entry(number, "compaction", summary="S", firstKeptEntryId=other),
        lambda: entry(number, "compaction", summary="S", firstKeptEntryIndex=number - 3),
        lambda: entry(number, "compaction", summary="S", firstKeptEntryId=other,
                      preserveData=REMOTE, providerReplayThroughEntryId=other),
        lambda: entry(number, "branch_summary", fromId="root", summary="B"),
        lambda: entry(number, "context_edit", targetId=other, replacement=None),
        lambda: entry(number, "session_info", name=pick.choice(["Tea", "", None])),
        lambda: header(number, cwd="/elsewhere"),
        lambda: versionless(header(number)),
        lambda: {"type": "title", "v": 1, "title": "T", "updatedAt": moment(1), "pad": ""},
    ]  # fmt: skip
    record = pick.choice(makers)()
    changes: list[Record] = [{}, {}, {"parentId": other}, {"id": other}, {"parentId": record.get("id")}]  # fmt: skip
    record |= pick.choice(changes)
    without = pick.choice([(), (), (), ("id",), ("parentId",), ("id", "parentId")])
    rest = {key: value for key, value in record.items() if key not in without}
    # An upgrade of version 1 gives ids at the end of its records.
    late = pick.choice([(), (), ("id",), ("id", "parentId")])
    return {key: rest[key] for key in sorted(rest, key=late.__contains__)}


def back(store: Store, session: str) -> list[Any]:
    to = exporter("oh-my-pi")
    found = to.write([store.export(session, **to.read)], detail="full")
    texts = ["".join(of.chunks) for of in found if isinstance(of, Document)]
    records = [json.loads(line) for line in "".join(texts).split("\n") if line]
    # It is written for another program, so it names its session here.
    return [without_keys((MARK,), record) for record in records]


def in_any_order(records: list[Record]) -> list[str]:
    return sorted(json.dumps(record, sort_keys=True) for record in records)


@pytest.mark.parametrize("seed", range(20))
def test_a_generated_log_is_read_and_written_with_all_of_its_records(
    seed: int, store: Store, tmp_path: Path
) -> None:
    pick = random.Random(seed)
    first = header(1, id="01a1", version=pick.choice([1, 2, 3]))
    head = pick.choice([first, versionless(first)])
    records = [head, *(generated(pick) for _ in range(pick.randrange(1, 16)))]
    path = tmp_path / LOG
    path.parent.mkdir(parents=True)
    lines = [json.dumps(record) for record in records]
    torn = pick.choice(["", '{"type":"mess'])
    path.write_text("\n".join([*lines, torn]))

    (session,) = (of for of in read_into(store, tmp_path) if isinstance(of, Imported))
    # A title or a header further down is a record like others, or moved to the top.
    assert in_any_order(back(store, session.id)) == in_any_order(records)
    found = list(store.messages(session.id, branches=True))
    assert all((m.parent_seq or 0) < m.seq for m in found)
    store.context(session.id)
    again = [of for of in read_into(store, tmp_path) if isinstance(of, Imported)]
    assert [(of.id, of.outcome) for of in again] == [(session.id, "unchanged")]
    assert len(store.sessions(project=ALL, empty=True).items) == 1
