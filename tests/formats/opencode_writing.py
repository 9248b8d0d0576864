"""Writes sessions in the formats of OpenCode for a test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import sessiondb as sdb
from sessiondb import Store
from sessiondb.formats import exporter, find
from sessiondb.model import Document, Export, Loss


def written(form: str, *exports: Export) -> tuple[list[dict[str, Any]], list[Loss]]:
    items = list(exporter(form).write(exports, detail="full"))
    documents = [
        json.loads("".join(d.chunks)) for d in items if isinstance(d, Document)
    ]
    return documents, [loss for loss in items if isinstance(loss, Loss)]


def one_written(form: str, export: Export) -> tuple[dict[str, Any], set[str]]:
    (document,), losses = written(form, export)
    return document, {loss.why for loss in losses}


def import_store(store: Store, path: Path) -> dict[str, str]:
    return {
        done.source_id: done.id  # type: ignore[union-attr]
        for foreign in find(path)
        for done in store.ingest(foreign.read())
    }


def into_folder(folder: Path, *exports: Export, form: str) -> None:
    """Write the files of a format."""
    for item in exporter(form).write(exports, detail="full"):
        if isinstance(item, Document):
            path = folder / item.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"".join(item.encoded()))


def talk(store: Store) -> sdb.SessionHandle:
    """A session that no OpenCode has seen."""
    usage: dict[str, Any] = {"provider": "acme", "model": "large", "cost": 0.25}
    handle = store.create_session(title="Mend", directory="/tmp", agent="plan")
    store.append(handle, sdb.system("Be brief."))
    store.append(
        handle, sdb.user("Mend it", sdb.file(content=b"\0\1", mime="image/png"))
    )
    parts = (
        sdb.reasoning("Hm"),
        sdb.text("Reading."),
        sdb.tool("read", {"path": "a"}, call_id="call_1", output="x\0"),
        sdb.tool("edit", ["a"], call_id="call_2", error="No such file"),
        sdb.tool("rm", {}, call_id="call_3", outcome="denied"),
        sdb.part("hologram", depth=3),
    )
    store.append(handle, sdb.assistant(*parts), finish="tool-calls", **usage)
    store.append(handle, sdb.event("custom_message", sdb.text("It changed.")))
    store.append(handle, sdb.event("compaction", sdb.text("A summary.")))
    store.append(handle, sdb.user("And?"))
    store.append(handle, sdb.assistant("Done."), finish="stop", **usage)
    store.append(handle, sdb.assistant("Ha"), finish="cancelled", **usage)
    return handle
