"""Sessions as the JSON tree of OpenCode 1.0 and 1.1: a folder with ``storage/``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from sessiondb.formats.kit.carrying import Losses
from sessiondb.formats.kit.conversion import Losing, json_text
from sessiondb.formats.kit.fields import as_list, as_object
from sessiondb.formats.kit.naming import file_name
from sessiondb.formats.opencode.ids import SOURCE, names_of
from sessiondb.formats.opencode.keys import OUTPUT_FILE, SHARE_REST, TODO_REST
from sessiondb.formats.opencode.projects import project_record
from sessiondb.formats.opencode.sidefiles import SHARES
from sessiondb.formats.opencode.v1.drafts import todo_record
from sessiondb.formats.opencode.v1.records import session_diff
from sessiondb.formats.opencode.v1.writer import WriterV1
from sessiondb.formats.opencode.writing import COMPLETE_OUTPUT, RULE_V1, translated
from sessiondb.formats.protocol import Exporter
from sessiondb.model import Document, Export, Loss, Message


class TreeWriter(WriterV1):
    """One session on its way to a tree, which has the lists beside the session."""

    CARRIES = replace(WriterV1.CARRIES, lists=frozenset({"todos", "diffs"}))


def write(
    sessions: Iterable[Export], *, detail: str = "full", together: bool = False
) -> Iterator[Document | Loss]:
    """Yield the files of each session, and each project once."""
    del detail, together  # nothing can be left out of a tree
    projects: set[str] = set()

    for export in sessions:
        losses = Losses()
        losing = Losing(export, losses)
        messages = list(losing.counted(export.messages))
        losing.lose_branches()
        found = losing.printable(TreeWriter(export, messages, losses).json())
        info = found["info"]

        project = str(info["projectID"])
        if project not in projects:
            projects.add(project)
            yield from _project_files(export, info, project)
        yield from _session_files(found)
        yield from _beside(export, info["id"])
        yield from _outputs(messages)
        # The file of a complete output is written here.
        yield from (loss for loss in losses if loss.why != COMPLETE_OUTPUT)


def _file(*steps: Any, value: Any) -> Document:
    place = "/".join(map(file_name, steps))
    return Document(f"storage/{place}.json", (json_text(value),))


def _project_files(
    export: Export, info: dict[str, Any], name: str
) -> Iterator[Document]:
    if export.project is None:
        created = {"created": info["time"]["created"]}
        record = {"id": name, "worktree": info["directory"], "time": created}
        yield _file("project", name, value=record)
        return

    record = project_record(export.project, SOURCE, info["projectID"])
    yield _file("project", name, value=record)
    permission = export.project.permission
    if permission is not None:
        yield _file("permission", name, value=_rules_of_1x(permission))


def _rules_of_1x(permission: Any) -> Any:
    """Return permissions with the rules of 2 translated; others stay as they are."""
    is_second = any("resource" in as_object(rule) for rule in as_list(permission))
    rules = translated(permission, RULE_V1) if is_second else None
    return permission if rules is None else rules


def _session_files(document: dict[str, Any]) -> Iterator[Document]:
    info = document["info"]
    yield _file("session", str(info["projectID"]), info["id"], value=info)

    for entry in document["messages"]:
        message = entry["info"]
        yield _file("message", info["id"], message["id"], value=message)
        for part in entry["parts"]:
            yield _file("part", part["messageID"], part["id"], value=part)


def _beside(export: Export, session: str) -> Iterator[Document]:
    """The todo list, the diffs and the share of a session."""
    data = export.session.data
    todos = data.get(TODO_REST) or [todo_record(todo) for todo in export.todos]
    if todos:
        yield _file("todo", session, value=todos)

    yield _file("session_diff", session, value=session_diff(export.diffs, data))

    share = export.session.metadata.get("share")

    if isinstance(share, dict):
        kept = data.get(SHARE_REST, {}).get("folder")
        folder = kept if kept in SHARES else SHARES[0]
        yield _file(folder, session, value=share)


def _outputs(messages: list[Message]) -> Iterator[Document]:
    """The files that cut outputs name, beside ``storage/`` as OpenCode keeps them."""
    for message in messages:
        kept = [part.data.get(OUTPUT_FILE) for part in message.parts]
        for output in filter(None, kept):
            yield Document(output["name"], (output["content"],))


EXPORTER = Exporter(write, names_of=names_of)
