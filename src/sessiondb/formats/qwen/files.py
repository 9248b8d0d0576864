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
from sessiondb.formats.kit.files import ancestor
from sessiondb.formats.kit.genai import outputs_in
from sessiondb.model import MessageDraft

#: The folder of the project and the file; nothing that leads out of ``tmp``.
_NAMED = re.compile(r"[/\\]tmp[/\\]([\w-]+)[/\\](\w[\w.-]*\.(?:output|txt))\b")


def with_outputs(draft: MessageDraft, log: Path) -> MessageDraft:
    """Return a result with the files that it names."""
    projects = ancestor(log, "projects")
    if projects is None or draft.role != "tool":
        return draft

    names = dict.fromkeys(_named(draft))
    files = outputs_in(projects.parent / "tmp", names)
    return replace(draft, parts=(*draft.parts, *files))


def _named(draft: MessageDraft) -> Iterator[str]:
    """Yield the files that a result names, each with its folder."""
    result: Any = draft.data.get("toolCallResult")
    named = as_list(within(result, "resultDisplay", "outputFiles"))
    more = as_list(within(result, "persistedOutputFiles"))

    # The name is in the first lines of what replaces the output.
    replaced = [(part.text or "")[:2000] for part in draft.parts]
    for item in filter(text, [*named, *more, *replaced]):
        yield from map("/".join, _NAMED.findall(item))
