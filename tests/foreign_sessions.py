"""Sessions of a program that does not exist, as a reader would yield them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sessiondb import PartDraft, Store, text
from sessiondb.model import (
    Imported,
    MessageDraft,
    Problem,
    SourceMessage,
    SourceSession,
    Tokens,
)

SOURCE = "elsewhere"
#: The first moment of the foreign program, in Unix ms.
T0 = 1_700_000_000_000


def said(
    id: str,
    words: str = "",
    *,
    role: str = "assistant",
    at: int = 0,
    cost: float | None = None,
    tokens: int | None = None,
    parts: tuple[PartDraft, ...] = (),
    parent: Any = ...,
    usage_id: str | None = None,
    labels: tuple[str, ...] = (),
    **fields: Any,
) -> SourceMessage:
    """A message of the source, *at* milliseconds after `T0`."""
    draft = MessageDraft(
        role, parts or (text(words or id),), id, cost=cost, tokens=Tokens(input=tokens),
        time_created=T0 + at, **fields,
    )  # fmt: skip
    return SourceMessage(draft, parent=parent, usage_id=usage_id, labels=labels)


def session_of(
    source_id: str,
    *messages: SourceMessage | Problem,
    digest: str | None = None,
    **fields: Any,
) -> SourceSession:
    """A session of the source; its digest is that of its content unless given."""
    fields.setdefault("time_created", T0)
    fields.setdefault("directory", "/elsewhere/project")
    digest = digest or repr((messages, sorted(fields.items(), key=str)))
    return SourceSession(
        SOURCE, source_id, "/elsewhere/store", digest, messages, **fields
    )


def take_in(store: Store, *found: SourceSession, **how: Any) -> list[Imported]:
    """Import sessions and return the outcome of each; there must be no problem."""
    results = list(store.ingest(found, **how))
    assert all(isinstance(item, Imported) and not item.problems for item in results), (
        results
    )
    return [item for item in results if isinstance(item, Imported)]


def outcomes(results: Iterable[Imported]) -> list[str]:
    """The outcomes of an import, in order."""
    return [item.outcome for item in results]
