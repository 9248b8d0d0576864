"""Sessions as the JSON tree of OpenCode 1.x before 1.2: a data directory with ``storage/``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from sessiondb.formats.opencode.exporter import (
    file_name,
    said,
    text_of,
)
from sessiondb.formats.opencode.keys import OUTPUT_FILE, SHARE_REST, TODO_REST
from sessiondb.formats.opencode.neutral import WHOLE_OUTPUT
from sessiondb.formats.opencode.projects import project_record
from sessiondb.formats.opencode.reader import SOURCE
from sessiondb.formats.opencode.sidefiles import SHARES
from sessiondb.formats.opencode.v1.records import session_diff
from sessiondb.formats.opencode.v1.writer import WriterV1
from sessiondb.formats.protocol import Exporter
from sessiondb.model import Document, Export, Loss, Message


def write(
    sessions: Iterable[Export], *, detail: str = "full", together: bool = False
) -> Iterator[Document | Loss]:
    """Yield the files of each session, and each project once."""
    del detail, together  # nothing can be left out of a tree
    projects: set[str] = set()
    for export in sessions:
        losses: list[Loss] = []
        messages = list(export.messages)
        found = said(WriterV1(export, messages, losses).json(), losses)
        info = found["info"]
        project = str(info["projectID"])
        if project not in projects:
            projects.add(project)
            yield _file("project", project, value=_project(export, info))
            if export.project is not None and export.project.permission is not None:
                yield _file("permission", project, value=export.project.permission)
        yield _file("session", project, info["id"], value=info)
        for entry in found["messages"]:
            yield _file("message", info["id"], entry["info"]["id"], value=entry["info"])
            for part in entry["parts"]:
                yield _file("part", part["messageID"], part["id"], value=part)
        yield from _beside(export, info["id"])
        yield from _outputs(messages, info["id"])
        yield from (loss for loss in losses if loss.why != WHOLE_OUTPUT)


def _file(*steps: Any, value: Any) -> Document:
    place = "/".join(file_name(step) for step in steps)
    return Document(f"storage/{place}.json", (text_of(value),))


def _project(export: Export, info: dict[str, Any]) -> dict[str, Any]:
    if export.project is not None:
        return project_record(export.project, SOURCE, info["projectID"])
    created = {"created": info["time"]["created"]}
    return {"id": info["projectID"], "worktree": info["directory"], "time": created}


def _beside(export: Export, session: str) -> Iterator[Document]:
    data = export.session.data
    todos = data.get(TODO_REST)
    if todos is None and export.todos:
        todos = [
            _todo(todo.id, todo.content, todo.status, todo.priority)
            for todo in export.todos
        ]
    if todos is not None:
        yield _file("todo", session, value=todos)
    yield _file("session_diff", session, value=session_diff(export.diffs, data))
    if isinstance(share := export.session.metadata.get("share"), dict):
        kept = data.get(SHARE_REST, {}).get("folder")
        folder = kept if kept in SHARES else SHARES[0]
        yield _file(folder, session, value=share)


def _outputs(messages: list[Message], session: str) -> Iterator[Document | Loss]:
    """The files that cut outputs name, beside ``storage/`` as OpenCode keeps them."""
    for message in messages:
        for part in message.parts:
            if OUTPUT_FILE in part.data:
                kept = part.data[OUTPUT_FILE]
                text = kept["content"].decode("utf-8", "replace")
                yield Document(kept["name"], (text,))
                if text.encode() != kept["content"]:
                    yield Loss(
                        session,
                        f"bytes of {kept['name']} that are no UTF-8",
                        message.id,
                    )


def _todo(name: str | None, *known: str | None) -> dict[str, Any]:
    line = dict(zip(("content", "status", "priority"), known, strict=True))
    found = {**line, "id": name}
    return {key: value for key, value in found.items() if value is not None}


EXPORTER = Exporter(write)
