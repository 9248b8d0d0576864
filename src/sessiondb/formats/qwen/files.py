"""Complete outputs of tools, which a record names and holds only the ends of.

They are in the folder of a project below ``tmp``; the record has the path that they had
on the machine that wrote it. Files are read from inside the store alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from sessiondb.formats.kit.fields import as_list, text, within
from sessiondb.formats.kit.files import read_small
from sessiondb.model import MessageDraft, PartDraft

#: The folder of the project and the file; nothing that leads out of ``tmp``.
_NAMED = re.compile(r"[/\\]tmp[/\\]([\w-]+)[/\\](\w[\w.-]*\.(?:output|txt))\b")


def with_outputs(draft: MessageDraft, log: Path) -> MessageDraft:
    """Return a result with the files that it names."""
    home = next((p.parent for p in log.parents if p.name == "projects"), None)
    if home is None or draft.role != "tool":
        return draft

    files = _outputs(dict.fromkeys(_paths(draft)), home)
    return replace(draft, parts=(*draft.parts, *files))


def _paths(draft: MessageDraft) -> Iterator[tuple[str, str]]:
    """Yield the folders and names of the files that a result names."""
    result: Any = draft.data.get("toolCallResult")
    named = as_list(within(result, "resultDisplay", "outputFiles"))
    named += as_list(within(result, "persistedOutputFiles"))
    # The name is in the first lines of what replaces the output.
    told = [part.text[:2000] for part in draft.parts if part.text]
    for item in filter(text, [*named, *told]):
        yield from _NAMED.findall(item)


def _outputs(paths: dict[tuple[str, str], None], home: Path) -> Iterator[PartDraft]:
    for folder, name in paths:
        content = read_small(home / "tmp" / folder / name)
        if content is not None:
            known = {"filename": name, "content": content}
            yield PartDraft("file", data={**known, "added": f"{folder}/{name}"})
