"""aider: one Markdown file with all runs of a project, and the input history beside it.

`conventions` has the shapes of lines in both directions, `scanner` cuts the file into
blocks by them, `fences` judges a fence that may have been left open, `inputs` reads the
input history, `reader` makes sessions of runs, `drafts` messages of blocks, and
`records` makes blocks of messages again.
"""

from __future__ import annotations

from pathlib import Path

from sessiondb.errors import SourceError
from sessiondb.formats.aider.conventions import BOM, CHAT, HEADER
from sessiondb.formats.kit.files import is_file, locations_function
from sessiondb.formats.kit.lines import read_beginning
from sessiondb.formats.protocol import ForeignStore, Format, late_reader

__all__ = ["FORMAT"]

_read_history = late_reader("sessiondb.formats.aider.reader", "read")

#: Bytes of a file of another name that are looked at for a header.
_HEAD = 256


def _at(path: Path) -> ForeignStore | None:
    if path.suffix == ".md" and is_file(path) and _is_history(path):
        return ForeignStore("aider", path, _read_history)
    return None


def _is_history(path: Path) -> bool:
    if path.name == CHAT:
        return True
    try:
        head = read_beginning(path, _HEAD)
    except SourceError:
        return False
    first = head.removeprefix(BOM).strip().split(b"\n")[0]
    return HEADER.fullmatch(first.strip()) is not None


#: Only a history that aider is configured to write has a fixed place.
_configured = locations_function(("AIDER_CHAT_HISTORY_FILE",), ())

FORMAT = Format(frozenset({".md"}), _at, _configured, frozenset({CHAT}))
