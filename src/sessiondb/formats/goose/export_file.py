"""The file of ``goose session export --format json``: one session in one document."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

from sessiondb.errors import SourceError
from sessiondb.formats.goose.layouts import Contents, Fetch, SessionHead
from sessiondb.formats.goose.logs import entry_of
from sessiondb.formats.goose.visibility import MessageEntry
from sessiondb.formats.kit.fields import as_list, fitting, is_object, without_keys
from sessiondb.formats.kit.files import read_file
from sessiondb.formats.kit.heads import beginning_of
from sessiondb.formats.kit.json import OddRecordError, load_object, usable_id
from sessiondb.formats.kit.logs import log_digest
from sessiondb.model import Problem
from sessiondb.patterns import late_pattern

#: How much of a file says whether it is an export, in bytes.
_HEAD = 16 << 10
_BEGINNING = late_pattern(rb'\A(\xef\xbb\xbf)?\s*\{\s*"[a-z_]+"\s*:')
#: A text, after which a colon makes it a key, or a bracket. The last text may be cut.
_TOKEN = late_pattern(rb'"((?:[^"\\]|\\.)*)(?:"|\\?\Z)(\s*:)?|[][{}]', re.DOTALL)
#: The keys that no other program writes beside the directory.
_SIGNS = frozenset(
    {b"extension_data", b"conversation", b"message_count", b"user_set_name"}
)

Record = dict[str, Any]


def is_export(path: Path) -> bool:
    """Return whether a file is an export of Goose, by its beginning."""
    with contextlib.suppress(SourceError):
        head = beginning_of(path, _HEAD)
        keys = _keys_of(head) if _BEGINNING.match(head) else set()
        return b"working_dir" in keys and not _SIGNS.isdisjoint(keys)

    return False


def _keys_of(head: bytes) -> set[bytes]:
    """Return the keys of a document that begins with *head*, not those inside of it."""
    keys, depth = set(), 0
    for token in _TOKEN.finditer(head):
        name, colon = token.groups()
        if name is None:
            depth += 1 if token[0] in b"[{" else -1
        elif colon and depth == 1:
            keys.add(name)
    return keys


class ExportFile:
    """One exported session; see `layouts.Layout`."""

    def __init__(self, path: Path) -> None:
        document = load_object(read_file(path))
        name = document.get("id")
        if not usable_id(name):
            raise OddRecordError("has no usable id")

        # The messages are read on their own; anything else in their place is kept.
        conversation = document.get("conversation")
        self._messages = as_list(conversation)
        is_kept = conversation is not None and not isinstance(conversation, list)
        record = without_keys(() if is_kept else ("conversation",), document)
        first = fitting(self._messages[0], is_object) if self._messages else None
        digest = log_digest(path)
        self.head = SessionHead(
            path, str(name), digest, record, is_export=True, first=first
        )

    def index_messages(self) -> Contents:
        """Index all messages."""
        contents = Contents()
        names: set[str] = set()
        for index, record in enumerate(self._messages):
            if not is_object(record):
                reason = f"message {index + 1} skipped: it is not a JSON object"
                contents.problems.append(Problem(str(self.head.path), reason))
                continue

            name = f"msg_{self.head.source_id}_{index + 1}"
            contents.entries.append(entry_of(record, name, index, names))

        return contents

    @contextlib.contextmanager
    def open_records(self) -> Iterator[Fetch]:
        """Give copies: drafts take their records apart."""
        yield lambda entry: deepcopy(self._messages[entry.key])

    def place_of(self, _: MessageEntry) -> None:
        """Return None: the lines of a document are not reported."""
        return
