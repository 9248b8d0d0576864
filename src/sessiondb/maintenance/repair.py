"""Repair what `check` finds: rows that refer to nothing, counters, ownership, search.

A repair makes the rows consistent again; it never invents content. An exact copy of
the file is made first. All rows are repaired in one transaction, so an interrupt leaves
the file as it was; each action is a no-op if nothing is wrong, so a second repair
changes nothing. A loss that only a backup can replace (the bytes of a value, a damaged
page of a table) remains a finding.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import closing
from dataclasses import field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sessiondb import codec
from sessiondb.arguments import OpenedStore, file_of
from sessiondb.dataclass import dataclass
from sessiondb.effects import ownership
from sessiondb.effects.merge import merge_projects, projects_at
from sessiondb.effects.transaction import Transaction
from sessiondb.engine.base import Connection
from sessiondb.engine.default import ENGINE, target_at
from sessiondb.engine.sql import insert_new_text
from sessiondb.errors import CorruptionError
from sessiondb.hints import command
from sessiondb.maintenance.check import (
    Finding,
    check,
    message_cycles,
    session_cycles,
    used_blobs,
)
from sessiondb.maintenance.derived import (
    COUNTERS,
    HIDDEN_SESSIONS,
    MODEL,
    PART_INDEXED,
    PART_INHERITED,
    ROOT,
    Derivation,
)
from sessiondb.maintenance.questions import (
    AMBIGUOUS_KEYS,
    COUNTED_TWICE,
    SHARED_WORKTREES,
    UNNUMBERED,
    UNOWNED,
)
from sessiondb.maintenance.values import RESPELL, misspelt_namespaces
from sessiondb.schema.terms import USAGE_NAME
from sessiondb.schema.version import MIN_READER, MIN_WRITER

#: The advice for a database of a server.
ON_A_SERVER = "restore a backup of the database, which pg_restore or psql reads"
_LATER = "SELECT seq FROM message WHERE session_id = ? AND parent_seq > seq"
_LAST_SEQ = "(SELECT max(seq) FROM message WHERE session_id = session.id)"


@dataclass(frozen=True, slots=True)
class Repaired:
    """The result of a repair.

    ``backup`` is the copy made before, None if there was nothing to do; ``left`` are
    the remaining findings.
    """

    backup: Path | None
    repaired: list[Finding]
    left: list[Finding]


def repairable(findings: list[Finding]) -> list[Finding]:
    """Return the findings that a repair can do something about."""
    return [finding for finding in findings if finding.repair is not None]


def repair(
    store: OpenedStore,
    findings: list[Finding] | None = None,
    *,
    busy_timeout: float = 10.0,
) -> Repaired:
    """Repair the database of *store*; a no-op, without a copy, if nothing is wrong.

    *findings* are those of `check`, by default run now. *busy_timeout* is in seconds.
    Raises `UnsupportedError` for a database of a server, `CorruptionError` if a page of
    a table is damaged, `SchemaVersionError` and `UntrustedDatabaseError` for a schema
    that is not ours, `BusyError`, `StorageError`; each leaves the rows as they were.
    """
    path = file_of(store, ON_A_SERVER)
    defects = check(store) if findings is None else findings
    if not repairable(defects):
        return Repaired(None, [], defects)

    now = datetime.now(UTC)
    backup = path.with_name(f"{path.name}.before-repair-{now:%Y%m%dT%H%M%S.%fZ}")
    # Exact: a compact copy would fail at the first damaged page.
    with ENGINE.upkeep.copied(path, backup, exact=True):
        pass

    try:
        with closing(ENGINE.upkeep.connect_to_repair(path, busy_timeout)) as connection:
            _repair_indexes(connection)
            _repair_rows(connection, path)
    except ENGINE.Error as error:
        raise ENGINE.translate(error) from error

    # A repair may uncover defects that others had hidden.
    left = check(store)
    gone = {finding.what for finding in left}
    return Repaired(
        backup, [f for f in repairable(defects) if f.what not in gone], left
    )


def _repair_indexes(connection: Connection) -> None:
    upkeep = ENGINE.upkeep
    lines = upkeep.damage(connection)
    # Before anything else, which finds rows by their indexes.
    if lines:
        upkeep.reindex(connection)
        lines = upkeep.damage(connection)

    if any(upkeep.is_of_pages(line) for line in lines):
        raise CorruptionError(
            f"pages of the file are damaged beyond repair: {lines[0].strip()}",
            hint=f"{command('export', '-a', '--to', 'jsonl', '-o', 'saved.jsonl')} "
            "writes what can be read",
        )


def _repair_rows(connection: Connection, path: Path) -> None:
    engine = connection.engine
    engine.begin_write(connection)
    try:
        target_at(path).check_writable(connection)
        run = _RepairRun(connection)
        for action in ACTIONS:
            action(run)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@dataclass(slots=True)
class _RepairRun:
    """One repair: the transaction, and the sessions whose rows it changed."""

    connection: Connection
    tx: Transaction = field(init=False)
    touched: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.tx = Transaction(self.connection)
        self.tx.begin_unit(retried=False, root=None)

    def rows(self, sql: str, *values: Any) -> list[Any]:
        return self.connection.execute(sql, values).fetchall()

    def column(self, sql: str, *values: Any) -> list[Any]:
        """Return the first value of each row."""
        return [row[0] for row in self.rows(sql, *values)]

    def touch(self, sql: str, *values: Any) -> None:
        """Run a statement that returns the session of each row that it changed."""
        self.touched.update(self.column(sql, *values))

    def derive(self, derivation: Derivation) -> None:
        """Set the columns of *derivation* to what follows from the other rows.

        Again until nothing differs: the root of a session follows from the root of its
        parent, which may be wrong as well.
        """
        columns = ", ".join(f"{name} = ?" for name in derivation.values)
        is_row = " AND ".join(f"{name} = ?" for name in derivation.key)
        update = f"UPDATE {derivation.table} SET {columns} WHERE {is_row}"
        length = len(derivation.key)
        while wrong := self.rows(derivation.wrong):
            for row in wrong:
                self.touched.add(row[0])
                self.rows(update, *row[length:], *row[:length])


def _repair_search(run: _RepairRun) -> None:
    """Rebuild what differs from the rows.

    Before the rows change, because triggers remove their old entries; and again after
    that, because a value that was recovered is missing from the index.
    """
    search = run.connection.engine.search
    damaged = list(search.damaged(run.connection))
    search.rebuild(run.connection, damaged)


def _repair_meta(run: _RepairRun) -> None:
    facts = {
        "database_uuid": str(uuid.uuid4()),
        "min_reader": MIN_READER,
        "min_writer": MIN_WRITER,
    }
    # Only what is missing: another value may be that of a newer release.
    for fact in facts.items():
        run.rows(insert_new_text("meta", ("key", "value")), *fact)


def _repair_projects(run: _RepairRun) -> None:
    """Restore a project from its directories, or those of its sessions."""
    lost = run.rows(
        "SELECT project_id, min(time_created), max(time_updated), min(directory) "
        "FROM session "
        "WHERE project_id NOT IN (SELECT id FROM project) GROUP BY 1"
    )
    for project_id, created, updated, directory in lost:
        directories = run.column(
            "SELECT directory FROM project_directory WHERE project_id = ? "
            "ORDER BY kind <> 'worktree', time_created DESC, directory LIMIT 1",
            project_id,
        )
        worktree = directories[0] if directories else directory
        run.rows(
            "INSERT INTO project (id, worktree, time_created, time_updated) "
            "VALUES (?, ?, ?, ?)",
            project_id, worktree, created, updated,
        )  # fmt: skip

    run.rows(
        "INSERT INTO project_directory (directory, project_id, kind, time_created) "
        "SELECT worktree, id, 'worktree', ? FROM project "
        "WHERE id NOT IN (SELECT project_id FROM project_directory)",
        run.tx.now,
    )

    for worktree in run.column(SHARED_WORKTREES):
        first, *others = projects_at(run.tx, worktree)
        marks = ", ".join("?" * len(others))
        run.touch(f"SELECT id FROM session WHERE project_id IN ({marks})", *others)
        merge_projects(run.tx, first, others)

    run.rows(
        "DELETE FROM project_directory WHERE project_id NOT IN (SELECT id FROM project)"
    )


def _remove_orphans(run: _RepairRun) -> None:
    """Remove rows without a session or message, and keep prompts.

    Prompts belong to the user.
    """
    for name in ("session", "project"):
        run.rows(
            f"UPDATE prompt SET {name}_id = NULL "
            f"WHERE {name}_id IS NOT NULL AND {name}_id NOT IN (SELECT id FROM {name})"
        )

    # Before parts and labels, which refer to messages.
    tables = ["terminal", "lease", "todo", "file_diff", "message"]
    added = run.connection.engine.extensions.listed(run.connection)
    tables += [table.name for table in added if table.is_of_sessions]
    for table in tables:
        run.rows(
            f"DELETE FROM {table} WHERE session_id NOT IN (SELECT id FROM session)"
        )

    for table in ("part", "label"):
        run.touch(
            f"DELETE FROM {table} WHERE NOT EXISTS (SELECT 1 FROM message AS m "
            f"WHERE m.session_id = {table}.session_id AND m.seq = {table}.seq) "
            "RETURNING session_id"
        )

    # The next write of an extension makes all of its tables.
    for extension, _ in run.connection.engine.extensions.missing(run.connection):
        run.rows("DELETE FROM extension WHERE name = ?", extension)
    _forget_imports(run)


def _forget_imports(run: _RepairRun) -> None:
    """Remove the ledger's entries of sessions that are gone.

    A ``path`` ends with ``#source_id``.
    """
    names = (
        "SELECT source, coalesce(source_id, id) FROM session "
        "UNION SELECT source, source_id FROM tombstone"
    )
    names_here = set(run.rows(names))
    for source, path in run.rows("SELECT source, path FROM import_ledger"):
        # A source id may contain a "#", so any of them may be the separator.
        ends = [path[index + 1 :] for index, char in enumerate(path) if char == "#"]
        if ends and not any((source, end) in names_here for end in ends):
            run.rows(
                "DELETE FROM import_ledger WHERE source = ? AND path = ?", source, path
            )


def _repair_families(run: _RepairRun) -> None:
    """Detach sessions from parents that are gone, and give each family one root."""
    alone = run.column(
        "SELECT s.id FROM session AS s LEFT JOIN session AS p ON p.id = s.parent_id "
        "WHERE s.parent_id IS NOT NULL AND (p.id IS NULL OR "
        "(s.time_deleted IS NULL AND p.time_deleted IS NOT NULL))"
    )
    for name in sorted({*alone, *session_cycles(run.connection)}):
        run.touch(
            "UPDATE session SET parent_id = NULL, parent_seq = NULL WHERE id = ? "
            "RETURNING id",
            name,
        )
        _new_root(run, name)

    # Without cycles, each round settles a generation more.
    run.derive(ROOT)


def _new_root(run: _RepairRun, name: str) -> None:
    """Give a detached session a root that exists.

    Siblings whose ancestor is gone remain one family, under the oldest of them: else
    the messages that they copied from it would be counted once for each.
    """
    run.touch(
        "UPDATE session SET root_id = (SELECT k.id FROM session AS k "
        "WHERE k.root_id = session.root_id AND k.parent_id IS NULL "
        "ORDER BY k.time_created, k.id LIMIT 1) "
        "WHERE id = ? AND root_id NOT IN (SELECT id FROM session) RETURNING id",
        name,
    )


def _remove_blobs(run: _RepairRun) -> None:
    used = used_blobs(run.connection)
    _restore_names(run, used)
    run.rows(f"DELETE FROM blob WHERE hash NOT IN ({used})")
    _measure_blobs(run)


def _restore_names(run: _RepairRun, used: str) -> None:
    """Name blobs whose name was changed by their hash, if something refers to that."""
    lost = set(
        run.column(f"SELECT * FROM ({used}) AS used EXCEPT SELECT hash FROM blob")
    )
    if not lost:
        return

    # One at a time: all blobs together may be larger than memory.
    for name in run.column(f"SELECT hash FROM blob WHERE hash NOT IN ({used})"):
        (stored,) = run.rows("SELECT encoding, data FROM blob WHERE hash = ?", name)
        digest, _ = codec.measure_blob(*stored)
        if digest in lost:
            lost.remove(digest)
            run.rows("UPDATE blob SET hash = ? WHERE hash = ?", digest, name)


def _measure_blobs(run: _RepairRun) -> None:
    for name in run.column("SELECT hash FROM blob"):
        ((size, *stored),) = run.rows(
            "SELECT size, encoding, data FROM blob WHERE hash = ?", name
        )
        digest, right_size = codec.measure_blob(*stored)
        if digest == name and size != right_size:
            run.rows("UPDATE blob SET size = ? WHERE hash = ?", right_size, name)


def _repair_tree(run: _RepairRun) -> None:
    """Put messages behind the one before them if their parent is missing."""
    lost = run.rows(
        "SELECT session_id, seq FROM message AS m WHERE m.parent_seq IS NOT NULL AND "
        "(m.parent_seq = m.seq OR NOT EXISTS (SELECT 1 FROM message AS p "
        "WHERE p.session_id = m.session_id AND p.seq = m.parent_seq))"
    )
    _put_behind(run, lost)
    _put_behind(run, message_cycles(run.connection))

    # The message before may be a descendant, which makes another circle. Then no parent
    # in that session may come later: breaking one circle after the other could take a
    # round for each message.
    for name, _ in message_cycles(run.connection):
        _put_behind(run, [(name, seq) for seq in run.column(_LATER, name)])

    run.touch(
        f"UPDATE session SET last_seq = {_LAST_SEQ} WHERE last_seq < {_LAST_SEQ} "
        "RETURNING id"
    )
    run.touch(
        f"UPDATE session SET leaf_seq = {_LAST_SEQ} "
        "WHERE leaf_seq IS NOT NULL AND NOT EXISTS "
        "(SELECT 1 FROM message WHERE session_id = session.id AND seq = leaf_seq) "
        "RETURNING id"
    )


def _put_behind(run: _RepairRun, places: list[tuple[str, int]]) -> None:
    for session_id, seq in places:
        run.touch(
            "UPDATE message SET parent_seq = (SELECT max(p.seq) FROM message AS p "
            "WHERE p.session_id = message.session_id AND p.seq < message.seq) "
            "WHERE session_id = ? AND seq = ? RETURNING session_id",
            session_id, seq,
        )  # fmt: skip


def _repair_ownership(run: _RepairRun) -> None:
    """Give each class of copies one owner, by the rule of every other write."""
    run.touch(
        "UPDATE message SET inherited = 0 WHERE inherited NOT IN (0, 1) "
        "RETURNING session_id"
    )
    run.touch(
        "UPDATE message SET usage_name = (SELECT "
        f"min({USAGE_NAME.format('o.')}) FROM message AS o "
        "WHERE o.usage_key = message.usage_key) "
        f"WHERE usage_key IN ({AMBIGUOUS_KEYS}) RETURNING session_id"
    )
    lost = [
        ownership.UsageClass(*row)
        for row in (*run.rows(UNOWNED), *run.rows(COUNTED_TWICE))
    ]
    run.touched |= ownership.assign_owner(run.tx, lost)
    _repair_parts(run)


def _repair_parts(run: _RepairRun) -> None:
    """Make parts agree with their messages, and with the rule of the search index."""
    run.derive(PART_INHERITED)
    for session_id, seq, idx, indexed in run.rows(PART_INDEXED.wrong):
        run.touched.add(session_id)
        # Both are made again for a part that belongs into the index.
        run.rows(
            "UPDATE part SET indexed = 0, words = NULL "
            "WHERE session_id = ? AND seq = ? AND idx = ?",
            session_id, seq, idx,
        )  # fmt: skip
        # The end of the transaction marks and indexes them, like those of any write.
        if indexed:
            run.tx.index_parts(session_id, seq, [idx])


def _repair_counters(run: _RepairRun) -> None:
    run.derive(COUNTERS)
    run.derive(HIDDEN_SESSIONS)
    run.derive(MODEL)
    run.connection.engine.usage.repair(run.connection)


def _repair_values(run: _RepairRun) -> None:
    """Spell each namespace as it is found; one that has no names stays as it is."""
    for text, right in misspelt_namespaces(run.connection).items():
        if right is not None:
            for statement in RESPELL:
                run.connection.execute(statement, {"text": text, "right": right})


def _repair_changes(run: _RepairRun) -> None:
    run.touched.update(run.column(UNNUMBERED))


def _stamp_sessions(run: _RepairRun) -> None:
    """Give each changed session a new revision and change, for syncs and feeds."""
    for name in sorted(run.touched):
        if run.rows("SELECT 1 FROM session WHERE id = ?", name):
            change, _ = run.tx.take_change(name)
            run.rows(
                "UPDATE session SET revision = revision + 1, change = ? WHERE id = ?",
                change, name,
            )  # fmt: skip
    run.tx.finish()


#: The actions, in this order; each is a no-op if nothing is wrong.
ACTIONS: list[Callable[[_RepairRun], None]] = [
    _repair_search, _repair_meta, _repair_projects, _remove_orphans, _repair_families,
    _remove_blobs, _repair_tree, _repair_ownership, _repair_counters,
    _repair_values, _repair_changes, _stamp_sessions, _repair_search,
]  # fmt: skip
