"""Sources that are as they were: two statements for a hundred logs.

The reader of a log yields a session by the beginning of its file, and reads the rest
only if the session changed. Nearly all of a second import are sessions that did not. So
the importer looks a few sessions ahead, and those whose digest is that of the ledger
need no look-up of their own, nor the gate: nothing of them is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeGuard

from sessiondb import ids
from sessiondb.engine.sql import Statement, as_list
from sessiondb.importing.gate import values
from sessiondb.importing.gate.values import Check, check_fields
from sessiondb.model import Imported, SourceHistory, SourceItem, SourceSession
from sessiondb.repository import Read

#: Sessions that are looked at together.
MOST = 100
_ENTRIES = Statement("importing.unchanged.ENTRIES")
_FOLLOWING = Statement("importing.unchanged.FOLLOWING")
_HISTORY = Statement("importing.unchanged.HISTORY")
_HISTORY_FIELDS: Mapping[str, Check] = {
    "source": ids.valid_id,
    "path": values.path,
    "digest": values.exact,
}


class _LedgerEntry(NamedTuple):
    """The entry of a session in the ledger if it did not change."""

    source: str
    path: str
    digest: str
    namespace: str


class _Name(NamedTuple):
    """The name of a session."""

    source: str
    source_id: str
    namespace: str


def read_ahead(items: Iterable[SourceItem]) -> Iterator[list[SourceItem]]:
    """Yield what a reader yields: its logs by up to `MOST`, anything else by itself.

    An error of the reader is raised after all that came before it.
    """
    logs: list[SourceItem] = []
    try:
        for item in items:
            if is_log(item):
                logs.append(item)
                if len(logs) < MOST:
                    continue
            if logs:
                yield logs
                logs = []
            if not is_log(item):
                yield [item]
    except Exception:
        if logs:
            yield logs
        raise
    if logs:
        yield logs


def unchanged_sessions(items: Sequence[SourceItem]) -> Read[list[Imported | None]]:
    """Return the outcome of each item that is certainly unchanged, None of any other.

    Such a session follows its source, and is shown. It was read from the same path
    without a problem, and had the digest that it has now.
    """
    logs = [item if _has_sound_names(item) else None for item in items]
    entries: set[_LedgerEntry] = set()
    following: dict[_Name, tuple[str, int]] = {}
    for source in {log.source for log in logs if log is not None}:
        of_source = [log for log in logs if log is not None and log.source == source]
        paths = as_list(_ledger_path(log) for log in of_source)
        rows = yield _ENTRIES, {"source": source, "paths": paths}
        entries.update(_LedgerEntry(source, *row) for row in rows)

        names = as_list(log.source_id for log in of_source)
        rows = yield _FOLLOWING, {"source": source, "names": names}
        for source_id, namespace, session_id, messages in rows:
            following[_Name(source, source_id, namespace)] = session_id, messages

    return [
        None if log is None else _outcome_of(log, entries, following) for log in logs
    ]


def _outcome_of(
    log: SourceSession,
    entries: set[_LedgerEntry],
    following: Mapping[_Name, tuple[str, int]],
) -> Imported | None:
    """Return the outcome of a log with its entry and its session; else None."""
    name = _Name(log.source, log.source_id, log.namespace)
    entry = _LedgerEntry(log.source, _ledger_path(log), log.digest, log.namespace)
    if entry not in entries or name not in following:
        return None
    session_id, messages = following[name]
    return Imported("unchanged", session_id, log.source, log.source_id, messages)


def history_entry(item: SourceHistory, project_root: str | None) -> dict[str, Any]:
    """Return what the entry of a history in the ledger states.

    Raises `InvalidInputError` for one that cannot be stored.
    """
    facts = check_fields(item, _HISTORY_FIELDS)
    # Without the prompts of other projects it was not read to its end.
    if project_root is not None:
        facts["digest"] += f" {project_root}"
    return facts


def is_known_history(entry: Mapping[str, Any]) -> Read[bool]:
    """Return whether all of a history was read, after the sessions that it may name."""
    rows = yield _HISTORY, {name: entry[name] for name in ("source", "path")}
    return any(
        digest == entry["digest"] and is_complete for digest, is_complete in rows
    )


def is_log(item: SourceItem) -> bool:
    """Return whether an item can be read after others of its reader."""
    return isinstance(item, SourceSession) and item.complete is not None


def _has_sound_names(item: SourceItem) -> TypeGuard[SourceSession]:
    """Return whether a log can be compared; where it was used last may have changed."""
    if not isinstance(item, SourceSession) or item.complete is None:
        return False
    if item.stored is not None or item.terminals:
        return False
    names = (item.source, item.source_id, item.path, item.digest, item.namespace)
    return all(type(name) is str for name in names) and item.path != ""


def _ledger_path(log: SourceSession) -> str:
    return values.ledger_path(log.path, log.source_id)
