"""Secrets removed from sessions before they are written in any format.

Every text of a record is cleaned, whichever column it is in: only ids and words of a
fixed set are not, so a column that is added later is cleaned as well. A value that any
text or key calls a password or a token is removed wherever else it occurs, so sessions
are read twice: first to learn these values, then to write them.

`secrets` knows shapes, not meanings: a password in the middle of a sentence stays, and
so does what is inside of an image. Read what you hand out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields, replace
from functools import cache
from typing import Any, TypeVar

from sessiondb.dataclass import dataclass, field
from sessiondb.formats import secrets
from sessiondb.formats.kit.fields import without_keys
from sessiondb.model import (
    Export,
    FileDiff,
    Label,
    Message,
    Part,
    Project,
    Prompt,
    Session,
    Todo,
)

Record = TypeVar(
    "Record", Session, Project, Message, Part, FileDiff, Label, Todo, Prompt
)

PLACE = "[redacted]"
#: Columns that are ids, which other records refer to, or words of a fixed set.
IDS_AND_WORDS = frozenset(
    "id project_id parent_id root_id session_id turn_id call_id response_id usage_key "
    "usage_name parent_source_id source_id namespace relation role kind type status "
    "finish vcs root_commit title_source model_source source".split()
)
_NAMED_SECRET, _SHARE = "named secret", "address of a share"
_EXTENSION = "table of an extension"


@dataclass(frozen=True, slots=True)
class Redacted:
    """How many secrets of a kind were removed from a session, and where.

    ``seqs`` are the messages that had them, oldest first, ``fields`` the other places:
    ``title`` and further columns of the session, ``label``, ``todo`` and the like.
    ``starts`` are their first characters, few enough to keep the secret, each once.
    """

    session_id: str
    kind: str
    count: int
    seqs: tuple[int, ...]
    fields: tuple[str, ...]
    starts: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return asdict(self)


@dataclass(slots=True)
class _Removed:
    """The secrets of a kind in a session, while it is read."""

    count: int = 0
    #: Messages by seq, other places by name, first characters: each once, in order.
    seqs: dict[int, None] = field(default_factory=dict)
    fields: dict[str, None] = field(default_factory=dict)
    starts: dict[str, None] = field(default_factory=dict)


def start_of(secret: str) -> str:
    """Return the first characters of *secret*: four, and no more than a third."""
    return f"{secret[: min(4, len(secret) // 3)]}…"


class Redaction:
    """The redaction of the sessions of one export.

    `learn` from all of them first; then `redact` each, and read it to its end.
    """

    def __init__(self) -> None:
        self._named: set[str] = set()
        #: Passwords that are plain words: only complete words are these.
        self._words: set[str] = set()
        self._repeated: list[str] | None = None
        self._words_pattern: re.Pattern[str] | None = None
        self._removed: dict[tuple[str, str], _Removed] = {}
        self._session_id = ""
        #: The message that is cleaned, or the name of another place.
        self._place: int | str = ""

    # -- the secrets that are named anywhere ---------------------------------------

    def learn(self, export: Export) -> None:
        """Note the values that *export* calls secret; its messages are read."""
        for record in _records_of(export):
            self._learn_value(_texts_of(record))
        for message in export.messages:
            self._learn_value(_texts_of(message))
            for part in message.parts:
                self._learn_value(_texts_of(part))
        self._repeated = None

    def _learn_value(self, value: Any, name: str = "") -> None:
        if isinstance(value, str):
            if _is_secret_field(name, value):
                self._learn_secret(value, secrets.is_password_name(name))
            for secret in secrets.find_secrets(value):
                if secret.is_named:
                    text = value[secret.start : secret.end]
                    self._learn_secret(text, secret.is_literal)
        elif isinstance(value, bytes):
            self._learn_value(_text_of_bytes(value))
        elif isinstance(value, Mapping):
            for key, item in value.items():
                self._learn_value(item, name=str(key))
        elif isinstance(value, list | tuple):
            for item in value:
                self._learn_value(item, name)

    def _learn_secret(self, value: str, is_literal: bool) -> None:
        # In a sentence, an address or a shell a sign may follow that is not of it.
        pieces = re.split(r"[&;,]", value)
        for text in (value, pieces[0].rstrip(".:!?)]}>")):
            if secrets.is_distinctive(text):
                self._named |= secrets.spellings(text)
            elif is_literal and secrets.is_word(text):
                self._words.add(text)

    # -- the records without them ---------------------------------------------------

    def redact(self, export: Export) -> Export:
        """Return *export* without secrets; messages are cleaned as they are read."""
        if self._repeated is None:
            # The longest first: a shorter one may be its beginning.
            self._repeated = sorted(self._named, key=lambda value: (-len(value), value))
            self._words_pattern = secrets.words_pattern(self._words)
        self._session_id = export.session.id
        return replace(
            export,
            session=self._clean_session(export.session),
            messages=self._clean_messages(export),
            parent=export.parent and self._clean_session(export.parent, "parent "),
            project=export.project and self._clean_other(export.project, "project"),
            labels=self._clean_all(export.labels, "label"),
            todos=self._clean_all(export.todos, "todo"),
            diffs=self._clean_all(export.diffs, "diff"),
            prompts=self._clean_all(export.prompts, "prompt"),
            # Names of labels and digests of values, for a merge: this is no copy.
            base={},
            extension_tables=self._withhold_tables(export),
            extension_rows=(),
        )

    def report(self) -> list[Redacted]:
        """Return what was removed so far, by session and kind; nothing is ``[]``."""
        return [
            Redacted(
                session_id,
                kind,
                removed.count,
                tuple(sorted(removed.seqs)),
                tuple(removed.fields),
                tuple(removed.starts),
            )
            for (session_id, kind), removed in self._removed.items()
        ]

    def _withhold_tables(self, export: Export) -> tuple[()]:
        """Note that rows of programs are left out: their bytes cannot be read here."""
        for table in export.extension_tables:
            key = export.session.id, _EXTENSION
            removed = self._removed.setdefault(key, _Removed())
            removed.count += 1
            removed.fields[table] = None
        return ()

    def _clean_all(self, records: Sequence[Record], place: str) -> tuple[Record, ...]:
        return tuple([self._clean_other(record, place) for record in records])

    def _clean_other(self, record: Record, place: str) -> Record:
        self._place = place
        return self._clean_record(record)

    def _clean_messages(self, export: Export) -> Iterator[Message]:
        for message in export.messages:
            # Several exports may be read in turns.
            self._session_id, self._place = export.session.id, message.seq
            parts = tuple(self._clean_record(part) for part in message.parts)
            yield replace(self._clean_record(message), parts=parts)

    def _clean_session(self, session: Session, place: str = "") -> Session:
        # With its address a share can be read, with its secret ended.
        if session.share_url is not None:
            self._place = f"{place}share_url"
            self._note_secret(_SHARE, session.share_url)
        public = without_keys(("share",), session.metadata)
        session = replace(session, share_url=None, metadata=public)

        changed = {}
        for name, value in _texts_of(session).items():
            self._place = f"{place}{name}"
            changed[name] = self._clean_value(value)
        return replace(session, **changed)

    def _clean_record(self, record: Record) -> Record:
        changed = {
            name: self._clean_value(value) for name, value in _texts_of(record).items()
        }
        if "input_json" in changed and changed["input_json"] is not None:
            changed["input_json"] = json.dumps(
                changed["input_json"], separators=(",", ":"), ensure_ascii=False
            )
        return replace(record, **changed)

    def _clean_value(self, value: Any, name: str = "") -> Any:
        """Return plain data without secrets; *name* is the key that it belongs to."""
        if isinstance(value, str):
            if _is_secret_field(name, value):
                self._note_secret(_NAMED_SECRET, value)
                return PLACE
            return self._clean_text(value)
        if isinstance(value, bytes):
            text = _text_of_bytes(value)
            return value if text is None else self._clean_text(text).encode()
        if isinstance(value, Mapping):
            return {
                self._clean_text(key): self._clean_value(item, name=key)
                for key, item in value.items()
            }
        if isinstance(value, list | tuple):
            return [self._clean_value(item, name) for item in value]
        if type(value) is int and secrets.is_password_name(name) and value > 99:
            self._note_secret(_NAMED_SECRET, str(value))
            return PLACE
        return value

    def _clean_text(self, text: str) -> str:
        return secrets.substitute_secrets(
            text, PLACE, self._note_secret, self._repeated or [], self._words_pattern
        )

    def _note_secret(self, kind: str, secret: str) -> None:
        removed = self._removed.setdefault((self._session_id, kind), _Removed())
        removed.count += 1
        removed.starts[start_of(secret)] = None
        if isinstance(self._place, int):
            removed.seqs[self._place] = None
        else:
            removed.fields[self._place] = None


def _is_secret_field(name: str, value: str) -> bool:
    return bool(name) and len(value) >= 4 and secrets.is_secret_name(name)


def _records_of(export: Export) -> Iterator[Any]:
    """Yield the records of *export* but its messages."""
    yield export.session
    for record in (export.parent, export.project):
        if record is not None:
            yield record
    yield from (*export.labels, *export.todos, *export.diffs, *export.prompts)


@cache
def _text_columns(kind: type[Any]) -> tuple[str, ...]:
    return tuple(
        column.name
        for column in fields(kind)
        if column.name not in IDS_AND_WORDS and column.name != "parts"
    )


def _texts_of(record: Any) -> dict[str, Any]:
    """Return what may hold a secret, by column; the input of a call as a value."""
    texts = {}
    for name in _text_columns(record.__class__):
        value = getattr(record, name)
        if name == "input_json" and value is not None:
            value = json.loads(value)
        if isinstance(value, str | bytes | Mapping | list | tuple):
            texts[name] = value
    return texts


def _text_of_bytes(content: bytes) -> str | None:
    """Return the text that *content* is; None for other bytes."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None
