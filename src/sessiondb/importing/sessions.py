"""The import of one session after the other: through the gate, and into the database.

A session passes the gate (`checks`), one read finds out what is known of it (`lookup`),
and its records are written in transactions of a bounded size (`units`). A session whose
digest is that of the ledger's entry is passed over without reading its messages.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain

from sessiondb import ids, location
from sessiondb.effects import encode
from sessiondb.effects.delete import Reap
from sessiondb.effects.project import ProjectPlace
from sessiondb.errors import InvalidInputError, SourceError, abridged
from sessiondb.importing.beside.history import Histories
from sessiondb.importing.beside.terminals import Uses
from sessiondb.importing.beside.values import merge_values
from sessiondb.importing.gate import checks
from sessiondb.importing.gate.extension_rows import extension_rows
from sessiondb.importing.known_files import KeepFacts
from sessiondb.importing.lookup import LookupResult, is_copy, look_up, namespace_here
from sessiondb.importing.policies.derived import Derived
from sessiondb.importing.policies.recorded import LoggedPrompt, Recorded
from sessiondb.importing.policies.returned import CloseReturned, take_back
from sessiondb.importing.request import ImportRequest
from sessiondb.importing.rows.close import CloseImport
from sessiondb.importing.rows.messages import WriteBatch
from sessiondb.importing.rows.run import CheckedSession, ImportEntry, Policy, Run
from sessiondb.importing.units import Results, Units
from sessiondb.model import (
    Imported,
    Problem,
    Problems,
    Prompt,
    SourceHistory,
    SourceItem,
    SourceSession,
    SourceValues,
)
from sessiondb.model.namespaces import Namespace

_WRITTEN = ("imported", "updated")


class SessionImporter:
    """The sessions and histories of one import, and the transactions that write them.

    *uses* gets those of each session that passes the gate.
    """

    def __init__(self, request: ImportRequest, uses: Uses) -> None:
        self._request = request
        self._core = request.core
        self._units = Units(request.core)
        self._uses = uses
        #: Copies that came before their originals, and the histories after them, which
        #: are imported last. None once they are.
        self._early: list[CheckedSession | SourceHistory] | None = []

    @property
    def committed(self) -> int:
        """The number of transactions."""
        return self._units.committed

    def complete(self, facts: KeepFacts | None) -> Results:
        """Commit what was gathered, with *facts* of files, and import what waits."""
        if facts is not None:
            self._units.keep(facts)
        yield from self._units.commit()

        early, self._early = self._early or (), None
        for waiting in early:
            if isinstance(waiting, SourceHistory):
                yield from self._import_history(waiting)
            else:
                yield from self._import_session(waiting)
        yield from self._units.commit()

    def import_item(self, item: SourceItem) -> Results:
        """Import a session or a history; yield problems, and results that are certain.

        Others follow with the transaction that ends them.
        """
        if isinstance(item, SourceSession):
            yield from self._import_session_item(item)
        elif isinstance(item, SourceHistory):
            if self._early:
                self._early.append(item)
            else:
                yield from self._import_history(item)
        elif isinstance(item, SourceValues):
            # They are of no project.
            if self._request.project_root is None and not self._request.dry_run:
                yield from merge_values(self._request.core, item)
        else:
            raise InvalidInputError(
                "a source yields sessions, histories, values and problems, "
                f"not {abridged(item)}"
            )

    def _import_session_item(self, item: SourceSession) -> Results:
        try:
            checked = checks.check_session(item)
            is_taken = self._takes_project(item)
        except InvalidInputError as error:
            yield checks.refused_session(item, error)
            return

        if is_taken:
            self._uses.add(item)
            yield from self._import_session(checked)

    def _import_history(self, item: SourceHistory) -> Results:
        # Its sessions come first: prompts that they have are not added again.
        yield from self._units.commit()
        if not self._request.dry_run:
            histories = Histories(
                self._core, self._request.project_root, self._request.locate_directory
            )
            yield from histories.run(item)

    def _takes_project(self, item: SourceSession) -> bool:
        root = self._request.project_root
        if root is None:
            return True

        place = self._place_of_item(item)
        if place is None:
            return False
        if place.root == root:
            return True

        # Outside of a repository each directory is a project; a log names the one it
        # was part of.
        prefix = root.rstrip(os.sep) + os.sep
        return item.stored is not None and place.directory.startswith(prefix)

    def _import_session(self, checked: CheckedSession) -> Results:
        item = checked.item
        if item.namespace:
            read = namespace_here(item, checked.ledger)
            item = replace(item, namespace=self._core.read(read))
            checked = replace(checked, item=item)

        lookup = self._core.read(look_up(item, checked.ledger))
        outcome = self._outcome_of(lookup)
        sid = lookup.session_id or _id_of(item)
        done = Imported(outcome, sid, item.source, item.source_id, lookup.messages)
        if outcome not in _WRITTEN:
            yield done
            return

        if self._early is not None and not lookup.session_id and is_copy(item):
            self._early.append(checked)
        elif item.complete is not None:
            yield from self._complete_session(item)
        elif lookup.returned:
            yield from take_back(
                self._units,
                checked,
                sid,
                is_empty=not lookup.messages,
                dry_run=self._request.dry_run,
            )
        elif lookup.overtaken:
            yield from self._passed_over(checked, replace(done, outcome="unchanged"))
        elif self._request.dry_run:
            yield from _counted_outcome(checked, lookup, done)
        else:
            yield from self._write_session(checked, lookup, done)

    def _passed_over(self, checked: CheckedSession, done: Imported) -> Results:
        """Record that a state was read, and leave the session as it is."""
        if self._request.dry_run:
            yield done
            return
        count = checked.item.message_count or 0
        run = Run(done.id, checked, Derived(), fresh=False, messages=count)
        yield from self._units.close(run, CloseReturned(run, ()), done)

    def _complete_session(self, item: SourceSession) -> Results:
        """Import a session of which only the beginning was read."""
        assert item.complete is not None
        try:
            complete = item.complete()
        except ValueError as error:
            # Our errors are sentences; others are the end of one.
            begin = "" if isinstance(error, SourceError) else "it "
            yield checks.refused_session(item, f"{begin}{error}")
        # A defect of its reader must not end the import of other sessions.
        except Exception as error:
            yield checks.refused_session(item, checks.reason(error))
        else:
            yield from self._import_session_item(replace(complete, complete=None))

    def _outcome_of(self, lookup: LookupResult) -> str:
        """Return what becomes of a session: the first rule that applies."""
        if lookup.deleted and not self._request.undelete:
            return "deleted"
        if lookup.new:
            return "imported"
        if lookup.unchanged:
            return "unchanged"
        if lookup.detached and not self._request.as_fork:
            return "diverged"
        return "updated"

    def _write_session(
        self, checked: CheckedSession, lookup: LookupResult, done: Imported
    ) -> Results:
        # Only a session that is written is looked up among the projects.
        try:
            place = self._place_of_item(checked.item)
        except InvalidInputError as error:
            yield checks.refused_session(checked.item, error)
            return

        if lookup.leaving:
            # Its rows must be gone first; what was gathered may refer to them.
            yield from self._units.commit()
            self._reap_deleted()

        problems = Problems(checked.problems)
        entries = checks.entries(checked.item, problems)
        if _needs_a_message(checked.item, lookup):
            head = _up_to_conversation(entries)
            if head is None:
                yield from problems
                return
            entries = chain(head, entries)
            checked = _date_session(checked, head)
            done = replace(done, id=_id_of(checked.item))

        run = self._new_run(checked, lookup, done)
        self._units.open(run, place)
        yield from self._units.write(run, entries, WriteBatch)
        rows = extension_rows(checked.item, problems)
        yield from self._units.write_extension_rows(run, rows)
        yield from problems

        done = replace(done, problems=tuple(problems))
        closing = CloseImport(run, done.problems)
        yield from self._units.close(run, closing, done)

    def _new_run(
        self, checked: CheckedSession, lookup: LookupResult, done: Imported
    ) -> Run:
        item = checked.item
        if item.stored is not None:
            prompts = tuple(
                self._logged_prompt(item, prompt) for prompt in checked.prompts
            )
            policy: Policy = Recorded(item.stored, prompts)
            return Run(done.id, checked, policy)

        # A session continued on both sides: the source's state takes over the name.
        if self._request.as_fork and lookup.is_continued:
            return Run(ids.new_session_id(), checked, Derived(lookup.session_id))
        return Run(done.id, checked, Derived())

    def _logged_prompt(self, item: SourceSession, prompt: Prompt) -> LoggedPrompt:
        """Return a prompt with its project, which is another one if typed elsewhere."""
        place = None
        if prompt.directory and prompt.directory != item.directory:
            place = self._request.locate_directory(prompt.directory)
        return LoggedPrompt(
            prompt.id,
            prompt.text,
            prompt.directory,
            place,
            prompt.source,
            prompt.time_created,
        )

    def _reap_deleted(self) -> None:
        """Finish the removal of what was deleted, so that its ids are free."""
        while True:
            unit, step = self._core.unit(), Reap()
            unit.add(step)
            self._core.commit(unit)
            if not step.more:
                return

    # -- places --------------------------------------------------------------

    def _place_of_item(self, item: SourceSession) -> ProjectPlace | None:
        """Return where a session was held; its directories passed the gate.

        None if its source states neither a directory nor a worktree.
        """
        directory = item.directory or item.worktree
        if not directory:
            return None

        place = self._request.locate_directory(directory)
        if not place.here:
            if item.worktree:
                # In one spelling, or one worktree would be two projects.
                place.root = place.checkout = location.project_at(item.worktree).root
            place.vcs = encode.string(item.vcs, "vcs")
            place.remote = encode.string(item.remote, "remote")
            place.root_commit = encode.string(item.root_commit, "root_commit")
        return place


def _counted_outcome(
    checked: CheckedSession, lookup: LookupResult, done: Imported
) -> Iterator[Imported | Problem]:
    problems = Problems(checked.problems)
    entries = checks.entries(checked.item, problems)
    head: list[ImportEntry] | None = []
    if _needs_a_message(checked.item, lookup):
        head = _up_to_conversation(entries)
    count = len(head or ()) + sum(1 for _ in entries)
    for _ in extension_rows(checked.item, problems):
        pass
    yield from problems
    if head is not None:
        yield replace(done, messages=count, problems=tuple(problems))


def _needs_a_message(item: SourceSession, lookup: LookupResult) -> bool:
    """Return whether a session is imported only when something was said in it.

    The id of a new one is made of the time and the namespace in which it began. A log
    that was begun a moment ago may state neither, and its first message does.
    """
    is_new = lookup.session_id is None and item.stored is None
    return is_new and (item.time_created is None or item.namespace == str(Namespace()))


def _up_to_conversation(entries: Iterator[ImportEntry]) -> list[ImportEntry] | None:
    """Return the messages up to the first of a user or a model; None without one."""
    head = []
    for entry in entries:
        head.append(entry)
        if entry.row.role in ("user", "assistant"):
            return head
    return None


def _date_session(
    checked: CheckedSession, head: Iterable[ImportEntry]
) -> CheckedSession:
    """Return a session that states no time with that of its first dated message."""
    if checked.item.time_created is not None:
        return checked
    times = [e.row.time_created for e in head if e.row.time_created is not None]
    if not times:
        return checked
    return replace(
        checked,
        item=replace(checked.item, time_created=times[0]),
        columns={**checked.columns, "time_created": times[0]},
    )


def _id_of(item: SourceSession) -> str:
    """Return the id that a new session gets."""
    if item.stored is not None:
        return item.stored.id
    time = item.time_created or 0
    return ids.imported_session_id(item.source, item.source_id, time, item.namespace)
