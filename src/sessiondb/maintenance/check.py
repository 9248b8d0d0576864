"""Verify the database. Read-only: `sessiondb.maintenance.repair` repairs.

All checks read one snapshot, so a concurrent writer cannot look like damage. Only
the comparison of the search index with its content takes the write lock, so it
comes last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from sessiondb import codec
from sessiondb.arguments import OpenedStore, checked
from sessiondb.dataclass import dataclass
from sessiondb.engine.base import Connection
from sessiondb.errors import BusyError, CodecError, UnavailableError
from sessiondb.location.database import database_of
from sessiondb.maintenance.connecting import connected
from sessiondb.maintenance.derived import DERIVATIONS
from sessiondb.maintenance.questions import QUESTIONS
from sessiondb.maintenance.values import misspelt_namespaces


@dataclass(frozen=True, slots=True)
class Finding:
    """A defect: the check that found it, what is wrong, and how often.

    ``repair`` is what `repair` does about it, None if it is beyond repair. ``session``
    is the id of the session that lost something, None if it is not of one session.
    """

    check: str
    what: str
    count: int
    repair: str | None = None
    session: str | None = None


_ORPHANS = {
    ("session", "session"): "detach them",
    ("session", "project"): "make the project again",
    ("prompt", "session"): "keep the prompt alone",
    ("prompt", "project"): "keep the prompt alone",
}

Check = Callable[[Connection], Iterator[Finding]]


@checked
def check(store: OpenedStore) -> list[Finding]:
    """Return every defect of the database of *store*; ``[]`` if there is none.

    Damage that prevents a check is a finding of that check. A server examines its own
    storage; of its database the rows are checked.
    Raises `BusyError`, `StorageError` and `UnavailableError`.
    """
    checks: dict[str, Check] = {
        "integrity": _check_integrity,
        "references": _check_references,
        "blobs": _check_blobs,
        "payload": _check_payload,
        "cycles": _check_cycles,
        "values": _check_values,
        "derived": _check_derived,
        "extensions": _check_extensions,
        "search": _check_search,
        **{name: _counting_check(name) for name in QUESTIONS},
    }
    findings: list[Finding] = []
    database = database_of(store)
    with connected(database) as connection:
        connection.execute(connection.engine.begin_read)
        for name, run in checks.items():
            findings += _found_by(name, run, connection)

    with connected(database, mode="rw") as connection:
        findings += _found_by("search index", _search_index, connection)

        # A repair writes, which is not safe in a damaged storage.
        is_of_pages = connection.engine.upkeep.is_of_pages
    storage = [finding.what for finding in findings if finding.check == "integrity"]
    if any(map(is_of_pages, storage)):
        findings = [replace(finding, repair=None) for finding in findings]

    return findings


def _found_by(name: str, run: Check, connection: Connection) -> list[Finding]:
    findings: list[Finding] = []
    try:
        findings.extend(run(connection))
    except connection.engine.Error as error:
        reason = connection.engine.translate(error)
        # A lock and a server that is gone are not defects; anything else is.
        if isinstance(reason, BusyError | UnavailableError):
            raise reason from error
        findings.append(Finding(name, str(error), 1))
        # PostgreSQL refuses further statements in a transaction with one that failed.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
            connection.execute(connection.engine.begin_read)

    return findings


def _check_integrity(connection: Connection) -> Iterator[Finding]:
    """Yield damage of the storage, the indexes and the constraints."""
    upkeep = connection.engine.upkeep
    for line, number in Counter(upkeep.damage(connection)).items():
        action = "build the index again" if upkeep.is_of_an_index(line) else None
        yield Finding("integrity", line, number, action)


def _check_references(connection: Connection) -> Iterator[Finding]:
    """Yield rows whose reference is broken: a delete without foreign keys does it."""
    broken = Counter(connection.engine.upkeep.broken_references(connection))
    for (table, parent), number in broken.items():
        # Lost bytes cannot be restored; `_lost_blobs` names the sessions they were of.
        is_lost = parent == "blob"
        action = None if is_lost else _ORPHANS.get((table, parent), "remove them")
        yield Finding(
            "references", f"rows of {table} without their {parent}", number, action
        )

    if any(parent == "blob" for _, parent in broken):
        yield from _lost_blobs(connection)
    yield from _lost_parts(connection)


def _lost_blobs(connection: Connection) -> Iterator[Finding]:
    """Name each session of which bytes are lost: only a backup has them."""
    for table, column in connection.engine.upkeep.references_to(connection, "blob"):
        owner = "id" if table == "session" else "session_id"
        sql = (
            f"SELECT {owner}, count(*) FROM {table} WHERE {column} IS NOT NULL "
            f"AND NOT EXISTS (SELECT 1 FROM blob WHERE hash = {column}) GROUP BY 1"
        )
        for session_id, number in connection.execute(sql):
            defect = f"values of {table}.{column} of session {session_id} are lost"
            yield Finding("lost", defect, number, session=session_id)


def _lost_parts(connection: Connection) -> Iterator[Finding]:
    """Name each session of which parts are lost: they are numbered without gaps."""
    sql = (
        "SELECT session_id, count(*) FROM (SELECT session_id FROM part "
        "GROUP BY session_id, seq HAVING max(idx) >= count(*)) AS gaps "
        "GROUP BY session_id"
    )
    for session_id, number in connection.execute(sql):
        defect = f"parts of messages of session {session_id} are lost"
        yield Finding("lost", defect, number, session=session_id)


def _check_cycles(connection: Connection) -> Iterator[Finding]:
    """Yield rows that are their own ancestors: a walk up from them would not end."""
    if looped := session_cycles(connection):
        yield Finding(
            "cycles", "sessions that are their own ancestors", len(looped), "detach one"
        )
    if looped_messages := message_cycles(connection):
        defect = "messages that are their own ancestors"
        action = "put them behind the message before them"
        yield Finding("cycles", defect, len(looped_messages), action)


def session_cycles(connection: Connection) -> list[str]:
    """Return one session of each circle of parents, the oldest."""
    rows = connection.execute(
        "SELECT id, parent_id, time_created FROM session WHERE parent_id IS NOT NULL"
    ).fetchall()
    parents = {name: parent for name, parent, _ in rows}
    age = {name: (time, name) for name, _, time in rows}
    return [min(circle, key=lambda name: age[name]) for circle in circles(parents)]


def message_cycles(connection: Connection) -> list[tuple[str, int]]:
    """Return (session, seq) of one message of each circle of parents, the first."""
    first_messages: list[tuple[str, int]] = []
    # A parent with a smaller seq cannot lead back.
    sessions = connection.execute(
        "SELECT DISTINCT session_id FROM message WHERE parent_seq > seq"
    ).fetchall()

    for (session_id,) in sessions:
        rows = connection.execute(
            "SELECT seq, parent_seq FROM message WHERE session_id = ?", (session_id,)
        )
        first_messages += [
            (session_id, min(circle)) for circle in circles(dict(rows.fetchall()))
        ]

    return first_messages


def circles(parents: dict[Any, Any]) -> list[list[Any]]:
    """Return the circles in a map from each item to the one above it."""
    rings: list[list[Any]] = []
    done: set[Any] = set()

    for start in parents:
        path: dict[Any, int] = {}
        item = start
        while item in parents and item not in done and item not in path:
            path[item] = len(path)
            item = parents[item]
        if item in path:
            rings.append(list(path)[path[item] :])
        done |= path.keys()

    return rings


def _check_payload(connection: Connection) -> Iterator[Finding]:
    """Name each session with ``data`` that cannot be decoded, except that in blobs.

    Their content is verified by its hash.
    """
    for table, owner in (
        ("session", "id"),
        ("message", "session_id"),
        ("part", "session_id"),
    ):
        broken: Counter[str] = Counter()
        rows = connection.execute(
            f"SELECT {owner}, data FROM {table} WHERE data IS NOT NULL"
        )
        for session_id, data in rows:
            try:
                codec.unpack(data)
            except (CodecError, TypeError):
                broken[session_id] += 1
        for session_id, number in broken.items():
            defect = f"values of {table}.data of session {session_id} cannot be decoded"
            yield Finding("payload", defect, number, session=session_id)


def _check_blobs(connection: Connection) -> Iterator[Finding]:
    altered: list[str] = []
    measured_wrong = 0
    for name, size, *stored in connection.execute(
        "SELECT hash, size, encoding, data FROM blob"
    ):
        digest, right_size = codec.measure_blob(*stored)
        if digest != name:
            altered.append(name)
        elif size != right_size:
            measured_wrong += 1

    if measured_wrong:
        defect = "blobs whose size is wrong"
        yield Finding("blobs", defect, measured_wrong, "measure them again")
    if altered:
        defect = "blobs whose content does not match their hash"
        yield Finding("blobs", defect, len(altered))
        yield from _altered_values(connection, altered)

    sql = f"SELECT count(*) FROM blob WHERE hash NOT IN ({used_blobs(connection)})"
    if number := connection.execute(sql).fetchone()[0]:
        yield Finding("blobs", "blobs that nothing refers to", number, "remove them")


def _altered_values(connection: Connection, names: list[str]) -> Iterator[Finding]:
    """Name each session that refers to one of the blobs *names*."""
    for table, column in connection.engine.upkeep.references_to(connection, "blob"):
        owner = "id" if table == "session" else "session_id"
        sql = f"SELECT {owner} FROM {table} WHERE {column} = ?"
        of_sessions: Counter[str] = Counter()
        for name in names:
            of_sessions.update(row[0] for row in connection.execute(sql, (name,)))
        for session_id, number in of_sessions.items():
            defect = f"values of {table}.{column} of session {session_id} were changed"
            yield Finding("blobs", defect, number, session=session_id)


def used_blobs(connection: Connection) -> str:
    """Return the query for the hashes of the blobs that something refers to."""
    return " UNION ALL ".join(
        f"SELECT {column} FROM {table} WHERE {column} IS NOT NULL"
        for table, column in connection.engine.upkeep.references_to(connection, "blob")
    )


def _check_derived(connection: Connection) -> Iterator[Finding]:
    """Yield the columns and sums that differ from the rows that they follow from."""
    for derivation in DERIVATIONS:
        if number := connection.execute(derivation.count).fetchone()[0]:
            yield Finding(derivation.check, derivation.what, number, derivation.repair)
    if number := connection.engine.usage.count_wrong(connection):
        defect = "sessions whose sums of usage are not those of their messages"
        yield Finding("usage", defect, number, "sum them up again")


def _check_extensions(connection: Connection) -> Iterator[Finding]:
    """Yield the tables of programs that are declared and not there."""
    for extension, table in connection.engine.extensions.missing(connection):
        defect = f"table {table} of extension {extension} is missing"
        action = "forget the extension: its next write makes the table"
        yield Finding("extensions", defect, 1, action)


def _check_search(connection: Connection) -> Iterator[Finding]:
    index = connection.engine.search
    for defect, sql in (
        ("parts that search does not find", index.count_missing),
        ("rows of the search index without a part", index.count_orphans),
    ):
        if number := connection.execute(sql).fetchone()[0]:
            yield Finding("search", defect, number, "rebuild the index")


def _check_values(connection: Connection) -> Iterator[Finding]:
    """Yield namespaces under which no program finds a value."""
    spellings = misspelt_namespaces(connection).values()
    if number := sum(1 for right in spellings if right is not None):
        defect = "namespaces of values in another spelling than their own"
        yield Finding("values", defect, number, "spell them right")
    if number := sum(1 for right in spellings if right is None):
        yield Finding(
            "values", "namespaces of values that are not lists of names", number
        )


def _counting_check(name: str) -> Check:
    def run(connection: Connection) -> Iterator[Finding]:
        for defect, sql, action in QUESTIONS[name]:
            if number := connection.execute(sql).fetchone()[0]:
                yield Finding(name, defect, number, action)

    return run


def _search_index(connection: Connection) -> Iterator[Finding]:
    for name in connection.engine.search.damaged(connection):
        defect = f"{name} differs from its content"
        yield Finding("search index", defect, 1, "rebuild it")
